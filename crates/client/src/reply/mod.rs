//! Replies: the bytes as they came, and what the caller wants to have of them.
//!
//! | part | what it is |
//! |---|---|
//! | [`Reply`] | the bytes of a reply, not looked at yet |
//! | [`FromReply`] | making a value of them |
//! | `scalars`, `collections` | the values that are known |
//!
//! Nothing is built in between: a `Vec<String>` is filled from the bytes that the socket gave. [`bytes::Bytes`]
//! are parts of the buffer into which the socket was read, without a copy, and keep that buffer alive.

mod collections;
mod scalars;

use crate::error::{Error, Kind, Result};
use brisk_resp::reply::read::{Part, ReplyReader};
use brisk_resp::reply::value::Value;
use bytes::{Buf, Bytes, BytesMut};

/// Up to here a reply is copied out of the buffer: that costs less than sharing it, and keeps no buffer alive.
const SMALL_BYTES_MAX: usize = 38;

/// The bytes of a whole reply, or of several.
#[derive(Clone, Debug)]
pub struct Reply(Held);

#[derive(Clone, Debug)]
enum Held {
    Small { len: u8, bytes: [u8; SMALL_BYTES_MAX] },
    Shared(Bytes),
}

/// No reply at all.
impl Default for Reply {
    fn default() -> Reply {
        Reply(Held::Small { len: 0, bytes: [0; SMALL_BYTES_MAX] })
    }
}

impl Reply {
    /// Copies a short one; `None` if it is not.
    #[inline]
    pub(crate) fn small(reply: &[u8]) -> Option<Reply> {
        let len = reply.len();
        if len > SMALL_BYTES_MAX {
            return None;
        }
        let mut bytes = [0; SMALL_BYTES_MAX];
        bytes[..len].copy_from_slice(reply);
        Some(Reply(Held::Small { len: len as u8, bytes }))
    }

    pub(crate) fn shared(reply: Bytes) -> Reply {
        Reply(Held::Shared(reply))
    }

    /// Takes the first bytes out of what was read.
    #[inline]
    pub(crate) fn cut(buffer: &mut BytesMut, len: usize) -> Reply {
        match buffer.get(..len).and_then(Reply::small) {
            Some(small) => {
                buffer.advance(len);
                small
            }
            None => Reply::shared(buffer.split_to(len).freeze()),
        }
    }

    /// Whether it is held without memory elsewhere.
    pub(crate) fn is_small(&self) -> bool {
        matches!(self.0, Held::Small { .. })
    }

    /// As it came.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8] {
        match &self.0 {
            Held::Small { len, bytes } => &bytes[..usize::from(*len)],
            Held::Shared(bytes) => bytes,
        }
    }

    /// A cursor at its beginning.
    #[must_use]
    pub fn reader(&self) -> Reader<'_> {
        let owner = match &self.0 {
            Held::Small { .. } => None,
            Held::Shared(bytes) => Some(bytes),
        };
        Reader { parts: ReplyReader::new(self.as_bytes()), owner }
    }

    /// Makes a value of the first reply.
    ///
    /// # Errors
    /// The server's error; [`Kind::UnexpectedReply`] if it is of another type.
    #[inline]
    pub fn read<T: FromReply>(&self) -> Result<T> {
        T::from_reply(&mut self.reader())
    }
}

/// A cursor in the bytes of a reply.
#[derive(Clone, Debug)]
pub struct Reader<'a> {
    parts: ReplyReader<'a>,
    owner: Option<&'a Bytes>,
}

