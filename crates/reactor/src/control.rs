//! What a handler may do: append output, send, pause, close, ask. Nothing here waits or does I/O on
//! a connection.
//!
//! Every change marks its connection as touched; the reactor settles touched connections (writes,
//! registers, closes) when there are some dozens, and at the end of the round. Calls with a stale
//! token do nothing.

use crate::clock::clock;
use crate::connection::{Connection, Slab};
use crate::counters::Counters;
use crate::handler::{Close, CloseReason, Handler};
use crate::listen::{Listener, PeerAddr};
use crate::output::Output;
use crate::pace::Pace;
use crate::token::Token;
use crate::waker::{WakeState, Waker};
use socket2::SockRef;
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::io;
use std::net::SocketAddr;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::{Duration, Instant};

/// Capacity of a fresh output buffer: most batches of small replies fit without growing.
const OUTPUT_BYTES_FRESH: usize = 4096;
/// A buffer grown beyond this goes back to the allocator when its output was sent.
const POOLED_BUFFER_BYTES_MAX: usize = 256 * 1024;
/// Spare output buffers kept by a worker, in bytes of capacity.
const POOL_BYTES_MAX: usize = 4 * 1024 * 1024;
/// How long a listener rests after descriptors have run out, unless a connection closes before.
const ACCEPT_REST: Duration = Duration::from_millis(100);

/// A listener within a reactor.
#[derive(Debug)]
pub(crate) struct Listening {
    pub(crate) listener: Listener,
    /// Where its connections arrive, if that is one address: not for wildcards.
    pub(crate) address: Option<SocketAddr>,
    /// The most to accept in one round, at least 1.
    pub(crate) accepts_max: usize,
    /// Accepts to try in one round; follows what the last rounds found.
    pub(crate) quota: usize,
    /// Resting until then, after a failure.
    pub(crate) rests_until: Option<Instant>,
}

/// The connections of one reactor, as seen by its handler.
#[derive(Debug)]
pub struct Control {
    pub(crate) slab: Slab,
    pub(crate) touched: Vec<u32>,
    pub(crate) listeners: Vec<Option<Listening>>,
    /// Listeners found with connections waiting in this round.
    pub(crate) ready_listeners: Vec<u32>,
    pub(crate) counters: Counters,
    pub(crate) wake: WakeState,
    pub(crate) pace: Pace,
    /// Some listener may rest.
    rests: bool,
    lingering: BinaryHeap<Reverse<(Instant, u64)>>,
    pool: Vec<Vec<u8>>,
    pool_bytes: usize,
    /// Given out for stale tokens; its content goes nowhere.
    nowhere: Output,
}

impl Control {
    pub(crate) fn new() -> io::Result<Self> {
        Ok(Self {
            slab: Slab::default(),
            touched: Vec::new(),
            listeners: Vec::new(),
            ready_listeners: Vec::new(),
            counters: Counters::default(),
            wake: WakeState::new()?,
            pace: Pace::default(),
            rests: false,
            lingering: BinaryHeap::new(),
            pool: Vec::new(),
            pool_bytes: 0,
            nowhere: Output::new(),
        })
    }

