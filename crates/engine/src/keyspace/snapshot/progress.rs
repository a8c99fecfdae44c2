//! The state of slots that have emitted some of the entries they owe.

use crate::keyspace::{DbIndex, DbSlot, Table};
use brisk_structures::poison::EvenPoisoned;
use brisk_structures::table::scan_position;
use std::collections::{HashMap, HashSet};
use std::hash::{BuildHasherDefault, Hasher};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

/// Number of locks. Threads that work on different slots mostly take different locks.
const SHARDS: usize = 64;
/// Estimated bytes of a hash in a set.
const BYTES_PER_HASH: u64 = 16;

/// A hasher that uses the hashes of keys, which are already well distributed.
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
        // The high bits of a hash are its position in the table. The keys that a walk has not reached
        // differ little in these bits, so they are rotated away from the top bits, which `HashSet`
        // uses as a tag.
        self.0 = hash.rotate_left(32);
    }
}

/// The progress of a slot, or of its table, that has been accessed since the snapshot began.
pub(super) struct SlotProgress {
    /// The slot's database when the snapshot began.
    pub(super) origin: DbIndex,
    /// Number of keys when the snapshot began, and number of emitted keys.
    pub(super) count: usize,
    pub(super) emitted: usize,
    /// Walkers have emitted the keys before this cursor, in the order of a scan.
    pub(super) cursor: u32,
    /// Hashes of the keys at or after the cursor that owe nothing: emitted before a change, or
    /// created after the snapshot began. If two keys of one slot had equal hashes, the count at the
    /// end would be wrong, which is detected.
    pub(super) settled: HashSet<u64, BuildHasherDefault<IdentityHasher>>,
}

impl SlotProgress {
    pub(super) fn new(origin: DbIndex, count: usize) -> Box<SlotProgress> {
        Box::new(SlotProgress { origin, count, emitted: 0, cursor: 0, settled: HashSet::default() })
    }

    /// Marks a key as settled. Returns true if the key's entry, if there is one, was still owed.
    pub(super) fn settle(&mut self, hash: u64) -> bool {
        scan_position(hash) >= self.cursor && self.settled.insert(hash)
    }
}

/// A flushed slot's table that still owes entries.
pub(super) struct DetachedTable {
    pub(super) progress: Box<SlotProgress>,
    pub(super) table: Table,
    /// Its estimated size.
    pub(super) bytes: u64,
}

type Shard = HashMap<DbSlot, Box<SlotProgress>>;

/// The progress of all slots. A thread that takes or puts back the progress of a slot holds the
/// slot.
pub(super) struct SlotProgresses {
    shards: [Mutex<Shard>; SHARDS],
    /// Estimated number of hashes in the sets.
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

    /// Takes the progress of a slot; `None` if the slot has none.
    pub(super) fn take(&self, place: DbSlot) -> Option<Box<SlotProgress>> {
        let progress = self.shard(place).lock().even_poisoned().remove(&place)?;
        self.hashes.fetch_sub(progress.settled.len() as u64, Ordering::Relaxed);
        Some(progress)
    }

    /// Takes the progress of a slot, or begins it for a slot with `count` keys at its first access.
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

    /// Estimated bytes of memory.
    pub(super) fn bytes(&self) -> u64 {
        self.hashes.load(Ordering::Relaxed) * BYTES_PER_HASH
    }
}
