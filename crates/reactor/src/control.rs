//! The calls that a handler can make: append output, send, pause, close, query. None of them waits
//! or does I/O on a connection.
//!
//! Every change marks its connection as touched. The reactor settles touched connections (writes,
//! registers, closes) when there are a few dozen, and at the end of the round. Calls with a stale
//! token do nothing.

use crate::clock::clock;
use crate::coalesce::WakeCoalescing;
use crate::connection::{Connection, Slab};
use crate::counters::ReactorCounters;
use crate::handler::{Close, CloseReason, Handler};
use crate::listen::{Listener, PeerAddr};
use crate::output::Output;
use crate::token::Token;
use crate::waker::{WakeState, Waker};
use socket2::SockRef;
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::io;
use std::net::SocketAddr;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::{Duration, Instant};

/// Capacity of a new output buffer. Most batches of small replies fit without growing it.
const OUTPUT_BYTES_FRESH: usize = 4096;
/// A buffer that has grown beyond this size is freed once its output has been sent.
const POOLED_BUFFER_BYTES_MAX: usize = 256 * 1024;
/// Maximum total capacity of the spare output buffers that a worker keeps.
const POOL_BYTES_MAX: usize = 4 * 1024 * 1024;
/// How long a listener stays suspended after descriptors have run out, unless a connection closes
/// earlier.
const ACCEPT_RETRY_DELAY: Duration = Duration::from_millis(100);

/// The state of a listener within a reactor.
#[derive(Debug)]
pub(crate) struct ListenerState {
    pub(crate) listener: Listener,
    /// The local address of its connections; `None` for wildcards.
    pub(crate) address: Option<SocketAddr>,
    /// Maximum number of connections to accept in one round, at least 1.
    pub(crate) accepts_max: usize,
    /// Number of accepts to try in one round. It adapts to the number of connections that the last
    /// rounds found.
    pub(crate) quota: usize,
    /// When to accept again after a failure; `None` if the listener is not suspended.
    pub(crate) resume_at: Option<Instant>,
}

/// The connections of one reactor, as seen by its handler.
#[derive(Debug)]
pub struct Control {
    pub(crate) slab: Slab,
    pub(crate) touched: Vec<u32>,
    pub(crate) listeners: Vec<Option<ListenerState>>,
    /// Listeners that have connections waiting in this round.
    pub(crate) ready_listeners: Vec<u32>,
    pub(crate) counters: ReactorCounters,
    pub(crate) wake: WakeState,
    pub(crate) coalescing: WakeCoalescing,
    /// True if a listener may be suspended.
    any_suspended: bool,
    lingering: BinaryHeap<Reverse<(Instant, u64)>>,
    pool: Vec<Vec<u8>>,
    pool_bytes: usize,
    /// Returned for stale tokens; its content is discarded.
    discarded: Output,
}

impl Control {
    pub(crate) fn new() -> io::Result<Self> {
        Ok(Self {
            slab: Slab::default(),
            touched: Vec::new(),
            listeners: Vec::new(),
            ready_listeners: Vec::new(),
            counters: ReactorCounters::default(),
            wake: WakeState::new()?,
            coalescing: WakeCoalescing::default(),
            any_suspended: false,
            lingering: BinaryHeap::new(),
            pool: Vec::new(),
            pool_bytes: 0,
            discarded: Output::new(),
        })
    }

    /// Returns the connection's output, to append to. Nothing is sent before [`Control::send`]. For
    /// a stale token, returns an output that is discarded.
    #[inline]
    pub fn output(&mut self, token: Token) -> &mut Output {
        let Some(connection) = self.slab.get_mut(token) else {
            self.discarded = Output::new();
            return &mut self.discarded;
        };
        if connection.output.is_empty() && connection.output.capacity() == 0 {
            let buffer = match self.pool.pop() {
                Some(buffer) => {
                    self.pool_bytes -= buffer.capacity();
                    buffer
                }
                None => Vec::with_capacity(OUTPUT_BYTES_FRESH),
            };
            connection.output.set_buffer(buffer);
        }
        &mut connection.output
    }

    /// Sends the queued output later in the round. Several calls in one round cause one send. If
    /// the kernel does not take everything, the reactor sends the rest when it can.
    #[inline]
    pub fn send(&mut self, token: Token) {
        let Some(connection) = self.slab.get_mut(token) else { return };
        connection.sending = true;
        self.touch(token);
    }

    /// Returns the number of bytes that are queued and not yet taken by the kernel; 0 for a stale
    /// token.
    #[inline]
    #[must_use]
    pub fn unsent(&self, token: Token) -> usize {
        self.slab.get(token).map_or(0, Connection::unsent)
    }

