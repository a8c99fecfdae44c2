//! Counters without contention: each thread adds to its own, and a reader sums them.

use super::DbIndex;
use super::clocks::ClockRestart;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

/// A counter that one thread changes and other threads may read.
#[derive(Debug, Default)]
pub struct Counter(AtomicI64);

impl Counter {
    /// Adds `n`. Only the owning thread calls this, so no atomic read-modify-write is needed.
    #[inline]
    pub fn add(&self, n: i64) {
        self.0.store(self.0.load(Ordering::Relaxed).wrapping_add(n), Ordering::Relaxed);
    }
    #[inline]
    pub fn get(&self) -> i64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// One thread's share of the keyspace's counters.
#[derive(Debug)]
pub struct Tally {
    databases: Box<[DatabaseTally]>,
    pub hits: Counter,
    pub misses: Counter,
    pub expired: Counter,
    /// Number of expired fields of hashes.
    pub expired_fields: Counter,
    pub evicted: Counter,
    /// Slot sweeps that stopped because their time was up.
    pub expire_time_cap_reached: Counter,
    /// Shared with the keyspace, for code that has access to an entry but not to the keyspace.
    clocks: Arc<ClockRestart>,
}

/// One thread's share of a database's counters.
#[derive(Debug, Default)]
pub struct DatabaseTally {
    pub keys: Counter,
    pub with_deadline: Counter,
    /// Sum of the expiry times, modulo 2^64.
    pub deadlines_ms: Counter,
}

impl DatabaseTally {
    /// Adds the difference between `is` and `was` to this share, so that the totals of the database
    /// change from `was` to `is`.
    pub(super) fn shift(&self, was: &DatabaseTotals, is: &DatabaseTotals) {
        self.keys.add(is.keys as i64 - was.keys as i64);
        self.with_deadline.add(is.with_deadline as i64 - was.with_deadline as i64);
        self.deadlines_ms.add(is.deadlines_ms.wrapping_sub(was.deadlines_ms) as i64);
    }
}

impl Tally {
    pub(super) fn new(databases: usize, clocks: Arc<ClockRestart>) -> Tally {
        Tally {
            databases: (0..databases).map(|_| DatabaseTally::default()).collect(),
            hits: Counter::default(),
            misses: Counter::default(),
            expired: Counter::default(),
            expired_fields: Counter::default(),
            evicted: Counter::default(),
            expire_time_cap_reached: Counter::default(),
            clocks,
        }
    }

    /// Reports whether access clocks in the keyspace may still have the format of the previous
    /// policy.
    #[inline]
    pub(super) fn restarts_clocks(&self) -> bool {
        self.clocks.is_in_progress()
    }

    /// Resets the event counters. The owner must not count during the call.
    pub(super) fn reset_statistics(&self) {
        let events = [
            &self.hits,
            &self.misses,
            &self.expired,
            &self.expired_fields,
            &self.evicted,
            &self.expire_time_cap_reached,
        ];
        for count in events {
            count.0.store(0, Ordering::Relaxed);
        }
    }

    #[inline]
    pub fn database(&self, db: DbIndex) -> &DatabaseTally {
        &self.databases[db.index()]
    }
}

/// Sums over all threads.
#[derive(Debug, Default, Clone)]
pub struct Totals {
    pub databases: Vec<DatabaseTotals>,
    pub hits: u64,
    pub misses: u64,
    pub expired: u64,
    pub expired_fields: u64,
    pub evicted: u64,
    pub expire_time_cap_reached: u64,
}

/// The counters of one database.
#[derive(Debug, Default, Clone, Copy)]
pub struct DatabaseTotals {
    pub keys: u64,
    pub with_deadline: u64,
    /// Sum of the expiry times, modulo 2^64. Small results that are computed from it, such as the
    /// average TTL, are exact.
    pub deadlines_ms: u64,
}

fn sum<'a>(counts: impl Iterator<Item = &'a Counter>) -> i64 {
    counts.map(Counter::get).fold(0, i64::wrapping_add)
}

impl DatabaseTotals {
    pub(super) fn sum(db: DbIndex, tallies: &[Arc<Tally>]) -> DatabaseTotals {
        let databases = || tallies.iter().map(|tally| tally.database(db));
        DatabaseTotals {
            keys: sum(databases().map(|db| &db.keys)).max(0) as u64,
            with_deadline: sum(databases().map(|db| &db.with_deadline)).max(0) as u64,
            deadlines_ms: sum(databases().map(|db| &db.deadlines_ms)) as u64,
        }
    }

    /// Mean remaining TTL in ms of the keys with a TTL; 0 if there are none. O(1).
    pub fn average_ttl_ms(&self, now: super::UnixMs) -> u64 {
        if self.with_deadline == 0 {
            return 0;
        }
        let left = self.deadlines_ms.wrapping_sub(now.0.wrapping_mul(self.with_deadline)) as i64;
        left.max(0) as u64 / self.with_deadline
    }
}

impl Totals {
    pub(super) fn sum(databases: usize, tallies: &[Arc<Tally>]) -> Totals {
        let sum =
            |of: fn(&Tally) -> &Counter| sum(tallies.iter().map(|tally| of(tally))).max(0) as u64;
        let all = DbIndex::all(databases as u32);
        Totals {
            databases: all.map(|db| DatabaseTotals::sum(db, tallies)).collect(),
            hits: sum(|tally| &tally.hits),
            misses: sum(|tally| &tally.misses),
            expired: sum(|tally| &tally.expired),
            expired_fields: sum(|tally| &tally.expired_fields),
            evicted: sum(|tally| &tally.evicted),
            expire_time_cap_reached: sum(|tally| &tally.expire_time_cap_reached),
        }
    }
}
