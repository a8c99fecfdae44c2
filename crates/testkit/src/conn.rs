//! A scripted connection: commands in, replies out, with a deadline on every wait.

use crate::reply::Reply;
use crate::wait::{DEADLINE, wait_until};
use crate::words;
use std::io::{self, Read, Write};
use std::net::{Shutdown, TcpStream, ToSocketAddrs};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;

/// Asserts that the reply to `command`, sent on `conn`, is `text`, as `redis-cli` prints it.
#[macro_export]
macro_rules! assert_reply {
    ($conn:expr, $command:expr, $text:expr) => {
        assert_eq!($conn.cmd($command).to_string(), $text, "reply to {}", $command)
    };
}

/// A TCP or Unix socket.
#[derive(Debug)]
enum Stream {
    Tcp(TcpStream),
    Unix(UnixStream),
}

impl Read for Stream {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self {
            Stream::Tcp(s) => s.read(buffer),
            Stream::Unix(s) => s.read(buffer),
        }
    }
}

impl Write for Stream {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Stream::Tcp(s) => s.write(bytes),
            Stream::Unix(s) => s.write(bytes),
        }
    }
    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Stream {
    fn read_timeout(&self, limit: Option<Duration>) -> io::Result<()> {
        match self {
            Stream::Tcp(s) => s.set_read_timeout(limit),
            Stream::Unix(s) => s.set_read_timeout(limit),
        }
    }
    fn write_timeout(&self, limit: Option<Duration>) -> io::Result<()> {
        match self {
            Stream::Tcp(s) => s.set_write_timeout(limit),
            Stream::Unix(s) => s.set_write_timeout(limit),
        }
    }
}

/// A connection to a server.
#[derive(Debug)]
pub struct Conn {
    stream: Stream,
    input: Vec<u8>,
    /// Bytes of `input` that have already been returned to callers.
    taken: usize,
}

impl Conn {
    /// Connects by TCP.
    #[track_caller]
    pub fn tcp(address: &str) -> Conn {
        match Conn::try_tcp(address) {
            Ok(conn) => conn,
            Err(error) => panic!("cannot connect to {address}: {error}"),
        }
    }

    /// Waits until the server at the address accepts connections and has loaded its files, and connects.
    #[track_caller]
    pub fn when_loaded(address: &str) -> Conn {
        let mut loaded = None;
        wait_until("the server to have loaded its files", || {
            let Ok(mut conn) = Conn::try_tcp(address) else { return false };
            let is_loading = |reply: Reply| reply.to_string().starts_with("(error) LOADING");
            loaded = conn.try_cmd("PING").is_ok_and(|reply| !is_loading(reply)).then_some(conn);
            loaded.is_some()
        });
        loaded.expect("it has been waited for")
    }

    /// Like [`Conn::tcp`], for callers that expect the connection to be refused.
    pub fn try_tcp(address: &str) -> io::Result<Conn> {
        let target = address.to_socket_addrs()?.next().ok_or(io::ErrorKind::NotFound)?;
        let stream = TcpStream::connect_timeout(&target, DEADLINE)?;
        stream.set_nodelay(true)?;
        Conn::over(Stream::Tcp(stream))
    }

    /// Connects to a Unix socket.
    #[track_caller]
    pub fn unix(path: &Path) -> Conn {
        match Conn::try_unix(path) {
            Ok(conn) => conn,
            Err(error) => panic!("cannot connect to {}: {error}", path.display()),
        }
    }

    /// Like [`Conn::unix`], for callers that expect the connection to be refused.
    pub fn try_unix(path: &Path) -> io::Result<Conn> {
        Conn::over(Stream::Unix(UnixStream::connect(path)?))
    }

    /// From now on, waits fail after this time instead of [`DEADLINE`]. For callers that expect the server to hang.
    pub fn give_up_after(&mut self, limit: Duration) {
        let _ = self.stream.read_timeout(Some(limit));
    }

    fn over(stream: Stream) -> io::Result<Conn> {
        stream.read_timeout(Some(DEADLINE))?;
        stream.write_timeout(Some(DEADLINE))?;
        Ok(Conn { stream, input: Vec::new(), taken: 0 })
    }

    /// Switches to RESP3 with HELLO 3, or back with HELLO 2. The reply is discarded.
    #[track_caller]
    pub fn hello(&mut self, version: u8) -> &mut Conn {
        let reply = self.cmd(&format!("HELLO {version}"));
        assert!(!reply.is_error(), "HELLO {version}: {reply}");
        self
    }

    /// Sends one command, written as for `redis-cli`, and waits for its reply.
    #[track_caller]
    pub fn cmd(&mut self, line: &str) -> Reply {
        self.send(line);
        self.reply()
    }

    /// Like [`Conn::cmd`], for callers that expect the connection to fail.
    pub fn try_cmd(&mut self, line: &str) -> io::Result<Reply> {
        let words = words::split(line).ok_or(io::ErrorKind::InvalidInput)?;
        self.stream.write_all(&words::encode(&words))?;
        self.try_reply()
    }

    /// Sends a command given as separate arguments, and waits for its reply.
    #[track_caller]
    pub fn call<W: AsRef<[u8]>>(&mut self, words: &[W]) -> Reply {
        self.send_raw(&words::encode(words));
        self.reply()
    }

    /// Sends a command without waiting for its reply.
    #[track_caller]
    pub fn send(&mut self, line: &str) {
        let Some(words) = words::split(line) else { panic!("an open quote in: {line}") };
        self.send_raw(&words::encode(&words));
    }

