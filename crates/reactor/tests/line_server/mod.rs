//! A server that reads lines, on a reactor in a thread of its own. Tests talk to it over real
//! sockets.
//!
//! Supported lines: `echo X`, `copy N` and `share N` (N bytes of reply), `quit` (replies and closes
//! with a flush), `drop` (closes immediately), `pause` (stops reading until the server is woken),
//! `hold N` and `release N` (stop and resume reading the Nth accepted connection), `end N` (closes
//! it immediately), `block` (does nothing until the test unblocks it), `stale` (uses the token of
//! every closed connection).

use brisk_reactor::{
    Accept, BackendChoice, Close, CloseReason, Control, Handler, Listener, Reactor, ReactorConfig,
    ReactorCounters, TcpOptions, Token, Waker,
};
use std::net::{SocketAddr, TcpStream};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

pub(crate) const LINGER: Duration = Duration::from_millis(300);

/// The server's state that the test can see.
#[derive(Default)]
pub(crate) struct Observed {
    pub(crate) stop: AtomicBool,
    pub(crate) resume: AtomicBool,
    pub(crate) blocked: AtomicBool,
    pub(crate) unblock: AtomicBool,
    pub(crate) open: AtomicUsize,
    pub(crate) wakes: AtomicUsize,
    pub(crate) paused: AtomicUsize,
    pub(crate) received_bytes: AtomicUsize,
    pub(crate) unsent: AtomicUsize,
    pub(crate) hung_up: AtomicUsize,
    pub(crate) drained: AtomicUsize,
    pub(crate) closed: Mutex<Vec<(Token, CloseReason)>>,
    pub(crate) peers: Mutex<Vec<String>>,
}

pub(crate) struct LineServer {
    observed: Arc<Observed>,
    shared: Arc<Vec<u8>>,
    refuse_above: usize,
    input: Vec<Vec<u8>>,
    paused: Vec<Token>,
    accepted: Vec<Token>,
}

impl LineServer {
    fn run_lines(&mut self, io: &mut Control, token: Token) {
        let mut input = std::mem::take(&mut self.input[token.index()]);
        let mut used = 0;
        while let Some(len) = input[used..].iter().position(|byte| *byte == b'\n') {
            let line = String::from_utf8(input[used..used + len].to_vec()).unwrap();
            used += len + 1;
            self.run(io, token, &line);
        }
        input.drain(..used);
        self.input[token.index()] = input;
        io.send(token);
        self.observed.unsent.store(io.unsent(token), Ordering::SeqCst);
    }

    fn run(&mut self, io: &mut Control, token: Token, line: &str) {
        let (word, rest) = line.split_once(' ').unwrap_or((line, ""));
        match word {
            "echo" => {
                let output = io.output(token);
                output.extend_from_slice(rest.as_bytes());
                output.extend_from_slice(b"\n");
            }
            "copy" => {
                let bytes: Vec<u8> = (0..rest.parse().unwrap()).map(pattern).collect();
                io.output(token).extend_from_slice(&bytes);
                io.when_drained(token, 0);
            }
            "share" => {
                let output = io.output(token);
                output.push_shared(self.shared.clone(), 0..rest.parse().unwrap());
                output.extend_from_slice(b"\n");
                io.when_drained(token, 0);
            }
            "quit" => {
                io.output(token).extend_from_slice(b"bye\n");
                io.close(token, Close::Flush { linger: LINGER });
            }
            "drop" => io.close(token, Close::Now),
            "pause" => {
                io.pause_reading(token);
                self.paused.push(token);
                self.observed.paused.fetch_add(1, Ordering::SeqCst);
            }
            "hold" => io.pause_reading(self.accepted[rest.parse::<usize>().unwrap()]),
            "release" => io.resume_reading(self.accepted[rest.parse::<usize>().unwrap()]),
            "end" => io.close(self.accepted[rest.parse::<usize>().unwrap()], Close::Now),
            "gather" => io.coalesce_wakes(Duration::from_micros(rest.parse().unwrap())),
            "sleeps" => {
                let sleeps = io.counters().sleeps;
                io.output(token).extend_from_slice(format!("{sleeps}\n").as_bytes());
            }
            "block" => {
                self.observed.blocked.store(true, Ordering::SeqCst);
                wait_until("unblocked", || self.observed.unblock.load(Ordering::SeqCst));
            }
            "stale" => {
                for (gone, _) in self.observed.closed.lock().unwrap().iter() {
                    assert!(!io.is_open(*gone) && io.fd(*gone).is_none());
                    io.output(*gone).extend_from_slice(b"discarded");
                    assert_eq!(io.unsent(*gone), 0);
                    io.send(*gone);
                    io.pause_reading(*gone);
                    io.close(*gone, Close::Now);
                }
                io.output(token).extend_from_slice(b"ignored\n");
            }
            _ => panic!("unknown line {line:?}"),
        }
    }
}

