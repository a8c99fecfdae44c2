//! Output of a session that has not reached its connection, and the amount of output that the client has not read.

use super::Session;
use crate::persistence::aof::held_replies::HeldReplies;
use brisk_engine::reply::ReplyStream;
use brisk_structures::alloc::SetAside;

/// The amount of memory of held replies and deferred messages is published to other threads each time it has changed by
/// this many bytes.
const SET_ASIDE_STEP: u64 = 16 * 1024;

/// Output that waits, and the numbers that are used to limit unread output.
#[derive(Default)]
pub struct SessionOutput {
    /// A large reply that is written piece by piece as the client reads it.
    stream: Option<ReplyStream>,
    /// Messages that arrived while a large reply or a replica's snapshot was being sent. They are sent after it.
    deferred_messages: Vec<u8>,
    /// Output that waits until the changes that it shows are in the append-only file or on replicas.
    held_replies: HeldReplies,
    /// Upper bound of the number of unread bytes that were not caused by requests of this client (published messages,
    /// invalidations, lines for monitors).
    pushed: usize,
    /// Excludes the memory of `deferred_messages` and `held_replies` from the memory that triggers eviction.
    set_aside: SetAside,
    /// The time in Unix ms since which unsent output has been above the soft limit of the client's class.
    over_soft_limit_since: Option<u64>,
    /// When the timers first noticed that the client had disconnected while replies were waiting for replicas, in Unix
    /// ms.
    left_ms: Option<u64>,
}

impl SessionOutput {
    /// Reports whether a large reply is being written.
    #[inline]
    pub fn has_stream(&self) -> bool {
        self.stream.is_some()
    }

    /// Takes the large reply that is being written.
    pub fn take_stream(&mut self) -> Option<ReplyStream> {
        self.stream.take()
    }

    /// Sets the large reply that is written piece by piece as the client reads it.
    pub fn set_stream(&mut self, stream: Option<ReplyStream>) {
        self.stream = stream;
    }

    /// Defers a part of a message until the reply or snapshot before it has been written.
    pub fn defer(&mut self, bytes: &[u8]) {
        self.deferred_messages.extend_from_slice(bytes);
    }

    /// Takes the messages that were deferred.
    pub fn take_deferred(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.deferred_messages)
    }

    /// Moves the messages that were deferred to the end of `to`.
    pub fn release_deferred(&mut self, to: &mut Vec<u8>) {
        to.append(&mut self.deferred_messages);
    }

    /// Number of bytes of deferred messages.
    #[inline]
    pub fn deferred_len(&self) -> usize {
        self.deferred_messages.len()
    }

    /// Output that waits until the changes that it shows are in the append-only file or on replicas.
    #[inline]
    pub fn held_replies(&self) -> &HeldReplies {
        &self.held_replies
    }

    #[inline]
    pub fn held_replies_mut(&mut self) -> &mut HeldReplies {
        &mut self.held_replies
    }

    /// Bytes of memory. O(1).
    #[inline]
    pub(super) fn memory(&self) -> usize {
        self.deferred_messages.capacity() + self.held_replies.memory()
    }

    /// Upper bound of the number of unread bytes that were not caused by requests of this client.
    #[inline]
    pub fn pushed(&self) -> usize {
        self.pushed
    }

    /// Counts bytes of output that were not caused by requests of this client.
    #[inline]
    pub fn count_pushed(&mut self, bytes: usize) {
        self.pushed += bytes;
    }

    /// Lowers the bound of unrequested output to `unread` bytes.
    #[inline]
    pub fn bound_pushed(&mut self, unread: usize) {
        if self.pushed > unread {
            self.pushed = unread;
        }
    }

    /// Bytes of unread output: the `unsent` bytes in the connection's output, plus held replies and deferred messages.
    /// O(1).
    #[inline]
    pub fn unread(&self, unsent: usize) -> usize {
        unsent + self.held_replies.memory() + self.deferred_messages.len()
    }

    /// The part of [`SessionOutput::unread`] that the client's own requests caused, as a lower bound.
    pub fn unread_replies(&mut self, unsent: usize) -> usize {
        let unread = self.unread(unsent);
        self.bound_pushed(unread);
        unread - self.pushed
    }

    /// Excludes the memory of held replies and deferred messages from the memory that triggers eviction.
    #[inline]
    pub fn set_unread_aside(&mut self) {
        let bytes = self.memory() as u64;
        let before = self.set_aside.bytes();
        if bytes.abs_diff(before) >= SET_ASIDE_STEP || (bytes == 0 && before > 0) {
            self.set_aside.resize(bytes);
        }
    }

    /// Notes that unsent output is within the soft limit.
    #[inline]
    pub(crate) fn note_within_soft_limit(&mut self) {
        self.over_soft_limit_since = None;
    }

    /// The time in Unix ms since which unsent output has been above the soft limit. `ClientLimits` updates it.
    pub(crate) fn over_soft_limit_since(&mut self) -> &mut Option<u64> {
        &mut self.over_soft_limit_since
    }

    /// Notes that the client has not disconnected or that no replies wait.
    pub fn note_not_left(&mut self) {
        self.left_ms = None;
    }

    /// Notes that the client has disconnected while replies wait. Returns when this was first noted, in Unix ms.
    pub fn note_left(&mut self, now_ms: u64) -> u64 {
        *self.left_ms.get_or_insert(now_ms)
    }
}

impl Session {
    /// Reports whether messages are deferred, so that they do not interrupt a reply or a snapshot.
    #[inline]
    pub fn defers_messages(&self) -> bool {
        self.output.has_stream() || self.is_in_full_sync()
    }
}
