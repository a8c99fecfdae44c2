//! The state of a thread that runs commands: settings, randomness, its tally, and the buffers for the
//! side effects of commands.
//!
//! | part | about |
//! |---|---|
//! | `settings` | the settings that commands depend on |
//! | `effect` | the side effects of a write: effects, events, invalidations |
//! | `journal` | the stream of changes, in the order of the transactions |
//! | `tap` | copies of the transactions that change some slots |
//! | `garbage` | unlinked objects that another thread frees |
//! | `transfer` | the interface of MIGRATE to code with sockets |

pub mod effect;
mod garbage;
pub mod journal;
mod settings;
pub mod tap;
pub mod transfer;

pub use garbage::Garbage;
pub(crate) use garbage::table_bytes;
pub use settings::{Dialect, EvictionPolicy, PrimaryWords, Settings};

use crate::base::place::{DbIndex, Ticket, UnixMs};
use crate::base::random::Random;
use crate::call::long::{LongCommand, PreparedResult};
use crate::env::effect::{Aftermath, HookCell, Hooks, TrackingClient};
use crate::env::transfer::{TransferFn, no_transfer};
use crate::keyspace::{SlotWeights, SnapshotBuffers, Tally, Waiter};
use crate::types::{Entry, Table};
use brisk_structures::entry::ValueRef;
use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::sync::Arc;

/// Maximum length in bytes of a string that a command from a primary or from an append-only file
/// may create.
const REPLAYED_STRING_BYTES_MAX: u64 = 1 << 40;

/// A time before every expiry time: nothing has expired.
const NOTHING_EXPIRED: UnixMs = UnixMs(0);

/// The state of one thread. It is not shared; the cells are for code that holds parts of it.
pub struct Env {
    pub settings: Settings,
    pub tally: Arc<Tally>,
    pub random: RefCell<Random>,
    /// Additional work that commands do. Empty in a server that has no replicas, no subscribers to
    /// keyspace events, and no clients that cache keys.
    pub hooks: HookCell,
    pub aftermath: RefCell<Aftermath>,
    pub garbage: RefCell<Vec<Garbage>>,
    /// Entries that this thread has encoded for the snapshots in progress.
    pub(crate) snapshot_buffers: RefCell<SnapshotBuffers>,
    /// Keys that were created or changed while clients waited for them, in that order.
    pub(crate) ready: RefCell<VecDeque<(DbIndex, Box<[u8]>)>>,
    /// The wait that the last command began.
    pub(crate) waiter: RefCell<Option<Arc<Waiter>>>,
    /// The work that the last command left to another thread.
    pub(crate) long: RefCell<Option<LongCommand>>,
    /// The result that was prepared for the command that is being run again.
    pub(crate) made: RefCell<Option<PreparedResult>>,
    /// Sends values to other servers, for MIGRATE.
    pub carrier: TransferFn,
    /// The offset in the stream of changes up to which replies since the last [`Env::take_shown`]
    /// show the dataset.
    shown: Cell<Ticket>,
    /// True if reads update access clocks (false under CLIENT NO-TOUCH).
    pub touch: Cell<bool>,
    /// True if SORT BY and GET must not look up keys whose names are made from values.
    pub lookups_denied: Cell<bool>,
    /// The client whose commands are running; 0 if none.
    pub client: Cell<u64>,
    /// The same client for tracking, under [`Hooks::REMEMBER`].
    pub reader: Cell<Option<TrackingClient>>,
    /// True if a script runs the commands.
    pub in_script: Cell<bool>,
    /// True if expired keys must be hidden from commands instead of removed.
    pub keeps_expired: Cell<bool>,
    /// The keys that are hidden from the running command.
    pub(crate) hidden: RefCell<Vec<(DbIndex, Entry)>>,
    /// Seconds of the recency clock, 24 bits.
    pub(crate) recency: Cell<u32>,
    /// The distribution of a database's keys over its slots, for drawing random keys.
    pub(crate) spread: RefCell<SlotWeights>,
    /// The time at which the running batch began.
    now: Cell<UnixMs>,
    /// Keys that expire at or before this time have expired.
    horizon: Cell<UnixMs>,
}

/// The side effects of a unit's commands so far, and the time that these commands see. They are set
/// aside while other commands run that do not belong to the unit.
#[derive(Default)]
pub struct SuspendedUnit {
    aftermath: Aftermath,
    ready: VecDeque<(DbIndex, Box<[u8]>)>,
    now: UnixMs,
    horizon: UnixMs,
}

impl SuspendedUnit {
    /// Makes the unit's commands see the current time of the thread.
    pub fn take_moment(&mut self, env: &Env) {
        (self.now, self.horizon) = (env.now(), env.horizon());
    }
}

impl Env {
    /// Exchanges the current side effects with the suspended ones.
    pub fn exchange(&self, aside: &mut SuspendedUnit) {
        std::mem::swap(&mut *self.aftermath.borrow_mut(), &mut aside.aftermath);
        std::mem::swap(&mut *self.ready.borrow_mut(), &mut aside.ready);
        let (now, horizon) = (self.now(), self.horizon());
        self.set_now(std::mem::replace(&mut aside.now, now));
        self.horizon.set(std::mem::replace(&mut aside.horizon, horizon));
        self.set_hooks_by_contents();
    }

    /// Sets the bits of [`Env::hooks`] that show whether invalidations or changed keys wait to be
    /// sent.
    fn set_hooks_by_contents(&self) {
        let aftermath = self.aftermath.borrow();
        self.set_hooks(Hooks::INVALIDATE, !aftermath.invalidations.is_empty());
        self.set_hooks(Hooks::BROADCAST, !aftermath.changed.is_empty());
    }