/// Byte `i` of a `copy` reply.
#[expect(clippy::cast_possible_truncation, reason = "a pattern of bytes")]
pub(crate) fn pattern(i: usize) -> u8 {
    (i % 251) as u8
}

impl Handler for LineServer {
    fn accepted(&mut self, io: &mut Control, token: Token, _: usize) -> Accept {
        if io.connection_count() > self.refuse_above {
            return Accept::Refuse(b"-ERR max number of clients reached\r\n".into());
        }
        self.observed.peers.lock().unwrap().push(io.peer_addr(token).to_string());
        if self.input.len() <= token.index() {
            self.input.resize(token.index() + 1, Vec::new());
        }
        assert!(self.input[token.index()].is_empty());
        self.accepted.push(token);
        self.observed.open.fetch_add(1, Ordering::SeqCst);
        Accept::Keep
    }

    fn received(&mut self, io: &mut Control, token: Token, bytes: &[u8]) {
        assert!(!io.is_paused(token), "nothing arrives while paused");
        self.observed.received_bytes.fetch_add(bytes.len(), Ordering::SeqCst);
        self.input[token.index()].extend_from_slice(bytes);
        self.run_lines(io, token);
    }

    fn hung_up(&mut self, _: &mut Control, _: Token) {
        self.observed.hung_up.fetch_add(1, Ordering::SeqCst);
    }

    fn closed(&mut self, io: &mut Control, token: Token, reason: CloseReason) {
        assert!(!io.is_open(token));
        self.input[token.index()] = Vec::new();
        self.observed.closed.lock().unwrap().push((token, reason));
        self.observed.open.fetch_sub(1, Ordering::SeqCst);
    }

    fn drained(&mut self, io: &mut Control, token: Token) {
        assert_eq!(io.unsent(token), 0);
        self.observed.drained.fetch_add(1, Ordering::SeqCst);
    }

    fn woken(&mut self, io: &mut Control) {
        self.observed.wakes.fetch_add(1, Ordering::SeqCst);
        if self.observed.resume.swap(false, Ordering::SeqCst) {
            for token in self.paused.drain(..) {
                io.resume_reading(token);
            }
        }
    }
}

pub(crate) struct Server {
    pub(crate) observed: Arc<Observed>,
    pub(crate) shared: Arc<Vec<u8>>,
    pub(crate) address: SocketAddr,
    pub(crate) path: PathBuf,
    pub(crate) waker: Waker,
    thread: Option<JoinHandle<ReactorCounters>>,
}

#[derive(Clone, Copy)]
pub(crate) struct Options {
    pub(crate) backend: BackendChoice,
    pub(crate) refuse_above: usize,
    pub(crate) keepalive_s: u32,
}

