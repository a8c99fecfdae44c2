//! A restart of all access clocks, after the eviction policy changes between LRU and LFU.
//!
//! ```text
//!  CONFIG SET ── begin ── walk ── walk ── … ── walk: the last key ── complete
//!                 └──────── all keys count as new ────────┘
//! ```
//!
//! LRU and LFU give the clock bits different meanings. If the low bits of a time in seconds were read as a counter,
//! keys would be evicted first, or never. The restart therefore makes each key count as new (LFU) or as just used
//! (LRU). A walk sets the clocks in short steps between commands. No clock is read until the walk is complete.

use crate::env::Env;
use crate::keyspace::evict::{new_frequency_clock, recency_clock};
use crate::keyspace::keys::{lock_blocking, must_postpone_writes};
use crate::keyspace::{DbNumber, Keyspace};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// Buckets walked between two checks of the remaining time.
const BUCKETS_PER_STEP: usize = 64;

/// The progress of restarts of the access clocks.
#[derive(Debug, Default)]
pub(in crate::keyspace) struct ClockRestart {
    /// Number of restarts that have begun.
    begun: AtomicU64,
    /// The restart that was completed last. Equal to `begun` if no restart is in progress.
    completed: AtomicU64,
    /// True if the clocks now count uses (LFU), false if they are times (LRU).
    is_lfu: AtomicBool,
}

impl ClockRestart {
    /// Reports whether clocks may still have the format of the previous policy.
    #[inline]
    pub(crate) fn is_in_progress(&self) -> bool {
        self.completed.load(Ordering::Acquire) != self.begun.load(Ordering::Acquire)
    }

    fn begin(&self) {
        self.begun.fetch_add(1, Ordering::AcqRel);
    }

    /// Called when keys have moved between slots. A walk in progress starts again.
    pub(in crate::keyspace) fn start_again(&self) {
        if self.is_in_progress() {
            self.begin();
        }
    }
}

impl Keyspace {
    /// Begins to restart the access clocks of all keys, because the policy changed between LRU and
    /// LFU. A [`ClockWalker`] does the work. Call it only during quiescence. O(1).
    pub fn restart_clocks(&self, is_lfu: bool) {
        self.clocks.is_lfu.store(is_lfu, Ordering::Relaxed);
        self.clocks.begin();
    }

    /// Reports whether a [`ClockWalker`] has work to do. O(1).
    #[inline]
    pub fn restarts_clocks(&self) -> bool {
        self.clocks.is_in_progress()
    }
}

/// The position of the walk over all keys. One thread owns it.
#[derive(Debug, Default)]
pub struct ClockWalker {
    /// The restart to which the position belongs.
    restart: u64,
    db: u32,
    slot: usize,
    cursor: u32,
}

impl ClockWalker {
    /// Restarts clocks until the walk is complete or `more` reports that the time is up. Returns
    /// true if the walk is complete.
    pub fn walk(&mut self, keyspace: &Keyspace, env: &Env, mut more: impl FnMut() -> bool) -> bool {
        let restart = &keyspace.clocks;
        while restart.is_in_progress() {
            let begun = restart.begun.load(Ordering::Acquire);
            if self.restart != begun {
                *self = ClockWalker { restart: begun, ..ClockWalker::default() };
            }
            if keyspace.db(DbNumber(self.db)).is_none() {
                restart.completed.store(self.restart, Ordering::Release);
                continue;
            }
            if !self.step(keyspace, env) || !more() {
                return !restart.is_in_progress();
            }
        }
        true
    }

    /// Restarts the clocks of some keys. Returns false if writes have to be postponed.
    fn step(&mut self, keyspace: &Keyspace, env: &Env) -> bool {
        let database = keyspace.db(DbNumber(self.db)).and_then(|db| keyspace.database_if_used(db));
        let next = database.and_then(|database| {
            let id = database.occupied_from(self.slot).next()?;
            Some((database, id))
        });
        let Some((database, id)) = next else {
            (self.db, self.slot, self.cursor) = (self.db + 1, 0, 0);
            return true;
        };
        if id.index() != self.slot {
            (self.slot, self.cursor) = (id.index(), 0);
        }
        let guard = lock_blocking(database, id);
        if must_postpone_writes() {
            return false;
        }
        let clock = match keyspace.clocks.is_lfu.load(Ordering::Relaxed) {
            true => new_frequency_clock(env.now()),
            false => recency_clock(env.now()),
        };
        for _ in 0..BUCKETS_PER_STEP {
            self.cursor = guard.table().scan(self.cursor, |entry| entry.set_clock(clock));
            if self.cursor == 0 {
                self.slot += 1;
                break;
            }
        }
        true
    }
}
