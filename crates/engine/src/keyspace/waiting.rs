//! Clients that wait for a key to appear or to change: who they are, and in which order they came.
//!
//! ```text
//! slot (mark WAITED_FOR) ──> shard ──> key "jobs" ──> queue: waiter 1, waiter 2, …
//!                                      key "mail" ──> queue: waiter 2 (it waits for both)
//! ```
//!
//! A waiter joins the queues of its keys while the command that found nothing still holds their
//! slots, so nothing can happen in between. Whoever makes a key appear in a marked slot notes it as
//! ready ([`Env::ready`]); [`crate::serve`] then runs the waiters' commands again, oldest first.
//!
//! Who ends a wait: the one that moves the waiter's state out of [`WAITING`]. He removes it from
//! all its queues, O(1) each. Queues are changed only under their slot's lock; the shards' own locks
//! are held for single steps, after the slot's.

use super::keys::lock_patiently;
use super::{DbIndex, Key, Keys, Keyspace, SlotId};
use crate::env::Env;
use crate::exec::Recorded;
use crate::reply::{Outcome, Reply};
use crate::types::Kind;
use brisk_resp::Protocol;
use brisk_structures::list::List;
use brisk_structures::slab::Id;
use std::collections::HashMap;
use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

/// Mark of a slot: some client waits for one of its keys, present or not.
pub(super) const WAITED_FOR: u8 = 1;

const SHARDS: usize = 64;

/// States of a waiter.
const WAITING: u8 = 0;
/// Its command is being run again.
const CLAIMED: u8 = 1;
const ENDED: u8 = 2;

/// The client behind a command, in the server's terms.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Client {
    pub worker: usize,
    /// What the worker knows its connection by.
    pub token: u64,
    pub id: u64,
    pub protocol: Protocol,
}

/// What is answered where waiting is not possible. (A wait in vain is answered with a null array,
/// whatever the command.)
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unserved {
    Null,
    NullArray,
}

impl Unserved {
    pub fn reply(self, reply: &mut Reply<'_>) -> Outcome {
        match self {
            Unserved::Null => reply.null(),
            Unserved::NullArray => reply.null_array(),
        }
    }
}

/// A client that waits inside a command.
pub struct Waiter {
    pub client: Client,
    /// `None`: it waits for ever.
    pub deadline_ms: Option<u64>,
    pub(crate) command: Recorded,
    /// It is of no use to run the command again while the key holds something else.
    pub(crate) kind: Kind,
    /// Order of arrival among all waiters.
    pub(crate) number: u64,
    keys: Vec<Awaited>,
    places: OnceLock<Vec<Id>>,
    state: AtomicU8,
}

impl std::fmt::Debug for Waiter {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Waiter").field("client", &self.client).finish_non_exhaustive()
    }
}

struct Awaited {
    bytes: Box<[u8]>,
    slot: SlotId,
}

impl Waiter {
    /// Ends the wait, unless somebody else has: then false, and the answer is on its way. Who ends
    /// it calls [`Keyspace::forget_waiter`].
    pub fn end(&self) -> bool {
        loop {
            match self.transit(WAITING, ENDED) {
                Ok(_) => return true,
                Err(ENDED) => return false,
                // Its command is being run again, which takes microseconds.
                Err(_) => std::thread::yield_now(),
            }
        }
    }

    pub(crate) fn claim(&self) -> bool {
        self.transit(WAITING, CLAIMED).is_ok()
    }

    /// Ends a claim: the wait is over, or goes on.
    pub(crate) fn settle(&self, over: bool) {
        self.state.store(if over { ENDED } else { WAITING }, Ordering::Release);
    }

    fn transit(&self, from: u8, to: u8) -> Result<u8, u8> {
        self.state.compare_exchange(from, to, Ordering::AcqRel, Ordering::Acquire)
    }
}

/// What a command says of the wait it begins.
pub(crate) struct Wish<'w> {
    pub(crate) client: Client,
    pub(crate) command: Recorded,
    pub(crate) kind: Kind,
    pub(crate) keys: &'w [Key<'w>],
    pub(crate) deadline_ms: Option<u64>,
}

type Queues = HashMap<Box<[u8]>, List<Arc<Waiter>>>;
type Shard = HashMap<(DbIndex, SlotId), Queues>;

/// All queues.
#[derive(Debug)]
pub(super) struct Waiting {
    shards: Box<[Mutex<Shard>]>,
    numbers: AtomicU64,
}

impl Waiting {
    pub(super) fn new() -> Waiting {
        Waiting {
            shards: (0..SHARDS).map(|_| Mutex::default()).collect(),
            numbers: AtomicU64::new(0),
        }
    }

    fn shard(&self, slot: SlotId) -> MutexGuard<'_, Shard> {
        self.shards[slot.index() % SHARDS].lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn join(&self, db: DbIndex, key: &Awaited, waiter: &Arc<Waiter>) -> Id {
        let mut shard = self.shard(key.slot);
        let queues = shard.entry((db, key.slot)).or_default();
        queues.entry(key.bytes.clone()).or_default().push_back(Arc::clone(waiter))
    }

    /// Takes a waiter out of one queue; true if nobody waits for any key of the slot any more.
    fn leave(&self, db: DbIndex, key: &Awaited, place: Id) -> bool {
        let mut shard = self.shard(key.slot);
        let Some(queues) = shard.get_mut(&(db, key.slot)) else { return true };
        if let Some(queue) = queues.get_mut(&key.bytes) {
            queue.remove(place);
            if queue.is_empty() {
                queues.remove(&key.bytes);
            }
        }
        let last = queues.is_empty();
        if last {
            shard.remove(&(db, key.slot));
        }
        last
    }

