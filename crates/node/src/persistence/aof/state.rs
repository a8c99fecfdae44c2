//! The state of the append-only file: pending data, the positions that were reached, and the workers that wait.

use super::file::File;
use super::home::Home;
use super::lock::{self, LockError, Locks};
use crate::persistence::disk::{Disk, System};
use brisk_config::choice::AppendFsync;
use brisk_config::directives::persistence::Persistence;
use brisk_engine::keyspace::{AofEdit, Journal, Snapshot, Ticket};
use brisk_observe::log::Log;
use brisk_persist::aof::Manifest;
use brisk_reactor::unix_ms;
use brisk_structures::poison::EvenPoisoned;
use std::collections::VecDeque;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU8, AtomicU64, AtomicUsize, Ordering, fence};
use std::sync::{Arc, Condvar, Mutex};
use std::time::{Duration, Instant};

/// A pending batch grows up to this size. It is limited because a reader holds a whole batch in memory.
const BATCH_BYTES: usize = 1 << 20;
/// While more bytes than this are pending, write commands wait.
const PENDING_BYTES_MAX: usize = 64 << 20;

/// The level of durability that a change must reach before a reply shows it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
#[repr(u8)]
pub enum Level {
    /// In memory.
    #[default]
    Memory,
    /// Written to the file: it survives a process crash.
    Log,
    /// On the disk: it survives a power failure.
    Disk,
}

/// The mode of the append-only file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum AofMode {
    Off,
    /// The file was enabled while the server was running. It is usable when its base is complete.
    WaitsForBase,
    On,
}

/// An item that waits to be processed. Items are processed in order.
pub(super) enum Pending<D: Disk = System> {
    /// Bytes for the file, and the number of stream bytes that they cover.
    Bytes(Vec<u8>, usize),
    /// Later bytes are written to another file. Syncs of the previous file are no longer reported.
    Switch(Box<File<D>>),
}

/// Data that waits to be written.
pub(super) struct Queue<D: Disk = System> {
    pub(super) items: VecDeque<Pending<D>>,
    /// The position in the stream after the last item.
    pub(super) end: u64,
    /// Number of stream bytes in the queue.
    pub(super) bytes: usize,
    /// Emptied buffers, reused because their memory is warm.
    spare: Vec<Vec<u8>>,
}

impl<D: Disk> Queue<D> {
    fn beginning_at(end: u64) -> Queue<D> {
        Queue { items: VecDeque::new(), end, bytes: 0, spare: Vec::new() }
    }

    /// The number of buffers to keep. No more buffers are in use at the same time.
    const SPARE_MAX: usize = 4;
    /// A larger buffer is freed.
    const SPARE_BYTES_MAX: usize = 1 << 20;

    /// Adds bytes that cover `span` bytes of the stream. They are added to the last batch, unless it would become too
    /// large.
    fn push(&mut self, bytes: Vec<u8>, span: usize) {
        self.end += span as u64;
        self.bytes += span;
        match self.items.back_mut() {
            Some(Pending::Bytes(last, last_span)) if last.len() + bytes.len() <= BATCH_BYTES => {
                last.extend_from_slice(&bytes);
                *last_span += span;
                self.give_back(bytes);
            }
            _ => self.items.push_back(Pending::Bytes(bytes, span)),
        }
    }

    /// Takes a written buffer back.
    pub(super) fn give_back(&mut self, mut buffer: Vec<u8>) {
        if self.spare.len() < Self::SPARE_MAX && buffer.capacity() <= Self::SPARE_BYTES_MAX {
            buffer.clear();
            self.spare.push(buffer);
        }
    }
}

/// Requests to the threads.
#[derive(Default)]
pub(super) struct Work {
    /// Write what is pending.
    pub(super) write: bool,
    /// Sync the written data, even if the policy does not require it now.
    pub(super) sync: bool,
    /// Sync the written data after the sync in progress.
    pub(super) sync_again: bool,
}

