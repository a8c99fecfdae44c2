//! A value as numbers: the size of its elements in each form in which it could be stored. One pass over the value
//! computes all of them, so no other code needs to examine elements.

use super::{Brisk, Redis};
use brisk_persist::rdb::Value;
use brisk_persist::rdb::strings::Strings;
use brisk_persist::rdb::value::{
    HashValue, ListNode, SetValue, SortedSetValue, StreamValue, StringValue,
};
use brisk_structures::listpack::{Item, ListPack};

/// Bytes of a listpack without its entries.
pub const LISTPACK_BYTES: u64 = 7;
/// Maximum bytes of a list node with the default `list-max-listpack-size`.
pub const NODE_BYTES_MAX: u64 = 8192;
/// The overhead per element that servers assume when they check whether a node has room.
const NODE_ENTRY_BYTES: u64 = 8;
/// Assumed length of the text of a score that is not an integer, which has up to 17 significant digits and a point.
const SCORE_TEXT_BYTES: u64 = 19;

/// The numbers; see the module documentation. Sizes are in bytes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Shape {
    /// The number that HLEN, LLEN, SCARD and so on return, or the length of a string.
    pub elements: u64,
    /// The total length of all texts: fields and values, members, elements.
    pub texts: u64,
    /// The length of the longest text.
    pub longest: u64,
    /// The size of the entries if everything were in one listpack.
    pub packed: u64,
    /// The memory of all texts as Redis strings.
    pub sds: u64,
    /// The memory of all elements in segments of Brisk.
    pub arena: u64,
    /// The width of integers in an intset, if all texts are integers.
    pub int_width: Option<u64>,
    /// The listpacks of a list or a stream.
    pub nodes: Nodes,
    /// Consumer groups of a stream, their consumers, and their pending entries.
    pub groups: u64,
    pub consumers: u64,
    pub pending: u64,
}

/// The listpacks of a list or stream.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Nodes {
    pub count: u64,
    /// Their contents in bytes, and their memory in each server.
    pub bytes: u64,
    pub redis: u64,
    pub brisk: u64,
    /// The bytes of the last one.
    pub last: u64,
}

impl Nodes {
    fn add(&mut self, bytes: u64, redis: &Redis) {
        self.count += 1;
        self.bytes += bytes;
        self.last = bytes;
        self.redis += redis.classes().of(bytes);
        self.brisk += Brisk::class(bytes);
    }
}

impl Shape {
    /// Measures a value. O(its elements).
    #[must_use]
    pub fn of(value: &Value, redis: &Redis) -> Shape {
        let mut walk = Walk::new(redis);
        match value {
            Value::String(text) => return Shape::of_string(text),
            Value::List(nodes) => walk.list(nodes),
            Value::Set(SetValue::Ints(ints)) => {
                ints.iter().for_each(|number| walk.member(Item::Int(number)));
            }
            Value::Set(SetValue::Packed(list)) => list.iter().for_each(|item| walk.member(item)),
            Value::Set(SetValue::Members(texts)) => {
                texts.iter().for_each(|text| walk.member(Item::of(text)));
            }
            Value::Hash(hash) => walk.hash(hash),
            Value::SortedSet(SortedSetValue::Packed(list)) => walk.packed_scores(list),
            Value::SortedSet(SortedSetValue::Members(texts, scores)) => {
                walk.scored(texts, scores);
            }
            Value::Stream(stream) => walk.stream(stream),
        }
        walk.shape
    }

    fn of_string(text: &StringValue) -> Shape {
        let (len, int_width) = match text {
            StringValue::Bytes(text) => (text.len() as u64, None),
            StringValue::Int(number) => (Item::Int(*number).len() as u64, Some(width_of(*number))),
        };
        Shape { elements: len, texts: len, longest: len, int_width, ..Shape::default() }
    }
}

/// Bytes of an integer in an intset.
fn width_of(number: i64) -> u64 {
    if i16::try_from(number).is_ok() {
        2
    } else if i32::try_from(number).is_ok() {
        4
    } else {
        8
    }
}

/// Bytes of a listpack entry according to the format.
#[must_use]
pub fn packed_entry(item: Item<'_>) -> u64 {
    let body = match item.canonical() {
        Item::Int(0..=127) => 1,
        Item::Int(-4096..=4095) => 2,
        Item::Int(-32_768..=32_767) => 3,
        Item::Int(-8_388_608..=8_388_607) => 4,
        Item::Int(number) if i32::try_from(number).is_ok() => 5,
        Item::Int(_) => 9,
        Item::Str(text) => packed_text(text.len() as u64),
    };
    body + back_length(body)
}

/// Bytes of the listpack entry of a text that is not an integer.
#[must_use]
pub fn packed_text_entry(len: u64) -> u64 {
    let body = packed_text(len);
    body + back_length(body)
}

fn packed_text(len: u64) -> u64 {
    match len {
        0..64 => 1 + len,
        64..4096 => 2 + len,
        _ => 5 + len,
    }
}

/// Bytes of the length at the end of an entry, with seven bits per byte.
fn back_length(body: u64) -> u64 {
    match body {
        0..128 => 1,
        128..16_384 => 2,
        16_384..2_097_152 => 3,
        2_097_152..268_435_456 => 4,
        _ => 5,
    }
}

struct Walk<'a> {
    shape: Shape,
    redis: &'a Redis,
    /// True if all texts so far were integers.
    ints_only: bool,
}