    fn is_awaited(&self, db: DbIndex, slot: SlotId, key: &[u8]) -> bool {
        self.shard(slot).get(&(db, slot)).is_some_and(|queues| queues.contains_key(key))
    }

    /// The oldest waiter of a key that came after number `after`.
    fn next(&self, db: DbIndex, key: &Key<'_>, after: Option<u64>) -> Option<Arc<Waiter>> {
        let shard = self.shard(key.slot);
        let queue = shard.get(&(db, key.slot))?.get(key.bytes)?;
        let mut waiters = queue.iter().map(|(_, waiter)| waiter);
        waiters.find(|waiter| after.is_none_or(|number| waiter.number > number)).cloned()
    }

    /// The keys of a slot that are waited for.
    fn keys(&self, db: DbIndex, slot: SlotId) -> Vec<Box<[u8]>> {
        self.shard(slot).get(&(db, slot)).map_or_else(Vec::new, |q| q.keys().cloned().collect())
    }

    /// How many keys are waited for. O(slots with waiters).
    fn key_count(&self) -> usize {
        let count = |shard: &Mutex<Shard>| -> usize {
            let shard = shard.lock().unwrap_or_else(PoisonError::into_inner);
            shard.values().map(HashMap::len).sum()
        };
        self.shards.iter().map(count).sum()
    }
}

impl Keyspace {
    /// Takes a waiter whose wait has ended out of its queues. O(its keys).
    pub fn forget_waiter(&self, waiter: &Waiter) {
        let db = waiter.command.db();
        let places = waiter.places.get().map_or(&[][..], Vec::as_slice);
        for (key, place) in waiter.keys.iter().zip(places) {
            let mut guard = lock_patiently(self.database(db), key.slot);
            if self.waiting.leave(db, key, *place) {
                let marks = guard.marks() & !WAITED_FOR;
                guard.set_marks(marks);
            }
        }
    }

    /// How many keys are waited for. O(slots with waiters).
    pub fn awaited_keys(&self) -> usize {
        self.waiting.key_count()
    }

    /// The oldest waiter behind `after` that `key` may be of use to: it holds what is waited for.
    pub(crate) fn next_waiter(
        &self,
        db: DbIndex,
        key: &Key<'_>,
        mut after: Option<u64>,
    ) -> Option<Arc<Waiter>> {
        let guard = lock_patiently(self.database(db), key.slot);
        let kind =
            guard.table().find(key.hash, key.bytes).map(|entry| crate::types::kind_of(&entry));
        loop {
            let waiter = self.waiting.next(db, key, after)?;
            // A stream that is gone concerns those who wait in a group of it.
            let concerned = kind.map_or(waiter.kind == Kind::Stream, |kind| kind == waiter.kind);
            if concerned && waiter.claim() {
                return Some(waiter);
            }
            after = Some(waiter.number);
        }
    }
}

impl Keys<'_> {
    /// Lets a client wait for keys, all of which this command holds.
    pub(crate) fn wait(&mut self, wish: Wish<'_>) -> Arc<Waiter> {
        let keyspace = self.keyspace();
        let mut keys: Vec<Awaited> = Vec::with_capacity(wish.keys.len());
        for key in wish.keys {
            if keys.iter().all(|known| *known.bytes != *key.bytes) {
                keys.push(Awaited { bytes: key.bytes.into(), slot: key.slot });
            }
        }
        let waiter = Arc::new(Waiter {
            client: wish.client,
            deadline_ms: wish.deadline_ms,
            command: wish.command,
            kind: wish.kind,
            number: keyspace.waiting.numbers.fetch_add(1, Ordering::Relaxed),
            keys,
            places: OnceLock::new(),
            state: AtomicU8::new(WAITING),
        });
        let db = self.db();
        let mut places = Vec::with_capacity(waiter.keys.len());
        for key in &waiter.keys {
            self.mark(key.slot, WAITED_FOR);
            places.push(keyspace.waiting.join(db, key, &waiter));
        }
        // Nobody else can have set it: the slots are held.
        let _ = waiter.places.set(places);
        waiter
    }

    /// Notes that a key in a marked slot is there, or changed, if somebody waits for it.
    #[cold]
    pub(super) fn signal(&self, key: &Key<'_>) {
        if self.keyspace().waiting.is_awaited(self.db(), key.slot, key.bytes) {
            self.env().note_ready(self.db(), key.bytes);
        }
    }

    /// Notes all keys that are waited for and there, after a database was exchanged.
    pub(super) fn signal_all(&self, db: DbIndex, slot: SlotId) {
        for key in self.keyspace().waiting.keys(db, slot) {
            self.env().note_ready(db, &key);
        }
    }
}

impl Env {
    /// Notes a key whose waiters are to be served.
    pub(crate) fn note_ready(&self, db: DbIndex, key: &[u8]) {
        let mut ready = self.ready.borrow_mut();
        // A key that is noted twice is found without waiters the second time.
        if ready.back().is_none_or(|(last_db, last)| *last_db != db || **last != *key) {
            ready.push_back((db, key.into()));
        }
    }

    /// Whether there are keys whose waiters are to be served.
    #[inline]
    pub fn has_ready(&self) -> bool {
        !self.ready.borrow().is_empty()
    }
}
