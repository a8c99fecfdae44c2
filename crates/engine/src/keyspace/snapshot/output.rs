//! From entries to the writer. The holder of the slot encodes them, or shares them if they are
//! large.

use super::{Snapshot, Snapshots};
use crate::env::Env;
use crate::keyspace::{DbIndex, EntryRef, evict};
use crate::types::Value;
use crate::types::dump::Dumpable;
use brisk_persist::rdb::{EncodedEntries, Encoder, KeyMetadata, RdbWriter};
use brisk_structures::poison::EvenPoisoned;
use std::io::Write;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex};
use std::time::Duration;

/// Maximum size in bytes of a value that is encoded while its slot is held. Larger values are
/// shared with the writer.
const ENCODED_BYTES_MAX: usize = 16 << 10;
/// Encoded entries are handed to the writer when they reach this size.
const PIECE_BYTES: usize = 64 << 10;
/// Maximum number of written buffers that are kept for further entries. Fresh memory costs more than encoding into it.
const SPARE_BUFFERS_MAX: usize = 16;
/// The maximum size of a spare buffer. A piece of short strings needs about twice [`PIECE_BYTES`].
const SPARE_BYTES_MAX: usize = 4 * PIECE_BYTES;
/// Number of bytes that a shared value counts as in the queue, regardless of its size. Its parts
/// belong to the dataset until a command changes them.
const SHARED_BYTES: u64 = 64 << 10;
/// Maximum number of elements of a value whose size is computed exactly. The sizes of values with
/// more elements are estimated, so that their slot is held only briefly.
const ELEMENTS_COUNTED_MAX: usize = 10_000;
/// Bytes per element in these estimates.
const ELEMENT_BYTES: usize = 64;

/// The metadata to store with a key. It includes the access clock if the eviction policy uses it.
pub(crate) fn notes(entry: &EntryRef<'_>, env: &Env) -> KeyMetadata {
    let policy = env.settings.eviction;
    let clock = entry.clock();
    KeyMetadata {
        expire_at_ms: entry.deadline().map(|at| at.0.cast_signed()),
        idle_seconds: policy.is_lru().then(|| evict::idle_ms(env, clock) / 1000),
        frequency: policy.is_lfu().then(|| evict::frequency(env, clock) as u8),
    }
}

/// The writer's input: entries of one database.
pub(super) enum Piece {
    Encoded { db: DbIndex, keys: u64, entries: EncodedEntries },
    Shared { db: DbIndex, key: Box<[u8]>, notes: KeyMetadata, value: Value, kept: SharedBytes },
}

/// Memory of a shared value.
#[derive(Clone, Copy)]
pub(super) struct SharedBytes {
    bytes: u64,
    /// The dataset no longer holds these bytes; their memory is freed after they are written.
    is_last: bool,
}

impl Piece {
    pub(super) fn db(&self) -> DbIndex {
        match self {
            Piece::Encoded { db, .. } | Piece::Shared { db, .. } => *db,
        }
    }

    fn bytes(&self) -> u64 {
        match self {
            Piece::Encoded { entries, .. } => entries.allocated_bytes() as u64,
            Piece::Shared { .. } => SHARED_BYTES,
        }
    }

    fn kept(&self) -> Option<SharedBytes> {
        match self {
            Piece::Encoded { .. } => None,
            Piece::Shared { kept, .. } => Some(*kept),
        }
    }

    pub(super) fn weight(&self) -> PieceWeight {
        PieceWeight { bytes: self.bytes(), kept: self.kept() }
    }

    fn keys(&self) -> u64 {
        match self {
            Piece::Encoded { keys, .. } => *keys,
            Piece::Shared { .. } => 1,
        }
    }

    /// Returns the number of keys.
    pub(super) fn write<W: Write>(self, out: &mut RdbWriter<W>, queue: &SnapshotQueue) -> u64 {
        let keys = self.keys();
        match self {
            Piece::Encoded { entries, .. } => {
                out.encoded(&entries);
                queue.keep_buffer(entries);
            }
            Piece::Shared { key, notes, value, .. } => {
                let value = Dumpable::of_value(&value);
                value.write(out.begin_entry(value.kind(), &key, notes));
            }
        }
        keys
    }
}

/// The pieces that wait for the writer.
#[derive(Default)]
pub(super) struct SnapshotQueue {
    pieces: Mutex<Vec<Piece>>,
    /// Signals new pieces, or that the queue was closed.
    changed: Condvar,
    /// Bytes of the pieces that have not been written yet.
    bytes: AtomicU64,
    /// Bytes of the shared values in these pieces, and of those values that only the queue
    /// references.
    shared_bytes: AtomicU64,
    last_bytes: AtomicU64,
    /// The maximum of [`SnapshotQueue::bytes_kept`] so far.
    peak: AtomicU64,
    closed: AtomicBool,
    /// Empty buffers.
    spare: Mutex<Vec<EncodedEntries>>,
}

/// The amounts to subtract after a piece was written.
pub(super) struct PieceWeight {
    bytes: u64,
    kept: Option<SharedBytes>,
}

