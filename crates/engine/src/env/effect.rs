//! What a write leaves behind besides the changed value: effects to propagate, events to publish.
//!
//! Both are recorded only while somebody wants them ([`Hooks`]); otherwise a write pays one branch.
//! An effect is canonical and absolute (`SET k v PXAT …`, never a relative time), so that replaying
//! it later gives the same keyspace.

use crate::base::place::{DbIndex, SlotId, Ticket};
use crate::env::journal::Journal;
use bitflags::bitflags;
use brisk_resp::reply::encode;
use brisk_resp::request;
use smallvec::SmallVec;
use std::cell::Cell;
use std::num::NonZeroU64;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

pub use crate::base::event::EventClass;

bitflags! {
    /// What a command does besides its work, as long as somebody needs it.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
    pub struct Hooks: u32 {
        /// Effects are collected, and each write takes a ticket.
        const PROPAGATE = 1;
        /// Keyspace events are collected.
        const NOTIFY = 1 << 1;
        /// The client whose commands run caches what it reads.
        const REMEMBER = 1 << 2;
        /// Invalidations wait to be sent to clients that cached the keys.
        const INVALIDATE = 1 << 3;
        /// Keys were changed whose names wait to be sent to clients that track prefixes.
        const BROADCAST = 1 << 4;
    }
}

/// The hooks of a thread. [`Hooks::PROPAGATE`] is the same for all threads and changes only while
/// they stand still, so that no command sees both; the rest is the thread's own.
#[derive(Debug, Default)]
pub struct HookCell {
    own: Cell<Hooks>,
    all: Arc<AtomicU32>,
}

impl HookCell {
    /// Shares what is for all threads with the others that were given the same `all`.
    pub fn share(&mut self, all: &Arc<AtomicU32>) {
        self.all = Arc::clone(all);
    }

    #[inline(always)]
    pub fn get(&self) -> Hooks {
        self.own.get() | Hooks::from_bits_retain(self.all.load(Ordering::Relaxed))
    }

    /// Sets the hooks that are the thread's own, and returns those it had. What all threads share
    /// stays as it is.
    pub fn replace_own(&self, hooks: Hooks) -> Hooks {
        debug_assert!(!hooks.contains(Hooks::PROPAGATE), "not the thread's own");
        self.own.replace(hooks - Hooks::PROPAGATE)
    }

    /// Sets or clears `what`; the rest stays.
    #[inline]
    pub fn set(&self, what: Hooks, on: bool) {
        if what.contains(Hooks::PROPAGATE) {
            self.all.store(if on { Hooks::PROPAGATE.bits() } else { 0 }, Ordering::Relaxed);
        }
        let mut own = self.own.get();
        own.set(what - Hooks::PROPAGATE, on);
        self.own.set(own);
    }
}

/// Commands, whole and canonical, that repeat changes elsewhere: as requests, one behind the other.
#[derive(Debug, Default)]
pub struct Effects {
    bytes: Vec<u8>,
    /// Where each ends, and its database.
    ends: SmallVec<[(DbIndex, usize); 4]>,
}

impl Effects {
    /// A buffer for more is given back.
    const KEPT_BYTES_MAX: usize = 64 << 10;

    /// Adds a command. O(its bytes).
    pub fn push<'w>(&mut self, db: DbIndex, words: impl ExactSizeIterator<Item = &'w [u8]>) {
        encode::array(&mut self.bytes, words.len());
        words.for_each(|word| encode::bulk(&mut self.bytes, word));
        self.ends.push((db, self.bytes.len()));
    }

    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// How many commands there are.
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// Keeps the first `len`.
    pub(crate) fn truncate(&mut self, len: usize) {
        self.ends.truncate(len);
        self.bytes.truncate(self.ends.last().map_or(0, |(_, end)| *end));
    }

    pub(crate) fn clear(&mut self) {
        self.truncate(0);
        self.bytes.shrink_to(Self::KEPT_BYTES_MAX);
    }

    /// Appends them as one transaction: framed if there are several, and with SELECT before a
    /// command in another database than `db`, which is then that of the last.
    pub(crate) fn write(&self, out: &mut Vec<u8>, db: &mut Option<DbIndex>) {
        let is_framed = self.ends.len() > 1;
        if is_framed {
            request::encode(out, &["MULTI"]);
        }
        let mut begin = 0;
        for (own, end) in &self.ends {
            if db.replace(*own) != Some(*own) {
                request::encode(out, &["SELECT", itoa::Buffer::new().format(own.number())]);
            }
            out.extend_from_slice(&self.bytes[begin..*end]);
            begin = *end;
        }
        if is_framed {
            request::encode(out, &["EXEC"]);
        }
    }
}

