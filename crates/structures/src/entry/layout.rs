//! The layout of an entry within its allocation: the header, the offsets that follow from it, and
//! the size class that is the capacity. The diagram and the invariants are in the parent module.

use std::sync::atomic::AtomicU32;

pub(super) const HEADER: usize = 8;
pub(super) const ALIGN: usize = 8;
pub(super) const LONG_KEY: usize = 255;
const WORD: usize = 8;
/// Room for an object, even if the object is smaller.
pub(super) const OBJECT_LEN: usize = 3 * WORD;

/// Maximum offset of a key, except for a long key.
pub(crate) const KEY_AT_MAX: usize = HEADER + WORD + OBJECT_LEN;

/// Flags of the header. The lowest bit says that there is a deadline, which takes one word. The
/// bits above encode the form of the value as the number of words that it takes before the key. The
/// flags therefore give the offset of the key without a branch. This is why all objects have the
/// same room.
pub(super) const DEADLINE: u8 = 1;
pub(super) const INT: u8 = 1 << 1;
pub(super) const OBJECT: u8 = ((OBJECT_LEN / WORD) as u8) << 1;
/// The bits of the form. If none is set, the value is inline bytes.
pub(super) const FORM: u8 = !DEADLINE;
const _: () = assert!(INT != OBJECT && OBJECT_LEN.is_multiple_of(WORD));

/// Returns the real size of an allocation of `bytes` bytes: the size classes of jemalloc, which are
/// 8, multiples of 16 up to 128, then four per doubling.
#[inline]
#[must_use]
pub const fn size_class(bytes: usize) -> usize {
    if bytes <= 8 {
        8
    } else if bytes <= 128 {
        (bytes + 15) & !15
    } else {
        let spacing = 1usize << ((bytes - 1).ilog2() - 2);
        (bytes + spacing - 1) & !(spacing - 1)
    }
}

#[repr(C, align(8))]
pub(super) struct Header {
    /// The kind in the low byte, the access clock above.
    pub(super) kind_clock: AtomicU32,
    pub(super) shape: Shape,
}

/// The header fields that determine the layout: four bytes that are read as one word.
#[repr(C, align(4))]
#[derive(Clone, Copy)]
pub(super) struct Shape {
    pub(super) flags: u8,
    pub(super) key_len: u8,
    pub(super) inline_len: u16,
}

impl Shape {
    /// Returns the number of bytes before the key, without the long key length.
    #[inline(always)]
    pub(super) fn prefix(self) -> usize {
        self.form_at() + self.form_len()
    }

    /// Returns the offset of the integer or the object.
    #[inline(always)]
    pub(super) fn form_at(self) -> usize {
        HEADER + usize::from(self.flags & DEADLINE) * WORD
    }

    /// Returns the size of the integer or of the room for an object; 0 for inline bytes.
    #[inline(always)]
    pub(super) fn form_len(self) -> usize {
        usize::from(self.flags >> 1) * WORD
    }
}

/// The offsets that follow from a shape and the full key length.
#[derive(Clone, Copy)]
pub(super) struct Geometry {
    pub(super) key_at: usize,
    pub(super) key_len: usize,
    pub(super) total: usize,
}

impl Geometry {
    #[inline(always)]
    pub(super) fn new(shape: Shape, key_len: usize) -> Self {
        let long = if shape.key_len as usize == LONG_KEY { 4 } else { 0 };
        let key_at = shape.prefix() + long;
        Self { key_at, key_len, total: key_at + key_len + usize::from(shape.inline_len) }
    }

    #[inline(always)]
    pub(super) fn value_at(self) -> usize {
        self.key_at + self.key_len
    }

    #[inline(always)]
    pub(super) fn capacity(self) -> usize {
        size_class(self.total)
    }
}
