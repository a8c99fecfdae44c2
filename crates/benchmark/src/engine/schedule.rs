//! When requests of an open loop are due.

use super::plan::Arrivals;
use crate::load::random::Random;

/// Due times of one worker, in order. Nothing is stored for requests that could not be sent yet: the next due time
/// stays in the past, and latencies are measured from it.
#[derive(Debug)]
pub(super) struct Schedule {
    due_ns: f64,
    gap_ns: f64,
    arrivals: Arrivals,
    random: Random,
}

impl Schedule {
    /// `rate` is the number of requests per second of all workers. This worker takes its share, at its own offset.
    pub(super) fn new(
        rate: f64,
        arrivals: Arrivals,
        start_ns: u64,
        (worker, workers): (usize, usize),
        seed: u64,
    ) -> Schedule {
        let gap_ns = 1e9 * workers as f64 / rate;
        let offset = gap_ns * worker as f64 / workers as f64;
        let mut random = Random::new(seed ^ (worker as u64) << 40);
        let first = match arrivals {
            Arrivals::Even => offset,
            Arrivals::Poisson => exponential(&mut random) * gap_ns,
        };
        Schedule { due_ns: start_ns as f64 + first, gap_ns, arrivals, random }
    }

    /// When the next request is due.
    pub(super) const fn due(&self) -> u64 {
        self.due_ns as u64
    }

    /// Called when the next request is being sent.
    pub(super) fn advance(&mut self) {
        self.due_ns += match self.arrivals {
            Arrivals::Even => self.gap_ns,
            Arrivals::Poisson => exponential(&mut self.random) * self.gap_ns,
        };
    }
}

fn exponential(random: &mut Random) -> f64 {
    -(1.0 - random.unit()).ln()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn due_within(arrivals: Arrivals, worker: usize, ns: u64) -> usize {
        let start = 10_000_000_000_000;
        let mut schedule = Schedule::new(1000.0, arrivals, start, (worker, 2), 1);
        let mut count = 0;
        while schedule.due() < start + ns {
            schedule.advance();
            count += 1;
        }
        count
    }

    #[test]
    fn workers_together_keep_the_rate() {
        let even: usize = (0..2).map(|i| due_within(Arrivals::Even, i, 10_000_000_000)).sum();
        assert!((9_999..=10_001).contains(&even), "{even}");
        let poisson: usize = (0..2).map(|i| due_within(Arrivals::Poisson, i, 10_000_000_000)).sum();
        assert!((9_500..10_500).contains(&poisson), "{poisson}");
    }

    #[test]
    fn the_second_worker_fills_the_gaps_of_the_first() {
        let due = |worker| Schedule::new(1000.0, Arrivals::Even, 0, (worker, 2), 1).due();
        assert_eq!((due(0), due(1)), (0, 1_000_000));
    }
}
