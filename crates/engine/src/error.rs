//! The errors a command answers with. `Display` is the exact text on the wire, each text once.

use std::borrow::Cow;

/// Why a command failed. Handlers use `?`; the dispatcher writes the text.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CommandError {
    #[error("WRONGTYPE Operation against a key holding the wrong kind of value")]
    WrongType,
    #[error("ERR syntax error")]
    Syntax,
    #[error("ERR value is not an integer or out of range")]
    NotAnInteger,
    #[error("ERR value is not a valid float")]
    NotAFloat,
    #[error("ERR value is out of range")]
    OutOfRange,
    #[error("ERR value is out of range, value must between {min} and {max}", min = i32::MIN, max = i32::MAX)]
    IntOutOfRange,
    #[error("ERR value is out of range, must be positive")]
    MustBePositive,
    #[error("ERR increment or decrement would overflow")]
    Overflow,
    #[error("ERR increment would produce NaN or Infinity")]
    NanOrInfinity,
    #[error("ERR string exceeds maximum allowed size (proto-max-bulk-len)")]
    StringTooLong,
    #[error("ERR offset is out of range")]
    OffsetOutOfRange,
    #[error("ERR no such key")]
    NoSuchKey,
    #[error("ERR index out of range")]
    IndexOutOfRange,
    #[error("ERR DB index is out of range")]
    DbOutOfRange,
    #[error("ERR invalid DB index")]
    InvalidDb,
    #[error("ERR source and destination objects are the same")]
    SameObject,
    #[error("ERR invalid cursor")]
    InvalidCursor,
    #[error("ERR invalid expire time in '{0}' command")]
    InvalidExpire(Cow<'static, str>),
    #[error("ERR wrong number of arguments for '{0}' command")]
    Arity(Cow<'static, str>),
    #[error("OOM command not allowed when used memory > 'maxmemory'.")]
    OutOfMemory,
    /// A text that occurs in one place only; it includes its code word (`ERR …`).
    #[error("{0}")]
    Text(Cow<'static, str>),
    /// Not for the wire: a slot was held by another thread, nothing was changed, run it again.
    #[error("ERR internal: slot busy")]
    SlotBusy,
}

impl CommandError {
    /// An error with a text of its own, code word included.
    pub fn text(text: impl Into<Cow<'static, str>>) -> CommandError {
        CommandError::Text(text.into())
    }

    /// An error that quotes a client's word at its end: only what stands before a NUL byte, and
    /// no line ends, since the error is one line.
    pub fn text_with(before: &str, word: &[u8]) -> CommandError {
        CommandError::text_around(before, word, "")
    }

    /// As [`CommandError::text_with`], for a word in the middle.
    pub fn text_around(before: &str, word: &[u8], after: &str) -> CommandError {
        let word = word.split(|byte| *byte == 0).next().unwrap_or_default();
        let text = format!("{before}{}{after}", String::from_utf8_lossy(word));
        CommandError::text(text.trim_end_matches(['\r', '\n']).replace(['\r', '\n'], " "))
    }
}

pub type Result<T> = std::result::Result<T, CommandError>;
