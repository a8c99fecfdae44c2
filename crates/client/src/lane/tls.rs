//! TLS over a socket, in a lane: any thread writes, the driver reads.
//!
//! A rustls session does no I/O. Both sides share it under a lock, which they hold while they encrypt or decrypt the
//! bytes of one write or read. No thread holds the lock while it waits.
//!
//! ```text
//!   try_write, any thread:  bytes ──> session ──> records ──> socket
//!   poll_read, the driver:  socket ──> session ──> buffer      (and the session's own responses)
//! ```
//!
//! 1. Plain bytes are accepted only when the operating system has taken all earlier records, and at most
//!    [`RECORDS_BYTES_MAX`] bytes at a time. This limits the amount of encrypted data that cannot be sent yet.
//! 2. Accepted bytes count as sent, regardless of what happens to their records, since the server may have received
//!    some of them. A socket error is reported by the next call.
//! 3. A writer that leaves unsent records wakes the driver, whose next `poll_read` sends them as soon as the socket
//!    accepts them. The driver reads whether or not it can write.
//! 4. An end of the stream without `close_notify` is an error, because a reply may have been truncated.

use crate::poison::lock;
use bytes::BytesMut;
use rustls::ClientConnection;
use std::cell::RefCell;
use std::fmt;
use std::io::{self, BufRead, ErrorKind, IoSlice, Write};
use std::pin::pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Waker};
use tokio::io::{AsyncRead, ReadBuf};
use tokio::net::{TcpStream, tcp};

/// The limit for accepted bytes, and for records that wait for the socket.
const RECORDS_BYTES_MAX: usize = 64 << 10;
/// The size of one read: two records of maximum length.
const READ_BYTES: usize = 32 << 10;

thread_local! {
    /// Received bytes that are not decrypted yet. Empty between calls.
    static RECEIVED: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
}

/// The writing side, and the session.
pub(crate) struct Tls {
    socket: tcp::OwnedWriteHalf,
    state: Mutex<State>,
}

struct State {
    session: ClientConnection,
    /// Wakes the driver when a writer leaves unsent records.
    driver: Option<Waker>,
    /// Set once nothing more can be sent.
    failure: Option<Failure>,
    /// Set if the received bytes are invalid, or the server rejected the connection. Nothing more can be read.
    broken: Option<Failure>,
}

/// An error that is reported more than once.
struct Failure {
    kind: ErrorKind,
    text: String,
}

impl Failure {
    fn of(error: &io::Error) -> Failure {
        Failure { kind: error.kind(), text: error.to_string() }
    }

    fn again(&self) -> io::Error {
        io::Error::new(self.kind, self.text.clone())
    }
}

/// The reading side.
pub(crate) struct TlsReader {
    socket: tcp::OwnedReadHalf,
    /// Bytes that the server sent right after the handshake, without a request. They say why the server rejects the
    /// connection.
    early: BytesMut,
    tls: Arc<Tls>,
}

impl fmt::Debug for Tls {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tls").finish_non_exhaustive()
    }
}

/// Creates a session over this socket, before the handshake.
pub(crate) fn new(stream: TcpStream, mut session: ClientConnection) -> TlsReader {
    session.set_buffer_limit(Some(RECORDS_BYTES_MAX));
    let (read, write) = stream.into_split();
    let state = Mutex::new(State { session, driver: None, failure: None, broken: None });
    TlsReader { socket: read, early: BytesMut::new(), tls: Arc::new(Tls { socket: write, state }) }
}

/// The socket, to which a session writes its records.
struct Records<'a>(&'a tcp::OwnedWriteHalf);

