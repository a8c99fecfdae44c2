//! Clients in blocking commands, which wait for a key to appear or to change, in order of arrival.
//!
//! A waiter joins the queues of its keys while the command that found nothing still holds their
//! slots, so no change can happen in between. A command that creates a key in a marked slot records
//! the key as ready ([`Env::ready`]). [`crate::run::serve`] then runs the waiters' commands again,
//! oldest first.
//!
//! The thread that moves a waiter's state to [`ENDED`] ends the wait. It removes the waiter from
//! all its queues (see `key_queues`), O(1) each.

use crate::call::recorded::RecordedCommand;
use crate::command::Spec;
use crate::command::args::Args;
use crate::env::Env;
use crate::keyspace::key_queues::KeyQueues;
use crate::keyspace::keys::lock_blocking;
use crate::keyspace::marks::WAITED_FOR;
use crate::keyspace::{DbIndex, Key, Keys, Keyspace, SlotId};
use crate::reply::{Outcome, Reply};
use crate::types::ValueKind;
use brisk_resp::Protocol;
use brisk_structures::list::List;
use brisk_structures::slab::Id;
use std::collections::HashSet;
use std::sync::atomic::{AtomicU8, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};

/// The states of a waiter.
const WAITING: u8 = 0;
/// The waiter's command is being run again. Only a thread that holds the slots of all the waiter's
/// keys claims it, and the thread settles the claim before it releases them. A thread that holds
/// one of the slots therefore never sees a claim of another thread. The claiming thread does not
/// wait for anything in between.
const CLAIMED: u8 = 1;
const ENDED: u8 = 2;

/// The client of a command, as the server identifies it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ClientRef {
    pub worker: usize,
    /// The worker's identifier of the connection.
    pub token: u64,
    pub id: u64,
    pub protocol: Protocol,
}

/// The reply of a blocking command where waiting is not possible, for example in a transaction.
/// (After a timeout the reply is a null array for every command.)
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EmptyReply {
    Null,
    NullArray,
}

impl EmptyReply {
    pub fn reply(self, reply: &mut Reply<'_>) -> Outcome {
        match self {
            EmptyReply::Null => reply.null(),
            EmptyReply::NullArray => reply.null_array(),
        }
    }
}

/// A client in a blocking command.
pub struct Waiter {
    pub client: ClientRef,
    /// `None`: no timeout.
    pub deadline_ms: Option<u64>,
    pub(crate) command: RecordedCommand,
    /// The type of value that the client waits for. The command is not run again while the key
    /// holds a value of another type.
    pub(crate) kind: ValueKind,
    /// The consumer group in which the client waits.
    pub(crate) group: Option<Box<[u8]>>,
    /// Order of arrival among all waiters.
    pub(crate) number: u64,
    keys: Vec<Awaited>,
    places: OnceLock<Vec<Id>>,
    state: AtomicU8,
    /// Nanoseconds that the command ran before it blocked, set by callers with a clock.
    pub spent_ns: AtomicU64,
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
    /// Ends the wait. Returns false if another thread has ended it; then the reply is on its way.
    /// If it returns true, the caller must call [`Keyspace::forget_waiter`].
    pub fn end(&self) -> bool {
        loop {
            match self.transit(WAITING, ENDED) {
                Ok(_) => return true,
                Err(ENDED) => return false,
                // Another thread is running the command again, and does not wait for anything while
                // doing so.
                Err(_) => std::thread::yield_now(),
            }
        }
    }

    /// Reports whether the wait is over and the reply on its way.
    pub fn is_over(&self) -> bool {
        self.state.load(Ordering::Acquire) == ENDED
    }

    /// The blocked command, and its container command.
    pub fn command(&self) -> (&'static Spec, Option<&'static Spec>) {
        (self.command.spec(), self.command.parent())
    }

    /// The slot of the first key that the client waits for; `None` if it waits for something else.
    pub fn slot(&self) -> Option<SlotId> {
        self.keys.first().map(|key| key.slot)
    }

    /// Calls `show` with the arguments of the blocked command.
    pub fn with_args<R>(&self, keyspace: &Keyspace, show: impl FnOnce(&Args<'_>) -> R) -> R {
        self.command.with_args(keyspace, |args, _| show(args))
    }

    /// Claims the waiter in order to run its command again. The caller holds the slots of all its
    /// keys. Returns false if the wait is over.
    #[must_use]
    pub(crate) fn claim(&self) -> bool {
        self.transit(WAITING, CLAIMED).is_ok()
    }

    /// Ends a claim: the wait is over, or continues.
    pub(crate) fn settle(&self, over: bool) {
        self.state.store(if over { ENDED } else { WAITING }, Ordering::Release);
    }

    fn transit(&self, from: u8, to: u8) -> Result<u8, u8> {
        self.state.compare_exchange(from, to, Ordering::AcqRel, Ordering::Acquire)
    }
}

/// The wait that a command begins.
pub(crate) struct WaitRequest<'w> {
    pub(crate) client: ClientRef,
    pub(crate) command: RecordedCommand,
    pub(crate) kind: ValueKind,
    pub(crate) keys: &'w [Key<'w>],
    pub(crate) group: Option<&'w [u8]>,
    pub(crate) deadline_ms: Option<u64>,
}

