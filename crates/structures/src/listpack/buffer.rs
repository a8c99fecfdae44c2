//! The bytes of a listpack: as a vector has them, but with room before them as well, so that neither end
//! has to move the others to grow or to shrink.
//!
//! ```text
//!  |<------------- one allocation -------------->|
//!  +-----------+-----------------------+---------+
//!  | front     | len bytes             |         |
//!  +-----------+-----------------------+---------+
//!              ^ start                           ^ start + room
//! ```
//!
//! Room is found at one end only once it is needed there: the bytes move then, and most of what is free
//! comes to lie at that end. So adding at one end is amortised O(length), whatever end it is.
//!
//! Invariants
//!  1. `start - front` begins an allocation of `front + room` bytes that a `Vec<u8>` of that capacity
//!     made, and which is this buffer's own; a capacity of 0 has none.
//!  2. `len <= room`, and the first `len` bytes behind `start` are initialised.

use super::size_class;
use std::mem::ManuallyDrop;
use std::ops::{Deref, DerefMut};
use std::ptr::NonNull;

/// Of what is free, so much stays at the end where it was not needed: a part of this many.
const LEFT_BEHIND: usize = 4;

/// Has one value, hence 255 that enums around the buffer may use: they need no word of their own.
#[derive(Debug, Clone, Copy)]
#[repr(u8)]
enum Only {
    Value = 0,
}

/// See the head of this file.
pub(super) struct Buffer {
    start: NonNull<u8>,
    len: u32,
    room: u32,
    front: u32,
    _only: Only,
}

// SAFETY: by 1 the bytes belong to the buffer alone.
unsafe impl Send for Buffer {}
// SAFETY: as above; through a shared reference they are only read.
unsafe impl Sync for Buffer {}

impl Buffer {
    /// Takes a vector over. It must have less than 4 GiB.
    pub(super) fn of(mut vector: Vec<u8>) -> Buffer {
        if u32::try_from(vector.capacity()).is_err() {
            vector.shrink_to_fit();
        }
        let room = u32::try_from(vector.capacity()).expect("listpacks stay below 4 GiB");
        let mut vector = ManuallyDrop::new(vector);
        let start = NonNull::new(vector.as_mut_ptr()).expect("vectors have a pointer, or dangle");
        // 1 and 2 are what a vector promises.
        Buffer { start, len: vector.len() as u32, room, front: 0, _only: Only::Value }
    }

    /// The bytes as a vector. O(length) if there is room before them.
    pub(super) fn into_vec(self) -> Vec<u8> {
        let own = ManuallyDrop::new(self);
        let begin = own.begin();
        if own.front > 0 {
            // SAFETY: by 1 and 2 both ranges lie in the allocation, and what is read is initialised.
            unsafe { std::ptr::copy(own.start.as_ptr(), begin, own.len()) };
        }
        // SAFETY: by 1 a vector made the allocation with this capacity, and nobody frees it again,
        // since `own` is not dropped; its first bytes are initialised.
        unsafe { Vec::from_raw_parts(begin, own.len(), own.capacity()) }
    }

    fn begin(&self) -> *mut u8 {
        // SAFETY: by 1 so much of the allocation lies before.
        unsafe { self.start.as_ptr().sub(self.front as usize) }
    }

    #[inline]
    pub(super) fn len(&self) -> usize {
        self.len as usize
    }

    #[inline]
    pub(super) fn capacity(&self) -> usize {
        self.front as usize + self.room as usize
    }

    /// Makes room for `added` bytes behind the others.
    #[inline]
    pub(super) fn reserve(&mut self, added: usize) {
        if added > (self.room - self.len) as usize {
            self.make_room(added, false);
        }
    }

    #[inline]
    fn reserve_front(&mut self, added: usize) {
        if added > self.front as usize {
            self.make_room(added, true);
        }
    }

