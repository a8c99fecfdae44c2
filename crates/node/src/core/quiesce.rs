//! Quiescence: stops every worker between two commands.
//!
//! Commands that must see or change everything atomically (FLUSHALL, SWAPDB, CONFIG SET …) run while all other workers
//! are stopped. A worker is *running* or *idle*. It is idle only while it waits for events or waits in this module. A
//! worker that quiesces the others still takes slot locks, which are free at that time.
//!
//! Invariants
//! 1. A worker executes commands only while its state is RUNNING.
//! 2. A worker that changes its state reads `requested` afterwards. A worker that requests quiescence sets `requested`
//!    before it reads states. Both use a sequentially consistent fence in between, so at least one of them sees what
//!    the other wrote.
//! 3. A worker is IDLE while it waits for quiescence to end, and while it waits for permission to quiesce others
//!    between two commands. Therefore two such workers cannot wait for each other.
//! 4. A worker that requests quiescence in the middle of a unit (a transaction or script) is *mid-unit* while it waits:
//!    it executes nothing and keeps its slots. To access *everything* ([`Quiesce::quiesce_others_mid_unit`]), it waits
//!    until all others are IDLE. The caller ensures that there is only one such worker at a time. The caller also
//!    ensures that no other mid-unit or RUNNING worker has to wait for this worker before it becomes IDLE. To announce
//!    its work ([`Quiesce::quiesce_others_briefly`]), a worker touches nothing that others hold. So the others may be
//!    mid-unit as well, and any number of workers may wait this way at the same time.
//! 5. A request between two commands yields to all requests in the middle of a unit.
//! 6. While a slow script refuses quiescence, no worker gets quiescence between two commands, and a worker that waits
//!    for it gives up. The exception is a change by an operator that scripts cannot see
//!    ([`Quiesce::quiesce_others_despite_refusal`]).
//! 7. Permanent quiescence ([`Quiesced::keep_for_good`]) has no holder. Each worker that reaches a checkpoint waits
//!    there until the process ends.

use brisk_structures::poison::EvenPoisoned;
use brisk_structures::reclaim;
#[cfg(loom)]
use loom::sync::{
    Condvar, Mutex, MutexGuard,
    atomic::{AtomicBool, AtomicU8, Ordering, fence},
};
#[cfg(not(loom))]
use std::sync::{
    Condvar, Mutex, MutexGuard,
    atomic::{AtomicBool, AtomicU8, Ordering, fence},
};
use std::time::{Duration, Instant};

const IDLE: u8 = 0;
const RUNNING: u8 = 1;
/// The state *mid-unit*, see invariant 4.
const MID_UNIT: u8 = 2;

/// The state of quiescence, which all workers share.
pub struct Quiesce {
    requested: AtomicBool,
    workers: Box<[WorkerState]>,
    gate: Mutex<Gate>,
    changed: Condvar,
}

/// The state of the permission to stop other workers.
#[derive(Default)]
struct Gate {
    /// True while a worker quiesces the others, or tries to, between two commands.
    taken: bool,
    /// The worker that has quiesced the others.
    holder: Option<usize>,
    /// Number of workers that quiesce the others in the middle of a unit, or wait to do so.
    mid_unit: usize,
    /// How many of the workers that `mid_unit` counts need only brief quiescence.
    brief: usize,
    /// True if one of the workers that `mid_unit` counts needs access to everything.
    wide: bool,
    /// Number of scripts that refuse quiescence.
    refusing: usize,
    /// True if quiescence is permanent (invariant 7).
    for_good: bool,
    /// Number of threads that wait for a change to these fields or to a worker's state. Waking costs a system call even
    /// if no thread waits.
    waiting: usize,
}

/// One worker's state, on its own cache line.
#[repr(align(64))]
struct WorkerState(AtomicU8);

/// As long as this value exists, no other worker executes anything.
pub struct Quiesced<'a> {
    quiesce: &'a Quiesce,
    worker: usize,
    kind: Kind,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Between,
    Wide,
    Brief,
}

impl Quiesce {
    /// Creates the state for `workers` workers, all idle.
    pub fn new(workers: usize) -> Quiesce {
        Quiesce {
            requested: AtomicBool::new(false),
            workers: (0..workers).map(|_| WorkerState(AtomicU8::new(IDLE))).collect(),
            gate: Mutex::new(Gate::default()),
            changed: Condvar::new(),
        }
    }

