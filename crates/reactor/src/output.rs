//! What one connection still has to send: copied bytes and shared segments, in order.
//!
//! ```text
//!            sent                 at of s0        at of s1             bytes.len()
//!  bytes  |---v--------------------v---------------v---------------------|
//!         |gone| copied            | copied        | copied              |  appended to
//!  shared                          [ s0: Arc, 10 MB][ s1: Arc ]
//!  wire    copied · s0 · copied · s1 · copied
//! ```
//!
//! All copied bytes lie in one `Vec`, so appending a small reply is a plain `extend_from_slice`,
//! and a slow reader of small messages costs no allocation per message. Shared segments are
//! referred to, not copied; each stands before the byte `at`.
//!
//! Invariants (`check` verifies each)
//!  1. `sent <= bytes.len()`, and the `at`s ascend (equal ones allowed) between `sent` and
//!     `bytes.len()`.
//!  2. No shared segment is empty; `shared_len` is the sum of their lengths.
//!  3. Bytes behind an `Arc` held here do not move or change: [`Shared`] admits only types for
//!     which that is so.
//!
//! The sent front of `bytes` is given back when it is at least half of it, so memory stays within a
//! constant factor of what is queued.

use std::collections::VecDeque;
use std::io::IoSlice;
use std::ops::Range;
use std::sync::Arc;

/// A segment shorter than this is copied: one more piece in a gathered write costs about as much as
/// copying 2 KiB.
pub const SHARED_BYTES_MIN: usize = 2048;

/// Up to this size the buffer doubles when it grows. Above, it grows by a quarter: a client that
/// does not read its replies holds that much memory and not up to twice of it.
const DOUBLING_BYTES_MAX: usize = 64 * 1024;
/// The sent front of the buffer is cut off only from this size on; below, moving is not worth a
/// call.
const CUT_BYTES_MIN: usize = 64 * 1024;

/// Bytes owned elsewhere that can be sent without a copy. They must not change while shared, which
/// `Arc` ensures.
#[derive(Clone, Debug)]
pub enum Shared {
    Vec(Arc<Vec<u8>>),
    Boxed(Arc<Box<[u8]>>),
    Slice(Arc<[u8]>),
    Static(&'static [u8]),
}

impl Shared {
    /// The whole of the shared bytes.
    #[must_use]
    pub fn as_slice(&self) -> &[u8] {
        match self {
            Shared::Vec(bytes) => bytes,
            Shared::Boxed(bytes) => bytes,
            Shared::Slice(bytes) => bytes,
            Shared::Static(bytes) => bytes,
        }
    }
}

impl From<Arc<Vec<u8>>> for Shared {
    fn from(bytes: Arc<Vec<u8>>) -> Self {
        Shared::Vec(bytes)
    }
}

impl From<Arc<Box<[u8]>>> for Shared {
    fn from(bytes: Arc<Box<[u8]>>) -> Self {
        Shared::Boxed(bytes)
    }
}

impl From<Arc<[u8]>> for Shared {
    fn from(bytes: Arc<[u8]>) -> Self {
        Shared::Slice(bytes)
    }
}

impl From<&'static [u8]> for Shared {
    fn from(bytes: &'static [u8]) -> Self {
        Shared::Static(bytes)
    }
}

#[derive(Debug)]
struct Placed {
    at: usize,
    data: Shared,
    start: usize,
    end: usize,
}

impl Placed {
    fn bytes(&self) -> &[u8] {
        &self.data.as_slice()[self.start..self.end]
    }

    fn len(&self) -> usize {
        self.end - self.start
    }
}

/// The end of an [`Output`] at some moment; see [`Output::truncate`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mark {
    bytes: usize,
    shared: usize,
}

/// Queue of bytes to send. Appending is amortised O(bytes copied); everything else O(pieces).
#[derive(Debug, Default)]
pub struct Output {
    bytes: Vec<u8>,
    sent: usize,
    shared: VecDeque<Placed>,
    shared_len: usize,
}

impl Output {
    /// An empty output that owns no memory.
    #[must_use]
    pub const fn new() -> Self {
        Self { bytes: Vec::new(), sent: 0, shared: VecDeque::new(), shared_len: 0 }
    }

    pub(crate) fn with_buffer(bytes: Vec<u8>) -> Self {
        debug_assert!(bytes.is_empty());
        Self { bytes, ..Self::new() }
    }

    /// Bytes queued and not yet sent, copied and shared.
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

    /// Bytes of memory held for copied data; shared segments belong to their owners.
    #[must_use]
    pub fn capacity(&self) -> usize {
        self.bytes.capacity()
    }

    /// Copies `bytes` to the end.
    #[inline]
    pub fn extend_from_slice(&mut self, bytes: &[u8]) {
        if self.bytes.len() >= DOUBLING_BYTES_MAX {
            self.grow_by_quarters(bytes.len());
        }
        self.bytes.extend_from_slice(bytes);
    }

    #[cold]
    fn grow_by_quarters(&mut self, more: usize) {
        if self.bytes.capacity() - self.bytes.len() < more {
            self.bytes.reserve_exact(more.max(self.bytes.len() / 4));
        }
    }

