//! The running scripts, and the slow scripts among them.
//!
//! A script that has run for `busy-reply-threshold` is *slow*. Before that, it blocks other commands with the slots
//! that it holds or with quiescence. If this lasted for a long time, whole workers would be blocked. So when a script
//! becomes slow, it is added to a list in this module, a condition is set, and its locks are released. From then on,
//! the command gate blocks other commands. A command on one of the script's keys gets a BUSY error, and so does a
//! command that does not name its keys. Commands on other keys are served. The few commands that are always allowed
//! while a slow script runs are served, too.

use brisk_engine::Dialect;
use brisk_engine::keyspace::DbSlot;
use brisk_structures::poison::EvenPoisoned;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard};
use std::time::Instant;

const RUNNING: u8 = 1;
const EVAL: u8 = 1 << 1;
const WROTE: u8 = 1 << 2;
const KILLED: u8 = 1 << 3;

/// The public state of the script that a worker runs.
#[derive(Debug, Default)]
#[repr(align(64))]
pub struct RunState(AtomicU8);

impl RunState {
    /// Called when a script begins.
    #[inline]
    pub fn begin(&self, is_eval: bool) {
        self.0.store(RUNNING | if is_eval { EVAL } else { 0 }, Ordering::Relaxed);
    }

    /// Called when the script has ended.
    #[inline]
    pub fn end(&self) {
        self.0.store(0, Ordering::Relaxed);
    }

    /// Called when the script is about to write. Returns false if a client has killed the script, which then must not
    /// write.
    #[inline]
    pub fn begin_writing(&self) -> bool {
        let before = self.0.fetch_or(WROTE, Ordering::SeqCst);
        before & KILLED == 0
    }

    /// Reports whether a client has killed the script.
    #[inline]
    pub fn is_killed(&self) -> bool {
        self.0.load(Ordering::Relaxed) & KILLED != 0
    }

    fn kill(&self, wants_eval: bool) -> Kill {
        let mut state = self.0.load(Ordering::SeqCst);
        loop {
            if state & RUNNING == 0 {
                return Kill::Nothing;
            }
            if state & WROTE != 0 {
                return Kill::Unkillable;
            }
            if (state & EVAL != 0) != wants_eval {
                return Kill::OtherKind;
            }
            let swap = (Ordering::SeqCst, Ordering::SeqCst);
            match self.0.compare_exchange(state, state | KILLED, swap.0, swap.1) {
                Ok(_) => return Kill::Killed,
                Err(now) => state = now,
            }
        }
    }
}

/// The result of SCRIPT KILL or FUNCTION KILL. Later variants take precedence.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kill {
    Nothing,
    OtherKind,
    Unkillable,
    Killed,
}

/// A slow script.
#[derive(Debug)]
pub struct SlowScript {
    pub worker: usize,
    pub is_eval: bool,
    pub shown: ScriptDescription,
    pub began: Instant,
    /// The slots that the script may touch, in ascending order. `None` means all slots.
    pub places: Option<Vec<DbSlot>>,
}

/// The description of a slow script.
#[derive(Debug, Default)]
pub struct ScriptDescription {
    /// The script's digest or the function's name.
    pub name: Vec<u8>,
    /// The arguments of the command.
    pub command: Vec<Vec<u8>>,
}

/// The scripts that the workers run.
#[derive(Debug)]
pub struct RunningScripts {
    workers: Box<[RunState]>,
    /// The number of the worker, plus one, whose script may use undeclared keys now or after its first effect; 0 if
    /// there is none. A thread that waits for this script must hold no lock, so that the script can end.
    undeclared_keys_allowed: AtomicUsize,
    slow: Mutex<Vec<SlowScript>>,
    /// Set by DEBUG SET-DISABLE-DENY-SCRIPTS. True if scripts may call any command.
    all_commands: AtomicBool,
    /// Memory of the workers' eval interpreters in bytes.
    eval_bytes: Box<[AtomicUsize]>,
    /// Memory of the workers' function interpreters in bytes.
    function_bytes: Box<[AtomicUsize]>,
    dialect: Dialect,
}

impl RunningScripts {
    pub fn new(workers: usize, dialect: Dialect) -> RunningScripts {
        RunningScripts {
            workers: (0..workers).map(|_| RunState::default()).collect(),
            undeclared_keys_allowed: AtomicUsize::new(0),
            slow: Mutex::default(),
            all_commands: AtomicBool::new(false),
            eval_bytes: (0..workers).map(|_| AtomicUsize::new(0)).collect(),
            function_bytes: (0..workers).map(|_| AtomicUsize::new(0)).collect(),
            dialect,
        }
    }

