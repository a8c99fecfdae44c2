//! Simulates network faults between two nodes: a TCP proxy that does to connections what networks and middleboxes do,
//! on request.
//!
//! | fault | how |
//! |---|---|
//! | connections break | [`Proxy::cut`], by RST or by FIN; [`Proxy::cut_next_after`] after an exact number of bytes |
//! | connections are rejected | [`Proxy::refuse`] |
//! | slow | [`Proxy::delay`] both ways, [`Proxy::throttle`] |
//! | half open | [`Proxy::stall`] holds the bytes of a direction back; [`Proxy::swallow`] discards them |
//! | split into pieces | [`Proxy::split`]: the first bytes arrive one by one, the rest in pieces of random sizes |
//!
//! The *client* connects to the proxy, and the proxy connects to the *server*. Between a replica and its primary, the
//! replica is the client. Rules apply to existing and to new connections. Each direction of a connection has two
//! threads: one reads into a bounded queue, and the other writes from the queue when the rules allow it.

use crate::port::Port;
use crate::random::Random;
use crate::wait::wait_until;
use std::collections::{BTreeMap, VecDeque};
use std::io::{self, ErrorKind, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// Bytes that the proxy buffers per direction of a connection. When the buffer is full, the proxy stops reading.
const HELD_BYTES_MAX: usize = 1 << 20;
const READ_BYTES_MAX: usize = 64 * 1024;
/// While its receiver is not reading, a writer checks at this interval whether the connection was cut.
const WRITE_TIMEOUT: Duration = Duration::from_millis(20);
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
/// How often a throttled direction writes.
const THROTTLE_PERIOD: Duration = Duration::from_millis(10);

/// How a connection ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Disconnect {
    /// By RST: data in transit is lost.
    Reset,
    /// By FIN: data that was written arrives.
    End,
}

/// The direction in which bytes travel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Direction {
    ToServer,
    ToClient,
}

impl Direction {
    pub const BOTH: [Direction; 2] = [Direction::ToServer, Direction::ToClient];
}

/// How the bytes of a connection are split into pieces.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Split {
    /// The number of bytes that arrive one by one.
    pub single_bytes: u64,
    /// The pieces after them have random sizes, from 1 byte to this number.
    pub bytes_max: usize,
    pub seed: u64,
}

/// The rules for the bytes of one direction.
#[derive(Debug, Clone, Copy, Default)]
struct Rules {
    delay: Duration,
    bytes_per_s: Option<u64>,
    is_stalled: bool,
    is_swallowed: bool,
    split: Option<Split>,
}

/// A direction of a connection.
#[derive(Debug, Default)]
struct Pipe {
    /// Pieces of data, each with the earliest time at which it may be written.
    pieces: VecDeque<(Instant, Vec<u8>)>,
    held_bytes: usize,
    written_bytes: u64,
    has_ended: bool,
}

#[derive(Debug)]
struct Connection {
    /// The client's and the server's sockets.
    sockets: Arc<[TcpStream; 2]>,
    pipes: [Pipe; 2],
    cut: Option<Disconnect>,
    cut_after: Option<(Direction, u64, Disconnect)>,
    threads: usize,
}

#[derive(Debug, Default)]
struct State {
    rules: [Rules; 2],
    is_refusing: bool,
    is_over: bool,
    cut_next_after: Option<(Direction, u64, Disconnect)>,
    connections: BTreeMap<u64, Connection>,
    accepted: u64,
    written_bytes: [u64; 2],
}

#[derive(Debug, Default)]
struct Shared {
    state: Mutex<State>,
    changed: Condvar,
}

/// A running proxy. Dropping it stops the proxy and closes its connections.
#[derive(Debug)]
pub struct Proxy {
    shared: Arc<Shared>,
    port: Port,
    acceptor: Option<JoinHandle<()>>,
}

impl Proxy {
    /// Starts a proxy in front of the server at `address`. The server need not be running yet.
    ///
    /// # Panics
    /// If the address is not numeric, or no socket can be created.
    #[track_caller]
    pub fn to(address: &str) -> Proxy {
        let target: SocketAddr = address.parse().expect("an address of numbers");
        let port = Port::claim();
        // A process that another test is starting may have inherited the socket that tested the port for the claim.
        let mut listener = None;
        wait_until("the port to be free", || {
            listener = TcpListener::bind(("127.0.0.1", port.number())).ok();
            listener.is_some()
        });
        let listener = listener.expect("it was waited for");
        let shared = Arc::new(Shared::default());
        let theirs = Arc::clone(&shared);
        let acceptor = std::thread::spawn(move || theirs.accept_all(&listener, target));
        Proxy { shared, port, acceptor: Some(acceptor) }
    }

