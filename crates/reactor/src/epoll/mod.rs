//! The epoll back end: one receive and one send per ready connection and round. With [`batch`], one
//! system call executes the receives, or the sends, of several connections.
//!
//! A connection is registered with its first interest when it is accepted. The interest changes
//! only if necessary: while a send is blocked (EPOLLOUT), while reading is paused, or after the
//! peer has finished. A connection in its usual state needs no `epoll_ctl`. Closing the descriptor
//! also ends its registration.
//!
//! ```text
//!  reads             paused  finished/closing        send blocked
//!  IN | RDHUP | PRI  RDHUP   nothing            +    OUT   (errors and hang-ups are always reported)
//! ```
//!
//! TCP connections, and all connections that do not read, are watched edge-triggered: the kernel
//! reports each change once, and does not check a reported connection again in the next wait. Code
//! that does not use up everything that was reported must therefore register the interest again
//! ([`rearm`]). The kernel then reports the current state. These are the cases:
//!  - a receive that filled the buffer, or that may have stopped at the peer's end of stream (RDHUP)
//!    or at the mark of urgent data (PRI), with more to read after it;
//!  - readiness that was reported while reading was paused, or while held bytes must be delivered
//!    first;
//!  - a send that was cut short, possibly for a reason other than a full socket.
//!
//! Anything that arrives after the registration counts as a new change.
//!
//! A batch receives from several connections before the handler gets the bytes of the first. If the
//! handler then pauses one of the others, its bytes are held until it reads again.

mod batch;
mod together;

pub use batch::batches_available;

use crate::clock::ticks;
use crate::connection::Connection;
use crate::control::Control;
use crate::handler::{Close, CloseReason, Handler};
use crate::listen::PeerAddr;
use crate::message::PIECES_MAX;
use crate::output::Output;
use crate::reactor::{Backend, settle_touched};
use crate::sys;
use crate::token::Token;
use batch::SocketBatch;
use smallvec::SmallVec;
use std::collections::HashMap;
use std::io::{self, IoSlice};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::Duration;
use together::Received;

/// Maximum number of events taken at once. A higher number only delays the replies to the first
/// events.
const EVENTS_MAX: usize = 512;
/// Size of the receive buffer, one per worker. With 64 KiB, one call receives a pipeline of several
/// hundred small commands, and a few calls receive a large value. The buffer still fits in the
/// second-level cache until it is parsed.
const RECEIVE_BYTES: usize = 64 * 1024;
/// Size of a receive buffer if several connections receive in one batch. A connection that fills it
/// receives alone the next time, into the large buffer.
const BATCH_RECEIVE_BYTES: usize = 16 * 1024;
/// Distance between the buffers of a batch. If it were a power of two, the beginnings of all buffers
/// would compete for the same few lines of the cache.
const BATCH_RECEIVE_STRIDE: usize = BATCH_RECEIVE_BYTES + 256;
/// Maximum number of connections that receive in one batch. A larger batch saves little more, and
/// its bytes may not stay in the cache until they are parsed.
const RECEIVES_TOGETHER_MAX: usize = 16;
/// Number of connections whose replies are sent together, instead of each after its own requests.
/// Peers on the same machine that wait for several connections are then woken once and find all
/// replies, which costs the peers and the server less. The output of more connections would no
/// longer fit in the cache. Measured with 50 connections and pipelines of 100 requests: a third
/// less system time.
const SENDS_TOGETHER_MAX: usize = batch::OPERATIONS_MAX;
/// Shorter timeouts are not rounded up.
const MILLISECOND_NS: u128 = 1_000_000;

/// No connection has generation 0. Events with that generation therefore belong to the loop itself:
/// its waker and its listeners.
const WAKER: Token = Token::new(u32::MAX, 0);

