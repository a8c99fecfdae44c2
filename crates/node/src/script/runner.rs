//! The current run of a worker's interpreters: its state, and the host through which it accesses the server.

use super::machine::{Interpreters, Machine};
use super::slow::{ScriptDescription, SlowScript};
use crate::core::Core;
use crate::core::quiesce::QuiesceRequest;
use crate::core::running_unit::ParkedUnit;
use crate::core::session::Session;
use crate::core::shared::Shared;
use crate::transactions::Execution;
use brisk_engine::args::PreparedKey;
use brisk_engine::env::SuspendedUnit;
use brisk_engine::exec;
use brisk_engine::keyspace::{DbSlot, KeyHasher, SlotId};
use brisk_engine::table::Row;
use brisk_engine::{Args, ReplyBuffer};
use brisk_reactor::Token;
use brisk_resp::{Protocol, Spans};
use brisk_script::Pace;
use brisk_structures::lent::{Lent, LentFn};
use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::time::{Duration, Instant};

/// How long a slow script runs before its worker serves other clients again.
const SLICE_NS: u64 = 2_000_000;
/// The value of the slice's end while the script is not slow and therefore has no slices.
const NO_SLICE: u64 = u64::MAX;

/// The keys that a slow script may touch.
#[derive(Debug, Clone)]
pub enum KeysInUse {
    Everything,
    /// In ascending order.
    Places(Rc<[DbSlot]>),
}

/// The state of scripts and functions on one worker.
pub struct WorkerScripts {
    /// The interpreters that run scripts and functions.
    pub interpreters: Interpreters,
    /// True if the current script may use keys that it did not declare.
    pub(super) undeclared_keys_allowed: bool,
    /// Set if the script is slow: the keys that are blocked for other commands.
    pub(super) keys_in_use: Option<KeysInUse>,
    /// A slow script between two slices.
    pub(super) parked: Option<Box<Parked>>,
    /// The slot of the keys that the command or transaction of the current script has used so far.
    pub(crate) used_slot: Option<SlotId>,
}

impl WorkerScripts {
    /// The state before the first script of a worker.
    pub fn new(shared: &'static Shared, worker: usize) -> WorkerScripts {
        WorkerScripts {
            interpreters: Interpreters::new(shared, worker),
            undeclared_keys_allowed: false,
            keys_in_use: None,
            parked: None,
            used_slot: None,
        }
    }

    /// Reports whether the current script is slow.
    pub fn is_slow(&self) -> bool {
        self.keys_in_use.is_some()
    }

    /// Reports whether a slow script is suspended between two slices.
    #[inline]
    pub fn is_parked(&self) -> bool {
        self.parked.is_some()
    }

    /// The client whose own session is needed when the suspended script has ended, because more
    /// commands follow.
    pub fn parked_client(&self) -> Option<Token> {
        let parked = self.parked.as_ref().filter(|parked| parked.in_exec)?;
        Some(parked.session.record.token)
    }

    /// If the suspended script is part of a transaction, stores the rest of the transaction with it. Otherwise returns
    /// the rest.
    pub(crate) fn defer(&mut self, rest: Box<Execution>) -> Option<Box<Execution>> {
        match self.parked.as_mut().filter(|parked| parked.in_exec) {
            Some(parked) => {
                parked.execution = Some(rest);
                None
            }
            None => Some(rest),
        }
    }
}

/// The key that a script declared or used last. Most commands use the same key again.
#[derive(Default)]
pub(super) struct LastKey {
    bytes: Vec<u8>,
    /// `None` if nothing is known.
    known: Option<PreparedKey>,
}

impl LastKey {
    /// Longer keys are not kept.
    const BYTES_MAX: usize = 64;

    pub(super) fn note(&mut self, bytes: &[u8], key: &PreparedKey) {
        self.bytes.clear();
        self.known = (bytes.len() <= LastKey::BYTES_MAX).then_some(*key);
        if self.known.is_some() {
            self.bytes.extend_from_slice(bytes);
        }
    }

    /// Prepares a key that is argument 1. If it is the same as the last key, its hash and slot are already known.
    #[inline]
    pub(super) fn prepare(&mut self, hasher: &KeyHasher, bytes: &[u8]) -> PreparedKey {
        if let Some(known) = self.known
            && self.bytes == bytes
        {
            return PreparedKey { index: 1, ..known };
        }
        let key = exec::prepare(1, &hasher.key(bytes));
        self.note(bytes, &key);
        key
    }
}

