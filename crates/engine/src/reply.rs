//! Replies: a handler says what it answers, the session's protocol decides how that looks.
//!
//! A [`ReplyBuffer`] holds the replies of one batch: bytes, and large values that are sent from
//! where they lie. A failed command is undone with [`ReplyBuffer::mark`] and
//! [`ReplyBuffer::truncate`], so a handler may use `?` after half a reply.

use crate::error::CommandError;
use crate::number::Digits;
use crate::types::string::StrRef;
use brisk_resp::Protocol;
use brisk_resp::reply::encode;
use std::sync::Arc;

/// What a handler left to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// The reply is in the buffer.
    Replied,
    /// There is none yet: the client waits ([`crate::Env::take_waiter`] says for what).
    Waiting,
}

/// Replies waiting to be sent.
#[derive(Debug, Default)]
pub struct ReplyBuffer {
    bytes: Vec<u8>,
    shared: Vec<SharedPart>,
    shared_bytes: usize,
}

/// A large value that belongs before `bytes[at]`.
#[derive(Debug)]
pub struct SharedPart {
    pub at: usize,
    pub data: Arc<Vec<u8>>,
}

/// A place in a [`ReplyBuffer`] to go back to.
#[derive(Debug, Clone, Copy)]
pub struct Mark {
    bytes: usize,
    shared: usize,
}

impl ReplyBuffer {
    pub fn new() -> ReplyBuffer {
        ReplyBuffer::default()
    }

    /// Bytes that all replies take on the wire.
    #[inline]
    pub fn len(&self) -> usize {
        self.bytes.len() + self.shared_bytes
    }

    #[inline]
    pub fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    #[inline]
    pub fn mark(&self) -> Mark {
        Mark { bytes: self.bytes.len(), shared: self.shared.len() }
    }

    /// Removes everything added since `mark`.
    pub fn truncate(&mut self, mark: Mark) {
        self.bytes.truncate(mark.bytes);
        for part in self.shared.drain(mark.shared..) {
            self.shared_bytes -= part.data.len();
        }
    }

    /// The bytes, without the large values.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// For replies that are not made by a handler.
    pub fn bytes_mut(&mut self) -> &mut Vec<u8> {
        &mut self.bytes
    }

    pub fn has_shared(&self) -> bool {
        !self.shared.is_empty()
    }

    /// Gives out the pieces in the order of the wire and empties the buffer; its memory is kept.
    pub fn drain(&mut self, mut bytes: impl FnMut(&[u8]), mut shared: impl FnMut(Arc<Vec<u8>>)) {
        let mut sent = 0;
        for part in self.shared.drain(..) {
            bytes(&self.bytes[sent..part.at]);
            sent = part.at;
            shared(part.data);
        }
        bytes(&self.bytes[sent..]);
        self.clear();
    }

    /// Empties the buffer, and gives memory back that one large reply made it take.
    pub fn clear(&mut self) {
        const KEPT_BYTES_MAX: usize = 256 * 1024;
        self.shared.clear();
        self.shared_bytes = 0;
        self.bytes.clear();
        if self.bytes.capacity() > KEPT_BYTES_MAX {
            self.bytes = Vec::with_capacity(KEPT_BYTES_MAX);
        }
    }
}

/// Where a handler writes its reply. The methods return [`Outcome::Replied`], so that a handler can
/// end with one of them.
pub struct Reply<'a> {
    buffer: &'a mut ReplyBuffer,
    protocol: Protocol,
}

