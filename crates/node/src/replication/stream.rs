//! The replication stream: the changes of all workers in one order, kept for replicas.
//!
//! ```text
//!  transactions of all workers ── journal ── dispatch ─┬─ append-only file
//!                                                      └─ stream ─┬─ worker 0 ─ its replicas
//!                                                                 └─ worker 1 ─ its replicas
//! ```
//!
//! The stream is held once, in the `backlog`, which begins with the first replica. A replica is a position in the
//! stream. Its worker takes as many bytes from this position as the connection has room for.
//!
//! When this server becomes a replica, or the replica of another server, the backlog belongs to another history. While
//! all workers are quiesced, [`super::Replication::begin_backlog`] begins a new backlog at the position where the new
//! primary's stream begins. The replicas have been disconnected before (`follow::disconnect_all`). A replica keeps a
//! backlog even without replicas of its own, so that it can be promoted.
//!
//! Functions that depend on the positions of replicas get the list of replicas as an argument. So a thread that needs
//! both locks takes the lock of the list first.

use super::backlog::{BLOCK_BYTES_MAX, Backlog, StreamPiece};
use super::marks::Marks;
use super::replica::{ReplicaProgress, ReplicaStage};
use super::replicas::{ReplicaHandle, acknowledged_from, has_catching_up, needed_from};
use super::spill::{MOVED_BYTES, Move, Spilled};
use brisk_engine::keyspace::{Journal, Ticket};
use brisk_structures::poison::EvenPoisoned;
use std::fs::File;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::thread::Thread;

/// The stream, and numbers about it that threads read without the mutex.
pub struct ReplicationStream {
    state: Mutex<StreamState>,
    /// True if the stream is being kept.
    has_backlog: AtomicBool,
    /// True if the stream has ever been kept.
    had_backlog: AtomicBool,
    /// `repl-backlog-size`.
    wanted_bytes: AtomicU64,
    /// The end of the stream.
    end: AtomicU64,
    /// Bytes in the backlog.
    kept_bytes: AtomicU64,
    /// Bytes that the slowest replica lacks beyond `repl-backlog-size`.
    lacking_bytes: AtomicU64,
    spill: SpillNumbers,
}

/// Numbers about the file that contains the oldest part of the stream.
struct SpillNumbers {
    /// Bytes in memory beyond `repl-backlog-size` at which the stream spills to the file.
    memory_bytes_max: AtomicU64,
    /// Bytes in the file.
    file_bytes: AtomicU64,
    /// True while a thread moves blocks to the file.
    is_running: AtomicBool,
    /// True if writing the file failed. The file is not used again for the current replicas.
    has_failed: AtomicBool,
}

#[derive(Default)]
struct StreamState {
    backlog: Backlog,
    /// Times of the bytes in the backlog, and of bytes that replicas have not acknowledged.
    marks: Marks,
    /// The part before the backlog, for replicas that are being synchronized or resume in this part.
    spilled: Option<Spilled>,
    /// The thread that moves blocks to `spilled`.
    spiller: Option<Thread>,
}

impl StreamState {
    /// The first position that is held, in the file or in memory.
    fn first(&self) -> u64 {
        let first = self.backlog.first();
        self.spilled.as_ref().filter(|spilled| spilled.end() == first).map_or(first, Spilled::from)
    }
}

/// The part of the stream that is kept for replicas that reconnect.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Kept {
    /// The position of the first byte.
    pub first: Ticket,
    /// Number of bytes, in memory and in the file.
    pub bytes: u64,
}

impl Default for ReplicationStream {
    fn default() -> ReplicationStream {
        ReplicationStream {
            state: Mutex::default(),
            has_backlog: AtomicBool::new(false),
            had_backlog: AtomicBool::new(false),
            wanted_bytes: AtomicU64::new(0),
            end: AtomicU64::new(0),
            kept_bytes: AtomicU64::new(0),
            lacking_bytes: AtomicU64::new(0),
            spill: SpillNumbers {
                memory_bytes_max: AtomicU64::new(u64::MAX),
                file_bytes: AtomicU64::new(0),
                is_running: AtomicBool::new(false),
                has_failed: AtomicBool::new(false),
            },
        }
    }
}

