//! The buffer of a listpack: like a vector of bytes, but with free room before the bytes as well,
//! so that it can grow or shrink at either end without moving the other bytes.
//!
//! ```text
//!  |<------------- one allocation -------------->|
//!  +-----------+-----------------------+---------+
//!  | front     | len bytes             |         |
//!  +-----------+-----------------------+---------+
//!              ^ start                           ^ start + room
//! ```
//!
//! The buffer makes room at one end only when it is needed there. The bytes then move so that most
//! of the free room is at that end. Adding and removing at either end is therefore amortised
//! O(length of the change). At most [`FRONT_MAX`] bytes are free at the front, so one move makes
//! room for at most that many.
//!
//! The struct takes 16 bytes and has a niche for an enum around it, because the entry of every
//! short list, hash and sorted set contains one. This is why the capacity is stored as the number
//! of its size class.
//!
//! Invariants
//!  1. `start - front` is the start of an allocation of `class.capacity()` bytes that this buffer
//!     owns, with the layout of a vector of bytes. A buffer with capacity 0 has no allocation.
//!  2. `front + len <= class.capacity()`, and the first `len` bytes from `start` on are initialized.

use std::alloc::{Layout, handle_alloc_error, realloc};
use std::mem::ManuallyDrop;
use std::ops::{Deref, DerefMut};
use std::ptr::NonNull;

/// When the bytes move, 1/`SHARE_AT_OTHER_END` of the free room stays at the other end.
const SHARE_AT_OTHER_END: usize = 4;
/// Maximum free room before the bytes. Few listpacks are this long.
const FRONT_MAX: usize = u16::MAX as usize;
/// The largest size class that fits in 32 bits.
const MOST: usize = 7 << 29;

/// The number of a size class: 0, multiples of 16 up to 128, then four per doubling. Common
/// allocators use these classes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Class(u8);

impl Class {
    /// Number of classes that are multiples of 16.
    const SIXTEENS: u8 = 8;

    /// Returns the lowest class with room for `bytes`, which must be less than 4 GiB.
    #[inline]
    fn of(bytes: usize) -> Class {
        if bytes <= 16 * usize::from(Self::SIXTEENS) {
            return Class(bytes.div_ceil(16) as u8);
        }
        // The doubling, and how many quarters of it are needed: 1 to 4.
        let doubling = (bytes - 1).ilog2() - 7;
        let quarters = (bytes - (128 << doubling)).div_ceil(32 << doubling) as u32;
        Class((doubling * 4 + quarters) as u8 + Self::SIXTEENS)
    }

    #[inline]
    fn capacity(self) -> usize {
        if self.0 <= Self::SIXTEENS {
            return 16 * usize::from(self.0);
        }
        let step = u32::from(self.0 - Self::SIXTEENS - 1);
        ((5 + step as usize % 4) * 32) << (step / 4)
    }
}

/// Returns the size that common allocators allocate for `bytes`, which must be less than 4 GiB.
#[inline]
pub(super) fn size_class(bytes: usize) -> usize {
    Class::of(bytes).capacity()
}

/// A type with one value, so that enums around the buffer have 255 niche values and need no extra
/// word.
#[derive(Debug, Clone, Copy)]
#[repr(u8)]
enum Only {
    Value = 0,
}

/// See the module documentation.
pub(super) struct Buffer {
    start: NonNull<u8>,
    len: u32,
    front: u16,
    class: Class,
    _only: Only,
}

// SAFETY: by 1 the bytes belong to the buffer alone.
unsafe impl Send for Buffer {}
// SAFETY: as above; through a shared reference they are only read.
unsafe impl Sync for Buffer {}

impl Buffer {
    /// Creates a buffer from a vector. O(length) if its capacity is not a size class. Panics if the
    /// vector needs more than [`MOST`] bytes, which is far beyond any listpack.
    pub(super) fn of(mut vector: Vec<u8>) -> Buffer {
        if vector.capacity() > MOST {
            vector.shrink_to_fit();
        }
        let had = vector.capacity();
        assert!(had <= MOST, "buffers of listpacks stay below 3.5 GiB");
        let class = Class::of(had);
        let mut vector = ManuallyDrop::new(vector);
        let mut start =
            NonNull::new(vector.as_mut_ptr()).expect("vectors have a pointer, or dangle");
        let capacity = class.capacity();
        if capacity != had {
            let layout = |bytes| Layout::array::<u8>(bytes).expect("at most MOST bytes");
            // SAFETY: the vector's allocation, with the layout that a vector guarantees. It is not
            // empty, since the capacity of an empty vector is a class. The vector is not dropped.
            let moved = unsafe { realloc(start.as_ptr(), layout(had), capacity) };
            start = NonNull::new(moved).unwrap_or_else(|| handle_alloc_error(layout(capacity)));
        }
        // 1: the allocation now has the class's capacity. 2 is a guarantee of vectors.
        Buffer { start, len: vector.len() as u32, front: 0, class, _only: Only::Value }
    }