    fn lock(&self) -> MutexGuard<'_, Vec<SlowScript>> {
        self.slow.lock().even_poisoned()
    }

    /// The state of the script that a worker runs.
    #[inline]
    pub fn of(&self, worker: usize) -> &RunState {
        &self.workers[worker]
    }

    /// The counter in which a worker's eval interpreter (or function interpreter, without `is_eval`) publishes its
    /// memory in bytes.
    pub(super) fn memory_of(&self, worker: usize, is_eval: bool) -> &AtomicUsize {
        if is_eval { &self.eval_bytes[worker] } else { &self.function_bytes[worker] }
    }

    /// Sets whether scripts may call any command.
    pub fn allow_all_commands(&self, on: bool) {
        self.all_commands.store(on, Ordering::Relaxed);
    }

    /// Reports whether scripts may call any command.
    pub(super) fn allows_all_commands(&self) -> bool {
        self.all_commands.load(Ordering::Relaxed)
    }

    /// Allows the script of a worker to use undeclared keys. Returns false if another script is allowed to do so.
    pub fn allow_undeclared_keys(&self, worker: usize) -> bool {
        let order = (Ordering::AcqRel, Ordering::Relaxed);
        self.undeclared_keys_allowed.load(Ordering::Relaxed) == 0
            && self
                .undeclared_keys_allowed
                .compare_exchange(0, worker + 1, order.0, order.1)
                .is_ok()
    }

    /// Notes that the script that could use undeclared keys has ended.
    pub fn forbid_undeclared_keys(&self) {
        self.undeclared_keys_allowed.store(0, Ordering::Release);
    }

    /// Memory of all eval interpreters, and of all function interpreters, in bytes.
    pub fn interpreter_bytes(&self) -> (u64, u64) {
        let sum = |bytes: &[AtomicUsize]| {
            bytes.iter().map(|bytes| bytes.load(Ordering::Relaxed) as u64).sum()
        };
        (sum(&self.eval_bytes), sum(&self.function_bytes))
    }

    /// The error for requests while a script of another worker is slow.
    pub fn others_refuse(&self, worker: usize) -> Option<String> {
        let slow = self.lock();
        slow.iter().find(|script| script.worker != worker).map(|script| self.busy(script.is_eval))
    }

    /// Reports whether slow scripts of other workers block any of these slots. `None` means all slots.
    pub fn others_hold(
        &self,
        worker: usize,
        mut places: Option<impl Iterator<Item = DbSlot>>,
    ) -> bool {
        let slow = self.lock();
        let others = || slow.iter().filter(|script| script.worker != worker);
        let holds = |script: &SlowScript, place: &DbSlot| {
            script.places.as_ref().is_none_or(|held| held.binary_search(place).is_ok())
        };
        match &mut places {
            None => others().next().is_some(),
            Some(places) => places.any(|place| others().any(|script| holds(script, &place))),
        }
    }

    /// Calls `show` with the script that has been slow for the longest time.
    pub fn with_slowest<R>(&self, show: impl FnOnce(Option<&SlowScript>) -> R) -> R {
        show(self.lock().first())
    }

    /// Called when the next script of a transaction begins after an earlier one has become slow.
    pub fn show_next(&self, worker: usize, is_eval: bool, shown: ScriptDescription) {
        if let Some(script) = self.lock().iter_mut().find(|script| script.worker == worker) {
            (script.is_eval, script.shown, script.began) = (is_eval, shown, Instant::now());
        }
    }

    /// How long the slow script of a worker has run, in milliseconds.
    pub fn slow_ms(&self, worker: usize) -> u64 {
        let slow = self.lock();
        let script = slow.iter().find(|script| script.worker == worker);
        script.map_or(0, |script| script.began.elapsed().as_millis() as u64)
    }

    /// The error for a request that a slow script blocks. `places` are the slots that the request needs, or `None` if
    /// they are not known.
    pub fn refusal(&self, places: Option<&mut dyn Iterator<Item = DbSlot>>) -> Option<String> {
        let slow = self.lock();
        let refuse = |script: &SlowScript| Some(self.busy(script.is_eval));
        let Some(wanted) = places else { return slow.first().and_then(refuse) };
        if let Some(script) = slow.iter().find(|script| script.places.is_none()) {
            return refuse(script);
        }
        for place in wanted {
            let holds = |script: &&SlowScript| {
                script.places.as_ref().is_some_and(|held| held.binary_search(&place).is_ok())
            };
            if let Some(script) = slow.iter().find(holds) {
                return refuse(script);
            }
        }
        None
    }

    /// The error for requests that a slow script blocks.
    pub fn busy(&self, is_eval: bool) -> String {
        let (title, kind) = (self.dialect.title(), if is_eval { "SCRIPT" } else { "FUNCTION" });
        format!(
            "BUSY {title} is busy running a script. You can only call {kind} KILL or SHUTDOWN NOSAVE."
        )
    }

    /// Kills scripts that have not written: the slow scripts if there are any, otherwise the running scripts.
    pub fn kill(&self, wants_eval: bool) -> Kill {
        let slow: Vec<usize> = self.lock().iter().map(|script| script.worker).collect();
        let all = 0..self.workers.len();
        let workers: Vec<usize> = if slow.is_empty() { all.collect() } else { slow };
        let kill = |worker: usize| self.workers[worker].kill(wants_eval);
        workers.into_iter().map(kill).max().unwrap_or(Kill::Nothing)
    }

    /// Adds a script to the list. `arm` is called before another thread can see the script.
    pub fn add_slow(&self, script: SlowScript, arm: impl FnOnce()) {
        let mut slow = self.lock();
        slow.push(script);
        arm();
    }

    /// Notes that the slow script of a worker may touch anything from now on. The caller ensures that no worker is in
    /// the middle of a command that the script affects.
    pub fn claim_all_keys(&self, worker: usize) {
        let mut slow = self.lock();
        slow.iter_mut().filter(|script| script.worker == worker).for_each(|s| s.places = None);
    }

    /// Removes the slow script of a worker from the list. `disarm` is called if it was the last one.
    pub fn remove_slow(&self, worker: usize, disarm: impl FnOnce()) {
        let mut slow = self.lock();
        slow.retain(|script| script.worker != worker);
        if slow.is_empty() {
            disarm();
        }
    }
}
