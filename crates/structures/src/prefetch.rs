//! Asks the processor for cache lines, without reading them.
//!
//! What is public asks for what other crates keep, by address: that needs neither a lock nor
//! anything there.

/// Hints that the line at `address` will be read soon. Any address is allowed, mapped or not:
/// the instruction never faults and reads nothing the program could observe.
#[inline(always)]
pub fn prefetch<T>(address: *const T) {
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        // SAFETY: SSE is part of x86-64, and a prefetch has no architectural
        // effect whatever the address.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(address.cast()) }
    }
    #[cfg(all(target_arch = "aarch64", not(miri)))]
    {
        // SAFETY: PRFM has no architectural effect whatever the address.
        unsafe {
            std::arch::asm!("prfm pldl1keep, [{0}]", in(reg) address,
                options(nostack, preserves_flags, readonly));
        }
    }
    #[cfg(any(miri, not(any(target_arch = "x86_64", target_arch = "aarch64"))))]
    {
        let _ = address;
    }
}

/// What a cache line holds, in bytes.
const LINE: usize = 64;

/// Asks for the lines of a value of which the address is known, but nothing was read yet.
#[inline(always)]
pub fn prefetch_value<T>(value: *const T) {
    let start: *const u8 = value.cast();
    for offset in (0..size_of::<T>()).step_by(LINE) {
        prefetch(start.wrapping_add(offset));
    }
    prefetch(start.wrapping_add(size_of::<T>().saturating_sub(1)));
}

/// Asks for the first lines of a slice, at most `max`.
#[inline(always)]
pub(crate) fn prefetch_slice<T>(slice: &[T], max: usize) {
    let start: *const u8 = slice.as_ptr().cast();
    for offset in (0..size_of_val(slice)).step_by(LINE).take(max) {
        prefetch(start.wrapping_add(offset));
    }
}
