//! When to let requests gather before the next wait for events.
//!
//! Many clients that each send one request and wait for its reply wake a loop that is a little
//! faster than they are for every one or two requests, and a wake costs about as much as executing
//! several. If so many are at it that others are sure to follow within microseconds, the loop
//! sleeps for that long first and finds them together: what network cards call interrupt
//! coalescing. It takes sixteen connections that take turns exactly, some twenty that nearly do,
//! and some fifty that come at random. They may be one caller's who waits for each reply; then
//! sleeps find nothing more than a wait would have, and are tried ever less often,
//! down to once in 1024 rounds.
//!
//! Clients that connect for each request come at a rate of their own making, a third of what kept
//! connections send, and their round trips are several times as long: the loop sleeps twice as long
//! for them.

use crate::sys;
use std::time::Duration;

/// Rounds over which the rate of news is measured.
const ROUNDS: usize = 16;
/// A round that found more news than this is one of a busy loop, which does not sleep anyway.
const NEWS_BUSY: u64 = 16;
/// News to be expected during a sleep that is worth it.
const NEWS_EXPECTED_MIN: u64 = 2;
/// From one connection in so much news on, clients connect for each request.
const CONNECTED_SHARE: u64 = 4;
/// A sleep that found less was in vain: one caller who connects for each request makes
/// two at a time.
const NEWS_GATHERED_MIN: u64 = 3;
/// After so many sleeps in vain one after the other, the next is tried after 2 to
/// this power of rounds.
const MISSES_MAX: u32 = 10;
/// Weight of the newest receive in the mean closeness: 1 in 2 to this power.
const MEAN_SHIFT: u32 = 6;
/// Closeness of two receives in a row from one connection; halved for each doubling of the receives
/// from one to the next, down to 64 of them.
const CLOSE: u64 = 1 << 10;
const APART_LOG_MAX: u32 = 6;
/// Mean closeness up to which connections count as many. (16 to 31 in turn have 64, more if they
/// are not quite in turn, 15 have 128; one that comes every second time has 512, and 264 with
/// others in between. Fifty that come at random are now below and now above.)
const CLOSENESS_MAX: u64 = 110;
/// How exactly the kernel wakes the thread, instead of 50 µs.
const TIMER_SLACK_NS: u32 = 1_000;

/// A wait's beginning in ns, and what there had been by then.
#[derive(Clone, Copy, Debug, Default)]
struct Mark {
    ns: u64,
    news: u64,
    connected: u64,
}

/// What the loop knows about those who send to it.
#[derive(Debug, Default)]
pub(crate) struct Pace {
    /// The longest sleep in ns; 0 for none.
    limit_ns: u64,
    /// Receives so far.
    receives: u64,
    /// Mean closeness, times 2 to the power of [`MEAN_SHIFT`].
    closeness: u64,
    /// What there had been when the last rounds waited.
    marks: [Mark; ROUNDS],
    rounds: usize,
    /// How much news there had been before the sleep of this round, if it slept.
    slept: Option<u64>,
    /// Sleeps in vain, one after the other, and rounds without a sleep that are still
    /// to come for them.
    misses: u32,
    skips: u32,
    slack_is_set: bool,
}

impl Pace {
    /// Sets the longest sleep; 0 for none.
    pub(crate) fn set_limit(&mut self, limit: Duration) {
        self.limit_ns = u64::try_from(limit.as_nanos()).unwrap_or(u64::MAX);
    }

    /// Notes a receive from the connection that came last with the receive of number `last`. O(1)
    #[inline]
    pub(crate) fn note(&mut self, last: &mut u64) {
        self.receives += 1;
        let apart = (self.receives - *last).max(1);
        *last = self.receives;
        let close = CLOSE >> apart.ilog2().min(APART_LOG_MAX);
        self.closeness = self.closeness - (self.closeness >> MEAN_SHIFT) + close;
    }

    /// How long to sleep before a wait that begins at `now_ns` and may last, if it is worth it;
    /// there was so much `news` by now: receives and connections, of which so many `connected`.
    /// O(1)
    #[inline]
    pub(crate) fn before_wait(
        &mut self,
        now_ns: u64,
        news: u64,
        connected: u64,
    ) -> Option<Duration> {
        if self.limit_ns == 0 {
            return None;
        }
        if let Some(before) = self.slept.take() {
            self.learn(news - before);
        }
        let last = self.marks[self.rounds % ROUNDS];
        self.rounds = self.rounds.wrapping_add(1);
        let now = Mark { ns: now_ns, news, connected };
        let oldest = std::mem::replace(&mut self.marks[self.rounds % ROUNDS], now);
        let found = news - last.news;
        if found == 0 || found > NEWS_BUSY || self.closeness >> MEAN_SHIFT > CLOSENESS_MAX {
            return None;
        }
        if self.skips > 0 {
            self.skips -= 1;
            return None;
        }
        let lately = news - oldest.news;
        // A connection for each request is a third of the news: connecting, sending, leaving.
        let reconnects = (connected - oldest.connected) * CONNECTED_SHARE >= lately;
        let sleep_ns = if reconnects { self.limit_ns.saturating_mul(2) } else { self.limit_ns };
        // news / time * sleep >= expected
        let needed = u128::from(NEWS_EXPECTED_MIN) * u128::from(now_ns.wrapping_sub(oldest.ns));
        if u128::from(lately) * u128::from(sleep_ns) < needed {
            return None;
        }
        self.slept = Some(news);
        Some(Duration::from_nanos(sleep_ns))
    }

