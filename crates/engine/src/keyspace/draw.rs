//! Random keys. Each key has nearly the same chance, however unevenly the slots are filled.
//!
//! A thread remembers the number of keys in each slot of a database and draws slots in that
//! proportion. It counts again after a number of draws, or when the number of keys has changed by
//! an eighth. Keys added since the count may be drawn too rarely until then.

use super::keys::{after_expiry, detach, lock_blocking, must_postpone_writes, seal_slot};
use super::{Database, DbIndex, Keys, SlotId, UnixMs};
use crate::env::Env;

/// Number of expired keys drawn before the search switches to a scan.
const EXPIRED_MAX: u32 = 100;

/// Number of draws between two counts. A count visits every slot with keys, which costs as much as
/// a few hundred draws.
const DRAWS_PER_COUNT: u32 = 4096;

/// Number of empty slots drawn before keys are counted again.
const EMPTY_MAX: usize = 16;

/// The distribution of a database's keys over its slots.
#[derive(Debug, Default)]
pub(crate) struct SlotWeights {
    db: DbIndex,
    /// The slots that were not empty.
    slots: Vec<SlotId>,
    /// For each slot, the number of keys in it and in all slots before it.
    running_totals: Vec<u64>,
    draws_left: u32,
}

impl SlotWeights {
    fn total(&self) -> u64 {
        self.running_totals.last().copied().unwrap_or(0)
    }

    fn serves(&self, db: DbIndex, total: u64) -> bool {
        self.db == db && self.draws_left > 0 && self.total().abs_diff(total) <= self.total() / 8
    }

    fn count(&mut self, database: &Database, db: DbIndex) {
        self.db = db;
        self.draws_left = DRAWS_PER_COUNT;
        // This allocates while memory may be short, so it reserves the exact size.
        (self.slots, self.running_totals) = Default::default();
        self.slots.reserve_exact(database.occupied_from(0).count());
        self.slots.extend(database.occupied_from(0));
        let mut total = 0;
        self.running_totals.reserve_exact(self.slots.len());
        self.running_totals.extend(self.slots.iter().map(|slot| {
            total += database.slot(*slot).len() as u64;
            total
        }));
    }

    fn slot_of(&self, number: u64) -> SlotId {
        self.slots[self.running_totals.partition_point(|total| *total <= number)]
    }
}

/// Draws a slot of a database with `total` keys. A slot's chance is proportional to its number of
/// keys. `None` if there are no keys. O(log slots) on average.
pub(super) fn draw_slot(database: &Database, env: &Env, db: DbIndex, total: u64) -> Option<SlotId> {
    let mut spread = env.spread.borrow_mut();
    for count in [false, true] {
        if count || !spread.serves(db, total) {
            spread.count(database, db);
        }
        if spread.total() == 0 {
            return None;
        }
        for _ in 0..EMPTY_MAX {
            spread.draws_left = spread.draws_left.saturating_sub(1);
            let slot = spread.slot_of(env.random_below(spread.total()));
            if !database.slot(slot).is_empty() {
                return Some(slot);
            }
        }
    }
    None
}

impl Keys<'_> {
    /// A random key among those that have not expired, each with nearly the same chance; `None` if
    /// there is none. Expired keys that were drawn are removed, unless they have to stay. O(1) on
    /// average if keys are spread over the slots and few have expired, else O(slots) or O(keys).
    pub fn random_key(&mut self) -> Option<Vec<u8>> {
        self.assert_holds_nothing();
        let database = self.keyspace().database_if_used(self.db())?;
        let now = self.env().horizon();
        for _ in 0..EXPIRED_MAX {
            let total = self.keyspace().key_count(self.db());
            if total == 0 {
                return None;
            }
            let id = draw_slot(database, self.env(), self.db(), total)?;
            let mut guard = lock_blocking(database, id);
            let random = self.env().random.borrow_mut().bits();
            let Some(entry) = guard.table().sample(random) else { continue };
            let key = entry.key().to_vec();
            if entry.deadline().is_none_or(|at| UnixMs(at) > now) {
                return Some(key);
            }
            if self.env().keeps_expired.get() || must_postpone_writes() {
                continue;
            }
            let hash = self.keyspace().hasher().hash(&key);
            let (keyspace, env) = (self.keyspace(), self.env());
            let entry = detach(keyspace, env, self.db(), &mut guard, hash, &key);
            self.expired_any = true;
            entry.into_iter().for_each(|entry| after_expiry(env, self.db(), entry));
            seal_slot(keyspace, env, (self.db(), id), &mut guard);
        }
        // Nearly all keys have expired: the first one that has not is random enough.
        let mut found = None;
        let mut cursor = 0;
        loop {
            cursor = self.scan(cursor, 1, |entry| found = Some(entry.key().to_vec()));
            if cursor == 0 || found.is_some() {
                return found;
            }
        }
    }
}
