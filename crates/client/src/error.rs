//! Errors: what happened, whether the command was sent, and whether the server may have executed it.

use brisk_resp::reply::read::Part;
use std::borrow::Cow;
use std::sync::Arc;
use std::{fmt, io};

/// An error text lists at most this many commands.
const NAMED_MAX: usize = 8;
/// The library appends this to a server's error if other nodes have executed their part of the command.
pub(crate) const IN_PART: &str = " (other nodes have executed their part of the command)";

/// The reason why a command has no usable reply.
///
/// [`Error::kind`] says what happened, and [`Error::maybe_applied`] whether the server may have executed the command.
/// Texts that this library writes never contain values. An error is cheap to move (one pointer) and to clone.
#[derive(Clone)]
pub struct Error(Arc<Inner>);

#[derive(Clone)]
struct Inner {
    kind: Kind,
    text: Cow<'static, str>,
    maybe_applied: bool,
    /// For each of several commands, whether it was executed.
    executed: Box<[Executed]>,
    /// The operating system's error.
    source: Option<Arc<io::Error>>,
}

/// The kind of an [`Error`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Kind {
    /// The command timed out in this phase.
    Timeout(Phase),
    /// The connection was lost or could not be opened.
    Disconnected,
    /// The TLS handshake failed: the server's certificate is not trusted, has expired or is for a different name; the
    /// server requires a different client certificate; or only one of the two sides uses TLS.
    Tls,
    /// The [budget](crate::Budget) for requests without a reply is exhausted. Nothing was sent.
    Overloaded,
    /// The server replied with an error.
    Server(Code),
    /// The reply cannot be converted to the requested type.
    UnexpectedReply,
    /// The value does not exist, and it was [required](crate::Command::required).
    Missing,
    /// The server sent bytes that violate the protocol. The connection was closed.
    Protocol,
    /// An address, an argument or an option is invalid, or the command cannot be used on this connection.
    Invalid,
    /// The transaction was not executed, since a watched key had changed.
    Aborted,
    /// The client was closed.
    Closed,
}

/// The phase in which a command failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Phase {
    /// Not sent: the command was not executed and will not be.
    Queued,
    /// Sent, at least in part: the server may have executed the command or may still do so.
    Sent,
    /// A part of the reply has arrived: the server has executed the command or is about to.
    Streaming,
}

/// States whether the server executed one command of a batch or transaction; see [`Error::executed`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Executed {
    /// Executed: the reply arrived and was not an error.
    Yes,
    /// Not executed: the server replied with an error.
    No,
    /// Unknown, or executed in part.
    Unknown,
}

/// The error code: the first word of an error reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Code {
    /// `ERR`: an error without a specific code.
    Err,
    /// `WRONGTYPE`: the key holds a value of a different type.
    WrongType,
    /// `MOVED`: another node serves the slot. The server is a node of a cluster: use `redis-cluster://`.
    Moved,
    /// `ASK`: the slot is migrating, and the key is on the other node.
    Ask,
    /// `TRYAGAIN`: the slot is migrating, and the keys of the command are on both nodes.
    TryAgain,
    /// `CLUSTERDOWN`: not all slots are served.
    ClusterDown,
    /// `CROSSSLOT`: the keys of one command are in different slots. A client with `redis-cluster://` splits some commands
    /// by slot.
    CrossSlot,
    /// `READONLY`: a write to a replica.
    ReadOnly,
    /// `MASTERDOWN`: a replica without a link to its primary does not serve stale data.
    MasterDown,
    /// `LOADING`: the server is loading its dataset.
    Loading,
    /// `BUSY`: a script has been running for too long.
    Busy,
    /// `BUSYKEY`: the target key of RESTORE exists.
    BusyKey,
    /// `BUSYGROUP`: the consumer group exists.
    BusyGroup,
    /// `NOGROUP`: the consumer group does not exist.
    NoGroup,
    /// `NOAUTH`: the connection must authenticate first.
    NoAuth,
    /// `WRONGPASS`: the user does not exist, or the password is wrong.
    WrongPass,
    /// `NOPERM`: the user lacks the permission.
    NoPerm,
    /// `NOSCRIPT`: no script with this digest is loaded.
    NoScript,
    /// `NOTBUSY`: no script is running.
    NotBusy,
    /// `UNKILLABLE`: the script has already written data.
    Unkillable,
    /// `EXECABORT`: the transaction was discarded, since one of its commands was rejected.
    ExecAbort,
    /// `OOM`: `maxmemory` is exceeded.
    OutOfMemory,
    /// `MISCONF`: the server cannot save the dataset and rejects writes.
    Misconf,
    /// `NOREPLICAS`: too few replicas are connected.
    NoReplicas,
    /// `NOPROTO`: the server does not support this version of the protocol.
    NoProto,
    /// Another code; [`Error::message`] begins with it.
    Other,
}