    /// Returns the bytes as a vector. O(length) if there is room before them.
    pub(super) fn into_vec(self) -> Vec<u8> {
        let own = ManuallyDrop::new(self);
        let begin = own.begin();
        if own.front > 0 {
            // SAFETY: by 1 and 2 both ranges are in the allocation,
            // and what is read is initialized.
            unsafe { std::ptr::copy(own.start.as_ptr(), begin, own.len()) };
        }
        // SAFETY: by 1 the allocation is that of a vector of this capacity, and nothing frees it
        // again, since `own` is not dropped; its first bytes are initialized.
        unsafe { Vec::from_raw_parts(begin, own.len(), own.capacity()) }
    }

    fn begin(&self) -> *mut u8 {
        // SAFETY: by 1 this many bytes of the allocation are before `start`.
        unsafe { self.start.as_ptr().sub(usize::from(self.front)) }
    }

    #[inline]
    pub(super) fn len(&self) -> usize {
        self.len as usize
    }

    #[inline]
    pub(super) fn capacity(&self) -> usize {
        self.class.capacity()
    }

    /// Returns the capacity from the first byte on, including used bytes.
    #[inline]
    fn room(&self) -> usize {
        self.capacity() - usize::from(self.front)
    }

    /// Makes room for `added` bytes after the existing bytes.
    #[inline]
    pub(super) fn reserve(&mut self, added: usize) {
        if added > self.room() - self.len() {
            self.make_room(added, false);
        }
    }

    /// Makes room for `added` bytes, at most [`FRONT_MAX`], in front of the existing bytes.
    #[inline]
    fn reserve_front(&mut self, added: usize) {
        if added > usize::from(self.front) {
            self.make_room(added, true);
        }
    }

    /// Moves the bytes within their allocation, or into a larger one, so that `added` more bytes
    /// fit at one end.
    #[cold]
    #[inline(never)]
    fn make_room(&mut self, added: usize, at_front: bool) {
        let wanted = self.len() + added;
        assert!(wanted <= MOST, "buffers of listpacks stay below 3.5 GiB");
        let own = std::mem::replace(self, Buffer::of(Vec::new()));
        let len = own.len();
        // Bytes that barely fit would soon have to be moved again.
        let fits = own.capacity() >= wanted + wanted / 64;
        let mut vector = own.into_vec();
        if !fits && at_front {
            let mut larger = Vec::with_capacity(size_class(wanted));
            larger.extend_from_slice(&vector);
            vector = larger;
        } else if !fits && vector.capacity() < wanted {
            vector.reserve_exact(size_class(wanted) - len);
        }
        *self = Buffer::of(vector);
        if at_front {
            let free = self.capacity() - wanted;
            self.shift((added + free - free / SHARE_AT_OTHER_END).min(FRONT_MAX));
        }
    }

    /// Moves the bytes by `by` bytes, in a buffer that has no free room before them.
    fn shift(&mut self, by: usize) {
        assert!(self.front == 0 && by <= self.capacity() - self.len() && by <= FRONT_MAX);
        let start = self.start.as_ptr();
        // SAFETY: the assertion, 1 and 2: what is read is initialized, what is written is inside.
        unsafe {
            let to = start.add(by);
            std::ptr::copy(start, to, self.len());
            self.start = NonNull::new_unchecked(to);
        }
        self.front = by as u16;
    }

    /// Inserts `parts` after the first `head` bytes, which move toward the front. The other bytes
    /// stay where they are, unless the parts are longer than the maximum free room at the front.
    #[inline]
    pub(super) fn insert_after_head<const N: usize>(&mut self, head: usize, parts: [&[u8]; N]) {
        assert!(head <= self.len());
        let added = parts.iter().map(|part| part.len()).sum();
        if added > FRONT_MAX {
            // A copy, so that the array of the common case can stay in registers.
            let parts = parts.map(|part| part);
            self.insert_moving_others(head, &parts, added);
            return;
        }
        self.reserve_front(added);
        // SAFETY: `added` bytes of the allocation are before `start` now, and so also before the
        // bytes that followed the head. Head and parts together fill the gap and the head's old
        // bytes, so 2 holds. The parts are elsewhere in memory, because `self` is borrowed mutably.
        unsafe {
            let start = self.start.as_ptr().sub(added);
            std::ptr::copy(self.start.as_ptr(), start, head);
            let mut to = start.add(head);
            for part in parts {
                std::ptr::copy_nonoverlapping(part.as_ptr(), to, part.len());
                to = to.add(part.len());
            }
            self.start = NonNull::new_unchecked(start);
        }
        self.front -= added as u16;
        self.len += added as u32;
    }