impl ReplicationStream {
    fn lock(&self) -> MutexGuard<'_, StreamState> {
        self.state.lock().even_poisoned()
    }

    /// The current position in the stream; 0 before the first replica.
    pub fn offset(&self, journal: &Journal) -> u64 {
        if self.had_backlog() { journal.end().0 } else { 0 }
    }

    /// True if the stream has ever been kept, so that another server may know a position in it.
    pub(super) fn had_backlog(&self) -> bool {
        self.had_backlog.load(Ordering::Relaxed)
    }

    /// True if the stream is being kept. Changes only while all workers are quiesced.
    #[inline]
    pub fn has_backlog(&self) -> bool {
        self.has_backlog.load(Ordering::Relaxed)
    }

    /// The end of the stream.
    pub(super) fn end(&self) -> Ticket {
        Ticket(self.end.load(Ordering::Acquire))
    }

    /// Bytes of the stream beyond `repl-backlog-size`, including bytes that are held only because blocks are held
    /// whole. A replica still needs these bytes, or they will be dropped soon. O(1).
    pub(super) fn excess(&self) -> u64 {
        let wanted = self.wanted_bytes.load(Ordering::Relaxed);
        let kept = self.kept_bytes.load(Ordering::Relaxed);
        self.memory().1.max(kept.saturating_sub(wanted + BLOCK_BYTES_MAX as u64))
    }

    /// Bytes of the stream that are held in memory: those up to `repl-backlog-size`, and those beyond it for slow
    /// replicas. O(1).
    pub fn memory(&self) -> (u64, u64) {
        let held = self.kept_bytes.load(Ordering::Relaxed);
        let beyond = self.lacking_bytes.load(Ordering::Relaxed).min(held);
        (held - beyond, beyond)
    }

    /// Sets `repl-backlog-size`. Bytes beyond it are dropped when the next part of the stream is appended.
    pub fn set_backlog_bytes(&self, wanted: u64) {
        self.wanted_bytes.store(wanted, Ordering::Relaxed);
    }

    /// Sets how many bytes beyond `repl-backlog-size` are kept in memory, for replicas that are being synchronized,
    /// before the stream spills to a file.
    pub fn set_memory_bytes_max(&self, most: u64) {
        self.spill.memory_bytes_max.store(most, Ordering::Relaxed);
    }

    fn memory_max(&self) -> u64 {
        let wanted = self.wanted_bytes.load(Ordering::Relaxed);
        wanted.saturating_add(self.spill.memory_bytes_max.load(Ordering::Relaxed))
    }

    /// Bytes of the stream in a file, for replicas that are being synchronized. O(1).
    pub fn spilled_bytes(&self) -> u64 {
        self.spill.file_bytes.load(Ordering::Relaxed)
    }

    /// The part that is kept, if any.
    pub fn kept(&self) -> Option<Kept> {
        let state = self.lock();
        let first = state.first();
        let kept = Kept { first: Ticket(first), bytes: state.backlog.end() - first };
        self.has_backlog().then_some(kept)
    }

    /// Keeps the stream from this position on. All other workers are quiesced.
    pub(super) fn begin(&self, place: Ticket, replicas: &[ReplicaHandle]) {
        let mut state = self.lock();
        state.backlog = Backlog::beginning_at(place.0);
        state.marks = Marks::default();
        state.spilled = None;
        self.had_backlog.store(true, Ordering::Relaxed);
        self.has_backlog.store(true, Ordering::Relaxed);
        self.publish(&state, replicas);
    }

    /// Drops the stream and keeps none. All other workers are quiesced.
    pub(super) fn forget(&self, replicas: &[ReplicaHandle]) {
        let mut state = self.lock();
        state.backlog = Backlog::beginning_at(state.backlog.end());
        state.spilled = None;
        self.has_backlog.store(false, Ordering::Relaxed);
        self.publish(&state, replicas);
    }

    /// Sets the position of a replica that resumes at `place`, and returns the number of bytes that the replica lacks.
    /// `None` if the stream no longer has all of them. The caller holds the lock of the list of replicas, so the bytes
    /// stay until the replica is in the list.
    pub(super) fn resume(&self, progress: &ReplicaProgress, place: Ticket) -> Option<u64> {
        let state = self.lock();
        if !self.has_backlog() || !(state.first()..=state.backlog.end()).contains(&place.0) {
            return None;
        }
        progress.begin_at(place.0);
        if place.0 < state.backlog.first() {
            // Some missing bytes are in the file, so the missing bytes do not count toward the replica's limit.
            progress.set_catches_up(true);
        }
        Some(state.backlog.end() - place.0)
    }

    /// Appends the next part of the stream, which begins at `from`, and drops bytes that are no longer needed.
    pub(super) fn append(
        &self,
        from: Ticket,
        bytes: &[u8],
        now_ms: u64,
        replicas: &[ReplicaHandle],
    ) {
        let mut state = self.lock();
        assert_eq!(from.0, state.backlog.end(), "the stream has no gaps");
        state.backlog.append(bytes);
        state.marks.note(from.0, now_ms);
        self.trim_state(&mut state, bytes.len(), replicas);
        if let Some(spiller) = &state.spiller
            && state.backlog.bytes() > self.memory_max()
        {
            spiller.unpark();
        }
    }

    /// Drops bytes that no replica needs any more.
    pub(super) fn trim(&self, replicas: &[ReplicaHandle]) {
        self.trim_state(&mut self.lock(), 0, replicas);
    }

    fn trim_state(&self, state: &mut StreamState, added: usize, replicas: &[ReplicaHandle]) {
        let wanted = self.wanted_bytes.load(Ordering::Relaxed);
        if state.spilled.as_ref().is_some_and(|spilled| spilled.end() <= needed_from(replicas)) {
            state.spilled = None;
        }
        if state.backlog.bytes() > wanted {
            state.backlog.trim(wanted, needed_from(replicas), added);
        }
        let first = state.backlog.first();
        state.marks.trim(acknowledged_from(replicas).unwrap_or(first).min(first));
        self.publish(state, replicas);
    }

    /// Updates the numbers that threads read without the lock. O(replicas).
    fn publish(&self, state: &StreamState, replicas: &[ReplicaHandle]) {
        self.end.store(state.backlog.end(), Ordering::Release);
        self.kept_bytes.store(state.backlog.bytes(), Ordering::Relaxed);
        let wanted = self.wanted_bytes.load(Ordering::Relaxed);
        let needed_from = || needed_from(replicas).max(state.backlog.first());
        let lacking = match state.backlog.bytes() > wanted {
            true => state.backlog.end().saturating_sub(needed_from()).saturating_sub(wanted),
            false => 0,
        };
        let spilled = state.spilled.as_ref().map_or(0, Spilled::bytes);
        self.spill.file_bytes.store(spilled, Ordering::Relaxed);
        self.lacking_bytes.store(lacking, Ordering::Relaxed);
    }

    /// Adds the next bytes for a replica, but none at or after `until`: up to the first end of a transaction after
    /// `most` bytes. Returns the number of bytes, or `None` if the stream no longer has them.
    pub fn take(
        &self,
        progress: &ReplicaProgress,
        until: Ticket,
        most: usize,
        into: &mut Vec<StreamPiece>,
    ) -> Option<u64> {
        let from = progress.handed()?;
        let state = self.lock();
        let spilled = state.spilled.as_ref().filter(|spilled| from < spilled.end());
        let end = if let Some(spilled) = spilled {
            let (part, end) = spilled.part(from, until.0, most)?;
            // Other threads must not wait for the disk.
            drop(state);
            into.push(part.read().ok()?);
            end
        } else {
            state.backlog.take(from, until.0, most, into)?
        };
        progress.hand(end);
        Some(end - from)
    }

    /// True if there are bytes that have not been added to the replica's output yet. O(1).
    pub fn has_more(&self, progress: &ReplicaProgress) -> bool {
        let has_more = |handed| handed < self.end.load(Ordering::Acquire);
        progress.handed().is_some_and(has_more) && !progress.awaits_ack()
    }

    /// The number of bytes of the stream that a replica has not been sent yet. O(1).
    pub fn behind(&self, progress: &ReplicaProgress) -> u64 {
        progress.sent().map_or(0, |sent| self.end.load(Ordering::Acquire).saturating_sub(sent))
    }

    /// The age of the oldest byte that a replica has not acknowledged, in ms. `None` before its first
    /// acknowledgement. O(log time).
    pub fn behind_ms(&self, replica: &ReplicaHandle, now_ms: u64) -> Option<u64> {
        let place = replica.acked_place.filter(|_| replica.is_online())?.0;
        let state = self.lock();
        if place >= state.backlog.end() {
            return Some(0);
        }
        Some(now_ms.saturating_sub(state.marks.appended_ms(place)?))
    }

    /// The number of missing bytes of a replica that count toward `client-output-buffer-limit`. While a replica is
    /// being synchronized, the stream spills to a file if possible. So only bytes in memory beyond `repl-backlog-size`
    /// count. Called by the replica's worker. O(1).
    pub fn counted_behind(&self, progress: &ReplicaProgress) -> u64 {
        let behind = self.behind(progress);
        if !progress.catches_up() {
            return behind;
        }
        let most = self.spill.memory_bytes_max.load(Ordering::Relaxed);
        if progress.stage() == ReplicaStage::Online && behind <= most {
            progress.set_catches_up(false);
        }
        if self.spill.has_failed.load(Ordering::Relaxed) {
            return behind;
        }
        let kept = self.kept_bytes.load(Ordering::Relaxed);
        behind.min(kept.saturating_sub(self.wanted_bytes.load(Ordering::Relaxed)))
    }

    /// Returns true if replicas are being synchronized and no thread moves blocks to the file yet. The caller then has
    /// to start one.
    pub(super) fn begin_spilling(&self, replicas: impl FnOnce() -> bool) -> bool {
        !self.spill.has_failed.load(Ordering::Relaxed)
            && !self.spill.is_running.load(Ordering::Relaxed)
            && replicas()
            && !self.spill.is_running.swap(true, Ordering::AcqRel)
    }

    pub(super) fn end_spilling(&self) {
        self.lock().spiller = None;
        self.spill.is_running.store(false, Ordering::Release);
    }

    /// Notes that writing the file failed. The file is not used again for the current replicas.
    pub(super) fn give_up_spilling(&self) {
        self.spill.has_failed.store(true, Ordering::Relaxed);
    }

    /// Allows the file again when the synchronization of replicas begins.
    pub(super) fn allow_spilling(&self) {
        self.spill.has_failed.store(false, Ordering::Relaxed);
    }

    /// The blocks that are to be moved next. `Some(None)` if memory does not contain too many blocks: the thread then
    /// parks. `None` if no replica is being synchronized. O(blocks moved + replicas).
    pub(super) fn next_move(&self, replicas: &[ReplicaHandle]) -> Option<Option<Move>> {
        let mut state = self.lock();
        if self.spill.has_failed.load(Ordering::Relaxed) || !has_catching_up(replicas) {
            return None;
        }
        state.spiller.get_or_insert_with(std::thread::current);
        if state.backlog.bytes() <= self.memory_max() {
            return Some(None);
        }
        let first = state.backlog.first();
        let needs = |replica: &ReplicaHandle| {
            let sent = replica.progress.sent();
            replica.progress.catches_up() && sent.is_some_and(|sent| sent <= first)
        };
        let is_needed = replicas.iter().any(needs);
        let wanted = self.wanted_bytes.load(Ordering::Relaxed);
        let blocks = if is_needed { state.backlog.front(MOVED_BYTES, wanted) } else { vec![] };
        let is_empty = blocks.is_empty();
        let next = (!is_empty).then(|| Spilled::begin_move(state.spilled.as_ref(), first, blocks));
        Some(next)
    }

    /// Notes that blocks have been moved to the file. Does nothing if the backlog was dropped during the move.
    pub(super) fn end_move(&self, moved: &Move, file: Arc<File>, replicas: &[ReplicaHandle]) {
        let mut guard = self.lock();
        let state = &mut *guard;
        let follows = state.spilled.as_ref().is_none_or(|spilled| spilled.end() == moved.from());
        if state.backlog.first() != moved.from() || !follows {
            return;
        }
        Spilled::note_moved(&mut state.spilled, moved, file);
        state.backlog.drop_front(moved.len());
        self.trim_state(state, 0, replicas);
    }
}
