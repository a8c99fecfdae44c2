//! Eviction: access clocks, and the choice of keys to remove when memory is short.
//!
//! As in Redis, eviction samples a few keys and keeps the best candidates in a small pool between
//! calls. The result is close to a true LRU or LFU order at a fraction of the cost. Each entry has
//! a clock of 24 bits: the second of the last access or, under an LFU policy, 16 bits of minutes
//! and an 8-bit logarithmic counter.

use crate::base::random::Random;
use crate::env::{Env, EvictionPolicy};
use crate::keyspace::draw::draw_slot;
use crate::keyspace::entry::EntryRef;
use crate::keyspace::keys::{
    after_eviction, detach, discard, lock_blocking, must_postpone_writes, seal_slot,
};
use crate::keyspace::{Database, DbIndex, Entry, Keyspace, SLOTS, SlotId, Stored, UnixMs};
use crate::types::allocated_bytes;

const CLOCK_MAX: u32 = (1 << 24) - 1;
/// Counter of a new key. It is not 0, so that the key is not evicted before clients have had a
/// chance to use it.
const LFU_NEW: u32 = 5;
/// Candidates kept between calls.
const POOL_MAX: usize = 16;
/// Maximum capacity of a key buffer that is kept.
const SPARE_KEY_BYTES_MAX: usize = 256;
/// Number of random slots to try before walking all slots, starting at a random one.
const RANDOM_SLOTS_MAX: usize = 64;
/// Number of keys to check in a random slot for a key that may be evicted.
const SAMPLED_MAX: usize = 256;

/// The recency clock: seconds, modulo 2^24.
pub(crate) fn recency_clock(now: UnixMs) -> u32 {
    ((now.0 / 1000) & u64::from(CLOCK_MAX)) as u32
}

fn minutes(now: UnixMs) -> u32 {
    ((now.0 / 60_000) & 0xffff) as u32
}

/// The clock of a key that counts as new under an LFU policy.
pub(in crate::keyspace) fn new_frequency_clock(now: UnixMs) -> u32 {
    minutes(now) << 8 | LFU_NEW
}

/// The clock of a new or overwritten key.
#[inline]
pub(crate) fn initial_clock(env: &Env) -> u32 {
    if env.settings.eviction.is_lfu() { new_frequency_clock(env.now()) } else { env.recency.get() }
}

/// Records an access.
#[inline]
pub(crate) fn touch(env: &Env, entry: &Entry) {
    if env.settings.eviction.is_lfu() {
        return touch_frequency(env, entry);
    }
    let clock = env.recency.get();
    // The cache line stays clean if the second has not changed.
    if entry.clock() != clock && env.touch.get() {
        entry.set_clock(clock);
    }
}

#[cold]
fn touch_frequency(env: &Env, entry: &Entry) {
    // Until all clocks are restarted, this clock may still be a time.
    if env.touch.get() && !env.tally.restarts_clocks() {
        let frequency = Frequency::of(env);
        entry.set_clock(frequency.touched(entry.clock(), || env.random.borrow_mut().unit()));
    }
}

/// The parameters of the LFU clock.
#[derive(Debug, Clone, Copy)]
struct Frequency {
    log_factor: u32,
    decay_minutes: u32,
    minutes: u32,
}

impl Frequency {
    fn of(env: &Env) -> Frequency {
        Frequency {
            log_factor: env.settings.lfu_log_factor,
            decay_minutes: env.settings.lfu_decay_minutes,
            minutes: minutes(env.now()),
        }
    }

    /// The counter in a clock, decayed to now.
    fn counter(self, clock: u32) -> u32 {
        let counter = clock & 0xff;
        let elapsed = self.minutes.wrapping_sub(clock >> 8) & 0xffff;
        match elapsed.checked_div(self.decay_minutes) {
            Some(periods) => counter.saturating_sub(periods),
            None => counter,
        }
    }

    /// The clock after an access. `unit` returns a random number in `[0, 1)`.
    fn touched(self, clock: u32, unit: impl FnOnce() -> f64) -> u32 {
        let mut counter = self.counter(clock);
        if counter < 255 {
            let above = f64::from(counter.saturating_sub(LFU_NEW));
            let chance = 1.0 / (above * f64::from(self.log_factor) + 1.0);
            if unit() < chance {
                counter += 1;
            }
        }
        self.minutes << 8 | counter
    }
}

/// Records accesses for a command whose work is done by a thread without an [`Env`].
#[derive(Debug)]
pub(crate) struct AccessRecorder {
    clock: Option<Clock>,
}

#[derive(Debug)]
enum Clock {
    Recency(u32),
    Frequency(Frequency, Random),
}

