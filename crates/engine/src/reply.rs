//! Replies: a handler states the reply, and the session's protocol determines its encoding.
//!
//! A [`ReplyBuffer`] holds the replies of one batch: bytes, and large values that are sent without
//! a copy. [`ReplyBuffer::mark`] and [`ReplyBuffer::truncate`] discard the output of a failed
//! command, so a handler may use `?` after half a reply.

use crate::base::error::CommandError;
use crate::base::number::Digits;
use crate::types::string::{SHARED_MIN, StrRef};
use brisk_resp::Protocol;
use brisk_resp::reply::encode;
use brisk_structures::chunk::ChunkBytes;
use brisk_structures::chunked::ChunkedBytes;
use brisk_structures::listpack::Item;
use std::ops::{Deref, Range};
use std::sync::Arc;

/// How a handler ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// The reply is in the buffer.
    Replied,
    /// The buffer contains a push message, not a reply. It is sent to every client, including
    /// clients that want no replies.
    Pushed,
    /// There is no reply yet: the client waits ([`crate::env::Env::take_waiter`] has the details).
    Waiting,
    /// There is no reply yet: another thread computes it ([`crate::env::Env::take_long`] has the
    /// work).
    Elsewhere,
}

/// Number of bytes of a stream that are written before its length is checked.
const FINISHED_AT_ONCE: usize = 1 << 20;

/// Replies that wait to be sent.
#[derive(Debug, Default)]
pub struct ReplyBuffer {
    bytes: Vec<u8>,
    shared: Vec<SharedPart>,
    shared_bytes: usize,
    /// The part that follows everything else and is not written yet.
    stream: Option<ReplyStream>,
}

/// The rest of a large reply. It is written piece by piece as the client reads, from a view of the
/// value that later changes do not affect.
pub struct ReplyStream {
    write: Box<StreamWriter>,
    protocol: Protocol,
}

/// Appends about this number of bytes. Returns false if nothing is left to write.
type StreamWriter = dyn FnMut(&mut Reply<'_>, usize) -> bool + Send;

impl std::fmt::Debug for ReplyStream {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ReplyStream").finish_non_exhaustive()
    }
}

impl ReplyStream {
    /// Writes about `budget` more bytes. Returns false if nothing is left to write.
    pub fn write(&mut self, buffer: &mut ReplyBuffer, budget: usize) -> bool {
        (self.write)(&mut Reply::new(buffer, self.protocol), budget)
    }
}

/// Bytes that are sent without a copy.
#[derive(Debug)]
pub enum ReplyBytes {
    /// A part of a value. [`brisk_structures::chunk`] counts the memory once the value is gone.
    Chunk(Arc<ChunkBytes>),
    /// Created for the reply.
    Own(Arc<Vec<u8>>),
}

impl Deref for ReplyBytes {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        match self {
            ReplyBytes::Chunk(bytes) => bytes,
            ReplyBytes::Own(bytes) => bytes,
        }
    }
}

/// Bytes of a large value that belong before `bytes[at]`.
#[derive(Debug)]
struct SharedPart {
    at: usize,
    data: ReplyBytes,
    range: Range<usize>,
}

/// A position in a [`ReplyBuffer`] to which it can be truncated.
#[derive(Debug, Clone, Copy)]
pub struct ReplyMark {
    bytes: usize,
    shared: usize,
}

impl ReplyBuffer {
    pub fn new() -> ReplyBuffer {
        ReplyBuffer::default()
    }

    /// Bytes of all replies in the buffer.
    #[inline]
    pub fn len(&self) -> usize {
        self.bytes.len() + self.shared_bytes
    }

    #[inline]
    pub fn is_empty(&self) -> bool {
        self.bytes.is_empty() && self.shared.is_empty()
    }

    #[inline]
    pub fn mark(&self) -> ReplyMark {
        ReplyMark { bytes: self.bytes.len(), shared: self.shared.len() }
    }

    /// Removes everything added since `mark`.
    pub fn truncate(&mut self, mark: ReplyMark) {
        self.bytes.truncate(mark.bytes);
        for part in self.shared.drain(mark.shared..) {
            self.shared_bytes -= part.range.len();
        }
        // The stream belongs to the last reply.
        self.stream = None;
    }

    /// Takes the part that follows the bytes and is not written yet.
    #[inline]
    pub fn take_stream(&mut self) -> Option<ReplyStream> {
        self.stream.take()
    }

    /// Reports whether a part follows the bytes that is not written yet.
    pub fn has_stream(&self) -> bool {
        self.stream.is_some()
    }

