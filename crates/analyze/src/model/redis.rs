//! The memory of keys in Redis 7.0: the allocations of each structure, rounded to their classes.
//!
//! ```text
//!  key       entry of the table (24) · name · with a TTL, an entry of the second table (24)
//!  string    object (16) · text, unless it is an integer or has up to 44 bytes
//!  listpack  object · one allocation          intset    the same
//!  list      object · quicklist (40) · per node 40 and its listpack
//!  table     object · dict (56) · 8 per place · per element an entry (24) and its texts
//!  skiplist  a table with scores · header · per member a node with 1.33 levels on average
//! ```

use super::Classes;
use super::shape::{LISTPACK_BYTES, Shape};
use crate::record::{EMBEDDED_MAX, Encoding, Kind};

const OBJECT: u64 = 16;
const TABLE_ENTRY: u64 = 24;
const TABLE: u64 = 56;
const POINTER: u64 = 8;
const TABLE_PLACES_MIN: u64 = 4;
const QUICKLIST: u64 = 40;
const QUICKLIST_NODE: u64 = 40;
const INTSET: u64 = 8;
const SORTED_SET: u64 = 16;
const SKIPLIST: u64 = 32;
/// The bytes of a skiplist node without levels, the bytes per level, and the number of levels of the first node.
const SKIPLIST_NODE: u64 = 24;
const SKIPLIST_LEVEL: u64 = 16;
const SKIPLIST_LEVELS: u64 = 32;
/// Number of levels that are considered for the mean node size. Each level has a quarter of the nodes of the previous
/// one.
const LEVELS_COUNTED: u64 = 8;
/// Without a memory limit, all keys share one object for each integer with up to this number of digits.
const SHARED_INTEGER_DIGITS: u64 = 4;
const STREAM: u64 = 80;
/// The initial size of the listpack to which a stream appends.
const STREAM_ROOM: u64 = 4096;
/// The approximate bytes in a stream's trees per block, and per pending ID of a group including its entry.
const STREAM_BLOCK: u64 = 64;
const STREAM_PENDING: u64 = 94;
const STREAM_GROUP: u64 = 3 * 64;

/// The model of Redis; see the module documentation.
#[derive(Debug, Clone, Copy)]
pub struct Redis {
    classes: Classes,
}

impl Redis {
    #[must_use]
    pub fn new(classes: Classes) -> Redis {
        Redis { classes }
    }

    #[must_use]
    pub fn classes(&self) -> Classes {
        self.classes
    }

    /// The memory of a string as Redis stores it: a header, the text, and a zero byte.
    #[must_use]
    pub fn sds(&self, len: u64) -> u64 {
        let head = match len {
            0..32 => 1,
            32..256 => 3,
            256..65_536 => 5,
            65_536..4_294_967_296 => 9,
            _ => 17,
        };
        self.classes.of(head + len + 1)
    }

    /// The memory of a key without its value and without the places in the tables.
    #[must_use]
    pub fn key(&self, len: u64, has_deadline: bool) -> u64 {
        let entries = 1 + u64::from(has_deadline);
        entries * self.classes.of(TABLE_ENTRY) + self.sds(len)
    }

    /// The memory of the table of a database with this number of keys.
    #[must_use]
    pub fn places(&self, keys: u64) -> u64 {
        if keys == 0 { 0 } else { self.classes.of(POINTER * places(keys)) }
    }

    /// The memory of a value.
    #[must_use]
    pub fn value(&self, kind: Kind, encoding: Encoding, shape: &Shape) -> u64 {
        match (kind, encoding) {
            (Kind::String, Encoding::Int) => self.integer(shape.elements),
            (Kind::String, _) => self.text(shape.elements),
            (Kind::List, _) => self.list(shape),
            (Kind::Stream, _) => self.stream(shape),
            (Kind::Module, _) => 0,
            (_, Encoding::IntSet) => self.intset(shape.elements, shape.int_width.unwrap_or(8)),
            (_, encoding) if encoding.is_packed() => self.packed(shape.packed),
            (Kind::SortedSet, _) => self.skiplist(shape),
            (Kind::Hash | Kind::Set, _) => self.table(shape.elements, shape.sds),
        }
    }

    /// The memory of a string that is not an integer.
    #[must_use]
    pub fn text(&self, len: u64) -> u64 {
        if len <= EMBEDDED_MAX as u64 {
            return self.classes.of(OBJECT + 3 + len + 1);
        }
        self.classes.of(OBJECT) + self.sds(len)
    }

    fn integer(&self, digits: u64) -> u64 {
        if digits <= SHARED_INTEGER_DIGITS { 0 } else { self.classes.of(OBJECT) }
    }

    /// The memory of a collection in one listpack with `entries` bytes of entries.
    #[must_use]
    pub fn packed(&self, entries: u64) -> u64 {
        self.classes.of(OBJECT) + self.classes.of(LISTPACK_BYTES + entries)
    }

    /// The memory of a set of integers.
    #[must_use]
    pub fn intset(&self, members: u64, width: u64) -> u64 {
        self.classes.of(OBJECT) + self.classes.of(INTSET + members * width)
    }

    /// The memory of a hash or set in a table. `texts` is the memory of its texts.
    #[must_use]
    pub fn table(&self, elements: u64, texts: u64) -> u64 {
        self.classes.of(OBJECT)
            + self.classes.of(TABLE)
            + self.classes.of(POINTER * places(elements))
            + elements * self.classes.of(TABLE_ENTRY)
            + texts
    }

    fn skiplist(&self, shape: &Shape) -> u64 {
        let first = SKIPLIST_NODE + SKIPLIST_LEVELS * SKIPLIST_LEVEL;
        let (mut nodes, mut left) = (0.0, shape.elements as f64);
        for levels in 1..=LEVELS_COUNTED {
            let higher = if levels == LEVELS_COUNTED { 0.0 } else { left / 4.0 };
            let bytes = self.classes.of(SKIPLIST_NODE + levels * SKIPLIST_LEVEL);
            nodes += (left - higher) * bytes as f64;
            left = higher;
        }
        self.table(shape.elements, shape.sds)
            + self.classes.of(SORTED_SET)
            + self.classes.of(SKIPLIST)
            + self.classes.of(first)
            + nodes as u64
    }

    fn list(&self, shape: &Shape) -> u64 {
        self.classes.of(OBJECT)
            + self.classes.of(QUICKLIST)
            + shape.nodes.count * self.classes.of(QUICKLIST_NODE)
            + shape.nodes.redis
    }

    fn stream(&self, shape: &Shape) -> u64 {
        let nodes = &shape.nodes;
        // The last block is larger than its contents.
        let last = self.classes.of(nodes.last);
        let room = if nodes.count == 0 { 0 } else { last.max(STREAM_ROOM) - last };
        self.classes.of(OBJECT)
            + self.classes.of(STREAM)
            + nodes.redis
            + room
            + nodes.count * STREAM_BLOCK
            + (shape.groups + shape.consumers) * STREAM_GROUP
            + shape.pending * STREAM_PENDING
    }

    /// The memory of a list node that is compressed to `bytes` bytes.
    #[must_use]
    pub fn compressed_node(&self, bytes: u64) -> u64 {
        const LENGTH: u64 = 8;
        self.classes.of(LENGTH + bytes)
    }
}

/// The number of places in a table: the next power of two.
fn places(elements: u64) -> u64 {
    elements.max(TABLE_PLACES_MIN).next_power_of_two()
}
