//! Reads a file of commands as a stream of events.
//!
//! How a file may end
//! - `Ok(None)`: the file is complete.
//! - [`AofError::Torn`]: the last command, line or batch is incomplete, or the bytes of the last
//!   batch do not match its checksum. A crash leaves files in this state.
//! - [`AofError::OpenMulti`]: the file ends with commands of a transaction without its EXEC.
//! - [`AofError::Damaged`]: everything else. This includes a faulty batch that must once have been
//!   complete, because a later batch follows it or another server has continued the file.
//!
//! The bytes of a batch are compared with their checksum before any of its commands is returned.
//! For this, a batch of up to [`BATCH_BUFFERED_MAX`] bytes is read into the buffer. A larger batch,
//! which contains a large transaction, is read twice, so the source must support seeking. Apart
//! from batches, memory is bounded by the largest command. It grows with the bytes that arrive, not
//! with the announced lengths.
//!
//! Commands stay in the buffer until the next event is requested. Nothing is copied or allocated
//! for them, except that a command that reaches the end of the buffer is first moved to the
//! buffer's beginning.

use crate::aof::annotation::{self, Annotation, BatchLine, LINE_BYTES_MAX};
use crate::aof::command::{AofCommand, CommandParser, ParseStep};
use crate::aof::fault::{AofError, Fault, FaultKind};
use crate::aof::tail::{self, SuspectBatch};
use crate::aof::writer::crc32c;
use std::io::{ErrorKind, Read, Result as IoResult, Seek, SeekFrom};

/// Size of the buffer in bytes, and the number of bytes that are requested from the source at a
/// time.
const BUFFER_BYTES: usize = 256 << 10;
/// Capacity in bytes above which the buffer is freed after the item that needed it. Usual batches
/// have half this size.
const BUFFER_KEPT_MAX: usize = 2 << 20;
/// Batches up to this size are held in memory as a whole.
const BATCH_BUFFERED_MAX: u64 = 64 << 20;

/// Returns true if a file begins with an RDB file, which must be read before its commands. The
/// source is positioned at its beginning afterwards.
///
/// # Errors
/// Returns the errors of the source.
pub fn has_preamble<R: Read + Seek>(source: &mut R) -> IoResult<bool> {
    source.rewind()?;
    let mut start = Vec::new();
    source.take(6).read_to_end(&mut start)?;
    source.rewind()?;
    Ok(start.starts_with(b"REDIS") || start == b"VALKEY")
}

/// An item of a file of commands, and its position.
#[derive(Debug, Clone, Copy)]
pub struct AofEvent<'a> {
    /// Offset of its first byte.
    pub start: u64,
    /// Offset after its last byte.
    pub end: u64,
    pub kind: AofEventKind<'a>,
}

