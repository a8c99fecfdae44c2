//! Values in the form of dumps: DUMP payloads out, and values that were read from them in.
//!
//! Out goes what servers of 7.0 read, whatever they would have kept it in themselves; only hashes
//! with deadlines of fields need a later version. In come compact encodings as they are where they
//! are within today's limits; anything else is built anew, large values at once in the encoding of
//! their size. How each type does that is in `<type>/dump.rs`.

use super::hash::Hash;
use super::list::List;
use super::set::Set;
use super::string::{self, Str, StrRef};
use super::{Collection, EncodingLimits, Kind, SortedSet, kind_byte};
use crate::keyspace::{Entry, EntryRef};
use brisk_persist::rdb::value::StringValue;
use brisk_persist::rdb::{Encoder, Sink, Value as Dumped, dump, kind, version_of_kind};
use brisk_structures::stream::Stream;

/// What `expect` says of an entry.
const OF_ITS_KIND: &str = "an entry's value is of its kind";

/// The DUMP payload of a value. O(value).
pub(crate) fn payload(entry: &EntryRef<'_>) -> Vec<u8> {
    let kind = kind_of(entry);
    let mut encoder = Encoder::new(Vec::new());
    encoder.kind(kind);
    write(entry, &mut encoder);
    let mut payload = encoder.into_sink();
    dump::finish(&mut payload, version_of_kind(kind));
    payload
}

/// The type that [`write`] writes a value as.
pub(crate) fn kind_of(entry: &EntryRef<'_>) -> u8 {
    match entry.kind() {
        Kind::String => kind::STRING,
        Kind::List => kind::LIST_QUICKLIST_2,
        Kind::Set => entry.get::<Set>().expect(OF_ITS_KIND).dump_kind(),
        Kind::SortedSet => entry.get::<SortedSet>().expect(OF_ITS_KIND).dump_kind(),
        Kind::Hash => entry.get::<Hash>().expect(OF_ITS_KIND).dump_kind(),
        Kind::Stream => kind::STREAM_LISTPACKS_2,
    }
}

/// Writes a value without its type.
pub(crate) fn write<S: Sink>(entry: &EntryRef<'_>, encoder: &mut Encoder<S>) {
    match entry.kind() {
        Kind::String => match entry.get::<Str>().expect(OF_ITS_KIND) {
            StrRef::Int(number) => encoder.int(number),
            StrRef::Bytes(bytes) => encoder.string(bytes),
            StrRef::Shared(data) => encoder.string(data),
        },
        Kind::List => entry.get::<List>().expect(OF_ITS_KIND).dump(encoder),
        Kind::Set => entry.get::<Set>().expect(OF_ITS_KIND).dump(encoder),
        Kind::SortedSet => entry.get::<SortedSet>().expect(OF_ITS_KIND).dump(encoder),
        Kind::Hash => entry.get::<Hash>().expect(OF_ITS_KIND).dump(encoder),
        Kind::Stream => super::stream::dump(entry.get::<Stream>().expect(OF_ITS_KIND), encoder),
    }
}

/// An entry with a value that was read; `None` if it is one that cannot be kept. O(value), but O(1)
/// for compact encodings and large strings.
pub(crate) fn entry_of(key: &[u8], value: Dumped, limits: &EncodingLimits) -> Option<Entry> {
    Some(match value {
        Dumped::String(StringValue::Bytes(bytes)) => string::new_entry_owned(key, bytes),
        Dumped::String(StringValue::Int(number)) => string::new_entry_of_integer(key, number),
        Dumped::List(nodes) => boxed(key, List::of_dumped(nodes, limits)),
        Dumped::Set(set) => boxed(key, Set::of_dumped(set, limits)),
        Dumped::SortedSet(set) => boxed(key, SortedSet::of_dumped(set, limits)?),
        Dumped::Hash(hash) => boxed(key, Hash::of_dumped(hash, limits)),
        Dumped::Stream(stream) => boxed(key, super::stream::of_dumped(*stream)?),
    })
}

fn boxed<C: Collection>(key: &[u8], value: C) -> Entry {
    let kind = kind_byte(C::KIND, value.encoding());
    Entry::new_boxed(key, kind, Box::new(value.into_value()))
}
