//! What can go wrong, and what the caller has to know about it: what happened, how far the command had come,
//! and whether the server may have executed it.

use brisk_resp::reply::read::Part;
use std::borrow::Cow;
use std::sync::Arc;
use std::{fmt, io};

/// The error text about several commands names at most this many of them.
const NAMED_MAX: usize = 8;
/// The library appends this to a server's error if other nodes have executed their part of the command.
pub(crate) const IN_PART: &str = " (other nodes have executed their part of the command)";

/// Why a command has no reply, or one that is of no use.
///
/// Cheap to move (a pointer) and to clone. [`Error::kind`] says what happened, and [`Error::maybe_applied`]
/// whether the server may have executed the command all the same.
#[derive(Clone)]
pub struct Error(Arc<Inner>);

#[derive(Clone)]
struct Inner {
    kind: Kind,
    text: Cow<'static, str>,
    maybe_applied: bool,
    /// Error of several commands: whether each was executed.
    executed: Box<[Executed]>,
    /// The operating system's error.
    source: Option<Arc<io::Error>>,
}

/// What happened.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Kind {
    /// The time for the command was over; how far it had come then.
    Timeout(Phase),
    /// The connection was lost, or there was none.
    Disconnected,
    /// No connection, because TLS failed: the server's certificate is not trusted, has expired or has another name,
    /// the server requires a different client certificate, or it does not speak TLS.
    Tls,
    /// More bytes wait for replies than the budget allows. Nothing was sent.
    Overloaded,
    /// The server answered with an error.
    Server(Code),
    /// The reply is not of the type that was asked for.
    UnexpectedReply,
    /// There is no value, and one was [required](crate::Command::required).
    Missing,
    /// What came from the server is no reply of the protocol. The connection was closed.
    Protocol,
    /// An address, a name or an option that cannot be.
    Invalid,
    /// A transaction was not executed, since a watched key had changed.
    Aborted,
    /// The client was closed.
    Closed,
}

/// How far a command had come.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Phase {
    /// Nothing of it was sent: it was not executed, and will not be.
    Queued,
    /// It was sent, at least in part: the server may have executed it, or may yet.
    Sent,
    /// A part of its reply has come: the server has executed it, or is about to.
    Streaming,
}

/// Whether the server executed one command of a batch or transaction; see [`Error::executed`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Executed {
    /// It was executed: its reply arrived and was not an error.
    Yes,
    /// The server refused it and replied with an error.
    No,
    /// Unknown, or executed in part.
    Unknown,
}

/// The first word of a server's error.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Code {
    /// `ERR`: no code of its own.
    Err,
    /// `WRONGTYPE`: the key holds another type.
    WrongType,
    /// `MOVED`: the slot is another node's.
    Moved,
    /// `ASK`: the key is on its way to another node.
    Ask,
    /// `TRYAGAIN`: keys of one command are on both sides of a slot's move.
    TryAgain,
    /// `CLUSTERDOWN`: not all slots are served.
    ClusterDown,
    /// `CROSSSLOT`: the keys of one command are in different slots.
    CrossSlot,
    /// `READONLY`: a write to a replica.
    ReadOnly,
    /// `MASTERDOWN`: a replica that does not tell old data has lost its primary.
    MasterDown,
    /// `LOADING`: the server is starting.
    Loading,
    /// `BUSY`: a script takes long.
    Busy,
    /// `BUSYKEY`: RESTORE would overwrite.
    BusyKey,
    /// `BUSYGROUP`: the consumer group exists.
    BusyGroup,
    /// `NOGROUP`: there is no such consumer group.
    NoGroup,
    /// `NOAUTH`: the connection has to authenticate itself.
    NoAuth,
    /// `WRONGPASS`: no such user, or not this password.
    WrongPass,
    /// `NOPERM`: the user may not do this.
    NoPerm,
    /// `NOSCRIPT`: the script is not known by its digest.
    NoScript,
    /// `NOTBUSY`: there is no script to be killed.
    NotBusy,
    /// `UNKILLABLE`: the script has written.
    Unkillable,
    /// `EXECABORT`: a command of the transaction was refused.
    ExecAbort,
    /// `OOM`: the limit of memory is reached.
    OutOfMemory,
    /// `MISCONF`: the server cannot save, and refuses writes.
    Misconf,
    /// `NOREPLICAS`: not enough replicas follow.
    NoReplicas,
    /// `NOPROTO`: the server does not speak this version of the protocol.
    NoProto,
    /// Another word; [`Error::message`] has it.
    Other,
}

