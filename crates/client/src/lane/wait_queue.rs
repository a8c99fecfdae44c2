//! The tasks that wait until a budget has room. Each task is listed once, no matter how often it is polled.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::task::Waker;
use std::time::Instant;

/// The maximum number of tasks that wait at the same time. Further tasks get an error.
pub(super) const WAITING_MAX: usize = 1 << 18;
/// Shorter lists are not searched for duplicates.
const SEARCHED_LEN_MIN: usize = 64;

/// The waiting tasks, and their time limits.
#[derive(Debug, Default)]
pub(super) struct WaitQueue {
    waiters: Vec<Waiter>,
    /// The length at which the list is next searched for duplicates.
    search_at: usize,
}

#[derive(Debug)]
struct Waiter {
    until: Option<Instant>,
    waker: Waker,
}

impl WaitQueue {
    /// Adds a task. It is woken when there may be room, and at the latest one tick after its time limit. Returns false
    /// if there are too many. O(1) amortized.
    #[must_use]
    pub(super) fn add(&mut self, until: Option<Instant>, waker: &Waker) -> bool {
        self.waiters.push(Waiter { until, waker: waker.clone() });
        if self.waiters.len() >= self.search_at.max(SEARCHED_LEN_MIN) {
            self.remove_duplicates();
            self.search_at = 2 * self.waiters.len();
        }
        if self.waiters.len() > WAITING_MAX {
            self.waiters.pop();
            return false;
        }
        true
    }

    /// Takes out all tasks; each checks on its own whether there is room.
    #[must_use]
    pub(super) fn take_all(&mut self) -> Vec<Waker> {
        self.search_at = 0;
        self.waiters.drain(..).map(|waiter| waiter.waker).collect()
    }

    /// Reports whether a task has timed out.
    pub(super) fn has_expired(&self, now: Instant) -> bool {
        self.waiters.iter().any(|waiter| waiter.has_expired(now))
    }

    /// Takes out the tasks that have timed out; each discovers on its own that it has.
    #[must_use]
    pub(super) fn take_expired(&mut self, now: Instant) -> Vec<Waker> {
        self.waiters
            .extract_if(.., |waiter| waiter.has_expired(now))
            .map(|waiter| waiter.waker)
            .collect()
    }

    /// Removes duplicates, keeping the earliest time limit of each task and the order.
    fn remove_duplicates(&mut self) {
        let mut first_at = HashMap::with_capacity(self.waiters.len());
        let mut kept: Vec<Waiter> = Vec::with_capacity(self.waiters.len());
        for waiter in self.waiters.drain(..) {
            // Two wakers with equal parts wake the same task.
            let task =
                (waiter.waker.data() as usize, std::ptr::from_ref(waiter.waker.vtable()) as usize);
            match first_at.entry(task) {
                Entry::Vacant(entry) => {
                    entry.insert(kept.len());
                    kept.push(waiter);
                }
                Entry::Occupied(entry) => {
                    let first = &mut kept[*entry.get()];
                    first.until = [first.until, waiter.until].into_iter().flatten().min();
                }
            }
        }
        self.waiters = kept;
    }
}

impl Waiter {
    fn has_expired(&self, now: Instant) -> bool {
        self.until.is_some_and(|until| until <= now)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::task::Wake;
    use std::time::Duration;

    #[derive(Default)]
    struct Task(AtomicUsize);

    impl Wake for Task {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, Ordering::Relaxed);
        }
    }

    #[test]
    fn a_task_that_registers_repeatedly_waits_only_once() {
        let tasks: Vec<Arc<Task>> = (0..100).map(|_| Arc::default()).collect();
        let mut waiting = WaitQueue::default();
        for _ in 0..1000 {
            for task in &tasks {
                assert!(waiting.add(None, &Waker::from(Arc::clone(task))));
            }
            assert!(waiting.waiters.len() <= 2 * tasks.len(), "{}", waiting.waiters.len());
        }
        waiting.take_all().into_iter().for_each(Waker::wake);
        assert!(tasks.iter().all(|task| task.0.load(Ordering::Relaxed) > 0));
    }

    #[test]
    fn the_earliest_time_limit_of_a_task_counts_and_no_limit_never_expires() {
        let now = Instant::now();
        let (early, late) = (now + Duration::from_secs(1), now + Duration::from_secs(2));
        let (one, other) =
            (Waker::from(Arc::<Task>::default()), Waker::from(Arc::<Task>::default()));
        let mut waiting = WaitQueue::default();
        for until in [Some(late), None, Some(early)] {
            assert!(waiting.add(until, &one) && waiting.add(None, &other));
        }
        waiting.remove_duplicates();
        assert!(!waiting.has_expired(now) && waiting.has_expired(early));
        assert_eq!((waiting.take_expired(early).len(), waiting.take_all().len()), (1, 1));
    }

    #[test]
    fn the_number_of_waiting_tasks_is_bounded() {
        let mut waiting = WaitQueue::default();
        let mut rejected = 0;
        for _ in 0..WAITING_MAX + 1000 {
            rejected += usize::from(!waiting.add(None, &Waker::from(Arc::<Task>::default())));
        }
        assert_eq!((rejected, waiting.waiters.len()), (1000, WAITING_MAX));
    }
}
