//! Where bytes come from: a slice, or a reader of which nothing is known.
//!
//! Lengths that were read are not trusted: memory for bytes grows as they come.

use crate::crc64::crc64;
use crate::error::LoadError;
use std::io::{ErrorKind, Read};

/// Bytes asked from a reader at a time.
const BUFFER_BYTES: usize = 64 << 10;

pub(super) trait Input {
    /// Bytes taken so far.
    fn position(&self) -> u64;
    fn fill_exactly(&mut self, out: &mut [u8]) -> Result<(), LoadError>;
    /// Appends the next `len` bytes to `out`, which grows by no more than twice what comes.
    fn append(&mut self, len: u64, out: &mut Vec<u8>) -> Result<(), LoadError>;
    fn skip(&mut self, len: u64) -> Result<(), LoadError>;
    /// The next `len` bytes: where they stand, or in `room`.
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

/// Bytes that are all there.
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

    /// A part of a file that begins at `base` there.
    pub(super) fn part(bytes: &'a [u8], base: u64) -> Self {
        Self { bytes, at: 0, base }
    }

    /// How many bytes were taken.
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

/// A reader with a buffer, which makes the checksum of what is taken from it.
pub(super) struct StreamInput<R> {
    reader: R,
    buffer: Box<[u8]>,
    /// What is taken next, and where the bytes in the buffer end.
    at: usize,
    end: usize,
    /// Position of the buffer's first byte.
    base: u64,
    /// The checksum of all before `summed` in the buffer.
    crc: u64,
    summed: usize,
}

impl<R: Read> StreamInput<R> {
    pub(super) fn new(reader: R) -> Self {
        let buffer = vec![0; BUFFER_BYTES].into_boxed_slice();
        Self { reader, buffer, at: 0, end: 0, base: 0, crc: 0, summed: 0 }
    }

    /// The checksum of everything taken so far.
    pub(super) fn checksum(&mut self) -> u64 {
        self.crc = crc64(self.crc, &self.buffer[self.summed..self.at]);
        self.summed = self.at;
        self.crc
    }

    /// The bytes read but not taken, and the reader that goes on behind them.
    pub(super) fn into_rest(self) -> (Vec<u8>, R) {
        (self.buffer[self.at..self.end].to_vec(), self.reader)
    }

    /// Up to `len` bytes of the buffer, at least one.
    fn some(&mut self, len: u64) -> Result<&[u8], LoadError> {
        if self.at == self.end {
            self.checksum();
            self.base += self.end as u64;
            (self.at, self.end, self.summed) = (0, 0, 0);
            self.end = loop {
                match self.reader.read(&mut self.buffer) {
                    Ok(0) => return Err(LoadError::Truncated { offset: self.base }),
                    // A reader that claims more than there is room for is not believed.
                    Ok(read) => break read.min(self.buffer.len()),
                    Err(error) if error.kind() == ErrorKind::Interrupted => {}
                    Err(error) => return Err(error.into()),
                }
            };
        }
        let there = self.end - self.at;
        let taken = usize::try_from(len).map_or(there, |len| len.min(there));
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
