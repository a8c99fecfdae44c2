//! A proxy that delays every byte by a given time in each direction. It simulates a distant network on a machine
//! without `netem`.
//!
//! ```text
//!  client ── read, stamp ──> queue (bounded) ── wait until due ──> write ── server
//!         <── write ── wait until due ── (bounded) queue <── stamp, read ──
//! ```
//!
//! One thread serves all connections. Bytes stay in order regardless of the jitter. While a queue is full, the proxy
//! does not read from its sender, so the sender's kernel blocks it, as on a network with that number of bytes in
//! flight. The end of a stream is delayed like a byte. A reset is forwarded immediately. Connecting is not delayed.

use crate::clock::{now_ns, timespec};
use crate::error::RunError;
use crate::load::random::Random;
use rustix::event::epoll::{self, CreateFlags, EventData, EventFlags};
use rustix::event::{EventfdFlags, eventfd};
use rustix::io::Errno;
use rustix::net::{self, AddressFamily, SocketFlags, SocketType};
use rustix::thread::set_current_timer_slack;
use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap, VecDeque};
use std::io::{self, ErrorKind, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::num::NonZeroU64;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

/// Maximum number of bytes in flight in one direction of a connection: 20 ms at 1.6 Gbit/s.
const QUEUE_BYTES_MAX: usize = 4 << 20;
/// The number of bytes that each queued piece counts in addition to its content, so that the number of tiny pieces is
/// bounded, too.
const PIECE_BYTES: usize = 64;
/// Maximum number of open connections.
const LINKS_MAX: usize = 1 << 16;
const EVENTS_MAX: usize = 256;
const READ_BYTES: usize = 64 * 1024;
/// Maximum delay, so that sums of times cannot overflow.
const DELAY_MAX: Duration = Duration::from_secs(3600);
const LISTENER: u64 = u64::MAX;
const STOP: u64 = u64::MAX - 1;

/// The settings of a proxy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DelayPlan {
    /// The address to listen on. With port 0, the system chooses a port.
    pub listen: SocketAddr,
    /// The address to connect to.
    pub to: SocketAddr,
    /// The delay in each direction: half of the added round trip time.
    pub delay: Duration,
    /// An additional delay, drawn uniformly from zero to this for each piece that is read.
    pub jitter: Duration,
}

/// A running proxy. Dropping it closes its connections and waits until its thread has ended.
#[derive(Debug)]
pub struct DelayProxy {
    address: SocketAddr,
    stop: Arc<OwnedFd>,
    thread: Option<JoinHandle<Result<(), RunError>>>,
}

impl DelayProxy {
    /// Listens, and forwards connections on a separate thread.
    ///
    /// # Errors
    /// If the address is in use, or the system denies a descriptor or a thread.
    pub fn start(plan: DelayPlan) -> Result<DelayProxy, RunError> {
        if plan.delay > DELAY_MAX || plan.jitter > DELAY_MAX {
            return Err(RunError::Plan(format!("delays are at most {DELAY_MAX:?}")));
        }
        let listener =
            TcpListener::bind(plan.listen).map_err(RunError::machine("listening for clients"))?;
        let address = listener.local_addr().map_err(RunError::machine("listening"))?;
        let flags = EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK;
        let stop = Arc::new(eventfd(0, flags).map_err(RunError::machine("eventfd"))?);
        let mut proxy = Proxy::new(plan, listener, Arc::clone(&stop))?;
        let thread = std::thread::Builder::new()
            .name("delay-proxy".to_owned())
            .spawn(move || proxy.run())
            .map_err(RunError::machine("starting a thread"))?;
        Ok(DelayProxy { address, stop, thread: Some(thread) })
    }

    /// The address on which the proxy listens.
    #[must_use]
    pub const fn address(&self) -> SocketAddr {
        self.address
    }

    /// Serves until something fails.
    ///
    /// # Errors
    /// The error that ended the proxy.
    pub fn wait(mut self) -> Result<(), RunError> {
        match self.thread.take().map(JoinHandle::join) {
            Some(Ok(result)) => result,
            Some(Err(_)) | None => Err(RunError::Plan("the proxy ended".to_owned())),
        }
    }
}

impl Drop for DelayProxy {
    fn drop(&mut self) {
        // If the write fails because the counter is full, the thread is woken anyway.
        let _ = rustix::io::write(&*self.stop, &1u64.to_ne_bytes());
        let _ = self.thread.take().map(JoinHandle::join);
    }
}

