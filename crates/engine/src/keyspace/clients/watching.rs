//! WATCH: sessions that watch keys, so that the following EXEC fails if one of the keys changed.
//!
//! While a session watches a key, its watch is in the key's queue (see `key_queues`). A command
//! that changes a key in a slot marked [`WATCHED`] notifies the key's watchers while the slot is
//! still locked. An EXEC that holds the slots of its watched keys therefore knows of every earlier
//! change, and no change happens while it runs.
//!
//! A key whose TTL had already passed when the watch began is *stale*. Its removal is not a change;
//! only later changes count.
//!
//! All watches of a session end together. The epoch of its watcher advances, and notifications from
//! watches of an earlier epoch are ignored. Ended watches that are still in queues are *leftovers*.
//! If there are few, they are removed immediately, otherwise in slices.

use crate::env::Env;
use crate::keyspace::key_queues::KeyQueues;
use crate::keyspace::keys::lock_blocking;
use crate::keyspace::marks::{OBSERVED, TRACKED, WATCHED};
use crate::keyspace::{DbIndex, DbSlot, Key, Keys, Keyspace, SlotGuard, SlotId, UnixMs};
use brisk_resp::slot::key_slot;
use brisk_structures::list::List;
use brisk_structures::slab::Id;
use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

/// Maximum number of a session's watches that are removed from their queues immediately when they
/// end. The others become leftovers.
const UNWATCHED_AT_ONCE_MAX: usize = 32;

/// The states of a watcher.
const INTACT: u32 = 0;
/// A watched key was changed.
const BROKEN: u32 = 1;
/// The transaction is running: changes no longer matter.
const SETTLED: u32 = 2;
/// The bits of the state. The bits above are the epoch.
const STATE: u32 = 3;

/// The common state of all watches of one session: records whether one of the keys was changed.
#[derive(Debug, Default)]
pub struct Watcher(AtomicU32);

impl Watcher {
    /// Reports whether a watched key was changed. The result is reliable only if the caller holds
    /// the keys' slots.
    pub fn is_broken(&self) -> bool {
        self.0.load(Ordering::Relaxed) & STATE == BROKEN
    }

    fn epoch(&self) -> u32 {
        self.0.load(Ordering::Relaxed) & !STATE
    }

    fn breaks(&self, epoch: u32) {
        // The slots' locks order this store before the loads that check it.
        let (intact, broken) = (epoch | INTACT, epoch | BROKEN);
        let _ = self.0.compare_exchange(intact, broken, Ordering::Relaxed, Ordering::Relaxed);
    }

    /// Ignores notifications from watches that began before now. An epoch number is reused after
    /// 2^30 others. Each of these had at least one watch, and each new watch removes a leftover, so
    /// by then no leftover of the old epoch remains.
    fn begin_epoch(&self) {
        let next = self.epoch().wrapping_add(STATE + 1);
        self.0.store(next | INTACT, Ordering::Relaxed);
    }
}

/// One watch of one key.
#[derive(Debug)]
pub(in crate::keyspace) struct Watch {
    watcher: Arc<Watcher>,
    epoch: u32,
    stale: bool,
}

impl Watch {
    fn breaks(&self) {
        self.watcher.breaks(self.epoch);
    }
}

/// The queues of all watched keys.
pub(in crate::keyspace) type Watching = KeyQueues<List<Watch>>;

/// The watched keys of a slot, with the ids of the watches in the keys' queues.
type SlotKeys = BTreeMap<Box<[u8]>, Id>;

/// The keys that one session watches.
#[derive(Debug)]
pub struct Watches {
    watcher: Arc<Watcher>,
    /// By slot, so that EXEC visits each slot once.
    slots: BTreeMap<DbSlot, SlotKeys>,
    /// Number of keys.
    len: usize,
    /// Bytes of the keys' names.
    name_bytes: usize,
}

/// Ended watches that are still in the queues of their keys. If each new watch removes one
/// leftover, there are never more leftovers than the largest number of watches that were active at
/// the same time.
#[derive(Debug, Default)]
pub struct EndedWatches {
    /// Each set has the watches that one session ended together. The sets are in the order in which
    /// they ended.
    sets: VecDeque<BTreeMap<DbSlot, SlotKeys>>,
}

impl EndedWatches {
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.sets.is_empty()
    }

    fn pop(&mut self) -> Option<(DbSlot, Box<[u8]>, Id)> {
        let set = self.sets.front_mut()?;
        let mut slot = set.first_entry()?;
        let (place, first) = (*slot.key(), slot.get_mut().pop_first());
        if slot.get().is_empty() {
            slot.remove();
        }
        if set.is_empty() {
            self.sets.pop_front();
        }
        first.map(|(key, id)| (place, key, id))
    }
}

/// Bytes per watch without the key's name, estimated.
const KEY_BYTES: usize = 2 * size_of::<(Box<[u8]>, Id)>() + size_of::<Watch>();

