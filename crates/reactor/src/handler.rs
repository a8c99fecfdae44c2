//! The trait that a worker implements to be driven by a reactor, and the types of its methods.

use crate::control::Control;
use crate::token::Token;
use std::borrow::Cow;
use std::io;
use std::time::Duration;

/// How long the default `finished` waits for a peer that has stopped sending to read its replies.
const FINISHED_LINGER: Duration = Duration::from_secs(10);

/// The callbacks of a reactor. [`crate::Reactor::poll`] calls them; calls never nest.
pub trait Handler {
    /// A connection was accepted on the listener with this index. The handler may keep the
    /// connection and write a greeting.
    fn accepted(&mut self, io: &mut Control, token: Token, listener: usize) -> Accept;

    /// Bytes arrived, in order. The slice is the reactor's receive buffer, so the handler must copy
    /// the bytes that it does not use now. Not called while reading is paused, nor after `close`.
    fn received(&mut self, io: &mut Control, token: Token, bytes: &[u8]);

    /// The peer has shut down its sending side, and everything that it sent was delivered. Called
    /// at most once per connection, and not if the connection ended with an error.
    ///
    /// The connection stays open until `close` is called, so that requests that were already
    /// received can get their replies. By default, the connection is closed as soon as the queued
    /// output is written.
    fn finished(&mut self, io: &mut Control, token: Token) {
        io.close(token, Close::Flush { linger: FINISHED_LINGER });
    }

    /// The peer has shut down its sending side or is gone while reading is paused. Unread bytes may
    /// remain in the kernel. Called at most once per pause. The handler need not react. If reading
    /// is paused only because the client is waiting for something, the handler may close the
    /// connection.
    fn hung_up(&mut self, io: &mut Control, token: Token) {
        let _ = (io, token);
    }

    /// The connection is closed. Called exactly once for each connection that `accepted` kept or
    /// that was adopted. The token is already stale: calls with it do nothing.
    fn closed(&mut self, io: &mut Control, token: Token, reason: CloseReason);

    /// The output has drained to the limit that [`Control::when_drained`] set.
    fn drained(&mut self, io: &mut Control, token: Token) {
        let _ = (io, token);
    }

    /// A [`crate::Waker`] was used. Called at most once per round.
    fn woken(&mut self, io: &mut Control) {
        let _ = io;
    }

    /// A connection could not be accepted, for example because descriptors ran out. The listener is
    /// suspended briefly. Used for logging.
    fn accept_failed(&mut self, io: &mut Control, listener: usize, error: &io::Error) {
        let _ = (io, listener, error);
    }

    /// The loop is about to wait for events and does nothing else until `resumed`. Called once per
    /// round.
    fn waiting(&mut self) {}

    /// The wait is over; events follow.
    fn resumed(&mut self) {}

    /// All events of the round were delivered. Output that is queued and marked for sending now is
    /// sent right after this call.
    fn round_end(&mut self, io: &mut Control) {
        let _ = io;
    }
}

/// The decision about a new connection.
#[derive(Debug, PartialEq, Eq)]
pub enum Accept {
    Keep,
    /// Write these bytes if the socket takes them immediately, then close. `closed` is not called.
    Refuse(Cow<'static, [u8]>),
}

/// How to close a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Close {
    /// Drop the queued output.
    Now,
    /// Stop reading, write the queued output, then close. Give up after `linger`.
    Flush { linger: Duration },
}

/// Why a connection was closed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CloseReason {
    /// `close` was called while the peer was still sending, or may have been.
    Requested,
    /// `close` was called after the peer had finished sending.
    PeerFinished,
    /// The connection failed. Holds the `errno` of the failed operation, or 0 if the kernel only
    /// reported a hang-up.
    Broken(i32),
    /// The peer did not read the queued output before the linger time was over.
    LingerExpired,
}
