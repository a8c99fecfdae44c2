//! What is known of slots that have emitted a part of what they owe.

use crate::keyspace::{DbIndex, DbSlot, Table};
use brisk_structures::poison::EvenPoisoned;
use brisk_structures::table::scan_position;
use std::collections::{HashMap, HashSet};
use std::hash::{BuildHasherDefault, Hasher};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

/// Locks, of which threads on different slots mostly take different ones.
const SHARDS: usize = 64;
/// Bytes that a hash in a set takes, about.
const BYTES_PER_HASH: u64 = 16;

/// Hashes of keys are spread already.
#[derive(Default)]
pub(super) struct IdentityHasher(u64);

impl Hasher for IdentityHasher {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.0 = self.0.rotate_left(8) ^ u64::from(*byte);
        }
    }

    fn write_u64(&mut self, hash: u64) {
        // The positions of a table's keys are the high bits, of which a walk leaves few different.
        self.0 = hash.rotate_left(32);
    }
}

/// A slot, or its table, that has been touched since the cut.
pub(super) struct SlotProgress {
    /// The database at the cut.
    pub(super) origin: DbIndex,
    /// Keys at the cut, and those that were emitted.
    pub(super) count: usize,
    pub(super) emitted: usize,
    /// Walkers have emitted what stands before, in the order of a scan.
    pub(super) cursor: u32,
    /// Keys at or behind the cursor that owe nothing: emitted before a change, or born after the
    /// cut. By their hashes: two keys of one slot with the same would show as a wrong
    /// number at the end.
    pub(super) settled: HashSet<u64, BuildHasherDefault<IdentityHasher>>,
}

impl SlotProgress {
    pub(super) fn new(origin: DbIndex, count: usize) -> Box<SlotProgress> {
        Box::new(SlotProgress { origin, count, emitted: 0, cursor: 0, settled: HashSet::default() })
    }

    /// Whether a key owes its entry, if it has one. It does not from now on.
    pub(super) fn settle(&mut self, hash: u64) -> bool {
        scan_position(hash) >= self.cursor && self.settled.insert(hash)
    }
}

/// A flushed slot's table that still owes entries.
pub(super) struct DetachedTable {
    pub(super) progress: Box<SlotProgress>,
    pub(super) table: Table,
    /// About what it takes.
    pub(super) bytes: u64,
}

type Shard = HashMap<DbSlot, Box<SlotProgress>>;

/// All of them, by place. Who takes or puts one holds its slot.
pub(super) struct SlotProgresses {
    shards: [Mutex<Shard>; SHARDS],
    /// Hashes in their sets, about.
    hashes: AtomicU64,
}

impl Default for SlotProgresses {
    fn default() -> SlotProgresses {
        SlotProgresses {
            shards: std::array::from_fn(|_| Mutex::default()),
            hashes: AtomicU64::new(0),
        }
    }
}

impl SlotProgresses {
    fn shard(&self, place: DbSlot) -> &Mutex<Shard> {
        &self.shards[place.1.index() % SHARDS]
    }

    /// The progress of a slot that has some.
    pub(super) fn take(&self, place: DbSlot) -> Option<Box<SlotProgress>> {
        let progress = self.shard(place).lock().even_poisoned().remove(&place)?;
        self.hashes.fetch_sub(progress.settled.len() as u64, Ordering::Relaxed);
        Some(progress)
    }

    /// The same, or that of a slot with `count` keys that is touched for the first time.
    pub(super) fn take_or_begin(&self, place: DbSlot, count: usize) -> Box<SlotProgress> {
        self.take(place).unwrap_or_else(|| SlotProgress::new(place.0, count))
    }

    pub(super) fn put(&self, place: DbSlot, progress: Box<SlotProgress>) {
        self.hashes.fetch_add(progress.settled.len() as u64, Ordering::Relaxed);
        self.shard(place).lock().even_poisoned().insert(place, progress);
    }

    pub(super) fn clear(&self) {
        self.shards.iter().for_each(|shard| *shard.lock().even_poisoned() = Shard::default());
        self.hashes.store(0, Ordering::Relaxed);
    }

    /// Bytes of memory, about.
    pub(super) fn bytes(&self) -> u64 {
        self.hashes.load(Ordering::Relaxed) * BYTES_PER_HASH
    }
}