    /// The port on 127.0.0.1 on which the proxy listens.
    pub const fn port(&self) -> u16 {
        self.port.number()
    }

    /// `127.0.0.1:port`.
    pub fn address(&self) -> String {
        format!("127.0.0.1:{}", self.port())
    }

    /// Cuts all connections and waits until they are gone. Returns how many there were.
    pub fn cut(&self, how: Disconnect) -> usize {
        let mut state = self.shared.lock();
        let numbers: Vec<u64> = state.connections.keys().copied().collect();
        state.connections.values_mut().for_each(|connection| connection.cut_now(how));
        self.shared.changed.notify_all();
        while numbers.iter().any(|number| state.connections.contains_key(number)) {
            state = self.shared.wait(state, None);
        }
        numbers.len()
    }

    /// Cuts the next connection after exactly this number of bytes of a direction.
    pub fn cut_next_after(&self, direction: Direction, bytes: u64, how: Disconnect) {
        self.shared.lock().cut_next_after = Some((direction, bytes, how));
    }

    /// Sets whether new connections are reset immediately.
    pub fn refuse(&self, is_refusing: bool) {
        self.shared.lock().is_refusing = is_refusing;
    }

    /// Bytes that are read from now on are written after this delay.
    pub fn delay(&self, delay: Duration) {
        self.change(&Direction::BOTH, |rules| rules.delay = delay);
    }

    /// Limits each direction of each connection to this number of bytes per second.
    pub fn throttle(&self, bytes_per_s: Option<u64>) {
        self.change(&Direction::BOTH, |rules| rules.bytes_per_s = bytes_per_s);
    }

    /// Stalls or resumes a direction. Stalled bytes are sent when it resumes.
    pub fn stall(&self, direction: Direction, is_stalled: bool) {
        self.change(&[direction], |rules| rules.is_stalled = is_stalled);
    }

    /// Simulates a partition: no data passes, and neither side is notified.
    pub fn part(&self) {
        self.change(&Direction::BOTH, |rules| rules.is_stalled = true);
    }

    /// Sets whether the bytes of a direction are discarded. A connection that has lost bytes can only be cut.
    pub fn swallow(&self, direction: Direction, is_swallowed: bool) {
        self.change(&[direction], |rules| rules.is_swallowed = is_swallowed);
    }

    /// Sets how bytes are split into pieces, in both directions.
    pub fn split(&self, split: Option<Split>) {
        self.change(&Direction::BOTH, |rules| rules.split = split);
    }

    /// Removes all rules. Connections stay open.
    pub fn heal(&self) {
        self.change(&Direction::BOTH, |rules| *rules = Rules::default());
        let mut state = self.shared.lock();
        state.is_refusing = false;
        state.cut_next_after = None;
    }

    /// Connections that are open now.
    pub fn open(&self) -> usize {
        self.shared.lock().connections.len()
    }

    /// Number of connections accepted so far, including those that were then reset.
    pub fn accepted(&self) -> u64 {
        self.shared.lock().accepted
    }

    /// Bytes of a direction that were written or discarded so far.
    pub fn written_bytes(&self, direction: Direction) -> u64 {
        self.shared.lock().written_bytes[direction as usize]
    }

    fn change(&self, directions: &[Direction], change: impl Fn(&mut Rules)) {
        let mut state = self.shared.lock();
        directions.iter().for_each(|direction| change(&mut state.rules[*direction as usize]));
        self.shared.changed.notify_all();
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.shared.lock().is_over = true;
        // A connection wakes the thread that waits in accept.
        let _ = TcpStream::connect(("127.0.0.1", self.port()));
        let _ = self.acceptor.take().map(JoinHandle::join);
        self.cut(Disconnect::Reset);
    }
}

impl Connection {
    fn cut_now(&mut self, how: Disconnect) {
        if self.cut.is_some() {
            return;
        }
        self.cut = Some(how);
        for socket in self.sockets.iter() {
            match how {
                // The readers wake up. The RST is sent when the last thread closes the socket.
                Disconnect::Reset => {
                    let _ = socket2::SockRef::from(socket).set_linger(Some(Duration::ZERO));
                    let _ = socket.shutdown(Shutdown::Read);
                }
                Disconnect::End => drop(socket.shutdown(Shutdown::Both)),
            }
        }
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().expect("no thread of a proxy panics")
    }

