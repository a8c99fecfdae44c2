//! One blocking connection to a server. It sends bytes and returns replies, and does not depend on options or output.
//!
//! A terminal session passes its [`Interrupts`] to the link. While the link waits for a reply, Ctrl-C then ends the
//! wait instead of the program.

use crate::pause::timespec;
use brisk_dial::{Address, Stream, TlsClient};
use brisk_resp::Value;
use brisk_resp::reply::decode::{ReplyDecoder, ReplyError, ReplyLimits, ReplyStep};
use brisk_resp::request::encode;
use rustix::event::{PollFd, PollFlags, poll};
use rustix::stdio;
use signal_hook::consts::SIGINT;
use std::fmt;
use std::io::{self, Read, Write};
use std::net::{IpAddr, SocketAddr, ToSocketAddrs};
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::rc::Rc;
use std::time::{Duration, Instant};

const RECEIVE_BYTES: usize = 64 * 1024;
/// The idle time before TCP keepalives are sent, which detect a peer that has silently disappeared.
const KEEPALIVE: Duration = Duration::from_secs(15);

/// The address of a server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    /// A host and its port.
    Tcp(String, i64),
    /// The path of a Unix socket.
    Unix(PathBuf),
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Place::Tcp(host, port) => write!(f, "{host}:{port}"),
            Place::Unix(path) => write!(f, "{}", path.display()),
        }
    }
}

/// The reason why a connection is no longer usable.
#[derive(Debug)]
pub(crate) enum LinkError {
    /// The server has closed it.
    Closed,
    /// The system has reported an error.
    Io(io::Error),
    /// The received bytes are not a reply.
    Protocol(String),
    /// The user has interrupted the wait.
    Interrupted,
    /// The server has sent nothing for as long as `-t` allows.
    TimedOut,
}

impl fmt::Display for LinkError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            LinkError::Closed => f.write_str("Server closed the connection"),
            LinkError::Io(error) => f.write_str(&plain(error)),
            LinkError::Protocol(text) => f.write_str(text),
            LinkError::Interrupted => f.write_str("Interrupted"),
            LinkError::TimedOut => {
                f.write_str("The server did not reply within the time that -t allows")
            }
        }
    }
}

impl From<io::Error> for LinkError {
    fn from(error: io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::UnexpectedEof => LinkError::Closed,
            // A socket with a time limit reports one of these errors.
            io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut => LinkError::TimedOut,
            _ => LinkError::Io(error),
        }
    }
}

impl From<ReplyError> for LinkError {
    fn from(error: ReplyError) -> Self {
        LinkError::Protocol(match error {
            ReplyError::UnknownType(byte) => {
                format!("Protocol error, got {} as reply type byte", crate::quote::quote(&[byte]))
            }
            ReplyError::Malformed(b':') => "Bad integer value".to_owned(),
            ReplyError::Malformed(b',') => "Bad double value".to_owned(),
            ReplyError::Malformed(b'#') => "Bad bool value".to_owned(),
            ReplyError::Malformed(b'$' | b'=') => "Bad bulk string length".to_owned(),
            ReplyError::Malformed(b'*' | b'%' | b'~' | b'>') => "Bad multi-bulk length".to_owned(),
            other => format!("Protocol error: {other}"),
        })
    }
}

/// The system's text for an error, without its number.
pub(crate) fn plain(error: &io::Error) -> String {
    let text = error.to_string();
    let text = text.split(" (os error ").next().unwrap_or(&text);
    text.strip_prefix("failed to lookup address information: ").unwrap_or(text).to_owned()
}

/// The reason why a connection could not be opened.
#[derive(Debug)]
pub(crate) enum OpenError {
    /// No server accepts the connection.
    Connect(String),
    /// The TLS handshake has failed.
    Tls(String),
}

/// The event that ended a wait for two events.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Woken {
    /// The server has sent something.
    Link,
    /// Standard input has data, or has ended.
    Input,
}

/// Ctrl-C as an event that can be waited for.
#[derive(Debug)]
pub(crate) struct Interrupts(UnixStream);

