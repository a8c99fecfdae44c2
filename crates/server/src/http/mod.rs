//! The HTTP server on `http-port`: `/metrics`, `/health` and `/ready` for monitoring, and the console.
//!
//! ```text
//!  bytes ─ (TLS) ─ request::parse ─ answer ─ bytes, one request after the other
//! ```
//!
//! The thread `brisk-http` has its own event loop and is not a worker. It is never quiesced, so it responds while all
//! workers are quiesced, and it never delays a command. It reads the same data as INFO: counters, and data behind
//! mutexes that are held only briefly.
//!
//! | file | about |
//! |---|---|
//! | `request` | parsing requests |
//! | `credentials` | access control for the metrics |
//! | `probes` | `/health` and `/ready` |
//! | `response` | writing responses |
//! | `console` | the console: a page for browsers, and their sessions |
//! | `metrics` | `/metrics`: the metrics of INFO in the formats of Prometheus and OpenMetrics |

mod console;
mod credentials;
pub mod metrics;
mod probes;
mod request;
mod response;

use self::console::Consoles;
use self::metrics::Format;
use self::request::{HEAD_BYTES_MAX, Method, Request};
use self::response::Answer;
use brisk_config::system::HTTP_CONNECTIONS_MAX;
use brisk_net::tls::TlsStream;
use brisk_node::core::shared::Shared;
use brisk_reactor::{
    Accept, BackendChoice, Close, CloseReason, Control, Handler, Listener, Reactor, ReactorConfig,
    Token, Waker, unix_ms,
};
use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

/// The time limit for receiving a request, and for sending the response. The time to receive a request is measured from
/// its first byte, or from the time of the connection, to the end of the body.
const REQUEST_MS_MAX: u64 = 10_000;
/// The time limit between two requests. It is longer than the usual scrape interval.
const IDLE_MS_MAX: u64 = 120_000;
/// While more bytes of responses than this are unsent, no further request is processed.
const UNSENT_BYTES_MAX: usize = 64 * 1024;
/// How long a closing connection waits for the client to read its last response.
const LINGER: Duration = Duration::from_secs(2);
/// Maximum number of bytes of unprocessed requests: a request head plus the bytes that one receive may add.
const INPUT_BYTES_MAX: usize = HEAD_BYTES_MAX + 256 * 1024;
/// The same for the frames of a console: a message plus the bytes that one receive may add.
const FRAME_BYTES_MAX: usize = console::INPUT_BYTES_MAX + 256 * 1024;

/// The thread of the HTTP server.
pub(crate) struct Http {
    thread: JoinHandle<()>,
    waker: Waker,
    is_over: Arc<AtomicBool>,
}

impl Http {
    /// Starts the HTTP server on these listeners.
    ///
    /// # Errors
    /// The system cannot create the event loop, or cannot use the listeners.
    pub(crate) fn start(
        shared: &'static Shared,
        listeners: Vec<Listener>,
        backend: BackendChoice,
    ) -> Result<Http, String> {
        let is_over = Arc::new(AtomicBool::new(false));
        let ends = Arc::clone(&is_over);
        let (ready, is_ready) = std::sync::mpsc::channel();
        let run = move || match set_up(listeners, backend) {
            Ok(mut reactor) => {
                let _ = ready.send(Ok(reactor.waker()));
                serve(shared, &mut reactor, &ends);
            }
            Err(error) => {
                let _ = ready.send(Err(format!("cannot listen for HTTP: {error}")));
            }
        };
        let thread = std::thread::Builder::new().name("brisk-http".to_owned()).spawn(run);
        let thread = thread.map_err(|error| format!("cannot start a thread: {error}"))?;
        let waker =
            is_ready.recv().map_err(|_| "the HTTP thread exited immediately".to_owned())??;
        Ok(Http { thread, waker, is_over })
    }

    /// Stops the thread. Connections are closed immediately.
    pub(crate) fn stop(self) {
        self.is_over.store(true, Ordering::SeqCst);
        self.waker.wake();
        // If the thread panicked, it has reported that on stderr.
        let _ = self.thread.join();
    }
}

fn set_up(listeners: Vec<Listener>, backend: BackendChoice) -> std::io::Result<Reactor> {
    let mut reactor = Reactor::new(&ReactorConfig { backend })?;
    for listener in listeners {
        reactor.listen(listener)?;
    }
    Ok(reactor)
}

fn serve(shared: &'static Shared, reactor: &mut Reactor, is_over: &AtomicBool) {
    let consoles = Consoles::new(shared);
    let mut server = Server { shared, connections: HashMap::new(), consoles, events: 0 };
    while !is_over.load(Ordering::SeqCst) {
        let now_ms = unix_ms();
        let tick = server.consoles.tick(&mut server.connections, reactor.io(), now_ms);
        let timeout = server.end_late(reactor.io(), now_ms);
        let wait = tick.into_iter().chain(timeout).min();
        if let Err(error) = reactor.poll(&mut server, wait) {
            shared
                .log
                .warning(format_args!("HTTP: the event loop failed: {error}; it has stopped"));
            return;
        }
    }
}