    /// Sends bytes as they are.
    #[track_caller]
    pub fn send_raw(&mut self, bytes: &[u8]) {
        if let Err(error) = self.try_send_raw(bytes) {
            panic!("cannot send {} bytes: {error}", bytes.len());
        }
    }

    /// Like [`Conn::send_raw`], for callers that expect the connection to fail.
    pub fn try_send_raw(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.stream.write_all(bytes)
    }

    /// Sends all commands at once, then waits for all replies.
    #[track_caller]
    pub fn pipeline(&mut self, lines: &[&str]) -> Vec<Reply> {
        let mut bytes = Vec::new();
        for line in lines {
            let Some(words) = words::split(line) else { panic!("an open quote in: {line}") };
            words::encode_into(&mut bytes, &words);
        }
        self.send_raw(&bytes);
        lines.iter().map(|_| self.reply()).collect()
    }

    /// Waits for the next reply.
    #[track_caller]
    pub fn reply(&mut self) -> Reply {
        match self.try_reply() {
            Ok(reply) => reply,
            Err(error) => panic!("no reply: {error}; unread: {}", words::quoted(self.unread())),
        }
    }

    /// Like [`Conn::reply`], for callers that expect the connection to fail.
    pub fn try_reply(&mut self) -> io::Result<Reply> {
        loop {
            match Reply::parse(self.unread()) {
                Ok(Some((reply, len))) => {
                    self.taken += len;
                    return Ok(reply);
                }
                Ok(None) => self.receive()?,
                Err(text) => return Err(io::Error::new(io::ErrorKind::InvalidData, text)),
            }
        }
    }

    /// Waits for `len` bytes and returns them unparsed.
    #[track_caller]
    pub fn bytes(&mut self, len: usize) -> Vec<u8> {
        while self.unread().len() < len {
            if let Err(error) = self.receive() {
                panic!("wanted {len} bytes, got {}: {error}", words::quoted(self.unread()));
            }
        }
        let bytes = self.unread()[..len].to_vec();
        self.taken += len;
        bytes
    }

    /// Asserts that exactly these bytes come next.
    #[track_caller]
    pub fn expect_bytes(&mut self, bytes: &[u8]) {
        let got = self.bytes(bytes.len());
        assert_eq!(words::quoted(&got), words::quoted(bytes));
    }

    /// Waits until the server closes the connection; returns what it sent before.
    #[track_caller]
    pub fn read_to_end(&mut self) -> Vec<u8> {
        loop {
            match self.receive() {
                Ok(()) => {}
                Err(error) if is_timeout(&error) => panic!("the connection is still open"),
                Err(_) => {
                    let rest = self.unread().to_vec();
                    self.taken = self.input.len();
                    return rest;
                }
            }
        }
    }

    /// Reports whether a reply arrives within `limit`. Nothing is consumed.
    pub fn has_reply_within(&mut self, limit: Duration) -> bool {
        if !matches!(Reply::parse(self.unread()), Ok(None)) {
            return true;
        }
        let _ = self.stream.read_timeout(Some(limit));
        let got = self.receive().is_ok();
        let _ = self.stream.read_timeout(Some(DEADLINE));
        got
    }

    /// Asserts that the connection is in step: the next reply is that of an ECHO sent now, so no unexpected reply came
    /// before it.
    #[track_caller]
    pub fn assert_in_step(&mut self) {
        assert_eq!(self.cmd("ECHO in-step").to_string(), "\"in-step\"");
    }

    /// This end's address, as CLIENT LIST shows it; empty for a Unix socket.
    pub fn local_addr(&self) -> String {
        match &self.stream {
            Stream::Tcp(s) => s.local_addr().map(|address| address.to_string()).unwrap_or_default(),
            Stream::Unix(_) => String::new(),
        }
    }

    /// The ID of this connection, from CLIENT ID.
    #[track_caller]
    pub fn id(&mut self) -> i64 {
        self.cmd("CLIENT ID").integer()
    }

    /// The value of a field of INFO (all sections); panics if there is no such field.
    #[track_caller]
    pub fn info(&mut self, field: &str) -> String {
        let text = self.cmd("INFO everything").text();
        let value = text.lines().find_map(|l| l.strip_prefix(field)?.strip_prefix(':'));
        match value {
            Some(value) => value.trim_end().to_owned(),
            None => panic!("INFO has no field {field}"),
        }
    }

    /// Shuts down the sending direction.
    #[track_caller]
    pub fn finish_sending(&mut self) {
        let done = match &self.stream {
            Stream::Tcp(s) => s.shutdown(Shutdown::Write),
            Stream::Unix(s) => s.shutdown(Shutdown::Write),
        };
        assert!(done.is_ok(), "cannot shut down: {done:?}");
    }

    /// Bytes that were received but not yet returned to callers.
    pub fn unread(&self) -> &[u8] {
        &self.input[self.taken..]
    }

    fn receive(&mut self) -> io::Result<()> {
        if self.taken == self.input.len() {
            self.input.clear();
            self.taken = 0;
        }
        let mut chunk = [0; 64 * 1024];
        let read = loop {
            match self.stream.read(&mut chunk) {
                // The process was stopped and continued. Linux does not restart reads that have a timeout.
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                other => break other?,
            }
        };
        match read {
            0 => Err(io::ErrorKind::UnexpectedEof.into()),
            n => {
                self.input.extend_from_slice(&chunk[..n]);
                Ok(())
            }
        }
    }
}

fn is_timeout(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut)
}
