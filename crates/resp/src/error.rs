//! Protocol errors in requests. After any of them, the server replies with the error and closes the
//! connection.

/// Why a request cannot be parsed.
///
/// `Display` is the text after `-ERR Protocol error: `, as worded by Redis 7.0.
/// [`encode`](Self::encode) writes the whole error reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ProtocolError {
    /// The count after `*` is not a canonical integer, or exceeds the limit.
    #[error("invalid multibulk length")]
    InvalidMultibulkLength,
    /// The length after `$` is not a canonical integer, is negative, or exceeds the limit.
    #[error("invalid bulk length")]
    InvalidBulkLength,
    /// An argument began with this byte instead of `$`.
    #[error("expected '$', got '{}'", shown(*.0).escape_ascii())]
    ExpectedBulk(u8),
    /// The `*` line does not end within the limit.
    #[error("too big mbulk count string")]
    TooBigMultibulkCount,
    /// The `$` line does not end within the limit.
    #[error("too big bulk count string")]
    TooBigBulkCount,
    /// An inline request does not end within the limit.
    #[error("too big inline request")]
    TooBigInline,
    /// An inline request with an unclosed quote, or with a closing quote followed by a non-blank.
    #[error("unbalanced quotes in request")]
    UnbalancedQuotes,
    /// More arguments than an unauthenticated client may send.
    #[error("unauthenticated multibulk length")]
    UnauthenticatedMultibulkLength,
    /// A longer argument than an unauthenticated client may send.
    #[error("unauthenticated bulk length")]
    UnauthenticatedBulkLength,
}

impl ProtocolError {
    /// Appends the whole error reply, `-ERR Protocol error: …\r\n`.
    pub fn encode(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(b"-ERR Protocol error: ");
        match self {
            // The byte is sent back unchanged, so the text need not be UTF-8.
            Self::ExpectedBulk(byte) => {
                out.extend_from_slice(b"expected '$', got '");
                out.push(shown(*byte));
                out.push(b'\'');
            }
            other => out.extend_from_slice(other.to_string().as_bytes()),
        }
        out.extend_from_slice(b"\r\n");
    }
}

/// A line end inside an error reply would end it, so Redis shows a space.
fn shown(byte: u8) -> u8 {
    if matches!(byte, b'\r' | b'\n') { b' ' } else { byte }
}