/// The state of the append-only file that all threads share.
pub struct Aof<D: Disk = System> {
    mode: AtomicU8,
    policy: AtomicU8,
    pub(super) queue: Mutex<Queue<D>>,
    /// The file, and the exclusive right to write to it.
    pub(super) file: Mutex<Option<Box<File<D>>>>,
    pub(super) places: Places,
    /// Number of pending switches to another file. A switch takes longer than a system call.
    pub(super) switches: AtomicUsize,
    /// True if too much data is pending. Read before each write command.
    is_congested: AtomicBool,
    /// Number of pending bytes.
    buffered: AtomicU64,
    /// `aof-timestamp-enabled`.
    pub(super) has_timestamps: AtomicBool,
    /// For tests: each write takes this many microseconds longer.
    pub(super) sleeps_us: AtomicU64,
    /// `no-appendfsync-on-rewrite`.
    spares_disk: AtomicBool,
    pub(super) work: Mutex<Work>,
    pub(super) has_work: Condvar,
    pub(super) has_threads: AtomicBool,
    /// For each worker, true if it has replies that wait.
    waiting: Box<[AtomicBool]>,
    pub(super) metrics: ServerMetrics,
    /// The manifest that is on the disk, or will be after the first write to the next file.
    pub(super) manifest: Mutex<Manifest>,
    /// The locks that keep other servers from using these files.
    pub(super) locks: Mutex<Locks>,
    pub(super) rewrite: Rewrite,
}

/// The state of rewrites.
#[derive(Default)]
pub(super) struct Rewrite {
    pub(super) is_running: AtomicBool,
    pub(super) is_scheduled: AtomicBool,
    /// The snapshot that the running rewrite writes.
    pub(super) snapshot: Mutex<Option<Arc<Snapshot>>>,
    /// When the running rewrite began.
    pub(super) began: Mutex<Option<Instant>>,
    /// The duration of the last rewrite, in seconds.
    pub(super) last_seconds: AtomicI64,
    pub(super) has_failed: AtomicBool,
    /// Consecutive failures.
    pub(super) failures: AtomicU64,
    pub(super) last_try_s: AtomicU64,
    /// True if the delay of the next rewrite has already been logged.
    pub(super) is_delay_logged: AtomicBool,
    pub(super) count: AtomicU64,
}

impl Rewrite {
    /// Notes that a rewrite could not start or failed.
    pub(super) fn note_failed(&self) {
        self.has_failed.store(true, Ordering::SeqCst);
        self.failures.fetch_add(1, Ordering::Relaxed);
        self.last_try_s.store(unix_ms() / 1000, Ordering::Relaxed);
        self.is_delay_logged.store(false, Ordering::Relaxed);
    }
}

/// The positions that are read for every reply. They have their own cache line.
#[derive(Debug, Default)]
#[repr(align(64))]
pub(super) struct Places {
    pub(super) written: AtomicU64,
    pub(super) durable: AtomicU64,
}

/// The metrics that INFO shows.
#[derive(Debug, Default)]
pub(super) struct ServerMetrics {
    /// Total size of the files that would be loaded, in bytes.
    pub(super) size: AtomicU64,
    /// The value of `size` after the last rewrite.
    pub(super) base_size: AtomicU64,
    /// True if the last write or fdatasync failed.
    pub(super) has_failed: AtomicBool,
    pub(super) failure: Mutex<String>,
    /// Replies that were sent before the write completed because the disk was slow.
    pub(super) delayed: AtomicU64,
    pub(super) fsync_in_progress: AtomicBool,
    /// With `always`, the duration of the last write and fdatasync, in microseconds.
    pub(super) sync_us: AtomicU64,
}

