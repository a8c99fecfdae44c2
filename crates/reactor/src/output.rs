//! The output queue of one connection: copied bytes and shared segments, in order.
//!
//! ```text
//!            sent                 at of s0        at of s1             bytes.len()
//!  bytes  |---v--------------------v---------------v---------------------|
//!         |sent| copied            | copied        | copied              |  appended to
//!  shared                          [ s0: Arc, 10 MB][ s1: Arc ]
//!  wire    copied · s0 · copied · s1 · copied
//! ```
//!
//! Copied bytes are in one `Vec`. Appending a small reply is a plain `extend_from_slice`, and a
//! slow reader of small messages costs no allocation per message. Shared segments are referenced,
//! not copied; each is sent before the copied byte at its `at`. When the `Vec` would grow beyond
//! [`CHUNK_BYTES`], it is filled and becomes a shared segment itself, and a new `Vec` begins.
//! Output for a client that does not read is therefore never copied as it grows. It uses no more
//! memory than its bytes and one buffer, and it is freed piece by piece as it is sent.
//!
//! The following memory counts as unread ([`crate::unread_bytes`]): all buffers except small ones,
//! and shared segments after [`Output::count_orphans`] has found that only this output refers to
//! them. The owner of [`SharedBytes::Counted`] bytes counts them itself, which is exact even if
//! several outputs refer to them.
//!
//! Invariants (`check` verifies each)
//!  1. `sent <= bytes.len()`, and the `at`s ascend (equal ones allowed) between `sent` and
//!     `bytes.len()`.
//!  2. No shared segment is empty; `shared_len` is the sum of their lengths.
//!  3. Bytes behind an `Arc` held here do not move or change: [`SharedBytes`] admits only types that
//!     guarantee this.

use crate::unread::{OutputBytes, UNCOUNTED_BYTES_MAX, UnreadCount};
use std::collections::VecDeque;
use std::fmt::Debug;
use std::io::IoSlice;
use std::ops::Range;
use std::sync::Arc;

/// A segment shorter than this is copied: one more piece in a gathered write costs about as much as
/// copying 2 KiB.
pub const SHARED_BYTES_MIN: usize = 2048;

/// Maximum number of copied bytes in a buffer. A full buffer is followed by another.
const CHUNK_BYTES: usize = 64 * 1024;
/// Bytes that are appended in one call share one buffer up to this size.
const ONE_BUFFER_MAX: usize = 4 * CHUNK_BYTES;

/// Bytes whose owner knows when only outputs still refer to them. Their address must not change
/// while they are shared.
pub trait CountedBytes: AsRef<[u8]> + Debug + Send + Sync {}

impl<T: AsRef<[u8]> + Debug + Send + Sync> CountedBytes for T {}

/// Bytes that are owned elsewhere and can be sent without a copy. They must not change while
/// shared, which `Arc` ensures.
#[derive(Clone, Debug)]
pub enum SharedBytes {
    Vec(Arc<Vec<u8>>),
    Boxed(Arc<Box<[u8]>>),
    Slice(Arc<[u8]>),
    /// The owner counts the memory when only outputs still refer to it.
    Counted(Arc<dyn CountedBytes>),
    /// Created only for sending.
    Output(Arc<OutputBytes>),
    Static(&'static [u8]),
}

impl SharedBytes {
    /// Returns all shared bytes.
    #[must_use]
    pub fn as_slice(&self) -> &[u8] {
        match self {
            SharedBytes::Vec(bytes) => bytes,
            SharedBytes::Boxed(bytes) => bytes,
            SharedBytes::Slice(bytes) => bytes,
            SharedBytes::Counted(bytes) => (**bytes).as_ref(),
            SharedBytes::Output(bytes) => bytes,
            SharedBytes::Static(bytes) => bytes,
        }
    }

