//! Prefetches cache lines without reading them.
//!
//! The address may be in the memory of any crate. Neither a lock nor valid memory at the address is
//! needed.

/// Hints that the cache line at `address` will be read soon. Any address is allowed, mapped or not:
/// the instruction never faults and has no effect that the program could observe.
#[inline(always)]
pub fn prefetch<T>(address: *const T) {
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        // SAFETY: SSE is part of x86-64, and a prefetch has no architectural effect for any
        // address.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(address.cast()) }
    }
    #[cfg(all(target_arch = "aarch64", not(miri)))]
    {
        // SAFETY: PRFM has no architectural effect for any address.
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

/// Size of a cache line in bytes.
const LINE: usize = 64;

/// Prefetches the cache lines of a value whose address is known, before any part of it is read.
#[inline(always)]
pub fn prefetch_value<T>(value: *const T) {
    let start: *const u8 = value.cast();
    for offset in (0..size_of::<T>()).step_by(LINE) {
        prefetch(start.wrapping_add(offset));
    }
    prefetch(start.wrapping_add(size_of::<T>().saturating_sub(1)));
}

/// Prefetches the first cache lines of a slice, at most `max`.
#[inline(always)]
pub(crate) fn prefetch_slice<T>(slice: &[T], max: usize) {
    let start: *const u8 = slice.as_ptr().cast();
    for offset in (0..size_of_val(slice)).step_by(LINE).take(max) {
        prefetch(start.wrapping_add(offset));
    }
}