/// The clients that wait for one key.
#[derive(Debug, Default)]
struct Queue {
    waiters: List<Arc<Waiter>>,
    /// Number of waiters per type of value. If it is zero, no waiter has to be checked.
    of_kind: [u32; ValueKind::ALL.len()],
    /// Number of waiters in a consumer group. They are also served when the key is deleted.
    in_groups: u32,
    /// Number of waiters per consumer group. There are few groups.
    groups: Vec<(Box<[u8]>, u32)>,
}

impl Queue {
    fn count(&mut self, waiter: &Waiter, change: i32) {
        let add = |count: &mut u32| *count = count.wrapping_add_signed(change);
        add(&mut self.of_kind[waiter.kind as usize]);
        let Some(group) = &waiter.group else { return };
        add(&mut self.in_groups);
        match self.groups.iter().position(|(name, _)| name == group) {
            Some(at) => {
                add(&mut self.groups[at].1);
                if self.groups[at].1 == 0 {
                    self.groups.swap_remove(at);
                }
            }
            None => self.groups.push((group.clone(), 1)),
        }
    }

    /// Reports whether a key of this type, or a deleted key, concerns a waiter whose group is not
    /// in `in_vain`. A value of any type that replaces the stream concerns a waiter in a group.
    /// O(groups).
    fn concerns(&self, kind: Option<ValueKind>, in_vain: &[Box<[u8]>]) -> bool {
        let Some(kind) = kind else { return self.in_groups > 0 };
        let of_kind = self.of_kind[kind as usize];
        if kind != ValueKind::Stream {
            return of_kind > 0 || self.in_groups > 0;
        }
        let done =
            |(name, count): &(Box<[u8]>, u32)| if in_vain.contains(name) { *count } else { 0 };
        of_kind > 0 && (in_vain.is_empty() || self.groups.iter().map(done).sum::<u32>() < of_kind)
    }
}

/// All queues.
#[derive(Debug)]
pub(in crate::keyspace) struct Waiting {
    queues: KeyQueues<Queue>,
    numbers: AtomicU64,
    /// Number of keys with waiters, and number of keys for whose deletion clients wait.
    keys: AtomicUsize,
    keys_of_end: AtomicUsize,
}

impl Waiting {
    pub(in crate::keyspace) fn new() -> Waiting {
        Waiting {
            queues: KeyQueues::new(),
            numbers: AtomicU64::new(0),
            keys: AtomicUsize::new(0),
            keys_of_end: AtomicUsize::new(0),
        }
    }

    fn join(&self, db: DbIndex, key: &Awaited, waiter: &Arc<Waiter>) -> Id {
        self.queues.join(db, key.slot, &key.bytes, |queue| {
            let had_end = queue.in_groups > 0;
            queue.count(waiter, 1);
            let place = queue.waiters.push_back(Arc::clone(waiter));
            let new = |is_new: bool| usize::from(is_new);
            self.keys.fetch_add(new(queue.waiters.len() == 1), Ordering::Relaxed);
            self.keys_of_end.fetch_add(new(queue.in_groups > 0 && !had_end), Ordering::Relaxed);
            place
        })
    }

    /// Removes a waiter from one queue. Returns true if the slot no longer has any waiters.
    fn leave(&self, db: DbIndex, key: &Awaited, place: Id) -> bool {
        self.queues.leave(db, key.slot, &key.bytes, |queue| {
            let had_end = queue.in_groups > 0;
            if let Some(waiter) = queue.waiters.remove(place) {
                queue.count(&waiter, -1);
            }
            let (is_empty, end_left) = (queue.waiters.is_empty(), had_end && queue.in_groups == 0);
            self.keys.fetch_sub(usize::from(is_empty), Ordering::Relaxed);
            self.keys_of_end.fetch_sub(usize::from(end_left), Ordering::Relaxed);
            is_empty
        })
    }

    fn is_awaited(&self, db: DbIndex, slot: SlotId, key: &[u8]) -> bool {
        self.queues.with(db, slot, key, |_| ()).is_some()
    }

    /// The oldest waiter with a number above `after` that is concerned by a key of this type, or by
    /// a deleted key. O(1) if there is none, else O(waiters skipped). `in_vain` contains the groups
    /// for which the key has nothing.
    fn oldest(
        &self,
        db: DbIndex,
        key: &Key<'_>,
        kind: Option<ValueKind>,
        after: Option<u64>,
        in_vain: &[Box<[u8]>],
    ) -> Option<Arc<Waiter>> {
        let concerned = |waiter: &Waiter| match &waiter.group {
            Some(group) => kind != Some(ValueKind::Stream) || !in_vain.contains(group),
            None => kind == Some(waiter.kind),
        };
        let late = |waiter: &Waiter| after.is_none_or(|number| waiter.number > number);
        let find = |queue: &mut Queue| {
            if !queue.concerns(kind, in_vain) {
                return None;
            }
            let mut waiters = queue.waiters.iter().map(|(_, waiter)| waiter);
            waiters.find(|waiter| late(waiter) && !waiter.is_over() && concerned(waiter)).cloned()
        };
        self.queues.with(db, key.slot, key.bytes, find).flatten()
    }
}