const READ: u32 = libc::EPOLLIN as u32;
const WRITE: u32 = libc::EPOLLOUT as u32;
const PEER_FINISHED: u32 = libc::EPOLLRDHUP as u32;
const URGENT: u32 = libc::EPOLLPRI as u32;
const ERROR: u32 = libc::EPOLLERR as u32;
const GONE: u32 = ERROR | libc::EPOLLHUP as u32;
const EDGES: u32 = libc::EPOLLET as u32;
/// An interest that never equals the wanted one, so that settling the connection registers it
/// again.
const UNKNOWN: u32 = 0;

#[derive(Debug)]
pub(crate) struct Epoll {
    epoll: OwnedFd,
    events: Vec<libc::epoll_event>,
    count: usize,
    /// Receives and sends of several connections; `None` if each is a system call of its own.
    batch: Option<SocketBatch>,
    buffers: Buffers,
    /// Bytes that were received in a batch before reading was paused.
    held: HashMap<Token, Vec<u8>>,
    /// False once the kernel has rejected a timeout that is not in milliseconds.
    waits_precisely: bool,
}

#[derive(Debug, Default)]
struct Buffers {
    single: Box<[u8]>,
    /// One buffer in each [`BATCH_RECEIVE_STRIDE`]; empty without batches.
    batch: Box<[u8]>,
}

impl Epoll {
    /// With `batches`, sends and receives of several connections are one system call if the kernel
    /// provides io_uring.
    pub(crate) fn new(io: &Control, batches: bool) -> io::Result<Self> {
        let batch = if batches { SocketBatch::new().ok() } else { None };
        let batch_bytes =
            if batch.is_some() { RECEIVES_TOGETHER_MAX * BATCH_RECEIVE_STRIDE } else { 0 };
        let epoll = sys::epoll_create()?;
        let edge = READ | EDGES;
        let add = libc::EPOLL_CTL_ADD;
        sys::epoll_ctl(epoll.as_fd(), add, io.wake.fd(), edge, WAKER.to_u64())?;
        Ok(Self {
            epoll,
            events: vec![libc::epoll_event { events: 0, u64: 0 }; EVENTS_MAX],
            count: 0,
            batch,
            buffers: Buffers {
                single: vec![0; RECEIVE_BYTES].into_boxed_slice(),
                batch: vec![0; batch_bytes].into_boxed_slice(),
            },
            held: HashMap::new(),
            waits_precisely: true,
        })
    }

    /// Returns true if sends and receives of several connections are one system call.
    pub(crate) fn batches(&self) -> bool {
        self.batch.is_some()
    }

    /// Takes events, after waiting for at most `timeout` (`None`: forever).
    fn take_events(&mut self, timeout: Option<Duration>) -> io::Result<usize> {
        if let Some(short) =
            timeout.filter(|timeout| (1..MILLISECOND_NS).contains(&timeout.as_nanos()))
            && self.waits_precisely
        {
            match sys::epoll_wait_ns(self.epoll.as_fd(), &mut self.events, short.subsec_nanos()) {
                Ok(count) => return Ok(count),
                Err(_) => self.waits_precisely = false,
            }
        }
        let timeout_ms = timeout.map_or(-1, timeout_ms);
        sys::epoll_wait(self.epoll.as_fd(), &mut self.events, timeout_ms)
    }

    /// Handles an event, and settles connections if there are many.
    #[inline]
    fn handle_event<H: Handler>(
        &mut self,
        io: &mut Control,
        handler: &mut H,
        at: usize,
        received: Option<Received<'_>>,
        buffer: &mut [u8],
    ) {
        let (token, bits) = self.event(at);
        if token.generation() != 0 {
            self.ready(io, handler, (token, bits), received, buffer);
            if io.touched.len() >= SENDS_TOGETHER_MAX {
                settle_touched(self, io, handler);
            }
        } else if token != WAKER {
            #[expect(clippy::cast_possible_truncation, reason = "made from a u32")]
            io.ready_listeners.push(token.index() as u32);
        }
    }

