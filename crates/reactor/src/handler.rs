//! What a worker implements to be driven by a reactor, and the words used between the two.

use crate::control::Control;
use crate::token::Token;
use std::borrow::Cow;
use std::io;
use std::time::Duration;

/// How long the default `finished` waits for a peer that has stopped sending to take its replies.
const FINISHED_LINGER: Duration = Duration::from_secs(10);

/// Called by [`crate::Reactor::poll`] for everything that happens. Calls never nest.
pub trait Handler {
    /// A connection was accepted on the listener of this index. To keep it and write a greeting is
    /// fine.
    fn accepted(&mut self, io: &mut Control, token: Token, listener: usize) -> Accept;

    /// Bytes arrived, in order. The slice is the reactor's receive buffer: what is not used now
    /// must be copied. Not called while reading is paused, nor after `close`.
    fn received(&mut self, io: &mut Control, token: Token, bytes: &[u8]);

    /// The peer has shut its sending side; everything it sent was delivered. Once per connection,
    /// and not if the peer vanished with an error. The connection stays open until `close` is
    /// called, so that requests already received can be answered; by default it is closed as soon
    /// as the queued output is written.
    fn finished(&mut self, io: &mut Control, token: Token) {
        io.close(token, Close::Flush { linger: FINISHED_LINGER });
    }

    /// The peer has shut its sending side or is gone, while reading is paused; bytes may still wait
    /// in the kernel. At most once per pause. Nothing needs to be done; who only waits for this
    /// client may close.
    fn hung_up(&mut self, io: &mut Control, token: Token) {
        let _ = (io, token);
    }

    /// The connection is gone, exactly once for each that `accepted` kept or that was adopted. The
    /// token is stale already: calls with it do nothing.
    fn closed(&mut self, io: &mut Control, token: Token, reason: CloseReason);

    /// What [`Control::when_drained`] asked for has come about.
    fn drained(&mut self, io: &mut Control, token: Token) {
        let _ = (io, token);
    }

    /// A [`crate::Waker`] was used. Once per round at most.
    fn woken(&mut self, io: &mut Control) {
        let _ = io;
    }

    /// A connection could not be accepted (say, for want of descriptors); the listener rests for a
    /// moment. For the log.
    fn accept_failed(&mut self, io: &mut Control, listener: usize, error: &io::Error) {
        let _ = (io, listener, error);
    }

    /// The loop is about to wait for events, and does nothing else until `resumed`. Once per round.
    fn waiting(&mut self) {}

    /// The wait is over; events follow.
    fn resumed(&mut self) {}

    /// All events of the round were delivered; what is queued and marked now is sent right after.
    fn round_end(&mut self, io: &mut Control) {
        let _ = io;
    }
}

/// What becomes of a new connection.
#[derive(Debug, PartialEq, Eq)]
pub enum Accept {
    Keep,
    /// Write these bytes if the socket takes them at once, then close. `closed` is not called.
    Refuse(Cow<'static, [u8]>),
}

/// How to close.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Close {
    /// Drop what is queued.
    Now,
    /// Stop reading, write what is queued, then close; give up after `linger`.
    Flush { linger: Duration },
}

/// Why a connection is gone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CloseReason {
    /// `close` was called, by whatever cause, and the peer was still sending or might have been.
    Requested,
    /// `close` was called after the peer had finished sending.
    PeerFinished,
    /// The connection broke: the `errno` of the failed operation, or 0 if the kernel only said that
    /// it hung up.
    Broken(i32),
    /// The peer did not take the queued output before the linger time was over.
    LingerExpired,
}
