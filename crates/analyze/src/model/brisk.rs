//! The memory of keys in Brisk. A key, its expiry time and a short value are one allocation (`docs/design/entry.md`);
//! large collections lie in segments (`docs/design/segments.md`), sorted sets in leaves of up to 64 members.

use super::Classes;
use super::shape::{LISTPACK_BYTES, Shape};
use crate::record::{Encoding, Kind};

const HEADER: u64 = 8;
const WORD: u64 = 8;
const OBJECT: u64 = 24;
const LONG_KEY_MIN: u64 = 255;
const LONG_KEY: u64 = 4;
/// Longer strings have pages of their own, behind an allocation that counts who refers to them.
const INLINE_MAX: u64 = (1 << 16) - 1;
const SHARED_STRING: u64 = 48;
const PAGE: u64 = 4096;
/// The number of slots of a database, which exist even without keys; each has a table of buckets.
const SLOTS: f64 = 16_384.0;
const BUCKET: u64 = 64;
/// Keys of a bucket when its table grows.
const BUCKET_KEYS: f64 = 6.5;
/// With more keys in a slot than this, what a key takes of its table does not depend on it any more.
/// (`table/mod.rs` of `structures`: 13 to 15 bytes.)
const SLOT_KEYS_MANY: f64 = 100.0;
const PLACE: f64 = 14.0;
/// Overhead of an element in a segment: ELEMENT_HEAD bytes, and one more above ELEMENT_SHORT_MAX bytes. The overhead of
/// its value is one byte up to ELEMENT_VALUE_SHORT_MAX bytes, and three bytes up to ELEMENT_MAX bytes.
const ELEMENT_HEAD: u64 = 1;
const ELEMENT_SHORT_MAX: u64 = 31;
const ELEMENT_VALUE_SHORT_MAX: u64 = 253;
/// Longest text in a segment; a longer one is an allocation with two counters.
const ELEMENT_MAX: u64 = 512;
const ELEMENT_OUTSIDE: u64 = 16 + 16 + 2;
/// A collection in segments without its elements; bytes of the index for each element, with the gaps; and how full the
/// arenas of elements are. These and what follows were measured: see the tests that fill a server.
const SEGMENTS: u64 = 280;
const INDEX: f64 = 6.2;
const ARENA_FILLED: f64 = 0.92;
/// The same for the leaves of a sorted set, with the bytes for each member in addition to its text, and for the set.
const LEAF_FILLED: f64 = 0.95;
const MEMBER: f64 = 26.5;
const SORTED_SET: u64 = 700;
/// Sets up to this size are listpacks, as in Redis 7.2 and later, even if a file of an earlier server has another
/// encoding.
const SET_PACKED_ENTRIES: u64 = 128;
const SET_PACKED_TEXT: u64 = 64;
const QUICKLIST: u64 = 200;
const NODE: u64 = 80;
const NODE_COMPRESSED: u64 = 16;
const STREAM: u64 = 256;
const STREAM_BLOCK: u64 = 48;
const STREAM_GROUP: u64 = 300;
const STREAM_PENDING: u64 = 60;

/// See the head of this file.
#[derive(Debug, Clone, Copy)]
pub struct Brisk;

impl Brisk {
    /// The memory of an allocation.
    #[must_use]
    pub fn class(bytes: u64) -> u64 {
        Classes::USUAL.of(bytes)
    }

    /// A member in a segment.
    #[must_use]
    pub fn member(len: u64) -> u64 {
        let long = u64::from(len > ELEMENT_SHORT_MAX);
        ELEMENT_HEAD + long + if len > ELEMENT_MAX { len + ELEMENT_OUTSIDE } else { len }
    }

    /// A field and its value in a segment.
    #[must_use]
    pub fn pair(field: u64, value: u64) -> u64 {
        let value = if value <= ELEMENT_VALUE_SHORT_MAX {
            1 + value
        } else if value <= ELEMENT_MAX {
            3 + value
        } else {
            1 + value + ELEMENT_OUTSIDE
        };
        Brisk::member(field) + value
    }

    /// The tables of a database with this number of keys: by chance, each slot has more or less than its share.
    #[must_use]
    pub fn places(&self, keys: u64) -> u64 {
        let mean = keys as f64 / SLOTS;
        if keys == 0 {
            return 0;
        }
        if mean > SLOT_KEYS_MANY {
            return (keys as f64 * PLACE) as u64;
        }
        let (mut chance, mut table) = ((-mean).exp(), 0.0);
        for keys in 1..=(SLOT_KEYS_MANY * 2.0) as u64 {
            chance *= mean / keys as f64;
            let buckets = (keys as f64 / BUCKET_KEYS).ceil() as u64;
            table += chance * Brisk::class(buckets * BUCKET) as f64;
        }
        (SLOTS * table) as u64
    }

