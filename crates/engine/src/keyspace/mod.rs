//! The keyspace: databases of 16,384 slots. Each slot is a small table with its own lock.
//!
//! ```text
//! Keyspace ── Database 0 ── slot 0 … slot 16383  a slot: lock · table · TTLs · last ticket
//!          ── Database 1 ── …                    (one cache line while the table is looked up)
//! ```
//!
//! Access rules: a table is read and written only through the guard of its slot. Only [`Keys`] (for
//! commands), [`expire`] and [`evict`] take guards. Prefetching reads bucket words without a lock and
//! follows no pointers. No guard is held during a wait, and every lock is a try-lock: a command that
//! does not get all of its slots releases those it has and runs again later.
//!
//! Expired keys: if the earliest expiry time of a slot has passed when a command locks the slot, the
//! keys of that command are checked and removed first. Handlers therefore never see an expired key.
//!
//! | part | about |
//! |---|---|
//! | `slots` | slots, their marks, and features that work on whole slots |
//! | `keys`, `entry` | access to values, and entries as commands see them |
//! | `collections` | how commands change values with elements |
//! | `removal` | expiry and eviction |
//! | `clients` | clients that block on keys, watch them, or cache them |
//! | `snapshot` | snapshots during writes |
//! | `draw`, `prefetch`, `tally` | random keys; prefetching values; counters |

mod clients;
mod collections;
mod draw;
pub mod entry;
mod keys;
mod prefetch;
mod removal;
mod slots;
mod snapshot;
mod tally;

use brisk_structures::poison::EvenPoisoned;
use clients::{key_queues, tracking, waiting, watching};
pub(crate) use draw::SlotWeights;
pub use entry::{EntryMut, EntryRef};
pub(crate) use evict::AccessRecorder;
pub(crate) use keys::{
    HeldLocks, back_off, discard, discard_value, lock_blocking, must_postpone_writes,
};
pub use keys::{Keys, Overwrite, on_slot_wait, postpone_writes_while};
pub(crate) use observed::Observer;
pub use removal::clocks::ClockWalker;
use removal::{clocks, fields, replica_expires};
pub use removal::{evict, expire};
pub use slot::{Slot, SlotGuard, SlotMeta};
use slots::{marks, observed, occupied, slot};
pub use snapshot::{Snapshot, SnapshotOptions, SnapshotWalker, WalkOutcome};
pub(crate) use snapshot::{SnapshotBuffers, notes};
use tally::{Counter, DatabaseTally};
pub use tally::{Tally, Totals};
pub use tracking::Tracking;
pub(crate) use waiting::WaitRequest;
pub use waiting::{ClientRef, EmptyReply, Waiter};
pub use watching::{EndedWatches, Watcher, Watches};

pub use crate::base::place::{
    DbIndex, DbNumber, DbSlot, Key, KeyHasher, SLOTS, SlotId, Ticket, UnixMs,
};
pub use crate::base::slot_set::SlotSet;
pub use crate::env::effect::{Invalidation, KeyName, TrackingClient};
pub use crate::env::journal::{AofEdit, Journal};
pub use crate::types::{Entry, Stored, StoredMut, Table};

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock};

/// One database.
pub struct Database {
    slots: Box<[Slot]>,
    occupied: occupied::Occupied,
    /// True once a hash in the database has had a field TTL. Never reset.
    inner_deadlines: AtomicBool,
}

impl Database {
    /// Creates an empty database. Each of its slots starts with `marks`.
    fn new(marks: u8) -> Database {
        let slot = |_| {
            let slot = Slot::new();
            slot.try_lock().expect("no other thread has a reference").set_marks(marks);
            slot
        };
        let slots = (0..SLOTS).map(slot).collect();
        Database {
            slots,
            occupied: occupied::Occupied::new(),
            inner_deadlines: AtomicBool::new(false),
        }
    }

    /// Makes the expiry cycle visit the database even if no key has a TTL.
    fn note_inner_deadlines(&self) {
        self.inner_deadlines.store(true, Ordering::Relaxed);
    }