/// One connection.
struct Connection {
    tls: Option<Box<TlsStream>>,
    /// Received bytes that have not been processed.
    input: Vec<u8>,
    /// Number of input bytes that were searched for the end of a head.
    seen: usize,
    /// Bytes of a body that are still to come.
    body: u64,
    /// When the connection times out, in Unix ms.
    until_ms: u64,
    /// The value of the event counter at the last activity on the connection.
    heard: u64,
    /// True while the connection waits until its responses are read.
    is_held: bool,
    /// True if the client has shut down its sending side.
    finished: bool,
    /// True if no further request is processed.
    is_closing: bool,
    /// True if the connection carries the session of a console.
    is_console: bool,
}

impl Connection {
    /// Sends bytes, encrypted if necessary.
    fn send(&mut self, io: &mut Control, token: Token, bytes: &[u8]) {
        let output = io.output(token);
        match &mut self.tls {
            Some(stream) => stream.send(bytes, output),
            None => output.extend_from_slice(bytes),
        }
        io.send(token);
    }

    /// Closes the connection when the client has read the last bytes.
    fn close(&mut self, io: &mut Control, token: Token) {
        if let Some(stream) = &mut self.tls
            && !stream.is_handshaking()
        {
            stream.close(io.output(token));
        }
        self.is_closing = true;
        io.close(token, Close::Flush { linger: LINGER });
    }
}

struct Server {
    shared: &'static Shared,
    connections: HashMap<Token, Connection>,
    consoles: Consoles,
    /// Counts accepted connections, and received data on any connection.
    events: u64,
}

impl Server {
    /// Closes connections that have timed out. Returns the time until the next timeout.
    /// O(connections).
    fn end_late(&mut self, io: &mut Control, now_ms: u64) -> Option<Duration> {
        let mut next = None;
        for (token, connection) in &self.connections {
            if connection.until_ms <= now_ms {
                io.close(*token, Close::Now);
            } else {
                let left = connection.until_ms - now_ms;
                next = Some(next.map_or(left, |next: u64| next.min(left)));
            }
        }
        next.map(Duration::from_millis)
    }

    /// Makes room for one more connection by closing the connection that has been idle for the longest time. So a
    /// client with many connections cannot prevent other clients from reaching the probes. O(connections).
    fn make_room(&mut self, io: &mut Control) {
        if self.connections.len() < HTTP_CONNECTIONS_MAX {
            return;
        }
        // There are fewer consoles than connections, and their number has its own limit.
        let others = self.connections.iter().filter(|(_, connection)| !connection.is_console);
        let silent = others.min_by_key(|(_, connection)| connection.heard);
        if let Some(token) = silent.map(|(token, _)| *token) {
            self.connections.remove(&token);
            io.close(token, Close::Now);
        }
    }

    /// Takes received bytes, decrypted if necessary. Returns false if the connection is broken.
    fn take(connection: &mut Connection, io: &mut Control, token: Token, bytes: &[u8]) -> bool {
        let Some(stream) = &mut connection.tls else {
            connection.input.extend_from_slice(bytes);
            return true;
        };
        let output = io.output(token);
        let received = stream.receive(bytes, &mut connection.input, output);
        if !output.is_empty() {
            io.send(token);
        }
        match received {
            Ok(received) => {
                connection.finished |= received.finished;
                true
            }
            Err(_) => false,
        }
    }

    /// Processes received requests as long as responses are read.
    fn process_requests(&mut self, connection: &mut Connection, io: &mut Control, token: Token) {
        let mut at = 0;
        loop {
            if connection.is_closing {
                at = connection.input.len();
                break;
            }
            if connection.is_console {
                at += self.consoles.process_frames(connection, io, token, at);
                break;
            }
            let rest = &connection.input[at..];
            let skipped = (rest.len() as u64).min(connection.body);
            connection.body -= skipped;
            at += usize::try_from(skipped).unwrap_or(rest.len());
            if connection.body > 0 {
                break;
            }
            connection.is_held = io.unsent(token) > UNSENT_BYTES_MAX;
            if connection.is_held {
                connection.until_ms = unix_ms() + REQUEST_MS_MAX;
                io.pause_reading(token);
                io.when_drained(token, 0);
                break;
            }
            match request::parse(&connection.input[at..], &mut connection.seen) {
                Ok(Some((request, head))) => {
                    at += head;
                    connection.body = request.body;
                    if request.path == console::SESSION_PATH {
                        match self.consoles.open(connection, io, token, &request) {
                            Ok(()) => continue,
                            Err(response) => {
                                connection.is_closing = true;
                                Self::send(connection, io, token, &response, &request);
                                continue;
                            }
                        }
                    }
                    connection.is_closing = !request.keeps_alive;
                    let response = self.respond(&request, io, token);
                    Self::send(connection, io, token, &response, &request);
                }
                Ok(None) => break,
                Err(fault) => {
                    let request = Request::default();
                    connection.is_closing = true;
                    Self::send(connection, io, token, &Answer::of_fault(fault), &request);
                }
            }
        }
        connection.input.drain(..at);
        if connection.input.is_empty() {
            connection.input.shrink_to(HEAD_BYTES_MAX);
        }
        let is_held = connection.is_held;
        if (connection.is_closing || connection.finished) && !is_held {
            connection.close(io, token);
        }
    }

