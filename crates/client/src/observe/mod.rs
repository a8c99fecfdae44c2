//! Observability: an [`Observer`] receives the start and the outcome of each command, and changes to connections.
//!
//! | part | what it is |
//! |---|---|
//! | this file | the trait and the types of its arguments |
//! | `observed` | the state of a command that is observed |
//! | `statistics` | the counters of every client |
//! | `trace` | spans and events for the crate `tracing`, with the feature of that name |
//! | `meter` | metrics for the crate `metrics`, with the feature of that name |
//!
//! Observers never receive keys or values. Without an observer, a command costs one extra comparison, and no clock is
//! read.

#[cfg(feature = "metrics")]
mod meter;
pub(crate) mod observed;
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

/// Receives events about the commands and connections of a client. Every method has an empty default.
///
/// Methods about commands are called on the caller's task, methods about connections on the task of the connection.
/// They must return quickly, and must not block or panic.
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
    /// A command, batch or transaction starts: it is polled for the first time. The returned token is passed to
    /// [`Observer::command_finished`].
    fn command_started(&self, _call: &Call<'_>) -> Token {
        Token::default()
    }

    /// A command finished. Called once for each start, no matter how many times the command was sent. `time` runs from
    /// the start, so it includes waiting for room in the queue and for a connection.
    fn command_finished(&self, _call: &Call<'_>, _: Token, _time: Duration, _outcome: Outcome<'_>) {
    }

    /// The queue is full, and the command waits for room.
    fn queue_full(&self, _call: &Call<'_>) {}

    /// A connection was opened, for the first time or again.
    fn connected(&self, _endpoint: &Endpoint, _connection: &Connected) {}

    /// A connection was lost, or closed by the client ([`Kind::Closed`]).
    fn disconnected(&self, _endpoint: &Endpoint, _why: &Error) {}

    /// An attempt to reconnect failed. The next attempt follows after at most `wait`.
    fn reconnecting(&self, _endpoint: &Endpoint, _why: &Error, _wait: Duration) {}
}

/// A value that an [`Observer`] keeps for a command from its start to its end.
#[derive(Default)]
pub struct Token(Option<Box<dyn Any + Send + Sync>>);

impl Token {
    /// Returns a token with this value.
    pub fn new(kept: impl Any + Send + Sync) -> Token {
        Token(Some(Box::new(kept)))
    }

    /// Returns the value, if it is of this type.
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

/// A server, as named in the options of the client.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Endpoint {
    address: Address,
    db: u32,
}

impl Endpoint {
    /// Returns the address.
    #[must_use]
    pub fn address(&self) -> &Address {
        &self.address
    }

    /// Returns the host, or the path of the Unix socket.
    #[must_use]
    pub fn host(&self) -> std::borrow::Cow<'_, str> {
        match &self.address {
            Address::Tcp { host, .. } => host.into(),
            Address::Unix(path) => path.to_string_lossy(),
        }
    }

    /// Returns the port; `None` for a Unix socket.
    #[must_use]
    pub fn port(&self) -> Option<u16> {
        match &self.address {
            Address::Tcp { port, .. } => Some(*port),
            Address::Unix(_) => None,
        }
    }

    /// Returns the database that is selected when a connection opens.
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

/// A command, batch or transaction in progress.
#[derive(Clone, Copy, Debug)]
pub struct Call<'a> {
    name: &'a str,
    commands: usize,
    endpoint: &'a Endpoint,
}

impl<'a> Call<'a> {
    /// Returns the name of the command in OpenTelemetry's format: `GET`, `CONFIG GET`. For a batch it is `PIPELINE`,
    /// for a transaction `MULTI`, followed by the name of the commands if all have the same name.
    #[must_use]
    pub fn name(&self) -> &'a str {
        self.name
    }

    /// Returns the number of commands, not counting MULTI and EXEC.
    #[must_use]
    pub fn commands(&self) -> usize {
        self.commands
    }

    /// Returns the server.
    #[must_use]
    pub fn endpoint(&self) -> &'a Endpoint {
        self.endpoint
    }
}