    #[inline]
    fn ready<H: Handler>(
        &mut self,
        io: &mut Control,
        handler: &mut H,
        (token, events): (Token, u32),
        received: Option<Received<'_>>,
        buffer: &mut [u8],
    ) {
        let Some(connection) = io.slab.get_mut(token) else { return };
        if events & WRITE != 0 {
            // Writable again: clear the flag so that settling tries to send.
            connection.send_blocked = false;
            io.touch(token);
        }
        let index = io.slab_index(token);
        let reads = io.slab.slot(index).reads();
        if let Some(Received { result, buffer }) = received {
            if reads {
                deliver(io, handler, (token, events), result, buffer);
                return;
            }
            self.hold(io, token, result, buffer);
        }
        if reads && events & (READ | GONE) != 0 {
            if self.held.contains_key(&token) {
                // The held bytes are delivered first, when the connection is settled.
                rearm(io, token);
                return;
            }
            receive(io, handler, (token, events), buffer);
        } else if events & GONE != 0 && !io.may_have_unread_bytes(token, events & ERROR != 0) {
            io.doom(token, CloseReason::Broken(0));
        } else if events & (PEER_FINISHED | GONE) != 0 && io.slab.slot(index).watches_hang_up() {
            let connection = io.slab.slot(index);
            connection.hung_up = true;
            connection.interest = UNKNOWN;
            io.touch(token);
            handler.hung_up(io, token);
        } else if events & READ != 0 {
            // The event was reported before reading was paused.
            rearm(io, token);
        }
    }

    /// Takes an event as the token of a connection and the event bits.
    #[inline]
    fn event(&self, at: usize) -> (Token, u32) {
        let libc::epoll_event { events, u64: datum } = self.events[at];
        (Token::from_u64(datum), events)
    }

    fn register(&mut self, io: &mut Control, index: u32) -> io::Result<()> {
        let token = io.slab.token(index);
        let connection = io.slab.slot(index);
        let wanted = interest(connection);
        if connection.registered && connection.interest == wanted {
            return Ok(());
        }
        let Some(fd) = &connection.fd else { return Ok(()) };
        let operation =
            if connection.registered { libc::EPOLL_CTL_MOD } else { libc::EPOLL_CTL_ADD };
        sys::epoll_ctl(self.epoll.as_fd(), operation, fd.as_fd(), wanted, token.to_u64())?;
        connection.registered = true;
        connection.interest = wanted;
        io.counters.registrations += 1;
        Ok(())
    }
}

impl Backend for Epoll {
    const NONBLOCKING: bool = true;

    fn start_accepting(&mut self, io: &mut Control, listener: u32) -> io::Result<()> {
        let Some(Some(state)) = io.listeners.get(listener as usize) else { return Ok(()) };
        // EPOLLEXCLUSIVE: the kernel does not wake all workers that share a Unix listener.
        let interest = READ | libc::EPOLLEXCLUSIVE as u32;
        let datum = Token::new(listener, 0).to_u64();
        let fd = state.listener.as_fd();
        io.counters.registrations += 1;
        sys::epoll_ctl(self.epoll.as_fd(), libc::EPOLL_CTL_ADD, fd, interest, datum)
    }

    fn continue_accepting(&mut self, _: &mut Control, _: u32) -> io::Result<()> {
        Ok(()) // level-triggered
    }

    fn opened(&mut self, _: &mut Control, _: Token) {}

    fn stop_accepting(&mut self, io: &mut Control, listener: u32) {
        let Some(Some(state)) = io.listeners.get(listener as usize) else { return };
        let fd = state.listener.as_fd();
        io.counters.registrations += 1;
        // A suspended listener is not registered. Removing it again fails, which is harmless.
        let _ = sys::epoll_ctl(self.epoll.as_fd(), libc::EPOLL_CTL_DEL, fd, 0, 0);
    }

    fn wait(&mut self, io: &mut Control, timeout: Option<Duration>) -> io::Result<()> {
        let since = ticks();
        if let Some(time) = io.coalescing_sleep(since, timeout) {
            io.coalescing.sleep(time);
        }
        self.count = self.take_events(timeout)?;
        io.counters.waits += 1;
        io.counters.events += self.count as u64;
        io.counters.ticks_wait += ticks().wrapping_sub(since);
        Ok(())
    }