    /// Moves the bytes within their allocation, or into a larger one, so that `added` more fit at an
    /// end.
    #[cold]
    #[inline(never)]
    fn make_room(&mut self, added: usize, at_front: bool) {
        let own = std::mem::replace(self, Buffer::of(Vec::new()));
        let len = own.len();
        let wanted = len + added;
        // What fits barely would have to be moved again at once.
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
            self.shift(added + free - free / LEFT_BEHIND);
        }
    }

    /// Moves the bytes of a buffer without room before them by so much.
    fn shift(&mut self, by: usize) {
        assert!(self.front == 0 && by <= self.capacity() - self.len());
        let start = self.start.as_ptr();
        // SAFETY: the assertion, 1 and 2: what is read is initialised, what is written lies inside.
        unsafe {
            let to = start.add(by);
            std::ptr::copy(start, to, self.len());
            self.start = NonNull::new_unchecked(to);
        }
        self.front = by as u32;
        self.room -= by as u32;
    }

    /// Puts `parts` behind the first `head` bytes, which move to the front; the others stay.
    #[inline]
    pub(super) fn insert_behind<const N: usize>(&mut self, head: usize, parts: [&[u8]; N]) {
        assert!(head <= self.len());
        let added = parts.iter().map(|part| part.len()).sum();
        self.reserve_front(added);
        // SAFETY: there are `added` bytes of the allocation before `start` now, hence also before what
        // was there behind the head; head and parts together fill the gap and the head's old place,
        // so 2 holds. The parts lie elsewhere, as `self` is borrowed for a change.
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
        self.front -= added as u32;
        self.room += added as u32;
        self.len += added as u32;
    }

    /// Takes the `count` bytes behind the first `head` out; these move, the others stay.
    #[inline]
    pub(super) fn remove_behind(&mut self, head: usize, count: usize) {
        assert!(head + count <= self.len());
        // SAFETY: the assertion: both ranges lie within the bytes.
        unsafe {
            let start = self.start.as_ptr().add(count);
            std::ptr::copy(self.start.as_ptr(), start, head);
            self.start = NonNull::new_unchecked(start);
        }
        self.front += count as u32;
        self.room -= count as u32;
        self.len -= count as u32;
    }

    /// Adds `parts` behind the last byte.
    #[inline]
    pub(super) fn append<const N: usize>(&mut self, parts: [&[u8]; N]) {
        let added = parts.iter().map(|part| part.len()).sum();
        self.reserve(added);
        // SAFETY: there is room for `added` bytes behind `len`, which the parts fill; they lie
        // elsewhere, as `self` is borrowed for a change.
        unsafe {
            let mut to = self.start.as_ptr().add(self.len());
            for part in parts {
                std::ptr::copy_nonoverlapping(part.as_ptr(), to, part.len());
                to = to.add(part.len());
            }
        }
        self.len += added as u32;
    }

    /// Adds `added` zeros behind the last byte.
    pub(super) fn append_zeros(&mut self, added: usize) {
        self.reserve(added);
        // SAFETY: there is room for so many bytes behind `len`.
        unsafe { self.start.as_ptr().add(self.len()).write_bytes(0, added) };
        self.len += added as u32;
    }

    /// Leaves the first `len` bytes.
    #[inline]
    pub(super) fn truncate(&mut self, len: usize) {
        self.len = self.len.min(u32::try_from(len).unwrap_or(u32::MAX));
    }

    /// Gives memory back until `capacity` bytes are left, or what the bytes need.
    pub(super) fn shrink_to(&mut self, capacity: usize) {
        let mut vector = std::mem::replace(self, Buffer::of(Vec::new())).into_vec();
        vector.shrink_to(capacity);
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
        Buffer::of(self.to_vec())
    }
}

impl Drop for Buffer {
    fn drop(&mut self) {
        // SAFETY: by 1 a vector made the allocation with this capacity; nobody uses it any more.
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
                    buffer.insert_behind(4, [b"<", &bytes, b">"]);
                    model.splice(4..4, [b"<", &bytes[..], b">"].concat());
                }
                2 | 3 => {
                    buffer.append([&bytes[..], b"!"]);
                    model.extend_from_slice(&[&bytes[..], b"!"].concat());
                }
                4 => {
                    let count = below(60).min(model.len() - 4);
                    buffer.remove_behind(4, count);
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
    fn it_costs_an_enum_around_it_no_word() {
        enum Around {
            _Buffer(Buffer),
            _Other(Box<u8>),
            _Another(Box<u8>),
            _Nothing,
        }
        assert_eq!(size_of::<Buffer>(), size_of::<Vec<u8>>());
        assert_eq!(size_of::<Around>(), size_of::<Buffer>());
    }

    #[test]
    fn adding_at_one_end_moves_the_others_seldom() {
        for at_front in [true, false] {
            let mut buffer = Buffer::of(b"head".to_vec());
            let mut moves = 0;
            for _ in 0..if cfg!(miri) { 100 } else { 10_000 } {
                let last = buffer.as_ptr_range().end;
                let first = buffer.as_ptr();
                if at_front {
                    buffer.insert_behind(4, [b"text"]);
                    moves += usize::from(buffer.as_ptr_range().end != last);
                } else {
                    buffer.append([b"text"]);
                    moves += usize::from(buffer.as_ptr() != first);
                }
            }
            assert!(moves < 300, "{moves} moves");
        }
    }
}