    /// The connection's output, to append to; nothing is sent before [`Control::send`]. For a stale
    /// token, an output that leads nowhere.
    #[inline]
    pub fn output(&mut self, token: Token) -> &mut Output {
        let Some(connection) = self.slab.get_mut(token) else {
            self.nowhere = Output::new();
            return &mut self.nowhere;
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

    /// Sends what is queued: one send later in the round, however often this is called. The rest
    /// follows by itself when the peer takes it.
    #[inline]
    pub fn send(&mut self, token: Token) {
        let Some(connection) = self.slab.get_mut(token) else { return };
        connection.sending = true;
        self.touch(token);
    }

    /// Bytes queued and not yet taken by the kernel; 0 for a stale token.
    #[inline]
    #[must_use]
    pub fn unsent(&self, token: Token) -> usize {
        self.slab.get(token).map_or(0, Connection::unsent)
    }

    /// Bytes of memory of the connection's output, with shared bytes in full; 0 for a stale token.
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

    /// Counts shared bytes that now only this connection's output holds as unread memory. O(shared
    /// pieces).
    pub fn count_orphans(&mut self, token: Token) {
        if let Some(connection) = self.slab.get_mut(token) {
            connection.output.count_orphans();
        }
    }

    /// Stops `received` from the end of this callback on; the peer's bytes stay in the kernel.
    /// (With io_uring, bytes that had left it are held, at most one receive buffer, and
    /// delivered after [`Control::resume_reading`].)
    pub fn pause_reading(&mut self, token: Token) {
        let Some(connection) = self.slab.get_mut(token) else { return };
        if !connection.paused {
            connection.paused = true;
            connection.hung_up = false;
            self.touch(token);
        }
    }

    /// Reverses [`Control::pause_reading`]; `received` comes with the next events, not at once.
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

    /// Whether `hung_up` was called since reading was paused: it is called once in a pause.
    #[must_use]
    pub fn has_hung_up(&self, token: Token) -> bool {
        self.slab.get(token).is_some_and(|connection| connection.paused && connection.hung_up)
    }

    /// Asks for one `drained` once at most `low_water` bytes are unsent, be it already so. A new
    /// call replaces an older one.
    pub fn when_drained(&mut self, token: Token, low_water: usize) {
        let Some(connection) = self.slab.get_mut(token) else { return };
        connection.low_water = Some(low_water);
        self.touch(token);
    }

    /// Closes, in O(1). `Now` outranks an earlier `Flush`, a second `Flush` is ignored. `received`
    /// is not called any more; `closed` follows when it is done. To append to the output and `send`
    /// between `Flush` and `closed` is allowed.
    pub fn close(&mut self, token: Token, how: Close) {
        let Some(connection) = self.slab.get_mut(token) else { return };
        if connection.closing.is_none() || how == Close::Now {
            connection.closing = Some(how);
        }
        connection.sending = true;
        self.touch(token);
    }

    /// How long requests of many clients may gather before the loop waits for them; zero, as at the
    /// start, for not at all. (With io_uring, from Linux 6.12 on.)
    pub fn coalesce_wakes(&mut self, at_most: Duration) {
        self.pace.set_limit(at_most);
    }

    /// How long requests shall gather before a wait that began to be prepared at `since` and may
    /// last as long as `timeout`; none if it is not worth it.
    #[inline]
    pub(crate) fn gathering(&mut self, since: u64, timeout: Option<Duration>) -> Option<Duration> {
        if timeout == Some(Duration::ZERO) {
            return None;
        }
        let (news, connected) = (self.counters.news(), self.counters.accepted);
        let time = self.pace.before_wait(clock().ns(since), news, connected)?;
        self.counters.sleeps += 1;
        Some(timeout.map_or(time, |timeout| timeout.min(time)))
    }

    /// Whether the token still names a connection.
    #[inline]
    #[must_use]
    pub fn is_open(&self, token: Token) -> bool {
        self.slab.get(token).is_some()
    }

    /// Bounds the connections accepted from this listener in one round (at least 1); does nothing
    /// if there is no such listener.
    pub fn limit_accepts(&mut self, listener: usize, accepts_max: usize) {
        if let Some(Some(listening)) = self.listeners.get_mut(listener) {
            listening.accepts_max = accepts_max.max(1);
        }
    }

    /// The peer's address; asked from the kernel for adopted sockets only, once.
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

    /// This end's address; a system call each time.
    #[must_use]
    pub fn local_addr(&self, token: Token) -> PeerAddr {
        let Some(fd) = self.fd(token) else { return PeerAddr::Unknown };
        SockRef::from(&fd)
            .local_addr()
            .map_or(PeerAddr::Unknown, |address| PeerAddr::from_sock_addr(&address))
    }

    /// This end's address of a connection accepted by this listener: no system call unless the
    /// listener is bound to a wildcard.
    #[must_use]
    pub fn accepted_at(&self, token: Token, listener: usize) -> PeerAddr {
        let listening = self.listeners.get(listener).and_then(Option::as_ref);
        match listening.and_then(|listening| listening.address) {
            Some(address) => PeerAddr::Tcp(address),
            None => self.local_addr(token),
        }
    }

    #[must_use]
    pub fn fd(&self, token: Token) -> Option<BorrowedFd<'_>> {
        self.slab.get(token)?.fd.as_ref().map(AsFd::as_fd)
    }

    /// Open connections, those being closed with a flush included.
    #[must_use]
    pub fn connection_count(&self) -> usize {
        self.slab.len()
    }

    /// Tokens of all open connections; O(greatest number open so far).
    pub fn connections(&self) -> impl Iterator<Item = Token> + '_ {
        self.slab.tokens()
    }

    #[must_use]
    pub fn counters(&self) -> &Counters {
        &self.counters
    }

    #[must_use]
    pub fn waker(&self) -> Waker {
        self.wake.waker()
    }