impl Write for Records<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.try_write(bytes)
    }

    fn write_vectored(&mut self, pieces: &[IoSlice<'_>]) -> io::Result<usize> {
        self.0.try_write_vectored(pieces)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl State {
    /// Sends records; false if the socket accepts no more now.
    fn flush(&mut self, socket: &tcp::OwnedWriteHalf) -> io::Result<bool> {
        if let Some(failure) = &self.failure {
            return Err(failure.again());
        }
        while self.session.wants_write() {
            match self.session.write_tls(&mut Records(socket)) {
                Ok(_) => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(false),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => {
                    self.failure = Some(Failure::of(&error));
                    return Err(error);
                }
            }
        }
        Ok(true)
    }

    /// Accepts bytes once the earlier records have been sent. Also returns whether records are left unsent.
    fn take(&mut self, socket: &tcp::OwnedWriteHalf, bytes: &[u8]) -> io::Result<(usize, bool)> {
        debug_assert!(
            !self.session.is_handshaking(),
            "no bytes are sent before the handshake ends"
        );
        if !self.flush(socket)? {
            return Err(ErrorKind::WouldBlock.into());
        }
        let taken = self.session.writer().write(bytes)?;
        debug_assert!(taken > 0 || bytes.is_empty(), "there is room for records");
        // From here on the bytes count as sent, even if the socket fails.
        Ok((taken, !self.flush(socket).unwrap_or(false)))
    }

    /// Decrypts received bytes and appends them.
    fn open(&mut self, mut received: &[u8], buffer: &mut BytesMut) -> io::Result<()> {
        if received.is_empty() {
            // Report the end of the stream to the session.
            self.session.read_tls(&mut received)?;
        }
        while !received.is_empty() {
            if self.session.read_tls(&mut received)? == 0 {
                // Nothing follows `close_notify`.
                break;
            }
            let opened = self.session.process_new_packets();
            // The bytes before an invalid record are also kept.
            while let Ok(chunk) = self.session.reader().fill_buf() {
                let len = chunk.len();
                if len == 0 {
                    break;
                }
                buffer.extend_from_slice(chunk);
                self.session.reader().consume(len);
            }
            if let Err(error) = opened {
                let hint = match &error {
                    // The first bytes from the server are not a TLS record.
                    rustls::Error::InvalidMessage(_) if self.session.is_handshaking() => {
                        ": does this port use TLS?"
                    }
                    _ => "",
                };
                let text = format!("TLS: {error}{hint}");
                let broken = Failure { kind: ErrorKind::InvalidData, text };
                return Err(self.broken.insert(broken).again());
            }
        }
        Ok(())
    }

    /// How the stream has ended, if it has.
    fn end(&mut self) -> Option<io::Result<()>> {
        if let Some(broken) = &self.broken {
            return Some(Err(broken.again()));
        }
        match self.session.reader().fill_buf() {
            Ok(_) => Some(Ok(())),
            Err(error) if error.kind() == ErrorKind::WouldBlock => None,
            Err(_) => {
                let text = "TLS: the connection ended without close_notify";
                Some(Err(io::Error::new(ErrorKind::UnexpectedEof, text)))
            }
        }
    }
}

impl Tls {
    pub(crate) fn stream(&self) -> &TcpStream {
        self.socket.as_ref()
    }

    /// Accepts bytes, and sends as much as the socket accepts. May be called from any thread.
    pub(super) fn try_write(&self, bytes: &[u8]) -> io::Result<usize> {
        let mut state = lock(&self.state);
        let (taken, is_left) = state.take(&self.socket, bytes)?;
        let driver = if is_left { state.driver.take() } else { None };
        drop(state);
        if let Some(driver) = driver {
            driver.wake();
        }
        Ok(taken)
    }

    /// Like [`Tls::try_write`], but for the driver, which is woken when the socket accepts the unsent rest.
    pub(super) fn poll_write(&self, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        match self.poll_flush(&mut lock(&self.state), cx) {
            Poll::Ready(Ok(())) => {}
            Poll::Ready(Err(error)) => return Poll::Ready(Err(error)),
            Poll::Pending => return Poll::Pending,
        }
        let mut state = lock(&self.state);
        match state.take(&self.socket, bytes) {
            Ok((taken, is_left)) => {
                if is_left {
                    // The next call reports an error.
                    let _ = self.poll_flush(&mut state, cx);
                }
                Poll::Ready(Ok(taken))
            }
            // A caller has written first. Its records delay these bytes.
            Err(error) if error.kind() == ErrorKind::WouldBlock => {
                cx.waker().wake_by_ref();
                Poll::Pending
            }
            Err(error) => Poll::Ready(Err(error)),
        }
    }

    /// Sends records. If the socket does not accept all of them, the driver is woken once it accepts more.
    fn poll_flush(&self, state: &mut State, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        loop {
            if state.flush(&self.socket)? {
                return Poll::Ready(Ok(()));
            }
            match self.socket.as_ref().poll_write_ready(cx) {
                Poll::Ready(Ok(())) => {}
                Poll::Ready(Err(error)) => return Poll::Ready(Err(error)),
                Poll::Pending => return Poll::Pending,
            }
        }
    }
}

/// Sends `close_notify`, which shows the server that the stream was not truncated.
impl Drop for Tls {
    fn drop(&mut self) {
        let mut state = lock(&self.state);
        state.session.send_close_notify();
        // It is sent only if the socket accepts it now.
        let _ = state.flush(&self.socket);
    }
}

impl TlsReader {
    /// The writing side.
    pub(super) fn writer(&self) -> Arc<Tls> {
        Arc::clone(&self.tls)
    }

    /// Performs the handshake.
    pub(super) fn poll_handshake(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        loop {
            {
                let mut state = lock(&self.tls.state);
                if !state.session.is_handshaking() {
                    return self.tls.poll_flush(&mut state, cx);
                }
            }
            let mut early = std::mem::take(&mut self.early);
            let read = self.poll_some(cx, &mut early);
            self.early = early;
            match read {
                Poll::Ready(Ok(None)) => {}
                Poll::Ready(Ok(Some(()))) => {
                    let text = "TLS: the server closed the connection during the handshake";
                    return Poll::Ready(Err(io::Error::new(ErrorKind::UnexpectedEof, text)));
                }
                Poll::Ready(Err(error)) => return Poll::Ready(Err(error)),
                Poll::Pending => return Poll::Pending,
            }
        }
    }

    /// Appends the received bytes. 0 means the end of the stream.
    pub(super) fn poll_read(
        &mut self,
        cx: &mut Context<'_>,
        buffer: &mut BytesMut,
    ) -> Poll<io::Result<usize>> {
        if !self.early.is_empty() {
            let early = std::mem::take(&mut self.early);
            buffer.extend_from_slice(&early);
            return Poll::Ready(Ok(early.len()));
        }
        let before = buffer.len();
        loop {
            let read = self.poll_some(cx, buffer);
            let len = buffer.len() - before;
            if len > 0 {
                // The next call returns the error, or the end of the stream, that follows these bytes.
                return Poll::Ready(Ok(len));
            }
            match read {
                // The bytes were not application data, but for example a new key.
                Poll::Ready(Ok(None)) => {}
                Poll::Ready(Ok(Some(()))) => return Poll::Ready(Ok(0)),
                Poll::Ready(Err(error)) => return Poll::Ready(Err(error)),
                Poll::Pending => return Poll::Pending,
            }
        }
    }

    /// Reads once, and sends pending records. Returns a value at the end of the stream.
    fn poll_some(
        &mut self,
        cx: &mut Context<'_>,
        buffer: &mut BytesMut,
    ) -> Poll<io::Result<Option<()>>> {
        let failed = {
            let mut state = lock(&self.tls.state);
            if let Some(ended) = state.end() {
                return Poll::Ready(ended.map(Some));
            }
            match &mut state.driver {
                Some(driver) => driver.clone_from(cx.waker()),
                none => *none = Some(cx.waker().clone()),
            }
            // Replies may have arrived even though nothing more can be sent.
            match self.tls.poll_flush(&mut state, cx) {
                Poll::Ready(Err(error)) => Some(error),
                _ => None,
            }
        };
        RECEIVED.with_borrow_mut(|received| {
            received.resize(READ_BYTES, 0);
            let mut into = ReadBuf::new(received);
            match pin!(&mut self.socket).poll_read(cx, &mut into) {
                Poll::Ready(Ok(())) => {}
                Poll::Ready(Err(error)) => return Poll::Ready(Err(error)),
                Poll::Pending => {
                    return failed.map_or(Poll::Pending, |error| Poll::Ready(Err(error)));
                }
            }
            let mut state = lock(&self.tls.state);
            let opened = state.open(into.filled(), buffer);
            // The response to received records: an alert or a new key. The next call sends the rest.
            let is_sent = matches!(self.tls.poll_flush(&mut state, cx), Poll::Ready(Ok(())));
            debug_assert!(is_sent || state.session.wants_write() || state.failure.is_some());
            opened.map(|()| None).into()
        })
    }
}