impl<'a> Reader<'a> {
    /// The next part; a server's error is one.
    ///
    /// # Errors
    /// The server's error; [`Kind::Protocol`] if nothing is left.
    #[inline]
    pub fn part(&mut self) -> Result<Part<'a>> {
        match self.parts.part()? {
            Part::Error(message) => Err(Error::server(message)),
            part => Ok(part),
        }
    }

    /// The next part, which stays the next one; a server's error is a part like others.
    ///
    /// # Errors
    /// [`Kind::Protocol`] if nothing is left.
    pub fn peek(&self) -> Result<Part<'a>> {
        Ok(self.parts.peek()?)
    }

    /// Passes over one value with all that it contains.
    ///
    /// # Errors
    /// [`Kind::Protocol`] if nothing is left.
    pub fn skip(&mut self) -> Result<()> {
        Ok(self.parts.skip()?)
    }

    /// The next value with all that it contains.
    ///
    /// # Errors
    /// [`Kind::Protocol`] if nothing is left, or for what is nested deeper than 128 times.
    pub fn value(&mut self) -> Result<Value> {
        Ok(self.parts.value()?)
    }

    /// Whether nothing is left.
    #[must_use]
    pub fn is_at_end(&self) -> bool {
        self.parts.is_at_end()
    }

    /// The bytes of a part of this reply, without a copy if it is a long one.
    pub(crate) fn share(&self, part: &[u8]) -> Bytes {
        match self.owner {
            Some(owner) if !part.is_empty() => owner.slice_ref(part),
            _ => Bytes::copy_from_slice(part),
        }
    }
}

/// What a reply can be made into.
///
/// Implemented for numbers, `bool`, strings, [`Bytes`], `()`, [`Value`], for `Option` (nothing is `None`),
/// `Result` (a server's error within a reply), lists, sets, maps and tuples. RESP2 and RESP3 give the same values.
pub trait FromReply: Sized {
    /// Reads one value.
    ///
    /// # Errors
    /// The server's error; [`Kind::UnexpectedReply`] if it is of another type.
    fn from_reply(reader: &mut Reader<'_>) -> Result<Self>;

    /// Reads `count` values that stand one after the other.
    #[doc(hidden)]
    fn many(reader: &mut Reader<'_>, count: usize, is_map: bool) -> Result<Vec<Self>> {
        let count = if is_map { count.saturating_mul(2) } else { count };
        let mut values = Vec::with_capacity(count.min(COLLECT_MAX));
        for _ in 0..count {
            values.push(Self::from_reply(reader)?);
        }
        Ok(values)
    }

    /// Whether a reply that begins with this part is `None` for an `Option`.
    #[doc(hidden)]
    fn is_nothing(part: &Part<'_>) -> bool {
        *part == Part::Null
    }

    /// What a field of a struct is if the hash has none.
    #[doc(hidden)]
    fn absent() -> Option<Self> {
        None
    }
}

/// Room is made for no more values than this before they are seen.
pub(crate) const COLLECT_MAX: usize = 4096;

impl FromReply for Value {
    fn from_reply(reader: &mut Reader<'_>) -> Result<Value> {
        let value = reader.value()?;
        match value.as_error() {
            Some(message) => Err(Error::server(message)),
            None => Ok(value),
        }
    }
}

impl FromReply for Reply {
    fn from_reply(reader: &mut Reader<'_>) -> Result<Reply> {
        if let Part::Error(message) = reader.peek()? {
            return Err(Error::server(message));
        }
        let rest = reader.parts.rest();
        reader.skip()?;
        let reply = &rest[..rest.len() - reader.parts.rest().len()];
        Ok(Reply::small(reply).unwrap_or_else(|| Reply::shared(reader.share(reply))))
    }
}

impl<T: FromReply> FromReply for Option<T> {
    #[inline]
    fn from_reply(reader: &mut Reader<'_>) -> Result<Option<T>> {
        let mut ahead = reader.clone();
        if T::is_nothing(&ahead.part()?) {
            *reader = ahead;
            return Ok(None);
        }
        T::from_reply(reader).map(Some)
    }

    fn absent() -> Option<Option<T>> {
        Some(None)
    }
}

impl<T: FromReply> FromReply for std::result::Result<T, Error> {
    fn from_reply(reader: &mut Reader<'_>) -> Result<Self> {
        let mut rest = reader.clone();
        rest.skip()?;
        let read = T::from_reply(reader);
        *reader = rest;
        match read {
            Err(error) if matches!(error.kind(), Kind::Protocol) => Err(error),
            read => Ok(read),
        }
    }
}
