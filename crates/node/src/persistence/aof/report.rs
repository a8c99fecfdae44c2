//! The state of the append-only file for INFO.

use super::state::{Aof, AofMode};
use brisk_structures::poison::EvenPoisoned;
use std::sync::atomic::Ordering;

/// A snapshot of the state of the file and its rewrites.
#[derive(Debug, Clone, Copy)]
pub struct AofReport {
    /// True if there is a file that the next start would load.
    pub is_complete: bool,
    pub write_failed: bool,
    pub rewrite_runs: bool,
    pub rewrite_is_scheduled: bool,
    /// Duration of the last rewrite, and time since the current rewrite began, in seconds; -1 if there is none.
    pub last_rewrite_s: i64,
    pub rewrite_s: i64,
    pub rewrite_failed: bool,
    pub rewrites: u64,
    /// Consecutive failed rewrites.
    pub rewrite_failures: u64,
    /// Bytes of all files that would be loaded: the current value, and the value after the last rewrite.
    pub size: u64,
    pub base_size: u64,
    /// Bytes that wait to be written.
    pub pending_bytes: u64,
    /// True if the file is being synced.
    pub is_syncing: bool,
    /// Replies that were sent before the write completed because the disk was slow.
    pub delayed: u64,
}

impl Aof {
    /// The current state. O(1).
    pub fn report(&self) -> AofReport {
        let (rewrite, metrics) = (&self.rewrite, &self.metrics);
        let began = *rewrite.began.lock().even_poisoned();
        AofReport {
            is_complete: self.mode() == AofMode::On,
            write_failed: self.failure().is_some(),
            rewrite_runs: rewrite.is_running.load(Ordering::SeqCst),
            rewrite_is_scheduled: rewrite.is_scheduled.load(Ordering::SeqCst),
            last_rewrite_s: rewrite.last_seconds.load(Ordering::Relaxed),
            rewrite_s: began.map_or(-1, |began| began.elapsed().as_secs().cast_signed()),
            rewrite_failed: rewrite.has_failed.load(Ordering::SeqCst),
            rewrites: rewrite.count.load(Ordering::Relaxed),
            rewrite_failures: rewrite.failures.load(Ordering::Relaxed),
            size: metrics.size.load(Ordering::Relaxed),
            base_size: metrics.base_size.load(Ordering::Relaxed),
            pending_bytes: self.pending_bytes() as u64,
            is_syncing: metrics.fsync_in_progress.load(Ordering::SeqCst),
            delayed: metrics.delayed.load(Ordering::Relaxed),
        }
    }
}
