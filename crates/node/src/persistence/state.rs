//! The state of snapshots that are being taken, were saved or were loaded.

use brisk_engine::Keyspace;
use brisk_engine::keyspace::{Snapshot, Tally};
use brisk_reactor::unix_ms;
use brisk_structures::poison::EvenPoisoned;
use std::io;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// How a snapshot ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ended {
    Saved,
    Failed,
    /// The snapshot was canceled, which does not count as a failure.
    GivenUp,
}

/// The snapshot that is being taken while commands run.
pub struct Running {
    pub snapshot: Arc<Snapshot>,
    pub began: Instant,
    pub thread: JoinHandle<()>,
}

/// The data that INFO shows about the snapshot that is being taken.
#[derive(Debug, Clone, Copy, Default)]
pub struct Underway {
    pub seconds: u64,
    pub keys: u64,
    pub keys_written: u64,
    /// Bytes of memory that the snapshot takes in addition to the dataset.
    pub bytes: u64,
}

/// The state of snapshots. Modified while all workers except one are quiesced, or by the thread that writes a snapshot.
/// Read at any time.
pub struct SnapshotState {
    running: Mutex<Option<Running>>,
    /// True while `running` has a value, for threads that check it in every round.
    is_running: AtomicBool,
    /// True if the running snapshot is canceled, so that it ends without a file.
    is_unwanted: AtomicBool,
    is_scheduled: AtomicBool,
    /// True if neither a client nor a save point requested the next snapshot.
    next_yields: AtomicBool,
    yields: AtomicBool,
    /// The number of flushes of all data at the time when the last save began or a save was scheduled because of a
    /// flush.
    flushes_seen: AtomicU64,
    /// True if the last snapshot that was taken while commands ran has failed.
    has_failed: AtomicBool,
    last_try_s: AtomicU64,
    /// How long the last snapshot took, in seconds; -1 before the first.
    last_seconds: AtomicI64,
    /// How long the workers were quiesced for the last snapshot.
    last_quiesced_us: AtomicU64,
    /// The largest measured memory usage of the last snapshot.
    last_peak_bytes: AtomicU64,

    /// Unix time of the last completed save.
    last_save_s: AtomicU64,
    /// The number of changes that the last completed save contains.
    changes_saved: AtomicU64,
    /// The number of keys in the last loaded file, and the number of its keys that had expired.
    loaded: AtomicU64,
    expired: AtomicU64,
    /// The files that are being loaded.
    pub loading: Loading,
}

/// The state of the files that are being loaded, or were loaded last.
#[derive(Debug, Default)]
pub struct Loading {
    began_s: AtomicU64,
    total_bytes: AtomicU64,
    /// Bytes of the files whose keys were loaded.
    loaded_bytes: AtomicU64,
    /// Memory usage of the server that wrote the file, in bytes; 0 if the file does not contain it.
    used_memory: AtomicU64,
    /// Keys counted for `key-load-delay`.
    keys_delayed: AtomicU64,
    /// Keys without elements that were left out.
    empty_keys: AtomicU64,
    /// Tallies of loading threads that have ended. Later threads reuse these tallies, because the number of loaded
    /// files is not bounded.
    tallies: Mutex<Vec<Arc<Tally>>>,
}

impl Loading {
    /// Notes that files of this many bytes are about to be loaded.
    pub fn begin(&self, bytes: u64) {
        self.began_s.store(unix_ms() / 1000, Ordering::Relaxed);
        self.total_bytes.store(bytes, Ordering::Relaxed);
        self.loaded_bytes.store(0, Ordering::Relaxed);
        self.used_memory.store(0, Ordering::Relaxed);
        self.empty_keys.store(0, Ordering::Relaxed);
    }

    /// Adds to the number of loaded bytes.
    pub fn note_bytes(&self, bytes: u64) {
        self.loaded_bytes.fetch_add(bytes, Ordering::Relaxed);
    }

    pub(super) fn note_used_memory(&self, bytes: u64) {
        self.used_memory.store(bytes, Ordering::Relaxed);
    }

    /// Counts a key. Returns its number, from 1.
    pub(super) fn next_key(&self) -> u64 {
        self.keys_delayed.fetch_add(1, Ordering::Relaxed) + 1
    }

    /// Counts a key without elements. Returns its number, from 1.
    pub(super) fn next_empty_key(&self) -> u64 {
        self.empty_keys.fetch_add(1, Ordering::Relaxed) + 1
    }