    /// A sleep found so much. Many connections may all be one caller's, who does nothing until he
    /// is answered: only that shows it.
    fn learn(&mut self, gathered: u64) {
        if gathered >= NEWS_GATHERED_MIN {
            self.misses = 0;
        } else {
            self.misses = (self.misses + 1).min(MISSES_MAX);
            self.skips = 1 << self.misses;
        }
    }

    /// Sleeps, as exactly as the kernel can.
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

    /// In how many of a thousand rounds the loop sleeps. A round finds the next `found` of
    /// `senders` (numbers of connections, in turn), one behind a sleep the next `gathered`;
    /// it takes `round_ns`.
    fn sleeps(
        senders: &[usize],
        (found, gathered): (usize, usize),
        round_ns: u64,
        limit: Duration,
    ) -> u32 {
        let mut pace = Pace::default();
        pace.set_limit(limit);
        let mut last = [0; 1024];
        let mut turn = senders.iter().cycle();
        let (mut sleeps, mut slept) = (0, false);
        for round in 0..2000 {
            for _ in 0..if slept { gathered } else { found } {
                pace.note(&mut last[*turn.next().unwrap()]);
            }
            slept = pace.before_wait(1_000_000 + round * round_ns, pace.receives, 0).is_some();
            // The first half shows who is there.
            sleeps += u32::from(slept && round >= 1000);
        }
        sleeps
    }

    fn of(connections: usize) -> Vec<usize> {
        (0..connections).collect()
    }

    #[test]
    fn many_connections_in_quick_succession_are_worth_a_sleep() {
        for connections in [16, 20, 31, 50, 64, 1000] {
            let sleeps = sleeps(&of(connections), (1, 5), 10_000, LIMIT);
            assert!(sleeps > 900, "{connections}: {sleeps}");
        }
        let sleeps = sleeps(&of(50), (5, 5), 80_000, LIMIT);
        assert!(sleeps > 900, "and go on to be when they come together: {sleeps}");
    }

    #[test]
    fn few_connections_are_never_made_to_wait() {
        for connections in [1, 2, 8, 15] {
            assert_eq!(sleeps(&of(connections), (1, 5), 10_000, LIMIT), 0, "{connections}");
        }
    }

    #[test]
    fn one_caller_with_many_connections_is_left_alone_but_for_a_trial_now_and_then() {
        for (found, gathered) in [(1, 1), (1, 2), (2, 2)] {
            let sleeps = sleeps(&of(64), (found, gathered), 10_000, LIMIT);
            assert!(sleeps <= 2, "{found}, {gathered}: {sleeps}");
        }
    }

    #[test]
    fn clients_that_connect_for_each_request_are_waited_for_twice_as_long() {
        let mut pace = Pace::default();
        pace.set_limit(LIMIT);
        let (mut sleeps, mut connected) = ([0, 0], 0);
        for round in 0..2000 {
            // A connection is new each time: one receive finds its request, one its end.
            for _ in 0..2 {
                connected += 1;
                pace.note(&mut 0);
            }
            match pace.before_wait(1_000_000 + round * 60_000, connected * 3, connected) {
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
    fn one_busy_connection_among_many_is_not_made_to_wait() {
        let mut senders = Vec::new();
        for other in 1..200 {
            senders.extend([0, other]);
        }
        assert_eq!(sleeps(&senders, (1, 5), 10_000, LIMIT), 0);
    }

    #[test]
    fn slow_senders_a_busy_loop_and_an_idle_one_are_left_alone() {
        assert_eq!(sleeps(&of(50), (1, 1), 30_000, LIMIT), 0, "slow: fewer than two to come");
        assert_eq!(sleeps(&of(50), (17, 17), 160_000, LIMIT), 0, "busy");
        assert_eq!(sleeps(&of(50), (0, 0), 10_000, LIMIT), 0, "idle");
        assert_eq!(sleeps(&of(50), (1, 5), 10_000, Duration::ZERO), 0, "switched off");
    }
}
