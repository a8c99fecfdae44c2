//! Encodes values and their parts as Redis 7.0 does.
//!
//! [`Encoder::value`] writes whole values. A keyspace with its own structures calls the methods for
//! the parts, in the order that the type ([`kind`]) requires. Nothing has to be collected first:
//!
//! - string: [`Encoder::string`] or [`Encoder::int`].
//! - `HASH_LISTPACK`, `ZSET_LISTPACK`, `SET_INTSET`: [`Encoder::string`] of the compact bytes.
//! - `SET`: length, members. `HASH`: length, then each field and its value. `ZSET_2`: length, then
//!   each member and its [`Encoder::double`].
//! - `LIST_QUICKLIST_2`: length, then [`Encoder::packed_node`] or [`Encoder::plain_node`] for each
//!   node.
//! - `HASH_METADATA`: see [`Encoder::fields_with_expiry`].
//! - `STREAM_LISTPACKS_2`: see `stream` here; block ids are 16-byte strings.

use super::kind;
use super::opcode;
use super::reader::KeyMetadata;
use super::strings::Strings;
use super::value::{
    HashValue, ListNode, SetValue, SortedSetValue, StreamGroup, StreamId, StreamValue, StringValue,
    Value,
};
use super::{VERSION, VERSION_FIELD_TTL};
use brisk_structures::decimal::parse_i64;
use brisk_structures::listpack::ListPack;
use brisk_structures::lzf;
use std::num::NonZeroU64;

/// Strings up to this length may be encoded as integers.
const INT_LEN_MAX: usize = 11;
/// Strings up to this length are never compressed.
const UNCOMPRESSED_MAX: usize = 20;
/// Minimum number of bytes that compression must save: a compressed string has two lengths instead
/// of one.
const SAVING_MIN: usize = 4;
/// Elements without a node are packed into nodes of about this many bytes, the default of
/// `list-max-listpack-size`.
const NODE_BYTES: usize = 8 << 10;

/// Receives encoded bytes. A sink cannot report errors here; its creator checks them later.
pub trait Sink {
    fn put(&mut self, bytes: &[u8]);

    /// Receives the encoded length of a string and the string, which is to be compressed later
    /// ([`Encoder::defer_compression`]).
    fn put_compressible(&mut self, length: &[u8], string: &[u8]) {
        self.put(length);
        self.put(string);
    }
}

impl Sink for Vec<u8> {
    fn put(&mut self, bytes: &[u8]) {
        self.extend_from_slice(bytes);
    }
}

/// When strings that are long enough are compressed with LZF.
#[derive(Debug, Clone, Copy)]
enum Compression {
    Never,
    /// When they are encoded, if this saves bytes.
    Now,
    /// When the content of the sink is written to a file.
    Later,
}

/// Writes values into a sink.
#[derive(Debug)]
pub struct Encoder<S> {
    sink: S,
    compression: Compression,
    block: Vec<u8>,
}

/// An encoded length: the array's first bytes.
pub(super) fn length_code(length: u64) -> ([u8; 9], usize) {
    let mut code = [0; 9];
    let len = if length < 1 << 6 {
        code[0] = length as u8;
        1
    } else if length < 1 << 14 {
        code[..2].copy_from_slice(&(length as u16 | 1 << 14).to_be_bytes());
        2
    } else if let Ok(length) = u32::try_from(length) {
        code[0] = 0x80;
        code[1..5].copy_from_slice(&length.to_be_bytes());
        5
    } else {
        code[0] = 0x81;
        code[1..].copy_from_slice(&length.to_be_bytes());
        9
    };
    (code, len)
}

impl<S: Sink> Encoder<S> {
    pub fn new(sink: S) -> Self {
        Encoder { sink, compression: Compression::Now, block: Vec::new() }
    }

    /// Turns the compression of strings on or off. It is on by default, and applies if it saves
    /// bytes.
    pub fn set_compression(&mut self, on: bool) {
        self.compression = if on { Compression::Now } else { Compression::Never };
    }

    /// Passes strings that may be compressed to [`Sink::put_compressible`].
    pub fn defer_compression(&mut self) {
        self.compression = Compression::Later;
    }

    pub fn into_sink(self) -> S {
        self.sink
    }

    pub fn sink(&mut self) -> &mut S {
        &mut self.sink
    }

    /// Writes the part before a value of type `kind`: the key's metadata, the type and the key.
    pub fn begin_entry(&mut self, kind: u8, key: &[u8], metadata: KeyMetadata) {
        if let Some(expire_time) = metadata.expire_at_ms {
            self.kind(opcode::EXPIRE_TIME_MS);
            self.milliseconds(expire_time);
        }
        if let Some(seconds) = metadata.idle_seconds {
            self.kind(opcode::IDLE);
            self.length(seconds);
        }
        if let Some(frequency) = metadata.frequency {
            self.sink.put(&[opcode::FREQ, frequency]);
        }
        self.kind(kind);
        self.string(key);
    }

