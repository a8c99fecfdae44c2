//! Output of a session that waits until the changes that it shows are in the append-only file or acknowledged by
//! replicas.

use brisk_engine::keyspace::Ticket;
use std::collections::VecDeque;

/// The parts of the output, in the order in which they are sent.
#[derive(Debug, Default)]
pub struct HeldReplies {
    parts: VecDeque<(Ticket, Vec<u8>)>,
    bytes: usize,
    /// Capacity of all parts.
    capacity: usize,
    /// When the oldest part was added, or when output was last sent, in the worker's nanoseconds.
    since_ns: u64,
    /// True if the connection is to be closed after the waiting output.
    closes: bool,
}

impl HeldReplies {
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.parts.is_empty()
    }

    /// Number of bytes that wait.
    #[inline]
    pub fn len(&self) -> usize {
        self.bytes
    }

    /// Bytes of memory of the waiting output. O(1).
    #[inline]
    pub fn memory(&self) -> usize {
        self.capacity + self.parts.capacity() * size_of::<(Ticket, Vec<u8>)>()
    }

    /// The position up to which the oldest part shows the dataset.
    pub fn first(&self) -> Option<Ticket> {
        self.parts.front().map(|(shown, _)| *shown)
    }

    /// When the oldest part began to wait, or when output was last sent.
    pub fn since_ns(&self) -> u64 {
        self.since_ns
    }

    /// Closes the connection after the waiting output.
    pub fn close_after_output(&mut self) {
        self.closes = true;
    }

    /// Returns true if nothing waits and the connection is to be closed, and clears the flag.
    pub fn take_close(&mut self) -> bool {
        self.parts.is_empty() && std::mem::take(&mut self.closes)
    }

    /// Adds output that shows the dataset up to `shown`.
    pub fn push(&mut self, shown: Ticket, now_ns: u64, write: impl FnOnce(&mut Vec<u8>)) {
        if self.parts.is_empty() {
            self.since_ns = now_ns;
        }
        // Output cannot be sent before earlier output.
        let shown = self.parts.back().map_or(shown, |(last, _)| shown.max(*last));
        match self.parts.back_mut() {
            Some((last, bytes)) if *last == shown => {
                let before = (bytes.len(), bytes.capacity());
                write(bytes);
                self.bytes += bytes.len() - before.0;
                self.capacity += bytes.capacity() - before.1;
            }
            _ => {
                let mut bytes = Vec::new();
                write(&mut bytes);
                self.bytes += bytes.len();
                self.capacity += bytes.capacity();
                self.parts.push_back((shown, bytes));
            }
        }
    }

    /// The next part, if the stream has reached its position.
    pub fn pop(&mut self, reached: Ticket, now_ns: u64) -> Option<Vec<u8>> {
        self.parts.front().filter(|(shown, _)| *shown <= reached)?;
        let (_, bytes) = self.parts.pop_front()?;
        self.bytes -= bytes.len();
        self.capacity -= bytes.capacity();
        if self.parts.is_empty() {
            // Free the queue: it grows large with many small parts, and a session without waiting output needs none.
            self.parts = VecDeque::new();
        }
        self.since_ns = now_ns;
        Some(bytes)
    }

    /// Drops everything, because the connection is closed.
    pub fn clear(&mut self) {
        *self = HeldReplies::default();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn output_is_sent_in_order_up_to_the_position_of_the_stream() {
        let mut held_replies = HeldReplies::default();
        let mut push = |shown, text: &[u8]| {
            held_replies.push(Ticket(shown), 1, |out| out.extend_from_slice(text));
        };
        push(5, b"a");
        push(5, b"b");
        push(9, b"c");
        // Shows older data after a write.
        push(3, b"d");
        assert_eq!(held_replies.len(), 4);
        assert_eq!(held_replies.pop(Ticket(4), 2), None);
        assert_eq!(
            (held_replies.pop(Ticket(8), 2), held_replies.pop(Ticket(8), 2)),
            (Some(b"ab".to_vec()), None)
        );
        assert_eq!(held_replies.pop(Ticket(9), 3), Some(b"cd".to_vec()));
        assert!(held_replies.is_empty() && held_replies.bytes == 0 && held_replies.memory() == 0);
    }

    #[test]
    fn many_small_parts_count_with_their_actual_memory_usage() {
        let mut held_replies = HeldReplies::default();
        for shown in 0..10_000 {
            held_replies.push(Ticket(shown), 1, |out| out.extend_from_slice(b"+OK\r\n"));
        }
        assert_eq!(held_replies.len(), 50_000);
        let least = 10_000 * (size_of::<(Ticket, Vec<u8>)>() + 5);
        assert!((least..4 * least).contains(&held_replies.memory()), "{}", held_replies.memory());
    }
}