impl Code {
    /// Returns the code of an error reply with this text.
    #[must_use]
    pub fn of(message: &[u8]) -> Code {
        let word = message.split(|byte| *byte == b' ').next().unwrap_or_default();
        match word {
            b"ERR" => Code::Err,
            b"WRONGTYPE" => Code::WrongType,
            b"MOVED" => Code::Moved,
            b"ASK" => Code::Ask,
            b"TRYAGAIN" => Code::TryAgain,
            b"CLUSTERDOWN" => Code::ClusterDown,
            b"CROSSSLOT" => Code::CrossSlot,
            b"READONLY" => Code::ReadOnly,
            b"MASTERDOWN" => Code::MasterDown,
            b"LOADING" => Code::Loading,
            b"BUSY" => Code::Busy,
            b"BUSYKEY" => Code::BusyKey,
            b"BUSYGROUP" => Code::BusyGroup,
            b"NOGROUP" => Code::NoGroup,
            b"NOAUTH" => Code::NoAuth,
            b"WRONGPASS" => Code::WrongPass,
            b"NOPERM" => Code::NoPerm,
            b"NOSCRIPT" => Code::NoScript,
            b"NOTBUSY" => Code::NotBusy,
            b"UNKILLABLE" => Code::Unkillable,
            b"EXECABORT" => Code::ExecAbort,
            b"OOM" => Code::OutOfMemory,
            b"MISCONF" => Code::Misconf,
            b"NOREPLICAS" => Code::NoReplicas,
            b"NOPROTO" => Code::NoProto,
            _ => Code::Other,
        }
    }
}

impl Error {
    pub(crate) fn new(kind: Kind, text: impl Into<Cow<'static, str>>) -> Error {
        let maybe_applied = matches!(kind, Kind::Timeout(Phase::Sent | Phase::Streaming));
        let (text, executed) = (described(kind, text.into()), Box::default());
        Error(Arc::new(Inner { kind, text, maybe_applied, executed, source: None }))
    }

    /// A socket error, with `place` as a prefix if it is not empty.
    pub(crate) fn socket(place: &str, error: io::Error) -> Error {
        let text = if place.is_empty() { error.to_string() } else { format!("{place}: {error}") };
        // The socket itself never returns this kind. It comes from the TLS layer above.
        let is_tls = error.kind() == io::ErrorKind::InvalidData;
        let kind = if is_tls { Kind::Tls } else { Kind::Disconnected };
        Error::new(kind, text).changed(|inner| inner.source = Some(Arc::new(error)))
    }

    /// Returns the error of a command that was in this phase when its connection was lost.
    pub(crate) fn lost(phase: Phase, why: &str) -> Error {
        Error::new(Kind::Disconnected, why.to_owned()).lost_at(phase)
    }

    /// Returns the error of a command that was in this phase when `self` closed its connection.
    pub(crate) fn lost_at(&self, phase: Phase) -> Error {
        let why = &self.0.text;
        let (text, maybe_applied) = match phase {
            Phase::Queued => (format!("not sent: {why}"), false),
            Phase::Sent => (format!("connection lost before the reply: {why}"), true),
            Phase::Streaming => (format!("connection lost during the reply: {why}"), true),
        };
        self.clone().changed(|inner| {
            inner.kind = Kind::Disconnected;
            (inner.text, inner.maybe_applied) = (text.into(), maybe_applied);
        })
    }

    fn changed(mut self, change: impl FnOnce(&mut Inner)) -> Error {
        change(Arc::make_mut(&mut self.0));
        self
    }

    /// The same error for a command that was sent.
    pub(crate) fn after_sending(&self) -> Error {
        self.clone().changed(|inner| inner.maybe_applied = true)
    }

    /// The same error with a note in its text.
    pub(crate) fn with_note(&self, note: &str) -> Error {
        self.clone().changed(|inner| inner.text = Cow::Owned(format!("{} ({note})", inner.text)))
    }

    /// The same error with a place as a prefix. Protocol errors have no place.
    #[cfg(feature = "derive")]
    pub(crate) fn at(self, place: &str) -> Error {
        if self.0.kind == Kind::Protocol {
            return self;
        }
        self.changed(|inner| inner.text = Cow::Owned(format!("{place}: {}", inner.text)))
    }

