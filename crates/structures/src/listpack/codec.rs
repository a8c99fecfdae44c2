//! The encoding of a listpack entry: head, data and back length; and the validation of external
//! bytes.
//!
//! ```text
//!  first byte  then                      data
//!  0xxxxxxx                              7-bit unsigned integer
//!  10xxxxxx                              string of x bytes
//!  110xxxxx    1 byte                    13-bit signed integer, high bits first
//!  1110xxxx    1 byte                    string of 12-bit length, high bits first
//!  11110000    u32 LE                    string of that length
//!  1111 0001, 0010, 0011, 0100           signed integer of 2, 3, 4, 8 bytes LE
//!  11111111                              the end
//! ```

use super::Item;
use crate::malformed::Malformed;

/// Length of the header: the total length and the count.
pub(super) const HEADER_LEN: usize = 6;
/// The byte after the last entry.
pub(super) const END: u8 = 0xff;
/// The first byte of a string of less than [`SHORT_MAX`] bytes, whose length is in its low bits.
/// Lower first bytes are small integers.
pub(super) const SHORT: u8 = 0x80;
pub(super) const SHORT_MAX: usize = 64;
/// The first bytes of entries with integers of 2 and of 8 bytes. Those of 3 and 4 bytes are between
/// them.
pub(super) const INT_16: u8 = 0xf1;
pub(super) const INT_64: u8 = 0xf4;
/// The lengths of these entries, including the back length.
pub(super) const INT_LENS: [usize; 4] = [4, 5, 6, 10];
/// The value of the count if the number is unknown, so that it must be found by a walk.
pub(super) const COUNT_UNKNOWN: u16 = u16::MAX;

/// Returns the size of the back length for an entry whose encoding and data have `len` bytes. The
/// highest values that would fit in two, three and four bytes take one more byte, as the format
/// requires.
#[inline]
pub(super) fn back_len_size(len: usize) -> usize {
    match len {
        0..=127 => 1,
        128..16_383 => 2,
        16_383..2_097_151 => 3,
        2_097_151..268_435_455 => 4,
        _ => 5,
    }
}

/// Returns the length of the encoding and the data of the entry at the start of `rest`. Returns
/// `None` if no entry starts there or its length is cut off. The data itself need not be complete.
#[inline]
pub(super) fn encoded_len(rest: &[u8]) -> Option<usize> {
    match *rest {
        [0..=0x7f, ..] => Some(1),
        [first @ 0x80..=0xbf, ..] => Some(1 + usize::from(first & 0x3f)),
        [0xc0..=0xdf, ..] => Some(2),
        [first @ 0xe0..=0xef, low, ..] => {
            Some(2 + usize::from(u16::from_be_bytes([first & 0x0f, low])))
        }
        [0xf0, a, b, c, d, ..] => {
            usize::try_from(u32::from_le_bytes([a, b, c, d])).ok()?.checked_add(5)
        }
        [0xf1, ..] => Some(3),
        [0xf2, ..] => Some(4),
        [0xf3, ..] => Some(5),
        [0xf4, ..] => Some(9),
        _ => None,
    }
}

