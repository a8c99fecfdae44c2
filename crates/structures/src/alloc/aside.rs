//! Memory that is set aside: taken by work that is under way and given back at its end, so that who
//! makes room for the limit of memory does not count it.
//!
//! A thread that begins such work notes where its counter stands ([`AsideMeter::begin`]); what it
//! has allocated since is set aside. At the end that is a number ([`SetAside`]),
//! which goes with what was made.

use super::{COUNTERS, THREADS, THREADS_MAX, index};
use std::marker::PhantomData;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// The sum of all [`SetAside`].
static SET_ASIDE: AtomicU64 = AtomicU64::new(0);

/// The work of one thread, from its beginning to its end.
#[derive(Debug)]
pub struct AsideMeter {
    index: usize,
    not_send: PhantomData<*const ()>,
}

impl AsideMeter {
    /// Sets aside what this thread allocates from now on, unless it shares its counter with others.
    /// One at a time per thread: a second would begin anew.
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

    /// What is still allocated of it stays set aside until the result is dropped.
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

/// So many bytes that are set aside, until it is dropped.
#[derive(Debug, Default)]
pub struct SetAside(u64);

impl SetAside {
    /// Of memory whose size is known.
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

    /// Both together.
    #[must_use]
    pub fn and(mut self, mut other: SetAside) -> SetAside {
        self.0 += std::mem::take(&mut other.0);
        self
    }

    /// How many bytes.
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

/// Bytes that are set aside now. O(threads so far)
#[must_use]
pub fn bytes_set_aside() -> u64 {
    let used = THREADS.load(Relaxed).min(THREADS_MAX);
    let under_way = (0..used).map(measured).fold(0, u64::saturating_add);
    SET_ASIDE.load(Relaxed).saturating_add(under_way)
}

/// What the thread with this counter has set aside and not given back.
fn measured(index: usize) -> u64 {
    let counter = &COUNTERS[index];
    if !counter.is_aside.load(Relaxed) {
        return 0;
    }
    let taken = counter.bytes.load(Relaxed).wrapping_sub(counter.aside_from.load(Relaxed));
    // It may have freed more than it took.
    if taken > i64::MAX as u64 { 0 } else { taken }
}

#[cfg(test)]
mod tests {
    use super::{AsideMeter, SetAside, bytes_set_aside};

    /// Nothing else in these tests is set aside.
    #[test]
    fn what_a_thread_takes_for_its_work_is_set_aside_until_its_result_is_dropped() {
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
        // What had been there before is no part of it.
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
