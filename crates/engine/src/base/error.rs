//! The errors of commands. `Display` is the exact text that clients get; each text occurs once.

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
    /// The value in a RESTORE payload violates a rule of its type. The detail goes to the log, not
    /// to the client.
    #[error("ERR Bad data format")]
    BadPayload(Box<str>),
    #[error("OOM command not allowed when used memory > 'maxmemory'.")]
    OutOfMemory,
    /// The client has to send the command to another server.
    #[error("REDIRECT {host}:{port}")]
    Redirect { host: String, port: u16 },
    /// In cluster mode: this node does not serve the keys of the command. The text is that of
    /// CROSSSLOT, MOVED or CLUSTERDOWN.
    #[error("{0}")]
    NotServed(Box<str>),
    /// A text that is used in only one place. It includes its error code (`ERR …`).
    #[error("{0}")]
    Text(Cow<'static, str>),
    /// Like [`CommandError::Text`], with a quoted argument that is not UTF-8.
    #[error("{}", String::from_utf8_lossy(.0))]
    Bytes(Box<[u8]>),
    /// Like [`CommandError::Bytes`], for the error of a command that this command ran. It has
    /// already been counted.
    #[error("{}", String::from_utf8_lossy(.0))]
    Reported(Box<[u8]>),
    /// A bug in this program: the named command used a key that it does not declare. The key's slot
    /// was not locked, and its access was not checked by access control, so the access was
    /// rejected. The code that detects it leaves the name empty, and the runner of the command
    /// fills it in.
    #[error(
        "ERR internal error: '{0}' used a key that it does not declare; the access was rejected"
    )]
    UndeclaredKey(Cow<'static, str>),
    /// Never sent: another thread holds a slot. Nothing was changed; run the command again.
    #[error("ERR internal: slot busy")]
    SlotBusy,
    /// Never sent: a long command uses values of a slot to which the command would write, or writes
    /// are paused. Nothing was changed; run the command again later.
    #[error("ERR internal: slot frozen")]
    SlotFrozen,
}

impl CommandError {
    /// The command used a key that it does not declare.
    #[cold]
    pub const fn undeclared_key() -> CommandError {
        CommandError::UndeclaredKey(Cow::Borrowed(""))
    }

    /// An error with its own text, including the error code.
    pub fn text(text: impl Into<Cow<'static, str>>) -> CommandError {
        CommandError::Text(text.into())
    }

    /// An error that ends with a quoted argument. The argument is cut at a NUL byte and its line
    /// ends are replaced, because an error is one line.
    pub fn text_with(before: &str, word: &[u8]) -> CommandError {
        CommandError::text_around(before, word, "")
    }

    /// Like [`CommandError::text_with`], for an argument in the middle.
    pub fn text_around(before: &str, word: &[u8], after: &str) -> CommandError {
        let word = word.split(|byte| *byte == 0).next().unwrap_or_default();
        let mut text = [before.as_bytes(), word, after.as_bytes()].concat();
        while text.pop_if(|byte| is_line_end(*byte)).is_some() {}
        text.iter_mut().filter(|byte| is_line_end(**byte)).for_each(|byte| *byte = b' ');
        CommandError::bytes(text)
    }

    /// An error with its own text that quotes arguments unchanged.
    pub fn bytes(text: Vec<u8>) -> CommandError {
        match String::from_utf8(text) {
            Ok(text) => CommandError::text(text),
            Err(error) => CommandError::Bytes(error.into_bytes().into()),
        }
    }

    /// The text for the client: like `Display`, with every byte of a quoted argument unchanged.
    pub fn wire(&self) -> Cow<'_, [u8]> {
        match self {
            CommandError::Bytes(text) | CommandError::Reported(text) => Cow::Borrowed(text),
            CommandError::Text(text) => Cow::Borrowed(text.as_bytes()),
            other => Cow::Owned(other.to_string().into_bytes()),
        }
    }
}

const fn is_line_end(byte: u8) -> bool {
    matches!(byte, b'\r' | b'\n')
}

pub type Result<T> = std::result::Result<T, CommandError>;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_argument_is_quoted_up_to_a_nul_and_on_one_line() {
        let wire = |word: &[u8]| CommandError::text_around("ERR '", word, "'").wire().into_owned();
        assert_eq!(wire(b"\xff\xfe"), b"ERR '\xff\xfe'");
        assert_eq!(wire(b"a\x00b"), b"ERR 'a'");
        assert_eq!(wire(b"a\r\nb"), b"ERR 'a  b'");
        assert_eq!(CommandError::text_with("ERR ", b"a\r\n").wire().into_owned(), b"ERR a");
        assert_eq!(CommandError::Syntax.wire().into_owned(), b"ERR syntax error");
    }
}
