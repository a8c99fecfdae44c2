//! Values as readers return them and writers take them, independent of the keyspace.
//!
//! Compact encodings are the validated structures that the engine uses, so the engine can take them
//! unchanged. All other values are plain sequences.

use super::strings::{self, Strings};
use brisk_structures::intset::IntSet;
use brisk_structures::listpack::ListPack;
pub use brisk_structures::stream::StreamId;
use std::num::NonZeroU64;

/// A value of any type. Collections have at least one element; only streams may be empty.
#[derive(Debug, Clone)]
pub enum Value {
    String(StringValue),
    List(Vec<ListNode>),
    Set(SetValue),
    Hash(HashValue),
    SortedSet(SortedSetValue),
    Stream(Box<StreamValue>),
}

impl Value {
    /// Returns the name of the type, as TYPE reports it.
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

/// A contiguous part of a list, from left to right.
#[derive(Debug, Clone)]
pub enum ListNode {
    Packed(ListPack),
    Elements(Strings),
    /// One large element.
    Plain(Vec<u8>),
}

/// A set. Members are unique.
#[derive(Debug, Clone)]
pub enum SetValue {
    Ints(IntSet),
    Packed(ListPack),
    Members(Strings),
}

/// A hash. Fields are unique.
#[derive(Debug, Clone)]
pub enum HashValue {
    /// Alternating fields and values.
    Packed(ListPack),
    /// Alternating fields, values and expiry times (Unix time in ms, 0 for none), in ascending
    /// order of expiry time. Fields without an expiry time come last.
    PackedExpiry(ListPack),
    /// Alternating fields and values.
    Fields(Strings),
    /// Alternating fields and values, and for each pair an expiry time (Unix time in ms) or none.
    FieldsExpiry(Strings, Vec<Option<NonZeroU64>>),
}

/// A sorted set. Members are unique, and no score is NaN.
#[derive(Debug, Clone)]
pub enum SortedSetValue {
    /// Alternating members and scores, in ascending order of score, then member.
    Packed(ListPack),
    /// In no particular order.
    Members(Strings, Vec<f64>),
}

/// A run of entries whose ids are relative to `id`. The listpack has the layout of Redis:
/// ```text
///  live  deleted  n  n field names  0
///  then per entry:  flags  ms  seq  [n' n' field names unless flags has 2]  values  count
/// ```
/// Flag 1 marks a deleted entry. `count` is the number of preceding elements of the entry.
#[derive(Debug, Clone)]
pub struct StreamBlock {
    pub id: StreamId,
    pub entries: ListPack,
}

/// A stream: blocks with ascending ids, and consumer groups.
#[derive(Debug, Clone, Default)]
pub struct StreamValue {
    /// Every block has live entries.
    pub blocks: Vec<StreamBlock>,
    /// Number of live entries in all blocks.
    pub len: u64,
    /// The id of the first live entry; zero if there is none.
    pub first_id: StreamId,
    pub last_id: StreamId,
    pub max_deleted_id: StreamId,
    pub entries_added: u64,
    pub(super) groups: Vec<GroupEnds>,
    /// The name of each group, followed by those of its consumers.
    pub(super) names: Strings,
    pub(super) consumers: Vec<StreamConsumer>,
    pub(super) pending: Vec<PendingEntry>,
}

/// A group, with the ends of its ranges in the stream's lists of consumers and pending entries.
#[derive(Debug, Clone, Copy)]
pub(super) struct GroupEnds {
    pub(super) last_id: StreamId,
    pub(super) entries_read: Option<NonMax>,
    pub(super) consumers_end: u32,
    pub(super) pending_end: u32,
}

/// A number below `u64::MAX`, so that an `Option` of it takes no more memory.
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
pub struct StreamConsumer {
    /// Unix times in ms; negative means never.
    pub seen_ms: i64,
    pub active_ms: i64,
}

/// An entry that was delivered and not acknowledged.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PendingEntry {
    pub id: StreamId,
    /// Unix time in ms.
    pub delivered_ms: i64,
    pub deliveries: u64,
    /// Index of the group's consumer that owns the entry.
    pub consumer: u32,
}

/// A consumer group of a [`StreamValue`].
#[derive(Debug, Clone)]
pub struct StreamGroup<'a> {
    pub name: &'a [u8],
    pub last_id: StreamId,
    /// `None` if the number is unknown.
    pub entries_read: Option<u64>,
    /// In ascending order of ids.
    pub pending: &'a [PendingEntry],
    pub consumers: &'a [StreamConsumer],
    names: strings::Iter<'a>,
}

impl<'a> StreamGroup<'a> {
    /// Returns the consumers' names, in the order of `consumers`. Names are unique within a group.
    pub fn consumer_names(&self) -> impl Iterator<Item = &'a [u8]> + Clone + use<'a> {
        self.names.clone().take(self.consumers.len())
    }
}

impl StreamValue {
    /// Returns the consumer groups. Names are unique. O(1) for each step and consumer.
    pub fn groups(&self) -> impl Iterator<Item = StreamGroup<'_>> {
        let mut names = self.names.iter();
        let (mut consumers_start, mut pending_start) = (0, 0);
        self.groups.iter().map_while(move |ends| {
            let name = names.next()?;
            let consumers = self.consumers.get(consumers_start..ends.consumers_end as usize)?;
            let pending = self.pending.get(pending_start..ends.pending_end as usize)?;
            consumers_start = ends.consumers_end as usize;
            pending_start = ends.pending_end as usize;
            let group = StreamGroup {
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
