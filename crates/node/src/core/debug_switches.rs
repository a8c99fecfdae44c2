//! Behaviour that DEBUG switches off or changes, for tests.

use std::sync::atomic::{AtomicBool, AtomicUsize};

/// The switches of DEBUG.
#[derive(Debug)]
pub struct DebugSwitches {
    /// DEBUG SET-ACTIVE-EXPIRE.
    pub active_expire: AtomicBool,
    /// DEBUG PAUSE-CRON: the workers' timers do nothing.
    pub cron_paused: AtomicBool,
    /// DEBUG QUICKLIST-PACKED-THRESHOLD in bytes, 0 for none.
    pub list_plain_min: AtomicUsize,
    /// DEBUG SET-SKIP-CHECKSUM-VALIDATION: of payloads and snapshots.
    pub skips_checksums: AtomicBool,
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
