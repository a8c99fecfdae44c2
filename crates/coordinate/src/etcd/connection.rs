//! One connection to a member of etcd: plain or TLS, with time limits that apply to whole exchanges. If another thread
//! sets the stop flag, each wait ends within [`WAIT_SLICE`].

use super::http::{HttpError, ResponseParser};
use super::tls::EtcdTls;
use crate::setting::Endpoint;
use crate::stop::StopFlag;
use rustls::{ClientConnection, StreamOwned};
use std::io::{self, Read, Write};
use std::net::{TcpStream, ToSocketAddrs as _};
use std::time::{Duration, Instant};

/// Longest single wait for a socket, after which the limits and the stop flag are checked.
const WAIT_SLICE: Duration = Duration::from_millis(100);
/// Longest attempt to connect to one address.
const CONNECT_MAX: Duration = Duration::from_secs(1);
/// Maximum number of addresses of one name that are tried.
const ADDRESSES_MAX: usize = 4;
/// Maximum bytes of one read.
const READ_BYTES: usize = 16 << 10;

/// Why an exchange did not end with a response.
#[derive(Debug, Clone, thiserror::Error)]
pub(super) enum ExchangeError {
    /// No byte of the request was sent.
    #[error("{0}")]
    NotSent(String),
    #[error("no response in time")]
    TimedOut,
    #[error("the connection was lost: {0}")]
    Lost(String),
    #[error(transparent)]
    Http(#[from] HttpError),
    #[error("stopped")]
    Stopped,
}

/// When a wait ends.
#[derive(Debug, Clone)]
pub(super) struct WaitLimit {
    pub(super) end: Instant,
    /// The time that the whole exchange was given.
    pub(super) budget: Duration,
    pub(super) stop: StopFlag,
}

impl WaitLimit {
    pub(super) fn new(budget: Duration, stop: &StopFlag) -> WaitLimit {
        WaitLimit { end: Instant::now() + budget, budget, stop: stop.clone() }
    }

    pub(super) fn left(&self) -> Duration {
        self.end.saturating_duration_since(Instant::now())
    }

    /// The time for the next wait.
    fn slice(&self) -> Result<Duration, ExchangeError> {
        if self.stop.is_stopped() {
            return Err(ExchangeError::Stopped);
        }
        let left = self.left();
        if left.is_zero() { Err(ExchangeError::TimedOut) } else { Ok(left.min(WAIT_SLICE)) }
    }
}

#[derive(Debug)]
enum Transport {
    Plain(TcpStream),
    Tls(Box<StreamOwned<ClientConnection, TcpStream>>),
}

/// A connection that carries one exchange at a time.
#[derive(Debug)]
pub(super) struct EtcdConnection(Transport);

impl EtcdConnection {
    /// Connects, and completes the TLS handshake.
    pub(super) fn open(
        endpoint: &Endpoint,
        tls: Option<&EtcdTls>,
        limit: &WaitLimit,
    ) -> Result<EtcdConnection, ExchangeError> {
        let not_sent = |error: io::Error| ExchangeError::NotSent(error.to_string());
        let addresses =
            (endpoint.host.as_str(), endpoint.port).to_socket_addrs().map_err(not_sent)?;
        let mut last = ExchangeError::NotSent("the name has no address".to_owned());
        for address in addresses.take(ADDRESSES_MAX) {
            let timeout = limit.left().min(CONNECT_MAX);
            if limit.stop.is_stopped() {
                return Err(ExchangeError::Stopped);
            }
            if timeout.is_zero() {
                return Err(ExchangeError::NotSent("no time is left to connect".to_owned()));
            }
            match TcpStream::connect_timeout(&address, timeout) {
                Ok(stream) => {
                    stream.set_nodelay(true).map_err(not_sent)?;
                    let Some(tls) = tls else {
                        return Ok(EtcdConnection(Transport::Plain(stream)));
                    };
                    let session = tls.session(&endpoint.host).map_err(ExchangeError::NotSent)?;
                    return EtcdConnection::shake_hands(session, stream, limit);
                }
                Err(error) => last = not_sent(error),
            }
        }
        Err(last)
    }

