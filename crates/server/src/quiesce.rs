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
//!     cannot wait for each other. The one exception stops others amid a unit: it does not count as
//!     idle, so nobody else can have stopped all, and who tries gives way to it.
//!  4. While something refuses stillness (a script that takes long), nobody gets it, and who waits for
//!     it gives up. Only such a script itself may still stop the others amid its unit, and an operator
//!     who changes what no script sees (`stop_others_despite_refusal`).

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
    gate: Mutex<Gate>,
    changed: Condvar,
}

/// Who may stop others.
#[derive(Default)]
struct Gate {
    /// Somebody has, or tries to.
    taken: bool,
    /// Somebody wants to amid a unit.
    amid: bool,
    /// How many refuse stillness.
    refusing: usize,
}

/// One worker's state, on a cache line of its own.
#[repr(align(64))]
struct WorkerState(AtomicU8);

/// While this lives, no other worker executes anything.
pub struct Stillness<'a> {
    quiesce: &'a Quiesce,
    worker: usize,
    amid: bool,
}

impl Quiesce {
    /// For `workers` workers, all of them idle.
    pub fn new(workers: usize) -> Quiesce {
        Quiesce {
            requested: AtomicBool::new(false),
            workers: (0..workers).map(|_| WorkerState(AtomicU8::new(IDLE))).collect(),
            gate: Mutex::new(Gate::default()),
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
                gate = self.wait(gate);
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

    fn wait<'g>(&self, gate: MutexGuard<'g, Gate>) -> MutexGuard<'g, Gate> {
        self.changed.wait(gate).unwrap_or_else(PoisonError::into_inner)
    }

    /// Stops all other workers; `worker` is the caller, who is running and holds nothing. Takes as
    /// long as the longest command that is being executed. `None` while stillness is refused.
    pub fn stop_others(&self, worker: usize) -> Option<Stillness<'_>> {
        self.leave(worker);
        let still = self.stop_all(worker, |gate| gate.refusing > 0);
        if still.is_none() {
            self.enter(worker);
        }
        still
    }

    /// The same although stillness is refused, for what nobody who refuses it minds.
    pub fn stop_others_despite_refusal(&self, worker: usize) -> Stillness<'_> {
        self.leave(worker);
        loop {
            if let Some(still) = self.stop_all(worker, |_| false) {
                return still;
            }
        }
    }

    /// Stops all workers, for `worker`, which has left; `None` if it is refused.
    fn stop_all(&self, worker: usize, is_refused: impl Fn(&Gate) -> bool) -> Option<Stillness<'_>> {
        let mut gate = lock(&self.gate);
        loop {
            if is_refused(&gate) {
                return None;
            }
            if gate.taken || gate.amid {
                gate = self.wait(gate);
                continue;
            }
            self.request(&mut gate);
            while !self.all_idle_but(None) && !is_refused(&gate) && !gate.amid {
                gate = self.wait(gate);
            }
            if !is_refused(&gate) && !gate.amid {
                return Some(Stillness { quiesce: self, worker, amid: false });
            }
            self.give_back(&mut gate);
        }
    }

    /// The same for a worker in the middle of a unit, whose slots it keeps. `None` if another does
    /// so at the same time.
    pub fn stop_others_amid(&self, worker: usize) -> Option<Stillness<'_>> {
        let mut gate = lock(&self.gate);
        if gate.amid {
            return None;
        }
        gate.amid = true;
        self.changed.notify_all();
        while gate.taken {
            gate = self.wait(gate);
        }
        self.request(&mut gate);
        while !self.all_idle_but(Some(worker)) {
            gate = self.wait(gate);
        }
        Some(Stillness { quiesce: self, worker, amid: true })
    }

    /// From now on nobody gets stillness.
    pub fn refuse(&self) {
        lock(&self.gate).refusing += 1;
        self.announce();
    }

    /// Ends what [`Quiesce::refuse`] began.
    pub fn admit(&self) {
        lock(&self.gate).refusing -= 1;
        self.announce();
    }

    fn request(&self, gate: &mut Gate) {
        gate.taken = true;
        self.requested.store(true, Ordering::Release);
        fence(Ordering::SeqCst);
    }

    fn give_back(&self, gate: &mut Gate) {
        gate.taken = false;
        self.requested.store(false, Ordering::Release);
        self.changed.notify_all();
    }

    fn all_idle_but(&self, running: Option<usize>) -> bool {
        let mut states = self.workers.iter().enumerate();
        states.all(|(id, state)| Some(id) == running || state.0.load(Ordering::Acquire) == IDLE)
    }
}

impl Drop for Stillness<'_> {
    fn drop(&mut self) {
        let quiesce = self.quiesce;
        let mut gate = lock(&quiesce.gate);
        gate.amid &= !self.amid;
        quiesce.give_back(&mut gate);
        drop(gate);
        if !self.amid {
            // This worker is idle and enters like any other.
            quiesce.enter(self.worker);
        }
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
                            let still = quiesce.stop_others(worker).expect("nobody refuses");
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
                let still = quiesce.stop_others(worker).expect("nobody refuses");
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