    /// Called when the worker is about to execute commands. Waits while another worker needs quiescence.
    #[inline]
    pub fn enter(&self, worker: usize) {
        if self.is_stopped_after(worker, RUNNING) {
            self.wait_while_quiesced(worker);
        }
    }

    /// Called when the worker will execute nothing until it enters again.
    #[inline]
    pub fn leave(&self, worker: usize) {
        if self.is_stopped_after(worker, IDLE) {
            self.announce();
        }
    }

    /// Sets the worker's state, then returns true if another worker needs quiescence (invariant 2).
    #[inline]
    fn is_stopped_after(&self, worker: usize, state: u8) -> bool {
        self.workers[worker].0.store(state, Ordering::Release);
        fence(Ordering::SeqCst);
        self.requested.load(Ordering::Acquire)
    }

    /// Called between two commands. Costs one load if no worker needs quiescence.
    #[inline]
    pub fn checkpoint(&self, worker: usize) {
        if self.requested.load(Ordering::Relaxed) {
            self.wait_while_quiesced(worker);
        }
    }

    #[cold]
    fn wait_while_quiesced(&self, worker: usize) {
        // The holder of quiescence reaches a checkpoint if it waits for a slot that a thread other than a worker holds.
        // It must not wait for itself.
        if lock(&self.gate).holder == Some(worker) {
            return;
        }
        loop {
            self.workers[worker].0.store(IDLE, Ordering::Release);
            let mut gate = lock(&self.gate);
            self.wake(&gate);
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
        self.wake(&lock(&self.gate));
    }

    /// Wakes all waiting threads so that they check again.
    fn wake(&self, gate: &Gate) {
        if gate.waiting > 0 {
            self.changed.notify_all();
        }
    }

    fn wait<'g>(&self, mut gate: MutexGuard<'g, Gate>) -> MutexGuard<'g, Gate> {
        gate.waiting += 1;
        // Wait offline, because the holder of quiescence may replace many arrays. This is safe because no wait happens
        // during a prefetch pass.
        let woken = reclaim::offline_while(|| self.changed.wait(gate));
        let mut gate = woken.even_poisoned();
        gate.waiting -= 1;
        gate
    }

    /// Like `wait`, but only until `deadline` if there is one.
    fn wait_until<'g>(
        &self,
        mut gate: MutexGuard<'g, Gate>,
        deadline: Option<Instant>,
    ) -> MutexGuard<'g, Gate> {
        let Some(deadline) = deadline else { return self.wait(gate) };
        let left = deadline.saturating_duration_since(Instant::now());
        gate.waiting += 1;
        let woken = reclaim::offline_while(|| self.changed.wait_timeout(gate, left));
        let (mut gate, _) = woken.even_poisoned();
        gate.waiting -= 1;
        gate
    }

    /// Stops all other workers. `worker` is the caller, which is running and holds no slots. Takes as long as the
    /// longest command in progress. Returns `None` if quiescence is refused.
    pub fn quiesce_others(&self, worker: usize) -> Option<Quiesced<'_>> {
        self.leave(worker);
        let quiesced = self.quiesce_all(worker, |gate| gate.refusing > 0);
        if quiesced.is_none() {
            self.enter(worker);
        }
        quiesced
    }

    /// Like [`Quiesce::quiesce_others`], but also returns `None` if the others have not stopped within `most`. There is
    /// a limit because workers that have already stopped execute nothing.
    pub fn quiesce_others_within(&self, worker: usize, most: Duration) -> Option<Quiesced<'_>> {
        self.leave(worker);
        let deadline = Instant::now() + most;
        let is_over = || Instant::now() >= deadline;
        let quiesced =
            self.quiesce_all_until(worker, |gate| gate.refusing > 0 || is_over(), Some(deadline));
        if quiesced.is_none() {
            self.enter(worker);
        }
        quiesced
    }

    /// Like [`Quiesce::quiesce_others`], but works even if quiescence is refused. Only for work that does not affect
    /// the scripts that refuse it.
    pub fn quiesce_others_despite_refusal(&self, worker: usize) -> Quiesced<'_> {
        self.leave(worker);
        loop {
            if let Some(quiesced) = self.quiesce_all(worker, |_| false) {
                return quiesced;
            }
        }
    }

    /// Stops all workers on behalf of `worker`, which has already left. Returns `None` if quiescence is refused.
    fn quiesce_all(
        &self,
        worker: usize,
        is_refused: impl Fn(&Gate) -> bool,
    ) -> Option<Quiesced<'_>> {
        self.quiesce_all_until(worker, is_refused, None)
    }

    /// Like `quiesce_all`, but checks again at the deadline whether quiescence is refused.
    fn quiesce_all_until(
        &self,
        worker: usize,
        is_refused: impl Fn(&Gate) -> bool,
        deadline: Option<Instant>,
    ) -> Option<Quiesced<'_>> {
        let mut gate = lock(&self.gate);
        loop {
            if is_refused(&gate) {
                return None;
            }
            if gate.taken || gate.mid_unit > 0 {
                gate = self.wait_until(gate, deadline);
                continue;
            }
            gate.taken = true;
            self.request();
            while !self.all_idle() && !is_refused(&gate) && gate.mid_unit == 0 {
                gate = self.wait_until(gate, deadline);
            }
            if !is_refused(&gate) && gate.mid_unit == 0 {
                gate.holder = Some(worker);
                return Some(Quiesced { quiesce: self, worker, kind: Kind::Between });
            }
            self.give_back(&mut gate);
        }
    }

    /// Stops all other workers for a worker in the middle of a unit, which keeps its slots. Afterwards it may touch
    /// everything. Only one worker may do this at a time (invariant 4).
    pub fn quiesce_others_mid_unit(&self, worker: usize) -> Quiesced<'_> {
        self.quiesce_mid_unit(worker, Kind::Wide)
    }

    /// Stops all others briefly, possibly in the middle of their own units. The caller is in the middle of a unit.
    /// Until it releases the others, it touches only slots that it holds.
    pub fn quiesce_others_briefly(&self, worker: usize) -> Quiesced<'_> {
        self.quiesce_mid_unit(worker, Kind::Brief)
    }

    fn quiesce_mid_unit(&self, worker: usize, kind: Kind) -> Quiesced<'_> {
        let state = &self.workers[worker].0;
        let mut gate = lock(&self.gate);
        gate.mid_unit += 1;
        if kind == Kind::Wide {
            assert!(!gate.wide, "two units at once want everything");
            gate.wide = true;
        } else {
            gate.brief += 1;
        }
        state.store(MID_UNIT, Ordering::Release);
        self.request();
        self.wake(&gate);
        loop {
            let stand = |id: usize, state: u8| {
                id == worker || state == IDLE || (kind == Kind::Brief && state == MID_UNIT)
            };
            if !gate.taken && self.all(stand) {
                (gate.taken, gate.holder) = (true, Some(worker));
                state.store(RUNNING, Ordering::Release);
                return Quiesced { quiesce: self, worker, kind };
            }
            gate = self.wait(gate);
        }
    }

    /// The kind of quiescence that a worker in the middle of a unit is waiting for, if any. Costs one load if no worker
    /// waits.
    #[inline]
    pub fn is_requested_mid_unit(&self) -> Option<QuiesceRequest> {
        if !self.requested.load(Ordering::Relaxed) {
            return None;
        }
        let gate = lock(&self.gate);
        if gate.brief > 0 {
            Some(QuiesceRequest::Briefly)
        } else {
            gate.wide.then_some(QuiesceRequest::Wholly)
        }
    }

    /// Waits in the middle of a unit while another worker needs brief quiescence.
    pub fn pause_within_unit(&self, worker: usize) {
        let state = &self.workers[worker].0;
        let mut gate = lock(&self.gate);
        state.store(MID_UNIT, Ordering::Release);
        self.wake(&gate);
        while gate.brief > 0 {
            gate = self.wait(gate);
        }
        state.store(RUNNING, Ordering::Release);
    }

    /// Refuses quiescence: from now on, no worker gets it between two commands.
    pub fn refuse(&self) {
        lock(&self.gate).refusing += 1;
        self.announce();
    }

    /// Ends the effect of a call to [`Quiesce::refuse`].
    pub fn admit(&self) {
        lock(&self.gate).refusing -= 1;
        self.announce();
    }

    /// Reports whether quiescence is permanent.
    pub fn is_for_good(&self) -> bool {
        lock(&self.gate).for_good
    }

    fn request(&self) {
        self.requested.store(true, Ordering::Release);
        fence(Ordering::SeqCst);
    }

    /// Passes quiescence to the next worker, or lets all workers continue.
    fn give_back(&self, gate: &mut Gate) {
        (gate.taken, gate.holder) = (false, None);
        self.requested.store(gate.mid_unit > 0, Ordering::Release);
        fence(Ordering::SeqCst);
        self.wake(gate);
    }

    fn all(&self, stands: impl Fn(usize, u8) -> bool) -> bool {
        let mut states = self.workers.iter().enumerate();
        states.all(|(id, state)| stands(id, state.0.load(Ordering::Acquire)))
    }

    fn all_idle(&self) -> bool {
        self.all(|_, state| state == IDLE)
    }
}