    /// The same error for a batch, with the result of each command. Executed reads do not set `maybe_applied`.
    pub(crate) fn of_several(self, each: impl Iterator<Item = (Executed, bool)>) -> Error {
        let each: Vec<(Executed, bool)> = each.collect();
        let executed: Box<[Executed]> = each.iter().map(|(executed, _)| *executed).collect();
        let has_changed =
            each.iter().any(|(executed, reads_only)| *executed != Executed::No && !reads_only);
        let note = executed_note(&executed);
        self.changed(|inner| {
            inner.maybe_applied |= has_changed;
            // A single command does not count as several, even if it went to several nodes.
            inner.executed = if executed.len() < 2 { Box::default() } else { executed };
            if let Some(note) = note {
                inner.text = Cow::Owned(format!("{} ({note})", inner.text));
            }
        })
    }

    /// An error reply of the server, unchanged.
    pub(crate) fn server(message: &[u8]) -> Error {
        let kind = Kind::Server(Code::of(message));
        let error = Error::new(kind, String::from_utf8_lossy(message).into_owned());
        match is_in_part(message) {
            true => error.after_sending(),
            false => error,
        }
    }

    /// A reply of an unexpected type. The text names the type and length of the reply, but not the value: errors are
    /// logged, and a value may be secret or large.
    pub(crate) fn unexpected(wanted: &'static str, found: &Part<'_>) -> Error {
        let text = format!("expected {wanted}, but the reply is {}", Described(found));
        Error::new(Kind::UnexpectedReply, text)
    }

    /// Returns the kind of the error.
    #[must_use]
    pub fn kind(&self) -> Kind {
        self.0.kind
    }

    /// Returns the code of the server's error reply, if the server sent one.
    #[must_use]
    pub fn code(&self) -> Option<Code> {
        match self.0.kind {
            Kind::Server(code) => Some(code),
            _ => None,
        }
    }

    /// Returns a description of the error, the same text as `Display`. For an error reply of the server, it is the
    /// whole text of the reply.
    #[must_use]
    pub fn message(&self) -> &str {
        &self.0.text
    }

    /// Returns whether the server may have changed data for this command, or may still do so.
    ///
    /// True in these cases:
    ///
    /// - The command was sent, and its reply is unknown.
    /// - The command was executed, and its reply cannot be converted to the requested type.
    /// - A batch, a transaction, or a command with keys on several nodes was executed in part.
    ///
    /// False if the server rejected the command, if nothing was sent, or if only reads were executed.
    #[must_use]
    pub fn maybe_applied(&self) -> bool {
        self.0.maybe_applied
    }

    /// Returns, for each command of a [batch](crate::Client::batch) or [transaction](crate::Client::transaction) in
    /// order, whether the server executed it.
    ///
    /// Empty for a single command, and if no reply arrived. In the latter case, only [`Error::maybe_applied`] is known.
    ///
    /// ```no_run
    /// # async fn example(db: brisk::Client) {
    /// use brisk::{Executed, commands::{incr, lpush}};
    /// if let Err(error) = db.batch((incr("n"), lpush("no list", "x"))).await {
    ///     assert_eq!(error.executed(), [Executed::Yes, Executed::No]);
    /// }
    /// # }
    /// ```
    #[must_use]
    pub fn executed(&self) -> &[Executed] {
        &self.0.executed
    }

    /// Returns the kind of the operating system's error, if there was one: `ConnectionRefused`, `NotFound`,
    /// `PermissionDenied` and so on. The error itself is the [source](std::error::Error::source).
    ///
    /// ```no_run
    /// # async fn example() {
    /// if let Err(error) = brisk::Client::connect("redis://127.0.0.1:1").await {
    ///     assert_eq!(error.io_kind(), Some(std::io::ErrorKind::ConnectionRefused));
    /// }
    /// # }
    /// ```
    #[must_use]
    pub fn io_kind(&self) -> Option<io::ErrorKind> {
        self.0.source.as_deref().map(io::Error::kind)
    }
}