impl SnapshotQueue {
    fn put(&self, piece: Piece) {
        self.bytes.fetch_add(piece.bytes(), Ordering::Relaxed);
        if let Some(kept) = piece.kept() {
            self.shared_bytes.fetch_add(kept.bytes, Ordering::Relaxed);
            let last = if kept.is_last { kept.bytes } else { 0 };
            self.last_bytes.fetch_add(last, Ordering::Relaxed);
        }
        self.peak.fetch_max(self.bytes_kept(), Ordering::Relaxed);
        let mut pieces = self.pieces.lock().even_poisoned();
        if !self.is_closed() {
            pieces.push(piece);
            self.changed.notify_one();
        }
    }

    /// Keeps the memory of written entries, unless a long key made it large: the memory counts as waiting as soon as it
    /// is used again.
    fn keep_buffer(&self, mut entries: EncodedEntries) {
        if !(PIECE_BYTES..=SPARE_BYTES_MAX).contains(&entries.allocated_bytes()) {
            return;
        }
        entries.clear();
        let mut spare = self.spare.lock().even_poisoned();
        if spare.len() < SPARE_BUFFERS_MAX && !self.is_closed() {
            spare.push(entries);
        }
    }

    /// An empty buffer for entries.
    fn buffer(&self) -> EncodedEntries {
        let spare = self.spare.lock().even_poisoned().pop();
        spare.unwrap_or_else(|| EncodedEntries::with_capacity(PIECE_BYTES + PIECE_BYTES / 8))
    }

    /// Takes all pieces. Returns none after the timeout `wait`.
    pub(super) fn take(&self, wait: Duration) -> Vec<Piece> {
        let pieces = self.pieces.lock().even_poisoned();
        let waits = |pieces: &mut Vec<Piece>| pieces.is_empty() && !self.is_closed();
        let waited = self.changed.wait_timeout_while(pieces, wait, waits);
        std::mem::take(&mut *waited.even_poisoned().0)
    }

    /// Called when the writer has finished a piece of this weight.
    pub(super) fn forget(&self, weight: &PieceWeight) {
        self.bytes.fetch_sub(weight.bytes, Ordering::Relaxed);
        if let Some(kept) = weight.kept {
            self.shared_bytes.fetch_sub(kept.bytes, Ordering::Relaxed);
            let last = if kept.is_last { kept.bytes } else { 0 };
            self.last_bytes.fetch_sub(last, Ordering::Relaxed);
        }
    }

    /// Bytes that are encoded but not written. A shared value counts as a fixed amount.
    pub(super) fn bytes(&self) -> u64 {
        if self.is_closed() { 0 } else { self.bytes.load(Ordering::Relaxed) }
    }

    /// Like [`SnapshotQueue::bytes`], plus the sizes of all shared values. Unchanged values belong to
    /// the dataset, but evicting them would free nothing.
    pub(super) fn bytes_held(&self) -> u64 {
        self.bytes() + self.shared_bytes.load(Ordering::Relaxed)
    }

    /// Bytes of memory that only the queue references.
    pub(super) fn bytes_kept(&self) -> u64 {
        if self.is_closed() {
            return 0;
        }
        self.bytes.load(Ordering::Relaxed) + self.last_bytes.load(Ordering::Relaxed)
    }

    pub(super) fn peak(&self) -> u64 {
        self.peak.load(Ordering::Relaxed)
    }

    /// Closes the queue and drops its pieces, because the writer has stopped or will stop.
    pub(super) fn close(&self) {
        let mut pieces = self.pieces.lock().even_poisoned();
        self.closed.store(true, Ordering::Relaxed);
        drop(std::mem::take(&mut *pieces));
        drop(pieces);
        self.spare.lock().even_poisoned().clear();
        self.changed.notify_all();
    }

    pub(super) fn is_closed(&self) -> bool {
        self.closed.load(Ordering::Relaxed)
    }
}

/// Entries that a thread has encoded but not yet handed to the writers: one [`SnapshotBuffer`] for each snapshot in
/// progress.
#[derive(Default)]
pub(crate) struct SnapshotBuffers {
    /// The stamp of the keyspace when the list was made.
    stamp: u32,
    buffers: Vec<SnapshotBuffer>,
}

impl SnapshotBuffers {
    /// Updates the list of snapshots in progress. Drops entries that were encoded for a snapshot that is over.
    pub(super) fn follow(&mut self, snapshots: &Snapshots) {
        if self.stamp == snapshots.stamp()
            && !self.buffers.iter().any(|buffer| buffer.snapshot.is_over())
        {
            return;
        }
        self.stamp = snapshots.stamp();
        self.buffers.retain(|buffer| !buffer.snapshot.is_over());
        for snapshot in snapshots.active() {
            if !snapshot.is_over() && !self.snapshots().any(|own| Arc::ptr_eq(own, &snapshot)) {
                self.buffers.push(SnapshotBuffer::new(snapshot));
            }
        }
    }

    pub(super) fn snapshots(&self) -> impl Iterator<Item = &Arc<Snapshot>> {
        self.buffers.iter().map(|buffer| &buffer.snapshot)
    }

