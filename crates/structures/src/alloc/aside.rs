//! Memory that is set aside: work in progress has allocated it and will free it at the end.
//! Eviction for `maxmemory` does not count this memory.
//!
//! A thread that begins such work records the current value of its counter ([`AsideMeter::begin`]).
//! Everything that it allocates from then on is set aside. At the end, the amount becomes a number
//! ([`SetAside`]) that is stored with the result.

use super::{COUNTERS, THREADS, THREADS_MAX, index};
use std::marker::PhantomData;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// The sum of all [`SetAside`] values.
static SET_ASIDE: AtomicU64 = AtomicU64::new(0);

/// Measures the work of one thread, from its beginning to its end.
#[derive(Debug)]
pub struct AsideMeter {
    index: usize,
    not_send: PhantomData<*const ()>,
}

impl AsideMeter {
    /// Sets aside the memory that this thread allocates from now on. Has no effect if the thread
    /// shares its counter with others. A thread may have only one meter at a time, because a second
    /// one would restart the measurement.
    #[must_use]
    pub fn begin() -> AsideMeter {
        let index = index();
        let counter = &COUNTERS[index];
        if index < THREADS_MAX {
            counter.aside_from.store(counter.bytes.load(Relaxed), Relaxed);
            counter.is_aside.store(true, Relaxed);
        }
        AsideMeter { index, not_send: PhantomData }
    }

    /// Ends the measurement. The memory that is still allocated stays set aside until the result is
    /// dropped.
    #[must_use]
    pub fn end(self) -> SetAside {
        SetAside::of(measured(self.index))
    }
}

impl Drop for AsideMeter {
    fn drop(&mut self) {
        COUNTERS[self.index].is_aside.store(false, Relaxed);
    }
}

/// A number of bytes that are set aside until this value is dropped.
#[derive(Debug, Default)]
pub struct SetAside(u64);

impl SetAside {
    /// Sets aside memory whose size is known.
    #[must_use]
    pub fn of(bytes: u64) -> SetAside {
        SET_ASIDE.fetch_add(bytes, Relaxed);
        SetAside(bytes)
    }

    /// Changes the number of bytes.
    pub fn resize(&mut self, bytes: u64) {
        // Modulo 2^64.
        SET_ASIDE.fetch_add(bytes.wrapping_sub(self.0), Relaxed);
        self.0 = bytes;
    }

    /// Adds the bytes of `other`, and returns the sum.
    #[must_use]
    pub fn and(mut self, mut other: SetAside) -> SetAside {
        self.0 += std::mem::take(&mut other.0);
        self
    }

    /// Returns the number of bytes.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.0
    }
}

impl Drop for SetAside {
    fn drop(&mut self) {
        SET_ASIDE.fetch_sub(self.0, Relaxed);
    }
}

/// Returns the number of bytes that are currently set aside. O(threads so far).
#[must_use]
pub fn bytes_set_aside() -> u64 {
    let used = THREADS.load(Relaxed).min(THREADS_MAX);
    let under_way = (0..used).map(measured).fold(0, u64::saturating_add);
    SET_ASIDE.load(Relaxed).saturating_add(under_way)
}

/// Returns the bytes that the thread with this counter has set aside and not freed.
fn measured(index: usize) -> u64 {
    let counter = &COUNTERS[index];
    if !counter.is_aside.load(Relaxed) {
        return 0;
    }
    let taken = counter.bytes.load(Relaxed).wrapping_sub(counter.aside_from.load(Relaxed));
    // The thread may have freed more than it allocated.
    if taken > i64::MAX as u64 { 0 } else { taken }
}

#[cfg(test)]
mod tests {
    use super::{AsideMeter, SetAside, bytes_set_aside};

    /// No other test in this crate sets memory aside.
    #[test]
    fn memory_of_a_threads_work_is_set_aside_until_its_result_is_dropped() {
        const BIG: usize = 1 << 30;
        const ABOUT: std::ops::Range<u64> = BIG as u64..BIG as u64 + (1 << 20);
        let before = Vec::<u8>::with_capacity(BIG);
        assert_eq!(bytes_set_aside(), 0);
        let work = AsideMeter::begin();
        let result = Vec::<u8>::with_capacity(BIG);
        assert!(ABOUT.contains(&bytes_set_aside()));
        let other = Vec::<u8>::with_capacity(BIG);
        drop(other);
        let set_aside = work.end();
        assert!(ABOUT.contains(&set_aside.bytes()) && bytes_set_aside() == set_aside.bytes());
        drop((result, set_aside));
        assert_eq!(bytes_set_aside(), 0);
        // Earlier allocations are not part of the measurement.
        let work = AsideMeter::begin();
        drop(before);
        assert_eq!(bytes_set_aside(), 0);
        drop(work);
        let mut set_aside = SetAside::of(7).and(SetAside::of(8));
        assert_eq!(bytes_set_aside(), 15);
        set_aside.resize(3);
        assert_eq!(bytes_set_aside(), 3);
        set_aside.resize(20);
        assert_eq!(bytes_set_aside(), 20);
        drop(set_aside);
        assert_eq!(bytes_set_aside(), 0);
    }
}