impl<D: Disk> Aof<D> {
    /// Creates the state without a file, for this number of workers.
    pub fn new(workers: usize) -> Aof<D> {
        Aof {
            mode: AtomicU8::new(AofMode::Off as u8),
            policy: AtomicU8::new(AppendFsync::EverySecond as u8),
            queue: Mutex::new(Queue::beginning_at(0)),
            file: Mutex::new(None),
            places: Places::default(),
            switches: AtomicUsize::new(0),
            is_congested: AtomicBool::new(false),
            buffered: AtomicU64::new(0),
            has_timestamps: AtomicBool::new(false),
            sleeps_us: AtomicU64::new(0),
            spares_disk: AtomicBool::new(false),
            work: Mutex::default(),
            has_work: Condvar::new(),
            has_threads: AtomicBool::new(false),
            waiting: (0..workers).map(|_| AtomicBool::new(false)).collect(),
            metrics: ServerMetrics::default(),
            manifest: Mutex::default(),
            locks: Mutex::default(),
            rewrite: Rewrite { last_seconds: AtomicI64::new(-1), ..Rewrite::default() },
        }
    }

    #[inline]
    pub fn mode(&self) -> AofMode {
        match self.mode.load(Ordering::Relaxed) {
            0 => AofMode::Off,
            1 => AofMode::WaitsForBase,
            _ => AofMode::On,
        }
    }

    /// Sets the mode. Called only while all workers except one are quiesced, or before they start.
    pub(super) fn set_mode(&self, mode: AofMode) {
        self.mode.store(mode as u8, Ordering::SeqCst);
    }

    /// Locks the files in `home`, if this server has not locked them. If another server holds the lock, waits up to
    /// `wait`. Other threads need not wait during that time, see [`lock::acquire`].
    ///
    /// # Errors
    /// Another server holds the lock, or the files cannot be locked.
    pub fn lock_files(&self, home: &Home, wait: Duration, log: &Log) -> Result<(), LockError> {
        lock::acquire(&self.locks, home, wait, log)
    }

    /// Releases the locks if there is neither a file nor a running rewrite. A rewrite is marked as running before it
    /// takes its lock, so its lock is not released here.
    pub fn release_unused_locks(&self) {
        let mut locks = self.locks.lock().even_poisoned();
        if !self.is_on() && !self.rewrite.is_running.load(Ordering::SeqCst) {
            locks.release();
        }
    }

    /// Called when the base is complete: the file is usable from now on. Has no effect if the file has been switched
    /// off.
    pub(super) fn end_wait_for_base(&self) {
        let (waits, on) = (AofMode::WaitsForBase as u8, AofMode::On as u8);
        // The exchange fails in any other mode, which must not change.
        let _ = self.mode.compare_exchange(waits, on, Ordering::SeqCst, Ordering::SeqCst);
    }

    /// Reports whether there is a file, or will be one.
    #[inline]
    pub fn is_on(&self) -> bool {
        self.mode() != AofMode::Off
    }

    /// The sync policy of the file.
    pub fn policy(&self) -> AppendFsync {
        match self.policy.load(Ordering::Relaxed) {
            policy if policy == AppendFsync::Always as u8 => AppendFsync::Always,
            policy if policy == AppendFsync::No as u8 => AppendFsync::No,
            _ => AppendFsync::EverySecond,
        }
    }

    /// Applies the settings.
    pub fn configure(&self, config: &Persistence) {
        self.has_timestamps.store(config.aof_timestamp_enabled, Ordering::SeqCst);
        self.spares_disk.store(config.no_appendfsync_on_rewrite, Ordering::SeqCst);
        if self.policy() != config.appendfsync {
            self.set_policy(config.appendfsync);
        }
    }

    fn set_policy(&self, policy: AppendFsync) {
        self.policy.store(policy as u8, Ordering::SeqCst);
        self.request_work(|work| work.write = true);
    }

    /// The level that replies wait for if their client has not requested another level.
    #[inline]
    pub fn level(&self) -> Level {
        match (self.mode(), self.policy()) {
            (AofMode::Off | AofMode::WaitsForBase, _) => Level::Memory,
            (AofMode::On, AppendFsync::Always) if !self.is_sparing_disk() => Level::Disk,
            (AofMode::On, _) => Level::Log,
        }
    }

    /// Reports whether the file is currently synced only on request, because a rewrite needs the disk and the settings
    /// give it priority.
    #[inline]
    pub fn is_sparing_disk(&self) -> bool {
        self.spares_disk.load(Ordering::Relaxed) && self.rewrite.is_running.load(Ordering::Relaxed)
    }

