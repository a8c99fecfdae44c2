//! Decides when the loop sleeps briefly before it waits for events, so that several requests arrive
//! together.
//!
//! Many clients may each send one request and wait for its reply. A loop that is slightly faster
//! than the clients is then woken for every one or two requests, and a wake-up costs about as much
//! as executing several requests. If enough clients are active, more requests are sure to follow
//! within microseconds. The loop then first sleeps for that long and finds the requests together.
//! Network cards call this interrupt coalescing.
//!
//! Coalescing needs 16 connections that send in exact rotation, about 20 that nearly do, or about
//! 50 that send at random times. If all of them belong to one caller that waits for each reply,
//! sleeps find no more requests than a wait would have found. The loop then tries sleeps less and
//! less often, down to once in 1024 rounds.
//!
//! Clients that open a connection for each request send a third of the requests that persistent
//! connections send, and their round trips take several times as long. For such clients the loop
//! sleeps twice as long.

use crate::sys;
use std::time::Duration;

/// Number of rounds over which the event rate is measured.
const ROUNDS: usize = 16;
/// A round that finds more events than this belongs to a busy loop, which does not sleep anyway.
const EVENTS_BUSY: u64 = 16;
/// A sleep is worthwhile if at least this many events are expected during it.
const EVENTS_EXPECTED_MIN: u64 = 2;
/// If at least one event in this many is a new connection, clients connect for each request.
const CONNECTED_SHARE: u64 = 4;
/// A sleep that finds fewer events was useless. One caller that connects for each request causes
/// two events at a time.
const EVENTS_GATHERED_MIN: u64 = 3;
/// Maximum number of consecutive useless sleeps that are counted. After N of them, the next sleep
/// is tried after 2 to the power of N rounds.
const MISSES_MAX: u32 = 10;
/// The newest receive has the weight 1 / 2^`MEAN_SHIFT` in the mean closeness.
const MEAN_SHIFT: u32 = 6;
/// Closeness of two consecutive receives from the same connection. It halves each time the number
/// of receives between the two doubles, up to 64 receives.
const CLOSE: u64 = 1 << 10;
const APART_LOG_MAX: u32 = 6;
/// Maximum mean closeness at which the traffic counts as that of many connections. With 16 to 31
/// connections that send in exact rotation it is 64, and more if the rotation is not exact. With 15
/// connections it is 128. A connection that sends every second request has 512, or 264 if others
/// send in between. Fifty connections that send at random times are sometimes below and sometimes
/// above the limit.
const CLOSENESS_MAX: u64 = 110;
/// Timer slack of the thread: how late the kernel may end a sleep. The default is 50 µs.
const TIMER_SLACK_NS: u32 = 1_000;

/// The start of a wait in ns, and the event counts at that time.
#[derive(Clone, Copy, Debug, Default)]
struct Mark {
    ns: u64,
    events: u64,
    connected: u64,
}

/// Measures the traffic and decides whether to sleep before a wait.
#[derive(Debug, Default)]
pub(crate) struct WakeCoalescing {
    /// The longest sleep in ns; 0 turns sleeping off.
    limit_ns: u64,
    /// Number of receives so far.
    receives: u64,
    /// Mean closeness, times 2 to the power of [`MEAN_SHIFT`].
    closeness: u64,
    /// The event counts at the starts of the last waits.
    marks: [Mark; ROUNDS],
    rounds: usize,
    /// The event count before the sleep of this round, if the loop slept.
    slept: Option<u64>,
    /// Consecutive useless sleeps, and the number of rounds that still have to pass without a sleep
    /// because of them.
    misses: u32,
    skips: u32,
    slack_is_set: bool,
}

impl WakeCoalescing {
    /// Sets the longest sleep; 0 turns sleeping off.
    pub(crate) fn set_limit(&mut self, limit: Duration) {
        self.limit_ns = u64::try_from(limit.as_nanos()).unwrap_or(u64::MAX);
    }

    /// Records a receive from a connection whose previous receive had the number `last`. O(1).
    #[inline]
    pub(crate) fn record_receive(&mut self, last: &mut u64) {
        self.receives += 1;
        let apart = (self.receives - *last).max(1);
        *last = self.receives;
        let close = CLOSE >> apart.ilog2().min(APART_LOG_MAX);
        self.closeness = self.closeness - (self.closeness >> MEAN_SHIFT) + close;
    }

    /// Returns how long to sleep before a wait that starts at `now_ns` and may block. Returns
    /// `None` if a sleep is not worthwhile. `events` counts the receives and connections so far,
    /// `connected` only the connections. O(1).
    #[inline]
    pub(crate) fn before_wait(
        &mut self,
        now_ns: u64,
        events: u64,
        connected: u64,
    ) -> Option<Duration> {
        if self.limit_ns == 0 {
            return None;
        }
        if let Some(before) = self.slept.take() {
            self.learn(events - before);
        }
        let last = self.marks[self.rounds % ROUNDS];
        self.rounds = self.rounds.wrapping_add(1);
        let now = Mark { ns: now_ns, events, connected };
        let oldest = std::mem::replace(&mut self.marks[self.rounds % ROUNDS], now);
        let found = events - last.events;
        if found == 0 || found > EVENTS_BUSY || self.closeness >> MEAN_SHIFT > CLOSENESS_MAX {
            return None;
        }
        if self.skips > 0 {
            self.skips -= 1;
            return None;
        }
        let lately = events - oldest.events;
        // Each reconnecting client causes three events per request: connecting, sending, closing.
        let reconnects = (connected - oldest.connected) * CONNECTED_SHARE >= lately;
        let sleep_ns = if reconnects { self.limit_ns.saturating_mul(2) } else { self.limit_ns };
        // events / time * sleep >= expected
        let needed = u128::from(EVENTS_EXPECTED_MIN) * u128::from(now_ns.wrapping_sub(oldest.ns));
        if u128::from(lately) * u128::from(sleep_ns) < needed {
            return None;
        }
        self.slept = Some(events);
        Some(Duration::from_nanos(sleep_ns))
    }

