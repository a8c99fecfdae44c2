//! Where the parts of an entry stand in its allocation: the header, what follows from it, and the
//! size class that is the capacity. The picture and the invariants are in the parent module.

use std::sync::atomic::AtomicU32;

pub(super) const HEADER: usize = 8;
pub(super) const WORD_LEN: usize = 8;
pub(super) const ALIGN: usize = 8;
pub(super) const LONG_KEY: usize = 255;

/// Flag bits of the header.
pub(super) const DEADLINE: u8 = 1;
pub(super) const WORD: u8 = 2;
pub(super) const BOXED: u8 = 4;

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
        HEADER
            + usize::from(self.flags & DEADLINE) * WORD_LEN
            + usize::from(self.flags & WORD) * (WORD_LEN / WORD as usize)
    }

    /// Where the integer or the box pointer stands.
    #[inline(always)]
    pub(super) fn word_at(self) -> usize {
        HEADER + usize::from(self.flags & DEADLINE) * WORD_LEN
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