    /// Returns true if this is the last reference to bytes that were created for another purpose
    /// and that nothing else counts.
    fn is_orphan(&self) -> bool {
        match self {
            SharedBytes::Vec(bytes) => Arc::strong_count(bytes) == 1,
            SharedBytes::Boxed(bytes) => Arc::strong_count(bytes) == 1,
            SharedBytes::Slice(bytes) => Arc::strong_count(bytes) == 1,
            SharedBytes::Counted(_) | SharedBytes::Output(_) | SharedBytes::Static(_) => false,
        }
    }
}

impl From<Arc<Vec<u8>>> for SharedBytes {
    fn from(bytes: Arc<Vec<u8>>) -> Self {
        SharedBytes::Vec(bytes)
    }
}

impl From<Arc<Box<[u8]>>> for SharedBytes {
    fn from(bytes: Arc<Box<[u8]>>) -> Self {
        SharedBytes::Boxed(bytes)
    }
}

impl From<Arc<[u8]>> for SharedBytes {
    fn from(bytes: Arc<[u8]>) -> Self {
        SharedBytes::Slice(bytes)
    }
}

impl From<Arc<OutputBytes>> for SharedBytes {
    fn from(bytes: Arc<OutputBytes>) -> Self {
        SharedBytes::Output(bytes)
    }
}

impl From<&'static [u8]> for SharedBytes {
    fn from(bytes: &'static [u8]) -> Self {
        SharedBytes::Static(bytes)
    }
}

#[derive(Debug)]
struct SharedSegment {
    at: usize,
    data: SharedBytes,
    start: usize,
    end: usize,
    /// Counts the segment's memory when only this output still refers to it.
    count: UnreadCount,
}

impl SharedSegment {
    fn bytes(&self) -> &[u8] {
        &self.data.as_slice()[self.start..self.end]
    }

    fn len(&self) -> usize {
        self.end - self.start
    }
}

/// A queue of bytes to send. Appending is amortised O(bytes copied); everything else is O(pieces).
#[derive(Debug, Default)]
pub struct Output {
    bytes: Vec<u8>,
    sent: usize,
    shared: VecDeque<SharedSegment>,
    shared_len: usize,
    /// Counts the memory of `bytes`, unless it is small.
    count: UnreadCount,
}

impl Output {
    /// Creates an empty output that owns no memory.
    #[must_use]
    pub const fn new() -> Self {
        Self {
            bytes: Vec::new(),
            sent: 0,
            shared: VecDeque::new(),
            shared_len: 0,
            count: UnreadCount::NOTHING,
        }
    }

    /// Gives a buffer to an output that is empty and owns no memory.
    #[inline]
    pub(crate) fn set_buffer(&mut self, buffer: Vec<u8>) {
        debug_assert!(buffer.is_empty() && self.is_empty() && self.capacity() == 0);
        self.bytes = buffer;
        self.count_buffer();
    }

    /// Updates the count of the open buffer to its current capacity.
    #[inline]
    fn count_buffer(&mut self) {
        let capacity = self.bytes.capacity();
        if capacity > UNCOUNTED_BYTES_MAX {
            self.count.set(capacity);
        }
    }

    /// Counts shared segments that only this output still refers to. O(segments).
    pub(crate) fn count_orphans(&mut self) {
        for segment in self.shared.iter_mut().filter(|segment| segment.data.is_orphan()) {
            segment.count.set(segment.data.as_slice().len());
        }
    }

    /// Returns the memory in bytes: all queued bytes, including shared ones, and the free part of
    /// the open buffer. Until the last byte is sent, one more buffer may be kept. O(1).
    pub(crate) fn memory(&self) -> usize {
        let places = self.shared.capacity() * size_of::<SharedSegment>();
        self.bytes.capacity() + self.shared_len + places
    }

    /// Returns the number of bytes that are queued and not yet sent, copied and shared.
    #[inline]
    #[must_use]
    pub fn len(&self) -> usize {
        self.bytes.len() - self.sent + self.shared_len
    }

