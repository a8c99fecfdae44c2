//! Measures the peak memory of a piece of code, for tests of limits.
//!
//! Invariants (SAFETY notes cite them)
//!  1. Every call is passed on to the inner allocator unchanged; counting touches no memory of the
//!     allocation and never allocates.

use std::alloc::{GlobalAlloc, Layout};
use std::cell::Cell;

thread_local! {
    /// Bytes that this thread has allocated and not freed; negative if it frees memory of other
    /// threads.
    static NOW: Cell<isize> = const { Cell::new(0) };
    static HIGHEST: Cell<isize> = const { Cell::new(0) };
}

/// A global allocator that records each thread's peak use of `A`.
#[derive(Debug, Default)]
pub struct Peak<A>(pub A);

/// Returns the result of `run`, and the maximum number of bytes by which the memory of this thread
/// grew during the call. The number is zero unless [`Peak`] is the global allocator.
pub fn peak_bytes<T>(run: impl FnOnce() -> T) -> (T, usize) {
    let before = NOW.get();
    HIGHEST.set(before);
    let result = run();
    (result, HIGHEST.get().abs_diff(before))
}

fn count(bytes: isize) {
    // An exiting thread has already dropped its thread-local variables.
    let _ = NOW.try_with(|now| {
        now.set(now.get().wrapping_add(bytes));
        let _ = HIGHEST.try_with(|highest| highest.set(highest.get().max(now.get())));
    });
}

// SAFETY: 1: the inner allocator fulfils the contract, and gets every call unchanged.
unsafe impl<A: GlobalAlloc> GlobalAlloc for Peak<A> {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count(layout.size().cast_signed());
        // SAFETY: 1: the caller's promises are passed on.
        unsafe { self.0.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        count(layout.size().cast_signed());
        // SAFETY: 1: the caller's promises are passed on.
        unsafe { self.0.alloc_zeroed(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        count(layout.size().cast_signed().wrapping_neg());
        // SAFETY: 1: the caller's promises are passed on.
        unsafe { self.0.dealloc(pointer, layout) }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, new_size: usize) -> *mut u8 {
        count(new_size.cast_signed().wrapping_sub(layout.size().cast_signed()));
        // SAFETY: 1: the caller's promises are passed on.
        unsafe { self.0.realloc(pointer, layout, new_size) }
    }
}
