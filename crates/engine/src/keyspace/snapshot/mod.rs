//! A snapshot is a point-in-time copy of the entries of a set of slots: it contains them as they were when the snapshot
//! began. It is written while commands continue, so it needs no fork.
//!
//! ```text
//!  begin (all threads are       a command that changes an entry       walkers, between commands
//!        │        quiesced)            │                                    │
//!   stamp of the keyspace + 1        Change::preserve: the entry as   slot after slot, a few
//!   = each slot of the set owes      it was before the change         entries at a time
//!     its entries, at once               └───────► SnapshotBuffer ◄─────────┘
//!                                                        │ 64 KiB at a time
//!                                         Snapshot::write, on a thread of its own
//! ```
//!
//! An *owed* entry existed when the snapshot began and has not been emitted yet. A thread that emits an entry holds its
//! slot, so each entry is emitted once, with the value that it had when the snapshot began: every change passes
//! [`Change::preserve`] first (`slots/slot.rs`).
//!
//! Several snapshots can be in progress at once. Their sets of slots are disjoint, so a slot belongs to at most one of
//! them. A slot owes its entries to the snapshot that covers it if the slot's stamp is older than the stamp of the
//! snapshot. A slot whose stamp equals the keyspace's stamp owes nothing. While no snapshot is in progress, changes pay
//! only for this comparison. After a snapshot has begun, the first change in a slot looks for the snapshot that covers
//! the slot. If there is none, it updates the slot's stamp.
//!
//! The first access to a slot that owes entries counts them. From then on, the slot's [`SlotProgress`] records how far
//! a walker has come in the order of hashes, and which keys after that position no longer owe anything. Slots with few
//! small entries are emitted as a whole at the first access.
//!
//! At the end the counts must agree. Each slot must have emitted as many entries as it had when the snapshot began, and
//! the total must be the number of keys at that time. Otherwise the snapshot fails. A server cannot load a file that
//! contains a key twice, and a file that lacks a key is worse.
//!
//! | part | about |
//! |---|---|
//! | `change` | the hook before every change |
//! | `progress` | the state of slots that have emitted some of the entries they owe |
//! | `walk` | walkers, between commands |
//! | `output` | from entries to the writer: encoded, or shared if they are large |

mod change;
mod output;
mod progress;
mod walk;

pub(super) use change::Change;
use output::{Piece, SnapshotQueue};
pub(crate) use output::{SnapshotBuffers, notes};
use progress::{DetachedTable, SlotProgresses};
use walk::WalkOrder;
pub use walk::{SnapshotWalker, WalkOutcome};

use super::keys::lock_blocking;
use super::{DbIndex, Keyspace, SlotGuard, SlotId, SlotSet};
use crate::env::Env;
use brisk_persist::rdb::RdbWriter;
use brisk_structures::poison::EvenPoisoned;
use std::io::{self, Write};
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// Walkers wait while more bytes than this are encoded but not yet written, or more than a quarter of the limit.
const WALKED_BYTES_MAX: u64 = 8 << 20;
/// The writer is behind while more bytes than this are encoded but not yet written, or more than half of the limit.
/// Then it does not compress.
const QUEUE_BYTES_MAX: u64 = 64 << 20;
/// Interval at which the waiting writer checks whether the snapshot was given up.
const WRITER_WAIT: Duration = Duration::from_millis(100);

/// The snapshots of a keyspace that are in progress. Their sets of slots are disjoint.
#[derive(Default)]
pub(super) struct Snapshots {
    stamp: Stamp,
    active: Mutex<Vec<Arc<Snapshot>>>,
    /// Number of times that all databases were flushed together.
    flushes: AtomicU64,
}

/// Slots with this stamp owe nothing. It is read with every change and written once per snapshot,
/// so it has its own cache line.
#[derive(Default)]
#[repr(align(64))]
struct Stamp {
    stamp: AtomicU32,
    is_emitting: AtomicBool,
}

impl Snapshots {
    #[inline(always)]
    fn stamp(&self) -> u32 {
        // The stamp is written only during quiescence, which orders the accesses.
        self.stamp.stamp.load(Ordering::Relaxed)
    }

    /// The snapshot that this slot owes its entries to. `env` is the thread's own.
    fn owed(&self, env: &Env, slot: SlotId, guard: &SlotGuard<'_>) -> Option<Arc<Snapshot>> {
        let snapshot = self.covering(env, slot)?;
        snapshot.is_owed_by(guard).then_some(snapshot)
    }

