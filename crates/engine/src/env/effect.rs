//! The side effects of a write: effects to propagate, and keyspace events to publish.
//!
//! Effects and events are recorded only while they are needed ([`Hooks`]); otherwise a write costs
//! only one more branch. An effect is canonical and absolute (`SET k v PXAT …`, never a relative
//! time), so that replaying it later gives the same keyspace.

use crate::base::place::{DbIndex, SlotId, Ticket};
use crate::env::journal::Journal;
use bitflags::bitflags;
use brisk_resp::request;
use smallvec::SmallVec;
use std::cell::Cell;
use std::num::NonZeroU64;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

pub use crate::base::event::EventClass;

bitflags! {
    /// Additional work that commands do while it is needed.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
    pub struct Hooks: u32 {
        /// Effects are collected, and each write takes a ticket.
        const PROPAGATE = 1;
        /// Keyspace events are collected.
        const NOTIFY = 1 << 1;
        /// The client whose commands are running caches what it reads.
        const REMEMBER = 1 << 2;
        /// Invalidations wait to be sent to clients that have cached the keys.
        const INVALIDATE = 1 << 3;
        /// Names of changed keys wait to be sent to clients that track prefixes.
        const BROADCAST = 1 << 4;
    }
}

/// The hooks of a thread. [`Hooks::PROPAGATE`] is the same for all threads and changes only during
/// quiescence, so that no command sees both states. The other bits belong to the thread.
#[derive(Debug, Default)]
pub struct HookCell {
    own: Cell<Hooks>,
    all: Arc<AtomicU32>,
}

impl HookCell {
    /// Shares the bits for all threads with the other cells that were given the same `all`.
    pub fn share(&mut self, all: &Arc<AtomicU32>) {
        self.all = Arc::clone(all);
    }

    #[inline(always)]
    pub fn get(&self) -> Hooks {
        self.own.get() | Hooks::from_bits_retain(self.all.load(Ordering::Relaxed))
    }

    /// Sets the hooks that belong to the thread and returns the previous ones. Shared bits do not
    /// change.
    pub fn replace_own(&self, hooks: Hooks) -> Hooks {
        debug_assert!(!hooks.contains(Hooks::PROPAGATE), "not the thread's own");
        self.own.replace(hooks - Hooks::PROPAGATE)
    }

    /// Sets or clears `what`; other bits do not change.
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

/// Canonical commands that repeat changes elsewhere, as requests one after the other.
#[derive(Debug, Default)]
pub struct Effects {
    bytes: Vec<u8>,
    /// The database of each command, and the offset of the command's end.
    ends: SmallVec<[(DbIndex, usize); 4]>,
}

impl Effects {
    /// Capacity in bytes above which a buffer is not kept.
    const KEPT_BYTES_MAX: usize = 64 << 10;

    /// Adds a command. O(its bytes).
    pub fn push<'w>(&mut self, db: DbIndex, words: impl ExactSizeIterator<Item = &'w [u8]>) {
        self.push_encoded(db, |out| request::encode_words(out, words));
    }

    /// Adds a command that `encode` appends.
    pub(crate) fn push_encoded(&mut self, db: DbIndex, encode: impl FnOnce(&mut Vec<u8>)) {
        encode(&mut self.bytes);
        self.ends.push((db, self.bytes.len()));
    }

    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// Number of commands.
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// Keeps the first `len` commands.
    pub(crate) fn truncate(&mut self, len: usize) {
        self.ends.truncate(len);
        self.bytes.truncate(self.ends.last().map_or(0, |(_, end)| *end));
    }

    pub(crate) fn clear(&mut self) {
        self.truncate(0);
        self.bytes.shrink_to(Self::KEPT_BYTES_MAX);
    }

    /// Appends the commands as one transaction. Several commands are framed by MULTI and EXEC. A
    /// command in a database other than `db` is preceded by SELECT. `db` becomes the database of
    /// the last command.
    pub(crate) fn write(&self, out: &mut Vec<u8>, db: &mut Option<DbIndex>) {
        let is_framed = self.ends.len() > 1;
        if is_framed {
            request::encode(out, &["MULTI"]);
        }
        let mut begin = 0;
        for (own, end) in &self.ends {
            select(out, db, *own);
            out.extend_from_slice(&self.bytes[begin..*end]);
            begin = *end;
        }
        if is_framed {
            request::encode(out, &["EXEC"]);
        }
    }
}

/// Appends a SELECT unless `own` is already the database of the last command, `db`.
pub(super) fn select(out: &mut Vec<u8>, db: &mut Option<DbIndex>, own: DbIndex) {
    if db.replace(own) != Some(own) {
        request::encode(out, &["SELECT", itoa::Buffer::new().format(own.number())]);
    }
}

/// A keyspace event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Event {
    pub db: DbIndex,
    pub class: EventClass,
    pub name: &'static str,
    pub key: Vec<u8>,
}

/// A key's name. Names of usual length need no allocation.
pub type KeyName = SmallVec<[u8; 24]>;

/// A client with tracking enabled: its worker and its id in one word.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct TrackingClient(NonZeroU64);

impl TrackingClient {
    const CLIENT_BITS: u32 = 48;