impl Interrupts {
    /// Installs a handler for Ctrl-C. From now on, Ctrl-C does not end the program.
    ///
    /// # Errors
    /// If the system rejects the handler.
    pub(crate) fn take_over() -> io::Result<Rc<Interrupts>> {
        let (reader, writer) = UnixStream::pair()?;
        reader.set_nonblocking(true)?;
        writer.set_nonblocking(true)?;
        signal_hook::low_level::pipe::register(SIGINT, writer)?;
        Ok(Rc::new(Interrupts(reader)))
    }

    /// Waits until `input` can be read or has ended. Returns false if Ctrl-C was pressed before, even if that was
    /// before the call.
    ///
    /// # Errors
    /// If the wait fails.
    pub(crate) fn wait_for(&self, input: impl AsFd) -> io::Result<bool> {
        let mut fds = [PollFd::new(&input, PollFlags::IN), PollFd::new(&self.0, PollFlags::IN)];
        loop {
            match poll(&mut fds, None) {
                Err(rustix::io::Errno::INTR) => {}
                Err(error) => return Err(error.into()),
                Ok(_) => return Ok(!self.take()),
            }
        }
    }

    /// Reports whether Ctrl-C was pressed since the last call.
    pub(crate) fn take(&self) -> bool {
        let mut buffer = [0; 64];
        let mut seen = false;
        while matches!((&self.0).read(&mut buffer), Ok(count) if count > 0) {
            seen = true;
        }
        seen
    }
}

/// A connection.
#[derive(Debug)]
pub(crate) struct Link {
    stream: Stream,
    decoder: ReplyDecoder,
    received: Vec<u8>,
    /// The number of received bytes that have already been read.
    read: usize,
    interrupts: Option<Rc<Interrupts>>,
    /// The maximum time to wait for a byte of a reply.
    timeout: Option<Duration>,
}

impl Link {
    /// Connects, within `timeout` if it is given. The IPv4 addresses of a host are tried first. The same limit applies
    /// to each wait for a reply and to each write.
    ///
    /// # Errors
    /// If none of the server's addresses accepts a connection.
    pub(crate) fn open(
        place: &Place,
        tls: Option<&TlsClient>,
        timeout: Option<Duration>,
    ) -> Result<Link, OpenError> {
        let failed = |error: io::Error| OpenError::Connect(plain(&error));
        let stream = match place {
            Place::Unix(path) => {
                let stream = Stream::unix(path).map_err(failed)?;
                stream.set_timeout(timeout).map_err(failed)?;
                stream
            }
            Place::Tcp(host, port) => {
                let (stream, resolved) = connect(host, *port as u16, timeout).map_err(failed)?;
                stream.set_timeout(timeout).map_err(failed)?;
                match tls {
                    Some(tls) => {
                        let address = Address::Tcp { host: host.clone(), resolved };
                        let refused = |error: io::Error| OpenError::Tls(plain(&error));
                        stream.with_tls(tls, &address).map_err(refused)?
                    }
                    None => stream,
                }
            }
        };
        let _ = keep_alive(&stream);
        Ok(Link {
            stream,
            decoder: ReplyDecoder::new(ReplyLimits::default()),
            received: Vec::new(),
            read: 0,
            interrupts: None,
            timeout,
        })
    }

    /// From now on, Ctrl-C ends waits.
    pub(crate) fn heed(&mut self, interrupts: Option<Rc<Interrupts>>) {
        self.interrupts = interrupts;
    }

    /// Sends one request.
    ///
    /// # Errors
    /// If the connection fails.
    pub(crate) fn send<W: AsRef<[u8]>>(&mut self, words: &[W]) -> Result<(), LinkError> {
        let mut request = Vec::new();
        encode(&mut request, words);
        self.send_bytes(&request)
    }

    /// Sends bytes unchanged.
    ///
    /// # Errors
    /// If the connection fails.
    pub(crate) fn send_bytes(&mut self, bytes: &[u8]) -> Result<(), LinkError> {
        self.stream.write_all(bytes)?;
        Ok(self.stream.flush()?)
    }