    /// Sets the flag in both databases if either has it. Called before or after their contents are
    /// exchanged.
    fn share_inner_deadlines(&self, other: &Database) {
        let any = self.has_inner_deadlines() || other.has_inner_deadlines();
        self.inner_deadlines.store(any, Ordering::Relaxed);
        other.inner_deadlines.store(any, Ordering::Relaxed);
    }

    fn has_inner_deadlines(&self) -> bool {
        self.inner_deadlines.load(Ordering::Relaxed)
    }

    #[inline]
    pub fn slot(&self, id: SlotId) -> &Slot {
        &self.slots[id.index()]
    }
}

/// All databases, and the state that they share.
pub struct Keyspace {
    databases: Box<[OnceLock<Database>]>,
    hasher: KeyHasher,
    tallies: Mutex<Vec<Arc<Tally>>>,
    journal: Journal,
    waiting: waiting::Waiting,
    watching: watching::Watching,
    /// Number of sessions that watch keys, and number of their watches.
    watching_clients: AtomicUsize,
    watches: AtomicUsize,
    /// Watches that have ended and are still in the queues of their keys.
    ended_watches: AtomicUsize,
    observed: observed::Observed,
    tracking: Tracking,
    snapshots: snapshot::Snapshots,
    replica_expires: replica_expires::ReplicaExpires,
    clocks: Arc<clocks::ClockRestart>,
}

impl Keyspace {
    /// Creates `databases` empty databases. Their slots are allocated on first use.
    pub fn new(databases: u32, hasher: KeyHasher) -> Keyspace {
        Keyspace {
            databases: (0..databases).map(|_| OnceLock::new()).collect(),
            hasher,
            tallies: Mutex::default(),
            journal: Journal::default(),
            waiting: waiting::Waiting::new(),
            watching: watching::Watching::new(),
            watching_clients: AtomicUsize::new(0),
            watches: AtomicUsize::new(0),
            ended_watches: AtomicUsize::new(0),
            observed: observed::Observed::new(databases),
            tracking: Tracking::new(),
            snapshots: snapshot::Snapshots::default(),
            replica_expires: replica_expires::ReplicaExpires::default(),
            clocks: Arc::default(),
        }
    }

    #[inline]
    pub fn hasher(&self) -> &KeyHasher {
        &self.hasher
    }

    /// The number of databases.
    pub fn database_count(&self) -> u32 {
        self.databases.len() as u32
    }

    /// All databases, in order.
    pub fn databases(&self) -> impl DoubleEndedIterator<Item = DbIndex> + Clone {
        DbIndex::all(self.database_count())
    }

    /// The database with this number; `None` if it does not exist.
    pub fn db(&self, number: DbNumber) -> Option<DbIndex> {
        DbIndex::checked(number.0, self.database_count())
    }

    /// The database. `db` must be one of [`Keyspace::databases`].
    #[inline]
    pub fn database(&self, db: DbIndex) -> &Database {
        match self.databases[db.index()].get() {
            Some(database) => database,
            None => self.open_database(db),
        }
    }

    #[cold]
    fn open_database(&self, db: DbIndex) -> &Database {
        self.tracking
            .opening(|marks| self.databases[db.index()].get_or_init(|| Database::new(marks())))
    }

    /// The database if it was ever used.
    pub fn database_if_used(&self, db: DbIndex) -> Option<&Database> {
        self.databases.get(db.index())?.get()
    }

    /// Reports whether hash fields in a database have, or once had, TTLs.
    pub fn field_deadlines(&self, db: DbIndex) -> bool {
        self.database_if_used(db).is_some_and(Database::has_inner_deadlines)
    }

    /// Creates a tally for a thread that will change the keyspace. The tally is part of the sums
    /// forever.
    pub fn tally(&self) -> Arc<Tally> {
        let tally = Arc::new(Tally::new(self.databases.len(), Arc::clone(&self.clocks)));
        self.tallies.lock().even_poisoned().push(Arc::clone(&tally));
        tally
    }

    /// The sums over all threads' tallies. O(threads x databases).
    pub fn totals(&self) -> Totals {
        let tallies = self.tallies.lock().even_poisoned();
        Totals::sum(self.databases.len(), &tallies)
    }