    #[cold]
    #[inline(never)]
    fn insert_moving_others(&mut self, head: usize, parts: &[&[u8]], added: usize) {
        let rest = self.len() - head;
        self.append_zeros(added);
        let (_, after) = self.split_at_mut(head);
        after.copy_within(..rest, added);
        let mut to = after;
        for part in parts {
            let (place, left) = to.split_at_mut(part.len());
            place.copy_from_slice(part);
            to = left;
        }
    }

    /// Removes the `count` bytes after the first `head` bytes. The head moves and the others stay,
    /// unless that would exceed the maximum free room at the front.
    #[inline]
    pub(super) fn remove_after_head(&mut self, head: usize, count: usize) {
        assert!(head <= self.len() && count <= self.len() - head);
        if count > FRONT_MAX - usize::from(self.front) {
            self.remove_moving_others(head, count);
            return;
        }
        // SAFETY: the assertion: both ranges are within the bytes.
        unsafe {
            let start = self.start.as_ptr().add(count);
            std::ptr::copy(self.start.as_ptr(), start, head);
            self.start = NonNull::new_unchecked(start);
        }
        self.front += count as u16;
        self.len -= count as u32;
    }

    /// Moves all free room to the end, so that the next move is as far away as possible.
    #[cold]
    #[inline(never)]
    fn remove_moving_others(&mut self, head: usize, count: usize) {
        let own = std::mem::replace(self, Buffer::of(Vec::new()));
        let mut vector = own.into_vec();
        vector.drain(head..head + count);
        *self = Buffer::of(vector);
    }

    /// Appends `parts`.
    #[inline]
    pub(super) fn append<const N: usize>(&mut self, parts: [&[u8]; N]) {
        let added = parts.iter().map(|part| part.len()).sum();
        self.reserve(added);
        // SAFETY: there is room for `added` bytes after `len`, which the parts fill. The parts are
        // elsewhere in memory, because `self` is borrowed mutably.
        unsafe {
            let mut to = self.start.as_ptr().add(self.len());
            for part in parts {
                std::ptr::copy_nonoverlapping(part.as_ptr(), to, part.len());
                to = to.add(part.len());
            }
        }
        self.len += added as u32;
    }

    /// Appends `added` zeros.
    pub(super) fn append_zeros(&mut self, added: usize) {
        self.reserve(added);
        // SAFETY: there is room for `added` bytes after `len`.
        unsafe { self.start.as_ptr().add(self.len()).write_bytes(0, added) };
        self.len += added as u32;
    }

    /// Keeps only the first `len` bytes.
    #[inline]
    pub(super) fn truncate(&mut self, len: usize) {
        self.len = self.len.min(u32::try_from(len).unwrap_or(u32::MAX));
    }

    /// Frees memory until `capacity` bytes are left, or as many as the bytes need.
    pub(super) fn shrink_to(&mut self, capacity: usize) {
        let mut vector = std::mem::replace(self, Buffer::of(Vec::new())).into_vec();
        vector.shrink_to(size_class(capacity.max(vector.len())));
        *self = Buffer::of(vector);
    }
}

impl Deref for Buffer {
    type Target = [u8];

    #[inline(always)]
    fn deref(&self) -> &[u8] {
        // SAFETY: 2.
        unsafe { std::slice::from_raw_parts(self.start.as_ptr(), self.len as usize) }
    }
}

impl DerefMut for Buffer {
    #[inline(always)]
    fn deref_mut(&mut self) -> &mut [u8] {
        // SAFETY: 2, and the bytes are the buffer's own.
        unsafe { std::slice::from_raw_parts_mut(self.start.as_ptr(), self.len as usize) }
    }
}

impl Clone for Buffer {
    fn clone(&self) -> Buffer {
        let mut copy = Vec::with_capacity(size_class(self.len()));
        copy.extend_from_slice(self);
        Buffer::of(copy)
    }
}

impl Drop for Buffer {
    fn drop(&mut self) {
        // SAFETY: by 1 the allocation is that of a vector of this capacity; nothing uses it
        // afterwards.
        drop(unsafe { Vec::from_raw_parts(self.begin(), 0, self.capacity()) });
    }
}