pub(crate) fn start(options: Options) -> Server {
    static NUMBER: AtomicUsize = AtomicUsize::new(0);
    let number = NUMBER.fetch_add(1, Ordering::SeqCst);
    let name = format!("brisk-reactor-{}-{number}.sock", std::process::id());
    let path = std::env::temp_dir().join(name);
    let observed = Arc::new(Observed::default());
    let shared: Arc<Vec<u8>> = Arc::new((0..20_000_000).map(pattern).collect());
    let (report, started) = std::sync::mpsc::channel();
    let (its_observed, its_shared, its_path) = (observed.clone(), shared.clone(), path.clone());
    let thread = std::thread::spawn(move || {
        let mut reactor = Reactor::new(&ReactorConfig { backend: options.backend }).unwrap();
        let tcp = TcpOptions { keepalive_s: options.keepalive_s, ..TcpOptions::default() };
        let listener = Listener::tcp(([127, 0, 0, 1], 0).into(), &tcp).unwrap();
        reactor.listen(Listener::unix(&its_path, Some(0o700), 64).unwrap()).unwrap();
        // Report only now, after the permissions of the path have been set.
        report.send((listener.local_addr().unwrap(), reactor.waker())).unwrap();
        reactor.listen(listener).unwrap();
        let mut handler = LineServer {
            observed: its_observed.clone(),
            shared: its_shared,
            refuse_above: options.refuse_above,
            input: Vec::new(),
            paused: Vec::new(),
            accepted: Vec::new(),
        };
        while !its_observed.stop.load(Ordering::SeqCst) {
            reactor.poll(&mut handler, Some(Duration::from_secs(5))).unwrap();
        }
        *reactor.io().counters()
    });
    let (address, waker) = started.recv().unwrap();
    Server { observed, shared, address, path, waker, thread: Some(thread) }
}

impl Server {
    pub(crate) fn connect(&self) -> TcpStream {
        let stream = TcpStream::connect(self.address).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
        stream.set_write_timeout(Some(Duration::from_secs(20))).unwrap();
        stream
    }

    pub(crate) fn connect_unix(&self) -> UnixStream {
        let stream = UnixStream::connect(&self.path).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
        stream
    }

    pub(crate) fn resume(&self) {
        self.observed.resume.store(true, Ordering::SeqCst);
        self.waker.wake();
    }

    pub(crate) fn wait_for_open(&self, count: usize) {
        wait_until("connections are as many as expected", || {
            self.observed.open.load(Ordering::SeqCst) == count
        });
    }

    pub(crate) fn reasons(&self) -> Vec<CloseReason> {
        self.observed.closed.lock().unwrap().iter().map(|(_, reason)| *reason).collect()
    }

    /// Stops the server's thread and returns its reactor's counters.
    pub(crate) fn stop(mut self) -> ReactorCounters {
        self.end().unwrap()
    }

    fn end(&mut self) -> Option<ReactorCounters> {
        self.observed.stop.store(true, Ordering::SeqCst);
        self.waker.wake();
        let counters = self.thread.take().map(|thread| thread.join().unwrap());
        let _ = std::fs::remove_file(Path::new(&self.path));
        counters
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            self.end();
        }
    }
}

/// Polls a condition until it is true, and panics after 20 seconds.
pub(crate) fn wait_until(what: &str, condition: impl Fn() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(20);
    while !condition() {
        assert!(Instant::now() < deadline, "timed out: {what}");
        std::thread::yield_now();
    }
}

/// Reports that a part of the running test is skipped, in the format of the testkit's function of
/// this name.
pub(crate) fn skipped(reason: &str) {
    use std::io::Write as _;
    let thread = std::thread::current();
    let line = format!("skipped: {}: {reason}\n", thread.name().unwrap_or("a thread of a test"));
    let _ = std::io::stderr().write_all(line.as_bytes());
}

/// Runs the test once for each back end that this machine supports.
pub(crate) fn each_backend(test: impl Fn(Server)) {
    each_backend_with(usize::MAX, 300, test);
}

pub(crate) fn each_backend_with(refuse_above: usize, keepalive_s: u32, test: impl Fn(Server)) {
    test(start(Options { backend: BackendChoice::Epoll, refuse_above, keepalive_s }));
    match brisk_reactor::uring_available() {
        Ok(()) => {
            for backend in [BackendChoice::BatchedEpoll, BackendChoice::Uring] {
                test(start(Options { backend, refuse_above, keepalive_s }));
            }
        }
        Err(_) => skipped("no io_uring on this machine"),
    }
}