impl AccessRecorder {
    pub(crate) fn of(env: &Env) -> AccessRecorder {
        let clock = || match env.settings.eviction.is_lfu() {
            true => {
                let random = Random::seeded(env.random.borrow_mut().bits());
                Clock::Frequency(Frequency::of(env), random)
            }
            false => Clock::Recency(env.recency.get()),
        };
        let counts = env.touch.get() && !env.tally.restarts_clocks();
        AccessRecorder { clock: counts.then(clock) }
    }

    /// Records an access.
    pub(crate) fn note(&mut self, entry: &EntryRef<'_>) {
        let entry = &entry.0;
        match &mut self.clock {
            None => {}
            Some(Clock::Recency(clock)) if entry.clock() == *clock => {}
            Some(Clock::Recency(clock)) => entry.set_clock(*clock),
            Some(Clock::Frequency(frequency, random)) => {
                entry.set_clock(frequency.touched(entry.clock(), || random.unit()));
            }
        }
    }
}

/// The LFU counter in a clock, decayed to now, as OBJECT FREQ shows it. While clocks are restarted,
/// it is the counter of a new key.
pub fn frequency(env: &Env, clock: u32) -> u32 {
    if env.tally.restarts_clocks() {
        return LFU_NEW;
    }
    Frequency::of(env).counter(clock)
}

/// Milliseconds since the last access according to an LRU clock. OBJECT IDLETIME shows it in
/// seconds. It is 0 while clocks are restarted.
pub fn idle_ms(env: &Env, clock: u32) -> u64 {
    if env.tally.restarts_clocks() {
        return 0;
    }
    u64::from(env.recency.get().wrapping_sub(clock) & CLOCK_MAX) * 1000
}

/// The clock of a key that has been idle for `seconds`, as RESTORE and tests set it.
pub fn clock_idle_for(env: &Env, seconds: u64) -> u32 {
    env.recency.get().wrapping_sub(seconds as u32) & CLOCK_MAX
}

/// The LFU clock with the counter `uses`.
pub(crate) fn clock_of_frequency(env: &Env, uses: u8) -> u32 {
    minutes(env.now()) << 8 | u32::from(uses)
}

#[derive(Debug)]
struct Candidate {
    /// Keys with a higher score are evicted sooner.
    score: u64,
    db: DbIndex,
    slot: SlotId,
    key: Vec<u8>,
}

/// The best candidates that a thread knows.
#[derive(Debug, Default)]
pub struct Evictor {
    /// In ascending order of score.
    pool: Vec<Candidate>,
    /// The policy that computed the scores. Scores of another policy are meaningless.
    scored_by: Option<EvictionPolicy>,
    /// Databases with keys that may be evicted. It is a field only so that its memory is reused.
    used: Vec<DbIndex>,
    /// Key buffers of former candidates, so that a new candidate needs no allocation. Eviction runs
    /// when memory is short, possibly before each command.
    spare: Vec<Vec<u8>>,
}

impl Evictor {
    /// Removes one key according to the policy. Returns the bytes of memory that the key used, or
    /// `None` if no key may be evicted.
    pub fn evict_one(&mut self, keyspace: &Keyspace, env: &Env) -> Option<u64> {
        let policy = env.settings.eviction;
        if policy == EvictionPolicy::NoEviction {
            return None;
        }
        if self.scored_by.replace(policy) != Some(policy) {
            self.pool.clear();
        }
        // Databases without keys that may be evicted are not searched.
        let mut used = std::mem::take(&mut self.used);
        if policy.volatile_only() {
            keyspace.databases_with(|tally| &tally.with_deadline, &mut used);
        } else {
            keyspace.databases_with(|tally| &tally.keys, &mut used);
        }
        let removed = [false, true].into_iter().find_map(|whole| {
            used.iter().for_each(|db| self.sample(keyspace, env, *db, whole));
            self.remove_best(keyspace, env)
        });
        self.used = used;
        removed
    }

    /// Removes the best candidate that still exists.
    fn remove_best(&mut self, keyspace: &Keyspace, env: &Env) -> Option<u64> {
        while let Some(candidate) = self.pool.pop() {
            let removed = remove(keyspace, env, &candidate);
            self.recycle(candidate);
            if removed.is_some() {
                return removed;
            }
        }
        None
    }

    /// Keeps the key's buffer for another candidate, unless the key was long.
    fn recycle(&mut self, candidate: Candidate) {
        if candidate.key.capacity() <= SPARE_KEY_BYTES_MAX && self.spare.len() < POOL_MAX {
            self.spare.push(candidate.key);
        }
    }

