//! The work that commands leave to their worker, which owns the sessions and their connections.

use super::mailbox::DeliveredReply;
use brisk_reactor::Token;
use std::cell::{Cell, RefCell};
use std::collections::VecDeque;

/// Work for a worker after the current command, or at the end of the round.
#[derive(Debug, Default)]
pub struct PendingWork {
    /// Sessions to close after the current command.
    closes: Vec<Token>,
    /// Replies for sessions of this worker whose commands were waiting.
    deliveries: VecDeque<DeliveredReply>,
    /// Sessions of this worker with output that waits for the append-only file or for replicas.
    held: RefCell<Vec<Token>>,
    /// True if output has begun to wait for replicas in this round.
    awaits_acks: Cell<bool>,
}

impl PendingWork {
    /// Closes the connection of a session after the current command.
    pub fn close(&mut self, token: Token) {
        self.closes.push(token);
    }

    /// Takes a session whose connection is to be closed.
    #[inline]
    pub fn next_to_close(&mut self) -> Option<Token> {
        self.closes.pop()
    }

    /// Delivers the reply to a command that was waiting.
    pub fn deliver(&mut self, delivery: DeliveredReply) {
        self.deliveries.push_back(delivery);
    }

    /// Takes the next reply to a command that was waiting.
    #[inline]
    pub fn next_delivery(&mut self) -> Option<DeliveredReply> {
        self.deliveries.pop_front()
    }

    /// Notes a session whose output waits for the append-only file or for replicas.
    pub fn hold(&self, token: Token) {
        self.held.borrow_mut().push(token);
    }

    /// Reports whether output of any session waits.
    #[inline]
    pub fn has_held(&self) -> bool {
        !self.held.borrow().is_empty()
    }

    /// Takes the sessions whose output waits.
    pub fn take_held(&self) -> Vec<Token> {
        std::mem::take(&mut *self.held.borrow_mut())
    }

    /// Requests acknowledgements from replicas at the end of the round.
    pub fn request_acks(&self) {
        self.awaits_acks.set(true);
    }

    /// Reports whether acknowledgements were requested since the last call.
    pub fn take_request_for_acks(&self) -> bool {
        self.awaits_acks.take()
    }
}