    fn shake_hands(
        mut session: ClientConnection,
        mut stream: TcpStream,
        limit: &WaitLimit,
    ) -> Result<EtcdConnection, ExchangeError> {
        let not_sent = |error: io::Error| ExchangeError::NotSent(format!("TLS: {error}"));
        while session.is_handshaking() {
            let slice = match limit.slice() {
                Err(ExchangeError::TimedOut) => {
                    return Err(ExchangeError::NotSent("the TLS handshake takes too long".into()));
                }
                other => other?,
            };
            stream.set_read_timeout(Some(slice)).map_err(not_sent)?;
            stream.set_write_timeout(Some(slice)).map_err(not_sent)?;
            match session.complete_io(&mut stream) {
                Err(error) if !is_timeout(&error) => return Err(not_sent(error)),
                _ => {}
            }
        }
        Ok(EtcdConnection(Transport::Tls(Box::new(StreamOwned::new(session, stream)))))
    }

    /// Checks whether an unused connection still seems open. This detects that the peer has closed it. No request is
    /// sent to find out, because its outcome would be unknown.
    pub(super) fn is_open(&self) -> bool {
        let socket = self.socket();
        let peeked = socket.set_nonblocking(true).and_then(|()| socket.peek(&mut [0]));
        let is_quiet = matches!(peeked, Err(error) if error.kind() == io::ErrorKind::WouldBlock);
        is_quiet && socket.set_nonblocking(false).is_ok()
    }

    fn socket(&self) -> &TcpStream {
        match &self.0 {
            Transport::Plain(stream) => stream,
            Transport::Tls(stream) => &stream.sock,
        }
    }

    /// Sends a request.
    pub(super) fn send(&mut self, request: &[u8], limit: &WaitLimit) -> Result<(), ExchangeError> {
        let mut sent = 0;
        loop {
            let slice = limit.slice()?;
            let lost = |error: io::Error| ExchangeError::Lost(error.to_string());
            self.socket().set_write_timeout(Some(slice)).map_err(lost)?;
            let done = if sent < request.len() {
                self.write(&request[sent..])
            } else {
                match self.flush() {
                    Ok(()) => return Ok(()),
                    Err(error) => Err(error),
                }
            };
            match done {
                Ok(0) => return Err(ExchangeError::Lost("it takes no bytes".to_owned())),
                Ok(written) => sent += written,
                Err(error) if is_timeout(&error) => {}
                Err(error) => return Err(lost(error)),
            }
        }
    }

    /// Reads once and hands the bytes to the parser; [`ExchangeError::TimedOut`] if none arrived. The connection stays
    /// usable after that.
    pub(super) fn receive(
        &mut self,
        parser: &mut ResponseParser,
        limit: &WaitLimit,
    ) -> Result<(), ExchangeError> {
        let mut buffer = [0; READ_BYTES];
        loop {
            let slice = limit.slice()?;
            let lost = |error: io::Error| ExchangeError::Lost(error.to_string());
            self.socket().set_read_timeout(Some(slice)).map_err(lost)?;
            let received = match &mut self.0 {
                Transport::Plain(stream) => stream.read(&mut buffer),
                Transport::Tls(stream) => stream.read(&mut buffer),
            };
            match received {
                Ok(0) => {
                    return parser.end().map_err(|_| ExchangeError::Lost("it ended".to_owned()));
                }
                Ok(count) => {
                    // Bytes after a response would belong to no request.
                    let taken = parser.push(&buffer[..count])?;
                    return if taken == count { Ok(()) } else { Err(HttpError::Chunk.into()) };
                }
                Err(error) if is_timeout(&error) => {}
                Err(error) => return Err(lost(error)),
            }
        }
    }

    /// Sends a request and reads the whole response.
    pub(super) fn exchange(
        &mut self,
        request: &[u8],
        limit: &WaitLimit,
    ) -> Result<ResponseParser, ExchangeError> {
        self.send(request, limit)?;
        let mut parser = ResponseParser::new();
        while !parser.is_complete() {
            self.receive(&mut parser, limit)?;
        }
        Ok(parser)
    }

    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match &mut self.0 {
            Transport::Plain(stream) => stream.write(bytes),
            Transport::Tls(stream) => stream.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match &mut self.0 {
            Transport::Plain(stream) => stream.flush(),
            Transport::Tls(stream) => stream.flush(),
        }
    }
}

fn is_timeout(error: &io::Error) -> bool {
    use io::ErrorKind::{Interrupted, TimedOut, WouldBlock};
    matches!(error.kind(), WouldBlock | TimedOut | Interrupted)
}