    fn wait<'a>(
        &self,
        state: MutexGuard<'a, State>,
        limit: Option<Duration>,
    ) -> MutexGuard<'a, State> {
        const WHY: &str = "no thread of a proxy panics";
        match limit {
            None => self.changed.wait(state).expect(WHY),
            Some(limit) => self.changed.wait_timeout(state, limit).expect(WHY).0,
        }
    }

    fn accept_all(self: &Arc<Self>, listener: &TcpListener, target: SocketAddr) {
        for client in listener.incoming() {
            let (is_over, is_refusing) = {
                let mut state = self.lock();
                state.accepted += u64::from(!state.is_over);
                (state.is_over, state.is_refusing)
            };
            if is_over {
                return;
            }
            let Ok(client) = client else { continue };
            let server = match is_refusing {
                true => Err(ErrorKind::ConnectionRefused.into()),
                false => TcpStream::connect_timeout(&target, CONNECT_TIMEOUT),
            };
            match server {
                Ok(server) => drop(self.begin(client, server)),
                Err(_) => {
                    drop(socket2::SockRef::from(&client).set_linger(Some(Duration::ZERO)));
                }
            }
        }
    }

    fn begin(self: &Arc<Self>, client: TcpStream, server: TcpStream) -> io::Result<()> {
        for socket in [&client, &server] {
            socket.set_nodelay(true)?;
            socket.set_write_timeout(Some(WRITE_TIMEOUT))?;
        }
        let sockets = Arc::new([client, server]);
        let mut state = self.lock();
        let number = state.accepted;
        let connection = Connection {
            sockets: Arc::clone(&sockets),
            pipes: [Pipe::default(), Pipe::default()],
            cut: None,
            cut_after: state.cut_next_after.take(),
            threads: 4,
        };
        state.connections.insert(number, connection);
        drop(state);
        for direction in Direction::BOTH {
            let (shared, theirs) = (Arc::clone(self), Arc::clone(&sockets));
            std::thread::spawn(move || {
                shared.read_all(number, direction, &theirs);
                drop(theirs);
                shared.leave(number);
            });
            let (shared, theirs) = (Arc::clone(self), Arc::clone(&sockets));
            std::thread::spawn(move || {
                shared.write_all(number, direction, &theirs);
                drop(theirs);
                shared.leave(number);
            });
        }
        Ok(())
    }

    /// Called when a thread of a connection ends. The last thread closes the connection.
    fn leave(&self, number: u64) {
        let mut state = self.lock();
        if let Some(connection) = state.connections.get_mut(&number) {
            connection.threads -= 1;
            if connection.threads == 0 {
                state.connections.remove(&number);
            }
        }
        self.changed.notify_all();
    }

    fn fail(&self, number: u64) {
        if let Some(connection) = self.lock().connections.get_mut(&number) {
            connection.cut_now(Disconnect::Reset);
        }
        self.changed.notify_all();
    }

    fn read_all(&self, number: u64, direction: Direction, sockets: &[TcpStream; 2]) {
        let mut source = match direction {
            Direction::ToServer => &sockets[0],
            Direction::ToClient => &sockets[1],
        };
        let mut bytes = vec![0; READ_BYTES_MAX];
        loop {
            let read = match source.read(&mut bytes) {
                Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                Err(_) => return self.fail(number),
                Ok(read) => read,
            };
            let mut state = self.lock();
            let due = Instant::now() + state.rules[direction as usize].delay;
            loop {
                let Some(connection) = state.connections.get_mut(&number) else { return };
                if connection.cut.is_some() {
                    return;
                }
                let pipe = &mut connection.pipes[direction as usize];
                if read == 0 {
                    pipe.has_ended = true;
                    self.changed.notify_all();
                    return;
                }
                if pipe.held_bytes < HELD_BYTES_MAX {
                    pipe.held_bytes += read;
                    pipe.pieces.push_back((due, bytes[..read].to_vec()));
                    self.changed.notify_all();
                    break;
                }
                state = self.wait(state, None);
            }
        }
    }

    fn write_all(&self, number: u64, direction: Direction, sockets: &[TcpStream; 2]) {
        let mut random = Random::derived(direction as u64, number);
        let mut seeded = None;
        // When a throttled direction may write again.
        let mut free_at = Instant::now();
        loop {
            let mut state = self.lock();
            let (piece, rules) = loop {
                let rules = state.rules[direction as usize];
                if rules.split != seeded {
                    seeded = rules.split;
                    let seed = rules.split.map_or(0, |split| split.seed);
                    random = Random::derived(seed, number * 2 + direction as u64);
                }
                let Some(connection) = state.connections.get_mut(&number) else { return };
                if connection.cut.is_some() {
                    return;
                }
                let pipe = &mut connection.pipes[direction as usize];
                let now = Instant::now();
                let limit = match pipe.pieces.front() {
                    None if pipe.has_ended => {
                        drop(state);
                        let _ = receiver(direction, sockets).shutdown(Shutdown::Write);
                        return;
                    }
                    None => None,
                    Some(_) if rules.is_stalled => None,
                    Some((due, _)) => {
                        let due = rules.bytes_per_s.map_or(*due, |_| free_at.max(*due));
                        if due <= now {
                            let cut_after = connection.cut_after;
                            let piece = pipe.take(direction, rules, cut_after, &mut random);
                            break (piece, rules);
                        }
                        Some(due - now)
                    }
                };
                state = self.wait(state, limit);
            };
            // Count the bytes before they can arrive, so that a client that has seen a reply finds its request counted.
            state.written_bytes[direction as usize] += piece.len() as u64;
            drop(state);
            self.changed.notify_all();
            if !rules.is_swallowed && !self.write(number, receiver(direction, sockets), &piece) {
                return self.fail(number);
            }
            if let Some(bytes_per_s) = rules.bytes_per_s {
                let took = Duration::from_secs_f64(piece.len() as f64 / bytes_per_s.max(1) as f64);
                free_at = free_at.max(Instant::now()) + took;
            }
            self.wrote(number, direction);
        }
    }

    /// Writes one piece. Returns false if the connection has failed or was cut.
    fn write(&self, number: u64, mut receiver: &TcpStream, mut piece: &[u8]) -> bool {
        while !piece.is_empty() {
            match receiver.write(piece) {
                Ok(0) => return false,
                Ok(written) => piece = &piece[written..],
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error)
                    if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) =>
                {
                    let state = self.lock();
                    let is_cut = |connection: &Connection| connection.cut.is_some();
                    if state.connections.get(&number).is_none_or(is_cut) {
                        return false;
                    }
                }
                Err(_) => return false,
            }
        }
        true
    }

    fn wrote(&self, number: u64, direction: Direction) {
        let mut state = self.lock();
        let Some(connection) = state.connections.get_mut(&number) else { return };
        if let Some((of, after, how)) = connection.cut_after
            && of == direction
            && connection.pipes[direction as usize].written_bytes >= after
        {
            connection.cut_now(how);
            self.changed.notify_all();
        }
    }
}