    #[inline]
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the capacity of the open buffer.
    pub(crate) fn capacity(&self) -> usize {
        self.bytes.capacity()
    }

    /// Appends a copy of `bytes`.
    #[inline]
    pub fn extend_from_slice(&mut self, bytes: &[u8]) {
        let mut rest = bytes;
        if self.bytes.capacity() - self.bytes.len() < bytes.len() {
            rest = self.make_room(bytes);
        }
        self.bytes.extend_from_slice(rest);
    }

    /// Makes room for bytes that do not fit, and returns the bytes that are still to be appended. A
    /// buffer of up to half a chunk doubles. A larger one becomes a whole chunk. A full chunk is
    /// followed by another.
    #[cold]
    fn make_room<'b>(&mut self, mut bytes: &'b [u8]) -> &'b [u8] {
        loop {
            let (len, more) = (self.bytes.len(), bytes.len());
            if len + more > CHUNK_BYTES && (len >= CHUNK_BYTES / 2 || more > ONE_BUFFER_MAX) {
                if self.bytes.capacity() < CHUNK_BYTES {
                    self.bytes.reserve_exact(CHUNK_BYTES - len);
                }
                let room = self.bytes.capacity() - len;
                let (first, rest) = bytes.split_at(room.min(more));
                self.bytes.extend_from_slice(first);
                self.begin_chunk(rest.len());
                bytes = rest;
                continue;
            }
            if len >= CHUNK_BYTES / 2 {
                self.bytes.reserve_exact(CHUNK_BYTES - len);
            } else {
                self.bytes.reserve(more);
            }
            self.count_buffer();
            return bytes;
        }
    }

    /// Turns all copied bytes into shared segments and begins an empty buffer. O(segments shared
    /// since the last call).
    fn begin_chunk(&mut self, room: usize) {
        let fresh = Vec::with_capacity(room.clamp(CHUNK_BYTES, ONE_BUFFER_MAX));
        let chunk = Arc::new(OutputBytes::from(std::mem::replace(&mut self.bytes, fresh)));
        self.count_buffer();
        let mut start = std::mem::take(&mut self.sent);
        let before = |start, end| SharedSegment {
            at: 0,
            data: Arc::clone(&chunk).into(),
            start,
            end,
            count: UnreadCount::NOTHING,
        };
        // Segments at 0 come before all copied bytes and keep their position.
        let settled = self.shared.partition_point(|segment| segment.at == 0);
        for segment in self.shared.split_off(settled) {
            if start < segment.at {
                self.shared.push_back(before(start, segment.at));
                self.shared_len += segment.at - start;
                start = segment.at;
            }
            self.shared.push_back(SharedSegment { at: 0, ..segment });
        }
        if start < chunk.len() {
            self.shared.push_back(before(start, chunk.len()));
            self.shared_len += chunk.len() - start;
        }
    }

    /// Appends `range` of `data` without copying it. A range shorter than [`SHARED_BYTES_MIN`] is
    /// copied. The reference is dropped when the bytes have been sent.
    ///
    /// # Panics
    /// If `range` is outside `data`.
    pub fn push_shared(&mut self, data: impl Into<SharedBytes>, range: Range<usize>) {
        let data = data.into();
        let piece = &data.as_slice()[range.clone()];
        if piece.len() < SHARED_BYTES_MIN {
            self.extend_from_slice(piece);
            return;
        }
        self.shared_len += piece.len();
        let Range { start, end } = range;
        let (at, count) = (self.bytes.len(), UnreadCount::NOTHING);
        self.shared.push_back(SharedSegment { at, data, start, end, count });
    }

    /// Drops the queued output and keeps the buffer.
    pub fn clear(&mut self) {
        self.bytes.clear();
        self.sent = 0;
        if !self.shared.is_empty() {
            self.shared.clear();
            self.shared_len = 0;
        }
    }

    /// Returns the unsent pieces in order. None of them is empty.
    #[must_use]
    pub fn segments(&self) -> Segments<'_> {
        Segments { output: self, at: self.sent, next_shared: 0 }
    }

    /// Returns the unsent bytes if they are one piece of copied bytes, which is the usual case.
    #[inline]
    pub(crate) fn as_one(&self) -> Option<&[u8]> {
        self.shared.is_empty().then(|| &self.bytes[self.sent..])
    }

    /// Fills `into` with as many of the first pieces as fit.
    pub(crate) fn gather<'a, const N: usize>(
        &'a self,
        into: &mut smallvec::SmallVec<[IoSlice<'a>; N]>,
    ) {
        into.extend(self.segments().take(N).map(IoSlice::new));
    }

    /// Records that the first `n` bytes were sent, and frees their memory.
    #[inline]
    pub(crate) fn consume(&mut self, n: usize) {
        debug_assert!(n <= self.len(), "no more can be sent than was queued");
        if !self.shared.is_empty() {
            self.consume_pieces(n);
        } else if self.sent + n == self.bytes.len() {
            self.bytes.clear();
            self.sent = 0;
        } else {
            self.sent += n;
        }
    }

    fn consume_pieces(&mut self, mut n: usize) {
        while n > 0 {
            let until_shared = self.shared.front().map_or(self.bytes.len(), |next| next.at);
            let copied = n.min(until_shared.saturating_sub(self.sent));
            self.sent += copied;
            n -= copied;
            if n == 0 {
                break;
            }
            let Some(front) = self.shared.front_mut() else { break };
            let taken = n.min(front.len());
            front.start += taken;
            self.shared_len -= taken;
            n -= taken;
            if front.len() == 0 {
                self.shared.pop_front();
            }
        }
        if self.is_empty() {
            self.clear();
        }
    }

    /// Empties the output and takes its buffer, so that an idle connection holds none.
    #[inline]
    pub(crate) fn take_buffer(&mut self) -> Vec<u8> {
        self.clear();
        // The segment queue grows with the largest reply; idle connections do not keep it.
        if self.shared.capacity() > 0 {
            self.shared = VecDeque::new();
        }
        self.count.set(0);
        std::mem::take(&mut self.bytes)
    }

    #[cfg(test)]
    fn check(&self) {
        assert!(self.sent <= self.bytes.len());
        let mut at = self.sent;
        for segment in &self.shared {
            assert!(at <= segment.at && segment.at <= self.bytes.len() && segment.len() > 0);
            at = segment.at;
        }
        assert_eq!(self.shared_len, self.shared.iter().map(SharedSegment::len).sum::<usize>());
    }
}

