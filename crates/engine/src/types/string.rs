//! Strings: integers and short strings are stored in the entry, long ones in shared chunks.
//!
//! As in Redis, OBJECT ENCODING shows how a string was created: `int`, `embstr` if it was set as a
//! whole and has at most 44 bytes, `raw` if it is longer or was changed in place. The storage
//! depends only on the length.

use super::{Encoding, Type, Value, ValueKind, kind_byte};
use super::{Entry, Stored, StoredMut};
use crate::base::number::{Digits, decimal_len, parse_i64};
use brisk_structures::bits;
use brisk_structures::chunked::{CHUNK_BYTES, ChunkedBytes};
use brisk_structures::entry::ValueRef;
use std::borrow::Cow;
use std::ops::Range;

/// From this length on, a string is stored in chunks that replies share without a copy. Above 64
/// KiB, a copy costs more than a second segment in the send call.
pub const SHARED_MIN: usize = CHUNK_BYTES;

/// Maximum length in bytes of a string that Redis embeds in its object.
const EMBSTR_MAX: usize = 44;

/// The string type.
pub struct Str;

/// A string value, read-only.
#[derive(Debug, Clone, Copy)]
pub enum StrRef<'a> {
    Bytes(&'a [u8]),
    Int(i64),
    Chunked(&'a ChunkedBytes),
}

impl<'a> StrRef<'a> {
    /// Number of bytes; for integers, of their decimal form.
    #[inline]
    pub fn len(&self) -> usize {
        match self {
            StrRef::Bytes(bytes) => bytes.len(),
            StrRef::Int(number) => decimal_len(*number),
            StrRef::Chunked(data) => data.len(),
        }
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The bytes in one piece. Integers are written into `digits`. Long strings are copied, so use
    /// [`StrRef::piece_of`] where possible.
    #[inline]
    pub fn contiguous<'b>(&self, digits: &'b mut Digits) -> Cow<'b, [u8]>
    where
        'a: 'b,
    {
        match *self {
            StrRef::Bytes(bytes) => Cow::Borrowed(bytes),
            StrRef::Int(number) => Cow::Borrowed(digits.format(number)),
            StrRef::Chunked(data) => Cow::Owned(data.to_vec()),
        }
    }

    /// The piece that contains byte `at`, and the position of its first byte: the whole of a short
    /// string, a chunk of a long one. Empty after the end.
    #[inline]
    pub fn piece_of<'b>(&self, at: usize, digits: &'b mut Digits) -> (&'b [u8], usize)
    where
        'a: 'b,
    {
        match *self {
            StrRef::Bytes(bytes) => (bytes, 0),
            StrRef::Int(number) => (digits.format(number), 0),
            StrRef::Chunked(data) => match data.chunk_of(at) {
                Some((chunk, start)) => (chunk, start),
                None => (&[], data.len()),
            },
        }
    }

    /// The bit at `offset`; bits after the end are 0.
    #[inline]
    pub fn bit(&self, offset: u64) -> bool {
        let mut digits = Digits::new();
        let Ok(at) = usize::try_from(offset / 8) else { return false };
        let (piece, start) = self.piece_of(at, &mut digits);
        bits::bit(piece, offset - start as u64 * 8)
    }

    /// The `width` bits (1 to 64) starting at `offset`, as an integer. Bits after the end are 0.
    pub fn read_bits(&self, offset: u64, width: u32) -> u64 {
        match *self {
            StrRef::Bytes(bytes) => bits::read_bits(bytes, offset, width),
            StrRef::Int(number) => bits::read_bits(Digits::new().format(number), offset, width),
            StrRef::Chunked(data) => {
                let window = data.copy_of(window(offset, width));
                bits::read_bits(&window, offset % 8, width)
            }
        }
    }

    /// Calls the visitor with the bits `first..=last`, which must exist, piece by piece, until the
    /// visitor returns a result. The visitor's arguments are a piece, the first and last relevant
    /// bit in it, and the position of the piece's bit 0 in the string.
    pub fn find_in_bits<R>(
        &self,
        first: u64,
        last: u64,
        mut look: impl FnMut(&[u8], (u64, u64), u64) -> Option<R>,
    ) -> Option<R> {
        let mut digits = Digits::new();
        let mut at = first;
        while at <= last {
            let (piece, start) = self.piece_of((at / 8) as usize, &mut digits);
            let base = start as u64 * 8;
            let end = last.min(base + piece.len() as u64 * 8 - 1);
            if let Some(result) = look(piece, (at - base, end - base), base) {
                return Some(result);
            }
            at = end + 1;
        }
        None
    }

    pub fn to_vec(&self) -> Vec<u8> {
        self.contiguous(&mut Digits::new()).into_owned()
    }

    /// The value as an integer, if it is the canonical form of one.
    #[inline]
    pub fn as_integer(&self) -> Option<i64> {
        match self {
            StrRef::Int(number) => Some(*number),
            StrRef::Bytes(bytes) => parse_i64(bytes),
            StrRef::Chunked(_) => None,
        }
    }
}

/// The bytes that contain the `width` bits starting at `offset`.
fn window(offset: u64, width: u32) -> Range<usize> {
    (offset / 8) as usize..(offset + u64::from(width)).div_ceil(8) as usize
}

/// A string that was made from other values and is to be stored.
#[derive(Debug)]
pub enum RawString {
    Short(Vec<u8>),
    Long(ChunkedBytes),
}

impl RawString {
    pub fn len(&self) -> usize {
        match self {
            RawString::Short(bytes) => bytes.len(),
            RawString::Long(data) => data.len(),
        }
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

impl From<Vec<u8>> for RawString {
    fn from(bytes: Vec<u8>) -> RawString {
        RawString::Short(bytes)
    }
}

/// A string value, mutable in place.
#[derive(Debug)]
pub enum StrMut<'a> {
    Bytes(&'a mut [u8]),
    Chunked(&'a mut ChunkedBytes),
}

impl StrMut<'_> {
    /// The piece that contains byte `at`, which must exist, and the position of its first byte. A
    /// shared chunk is copied.
    #[inline]
    pub fn piece_of(&mut self, at: usize) -> (&mut [u8], usize) {
        match self {
            StrMut::Bytes(bytes) => (bytes, 0),
            StrMut::Chunked(data) => data.chunk_mut(at),
        }
    }

    /// Like [`StrRef::read_bits`].
    #[inline]
    pub fn read_bits(&self, offset: u64, width: u32) -> u64 {
        match self {
            StrMut::Bytes(bytes) => bits::read_bits(bytes, offset, width),
            StrMut::Chunked(data) => StrRef::Chunked(data).read_bits(offset, width),
        }
    }

    /// Writes the low `width` bits (1 to 64) of `value`, starting at `offset`. The bits must exist.
    #[inline]
    pub fn write_bits(&mut self, offset: u64, width: u32, value: u64) {
        match self {
            StrMut::Bytes(bytes) => bits::write_bits(bytes, offset, width, value),
            StrMut::Chunked(data) => {
                let range = window(offset, width);
                let at = range.start;
                let mut window = data.copy_of(range);
                bits::write_bits(&mut window, offset % 8, width, value);
                data.write_at(at, &window);
            }
        }
    }

    /// Overwrites the bytes starting at `at`. The bytes must exist.
    #[inline]
    pub fn write_at(self, at: usize, part: &[u8]) {
        match self {
            StrMut::Bytes(bytes) => bytes[at..at + part.len()].copy_from_slice(part),
            StrMut::Chunked(data) => data.write_at(at, part),
        }
    }
}

impl Type for Str {
    const KIND: ValueKind = ValueKind::String;
    type Ref<'a> = StrRef<'a>;

    #[inline]
    fn view(entry: Stored<'_>) -> StrRef<'_> {
        match entry.value() {
            ValueRef::Bytes(bytes) => StrRef::Bytes(bytes),
            ValueRef::Int(number) => StrRef::Int(number),
            ValueRef::Object(Value::Str(data)) => StrRef::Chunked(data),
            ValueRef::Object(_) => unreachable!("an entry's kind is that of its value"),
        }
    }
}

/// The encoding of bytes that are stored unchanged.
#[inline]
fn text_encoding(bytes: &[u8]) -> Encoding {
    if bytes.len() <= EMBSTR_MAX { Encoding::EmbStr } else { Encoding::Raw }
}

/// A new entry that holds `bytes` as SET would store them.
#[inline]
pub(crate) fn new_entry(key: &[u8], bytes: &[u8]) -> Entry {
    if let Some(number) = parse_i64(bytes) {
        return Entry::new_int(key, kind_byte(ValueKind::String, Encoding::Int), number);
    }
    let kind = kind_byte(ValueKind::String, text_encoding(bytes));
    if bytes.len() < SHARED_MIN {
        Entry::new_bytes(key, kind, bytes)
    } else {
        Entry::new_object(key, kind, Value::Str(ChunkedBytes::from(bytes)))
    }
}

/// A new entry holding an integer.
pub(crate) fn new_entry_of_integer(key: &[u8], number: i64) -> Entry {
    Entry::new_int(key, kind_byte(ValueKind::String, Encoding::Int), number)
}

/// Replaces the entry's value with `bytes` as SET would store them. TTL and clock stay.
#[inline]
pub(crate) fn store(entry: &mut StoredMut<'_>, bytes: &[u8]) {
    match parse_i64(bytes) {
        Some(number) => store_integer(entry, number),
        None => store_text(entry, bytes),
    }
}

/// Replaces the entry's value with `bytes` without checking for an integer. TTL and clock stay.
#[inline]
pub(crate) fn store_text(entry: &mut StoredMut<'_>, bytes: &[u8]) {
    if bytes.len() < SHARED_MIN {
        entry.set_bytes(bytes);
    } else {
        entry.set_object(Value::Str(ChunkedBytes::from(bytes)));
    }
    entry.set_kind(kind_byte(ValueKind::String, text_encoding(bytes)));
}

/// Replaces the entry's value with a string without checking for an integer, and leaves the entry
/// `raw`.
pub(crate) fn store_raw(entry: &mut StoredMut<'_>, string: RawString) {
    match string {
        RawString::Short(bytes) if bytes.len() < SHARED_MIN => entry.set_bytes(&bytes),
        RawString::Short(bytes) => entry.set_object(Value::Str(ChunkedBytes::from(&bytes[..]))),
        RawString::Long(data) => entry.set_object(Value::Str(data)),
    }
    entry.set_kind(kind_byte(ValueKind::String, Encoding::Raw));
}

/// Stores an integer.
#[inline]
pub(crate) fn store_integer(entry: &mut StoredMut<'_>, number: i64) {
    entry.set_int(number);
    entry.set_kind(kind_byte(ValueKind::String, Encoding::Int));
}

/// Extends the bytes to `len` with zeros, lets `change` edit them, and leaves the entry `raw`.
/// Never truncates the bytes. O(1), plus amortized O(new bytes).
pub(crate) fn modify(entry: &mut StoredMut<'_>, len: usize, change: impl FnOnce(StrMut<'_>)) {
    let kind = kind_byte(ValueKind::String, Encoding::Raw);
    if let ValueRef::Int(number) = entry.value() {
        let mut digits = Digits::new();
        entry.set_bytes(digits.format(number));
    }
    entry.set_kind(kind);
    if let Some(Value::Str(data)) = entry.object_mut() {
        data.extend_to(len);
        change(StrMut::Chunked(data));
    } else if len < SHARED_MIN {
        entry.resize_bytes(len);
        change(StrMut::Bytes(entry.bytes_mut().expect("resized bytes are inside the entry")));
    } else {
        let mut data = chunked(entry);
        data.extend_to(len);
        change(StrMut::Chunked(&mut data));
        entry.set_object(Value::Str(data));
        entry.set_kind(kind);
    }
}

/// Appends `tail` and leaves the entry `raw`. Amortized O(tail).
pub(crate) fn append(entry: &mut StoredMut<'_>, tail: &[u8]) {
    if let Some(Value::Str(data)) = entry.object_mut() {
        data.append(tail);
        entry.set_kind(kind_byte(ValueKind::String, Encoding::Raw));
        return;
    }
    let old_len = match entry.value() {
        ValueRef::Bytes(bytes) => bytes.len(),
        ValueRef::Int(number) => decimal_len(number),
        ValueRef::Object(_) => unreachable!("objects were handled above"),
    };
    if old_len + tail.len() < SHARED_MIN {
        return modify(entry, old_len + tail.len(), |string| string.write_at(old_len, tail));
    }
    let mut data = chunked(entry);
    data.append(tail);
    entry.set_object(Value::Str(data));
    entry.set_kind(kind_byte(ValueKind::String, Encoding::Raw));
}

/// The contents of an entry with a short string that is about to become long.
#[cold]
fn chunked(entry: &StoredMut<'_>) -> ChunkedBytes {
    match entry.value() {
        ValueRef::Bytes(bytes) => ChunkedBytes::from(bytes),
        ValueRef::Int(number) => ChunkedBytes::from(Digits::new().format(number)),
        ValueRef::Object(_) => unreachable!("only short strings become long"),
    }
}
