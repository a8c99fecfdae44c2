//! An array of buckets in one word: the address, and the bucket count as mantissa and exponent
//! above it.
//!
//! ```text
//!  63     59 58         48 47                                  0
//! +---------+-------------+-------------------------------------+
//! | exponent|  mantissa   | address of the first bucket         |   count = mantissa << exponent
//! +---------+-------------+-------------------------------------+
//! ```
//!
//! One word, so that a prefetching thread always reads an address together with the count that
//! belongs to it. Bucket `i` of `count` holds the positions p with `p * count >> 24 == i`. Any
//! count works, and buckets are ordered by position.

use super::bucket::{ADDRESS_MASK, Bucket, Position};
use std::alloc::{Layout, alloc_zeroed, handle_alloc_error};

const MANTISSA_SHIFT: u32 = 48;
const MANTISSA_BITS: u32 = 11;
const EXPONENT_SHIFT: u32 = MANTISSA_SHIFT + MANTISSA_BITS;
/// Maximum number of buckets: one per position. Beyond that, only chains grow.
pub(super) const COUNT_MAX: u64 = Position::END as u64;

/// Amount of a drained array that is released at a time: 64 pages of 4 KiB.
const RELEASED_CHUNK_BYTES: usize = 256 << 10;
/// Arrays with fewer chunks are small enough to be freed as a whole.
const RELEASED_CHUNKS_MIN: u64 = 4;

/// Notifies the system that the pages inside the chunk at `start` are no longer needed.
#[cfg(all(target_os = "linux", not(miri)))]
fn release_pages(start: *mut u8) {
    // Pages have at most 64 KiB. Parts of pages at the edges of the chunk stay until the array is
    // freed.
    const PAGE_MAX: usize = 64 << 10;
    let skipped = start.align_offset(PAGE_MAX);
    let length = (RELEASED_CHUNK_BYTES - skipped) / PAGE_MAX * PAGE_MAX;
    // SAFETY: the range is inside a live array of this table (table.rs, 1), private anonymous
    // memory of the allocator. Its buckets are drained and stay so (2), so dropping the pages
    // changes no byte that any thread, including prefetching threads, can read. Failure is
    // harmless.
    unsafe { libc::madvise(start.wrapping_add(skipped).cast(), length, libc::MADV_DONTNEED) };
}

#[cfg(not(all(target_os = "linux", not(miri))))]
fn release_pages(_start: *mut u8) {}

/// A copy of the word; null is the array without buckets. The holder is responsible for the
/// lifetime of the buckets (`table.rs`, invariants 1 and 4).
#[derive(Clone, Copy)]
pub(super) struct Array(pub(super) *mut u8);

impl Array {
    /// No buckets.
    pub(super) const NULL: Self = Self(std::ptr::null_mut());

    /// Allocates `count` empty buckets; `count` is a value of `size_up`.
    pub(super) fn allocate(count: u64) -> Self {
        let layout = Self::layout(count);
        // SAFETY: count is at least 1, so the layout is not empty.
        let start = unsafe { alloc_zeroed(layout) };
        if start.is_null() {
            handle_alloc_error(layout);
        }
        assert_eq!(start.addr() & !ADDRESS_MASK, 0, "user addresses have 48 bits");
        let exponent = (64 - count.leading_zeros()).saturating_sub(MANTISSA_BITS);
        let packed = u64::from(exponent) << MANTISSA_BITS | count >> exponent;
        let array = Self(start.map_addr(|address| address | (packed as usize) << MANTISSA_SHIFT));
        assert_eq!(array.count(), count, "the count has more bits than the mantissa");
        array
    }

    #[inline(always)]
    pub(super) fn is_null(self) -> bool {
        self.0.is_null()
    }

    #[inline(always)]
    pub(super) fn count(self) -> u64 {
        let word = self.0.addr() as u64;
        (word >> MANTISSA_SHIFT & ((1 << MANTISSA_BITS) - 1)) << (word >> EXPONENT_SHIFT)
    }

    #[inline(always)]
    pub(super) fn start(self) -> *mut u8 {
        self.0.map_addr(|address| address & ADDRESS_MASK)
    }

    /// Returns the index of the bucket of `position`, which is below `count` unless the array is
    /// null.
    #[inline(always)]
    pub(super) fn index(self, position: Position) -> u64 {
        (u64::from(position.0) * self.count()) >> 24
    }

    /// Returns the lowest position of bucket `index`; `Position::END` for `index == count`.
    pub(super) fn first_position(self, index: u64) -> u32 {
        (index << 24).div_ceil(self.count()) as u32
    }

    /// Returns the address of bucket `index` without reading anything; near null for the null
    /// array.
    #[inline(always)]
    pub(super) fn address(self, index: u64) -> *const Bucket {
        self.start().cast::<Bucket>().wrapping_add(index as usize)
    }

    /// # Safety
    /// The array is live for 'a and `index` is below its count.
    #[inline(always)]
    pub(super) unsafe fn bucket<'a>(self, index: u64) -> &'a Bucket {
        debug_assert!(index < self.count());
        // SAFETY: the caller's promise; buckets are atomics, so shared references are sufficient.
        unsafe { &*self.address(index) }
    }

    /// Releases the memory of the chunks before bucket `end`, except those that an earlier call up
    /// to bucket `begin` has released. Their buckets are empty and therefore zero, and still read
    /// as zero afterwards. Without this, the old array would be freed at the end in one call that
    /// takes milliseconds.
    pub(super) fn release_drained(self, begin: u64, end: u64) {
        const BUCKETS_PER_CHUNK: u64 = (RELEASED_CHUNK_BYTES / size_of::<Bucket>()) as u64;
        if self.count() < RELEASED_CHUNKS_MIN * BUCKETS_PER_CHUNK {
            return;
        }
        let (first, last) = (begin / BUCKETS_PER_CHUNK, end / BUCKETS_PER_CHUNK);
        for chunk in first..last {
            let start = self.start().wrapping_add(chunk as usize * RELEASED_CHUNK_BYTES);
            release_pages(start);
        }
    }

    pub(super) fn layout(count: u64) -> Layout {
        Layout::array::<Bucket>(count as usize)
            .expect("COUNT_MAX buckets are one gigabyte, far below isize::MAX")
    }
}

/// Returns the lowest number that is at least `count` and either is 1 to 3 or has the form (4 to 7)
/// << e. These numbers match the size classes of jemalloc, so that no array wastes memory of its
/// class.
pub(super) fn size_up(count: u64) -> u64 {
    let count = count.clamp(1, COUNT_MAX);
    if count <= 8 {
        return count;
    }
    let spacing = 1 << ((count - 1).ilog2() - 2);
    count.next_multiple_of(spacing)
}

#[cfg(test)]
mod tests {
    use super::{COUNT_MAX, size_up};

    #[test]
    fn counts_are_jemalloc_size_classes() {
        let mut count = 1;
        let mut steps = vec![];
        while count < 64 {
            steps.push(count);
            count = size_up(count + 1);
        }
        assert_eq!(steps, [1, 2, 3, 4, 5, 6, 7, 8, 10, 12, 14, 16, 20, 24, 28, 32, 40, 48, 56]);
        assert_eq!(size_up(u64::MAX), COUNT_MAX);
    }
}