impl Watches {
    pub fn new(watcher: Arc<Watcher>) -> Watches {
        Watches { watcher, slots: BTreeMap::new(), len: 0, name_bytes: 0 }
    }

    /// Number of watched keys.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Memory in bytes. The share of the keys' queues is an estimate. O(1).
    pub fn memory(&self) -> usize {
        self.len * KEY_BYTES + 2 * self.name_bytes
    }

    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    pub fn watcher(&self) -> &Watcher {
        &self.watcher
    }

    /// The slots of the watched keys, each once.
    pub fn places(&self) -> impl Iterator<Item = DbSlot> {
        self.slots.keys().copied()
    }

    /// Ignores changes until [`Keyspace::unwatch`]. Returns true if there were no changes.
    pub(crate) fn settle(&self) -> bool {
        let settled = self.watcher.epoch() | SETTLED;
        self.watcher.0.swap(settled, Ordering::Relaxed) & STATE == INTACT
    }
}

impl Keys<'_> {
    /// Makes a session watch a key whose slot is held. Watching a key twice has no further effect.
    /// O(1).
    pub fn watch(&mut self, key: &Key<'_>, watches: &mut Watches) {
        let (keyspace, db) = (self.keyspace(), self.db());
        let deadline = self.inspect(key).and_then(|entry| entry.deadline());
        let stale = deadline.is_some_and(|at| at <= self.env().horizon());
        if let Entry::Vacant(vacant) =
            watches.slots.entry((db, key.slot)).or_default().entry(key.bytes.into())
        {
            let epoch = watches.watcher.epoch();
            let watch = Watch { watcher: Arc::clone(&watches.watcher), epoch, stale };
            let id =
                keyspace.watching.join(db, key.slot, key.bytes, |queue| queue.push_back(watch));
            vacant.insert(id);
            watches.len += 1;
            watches.name_bytes += key.bytes.len();
            keyspace.watches.fetch_add(1, Ordering::Relaxed);
            if watches.len == 1 {
                keyspace.watching_clients.fetch_add(1, Ordering::Relaxed);
            }
            self.mark(key.slot, WATCHED);
        }
    }

    /// Ends watches of keys in the selected database, all of which are held. Returns true if no key
    /// was changed. O(watched keys).
    pub(crate) fn unwatch_held(&mut self, mut watches: Watches) -> bool {
        let keyspace = self.keyspace();
        keyspace.uncount(&watches);
        for ((db, slot), key, id) in keys_of(std::mem::take(&mut watches.slots)) {
            let last = keyspace.watching.leave(db, slot, &key, |queue| take_out(queue, id));
            if last {
                self.unmark(slot, WATCHED);
            }
        }
        !watches.watcher.is_broken()
    }
}

impl Keyspace {
    /// Ends all watches of a session. The caller holds no slots. O(1): if there are many keys, the
    /// watches become leftovers.
    pub fn unwatch(&self, watches: &mut Watches, leftovers: &mut EndedWatches) {
        self.uncount(watches);
        let slots = std::mem::take(&mut watches.slots);
        if watches.len > UNWATCHED_AT_ONCE_MAX {
            self.ended_watches.fetch_add(watches.len, Ordering::Relaxed);
            leftovers.sets.push_back(slots);
        } else {
            keys_of(slots).for_each(|(place, key, id)| self.leave_queue(place, &key, id));
        }
        (watches.len, watches.name_bytes) = (0, 0);
        watches.watcher.begin_epoch();
    }

    /// Removes up to `most` leftovers from their queues. The caller holds no slots. O(`most`).
    pub fn remove_ended_watches(&self, leftovers: &mut EndedWatches, most: usize) {
        for _ in 0..most {
            let Some((place, key, id)) = leftovers.pop() else { break };
            self.leave_queue(place, &key, id);
            self.ended_watches.fetch_sub(1, Ordering::Relaxed);
        }
    }

    fn leave_queue(&self, (db, slot): DbSlot, key: &[u8], id: Id) {
        let mut guard = lock_blocking(self.database(db), slot);
        let last = self.watching.leave(db, slot, key, |queue| take_out(queue, id));
        if last {
            let marks = guard.marks() & !WATCHED;
            guard.set_marks(marks);
        }
    }

    /// Removes a session's watches, which are ending, from the counts.
    fn uncount(&self, watches: &Watches) {
        if !watches.is_empty() {
            self.watching_clients.fetch_sub(1, Ordering::Relaxed);
            self.watches.fetch_sub(watches.len(), Ordering::Relaxed);
        }
    }

    /// Number of watched keys. O(1) if there are none, else O(slots with watched keys). The result
    /// is too high while there are leftovers and several sessions watch the same key.
    pub fn watched_keys(&self) -> usize {
        match self.watches.load(Ordering::Relaxed) {
            0 => 0,
            watches => watches.min(self.watching.key_count()),
        }
    }