impl Code {
    /// The code that a server's error begins with.
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
        let (text, executed) = (text.into(), Box::default());
        Error(Arc::new(Inner { kind, text, maybe_applied, executed, source: None }))
    }

    /// A socket error, after this text if it is not empty.
    pub(crate) fn socket(place: &str, error: io::Error) -> Error {
        let text = if place.is_empty() { error.to_string() } else { format!("{place}: {error}") };
        // Not an error of the socket itself, only of the TLS layer above it.
        let is_tls = error.kind() == io::ErrorKind::InvalidData;
        let kind = if is_tls { Kind::Tls } else { Kind::Disconnected };
        Error::new(kind, text).changed(|inner| inner.source = Some(Arc::new(error)))
    }

    /// The connection was lost while the command was under way.
    pub(crate) fn lost(phase: Phase, why: &str) -> Error {
        Error::new(Kind::Disconnected, why.to_owned()).lost_at(phase)
    }

    /// This error closed the connection while another command was in progress.
    pub(crate) fn lost_at(&self, phase: Phase) -> Error {
        let why = &self.0.text;
        let (text, maybe_applied) = match phase {
            Phase::Queued => (format!("not sent: {why}"), false),
            Phase::Sent => (format!("connection lost before the reply: {why}"), true),
            Phase::Streaming => (format!("connection lost amid the reply: {why}"), true),
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

    /// The same, of a command that was sent.
    pub(crate) fn after_sending(&self) -> Error {
        self.clone().changed(|inner| inner.maybe_applied = true)
    }

    /// The same, with more to say.
    pub(crate) fn with_note(&self, note: &str) -> Error {
        self.clone().changed(|inner| inner.text = Cow::Owned(format!("{} ({note})", inner.text)))
    }

    /// The same, saying where. What is wrong with the protocol is so anywhere.
    #[cfg(feature = "derive")]
    pub(crate) fn at(self, place: &str) -> Error {
        if self.0.kind == Kind::Protocol {
            return self;
        }
        self.changed(|inner| inner.text = Cow::Owned(format!("{place}: {}", inner.text)))
    }

    /// Combines several such errors into this one. Executed reads do not set `maybe_applied`.
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

    /// The server's error, as it came.
    pub(crate) fn server(message: &[u8]) -> Error {
        let kind = Kind::Server(Code::of(message));
        let error = Error::new(kind, String::from_utf8_lossy(message).into_owned());
        match is_in_part(message) {
            true => error.after_sending(),
            false => error,
        }
    }

    /// A reply of another type. The text has the type of the reply and its length, but not the value: errors are
    /// logged, and a value may be secret or large.
    pub(crate) fn unexpected(wanted: &'static str, found: &Part<'_>) -> Error {
        let text = format!("the reply is no {wanted}, but {}", Described(found));
        Error::new(Kind::UnexpectedReply, text)
    }

    /// What happened.
    #[must_use]
    pub fn kind(&self) -> Kind {
        self.0.kind
    }

    /// The code of the server's error, if it is one.
    #[must_use]
    pub fn code(&self) -> Option<Code> {
        match self.0.kind {
            Kind::Server(code) => Some(code),
            _ => None,
        }
    }

    /// What happened, in words; of a server's error its whole text.
    #[must_use]
    pub fn message(&self) -> &str {
        &self.0.text
    }

    /// Whether the server may have executed something that changes data, or may still do so. True if the command was
    /// sent and its reply is not known; if the command was executed and its reply does not fit the wanted type; and
    /// if a batch, a transaction, or a command with keys on several nodes was executed in part. False if the server
    /// refused the command, if nothing was sent, and if only reads were executed.
    #[must_use]
    pub fn maybe_applied(&self) -> bool {
        self.0.maybe_applied
    }

    /// For a [batch](crate::Client::batch) or a [transaction](crate::Client::transaction) of two or more commands
    /// whose replies arrived: for each command, in order, whether the server executed it. Empty for a single command,
    /// and if no reply arrived; then only [`Error::maybe_applied`] is known.
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

    /// The kind of the operating system's error, if there was one: `ConnectionRefused`, `NotFound`,
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

pub(crate) fn is_in_part(message: &[u8]) -> bool {
    message.ends_with(IN_PART.as_bytes())
}

/// Which of several commands were executed, if there were several.
fn executed_note(executed: &[Executed]) -> Option<String> {
    let of = |wanted: Executed| {
        let all = executed.iter().enumerate().filter(move |(_, found)| **found == wanted);
        let mut numbers = all.map(|(at, _)| (at + 1).to_string());
        let mut text: Vec<String> = numbers.by_ref().take(NAMED_MAX).collect();
        let left = numbers.count();
        if left > 0 {
            text.push(format!("and {left} more"));
        }
        text.join(", ")
    };
    let (yes, unknown) = (of(Executed::Yes), of(Executed::Unknown));
    if executed.len() < 2 || (yes.is_empty() && unknown.is_empty()) {
        return None;
    }
    let mut note = format!("of {} commands", executed.len());
    if !yes.is_empty() {
        note += &format!(" executed: {yes}");
    }
    if !unknown.is_empty() {
        note += &format!("; not known: {unknown}");
    }
    Some(note)
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
        let text = &self.0.text;
        match self.0.kind {
            Kind::Timeout(Phase::Queued) => write!(f, "timeout before it was sent{text}"),
            Kind::Timeout(Phase::Streaming) => write!(f, "timeout amid the reply{text}"),
            Kind::Timeout(_) => write!(f, "timeout before the reply{text}"),
            Kind::Disconnected => write!(f, "{text}"),
            Kind::Overloaded => write!(f, "overloaded: {text}"),
            Kind::Protocol => write!(f, "protocol error: {text}"),
            _ => write!(f, "{text}"),
        }
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

/// What a command gives.
pub type Result<T> = std::result::Result<T, Error>;