/// Returns the element of the entry at the start of `rest`; `None` if no complete entry starts
/// there.
///
/// Always inlined: a call would return the element in memory, written in two halves and copied as a
/// whole. The copy would wait until both writes have left the CPU's store buffer. With a call,
/// ZCOUNT over 100 members took 1.26 times as long for the same number of instructions.
#[inline(always)]
pub(super) fn item(rest: &[u8]) -> Option<Item<'_>> {
    Some(match *rest {
        [first @ 0..=0x7f, ..] => Item::Int(i64::from(first)),
        [first @ 0x80..=0xbf, ref data @ ..] => Item::Str(data.get(..usize::from(first & 0x3f))?),
        [first @ 0xc0..=0xdf, low, ..] => {
            // Extends the sign: the highest of the 13 bits moves to the top and back.
            let bits = i16::from_be_bytes([first, low]) << 3;
            Item::Int(i64::from(bits >> 3))
        }
        [0xe0..=0xef, _, ref data @ ..] => Item::Str(data.get(..encoded_len(rest)? - 2)?),
        [0xf0, _, _, _, _, ref data @ ..] => Item::Str(data.get(..encoded_len(rest)? - 5)?),
        [0xf1, a, b, ..] => Item::Int(i64::from(i16::from_le_bytes([a, b]))),
        [0xf2, a, b, c, ..] => Item::Int(i64::from(i32::from_le_bytes([0, a, b, c]) >> 8)),
        [0xf3, a, b, c, d, ..] => Item::Int(i64::from(i32::from_le_bytes([a, b, c, d]))),
        [0xf4, a, b, c, d, e, f, g, h, ..] => {
            Item::Int(i64::from_le_bytes([a, b, c, d, e, f, g, h]))
        }
        _ => return None,
    })
}

/// Returns the back length that ends before `end`, which is the length of the entry's encoding and
/// data. Returns `None` if it does not begin within five bytes.
#[inline]
pub(super) fn back_len(bytes: &[u8], end: usize) -> Option<usize> {
    let mut len = 0usize;
    for step in 0..5 {
        let byte = *bytes.get(end.checked_sub(step + 1)?)?;
        len |= usize::from(byte & 0x7f) << (7 * step);
        if byte & 0x80 == 0 {
            return Some(len);
        }
    }
    None
}

/// An entry that is ready to be written.
pub(super) struct Encoded<'a> {
    head: [u8; 9],
    head_len: usize,
    data: &'a [u8],
    back: [u8; 5],
    back_len: usize,
}