    /// The sums for one database. O(threads).
    fn totals_of(&self, db: DbIndex) -> tally::DatabaseTotals {
        let tallies = self.tallies.lock().even_poisoned();
        tally::DatabaseTotals::sum(db, &tallies)
    }

    /// Resets the counters of hits, misses, expired and evicted keys. The numbers of existing keys
    /// stay. Call it only while no thread with a tally runs commands. O(threads).
    pub fn reset_statistics(&self) {
        let tallies = self.tallies.lock().even_poisoned();
        tallies.iter().for_each(|tally| tally.reset_statistics());
    }

    /// Number of keys in a database, including expired keys that have not been removed yet.
    /// O(threads).
    pub fn key_count(&self, db: DbIndex) -> u64 {
        let tallies = self.tallies.lock().even_poisoned();
        let sum: i64 = tallies.iter().map(|tally| tally.database(db).keys.get()).sum();
        sum.max(0) as u64
    }

    /// True if any database has a key, including expired keys that have not been removed yet. O(databases x threads).
    pub fn has_keys(&self) -> bool {
        self.databases().any(|db| self.key_count(db) > 0)
    }

    /// Collects into `found` the databases in which a counter is above zero. O(threads x
    /// databases).
    pub(crate) fn databases_with(
        &self,
        of: fn(&DatabaseTally) -> &Counter,
        found: &mut Vec<DbIndex>,
    ) {
        let tallies = self.tallies.lock().even_poisoned();
        let sum = |db| tallies.iter().map(|tally| of(tally.database(db)).get()).sum::<i64>();
        found.clear();
        found.extend(self.databases().filter(|db| sum(*db) > 0));
    }

    /// The clients that cache keys, for client-side caching.
    pub fn tracking(&self) -> &Tracking {
        &self.tracking
    }

    /// The stream of the transactions' effects, for replicas and the append-only file.
    pub fn journal(&self) -> &Journal {
        &self.journal
    }

    /// Number of sessions that watch keys. O(1).
    pub fn watching_clients(&self) -> usize {
        self.watching_clients.load(Ordering::Relaxed)
    }

    /// Verifies every slot: tables, TTLs, counters. O(keys). Call it only while nothing else runs.
    pub fn check(&self) {
        for db in self.databases() {
            let Some(database) = self.database_if_used(db) else { continue };
            let (mut keys, mut deadlines) = (0, 0);
            for (number, slot) in database.slots.iter().enumerate() {
                let guard = slot.try_lock().expect("check runs while nothing else does");
                let noted = database.occupied.contains(SlotId::new(number as u16));
                assert_eq!(guard.marks() & marks::OCCUPIED != 0, noted);
                let seen = database.occupied.is_seen(SlotId::new(number as u16));
                assert!(noted && seen || slot.is_empty(), "a slot with keys that walks pass by");
                let watched = self.watching.has(db, SlotId::new(number as u16));
                assert_eq!(guard.marks() & marks::WATCHED != 0, watched);
                guard.table().check();
                let mut with_deadline = 0;
                guard.table().for_each(|entry| {
                    if let Some(deadline) = entry.deadline() {
                        with_deadline += 1;
                        let earliest = guard.meta().earliest;
                        assert!(earliest <= UnixMs(deadline), "a bound above a deadline");
                    }
                    if let Some(deadline) = fields::inner_deadline(&entry) {
                        assert!(guard.marks() & marks::HAS_FIELD_TTLS != 0, "an unmarked slot");
                        assert!(database.has_inner_deadlines(), "an unmarked database");
                        let earliest = guard.meta().earliest;
                        assert!(earliest <= deadline, "a bound above a field's deadline");
                    }
                });
                assert_eq!(guard.meta().with_deadline, with_deadline);
                keys += guard.table().len() as u64;
                deadlines += u64::from(with_deadline);
            }
            let totals = self.totals();
            assert_eq!(totals.databases[db.index()].keys, keys);
            assert_eq!(totals.databases[db.index()].with_deadline, deadlines);
        }
    }
}

#[cfg(test)]
mod tests;
