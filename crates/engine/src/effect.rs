//! What a write leaves behind besides the changed value: effects to propagate, events to publish.
//!
//! Both are recorded only while somebody wants them ([`Armed`]); otherwise a write pays one branch.
//! An effect is canonical and absolute (`SET k v PXAT …`, never a relative time), so that replaying
//! it later gives the same keyspace.

use crate::keyspace::{DbIndex, SlotId};
use bitflags::bitflags;

bitflags! {
    /// Who wants to hear of writes.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
    pub struct Armed: u32 {
        /// Effects are collected, and each write takes a ticket.
        const PROPAGATE = 1;
        /// Keyspace events are collected.
        const NOTIFY = 1 << 1;
    }
}

bitflags! {
    /// Classes of keyspace events: the letters of `notify-keyspace-events`.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
    pub struct EventClass: u32 {
        const KEYSPACE = 1;
        const KEYEVENT = 1 << 1;
        const GENERIC = 1 << 2;
        const STRING = 1 << 3;
        const LIST = 1 << 4;
        const SET = 1 << 5;
        const HASH = 1 << 6;
        const SORTED_SET = 1 << 7;
        const EXPIRED = 1 << 8;
        const EVICTED = 1 << 9;
        const STREAM = 1 << 10;
        const KEY_MISS = 1 << 11;
        const MODULE = 1 << 13;
        const NEW = 1 << 14;
    }
}

/// A command, whole and canonical, that repeats a change elsewhere.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Effect {
    pub db: DbIndex,
    pub words: Vec<Vec<u8>>,
}

/// Something happened to a key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Event {
    pub db: DbIndex,
    pub class: EventClass,
    pub name: &'static str,
    pub key: Vec<u8>,
}

/// The effects and events of the transaction that is running.
#[derive(Debug, Default)]
pub struct Aftermath {
    pub effects: Vec<Effect>,
    pub events: Vec<Event>,
    /// The running command said itself what to propagate.
    pub(crate) replaced: bool,
    /// Slots that it changed without holding them to its end: as parts of whole databases, or as one
    /// of several commands that are a unit.
    pub(crate) slots: Vec<(DbIndex, SlotId)>,
    /// Several commands run as one unit, whose effects begin here.
    unit: Option<usize>,
}

impl Aftermath {
    /// Forgets everything; the buffers are kept.
    pub fn clear(&mut self) {
        self.effects.clear();
        self.events.clear();
        self.replaced = false;
        self.slots.clear();
        self.unit = None;
    }

    /// Puts what others left before what is there.
    pub(crate) fn put_before(&mut self, mut others: Aftermath) {
        others.effects.append(&mut self.effects);
        others.events.append(&mut self.events);
        (self.effects, self.events) = (others.effects, others.events);
    }

    /// Whether the running command is one of several that share a ticket.
    pub(crate) fn is_unit(&self) -> bool {
        self.unit.is_some()
    }

    /// The effects of the commands that run from now on belong together.
    pub(crate) fn begin_unit(&mut self) {
        debug_assert!(self.unit.is_none(), "a unit within a unit");
        self.unit = Some(self.effects.len());
    }

    /// Ends a unit: more than one effect is framed by MULTI and EXEC. False if there is none.
    pub(crate) fn end_unit(&mut self) -> bool {
        let Some(begin) = self.unit.take() else { return false };
        let [first, .., last] = &self.effects[begin..] else { return begin < self.effects.len() };
        let frame = |db, word: &str| Effect { db, words: vec![word.into()] };
        let (head, tail) = (frame(first.db, "MULTI"), frame(last.db, "EXEC"));
        self.effects.insert(begin, head);
        self.effects.push(tail);
        true
    }
}