    pub(super) fn of(&mut self, snapshot: &Arc<Snapshot>) -> &mut SnapshotBuffer {
        let known = self.buffers.iter().position(|buffer| Arc::ptr_eq(&buffer.snapshot, snapshot));
        let index = known.unwrap_or_else(|| {
            self.buffers.push(SnapshotBuffer::new(Arc::clone(snapshot)));
            self.buffers.len() - 1
        });
        &mut self.buffers[index]
    }

    /// Hands all encoded entries to the writers.
    pub(super) fn hand_in(&mut self) {
        self.buffers.iter_mut().for_each(SnapshotBuffer::hand_in);
    }
}

/// Entries that a thread has encoded but not yet handed to the writer of the snapshot.
pub(super) struct SnapshotBuffer {
    snapshot: Arc<Snapshot>,
    db: DbIndex,
    keys: u64,
    encoder: Encoder<EncodedEntries>,
}

impl SnapshotBuffer {
    fn new(snapshot: Arc<Snapshot>) -> SnapshotBuffer {
        let mut encoder = Encoder::new(EncodedEntries::default());
        // The writer compresses, because this thread serves clients.
        if snapshot.options.compresses {
            encoder.defer_compression();
        } else {
            encoder.set_compression(false);
        }
        SnapshotBuffer { snapshot, db: DbIndex::default(), keys: 0, encoder }
    }

    /// Number of encoded bytes.
    pub(super) fn len(&mut self) -> usize {
        self.encoder.sink().len()
    }

    /// Emits an entry of a held slot. `leaves` is true if the entry is about to leave the dataset.
    pub(super) fn add(&mut self, db: DbIndex, entry: &EntryRef<'_>, env: &Env, leaves: bool) {
        let notes = notes(entry, env);
        if let Some(value) = entry.object().filter(|value| is_large(value)) {
            let kept = SharedBytes { bytes: about_bytes(value), is_last: leaves };
            let (key, value) = (Box::from(entry.key()), value.clone());
            return self.put(Piece::Shared { db, key, notes, value, kept });
        }
        if self.db != db {
            self.hand_in();
            self.db = db;
        }
        if self.keys == 0 {
            self.snapshot.open_buffers.fetch_add(1, Ordering::SeqCst);
        }
        self.keys += 1;
        let value = entry.dumpable();
        self.encoder.begin_entry(value.kind(), entry.key(), notes);
        value.write(&mut self.encoder);
        if self.len() >= PIECE_BYTES {
            self.hand_in();
        }
    }

    /// Hands the encoded bytes to the writer.
    pub(super) fn hand_in(&mut self) {
        if self.keys == 0 {
            return;
        }
        let keys = std::mem::take(&mut self.keys);
        let entries = if self.len() < PIECE_BYTES / 2 {
            // At the end of a turn, most of the buffer may be unused. A copy of the right size is
            // queued, so that the queue does not consist mostly of unused memory.
            self.encoder.sink().take_compact()
        } else {
            std::mem::replace(self.encoder.sink(), self.snapshot.queue.buffer())
        };
        self.put(Piece::Encoded { db: self.db, keys, entries });
        // This comes after queuing the piece, so a thread that sees no open buffer finds the piece in the queue or
        // already counted.
        self.snapshot.open_buffers.fetch_sub(1, Ordering::SeqCst);
    }

    fn put(&self, piece: Piece) {
        let snapshot = &self.snapshot;
        snapshot.emitted.fetch_add(piece.keys(), Ordering::SeqCst);
        snapshot.queue.put(piece);
        if snapshot.queue.bytes() > snapshot.options.queue_bytes_max {
            snapshot.ran_full.store(true, Ordering::Relaxed);
            snapshot.give_up("the disk, or a replica, is too slow: changes filled the memory for entries not written");
        }
    }
}

/// Estimated bytes of memory of a large value.
fn about_bytes(value: &Value) -> u64 {
    let bytes = match value {
        Value::Str(data) => data.len(),
        _ if value.steps() <= ELEMENTS_COUNTED_MAX => value.allocated_bytes(),
        _ => value.steps().saturating_mul(ELEMENT_BYTES),
    };
    bytes as u64
}

fn is_large(value: &Value) -> bool {
    !value.is_light() || value.allocated_bytes() > ENCODED_BYTES_MAX
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_buffers_of_the_usual_size_are_used_again() {
        let queue = SnapshotQueue::default();
        for bytes in [PIECE_BYTES / 2, 2 * PIECE_BYTES, 2 * SPARE_BYTES_MAX] {
            queue.keep_buffer(EncodedEntries::with_capacity(bytes));
        }
        let kept: Vec<usize> = queue
            .spare
            .lock()
            .even_poisoned()
            .iter()
            .map(EncodedEntries::allocated_bytes)
            .collect();
        assert_eq!(kept.len(), 1, "{kept:?}");
        assert!((PIECE_BYTES..=SPARE_BYTES_MAX).contains(&kept[0]), "{kept:?}");
    }
}