    /// Number of ended watches that are still in queues. O(1).
    pub fn ended_watches(&self) -> usize {
        self.ended_watches.load(Ordering::Relaxed)
    }

    /// Lower bound of the bytes that removing the ended watches will free. O(1).
    pub fn ended_watch_bytes(&self) -> usize {
        self.ended_watches() * KEY_BYTES
    }

    /// Reports whether a watched key has expired since its watch began. `look` returns a slot that
    /// is held. O(slots of watched keys, and the keys in slots with expired keys).
    pub(crate) fn any_expired(
        &self,
        watches: &Watches,
        now: UnixMs,
        mut look: impl FnMut(DbSlot, &dyn Fn(&SlotGuard<'_>) -> bool) -> bool,
    ) -> bool {
        watches.slots.iter().any(|(place, keys)| {
            look(*place, &|guard| {
                let expired = |key: &[u8], id| {
                    is_due(self, guard, key, now) && !self.is_stale(*place, key, id)
                };
                guard.meta().earliest <= now && keys.iter().any(|(key, id)| expired(key, *id))
            })
        })
    }

    fn is_stale(&self, (db, slot): DbSlot, key: &[u8], id: Id) -> bool {
        let stale = |queue: &mut List<Watch>| queue.get(id).is_some_and(|watch| watch.stale);
        self.watching.with(db, slot, key, stale).unwrap_or(false)
    }

    /// Notifies the clients that watch or cache a key, and its observers, that the key was changed
    /// or, if it no longer exists, removed. The slot is held and has these marks.
    #[cold]
    pub(in crate::keyspace) fn notify_concerned(
        &self,
        env: &Env,
        db: DbIndex,
        key: &Key<'_>,
        marks: u8,
        exists: bool,
    ) {
        if marks & WATCHED != 0 {
            self.break_watches(db, key.bytes, exists);
        }
        if marks & TRACKED != 0 {
            self.tracking.changed(env, key);
        }
        if marks & OBSERVED != 0 {
            self.observed.raise((db, key.slot));
        }
    }

    fn break_watches(&self, db: DbIndex, key: &[u8], exists: bool) {
        let slot = SlotId::new(key_slot(key));
        self.watching.with(db, slot, key, |queue| {
            for_each(queue, |watch| {
                if !watch.stale {
                    watch.breaks();
                } else if !exists {
                    watch.stale = false;
                }
            });
        });
    }

    /// Notifies the clients that watch keys of a marked slot. The slot is about to be emptied or,
    /// with `after`, to get another table. Both slots are held.
    #[cold]
    pub(in crate::keyspace) fn break_watches_of_all(
        &self,
        (db, slot): DbSlot,
        now: UnixMs,
        before: &SlotGuard<'_>,
        after: Option<&SlotGuard<'_>>,
    ) {
        self.watching.each(db, slot, |key, queue| {
            let hash = self.hasher().hash(key);
            let is_in = |guard: &SlotGuard<'_>| guard.table().find(hash, key).is_some();
            let (was, is) = (is_in(before), after.is_some_and(is_in));
            if !was && !is {
                return;
            }
            let due = after.is_some_and(|guard| is_due(self, guard, key, now));
            for_each(queue, |watch| match (watch.stale, due) {
                (true, true) => {}
                (true, false) if !is => watch.stale = false,
                (false, true) if !was => watch.stale = true,
                _ => watch.breaks(),
            });
        });
    }
}

fn keys_of(slots: BTreeMap<DbSlot, SlotKeys>) -> impl Iterator<Item = (DbSlot, Box<[u8]>, Id)> {
    let of_slot =
        |(place, keys): (DbSlot, SlotKeys)| keys.into_iter().map(move |(key, id)| (place, key, id));
    slots.into_iter().flat_map(of_slot)
}

/// Removes a watch from its queue. Returns true if the queue is empty and can be removed.
fn take_out(queue: &mut List<Watch>, id: Id) -> bool {
    debug_assert!(queue.get(id).is_some(), "only the watching session ends a watch");
    let last = queue.len() == 1;
    if !last {
        queue.remove(id);
    }
    last
}

fn for_each(queue: &mut List<Watch>, mut action: impl FnMut(&mut Watch)) {
    let mut next = queue.front().map(|(id, _)| id);
    while let Some(id) = next {
        queue.get_mut(id).into_iter().for_each(&mut action);
        next = queue.after(id);
    }
}

/// Reports whether a key exists and has expired.
fn is_due(keyspace: &Keyspace, guard: &SlotGuard<'_>, key: &[u8], now: UnixMs) -> bool {
    let found = guard.table().find(keyspace.hasher().hash(key), key);
    found.and_then(|entry| entry.deadline()).is_some_and(|at| UnixMs(at) <= now)
}