impl Keyspace {
    /// A waiter that waits for something other than keys. The client's worker ends the wait.
    /// `words` are the arguments of its command. `deadline_ms`: `None` means no timeout.
    pub fn waiter_without_keys(
        &self,
        client: ClientRef,
        command: (&'static Spec, Option<&'static Spec>),
        (db, words): (DbIndex, &[&[u8]]),
        deadline_ms: Option<u64>,
    ) -> Arc<Waiter> {
        Arc::new(Waiter {
            client,
            deadline_ms,
            command: RecordedCommand::unrepeatable(command.0, command.1, db, words),
            kind: ValueKind::String,
            group: None,
            number: self.waiting.numbers.fetch_add(1, Ordering::Relaxed),
            keys: Vec::new(),
            places: OnceLock::new(),
            state: AtomicU8::new(WAITING),
            spent_ns: AtomicU64::new(0),
        })
    }

    /// Removes a waiter whose wait has ended from its queues. O(its keys).
    pub fn forget_waiter(&self, waiter: &Waiter) {
        let db = waiter.command.db();
        let places = waiter.places.get().map_or(&[][..], Vec::as_slice);
        for (key, place) in waiter.keys.iter().zip(places) {
            let mut guard = lock_blocking(self.database(db), key.slot);
            if self.waiting.leave(db, key, *place) {
                let marks = guard.marks() & !WAITED_FOR;
                guard.set_marks(marks);
            }
        }
    }

    /// Number of keys with waiters. O(1).
    pub fn blocking_keys(&self) -> usize {
        self.waiting.keys.load(Ordering::Relaxed)
    }

    /// Number of keys for whose deletion clients wait. O(1).
    pub fn blocking_keys_on_nokey(&self) -> usize {
        self.waiting.keys_of_end.load(Ordering::Relaxed)
    }

    /// The oldest waiter after `after` to which the value of `key` may be of use.
    pub(crate) fn next_waiter(
        &self,
        db: DbIndex,
        key: &Key<'_>,
        after: Option<u64>,
        in_vain: &[Box<[u8]>],
    ) -> Option<Arc<Waiter>> {
        let guard = lock_blocking(self.database(db), key.slot);
        let kind =
            guard.table().find(key.hash, key.bytes).map(|entry| crate::types::kind_of(&entry));
        self.waiting.oldest(db, key, kind, after, in_vain)
    }
}

impl Keys<'_> {
    /// Makes a client wait for keys, all of which this command holds.
    pub(crate) fn wait(&mut self, request: WaitRequest<'_>) -> Arc<Waiter> {
        let keyspace = self.keyspace();
        let mut known = HashSet::with_capacity(request.keys.len());
        let new = request.keys.iter().filter(|key| known.insert(key.bytes));
        let keys = new.map(|key| Awaited { bytes: key.bytes.into(), slot: key.slot }).collect();
        let waiter = Arc::new(Waiter {
            client: request.client,
            deadline_ms: request.deadline_ms,
            command: request.command,
            kind: request.kind,
            group: request.group.map(Into::into),
            number: keyspace.waiting.numbers.fetch_add(1, Ordering::Relaxed),
            keys,
            places: OnceLock::new(),
            state: AtomicU8::new(WAITING),
            spent_ns: AtomicU64::new(0),
        });
        let db = self.db();
        let mut places = Vec::with_capacity(waiter.keys.len());
        for key in &waiter.keys {
            self.mark(key.slot, WAITED_FOR);
            places.push(keyspace.waiting.join(db, key, &waiter));
        }
        // No other thread can have set it: the slots are held.
        let _ = waiter.places.set(places);
        waiter
    }

    /// Called when a key in a marked slot was created or changed. Records the key as ready if
    /// clients wait for it.
    #[cold]
    pub(in crate::keyspace) fn signal(&self, key: &Key<'_>) {
        if self.keyspace().waiting.is_awaited(self.db(), key.slot, key.bytes) {
            self.env().note_ready(self.db(), key.bytes);
        }
    }

    /// Records all existing keys with waiters as ready, after the databases were exchanged.
    pub(in crate::keyspace) fn signal_all(&self, db: DbIndex, slot: SlotId) {
        let env = self.env();
        self.keyspace().waiting.queues.each(db, slot, |key, _| env.note_ready(db, key));
    }
}

impl Env {
    /// Records a key whose waiters have to be served.
    pub(crate) fn note_ready(&self, db: DbIndex, key: &[u8]) {
        let mut ready = self.ready.borrow_mut();
        // Recording a key twice is harmless, because it has no waiters the second time.
        if ready.back().is_none_or(|(last_db, last)| *last_db != db || **last != *key) {
            ready.push_back((db, key.into()));
        }
    }

    /// Reports whether there are keys whose waiters have to be served.
    #[inline]
    pub fn has_ready(&self) -> bool {
        !self.ready.borrow().is_empty()
    }
}
