//! Values as dumps: writing DUMP payloads, and storing values that were read from payloads.
//!
//! Servers of version 7.0 can read these dumps, even if they would have chosen other encodings.
//! Only hashes with field TTLs need a later version. Compact encodings that were read are kept if
//! they are within the current limits. Other values are rebuilt, large ones directly in the
//! encoding for their size. The code for each type is in `<type>/dump.rs`.

use super::hash::Hash;
use super::list::List;
use super::set::Set;
use super::string::{self, StrRef};
use super::{Collection, EncodingLimits, Entry, SortedSet, Value, kind_byte};
use brisk_persist::rdb::value::StringValue;
use brisk_persist::rdb::{Encoder, Sink, Value as Dumped, dump, kind, version_of_kind};

/// Initial capacity for payloads of small values, so that one allocation is enough.
const PAYLOAD_ROOM: usize = 512;

/// A value to serialize.
#[derive(Clone, Copy)]
pub(crate) enum Dumpable<'a> {
    Str(StrRef<'a>),
    Other(&'a Value),
}

impl<'a> Dumpable<'a> {
    pub(crate) fn of_value(value: &'a Value) -> Dumpable<'a> {
        match value {
            Value::Str(data) => Dumpable::Str(StrRef::Chunked(data)),
            other => Dumpable::Other(other),
        }
    }

    /// The DUMP payload. O(value).
    pub(crate) fn payload(self) -> Vec<u8> {
        let kind = self.kind();
        let mut encoder = Encoder::new(Vec::with_capacity(PAYLOAD_ROOM));
        encoder.kind(kind);
        self.write(&mut encoder);
        let mut payload = encoder.into_sink();
        dump::finish(&mut payload, version_of_kind(kind));
        payload
    }

    /// Number of bytes that [`Dumpable::write`] writes. O(value).
    pub(crate) fn len(self) -> usize {
        let mut encoder = Encoder::new(Vec::with_capacity(PAYLOAD_ROOM));
        self.write(&mut encoder);
        encoder.into_sink().len()
    }

    /// The type under which [`Dumpable::write`] writes the value.
    pub(crate) fn kind(self) -> u8 {
        match self {
            Dumpable::Str(_) | Dumpable::Other(Value::Str(_)) => kind::STRING,
            Dumpable::Other(Value::List(_)) => kind::LIST_QUICKLIST_2,
            Dumpable::Other(Value::Set(set)) => set.dump_kind(),
            Dumpable::Other(Value::SortedSet(set)) => set.dump_kind(),
            Dumpable::Other(Value::Hash(hash)) => hash.dump_kind(),
            Dumpable::Other(Value::Stream(_)) => kind::STREAM_LISTPACKS_2,
        }
    }

    /// Writes a value without its type.
    pub(crate) fn write<S: Sink>(self, encoder: &mut Encoder<S>) {
        match self {
            Dumpable::Str(StrRef::Int(number)) => encoder.int(number),
            Dumpable::Str(StrRef::Bytes(bytes)) => encoder.string(bytes),
            Dumpable::Str(StrRef::Chunked(data)) | Dumpable::Other(Value::Str(data)) => {
                encoder.string(&data.to_vec());
            }
            Dumpable::Other(Value::List(list)) => list.dump(encoder),
            Dumpable::Other(Value::Set(set)) => set.dump(encoder),
            Dumpable::Other(Value::SortedSet(set)) => set.dump(encoder),
            Dumpable::Other(Value::Hash(hash)) => hash.dump(encoder),
            Dumpable::Other(Value::Stream(stream)) => super::stream::dump(stream, encoder),
        }
    }
}

/// An entry with a value that was read; `None` if the value cannot be stored. O(value), but O(1)
/// for compact encodings and large strings.
pub(crate) fn entry_of(key: &[u8], value: Dumped, limits: &EncodingLimits) -> Option<Entry> {
    Some(match value {
        Dumped::String(StringValue::Bytes(bytes)) => string::new_entry(key, &bytes),
        Dumped::String(StringValue::Int(number)) => string::new_entry_of_integer(key, number),
        Dumped::List(nodes) => entry_with(key, List::of_dumped(nodes, limits)),
        Dumped::Set(set) => entry_with(key, Set::of_dumped(set, limits)),
        Dumped::SortedSet(set) => entry_with(key, SortedSet::of_dumped(set, limits)?),
        Dumped::Hash(hash) => entry_with(key, Hash::of_dumped(hash, limits)),
        Dumped::Stream(stream) => entry_with(key, super::stream::of_dumped(*stream)?),
    })
}

fn entry_with<C: Collection>(key: &[u8], value: C) -> Entry {
    let kind = kind_byte(C::KIND, value.encoding());
    Entry::new_object(key, kind, value.into_value())
}
