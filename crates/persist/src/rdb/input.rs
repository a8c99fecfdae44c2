//! The source of bytes: a slice, or a reader.
//!
//! Lengths in the data are not trusted: memory grows only with the bytes that arrive.

use crate::crc64::crc64;
use crate::error::LoadError;
use std::io::{ErrorKind, Read};

/// Number of bytes that are requested from a reader at a time.
const BUFFER_BYTES: usize = 64 << 10;

pub(super) trait Input {
    /// Returns the number of bytes taken so far.
    fn position(&self) -> u64;
    fn fill_exactly(&mut self, out: &mut [u8]) -> Result<(), LoadError>;
    /// Appends the next `len` bytes to `out`, which grows to at most twice the bytes that arrive.
    fn append(&mut self, len: u64, out: &mut Vec<u8>) -> Result<(), LoadError>;
    fn skip(&mut self, len: u64) -> Result<(), LoadError>;
    /// Returns the next `len` bytes, borrowed from the input if possible, otherwise copied into
    /// `room`.
    fn bytes<'b>(&'b mut self, len: u64, room: &'b mut Vec<u8>) -> Result<&'b [u8], LoadError>;

    fn array<const N: usize>(&mut self) -> Result<[u8; N], LoadError> {
        let mut bytes = [0; N];
        self.fill_exactly(&mut bytes)?;
        Ok(bytes)
    }

    fn byte(&mut self) -> Result<u8, LoadError> {
        let [byte] = self.array()?;
        Ok(byte)
    }
}

/// An input whose bytes are all in memory.
pub(super) struct SliceInput<'a> {
    bytes: &'a [u8],
    at: usize,
    /// Position of the first byte.
    base: u64,
}

impl<'a> SliceInput<'a> {
    pub(super) fn new(bytes: &'a [u8]) -> Self {
        Self::part(bytes, 0)
    }

    /// Creates an input for a part of a file that begins at `base`.
    pub(super) fn part(bytes: &'a [u8], base: u64) -> Self {
        Self { bytes, at: 0, base }
    }

    /// Returns the number of bytes taken.
    pub(super) fn taken(&self) -> usize {
        self.at
    }

    pub(super) fn rest(&self) -> &'a [u8] {
        &self.bytes[self.at..]
    }

    #[inline]
    pub(super) fn take(&mut self, len: u64) -> Result<&'a [u8], LoadError> {
        let rest = self.rest();
        match usize::try_from(len).ok().and_then(|len| rest.get(..len)) {
            Some(taken) => {
                self.at += taken.len();
                Ok(taken)
            }
            None => Err(LoadError::Truncated { offset: self.base + self.bytes.len() as u64 }),
        }
    }
}

impl Input for SliceInput<'_> {
    fn position(&self) -> u64 {
        self.base + self.at as u64
    }

    #[inline]
    fn fill_exactly(&mut self, out: &mut [u8]) -> Result<(), LoadError> {
        out.copy_from_slice(self.take(out.len() as u64)?);
        Ok(())
    }

    fn append(&mut self, len: u64, out: &mut Vec<u8>) -> Result<(), LoadError> {
        out.extend_from_slice(self.take(len)?);
        Ok(())
    }

    fn skip(&mut self, len: u64) -> Result<(), LoadError> {
        self.take(len).map(|_| ())
    }

    fn bytes<'b>(&'b mut self, len: u64, _: &'b mut Vec<u8>) -> Result<&'b [u8], LoadError> {
        self.take(len)
    }
}

/// A buffered reader that computes the checksum of the bytes taken from it.
pub(super) struct StreamInput<R> {
    reader: R,
    buffer: Box<[u8]>,
    /// The next byte to take, and the end of the data, both as indices into the buffer.
    at: usize,
    end: usize,
    /// Position of the buffer's first byte.
    base: u64,
    /// The checksum of everything before index `summed` of the buffer.
    crc: u64,
    summed: usize,
}

impl<R: Read> StreamInput<R> {
    pub(super) fn new(reader: R) -> Self {
        let buffer = vec![0; BUFFER_BYTES].into_boxed_slice();
        Self { reader, buffer, at: 0, end: 0, base: 0, crc: 0, summed: 0 }
    }

    /// Returns the checksum of everything taken so far.
    pub(super) fn checksum(&mut self) -> u64 {
        self.crc = crc64(self.crc, &self.buffer[self.summed..self.at]);
        self.summed = self.at;
        self.crc
    }

    /// Returns the bytes that were read but not taken, and the reader, which continues after them.
    pub(super) fn into_rest(self) -> (Vec<u8>, R) {
        (self.buffer[self.at..self.end].to_vec(), self.reader)
    }

    /// Takes up to `len` bytes from the buffer, at least one.
    fn some(&mut self, len: u64) -> Result<&[u8], LoadError> {
        if self.at == self.end {
            self.checksum();
            self.base += self.end as u64;
            (self.at, self.end, self.summed) = (0, 0, 0);
            self.end = loop {
                match self.reader.read(&mut self.buffer) {
                    Ok(0) => return Err(LoadError::Truncated { offset: self.base }),
                    // Do not trust a reader that claims more bytes than there is room for.
                    Ok(read) => break read.min(self.buffer.len()),
                    Err(error) if error.kind() == ErrorKind::Interrupted => {}
                    Err(error) => return Err(error.into()),
                }
            };
        }
        let available = self.end - self.at;
        let taken = usize::try_from(len).map_or(available, |len| len.min(available));
        let from = self.at;
        self.at += taken;
        Ok(&self.buffer[from..from + taken])
    }
}

impl<R: Read> Input for StreamInput<R> {
    fn position(&self) -> u64 {
        self.base + self.at as u64
    }

    fn fill_exactly(&mut self, out: &mut [u8]) -> Result<(), LoadError> {
        let mut filled = 0;
        while filled < out.len() {
            let some = self.some((out.len() - filled) as u64)?;
            out[filled..filled + some.len()].copy_from_slice(some);
            filled += some.len();
        }
        Ok(())
    }

    fn append(&mut self, len: u64, out: &mut Vec<u8>) -> Result<(), LoadError> {
        let mut left = len;
        while left > 0 {
            let some = self.some(left)?;
            out.extend_from_slice(some);
            left -= some.len() as u64;
        }
        Ok(())
    }

    fn skip(&mut self, len: u64) -> Result<(), LoadError> {
        let mut left = len;
        while left > 0 {
            left -= self.some(left)?.len() as u64;
        }
        Ok(())
    }

    fn bytes<'b>(&'b mut self, len: u64, room: &'b mut Vec<u8>) -> Result<&'b [u8], LoadError> {
        room.clear();
        self.append(len, room)?;
        Ok(room)
    }
}