    /// Writes the whole rest, for replies that cannot be sent piece by piece.
    pub fn finish(&mut self) {
        self.finish_within(usize::MAX);
    }

    /// Like [`ReplyBuffer::finish`]. Returns false and gives up if all replies together exceed
    /// `bytes_max`.
    pub fn finish_within(&mut self, bytes_max: usize) -> bool {
        if let Some(mut stream) = self.stream.take() {
            while self.len() <= bytes_max && stream.write(self, FINISHED_AT_ONCE) {}
        }
        self.len() <= bytes_max
    }

    /// Appends bytes without copying them.
    fn push_shared(&mut self, data: ReplyBytes, range: Range<usize>) {
        self.shared_bytes += range.len();
        self.shared.push(SharedPart { at: self.bytes.len(), data, range });
    }

    /// Converts the contents into one shared part if they are large. After that, they are not
    /// copied.
    pub fn share(&mut self) {
        if self.shared.is_empty() && self.bytes.len() >= SHARED_MIN {
            let data = Arc::new(std::mem::take(&mut self.bytes));
            let range = 0..data.len();
            self.push_shared(ReplyBytes::Own(data), range);
        }
    }

    /// The bytes, without the large values.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// The bytes, mutable, for replies that are not written by a handler.
    pub fn bytes_mut(&mut self) -> &mut Vec<u8> {
        &mut self.bytes
    }

    pub fn has_shared(&self) -> bool {
        !self.shared.is_empty()
    }

    /// Takes the pieces in the order in which they are sent. The emptied buffer keeps its memory.
    pub fn drain(
        &mut self,
        mut bytes: impl FnMut(&[u8]),
        mut shared: impl FnMut(ReplyBytes, Range<usize>),
    ) {
        let mut sent = 0;
        for part in self.shared.drain(..) {
            bytes(&self.bytes[sent..part.at]);
            sent = part.at;
            shared(part.data, part.range);
        }
        bytes(&self.bytes[sent..]);
        self.clear();
    }

    /// Empties the buffer and frees the memory that a large reply needed.
    pub fn clear(&mut self) {
        const KEPT_BYTES_MAX: usize = 256 * 1024;
        self.shared.clear();
        self.shared_bytes = 0;
        self.stream = None;
        self.bytes.clear();
        if self.bytes.capacity() > KEPT_BYTES_MAX {
            self.bytes = Vec::with_capacity(KEPT_BYTES_MAX);
        }
    }
}

/// The destination of a handler's reply. The methods return [`Outcome::Replied`], so that a handler
/// can end with one of them.
pub struct Reply<'a> {
    buffer: &'a mut ReplyBuffer,
    protocol: Protocol,
}

