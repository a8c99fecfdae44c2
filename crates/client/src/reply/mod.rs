//! Replies: the received bytes, and their conversion to values.
//!
//! | part | what it is |
//! |---|---|
//! | [`Reply`] | the bytes of a reply, not parsed yet |
//! | [`FromReply`] | conversion to a value |
//! | `scalars`, `collections` | the implementations for standard types |
//!
//! There is no intermediate tree: a `Vec<String>` is filled directly from the received bytes. A [`bytes::Bytes`] is a
//! slice of the receive buffer, not a copy, and keeps that buffer alive.

mod collections;
mod scalars;

use crate::error::{Error, Kind, Result};
use brisk_resp::reply::read::{Part, ReplyReader};
use brisk_resp::reply::value::Value;
use bytes::{Buf, Bytes, BytesMut};
use std::fmt;

/// A reply up to this size is copied out of the buffer. A copy costs less than sharing the buffer, and does not keep
/// the buffer alive.
const SMALL_BYTES_MAX: usize = 38;

/// The bytes of a whole reply, or of several replies, to be converted later. `Debug` shows their number, but not the
/// bytes, which may be secrets.
#[derive(Clone)]
pub struct Reply(Held);

#[derive(Clone)]
enum Held {
    Small { len: u8, bytes: [u8; SMALL_BYTES_MAX] },
    Shared(Bytes),
}

impl fmt::Debug for Reply {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Reply").field("bytes", &self.as_bytes().len()).finish()
    }
}

impl fmt::Debug for Reader<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Reader").finish_non_exhaustive()
    }
}

/// An empty buffer without a reply.
impl Default for Reply {
    fn default() -> Reply {
        Reply(Held::Small { len: 0, bytes: [0; SMALL_BYTES_MAX] })
    }
}

impl Reply {
    /// Copies a short reply; `None` if it is not short.
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

    /// Takes the first `len` bytes out of the buffer.
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

    /// Reports whether the reply is held without a shared buffer.
    pub(crate) fn is_small(&self) -> bool {
        matches!(self.0, Held::Small { .. })
    }

    /// Returns the bytes as received.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8] {
        match &self.0 {
            Held::Small { len, bytes } => &bytes[..usize::from(*len)],
            Held::Shared(bytes) => bytes,
        }
    }

    /// Returns a reader that starts at the beginning of the reply.
    #[must_use]
    pub fn reader(&self) -> Reader<'_> {
        let owner = match &self.0 {
            Held::Small { .. } => None,
            Held::Shared(bytes) => Some(bytes),
        };
        Reader { parts: ReplyReader::new(self.as_bytes()), owner }
    }

    /// Converts the first reply to a value.
    ///
    /// # Errors
    /// The server's error; [`Kind::UnexpectedReply`] if the reply is of another type.
    #[inline]
    pub fn read<T: FromReply>(&self) -> Result<T> {
        T::from_reply(&mut self.reader())
    }
}

/// A cursor over the bytes of a reply. `Debug` does not show the bytes.
#[derive(Clone)]
pub struct Reader<'a> {
    parts: ReplyReader<'a>,
    owner: Option<&'a Bytes>,
}

impl<'a> Reader<'a> {
    /// Returns the next part, and advances. An error reply is returned as `Err`.
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

    /// Returns the next part without advancing. An error reply is returned as a part.
    ///
    /// # Errors
    /// [`Kind::Protocol`] if nothing is left.
    pub fn peek(&self) -> Result<Part<'a>> {
        Ok(self.parts.peek()?)
    }

    /// Skips one value, including nested values.
    ///
    /// # Errors
    /// [`Kind::Protocol`] if nothing is left.
    pub fn skip(&mut self) -> Result<()> {
        Ok(self.parts.skip()?)
    }

    /// Returns the next value, including nested values.
    ///
    /// # Errors
    /// [`Kind::Protocol`] if nothing is left, or if values are nested more than 128 levels deep.
    pub fn value(&mut self) -> Result<Value> {
        Ok(self.parts.value()?)
    }

    /// Returns whether nothing is left.
    #[must_use]
    pub fn is_at_end(&self) -> bool {
        self.parts.is_at_end()
    }

    /// The bytes of a part of this reply, without a copy if the reply is in a shared buffer.
    pub(crate) fn share(&self, part: &[u8]) -> Bytes {
        match self.owner {
            Some(owner) if !part.is_empty() => owner.slice_ref(part),
            _ => Bytes::copy_from_slice(part),
        }
    }
}

/// A type that a reply can be converted to.
///
/// The trait is implemented for numbers, `bool`, strings, [`Bytes`], `()`, [`Value`], `Option` (a null reply is
/// `None`), `Result` (an error within a reply), lists, sets, maps and tuples. RESP2 and RESP3 give the same values.
pub trait FromReply: Sized {
    /// Reads one value.
    ///
    /// # Errors
    /// The server's error; [`Kind::UnexpectedReply`] if the reply is of another type.
    fn from_reply(reader: &mut Reader<'_>) -> Result<Self>;

    /// Reads `count` consecutive values.
    #[doc(hidden)]
    fn many(reader: &mut Reader<'_>, count: usize, is_map: bool) -> Result<Vec<Self>> {
        let count = if is_map { count.saturating_mul(2) } else { count };
        let mut values = Vec::with_capacity(count.min(COLLECT_MAX));
        for _ in 0..count {
            values.push(Self::from_reply(reader)?);
        }
        Ok(values)
    }

    /// Reports whether a reply that begins with this part is `None` for an `Option`.
    #[doc(hidden)]
    fn is_nothing(part: &Part<'_>) -> bool {
        *part == Part::Null
    }

    /// The value of a struct's field if the hash does not have it.
    #[doc(hidden)]
    fn absent() -> Option<Self> {
        None
    }
}

/// The maximum number of elements for which memory is reserved before they are read.
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
