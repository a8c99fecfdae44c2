//! Strings: integers and short strings inside the entry, large ones as shared buffers.
//!
//! OBJECT ENCODING tells how a string came to be (`int`, `embstr` up to 44 bytes as set, `raw`
//! when longer or once changed in place), as in Redis; where the bytes lie is a matter of length.

use super::{Encoding, Kind, Type, Value, kind_byte};
use crate::keyspace::{Entry, Stored, StoredMut};
use crate::number::{Digits, decimal_len, parse_i64};
use brisk_structures::entry::ValueRef;
use std::sync::Arc;

/// From this length on a string has a buffer of its own that replies share instead of copying:
/// above 64 KiB a copy costs more than a second segment in the send.
pub const SHARED_MIN: usize = 65_536;

/// Longest string that Redis embeds in its object.
const EMBSTR_MAX: usize = 44;

/// The string type.
pub struct Str;

/// A string value, to read.
#[derive(Debug, Clone, Copy)]
pub enum StrRef<'a> {
    Bytes(&'a [u8]),
    Int(i64),
    Shared(&'a Arc<Vec<u8>>),
}

impl<'a> StrRef<'a> {
    /// Length in bytes of the decimal form for integers, else of the bytes.
    #[inline]
    pub fn len(&self) -> usize {
        match self {
            StrRef::Bytes(bytes) => bytes.len(),
            StrRef::Int(number) => decimal_len(*number),
            StrRef::Shared(data) => data.len(),
        }
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The bytes; integers are written into `digits`.
    #[inline]
    pub fn as_bytes<'b>(&self, digits: &'b mut Digits) -> &'b [u8]
    where
        'a: 'b,
    {
        match *self {
            StrRef::Bytes(bytes) => bytes,
            StrRef::Int(number) => digits.format(number),
            StrRef::Shared(data) => data.as_slice(),
        }
    }

    pub fn to_vec(&self) -> Vec<u8> {
        self.as_bytes(&mut Digits::new()).to_vec()
    }

    /// The value as an integer if it is one in canonical form.
    #[inline]
    pub fn as_integer(&self) -> Option<i64> {
        match self {
            StrRef::Int(number) => Some(*number),
            StrRef::Bytes(bytes) => parse_i64(bytes),
            StrRef::Shared(_) => None,
        }
    }
}

impl Type for Str {
    const KIND: Kind = Kind::String;
    type Ref<'a> = StrRef<'a>;

    #[inline]
    fn view(entry: Stored<'_>) -> StrRef<'_> {
        match entry.value() {
            ValueRef::Bytes(bytes) => StrRef::Bytes(bytes),
            ValueRef::Int(number) => StrRef::Int(number),
            ValueRef::Object(Value::Str(data)) => StrRef::Shared(data),
            ValueRef::Object(_) => unreachable!("an entry's kind is that of its value"),
        }
    }
}

/// The encoding of bytes that are stored as they are.
#[inline]
fn text_encoding(bytes: &[u8]) -> Encoding {
    if bytes.len() <= EMBSTR_MAX { Encoding::EmbStr } else { Encoding::Raw }
}

/// A new entry holding `bytes` as SET would store them.
#[inline]
pub(crate) fn new_entry(key: &[u8], bytes: &[u8]) -> Entry {
    if let Some(number) = parse_i64(bytes) {
        return Entry::new_int(key, kind_byte(Kind::String, Encoding::Int), number);
    }
    let kind = kind_byte(Kind::String, text_encoding(bytes));
    if bytes.len() < SHARED_MIN {
        Entry::new_bytes(key, kind, bytes)
    } else {
        Entry::new_object(key, kind, Value::Str(Arc::new(bytes.to_vec())))
    }
}

/// The same of bytes that need not be copied.
pub(crate) fn new_entry_owned(key: &[u8], bytes: Vec<u8>) -> Entry {
    if bytes.len() < SHARED_MIN {
        return new_entry(key, &bytes);
    }
    let kind = kind_byte(Kind::String, text_encoding(&bytes));
    Entry::new_object(key, kind, Value::Str(Arc::new(bytes)))
}

/// A new entry holding an integer.
pub(crate) fn new_entry_of_integer(key: &[u8], number: i64) -> Entry {
    Entry::new_int(key, kind_byte(Kind::String, Encoding::Int), number)
}

/// Replaces the entry's value by `bytes` as SET would store them. Deadline and clock stay.
#[inline]
pub(crate) fn store(entry: &mut StoredMut<'_>, bytes: &[u8]) {
    match parse_i64(bytes) {
        Some(number) => store_integer(entry, number),
        None => store_text(entry, bytes),
    }
}

/// Replaces the entry's value by `bytes`, which are not looked at. Deadline and clock stay.
#[inline]
pub(crate) fn store_text(entry: &mut StoredMut<'_>, bytes: &[u8]) {
    if bytes.len() < SHARED_MIN {
        entry.set_bytes(bytes);
    } else {
        entry.set_object(Value::Str(Arc::new(bytes.to_vec())));
    }
    entry.set_kind(kind_byte(Kind::String, text_encoding(bytes)));
}

/// Replaces the entry's value by `bytes`, which are not looked at, and leaves the entry `raw`.
pub(crate) fn store_owned(entry: &mut StoredMut<'_>, bytes: Vec<u8>) {
    if bytes.len() < SHARED_MIN {
        entry.set_bytes(&bytes);
    } else {
        entry.set_object(Value::Str(Arc::new(bytes)));
    }
    entry.set_kind(kind_byte(Kind::String, Encoding::Raw));
}

/// Stores an integer.
#[inline]
pub(crate) fn store_integer(entry: &mut StoredMut<'_>, number: i64) {
    entry.set_int(number);
    entry.set_kind(kind_byte(Kind::String, Encoding::Int));
}

/// Gives `change` the bytes as they would be after resizing to `len` (new bytes are zero) and
/// leaves the entry `raw`. O(1) besides growth: amortised O(new bytes).
pub(crate) fn modify(entry: &mut StoredMut<'_>, len: usize, change: impl FnOnce(&mut [u8])) {
    let kind = kind_byte(Kind::String, Encoding::Raw);
    if let ValueRef::Int(number) = entry.value() {
        let mut digits = Digits::new();
        entry.set_bytes(digits.format(number));
    }
    entry.set_kind(kind);
    if let Some(Value::Str(data)) = entry.object_mut() {
        // Copies only while a reply still shares the buffer.
        let data = Arc::make_mut(data);
        data.resize(len, 0);
        change(data);
    } else if len < SHARED_MIN {
        entry.resize_bytes(len);
        change(entry.bytes_mut().expect("resized bytes are inside the entry"));
    } else {
        // Fresh pages are zero already: a bit set far out costs no gigabyte of writing.
        let mut data = vec![0; len];
        let ValueRef::Bytes(bytes) = entry.value() else {
            unreachable!("integers and objects were handled above")
        };
        data[..bytes.len()].copy_from_slice(bytes);
        change(&mut data);
        entry.set_object(Value::Str(Arc::new(data)));
        entry.set_kind(kind);
    }
}
