//! When to let requests gather before the next wait for events.
//!
//! Many clients that each send one request and wait for its reply wake a loop that is a little faster
//! than they are for every one or two requests, and a wake costs about as much as executing several.
//! If so many are at it that others are sure to follow within microseconds, the loop sleeps for that
//! long first and finds them together: what network cards call interrupt coalescing. Nobody is made to
//! wait whose next request depends on this reply alone: it takes some forty connections that take turns.

use crate::sys;
use std::time::Duration;

/// Rounds over which the rate of events is measured.
const ROUNDS: usize = 16;
/// A round that found more events than this is one of a busy loop, which does not sleep anyway.
const EVENTS_BUSY: u64 = 16;
/// Events to be expected during a sleep that is worth it.
const EVENTS_EXPECTED_MIN: u64 = 2;
/// Weight of the newest receive in the mean closeness: 1 in 2 to this power.
const MEAN_SHIFT: u32 = 6;
/// Closeness of two receives in a row from one connection; halved for each doubling of the receives
/// from one to the next, down to 64 of them.
const CLOSE: u64 = 1 << 10;
const APART_LOG_MAX: u32 = 6;
/// Mean closeness up to which connections count as many: some forty in turn. (32 in turn have 32, 31
/// have 64; one that comes every second time has 512, and 264 with others in between.)
const CLOSENESS_MAX: u64 = 40;
/// How exactly the kernel wakes the thread, instead of 50 µs.
const TIMER_SLACK_NS: u32 = 1_000;

/// What the loop knows about those who send to it.
#[derive(Debug, Default)]
pub(crate) struct Pace {
    /// The longest sleep in ns; 0 for none.
    limit_ns: u64,
    /// Receives so far.
    receives: u64,
    /// Mean closeness, times 2 to the power of [`MEAN_SHIFT`].
    closeness: u64,
    /// When the last rounds waited, in ns, and how many events there had been.
    marks: [(u64, u64); ROUNDS],
    rounds: usize,
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

    /// How long to sleep before a wait that begins at `now_ns`, if it is worth it; there were `events`
    /// so far, receives and others. To be called before each wait. O(1)
    #[inline]
    pub(crate) fn before_wait(&mut self, now_ns: u64, events: u64) -> Option<Duration> {
        if self.limit_ns == 0 {
            return None;
        }
        let (_, before) = self.marks[self.rounds % ROUNDS];
        self.rounds = self.rounds.wrapping_add(1);
        let (since_ns, oldest) =
            std::mem::replace(&mut self.marks[self.rounds % ROUNDS], (now_ns, events));
        let found = events - before;
        if found == 0 || found > EVENTS_BUSY || self.closeness >> MEAN_SHIFT > CLOSENESS_MAX {
            return None;
        }
        // events / time * limit >= expected
        let lately = u128::from(events - oldest) * u128::from(self.limit_ns);
        let needed = u128::from(EVENTS_EXPECTED_MIN) * u128::from(now_ns.wrapping_sub(since_ns));
        (lately >= needed).then(|| Duration::from_nanos(self.limit_ns))
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

    /// Whether the last of many rounds would sleep, of which each finds the next `found` of `senders`
    /// (which are numbers of connections, in turn) and takes `round_ns`.
    fn sleeps(senders: &[usize], found: usize, round_ns: u64, limit: Duration) -> bool {
        let mut pace = Pace::default();
        pace.set_limit(limit);
        let mut last = [0; 1024];
        let mut turn = senders.iter().cycle();
        let mut sleep = None;
        for round in 0..1000 {
            for _ in 0..found {
                pace.note(&mut last[*turn.next().unwrap()]);
            }
            sleep = pace.before_wait(1_000_000 + round * round_ns, pace.receives);
        }
        sleep.is_some()
    }

    fn of(connections: usize) -> Vec<usize> {
        (0..connections).collect()
    }

    #[test]
    fn many_connections_in_quick_succession_are_worth_a_sleep() {
        for connections in [40, 50, 64, 1000] {
            assert!(sleeps(&of(connections), 1, 10_000, LIMIT), "{connections}");
        }
        assert!(sleeps(&of(50), 5, 80_000, LIMIT), "and go on to be when they come together");
    }

    #[test]
    fn few_connections_are_never_made_to_wait() {
        for connections in [1, 2, 16, 31] {
            assert!(!sleeps(&of(connections), 1, 10_000, LIMIT), "{connections}");
        }
    }

    #[test]
    fn one_busy_connection_among_many_is_not_made_to_wait() {
        let mut senders = Vec::new();
        for other in 1..200 {
            senders.extend([0, other]);
        }
        assert!(!sleeps(&senders, 1, 10_000, LIMIT));
    }

    #[test]
    fn slow_senders_a_busy_loop_and_an_idle_one_are_left_alone() {
        assert!(!sleeps(&of(50), 1, 30_000, LIMIT), "slow: fewer than two to come");
        assert!(!sleeps(&of(50), 17, 160_000, LIMIT), "busy");
        assert!(!sleeps(&of(50), 0, 10_000, LIMIT), "idle");
        assert!(!sleeps(&of(50), 1, 10_000, Duration::ZERO), "switched off");
    }
}
