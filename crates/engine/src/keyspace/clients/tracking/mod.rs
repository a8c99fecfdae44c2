//! Client-side caching: which clients may have cached which keys, and which get invalidations.
//!
//! ```text
//!  read ──> remember ──> shard of the key's slot ──> key ──> readers
//!  write ─> changed ───> no tracked keys in the key's part? done. Else the key and its readers leave
//!                        the table and go to the aftermath; the server sends the invalidations
//! ```
//!
//! Keys are remembered by name, regardless of the database, as in Redis. A key is remembered while the
//! slot from which it was read is held, so no change is missed. A reader gets one invalidation and is
//! then forgotten until it reads the key again. The id of a disconnected reader stays in the table.
//! When its invalidation is due, the client is not found.
//!
//! Until a client enables tracking for the first time, slots have no mark and writes pay nothing. From
//! then on all slots of all databases are marked permanently. A write to a part of a slot without
//! tracked keys then reads one counter.

mod table;

use self::table::{IndexTag, Tracked, TrackingTable};
use crate::command::args::{Args, PreparedKey};
use crate::env::effect::{Hooks, Invalidation, KeyName, TrackingClient};
use crate::env::{Env, Garbage};
use crate::keyspace::marks::TRACKED;
use crate::keyspace::{Key, Keys, Keyspace, SLOTS, SlotId, lock_blocking};
use brisk_structures::poison::EvenPoisoned;
use brisk_structures::prefetch::prefetch;
use std::collections::{BTreeMap, HashSet};
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicU8, AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, RwLock};

const SHARDS: usize = 256;
/// Number of parts of a slot with separate counters of tracked keys.
const PARTS: usize = 4;

/// Counter of a part that has more tracked keys than the counter can hold.
const PART_FULL: u8 = u8::MAX;

/// The index of the part to which a key belongs, among the parts of all slots.
fn part_of(slot: SlotId, hash: u64) -> usize {
    slot.index() * PARTS + hash as usize % PARTS
}

/// One shard of the tracked keys.
#[derive(Debug, Default)]
struct TrackingShard {
    table: Mutex<TrackingTable>,
    /// Location of the table's index when it was last read, used to prefetch its cache lines.
    index: AtomicPtr<IndexTag>,
    mask: AtomicUsize,
}

impl TrackingShard {
    /// Records the table's index, which may have moved.
    fn note_index(&self, table: &TrackingTable) {
        let (index, mask) = table.index();
        if self.index.load(Ordering::Relaxed).cast_const() != index {
            self.index.store(index.cast_mut(), Ordering::Relaxed);
            self.mask.store(mask, Ordering::Relaxed);
        }
    }
}

/// All tracked keys, and the clients that track.
#[derive(Debug)]
pub struct Tracking {
    shards: Box<[TrackingShard]>,
    /// Number of tracked keys in each part (see [`part_of`]), so that a write to a key without
    /// readers usually needs no access to a shard. Each counter is one byte, which keeps the array
    /// small. A counter that has reached [`PART_FULL`] stays there until a flush. This field and
    /// the two below are changed under the lock of the shard that has changed. The exception is
    /// [`Tracking::clear`]. It resets the counters after it has held every lock, so no removal of a
    /// key is in progress then.
    by_part: Box<[AtomicU8]>,
    keys: AtomicUsize,
    items: AtomicUsize,
    /// `tracking-table-max-keys`; 0 for no limit.
    keys_max: AtomicUsize,
    /// True if a client listens to prefixes of keys (BCAST).
    broadcasts: AtomicBool,
    /// Clients with tracking enabled.
    clients: RwLock<HashSet<u64>>,
    /// True if slots of new databases get the mark.
    marks: AtomicBool,
    /// Number of databases that are being created.
    opening: AtomicUsize,
    /// Held while all slots are being marked. True once they are.
    all_marked: Mutex<bool>,
}

impl Tracking {
    pub(in crate::keyspace) fn new() -> Tracking {
        Tracking {
            shards: (0..SHARDS).map(|_| TrackingShard::default()).collect(),
            by_part: (0..SLOTS * PARTS).map(|_| AtomicU8::new(0)).collect(),
            keys: AtomicUsize::new(0),
            items: AtomicUsize::new(0),
            keys_max: AtomicUsize::new(0),
            broadcasts: AtomicBool::new(false),
            clients: RwLock::default(),
            marks: AtomicBool::new(false),
            opening: AtomicUsize::new(0),
            all_marked: Mutex::default(),
        }
    }

    /// Creates a database whose slots have the required marks.
    pub(in crate::keyspace) fn opening<R>(&self, open: impl FnOnce(&dyn Fn() -> u8) -> R) -> R {
        self.opening.fetch_add(1, Ordering::SeqCst);
        let opened = open(&|| if self.marks.load(Ordering::SeqCst) { TRACKED } else { 0 });
        self.opening.fetch_sub(1, Ordering::SeqCst);
        opened
    }