    /// Takes a tally for a loading thread. The thread gives it back.
    pub(super) fn take_tally(&self, keyspace: &Keyspace) -> Arc<Tally> {
        let kept = self.tallies.lock().even_poisoned().pop();
        kept.unwrap_or_else(|| keyspace.tally())
    }

    pub(super) fn give_tally_back(&self, tally: Arc<Tally>) {
        self.tallies.lock().even_poisoned().push(tally);
    }

    /// When loading began, in Unix seconds.
    pub fn began_s(&self) -> u64 {
        self.began_s.load(Ordering::Relaxed)
    }

    /// The total length of the files.
    pub fn total_bytes(&self) -> u64 {
        self.total_bytes.load(Ordering::Relaxed)
    }

    /// The number of loaded bytes.
    pub fn loaded_bytes(&self) -> u64 {
        self.loaded_bytes.load(Ordering::Relaxed)
    }

    /// Memory usage of the server that wrote the file, in bytes; 0 if the file does not contain it.
    pub fn used_memory(&self) -> u64 {
        self.used_memory.load(Ordering::Relaxed)
    }
}

impl SnapshotState {
    /// The state of a server that starts at `now_s`. The start counts as a save.
    pub fn new(now_s: u64) -> SnapshotState {
        SnapshotState {
            running: Mutex::default(),
            is_running: AtomicBool::new(false),
            is_unwanted: AtomicBool::new(false),
            is_scheduled: AtomicBool::new(false),
            next_yields: AtomicBool::new(false),
            yields: AtomicBool::new(false),
            flushes_seen: AtomicU64::new(0),
            has_failed: AtomicBool::new(false),
            last_try_s: AtomicU64::new(0),
            last_seconds: AtomicI64::new(-1),
            last_quiesced_us: AtomicU64::new(0),
            last_peak_bytes: AtomicU64::new(0),
            last_save_s: AtomicU64::new(now_s),
            changes_saved: AtomicU64::new(0),
            loaded: AtomicU64::new(0),
            expired: AtomicU64::new(0),
            loading: Loading::default(),
        }
    }

    /// Notes that everything is on the disk up to change number `changes`.
    pub fn note_saved(&self, now_s: u64, changes: u64) {
        self.has_failed.store(false, Ordering::SeqCst);
        self.last_save_s.store(now_s, Ordering::Relaxed);
        self.changes_saved.store(changes, Ordering::Relaxed);
    }

    /// Notes that a snapshot is being taken while commands run. All workers were quiesced for `quiesced_us`. `start`
    /// starts the thread that writes the snapshot.
    pub fn begin(
        &self,
        quiesced_us: u64,
        start: impl FnOnce() -> io::Result<Running>,
    ) -> io::Result<()> {
        // The thread may end immediately, but it can note its end only after this lock is released.
        let mut place = self.running.lock().even_poisoned();
        *place = Some(start()?);
        self.last_try_s.store(unix_ms() / 1000, Ordering::Relaxed);
        self.last_quiesced_us.store(quiesced_us, Ordering::Relaxed);
        self.last_peak_bytes.store(0, Ordering::Relaxed);
        self.is_scheduled.store(false, Ordering::Relaxed);
        let yields = self.next_yields.swap(false, Ordering::Relaxed);
        self.yields.store(yields, Ordering::Relaxed);
        self.is_unwanted.store(false, Ordering::Relaxed);
        self.is_running.store(true, Ordering::SeqCst);
        Ok(())
    }

    /// Notes the end of the snapshot. It took up to `peak_bytes` of memory in addition to the dataset. The file
    /// contains the dataset up to change number `changes`.
    pub fn note_ended(&self, how: Ended, changes: u64, took: Duration, peak_bytes: u64) {
        let mut running = self.running.lock().even_poisoned();
        *running = None;
        let now_s = unix_ms() / 1000;
        self.last_peak_bytes.fetch_max(peak_bytes, Ordering::Relaxed);
        if how == Ended::Saved {
            self.note_saved(now_s, changes);
        }
        if how != Ended::GivenUp {
            self.has_failed.store(how == Ended::Failed, Ordering::SeqCst);
        }
        self.last_try_s.store(now_s, Ordering::Relaxed);
        self.last_seconds.store(took.as_secs().cast_signed(), Ordering::Relaxed);
        self.is_running.store(false, Ordering::SeqCst);
    }

    /// Cancels the running snapshot and waits until it has ended.
    pub fn give_up(&self) {
        let running = self.running.lock().even_poisoned().take();
        if let Some(running) = running {
            self.is_unwanted.store(true, Ordering::SeqCst);
            running.snapshot.give_up("it is not wanted any more");
            // A thread that panicked has also ended.
            let _ = running.thread.join();
        }
    }

