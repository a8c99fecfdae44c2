//! The memory of keys in Brisk. A key, its expiry time and a short value are one allocation (`docs/design/entry.md`);
//! large collections are stored in segments (`docs/design/segments.md`), and sorted sets in leaves of up to 64 members.

use super::Classes;
use super::shape::{LISTPACK_BYTES, Shape};
use crate::record::{Encoding, Kind};

const HEADER: u64 = 8;
const WORD: u64 = 8;
const OBJECT: u64 = 24;
const LONG_KEY_MIN: u64 = 255;
const LONG_KEY: u64 = 4;
/// The maximum length of a string that is stored in its key's allocation. Longer strings have their own pages, to which
/// a reference-counted allocation points.
const INLINE_MAX: u64 = (1 << 16) - 1;
const SHARED_STRING: u64 = 48;
const PAGE: u64 = 4096;
/// The number of slots of a database. They exist even without keys. Each has a table of buckets.
const SLOTS: f64 = 16_384.0;
const BUCKET: u64 = 64;
/// Average number of keys per bucket when a table grows.
const BUCKET_KEYS: f64 = 6.5;
/// With more keys per slot than this, the table memory per key is constant (13 to 15 bytes, see `table/mod.rs` of
/// `structures`).
const SLOT_KEYS_MANY: f64 = 100.0;
const PLACE: f64 = 14.0;
/// Overhead of an element in a segment: ELEMENT_HEAD bytes, and one more above ELEMENT_SHORT_MAX bytes. The overhead of
/// its value is one byte up to ELEMENT_VALUE_SHORT_MAX bytes, and three bytes up to ELEMENT_MAX bytes.
const ELEMENT_HEAD: u64 = 1;
const ELEMENT_SHORT_MAX: u64 = 31;
const ELEMENT_VALUE_SHORT_MAX: u64 = 253;
/// Maximum length of a text in a segment. A longer text is an allocation with two counters.
const ELEMENT_MAX: u64 = 512;
const ELEMENT_OUTSIDE: u64 = 16 + 16 + 2;
/// The memory of a collection in segments without its elements, the index bytes per element including gaps, and the
/// fill level of the element arenas. These and the following values were measured; see the tests that fill a server.
const SEGMENTS: u64 = 280;
const INDEX: f64 = 6.2;
const ARENA_FILLED: f64 = 0.92;
/// For sorted sets, the fill level of the leaves, the bytes per member in addition to its text, and the memory of the
/// set itself.
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

/// The model of Brisk; see the module documentation.
#[derive(Debug, Clone, Copy)]
pub struct Brisk;

impl Brisk {
    /// The memory that the allocator uses for an allocation of this size.
    #[must_use]
    pub fn class(bytes: u64) -> u64 {
        Classes::USUAL.of(bytes)
    }

    /// The bytes of a member in a segment.
    #[must_use]
    pub fn member(len: u64) -> u64 {
        let long = u64::from(len > ELEMENT_SHORT_MAX);
        ELEMENT_HEAD + long + if len > ELEMENT_MAX { len + ELEMENT_OUTSIDE } else { len }
    }

    /// The bytes of a field and its value in a segment.
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

    /// The memory of the tables of a database with this number of keys. The number of keys per slot varies randomly.
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

    /// The size of a key's own allocation, before rounding. [`Brisk::outside`] is the memory outside of it.
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

    /// The memory of a key with its value.
    #[must_use]
    pub fn key(&self, key: u64, has_deadline: bool, inline: Inline, outside: u64) -> u64 {
        Brisk::class(self.entry_bytes(key, has_deadline, inline)) + outside
    }

    /// The part of a value that is in its key's allocation.
    #[must_use]
    pub fn inline(&self, kind: Kind, encoding: Encoding, shape: &Shape) -> Inline {
        match (kind, encoding) {
            (Kind::String, Encoding::Int) => Inline::Int,
            (Kind::String, _) => Inline::Text(shape.elements),
            _ => Inline::Object,
        }
    }

    /// The memory of a value outside of its key's allocation.
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

    /// The memory of a string with this length outside of its key's allocation.
    #[must_use]
    pub fn text_outside(&self, len: u64) -> u64 {
        if len > INLINE_MAX { SHARED_STRING + len.next_multiple_of(PAGE) } else { 0 }
    }

    /// The memory of a collection in one listpack with `entries` bytes of entries, without its key.
    #[must_use]
    pub fn packed(&self, entries: u64) -> u64 {
        Brisk::class(LISTPACK_BYTES + entries)
    }

    /// The memory of a set of integers, without its key.
    #[must_use]
    pub fn intset(&self, members: u64, width: u64) -> u64 {
        const HEAD: u64 = 8;
        Brisk::class(HEAD + members * width)
    }

    /// The memory of a hash or set in segments, without its key. `arena` is the memory of its elements in the arenas.
    #[must_use]
    pub fn table(&self, elements: u64, arena: u64) -> u64 {
        SEGMENTS + (elements as f64 * INDEX + arena as f64 / ARENA_FILLED) as u64
    }

    /// The memory of a list node that is compressed to `bytes` bytes.
    #[must_use]
    pub fn compressed_node(&self, bytes: u64) -> u64 {
        Brisk::class(NODE_COMPRESSED + bytes)
    }
}

/// The part of a value that is in its key's allocation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Inline {
    Int,
    /// A text with this length, unless it is too long.
    Text(u64),
    /// A pointer to the rest.
    Object,
}
