//! From entries to the writer: encoded by whoever holds the slot, or shared if they are large.

use super::Cut;
use crate::env::Env;
use crate::keyspace::{DbIndex, EntryRef, evict};
use crate::types::Value;
use crate::types::dump::Dumpable;
use brisk_persist::rdb::{Encoder, KeyMetadata, RdbWriter};
use brisk_structures::poison::EvenPoisoned;
use std::io::Write;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex};
use std::time::Duration;

/// Values above are shared with the writer rather than encoded while their slot is held.
const ENCODED_BYTES_MAX: usize = 16 << 10;
/// Encoded entries are handed to the writer at this size.
const PIECE_BYTES: usize = 64 << 10;
/// What a shared value counts in the queue: its parts are the dataset's until
/// a command changes them.
const SHARED_BYTES: u64 = 64 << 10;
/// The sizes of values with more elements are estimated, which their slot does not wait for.
const ELEMENTS_COUNTED_MAX: usize = 10_000;
/// Bytes of an element of those.
const ELEMENT_BYTES: usize = 64;

/// What eviction goes by is kept if the policy counts it.
pub(crate) fn notes(entry: &EntryRef<'_>, env: &Env) -> KeyMetadata {
    let policy = env.settings.eviction;
    let clock = entry.clock();
    KeyMetadata {
        expire_at_ms: entry.deadline().map(|at| at.0.cast_signed()),
        idle_seconds: policy.is_lru().then(|| evict::idle_ms(env, clock) / 1000),
        frequency: policy.is_lfu().then(|| evict::frequency(env, clock) as u8),
    }
}

/// On what occasion an entry is emitted.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Emitted {
    /// By a walker.
    AtLeisure { compresses: bool },
    /// It, or another of its slot, is about to be changed: somebody waits.
    Changes,
    /// The same, and the dataset will not have it any more.
    Leaves,
}

/// What the writer gets: entries of one database.
pub(super) enum Piece {
    Encoded { db: DbIndex, keys: u64, bytes: Vec<u8> },
    Shared { db: DbIndex, key: Box<[u8]>, notes: KeyMetadata, value: Value, kept: Kept },
}

/// Memory of a shared value.
#[derive(Clone, Copy)]
pub(super) struct Kept {
    bytes: u64,
    /// The dataset has it no more: nothing is freed before it is written.
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
            Piece::Encoded { bytes, .. } => bytes.capacity() as u64,
            Piece::Shared { .. } => SHARED_BYTES,
        }
    }

    fn kept(&self) -> Option<Kept> {
        match self {
            Piece::Encoded { .. } => None,
            Piece::Shared { kept, .. } => Some(*kept),
        }
    }

    pub(super) fn weight(&self) -> Weight {
        Weight { bytes: self.bytes(), kept: self.kept() }
    }

    fn keys(&self) -> u64 {
        match self {
            Piece::Encoded { keys, .. } => *keys,
            Piece::Shared { .. } => 1,
        }
    }

    /// The number of keys.
    pub(super) fn write<W: Write>(self, out: &mut RdbWriter<W>) -> u64 {
        let keys = self.keys();
        match self {
            Piece::Encoded { bytes, .. } => out.encoded(&bytes),
            Piece::Shared { key, notes, value, .. } => {
                let value = Dumpable::of_value(&value);
                value.write(out.begin_entry(value.kind(), &key, notes));
            }
        }
        keys
    }
}

/// What waits for the writer.
#[derive(Default)]
pub(super) struct Queue {
    pieces: Mutex<Vec<Piece>>,
    /// There are pieces, or there will be no more.
    changed: Condvar,
    /// Of pieces that are not written.
    bytes: AtomicU64,
    /// Of their shared values, and of those among them that only the queue has.
    shared_bytes: AtomicU64,
    last_bytes: AtomicU64,
    /// The most that [`Queue::bytes_kept`] has been.
    peak: AtomicU64,
    closed: AtomicBool,
}

/// What is to be forgotten of a piece when it was written.
pub(super) struct Weight {
    bytes: u64,
    kept: Option<Kept>,
}

impl Queue {
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

    /// All pieces; none after `wait`.
    pub(super) fn take(&self, wait: Duration) -> Vec<Piece> {
        let pieces = self.pieces.lock().even_poisoned();
        let waits = |pieces: &mut Vec<Piece>| pieces.is_empty() && !self.is_closed();
        let waited = self.changed.wait_timeout_while(pieces, wait, waits);
        std::mem::take(&mut *waited.even_poisoned().0)
    }

    /// The writer is done with a piece that weighed this much.
    pub(super) fn forget(&self, weight: &Weight) {
        self.bytes.fetch_sub(weight.bytes, Ordering::Relaxed);
        if let Some(kept) = weight.kept {
            self.shared_bytes.fetch_sub(kept.bytes, Ordering::Relaxed);
            let last = if kept.is_last { kept.bytes } else { 0 };
            self.last_bytes.fetch_sub(last, Ordering::Relaxed);
        }
    }