struct Proxy {
    plan: DelayPlan,
    epoll: OwnedFd,
    listener: TcpListener,
    /// Kept open because it is polled.
    _stop: Arc<OwnedFd>,
    links: HashMap<u64, Link>,
    next_id: u64,
    /// The time when the first piece of a direction is due, and the direction's token.
    due: BinaryHeap<Reverse<(u64, u64)>>,
    random: Random,
    buffer: Vec<u8>,
}

/// A client's connection and the corresponding connection to the server. Direction 0 is to the server.
struct Link {
    ends: [TcpStream; 2],
    directions: [Direction; 2],
}

/// One direction: from the end with the same index to the other end.
#[derive(Default)]
struct Direction {
    queue: VecDeque<Piece>,
    queued_bytes: usize,
    last_due_ns: u64,
    /// The source may have more to read.
    readable: bool,
    /// The destination may accept more bytes.
    writable: bool,
    /// The source has closed its stream.
    ended: bool,
    /// The end of the stream has been forwarded to the destination.
    closed: bool,
    /// `due` contains an entry for this direction.
    scheduled: bool,
}

/// The bytes of one read. An empty piece is the end of the stream.
struct Piece {
    due_ns: u64,
    bytes: Vec<u8>,
    sent: usize,
}

impl Proxy {
    fn new(plan: DelayPlan, listener: TcpListener, stop: Arc<OwnedFd>) -> Result<Proxy, RunError> {
        listener.set_nonblocking(true).map_err(RunError::machine("listening"))?;
        let epoll = epoll::create(CreateFlags::CLOEXEC).map_err(RunError::machine("epoll"))?;
        epoll::add(&epoll, &listener, EventData::new_u64(LISTENER), EventFlags::IN)
            .and_then(|()| epoll::add(&epoll, &*stop, EventData::new_u64(STOP), EventFlags::IN))
            .map_err(RunError::machine("epoll"))?;
        Ok(Proxy {
            plan,
            epoll,
            listener,
            _stop: stop,
            links: HashMap::new(),
            next_id: 0,
            due: BinaryHeap::new(),
            random: Random::new(1),
            buffer: vec![0; READ_BYTES],
        })
    }

    fn run(&mut self) -> Result<(), RunError> {
        // The kernel wakes threads up to 50 µs late to save power, unless this is turned off.
        set_current_timer_slack(NonZeroU64::new(1)).map_err(RunError::machine("timer slack"))?;
        let mut events = Vec::with_capacity(EVENTS_MAX);
        loop {
            let timeout =
                self.due.peek().map(|Reverse((at, _))| timespec(at.saturating_sub(now_ns())));
            events.clear();
            let spare = rustix::buffer::spare_capacity(&mut events);
            match epoll::wait(&self.epoll, spare, timeout.as_ref()) {
                Ok(_) | Err(Errno::INTR) => {}
                Err(error) => return Err(RunError::machine("epoll_wait")(error)),
            }
            for event in &events {
                let (data, flags) = (event.data, event.flags);
                match data.u64() {
                    STOP => return Ok(()),
                    LISTENER => self.accept()?,
                    token => self.event(token, flags),
                }
            }
            let now = now_ns();
            while let Some(&Reverse((at, token))) = self.due.peek()
                && at <= now
            {
                self.due.pop();
                if let Some(link) = self.links.get_mut(&(token / 2)) {
                    link.directions[side(token)].scheduled = false;
                    self.transfer(token);
                }
            }
        }
    }

