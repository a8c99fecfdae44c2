//! Waits that the worker itself ends: timeouts, acknowledgements, and the append-only file.

use brisk_reactor::{Token, unix_ms};
use brisk_structures::slab::Id;
use brisk_structures::wheel::Wheel;

/// The waits of a worker.
pub(super) struct PendingWaits {
    /// Timeouts of the blocked sessions of this worker.
    timers: Wheel<Token>,
    /// Sessions with a waiting WAIT or WAITAOF command.
    for_acks: Vec<Token>,
    /// When replicas began to wait until more of the stream is in the append-only file, in the worker's nanoseconds.
    /// `None` if no replica waits.
    stream_since: Option<u64>,
}

impl PendingWaits {
    pub(super) fn new() -> PendingWaits {
        PendingWaits { timers: Wheel::new(unix_ms()), for_acks: Vec::new(), stream_since: None }
    }

    /// Starts the timer of a blocked session.
    pub(super) fn start_timer(&mut self, deadline_ms: u64, token: Token) -> Id {
        self.timers.insert(deadline_ms, token)
    }

    pub(super) fn cancel_timer(&mut self, timer: Id) {
        self.timers.cancel(timer);
    }

    /// Takes a session whose timeout has passed.
    #[inline]
    pub(super) fn pop_expired(&mut self, now_ms: u64) -> Option<Token> {
        self.timers.pop_expired(now_ms)
    }

    /// Returns the time until the next timeout, in ms from now.
    pub(super) fn next_timeout_ms(&self) -> Option<u64> {
        Some(self.timers.next_ms()?.saturating_sub(unix_ms()))
    }

    /// Adds a session whose command waits for acknowledgements.
    pub(super) fn await_acks(&mut self, token: Token) {
        self.for_acks.push(token);
    }

    /// Takes the sessions whose commands wait for acknowledgements.
    pub(super) fn take_for_acks(&mut self) -> Vec<Token> {
        std::mem::take(&mut self.for_acks)
    }

    /// Reports whether commands wait for acknowledgements or parts of the stream wait for the append-only file.
    #[inline]
    pub(super) fn has_acks_or_stream(&self) -> bool {
        !self.for_acks.is_empty() || self.stream_waits()
    }

    /// Reports whether replicas wait until more of the stream is in the append-only file.
    #[inline]
    pub(super) fn stream_waits(&self) -> bool {
        self.stream_since.is_some()
    }

    /// Returns how long the stream has waited, in nanoseconds.
    pub(super) fn stream_waited_ns(&self, now_ns: u64) -> u64 {
        now_ns.saturating_sub(self.stream_since.unwrap_or(now_ns))
    }

    /// Notes that the stream waits. If a part of it has just been sent, the time is measured from now.
    pub(super) fn note_stream_waits(&mut self, now_ns: u64, has_sent: bool) {
        self.stream_since = match self.stream_since {
            Some(since) if !has_sent => Some(since),
            _ => Some(now_ns),
        };
    }

    /// Notes that no replica waits for the append-only file.
    pub(super) fn note_stream_sent(&mut self) {
        self.stream_since = None;
    }
}
