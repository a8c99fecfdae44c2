//! Client-side caching: which clients may hold which keys, and who is sent invalidations.
//!
//! ```text
//!  read ──> remember ──> shard of the key's slot ──> key ──> readers
//!  write ─> changed ───> its part has no such keys? done: key and its readers leave the table and
//!                        are noted in the aftermath, from where the server sends invalidations
//! ```
//!
//! Keys are remembered by name, whatever database they were read in, as Redis does. A key is
//! remembered while its slot is held that it was read in, so no change goes by unnoticed. Readers
//! are sent one invalidation and then forgotten, until they read the key again. A reader that goes
//! away leaves its number behind; when its invalidation is to be sent, it is not found.
//!
//! Until a client tracks for the first time slots have no mark and writes pay nothing. From then on
//! all slots of all databases are marked for good, and a write to a part of a slot without tracked
//! keys looks at one counter.

mod table;

use self::table::{Mark, Table, Tracked};
use super::marks::TRACKED;
use super::{Key, Keys, Keyspace, SLOTS, SlotId, lock_patiently};
use crate::command::args::{Args, PreparedKey};
use crate::env::effect::{Hooks, Invalidation, KeyName, Reader};
use crate::env::{Env, Garbage};
use brisk_structures::poison::EvenPoisoned;
use brisk_structures::prefetch::prefetch;
use std::collections::{BTreeMap, HashSet};
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicU8, AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, RwLock};

const SHARDS: usize = 256;
/// Parts of a slot whose tracked keys are counted apart.
const PARTS: usize = 4;

/// A part with more tracked keys than can be counted.
const PART_FULL: u8 = u8::MAX;

/// The part of all keys that a key belongs to.
fn part_of(slot: SlotId, hash: u64) -> usize {
    slot.index() * PARTS + hash as usize % PARTS
}

/// A part of the tracked keys.
#[derive(Debug, Default)]
struct Shard {
    table: Mutex<Table>,
    /// Where the table's index was when it was last looked at, to prefetch its lines.
    index: AtomicPtr<Mark>,
    mask: AtomicUsize,
}

