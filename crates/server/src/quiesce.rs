//! Quiescence: making every worker stand still between two commands.
//!
//! Commands that must see or change everything at once (FLUSHALL, SWAPDB, CONFIG SET …) run while
//! all other workers are stopped. A worker is *running* or *idle*; it is idle while it waits for
//! events, while it waits here, and nothing else. Slot locks are still taken, they are just free.
//!
//! Invariants
//!  1. A worker executes commands only while its state is RUNNING.
//!  2. A worker that changes its state looks at `requested` afterwards, a quiescer sets `requested`
//!     before it looks at states, both with a sequentially consistent fence in between: one of them
//!     sees the other.
//!  3. Whoever waits, for a stop to end or for the right to stop others, is IDLE: two quiescers
//!     cannot wait for each other.

#[cfg(loom)]
use loom::sync::{
    Condvar, Mutex, MutexGuard,
    atomic::{AtomicBool, AtomicU8, Ordering, fence},
};
use std::sync::PoisonError;
#[cfg(not(loom))]
use std::sync::{
    Condvar, Mutex, MutexGuard,
    atomic::{AtomicBool, AtomicU8, Ordering, fence},
};

const IDLE: u8 = 0;
const RUNNING: u8 = 1;

/// The meeting point of all workers.
pub struct Quiesce {
    requested: AtomicBool,
    workers: Box<[WorkerState]>,
    /// Held by the quiescer for as long as the others stand still.
    turn: Mutex<()>,
    /// Guards nothing but the waiting itself.
    gate: Mutex<()>,
    changed: Condvar,
}

/// One worker's state, on a cache line of its own.
#[repr(align(64))]
struct WorkerState(AtomicU8);

/// While this lives, no other worker executes anything.
pub struct Stillness<'a> {
    quiesce: &'a Quiesce,
    worker: usize,
    turn: Option<MutexGuard<'a, ()>>,
}

impl Quiesce {
    /// For `workers` workers, all of them idle.
    pub fn new(workers: usize) -> Quiesce {
        Quiesce {
            requested: AtomicBool::new(false),
            workers: (0..workers).map(|_| WorkerState(AtomicU8::new(IDLE))).collect(),
            turn: Mutex::new(()),
            gate: Mutex::new(()),
            changed: Condvar::new(),
        }
    }

    /// The worker is about to execute commands. Waits while somebody needs stillness.
    #[inline]
    pub fn enter(&self, worker: usize) {
        if self.is_stopped_after(worker, RUNNING) {
            self.stand_still(worker);
        }
    }

    /// The worker executes nothing until it enters again.
    #[inline]
    pub fn leave(&self, worker: usize) {
        if self.is_stopped_after(worker, IDLE) {
            self.announce();
        }
    }

    /// Sets the worker's state; whether somebody needs stillness then (invariant 2).
    #[inline]
    fn is_stopped_after(&self, worker: usize, state: u8) -> bool {
        self.workers[worker].0.store(state, Ordering::Release);
        fence(Ordering::SeqCst);
        self.requested.load(Ordering::Acquire)
    }

    /// To be called between two commands: one load if nobody needs stillness.
    #[inline]
    pub fn checkpoint(&self, worker: usize) {
        if self.requested.load(Ordering::Relaxed) {
            self.stand_still(worker);
        }
    }

    #[cold]
    fn stand_still(&self, worker: usize) {
        loop {
            self.workers[worker].0.store(IDLE, Ordering::Release);
            let mut gate = lock(&self.gate);
            self.changed.notify_all();
            while self.requested.load(Ordering::Acquire) {
                gate = self.changed.wait(gate).unwrap_or_else(PoisonError::into_inner);
            }
            drop(gate);
            if !self.is_stopped_after(worker, RUNNING) {
                return;
            }
        }
    }

    fn announce(&self) {
        let _gate = lock(&self.gate);
        self.changed.notify_all();
    }

    /// Stops all other workers; `worker` is the caller, who is running. Takes as long as the
    /// longest command that is being executed.
    pub fn stop_others(&self, worker: usize) -> Stillness<'_> {
        self.leave(worker);
        let turn = lock(&self.turn);
        self.requested.store(true, Ordering::Release);
        fence(Ordering::SeqCst);
        let mut gate = lock(&self.gate);
        let still = |state: &WorkerState| state.0.load(Ordering::Acquire) == IDLE;
        while !self.workers.iter().all(still) {
            gate = self.changed.wait(gate).unwrap_or_else(PoisonError::into_inner);
        }
        drop(gate);
        Stillness { quiesce: self, worker, turn: Some(turn) }
    }
}

impl Drop for Stillness<'_> {
    fn drop(&mut self) {
        let quiesce = self.quiesce;
        quiesce.requested.store(false, Ordering::Release);
        quiesce.announce();
        // The next quiescer may go on; this worker is idle and enters like any other.
        self.turn = None;
        quiesce.enter(self.worker);
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use std::sync::Arc;
    use std::sync::atomic::AtomicU64;

    #[test]
    fn nobody_executes_while_somebody_holds_stillness() {
        const WORKERS: usize = 4;
        const ROUNDS: u64 = 400;
        let quiesce = Arc::new(Quiesce::new(WORKERS));
        let executing = Arc::new(AtomicU64::new(0));
        let threads: Vec<_> = (0..WORKERS)
            .map(|worker| {
                let (quiesce, executing) = (Arc::clone(&quiesce), Arc::clone(&executing));
                std::thread::spawn(move || {
                    for round in 0..ROUNDS {
                        quiesce.enter(worker);
                        for _ in 0..20 {
                            executing.fetch_add(1, Ordering::SeqCst);
                            executing.fetch_sub(1, Ordering::SeqCst);
                            quiesce.checkpoint(worker);
                        }
                        if round % 10 == worker as u64 {
                            let still = quiesce.stop_others(worker);
                            for _ in 0..100 {
                                assert_eq!(executing.load(Ordering::SeqCst), 0);
                            }
                            drop(still);
                        }
                        quiesce.leave(worker);
                    }
                })
            })
            .collect();
        for thread in threads {
            thread.join().expect("no worker saw another one execute");
        }
    }
}

#[cfg(all(test, loom))]
mod loom_tests {
    use super::*;
    use loom::sync::Arc;
    use loom::sync::atomic::AtomicUsize;

    #[test]
    fn two_quiescers_and_their_commands_exclude_each_other() {
        let mut model = loom::model::Builder::new();
        model.preemption_bound = Some(3);
        model.check(|| {
            let quiesce = Arc::new(Quiesce::new(2));
            let executing = Arc::new(AtomicUsize::new(0));
            let run = |worker: usize, quiesce: &Quiesce, executing: &AtomicUsize| {
                quiesce.enter(worker);
                executing.fetch_add(1, Ordering::SeqCst);
                executing.fetch_sub(1, Ordering::SeqCst);
                let still = quiesce.stop_others(worker);
                assert_eq!(executing.load(Ordering::SeqCst), 0);
                drop(still);
                quiesce.leave(worker);
            };
            let other = {
                let (quiesce, executing) = (Arc::clone(&quiesce), Arc::clone(&executing));
                loom::thread::spawn(move || run(1, &quiesce, &executing))
            };
            run(0, &quiesce, &executing);
            other.join().expect("the other worker held its assertions");
        });
    }
}
