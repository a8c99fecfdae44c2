//! The console: a page for browsers, and a WebSocket that carries RESP to an ordinary session of a worker.
//!
//! ```text
//!  browser ─ WebSocket ─ brisk-http ─ socket pair ─ session of a worker
//! ```
//!
//! The session is that of any other client: it logs in with AUTH or HELLO, and has the permissions of its user. So
//! nothing here checks commands. This code checks only which page opens the WebSocket, because a browser lets any page
//! connect to any server:
//!
//! - `Origin` must name the same host as `Host`. Otherwise, another site's page could use the console's session.
//! - `Host` must be an address, `localhost`, or a name in `http-console-hosts`. Otherwise, an attacker whose domain
//!   resolves to this server's address (DNS rebinding) could pass the first check.
//! - Protected mode applies as for other clients.
//!
//! Binary messages carry RESP in both directions, as a byte stream. Text messages are events: after the text
//! `events on`, the server sends the fields of INFO that have changed once a second (`events`).

mod assets;
mod events;
mod websocket;

use self::events::Events;
use self::websocket::{Decoder, MESSAGE_BYTES_MAX, Message, Violation};
use super::request::{Method, Request};
use super::response::Answer;
use super::{Connection, IDLE_MS_MAX, REQUEST_MS_MAX, UNSENT_BYTES_MAX};
use brisk_config::Config;
use brisk_config::choice::Console as Mode;
use brisk_config::system::CONSOLES_MAX;
use brisk_node::clients::{ClientRecord, flag};
use brisk_node::core::mailbox::{Message as ToWorker, NewConnection};
use brisk_node::core::shared::Shared;
use brisk_reactor::{Close, Control, PeerAddr, Token, unix_ms};
use std::collections::HashMap;
use std::net::{IpAddr, Ipv6Addr};
use std::os::unix::net::UnixStream;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

/// The path of the WebSocket.
pub(super) const SESSION_PATH: &str = "/console/session";
/// Maximum number of bytes of unprocessed frames: the longest message with the head of its frame.
pub(super) const INPUT_BYTES_MAX: usize = MESSAGE_BYTES_MAX + 14;
/// The subprotocol that the page requests.
const SUBPROTOCOL: &str = "brisk-console";
/// Time between two events.
const EVENT_MS: u64 = 1000;
/// Time between two pings, whose replies show that the browser is still there.
const PING_MS: u64 = 30_000;
/// While more bytes of requests than this are unread by the session, no further frame is processed.
const UNREAD_BYTES_MAX: usize = 1024 * 1024;

/// The status of a close frame when the session or the server has ended the connection.
const GOING_AWAY: u16 = 1001;
const NORMAL: u16 = 1000;

/// One console.
struct Console {
    /// Counts the consoles in the order of their opening.
    number: usize,
    /// This thread's end of the connection to the session.
    session: Token,
    decoder: Decoder,
    /// The client of the session, once the worker has accepted it.
    record: Arc<OnceLock<Arc<ClientRecord>>>,
    subscription: Subscription,
    ping_at_ms: u64,
}

impl Console {
    fn is_authenticated(&self) -> bool {
        self.record.get().is_some_and(|record| record.has(flag::AUTHENTICATED))
    }

    /// Reports whether the console gets events, if it wants them.
    fn may_read(&self, shared: &Shared) -> bool {
        self.record.get().is_some_and(|record| events::may_read(shared, record))
    }
}

/// Whether a console receives events.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Subscription {
    Off,
    /// The next event has all fields.
    Begins,
    On,
    /// The user may not run INFO, and the console has received an event that says so.
    Denied,
}

/// All consoles.
pub(super) struct Consoles {
    shared: &'static Shared,
    /// By the connection of the browser.
    consoles: HashMap<Token, Console>,
    /// The connections of the browsers, by the connection to the session.
    browsers: HashMap<Token, Token>,
    events: Events,
    next_event_ms: u64,
    /// The mode at the last event. If it changes, the consoles begin with all fields again.
    mode: Mode,
    /// Counts opened consoles, which are distributed over the workers in turn.
    opened: usize,
}

impl Consoles {
    pub(super) fn new(shared: &'static Shared) -> Consoles {
        Consoles {
            shared,
            consoles: HashMap::new(),
            browsers: HashMap::new(),
            events: Events::default(),
            next_event_ms: 0,
            mode: Mode::No,
            opened: 0,
        }
    }

    /// Reports whether a connection leads to a session.
    pub(super) fn is_session(&self, token: Token) -> bool {
        self.browsers.contains_key(&token)
    }