impl<'a> Walk<'a> {
    fn new(redis: &'a Redis) -> Walk<'a> {
        Walk { shape: Shape::default(), redis, ints_only: true }
    }

    fn text(&mut self, item: Item<'_>) -> u64 {
        let len = item.len() as u64;
        let shape = &mut self.shape;
        shape.texts += len;
        shape.longest = shape.longest.max(len);
        shape.sds += self.redis.sds(len);
        len
    }

    fn member(&mut self, item: Item<'_>) {
        let len = self.text(item);
        self.shape.elements += 1;
        self.shape.packed += packed_entry(item);
        self.shape.arena += Brisk::member(len);
        match item.canonical() {
            Item::Int(number) if self.ints_only => {
                let width = width_of(number);
                self.shape.int_width =
                    Some(self.shape.int_width.map_or(width, |old| old.max(width)));
            }
            _ => (self.ints_only, self.shape.int_width) = (false, None),
        }
    }

    fn pair(&mut self, field: Item<'_>, value: Item<'_>) {
        let (field_len, value_len) = (self.text(field), self.text(value));
        self.shape.elements += 1;
        self.shape.packed += packed_entry(field) + packed_entry(value);
        self.shape.arena += Brisk::pair(field_len, value_len);
    }

    fn hash(&mut self, hash: &HashValue) {
        match hash {
            HashValue::Packed(list) => {
                let mut items = list.iter();
                while let (Some(field), Some(value)) = (items.next(), items.next()) {
                    self.pair(field, value);
                }
            }
            HashValue::PackedExpiry(list) => {
                let mut items = list.iter();
                while let (Some(field), Some(value)) = (items.next(), items.next()) {
                    let deadline = items.next();
                    self.pair(field, value);
                    self.shape.packed += deadline.map_or(0, packed_entry);
                }
            }
            HashValue::Fields(texts) => self.fields(texts),
            HashValue::FieldsExpiry(texts, deadlines) => {
                self.fields(texts);
                let with = deadlines.iter().flatten().count() as u64;
                self.shape.packed += with * packed_entry(Item::Int(i64::MAX));
                self.shape.arena += with * 8;
                self.shape.sds += with * 8;
            }
        }
    }

    fn fields(&mut self, texts: &Strings) {
        for (field, value) in texts.pairs() {
            self.pair(Item::of(field), Item::of(value));
        }
    }

    fn packed_scores(&mut self, list: &ListPack) {
        let mut items = list.iter();
        while let (Some(member), Some(score)) = (items.next(), items.next()) {
            self.scored_member(member, packed_entry(score));
        }
    }

    fn scored(&mut self, texts: &Strings, scores: &[f64]) {
        for (text, score) in texts.iter().zip(scores) {
            // Like servers do, store a score that is an integer as an integer.
            let whole = *score as i64;
            let is_whole = whole as f64 == *score && whole.unsigned_abs() < 1 << 52;
            let bytes = match is_whole {
                true => packed_entry(Item::Int(whole)),
                false => packed_text_entry(SCORE_TEXT_BYTES),
            };
            self.scored_member(Item::of(text), bytes);
        }
    }

    fn scored_member(&mut self, member: Item<'_>, score: u64) {
        let len = self.text(member);
        self.shape.elements += 1;
        self.shape.packed += packed_entry(member) + score;
        self.shape.arena += len;
    }

    fn list(&mut self, nodes: &[ListNode]) {
        // If a file has no nodes, elements are assigned to nodes as a server would push them.
        let mut open = LISTPACK_BYTES;
        for node in nodes {
            match node {
                ListNode::Packed(list) => {
                    self.shape.nodes.add(list.bytes() as u64, self.redis);
                    self.shape.packed += list.bytes() as u64 - LISTPACK_BYTES;
                    for item in list.iter() {
                        self.text(item);
                        self.shape.elements += 1;
                    }
                }
                ListNode::Plain(text) => {
                    let len = self.text(Item::Str(text));
                    self.shape.elements += 1;
                    self.shape.packed += packed_text_entry(len);
                    self.shape.nodes.add(len, self.redis);
                }
                ListNode::Elements(texts) => {
                    for text in texts {
                        let (len, bytes) = (text.len() as u64, packed_entry(Item::of(text)));
                        self.text(Item::of(text));
                        self.shape.elements += 1;
                        self.shape.packed += bytes;
                        if open > LISTPACK_BYTES && open + len + NODE_ENTRY_BYTES > NODE_BYTES_MAX {
                            self.shape.nodes.add(open, self.redis);
                            open = LISTPACK_BYTES;
                        }
                        open += bytes;
                    }
                }
            }
        }
        if open > LISTPACK_BYTES {
            self.shape.nodes.add(open, self.redis);
        }
    }

    fn stream(&mut self, stream: &StreamValue) {
        self.shape.elements = stream.len;
        for block in &stream.blocks {
            let bytes = block.entries.bytes() as u64;
            self.shape.nodes.add(bytes, self.redis);
            self.shape.texts += bytes;
        }
        for group in stream.groups() {
            self.shape.groups += 1;
            self.shape.texts += group.name.len() as u64;
            self.shape.consumers += group.consumers.len() as u64;
            self.shape.pending += group.pending.len() as u64;
            self.shape.texts += group.consumer_names().map(|name| name.len() as u64).sum::<u64>();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The expected sizes are taken from real listpacks.
    #[test]
    fn entries_have_the_sizes_of_the_format() {
        let long = "x".repeat(5000);
        let texts = ["", "0", "127", "128", "-1", "4095", "4096", "-32768", "32768", "8388608"];
        let more = ["2147483648", "01", "text", &long[..63], &long[..64], &long[..126], &long];
        for text in texts.into_iter().chain(more) {
            let mut list = ListPack::new();
            list.push_back(text.as_bytes());
            let expected = list.bytes() as u64 - LISTPACK_BYTES;
            assert_eq!(packed_entry(Item::of(text.as_bytes())), expected, "{}", text.len());
        }
    }
}