/// The outcome of a command.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub enum Outcome<'a> {
    /// The reply arrived and is not an error. It is not yet known whether the reply can be converted to the requested
    /// type.
    Ok,
    /// No reply arrived, or the reply is an error. For several commands, this is the first error.
    Failed(&'a Error),
    /// The future was dropped before the reply arrived.
    Dropped,
}

impl<'a> Outcome<'a> {
    /// Returns the value for OpenTelemetry's attribute `error.type`: one of a few short words, or the server's error
    /// code. `None` if the command succeeded.
    #[must_use]
    pub fn error_type(&self) -> Option<&'a str> {
        match self {
            Outcome::Ok => None,
            Outcome::Dropped => Some("cancelled"),
            Outcome::Failed(error) => Some(error_type(error)),
        }
    }

    /// Returns the code of the server's error reply, if there is one, for example `WRONGTYPE`.
    #[must_use]
    pub fn status_code(&self) -> Option<&'a str> {
        match self {
            Outcome::Failed(error) if error.code().is_some() => Some(error_type(error)),
            _ => None,
        }
    }
}

/// A longer first word is not an error code, because a script may reply with any error text.
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

/// An open connection.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Connected {
    /// The address of the peer; `None` for a Unix socket.
    pub peer: Option<SocketAddr>,
    /// The version of the protocol, 2 or 3.
    pub protocol: u8,
}

/// The observers, in the order in which they were added.
#[derive(Clone, Default)]
pub(crate) struct Observers(Vec<Arc<dyn Observer>>);

impl Observers {
    pub(crate) fn add(&mut self, observer: impl Observer) {
        self.0.push(Arc::new(observer));
    }

    /// The observers together with the server; `None` if there are no observers.
    pub(crate) fn watch(self, address: &Address, db: u32) -> Option<Arc<ObservedServer>> {
        let endpoint = Endpoint { address: address.clone(), db };
        (!self.0.is_empty()).then(|| Arc::new(ObservedServer { observers: self, endpoint }))
    }
}

impl fmt::Debug for Observers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} observers", self.0.len())
    }
}

/// A server and its observers.
#[derive(Debug)]
pub(crate) struct ObservedServer {
    observers: Observers,
    endpoint: Endpoint,
}

impl ObservedServer {
    fn each(&self, call: impl FnMut(&Arc<dyn Observer>)) {
        self.observers.0.iter().for_each(call);
    }
}

/// A connection that was reported as open. Its end is reported once, even if its task is dropped.
pub(crate) struct ReportedConnection<'a>(Option<&'a ObservedServer>);

impl<'a> ReportedConnection<'a> {
    pub(crate) fn connected(setup: &'a Setup, connection: &Connection) -> ReportedConnection<'a> {
        let observed = setup.observed.as_deref();
        if let Some(observed) = observed {
            let peer = match &connection.writer {
                Writer::Tcp(half) => half.peer_addr().ok(),
                _ => None,
            };
            let connected = Connected { peer, protocol: connection.protocol };
            observed.each(|observer| observer.connected(&observed.endpoint, &connected));
        }
        ReportedConnection(observed)
    }

    pub(crate) fn ended(mut self, why: &Error) {
        self.report(why);
    }

    fn report(&mut self, why: &Error) {
        if let Some(observed) = self.0.take() {
            observed.each(|observer| observer.disconnected(&observed.endpoint, why));
        }
    }
}

impl Drop for ReportedConnection<'_> {
    fn drop(&mut self) {
        if self.0.is_some() {
            self.report(&closed());
        }
    }
}

/// Reports a failed attempt to connect, and when the next one follows.
pub(crate) fn reconnecting(setup: &Setup, why: &Error, wait: Duration) {
    if let Some(observed) = setup.observed.as_deref() {
        observed.each(|observer| observer.reconnecting(&observed.endpoint, why, wait));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_have_one_of_a_few_types_even_if_a_server_sends_any_text() {
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
    fn a_token_returns_its_value_only_as_its_own_type() {
        assert_eq!(Token::new(5_u32).into::<u32>(), Some(5));
        assert_eq!(Token::new(5_u32).into::<u64>(), None);
        assert_eq!(Token::default().into::<u32>(), None);
    }
}
