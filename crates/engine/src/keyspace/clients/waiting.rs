//! Clients that wait for a key to appear or to change: who they are, and in which order they came.
//!
//! A waiter joins the queues of its keys while the command that found nothing still holds their
//! slots, so nothing can happen in between. Whoever makes a key appear in a marked slot notes it as
//! ready ([`Env::ready`]); [`crate::run::serve`] then runs the waiters' commands again,
//! oldest first.
//!
//! Who ends a wait: the one that moves the waiter's state to [`ENDED`]. He removes it from all its
//! queues (see `interest`), O(1) each.

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

/// States of a waiter.
const WAITING: u8 = 0;
/// Its command is being run again. Only who holds the slots of all its keys claims it, and settles
/// it before giving them back: who holds one of them never sees a claim of somebody else's, and
/// nobody waits for anything between the two.
const CLAIMED: u8 = 1;
const ENDED: u8 = 2;

/// The client behind a command, in the server's terms.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ClientRef {
    pub worker: usize,
    /// What the worker knows its connection by.
    pub token: u64,
    pub id: u64,
    pub protocol: Protocol,
}

/// What is answered where waiting is not possible. (A wait in vain is answered with a null array,
/// whatever the command.)
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

/// A client that waits inside a command.
pub struct Waiter {
    pub client: ClientRef,
    /// `None`: it waits for ever.
    pub deadline_ms: Option<u64>,
    pub(crate) command: RecordedCommand,
    /// It is of no use to run the command again while the key holds something else.
    pub(crate) kind: ValueKind,
    /// The group it waits in.
    pub(crate) group: Option<Box<[u8]>>,
    /// Order of arrival among all waiters.
    pub(crate) number: u64,
    keys: Vec<Awaited>,
    places: OnceLock<Vec<Id>>,
    state: AtomicU8,
    /// Nanoseconds that its command ran before it began to wait; for those who have a clock.
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
    /// Ends the wait, unless somebody else has: then false, and the answer is on its way. Who ends
    /// it calls [`Keyspace::forget_waiter`].
    pub fn end(&self) -> bool {
        loop {
            match self.transit(WAITING, ENDED) {
                Ok(_) => return true,
                Err(ENDED) => return false,
                // Its command is being run again by somebody who waits for nothing meanwhile.
                Err(_) => std::thread::yield_now(),
            }
        }
    }

    /// Whether the wait is over, and the answer under way.
    pub fn is_over(&self) -> bool {
        self.state.load(Ordering::Acquire) == ENDED
    }

    /// The command that waits, and its container.
    pub fn command(&self) -> (&'static Spec, Option<&'static Spec>) {
        (self.command.spec(), self.command.parent())
    }

    /// Shows the words of the command that waits.
    pub fn with_words<R>(&self, keyspace: &Keyspace, show: impl FnOnce(&Args<'_>) -> R) -> R {
        self.command.with_args(keyspace, |args, _| show(args))
    }

    /// Takes the right to run its command again; the caller holds the slots of all its keys. False
    /// if the wait is over.
    #[must_use]
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

/// The wait that a command begins.
pub(crate) struct WaitRequest<'w> {
    pub(crate) client: ClientRef,
    pub(crate) command: RecordedCommand,
    pub(crate) kind: ValueKind,
    pub(crate) keys: &'w [Key<'w>],
    pub(crate) group: Option<&'w [u8]>,
    pub(crate) deadline_ms: Option<u64>,
}

/// Who waits for one key.
#[derive(Debug, Default)]
struct Queue {
    waiters: List<Arc<Waiter>>,
    /// How many of them wait for each kind of value: with none nobody has to be looked at.
    of_kind: [u32; ValueKind::ALL.len()],
    /// How many of them wait in a group, hence are concerned by the end of the key.
    in_groups: u32,
    /// How many of these in which group. There are few.
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

    /// Whether anybody is concerned by a key of this kind, or by its end, whose group is not among
    /// those `in_vain`. Who waits in a group is concerned by whatever takes the stream's place.
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
    /// How many keys are waited for, and of how many the end is.
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

    /// Takes a waiter out of one queue; true if nobody waits for any key of the slot any more.
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

    /// The oldest waiter that came after number `after` and that is concerned by a key of this
    /// kind, or by its end. O(1) if nobody is, else O(waiters passed over). `in_vain`: groups for
    /// which there is nothing.
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
    /// A wait for something else than keys, which its client's worker ends: of a command that `words`
    /// are. `deadline_ms`: `None` is for ever.
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

    /// Takes a waiter whose wait has ended out of its queues. O(its keys).
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

    /// How many keys are waited for. O(1).
    pub fn blocking_keys(&self) -> usize {
        self.waiting.keys.load(Ordering::Relaxed)
    }

    /// Of how many keys the end is waited for too. O(1).
    pub fn blocking_keys_on_nokey(&self) -> usize {
        self.waiting.keys_of_end.load(Ordering::Relaxed)
    }

    /// The oldest waiter behind `after` that `key` may be of use to: it holds what is waited for.
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
    /// Lets a client wait for keys, all of which this command holds.
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
        // Nobody else can have set it: the slots are held.
        let _ = waiter.places.set(places);
        waiter
    }

    /// Notes that a key in a marked slot is there, or changed, if somebody waits for it.
    #[cold]
    pub(in crate::keyspace) fn signal(&self, key: &Key<'_>) {
        if self.keyspace().waiting.is_awaited(self.db(), key.slot, key.bytes) {
            self.env().note_ready(self.db(), key.bytes);
        }
    }

    /// Notes all keys that are waited for and there, after a database was exchanged.
    pub(in crate::keyspace) fn signal_all(&self, db: DbIndex, slot: SlotId) {
        let env = self.env();
        self.keyspace().waiting.queues.each(db, slot, |key, _| env.note_ready(db, key));
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
