//! A whole RDB file in blocks of entries. Only where they end is found out here, which takes a
//! small part of the time that building their values does: that is left to other threads.

use super::block::Block;
use super::input::{Input, SliceInput};
use super::opcode;
use super::primitive::Decoder;
use super::reader::{CHECKSUM_SINCE, Event, HEADER_BYTES, Notes, compared, version_of_header};
use super::skip::Stop;
use crate::crc64::crc64;
use crate::error::LoadError;
use std::io::Read;

/// A block is given out when its entries have so many bytes; the last entry may be of any size.
const BLOCK_BYTES: usize = 256 << 10;
/// Bytes asked from the reader at a time, at least. For an entry that is longer it is as much as
/// there is of it: memory grows to twice what came.
const READ_BYTES: usize = 256 << 10;

/// What comes next in a file.
#[derive(Debug)]
pub enum Piece {
    /// What is no entry: nothing of it is in a block.
    Section(Event),
    /// Entries of one database.
    Entries(Block),
}

/// Reads a file and splits it; makes the checksum.
pub struct Splitter<R> {
    reader: R,
    version: u32,
    ignores_checksum: bool,
    ended: bool,
    /// What was read; the bytes before `at` were given out.
    buffer: Vec<u8>,
    at: usize,
    /// Position of the buffer's first byte.
    base: u64,
    /// The checksum of all that was given out.
    crc: u64,
}

impl<R: Read> Splitter<R> {
    /// Reads the header.
    ///
    /// # Errors
    /// If this is no RDB file, or of a version that cannot be read.
    pub fn new(reader: R) -> Result<Self, LoadError> {
        let mut splitter = Splitter {
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

    /// Bytes of the file given out so far.
    #[must_use]
    pub fn position(&self) -> u64 {
        self.base + self.at as u64
    }

    /// What comes next; `None` behind the end. O(its bytes).
    ///
    /// # Errors
    /// As [`LoadError`] says, when all entries before were given out. The splitter is of no more
    /// use then.
    pub fn next_piece(&mut self) -> Result<Option<Piece>, LoadError> {
        if self.ended {
            return Ok(None);
        }
        loop {
            let base = self.position();
            let mut decoder =
                Decoder::new(SliceInput::part(&self.buffer[self.at..], base), self.version);
            let (whole, stop) = decoder.skip_entries(BLOCK_BYTES);
            match stop {
                _ if whole >= BLOCK_BYTES => return Ok(Some(Piece::Entries(self.cut(whole)))),
                Stop::Failed(LoadError::Truncated { .. }) if self.read_more()? => {}
                _ if whole > 0 => return Ok(Some(Piece::Entries(self.cut(whole)))),
                Stop::Failed(error) => return Err(error),
                Stop::Enough | Stop::Section => {
                    if let Some(event) = self.section()? {
                        return Ok(Some(Piece::Section(event)));
                    }
                }
            }
        }
    }

    /// Takes whole entries out of the buffer.
    fn cut(&mut self, len: usize) -> Block {
        let end = self.at + len;
        self.crc = crc64(self.crc, &self.buffer[self.at..end]);
        let mut rest = Vec::with_capacity(self.buffer.len() - end + READ_BYTES);
        rest.extend_from_slice(&self.buffer[end..]);
        let base = self.base;
        self.base += end as u64;
        let mut bytes = std::mem::replace(&mut self.buffer, rest);
        bytes.truncate(end);
        let start = std::mem::take(&mut self.at);
        Block::new(bytes, start, base + start as u64, self.version)
    }

    /// What stands between entries; `None` if it is nothing to tell of.
    fn section(&mut self) -> Result<Option<Event>, LoadError> {
        let event = self.parse(|decoder| {
            // What was noted belongs to no key.
            let code = loop {
                let code = decoder.input.byte()?;
                if !decoder.note(code, &mut Notes::default())? {
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
        compared(stored, computed, self.ignores_checksum).map(|checksum| Some(Event::End(checksum)))
    }

    /// Has `parse` take something from the front of the buffer, with as much there as it needs.
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

    /// Reads what follows the buffer; false at the end.
    fn read_more(&mut self) -> Result<bool, LoadError> {
        self.base += self.at as u64;
        self.buffer.drain(..std::mem::take(&mut self.at));
        let most = self.buffer.len().max(READ_BYTES);
        let read = self.reader.by_ref().take(most as u64).read_to_end(&mut self.buffer)?;
        Ok(read > 0)
    }
}