impl<'a> Reply<'a> {
    #[inline]
    pub fn new(buffer: &'a mut ReplyBuffer, protocol: Protocol) -> Reply<'a> {
        Reply { buffer, protocol }
    }

    /// The protocol, for the few replies whose form differs between protocols in Redis.
    pub fn protocol(&self) -> Protocol {
        self.protocol
    }

    /// Sets the protocol, for the commands that change it: their own reply uses the new one.
    pub fn set_protocol(&mut self, protocol: Protocol) {
        self.protocol = protocol;
    }

    pub fn buffer(&mut self) -> &mut ReplyBuffer {
        self.buffer
    }

    /// Number of bytes written so far, including earlier replies.
    #[inline]
    pub fn written(&self) -> usize {
        self.buffer.len()
    }

    /// Ends a large reply. `write` appends about the requested number of bytes whenever the client
    /// has read the previous ones, and returns false when nothing is left. `write` must own a view
    /// of the value, so that the reply shows the value as it was when the command ran. Nothing may
    /// be written after this call.
    pub fn stream(
        &mut self,
        write: impl FnMut(&mut Reply<'_>, usize) -> bool + Send + 'static,
    ) -> Outcome {
        debug_assert!(self.buffer.stream.is_none(), "a second stream in one reply");
        let stream = ReplyStream { write: Box::new(write), protocol: self.protocol };
        self.buffer.stream = Some(stream);
        Outcome::Replied
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

    /// The lines of a HELP text of the command `name`, framed as Redis frames them.
    pub fn help(&mut self, name: &str, lines: &[&str]) -> Outcome {
        self.array(lines.len() + 3);
        self.simple(&format!("{name} <subcommand> [<arg> [value] [opt] ...]. Subcommands are:"));
        for line in lines {
            self.simple(line);
        }
        self.simple("HELP");
        self.simple("    Prints this help.")
    }

    /// A status reply with a fixed text.
    #[inline]
    pub fn word(&mut self, text: &'static str) -> Outcome {
        encode::word(&mut self.buffer.bytes, text);
        Outcome::Replied
    }

    pub fn error(&mut self, error: &CommandError) -> Outcome {
        encode::error(&mut self.buffer.bytes, &error.wire());
        Outcome::Replied
    }

    /// An error given as its text, including the error code.
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

    /// An integer as a bulk string. Not inlined, so that loops over elements stay small enough to
    /// be inlined.
    #[inline(never)]
    pub fn bulk_integer(&mut self, number: i64) -> Outcome {
        self.bulk(Digits::new().format(number))
    }

    /// A string value in its stored form. Large strings are not copied.
    #[inline]
    pub fn string(&mut self, value: &StrRef<'_>) -> Outcome {
        match value {
            StrRef::Bytes(bytes) => self.bulk(bytes),
            StrRef::Int(number) => self.bulk_integer(*number),
            StrRef::Chunked(data) => self.bulk_chunked(data, 0..data.len()),
        }
    }

    /// A bulk string that is sent without a copy.
    pub fn bulk_shared(&mut self, data: Arc<Vec<u8>>) -> Outcome {
        let range = 0..data.len();
        self.bulk_head(range.len());
        self.buffer.push_shared(ReplyBytes::Own(data), range);
        self.buffer.bytes.extend_from_slice(b"\r\n");
        Outcome::Replied
    }

    /// A part of a long string as a bulk string. Large parts are sent without a copy.
    #[cold]
    pub fn bulk_chunked(&mut self, data: &ChunkedBytes, range: Range<usize>) -> Outcome {
        let range = range.start..range.end.min(data.len());
        self.bulk_head(range.len());
        if range.len() < SHARED_MIN {
            data.pieces(range).for_each(|piece| self.buffer.bytes.extend_from_slice(piece));
        } else {
            for (chunk, part) in data.parts(range) {
                self.buffer.push_shared(ReplyBytes::Chunk(chunk.lend()), part);
            }
        }
        self.buffer.bytes.extend_from_slice(b"\r\n");
        Outcome::Replied
    }

    fn bulk_head(&mut self, len: usize) {
        self.buffer.bytes.push(b'$');
        self.buffer.bytes.extend_from_slice(Digits::new().format(len as i64));
        self.buffer.bytes.extend_from_slice(b"\r\n");
    }

    /// An element of a collection in its stored form.
    #[inline(always)]
    pub fn item(&mut self, item: Item<'_>) -> Outcome {
        match item {
            Item::Int(number) => self.bulk_integer(number),
            Item::Str(text) => self.bulk(text),
        }
    }

    /// Appends replies that were written before. Shared parts stay shared.
    pub fn append(&mut self, mut written: ReplyBuffer) -> Outcome {
        let at = self.buffer.bytes.len();
        let parts = written.shared.drain(..).map(|part| SharedPart { at: at + part.at, ..part });
        self.buffer.shared.extend(parts);
        self.buffer.shared_bytes += written.shared_bytes;
        self.buffer.bytes.append(&mut written.bytes);
        debug_assert!(written.stream.is_none(), "what is written is written whole");
        Outcome::Replied
    }

    /// Inserts the output of `write` before everything written since `mark`: for the header of a
    /// list whose length is known only at its end. O(bytes since the mark).
    pub fn before(&mut self, mark: ReplyMark, write: impl FnOnce(&mut Reply<'_>)) -> Outcome {
        let end = self.buffer.bytes.len();
        write(self);
        let added = self.buffer.bytes.len() - end;
        self.buffer.bytes[mark.bytes..].rotate_right(added);
        self.buffer.shared[mark.shared..].iter_mut().for_each(|part| part.at += added);
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_buffer_that_was_drained_is_empty() {
        let mut buffer = ReplyBuffer::new();
        for _ in 0..2 {
            Reply::new(&mut buffer, Protocol::Resp2).bulk_shared(Arc::new(vec![b'v'; 100]));
            assert_eq!(buffer.len(), "$100\r\n".len() + 100 + "\r\n".len());
            let wire = std::cell::RefCell::new(Vec::new());
            buffer.drain(
                |bytes| wire.borrow_mut().extend_from_slice(bytes),
                |data, range| wire.borrow_mut().extend_from_slice(&data[range]),
            );
            assert_eq!(wire.into_inner().len(), 108);
            assert!(buffer.is_empty());
            assert_eq!(buffer.len(), 0);
        }
    }
}