impl std::io::Write for Output {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

/// Iterator of [`Output::segments`].
#[derive(Debug)]
pub struct Segments<'a> {
    output: &'a Output,
    at: usize,
    next_shared: usize,
}

impl<'a> Iterator for Segments<'a> {
    type Item = &'a [u8];

    fn next(&mut self) -> Option<&'a [u8]> {
        let bytes = &self.output.bytes;
        let next = self.output.shared.get(self.next_shared);
        let end = next.map_or(bytes.len(), |segment| segment.at.min(bytes.len()));
        if self.at < end {
            let piece = &bytes[self.at..end];
            self.at = end;
            return Some(piece);
        }
        let segment = next?;
        self.next_shared += 1;
        Some(segment.bytes())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn big(byte: u8) -> Arc<Vec<u8>> {
        Arc::new(vec![byte; SHARED_BYTES_MIN * 3])
    }

    fn wire(output: &Output) -> Vec<u8> {
        output.segments().flatten().copied().collect()
    }

    #[test]
    fn pieces_come_out_in_the_order_they_were_appended() {
        let mut output = Output::new();
        let value = big(b'x');
        output.push_shared(value.clone(), 0..4000);
        output.extend_from_slice(b"a");
        output.push_shared(value.clone(), 1..3001);
        output.push_shared(value.clone(), 0..2);
        output.extend_from_slice(b"b");
        output.check();
        let mut expected = vec![b'x'; 4000];
        expected.push(b'a');
        expected.extend_from_slice(&[b'x'; 3002]);
        expected.push(b'b');
        assert_eq!(wire(&output), expected);
        assert_eq!(output.len(), expected.len());
        assert_eq!(Arc::strong_count(&value), 3);
    }