/// Something happened to a key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Event {
    pub db: DbIndex,
    pub class: EventClass,
    pub name: &'static str,
    pub key: Vec<u8>,
}

/// A key's name; usual ones need no allocation.
pub type KeyName = SmallVec<[u8; 24]>;

/// A client that remembers what it read: its worker and its id in one word.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct TrackingClient(NonZeroU64);

impl TrackingClient {
    const CLIENT_BITS: u32 = 48;

    /// Of a client; ids are counted from 1.
    pub fn new(worker: usize, client: u64) -> TrackingClient {
        debug_assert!(client != 0 && client >> Self::CLIENT_BITS == 0);
        let word = (worker as u64) << Self::CLIENT_BITS | client;
        TrackingClient(NonZeroU64::new(word).unwrap_or(NonZeroU64::MIN))
    }

    pub fn worker(self) -> usize {
        (self.0.get() >> Self::CLIENT_BITS) as usize
    }

    pub fn client(self) -> u64 {
        self.0.get() & ((1 << Self::CLIENT_BITS) - 1)
    }
}

/// Something that clients may have cached is no longer true.
#[derive(Debug)]
pub enum Invalidation {
    /// A key was changed, or is not remembered any more.
    Key {
        name: KeyName,
        readers: SmallVec<[TrackingClient; 2]>,
        /// The client on whose behalf; 0 for none.
        by: u64,
    },
    /// Databases were flushed: nothing is true.
    All { by: u64 },
}

/// A buffer for more bytes of another server's stream is given back.
const RELAYED_KEPT_MAX: usize = 64 * 1024;

/// What transactions leave behind until it is fetched.
#[derive(Debug, Default)]
pub struct Aftermath {
    /// The effects of the transaction that is running.
    pub(crate) effects: Effects,
    pub events: Vec<Event>,
    /// What clients may not trust any more that cached it.
    pub invalidations: Vec<Invalidation>,
    /// Changed keys, and the client that changed each (0 for none): for those who listen to
    /// prefixes.
    pub changed: Vec<(KeyName, u64)>,
    /// The running command said itself what to propagate.
    pub(crate) replaced: bool,
    /// Slots that it changed without holding them to its end: as parts of whole databases, or as
    /// one of several commands that are a unit.
    pub(crate) slots: Vec<(DbIndex, SlotId)>,
    /// Several commands run as one unit.
    unit: bool,
    /// What the running transaction is in the stream of another server, which this one relays; empty if
    /// it is in none, or is by now.
    relayed: Vec<u8>,
    /// The bytes for the append-only file, if they differ from those of the stream.
    instead: Option<Vec<u8>>,
    /// These bytes are already part of this server's stream.
    is_relayed: bool,
    /// The running transaction changed something, and `relayed` says what.
    is_covered: bool,
}

impl Aftermath {
    /// Forgets everything; the buffers are kept.
    pub fn clear(&mut self) {
        self.effects.clear();
        self.events.clear();
        self.invalidations.clear();
        self.changed.clear();
        self.replaced = false;
        self.slots.clear();
        self.unit = false;
        self.is_covered = false;
    }

