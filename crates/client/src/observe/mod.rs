//! Watching a client at work: an [`Observer`] is told of commands, from their beginning to their outcome, and of
//! connections.
//!
//! | part | what it is |
//! |---|---|
//! | this file | what is told, and to whom |
//! | `course` | a command that is watched |
//! | `statistics` | what a client counts in any case |
//! | `trace` | spans and events for the crate `tracing`, with its feature |
//! | `meter` | figures for the crate `metrics`, with its feature |
//!
//! Keys and values are told to nobody. Without an observer a command costs a comparison more, and no clock is read.

pub(crate) mod course;
#[cfg(feature = "metrics")]
mod meter;
mod statistics;
#[cfg(feature = "tracing")]
mod trace;

#[cfg(feature = "metrics")]
pub use meter::Metrics;
pub(crate) use statistics::Tallies;
pub use statistics::{Counts, Statistics};
#[cfg(feature = "tracing")]
pub use trace::Tracing;

use crate::address::Address;
use crate::error::{Code, Error, Kind};
use crate::lane::cell::closed;
use crate::lane::connect::{Connection, Setup};
use crate::lane::io::Writer;
use std::any::Any;
use std::fmt;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

/// Who is told what a client does. Every method does nothing unless it is written.
///
/// Methods are called where things happen, those about commands by the callers' tasks and those about
/// connections by the task that serves one: they are to be quick, must not wait, and must not panic.
///
/// ```no_run
/// use brisk::{Call, Observer, Outcome, Token};
/// use std::time::Duration;
///
/// struct Slow(Duration);
///
/// impl Observer for Slow {
///     fn command_finished(&self, call: &Call<'_>, _: Token, time: Duration, outcome: Outcome<'_>) {
///         if time >= self.0 || outcome.error_type().is_some() {
///             eprintln!("{} at {}: {time:?}, {outcome:?}", call.name(), call.endpoint());
///         }
///     }
/// }
///
/// # async fn example() -> brisk::Result<()> {
/// let slow = Slow(Duration::from_millis(50));
/// let db = brisk::Client::builder("redis://127.0.0.1").observer(slow).connect().await?;
/// # Ok(())
/// # }
/// ```
pub trait Observer: Send + Sync + 'static {
    /// A command, or several in one piece, begins: it is polled for the first time. What is returned is given
    /// to [`Observer::command_finished`].
    fn command_started(&self, _call: &Call<'_>) -> Token {
        Token::default()
    }

    /// It has its outcome, once for each that has begun, however often it was sent. `time` begins when it began, so it
    /// holds the wait for room in the queue and for a connection.
    fn command_finished(&self, _call: &Call<'_>, _: Token, _time: Duration, _outcome: Outcome<'_>) {
    }

    /// There was no room in the queue for it, and it waits until there is.
    fn queue_full(&self, _call: &Call<'_>) {}

    /// There is a connection, the first one or a new one.
    fn connected(&self, _endpoint: &Endpoint, _connection: &Connected) {}

    /// A connection has ended: it was lost, or closed by the client ([`Kind::Closed`]).
    fn disconnected(&self, _endpoint: &Endpoint, _why: &Error) {}

    /// A connection could not be made anew. The next attempt is in `wait` at the latest.
    fn reconnecting(&self, _endpoint: &Endpoint, _why: &Error, _wait: Duration) {}
}

/// What an [`Observer`] keeps with a command from its beginning to its end.
#[derive(Default)]
pub struct Token(Option<Box<dyn Any + Send + Sync>>);

impl Token {
    /// Keeps this.
    pub fn new(kept: impl Any + Send + Sync) -> Token {
        Token(Some(Box::new(kept)))
    }

    /// What was kept, if it is of this type.
    #[must_use]
    pub fn into<T: Any>(self) -> Option<T> {
        self.0?.downcast().ok().map(|kept| *kept)
    }
}

impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.0.is_some() { "Token(kept)" } else { "Token" })
    }
}

/// A server, as the client was told of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Endpoint {
    address: Address,
    db: u32,
}

impl Endpoint {
    /// Where it is.
    #[must_use]
    pub fn address(&self) -> &Address {
        &self.address
    }

    /// The host, or the path of the socket.
    #[must_use]
    pub fn host(&self) -> std::borrow::Cow<'_, str> {
        match &self.address {
            Address::Tcp { host, .. } => host.into(),
            Address::Unix(path) => path.to_string_lossy(),
        }
    }

    /// The port, if it has one.
    #[must_use]
    pub fn port(&self) -> Option<u16> {
        match &self.address {
            Address::Tcp { port, .. } => Some(*port),
            Address::Unix(_) => None,
        }
    }

    /// The database that connections begin with.
    #[must_use]
    pub fn db(&self) -> u32 {
        self.db
    }
}

impl fmt::Display for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.address.fmt(f)
    }
}

/// A command that is under way, or several in one piece.
#[derive(Clone, Copy, Debug)]
pub struct Call<'a> {
    name: &'a str,
    commands: usize,
    endpoint: &'a Endpoint,
}

impl<'a> Call<'a> {
    /// The name of the command, as OpenTelemetry wants it: `GET`, `CONFIG GET`; of several `PIPELINE` or `MULTI`, and
    /// behind it their name, if all have the same.
    #[must_use]
    pub fn name(&self) -> &'a str {
        self.name
    }

    /// How many commands, without MULTI and EXEC.
    #[must_use]
    pub fn commands(&self) -> usize {
        self.commands
    }

    /// The server to which it goes.
    #[must_use]
    pub fn endpoint(&self) -> &'a Endpoint {
        self.endpoint
    }
}

/// What became of a command.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub enum Outcome<'a> {
    /// The server answered, and not with an error.
    Ok,
    /// There is no reply, or it is an error; of several, the first error. Whether a reply fits the type that the
    /// caller asked for is not known yet.
    Failed(&'a Error),
    /// The caller did not wait: the future was dropped.
    Dropped,
}

impl<'a> Outcome<'a> {
    /// What OpenTelemetry calls `error.type`: a short word, one of few. `None` if all went well.
    #[must_use]
    pub fn error_type(&self) -> Option<&'a str> {
        match self {
            Outcome::Ok => None,
            Outcome::Dropped => Some("cancelled"),
            Outcome::Failed(error) => Some(error_type(error)),
        }
    }

    /// The code of the server's error, if it is one: `WRONGTYPE`.
    #[must_use]
    pub fn status_code(&self) -> Option<&'a str> {
        match self {
            Outcome::Failed(error) if error.code().is_some() => Some(error_type(error)),
            _ => None,
        }
    }
}

/// A script may answer with any text: what does not look like a code is none.
const CODE_BYTES_MAX: usize = 32;

fn error_type(error: &Error) -> &str {
    match error.kind() {
        Kind::Timeout(_) => "timeout",
        Kind::Disconnected => "disconnected",
        Kind::Tls => "tls",
        Kind::Overloaded => "overloaded",
        Kind::Server(Code::Other) => {
            let word = error.message().split(' ').next().unwrap_or_default();
            let is_code = word.bytes().all(|byte| byte.is_ascii_uppercase() || byte == b'_');
            if is_code && (1..=CODE_BYTES_MAX).contains(&word.len()) { word } else { "ERR" }
        }
        Kind::Server(_) => error.message().split(' ').next().unwrap_or_default(),
        Kind::UnexpectedReply => "unexpected_reply",
        Kind::Missing => "missing",
        Kind::Protocol => "protocol",
        Kind::Invalid => "invalid",
        Kind::Aborted => "aborted",
        Kind::Closed => "closed",
    }
}

