//! Active expiry: removes keys whose TTL has passed and that no command accesses.
//!
//! Each slot has a lower bound of its expiry times. A cycle therefore reads one cache line per
//! slot, and walks the entries only where a key may have expired. A slot that was walked rests for
//! `REST_MS`. If expiry times are spread evenly, every walk finds a few expired keys, and walking
//! in each cycle would use all available time. With the rest, an expired key stays in memory for
//! less than a second, and each key is checked about once per second. A walk goes bucket by bucket
//! and may stop anywhere.

use crate::env::Env;
use crate::keyspace::fields::{FIELDS_PER_SLICE, expire_inside, inner_deadline};
use crate::keyspace::keys::{after_expiry, lock_blocking, must_postpone_writes, seal_slot};
use crate::keyspace::marks::{CONCERNED, FIELD_TTLS_SET_SINCE_WALK, HAS_FIELD_TTLS};
use crate::keyspace::snapshot::Change;
use crate::keyspace::{Database, DbIndex, DbNumber, Keyspace, SLOTS, SlotGuard, SlotId, UnixMs};

/// Time for which a slot is skipped after it was walked to the end.
const REST_MS: u32 = 800;

/// Buckets walked between two checks of the remaining time.
const BUCKETS_PER_STEP: usize = 64;

/// Slots skipped between two checks of the remaining time.
const IDLE_SLOTS_PER_LOOK: u32 = 256;

/// The position of a thread's expiry cycle. Threads divide the slots by slot number.
#[derive(Debug, Clone)]
pub struct Sweeper {
    /// This thread owns the slots whose number is `share` modulo `of`.
    share: usize,
    of: usize,
    db: u32,
    slot: usize,
    /// Position in the slot's table; 0 is the beginning.
    position: u32,
    /// Earliest expiry time left in the part of the slot that was walked.
    earliest: UnixMs,
    /// True if a field of a hash in that part has a TTL.
    has_field_ttls: bool,
}

/// How a cycle ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SweepOutcome {
    /// The cycle visited every slot of the share.
    All,
    /// The time was up. The next cycle continues from here.
    Part,
}

/// How far a step of a walk got.
#[derive(Clone, Copy, PartialEq, Eq)]
enum SlotProgress {
    /// Nothing in the slot has expired, or the slot rests.
    Nothing,
    Part,
    ToTheEnd,
}

impl Sweeper {
    pub fn new(share: usize, of: usize) -> Sweeper {
        assert!(share < of);
        Sweeper {
            share,
            of,
            db: 0,
            slot: share,
            position: 0,
            earliest: UnixMs::MAX,
            has_field_ttls: false,
        }
    }

    /// Continues until every slot was visited once or `more` reports that the time is up.
    pub fn cycle(
        &mut self,
        keyspace: &Keyspace,
        env: &Env,
        mut more: impl FnMut() -> bool,
    ) -> SweepOutcome {
        let totals = keyspace.totals();
        let mut idle_slots = 0;
        loop {
            let Some(db) = keyspace.db(DbNumber(self.db)) else {
                (self.db, self.slot, self.position) = (0, self.share, 0);
                return SweepOutcome::All;
            };
            let database = keyspace.database_if_used(db);
            let any = totals.databases[db.index()].with_deadline > 0
                || database.is_some_and(Database::has_inner_deadlines);
            while any && self.find_slot(database) {
                let walked = self.slot_step(keyspace, env, db);
                if walked != SlotProgress::Part {
                    (self.slot, self.position) = (self.slot + self.of, 0);
                    (self.earliest, self.has_field_ttls) = (UnixMs::MAX, false);
                }
                // The time is checked after each step of a walk, and now and then in between.
                idle_slots = if walked == SlotProgress::Nothing { idle_slots + 1 } else { 0 };
                if idle_slots % IDLE_SLOTS_PER_LOOK == 0 && !more() {
                    env.tally.expire_time_cap_reached.add(1);
                    return SweepOutcome::Part;
                }
            }
            (self.db, self.slot, self.position) = (self.db + 1, self.share, 0);
        }
    }

    /// Skips slots without keys, unless the walk is inside a slot. Returns false at the end of the
    /// share.
    fn find_slot(&mut self, database: Option<&Database>) -> bool {
        if self.position == 0 {
            let (share, of) = (self.share, self.of);
            let mut occupied = database.into_iter().flat_map(|db| db.occupied_from(self.slot));
            let next = occupied.find(|slot| slot.index() % of == share);
            self.slot = next.map_or(SLOTS, SlotId::index);
        }
        self.slot < SLOTS
    }