/// The host of a worker's interpreters. Only one of them runs at a time.
pub(super) struct ScriptRunner {
    pub(super) shared: &'static Shared,
    pub(super) worker: usize,
    /// Present while the interpreter runs.
    pub(super) core: Lent<Core>,
    pub(super) session: Lent<Session>,
    /// The description of the script, used if it becomes slow, which happens before it is suspended. It is borrowed,
    /// because otherwise the arguments of each script would have to be copied.
    pub(super) shown: LentFn<ScriptDescription>,
    /// The reply of a command until the script has read it. No command of a script runs another script, so one buffer
    /// is enough.
    pub(super) replies: RefCell<ReplyBuffer>,
    pub(super) last_key: RefCell<LastKey>,
    pub(super) is_eval: Cell<bool>,
    pub(super) read_only: Cell<bool>,
    /// True if memory was short when the script began and the script has no flag that allows it to use more.
    pub(super) lacks_memory: Cell<bool>,
    /// True if the script has changed data.
    pub(super) wrote: Cell<bool>,
    /// True if the script has had an effect that other clients can see, so that it cannot be restarted.
    pub(super) acted: Cell<bool>,
    /// True if the code shows that the script uses only keys that it declares.
    pub(super) confined: Cell<bool>,
    /// True if the script may use keys in several slots in cluster mode, one slot per command.
    pub(super) crosses_slots: Cell<bool>,
    /// True if the script can be suspended.
    pub(super) parkable: Cell<bool>,
    /// True if the script could not continue before it had any effect.
    pub(super) abandoned: Cell<bool>,
    pub(super) killed: Cell<bool>,
    /// True if the script has used keys that it did not declare.
    pub(super) used_undeclared_keys: Cell<bool>,
    pub(super) loading: Cell<bool>,
    began_ticks: Cell<u64>,
    slice_ends_ns: Cell<u64>,
}

impl ScriptRunner {
    pub(super) fn new(shared: &'static Shared, worker: usize) -> ScriptRunner {
        ScriptRunner {
            shared,
            worker,
            core: Lent::nothing(),
            session: Lent::nothing(),
            shown: LentFn::nothing(),
            replies: RefCell::default(),
            last_key: RefCell::default(),
            is_eval: Cell::new(true),
            read_only: Cell::new(false),
            lacks_memory: Cell::new(false),
            wrote: Cell::new(false),
            acted: Cell::new(false),
            confined: Cell::new(false),
            crosses_slots: Cell::new(true),
            parkable: Cell::new(false),
            abandoned: Cell::new(false),
            killed: Cell::new(false),
            used_undeclared_keys: Cell::new(false),
            loading: Cell::new(false),
            began_ticks: Cell::new(0),
            slice_ends_ns: Cell::new(NO_SLICE),
        }
    }

    /// Called when a script begins, after its other properties have been set.
    pub(super) fn begin(&self) {
        self.shared.scripting.running.of(self.worker).begin(self.is_eval.get());
        for flag in
            [&self.wrote, &self.abandoned, &self.killed, &self.used_undeclared_keys, &self.loading]
        {
            flag.set(false);
        }
        self.began_ticks.set(self.ticks());
        self.slice_ends_ns.set(NO_SLICE);
    }

    /// Called when a slow script gets another slice.
    pub(super) fn begin_slice(&self) {
        self.slice_ends_ns.set(self.elapsed_ns() + SLICE_NS);
    }

    /// Called before the code of a library is run.
    pub(super) fn begin_loading(&self) {
        self.loading.set(true);
        self.began_ticks.set(self.ticks());
    }

    /// Called when a script has ended.
    pub(super) fn end(&self) {
        self.shared.scripting.running.of(self.worker).end();
    }

    pub(super) fn ticks(&self) -> u64 {
        brisk_reactor::clock().ticks()
    }

    /// How long the script has run.
    pub(super) fn elapsed_ns(&self) -> u64 {
        let clock = brisk_reactor::clock();
        clock.ns(clock.ticks().wrapping_sub(self.began_ticks.get()))
    }

    pub(super) fn threshold_ns(&self, core: &Core) -> u64 {
        threshold_ms(core).saturating_mul(1_000_000)
    }

