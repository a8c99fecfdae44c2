//! What a thread that runs commands brings along: settings, randomness, its tally, and the places
//! where a command's aftermath collects.
//!
//! | part | about |
//! |---|---|
//! | `settings` | the settings that commands depend on |
//! | `effect` | what a write leaves besides the value: effects, events, invalidations |
//! | `journal` | the stream of changes, in the order of the transactions |
//! | `garbage` | what was unlinked and another thread frees |
//! | `transfer` | what MIGRATE asks of whoever has sockets |

pub mod effect;
mod garbage;
pub mod journal;
mod settings;
pub mod transfer;

pub use garbage::Garbage;
pub(crate) use garbage::table_bytes;
pub use settings::{Dialect, EvictionPolicy, PrimaryWords, Settings};

use crate::base::place::{DbIndex, Ticket, UnixMs};
use crate::base::random::Random;
use crate::call::long::{LongCommand, PreparedResult};
use crate::env::effect::{Aftermath, HookCell, Hooks, TrackingClient};
use crate::env::transfer::{TransferFn, no_transfer};
use crate::keyspace::{CutBuffer, SlotWeights, Tally, Waiter};
use crate::types::{Entry, Table};
use brisk_structures::entry::ValueRef;
use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::sync::Arc;

/// The longest string that a command of a primary, or of an append-only file, may leave.
const REPLAYED_STRING_BYTES_MAX: u64 = 1 << 40;

/// Long before any deadline: nothing has expired.
const NOTHING_EXPIRED: UnixMs = UnixMs(0);

/// One thread's belongings. Not shared: the cells are for code that holds parts of it.
pub struct Env {
    pub settings: Settings,
    pub tally: Arc<Tally>,
    pub random: RefCell<Random>,
    /// What commands do besides their work; empty in a server without replicas, listeners and
    /// clients that cache.
    pub hooks: HookCell,
    pub aftermath: RefCell<Aftermath>,
    pub garbage: RefCell<Vec<Garbage>>,
    /// What this thread has encoded for the snapshot that is being taken.
    pub(crate) snapshot_output: RefCell<CutBuffer>,
    /// Keys that appeared or changed while somebody waited for them, in that order.
    pub(crate) ready: RefCell<VecDeque<(DbIndex, Box<[u8]>)>>,
    /// The wait that the command which just ran began.
    pub(crate) waiter: RefCell<Option<Arc<Waiter>>>,
    /// The work that the command which just ran left to be done elsewhere.
    pub(crate) long: RefCell<Option<LongCommand>>,
    /// What was made for the command that is being run again.
    pub(crate) made: RefCell<Option<PreparedResult>>,
    /// Who hands values over to other servers.
    pub carrier: TransferFn,
    /// Up to where in the stream of changes the replies since it was taken show the dataset.
    shown: Cell<Ticket>,
    /// Whether reads leave a trace in access clocks (CLIENT NO-TOUCH).
    pub touch: Cell<bool>,
    /// Keys that are made of values (SORT BY and GET) must not be looked up.
    pub lookups_denied: Cell<bool>,
    /// The client whose commands run; 0 if none.
    pub client: Cell<u64>,
    /// The same as a reader, for [`Hooks::REMEMBER`].
    pub reader: Cell<Option<TrackingClient>>,
    /// A script runs the commands.
    pub in_script: Cell<bool>,
    /// The dataset is to stay as it is: expired keys are hidden from commands rather than removed.
    pub keeps_expired: Cell<bool>,
    /// Those that are hidden from the present command.
    pub(crate) hidden: RefCell<Vec<(DbIndex, Entry)>>,
    /// Seconds of the recency clock, 24 bits.
    pub(crate) recency: Cell<u32>,
    /// How the keys of a database lie, for drawing some.
    pub(crate) spread: RefCell<SlotWeights>,
    /// The moment the running batch began.
    now: Cell<UnixMs>,
    /// Deadlines up to this moment have passed.
    horizon: Cell<UnixMs>,
}

/// What commands of a unit have left so far, and the moment they see: put aside while commands run
/// that are none of it.
#[derive(Default)]
pub struct SuspendedUnit {
    aftermath: Aftermath,
    ready: VecDeque<(DbIndex, Box<[u8]>)>,
    now: UnixMs,
    horizon: UnixMs,
}