    fn send(
        connection: &mut Connection,
        io: &mut Control,
        token: Token,
        response: &Answer,
        request: &Request,
    ) {
        let keeps = !connection.is_closing;
        let bytes = response.bytes(request.method == Method::Head, keeps, unix_ms() / 1000);
        connection.send(io, token, &bytes);
        connection.until_ms = unix_ms() + IDLE_MS_MAX;
    }

    /// Returns the response to a request.
    fn respond(&self, request: &Request, io: &mut Control, token: Token) -> Answer {
        let config = self.shared.config();
        let network = &config.network;
        let peer = io.peer_addr(token);
        if let Some(response) = console::page(self.shared, &config, request, &peer) {
            return response;
        }
        let is_open = network.http_password.is_empty() && network.protected_mode;
        if is_open && !peer.is_local() {
            return Answer::text(
                403,
                "protected-mode is on and http-password is not set: only clients on this machine are allowed",
            );
        }
        let known = ["/metrics", "/health", "/ready"].contains(&request.path.as_str());
        match request.path.as_str() {
            _ if !known => Answer::text(404, "not found: use /metrics, /health or /ready"),
            _ if request.method == Method::Other => {
                Answer::text(405, "only GET and HEAD are supported")
            }
            "/health" => Answer::text(200, "ok"),
            "/ready" => match probes::unready(self.shared) {
                None => Answer::text(200, "ready"),
                Some(why) => Answer::text(503, why),
            },
            _ if !credentials::admit(network, request.authorization.as_deref()) => {
                Answer::text(401, "user name and password are required")
            }
            _ => {
                let format = Format::accepted(&request.accept);
                let body = metrics::text(self.shared, &config, format);
                Answer { status: 200, content_type: format.content_type(), body, is_page: false }
            }
        }
    }
}

impl Handler for Server {
    fn accepted(&mut self, io: &mut Control, token: Token, _: usize) -> Accept {
        self.make_room(io);
        self.events += 1;
        let mut tls = None;
        if self.shared.config().network.http_tls {
            let stream = self.shared.network.new_tls_stream().and_then(Result::ok);
            let Some(stream) = stream else { return Accept::Refuse(b"".as_slice().into()) };
            tls = Some(stream);
        }
        let connection = Connection {
            tls,
            input: Vec::new(),
            seen: 0,
            body: 0,
            until_ms: unix_ms() + REQUEST_MS_MAX,
            heard: self.events,
            is_held: false,
            finished: false,
            is_closing: false,
            is_console: false,
        };
        self.connections.insert(token, connection);
        Accept::Keep
    }

    fn received(&mut self, io: &mut Control, token: Token, bytes: &[u8]) {
        if self.consoles.is_session(token) {
            self.consoles.forward(&mut self.connections, io, token, bytes);
            return;
        }
        let Some(mut connection) = self.connections.remove(&token) else { return };
        self.events += 1;
        connection.heard = self.events;
        let is_new = connection.input.is_empty() && connection.body == 0;
        if is_new && !connection.is_closing {
            // Set the time limit only once, so that a client that sends byte by byte gets no more time.
            let until_ms = unix_ms() + REQUEST_MS_MAX;
            let shaking = connection.tls.as_ref().is_some_and(|stream| stream.is_handshaking());
            if !shaking {
                connection.until_ms = connection.until_ms.min(until_ms);
            }
        }
        let is_well = Self::take(&mut connection, io, token, bytes);
        let bytes_max = if connection.is_console { FRAME_BYTES_MAX } else { INPUT_BYTES_MAX };
        if is_well && connection.input.len() <= bytes_max {
            self.process_requests(&mut connection, io, token);
        } else {
            connection.is_closing = true;
            io.close(token, Close::Flush { linger: LINGER });
        }
        self.connections.insert(token, connection);
    }

    fn finished(&mut self, io: &mut Control, token: Token) {
        if self.consoles.is_session(token) {
            io.close(token, Close::Now);
            return;
        }
        let Some(mut connection) = self.connections.remove(&token) else { return };
        connection.finished = true;
        self.process_requests(&mut connection, io, token);
        self.connections.insert(token, connection);
    }

    fn drained(&mut self, io: &mut Control, token: Token) {
        // If a session has read its requests, its console may send more, and the reverse.
        let token = self.consoles.drained(io, token).unwrap_or(token);
        let Some(mut connection) = self.connections.remove(&token) else { return };
        io.resume_reading(token);
        connection.until_ms = unix_ms() + IDLE_MS_MAX;
        self.process_requests(&mut connection, io, token);
        self.connections.insert(token, connection);
    }

    fn closed(&mut self, io: &mut Control, token: Token, _: CloseReason) {
        self.connections.remove(&token);
        self.consoles.closed(&mut self.connections, io, token);
    }
}
