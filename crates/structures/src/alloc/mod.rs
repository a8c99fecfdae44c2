//! A counting allocator: it knows how many bytes are allocated, at the cost of two plain stores per
//! call.
//!
//! Every thread counts on its own cache lines, without atomic read-modify-write operations. Sums
//! are computed on request. If a thread frees memory that another has allocated, its counter may
//! become negative, but the sum is correct. Allocations are counted with the size of their size
//! class ([`size_class`]), which is what `used_memory` reports. A sum that is computed while other
//! threads allocate may miss changes to counters that were already read.
//!
//! Invariants (SAFETY notes cite them)
//!  1. Every call is passed on to the inner allocator unchanged; counting touches no memory of the
//!     allocation and never allocates.
//!  2. Counter `i` below [`THREADS_MAX`] is written only by the one thread that took index `i`. All
//!     threads that came later or are exiting share the last counter, and update it atomically.

mod aside;
#[cfg(all(target_os = "linux", not(miri)))]
mod huge;
#[cfg(feature = "jemalloc")]
mod jemalloc;
mod peak;

pub use aside::{AsideMeter, SetAside, bytes_set_aside};
#[cfg(all(target_os = "linux", not(miri)))]
pub use huge::make_huge_pages;
#[cfg(feature = "jemalloc")]
pub use jemalloc::{held, purge, purge_in_background};
pub use peak::{Peak, peak_bytes};

use crate::entry::size_class;
use std::alloc::{GlobalAlloc, Layout};
use std::cell::Cell;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering::Relaxed};

/// Number of threads that have counters of their own. Later threads share one.
pub const THREADS_MAX: usize = 256;

#[repr(align(128))]
struct Counter {
    /// The bytes that the thread has allocated minus those that it has freed, modulo 2^64, because
    /// the difference may be negative.
    bytes: AtomicU64,
    allocations: AtomicU64,
    /// The value of `bytes` when the thread began its work in progress; see `aside.rs`.
    aside_from: AtomicU64,
    is_aside: AtomicBool,
}

impl Counter {
    const fn new() -> Counter {
        Counter {
            bytes: AtomicU64::new(0),
            allocations: AtomicU64::new(0),
            aside_from: AtomicU64::new(0),
            is_aside: AtomicBool::new(false),
        }
    }
}

static COUNTERS: [Counter; THREADS_MAX + 1] = [const { Counter::new() }; THREADS_MAX + 1];
static THREADS: AtomicUsize = AtomicUsize::new(0);
const UNKNOWN: usize = usize::MAX;

thread_local! {
    static INDEX: Cell<usize> = const { Cell::new(UNKNOWN) };
}

#[inline(always)]
fn index() -> usize {
    match INDEX.try_with(Cell::get) {
        Ok(UNKNOWN) => first_index(),
        Ok(index) => index,
        Err(_) => THREADS_MAX,
    }
}

#[cold]
fn first_index() -> usize {
    let index = THREADS.fetch_add(1, Relaxed).min(THREADS_MAX);
    let _ = INDEX.try_with(|cell| cell.set(index));
    index
}

#[inline(always)]
fn count(bytes: u64, allocations: u64) {
    let index = index();
    let counter = &COUNTERS[index];
    if index < THREADS_MAX {
        counter.bytes.store(counter.bytes.load(Relaxed).wrapping_add(bytes), Relaxed);
        let before = counter.allocations.load(Relaxed);
        counter.allocations.store(before.wrapping_add(allocations), Relaxed);
    } else {
        counter.bytes.fetch_add(bytes, Relaxed);
        counter.allocations.fetch_add(allocations, Relaxed);
    }
}

/// Counts memory that this crate gets from the system instead of the allocator.
pub(crate) fn count_outside(bytes: u64) {
    count(bytes, 0);
}

/// Above this size, jemalloc 5.3.1 allocates whole pages instead of four size classes per doubling.
/// If jemalloc uses whole pages only for larger sizes, slightly less is counted than is allocated.
const CLASSES_MAX: usize = 16 * 1024;
const PAGE: usize = 4096;

/// Returns the size that an allocation of `layout` counts as.
#[inline(always)]
fn taken(layout: Layout) -> u64 {
    let size = layout.size();
    let rounded = if layout.align() > 8 { size.next_multiple_of(layout.align()) } else { size };
    let taken =
        if rounded > CLASSES_MAX { rounded.next_multiple_of(PAGE) } else { size_class(rounded) };
    taken as u64
}

/// Returns the bytes that all threads have allocated, in size classes. O(threads so far, at most
/// [`THREADS_MAX`]), which is cheap enough for each command.
#[must_use]
pub fn allocated() -> u64 {
    let used = THREADS.load(Relaxed).min(THREADS_MAX);
    let own = COUNTERS[..used].iter().chain(&COUNTERS[THREADS_MAX..]);
    let sum = own.fold(0, |sum: u64, c| sum.wrapping_add(c.bytes.load(Relaxed)));
    // If a block moves between threads during this loop, its allocation may be missed and its
    // release counted.
    if sum > i64::MAX as u64 { 0 } else { sum }
}