    /// Returns the memory usage of the connection's output in bytes, including all shared bytes; 0
    /// for a stale token.
    #[inline]
    #[must_use]
    pub fn output_memory(&self, token: Token) -> usize {
        self.slab.get(token).map_or(0, |connection| {
            if connection.output.is_empty() {
                connection.in_flight
            } else {
                connection.output.memory() + connection.in_flight
            }
        })
    }

    /// Counts shared bytes as unread memory if only this connection's output still refers to them.
    /// O(shared pieces).
    pub fn count_orphans(&mut self, token: Token) {
        if let Some(connection) = self.slab.get_mut(token) {
            connection.output.count_orphans();
        }
    }

    /// Stops calls of `received` once this callback has returned. The peer's bytes stay in the
    /// kernel. Bytes that were already received are held, at most one receive buffer. They are
    /// delivered after [`Control::resume_reading`].
    pub fn pause_reading(&mut self, token: Token) {
        let Some(connection) = self.slab.get_mut(token) else { return };
        if !connection.paused {
            connection.paused = true;
            connection.hung_up = false;
            self.touch(token);
        }
    }

    /// Reverses [`Control::pause_reading`]. `received` is called with the next events, not
    /// immediately.
    pub fn resume_reading(&mut self, token: Token) {
        let Some(connection) = self.slab.get_mut(token) else { return };
        if connection.paused {
            connection.paused = false;
            self.touch(token);
        }
    }

    #[must_use]
    pub fn is_paused(&self, token: Token) -> bool {
        self.slab.get(token).is_some_and(|connection| connection.paused)
    }

    /// Returns true if `hung_up` was called since reading was paused. It is called once per pause.
    #[must_use]
    pub fn has_hung_up(&self, token: Token) -> bool {
        self.slab.get(token).is_some_and(|connection| connection.paused && connection.hung_up)
    }

    /// Requests one call of `drained` when at most `low_water` bytes are unsent, even if that is
    /// already the case. A new request replaces an older one.
    pub fn when_drained(&mut self, token: Token, low_water: usize) {
        let Some(connection) = self.slab.get_mut(token) else { return };
        connection.low_water = Some(low_water);
        self.touch(token);
    }

    /// Closes the connection. O(1).
    ///
    /// `Now` overrides an earlier `Flush`; a second `Flush` is ignored. `received` is no longer
    /// called, and `closed` is called when the connection is closed. Between `Flush` and `closed`,
    /// the handler may still append to the output and `send`.
    pub fn close(&mut self, token: Token, how: Close) {
        let Some(connection) = self.slab.get_mut(token) else { return };
        if connection.closing.is_none() || how == Close::Now {
            connection.closing = Some(how);
        }
        connection.sending = true;
        self.touch(token);
    }

    /// Sets how long the loop may sleep to let requests of many clients arrive together. Zero, the
    /// default, turns these sleeps off. With io_uring this needs Linux 6.12.
    pub fn coalesce_wakes(&mut self, at_most: Duration) {
        self.coalescing.set_limit(at_most);
    }

    /// Returns how long to let requests arrive before a wait. The wait begins at `since` (in ticks)
    /// and lasts at most `timeout`. Returns `None` if a sleep is not worthwhile.
    #[inline]
    pub(crate) fn coalescing_sleep(
        &mut self,
        since: u64,
        timeout: Option<Duration>,
    ) -> Option<Duration> {
        if timeout == Some(Duration::ZERO) {
            return None;
        }
        let (events, connected) = (self.counters.peer_events(), self.counters.accepted);
        let time = self.coalescing.before_wait(clock().ns(since), events, connected)?;
        self.counters.sleeps += 1;
        Some(timeout.map_or(time, |timeout| timeout.min(time)))
    }

    /// Returns true if the token names an open connection.
    #[inline]
    #[must_use]
    pub fn is_open(&self, token: Token) -> bool {
        self.slab.get(token).is_some()
    }

    /// Limits the number of connections accepted from this listener in one round (at least 1). Does
    /// nothing if the listener does not exist.
    pub fn limit_accepts(&mut self, listener: usize, accepts_max: usize) {
        if let Some(Some(state)) = self.listeners.get_mut(listener) {
            state.accepts_max = accepts_max.max(1);
        }
    }

    /// Returns the peer's address. Only adopted sockets need a system call, once each.
    pub fn peer_addr(&mut self, token: Token) -> PeerAddr {
        let Some(connection) = self.slab.get_mut(token) else { return PeerAddr::Unknown };
        if let Some(peer) = connection.peer {
            return peer;
        }
        let Some(fd) = &connection.fd else { return PeerAddr::Unknown };
        let peer = SockRef::from(fd)
            .peer_addr()
            .map_or(PeerAddr::Unknown, |address| PeerAddr::from_sock_addr(&address));
        connection.peer = Some(peer);
        peer
    }