    /// Accepts a WebSocket and connects it to a new session.
    ///
    /// # Errors
    /// The response that rejects the request.
    pub(super) fn open(
        &mut self,
        connection: &mut Connection,
        io: &mut Control,
        token: Token,
        request: &Request,
    ) -> Result<(), Answer> {
        let config = self.shared.config();
        let mode = config.network.http_console;
        if mode == Mode::No {
            return Err(Answer::text(404, "not found: the console is off (http-console)"));
        }
        check_host(&config, request)?;
        let scheme = if connection.tls.is_some() { "https" } else { "http" };
        let own = format!("{scheme}://{}", request.host);
        if !request.origin.as_ref().is_some_and(|origin| origin.eq_ignore_ascii_case(&own)) {
            return Err(Answer::text(403, "the origin of the page is not this server"));
        }
        let peer = io.peer_addr(token);
        check_protected_mode(self.shared, &config, &peer)?;
        let websocket = &request.websocket;
        let is_websocket = websocket.protocol.eq_ignore_ascii_case("websocket");
        if request.method != Method::Get || !websocket.upgrades || !is_websocket {
            return Err(Answer::text(400, "this path is for WebSockets"));
        }
        if websocket.version != "13" {
            return Err(Answer::text(426, "the version of WebSocket must be 13"));
        }
        let mut subprotocols = websocket.subprotocols.split(',').map(str::trim);
        let is_complete = websocket::is_key(&websocket.key) && request.body == 0;
        if !is_complete || !subprotocols.any(|name| name == SUBPROTOCOL) {
            return Err(Answer::text(400, "the WebSocket handshake is malformed"));
        }
        if self.consoles.len() >= CONSOLES_MAX && !self.make_room(io) {
            return Err(Answer::text(503, "too many consoles are open"));
        }
        let unavailable = |_| Answer::text(503, "the server cannot open another connection");
        let (ours, theirs) = UnixStream::pair().map_err(unavailable)?;
        ours.set_nonblocking(true).map_err(unavailable)?;
        theirs.set_nonblocking(true).map_err(unavailable)?;
        let session = io.adopt(ours).map_err(unavailable)?;
        let record = Arc::new(OnceLock::new());
        let local = io.local_addr(token);
        let new = NewConnection { socket: theirs.into(), peer, local, record: Arc::clone(&record) };
        let worker = self.opened % self.shared.serving_workers();
        self.opened += 1;
        self.shared.mailboxes.send(worker, ToWorker::Adopt(Box::new(new)));
        let accept = websocket::accept_value(&websocket.key);
        let response = format!(
            "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\
             Sec-WebSocket-Accept: {accept}\r\nSec-WebSocket-Protocol: {SUBPROTOCOL}\r\n\r\n"
        );
        connection.send(io, token, response.as_bytes());
        connection.is_console = true;
        let now_ms = unix_ms();
        connection.until_ms = now_ms + IDLE_MS_MAX;
        self.browsers.insert(session, token);
        let console = Console {
            number: self.opened,
            session,
            decoder: Decoder::default(),
            record,
            subscription: Subscription::Off,
            ping_at_ms: now_ms + PING_MS,
        };
        self.consoles.insert(token, console);
        Ok(())
    }

    /// Closes the oldest console that is not authenticated, so that clients without a password cannot keep others out.
    /// Returns false if there is none. O(consoles).
    fn make_room(&mut self, io: &mut Control) -> bool {
        let strangers = self.consoles.iter().filter(|(_, console)| !console.is_authenticated());
        let oldest = strangers.min_by_key(|(_, console)| console.number);
        let Some(token) = oldest.map(|(token, _)| *token) else { return false };
        if let Some(console) = self.consoles.remove(&token) {
            self.browsers.remove(&console.session);
            io.close(console.session, Close::Now);
        }
        io.close(token, Close::Now);
        true
    }