    fn accept(&mut self) -> Result<(), RunError> {
        while self.links.len() < LINKS_MAX {
            match self.listener.accept() {
                Ok((client, _)) => {
                    // If the server cannot be reached, the client's connection is closed immediately.
                    let _ = self.link(client);
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(()),
                Err(error) if error.kind() == ErrorKind::ConnectionAborted => {}
                Err(error) => return Err(RunError::machine("accepting a client")(error)),
            }
        }
        Err(RunError::Plan(format!("more than {LINKS_MAX} connections")))
    }

    fn link(&mut self, client: TcpStream) -> io::Result<()> {
        let family = match self.plan.to {
            SocketAddr::V4(_) => AddressFamily::INET,
            SocketAddr::V6(_) => AddressFamily::INET6,
        };
        let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
        let server = net::socket_with(family, SocketType::STREAM, flags, None)?;
        match net::connect(&server, &self.plan.to) {
            Ok(()) | Err(Errno::INPROGRESS) => {}
            Err(error) => return Err(error.into()),
        }
        client.set_nonblocking(true)?;
        let ends = [client, TcpStream::from(server)];
        let id = self.next_id;
        self.next_id += 1;
        for (end, token) in ends.iter().zip([2 * id, 2 * id + 1]) {
            end.set_nodelay(true)?;
            // The socket is registered once for reading and writing, with edge-triggered events.
            let flags = EventFlags::IN | EventFlags::OUT | EventFlags::ET;
            epoll::add(&self.epoll, end, EventData::new_u64(token), flags)?;
        }
        self.links
            .insert(id, Link { ends, directions: [Direction::default(), Direction::default()] });
        Ok(())
    }

    fn event(&mut self, token: u64, flags: EventFlags) {
        let Some(link) = self.links.get_mut(&(token / 2)) else { return };
        let end = side(token);
        if flags.intersects(EventFlags::ERR) {
            self.links.remove(&(token / 2));
            return;
        }
        if flags.intersects(EventFlags::IN | EventFlags::HUP) {
            link.directions[end].readable = true;
        }
        if flags.intersects(EventFlags::OUT) {
            link.directions[1 - end].writable = true;
        }
        self.transfer(token);
        self.transfer(token ^ 1);
    }

    /// Moves as many bytes as possible in one direction. Closes the link when both directions have ended, or on an
    /// error.
    fn transfer(&mut self, token: u64) {
        let (id, from) = (token / 2, side(token));
        let Some(link) = self.links.get_mut(&id) else { return };
        loop {
            let read = link.read(from, &self.plan, &mut self.random, &mut self.buffer);
            let written = read.and_then(|()| link.write(from, now_ns()));
            match written {
                Ok(()) if link.directions[0].closed && link.directions[1].closed => break,
                Err(_) => break,
                // Writing has made room for bytes that could not be read before.
                Ok(()) if link.directions[from].may_read() => {}
                Ok(()) => {
                    let direction = &mut link.directions[from];
                    // If the destination accepts nothing now, an event follows when it does.
                    if let Some(piece) = direction.queue.front()
                        && direction.writable
                        && !direction.scheduled
                    {
                        direction.scheduled = true;
                        self.due.push(Reverse((piece.due_ns, token)));
                    }
                    return;
                }
            }
        }
        self.links.remove(&id);
    }
}

/// The direction, or the end, that a token identifies.
const fn side(token: u64) -> usize {
    (token & 1) as usize
}

impl Direction {
    fn may_read(&self) -> bool {
        self.readable && !self.ended && self.queued_bytes < QUEUE_BYTES_MAX
    }
}

impl Link {
    fn read(
        &mut self,
        from: usize,
        plan: &DelayPlan,
        random: &mut Random,
        buffer: &mut [u8],
    ) -> io::Result<()> {
        let direction = &mut self.directions[from];
        while direction.may_read() {
            let count = match (&self.ends[from]).read(buffer) {
                Ok(count) => count,
                Err(error) if error.kind() == ErrorKind::WouldBlock => {
                    direction.readable = false;
                    return Ok(());
                }
                Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                Err(error) => return Err(error),
            };
            let jitter_ns = random.below(ns(plan.jitter) + 1);
            // A piece is never due before its predecessor.
            let due_ns = (now_ns() + ns(plan.delay) + jitter_ns).max(direction.last_due_ns);
            direction.last_due_ns = due_ns;
            direction.ended = count == 0;
            direction.queued_bytes += count + PIECE_BYTES;
            direction.queue.push_back(Piece { due_ns, bytes: buffer[..count].to_vec(), sent: 0 });
        }
        Ok(())
    }

    fn write(&mut self, from: usize, now: u64) -> io::Result<()> {
        let direction = &mut self.directions[from];
        let mut to = &self.ends[1 - from];
        while let Some(piece) = direction.queue.front_mut()
            && piece.due_ns <= now
            && direction.writable
        {
            if piece.sent < piece.bytes.len() {
                match to.write(&piece.bytes[piece.sent..]) {
                    Ok(count) => piece.sent += count,
                    Err(error) if error.kind() == ErrorKind::WouldBlock => {
                        direction.writable = false
                    }
                    Err(error) if error.kind() == ErrorKind::Interrupted => {}
                    Err(error) => return Err(error),
                }
            }
            if piece.sent == piece.bytes.len() {
                if piece.bytes.is_empty() {
                    to.shutdown(Shutdown::Write)?;
                    direction.closed = true;
                }
                direction.queued_bytes -= piece.bytes.len() + PIECE_BYTES;
                direction.queue.pop_front();
            }
        }
        Ok(())
    }
}

fn ns(duration: Duration) -> u64 {
    // Bounded by `DELAY_MAX`.
    duration.as_nanos() as u64
}
