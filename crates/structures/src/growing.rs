//! Long byte strings that grow without being copied. Each has a memory mapping of its own. If the
//! mapping has to move, the kernel moves its pages, not the bytes. The mapping is larger than its
//! content, but the kernel backs only written pages with memory.
//!
//! On systems without `mremap` (all except Linux) and under Miri, no such string can be created,
//! and the caller keeps its bytes in a `Vec`.
//!
//! Invariants (SAFETY notes cite them)
//!  1. `start` is the beginning of a private anonymous mapping of `mapped` bytes, readable and
//!     writable, which belongs to this value alone and lasts as long as it does.
//!  2. `len <= mapped`; all of the mapping is initialized, as the kernel fills
//!     new pages with zeros.

use crate::alloc::count_outside;
use std::ops::Deref;
use std::ptr::NonNull;

/// Memory is counted in pages of this size, the smallest of any system.
const PAGE: usize = 4096;
/// From this length on, the kernel may use huge pages, because then at most an eighth of the memory
/// is beyond the end.
const HUGE_MIN: usize = 16 << 20;

/// A byte string in a mapping of its own.
#[derive(Debug)]
pub struct GrowingBytes {
    start: NonNull<u8>,
    len: usize,
    mapped: usize,
}

impl GrowingBytes {
    /// Copies `bytes` into a new mapping. `None` if the system refuses the memory. O(bytes).
    #[must_use]
    pub fn new(bytes: &[u8]) -> Option<GrowingBytes> {
        let mapped = bytes.len().checked_mul(2)?.max(1).checked_next_multiple_of(PAGE)?;
        let start = system::map(mapped)?;
        let mut new = GrowingBytes { start, len: 0, mapped };
        new.fill(bytes);
        Some(new)
    }

    /// Appends bytes. Returns false, with nothing appended, if the system refuses the memory.
    /// O(bytes), plus O(length / page size) if the mapping moves.
    #[must_use]
    pub fn append(&mut self, bytes: &[u8]) -> bool {
        let Some(len) = self.len.checked_add(bytes.len()) else { return false };
        if len > self.mapped {
            let wanted = len.checked_mul(2).and_then(|twice| twice.checked_next_multiple_of(PAGE));
            let Some((wanted, start)) = wanted
                .and_then(|wanted| Some((wanted, system::remap(self.start, self.mapped, wanted)?)))
            else {
                return false;
            };
            (self.start, self.mapped) = (start, wanted);
        }
        let is_first_time = self.len < HUGE_MIN && len >= HUGE_MIN;
        self.fill(bytes);
        if is_first_time {
            system::allow_huge_pages(self.start, self.mapped);
        }
        true
    }

    /// Returns the memory usage in bytes.
    #[must_use]
    pub fn memory(&self) -> usize {
        self.len.next_multiple_of(PAGE)
    }

    /// Writes `bytes` after the end, where there must be room.
    fn fill(&mut self, bytes: &[u8]) {
        assert!(bytes.len() <= self.mapped - self.len, "room was made");
        let before = self.memory();
        // SAFETY: 1, and the assertion: the target is in the mapping, and `bytes` cannot be in it
        // while this value is borrowed exclusively.
        unsafe {
            let end = self.start.as_ptr().add(self.len);
            std::ptr::copy_nonoverlapping(bytes.as_ptr(), end, bytes.len());
        }
        self.len += bytes.len();
        count_outside((self.memory() - before) as u64);
    }
}

impl Deref for GrowingBytes {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        // SAFETY: 1, 2.
        unsafe { std::slice::from_raw_parts(self.start.as_ptr(), self.len) }
    }
}

impl Drop for GrowingBytes {
    fn drop(&mut self) {
        system::unmap(self.start, self.mapped);
        count_outside((self.memory() as u64).wrapping_neg());
    }
}

#[cfg(all(target_os = "linux", not(miri)))]
mod system {
    use std::ptr::{NonNull, null_mut};

