//! What is known of the snapshots that were saved and loaded.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// Written while all workers but one stand still, read at any time.
#[derive(Debug)]
pub struct Snapshots {
    /// Unix time of the last that was saved.
    last_save_s: AtomicU64,
    /// How often data had been changed by then.
    changes_saved: AtomicU64,
    /// Keys of the last that was loaded, and how many it had besides that had expired.
    loaded: AtomicU64,
    expired: AtomicU64,
    /// The start is not over: nothing has changed that could be lost.
    is_loading: AtomicBool,
}

impl Snapshots {
    /// Of a server that starts at `now_s`, which counts as a save.
    pub fn new(now_s: u64) -> Snapshots {
        Snapshots {
            last_save_s: AtomicU64::new(now_s),
            changes_saved: AtomicU64::new(0),
            loaded: AtomicU64::new(0),
            expired: AtomicU64::new(0),
            is_loading: AtomicBool::new(true),
        }
    }

    /// Everything is on the disk, up to the change of number `changes`.
    pub fn note_saved(&self, now_s: u64, changes: u64) {
        self.last_save_s.store(now_s, Ordering::Relaxed);
        self.changes_saved.store(changes, Ordering::Relaxed);
    }

    /// A file was loaded to its end.
    pub fn note_loaded(&self, keys: u64, expired: u64) {
        self.loaded.store(keys, Ordering::Relaxed);
        self.expired.store(expired, Ordering::Relaxed);
    }

    /// The dataset is what it was when it was saved, and clients are about to be served.
    pub fn note_ready(&self) {
        self.is_loading.store(false, Ordering::SeqCst);
    }

    /// Whether the server starts.
    pub fn is_loading(&self) -> bool {
        self.is_loading.load(Ordering::SeqCst)
    }

    /// When the dataset was saved last, in Unix seconds.
    pub fn last_save_s(&self) -> u64 {
        self.last_save_s.load(Ordering::Relaxed)
    }

    /// How many of `changes` are not on the disk. The sum may have been taken before a save that has
    /// ended meanwhile.
    pub fn changes_since(&self, changes: u64) -> u64 {
        changes.saturating_sub(self.changes_saved.load(Ordering::Relaxed))
    }

    /// Keys loaded by the last file, and keys that were left out because they had expired.
    pub fn last_load(&self) -> (u64, u64) {
        (self.loaded.load(Ordering::Relaxed), self.expired.load(Ordering::Relaxed))
    }
}
