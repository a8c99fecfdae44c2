//! Splits a whole RDB file into blocks of entries. This file only finds the ends of entries, which
//! takes a small fraction of the time that building their values takes. Other threads build the
//! values.

use super::block::RdbBlock;
use super::input::{Input, SliceInput};
use super::opcode;
use super::primitive::Decoder;
use super::reader::{
    CHECKSUM_SINCE, HEADER_BYTES, KeyMetadata, RdbEvent, compared, version_of_header,
};
use super::skip::SkipEnd;
use crate::crc64::crc64;
use crate::error::LoadError;
use std::io::Read;

/// A block ends when its entries have this many bytes. The last entry may have any size.
const BLOCK_BYTES: usize = 256 << 10;
/// Minimum number of bytes that are requested from the reader at a time. For a longer entry, the
/// splitter requests as many bytes as it already has: memory grows to twice the bytes that arrived.
const READ_BYTES: usize = 256 << 10;

/// A part of a file.
#[derive(Debug)]
pub enum RdbPiece {
    /// An item that is not an entry, and not part of a block.
    Section(RdbEvent),
    /// Entries of one database.
    Entries(RdbBlock),
}

/// Reads a file, splits it, and computes the checksum.
pub struct RdbSplitter<R> {
    reader: R,
    version: u32,
    ignores_checksum: bool,
    ended: bool,
    /// The bytes that were read. Those before `at` were already returned.
    buffer: Vec<u8>,
    at: usize,
    /// Position of the buffer's first byte.
    base: u64,
    /// The checksum of everything returned so far.
    crc: u64,
}

impl<R: Read> RdbSplitter<R> {
    /// Creates a splitter and reads the header.
    ///
    /// # Errors
    /// Fails if this is not an RDB file, or if its version cannot be read.
    pub fn new(reader: R) -> Result<Self, LoadError> {
        let mut splitter = RdbSplitter {
            reader,
            version: 0,
            ignores_checksum: false,
            ended: false,
            buffer: Vec::new(),
            at: 0,
            base: 0,
            crc: 0,
        };
        let header = splitter.parse(|decoder| decoder.input.array::<HEADER_BYTES>())?;
        splitter.version = version_of_header(header)?;
        Ok(splitter)
    }

    /// Does not compare the checksum at the end.
    #[must_use]
    pub fn ignore_checksum(mut self) -> Self {
        self.ignores_checksum = true;
        self
    }

    /// Returns the number of bytes of the file returned so far.
    #[must_use]
    pub fn position(&self) -> u64 {
        self.base + self.at as u64
    }

    /// Returns the next piece; `None` after the end. O(its bytes).
    ///
    /// # Errors
    /// See [`LoadError`]. All entries before the fault have been returned by then. The splitter
    /// must not be used after an error.
    pub fn next_piece(&mut self) -> Result<Option<RdbPiece>, LoadError> {
        if self.ended {
            return Ok(None);
        }
        loop {
            let base = self.position();
            let mut decoder =
                Decoder::new(SliceInput::part(&self.buffer[self.at..], base), self.version);
            let (whole, stop) = decoder.skip_entries(BLOCK_BYTES);
            match stop {
                _ if whole >= BLOCK_BYTES => {
                    return Ok(Some(RdbPiece::Entries(self.take_block(whole))));
                }
                SkipEnd::Failed(LoadError::Truncated { .. }) if self.read_more()? => {}
                _ if whole > 0 => return Ok(Some(RdbPiece::Entries(self.take_block(whole)))),
                SkipEnd::Failed(error) => return Err(error),
                SkipEnd::Enough | SkipEnd::Section => {
                    if let Some(event) = self.section()? {
                        return Ok(Some(RdbPiece::Section(event)));
                    }
                }
            }
        }
    }

    /// Takes whole entries out of the buffer.
    fn take_block(&mut self, len: usize) -> RdbBlock {
        let end = self.at + len;
        self.crc = crc64(self.crc, &self.buffer[self.at..end]);
        let mut rest = Vec::with_capacity(self.buffer.len() - end + READ_BYTES);
        rest.extend_from_slice(&self.buffer[end..]);
        let base = self.base;
        self.base += end as u64;
        let mut bytes = std::mem::replace(&mut self.buffer, rest);
        bytes.truncate(end);
        let start = std::mem::take(&mut self.at);
        RdbBlock::new(bytes, start, base + start as u64, self.version)
    }

    /// Reads an item between entries. Returns `None` for items that are not reported.
    fn section(&mut self) -> Result<Option<RdbEvent>, LoadError> {
        let event = self.parse(|decoder| {
            // Metadata here belongs to no key.
            let code = loop {
                let code = decoder.input.byte()?;
                if !decoder.read_metadata(code, &mut KeyMetadata::default())? {
                    break code;
                }
            };
            if code == opcode::EOF { Ok(None) } else { decoder.section(code, false).map(Some) }
        })?;
        if let Some(event) = event {
            return Ok(event);
        }
        self.ended = true;
        let computed = self.crc;
        let stored = match self.version {
            ..CHECKSUM_SINCE => 0,
            _ => u64::from_le_bytes(self.parse(|decoder| decoder.input.array())?),
        };
        compared(stored, computed, self.ignores_checksum)
            .map(|checksum| Some(RdbEvent::End(checksum)))
    }

    /// Runs `parse` at the front of the buffer, and reads more until it has the bytes that it
    /// needs.
    fn parse<T>(
        &mut self,
        parse: impl Fn(&mut Decoder<SliceInput<'_>>) -> Result<T, LoadError>,
    ) -> Result<T, LoadError> {
        loop {
            let input = SliceInput::part(&self.buffer[self.at..], self.position());
            let mut decoder = Decoder::new(input, self.version);
            match parse(&mut decoder) {
                Ok(parsed) => {
                    let end = self.at + decoder.input.taken();
                    self.crc = crc64(self.crc, &self.buffer[self.at..end]);
                    self.at = end;
                    return Ok(parsed);
                }
                Err(LoadError::Truncated { .. }) if self.read_more()? => {}
                Err(error) => return Err(error),
            }
        }
    }

    /// Reads more bytes into the buffer. Returns false at the end of the file.
    fn read_more(&mut self) -> Result<bool, LoadError> {
        self.base += self.at as u64;
        self.buffer.drain(..std::mem::take(&mut self.at));
        let most = self.buffer.len().max(READ_BYTES);
        let read = self.reader.by_ref().take(most as u64).read_to_end(&mut self.buffer)?;
        Ok(read > 0)
    }
}
