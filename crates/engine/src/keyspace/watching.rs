//! Sessions that watch keys: WATCH, and what makes the EXEC behind it answer null.
//!
//! A session's watch of a key stands in the key's queue (see `interest`) as long as it lasts.
//! Whoever changes a key in a slot marked [`WATCHED`] tells the key's watchers while the slot is
//! still locked; an EXEC that holds the slots of what it watches therefore knows of every change
//! that came before it, and none comes while it runs.
//!
//! A key that was past its deadline when the watch began is *stale*: that it is then removed
//! changes nothing, and only what comes after does.
//!
//! All watches of a session end at once: the epoch of its watcher moves on, and changes reported to
//! those of an earlier epoch are not heard. Those that still stand in queues are *leftovers*. A few
//! are taken out at that moment, many a slice at a time.

use super::interest::Interests;
use super::keys::lock_patiently;
use super::marks::{OBSERVED, TRACKED, WATCHED};
use super::{DbIndex, Key, Keys, Keyspace, Place, SlotGuard, SlotId, UnixMs};
use crate::env::Env;
use brisk_resp::slot::key_slot;
use brisk_structures::list::List;
use brisk_structures::slab::Id;
use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

/// So many watches of a session are taken out of their queues when they end; more are left over.
const UNWATCHED_AT_ONCE_MAX: usize = 32;

/// States of a watcher.
const INTACT: u32 = 0;
/// A watched key was changed.
const BROKEN: u32 = 1;
/// The transaction runs: changes do not matter any more.
const SETTLED: u32 = 2;
/// The bits that hold the state; those above are the epoch.
const STATE: u32 = 3;

/// What all watches of one session tell: whether one of the keys was changed.
#[derive(Debug, Default)]
pub struct Watcher(AtomicU32);

impl Watcher {
    /// Whether a watched key was changed. Those who must know for sure hold the keys' slots.
    pub fn is_broken(&self) -> bool {
        self.0.load(Ordering::Relaxed) & STATE == BROKEN
    }

    fn epoch(&self) -> u32 {
        self.0.load(Ordering::Relaxed) & !STATE
    }

    fn breaks(&self, epoch: u32) {
        // The slots' locks order what is noted with looks at it.
        let (intact, broken) = (epoch | INTACT, epoch | BROKEN);
        let _ = self.0.compare_exchange(intact, broken, Ordering::Relaxed, Ordering::Relaxed);
    }

    /// From now on what watches tell that have begun before is not heard. An epoch comes again
    /// after 2^30 others; each had a watch at least, whose beginning took a leftover away.
    fn begin_epoch(&self) {
        let next = self.epoch().wrapping_add(STATE + 1);
        self.0.store(next | INTACT, Ordering::Relaxed);
    }
}

/// One watch of one key.
#[derive(Debug)]
pub(super) struct Watch {
    watcher: Arc<Watcher>,
    epoch: u32,
    stale: bool,
}

impl Watch {
    fn breaks(&self) {
        self.watcher.breaks(self.epoch);
    }
}

/// All queues.
pub(super) type Watching = Interests<List<Watch>>;

/// The watched keys of a slot, with the ids of the watches in the queues of the keys.
type SlotKeys = BTreeMap<Box<[u8]>, Id>;

/// The keys that one session watches.
#[derive(Debug)]
pub struct Watches {
    watcher: Arc<Watcher>,
    /// By slot, so that EXEC looks at each slot once.
    slots: BTreeMap<Place, SlotKeys>,
    /// How many keys there are.
    len: usize,
    /// Bytes of their names.
    name_bytes: usize,
}

/// Watches that have ended and still stand in the queues of their keys. There are never more than
/// were in force at the same time, if whoever watches keys has as many taken away.
#[derive(Debug, Default)]
pub struct Leftovers {
    /// Of one session each, in the order in which they ended.
    sets: VecDeque<BTreeMap<Place, SlotKeys>>,
}