/// A connection that is there.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Connected {
    /// The address that was connected to; none if it is a Unix socket.
    pub peer: Option<SocketAddr>,
    /// The protocol's version, 2 or 3.
    pub protocol: u8,
}

/// Those who are told, in the order in which they were named.
#[derive(Clone, Default)]
pub(crate) struct Observers(Vec<Arc<dyn Observer>>);

impl Observers {
    pub(crate) fn add(&mut self, observer: impl Observer) {
        self.0.push(Arc::new(observer));
    }

    /// With what they are told of; `None` if there are none.
    pub(crate) fn watch(self, address: &Address, db: u32) -> Option<Arc<Watched>> {
        let endpoint = Endpoint { address: address.clone(), db };
        (!self.0.is_empty()).then(|| Arc::new(Watched { observers: self, endpoint }))
    }
}

impl fmt::Debug for Observers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} observers", self.0.len())
    }
}

/// A server, and who wants to know of it.
#[derive(Debug)]
pub(crate) struct Watched {
    observers: Observers,
    endpoint: Endpoint,
}

impl Watched {
    fn each(&self, tell: impl FnMut(&Arc<dyn Observer>)) {
        self.observers.0.iter().for_each(tell);
    }
}

/// A connection, of which is told that it is there, and once that it is no more: also if its task just ends.
pub(crate) struct Seen<'a>(Option<&'a Watched>);

impl<'a> Seen<'a> {
    pub(crate) fn connected(setup: &'a Setup, connection: &Connection) -> Seen<'a> {
        let watched = setup.watched.as_deref();
        if let Some(watched) = watched {
            let peer = match &connection.writer {
                Writer::Tcp(half) => half.peer_addr().ok(),
                _ => None,
            };
            let connected = Connected { peer, protocol: connection.protocol };
            watched.each(|observer| observer.connected(&watched.endpoint, &connected));
        }
        Seen(watched)
    }

    pub(crate) fn ended(mut self, why: &Error) {
        self.tell(why);
    }

    fn tell(&mut self, why: &Error) {
        if let Some(watched) = self.0.take() {
            watched.each(|observer| observer.disconnected(&watched.endpoint, why));
        }
    }
}

impl Drop for Seen<'_> {
    fn drop(&mut self) {
        if self.0.is_some() {
            self.tell(&closed());
        }
    }
}

/// Tells that there is no connection, and when the next attempt is.
pub(crate) fn reconnecting(setup: &Setup, why: &Error, wait: Duration) {
    if let Some(watched) = setup.watched.as_deref() {
        watched.each(|observer| observer.reconnecting(&watched.endpoint, why, wait));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_is_of_one_of_few_types_whatever_a_server_says() {
        for (text, expected) in [
            ("WRONGTYPE Operation", "WRONGTYPE"),
            ("ERR unknown command 'x'", "ERR"),
            ("MYCODE of a module", "MYCODE"),
            ("secret:42 is wrong", "ERR"),
            ("", "ERR"),
        ] {
            let error = Error::server(text.as_bytes());
            assert_eq!(Outcome::Failed(&error).error_type(), Some(expected));
            assert_eq!(Outcome::Failed(&error).status_code(), Some(expected));
        }
        let long = Error::server("X".repeat(33).as_bytes());
        assert_eq!(Outcome::Failed(&long).error_type(), Some("ERR"));
        let over = crate::lane::cell::timeout(crate::Phase::Sent, None);
        assert_eq!(Outcome::Failed(&over).error_type(), Some("timeout"));
        assert_eq!(Outcome::Failed(&over).status_code(), None);
        assert_eq!(Outcome::Ok.error_type(), None);
    }

    #[test]
    fn a_token_is_given_back_as_what_it_is_or_not_at_all() {
        assert_eq!(Token::new(5_u32).into::<u32>(), Some(5));
        assert_eq!(Token::new(5_u32).into::<u64>(), None);
        assert_eq!(Token::default().into::<u32>(), None);
    }
}