impl<'a> Encoded<'a> {
    #[inline]
    pub(super) fn new(item: Item<'a>) -> Encoded<'a> {
        let mut head = [0; 9];
        let (head_len, data) = match item {
            Item::Int(number) => (encode_int(&mut head, number), &[][..]),
            Item::Str(data) => (encode_str_len(&mut head, data.len()), data),
        };
        let len = head_len + data.len();
        let back_len = back_len_size(len);
        let mut back = [0; 5];
        let mut rest = len;
        for place in (0..back_len).rev() {
            // The top bit of all bytes except the leftmost says that more bytes follow to the left.
            back[place] = (rest & 0x7f) as u8 | if place == 0 { 0 } else { 0x80 };
            rest >>= 7;
        }
        Encoded { head, head_len, data, back, back_len }
    }

    /// Returns the length of the whole entry, including the back length.
    #[inline]
    pub(super) fn len(&self) -> usize {
        self.head_len + self.data.len() + self.back_len
    }

    /// Returns the entry's bytes.
    #[inline]
    pub(super) fn parts(&self) -> [&[u8]; 3] {
        [&self.head[..self.head_len], self.data, &self.back[..self.back_len]]
    }

    /// Fills `room`, which has exactly the entry's length.
    #[inline]
    pub(super) fn write_to(&self, room: &mut [u8]) {
        let (head, rest) = room.split_at_mut(self.head_len);
        let (data, back) = rest.split_at_mut(self.data.len());
        head.copy_from_slice(&self.head[..self.head_len]);
        data.copy_from_slice(self.data);
        back.copy_from_slice(&self.back[..self.back_len]);
    }
}

/// Writes an integer in its shortest encoding, and returns the number of bytes.
#[inline]
fn encode_int(head: &mut [u8; 9], number: i64) -> usize {
    let le = number.to_le_bytes();
    let (first, len) = match number {
        0..=127 => {
            head[0] = le[0];
            return 1;
        }
        -4096..=4095 => {
            head[0] = 0xc0 | le[1] & 0x1f;
            head[1] = le[0];
            return 2;
        }
        -0x8000..=0x7fff => (0xf1, 2),
        -0x80_0000..=0x7f_ffff => (0xf2, 3),
        -0x8000_0000..=0x7fff_ffff => (0xf3, 4),
        _ => (0xf4, 8),
    };
    head[0] = first;
    head[1..=len].copy_from_slice(&le[..len]);
    1 + len
}

/// Writes a string's length, and returns the number of bytes.
#[inline]
fn encode_str_len(head: &mut [u8; 9], len: usize) -> usize {
    match len {
        0..64 => {
            head[0] = 0x80 | len as u8;
            1
        }
        64..4096 => {
            head[0] = 0xe0 | (len >> 8) as u8;
            head[1] = len as u8;
            2
        }
        _ => {
            // Longer strings cannot occur: the whole listpack has at most `BYTES_MAX` bytes.
            let len = u32::try_from(len).expect("strings are shorter than a listpack may be");
            head[0] = 0xf0;
            head[1..5].copy_from_slice(&len.to_le_bytes());
            5
        }
    }
}

/// Checks that `bytes` are a well-formed listpack, by visiting every entry. Calls `each`, which may
/// return a fault, with the offset and value of each element. O(bytes). Reads nothing outside of
/// `bytes`, and never panics.
#[inline]
pub(super) fn validate_each<'b>(
    bytes: &'b [u8],
    mut each: impl FnMut(usize, Item<'b>) -> Result<(), &'static str>,
) -> Result<(), Malformed> {
    let (end, said) = header(bytes)?;
    let (mut at, mut count) = (HEADER_LEN, 0usize);
    while at < end {
        let (element, next) = match short_entry(bytes, at, end) {
            Some(entry) => entry,
            None => other_entry(bytes, at, end)?,
        };
        each(at, element).map_err(|what| Malformed { offset: at, what })?;
        at = next;
        count += 1;
    }
    match said {
        COUNT_UNKNOWN => Ok(()),
        known if usize::from(known) == count => Ok(()),
        _ => Err(Malformed { offset: 4, what: "a listpack's count does not match its entries" }),
    }
}

/// Returns the offset of the end byte, and the number of entries that the header states.
fn header(bytes: &[u8]) -> Result<(usize, u16), Malformed> {
    let fail = |offset, what| Err(Malformed { offset, what });
    let &[a, b, c, d, e, f, .., last] = bytes else {
        return fail(bytes.len(), "a listpack is cut off");
    };
    if u32::from_le_bytes([a, b, c, d]) as usize != bytes.len() {
        return fail(0, "a listpack's length field does not match its size");
    }
    if bytes.len() > super::BYTES_MAX {
        return fail(0, "a listpack exceeds the maximum size");
    }
    let end = bytes.len() - 1;
    if last != END {
        return fail(end, "a listpack has no end byte");
    }
    Ok((end, u16::from_le_bytes([e, f])))
}

/// The most common case: returns the element of a well-formed entry that is a short string, and the
/// offset of the next entry. The back length of such an entry has one byte.
#[inline]
fn short_entry(bytes: &[u8], at: usize, end: usize) -> Option<(Item<'_>, usize)> {
    let first @ SHORT..0xc0 = bytes[at] else { return None };
    let back = at + 1 + usize::from(first & 0x3f);
    let is_whole = back < end && bytes[back] == (first & 0x3f) + 1;
    is_whole.then(|| (Item::Str(&bytes[at + 1..back]), back + 1))
}

/// Like `short_entry`, for any entry.
#[inline(never)]
fn other_entry(bytes: &[u8], at: usize, end: usize) -> Result<(Item<'_>, usize), Malformed> {
    let fail = |offset, what| Err(Malformed { offset, what });
    let Some(len) = encoded_len(&bytes[at..]) else {
        return fail(at, "no listpack entry begins");
    };
    let next = at.saturating_add(len).saturating_add(back_len_size(len));
    if next > end {
        return fail(at, "a listpack entry is cut off");
    }
    if back_len(bytes, next) != Some(len) {
        return fail(next, "a listpack entry's back length does not match its length");
    }
    match item(&bytes[at..next]) {
        Some(element) => Ok((element, next)),
        None => fail(at, "no listpack entry begins"),
    }
}
