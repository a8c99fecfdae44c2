//! Where the parts of an entry stand in its allocation: the header, what follows from it, and the
//! size class that is the capacity. The picture and the invariants are in the parent module.

use std::sync::atomic::AtomicU32;

pub(super) const HEADER: usize = 8;
pub(super) const ALIGN: usize = 8;
pub(super) const LONG_KEY: usize = 255;
const WORD: usize = 8;
/// Room for an object, whatever it takes of it.
pub(super) const OBJECT_LEN: usize = 3 * WORD;

/// Where a key begins at most, unless it is a long one.
pub(crate) const KEY_AT_MAX: usize = HEADER + WORD + OBJECT_LEN;

/// Flags of the header: whether there is a deadline, one word, and above it the value's form, as
/// the number of words that it takes before the key. So the flags say where the key is without a
/// branch; it is why all objects have the same room.
pub(super) const DEADLINE: u8 = 1;
pub(super) const INT: u8 = 1 << 1;
pub(super) const OBJECT: u8 = ((OBJECT_LEN / WORD) as u8) << 1;
/// The bits of the form; without any of them the value is inline bytes.
pub(super) const FORM: u8 = !DEADLINE;
const _: () = assert!(INT != OBJECT && OBJECT_LEN.is_multiple_of(WORD));

/// The size an allocation of `bytes` really takes: the classes of jemalloc, which are 8, multiples
/// of 16 up to 128, then four per doubling.
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
    /// Kind in the low byte, access clock above.
    pub(super) kind_clock: AtomicU32,
    pub(super) shape: Shape,
}

/// What decides the layout; four bytes read as one.
#[repr(C, align(4))]
#[derive(Clone, Copy)]
pub(super) struct Shape {
    pub(super) flags: u8,
    pub(super) key_len: u8,
    pub(super) inline_len: u16,
}

impl Shape {
    /// Bytes before the key, without the long key length.
    #[inline(always)]
    pub(super) fn prefix(self) -> usize {
        self.form_at() + self.form_len()
    }

    /// Where the integer or the object stands.
    #[inline(always)]
    pub(super) fn form_at(self) -> usize {
        HEADER + usize::from(self.flags & DEADLINE) * WORD
    }

    /// Bytes of the integer or of the room for an object; 0 for inline bytes.
    #[inline(always)]
    pub(super) fn form_len(self) -> usize {
        usize::from(self.flags >> 1) * WORD
    }
}

/// Offsets that follow from a shape and the true key length.
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