    /// Reports whether bytes may be left to read after the pause of a connection whose peer is gone.
    /// If a peer on a Unix socket closes its end with unread bytes, this end has an error, but what
    /// the peer has sent can still be read. A TCP connection with an error was reset.
    pub(crate) fn may_have_unread_bytes(&mut self, token: Token, is_error: bool) -> bool {
        let slot = self.slab.get(token);
        let reads_later = slot.is_some_and(|slot| slot.reads_later() && slot.doomed.is_none());
        reads_later && (!is_error || self.peer_addr(token) == PeerAddr::Unix)
    }

    /// Returns the local address. Each call makes one system call.
    #[must_use]
    pub fn local_addr(&self, token: Token) -> PeerAddr {
        let Some(fd) = self.fd(token) else { return PeerAddr::Unknown };
        SockRef::from(&fd)
            .local_addr()
            .map_or(PeerAddr::Unknown, |address| PeerAddr::from_sock_addr(&address))
    }

    /// Returns the local address of a connection that this listener accepted. Needs a system call
    /// only if the listener is bound to a wildcard.
    #[must_use]
    pub fn accepted_at(&self, token: Token, listener: usize) -> PeerAddr {
        let state = self.listeners.get(listener).and_then(Option::as_ref);
        match state.and_then(|state| state.address) {
            Some(address) => PeerAddr::Tcp(address),
            None => self.local_addr(token),
        }
    }