    fn dispatch<H: Handler>(&mut self, io: &mut Control, handler: &mut H) {
        let mut buffers = std::mem::take(&mut self.buffers);
        let count = std::mem::take(&mut self.count);
        let mut next = 0;
        while next < count {
            let events = next..(next + RECEIVES_TOGETHER_MAX).min(count);
            next = events.end;
            if self.batch.is_none() || events.len() < batch::OPERATIONS_MIN {
                for at in events {
                    self.handle_event(io, handler, at, None, &mut buffers.single);
                }
                continue;
            }
            let mut received = [const { None }; RECEIVES_TOGETHER_MAX];
            self.receive_batch(io, events.clone(), &mut buffers.batch, &mut received);
            for (at, received) in events.zip(received) {
                self.handle_event(io, handler, at, received, &mut buffers.single);
            }
        }
        self.buffers = buffers;
    }

    #[inline]
    fn send_together(&mut self, io: &mut Control, indices: &[u32]) {
        if self.batch.is_some() && indices.len() >= batch::OPERATIONS_MIN {
            self.send_batch(io, indices);
        }
    }

    fn settle<H: Handler>(&mut self, io: &mut Control, handler: &mut H, index: u32) {
        if !self.held.is_empty() {
            self.deliver_held(io, handler, index);
        }
        write(io, index);
        io.after_sending(handler, index);
        let slot = io.slab.slot(index);
        if !slot.open {
            return;
        }
        if let Some(reason) = slot.due() {
            if !self.held.is_empty() {
                self.held.remove(&io.slab.token(index));
            }
            // Dropping the descriptor closes it.
            drop(io.retire(handler, index, reason));
            io.slab.free(index);
            return;
        }
        if matches!(slot.closing, Some(Close::Flush { .. })) {
            io.linger(index);
        }
        if let Err(error) = self.register(io, index) {
            let token = io.slab.token(index);
            io.doom(token, CloseReason::Broken(error.raw_os_error().unwrap_or(0)));
        }
    }
}

/// Converts a timeout for `epoll_wait`, rounded up: waking too early would only cause another wait.
fn timeout_ms(timeout: Duration) -> i32 {
    let ms = timeout.as_secs().saturating_mul(1000);
    let ms = ms.saturating_add(u64::from(timeout.subsec_nanos().div_ceil(1_000_000)));
    i32::try_from(ms).unwrap_or(i32::MAX)
}

fn interest(connection: &Connection) -> u32 {
    // A receive from a Unix socket also stops after a message that carries descriptors. So the
    // number of bytes does not show whether more is left. Unix sockets are therefore watched
    // level-triggered while they read. While reading is paused, a hang-up is reported only once.
    let local = connection.reads() && matches!(connection.peer, Some(PeerAddr::Unix));
    let (mut interest, reading) =
        if local { (0, READ) } else { (EDGES, READ | PEER_FINISHED | URGENT) };
    if connection.reads() {
        interest |= reading;
    } else if connection.watches_hang_up() {
        interest |= PEER_FINISHED;
    }
    if connection.send_blocked {
        interest |= WRITE;
    }
    interest
}

/// Makes the kernel report again what this connection is ready for.
fn rearm(io: &mut Control, token: Token) {
    if let Some(connection) = io.slab.get_mut(token) {
        connection.interest = UNKNOWN;
        io.touch(token);
    }
}

fn receive<H: Handler>(io: &mut Control, handler: &mut H, event: (Token, u32), buffer: &mut [u8]) {
    let Some(fd) = io.fd(event.0) else { return };
    let since = ticks();
    let received = sys::receive(fd, buffer);
    io.counters.ticks_receive += ticks().wrapping_sub(since);
    io.counters.receives += 1;
    deliver(io, handler, event, received, buffer);
}

