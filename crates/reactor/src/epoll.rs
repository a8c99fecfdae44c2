//! The epoll back end: per ready connection and round one receive and one send.
//!
//! A connection is registered with its first interest when it is accepted, and that changes only
//! when it has to: while output is stuck (EPOLLOUT), while reading is paused, after the peer has
//! finished. A connection in the usual state costs no `epoll_ctl`, and closing the descriptor ends
//! its registration.
//!
//! ```text
//!  reads             paused  finished/closing        output stuck
//!  IN | RDHUP | PRI  RDHUP   nothing            +    OUT   (errors and hang-ups are always told)
//! ```
//!
//! TCP connections are watched edge-triggered: the kernel tells of each change once, and need not
//! look at every connection it told of a second time in the next wait. So whoever does not use up
//! what he was told of asks for it again ([`ask_again`]), and then the kernel tells what is there
//! by now:
//!  - a receive that filled the buffer, or that the peer's end (RDHUP) or the mark of urgent data
//!    (PRI), at which a receive stops, may stand behind;
//!  - readiness told while reading was paused;
//!  - a send that was cut short, which may be for another reason than a full socket.
//!
//! Whatever comes after the kernel was asked is a change of its own.

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

/// Events taken at once. More only delays what the first of them wrote.
const EVENTS_MAX: usize = 512;
/// Size of the receive buffer, one per worker. 64 KiB take a pipeline of several hundred small
/// commands in one call and a large value in few, while the buffer still lives in the second-level
/// cache between receive and parsing.
const RECEIVE_BYTES: usize = 64 * 1024;
/// Connections whose replies are sent one after the other, instead of each after its own requests.
/// Peers on this machine that wait for several of them are then woken once and find all, which
/// costs both sides less; more would no longer be in the cache. Measured with 50 pipelines of 100:
/// a third less system time.
const SENDS_TOGETHER_MAX: usize = 64;
/// Pieces in one gathered write.
const PIECES_MAX: usize = 64;

/// Generation 0 names no connection, so data of that generation are the loop's own: its waker and
/// its listeners.
const WAKER: Token = Token::new(u32::MAX, 0);

const READ: u32 = libc::EPOLLIN as u32;
const WRITE: u32 = libc::EPOLLOUT as u32;
const PEER_FINISHED: u32 = libc::EPOLLRDHUP as u32;
const URGENT: u32 = libc::EPOLLPRI as u32;
const GONE: u32 = (libc::EPOLLERR | libc::EPOLLHUP) as u32;
const EDGES: u32 = libc::EPOLLET as u32;
/// An interest that is none: whatever is wanted differs from it.
const UNKNOWN: u32 = 0;

#[derive(Debug)]
pub(crate) struct Epoll {
    epoll: OwnedFd,
    events: Vec<libc::epoll_event>,
    count: usize,
    buffer: Box<[u8]>,
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
        })
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
            // Writable again: forget that it was stuck, so that settling tries.
            connection.stuck = false;
            io.touch(token);
        }
        let connection = io.slab.slot(io.slab_index(token));
        if connection.reads() && events & (READ | GONE) != 0 {
            receive(io, handler, token, events, buffer);
        } else if events & GONE != 0 {
            io.doom(token, CloseReason::Broken(0));
        } else if events & PEER_FINISHED != 0 && connection.watches_hang_up() {
            connection.hung_up = true;
            connection.interest = UNKNOWN;
            io.touch(token);
            handler.hung_up(io, token);
        } else if events & READ != 0 {
            // Told before reading was paused.
            ask_again(io, token);
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
        let Some(Some(listening)) = io.listeners.get(listener as usize) else { return Ok(()) };
        // Workers that share a Unix listener are woken one at a time.
        let interest = READ | libc::EPOLLEXCLUSIVE as u32;
        let datum = Token::new(listener, 0).to_u64();
        let fd = listening.listener.as_fd();
        io.counters.registrations += 1;
        sys::epoll_ctl(self.epoll.as_fd(), libc::EPOLL_CTL_ADD, fd, interest, datum)
    }

    fn go_on_accepting(&mut self, _: &mut Control, _: u32) -> io::Result<()> {
        Ok(()) // level-triggered
    }

    fn opened(&mut self, _: &mut Control, _: Token) {}

    fn stop_accepting(&mut self, io: &mut Control, listener: u32) {
        let Some(Some(listening)) = io.listeners.get(listener as usize) else { return };
        let fd = listening.listener.as_fd();
        io.counters.registrations += 1;
        // A resting listener is not registered; that it cannot be removed once more does no harm.
        let _ = sys::epoll_ctl(self.epoll.as_fd(), libc::EPOLL_CTL_DEL, fd, 0, 0);
    }

    fn wait(&mut self, io: &mut Control, timeout: Option<Duration>) -> io::Result<()> {
        let since = ticks();
        if let Some(time) = io.gathering(since, timeout) {
            io.pace.sleep(time);
        }
        let timeout_ms = timeout.map_or(-1, timeout_ms);
        self.count = sys::epoll_wait(self.epoll.as_fd(), &mut self.events, timeout_ms)?;
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

/// A timeout of `epoll_wait`. It is rounded up: to wake too early would only mean to wait again.
fn timeout_ms(timeout: Duration) -> i32 {
    let ms = timeout.as_secs().saturating_mul(1000);
    let ms = ms.saturating_add(u64::from(timeout.subsec_nanos().div_ceil(1_000_000)));
    i32::try_from(ms).unwrap_or(i32::MAX)
}

fn interest(connection: &Connection) -> u32 {
    // A receive from a Unix socket also stops behind a message that carries descriptors, so that it
    // does not show whether it has left something: these are told of as long as there is something.
    let local = matches!(connection.peer, Some(PeerAddr::Unix));
    let (mut interest, reading) =
        if local { (0, READ) } else { (EDGES, READ | PEER_FINISHED | URGENT) };
    if connection.reads() {
        interest |= reading;
    } else if connection.watches_hang_up() {
        interest |= PEER_FINISHED;
    }
    if connection.stuck {
        interest |= WRITE;
    }
    interest
}

/// Has the kernel tell again what this connection is ready for.
fn ask_again(io: &mut Control, token: Token) {
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
                io.pace.note(&mut connection.last_receive);
            }
            if count == buffer.len() || events & (PEER_FINISHED | URGENT) != 0 {
                ask_again(io, token);
            }
            handler.received(io, token, &buffer[..count]);
        }
        Err(error) => match error.kind() {
            io::ErrorKind::WouldBlock => {}
            io::ErrorKind::Interrupted => ask_again(io, token),
            _ => io.doom(token, CloseReason::Broken(error.raw_os_error().unwrap_or(0))),
        },
    }
}

/// One send of what is queued, if it is to be sent and the socket is not known to be full.
fn write(io: &mut Control, index: u32) {
    let connection = io.slab.slot(index);
    if !connection.sending || connection.stuck || connection.output.is_empty() {
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
            // What is left needs room, and epoll tells when there is some; at once if what is left
            // are only more pieces than one call takes.
            connection.stuck = count < queued;
        }
        Err(error) if error.kind() == io::ErrorKind::WouldBlock => connection.stuck = true,
        Err(error) if error.kind() == io::ErrorKind::Interrupted => connection.stuck = true,
        Err(error) => {
            connection.doomed = Some(CloseReason::Broken(error.raw_os_error().unwrap_or(0)));
        }
    }
    if connection.stuck {
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
