//! Drawing keys at random, each with nearly the same chance however unevenly slots are filled.
//!
//! A thread remembers how many keys each slot of a database had and draws slots in that proportion.
//! It counts again after a number of draws or when the number of keys has changed by an eighth, so
//! what was added since then may be drawn too rarely, but not for long.

use super::keys::{after_expiry, detach, lock_blocking, must_postpone_writes, seal_slot};
use super::{Database, DbIndex, Keys, SlotId, UnixMs};
use crate::env::Env;

/// How many expired keys are met before a key is searched for rather than drawn.
const EXPIRED_MAX: u32 = 100;

/// Draws between two counts: a count looks at every slot with keys, which costs as much as some
/// hundred draws.
const DRAWS_PER_COUNT: u32 = 4096;

/// Empty slots drawn before keys are counted again.
const EMPTY_MAX: usize = 16;

/// How the keys of a database are spread over its slots.
#[derive(Debug, Default)]
pub(crate) struct SlotWeights {
    db: DbIndex,
    /// The slots that were not empty.
    slots: Vec<SlotId>,
    /// For each, the keys in it and in all slots before it.
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
        // Made when memory is short, so no larger than needed.
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

/// A slot of a database with `total` keys, with a chance in proportion to its keys; `None` if there
/// are none. O(log slots) on average.
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
    /// A key chosen at random among those that are not expired, every key with nearly the same
    /// chance; `None` if there is none. Expired keys it meets are removed, unless they are to stay.
    /// O(1) on average when keys are spread over slots and few are expired, else O(slots)
    /// or O(keys).
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
        // Nearly all keys are expired: the first that is not is random enough.
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
