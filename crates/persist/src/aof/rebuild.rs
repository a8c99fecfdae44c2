//! Writes a base as commands that recreate each key (`aof-use-rdb-preamble no`).
//!
//! As in Redis, collections are created by commands of at most [`ITEMS_MAX`] items. A stream is
//! restored as a whole: commands would lose the times at which its consumers were seen, and the
//! counters of its groups.

use super::writer::{self, BATCH_LINE_BYTES_MAX};
use crate::error::LoadError;
use crate::rdb::value::{HashValue, ListNode, SetValue, SortedSetValue, StringValue, Value};
use crate::rdb::{RdbEntry, RdbEvent, RdbReader, Strings, dump};
use brisk_resp::reply::encode::double_text;
use brisk_structures::listpack::{Item, ListPack};
use std::borrow::Cow;
use std::io::{self, Read, Write};
use std::num::NonZeroU64;

/// Maximum number of collection items in one command.
pub const ITEMS_MAX: usize = 64;
/// A batch ends after the command that makes it this large.
const BATCH_BYTES: usize = 1 << 20;

type Arg<'a> = Cow<'a, [u8]>;

/// Writes the keys and function libraries of a snapshot as commands, in batches. If `second` (Unix
/// time) is given, a timestamp comes first. O(snapshot).
///
/// # Errors
/// Returns errors of reading and of writing.
pub fn write<R: Read>(
    reader: &mut RdbReader<R>,
    second: Option<i64>,
    out: &mut impl Write,
) -> Result<(), LoadError> {
    let mut batch = Vec::new();
    if let Some(second) = second {
        writer::timestamp(&mut batch, second);
        out.write_all(&batch)?;
        batch.clear();
    }
    let mut db = None;
    while let Some(event) = reader.next_event()? {
        match event {
            RdbEvent::SelectDb(number) if db.replace(number) != Some(number) => {
                writer::command(&mut batch, &[&b"SELECT"[..], number.to_string().as_bytes()]);
            }
            RdbEvent::Function(source) => {
                writer::command(&mut batch, &[&b"FUNCTION"[..], b"LOAD", &source]);
            }
            RdbEvent::Entry(entry) => key(&mut batch, &entry),
            _ => {}
        }
        if batch.len() >= BATCH_BYTES {
            write_batch(&mut batch, out)?;
        }
    }
    Ok(write_batch(&mut batch, out)?)
}

fn write_batch(batch: &mut Vec<u8>, out: &mut impl Write) -> io::Result<()> {
    if !batch.is_empty() {
        let mut line = Vec::with_capacity(BATCH_LINE_BYTES_MAX);
        // The base precedes the stream of changes, so its batches have ticket 0.
        writer::batch_line(&mut line, 0, batch);
        out.write_all(&line)?;
        out.write_all(batch)?;
        batch.clear();
    }
    Ok(())
}

/// Appends the commands that create a key. O(value).
pub fn key(out: &mut Vec<u8>, entry: &RdbEntry) {
    let key = entry.key.as_slice();
    match &entry.value {
        Value::String(StringValue::Bytes(bytes)) => {
            writer::command(out, &[&b"SET"[..], key, bytes]);
        }
        Value::String(StringValue::Int(number)) => {
            writer::command(out, &[&b"SET"[..], key, number.to_string().as_bytes()]);
        }
        Value::List(nodes) => chunked(out, b"RPUSH", key, 1, nodes.iter().flat_map(elements)),
        Value::Set(SetValue::Ints(ints)) => {
            let members = ints.iter().map(|member| Cow::Owned(member.to_string().into_bytes()));
            chunked(out, b"SADD", key, 1, members);
        }
        Value::Set(SetValue::Packed(pack)) => chunked(out, b"SADD", key, 1, items(pack)),
        Value::Set(SetValue::Members(members)) => {
            chunked(out, b"SADD", key, 1, members.iter().map(Cow::Borrowed));
        }
        Value::Hash(hash) => self::hash(out, key, hash),
        Value::SortedSet(SortedSetValue::Packed(pack)) => {
            let pairs = groups(items(pack).collect(), 2);
            let args = pairs.into_iter().flat_map(|pair| [pair[1].clone(), pair[0].clone()]);
            chunked(out, b"ZADD", key, 2, args);
        }
        Value::SortedSet(SortedSetValue::Members(members, scores)) => {
            let args = members.iter().zip(scores).flat_map(|(member, score)| {
                let mut text = Vec::new();
                double_text(&mut text, *score);
                [Cow::Owned(text), Cow::Borrowed(member)]
            });
            chunked(out, b"ZADD", key, 2, args);
        }
        Value::Stream(_) => {
            writer::command(out, &[&b"RESTORE"[..], key, b"0", &dump::write(&entry.value)]);
        }
    }
    if let Some(expire_at_ms) = entry.metadata.expire_at_ms {
        writer::command(out, &[&b"PEXPIREAT"[..], key, expire_at_ms.to_string().as_bytes()]);
    }
}