    /// Writes a type of [`kind`] or an opcode.
    pub fn kind(&mut self, kind: u8) {
        self.sink.put(&[kind]);
    }

    /// Writes a length or another unsigned number.
    pub fn length(&mut self, length: u64) {
        let (code, len) = length_code(length);
        self.sink.put(&code[..len]);
    }

    /// Writes a string in its shortest encoding. O(length).
    pub fn string(&mut self, string: &[u8]) {
        if string.len() <= INT_LEN_MAX {
            if let Some(number) = parse_i64(string).and_then(|n| i32::try_from(n).ok()) {
                return self.small_int(number);
            }
        } else if string.len() > UNCOMPRESSED_MAX {
            match self.compression {
                Compression::Never => {}
                Compression::Now => return self.compressed_string(string),
                Compression::Later => {
                    let (code, len) = length_code(string.len() as u64);
                    return self.sink.put_compressible(&code[..len], string);
                }
            }
        }
        self.raw_string(string);
    }

    /// Writes a string compressed, if this saves bytes.
    fn compressed_string(&mut self, string: &[u8]) {
        self.block.clear();
        let len_max = string.len() - SAVING_MIN;
        if lzf::compress(string, len_max, &mut self.block).is_none() {
            return self.raw_string(string);
        }
        let block = std::mem::take(&mut self.block);
        self.lzf_string(&block, string.len());
        self.block = block;
    }

    fn raw_string(&mut self, string: &[u8]) {
        self.length(string.len() as u64);
        self.sink.put(string);
    }

    /// Writes a string that is already compressed with LZF. Its content has `len` bytes.
    pub fn lzf_string(&mut self, block: &[u8], len: usize) {
        self.sink.put(&[0xc3]);
        self.length(block.len() as u64);
        self.length(len as u64);
        self.sink.put(block);
    }

    /// Writes the decimal form of `number` as a string.
    pub fn int(&mut self, number: i64) {
        match i32::try_from(number) {
            Ok(number) => self.small_int(number),
            Err(_) => self.raw_string(itoa::Buffer::new().format(number).as_bytes()),
        }
    }

    fn small_int(&mut self, number: i32) {
        if let Ok(number) = i8::try_from(number) {
            self.sink.put(&[0xc0, number.cast_unsigned()]);
        } else if let Ok(number) = i16::try_from(number) {
            self.sink.put(&[0xc1]);
            self.sink.put(&number.to_le_bytes());
        } else {
            self.sink.put(&[0xc2]);
            self.sink.put(&number.to_le_bytes());
        }
    }

    pub fn double(&mut self, number: f64) {
        self.sink.put(&number.to_le_bytes());
    }

    /// Writes a time or a duration in milliseconds.
    pub fn milliseconds(&mut self, time: i64) {
        self.sink.put(&time.to_le_bytes());
    }

    /// Writes a list node that is a listpack.
    pub fn packed_node(&mut self, listpack: &[u8]) {
        self.length(2);
        self.string(listpack);
    }

    /// Writes a list node that is a single element.
    pub fn plain_node(&mut self, element: &[u8]) {
        self.length(1);
        self.string(element);
    }

    /// Writes the value without its type, which [`kind_of`] returns. O(value).
    pub fn value(&mut self, value: &Value) {
        match value {
            Value::String(StringValue::Bytes(bytes)) => self.string(bytes),
            Value::String(StringValue::Int(number)) => self.int(*number),
            Value::List(nodes) => self.list(nodes),
            Value::Set(set) => self.set(set),
            Value::Hash(hash) => self.hash(hash),
            Value::SortedSet(SortedSetValue::Packed(packed)) => self.string(packed.as_bytes()),
            Value::SortedSet(SortedSetValue::Members(members, scores)) => {
                self.length(scores.len() as u64);
                for (member, score) in members.iter().zip(scores) {
                    self.string(member);
                    self.double(*score);
                }
            }
            Value::Stream(stream) => self.stream(stream),
        }
    }

    fn list(&mut self, nodes: &[ListNode]) {
        let packed: Vec<Vec<ListNode>> = nodes
            .iter()
            .map(|node| match node {
                ListNode::Elements(elements) => pack(elements),
                _ => Vec::new(),
            })
            .collect();
        let count = |(node, packed): (&ListNode, &Vec<ListNode>)| match node {
            ListNode::Elements(_) => packed.len(),
            _ => 1,
        };
        self.length(nodes.iter().zip(&packed).map(count).sum::<usize>() as u64);
        for (node, packed) in nodes.iter().zip(&packed) {
            let parts = match node {
                ListNode::Elements(_) => packed.as_slice(),
                node => std::slice::from_ref(node),
            };
            for part in parts {
                match part {
                    ListNode::Packed(pack) => self.packed_node(pack.as_bytes()),
                    ListNode::Plain(element) => self.plain_node(element),
                    // Packed nodes are never of this variant.
                    ListNode::Elements(_) => {}
                }
            }
        }
    }