impl SuspendedUnit {
    /// They see the moment that commands see at present.
    pub fn take_moment(&mut self, env: &Env) {
        (self.now, self.horizon) = (env.now(), env.horizon());
    }
}

impl Env {
    /// Exchanges what is there with what was put aside.
    pub fn exchange(&self, aside: &mut SuspendedUnit) {
        std::mem::swap(&mut *self.aftermath.borrow_mut(), &mut aside.aftermath);
        std::mem::swap(&mut *self.ready.borrow_mut(), &mut aside.ready);
        let (now, horizon) = (self.now(), self.horizon());
        self.set_now(std::mem::replace(&mut aside.now, now));
        self.horizon.set(std::mem::replace(&mut aside.horizon, horizon));
        self.set_hooks_by_contents();
    }

    /// That invalidations or changed keys wait to be sent shows in [`Env::hooks`].
    fn set_hooks_by_contents(&self) {
        let aftermath = self.aftermath.borrow();
        self.set_hooks(Hooks::INVALIDATE, !aftermath.invalidations.is_empty());
        self.set_hooks(Hooks::BROADCAST, !aftermath.changed.is_empty());
    }

    /// Puts what was put aside before what is there; its moment is the present one again.
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
            snapshot_output: RefCell::default(),
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

    /// Frees at once what was unlinked of tables with few keys and small values, up to a bounded
    /// number of keys.
    pub(crate) fn free_light_tables(&self) {
        const KEYS_MAX: usize = 4096;
        let mut left = KEYS_MAX;
        self.garbage.borrow_mut().retain(|garbage| {
            let Garbage::Table(table) = garbage else { return true };
            let mut stays = table.view().len() > left;
            if !stays {
                table.view().for_each(|entry| {
                    stays |= matches!(entry.value(), ValueRef::Object(value) if !value.is_light());
                });
            }
            left -= if stays { 0 } else { table.view().len() };
            stays
        });
    }

    /// Takes the tables out of what was unlinked.
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

    /// The time goes on for commands of the same kind.
    pub fn advance(&self, now: UnixMs) {
        let is_replay = self.is_replay();
        self.set_now(now);
        if is_replay {
            self.horizon.set(NOTHING_EXPIRED);
        }
    }

    /// Commands that follow were executed long ago, and stand in a file with their effects as words:
    /// nothing is past its deadline, while access clocks go by the present. Until the next `set_now`.
    pub fn begin_replay(&self) {
        self.now.set(NOTHING_EXPIRED);
        self.horizon.set(NOTHING_EXPIRED);
    }

    /// Commands that follow come from the primary, which says itself what has expired: nothing is past its
    /// deadline here, while times that count from the present count from `now`. Until the next `set_now`.
    pub fn begin_applying(&self, now: UnixMs) {
        self.set_now(now);
        self.horizon.set(NOTHING_EXPIRED);
    }

    /// Whether commands were executed before, by another server or for a file: what they say holds, and
    /// nothing expires between them.
    pub fn is_replay(&self) -> bool {
        self.horizon.get() == NOTHING_EXPIRED
    }

    /// The longest string that a command may leave, in bytes. What was executed before was allowed then: the
    /// settings of this server do not bind it.
    pub fn string_bytes_max(&self) -> u64 {
        let set = self.settings.string_bytes_max;
        if self.is_replay() { set.max(REPLAYED_STRING_BYTES_MAX) } else { set }
    }

    /// A reply shows what the transaction with this ticket left, and all before.
    #[inline]
    pub fn note_shown(&self, ticket: Ticket) {
        self.shown.set(self.shown.get().max(ticket));
    }

    /// What replies have shown since [`Env::take_shown`].
    pub fn shown(&self) -> Ticket {
        self.shown.get()
    }

    /// What replies have shown since the last call.
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

    /// Deadlines up to this moment have passed: the present, or long ago if nothing expires.
    #[inline]
    pub fn horizon(&self) -> UnixMs {
        self.horizon.get()
    }

    /// The command that is running begins to wait, for something else than keys.
    pub fn begin_wait(&self, waiter: Arc<Waiter>) {
        *self.waiter.borrow_mut() = Some(waiter);
    }

    /// The wait that the command which just ran began.
    pub fn take_waiter(&self) -> Option<Arc<Waiter>> {
        self.waiter.borrow_mut().take()
    }

    pub(crate) fn random_below(&self, bound: u64) -> u64 {
        self.random.borrow_mut().below(bound)
    }
}