/// The items of a file of commands.
#[derive(Debug, Clone, Copy)]
pub enum AofEventKind<'a> {
    Command(AofCommand<'a>),
    /// The following commands ran in this second (Unix time) or later.
    Timestamp(i64),
    /// A batch begins. The commands up to `end` belong together, and their checksum is correct.
    Batch {
        /// The ticket of the last transaction in the batch.
        ticket: u64,
        /// Offset after the batch.
        end: u64,
    },
    /// Any other line that begins with `#`, including its line end.
    Annotation(&'a [u8]),
}

/// Reads one file of commands.
#[derive(Debug)]
pub struct AofReader<R> {
    source: R,
    buffer: Vec<u8>,
    /// The next byte to parse, and the end of the data, both as indices into the buffer.
    at: usize,
    end: usize,
    /// File offset of the buffer's first byte.
    base: u64,
    parser: CommandParser,
    /// End of the current batch.
    batch_end: Option<u64>,
    /// [`BATCH_BUFFERED_MAX`], or less in tests.
    batch_buffered_max: u64,
    /// True if a batch was the last item, so that another batch is expected.
    after_batch: bool,
    /// Start of the current transaction.
    multi: Option<u64>,
}

impl<R: Read + Seek> AofReader<R> {
    /// Creates a reader that starts at `position`: 0, or the end of the RDB file at the beginning
    /// (see [`has_preamble`] and [`RdbReader::position`](crate::rdb::RdbReader::position)).
    ///
    /// # Errors
    /// Fails if the source cannot seek.
    pub fn new(mut source: R, position: u64) -> IoResult<Self> {
        source.seek(SeekFrom::Start(position))?;
        Ok(AofReader {
            source,
            buffer: vec![0; BUFFER_BYTES],
            at: 0,
            end: 0,
            base: position,
            parser: CommandParser::default(),
            batch_end: None,
            batch_buffered_max: BATCH_BUFFERED_MAX,
            after_batch: false,
            multi: None,
        })
    }

    /// Returns the file offset of the next event, for progress reports.
    #[must_use]
    pub fn position(&self) -> u64 {
        self.base + self.at as u64
    }

    /// Returns the offset at which the file can be truncated without losing anything complete: the
    /// start of an open transaction, or the next event.
    #[must_use]
    pub fn intact_until(&self) -> u64 {
        self.multi.unwrap_or_else(|| self.position())
    }

    /// Returns the next event; `None` at the end of a complete file. O(its bytes); O(batch) for a
    /// batch, O(rest of the file) for an incomplete one.
    ///
    /// # Errors
    /// Returns the reason if the file is incomplete, damaged or unreadable. The reader must not be
    /// used after that.
    pub fn next_event(&mut self) -> Result<Option<AofEvent<'_>>, AofError> {
        if self.batch_end.is_some_and(|end| self.position() >= end) {
            if self.multi.is_some() {
                return Err(self.damaged(FaultKind::BatchInTransaction));
            }
            self.batch_end = None;
            self.after_batch = true;
        }
        self.shrink_buffer();
        if !self.fill(1)? {
            return match self.multi {
                Some(at) => Err(AofError::OpenMulti { at }),
                None => Ok(None),
            };
        }
        match self.buffer[self.at] {
            b'*' => self.command().map(Some),
            b'#' => self.annotation().map(Some),
            other => {
                let kind = FaultKind::NotACommand(other);
                Err(self.judge_here(self.fault(kind))?)
            }
        }
    }

    fn command(&mut self) -> Result<AofEvent<'_>, AofError> {
        self.parser.reset();
        let len = loop {
            match self.parser.advance(&self.buffer[self.at..self.end]) {
                Ok(ParseStep::Whole(len)) => break len,
                Ok(ParseStep::Needs(needs)) if self.fill(needs)? => {}
                Ok(ParseStep::Needs(_)) if self.batch_end.is_some() => {
                    return Err(self.damaged(FaultKind::BeyondBatch));
                }
                Ok(ParseStep::Needs(_)) => {
                    let kind = self.parser.missing_part(&self.buffer[self.at..self.end]);
                    let fault = self.fault_in_command(kind);
                    return Err(AofError::Torn { at: self.intact_until(), fault });
                }
                // This is damage even after a batch, because another server has begun a command
                // there.
                Err(kind) => {
                    let (at, fault) = (self.intact_until(), self.fault_in_command(kind));
                    return Err(AofError::Damaged { at, fault, next_valid: None });
                }
            }
        };
        let start = self.position();
        if self.batch_end.is_some_and(|end| start + len as u64 > end) {
            return Err(self.damaged(FaultKind::BeyondBatch));
        }
        let bytes = &self.buffer[self.at..self.at + len];
        let name = self.parser.command(bytes).name();
        if name.eq_ignore_ascii_case(b"multi") {
            if self.multi.is_some() {
                return Err(self.misplaced(FaultKind::NestedMulti));
            }
            self.multi = Some(start);
        } else if name.eq_ignore_ascii_case(b"exec") && self.multi.take().is_none() {
            return Err(self.misplaced(FaultKind::LoneExec));
        }
        self.at += len;
        self.after_batch = false;
        let bytes = &self.buffer[self.at - len..self.at];
        let kind = AofEventKind::Command(self.parser.command(bytes));
        Ok(AofEvent { start, end: start + len as u64, kind })
    }

    fn annotation(&mut self) -> Result<AofEvent<'_>, AofError> {
        if self.batch_end.is_some() {
            return Err(self.damaged(FaultKind::AnnotationInBatch));
        }
        let start = self.position();
        let len = match self.line_len()? {
            Ok(len) => len,
            Err(FaultKind::UnfinishedLine) if !self.after_batch => {
                let (at, fault) = (self.intact_until(), self.fault(FaultKind::UnfinishedLine));
                return Err(AofError::Torn { at, fault });
            }
            Err(kind) => return Err(self.judge_here(self.fault(kind))?),
        };
        let end = start + len as u64;
        let parsed = annotation::parse(&self.buffer[self.at..self.at + len]);
        match parsed {
            Annotation::Garbled if self.after_batch => {
                return Err(self.judge_here(self.fault(FaultKind::Garbled))?);
            }
            Annotation::Timestamp(_) | Annotation::Other | Annotation::Garbled => {}
            Annotation::Batch(_) | Annotation::BrokenBatch if self.multi.is_some() => {
                return Err(self.damaged(FaultKind::BatchInTransaction));
            }
            Annotation::BrokenBatch => {
                let suspect = SuspectBatch { at: start, from: end, claimed: None };
                return Err(self.judge(self.fault(FaultKind::BatchLine), suspect)?);
            }
            Annotation::Batch(line) => {
                let batch_end = end.saturating_add(line.bytes);
                if let Some(kind) = self.batch_fault(len, line)? {
                    let suspect = SuspectBatch { at: start, from: end, claimed: Some(batch_end) };
                    return Err(self.judge(self.fault(kind), suspect)?);
                }
                self.batch_end = Some(batch_end);
            }
        }
        self.at += len;
        let kind = match parsed {
            Annotation::Timestamp(seconds) => AofEventKind::Timestamp(seconds),
            Annotation::Batch(line) => {
                AofEventKind::Batch { ticket: line.ticket, end: end + line.bytes }
            }
            _ => AofEventKind::Annotation(&self.buffer[self.at - len..self.at]),
        };
        Ok(AofEvent { start, end, kind })
    }

    /// Returns the length of the line at `at`, or its fault.
    fn line_len(&mut self) -> IoResult<Result<usize, FaultKind>> {
        loop {
            let there = &self.buffer[self.at..self.end];
            let line = &there[..there.len().min(LINE_BYTES_MAX)];
            if let Some(last) = line.iter().position(|byte| *byte == b'\n') {
                return Ok(Ok(last + 1));
            }
            if line.len() == LINE_BYTES_MAX {
                return Ok(Err(FaultKind::LongAnnotation));
            }
            if !self.fill(line.len() + 1)? {
                return Ok(Err(FaultKind::UnfinishedLine));
            }
        }
    }

    /// Checks the batch whose line, of `len` bytes, starts at `at`, and returns its fault. The line
    /// is in the buffer at `at` afterwards.
    fn batch_fault(&mut self, len: usize, line: BatchLine) -> IoResult<Option<FaultKind>> {
        let wanted = line.bytes;
        let (got, computed) = if wanted <= self.batch_buffered_max {
            let whole = len + wanted as usize;
            self.fill(whole)?;
            let available = &self.buffer[self.at..self.end];
            let batch = &available[len..available.len().min(whole)];
            (batch.len() as u64, crc32c(0, batch))
        } else {
            let position = self.position();
            self.source.seek(SeekFrom::Start(position + len as u64))?;
            let summed = tail::checksum(&mut self.source, wanted, &mut self.buffer)?;
            // The second pass starts at the line again.
            self.source.seek(SeekFrom::Start(position))?;
            (self.base, self.at, self.end) = (position, 0, 0);
            if !self.fill(len)? {
                return Ok(Some(FaultKind::ShortBatch { wanted, got: 0 }));
            }
            summed
        };
        Ok(if got < wanted {
            Some(FaultKind::ShortBatch { wanted, got })
        } else if computed != line.crc {
            Some(FaultKind::BatchChecksum { stored: line.crc, computed })
        } else {
            None
        })
    }

    /// Judges an item that is not allowed here. After a batch, the line of the next batch may have
    /// been lost with a page of the file.
    fn judge_here(&mut self, fault: Fault) -> IoResult<AofError> {
        let at = self.intact_until();
        if self.after_batch {
            return self.judge(fault, SuspectBatch { at, from: at, claimed: None });
        }
        Ok(AofError::Damaged { at, fault, next_valid: None })
    }

    /// Decides whether only the end of the file is missing or the file is damaged.
    fn judge(&mut self, fault: Fault, suspect: SuspectBatch) -> IoResult<AofError> {
        let at = self.intact_until();
        Ok(match tail::find_proof_after(&mut self.source, suspect)? {
            None => AofError::Torn { at, fault },
            next_valid => AofError::Damaged { at, fault, next_valid },
        })
    }

    fn damaged(&self, kind: FaultKind) -> AofError {
        AofError::Damaged { at: self.intact_until(), fault: self.fault(kind), next_valid: None }
    }

    /// Reports a command whose name is not allowed at this position. Its first line and the two
    /// lines of the name were read.
    fn misplaced(&self, kind: FaultKind) -> AofError {
        let offset = self.position() + self.parser.name_start() as u64;
        let fault = Fault { offset, lines: 3, kind };
        AofError::Damaged { at: self.intact_until(), fault, next_valid: None }
    }

    fn fault(&self, kind: FaultKind) -> Fault {
        Fault { offset: self.position(), lines: 0, kind }
    }

    fn fault_in_command(&self, kind: FaultKind) -> Fault {
        let (offset, lines) = self.parser.incomplete_at();
        Fault { offset: self.position() + offset as u64, lines, kind }
    }

    /// Reads until `needs` bytes are available at `at`. Returns false if the file ends before that.
    /// The buffer grows to at most twice the bytes that have arrived.
    fn fill(&mut self, needs: usize) -> IoResult<bool> {
        while self.end - self.at < needs {
            if self.at > 0 && (self.at == self.end || self.end == self.buffer.len()) {
                self.buffer.copy_within(self.at..self.end, 0);
                self.base += self.at as u64;
                (self.at, self.end) = (0, self.end - self.at);
            }
            if self.end == self.buffer.len() {
                let len = needs.clamp(BUFFER_BYTES, self.buffer.len() * 2);
                self.buffer.resize(len, 0);
            }
            let room = self.buffer.len() - self.end;
            match self.source.read(&mut self.buffer[self.end..]) {
                Ok(0) => return Ok(false),
                // Do not trust a reader that claims more bytes than there is room for.
                Ok(read) => self.end += read.min(room),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(true)
    }

    /// Frees the memory of a large item.
    fn shrink_buffer(&mut self) {
        let left = self.at..self.end;
        if self.buffer.len() > BUFFER_KEPT_MAX && left.len() < BUFFER_BYTES {
            let mut buffer = vec![0; BUFFER_BYTES];
            buffer[..left.len()].copy_from_slice(&self.buffer[left.clone()]);
            self.base += self.at as u64;
            (self.buffer, self.at, self.end) = (buffer, 0, left.len());
        }
    }
}

#[cfg(test)]
mod tests;