impl<'a> Reply<'a> {
    #[inline]
    pub fn new(buffer: &'a mut ReplyBuffer, protocol: Protocol) -> Reply<'a> {
        Reply { buffer, protocol }
    }

    /// The protocol, for the few replies whose shape Redis made depend on it.
    pub fn protocol(&self) -> Protocol {
        self.protocol
    }

    /// For the commands that change the protocol: their own reply is in the new one.
    pub fn set_protocol(&mut self, protocol: Protocol) {
        self.protocol = protocol;
    }

    pub fn buffer(&mut self) -> &mut ReplyBuffer {
        self.buffer
    }

    #[inline]
    pub fn ok(&mut self) -> Outcome {
        self.buffer.bytes.extend_from_slice(b"+OK\r\n");
        Outcome::Replied
    }

    #[inline]
    pub fn simple(&mut self, text: &str) -> Outcome {
        encode::simple(&mut self.buffer.bytes, text.as_bytes());
        Outcome::Replied
    }

    pub fn error(&mut self, error: &CommandError) -> Outcome {
        encode::error(&mut self.buffer.bytes, &error.wire());
        Outcome::Replied
    }

    /// An error by its text, code word included.
    pub fn error_text(&mut self, text: &str) -> Outcome {
        encode::error(&mut self.buffer.bytes, text.as_bytes());
        Outcome::Replied
    }

    #[inline]
    pub fn integer(&mut self, number: i64) -> Outcome {
        encode::integer(&mut self.buffer.bytes, number);
        Outcome::Replied
    }

    /// A length or count.
    #[inline]
    pub fn count(&mut self, number: usize) -> Outcome {
        self.integer(number as i64)
    }

    #[inline]
    pub fn bulk(&mut self, bytes: &[u8]) -> Outcome {
        encode::bulk(&mut self.buffer.bytes, bytes);
        Outcome::Replied
    }

    /// An integer in the form of a bulk string.
    #[inline]
    pub fn bulk_integer(&mut self, number: i64) -> Outcome {
        self.bulk(Digits::new().format(number))
    }

    /// A string value in whatever form it is stored; large ones are not copied.
    #[inline]
    pub fn string(&mut self, value: &StrRef<'_>) -> Outcome {
        match value {
            StrRef::Bytes(bytes) => self.bulk(bytes),
            StrRef::Int(number) => self.bulk_integer(*number),
            StrRef::Shared(data) => self.bulk_shared(Arc::clone(data)),
        }
    }

    /// A bulk string sent from where it lies.
    pub fn bulk_shared(&mut self, data: Arc<Vec<u8>>) -> Outcome {
        self.buffer.bytes.push(b'$');
        self.buffer.bytes.extend_from_slice(Digits::new().format(data.len() as i64));
        self.buffer.bytes.extend_from_slice(b"\r\n");
        self.buffer.shared_bytes += data.len();
        self.buffer.shared.push(SharedPart { at: self.buffer.bytes.len(), data });
        self.buffer.bytes.extend_from_slice(b"\r\n");
        Outcome::Replied
    }

    #[inline]
    pub fn null(&mut self) -> Outcome {
        encode::null(&mut self.buffer.bytes, self.protocol);
        Outcome::Replied
    }

    pub fn null_array(&mut self) -> Outcome {
        encode::null_array(&mut self.buffer.bytes, self.protocol);
        Outcome::Replied
    }

    /// Announces `n` elements, which the caller writes next.
    pub fn array(&mut self, n: usize) -> Outcome {
        encode::array(&mut self.buffer.bytes, n);
        Outcome::Replied
    }

    /// Announces `n` pairs: a map in RESP3, a flat array in RESP2.
    pub fn map(&mut self, n: usize) -> Outcome {
        encode::map(&mut self.buffer.bytes, self.protocol, n);
        Outcome::Replied
    }

    pub fn set(&mut self, n: usize) -> Outcome {
        encode::set(&mut self.buffer.bytes, self.protocol, n);
        Outcome::Replied
    }

    pub fn push(&mut self, n: usize) -> Outcome {
        encode::push(&mut self.buffer.bytes, self.protocol, n);
        Outcome::Replied
    }

    pub fn double(&mut self, number: f64) -> Outcome {
        encode::double(&mut self.buffer.bytes, self.protocol, number);
        Outcome::Replied
    }

    pub fn boolean(&mut self, value: bool) -> Outcome {
        encode::boolean(&mut self.buffer.bytes, self.protocol, value);
        Outcome::Replied
    }

    /// Text with a format hint (`*b"txt"`, `*b"mkd"`): verbatim in RESP3, bulk in RESP2.
    pub fn verbatim(&mut self, format: [u8; 3], text: &[u8]) -> Outcome {
        encode::verbatim(&mut self.buffer.bytes, self.protocol, format, text);
        Outcome::Replied
    }
}