impl std::fmt::Debug for Buffer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        (**self).fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changes_at_both_ends_agree_with_a_vector() {
        let mut state = 3u64;
        let mut below = |bound: usize| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (state >> 33) as usize % bound
        };
        let (mut buffer, mut model) = (Buffer::of(b"head".to_vec()), b"head".to_vec());
        for step in 0..if cfg!(miri) { 300 } else { 30_000 } {
            let bytes = vec![step as u8; below(40)];
            match below(7) {
                0 | 1 => {
                    buffer.insert_after_head(4, [b"<", &bytes, b">"]);
                    model.splice(4..4, [b"<", &bytes[..], b">"].concat());
                }
                2 | 3 => {
                    buffer.append([&bytes[..], b"!"]);
                    model.extend_from_slice(&[&bytes[..], b"!"].concat());
                }
                4 => {
                    let count = below(60).min(model.len() - 4);
                    buffer.remove_after_head(4, count);
                    model.drain(4..4 + count);
                }
                5 => {
                    let len = model.len() - below(60).min(model.len() - 4);
                    buffer.truncate(len);
                    model.truncate(len);
                    buffer.append_zeros(1);
                    model.push(0);
                }
                _ if below(20) == 0 => {
                    buffer.shrink_to(model.len() + below(20));
                    buffer = Buffer::of(buffer.clone().into_vec());
                }
                _ => {
                    let at = below(model.len());
                    buffer[at] ^= 1;
                    model[at] ^= 1;
                }
            }
            assert_eq!(*buffer, *model);
        }
        assert_eq!(buffer.into_vec(), model);
    }

    #[test]
    fn an_enum_around_a_buffer_takes_no_extra_word() {
        enum Around {
            _Buffer(Buffer),
            _Other(Box<u8>),
            _Another(Box<u8>),
            _Nothing,
        }
        assert_eq!(size_of::<Buffer>(), 16);
        assert_eq!(size_of::<Around>(), size_of::<Buffer>());
    }

    #[test]
    fn size_classes_are_those_of_entries_from_16_bytes_on() {
        let all = (0..5000)
            .chain((13..32).flat_map(|bits| [(1 << bits) - 1, 1 << bits, (1 << bits) + 1]));
        for bytes in all.chain([u32::MAX as usize]) {
            let expected = if bytes == 0 { 0 } else { crate::entry::size_class(bytes.max(9)) };
            assert_eq!(size_class(bytes), expected, "{bytes}");
        }
    }

    #[test]
    fn large_insertions_and_deletions_work_at_every_position() {
        let long = vec![7; FRONT_MAX + 1];
        let half = vec![9; FRONT_MAX / 2 + 1];
        for head in [0, 2, 4] {
            let (mut buffer, mut model) = (Buffer::of(b"head".to_vec()), b"head".to_vec());
            for bytes in [&long, &half, &half, &half, &long] {
                buffer.insert_after_head(head, [b"<", bytes, b">"]);
                model.splice(head..head, [b"<", &bytes[..], b">"].concat());
                assert_eq!(*buffer, *model);
            }
            for bytes in [&long, &half, &half, &half, &long] {
                buffer.remove_after_head(head, bytes.len() + 2);
                model.drain(head..head + bytes.len() + 2);
                assert_eq!(*buffer, *model);
            }
            assert_eq!(*buffer, *b"head");
        }
    }

    #[test]
    fn adding_at_one_end_rarely_moves_the_other_bytes() {
        for at_front in [true, false] {
            let mut buffer = Buffer::of(b"head".to_vec());
            let mut moves = 0;
            for _ in 0..if cfg!(miri) { 100 } else { 10_000 } {
                let last = buffer.as_ptr_range().end;
                let first = buffer.as_ptr();
                if at_front {
                    buffer.insert_after_head(4, [b"text"]);
                    moves += usize::from(buffer.as_ptr_range().end != last);
                } else {
                    buffer.append([b"text"]);
                    moves += usize::from(buffer.as_ptr() != first);
                }
            }
            assert!(moves < 300, "{moves} moves");
        }
    }

    #[test]
    fn removing_at_the_front_of_a_long_buffer_rarely_moves_the_other_bytes() {
        let (long, each) = if cfg!(miri) { (140_000, 9_000) } else { (1_000_000, 100) };
        let mut buffer = Buffer::of(vec![5; long]);
        let mut moves = 0;
        while buffer.len() > each {
            let last = buffer.as_ptr_range().end;
            buffer.remove_after_head(4, each - 4);
            moves += usize::from(buffer.as_ptr_range().end != last);
        }
        assert!(moves <= long / FRONT_MAX + 1, "{moves} moves");
    }
}