    /// The snapshot in progress that covers this slot. `env` is the thread's own.
    fn covering(&self, env: &Env, slot: SlotId) -> Option<Arc<Snapshot>> {
        let mut buffers = env.snapshot_buffers.borrow_mut();
        buffers.follow(self);
        buffers.snapshots().find(|snapshot| snapshot.slots.contains(slot)).cloned()
    }

    /// The snapshots in progress.
    fn active(&self) -> Vec<Arc<Snapshot>> {
        self.active.lock().even_poisoned().clone()
    }
}

/// How keys are written.
#[derive(Debug, Clone, Copy)]
pub struct SnapshotOptions {
    /// True if the writer compresses strings, unless it falls behind.
    pub compresses: bool,
    /// Maximum number of bytes that are encoded but not yet written. If there are more, the snapshot
    /// is given up.
    pub queue_bytes_max: u64,
    /// Estimated size of the dataset, to estimate the size of tables that are flushed during the snapshot.
    pub dataset_bytes: u64,
}

/// A snapshot in progress.
pub struct Snapshot {
    stamp: u32,
    slots: SlotSet,
    options: SnapshotOptions,
    /// For each database, the number of keys and the number of keys with a TTL. If the snapshot covers only some of
    /// the slots, the second number is an upper bound.
    sizes: Vec<(u64, u64)>,
    progresses: SlotProgresses,
    /// Tables that were flushed before they were emitted.
    detached: Mutex<Vec<DetachedTable>>,
    detached_bytes: AtomicU64,
    /// The order in which walkers get slots.
    order: Mutex<WalkOrder>,
    queue: SnapshotQueue,
    /// Number of threads with emitted entries that are not in the queue.
    open_buffers: AtomicUsize,
    /// Number of keys put into the queue, and number of keys written.
    emitted: AtomicU64,
    written: AtomicU64,
    /// True if the snapshot was given up because changes came faster than the writer.
    ran_full: AtomicBool,
    /// The reason why the snapshot was given up.
    failure: Mutex<Option<String>>,
}

impl Keyspace {
    /// Begins a snapshot of the entries of `slots` as they are now. `None` if a snapshot in progress covers one of
    /// these slots. Call it only while all other threads with an [`Env`] are quiesced.
    ///
    /// O(databases × threads) for all slots, O(databases × slots) for some of them.
    pub fn begin_snapshot(
        &self,
        slots: SlotSet,
        options: SnapshotOptions,
    ) -> Option<Arc<Snapshot>> {
        let mut active = self.snapshots.active.lock().even_poisoned();
        if active.iter().any(|snapshot| !snapshot.slots.is_disjoint(&slots)) {
            return None;
        }
        let sizes = self.sizes_of(&slots);
        let stamp = self.snapshots.stamp().wrapping_add(1);
        self.snapshots.stamp.stamp.store(stamp, Ordering::Relaxed);
        let snapshot = Arc::new(Snapshot {
            stamp,
            slots,
            options,
            sizes,
            progresses: SlotProgresses::default(),
            detached: Mutex::default(),
            detached_bytes: AtomicU64::new(0),
            order: Mutex::default(),
            queue: SnapshotQueue::default(),
            open_buffers: AtomicUsize::new(0),
            emitted: AtomicU64::new(0),
            written: AtomicU64::new(0),
            ran_full: AtomicBool::new(false),
            failure: Mutex::default(),
        });
        active.push(Arc::clone(&snapshot));
        self.snapshots.stamp.is_emitting.store(true, Ordering::SeqCst);
        Some(snapshot)
    }

    /// For each database, the number of keys in these slots, and the number of those with a TTL or an upper bound of
    /// it.
    fn sizes_of(&self, slots: &SlotSet) -> Vec<(u64, u64)> {
        let totals = self.totals();
        let databases = totals.databases.iter().map(|db| (db.keys, db.with_deadline));
        if slots.is_all() {
            return databases.collect();
        }
        let indexes = DbIndex::all(self.database_count());
        let keys = |db| {
            let database = self.database_if_used(db);
            let occupied = database.into_iter().flat_map(|database| {
                let slots = database.occupied_from(0).filter(|slot| slots.contains(*slot));
                slots.map(|slot| lock_blocking(database, slot).table().len() as u64)
            });
            occupied.sum::<u64>()
        };
        let sizes = indexes.map(keys).zip(databases);
        sizes.map(|(keys, (_, with_deadline))| (keys, with_deadline.min(keys))).collect()
    }