    /// Cancels the running snapshot without waiting.
    pub fn abandon(&self) {
        if let Some(running) = self.running.lock().even_poisoned().as_ref() {
            self.is_unwanted.store(true, Ordering::SeqCst);
            running.snapshot.give_up("it is not wanted any more");
        }
    }

    /// Reports whether all data has been flushed since the last call. Called when a save begins, and by the timers.
    pub fn note_flushes(&self, flushes: u64) -> bool {
        self.flushes_seen.swap(flushes, Ordering::Relaxed) != flushes
    }

    /// Schedules a snapshot, which the timers start as soon as possible.
    pub fn schedule(&self) {
        self.next_yields.store(false, Ordering::Relaxed);
        self.is_scheduled.store(true, Ordering::SeqCst);
    }

    /// Schedules a snapshot after a flush of all data, unless a client requests one earlier.
    pub fn schedule_after_flush(&self) {
        if !self.is_scheduled.swap(true, Ordering::SeqCst) {
            self.next_yields.store(true, Ordering::Relaxed);
        }
    }

    /// Called when a client requests a save. Cancels a running snapshot that was scheduled because of a flush.
    pub fn make_way(&self) {
        self.next_yields.store(false, Ordering::Relaxed);
        if self.is_running() && self.yields.load(Ordering::Relaxed) {
            self.give_up();
        }
    }

    pub fn is_scheduled(&self) -> bool {
        self.is_scheduled.load(Ordering::SeqCst)
    }

    /// Reports whether a snapshot is being taken while commands run.
    #[inline]
    pub fn is_running(&self) -> bool {
        self.is_running.load(Ordering::Relaxed)
    }

    /// Reports whether the snapshot that has ended was canceled.
    pub(super) fn is_unwanted(&self) -> bool {
        self.is_unwanted.load(Ordering::SeqCst)
    }

    /// Reports whether the last snapshot that was taken while commands ran has not failed.
    pub fn is_ok(&self) -> bool {
        !self.has_failed.load(Ordering::SeqCst)
    }

    /// When the last snapshot began or ended, in Unix seconds.
    pub fn last_try_s(&self) -> u64 {
        self.last_try_s.load(Ordering::Relaxed)
    }

    /// How many seconds the last snapshot took; -1 before the first.
    pub fn last_seconds(&self) -> i64 {
        self.last_seconds.load(Ordering::Relaxed)
    }

    /// How long the workers were quiesced for the last snapshot, in microseconds.
    pub fn last_quiesced_us(&self) -> u64 {
        self.last_quiesced_us.load(Ordering::Relaxed)
    }

    /// The largest measured memory usage of the last snapshot in addition to the dataset, in bytes.
    pub fn last_peak_bytes(&self) -> u64 {
        self.last_peak_bytes.load(Ordering::Relaxed)
    }

    /// The state of the snapshot that is being taken.
    pub fn underway(&self) -> Option<Underway> {
        if !self.is_running() {
            return None;
        }
        let running = self.running.lock().even_poisoned();
        let Running { snapshot, began, .. } = running.as_ref()?;
        let bytes = snapshot.bytes();
        self.last_peak_bytes.fetch_max(bytes.max(snapshot.bytes_peak()), Ordering::Relaxed);
        Some(Underway {
            seconds: began.elapsed().as_secs(),
            keys: snapshot.keys(),
            keys_written: snapshot.keys_written(),
            bytes,
        })
    }

    /// Notes that a file was loaded completely.
    pub fn note_loaded(&self, keys: u64, expired: u64) {
        self.loaded.store(keys, Ordering::Relaxed);
        self.expired.store(expired, Ordering::Relaxed);
    }

    /// When the dataset was last saved, in Unix seconds.
    pub fn last_save_s(&self) -> u64 {
        self.last_save_s.load(Ordering::Relaxed)
    }

    /// How many of `changes` are not on the disk. `changes` may have been read before a save that has ended in the
    /// meantime.
    pub fn changes_since(&self, changes: u64) -> u64 {
        changes.saturating_sub(self.changes_saved.load(Ordering::Relaxed))
    }

    /// Keys loaded by the last file, and keys that were left out because they had expired.
    pub fn last_load(&self) -> (u64, u64) {
        (self.loaded.load(Ordering::Relaxed), self.expired.load(Ordering::Relaxed))
    }
}