    fn shard(&self, slot: SlotId) -> &TrackingShard {
        &self.shards[slot.index() % SHARDS]
    }

    /// Prefetches the counters that invalidating these keys will read.
    pub fn prefetch_counters(&self, keys: &[PreparedKey]) {
        keys.iter().for_each(|key| prefetch(&raw const self.by_part[part_of(key.slot, key.hash)]));
    }

    /// Prefetches the cache lines that remembering these keys will read. Each key needs two
    /// dependent lines, so all first lines are prefetched before the second ones.
    pub fn prefetch_tracked(&self, keys: &[PreparedKey]) {
        for key in keys {
            let shard = self.shard(key.slot);
            let at = key.hash as usize & shard.mask.load(Ordering::Relaxed);
            prefetch(shard.index.load(Ordering::Relaxed).cast_const().wrapping_add(at));
        }
        for key in keys {
            lock(&self.shard(key.slot).table).prefetch_entry(key.hash);
        }
    }

    /// Number of clients with tracking enabled. O(1).
    pub fn client_count(&self) -> usize {
        self.clients.read().even_poisoned().len()
    }

    /// Number of keys that clients may have cached. O(1).
    pub fn key_count(&self) -> usize {
        self.keys.load(Ordering::Relaxed)
    }

    /// Number of readers of all keys. O(1).
    pub fn item_count(&self) -> usize {
        self.items.load(Ordering::Relaxed)
    }

    /// Sets how many keys may be remembered; 0 means no limit. Keys above the limit stay until
    /// [`Tracking::trim`].
    pub fn set_keys_max(&self, max: usize) {
        self.keys_max.store(max, Ordering::Relaxed);
    }

    /// Sets whether a client listens to prefixes. If so, changed keys are collected in the
    /// aftermath.
    pub fn set_broadcasts(&self, on: bool) {
        self.broadcasts.store(on, Ordering::SeqCst);
    }

    /// Called when a client has disabled tracking. Its entries stay until they are found. O(1).
    pub fn leave(&self, client: u64) {
        self.clients.write().even_poisoned().remove(&client);
    }

    fn has_left(&self, reader: TrackingClient) -> bool {
        let clients = self.clients.read().even_poisoned();
        !clients.contains(&reader.client())
    }

    /// Records that the client of `env` may have cached this key. The key's slot is held.
    #[inline]
    fn remember(&self, env: &Env, key: &Key<'_>) {
        let Some(reader) = env.reader.get() else { return };
        let shard = self.shard(key.slot);
        let table = lock(&shard.table);
        if !table.has(key.hash, key.bytes, reader) {
            self.add(env, key, reader, table);
        }
    }

    #[cold]
    fn add(
        &self,
        env: &Env,
        key: &Key<'_>,
        reader: TrackingClient,
        mut table: MutexGuard<'_, TrackingTable>,
    ) {
        let has_left = |reader| self.has_left(reader);
        let (change, is_new) = table.add(key.hash, key.bytes, reader, has_left);
        self.shard(key.slot).note_index(&table);
        // The key is counted before another thread can remove it.
        if change.added + change.dropped > 0 {
            self.items.fetch_add(change.added, Ordering::Relaxed);
            self.items.fetch_sub(change.dropped, Ordering::Relaxed);
        }
        if is_new {
            self.count_in_part(part_of(key.slot, key.hash), |count| count + 1);
            self.keys.fetch_add(1, Ordering::Relaxed);
            drop(table);
            self.trim(env, 1);
        }
    }

    fn count_in_part(&self, part: usize, change: impl Fn(u8) -> u8) {
        let not_full = |count| (count != PART_FULL).then(|| change(count));
        let order = Ordering::Relaxed;
        // An error means that the counter is at its maximum.
        let _ = self.by_part[part].fetch_update(order, order, not_full);
    }

    /// Forgets random keys, at most `most`, while there are too many. Their readers get
    /// invalidations. Returns false if there are still too many. O(`most` x empty shards).
    #[inline]
    pub fn trim(&self, env: &Env, most: usize) -> bool {
        let max = self.keys_max.load(Ordering::Relaxed);
        let fits = || max == 0 || self.keys.load(Ordering::Relaxed) <= max;
        (0..most).take_while(|_| !fits()).for_each(|_| self.forget_any(env));
        fits()
    }

    #[cold]
    fn forget_any(&self, env: &Env) {
        let random = env.random_below(1 << 48) as usize;
        for step in 0..SHARDS {
            let shard = &self.shards[(random + step) % SHARDS];
            if let Some(tracked) = self.take(shard, |table| table.remove_any(random / SHARDS)) {
                // The client that made the table grow must get the invalidation too.
                self.invalidate(env, tracked, 0);
                return;
            }
        }
    }