    fn set(&mut self, set: &SetValue) {
        match set {
            SetValue::Ints(ints) => self.string(ints.as_bytes()),
            SetValue::Packed(members) => {
                self.length(members.len() as u64);
                self.elements(members, |_| true);
            }
            SetValue::Members(members) => {
                self.length(members.len() as u64);
                members.iter().for_each(|member| self.string(member));
            }
        }
    }

    /// Writes the elements of a listpack whose index is `wanted`, each as a string.
    fn elements(&mut self, packed: &ListPack, wanted: impl Fn(usize) -> bool) {
        let mut digits = itoa::Buffer::new();
        for (_, item) in packed.iter().enumerate().filter(|(index, _)| wanted(*index)) {
            self.string(item.text(&mut digits));
        }
    }

    fn hash(&mut self, hash: &HashValue) {
        match hash {
            HashValue::Packed(packed) => self.string(packed.as_bytes()),
            HashValue::PackedExpiry(packed) => match earliest(packed) {
                Some(earliest) => {
                    self.milliseconds(earliest.get().cast_signed());
                    self.string(packed.as_bytes());
                }
                None => {
                    self.length(packed.len() as u64 / 3);
                    self.elements(packed, |index| index % 3 != 2);
                }
            },
            HashValue::Fields(fields) => {
                self.length(fields.len() as u64 / 2);
                fields.iter().for_each(|text| self.string(text));
            }
            HashValue::FieldsExpiry(fields, expire_times) => {
                let Some(earliest) = expire_times.iter().flatten().min() else {
                    self.length(expire_times.len() as u64);
                    return fields.iter().for_each(|text| self.string(text));
                };
                let all = fields.pairs().zip(expire_times).map(|((f, v), ms)| (f, v, *ms));
                self.fields_with_expiry(expire_times.len() as u64, *earliest, all);
            }
        }
    }

    /// Writes a `HASH_METADATA`: `len` fields with value and expiry time. `earliest` is the
    /// earliest of these times.
    pub fn fields_with_expiry<'a>(
        &mut self,
        len: u64,
        earliest: NonZeroU64,
        fields: impl Iterator<Item = (&'a [u8], &'a [u8], Option<NonZeroU64>)>,
    ) {
        self.milliseconds(earliest.get().cast_signed());
        self.length(len);
        for (field, value, expire_time) in fields {
            // Times are relative to the earliest time, which is stored as 1. 0 means none.
            self.length(expire_time.map_or(0, |ms| ms.get().saturating_sub(earliest.get()) + 1));
            self.string(field);
            self.string(value);
        }
    }

    fn stream(&mut self, stream: &StreamValue) {
        self.length(stream.blocks.len() as u64);
        for block in &stream.blocks {
            self.raw_string(&block.id.to_bytes());
            self.string(block.entries.as_bytes());
        }
        self.length(stream.len);
        self.stream_id(stream.last_id);
        self.stream_id(stream.first_id);
        self.stream_id(stream.max_deleted_id);
        self.length(stream.entries_added);
        self.length(stream.groups_len() as u64);
        for group in stream.groups() {
            self.group(&group);
        }
    }

    /// Writes a stream id as two lengths.
    pub fn stream_id(&mut self, id: StreamId) {
        self.length(id.ms);
        self.length(id.seq);
    }

    /// Writes a stream id as 16 bytes, without a length.
    pub fn packed_stream_id(&mut self, id: StreamId) {
        self.sink.put(&id.to_bytes());
    }

    fn group(&mut self, group: &StreamGroup<'_>) {
        self.string(group.name);
        self.stream_id(group.last_id);
        self.length(group.entries_read.unwrap_or(u64::MAX));
        self.length(group.pending.len() as u64);
        for entry in group.pending {
            self.packed_stream_id(entry.id);
            self.milliseconds(entry.delivered_ms);
            self.length(entry.deliveries);
        }
        // Sorted by owner, and by id for each owner.
        let mut owned: Vec<_> = group.pending.iter().map(|e| (e.consumer, e.id)).collect();
        owned.sort();
        let mut owned = owned.as_slice();
        self.length(group.consumers.len() as u64);
        for (index, (name, consumer)) in group.consumer_names().zip(group.consumers).enumerate() {
            self.string(name);
            self.milliseconds(consumer.seen_ms);
            let count = owned.partition_point(|(owner, _)| *owner as usize <= index);
            let (own, others) = owned.split_at(count);
            self.length(own.len() as u64);
            for (_, id) in own {
                self.packed_stream_id(*id);
            }
            owned = others;
        }
    }
}