    #[must_use]
    pub fn fd(&self, token: Token) -> Option<BorrowedFd<'_>> {
        self.slab.get(token)?.fd.as_ref().map(AsFd::as_fd)
    }

    /// Returns the number of open connections, including those that are closing with a flush.
    #[must_use]
    pub fn connection_count(&self) -> usize {
        self.slab.len()
    }

    /// Returns the tokens of all open connections. O(highest number of connections open so far).
    pub fn connections(&self) -> impl Iterator<Item = Token> + '_ {
        self.slab.tokens()
    }

    #[must_use]
    pub fn counters(&self) -> &ReactorCounters {
        &self.counters
    }

    #[must_use]
    pub fn waker(&self) -> Waker {
        self.wake.waker()
    }

    /// Adds a connected stream socket to the reactor. From then on it behaves like an accepted one,
    /// except that `accepted` is not called.
    ///
    /// # Errors
    /// Fails if there are too many connections; the socket is then closed.
    pub fn adopt(&mut self, socket: impl Into<OwnedFd>) -> io::Result<Token> {
        let inserted = self.slab.insert(socket.into(), None);
        let token = inserted.map_err(|_| io::Error::from(io::ErrorKind::QuotaExceeded))?;
        self.touch(token);
        Ok(token)
    }

    #[inline]
    pub(crate) fn slab_index(&self, token: Token) -> u32 {
        #[expect(clippy::cast_possible_truncation, reason = "indices are below 2^28")]
        {
            token.index() as u32
        }
    }

    #[inline]
    pub(crate) fn touch(&mut self, token: Token) {
        let index = self.slab_index(token);
        let slot = self.slab.slot(index);
        slot.touched = true;
        if !slot.listed {
            slot.listed = true;
            self.touched.push(index);
        }
    }

    /// Keeps an empty buffer for the next output.
    #[inline]
    pub(crate) fn recycle(&mut self, buffer: Vec<u8>) {
        debug_assert!(buffer.is_empty());
        let capacity = buffer.capacity();
        let fits = self.pool_bytes + capacity <= POOL_BYTES_MAX;
        if capacity > 0 && capacity <= POOLED_BUFFER_BYTES_MAX && fits {
            self.pool_bytes += capacity;
            self.pool.push(buffer);
        }
    }

    /// Called after bytes were sent: records that the output is empty, and calls `drained` if it
    /// was requested.
    pub(crate) fn after_sending<H: Handler>(&mut self, handler: &mut H, index: u32) {
        let slot = self.slab.slot(index);
        if !slot.open {
            return;
        }
        if slot.output.is_empty() {
            slot.sending = false;
            if slot.output.capacity() > 0 {
                let buffer = slot.output.take_buffer();
                self.recycle(buffer);
            }
        }
        let slot = self.slab.slot(index);
        if slot.low_water.is_some_and(|low_water| slot.unsent() <= low_water) {
            slot.low_water = None;
            let token = self.slab.token(index);
            handler.drained(self, token);
        }
    }

    /// Starts the linger time of a connection that could not be flushed immediately.
    pub(crate) fn linger(&mut self, index: u32) {
        let slot = self.slab.slot(index);
        let Some(Close::Flush { linger }) = slot.closing else { return };
        if slot.lingering {
            return;
        }
        slot.lingering = true;
        let token = self.slab.token(index);
        // A very long linger time is as good as this one.
        let deadline = Instant::now() + linger.min(Duration::from_secs(86_400));
        if self.lingering.len() > 2 * self.slab.len() + 64 {
            let slab = &self.slab;
            self.lingering
                .retain(|Reverse((_, token))| slab.get(Token::from_u64(*token)).is_some());
        }
        self.lingering.push(Reverse((deadline, token.to_u64())));
    }

    /// Marks for closing the connections whose linger time is over. Returns the suspended listeners
    /// that may accept again.
    #[inline]
    pub(crate) fn expire(&mut self) -> Vec<u32> {
        if self.lingering.is_empty() && !self.any_suspended {
            Vec::new()
        } else {
            self.expire_due()
        }
    }

    #[cold]
    fn expire_due(&mut self) -> Vec<u32> {
        let mut rested = Vec::new();
        let now = Instant::now();
        while let Some(&Reverse((deadline, token))) = self.lingering.peek()
            && deadline <= now
        {
            self.lingering.pop();
            self.doom(Token::from_u64(token), CloseReason::LingerExpired);
        }
        for (index, state) in (0u32..).zip(&mut self.listeners) {
            if let Some(state) = state
                && state.resume_at.is_some_and(|until| until <= now)
            {
                state.resume_at = None;
                rested.push(index);
            }
        }
        self.any_suspended = self.listeners.iter().flatten().any(|l| l.resume_at.is_some());
        rested
    }

    /// Returns the time until the next timer of this reactor expires.
    #[inline]
    pub(crate) fn next_due(&self) -> Option<Duration> {
        if self.lingering.is_empty() && !self.any_suspended { None } else { self.earliest_due() }
    }

    #[cold]
    fn earliest_due(&self) -> Option<Duration> {
        let linger = self.lingering.peek().map(|Reverse((deadline, _))| *deadline);
        let listeners = self.listeners.iter().flatten().filter_map(|l| l.resume_at);
        let due = listeners.chain(linger).min()?;
        Some(due.saturating_duration_since(Instant::now()))
    }

    /// Marks the connection for closing when it is settled next.
    pub(crate) fn doom(&mut self, token: Token, reason: CloseReason) {
        let Some(connection) = self.slab.get_mut(token) else { return };
        connection.doomed.get_or_insert(reason);
        self.touch(token);
    }

    /// Ends the open state of a connection: recycles the buffer, notifies the handler and returns
    /// the descriptor. The caller frees the slot.
    pub(crate) fn retire<H: Handler>(
        &mut self,
        handler: &mut H,
        index: u32,
        reason: CloseReason,
    ) -> Option<OwnedFd> {
        let token = self.slab.token(index);
        let fd = self.slab.retire(index);
        let buffer = self.slab.slot(index).output.take_buffer();
        self.recycle(buffer);
        self.counters.closes += 1;
        for state in self.listeners.iter_mut().flatten() {
            // A descriptor becomes free, so the next round may accept again.
            if state.resume_at.is_some() {
                state.resume_at = Some(Instant::now());
            }
        }
        handler.closed(self, token, reason);
        fd
    }

    /// Closes a connection that the handler refused, after an attempt to send the reason.
    pub(crate) fn refuse(&mut self, token: Token, bytes: &[u8]) {
        self.counters.refused += 1;
        self.counters.closes += 1;
        let index = self.slab_index(token);
        if let Some(fd) = self.slab.retire(index) {
            // Best effort: a new socket has room, and a peer that is already gone does not matter.
            let _ = crate::sys::send(fd.as_fd(), bytes);
        }
        let buffer = self.slab.slot(index).output.take_buffer();
        self.recycle(buffer);
        self.slab.free(index);
    }

    /// Suspends a listener after a failed accept, and notifies the handler.
    pub(crate) fn suspend_listener<H: Handler>(
        &mut self,
        handler: &mut H,
        index: u32,
        error: &io::Error,
    ) {
        self.counters.accept_errors += 1;
        if let Some(Some(state)) = self.listeners.get_mut(index as usize) {
            state.resume_at = Some(Instant::now() + ACCEPT_RETRY_DELAY);
            self.any_suspended = true;
        }
        handler.accept_failed(self, index as usize, error);
    }
}