/// Passes the result of a receive to the handler. `buffer` begins with the received bytes.
#[inline]
fn deliver<H: Handler>(
    io: &mut Control,
    handler: &mut H,
    (token, events): (Token, u32),
    received: io::Result<usize>,
    buffer: &[u8],
) {
    match received {
        Ok(0) => {
            if let Some(connection) = io.slab.get_mut(token) {
                connection.finished = true;
            }
            io.touch(token);
            handler.finished(io, token);
        }
        Ok(count) => {
            io.counters.bytes_in += count as u64;
            let is_full = count == buffer.len();
            if let Some(connection) = io.slab.get_mut(token) {
                io.coalescing.record_receive(&mut connection.last_receive);
                connection.fills_buffers = is_full;
            }
            if is_full || events & (PEER_FINISHED | URGENT) != 0 {
                rearm(io, token);
            }
            handler.received(io, token, &buffer[..count]);
        }
        Err(error) => match error.kind() {
            io::ErrorKind::WouldBlock => {}
            io::ErrorKind::Interrupted => rearm(io, token),
            _ => io.doom(token, broken(&error)),
        },
    }
}

fn is_harmless(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted)
}

fn broken(error: &io::Error) -> CloseReason {
    CloseReason::Broken(error.raw_os_error().unwrap_or(0))
}

/// Returns what to send if the connection wants to send, and the socket is not known to be full.
#[inline]
fn ready_to_send(connection: &Connection) -> Option<(BorrowedFd<'_>, &Output)> {
    let is_ready = connection.open
        && connection.doomed.is_none()
        && connection.sending
        && !connection.send_blocked
        && !connection.output.is_empty();
    let fd = connection.fd.as_ref().filter(|_| is_ready)?;
    Some((fd.as_fd(), &connection.output))
}

/// Sends queued output once.
fn write(io: &mut Control, index: u32) {
    let Some((fd, output)) = ready_to_send(io.slab.at(index)) else { return };
    let since = ticks();
    let result = write_output(fd, output);
    sent(io, index, result);
    io.counters.ticks_send += ticks().wrapping_sub(since);
}

/// Records the result of a send of all queued output.
#[inline]
fn sent(io: &mut Control, index: u32, result: io::Result<usize>) {
    let connection = io.slab.slot(index);
    let queued = connection.output.len();
    let mut sent = 0;
    match result {
        Ok(count) => {
            sent = count;
            connection.output.consume(count);
            // Epoll reports when there is room for the rest. If the rest was left only because
            // there were too many pieces for one call, epoll reports immediately.
            connection.send_blocked = count < queued;
        }
        Err(error) if is_harmless(&error) => connection.send_blocked = true,
        Err(error) => connection.doomed = Some(broken(&error)),
    }
    if connection.send_blocked {
        connection.interest = UNKNOWN;
    }
    io.counters.sends += 1;
    io.counters.bytes_out += sent as u64;
}

fn write_output(fd: BorrowedFd<'_>, output: &Output) -> io::Result<usize> {
    if let Some(bytes) = output.as_one() {
        return sys::send(fd, bytes);
    }
    let mut pieces: SmallVec<[IoSlice<'_>; PIECES_MAX]> = SmallVec::new();
    output.gather(&mut pieces);
    sys::send_gathered(fd, &mut pieces)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Instant;

    #[test]
    fn a_short_wait_never_ends_early_with_or_without_precise_waits() {
        let io = Control::new().expect("a control");
        let mut epoll = Epoll::new(&io, false).expect("an epoll");
        for waits_precisely in [true, false] {
            epoll.waits_precisely = waits_precisely;
            for timeout in [1, 300_000, 1_500_000].map(Duration::from_nanos) {
                let begun = Instant::now();
                assert_eq!(epoll.take_events(Some(timeout)).expect("a wait"), 0);
                assert!(begun.elapsed() >= timeout, "{timeout:?} precisely: {waits_precisely}");
            }
        }
    }
}