impl Shard {
    /// The table may have another index now.
    fn note_index(&self, table: &Table) {
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
    shards: Box<[Shard]>,
    /// Tracked keys by slot and [`part_of`] their hash: most keys that nobody tracks need no look
    /// into a shard. In one byte each, so that all stay near; what has reached [`PART_FULL`] stays
    /// there until a flush. This and the two below are changed under the lock of the shard that has
    /// changed, except by [`Tracking::clear`], which nobody who takes a key out outlasts:
    /// it has had every lock.
    by_part: Box<[AtomicU8]>,
    keys: AtomicUsize,
    items: AtomicUsize,
    /// `tracking-table-max-keys`; 0 for no limit.
    keys_max: AtomicUsize,
    /// Somebody listens to prefixes of keys.
    broadcasts: AtomicBool,
    /// The clients that track.
    clients: RwLock<HashSet<u64>>,
    /// Slots of new databases are marked.
    marks: AtomicBool,
    /// Databases that are being made.
    opening: AtomicUsize,
    /// Held by whoever marks all slots; true when they are.
    all_marked: Mutex<bool>,
}

impl Tracking {
    pub(super) fn new() -> Tracking {
        Tracking {
            shards: (0..SHARDS).map(|_| Shard::default()).collect(),
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

    /// Makes a database with the marks that its slots have to have.
    pub(super) fn opening<R>(&self, open: impl FnOnce(&dyn Fn() -> u8) -> R) -> R {
        self.opening.fetch_add(1, Ordering::SeqCst);
        let opened = open(&|| if self.marks.load(Ordering::SeqCst) { TRACKED } else { 0 });
        self.opening.fetch_sub(1, Ordering::SeqCst);
        opened
    }

    fn shard(&self, slot: SlotId) -> &Shard {
        &self.shards[slot.index() % SHARDS]
    }

    /// Prefetches what invalidating these keys will read.
    pub fn ask_parts(&self, keys: &[PreparedKey]) {
        keys.iter().for_each(|key| prefetch(&raw const self.by_part[part_of(key.slot, key.hash)]));
    }

    /// Prefetches what remembering these keys will read: two lines one after the other for
    /// each, so all first lines are prefetched before any second.
    pub fn ask_ahead(&self, keys: &[PreparedKey]) {
        for key in keys {
            let shard = self.shard(key.slot);
            let at = key.hash as usize & shard.mask.load(Ordering::Relaxed);
            prefetch(shard.index.load(Ordering::Relaxed).cast_const().wrapping_add(at));
        }
        for key in keys {
            lock(&self.shard(key.slot).table).ask_entry(key.hash);
        }
    }

    /// Clients that track. O(1).
    pub fn client_count(&self) -> usize {
        self.clients.read().even_poisoned().len()
    }

    /// Keys that somebody may have cached. O(1).
    pub fn key_count(&self) -> usize {
        self.keys.load(Ordering::Relaxed)
    }

    /// The readers of all keys. O(1).
    pub fn item_count(&self) -> usize {
        self.items.load(Ordering::Relaxed)
    }

    /// How many keys may be remembered, 0 for any number. What is above stays until
    /// [`Tracking::trim`].
    pub fn set_keys_max(&self, max: usize) {
        self.keys_max.store(max, Ordering::Relaxed);
    }

    /// Whether somebody listens to prefixes: then changed keys collect in the aftermath.
    pub fn set_broadcasts(&self, on: bool) {
        self.broadcasts.store(on, Ordering::SeqCst);
    }

    /// A client does not track any more. What is remembered of it stays until it is met. O(1).
    pub fn leave(&self, client: u64) {
        self.clients.write().even_poisoned().remove(&client);
    }

    fn is_gone(&self, reader: Reader) -> bool {
        let clients = self.clients.read().even_poisoned();
        !clients.contains(&reader.client())
    }

    /// The client that runs commands in `env` may have this key now, whose slot is held.
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
    fn add(&self, env: &Env, key: &Key<'_>, reader: Reader, mut table: MutexGuard<'_, Table>) {
        let is_gone = |reader| self.is_gone(reader);
        let (change, is_new) = table.add(key.hash, key.bytes, reader, is_gone);
        self.shard(key.slot).note_index(&table);
        // Counted before anybody can take it out again.
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
        // An error says that it is full.
        let _ = self.by_part[part].fetch_update(order, order, not_full);
    }

    /// Forgets random keys, at most `most`, while there are too many; their readers are sent
    /// invalidations. False if there still are. O(`most` x shards that are empty).
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
                // Not even who made the table grow may miss that its key is not tracked any more.
                self.invalidate(env, tracked, 0);
                return;
            }
        }
    }

    /// A key was changed whose slot is held and marked: who may have it is sent an invalidation.
    pub(super) fn changed(&self, env: &Env, key: &Key<'_>) {
        if self.broadcasts.load(Ordering::Relaxed) {
            let changed = (KeyName::from_slice(key.bytes), env.client.get());
            note_changed(&mut env.aftermath.borrow_mut().changed, changed);
            env.set_hooks(Hooks::BROADCAST, true);
        }
        if self.by_part[part_of(key.slot, key.hash)].load(Ordering::Relaxed) != 0 {
            let remove = |table: &mut Table| table.remove(key.hash, key.bytes);
            if let Some(tracked) = self.take(self.shard(key.slot), remove) {
                self.invalidate(env, tracked, env.client.get());
            }
        }
    }

    /// Takes a key out of a shard, and counts it out before anybody else looks into it.
    fn take(
        &self,
        shard: &Shard,
        remove: impl FnOnce(&mut Table) -> Option<Tracked>,
    ) -> Option<Tracked> {
        let mut table = lock(&shard.table);
        let tracked = remove(&mut table)?;
        let slot = SlotId::new(brisk_resp::slot::key_slot(&tracked.name));
        self.count_in_part(part_of(slot, tracked.hash), |count| count.saturating_sub(1));
        self.keys.fetch_sub(1, Ordering::Relaxed);
        self.items.fetch_sub(tracked.readers.len(), Ordering::Relaxed);
        Some(tracked)
    }