    /// A key in a held and marked slot was changed: its readers get an invalidation.
    pub(in crate::keyspace) fn changed(&self, env: &Env, key: &Key<'_>) {
        if self.broadcasts.load(Ordering::Relaxed) {
            let changed = (KeyName::from_slice(key.bytes), env.client.get());
            note_changed(&mut env.aftermath.borrow_mut().changed, changed);
            env.set_hooks(Hooks::BROADCAST, true);
        }
        if self.by_part[part_of(key.slot, key.hash)].load(Ordering::Relaxed) != 0 {
            let remove = |table: &mut TrackingTable| table.remove(key.hash, key.bytes);
            if let Some(tracked) = self.take(self.shard(key.slot), remove) {
                self.invalidate(env, tracked, env.client.get());
            }
        }
    }

    /// Removes a key from a shard, and decrements the counters before another thread can access the
    /// shard.
    fn take(
        &self,
        shard: &TrackingShard,
        remove: impl FnOnce(&mut TrackingTable) -> Option<Tracked>,
    ) -> Option<Tracked> {
        let mut table = lock(&shard.table);
        let tracked = remove(&mut table)?;
        let slot = SlotId::new(brisk_resp::slot::key_slot(&tracked.name));
        self.count_in_part(part_of(slot, tracked.hash), |count| count.saturating_sub(1));
        self.keys.fetch_sub(1, Ordering::Relaxed);
        self.items.fetch_sub(tracked.readers.len(), Ordering::Relaxed);
        Some(tracked)
    }

    /// Records a key that has left the table, so that its readers get an invalidation.
    fn invalidate(&self, env: &Env, tracked: Tracked, by: u64) {
        let Tracked { name, readers, .. } = tracked;
        let invalidation = Invalidation::Key { name, readers: readers.into_list(), by };
        env.aftermath.borrow_mut().invalidations.push(invalidation);
        env.set_hooks(Hooks::INVALIDATE, true);
    }

    /// Forgets all keys. During the call, no other thread runs a command on keys, but other threads may call
    /// [`Tracking::trim`].
    fn clear(&self, env: &Env) {
        if self.key_count() > 0 {
            let tables: Vec<TrackingTable> =
                self.shards.iter().map(|shard| std::mem::take(&mut *lock(&shard.table))).collect();
            env.garbage.borrow_mut().push(Garbage::Other(Box::new(tables)));
            self.keys.store(0, Ordering::Relaxed);
            self.items.store(0, Ordering::Relaxed);
        }
        // Full counters stay full even when their keys are removed.
        if self.marks.load(Ordering::Relaxed) {
            self.by_part.iter().for_each(|count| count.store(0, Ordering::Relaxed));
        }
    }
}

impl Keyspace {
    /// Enables tracking for a client. The caller holds no slot. O(slots) the first time.
    pub fn begin_tracking(&self, client: u64) {
        let tracking = &self.tracking;
        tracking.clients.write().even_poisoned().insert(client);
        let mut all_marked = lock(&tracking.all_marked);
        if std::mem::replace(&mut *all_marked, true) {
            return;
        }
        tracking.marks.store(true, Ordering::SeqCst);
        // A thread that began to create a database earlier may not have seen the flag.
        while tracking.opening.load(Ordering::SeqCst) != 0 {
            std::thread::yield_now();
        }
        for database in self.databases.iter().filter_map(|database| database.get()) {
            for slot in 0..SLOTS as u16 {
                let mut guard = lock_blocking(database, SlotId::new(slot));
                let marks = guard.marks() | TRACKED;
                guard.set_marks(marks);
            }
        }
    }
}

impl Keys<'_> {
    /// If the client of the running command caches what it reads, records that it may have cached
    /// this key. The key's slot is held.
    #[inline]
    pub fn remember(&self, key: &Key<'_>) {
        let env = self.env();
        if env.hooks.get().contains(Hooks::REMEMBER) {
            self.keyspace().tracking.remember(env, key);
        }
    }

    /// Calls [`Keys::remember`] for all keys of a command.
    #[inline(never)]
    pub(crate) fn remember_all(&self, args: &Args<'_>) {
        if self.env().hooks.get().contains(Hooks::REMEMBER) {
            args.each_key(|key| self.keyspace().tracking.remember(self.env(), &key));
        }
    }

    /// Makes all cached values invalid, because whole databases were flushed. Call it only during
    /// quiescence.
    pub fn invalidate_all(&self) {
        let (env, tracking) = (self.env(), &self.keyspace().tracking);
        tracking.clear(env);
        if tracking.client_count() > 0 {
            let by = env.client.get();
            env.aftermath.borrow_mut().invalidations.push(Invalidation::All { by });
            env.set_hooks(Hooks::INVALIDATE, true);
        }
    }
}