/// Returns the type with which [`Encoder::value`] writes a value.
#[must_use]
pub fn kind_of(value: &Value) -> u8 {
    match value {
        Value::String(_) => kind::STRING,
        Value::List(_) => kind::LIST_QUICKLIST_2,
        Value::Set(SetValue::Ints(_)) => kind::SET_INTSET,
        // Packed sets exist since version 11.
        Value::Set(SetValue::Packed(_) | SetValue::Members(_)) => kind::SET,
        Value::Hash(HashValue::Packed(_)) => kind::HASH_LISTPACK,
        Value::Hash(HashValue::PackedExpiry(packed)) => {
            if earliest(packed).is_some() {
                kind::HASH_LISTPACK_EX
            } else {
                kind::HASH
            }
        }
        Value::Hash(HashValue::Fields(_)) => kind::HASH,
        Value::Hash(HashValue::FieldsExpiry(_, expire_times)) => {
            if expire_times.iter().any(Option::is_some) { kind::HASH_METADATA } else { kind::HASH }
        }
        Value::SortedSet(SortedSetValue::Packed(_)) => kind::ZSET_LISTPACK,
        Value::SortedSet(SortedSetValue::Members(..)) => kind::ZSET_2,
        Value::Stream(_) => kind::STREAM_LISTPACKS_2,
    }
}

/// Returns the lowest version that has the type that [`kind_of`] returns.
#[must_use]
pub fn version_of(value: &Value) -> u32 {
    version_of_kind(kind_of(value))
}

/// Returns the lowest version that has a type. Only versions that this crate writes count.
#[must_use]
pub fn version_of_kind(kind: u8) -> u32 {
    match kind {
        kind::HASH_LISTPACK_EX | kind::HASH_METADATA => VERSION_FIELD_TTL,
        _ => VERSION,
    }
}

/// Returns the earliest expiry time of a packed hash: the times are in order, and fields without
/// one come last.
fn earliest(packed: &ListPack) -> Option<NonZeroU64> {
    packed.get(2)?.int().and_then(|ms| NonZeroU64::new(u64::try_from(ms).ok()?))
}

/// Packs elements into list nodes.
fn pack(elements: &Strings) -> Vec<ListNode> {
    let mut nodes = Vec::new();
    let mut node = ListPack::new();
    for element in elements {
        if node.bytes() + element.len() > NODE_BYTES && !node.is_empty() {
            nodes.push(ListNode::Packed(std::mem::take(&mut node)));
        }
        if element.len() > NODE_BYTES {
            nodes.push(ListNode::Plain(element.to_vec()));
        } else {
            node.push_back(element);
        }
    }
    if !node.is_empty() {
        nodes.push(ListNode::Packed(node));
    }
    nodes
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(write: impl Fn(&mut Encoder<Vec<u8>>)) -> Vec<u8> {
        let mut encoder = Encoder::new(Vec::new());
        write(&mut encoder);
        encoder.into_sink()
    }

    #[test]
    fn lengths_take_the_fewest_bytes() {
        for (length, bytes) in [
            (0, &b"\x00"[..]),
            (63, b"\x3f"),
            (64, b"\x40\x40"),
            (16383, b"\x7f\xff"),
            (16384, b"\x80\x00\x00\x40\x00"),
            (u64::from(u32::MAX), b"\x80\xff\xff\xff\xff"),
            (1 << 32, b"\x81\x00\x00\x00\x01\x00\x00\x00\x00"),
        ] {
            assert_eq!(written(|e| e.length(length)), bytes);
        }
    }

    #[test]
    fn strings_take_the_form_that_servers_give_them() {
        for (string, bytes) in [
            (&b""[..], &b"\x00"[..]),
            (b"-128", b"\xc0\x80"),
            (b"10000", b"\xc1\x10\x27"),
            (b"-2147483648", b"\xc2\x00\x00\x00\x80"),
            (b"2147483648", b"\x0a2147483648"),
            (b"007", b"\x03007"),
            (b"aaaaaaaaaaaaaaaaaaaa", b"\x14aaaaaaaaaaaaaaaaaaaa"),
        ] {
            assert_eq!(written(|e| e.string(string)), bytes);
        }
        assert_eq!(written(|e| e.string(&[b'a'; 40]))[0], 0xc3);
        assert_eq!(written(|e| e.int(i64::MIN)), b"\x14-9223372036854775808");
        let mut plain = Encoder::new(Vec::new());
        plain.set_compression(false);
        plain.string(&[b'a'; 40]);
        assert_eq!(plain.into_sink().len(), 41);
    }
}