    /// Reports whether a write might block on the disk. If so, the thread writes instead of a worker.
    pub(super) fn is_slow(&self) -> bool {
        self.metrics.fsync_in_progress.load(Ordering::SeqCst)
            || self.metrics.has_failed.load(Ordering::SeqCst)
            || self.is_switching()
    }

    /// Reports whether too much data is pending. If so, write commands must wait.
    #[inline]
    pub fn is_congested(&self) -> bool {
        self.is_congested.load(Ordering::Relaxed)
    }

    /// Reports whether a switch to another file is pending.
    pub fn is_switching(&self) -> bool {
        self.switches.load(Ordering::SeqCst) > 0
    }

    /// Notes the number of pending bytes. The caller holds the queue's lock.
    pub(super) fn note_pending(&self, bytes: usize) {
        self.buffered.store(bytes as u64, Ordering::Relaxed);
        let is_congested = bytes > PENDING_BYTES_MAX;
        if is_congested != self.is_congested.load(Ordering::Relaxed) {
            self.is_congested.store(is_congested, Ordering::Relaxed);
        }
    }

    /// Bytes of memory that wait to be written. They do not count toward `maxmemory`, because eviction would only add
    /// to them. O(1).
    pub fn buffered(&self) -> u64 {
        self.buffered.load(Ordering::Relaxed)
    }

    /// The position that the stream has reached at this level. The maximum if there is no file.
    #[inline]
    pub fn reached(&self, level: Level) -> Ticket {
        if self.mode() != AofMode::On {
            return Ticket(u64::MAX);
        }
        Ticket(match level {
            Level::Memory => u64::MAX,
            Level::Log => self.places.written.load(Ordering::Acquire),
            Level::Disk => self.places.durable.load(Ordering::Acquire),
        })
    }

    /// The position up to which the stream is on the disk; `None` without a file.
    pub fn durable(&self) -> Option<Ticket> {
        let place = || Ticket(self.places.durable.load(Ordering::Acquire));
        (self.mode() == AofMode::On).then(place)
    }

    /// Reports whether the stream is on the disk up to a position. False if there is no file that the next start would
    /// load.
    pub fn is_durable(&self, place: Ticket) -> bool {
        self.mode() == AofMode::On && place.0 <= self.places.durable.load(Ordering::Acquire)
    }

    /// Sets the position in the stream at which writing begins.
    pub(super) fn begin_at(&self, place: Ticket) {
        let mut queue = self.queue.lock().even_poisoned();
        *queue = Queue::beginning_at(place.0);
        self.switches.store(0, Ordering::SeqCst);
        self.note_pending(0);
        drop(queue);
        self.places.written.store(place.0, Ordering::SeqCst);
        self.places.durable.store(place.0, Ordering::SeqCst);
    }

    /// Switches to another file for everything that is pushed from now on.
    fn switch_to(&self, file: File<D>) {
        self.switches.fetch_add(1, Ordering::SeqCst);
        self.queue.lock().even_poisoned().items.push_back(Pending::Switch(Box::new(file)));
        self.request_work(|work| work.write = true);
    }

    /// Switches to a file that the manifest will name. If there is no previous file, the file begins at this position
    /// in the stream. All other workers are quiesced.
    pub(super) fn go_over_to(
        &self,
        file: File<D>,
        home: &Home,
        manifest: &Manifest,
        place: Ticket,
    ) {
        match self.mode() {
            AofMode::Off => {
                self.begin_at(place);
                self.set_mode(AofMode::WaitsForBase);
                self.switch_to(file);
            }
            // The manifest will name the file together with its base.
            AofMode::WaitsForBase => self.switch_to(file),
            AofMode::On => self.switch_to(file.installing(home.clone(), manifest.clone())),
        }
    }

    /// Starts with files that were loaded or are new.
    pub(super) fn begin_with(&self, file: File<D>, manifest: Manifest, place: Ticket) {
        *self.manifest.lock().even_poisoned() = manifest;
        self.begin_at(place);
        *self.file.lock().even_poisoned() = Some(Box::new(file));
        self.set_mode(AofMode::On);
    }

