//! Threads that run one at a time. The simulation resumes a thread and waits until it pauses.
//!
//! ```text
//!  simulation ── resume ──►                ── resume ──►
//!  thread                   runs ── pause ─┘             runs ── …
//! ```

use brisk_structures::poison::EvenPoisoned;
use std::any::Any;
use std::cell::RefCell;
use std::os::unix::net::UnixStream;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex};

/// The condition that a thread waits for.
pub(super) struct Wait {
    /// The time limit, in Unix ms.
    pub(super) until_ms: Option<u64>,
    /// The flag to wait for. `None` means any event.
    pub(super) signal: Option<Arc<AtomicBool>>,
}

impl Wait {
    fn is_over(&self, now_ms: u64) -> bool {
        let is_set = |signal: &Arc<AtomicBool>| signal.load(Ordering::SeqCst);
        self.until_ms.is_some_and(|until| now_ms >= until)
            || self.signal.as_ref().is_none_or(is_set)
    }
}

enum Turn {
    Runs,
    Waits(Wait),
    Over(Option<Box<dyn Any + Send>>),
}

/// One thread.
pub(super) struct SimulatedThread {
    turn: Mutex<Turn>,
    changed: Condvar,
    /// If set, the thread ends at its next pause.
    is_killed: AtomicBool,
}

/// The panic payload that ends a killed thread.
struct Killed;

/// The state that the threads of one server share.
pub(super) struct Group {
    threads: Mutex<Vec<Arc<SimulatedThread>>>,
    /// Connections that the server's threads have opened since the simulation last took them.
    pub(super) dials: Mutex<Vec<Dial>>,
    /// The state of the network path to each server.
    pub(super) paths: Mutex<Vec<PathState>>,
}

/// The result of opening a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum PathState {
    Open,
    Refused,
    /// No data comes back.
    Silent,
}

/// A connection that was opened, with the simulation's end of it.
pub(super) struct Dial {
    pub(super) to: usize,
    pub(super) end: UnixStream,
    /// The simulation must set this when there is something to read.
    pub(super) signal: Arc<AtomicBool>,
}

thread_local! {
    static CURRENT: RefCell<Option<Arc<SimulatedThread>>> = const { RefCell::new(None) };
}

/// Passes control to the simulation until the condition is met.
pub(super) fn pause(wait: Wait) {
    let thread = CURRENT.with_borrow(Clone::clone).expect("only threads wait");
    *thread.turn.lock().even_poisoned() = Turn::Waits(wait);
    thread.changed.notify_all();
    let mut turn = thread.turn.lock().even_poisoned();
    while !matches!(*turn, Turn::Runs) {
        turn = thread.changed.wait(turn).even_poisoned();
    }
    drop(turn);
    if thread.is_killed.load(Ordering::SeqCst) {
        resume_unwind(Box::new(Killed));
    }
}

impl Group {
    pub(super) fn new(nodes: usize) -> Arc<Group> {
        Arc::new(Group {
            threads: Mutex::default(),
            dials: Mutex::default(),
            paths: Mutex::new(vec![PathState::Open; nodes]),
        })
    }

    /// Creates a thread, which begins when it is first resumed.
    pub(super) fn spawn(&self, run: impl FnOnce() + Send + 'static) -> Arc<SimulatedThread> {
        let turn = Mutex::new(Turn::Waits(Wait { until_ms: None, signal: None }));
        let is_killed = AtomicBool::new(false);
        let thread = Arc::new(SimulatedThread { turn, changed: Condvar::new(), is_killed });
        let own = Arc::clone(&thread);
        let body = move || {
            CURRENT.set(Some(Arc::clone(&own)));
            let ran = catch_unwind(AssertUnwindSafe(|| {
                own.begin();
                run();
            }));
            let panic = ran.err().filter(|payload| !payload.is::<Killed>());
            CURRENT.take();
            *own.turn.lock().even_poisoned() = Turn::Over(panic);
            own.changed.notify_all();
        };
        std::thread::Builder::new().stack_size(4 << 20).spawn(body).expect("a thread");
        self.threads.lock().even_poisoned().push(Arc::clone(&thread));
        thread
    }

    /// Resumes each thread that has something to do, except `host`. Returns true if there was one.
    pub(super) fn run_threads(&self, host: &Arc<SimulatedThread>, now_ms: u64) -> bool {
        let mut threads = self.threads.lock().even_poisoned().clone();
        threads.retain(|thread| !Arc::ptr_eq(thread, host) && thread.is_ready(now_ms));
        threads.iter().for_each(|thread| thread.resume());
        self.threads.lock().even_poisoned().retain(|thread| !thread.is_over());
        !threads.is_empty()
    }

    /// Ends all threads at their current pause.
    pub(super) fn kill(&self) {
        let threads = std::mem::take(&mut *self.threads.lock().even_poisoned());
        for thread in threads {
            thread.is_killed.store(true, Ordering::SeqCst);
            thread.resume();
        }
    }
}

impl SimulatedThread {
    fn begin(&self) {
        let mut turn = self.turn.lock().even_poisoned();
        while !matches!(*turn, Turn::Runs) {
            turn = self.changed.wait(turn).even_poisoned();
        }
        drop(turn);
        if self.is_killed.load(Ordering::SeqCst) {
            resume_unwind(Box::new(Killed));
        }
    }

    fn is_ready(&self, now_ms: u64) -> bool {
        matches!(&*self.turn.lock().even_poisoned(), Turn::Waits(wait) if wait.is_over(now_ms))
    }

    pub(super) fn is_over(&self) -> bool {
        matches!(&*self.turn.lock().even_poisoned(), Turn::Over(_))
    }

    /// Runs the thread until it waits or ends. If the thread panics, the panic is propagated to the caller.
    pub(super) fn resume(&self) {
        let mut turn = self.turn.lock().even_poisoned();
        if matches!(*turn, Turn::Waits(_)) {
            *turn = Turn::Runs;
            // Release the lock, which the thread needs when it wakes up.
            drop(turn);
            self.changed.notify_all();
            turn = self.turn.lock().even_poisoned();
        }
        while matches!(*turn, Turn::Runs) {
            turn = self.changed.wait(turn).even_poisoned();
        }
        if let Turn::Over(panic) = &mut *turn
            && let Some(panic) = panic.take()
        {
            drop(turn);
            resume_unwind(panic);
        }
    }
}
