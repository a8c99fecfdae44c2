//! What can go wrong, and what the caller has to know about it: what happened, how far the command had come,
//! and whether the server may have executed it.

use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;

/// Why a command has no reply, or one that is of no use.
///
/// Cheap to move (a pointer) and to clone. [`Error::kind`] says what happened, and [`Error::maybe_applied`]
/// whether the server may have executed the command all the same.
#[derive(Clone)]
pub struct Error(Arc<Inner>);

struct Inner {
    kind: Kind,
    text: Cow<'static, str>,
    maybe_applied: bool,
}

/// What happened.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Kind {
    /// The time for the command was over; how far it had come then.
    Timeout(Phase),
    /// The connection was lost, or there was none.
    Disconnected,
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
        Error(Arc::new(Inner { kind, text: text.into(), maybe_applied }))
    }

    /// The connection was lost while the command was under way.
    pub(crate) fn lost(phase: Phase, why: &str) -> Error {
        let (text, maybe_applied) = match phase {
            Phase::Queued => (format!("not sent: {why}"), false),
            Phase::Sent => (format!("connection lost before the reply: {why}"), true),
            Phase::Streaming => (format!("connection lost amid the reply: {why}"), true),
        };
        Error(Arc::new(Inner { kind: Kind::Disconnected, text: text.into(), maybe_applied }))
    }

    /// The same, of a command that was sent.
    pub(crate) fn after_sending(&self) -> Error {
        let Inner { kind, text, .. } = &*self.0;
        Error(Arc::new(Inner { kind: *kind, text: text.clone(), maybe_applied: true }))
    }

    /// The same, with more to say.
    pub(crate) fn with_note(&self, note: &str) -> Error {
        let Inner { kind, text, maybe_applied } = &*self.0;
        let text = Cow::Owned(format!("{text} ({note})"));
        Error(Arc::new(Inner { kind: *kind, text, maybe_applied: *maybe_applied }))
    }

    /// The same, saying where. What is wrong with the protocol is so anywhere.
    #[cfg(feature = "derive")]
    pub(crate) fn at(self, place: &str) -> Error {
        let Inner { kind, text, maybe_applied } = &*self.0;
        if *kind == Kind::Protocol {
            return self;
        }
        let text = Cow::Owned(format!("{place}: {text}"));
        Error(Arc::new(Inner { kind: *kind, text, maybe_applied: *maybe_applied }))
    }

    /// The server's error, as it came.
    pub(crate) fn server(message: &[u8]) -> Error {
        let kind = Kind::Server(Code::of(message));
        Error::new(kind, String::from_utf8_lossy(message).into_owned())
    }

    /// A reply of another type.
    pub(crate) fn unexpected(wanted: &'static str, found: &dyn fmt::Debug) -> Error {
        Error::new(Kind::UnexpectedReply, format!("the reply is no {wanted}: {found:?}"))
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

    /// Whether the server may have executed the command, or may yet: it was sent, and its reply is not known.
    /// False if the server answered, or if nothing was sent.
    #[must_use]
    pub fn maybe_applied(&self) -> bool {
        self.0.maybe_applied
    }
}

impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Error")
            .field("kind", &self.0.kind)
            .field("text", &self.0.text)
            .field("maybe_applied", &self.0.maybe_applied)
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

impl std::error::Error for Error {}

impl From<brisk_resp::reply::decode::ReplyError> for Error {
    fn from(error: brisk_resp::reply::decode::ReplyError) -> Error {
        Error::new(Kind::Protocol, error.to_string())
    }
}

/// What a command gives.
pub type Result<T> = std::result::Result<T, Error>;