impl Leftovers {
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.sets.is_empty()
    }

    fn pop(&mut self) -> Option<(Place, Box<[u8]>, Id)> {
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

/// Bytes that a watch takes beside the key's name, about.
const KEY_BYTES: usize = 2 * size_of::<(Box<[u8]>, Id)>() + size_of::<Watch>();

impl Watches {
    pub fn new(watcher: Arc<Watcher>) -> Watches {
        Watches { watcher, slots: BTreeMap::new(), len: 0, name_bytes: 0 }
    }

    /// How many keys are watched.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Bytes of memory, an estimate for the queues of the keys. O(1).
    pub fn memory(&self) -> usize {
        self.len * KEY_BYTES + 2 * self.name_bytes
    }

    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    pub fn watcher(&self) -> &Watcher {
        &self.watcher
    }

    /// Where the watched keys lie: each slot once.
    pub fn places(&self) -> impl Iterator<Item = Place> {
        self.slots.keys().copied()
    }

    /// From now on changes do not matter, until [`Keyspace::unwatch`]. True if there were none.
    pub(crate) fn settle(&self) -> bool {
        let settled = self.watcher.epoch() | SETTLED;
        self.watcher.0.swap(settled, Ordering::Relaxed) & STATE == INTACT
    }
}

impl Keys<'_> {
    /// Lets a session watch a key, which is held. Watching it twice is watching it once. O(1).
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

    /// Ends watches of keys of the selected database, all of which are held; whether none of them
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
    /// Ends all watches of a session. The caller holds no slots. O(1): of many keys, the watches
    /// are left over.
    pub fn unwatch(&self, watches: &mut Watches, leftovers: &mut Leftovers) {
        self.uncount(watches);
        let slots = std::mem::take(&mut watches.slots);
        if watches.len > UNWATCHED_AT_ONCE_MAX {
            self.leftover_watches.fetch_add(watches.len, Ordering::Relaxed);
            leftovers.sets.push_back(slots);
        } else {
            keys_of(slots).for_each(|(place, key, id)| self.leave_queue(place, &key, id));
        }
        (watches.len, watches.name_bytes) = (0, 0);
        watches.watcher.begin_epoch();
    }

    /// Takes up to `most` of the leftovers out of their queues. The caller holds no slots.
    /// O(`most`).
    pub fn take_leftovers_out(&self, leftovers: &mut Leftovers, most: usize) {
        for _ in 0..most {
            let Some((place, key, id)) = leftovers.pop() else { break };
            self.leave_queue(place, &key, id);
            self.leftover_watches.fetch_sub(1, Ordering::Relaxed);
        }
    }

    fn leave_queue(&self, (db, slot): Place, key: &[u8], id: Id) {
        let mut guard = lock_patiently(self.database(db), slot);
        let last = self.watching.leave(db, slot, key, |queue| take_out(queue, id));
        if last {
            let marks = guard.marks() & !WATCHED;
            guard.set_marks(marks);
        }
    }

    /// All watches of a session end.
    fn uncount(&self, watches: &Watches) {
        if !watches.is_empty() {
            self.watching_clients.fetch_sub(1, Ordering::Relaxed);
            self.watches.fetch_sub(watches.len(), Ordering::Relaxed);
        }
    }

    /// How many keys are watched. O(1) while nobody watches, else O(slots with watched keys). Too
    /// many while there are leftovers and some keys are watched by several sessions.
    pub fn watched_keys(&self) -> usize {
        match self.watches.load(Ordering::Relaxed) {
            0 => 0,
            watches => watches.min(self.watching.key_count()),
        }
    }

    /// How many watches have ended and still stand in queues. O(1).
    pub fn leftover_watches(&self) -> usize {
        self.leftover_watches.load(Ordering::Relaxed)
    }

    /// Bytes that are free once these are gone, at least. O(1).
    pub fn leftover_watch_bytes(&self) -> usize {
        self.leftover_watches() * KEY_BYTES
    }

    /// Whether one of the watched keys has passed its deadline since the watch began. `look` shows
    /// a slot that is held. O(slots of watched keys), and keys of those in which some key is due.
    pub(crate) fn any_expired(
        &self,
        watches: &Watches,
        now: UnixMs,
        mut look: impl FnMut(Place, &dyn Fn(&SlotGuard<'_>) -> bool) -> bool,
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

    fn is_stale(&self, (db, slot): Place, key: &[u8], id: Id) -> bool {
        let stale = |queue: &mut List<Watch>| queue.get(id).is_some_and(|watch| watch.stale);
        self.watching.with(db, slot, key, stale).unwrap_or(false)
    }

    /// Tells who watches, caches or observes a key of a slot with these marks, which is held, that
    /// it was changed; or, if it is not there any more, removed.
    #[cold]
    pub(super) fn notify_concerned(
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

    /// Tells who watches keys of a marked slot that it is about to be emptied or, with `after`, to
    /// get another table. Both are held.
    #[cold]
    pub(super) fn break_watches_of_all(
        &self,
        (db, slot): Place,
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

fn keys_of(slots: BTreeMap<Place, SlotKeys>) -> impl Iterator<Item = (Place, Box<[u8]>, Id)> {
    let of_slot =
        |(place, keys): (Place, SlotKeys)| keys.into_iter().map(move |(key, id)| (place, key, id));
    slots.into_iter().flat_map(of_slot)
}

/// Takes a watch out of its queue; whether that is empty then, and to go itself.
fn take_out(queue: &mut List<Watch>, id: Id) -> bool {
    debug_assert!(queue.get(id).is_some(), "only who has begun a watch ends it");
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

/// Whether a key is there and past its deadline.
fn is_due(keyspace: &Keyspace, guard: &SlotGuard<'_>, key: &[u8], now: UnixMs) -> bool {
    let found = guard.table().find(keyspace.hasher().hash(key), key);
    found.and_then(|entry| entry.deadline()).is_some_and(|at| UnixMs(at) <= now)
}