    /// Client ids start at 1.
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

/// The invalidation of values that clients have cached.
#[derive(Debug)]
pub enum Invalidation {
    /// A key was changed, or is no longer remembered.
    Key {
        name: KeyName,
        readers: SmallVec<[TrackingClient; 2]>,
        /// The client that made the change; 0 for none.
        by: u64,
    },
    /// Databases were flushed: all cached values are invalid.
    All { by: u64 },
}

/// Capacity in bytes above which a buffer for another server's stream is not kept.
const RELAYED_KEPT_MAX: usize = 64 * 1024;

/// The side effects of transactions, until they are collected.
#[derive(Debug, Default)]
pub struct Aftermath {
    /// The effects of the running transaction.
    pub(crate) effects: Effects,
    pub events: Vec<Event>,
    /// Cached values that became invalid.
    pub invalidations: Vec<Invalidation>,
    /// Changed keys, and the client that changed each (0 for none), for clients that track
    /// prefixes.
    pub changed: Vec<(KeyName, u64)>,
    /// True if the running command has set what to propagate.
    pub(crate) replaced: bool,
    /// Slots that the command changed without holding them until it ended: as parts of whole
    /// databases, or because it is one of several commands of a unit.
    pub(crate) slots: Vec<(DbIndex, SlotId)>,
    /// True if several commands run as one unit.
    unit: bool,
    /// The running transaction as it appears in the stream of another server, which this server
    /// relays. Empty if there is none, or if it was appended already.
    relayed: Vec<u8>,
    /// The bytes for the append-only file, if they differ from those of the stream.
    instead: Option<Vec<u8>>,
    /// True if the relayed bytes are already part of this server's stream.
    is_relayed: bool,
    /// True if the running transaction changed something that `relayed` describes.
    is_covered: bool,
}

impl Aftermath {
    /// Clears everything and keeps the buffers.
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

    /// Inserts the side effects in `others` before the existing ones.
    pub(crate) fn put_before(&mut self, mut others: Aftermath) {
        debug_assert!(self.effects.is_empty() && others.effects.is_empty(), "not sealed");
        others.events.append(&mut self.events);
        others.invalidations.append(&mut self.invalidations);
        others.changed.append(&mut self.changed);
        *self = others;
    }

    /// Reports whether the change is covered by the relayed stream of another server. If so, this
    /// is recorded, and no effect has to be added. Within a unit, the result is always false.
    pub(crate) fn is_covered_by_relay(&mut self, journal: &Journal) -> bool {
        let is_covered = !self.unit && !self.relayed.is_empty() && journal.is_relayed();
        self.is_covered |= is_covered;
        is_covered
    }

    /// Reports whether the running transaction is propagated.
    pub(crate) fn has_effects(&self) -> bool {
        self.is_covered || !self.effects.is_empty()
    }

    /// Reports whether the running command is a whole transaction as it was sent: it is not part of
    /// a unit, and has set no effects.
    pub(crate) fn is_single(&self) -> bool {
        !self.unit
            && !self.replaced
            && self.effects.is_empty()
            && self.slots.is_empty()
            && self.relayed.is_empty()
    }

    /// Reports whether the running command is one of several that share a ticket.
    pub(crate) fn is_unit(&self) -> bool {
        self.unit
    }

    /// Begins a unit: the effects of the following commands belong together.
    pub(crate) fn begin_unit(&mut self) {
        debug_assert!(!self.unit, "a unit within a unit");
        debug_assert!(self.effects.is_empty(), "effects that were not sealed");
        self.unit = true;
    }

    /// Ends a unit. Returns false if it has no effects.
    pub(crate) fn end_unit(&mut self) -> bool {
        self.unit = false;
        !self.effects.is_empty()
    }

    /// Ends the transaction and makes it part of the stream. The transaction changed the slots `held`, which are still
    /// held, and those in `self.slots`.
    #[must_use]
    pub(crate) fn seal(
        &mut self,
        journal: &Journal,
        held: impl Iterator<Item = SlotId> + Clone,
    ) -> Ticket {
        debug_assert!(self.has_effects(), "a ticket for nothing");
        // The transaction may have waited for its slots until this server stopped following the
        // other one. Then it is a transaction of this server.
        let relayed = match self.relayed.is_empty() {
            true => None,
            false => journal.relay(&self.relayed, self.instead.as_deref()),
        };
        self.is_relayed |= relayed.is_some();
        // The ownership of the stream does not change while a command holds its slots.
        debug_assert!(relayed.is_some() || !self.is_covered, "a relayed change without a stream");
        let others = self.slots.iter().map(|(_, slot)| *slot);
        let slots = held.chain(others);
        let ticket = relayed.unwrap_or_else(|| journal.append(&self.effects, slots));
        self.relayed.clear();
        self.effects.clear();
        self.is_covered = false;
        ticket
    }

    /// Begins a transaction that comes from another server: `bytes` are its form in that server's
    /// stream. Its first change appends them to this server's stream, while its slots are held. The
    /// append-only file gets the same bytes, or `instead`.
    pub fn begin_relay(&mut self, bytes: &[u8], instead: Option<Vec<u8>>) {
        (self.instead, self.is_relayed) = (instead, false);
        self.relayed.clear();
        self.relayed.shrink_to(RELAYED_KEPT_MAX);
        self.relayed.extend_from_slice(bytes);
    }

    /// Ends the transaction of [`Self::begin_relay`]. `done` has its bytes in the other server's
    /// stream, and the bytes for the append-only file if they differ. They are appended unless a
    /// change has already appended them. `None` means that the transaction was not executed.
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
    fn a_thread_replaces_its_own_bits_and_keeps_the_shared_ones() {
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
