//! A base as commands (`aof-use-rdb-preamble no`): those that make each key anew.
//!
//! Collections are made by commands of at most [`ITEMS_MAX`] items, as Redis makes them. A stream is
//! restored as a whole: commands would lose when its consumers were seen, and what its groups count.

use super::writer::{self, BATCH_LINE_BYTES_MAX};
use crate::LoadError;
use crate::rdb::value::{HashValue, ListNode, SetValue, SortedSetValue, StringValue, Value};
use crate::rdb::{Entry, Event, RdbReader, Strings, dump};
use brisk_resp::reply::encode::double_text;
use brisk_structures::listpack::{Item, ListPack};
use std::borrow::Cow;
use std::io::{self, Read, Write};
use std::num::NonZeroU64;

/// Items of a collection in one command.
pub const ITEMS_MAX: usize = 64;
/// A batch ends behind the command that makes it this large.
const BATCH_BYTES: usize = 1 << 20;

type Word<'a> = Cow<'a, [u8]>;

/// Writes the keys and libraries of a snapshot as commands, in batches, behind the second (Unix time)
/// if there is one. O(snapshot).
///
/// # Errors
/// Of reading and of writing.
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
            Event::SelectDb(number) if db.replace(number) != Some(number) => {
                writer::command(&mut batch, &[&b"SELECT"[..], number.to_string().as_bytes()]);
            }
            Event::Function(source) => {
                writer::command(&mut batch, &[&b"FUNCTION"[..], b"LOAD", &source]);
            }
            Event::Entry(entry) => key(&mut batch, &entry),
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
        // What is before the stream of changes has no place in it.
        writer::batch_line(&mut line, 0, batch);
        out.write_all(&line)?;
        out.write_all(batch)?;
        batch.clear();
    }
    Ok(())
}

/// Appends the commands that make a key. O(value).
pub fn key(out: &mut Vec<u8>, entry: &Entry) {
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
            let words = pairs.into_iter().flat_map(|pair| [pair[1].clone(), pair[0].clone()]);
            chunked(out, b"ZADD", key, 2, words);
        }
        Value::SortedSet(SortedSetValue::Members(members, scores)) => {
            let words = members.iter().zip(scores).flat_map(|(member, score)| {
                let mut text = Vec::new();
                double_text(&mut text, *score);
                [Cow::Owned(text), Cow::Borrowed(member)]
            });
            chunked(out, b"ZADD", key, 2, words);
        }
        Value::Stream(_) => {
            writer::command(out, &[&b"RESTORE"[..], key, b"0", &dump::write(&entry.value)]);
        }
    }
    if let Some(deadline_ms) = entry.notes.deadline_ms {
        writer::command(out, &[&b"PEXPIREAT"[..], key, deadline_ms.to_string().as_bytes()]);
    }
}

fn hash(out: &mut Vec<u8>, key: &[u8], hash: &HashValue) {
    match hash {
        HashValue::Packed(pack) => chunked(out, b"HSET", key, 2, items(pack)),
        HashValue::Fields(pairs) => chunked(out, b"HSET", key, 2, words(pairs)),
        HashValue::PackedDeadlines(pack) => {
            let triples = groups(items(pack).collect(), 3);
            let pairs = || triples.iter().flat_map(|triple| [triple[0].clone(), triple[1].clone()]);
            chunked(out, b"HSET", key, 2, pairs());
            for triple in triples.iter().filter(|triple| *triple[2] != *b"0") {
                expire_field(out, key, &triple[0], &triple[2]);
            }
        }
        HashValue::FieldsDeadlines(pairs, deadlines) => {
            chunked(out, b"HSET", key, 2, words(pairs));
            for ((field, _), deadline) in pairs.pairs().zip(deadlines) {
                if let Some(deadline) = deadline.map(NonZeroU64::get) {
                    expire_field(out, key, field, deadline.to_string().as_bytes());
                }
            }
        }
    }
}

fn expire_field(out: &mut Vec<u8>, key: &[u8], field: &[u8], deadline_ms: &[u8]) {
    writer::command(out, &[&b"HPEXPIREAT"[..], key, deadline_ms, b"FIELDS", b"1", field]);
}

/// Appends commands of at most [`ITEMS_MAX`] items of so many words each.
fn chunked<'a>(
    out: &mut Vec<u8>,
    name: &[u8],
    key: &[u8],
    words_each: usize,
    words: impl Iterator<Item = Word<'a>>,
) {
    let mut command = vec![Cow::Borrowed(name), Cow::Borrowed(key)];
    for word in words {
        command.push(word);
        if command.len() == 2 + ITEMS_MAX * words_each {
            writer::command(out, &command);
            command.truncate(2);
        }
    }
    if command.len() > 2 {
        writer::command(out, &command);
    }
}

fn elements(node: &ListNode) -> Box<dyn Iterator<Item = Word<'_>> + '_> {
    match node {
        ListNode::Packed(pack) => Box::new(items(pack)),
        ListNode::Elements(strings) => Box::new(words(strings)),
        ListNode::Plain(element) => Box::new(std::iter::once(Cow::Borrowed(element.as_slice()))),
    }
}

fn words(strings: &Strings) -> impl Iterator<Item = Word<'_>> {
    strings.iter().map(Cow::Borrowed)
}

fn items(pack: &ListPack) -> impl Iterator<Item = Word<'_>> {
    pack.iter().map(|item| match item {
        Item::Str(bytes) => Cow::Borrowed(bytes),
        Item::Int(number) => Cow::Owned(number.to_string().into_bytes()),
    })
}

/// Groups of so many words.
fn groups(words: Vec<Word<'_>>, each: usize) -> Vec<Vec<Word<'_>>> {
    words.chunks_exact(each).map(<[Word<'_>]>::to_vec).collect()
}