    /// Offers some keys of a database to the pool: keys of random slots or, with `whole`, of all
    /// slots, starting at a random one, until there are enough.
    fn sample(&mut self, keyspace: &Keyspace, env: &Env, db: DbIndex, whole: bool) {
        let Some(database) = keyspace.database_if_used(db) else { return };
        if whole {
            let first = env.random_below(SLOTS as u64) as usize;
            let mut wanted = POOL_MAX;
            let before = database.occupied_from(0).take_while(|slot| slot.index() < first);
            for slot in database.occupied_from(first).chain(before) {
                wanted -= self.sample_slot(env, database, db, slot, wanted, usize::MAX);
                if wanted == 0 {
                    return;
                }
            }
        } else {
            let total = keyspace.key_count(db);
            let mut wanted = env.settings.maxmemory_samples.max(1) as usize;
            for _ in 0..RANDOM_SLOTS_MAX {
                let Some(slot) = draw_slot(database, env, db, total) else { return };
                wanted -= self.sample_slot(env, database, db, slot, wanted, SAMPLED_MAX);
                if wanted == 0 {
                    return;
                }
            }
        }
    }

    /// Offers up to `wanted` keys of a slot to the pool, and checks at most `looks` keys. Returns
    /// the number offered.
    fn sample_slot(
        &mut self,
        env: &Env,
        database: &Database,
        db: DbIndex,
        slot: SlotId,
        wanted: usize,
        looks: usize,
    ) -> usize {
        if database.slot(slot).is_empty() {
            return 0;
        }
        let policy = env.settings.eviction;
        let guard = lock_blocking(database, slot);
        if policy.volatile_only() && guard.meta().with_deadline == 0 {
            return 0;
        }
        let seen = std::cell::Cell::new(0);
        let random = env.random.borrow_mut().bits();
        let mut offer = |entry: Stored<'_>| {
            if seen.get() < wanted && (!policy.volatile_only() || entry.deadline().is_some()) {
                seen.set(seen.get() + 1);
                self.offer(score(env, &entry), db, slot, entry.key());
            }
        };
        guard.table().sample_many(random, wanted.min(looks), &mut offer);
        if seen.get() == 0 {
            // Only a few of many keys have a TTL.
            guard.table().sample_many(random, looks, offer);
        }
        seen.get()
    }

    fn offer(&mut self, score: u64, db: DbIndex, slot: SlotId, key: &[u8]) {
        let known = |held: &Candidate| held.db == db && held.key == key;
        if self.pool.iter().any(known) {
            return;
        }
        if self.pool.len() == POOL_MAX {
            if self.pool[0].score >= score {
                return;
            }
            let worst = self.pool.remove(0);
            self.recycle(worst);
        }
        let at = self.pool.partition_point(|held| held.score < score);
        let mut buffer = self.spare.pop().unwrap_or_default();
        buffer.clear();
        buffer.extend_from_slice(key);
        self.pool.insert(at, Candidate { score, db, slot, key: buffer });
    }
}

fn score(env: &Env, entry: &Entry) -> u64 {
    match env.settings.eviction {
        EvictionPolicy::AllKeysLru | EvictionPolicy::VolatileLru => idle_ms(env, entry.clock()),
        EvictionPolicy::AllKeysLfu | EvictionPolicy::VolatileLfu => {
            255 - u64::from(frequency(env, entry.clock()))
        }
        EvictionPolicy::VolatileTtl => u64::MAX - entry.deadline().unwrap_or(u64::MAX),
        EvictionPolicy::AllKeysRandom | EvictionPolicy::VolatileRandom => {
            env.random.borrow_mut().bits()
        }
        EvictionPolicy::NoEviction => 0,
    }
}

/// Removes the candidate and returns the bytes that it used. `None` if the key no longer exists or
/// must not be evicted.
fn remove(keyspace: &Keyspace, env: &Env, candidate: &Candidate) -> Option<u64> {
    let database = keyspace.database_if_used(candidate.db)?;
    let mut guard = lock_blocking(database, candidate.slot);
    if must_postpone_writes() {
        return None;
    }
    let hash = keyspace.hasher().hash(&candidate.key);
    let volatile = env.settings.eviction.volatile_only();
    let eligible = guard
        .table()
        .find(hash, &candidate.key)
        .is_some_and(|entry| !volatile || entry.deadline().is_some());
    if !eligible {
        return None;
    }
    let entry = detach(keyspace, env, candidate.db, &mut guard, hash, &candidate.key)?;
    let bytes = allocated_bytes(&entry) as u64;
    env.tally.evicted.add(1);
    after_eviction(env, candidate.db, &entry);
    seal_slot(keyspace, env, (candidate.db, candidate.slot), &mut guard);
    drop(guard);
    // The evicting thread must see that the memory is free, or it would keep evicting. With
    // `lazy_eviction` it does not wait for that.
    if env.settings.lazy_eviction {
        discard(env, entry);
    }
    Some(bytes)
}