/// The state that a worker in the middle of a unit waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum QuiesceRequest {
    /// All others are between two commands.
    Wholly,
    /// All others execute nothing for a moment.
    Briefly,
}

impl Quiesced<'_> {
    /// Makes quiescence permanent: no worker executes anything any more. The caller itself stops at its next
    /// checkpoint.
    pub fn keep_for_good(self) {
        let mut gate = lock(&self.quiesce.gate);
        (gate.for_good, gate.holder) = (true, None);
        drop(gate);
        // The destructor would end quiescence, so it must not run.
        std::mem::forget(self);
    }
}

impl Drop for Quiesced<'_> {
    fn drop(&mut self) {
        let quiesce = self.quiesce;
        let mut gate = lock(&quiesce.gate);
        if self.kind != Kind::Between {
            gate.mid_unit -= 1;
        }
        match self.kind {
            Kind::Between => {}
            Kind::Wide => gate.wide = false,
            Kind::Brief => gate.brief -= 1,
        }
        quiesce.give_back(&mut gate);
        drop(gate);
        if self.kind == Kind::Between {
            // This worker is idle and enters like any other worker.
            quiesce.enter(self.worker);
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().even_poisoned()
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use std::sync::Arc;
    use std::sync::atomic::AtomicU64;

    #[test]
    fn quiescing_with_a_timeout_gives_up_if_a_worker_does_not_stop() {
        let quiesce = Quiesce::new(2);
        quiesce.enter(0);
        quiesce.enter(1);
        assert!(quiesce.quiesce_others_within(0, Duration::from_millis(1)).is_none());
        // The failed attempt blocks no worker.
        quiesce.checkpoint(0);
        quiesce.checkpoint(1);
        quiesce.leave(1);
        let quiesced = quiesce.quiesce_others_within(0, Duration::from_secs(60));
        drop(quiesced.expect("the other executes nothing"));
        quiesce.checkpoint(0);
        quiesce.leave(0);
    }

    #[test]
    fn a_worker_that_holds_quiescence_does_not_wait_for_it() {
        let (done, is_done) = std::sync::mpsc::channel();
        std::thread::spawn(move || {
            let quiesce = Quiesce::new(2);
            quiesce.enter(0);
            let quiesced = quiesce.quiesce_others(0).expect("nothing refuses");
            quiesce.checkpoint(0);
            drop(quiesced);
            let quiesced = quiesce.quiesce_others_mid_unit(0);
            quiesce.checkpoint(0);
            drop(quiesced);
            quiesce.checkpoint(0);
            done.send(()).expect("the test receives it");
        });
        is_done.recv_timeout(std::time::Duration::from_secs(60)).expect("the worker continues");
    }

    #[test]
    fn no_worker_executes_after_quiescence_is_kept_for_good() {
        let quiesce = Arc::new(Quiesce::new(2));
        quiesce.enter(0);
        assert!(!quiesce.is_for_good());
        quiesce.quiesce_others(0).expect("nothing refuses").keep_for_good();
        assert!(quiesce.is_for_good());
        let (executes, has_executed) = std::sync::mpsc::channel();
        for worker in 0..2 {
            let (quiesce, executes) = (Arc::clone(&quiesce), executes.clone());
            std::thread::spawn(move || {
                executes.send(false).expect("the test receives it");
                quiesce.enter(worker);
                executes.send(true).expect("the test receives it");
            });
        }
        assert_eq!((has_executed.recv(), has_executed.recv()), (Ok(false), Ok(false)));
        while lock(&quiesce.gate).waiting < 2 {
            std::thread::yield_now();
        }
        assert!(has_executed.try_recv().is_err());
    }

    #[test]
    fn no_worker_executes_while_another_holds_quiescence() {
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
                            let quiesced = quiesce.quiesce_others(worker).expect("nothing refuses");
                            for _ in 0..100 {
                                assert_eq!(executing.load(Ordering::SeqCst), 0);
                            }
                            drop(quiesced);
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
                let quiesced = quiesce.quiesce_others(worker).expect("nothing refuses");
                assert_eq!(executing.load(Ordering::SeqCst), 0);
                drop(quiesced);
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

    /// A slot in the models: its holder has exclusive access.
    struct Slot {
        taken: AtomicBool,
        inside: AtomicUsize,
    }

    impl Slot {
        fn new() -> Slot {
            Slot { taken: AtomicBool::new(false), inside: AtomicUsize::new(0) }
        }

        fn try_lock(&self) -> bool {
            !self.taken.swap(true, Ordering::AcqRel)
        }

        fn unlock(&self) {
            self.taken.store(false, Ordering::Release);
        }

        fn touch(&self) {
            assert_eq!(self.inside.fetch_add(1, Ordering::SeqCst), 0);
            assert_eq!(self.inside.fetch_sub(1, Ordering::SeqCst), 1);
        }
    }

    fn check(run: impl Fn() + Sync + Send + 'static) {
        let mut model = loom::model::Builder::new();
        model.preemption_bound = Some(3);
        model.check(run);
    }

    #[test]
    fn access_beyond_own_slots_excludes_holders_and_quiescence() {
        check(|| {
            let all = Arc::new((Quiesce::new(2), Slot::new(), Slot::new()));
            let other = Arc::clone(&all);
            let other = loom::thread::spawn(move || {
                let (quiesce, _, second) = &*other;
                quiesce.enter(1);
                if second.try_lock() {
                    second.touch();
                    second.unlock();
                }
                quiesce.checkpoint(1);
                if let Some(quiesced) = quiesce.quiesce_others(1) {
                    second.touch();
                    drop(quiesced);
                }
                quiesce.leave(1);
            });
            let (quiesce, first, second) = &*all;
            quiesce.enter(0);
            if first.try_lock() {
                first.touch();
                let quiesced = quiesce.quiesce_others_mid_unit(0);
                first.touch();
                second.touch();
                first.unlock();
                drop(quiesced);
            }
            quiesce.leave(0);
            other.join().expect("the other worker held its assertions");
        });
    }

    #[test]
    fn two_scripts_that_become_slow_together_do_not_wait_for_each_other() {
        check(|| {
            let all = Arc::new((Quiesce::new(2), Slot::new(), AtomicUsize::new(0)));
            let run = |worker: usize, all: &(Quiesce, Slot, AtomicUsize)| {
                let (quiesce, shown, executing) = all;
                quiesce.enter(worker);
                executing.fetch_add(1, Ordering::SeqCst);
                executing.fetch_sub(1, Ordering::SeqCst);
                let quiesced = quiesce.quiesce_others_briefly(worker);
                shown.touch();
                assert_eq!(executing.load(Ordering::SeqCst), 0);
                drop(quiesced);
                quiesce.leave(worker);
            };
            let other = Arc::clone(&all);
            let other = loom::thread::spawn(move || run(1, &other));
            run(0, &all);
            other.join().expect("the other worker held its assertions");
        });
    }

    #[test]
    fn a_script_that_becomes_slow_ends_the_wait_of_one_that_needs_other_slots() {
        check(|| {
            let all = Arc::new((Quiesce::new(2), Slot::new()));
            let other = Arc::clone(&all);
            let other = loom::thread::spawn(move || {
                let (quiesce, slot) = &*other;
                quiesce.enter(1);
                // The unit would not end otherwise.
                if quiesce.is_requested_mid_unit() == Some(QuiesceRequest::Briefly) {
                    quiesce.pause_within_unit(1);
                }
                slot.touch();
                drop(quiesce.quiesce_others_briefly(1));
                quiesce.leave(1);
            });
            let (quiesce, slot) = &*all;
            quiesce.enter(0);
            let quiesced = quiesce.quiesce_others_mid_unit(0);
            slot.touch();
            drop(quiesced);
            quiesce.leave(0);
            other.join().expect("the other worker held its assertions");
        });
    }
}