    /// Sends one request and waits for its reply. Push messages are skipped.
    ///
    /// # Errors
    /// If the connection fails.
    pub(crate) fn request<W: AsRef<[u8]>>(&mut self, words: &[W]) -> Result<Value, LinkError> {
        self.send(words)?;
        self.next_reply()
    }

    /// Sends all requests together, and waits for all replies.
    ///
    /// # Errors
    /// If the connection fails.
    pub(crate) fn request_all<W: AsRef<[u8]>>(
        &mut self,
        requests: &[Vec<W>],
    ) -> Result<Vec<Value>, LinkError> {
        let mut bytes = Vec::new();
        for request in requests {
            encode(&mut bytes, request);
        }
        self.send_bytes(&bytes)?;
        requests.iter().map(|_| self.next_reply()).collect()
    }

    /// The next reply. Push messages are skipped.
    ///
    /// # Errors
    /// If the connection fails.
    pub(crate) fn next_reply(&mut self) -> Result<Value, LinkError> {
        loop {
            let value = self.reply()?;
            if !matches!(value, Value::Push(_)) {
                return Ok(value);
            }
        }
    }

    /// The next reply or push message.
    ///
    /// # Errors
    /// If the connection fails, the server sends nothing for too long, or the user interrupts the wait.
    pub(crate) fn reply(&mut self) -> Result<Value, LinkError> {
        self.value(self.timeout)
    }

    /// The next reply or push message, without a time limit.
    ///
    /// # Errors
    /// If the connection fails, or the user interrupts the wait.
    pub(crate) fn message(&mut self) -> Result<Value, LinkError> {
        self.value(None)
    }

    fn value(&mut self, timeout: Option<Duration>) -> Result<Value, LinkError> {
        loop {
            if let Some(value) = self.decoded()? {
                return Ok(value);
            }
            self.receive(timeout)?;
        }
    }

    /// The next reply, if it has already been received.
    ///
    /// # Errors
    /// If the received bytes are not a reply.
    pub(crate) fn decoded(&mut self) -> Result<Option<Value>, LinkError> {
        match self.decoder.decode(&self.received[self.read..])? {
            ReplyStep::Value { consumed, value } => {
                self.read += consumed;
                Ok(Some(value))
            }
            ReplyStep::Incomplete { consumed, .. } => {
                self.read += consumed;
                Ok(None)
            }
        }
    }

    /// Waits for bytes, within `timeout` if it is given, and appends them to the bytes already
    /// received.
    fn receive(&mut self, timeout: Option<Duration>) -> Result<(), LinkError> {
        self.wait(timeout)?;
        self.received.drain(..self.read);
        self.read = 0;
        let before = self.received.len();
        self.received.resize(before + RECEIVE_BYTES, 0);
        let got = loop {
            match self.stream.read(&mut self.received[before..]) {
                Err(error) if is_no_end(&error, timeout) => {}
                done => break done,
            }
        };
        self.received.truncate(before + *got.as_ref().unwrap_or(&0));
        if got? == 0 { Err(LinkError::Closed) } else { Ok(()) }
    }

    /// Waits until a read does not block, or until Ctrl-C. If Ctrl-C is not handled, the read itself has the time
    /// limit.
    fn wait(&mut self, timeout: Option<Duration>) -> Result<(), LinkError> {
        if self.interrupts.is_none() {
            return Ok(());
        }
        self.wait_for(false, timeout)?.map(drop).ok_or(LinkError::TimedOut)
    }

    /// Waits for a reply or for standard input. Data that has already been received counts as a reply.
    ///
    /// # Errors
    /// If the user interrupts the wait.
    pub(crate) fn wait_or_input(&mut self) -> Result<Woken, LinkError> {
        if self.read < self.received.len() {
            return Ok(Woken::Link);
        }
        Ok(self.wait_for(true, None)?.unwrap_or(Woken::Link))
    }

    /// The next reply, if it arrives within this time.
    ///
    /// # Errors
    /// If the connection fails, or the user interrupts the wait.
    pub(crate) fn reply_within(&mut self, time: Duration) -> Result<Option<Value>, LinkError> {
        let end = Instant::now() + time;
        loop {
            if let Some(value) = self.decoded()? {
                return Ok(Some(value));
            }
            let left = end.saturating_duration_since(Instant::now());
            if self.wait_for(false, Some(left))?.is_none() {
                return Ok(None);
            }
            self.receive(None)?;
        }
    }