    /// A key's own allocation before it is rounded. What lies outside is [`Brisk::outside`].
    #[must_use]
    pub fn entry_bytes(&self, key: u64, has_deadline: bool, inline: Inline) -> u64 {
        let form = match inline {
            Inline::Int => WORD,
            Inline::Text(len) if len > INLINE_MAX => OBJECT,
            Inline::Text(len) => len,
            Inline::Object => OBJECT,
        };
        let long = if key >= LONG_KEY_MIN { LONG_KEY } else { 0 };
        HEADER + u64::from(has_deadline) * WORD + long + key + form
    }

    /// A key with its value.
    #[must_use]
    pub fn key(&self, key: u64, has_deadline: bool, inline: Inline, outside: u64) -> u64 {
        Brisk::class(self.entry_bytes(key, has_deadline, inline)) + outside
    }

    /// What of a value lies in its key's allocation.
    #[must_use]
    pub fn inline(&self, kind: Kind, encoding: Encoding, shape: &Shape) -> Inline {
        match (kind, encoding) {
            (Kind::String, Encoding::Int) => Inline::Int,
            (Kind::String, _) => Inline::Text(shape.elements),
            _ => Inline::Object,
        }
    }

    /// What of a value lies elsewhere.
    #[must_use]
    pub fn outside(&self, kind: Kind, encoding: Encoding, shape: &Shape) -> u64 {
        let filled = |bytes: u64, part: f64| (bytes as f64 / part) as u64;
        match (kind, encoding) {
            (Kind::String, _) => self.text_outside(shape.elements),
            (Kind::List, _) if shape.nodes.count <= 1 => shape.nodes.brisk,
            (Kind::List, _) => QUICKLIST + shape.nodes.count * NODE + shape.nodes.brisk,
            (Kind::Stream, _) => {
                STREAM
                    + shape.nodes.count * STREAM_BLOCK
                    + shape.nodes.brisk
                    + (shape.groups + shape.consumers) * STREAM_GROUP
                    + shape.pending * STREAM_PENDING
            }
            (Kind::Module, _) => 0,
            (_, Encoding::IntSet) => self.intset(shape.elements, shape.int_width.unwrap_or(8)),
            (_, encoding) if encoding.is_packed() => self.packed(shape.packed),
            (Kind::Set, _)
                if shape.elements <= SET_PACKED_ENTRIES && shape.longest <= SET_PACKED_TEXT =>
            {
                self.packed(shape.packed)
            }
            (Kind::SortedSet, _) => {
                SORTED_SET
                    + (shape.elements as f64 * MEMBER) as u64
                    + filled(shape.arena, LEAF_FILLED)
            }
            (Kind::Hash | Kind::Set, _) => self.table(shape.elements, shape.arena),
        }
    }

    /// A string of this length, as far as it lies outside of its key's allocation.
    #[must_use]
    pub fn text_outside(&self, len: u64) -> u64 {
        if len > INLINE_MAX { SHARED_STRING + len.next_multiple_of(PAGE) } else { 0 }
    }

    /// A collection in one listpack with `entries` bytes of entries, without its key.
    #[must_use]
    pub fn packed(&self, entries: u64) -> u64 {
        Brisk::class(LISTPACK_BYTES + entries)
    }

    /// A set of integers, without its key.
    #[must_use]
    pub fn intset(&self, members: u64, width: u64) -> u64 {
        const HEAD: u64 = 8;
        Brisk::class(HEAD + members * width)
    }

    /// A hash or set in segments, without its key; `arena` is the memory of its elements there.
    #[must_use]
    pub fn table(&self, elements: u64, arena: u64) -> u64 {
        SEGMENTS + (elements as f64 * INDEX + arena as f64 / ARENA_FILLED) as u64
    }

    /// A node of a list that is compressed to `bytes` bytes.
    #[must_use]
    pub fn compressed_node(&self, bytes: u64) -> u64 {
        Brisk::class(NODE_COMPRESSED + bytes)
    }
}

/// The part of a value that lies in its key's allocation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Inline {
    Int,
    /// A text of this length, unless it is too long.
    Text(u64),
    /// What leads to the rest.
    Object,
}