    /// Notes what has left the table, so that its readers are sent an invalidation.
    fn invalidate(&self, env: &Env, tracked: Tracked, by: u64) {
        let Tracked { name, readers, .. } = tracked;
        let invalidation = Invalidation::Key { name, readers: readers.into_list(), by };
        env.aftermath.borrow_mut().invalidations.push(invalidation);
        env.set_hooks(Hooks::INVALIDATE, true);
    }

    /// Forgets all keys. Nobody else runs a command on keys meanwhile,
    /// but others may [`Tracking::trim`].
    fn clear(&self, env: &Env) {
        if self.key_count() > 0 {
            let tables: Vec<Table> =
                self.shards.iter().map(|shard| std::mem::take(&mut *lock(&shard.table))).collect();
            env.garbage.borrow_mut().push(Garbage::Other(Box::new(tables)));
            self.keys.store(0, Ordering::Relaxed);
            self.items.store(0, Ordering::Relaxed);
        }
        // Full ones are so without a key as well.
        if self.marks.load(Ordering::Relaxed) {
            self.by_part.iter().for_each(|count| count.store(0, Ordering::Relaxed));
        }
    }
}

impl Keyspace {
    /// A client tracks from now on. The first time O(slots): the caller holds no slot.
    pub fn begin_tracking(&self, client: u64) {
        let tracking = &self.tracking;
        tracking.clients.write().even_poisoned().insert(client);
        let mut all_marked = lock(&tracking.all_marked);
        if std::mem::replace(&mut *all_marked, true) {
            return;
        }
        tracking.marks.store(true, Ordering::SeqCst);
        // Who began to make a database before that may not have seen it.
        while tracking.opening.load(Ordering::SeqCst) != 0 {
            std::thread::yield_now();
        }
        for database in self.databases.iter().filter_map(|database| database.get()) {
            for slot in 0..SLOTS as u16 {
                let mut guard = lock_patiently(database, SlotId::new(slot));
                let marks = guard.marks() | TRACKED;
                guard.set_marks(marks);
            }
        }
    }
}

impl Keys<'_> {
    /// If the client that runs the command caches what it reads, it may have this key from now on,
    /// which is held.
    #[inline]
    pub fn remember(&self, key: &Key<'_>) {
        let env = self.env();
        if env.hooks.get().contains(Hooks::REMEMBER) {
            self.keyspace().tracking.remember(env, key);
        }
    }

    /// [`Keys::remember`] of all keys of a command.
    #[inline(never)]
    pub(crate) fn remember_all(&self, args: &Args<'_>) {
        if self.env().hooks.get().contains(Hooks::REMEMBER) {
            args.each_key(|key| self.keyspace().tracking.remember(self.env(), &key));
        }
    }

    /// Whole databases were flushed: nothing that anybody has cached is true any more. Only under
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

/// Notes a changed key. Of one that was changed often, before messages go to its listeners, one
/// note is enough: they are thinned out instead of growing beyond [`CHANGES_MIN`]. O(log changes)
/// on average.
fn note_changed(all: &mut Vec<(KeyName, u64)>, changed: (KeyName, u64)) {
    if all.len() >= CHANGES_MIN && all.len() == all.capacity() {
        // Whoever changed a key last counts.
        let last: BTreeMap<KeyName, u64> = all.drain(..).collect();
        all.extend(last);
        // At least as much room as is taken, so that this does not come again soon.
        all.reserve(all.len());
    }
    all.push(changed);
}

/// Notes of changes that are kept as they come.
const CHANGES_MIN: usize = 4096;

/// The change of `key` that was noted last happened without any client's doing.
pub(super) fn nobody_changed(env: &Env, key: &[u8]) {
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
        env.reader.set(Some(Reader::new(0, 1)));
        env
    }

    #[test]
    fn a_flush_empties_parts_that_are_full_though_their_keys_are_gone() {
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

    /// FLUSHALL of a slow script beside another worker's timer.
    #[test]
    fn who_trims_beside_a_flush_counts_no_key_out_twice() {
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
                // In the middle of it, each time elsewhere.
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
    fn a_key_that_changes_often_is_noted_as_its_last_client_left_it() {
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