    /// Bytes that are encoded and not written; a shared value counts a little.
    pub(super) fn bytes(&self) -> u64 {
        if self.is_closed() { 0 } else { self.bytes.load(Ordering::Relaxed) }
    }

    /// The same, with all shared values: those that nobody changes are the dataset's, but eviction
    /// would free nothing of them.
    pub(super) fn bytes_held(&self) -> u64 {
        self.bytes() + self.shared_bytes.load(Ordering::Relaxed)
    }

    /// Bytes of memory that nobody else has.
    pub(super) fn bytes_kept(&self) -> u64 {
        if self.is_closed() {
            return 0;
        }
        self.bytes.load(Ordering::Relaxed) + self.last_bytes.load(Ordering::Relaxed)
    }

    pub(super) fn peak(&self) -> u64 {
        self.peak.load(Ordering::Relaxed)
    }

    /// Nobody writes any more.
    pub(super) fn close(&self) {
        let mut pieces = self.pieces.lock().even_poisoned();
        self.closed.store(true, Ordering::Relaxed);
        drop(std::mem::take(&mut *pieces));
        drop(pieces);
        self.changed.notify_all();
    }

    pub(super) fn is_closed(&self) -> bool {
        self.closed.load(Ordering::Relaxed)
    }
}

/// What a thread has encoded and not handed to the writer.
pub(crate) struct Output {
    cut: Option<Arc<Cut>>,
    db: DbIndex,
    keys: u64,
    encoder: Encoder<Vec<u8>>,
}

impl Default for Output {
    fn default() -> Output {
        let encoder = Encoder::new(Vec::new());
        Output { cut: None, db: DbIndex::default(), keys: 0, encoder }
    }
}

impl Output {
    pub(super) fn cut(&self) -> Option<&Arc<Cut>> {
        self.cut.as_ref()
    }

    /// Emits for another cut, or none; what was encoded for the one before is of no use.
    pub(super) fn follow(&mut self, cut: Option<Arc<Cut>>) {
        *self = Output { cut, ..Output::default() };
    }

    /// Bytes that are encoded.
    pub(super) fn len(&mut self) -> usize {
        self.encoder.sink().len()
    }

    /// Emits an entry of a slot that is held.
    pub(super) fn add(&mut self, db: DbIndex, entry: &EntryRef<'_>, env: &Env, how: Emitted) {
        let notes = notes(entry, env);
        if let Some(value) = entry.object().filter(|value| is_large(value)) {
            let kept = Kept { bytes: about_bytes(value), is_last: how == Emitted::Leaves };
            let (key, value) = (Box::from(entry.key()), value.clone());
            return self.put(Piece::Shared { db, key, notes, value, kept });
        }
        if self.db != db {
            self.hand_in();
            self.db = db;
        }
        if self.keys == 0
            && let Some(cut) = &self.cut
        {
            cut.open_outputs.fetch_add(1, Ordering::SeqCst);
        }
        self.keys += 1;
        let value = entry.dumpable();
        self.encoder.set_compression(how == Emitted::AtLeisure { compresses: true });
        self.encoder.begin_entry(value.kind(), entry.key(), notes);
        value.write(&mut self.encoder);
        if self.len() >= PIECE_BYTES {
            self.hand_in();
        }
    }

    /// Hands what is encoded to the writer.
    pub(super) fn hand_in(&mut self) {
        if self.keys == 0 {
            return;
        }
        let keys = std::mem::take(&mut self.keys);
        let bytes = if self.len() < PIECE_BYTES / 2 {
            // The end of a turn: a queue of such would be empty room for the most part.
            let bytes = self.encoder.sink().as_slice().into();
            self.encoder.sink().clear();
            bytes
        } else {
            let room = Vec::with_capacity(PIECE_BYTES + PIECE_BYTES / 8);
            std::mem::replace(self.encoder.sink(), room)
        };
        self.put(Piece::Encoded { db: self.db, keys, bytes });
        if let Some(cut) = &self.cut {
            // Behind the piece: who sees nothing open finds it in the queue, or counted.
            cut.open_outputs.fetch_sub(1, Ordering::SeqCst);
        }
    }

    fn put(&self, piece: Piece) {
        let Some(cut) = &self.cut else { return };
        cut.emitted.fetch_add(piece.keys(), Ordering::SeqCst);
        cut.queue.put(piece);
        if cut.queue.bytes() > cut.options.queue_bytes_max {
            cut.ran_full.store(true, Ordering::Relaxed);
            cut.give_up("the disk, or a replica, is too slow: changes filled the memory for entries not written");
        }
    }
}

/// Bytes of memory of a large value.
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