    /// Reports whether a snapshot is in progress.
    #[inline]
    pub fn is_emitting(&self) -> bool {
        self.snapshots.stamp.is_emitting.load(Ordering::Relaxed)
    }

    /// Number of times that all databases were flushed together. A snapshot that began before a
    /// flush is useless.
    pub fn flushes(&self) -> u64 {
        self.snapshots.flushes.load(Ordering::Relaxed)
    }

    /// Notes that all databases are flushed together.
    pub fn note_flush_of_all(&self) {
        self.snapshots.flushes.fetch_add(1, Ordering::Relaxed);
    }

    /// Ends a snapshot that was written or given up. No thread emits entries for it afterwards.
    pub fn end_snapshot(&self, snapshot: &Snapshot) {
        let mut active = self.snapshots.active.lock().even_poisoned();
        active.retain(|active| active.stamp != snapshot.stamp);
        self.snapshots.stamp.is_emitting.store(!active.is_empty(), Ordering::SeqCst);
        drop(active);
        snapshot.queue.close();
        // Frees the memory of the tables now, even if other references to the snapshot exist.
        snapshot.detached.lock().even_poisoned().clear();
        snapshot.detached_bytes.store(0, Ordering::Relaxed);
        snapshot.progresses.clear();
    }

    /// Removes the table from a slot that is being flushed. The table is freed, unless a snapshot
    /// still needs it. O(1).
    pub(super) fn hand_over(
        &self,
        env: &Env,
        place: super::DbSlot,
        guard: &mut SlotGuard<'_>,
    ) -> Option<super::Table> {
        let stamp = self.snapshots.stamp();
        if guard.stamp() != stamp {
            let owed = self.snapshots.owed(env, place.1, guard);
            guard.set_stamp(stamp);
            if let Some(snapshot) = owed {
                let keys = guard.table().len();
                let progress = snapshot.progresses.take_or_begin(place, keys);
                let table = guard.take_table();
                let bytes = keys as u64 * (snapshot.options.dataset_bytes / snapshot.keys().max(1));
                snapshot.detached_bytes.fetch_add(bytes, Ordering::Relaxed);
                snapshot.detached.lock().even_poisoned().push(DetachedTable {
                    progress,
                    table,
                    bytes,
                });
                return None;
            }
        }
        Some(guard.take_table())
    }

    /// Exchanges the tables of two databases' slots, with the entries they owe. O(1).
    pub(super) fn exchange(
        &self,
        env: &Env,
        dbs: [DbIndex; 2],
        slot: super::SlotId,
        [one, other]: [&mut SlotGuard<'_>; 2],
    ) {
        let stamp = self.snapshots.stamp();
        if (one.stamp(), other.stamp()) != (stamp, stamp)
            && let Some(snapshot) = self.snapshots.covering(env, slot)
        {
            let places = dbs.map(|db| (db, slot));
            let mut owed = [(&*one, places[0]), (&*other, places[1])].map(|(guard, place)| {
                let owes = snapshot.is_owed_by(guard);
                owes.then(|| snapshot.progresses.take_or_begin(place, guard.table().len()))
            });
            owed.reverse();
            for (progress, place) in owed.into_iter().zip(places) {
                progress.into_iter().for_each(|progress| snapshot.progresses.put(place, progress));
            }
            let stamps = (one.stamp(), other.stamp());
            one.set_stamp(stamps.1);
            other.set_stamp(stamps.0);
        }
        one.exchange_tables(other);
    }
}

impl Snapshot {
    /// Reports whether a slot of the set still owes entries to this snapshot, because the slot's stamp is older than
    /// the snapshot's.
    fn is_owed_by(&self, guard: &SlotGuard<'_>) -> bool {
        // Stamps wrap around, but no slot's stamp is 2^31 snapshots older than another's.
        self.stamp.wrapping_sub(guard.stamp()).cast_signed() > 0
    }

    /// Number of keys that existed when the snapshot began.
    pub fn keys(&self) -> u64 {
        self.sizes.iter().map(|(keys, _)| keys).sum()
    }

    /// Number of keys written so far.
    pub fn keys_written(&self) -> u64 {
        self.written.load(Ordering::Relaxed)
    }