    /// Creates a mapping that is not backed by memory yet.
    pub(super) fn map(bytes: usize) -> Option<NonNull<u8>> {
        let access = libc::PROT_READ | libc::PROT_WRITE;
        let kind = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;
        // SAFETY: a mapping at an address of the kernel's choice touches nothing that exists.
        let start = unsafe { libc::mmap(null_mut(), bytes, access, kind, -1, 0) };
        let start = (start != libc::MAP_FAILED).then(|| NonNull::new(start.cast::<u8>()))??;
        // SAFETY: advice about our own mapping, which does not change its content.
        unsafe { libc::madvise(start.as_ptr().cast(), bytes, libc::MADV_NOHUGEPAGE) };
        Some(start)
    }

    /// Changes the length of a mapping, which may move it. On failure it stays unchanged.
    pub(super) fn remap(start: NonNull<u8>, from: usize, to: usize) -> Option<NonNull<u8>> {
        // SAFETY: invariant 1 of the caller: nothing else knows the old address.
        let moved = unsafe { libc::mremap(start.as_ptr().cast(), from, to, libc::MREMAP_MAYMOVE) };
        (moved != libc::MAP_FAILED).then(|| NonNull::new(moved.cast::<u8>()))?
    }

    pub(super) fn allow_huge_pages(start: NonNull<u8>, bytes: usize) {
        // SAFETY: as in `map`.
        unsafe { libc::madvise(start.as_ptr().cast(), bytes, libc::MADV_HUGEPAGE) };
    }

    pub(super) fn unmap(start: NonNull<u8>, bytes: usize) {
        // SAFETY: invariant 1 of the caller, which does not use the mapping after this.
        unsafe { libc::munmap(start.as_ptr().cast(), bytes) };
    }
}

#[cfg(not(all(target_os = "linux", not(miri))))]
mod system {
    use std::ptr::NonNull;

    pub(super) fn map(_bytes: usize) -> Option<NonNull<u8>> {
        None
    }

    pub(super) fn remap(_start: NonNull<u8>, _from: usize, _to: usize) -> Option<NonNull<u8>> {
        None
    }

    pub(super) fn allow_huge_pages(_start: NonNull<u8>, _bytes: usize) {}

    pub(super) fn unmap(_start: NonNull<u8>, _bytes: usize) {}
}

#[cfg(all(test, target_os = "linux", not(miri)))]
mod tests {
    use super::*;

    #[test]
    fn appended_bytes_are_kept() {
        let pattern = |at: usize| (at / 251) as u8 ^ at as u8;
        let all: Vec<u8> = (0..20_000_000).map(pattern).collect();
        let mut bytes = GrowingBytes::new(&all[..10]).expect("the system maps memory");
        let mut at = 10;
        for piece in [1, 4096, 65_536, 3, 1_000_000, 5_000_000, 13_000_000].into_iter().cycle() {
            let end = (at + piece).min(all.len());
            assert!(bytes.append(&all[at..end]));
            at = end;
            assert!(*bytes == all[..at]);
            assert!((at..at + PAGE).contains(&bytes.memory()));
            if at == all.len() {
                break;
            }
        }
    }

    #[test]
    fn an_empty_string_can_be_created_and_dropped() {
        let mut bytes = GrowingBytes::new(&[]).expect("the system maps memory");
        assert!(bytes.is_empty());
        assert!(bytes.append(&[]));
        assert_eq!((bytes.len(), bytes.memory()), (0, 0));
    }

    #[test]
    fn a_failed_allocation_leaves_the_bytes_unchanged() {
        let mut bytes = GrowingBytes::new(b"abc").expect("the system maps memory");
        assert!(system::remap(bytes.start, bytes.mapped, 1 << 50).is_none());
        assert!(bytes.append(b"def"));
        assert_eq!(*bytes, *b"abcdef");
    }
}
