//! Values between bytes and keyspace: what a reader gives out, and what a writer takes.
//!
//! Compact encodings are the structures the engine keeps, validated: they can be taken over as they
//! are. Everything else is plain sequences.

use super::strings::{self, Strings};
use brisk_structures::intset::IntSet;
use brisk_structures::listpack::ListPack;
pub use brisk_structures::stream::StreamId;
use std::num::NonZeroU64;

/// A value of any type. Collections have elements; only streams may have none.
#[derive(Debug, Clone)]
pub enum Value {
    String(StringValue),
    List(Vec<ListNode>),
    Set(SetValue),
    Hash(HashValue),
    SortedSet(SortedSetValue),
    Stream(Box<Stream>),
}

impl Value {
    /// The type's name as TYPE says it.
    #[must_use]
    pub fn type_name(&self) -> &'static str {
        match self {
            Value::String(_) => "string",
            Value::List(_) => "list",
            Value::Set(_) => "set",
            Value::Hash(_) => "hash",
            Value::SortedSet(_) => "zset",
            Value::Stream(_) => "stream",
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum StringValue {
    Bytes(Vec<u8>),
    /// The decimal form of the number.
    Int(i64),
}

/// A stretch of a list, from left to right.
#[derive(Debug, Clone)]
pub enum ListNode {
    Packed(ListPack),
    Elements(Strings),
    /// One large element.
    Plain(Vec<u8>),
}

/// Members are unique.
#[derive(Debug, Clone)]
pub enum SetValue {
    Ints(IntSet),
    Packed(ListPack),
    Members(Strings),
}

/// Fields are unique.
#[derive(Debug, Clone)]
pub enum HashValue {
    /// Field and value by turns.
    Packed(ListPack),
    /// Field, value, deadline by turns, in order of the deadline (Unix time in ms, 0 for none),
    /// those without one last.
    PackedDeadlines(ListPack),
    /// Field and value by turns.
    Fields(Strings),
    /// The same, with a deadline (Unix time in ms) or none for each pair.
    FieldsDeadlines(Strings, Vec<Option<NonZeroU64>>),
}

/// Members are unique, scores numbers.
#[derive(Debug, Clone)]
pub enum SortedSetValue {
    /// Member and score by turns, in ascending order of score, then member.
    Packed(ListPack),
    /// In no particular order.
    Members(Strings, Vec<f64>),
}

/// A run of entries whose ids are told relative to `id`. The listpack has the layout of Redis:
/// ```text
///  live  deleted  n  n field names  0
///  then per entry:  flags  ms  seq  [n' n' field names unless flags has 2]  values  count
/// ```
/// Flag 1 marks a deleted entry; `count` is how many elements the entry has before it.
#[derive(Debug, Clone)]
pub struct StreamBlock {
    pub id: StreamId,
    pub entries: ListPack,
}

/// A stream: blocks with ascending ids, and consumer groups.
#[derive(Debug, Clone, Default)]
pub struct Stream {
    /// None is without live entries.
    pub blocks: Vec<StreamBlock>,
    /// Live entries of all blocks.
    pub len: u64,
    /// The id of the first live entry, zero if there is none.
    pub first_id: StreamId,
    pub last_id: StreamId,
    pub max_deleted_id: StreamId,
    pub entries_added: u64,
    pub(super) groups: Vec<GroupEnds>,
    /// The name of each group, followed by those of its consumers.
    pub(super) names: Strings,
    pub(super) consumers: Vec<Consumer>,
    pub(super) pending: Vec<Pending>,
}

/// A group, with where its part of the stream's consumers and pending entries ends.
#[derive(Debug, Clone, Copy)]
pub(super) struct GroupEnds {
    pub(super) last_id: StreamId,
    pub(super) entries_read: Option<NonMax>,
    pub(super) consumers_end: u32,
    pub(super) pending_end: u32,
}

/// A number below `u64::MAX`, so that an optional one takes no more room.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct NonMax(NonZeroU64);

impl NonMax {
    pub(super) fn new(number: u64) -> Option<NonMax> {
        NonZeroU64::new(!number).map(NonMax)
    }

    fn number(self) -> u64 {
        !self.0.get()
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Consumer {
    /// Unix times in ms; negative means never.
    pub seen_ms: i64,
    pub active_ms: i64,
}

/// An entry delivered and not acknowledged.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Pending {
    pub id: StreamId,
    /// Unix time in ms.
    pub delivered_ms: i64,
    pub deliveries: u64,
    /// Which of the group's consumers has it.
    pub consumer: u32,
}

/// A consumer group of a [`Stream`].
#[derive(Debug, Clone)]
pub struct Group<'a> {
    pub name: &'a [u8],
    pub last_id: StreamId,
    /// `None` if it cannot be told.
    pub entries_read: Option<u64>,
    /// In ascending order of ids.
    pub pending: &'a [Pending],
    pub consumers: &'a [Consumer],
    names: strings::Iter<'a>,
}

impl<'a> Group<'a> {
    /// Each consumer's name, in the order of `consumers`. Names are unique in a group.
    pub fn consumer_names(&self) -> impl Iterator<Item = &'a [u8]> + Clone + use<'a> {
        self.names.clone().take(self.consumers.len())
    }
}

impl Stream {
    /// The consumer groups. Names are unique. O(1) for each step and consumer.
    pub fn groups(&self) -> impl Iterator<Item = Group<'_>> {
        let mut names = self.names.iter();
        let (mut consumers_start, mut pending_start) = (0, 0);
        self.groups.iter().map_while(move |ends| {
            let name = names.next()?;
            let consumers = self.consumers.get(consumers_start..ends.consumers_end as usize)?;
            let pending = self.pending.get(pending_start..ends.pending_end as usize)?;
            consumers_start = ends.consumers_end as usize;
            pending_start = ends.pending_end as usize;
            let group = Group {
                name,
                last_id: ends.last_id,
                entries_read: ends.entries_read.map(NonMax::number),
                pending,
                consumers,
                names: names.clone(),
            };
            for _ in consumers {
                names.next();
            }
            Some(group)
        })
    }

    #[must_use]
    pub fn groups_len(&self) -> usize {
        self.groups.len()
    }
}