    /// Continues the walk in the current slot.
    fn slot_step(&mut self, keyspace: &Keyspace, env: &Env, db: DbIndex) -> SlotProgress {
        let Some(database) = keyspace.database_if_used(db) else { return SlotProgress::Nothing };
        let id = SlotId::new(self.slot as u16);
        if database.slot(id).is_empty() {
            return SlotProgress::Nothing;
        }
        let now = env.now();
        let mut guard = lock_blocking(database, id);
        if must_postpone_writes() {
            return SlotProgress::Nothing;
        }
        let meta = guard.meta();
        // A rest ends at most `REST_MS` from now. Any other value is left over from an old rest or
        // was never set, and the 32 bits have wrapped around since.
        let rest_left = meta.rest_until.wrapping_sub(now.0 as u32);
        let resting = (1..=REST_MS).contains(&rest_left);
        if meta.earliest > now || (resting && self.position == 0) {
            return SlotProgress::Nothing;
        }
        if self.position == 0 {
            guard.meta_mut().earliest_since_walk = UnixMs::MAX;
            let marks = guard.marks() & !FIELD_TTLS_SET_SINCE_WALK;
            guard.set_marks(marks);
        }
        let walked = self.walk_slot(keyspace, env, db, &mut guard);
        seal_slot(keyspace, env, (db, id), &mut guard);
        walked
    }

    /// One step of the walk over a held slot.
    fn walk_slot(
        &mut self,
        keyspace: &Keyspace,
        env: &Env,
        db: DbIndex,
        guard: &mut SlotGuard<'_>,
    ) -> SlotProgress {
        let now = env.now();
        let from = self.position;
        let due_inside = self.extract_step(keyspace, env, db, guard);
        for key in due_inside {
            let hash = keyspace.hasher().hash(&key);
            if !expire_inside(keyspace, env, db, guard, hash, &key, FIELDS_PER_SLICE) {
                self.position = from;
                return SlotProgress::Part;
            }
            let left = guard.table().find(hash, &key).and_then(|entry| inner_deadline(&entry));
            if let Some(deadline) = left {
                self.earliest = self.earliest.min(deadline);
                self.has_field_ttls = true;
            }
        }
        if self.position != 0 {
            return SlotProgress::Part;
        }
        if !self.has_field_ttls && guard.marks() & FIELD_TTLS_SET_SINCE_WALK == 0 {
            let marks = guard.marks() & !HAS_FIELD_TTLS;
            guard.set_marks(marks);
        }
        let meta = guard.meta_mut();
        meta.earliest = self.earliest.min(meta.earliest_since_walk);
        meta.rest_until = (now.0 as u32).wrapping_add(REST_MS);
        SlotProgress::ToTheEnd
    }

    /// Walks over some buckets. Removes the expired keys, and returns the other keys that contain
    /// expired fields.
    fn extract_step(
        &mut self,
        keyspace: &Keyspace,
        env: &Env,
        db: DbIndex,
        guard: &mut SlotGuard<'_>,
    ) -> Vec<Vec<u8>> {
        let now = env.now();
        let (mut expired, mut due_inside) = (Vec::new(), Vec::new());
        let (mut earliest, mut has_field_ttls) = (self.earliest, self.has_field_ttls);
        for _ in 0..BUCKETS_PER_STEP {
            self.position = guard.extract_at(
                Change { keyspace, env, db },
                SlotId::new(self.slot as u16),
                self.position,
                |entry| {
                    let deadline = entry.deadline().map_or(UnixMs::MAX, UnixMs);
                    if deadline <= now {
                        return true;
                    }
                    earliest = earliest.min(deadline);
                    if let Some(inside) = inner_deadline(&entry) {
                        if inside <= now {
                            due_inside.push(entry.key().to_vec());
                        } else {
                            earliest = earliest.min(inside);
                            has_field_ttls = true;
                        }
                    }
                    false
                },
                |entry| expired.push(entry),
            );
            if self.position == 0 {
                break;
            }
        }
        (self.earliest, self.has_field_ttls) = (earliest, has_field_ttls);
        let tally = env.tally.database(db);
        let fields_marked = guard.marks() & HAS_FIELD_TTLS != 0;
        let marks = guard.marks();
        let meta = guard.meta_mut();
        for entry in expired {
            let deadline = entry.deadline().unwrap_or(0);
            meta.with_deadline -= 1;
            tally.keys.add(-1);
            tally.with_deadline.add(-1);
            tally.deadlines_ms.add((deadline as i64).wrapping_neg());
            if marks & CONCERNED != 0 {
                let key = keyspace.hasher().key(entry.key());
                keyspace.notify_concerned(env, db, &key, marks, false);
            }
            after_expiry(env, db, entry);
        }
        if meta.with_deadline == 0 && !fields_marked {
            meta.no_deadlines();
        }
        due_inside
    }
}