    #[test]
    fn sending_any_number_of_bytes_leaves_the_rest_and_drops_what_was_sent() {
        for step in [1, 7, 2048, 5000, 100_000, 300_000] {
            let mut output = Output::new();
            let value = big(b'v');
            for i in 0..40u8 {
                output.extend_from_slice(&vec![i; 5000]);
                output.push_shared(value.clone(), 0..2048 + usize::from(i));
            }
            let expected = wire(&output);
            let mut seen = Vec::new();
            while !output.is_empty() {
                let piece: Vec<u8> = output.segments().flatten().copied().take(step).collect();
                output.consume(piece.len());
                output.check();
                seen.extend_from_slice(&piece);
                if step < 2048 && seen.len() > 10_000 {
                    break; // small steps are covered by the first segments
                }
            }
            assert_eq!(seen, expected[..seen.len()]);
            if output.is_empty() {
                assert_eq!(Arc::strong_count(&value), 1);
            }
        }
    }

    #[test]
    fn growing_beyond_a_chunk_keeps_order_and_moves_nothing() {
        let mut output = Output::new();
        let value = big(b'v');
        let mut expected = Vec::new();
        for i in 0..2000u32 {
            let piece = vec![i as u8; 1 + (i as usize * 37) % 900];
            output.extend_from_slice(&piece);
            expected.extend_from_slice(&piece);
            if i % 70 == 0 {
                output.push_shared(value.clone(), 0..2048);
                expected.extend_from_slice(&value[..2048]);
            }
            if i % 90 == 0 {
                output.consume(777.min(output.len()));
                expected.drain(..777.min(expected.len()));
            }
            output.check();
            assert_eq!(output.len(), expected.len());
            assert!(output.capacity() <= CHUNK_BYTES, "no buffer grows without bound");
        }
        assert!(expected.len() > 8 * CHUNK_BYTES, "several chunks were begun");
        assert_eq!(wire(&output), expected);
        output.consume(expected.len());
        assert!(output.is_empty() && Arc::strong_count(&value) == 1);
    }

    #[test]
    fn one_append_larger_than_a_chunk_takes_one_buffer() {
        let mut output = Output::new();
        for byte in 0..4 {
            output.extend_from_slice(&vec![byte; 3 * CHUNK_BYTES]);
            output.check();
        }
        assert_eq!(output.segments().count(), 4);
    }

    #[test]
    fn a_reader_that_lags_does_not_keep_sent_bytes_in_memory() {
        let mut output = Output::new();
        for _ in 0..10_000 {
            output.extend_from_slice(&[1; 1000]);
            if output.len() > 200_000 {
                output.consume(1000);
            }
        }
        let held: usize = output.shared.iter().map(|segment| segment.data.as_slice().len()).sum();
        assert!(held + output.capacity() < 400_000, "{held}, {}", output.capacity());
    }

    #[test]
    fn memory_is_what_is_queued_and_one_buffer() {
        for piece in [1, 900, 40_000, 65_000, 70_000, 300_000, 2_000_000] {
            let mut output = Output::new();
            let bytes = vec![7; piece];
            while output.len() < 8_000_000 {
                output.extend_from_slice(&bytes);
                output.check();
                let held: usize = output.shared.iter().map(|one| one.data.as_slice().len()).sum();
                let slack = output.memory() - output.len();
                assert!(slack < 3 * CHUNK_BYTES, "{slack} with pieces of {piece}");
                assert!(held <= output.len());
            }
        }
    }
}