    /// Estimated memory of the snapshot in bytes, without the dataset: encoded and unwritten bytes,
    /// values and tables that only the snapshot references, and the state of partly emitted slots.
    pub fn bytes(&self) -> u64 {
        let detached = self.detached_bytes.load(Ordering::Relaxed);
        self.queue.bytes_kept() + self.progresses.bytes() + detached
    }

    /// The maximum of [`Snapshot::bytes`] so far, without tables.
    pub fn bytes_peak(&self) -> u64 {
        self.queue.peak().max(self.progresses.bytes())
    }

    /// Gives up the snapshot. The first reason counts.
    pub fn give_up(&self, reason: &str) {
        self.failure.lock().even_poisoned().get_or_insert_with(|| reason.to_owned());
        self.queue.close();
    }

    /// Reports whether the snapshot was given up because changes came faster than the writer.
    pub fn ran_full(&self) -> bool {
        self.ran_full.load(Ordering::Relaxed)
    }

    /// Reports whether the snapshot was given up or completely written.
    pub fn is_over(&self) -> bool {
        self.queue.is_closed()
    }

    /// Writes the entries as they are emitted, until all are written. Runs on a thread for which no
    /// walker waits. `may_compress` returns false if compressing the next entries would take longer than writing more
    /// bytes. `wrote` is called after every few keys. O(all data).
    ///
    /// # Errors
    /// Returns the writer's error, or the reason why the snapshot was given up. The caller then ends the snapshot.
    pub fn write<W: Write>(
        &self,
        out: &mut RdbWriter<W>,
        may_compress: impl Fn() -> bool,
        mut wrote: impl FnMut(u64),
    ) -> io::Result<()> {
        let mut db = None;
        let databases = DbIndex::all(self.sizes.len() as u32);
        for (own, (keys, with_deadline)) in databases.zip(&self.sizes) {
            if *keys > 0 {
                db = Some(own);
                out.select_db(u64::from(own.number()));
                out.resize_db(*keys, *with_deadline);
            }
        }
        while self.keys_written() < self.keys() {
            for piece in self.queue.take(WRITER_WAIT) {
                let weight = piece.weight();
                let compresses =
                    self.options.compresses && !self.is_writer_behind() && may_compress();
                out.set_compression(compresses);
                let written = self.write_piece(piece, &mut db, out);
                self.queue.forget(&weight);
                self.written.fetch_add(written, Ordering::Relaxed);
                out.check()?;
                wrote(written);
                self.check()?;
            }
            self.check()?;
        }
        if self.keys_written() != self.keys() {
            self.give_up("internal error: keys were emitted twice");
        }
        self.check()?;
        out.check()
    }

    /// Returns the bytes that are encoded but not yet written, divided by the number at which walkers begin to wait.
    /// Large values count as a fixed number of bytes.
    pub fn waiting(&self) -> f64 {
        self.queue.bytes() as f64 / self.walked_bytes_max() as f64
    }

    /// True if walkers must wait for the writer.
    fn is_congested(&self) -> bool {
        self.queue.bytes_held() > self.walked_bytes_max()
    }

    fn walked_bytes_max(&self) -> u64 {
        WALKED_BYTES_MAX.min(self.options.queue_bytes_max / 4)
    }

    /// True if commands emit entries faster than the writer writes them. Walkers already wait.
    pub fn is_writer_behind(&self) -> bool {
        self.queue.bytes() > QUEUE_BYTES_MAX.min(self.options.queue_bytes_max / 2)
    }

    /// Returns the number of keys.
    fn write_piece<W: Write>(
        &self,
        piece: Piece,
        db: &mut Option<DbIndex>,
        out: &mut RdbWriter<W>,
    ) -> u64 {
        if db.replace(piece.db()) != Some(piece.db()) {
            out.select_db(u64::from(piece.db().number()));
        }
        piece.write(out, &self.queue)
    }

    fn check(&self) -> io::Result<()> {
        match self.failure.lock().even_poisoned().as_ref() {
            Some(reason) => Err(io::Error::other(reason.clone())),
            None => Ok(()),
        }
    }

    /// Called when a slot has emitted all entries that it owed. Verifies their number.
    fn finish(&self, progress: &progress::SlotProgress) {
        if progress.emitted != progress.count {
            self.give_up("internal error: a slot has not emitted what it held");
        }
    }
}

#[cfg(test)]
mod tests;