fn hash(out: &mut Vec<u8>, key: &[u8], hash: &HashValue) {
    match hash {
        HashValue::Packed(pack) => chunked(out, b"HSET", key, 2, items(pack)),
        HashValue::Fields(pairs) => chunked(out, b"HSET", key, 2, args(pairs)),
        HashValue::PackedExpiry(pack) => {
            let triples = groups(items(pack).collect(), 3);
            let pairs = || triples.iter().flat_map(|triple| [triple[0].clone(), triple[1].clone()]);
            chunked(out, b"HSET", key, 2, pairs());
            for triple in triples.iter().filter(|triple| *triple[2] != *b"0") {
                expire_field(out, key, &triple[0], &triple[2]);
            }
        }
        HashValue::FieldsExpiry(pairs, expire_times) => {
            chunked(out, b"HSET", key, 2, args(pairs));
            for ((field, _), expire_time) in pairs.pairs().zip(expire_times) {
                if let Some(expire_time) = expire_time.map(NonZeroU64::get) {
                    expire_field(out, key, field, expire_time.to_string().as_bytes());
                }
            }
        }
    }
}

fn expire_field(out: &mut Vec<u8>, key: &[u8], field: &[u8], expire_at_ms: &[u8]) {
    writer::command(out, &[&b"HPEXPIREAT"[..], key, expire_at_ms, b"FIELDS", b"1", field]);
}

/// Appends commands of at most [`ITEMS_MAX`] items with `args_each` arguments each.
fn chunked<'a>(
    out: &mut Vec<u8>,
    name: &[u8],
    key: &[u8],
    args_each: usize,
    args: impl Iterator<Item = Arg<'a>>,
) {
    let mut command = vec![Cow::Borrowed(name), Cow::Borrowed(key)];
    for arg in args {
        command.push(arg);
        if command.len() == 2 + ITEMS_MAX * args_each {
            writer::command(out, &command);
            command.truncate(2);
        }
    }
    if command.len() > 2 {
        writer::command(out, &command);
    }
}

fn elements(node: &ListNode) -> Box<dyn Iterator<Item = Arg<'_>> + '_> {
    match node {
        ListNode::Packed(pack) => Box::new(items(pack)),
        ListNode::Elements(strings) => Box::new(args(strings)),
        ListNode::Plain(element) => Box::new(std::iter::once(Cow::Borrowed(element.as_slice()))),
    }
}

fn args(strings: &Strings) -> impl Iterator<Item = Arg<'_>> {
    strings.iter().map(Cow::Borrowed)
}

fn items(pack: &ListPack) -> impl Iterator<Item = Arg<'_>> {
    pack.iter().map(|item| match item {
        Item::Str(bytes) => Cow::Borrowed(bytes),
        Item::Int(number) => Cow::Owned(number.to_string().into_bytes()),
    })
}

/// Splits arguments into groups of `each`.
fn groups(args: Vec<Arg<'_>>, each: usize) -> Vec<Vec<Arg<'_>>> {
    args.chunks_exact(each).map(<[Arg<'_>]>::to_vec).collect()
}
