//! The epoll back end: one receive and one send per ready connection and round.
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
//!  - readiness that was reported while reading was paused;
//!  - a send that was cut short, possibly for a reason other than a full socket.
//!
//! Anything that arrives after the registration counts as a new change.

use crate::clock::ticks;
use crate::connection::Connection;
use crate::control::Control;
use crate::handler::{Close, CloseReason, Handler};
use crate::listen::PeerAddr;
use crate::output::Output;
use crate::reactor::{Backend, settle_touched};
use crate::sys;
use crate::token::Token;
use smallvec::SmallVec;
use std::io::{self, IoSlice};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::Duration;

/// Maximum number of events taken at once. A higher number only delays the replies to the first
/// events.
const EVENTS_MAX: usize = 512;
/// Size of the receive buffer, one per worker. With 64 KiB, one call receives a pipeline of several
/// hundred small commands, and a few calls receive a large value. The buffer still fits in the
/// second-level cache until it is parsed.
const RECEIVE_BYTES: usize = 64 * 1024;
/// Number of connections whose replies are sent together, instead of each after its own requests.
/// Peers on the same machine that wait for several connections are then woken once and find all
/// replies, which costs the peers and the server less. The output of more connections would no
/// longer fit in the cache. Measured with 50 connections and pipelines of 100 requests: a third
/// less system time.
const SENDS_TOGETHER_MAX: usize = 64;
/// Shorter timeouts are not rounded up.
const MILLISECOND_NS: u128 = 1_000_000;
/// Maximum number of pieces in one gathered write.
const PIECES_MAX: usize = 64;

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
    buffer: Box<[u8]>,
    /// False once the kernel has rejected a timeout that is not in milliseconds.
    waits_precisely: bool,
}

impl Epoll {
    pub(crate) fn new(io: &Control) -> io::Result<Self> {
        let epoll = sys::epoll_create()?;
        let edge = READ | EDGES;
        let add = libc::EPOLL_CTL_ADD;
        sys::epoll_ctl(epoll.as_fd(), add, io.wake.fd(), edge, WAKER.to_u64())?;
        Ok(Self {
            epoll,
            events: vec![libc::epoll_event { events: 0, u64: 0 }; EVENTS_MAX],
            count: 0,
            buffer: vec![0; RECEIVE_BYTES].into_boxed_slice(),
            waits_precisely: true,
        })
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

    fn ready<H: Handler>(
        &mut self,
        io: &mut Control,
        handler: &mut H,
        token: Token,
        events: u32,
        buffer: &mut [u8],
    ) {
        let Some(connection) = io.slab.get_mut(token) else { return };
        if events & WRITE != 0 {
            // Writable again: clear the flag so that settling tries to send.
            connection.send_blocked = false;
            io.touch(token);
        }
        let index = io.slab_index(token);
        if io.slab.slot(index).reads() && events & (READ | GONE) != 0 {
            receive(io, handler, token, events, buffer);
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
        let mut buffer = std::mem::take(&mut self.buffer);
        for i in 0..std::mem::take(&mut self.count) {
            let libc::epoll_event { events, u64: datum } = self.events[i];
            let token = Token::from_u64(datum);
            if token.generation() != 0 {
                self.ready(io, handler, token, events, &mut buffer);
                if io.touched.len() >= SENDS_TOGETHER_MAX {
                    settle_touched(self, io, handler);
                }
            } else if token != WAKER {
                #[expect(clippy::cast_possible_truncation, reason = "made from a u32")]
                io.ready_listeners.push(token.index() as u32);
            }
        }
        self.buffer = buffer;
    }

    fn settle<H: Handler>(&mut self, io: &mut Control, handler: &mut H, index: u32) {
        if io.slab.slot(index).doomed.is_none() {
            write(io, index);
        }
        io.after_sending(handler, index);
        let slot = io.slab.slot(index);
        if !slot.open {
            return;
        }
        if let Some(reason) = slot.due() {
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

fn receive<H: Handler>(
    io: &mut Control,
    handler: &mut H,
    token: Token,
    events: u32,
    buffer: &mut [u8],
) {
    let Some(fd) = io.fd(token) else { return };
    let since = ticks();
    let received = sys::receive(fd, buffer);
    io.counters.ticks_receive += ticks().wrapping_sub(since);
    io.counters.receives += 1;
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
            if let Some(connection) = io.slab.get_mut(token) {
                io.coalescing.record_receive(&mut connection.last_receive);
            }
            if count == buffer.len() || events & (PEER_FINISHED | URGENT) != 0 {
                rearm(io, token);
            }
            handler.received(io, token, &buffer[..count]);
        }
        Err(error) => match error.kind() {
            io::ErrorKind::WouldBlock => {}
            io::ErrorKind::Interrupted => rearm(io, token),
            _ => io.doom(token, CloseReason::Broken(error.raw_os_error().unwrap_or(0))),
        },
    }
}

/// Sends queued output once, if the connection wants to send and the socket is not known to be
/// full.
fn write(io: &mut Control, index: u32) {
    let connection = io.slab.slot(index);
    if !connection.sending || connection.send_blocked || connection.output.is_empty() {
        return;
    }
    let Some(fd) = &connection.fd else { return };
    let since = ticks();
    let queued = connection.output.len();
    let written = write_output(fd.as_fd(), &connection.output);
    let mut sent = 0;
    match written {
        Ok(count) => {
            sent = count;
            connection.output.consume(count);
            // Epoll reports when there is room for the rest. If the rest was left only because
            // there were too many pieces for one call, epoll reports immediately.
            connection.send_blocked = count < queued;
        }
        Err(error) if error.kind() == io::ErrorKind::WouldBlock => connection.send_blocked = true,
        Err(error) if error.kind() == io::ErrorKind::Interrupted => connection.send_blocked = true,
        Err(error) => {
            connection.doomed = Some(CloseReason::Broken(error.raw_os_error().unwrap_or(0)));
        }
    }
    if connection.send_blocked {
        connection.interest = UNKNOWN;
    }
    io.counters.sends += 1;
    io.counters.bytes_out += sent as u64;
    io.counters.ticks_send += ticks().wrapping_sub(since);
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
        let mut epoll = Epoll::new(&io).expect("an epoll");
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
