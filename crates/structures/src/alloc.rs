//! Counting allocator: knows how many bytes are allocated, at the cost of two plain stores.
//!
//! Every thread counts on cache lines of its own, without atomic read-modify-write; sums are made
//! when someone asks. A thread that frees what another allocated goes negative by itself, the sum
//! is right. Bytes are counted as the size classes they take ([`size_class`]), which is what
//! `used_memory` means. A sum made while others allocate is as old as its oldest part.
//!
//! Invariants (SAFETY notes cite them)
//!  1. Every call is passed on to the inner allocator unchanged; counting touches no memory of the
//!     allocation and never allocates.
//!  2. Counter `i` below [`THREADS_MAX`] is written by the one thread that drew `i`; the last one is
//!     shared by all threads that came later or are going, and updated atomically.

mod peak;

pub use peak::{Peak, peak_bytes};

use crate::entry::size_class;
use std::alloc::{GlobalAlloc, Layout};
use std::cell::Cell;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed};

/// Threads with counters of their own; those after them share one.
pub const THREADS_MAX: usize = 256;

#[repr(align(128))]
struct Counter {
    /// Modulo 2^64: parts may be negative.
    bytes: AtomicU64,
    allocations: AtomicU64,
}

static COUNTERS: [Counter; THREADS_MAX + 1] =
    [const { Counter { bytes: AtomicU64::new(0), allocations: AtomicU64::new(0) } };
        THREADS_MAX + 1];
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

/// What an allocation of `layout` counts as.
#[inline(always)]
fn taken(layout: Layout) -> u64 {
    let size = layout.size();
    let rounded = if layout.align() > 16 { size.next_multiple_of(layout.align()) } else { size };
    size_class(rounded) as u64
}

/// Bytes allocated now, in size classes, by all threads. O(threads so far, at most
/// [`THREADS_MAX`]): cheap enough to be asked before each command.
#[must_use]
pub fn allocated() -> u64 {
    let used = THREADS.load(Relaxed).min(THREADS_MAX);
    let own = COUNTERS[..used].iter().chain(&COUNTERS[THREADS_MAX..]);
    let sum = own.fold(0, |sum: u64, c| sum.wrapping_add(c.bytes.load(Relaxed)));
    // Reading while a block moves between threads may miss its allocation and see its end.
    if sum > i64::MAX as u64 { 0 } else { sum }
}

/// What jemalloc is told at start: ask for huge pages. A look-up is three cache misses, each with a
/// translation; with small pages the translations miss too. (GET at pipeline 100, 1 M keys: 15 %
/// less CPU.) Forking servers turn huge pages off because each page touched after a fork is copied
/// whole; this one does not fork. Its own data the allocator puts there once it has enough of it.
///
/// And to purge in a thread of its own: without, pages go back only when the arena that has them is
/// used again, so that after FLUSHALL an idle server keeps them all.
///
/// jemalloc reads the symbol as a C string, which ends with the zero byte.
#[cfg(feature = "jemalloc")]
#[used]
// SAFETY: the one definition of the name jemalloc declares weak, with its type: a pointer to a
// string that lives for ever.
#[unsafe(export_name = "_rjem_malloc_conf")]
pub static JEMALLOC_SETTINGS: &[u8; 77] =
    b"thp:always,metadata_thp:auto,background_thread:true,max_background_threads:1\0";

/// Has the kernel make huge pages at once of all memory that the allocator wants in such, as far as
/// it can (Linux 6.1 and later); else it does so by and by. `mappings` is what `/proc/self/smaps` tells.
/// Takes about a millisecond per huge page, in which accesses to that one wait.
#[cfg(all(target_os = "linux", not(miri)))]
pub fn make_huge_pages(mappings: &str) {
    for range in wanted_huge(mappings) {
        let (start, length) = (std::ptr::without_provenance_mut(range.start), range.len());
        // SAFETY: this advice changes where pages lie and nothing that can be read or written,
        // whatever is mapped there by now; failure is harmless.
        unsafe { libc::madvise(start, length, libc::MADV_COLLAPSE) };
    }
}

#[cfg(not(all(target_os = "linux", not(miri))))]
pub fn make_huge_pages(_mappings: &str) {}

