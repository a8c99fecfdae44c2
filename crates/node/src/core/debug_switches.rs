//! Behavior that DEBUG switches off or changes, for tests.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

/// The switches of DEBUG.
#[derive(Debug)]
pub struct DebugSwitches {
    active_expire: AtomicBool,
    cron_paused: AtomicBool,
    list_plain_min: AtomicUsize,
    skips_checksums: AtomicBool,
}

impl Default for DebugSwitches {
    fn default() -> DebugSwitches {
        DebugSwitches {
            active_expire: AtomicBool::new(true),
            cron_paused: AtomicBool::new(false),
            list_plain_min: AtomicUsize::new(0),
            skips_checksums: AtomicBool::new(false),
        }
    }
}

impl DebugSwitches {
    /// DEBUG SET-ACTIVE-EXPIRE: sets whether expired keys are removed without being accessed.
    pub fn set_active_expire(&self, on: bool) {
        self.active_expire.store(on, Ordering::Relaxed);
    }

    pub fn expires_actively(&self) -> bool {
        self.active_expire.load(Ordering::Relaxed)
    }

    /// DEBUG PAUSE-CRON: disables or enables the workers' timers.
    pub fn pause_cron(&self, on: bool) {
        self.cron_paused.store(on, Ordering::Relaxed);
    }

    pub fn is_cron_paused(&self) -> bool {
        self.cron_paused.load(Ordering::Relaxed)
    }

    /// DEBUG QUICKLIST-PACKED-THRESHOLD: list elements of at least `bytes` bytes get nodes of their own. With 0, the
    /// usual limits decide.
    pub fn set_list_plain_min(&self, bytes: usize) {
        self.list_plain_min.store(bytes, Ordering::Relaxed);
    }

    pub(super) fn list_plain_min(&self) -> usize {
        self.list_plain_min.load(Ordering::Relaxed)
    }

    /// DEBUG SET-SKIP-CHECKSUM-VALIDATION: sets whether payloads and snapshots are read regardless of
    /// their checksums.
    pub fn skip_checksums(&self, on: bool) {
        self.skips_checksums.store(on, Ordering::Relaxed);
    }

    pub(super) fn skips_checksums(&self) -> bool {
        self.skips_checksums.load(Ordering::Relaxed)
    }
}