    /// Decides how the running script continues. It may have become slow, or it may block another worker.
    pub(super) fn pace_of(&self, core: &mut Core) -> Pace {
        match self.shared.quiesce.is_requested_mid_unit() {
            Some(QuiesceRequest::Briefly) => self.shared.quiesce.pause_within_unit(self.worker),
            Some(QuiesceRequest::Wholly)
                if core.scripts.keys_in_use.is_none() && !self.acted.get() =>
            {
                self.abandoned.set(true);
                return Pace::Stop;
            }
            _ => {}
        }
        let elapsed = self.elapsed_ns();
        if self.slice_ends_ns.get() == NO_SLICE {
            let takes_long = elapsed >= self.threshold_ns(core);
            // If other scripts are slow, this script may already be on the list of slow scripts.
            if !takes_long || core.scripts.keys_in_use.is_none() && !self.become_slow(core) {
                return Pace::GoOn;
            }
            self.slice_ends_ns.set(elapsed);
        }
        if elapsed < self.slice_ends_ns.get() || !self.parkable.get() {
            return Pace::GoOn;
        }
        Pace::Suspend
    }

    /// Makes the script a slow script: from now on, the command gate blocks access to the data that the script touches,
    /// and other workers continue with everything else. Returns false if no unit is running.
    pub(super) fn become_slow(&self, core: &mut Core) -> bool {
        let Some(unit) = core.unit.current() else { return false };
        // The script may have many arguments, which must not be copied while the workers are quiesced.
        let shown = self.shown();
        if unit.is_alone() {
            core.scripts.keys_in_use = Some(KeysInUse::Everything);
            self.show_slow(shown, None);
            core.unit.let_others_continue();
            return true;
        }
        let quiesced = self.shared.quiesce.quiesce_others_briefly(self.worker);
        let places = unit.places();
        unit.release();
        core.scripts.keys_in_use = Some(KeysInUse::Places(places.as_slice().into()));
        // A script without declared keys may touch anything.
        self.show_slow(shown, Some(places).filter(|places| !places.is_empty()));
        drop(quiesced);
        true
    }

    /// The description of the running script.
    pub(super) fn shown(&self) -> ScriptDescription {
        let shown = self.shown.call();
        debug_assert!(shown.is_some(), "the running script has a description");
        shown.unwrap_or_default()
    }

    /// Adds the script to the list of slow scripts. The caller ensures that no worker is in the middle of a command on
    /// `places`; `None` means all slots.
    pub(super) fn show_slow(&self, shown: ScriptDescription, places: Option<Vec<DbSlot>>) {
        self.shared.begin_slow(SlowScript {
            worker: self.worker,
            is_eval: self.is_eval.get(),
            shown,
            began: Instant::now() - Duration::from_nanos(self.elapsed_ns()),
            places,
        });
    }
}

/// The time after which a script counts as slow.
pub(super) fn threshold_ms(core: &Core) -> u64 {
    match core.config.process.busy_reply_threshold_ms {
        0 => u64::MAX,
        ms => ms.max(0) as u64,
    }
}

/// A slow script between two slices.
pub struct Parked {
    /// The interpreter in which the script runs.
    pub(super) machine: Rc<Machine>,
    /// The unit of the script. Empty while the script runs.
    pub(super) unit: ParkedUnit,
    pub(super) slow: Option<KeysInUse>,
    pub(super) undeclared_keys_allowed: bool,
    /// The state that the script's commands have left behind so far.
    pub(super) aside: SuspendedUnit,
    /// The session that the script's commands use. The client may have disconnected.
    pub(super) session: Box<Session>,
    /// True if the keys that the script's commands read are remembered for the client, which uses tracking.
    pub(super) remembers: bool,
    pub(super) row: &'static Row,
    pub(super) name: Vec<u8>,
    pub(super) protocol: Protocol,
    pub(super) request: Request,
    /// The total time of the script's slices.
    pub(super) ns: u64,
    /// True if the log has mentioned the script.
    pub(super) logged: bool,
    /// True if the script is part of a transaction. `execution` is then the rest of the transaction.
    pub(super) in_exec: bool,
    pub(super) execution: Option<Box<Execution>>,
}

/// The copied arguments of a request.
#[derive(Default)]
pub(super) struct Request {
    bytes: Vec<u8>,
    spans: Spans,
}

impl Request {
    pub(super) fn of(args: &Args<'_>) -> Request {
        Request::of_words(&args.arguments().collect::<Vec<_>>())
    }

    pub(super) fn of_words(words: &[&[u8]]) -> Request {
        let mut request = Request::default();
        for word in words {
            request.spans.push(request.bytes.len(), word.len());
            request.bytes.extend_from_slice(word);
        }
        request
    }

    pub(super) fn with_args<R>(
        &self,
        core: &mut Core,
        show: impl FnOnce(&mut Core, &Args<'_>) -> R,
    ) -> R {
        let args = Args::new(&self.bytes, &self.spans, self.spans.as_slice(), &[]);
        show(core, &args)
    }
}