impl Pipe {
    /// Takes the piece to write next.
    fn take(
        &mut self,
        direction: Direction,
        rules: Rules,
        cut_after: Option<(Direction, u64, Disconnect)>,
        random: &mut Random,
    ) -> Vec<u8> {
        let Some((_, bytes)) = self.pieces.front_mut() else { return Vec::new() };
        let mut len = bytes.len();
        if let Some(split) = rules.split {
            let is_single = self.written_bytes < split.single_bytes;
            len = len.min(if is_single { 1 } else { 1 + random.below(split.bytes_max.max(1)) });
        }
        if let Some(bytes_per_s) = rules.bytes_per_s {
            let share = bytes_per_s as f64 * THROTTLE_PERIOD.as_secs_f64();
            len = len.min((share as usize).max(1));
        }
        if let Some((of, after, _)) = cut_after
            && of == direction
        {
            len = len.min(usize::try_from(after - self.written_bytes).unwrap_or(usize::MAX));
        }
        let rest = bytes.split_off(len);
        let piece = std::mem::replace(bytes, rest);
        if self.pieces.front().is_some_and(|(_, rest)| rest.is_empty()) {
            self.pieces.pop_front();
        }
        self.held_bytes -= piece.len();
        self.written_bytes += piece.len() as u64;
        piece
    }
}

const fn receiver(direction: Direction, sockets: &[TcpStream; 2]) -> &TcpStream {
    match direction {
        Direction::ToServer => &sockets[1],
        Direction::ToClient => &sockets[0],
    }
}