    /// The open end, for encoders that write into a `Vec`. Only append: what stands there already
    /// belongs to earlier replies, and taking it away garbles them (use [`Output::truncate`]).
    #[inline]
    pub fn tail(&mut self) -> &mut Vec<u8> {
        &mut self.bytes
    }

    /// Appends `range` of `data` without copying it, or copies it if it is shorter than
    /// [`SHARED_BYTES_MIN`]. The reference is dropped when the bytes have been sent.
    ///
    /// # Panics
    /// If `range` lies outside `data`.
    pub fn push_shared(&mut self, data: impl Into<Shared>, range: Range<usize>) {
        let data = data.into();
        let piece = &data.as_slice()[range.clone()];
        if piece.len() < SHARED_BYTES_MIN {
            self.bytes.extend_from_slice(piece);
            return;
        }
        self.shared_len += piece.len();
        let Range { start, end } = range;
        self.shared.push_back(Placed { at: self.bytes.len(), data, start, end });
    }

    /// Remembers the present end. A mark holds until something of this output is sent, that is:
    /// within one call of the handler.
    #[inline]
    #[must_use]
    pub fn mark(&self) -> Mark {
        Mark { bytes: self.bytes.len(), shared: self.shared.len() }
    }

    /// Bytes appended since `mark`.
    #[must_use]
    pub fn len_since(&self, mark: Mark) -> usize {
        let shared: usize = self.shared.iter().skip(mark.shared).map(Placed::len).sum();
        self.bytes.len().saturating_sub(mark.bytes) + shared
    }

    /// Takes away everything appended since `mark`, shared segments too.
    pub fn truncate(&mut self, mark: Mark) {
        debug_assert!(mark.bytes >= self.sent, "a mark does not outlive the sending of its bytes");
        while self.shared.len() > mark.shared {
            if let Some(gone) = self.shared.pop_back() {
                self.shared_len -= gone.len();
            }
        }
        self.bytes.truncate(mark.bytes.max(self.sent));
    }

    /// Drops everything queued, keeping the buffer.
    pub fn clear(&mut self) {
        self.bytes.clear();
        self.sent = 0;
        self.shared.clear();
        self.shared_len = 0;
    }

    /// The unsent pieces in order, none of them empty.
    #[must_use]
    pub fn segments(&self) -> Segments<'_> {
        Segments { output: self, at: self.sent, next_shared: 0 }
    }

    /// The unsent bytes, if they are one piece of copied bytes: the usual case.
    #[inline]
    pub(crate) fn as_one(&self) -> Option<&[u8]> {
        self.shared.is_empty().then(|| &self.bytes[self.sent..])
    }

    /// Fills `into` with the first pieces, as many as fit.
    pub(crate) fn gather<'a, const N: usize>(
        &'a self,
        into: &mut smallvec::SmallVec<[IoSlice<'a>; N]>,
    ) {
        into.extend(self.segments().take(N).map(IoSlice::new));
    }

    /// Notes that the first `n` bytes were sent and drops what they held.
    pub(crate) fn consume(&mut self, mut n: usize) {
        debug_assert!(n <= self.len(), "no more can be sent than was queued");
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
        } else if self.sent >= CUT_BYTES_MIN && self.sent * 2 >= self.bytes.len() {
            self.bytes.drain(..self.sent);
            for placed in &mut self.shared {
                placed.at -= self.sent;
            }
            self.sent = 0;
        }
    }

    /// Gives the empty buffer away, so that an idle connection holds none.
    pub(crate) fn take_buffer(&mut self) -> Vec<u8> {
        self.clear();
        // A ring of segment places grows with the greatest reply; idle connections do not keep it.
        self.shared = VecDeque::new();
        std::mem::take(&mut self.bytes)
    }

    #[cfg(test)]
    fn check(&self) {
        assert!(self.sent <= self.bytes.len());
        let mut at = self.sent;
        for placed in &self.shared {
            assert!(at <= placed.at && placed.at <= self.bytes.len() && placed.len() > 0);
            at = placed.at;
        }
        assert_eq!(self.shared_len, self.shared.iter().map(Placed::len).sum::<usize>());
    }
}

impl std::io::Write for Output {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.bytes.extend_from_slice(bytes);
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
        let end = next.map_or(bytes.len(), |placed| placed.at.min(bytes.len()));
        if self.at < end {
            let piece = &bytes[self.at..end];
            self.at = end;
            return Some(piece);
        }
        let placed = next?;
        self.next_shared += 1;
        Some(placed.bytes())
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
                    break; // small steps are shown by the first segments
                }
            }
            assert_eq!(seen, expected[..seen.len()]);
            if output.is_empty() {
                assert_eq!(Arc::strong_count(&value), 1);
            }
        }
    }

    #[test]
    fn truncating_to_a_mark_takes_back_copied_and_shared() {
        let mut output = Output::new();
        let value = big(b'v');
        output.extend_from_slice(b"keep");
        output.push_shared(value.clone(), 0..2048);
        let mark = output.mark();
        let before = wire(&output);
        output.extend_from_slice(b"half a reply");
        output.push_shared(value.clone(), 0..4096);
        assert_eq!(output.len_since(mark), 12 + 4096);
        output.truncate(mark);
        output.check();
        assert_eq!(wire(&output), before);
        assert_eq!(Arc::strong_count(&value), 2);
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
        assert!(output.capacity() < 2_000_000, "{}", output.capacity());
    }
}