    /// Stops writing. There is no file from now on. Data that could not be written is dropped.
    pub(super) fn end_at(&self, place: Ticket) {
        self.set_mode(AofMode::Off);
        let mut file = self.file.lock().even_poisoned();
        *file = None;
        self.begin_at(place);
    }

    /// Reports whether this is the file that is being written.
    pub(super) fn is_in_use(&self, path: &Path) -> bool {
        self.file.lock().even_poisoned().as_ref().is_some_and(|file| file.path() == path)
    }

    /// Adds the next part of the stream. `edits` are the parts of it that differ in the file.
    pub fn push(&self, bytes: &[u8], edits: &[AofEdit]) {
        if !self.is_on() {
            return;
        }
        let mut queue = self.queue.lock().even_poisoned();
        let mut own = queue.spare.pop().unwrap_or_default();
        AofEdit::apply(edits, bytes, &mut own);
        queue.push(own, bytes.len());
        self.note_pending(queue.bytes);
    }

    /// Takes the part of the stream that has not been taken from the journal yet. The journal must have no other
    /// reader.
    pub fn take_from(&self, journal: &Journal) {
        let mut queue = self.queue.lock().even_poisoned();
        let mut bytes = queue.spare.pop().unwrap_or_default();
        let mut edits = Vec::new();
        journal.take(&mut bytes, &mut edits);
        if self.is_on() && !bytes.is_empty() {
            let span = bytes.len();
            if !edits.is_empty() {
                let mut edited = Vec::with_capacity(span);
                AofEdit::apply(&edits, &bytes, &mut edited);
                bytes = edited;
            }
            queue.push(bytes, span);
            self.note_pending(queue.bytes);
        } else {
            queue.give_back(bytes);
        }
    }

    /// Reports whether data waits to be written.
    pub fn has_pending(&self) -> bool {
        !self.queue.lock().even_poisoned().items.is_empty()
    }

    /// Bytes that wait to be written.
    pub fn pending_bytes(&self) -> usize {
        self.queue.lock().even_poisoned().bytes
    }

    pub(super) fn request_work(&self, what: impl FnOnce(&mut Work)) {
        what(&mut self.work.lock().even_poisoned());
        self.has_work.notify_all();
    }

    /// Requests that the threads write or sync the pushed data soon, depending on the level.
    pub fn hasten(&self, level: Level) {
        self.request_work(|work| {
            work.write = true;
            work.sync |= level == Level::Disk;
        });
    }

    /// Notes whether a worker has replies that wait for the file or for replicas. Before the worker sleeps, it checks
    /// the positions again.
    pub fn set_waiting(&self, worker: usize, waits: bool) {
        self.waiting[worker].store(waits, Ordering::SeqCst);
        // Ordered before the worker reads the positions; `wake_waiting` has the matching fence.
        fence(Ordering::SeqCst);
    }

    /// The workers with replies that wait.
    pub(super) fn waiting(&self) -> impl Iterator<Item = usize> + '_ {
        let waits = |worker: &usize| self.waiting[*worker].load(Ordering::SeqCst);
        (0..self.waiting.len()).filter(waits)
    }

    /// Schedules a rewrite, which starts as soon as possible.
    pub fn schedule_rewrite(&self) {
        // A client requested it, so earlier failures do not delay it.
        self.rewrite.failures.store(0, Ordering::Relaxed);
        self.rewrite.is_scheduled.store(true, Ordering::SeqCst);
    }

    /// Counts replies that were sent before the write completed.
    pub fn note_delayed(&self) {
        self.metrics.delayed.fetch_add(1, Ordering::Relaxed);
    }

    /// For tests: each write takes this many microseconds longer.
    pub fn set_flush_sleep(&self, microseconds: u64) {
        self.sleeps_us.store(microseconds, Ordering::Relaxed);
    }

    /// The error of the last write, if it failed.
    pub fn failure(&self) -> Option<String> {
        let has_failed = self.metrics.has_failed.load(Ordering::SeqCst);
        has_failed.then(|| self.metrics.failure.lock().even_poisoned().clone())
    }
}
