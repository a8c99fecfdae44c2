//! Buffers that a worker keeps for reuse.

use brisk_node::pubsub::PushMessage;
use std::collections::VecDeque;

/// A plaintext buffer above this size is freed.
const PLAIN_KEPT_MAX: usize = 128 * 1024;
/// The queue of messages is freed if it has room for more than this.
const MESSAGES_KEPT_MAX: usize = 1024;

/// Empty buffers. A buffer is taken when it is needed and put back afterwards.
#[derive(Default)]
pub(super) struct SpareBuffers {
    /// Swapped with the queue of the inbox.
    messages: VecDeque<PushMessage>,
    /// For decrypted input.
    plain: Vec<u8>,
}

impl SpareBuffers {
    pub(super) fn take_messages(&mut self) -> VecDeque<PushMessage> {
        std::mem::take(&mut self.messages)
    }

    pub(super) fn put_messages(&mut self, mut messages: VecDeque<PushMessage>) {
        messages.clear();
        messages.shrink_to(MESSAGES_KEPT_MAX);
        self.messages = messages;
    }

    pub(super) fn take_plain(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.plain)
    }

    pub(super) fn put_plain(&mut self, mut plain: Vec<u8>) {
        plain.clear();
        plain.shrink_to(PLAIN_KEPT_MAX);
        self.plain = plain;
    }
}