    /// Waits for the server, for standard input if requested, and for Ctrl-C. Returns `None` if the time is over.
    fn wait_for(
        &mut self,
        with_input: bool,
        time: Option<Duration>,
    ) -> Result<Option<Woken>, LinkError> {
        if self.stream.has_decrypted() {
            return Ok(Some(Woken::Link));
        }
        let interrupts = self.interrupts.clone();
        let time = time.map(timespec);
        loop {
            let stdin = stdio::stdin();
            let mut fds = vec![PollFd::new(&self.stream, PollFlags::IN)];
            if with_input {
                fds.push(PollFd::new(&stdin, PollFlags::IN));
            }
            if let Some(interrupts) = &interrupts {
                fds.push(PollFd::new(&interrupts.0, PollFlags::IN));
            }
            let is_over = match poll(&mut fds, time.as_ref()) {
                Err(rustix::io::Errno::INTR) => false,
                Err(error) => return Err(LinkError::Io(error.into())),
                Ok(count) => count == 0,
            };
            let has = |at: usize| fds.get(at).is_some_and(|fd| !fd.revents().is_empty());
            let (socket, input) = (has(0), with_input && has(1));
            if interrupts.as_ref().is_some_and(|interrupts| interrupts.take()) {
                return Err(LinkError::Interrupted);
            }
            match (socket, input) {
                (true, _) => return Ok(Some(Woken::Link)),
                (false, true) => return Ok(Some(Woken::Input)),
                (false, false) if is_over => return Ok(None),
                (false, false) => {}
            }
        }
    }

    /// Reads bytes that are not a reply, for example those of a snapshot. Returns 0 at the end of the stream.
    ///
    /// # Errors
    /// If the connection fails.
    pub(crate) fn read_bytes(&mut self, buffer: &mut [u8]) -> Result<usize, LinkError> {
        let unread = &self.received[self.read..];
        if !unread.is_empty() {
            let count = unread.len().min(buffer.len());
            buffer[..count].copy_from_slice(&unread[..count]);
            self.read += count;
            return Ok(count);
        }
        self.wait(None)?;
        loop {
            match self.stream.read(buffer) {
                Err(error) if is_no_end(&error, None) => {}
                done => return Ok(done?),
            }
        }
    }

    /// The underlying stream, for callers that move bytes in both directions simultaneously.
    pub(crate) fn stream(&mut self) -> &mut Stream {
        &mut self.stream
    }
}

/// Reports whether a read must be repeated. A socket can report a timeout even for a read that has no time limit.
fn is_no_end(error: &io::Error, timeout: Option<Duration>) -> bool {
    match error.kind() {
        io::ErrorKind::Interrupted => true,
        io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut => timeout.is_none(),
        _ => false,
    }
}

fn connect(host: &str, port: u16, timeout: Option<Duration>) -> io::Result<(Stream, SocketAddr)> {
    let mut addresses: Vec<SocketAddr> = match host.parse::<IpAddr>() {
        Ok(ip) => vec![SocketAddr::new(ip, port)],
        Err(_) => (host, port).to_socket_addrs()?.collect(),
    };
    addresses.sort_by_key(SocketAddr::is_ipv6);
    let mut failure = io::Error::other("Name or service not known");
    for address in addresses {
        match Stream::tcp(&address, timeout) {
            Ok(stream) => return Ok((stream, address)),
            Err(error) => failure = error,
        }
    }
    Err(failure)
}

fn keep_alive(stream: &Stream) -> rustix::io::Result<()> {
    if matches!(stream, Stream::Unix(_)) {
        return Ok(());
    }
    use rustix::net::sockopt;
    sockopt::set_socket_keepalive(stream, true)?;
    sockopt::set_tcp_keepidle(stream, KEEPALIVE)?;
    sockopt::set_tcp_keepintvl(stream, KEEPALIVE / 3)?;
    sockopt::set_tcp_keepcnt(stream, 3)
}