/// Records a changed key. If a key changes often before messages are sent, one record is enough, so
/// duplicates are removed before the list grows beyond [`CHANGES_MIN`]. O(log changes) on average.
fn note_changed(all: &mut Vec<(KeyName, u64)>, changed: (KeyName, u64)) {
    if all.len() >= CHANGES_MIN && all.len() == all.capacity() {
        // For each key, the last client that changed it is kept.
        let last: BTreeMap<KeyName, u64> = all.drain(..).collect();
        all.extend(last);
        // Doubles the capacity, so that this does not happen again soon.
        all.reserve(all.len());
    }
    all.push(changed);
}

/// Number of changes that are recorded without removing duplicates.
const CHANGES_MIN: usize = 4096;

/// Records that the latest change of `key` was not made by a client.
pub(in crate::keyspace) fn changed_by_no_client(env: &Env, key: &[u8]) {
    if env.hooks.get().contains(Hooks::BROADCAST)
        && let Some((last, by)) = env.aftermath.borrow_mut().changed.last_mut()
        && last.as_slice() == key
    {
        *by = 0;
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().even_poisoned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::random::Random;
    use crate::keyspace::KeyHasher;
    use std::sync::Barrier;

    fn keyspace() -> Keyspace {
        let keyspace = Keyspace::new(1, KeyHasher::seeded(1, 2));
        keyspace.begin_tracking(1);
        keyspace
    }

    fn env(keyspace: &Keyspace) -> Env {
        let env = Env::new(keyspace.tally(), Random::seeded(7));
        env.reader.set(Some(TrackingClient::new(0, 1)));
        env
    }

    #[test]
    fn a_flush_resets_counters_at_their_maximum_although_the_keys_were_removed() {
        let keyspace = keyspace();
        let (env, tracking) = (env(&keyspace), &keyspace.tracking);
        let counts = || tracking.by_part.iter().map(|count| count.load(Ordering::Relaxed));
        let names: Vec<String> = (0..2000).map(|i| format!("{{slot}}{i}")).collect();
        let keys = || names.iter().map(|name| keyspace.hasher().key(name.as_bytes()));
        keys().for_each(|key| tracking.remember(&env, &key));
        keys().for_each(|key| tracking.changed(&env, &key));
        assert_eq!((tracking.key_count(), tracking.item_count()), (0, 0));
        assert!(counts().any(|count| count == PART_FULL));
        tracking.clear(&env);
        assert!(counts().all(|count| count == 0));
    }

    /// A FLUSHALL in a slow script runs concurrently with another worker's timer.
    #[test]
    fn a_trim_during_a_flush_subtracts_no_key_twice() {
        const KEYS: usize = 500;
        let keyspace = keyspace();
        let (own, tracking) = (env(&keyspace), &keyspace.tracking);
        let names: Vec<String> = (0..KEYS).map(|i| i.to_string()).collect();
        for round in 0..300 {
            tracking.set_keys_max(0);
            let keys = names.iter().map(|name| keyspace.hasher().key(name.as_bytes()));
            keys.for_each(|key| tracking.remember(&own, &key));
            tracking.set_keys_max(1);
            let begin = Barrier::new(2);
            std::thread::scope(|scope| {
                scope.spawn(|| {
                    let other = env(&keyspace);
                    begin.wait();
                    tracking.trim(&other, KEYS);
                });
                begin.wait();
                // The other thread is in the middle of `trim`, at a different point each time.
                while tracking.key_count() > KEYS - round % (KEYS - 1) {
                    std::thread::yield_now();
                }
                tracking.clear(&own);
            });
            assert_eq!((tracking.key_count(), tracking.item_count()), (0, 0), "round {round}");
            own.garbage.borrow_mut().clear();
        }
    }

    #[test]
    fn a_key_that_changes_often_is_recorded_in_its_last_state() {
        let name = |i: u64| KeyName::from_slice(&i.to_le_bytes());
        let mut all = Vec::new();
        (0..200_000).for_each(|i| note_changed(&mut all, (name(i % 100), i)));
        assert!(all.len() <= 2 * CHANGES_MIN, "{}", all.len());
        let last: BTreeMap<KeyName, u64> = all.into_iter().collect();
        let expected = (0..100).map(|i| (name(i), 199_900 + i));
        assert!(last.into_iter().eq(expected.collect::<BTreeMap<_, _>>()));
        // Different keys are all kept.
        let mut all = Vec::new();
        (0..20_000).for_each(|i| note_changed(&mut all, (name(i), 1)));
        assert_eq!(all.len(), 20_000);
    }
}