    /// Puts what others left before what is there.
    pub(crate) fn put_before(&mut self, mut others: Aftermath) {
        debug_assert!(self.effects.is_empty() && others.effects.is_empty(), "not sealed");
        others.events.append(&mut self.events);
        others.invalidations.append(&mut self.invalidations);
        others.changed.append(&mut self.changed);
        *self = others;
    }

    /// Whether what has changed was told by another server, whose words are relayed: then it is noted, and
    /// nothing has to be pushed. Never within a unit.
    pub(crate) fn is_covered_by_relay(&mut self, journal: &Journal) -> bool {
        let is_covered = !self.unit && !self.relayed.is_empty() && journal.is_relayed();
        self.is_covered |= is_covered;
        is_covered
    }

    /// Whether the running transaction is to be propagated.
    pub(crate) fn has_effects(&self) -> bool {
        self.is_covered || !self.effects.is_empty()
    }

    /// Whether the running command is one of several that share a ticket.
    pub(crate) fn is_unit(&self) -> bool {
        self.unit
    }

    /// The effects of the commands that run from now on belong together.
    pub(crate) fn begin_unit(&mut self) {
        debug_assert!(!self.unit, "a unit within a unit");
        debug_assert!(self.effects.is_empty(), "effects that were not sealed");
        self.unit = true;
    }

    /// Ends a unit. False if it has no effects.
    pub(crate) fn end_unit(&mut self) -> bool {
        self.unit = false;
        !self.effects.is_empty()
    }

    /// The transaction is done; its slots are still held.
    #[must_use]
    pub(crate) fn seal(&mut self, journal: &Journal) -> Ticket {
        debug_assert!(self.has_effects(), "a ticket for nothing");
        // It may have waited for its slots until there was no other server any more: then it is a
        // transaction of this one.
        let relayed = match self.relayed.is_empty() {
            true => None,
            false => journal.relay(&self.relayed, self.instead.as_deref()),
        };
        self.is_relayed |= relayed.is_some();
        // Whose stream it is does not change while a command has its slots.
        debug_assert!(relayed.is_some() || !self.is_covered, "told to nobody");
        let ticket = relayed.unwrap_or_else(|| journal.append(&self.effects));
        self.relayed.clear();
        self.effects.clear();
        self.is_covered = false;
        ticket
    }

    /// The next transaction comes from another server: `bytes` are its form in that server's stream. Its
    /// first change appends them to this server's stream, while its slots are held. The append-only file
    /// gets the same bytes, or `instead`.
    pub fn begin_relay(&mut self, bytes: &[u8], instead: Option<Vec<u8>>) {
        (self.instead, self.is_relayed) = (instead, false);
        self.relayed.clear();
        self.relayed.shrink_to(RELAYED_KEPT_MAX);
        self.relayed.extend_from_slice(bytes);
    }

    /// Ends the transaction of [`Self::begin_relay`]. `done` has its bytes in the other server's stream, and
    /// the bytes for the append-only file if they differ; they are appended unless a change has appended
    /// them already. `None`: the transaction was not executed.
    pub fn end_relay(&mut self, journal: &Journal, done: Option<(&[u8], Option<&[u8]>)>) {
        if let Some((bytes, instead)) = done.filter(|_| !self.is_relayed) {
            let _ = journal.relay(bytes, instead);
        }
        self.relayed.clear();
        (self.instead, self.is_relayed) = (None, false);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_replaces_its_own_bits_and_leaves_those_of_all() {
        let (mut one, mut other, all) = (HookCell::default(), HookCell::default(), Arc::default());
        one.share(&all);
        other.share(&all);
        one.set(Hooks::PROPAGATE | Hooks::NOTIFY, true);
        assert_eq!(one.replace_own(Hooks::empty()), Hooks::NOTIFY);
        assert_eq!((one.get(), other.get()), (Hooks::PROPAGATE, Hooks::PROPAGATE));
        one.replace_own(Hooks::NOTIFY);
        assert_eq!(one.get(), Hooks::PROPAGATE | Hooks::NOTIFY);
        assert_eq!(other.get(), Hooks::PROPAGATE);
    }
}
