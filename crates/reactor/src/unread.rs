//! Counts the memory of output that peers have not read, so that a memory limit can exclude it.
//!
//! Each thread counts on its own cache line, with plain loads and stores. If a thread frees memory
//! that another thread has counted, its counter may become negative, but the sum is correct.
//! Buffers of up to [`UNCOUNTED_BYTES_MAX`] are not counted: most outputs never need more.
//!
//! Invariant: each counter `i` below [`THREADS_MAX`] is written only by the thread that took index
//! `i`. All later threads share the last counter and update it atomically.

use std::cell::Cell;
use std::ops::Deref;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed};

/// Number of threads that have their own counter.
const THREADS_MAX: usize = 256;
/// Buffers up to this size are not counted, so that ordinary requests and replies have no overhead.
pub(crate) const UNCOUNTED_BYTES_MAX: usize = 4096;

#[repr(align(128))]
struct Counter(AtomicU64);

static COUNTERS: [Counter; THREADS_MAX + 1] =
    [const { Counter(AtomicU64::new(0)) }; THREADS_MAX + 1];
static THREADS: AtomicUsize = AtomicUsize::new(0);
const UNKNOWN: usize = usize::MAX;

thread_local! {
    static INDEX: Cell<usize> = const { Cell::new(UNKNOWN) };
}

fn index() -> usize {
    match INDEX.try_with(Cell::get) {
        Ok(UNKNOWN) => {
            let index = THREADS.fetch_add(1, Relaxed).min(THREADS_MAX);
            let _ = INDEX.try_with(|cell| cell.set(index));
            index
        }
        Ok(index) => index,
        Err(_) => THREADS_MAX,
    }
}

/// Adds to this thread's counter, modulo 2^64.
fn add(change: u64) {
    let index = index();
    let counter = &COUNTERS[index].0;
    if index < THREADS_MAX {
        counter.store(counter.load(Relaxed).wrapping_add(change), Relaxed);
    } else {
        counter.fetch_add(change, Relaxed);
    }
}

/// Returns the bytes of memory that exist only because peers have not read them: output buffers,
/// and shared bytes without any other owner. O(threads so far).
#[must_use]
pub fn unread_bytes() -> u64 {
    let used = THREADS.load(Relaxed).min(THREADS_MAX);
    let counters = COUNTERS[..used].iter().chain(&COUNTERS[THREADS_MAX..]);
    let sum = counters.fold(0, |sum: u64, counter| sum.wrapping_add(counter.0.load(Relaxed)));
    // Other threads change the counters while this loop reads them, so the sum may be negative for
    // a moment.
    if sum > i64::MAX as u64 { 0 } else { sum }
}

/// A number of bytes that count as unread until this value is dropped.
#[derive(Debug, Default)]
pub(crate) struct UnreadCount(usize);

impl UnreadCount {
    pub(crate) const NOTHING: UnreadCount = UnreadCount(0);

    #[inline]
    pub(crate) fn set(&mut self, bytes: usize) {
        if bytes != self.0 {
            add((bytes as u64).wrapping_sub(self.0 as u64));
            self.0 = bytes;
        }
    }
}

impl Drop for UnreadCount {
    fn drop(&mut self) {
        self.set(0);
    }
}

/// Bytes that were created only for sending. They count as unread while they exist.
#[derive(Debug)]
pub struct OutputBytes {
    bytes: Vec<u8>,
    _count: UnreadCount,
}

impl From<Vec<u8>> for OutputBytes {
    fn from(bytes: Vec<u8>) -> OutputBytes {
        let mut count = UnreadCount::default();
        count.set(bytes.capacity());
        OutputBytes { bytes, _count: count }
    }
}

impl Deref for OutputBytes {
    type Target = [u8];

    #[inline]
    fn deref(&self) -> &[u8] {
        &self.bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::output::Output;
    use std::sync::Arc;

    /// Other tests of this crate run at the same time, but count far fewer bytes.
    const BIG: usize = 1 << 30;

    fn about(bytes: usize) -> bool {
        unread_bytes().abs_diff(bytes as u64) < BIG as u64 / 4
    }

    #[test]
    fn output_counts_until_it_is_sent_and_a_shared_value_only_once_it_is_replaced() {
        let made = Arc::new(OutputBytes::from(Vec::with_capacity(BIG)));
        assert!(about(BIG));
        std::thread::scope(|scope| scope.spawn(move || drop(made)).join()).expect("no panic");
        assert!(about(0));

        let mut output = Output::new();
        let value = Arc::new(vec![0; BIG]);
        output.push_shared(Arc::clone(&value), 0..BIG);
        output.count_orphans();
        assert!(about(0), "the value is still in use");
        drop(value);
        output.count_orphans();
        assert!(about(BIG));
        output.consume(BIG - 1);
        assert!(about(BIG), "all of it is held until its last byte is sent");
        output.consume(1);
        assert!(about(0));

        output.push_shared(Arc::new(vec![0; BIG]), 0..BIG);
        output.count_orphans();
        assert!(about(BIG));
        drop(output);
        assert!(about(0));
    }
}