    /// Records how many events a sleep found. Many connections may belong to one caller that does
    /// nothing until it gets a reply. Only the number of events found reveals such a caller.
    fn learn(&mut self, gathered: u64) {
        if gathered >= EVENTS_GATHERED_MIN {
            self.misses = 0;
        } else {
            self.misses = (self.misses + 1).min(MISSES_MAX);
            self.skips = 1 << self.misses;
        }
    }

    /// Sleeps as precisely as the kernel allows.
    pub(crate) fn sleep(&mut self, time: Duration) {
        if !self.slack_is_set {
            self.slack_is_set = true;
            sys::set_timer_slack(TIMER_SLACK_NS);
        }
        std::thread::sleep(time);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMIT: Duration = Duration::from_micros(50);

    /// Returns in how many of 1,000 rounds the loop sleeps. A round finds the next `found` entries
    /// of `senders` (connection numbers, in turn), or the next `gathered` entries after a sleep. A
    /// round takes `round_ns`.
    fn sleeps(
        senders: &[usize],
        (found, gathered): (usize, usize),
        round_ns: u64,
        limit: Duration,
    ) -> u32 {
        let mut coalescing = WakeCoalescing::default();
        coalescing.set_limit(limit);
        let mut last = [0; 1024];
        let mut turn = senders.iter().cycle();
        let (mut sleeps, mut slept) = (0, false);
        for round in 0..2000 {
            for _ in 0..if slept { gathered } else { found } {
                coalescing.record_receive(&mut last[*turn.next().unwrap()]);
            }
            slept = coalescing
                .before_wait(1_000_000 + round * round_ns, coalescing.receives, 0)
                .is_some();
            // The first half of the rounds is the learning phase.
            sleeps += u32::from(slept && round >= 1000);
        }
        sleeps
    }

    fn of(connections: usize) -> Vec<usize> {
        (0..connections).collect()
    }

    #[test]
    fn the_loop_sleeps_for_many_connections_in_quick_succession() {
        for connections in [16, 20, 31, 50, 64, 1000] {
            let sleeps = sleeps(&of(connections), (1, 5), 10_000, LIMIT);
            assert!(sleeps > 900, "{connections}: {sleeps}");
        }
        let sleeps = sleeps(&of(50), (5, 5), 80_000, LIMIT);
        assert!(sleeps > 900, "still worthwhile when they come together: {sleeps}");
    }

    #[test]
    fn the_loop_never_sleeps_for_few_connections() {
        for connections in [1, 2, 8, 15] {
            assert_eq!(sleeps(&of(connections), (1, 5), 10_000, LIMIT), 0, "{connections}");
        }
    }

    #[test]
    fn the_loop_rarely_sleeps_for_one_caller_with_many_connections() {
        for (found, gathered) in [(1, 1), (1, 2), (2, 2)] {
            let sleeps = sleeps(&of(64), (found, gathered), 10_000, LIMIT);
            assert!(sleeps <= 2, "{found}, {gathered}: {sleeps}");
        }
    }

    #[test]
    fn the_loop_sleeps_twice_as_long_for_clients_that_connect_for_each_request() {
        let mut coalescing = WakeCoalescing::default();
        coalescing.set_limit(LIMIT);
        let (mut sleeps, mut connected) = ([0, 0], 0);
        for round in 0..2000 {
            // Each request uses a new connection: one receive finds the request, another finds the
            // end of the stream.
            for _ in 0..2 {
                connected += 1;
                coalescing.record_receive(&mut 0);
            }
            match coalescing.before_wait(1_000_000 + round * 60_000, connected * 3, connected) {
                None => {}
                Some(time) if time == LIMIT => sleeps[0] += 1,
                Some(time) => {
                    assert_eq!(time, LIMIT * 2);
                    sleeps[1] += 1;
                }
            }
        }
        assert!(sleeps[0] == 0 && sleeps[1] > 900, "{sleeps:?}");
    }

    #[test]
    fn the_loop_does_not_sleep_if_one_connection_is_busier_than_the_others() {
        let mut senders = Vec::new();
        for other in 1..200 {
            senders.extend([0, other]);
        }
        assert_eq!(sleeps(&senders, (1, 5), 10_000, LIMIT), 0);
    }

    #[test]
    fn the_loop_does_not_sleep_for_slow_senders_when_busy_or_when_idle() {
        assert_eq!(sleeps(&of(50), (1, 1), 30_000, LIMIT), 0, "slow: fewer than two to come");
        assert_eq!(sleeps(&of(50), (17, 17), 160_000, LIMIT), 0, "busy");
        assert_eq!(sleeps(&of(50), (0, 0), 10_000, LIMIT), 0, "idle");
        assert_eq!(sleeps(&of(50), (1, 5), 10_000, Duration::ZERO), 0, "switched off");
    }
}