/// Does nothing: this is supported only on Linux.
#[cfg(not(all(target_os = "linux", not(miri))))]
pub fn make_huge_pages(_mappings: &str) {}

/// Memory that the allocator has obtained from the system, in whole pages, without its own
/// metadata.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Held {
    /// Bytes in pages that are at least partly in use.
    pub active: u64,
    /// Bytes in those pages, and in unused pages that the system may still back with memory.
    pub resident: u64,
}

/// Only jemalloc has this information: returns `None`.
#[cfg(not(feature = "jemalloc"))]
pub fn held() -> Option<Held> {
    None
}

/// Only jemalloc supports this: returns false.
#[cfg(not(feature = "jemalloc"))]
pub fn purge_in_background(_on: bool) -> bool {
    false
}

/// Only jemalloc supports this: returns false.
#[cfg(not(feature = "jemalloc"))]
pub fn purge() -> bool {
    false
}

/// Returns how many allocations this thread has made so far. The difference between two calls is
/// the number of allocations that the code between them made. The number only grows. Threads after
/// the first [`THREADS_MAX`] share one number.
#[must_use]
pub fn thread_allocations() -> u64 {
    COUNTERS[index()].allocations.load(Relaxed)
}

/// A global allocator that counts the calls that it passes on to `A`.
#[derive(Debug, Default)]
pub struct Counting<A>(pub A);

// SAFETY: 1: the inner allocator fulfils the contract, and gets every call unchanged.
unsafe impl<A: GlobalAlloc> GlobalAlloc for Counting<A> {
    #[inline]
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: 1: the caller's promises are passed on.
        let pointer = unsafe { self.0.alloc(layout) };
        if !pointer.is_null() {
            count(taken(layout), 1);
        }
        pointer
    }

    #[inline]
    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        // SAFETY: 1: the caller's promises are passed on.
        let pointer = unsafe { self.0.alloc_zeroed(layout) };
        if !pointer.is_null() {
            count(taken(layout), 1);
        }
        pointer
    }

    #[inline]
    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        count(taken(layout).wrapping_neg(), 0);
        // SAFETY: 1: the caller's promises are passed on.
        unsafe { self.0.dealloc(pointer, layout) }
    }

    #[inline]
    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, new_size: usize) -> *mut u8 {
        // SAFETY: 1: the caller's promises are passed on.
        let moved = unsafe { self.0.realloc(pointer, layout, new_size) };
        if !moved.is_null() {
            let old = taken(layout);
            let new = Layout::from_size_align(new_size, layout.align()).map_or(0, taken);
            count(new.wrapping_sub(old), 1);
        }
        moved
    }
}

#[cfg(test)]
mod tests {
    use super::{Counting, THREADS_MAX, allocated, thread_allocations};
    use std::alloc::System;

    #[global_allocator]
    static ALLOCATOR: Counting<System> = Counting(System);

    #[test]
    fn allocations_of_this_thread_are_counted() {
        let before = thread_allocations();
        let boxed = Box::new(5u64);
        assert_eq!(thread_allocations(), before + 1);
        drop(boxed);
        assert_eq!(thread_allocations(), before + 1);
    }

    #[cfg(all(target_arch = "x86_64", not(miri)))]
    #[test]
    fn allocations_are_counted_with_the_size_classes_of_jemalloc() {
        use super::taken;
        use std::alloc::{GlobalAlloc, Layout};
        use tikv_jemallocator::{Jemalloc, usable_size};
        let doublings = (3..28).flat_map(|bits| [(1 << bits) - 1, 1 << bits, (1 << bits) + 1]);
        for size in (1..40_000).step_by(7).chain(doublings).chain([100_000, 1_100_000]) {
            for align in [1, 8, 16, 64] {
                let layout = Layout::from_size_align(size, align).expect("a small power of two");
                // SAFETY: no invariant of this file: the size is not zero, and what is allocated is
                // freed with the same layout.
                let usable = unsafe {
                    let start = Jemalloc.alloc(layout);
                    let usable = usable_size(start);
                    Jemalloc.dealloc(start, layout);
                    usable
                };
                assert_eq!(taken(layout), usable as u64, "{layout:?}");
            }
        }
    }

    #[test]
    fn bytes_freed_by_other_threads_leave_the_sum() {
        // Other tests allocate at the same time, but far less than this size.
        const BIG: usize = 1 << 30;
        let before = allocated();
        let big = Vec::<u8>::with_capacity(BIG);
        assert!(allocated() > before + (BIG as u64) / 2);
        std::thread::scope(|scope| scope.spawn(move || drop(big)).join()).expect("no panic");
        assert!(allocated() < before + (BIG as u64) / 2);
    }

    #[test]
    fn threads_beyond_the_limit_are_counted_together() {
        for _ in 0..if cfg!(miri) { 3 } else { THREADS_MAX + 10 } {
            std::thread::scope(|scope| {
                scope.spawn(|| {
                    let before = thread_allocations();
                    drop(std::hint::black_box(vec![1u8; 100]));
                    assert!(thread_allocations() > before);
                });
            });
        }
    }
}
