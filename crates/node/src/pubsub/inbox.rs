//! Messages for the sessions of one worker: published messages and messages of client-side caching.
//!
//! Any worker can add messages. The worker that owns the inbox takes them. Each message has a number. A subscription
//! stores the number of the next message, so that it does not receive older messages.

use super::Publication;
use crate::tracking::Notice;
use brisk_structures::poison::EvenPoisoned;
use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};

/// Number of deliveries at which all workers hold commands back until the inbox is emptied. This many deliveries take
/// about ten milliseconds. A message counts once for each subscriber on this worker. The messages of one command may
/// exceed the limit.
const DELIVERIES_MAX: usize = 64 * 1024;
/// Number of bytes of messages at which all workers hold commands back until the inbox is emptied.
const BYTES_MAX: usize = 8 * 1024 * 1024;

/// A message for a worker to deliver.
#[derive(Debug)]
pub enum PushMessage {
    Published(Arc<Publication>),
    Notice(Notice),
}

impl PushMessage {
    fn bytes(&self) -> usize {
        match self {
            PushMessage::Published(message) => message.wire_bytes(),
            PushMessage::Notice(notice) => notice.bytes(),
        }
    }
}

#[derive(Debug, Default)]
struct Queue {
    messages: VecDeque<PushMessage>,
    deliveries: usize,
    bytes: usize,
    /// Number of messages ever added.
    total: u64,
    /// True if the inbox exceeds a limit.
    full: bool,
}

/// One worker's messages. The inbox has its own cache lines, because the worker checks it after each command.
#[derive(Debug, Default)]
#[repr(align(128))]
pub struct Inbox {
    queue: Mutex<Queue>,
    /// True if the inbox is not empty.
    filled: AtomicBool,
}

/// The state of the inbox to which a message was added.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum InboxState {
    Nothing,
    Some,
    /// With the message, the inbox exceeds a limit.
    TooMuch,
}

impl Inbox {
    /// Adds a message with this number of deliveries.
    pub fn push(&self, message: PushMessage, deliveries: usize) -> InboxState {
        let mut queue = self.lock();
        queue.deliveries += deliveries;
        queue.bytes += message.bytes();
        queue.total += 1;
        queue.messages.push_back(message);
        let first = queue.messages.len() == 1;
        if first {
            self.filled.store(true, Ordering::Release);
        }
        let full = queue.deliveries >= DELIVERIES_MAX || queue.bytes >= BYTES_MAX;
        if full && !std::mem::replace(&mut queue.full, true) {
            InboxState::TooMuch
        } else if first {
            InboxState::Nothing
        } else {
            InboxState::Some
        }
    }

    /// The number that the next message will have.
    pub fn next_number(&self) -> u64 {
        self.lock().total
    }

    #[inline]
    pub fn is_filled(&self) -> bool {
        self.filled.load(Ordering::Acquire)
    }

    /// Swaps the messages with `empty`. Returns the number of the first message, and true if the inbox exceeded a
    /// limit.
    pub fn take(&self, empty: &mut VecDeque<PushMessage>) -> (u64, bool) {
        debug_assert!(empty.is_empty(), "its messages would be delivered again");
        let mut queue = self.lock();
        std::mem::swap(&mut queue.messages, empty);
        (queue.deliveries, queue.bytes) = (0, 0);
        self.filled.store(false, Ordering::Release);
        let was_full = std::mem::take(&mut queue.full);
        (queue.total - empty.len() as u64, was_full)
    }

    fn lock(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().even_poisoned()
    }
}

#[cfg(test)]
mod tests {
    use super::super::Space;
    use super::*;
    use smallvec::SmallVec;

    fn message(payload: &[u8]) -> PushMessage {
        let none = SmallVec::new();
        PushMessage::Published(Arc::new(Publication::new(
            Space::Channel,
            b"c",
            payload,
            true,
            none,
        )))
    }

    #[test]
    fn messages_are_numbered_throughout() {
        let inbox = Inbox::default();
        assert_eq!(inbox.push(message(b"1"), 1), InboxState::Nothing);
        assert_eq!(inbox.push(message(b"2"), 1), InboxState::Some);
        let mut taken = VecDeque::new();
        assert_eq!(inbox.take(&mut taken), (0, false));
        assert_eq!(taken.len(), 2);
        assert!(!inbox.is_filled());
        assert_eq!(inbox.next_number(), 2);
        inbox.push(message(b"3"), 1);
        taken.clear();
        assert_eq!(inbox.take(&mut taken), (2, false));
    }

    #[test]
    fn a_full_inbox_is_reported_once_until_it_is_emptied() {
        let inbox = Inbox::default();
        let large = || message(&vec![b'x'; BYTES_MAX]);
        for _ in 0..2 {
            assert_eq!(inbox.push(message(b""), 1), InboxState::Nothing);
            assert_eq!(inbox.push(large(), 1), InboxState::TooMuch);
            assert_eq!(inbox.push(message(b""), 1), InboxState::Some);
            assert!(inbox.take(&mut VecDeque::new()).1);
        }
        assert_eq!(inbox.push(message(b""), DELIVERIES_MAX - 1), InboxState::Nothing);
        assert_eq!(inbox.push(message(b""), 1), InboxState::TooMuch);
    }
}