    /// Processes the frames in a browser's input from position `at`, as long as the session reads its requests. Returns
    /// the number of processed bytes.
    pub(super) fn process_frames(
        &mut self,
        connection: &mut Connection,
        io: &mut Control,
        token: Token,
        at: usize,
    ) -> usize {
        let Some(console) = self.consoles.get_mut(&token) else { return 0 };
        let mut end = at;
        loop {
            connection.is_held = io.unsent(console.session) > UNREAD_BYTES_MAX
                || io.unsent(token) > UNSENT_BYTES_MAX;
            if connection.is_held {
                io.pause_reading(token);
                let waits_for_session = io.unsent(console.session) > UNREAD_BYTES_MAX;
                io.when_drained(if waits_for_session { console.session } else { token }, 0);
                break;
            }
            let cut = console.decoder.cut(&connection.input[end..]);
            let message = match cut {
                Ok(Some((message, length))) => {
                    end += length;
                    message
                }
                Ok(None) => break,
                Err(violation) => {
                    Self::end(connection, io, token, violation.status());
                    return connection.input.len() - at;
                }
            };
            match message {
                Some(Message::Binary(bytes)) => {
                    io.output(console.session).extend_from_slice(&bytes);
                    io.send(console.session);
                }
                Some(Message::Text(text)) => match text.as_slice() {
                    b"events on" => console.subscription = Subscription::Begins,
                    b"events off" => console.subscription = Subscription::Off,
                    _ => {
                        let status = Violation::Protocol.status();
                        Self::end(connection, io, token, status);
                        return connection.input.len() - at;
                    }
                },
                Some(Message::Ping(payload)) => {
                    connection.send(io, token, &websocket::pong(&payload));
                }
                Some(Message::Close) => {
                    Self::end(connection, io, token, NORMAL);
                    return connection.input.len() - at;
                }
                Some(Message::Pong) | None => {}
            }
        }
        let now_ms = unix_ms();
        if connection.is_held || end == connection.input.len() {
            connection.until_ms = now_ms + IDLE_MS_MAX;
        } else if end > at {
            // The rest of the frame after the processed ones has the time limit of a request.
            connection.until_ms = now_ms + REQUEST_MS_MAX;
        }
        end - at
    }

    /// Sends the close frame. The caller of [`Self::process_frames`] closes the connection.
    fn end(connection: &mut Connection, io: &mut Control, token: Token, status: u16) {
        connection.send(io, token, &websocket::close(status));
        connection.is_closing = true;
    }

    /// Sends output of a session to its browser.
    pub(super) fn forward(
        &mut self,
        connections: &mut HashMap<Token, Connection>,
        io: &mut Control,
        session: Token,
        bytes: &[u8],
    ) {
        let Some(token) = self.browsers.get(&session) else { return };
        let Some(connection) = connections.get_mut(token) else { return };
        if connection.is_closing {
            // Nothing follows the close frame.
            return;
        }
        connection.send(io, *token, &websocket::binary(bytes));
        if io.unsent(*token) > UNSENT_BYTES_MAX {
            io.pause_reading(session);
            io.when_drained(*token, 0);
        }
    }

    /// Called when all output of a connection has been sent. Returns the connection of the browser.
    pub(super) fn drained(&mut self, io: &mut Control, token: Token) -> Option<Token> {
        if let Some(browser) = self.browsers.get(&token) {
            return Some(*browser);
        }
        let console = self.consoles.get(&token)?;
        io.resume_reading(console.session);
        Some(token)
    }

    /// Called when a connection has been closed: that of a browser or that to a session. Closes the other one.
    pub(super) fn closed(
        &mut self,
        connections: &mut HashMap<Token, Connection>,
        io: &mut Control,
        token: Token,
    ) {
        if let Some(console) = self.consoles.remove(&token) {
            self.browsers.remove(&console.session);
            io.close(console.session, Close::Now);
        } else if let Some(browser) = self.browsers.remove(&token)
            && let Some(connection) = connections.get_mut(&browser)
            && !connection.is_closing
        {
            Self::end(connection, io, browser, GOING_AWAY);
            connection.close(io, browser);
        }
    }

    /// Sends events and pings that are due. Returns the time until the next ones. O(consoles), and the cost of INFO if
    /// a console receives events.
    pub(super) fn tick(
        &mut self,
        connections: &mut HashMap<Token, Connection>,
        io: &mut Control,
        now_ms: u64,
    ) -> Option<Duration> {
        if self.consoles.is_empty() {
            return None;
        }
        let mode = self.shared.config().network.http_console;
        let is_changed = std::mem::replace(&mut self.mode, mode) != mode;
        // The clock may have been set back.
        let is_due = now_ms >= self.next_event_ms || self.next_event_ms - now_ms > EVENT_MS;
        let shared = self.shared;
        let reads = |it: &Console| it.subscription != Subscription::Off && it.may_read(shared);
        let mut changes = String::new();
        if is_due {
            self.next_event_ms = now_ms + EVENT_MS;
            if self.consoles.values().any(reads) {
                changes = self.events.changes(self.shared, now_ms);
            }
        }
        let mut whole = None;
        for (token, console) in &mut self.consoles {
            let Some(connection) = connections.get_mut(token) else { continue };
            if connection.is_closing {
                continue;
            }
            if mode == Mode::No {
                Self::end(connection, io, *token, GOING_AWAY);
                connection.close(io, *token);
                continue;
            }
            if is_changed && console.subscription == Subscription::On {
                console.subscription = Subscription::Begins;
            }
            if now_ms >= console.ping_at_ms || console.ping_at_ms - now_ms > PING_MS {
                console.ping_at_ms = now_ms + PING_MS;
                connection.send(io, *token, &websocket::ping());
            }
            if !is_due || console.subscription == Subscription::Off {
                continue;
            }
            if !console.may_read(shared) {
                if console.subscription != Subscription::Denied {
                    console.subscription = Subscription::Denied;
                    connection.send(io, *token, &websocket::text(&events::denied(self.shared)));
                }
            } else if io.unsent(*token) > UNSENT_BYTES_MAX {
                // The browser reads too slowly for the changes, so the next event has all fields.
                console.subscription = Subscription::Begins;
            } else if console.subscription == Subscription::On {
                connection.send(io, *token, &websocket::text(&changes));
            } else {
                console.subscription = Subscription::On;
                let event = whole.get_or_insert_with(|| self.events.whole(self.shared, now_ms));
                connection.send(io, *token, &websocket::text(event));
            }
        }
        Some(Duration::from_millis(self.next_event_ms.saturating_sub(now_ms)))
    }
}

