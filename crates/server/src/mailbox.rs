//! Messages from one worker, or from any other thread, to a worker.

use brisk_reactor::{Listener, Token, Waker};
use std::collections::VecDeque;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

/// Messages a worker has not read yet, at most; beyond it lines for monitors are dropped with
/// their monitors, since nobody who reads that slowly can be served.
const MESSAGES_MAX: usize = 100_000;

/// What a worker is asked to do.
#[derive(Debug)]
pub enum Message {
    /// Close this client.
    Kill { token: Token, id: u64 },
    /// A line for each of the worker's monitors.
    MonitorLine(Arc<[u8]>),
    /// CLIENT PAUSE has ended.
    Unpause,
    /// This session wants a line for each command from now on.
    Monitor(Token),
    /// Accept on these TCP listeners, and no longer on the present ones.
    Listen(Vec<Listener>),
    /// Probe idle connections that are accepted from now on after so many seconds.
    Keepalive(u32),
}

/// One worker's mailbox.
#[derive(Debug, Default)]
pub struct Mailbox {
    messages: Mutex<VecDeque<Message>>,
    waker: OnceLock<Waker>,
}

impl Mailbox {
    /// Tells how to wake the worker. Messages sent before are kept.
    pub fn connect(&self, waker: Waker) {
        // A second worker for the same mailbox does not exist.
        let _ = self.waker.set(waker);
    }

    /// Sends a message; false if the mailbox is full.
    pub fn send(&self, message: Message) -> bool {
        let mut messages = self.messages.lock().unwrap_or_else(PoisonError::into_inner);
        if messages.len() >= MESSAGES_MAX && matches!(message, Message::MonitorLine(_)) {
            return false;
        }
        messages.push_back(message);
        drop(messages);
        self.wake();
        true
    }

    pub fn wake(&self) {
        if let Some(waker) = self.waker.get() {
            waker.wake();
        }
    }

    /// All messages so far.
    pub fn take(&self) -> VecDeque<Message> {
        std::mem::take(&mut *self.messages.lock().unwrap_or_else(PoisonError::into_inner))
    }
}