/// The addresses that huge pages were asked for, in a text of this form: a
/// line with the addresses, lines with figures, and one with flags, of which `hg` says so.
#[cfg_attr(miri, allow(dead_code, reason = "there are no mappings to ask for"))]
fn wanted_huge(mappings: &str) -> impl Iterator<Item = std::ops::Range<usize>> {
    let mut last = None;
    mappings.lines().filter_map(move |line| {
        if let Some(flags) = line.strip_prefix("VmFlags:") {
            return last.take().filter(|_| flags.split(' ').any(|flag| flag == "hg"));
        }
        let (start, end) = line.split(' ').next()?.split_once('-')?;
        let address = |text| usize::from_str_radix(text, 16).ok();
        last = Some(address(start)?..address(end)?);
        None
    })
}

/// Has the allocator give the pages it keeps for later back to the system, those of all threads.
/// False if it cannot be asked: only jemalloc can. Takes as long as the system needs for the pages.
#[cfg(feature = "jemalloc")]
pub fn purge() -> bool {
    /// The number that stands for all arenas.
    const EVERY_ARENA: &std::ffi::CStr = c"arena.4096.purge";
    let (none, length) = (std::ptr::null_mut(), std::ptr::null_mut());
    // SAFETY: the name ends with a zero byte; this control takes and gives no value, so there is
    // nothing for the other pointers to point to.
    let result = unsafe { tikv_jemalloc_sys::mallctl(EVERY_ARENA.as_ptr(), none, length, none, 0) };
    result == 0
}

/// Whether the allocator gives memory back in a thread of its own (see [`JEMALLOC_SETTINGS`]). False
/// if it cannot be told: only jemalloc can.
#[cfg(feature = "jemalloc")]
pub fn purge_in_background(on: bool) -> bool {
    let mut on = on;
    let none = std::ptr::null_mut();
    let value = std::ptr::from_mut(&mut on).cast();
    // SAFETY: the name ends with a zero byte; the control takes one `bool`, which is what `value`
    // points to, and reads it before it returns. Nothing is asked for.
    let result = unsafe {
        let name = c"background_thread".as_ptr();
        tikv_jemalloc_sys::mallctl(name, none, none.cast(), value, size_of::<bool>())
    };
    result == 0
}

#[cfg(not(feature = "jemalloc"))]
pub fn purge_in_background(_on: bool) -> bool {
    false
}

#[cfg(not(feature = "jemalloc"))]
pub fn purge() -> bool {
    false
}

/// How many allocations this thread has made so far: the difference over a piece of code shows
/// what it allocates. Only growing; shared among threads after the first [`THREADS_MAX`].
#[must_use]
pub fn thread_allocations() -> u64 {
    COUNTERS[index()].allocations.load(Relaxed)
}

/// A global allocator that counts what it passes on to `A`.
#[derive(Debug, Default)]
pub struct Counting<A>(pub A);

// SAFETY: 1: the inner allocator fulfils the contract, and gets every call as it came.
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
    use super::{Counting, THREADS_MAX, allocated, thread_allocations, wanted_huge};
    use std::alloc::System;

    #[global_allocator]
    static ALLOCATOR: Counting<System> = Counting(System);

    #[test]
    fn huge_pages_are_made_where_they_were_asked_for() {
        let mappings = "7f00-7f80 rw-p 00000000 00:00 0 \nSize: 512 kB\nAnonHugePages: 0 kB\n\
                        VmFlags: rd wr mr mw me ac sd hg \n\
                        9000-a000 r-xp 00001000 fe:00 7 /usr/lib/some-library.so-hg\n\
                        VmFlags: rd ex mr mw me \nodd line\nVmFlags: hg\n\
                        b000-c000 rw-p 0 0:0 0\nVmFlags: hg rd\n";
        assert_eq!(wanted_huge(mappings).collect::<Vec<_>>(), [0x7f00..0x7f80, 0xb000..0xc000]);
        // Of this process: nothing that it has is lost.
        let bytes = vec![7u8; 4 << 20];
        super::make_huge_pages(&std::fs::read_to_string("/proc/self/smaps").unwrap());
        assert!(bytes.iter().all(|byte| *byte == 7));
    }

    #[test]
    fn allocations_of_this_thread_are_counted() {
        let before = thread_allocations();
        let boxed = Box::new(5u64);
        assert_eq!(thread_allocations(), before + 1);
        drop(boxed);
        assert_eq!(thread_allocations(), before + 1);
    }

    #[test]
    fn bytes_freed_by_other_threads_leave_the_sum() {
        // Other tests allocate meanwhile, but nothing near this size.
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