/// Returns the response to a request for a file of the console; `None` for other paths, or if the console is off.
pub(super) fn page(
    shared: &Shared,
    config: &Config,
    request: &Request,
    peer: &PeerAddr,
) -> Option<Answer> {
    if config.network.http_console == Mode::No {
        return None;
    }
    let asset = assets::find(&request.path)?;
    if request.method == Method::Other {
        return Some(Answer::text(405, "only GET and HEAD are supported"));
    }
    let checked = check_protected_mode(shared, config, peer);
    if let Err(answer) = checked.and_then(|()| check_host(config, request)) {
        return Some(answer);
    }
    let body = asset.body.to_owned();
    Some(Answer { status: 200, content_type: asset.content_type, body, is_page: true })
}

/// Checks that protected mode allows a client, as on `port`.
fn check_protected_mode(shared: &Shared, config: &Config, peer: &PeerAddr) -> Result<(), Answer> {
    let is_open = config.network.protected_mode
        && shared.accounts.default_account().user().needs_no_password();
    if !is_open || peer.is_local() {
        return Ok(());
    }
    Err(Answer::text(
        403,
        "protected-mode is on and the default user has no password: only clients on this machine are allowed",
    ))
}

/// Checks that a browser has reached this server by a name that cannot belong to an attacker.
fn check_host(config: &Config, request: &Request) -> Result<(), Answer> {
    let name = host_name(&request.host);
    let names = config.network.http_console_hosts.to_string_lossy().to_ascii_lowercase();
    let is_address = name.parse::<IpAddr>().is_ok();
    let is_local = name == "localhost" || name.ends_with(".localhost");
    if is_address || is_local || names.split_ascii_whitespace().any(|allowed| allowed == name) {
        return Ok(());
    }
    Err(Answer::text(
        403,
        "this host name is not allowed: use an address, or add the name to http-console-hosts",
    ))
}

/// Returns the name or address in the value of `Host`, without the port, in lower case; empty if it is malformed.
fn host_name(host: &str) -> String {
    if let Some(rest) = host.strip_prefix('[') {
        let Some((address, port)) = rest.split_once(']') else { return String::new() };
        let has_port = port.strip_prefix(':').is_some_and(is_port);
        let is_address = address.parse::<Ipv6Addr>().is_ok();
        return if is_address && (port.is_empty() || has_port) {
            address.to_owned()
        } else {
            String::new()
        };
    }
    match host.split_once(':') {
        Some((name, port)) if is_port(port) => name.to_ascii_lowercase(),
        Some(_) => String::new(),
        None => host.to_ascii_lowercase(),
    }
}

fn is_port(text: &str) -> bool {
    text.parse::<u16>().is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_an_attacker_may_own_are_rejected() {
        let mut config = Config::default();
        config.network.http_console_hosts = "Db1.example.com db2".into();
        for (host, is_allowed) in [
            ("127.0.0.1:8080", true),
            ("10.1.2.3", true),
            ("[::1]:8080", true),
            ("[::1]", true),
            ("localhost:1", true),
            ("a.localhost", true),
            ("DB1.example.com:80", true),
            ("db2", true),
            ("", false),
            ("evil.example:8080", false),
            ("127.0.0.1.evil.example", false),
            ("localhost.evil.example", false),
            ("db2.evil.example", false),
            ("[::1", false),
            ("[::1]x", false),
            ("[evil]:1", false),
            ("127.0.0.1:80:80", false),
            ("127.0.0.1:x", false),
            ("db2 db3", false),
        ] {
            let request = Request { host: host.to_owned(), ..Request::default() };
            assert_eq!(check_host(&config, &request).is_ok(), is_allowed, "{host}");
        }
    }
}