/// The whole text of an error, from a text without its kind.
fn described(kind: Kind, text: Cow<'static, str>) -> Cow<'static, str> {
    let kind = match kind {
        Kind::Timeout(Phase::Queued) => "timeout before it was sent",
        Kind::Timeout(Phase::Sent) => "timeout before the reply",
        Kind::Timeout(Phase::Streaming) => "timeout during the reply",
        Kind::Overloaded => "overloaded",
        Kind::Protocol => "protocol error",
        _ => return text,
    };
    if text.is_empty() { Cow::Borrowed(kind) } else { Cow::Owned(format!("{kind}: {text}")) }
}

pub(crate) fn is_in_part(message: &[u8]) -> bool {
    message.ends_with(IN_PART.as_bytes())
}

/// A text that lists which of several commands were executed; `None` for a single command.
fn executed_note(executed: &[Executed]) -> Option<String> {
    let of = |wanted: Executed| -> Option<String> {
        let count = executed.iter().filter(|found| **found == wanted).count();
        let all = executed.iter().enumerate().filter(move |(_, found)| **found == wanted);
        let mut numbers = all.map(|(at, _)| (at + 1).to_string());
        let mut text: Vec<String> = numbers.by_ref().take(NAMED_MAX).collect();
        let left = numbers.count();
        if left > 0 {
            text.push(format!("and {left} more"));
        }
        let noun = if count == 1 { "command" } else { "commands" };
        (count > 0).then(|| format!("{noun} {}", text.join(", ")))
    };
    let total = executed.len();
    match (of(Executed::Yes), of(Executed::Unknown)) {
        _ if total < 2 => None,
        (None, None) => None,
        (Some(yes), None) => Some(format!("executed: {yes} of {total}")),
        (None, Some(unknown)) => Some(format!("unknown: {unknown} of {total}")),
        (Some(yes), Some(unknown)) => {
            Some(format!("executed: {yes} of {total}; unknown: {unknown}"))
        }
    }
}

/// Describes a part of a reply, without its value.
struct Described<'a>(&'a Part<'a>);

impl fmt::Display for Described<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Part::Simple(text) => write!(f, "a status of {} bytes", text.len()),
            Part::Error(text) => write!(f, "an error of {} bytes", text.len()),
            Part::Integer(_) => f.write_str("an integer"),
            Part::Bulk(text) | Part::Verbatim { text, .. } => {
                write!(f, "a string of {} bytes", text.len())
            }
            Part::Null => f.write_str("nothing (null)"),
            Part::Double(_) => f.write_str("a floating-point number"),
            Part::Boolean(_) => f.write_str("a Boolean"),
            Part::BigNumber(digits) => write!(f, "a number of {} digits", digits.len()),
            Part::Array(count) => write!(f, "a list of {count} elements"),
            Part::Map(count) => write!(f, "a map of {count} pairs"),
            Part::Set(count) => write!(f, "a set of {count} elements"),
            Part::Push(count) => write!(f, "a message of {count} elements"),
        }
    }
}

impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Error")
            .field("kind", &self.0.kind)
            .field("text", &self.0.text)
            .field("maybe_applied", &self.0.maybe_applied)
            .field("executed", &self.0.executed)
            .field("source", &self.0.source)
            .finish()
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.text)
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        self.0.source.as_deref().map(|error| error as _)
    }
}

impl From<brisk_resp::reply::decode::ReplyError> for Error {
    fn from(error: brisk_resp::reply::decode::ReplyError) -> Error {
        Error::new(Kind::Protocol, error.to_string())
    }
}

/// The result of a command.
pub type Result<T> = std::result::Result<T, Error>;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_message_is_the_whole_text() {
        let timeout = |text: &'static str| Error::new(Kind::Timeout(Phase::Queued), text);
        for (error, text) in [
            (timeout(""), "timeout before it was sent"),
            (timeout("no connection"), "timeout before it was sent: no connection"),
            (Error::new(Kind::Timeout(Phase::Sent), ""), "timeout before the reply"),
            (Error::new(Kind::Overloaded, "full"), "overloaded: full"),
            (Error::new(Kind::Protocol, "bad"), "protocol error: bad"),
            (Error::server(b"ERR x"), "ERR x"),
        ] {
            assert_eq!((error.message(), error.to_string().as_str()), (text, text));
        }
    }

    #[test]
    fn a_note_names_the_positions_of_executed_commands() {
        use Executed::{No, Unknown, Yes};
        let note = |executed: &[Executed]| executed_note(executed).unwrap_or_default();
        assert_eq!(note(&[Yes, No]), "executed: command 1 of 2");
        assert_eq!(note(&[Yes, No, Yes]), "executed: commands 1, 3 of 3");
        assert_eq!(note(&[No, Unknown]), "unknown: command 2 of 2");
        assert_eq!(note(&[Yes, Unknown]), "executed: command 1 of 2; unknown: command 2");
        assert_eq!((note(&[No, No]), note(&[Yes])), (String::new(), String::new()));
    }
}