    /// Takes over a connected stream socket; from here on it is like an accepted one (`accepted` is
    /// not called).
    ///
    /// # Errors
    /// Too many connections; the socket is closed then.
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
        if !slot.touched {
            slot.touched = true;
            self.touched.push(index);
        }
    }

    /// Takes an emptied buffer back for the next output.
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

    /// After bytes were sent: notes an empty output, and calls `drained` if it is owed.
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

    /// Starts the linger time of a connection that could not be flushed at once.
    pub(crate) fn linger(&mut self, index: u32) {
        let slot = self.slab.slot(index);
        let Some(Close::Flush { linger }) = slot.closing else { return };
        if slot.lingering {
            return;
        }
        slot.lingering = true;
        let token = self.slab.token(index);
        // A huge linger time is as good as this one.
        let deadline = Instant::now() + linger.min(Duration::from_secs(86_400));
        if self.lingering.len() > 2 * self.slab.len() + 64 {
            let slab = &self.slab;
            self.lingering.retain(|Reverse((_, word))| slab.get(Token::from_u64(*word)).is_some());
        }
        self.lingering.push(Reverse((deadline, token.to_u64())));
    }

    /// Dooms connections whose linger time is over and wakes rested listeners; returns those
    /// listeners.
    #[inline]
    pub(crate) fn expire(&mut self) -> Vec<u32> {
        if self.lingering.is_empty() && !self.rests { Vec::new() } else { self.expire_due() }
    }

    #[cold]
    fn expire_due(&mut self) -> Vec<u32> {
        let mut rested = Vec::new();
        let now = Instant::now();
        while let Some(&Reverse((deadline, word))) = self.lingering.peek()
            && deadline <= now
        {
            self.lingering.pop();
            self.doom(Token::from_u64(word), CloseReason::LingerExpired);
        }
        for (index, listening) in (0u32..).zip(&mut self.listeners) {
            if let Some(listening) = listening
                && listening.rests_until.is_some_and(|until| until <= now)
            {
                listening.rests_until = None;
                rested.push(index);
            }
        }
        self.rests = self.listeners.iter().flatten().any(|l| l.rests_until.is_some());
        rested
    }

    /// The time until something here is due.
    #[inline]
    pub(crate) fn next_due(&self) -> Option<Duration> {
        if self.lingering.is_empty() && !self.rests { None } else { self.earliest_due() }
    }

    #[cold]
    fn earliest_due(&self) -> Option<Duration> {
        let linger = self.lingering.peek().map(|Reverse((deadline, _))| *deadline);
        let listeners = self.listeners.iter().flatten().filter_map(|l| l.rests_until);
        let due = listeners.chain(linger).min()?;
        Some(due.saturating_duration_since(Instant::now()))
    }

    /// Tears the connection down at the next settling.
    pub(crate) fn doom(&mut self, token: Token, reason: CloseReason) {
        let Some(connection) = self.slab.get_mut(token) else { return };
        connection.doomed.get_or_insert(reason);
        self.touch(token);
    }

    /// Ends the open state: gives back the buffer, tells the handler, returns the descriptor. The
    /// caller frees the slot.
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
        for listening in self.listeners.iter_mut().flatten() {
            // A descriptor comes free: the next round may accept again.
            if listening.rests_until.is_some() {
                listening.rests_until = Some(Instant::now());
            }
        }
        handler.closed(self, token, reason);
        fd
    }

    /// Closes a connection that was not wanted, after a try to say why.
    pub(crate) fn refuse(&mut self, token: Token, bytes: &[u8]) {
        self.counters.refused += 1;
        self.counters.closes += 1;
        let index = self.slab_index(token);
        if let Some(fd) = self.slab.retire(index) {
            // Best effort: a fresh socket has room, and a peer already gone does not matter.
            let _ = crate::sys::send(fd.as_fd(), bytes);
        }
        let buffer = self.slab.slot(index).output.take_buffer();
        self.recycle(buffer);
        self.slab.free(index);
    }

    /// Notes that accepting failed so that the listener must rest, and tells the handler.
    pub(crate) fn rest_listener<H: Handler>(
        &mut self,
        handler: &mut H,
        index: u32,
        error: &io::Error,
    ) {
        self.counters.accept_errors += 1;
        if let Some(Some(listening)) = self.listeners.get_mut(index as usize) {
            listening.rests_until = Some(Instant::now() + ACCEPT_REST);
            self.rests = true;
        }
        handler.accept_failed(self, index as usize, error);
    }
}