    /// Inserts the suspended side effects before the current ones, and restores the unit's time.
    pub fn join(&self, mut aside: SuspendedUnit) {
        self.aftermath.borrow_mut().put_before(std::mem::take(&mut aside.aftermath));
        let mut ready = self.ready.borrow_mut();
        aside.ready.append(&mut ready);
        *ready = std::mem::take(&mut aside.ready);
        drop(ready);
        self.set_now(aside.now);
        self.horizon.set(aside.horizon);
        self.set_hooks_by_contents();
    }

    pub fn new(tally: Arc<Tally>, random: Random) -> Env {
        Env {
            settings: Settings::default(),
            tally,
            random: RefCell::new(random),
            hooks: HookCell::default(),
            aftermath: RefCell::default(),
            garbage: RefCell::default(),
            snapshot_buffers: RefCell::default(),
            ready: RefCell::default(),
            waiter: RefCell::default(),
            long: RefCell::default(),
            made: RefCell::default(),
            carrier: no_transfer,
            shown: Cell::default(),
            touch: Cell::new(true),
            lookups_denied: Cell::new(false),
            client: Cell::new(0),
            reader: Cell::default(),
            in_script: Cell::new(false),
            keeps_expired: Cell::new(false),
            hidden: RefCell::default(),
            recency: Cell::new(0),
            spread: RefCell::default(),
            now: Cell::default(),
            horizon: Cell::default(),
        }
    }

    /// Immediately frees unlinked tables with few keys and small values, up to a bounded number of
    /// keys.
    pub(crate) fn free_light_tables(&self) {
        const KEYS_MAX: usize = 4096;
        let mut left = KEYS_MAX;
        self.garbage.borrow_mut().retain(|garbage| {
            let Garbage::Table(table) = garbage else { return true };
            let mut is_kept = table.view().len() > left;
            if !is_kept {
                table.view().for_each(|entry| {
                    is_kept |=
                        matches!(entry.value(), ValueRef::Object(value) if !value.is_light());
                });
            }
            left -= if is_kept { 0 } else { table.view().len() };
            is_kept
        });
    }

    /// Takes the tables out of the unlinked objects.
    pub(crate) fn take_tables(&self) -> Vec<Table> {
        let mut garbage = self.garbage.borrow_mut();
        let is_table = |thing: &mut Garbage| matches!(thing, Garbage::Table(_));
        let taken = garbage.extract_if(.., is_table).filter_map(|thing| match thing {
            Garbage::Table(table) => Some(table),
            _ => None,
        });
        taken.collect()
    }

    /// Sets the time that commands see from now on.
    pub fn set_now(&self, now: UnixMs) {
        self.horizon.set(now);
        if self.now.replace(now) != now {
            self.recency.set(crate::keyspace::evict::recency_clock(now));
        }
    }

    /// Advances the time. During a replay, nothing expires even then.
    pub fn advance(&self, now: UnixMs) {
        let is_replay = self.is_replay();
        self.set_now(now);
        if is_replay {
            self.horizon.set(NOTHING_EXPIRED);
        }
    }

    /// Begins a replay: until the next `set_now`, commands come from an append-only file and were
    /// executed earlier. Nothing expires, but access clocks use the current time.
    pub fn begin_replay(&self) {
        self.now.set(NOTHING_EXPIRED);
        self.horizon.set(NOTHING_EXPIRED);
    }

    /// Begins to apply a primary's commands: until the next `set_now`, commands come from the
    /// primary, which decides what has expired. Nothing expires here, but relative times count from
    /// `now`.
    pub fn begin_applying(&self, now: UnixMs) {
        self.set_now(now);
        self.horizon.set(NOTHING_EXPIRED);
    }

    /// Reports whether the current commands were already executed, by another server or before they
    /// were written to a file. They are then always valid, and nothing expires between them.
    pub fn is_replay(&self) -> bool {
        self.horizon.get() == NOTHING_EXPIRED
    }

    /// The longest string that a command may create, in bytes. The settings of this server do not
    /// restrict commands that were already executed.
    pub fn string_bytes_max(&self) -> u64 {
        let set = self.settings.string_bytes_max;
        if self.is_replay() { set.max(REPLAYED_STRING_BYTES_MAX) } else { set }
    }

    /// Records that a reply shows the result of the transaction with this ticket, and of all
    /// earlier ones.
    #[inline]
    pub fn note_shown(&self, ticket: Ticket) {
        self.shown.set(self.shown.get().max(ticket));
    }

    /// The offset up to which replies since the last [`Env::take_shown`] show the dataset.
    pub fn shown(&self) -> Ticket {
        self.shown.get()
    }

    /// Returns the offset up to which replies since the last call show the dataset.
    #[inline]
    pub fn take_shown(&self) -> Ticket {
        self.shown.take()
    }

    /// Sets or clears bits of [`Env::hooks`].
    #[inline]
    pub fn set_hooks(&self, bits: Hooks, on: bool) {
        self.hooks.set(bits, on);
    }

    #[inline]
    pub fn now(&self) -> UnixMs {
        self.now.get()
    }

    /// The time that decides which keys have expired: the current time, or a time long ago if
    /// nothing expires.
    #[inline]
    pub fn horizon(&self) -> UnixMs {
        self.horizon.get()
    }

    /// Called when the running command begins to wait for something other than keys.
    pub fn begin_wait(&self, waiter: Arc<Waiter>) {
        *self.waiter.borrow_mut() = Some(waiter);
    }

    /// The wait that the last command began.
    pub fn take_waiter(&self) -> Option<Arc<Waiter>> {
        self.waiter.borrow_mut().take()
    }

    pub(crate) fn random_below(&self, bound: u64) -> u64 {
        self.random.borrow_mut().below(bound)
    }
}
