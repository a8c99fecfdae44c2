//! A file of commands as a stream of events.
//!
//! How a file may end
//! - Well: `Ok(None)`.
//! - [`AofError::Torn`]: the last command, line or batch lacks its end, or the bytes of the last
//!   batch are not those that were meant to be written. That is what a crash leaves behind.
//! - [`AofError::OpenMulti`]: commands of a transaction without its EXEC.
//! - [`AofError::Damaged`]: everything else. A batch that is not as it was written was whole once if
//!   a batch behind it says so, or another server has continued the file.
//!
//! The bytes of a batch are compared with their checksum before any of its commands is given out.
//! Up to [`BATCH_BUFFERED_MAX`] bytes they are read into the buffer for that. Those of a larger
//! batch, which holds a large transaction, are read twice; hence the source has to be one that can
//! seek. Memory is otherwise bounded by the largest command, and grows with the bytes that come,
//! not with the lengths that announce them.
//!
//! Commands lie in the buffer until the next event is asked for. Nothing is copied or allocated for
//! them; a command across the buffer's end is moved to its beginning first.

use crate::aof::annotation::{self, Annotation, BatchLine, LINE_BYTES_MAX};
use crate::aof::command::{Command, Cutter, Step};
use crate::aof::fault::{AofError, Fault, FaultKind};
use crate::aof::tail::{self, Doubtful};
use crate::aof::writer::crc32c;
use std::io::{ErrorKind, Read, Result as IoResult, Seek, SeekFrom};

/// Bytes of the buffer, and asked from the source at a time.
const BUFFER_BYTES: usize = 256 << 10;
/// A larger buffer is given back when what it was for is over. Usual batches are half of it.
const BUFFER_KEPT_MAX: usize = 2 << 20;
/// Batches up to this size are held in memory as a whole.
const BATCH_BUFFERED_MAX: u64 = 64 << 20;

/// Whether a file begins with an RDB file, which has to be read before its commands. The source
/// stands at its beginning afterwards.
///
/// # Errors
/// Those of the source.
pub fn has_preamble<R: Read + Seek>(source: &mut R) -> IoResult<bool> {
    source.rewind()?;
    let mut start = Vec::new();
    source.take(6).read_to_end(&mut start)?;
    source.rewind()?;
    Ok(start.starts_with(b"REDIS") || start == b"VALKEY")
}

/// What stands in a file, and where.
#[derive(Debug, Clone, Copy)]
pub struct Event<'a> {
    /// Position of its first byte.
    pub start: u64,
    /// Position behind its last byte.
    pub end: u64,
    pub kind: EventKind<'a>,
}

/// What stands in a file of commands.
#[derive(Debug, Clone, Copy)]
pub enum EventKind<'a> {
    Command(Command<'a>),
    /// What follows was executed in this second (Unix time) or later.
    Timestamp(i64),
    /// The commands up to `end` belong together, and are as they were written.
    Batch {
        /// Of the last transaction in it.
        ticket: u64,
        /// Position behind the batch.
        end: u64,
    },
    /// Another line that begins with `#`, its end included.
    Annotation(&'a [u8]),
}

/// Reads one file of commands.
#[derive(Debug)]
pub struct AofReader<R> {
    source: R,
    buffer: Vec<u8>,
    /// What is taken next, and where the bytes in the buffer end.
    at: usize,
    end: usize,
    /// Position of the buffer's first byte.
    base: u64,
    cutter: Cutter,
    /// Where the batch ends that is being given out.
    batch_end: Option<u64>,
    /// [`BATCH_BUFFERED_MAX`], or less in tests.
    batch_buffered_max: u64,
    /// Whether a batch was the last that was given out: another one is to be expected.
    behind_batch: bool,
    /// Where the transaction begins that is being given out.
    multi: Option<u64>,
}

impl<R: Read + Seek> AofReader<R> {
    /// Reads commands from `position` on: 0, or the end of the RDB file that stands first (see
    /// [`has_preamble`] and [`RdbReader::position`](crate::rdb::RdbReader::position)).
    ///
    /// # Errors
    /// If the source cannot seek.
    pub fn new(mut source: R, position: u64) -> IoResult<Self> {
        source.seek(SeekFrom::Start(position))?;
        Ok(AofReader {
            source,
            buffer: vec![0; BUFFER_BYTES],
            at: 0,
            end: 0,
            base: position,
            cutter: Cutter::default(),
            batch_end: None,
            batch_buffered_max: BATCH_BUFFERED_MAX,
            behind_batch: false,
            multi: None,
        })
    }

    /// Bytes of the file up to the next event, for a report of progress.
    #[must_use]
    pub fn position(&self) -> u64 {
        self.base + self.at as u64
    }

    /// Up to where the file can be cut without losing anything that was finished: the beginning of
    /// an open transaction, or the next event.
    #[must_use]
    pub fn whole_until(&self) -> u64 {
        self.multi.unwrap_or_else(|| self.position())
    }

    /// What comes next; `None` at the end of a file that is whole. O(its bytes); O(batch) for a
    /// batch, O(rest of the file) for one that is not whole.
    ///
    /// # Errors
    /// How the file ends otherwise. The reader is of no more use then.
    pub fn next_event(&mut self) -> Result<Option<Event<'_>>, AofError> {
        if self.batch_end.is_some_and(|end| self.position() >= end) {
            if self.multi.is_some() {
                return Err(self.damaged(FaultKind::BatchInTransaction));
            }
            self.batch_end = None;
            self.behind_batch = true;
        }
        self.give_back();
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
                Err(self.doubt(self.fault(kind))?)
            }
        }
    }

    fn command(&mut self) -> Result<Event<'_>, AofError> {
        self.cutter.reset();
        let len = loop {
            match self.cutter.go_on(&self.buffer[self.at..self.end]) {
                Ok(Step::Whole(len)) => break len,
                Ok(Step::Needs(needs)) if self.fill(needs)? => {}
                Ok(Step::Needs(_)) if self.batch_end.is_some() => {
                    return Err(self.damaged(FaultKind::BeyondBatch));
                }
                Ok(Step::Needs(_)) => {
                    let kind = self.cutter.shortage(&self.buffer[self.at..self.end]);
                    let fault = self.fault_in_command(kind);
                    return Err(AofError::Torn { at: self.whole_until(), fault });
                }
                // Also behind a batch: it was another server that has begun a command there.
                Err(kind) => {
                    let (at, fault) = (self.whole_until(), self.fault_in_command(kind));
                    return Err(AofError::Damaged { at, fault, behind: None });
                }
            }
        };
        let start = self.position();
        if self.batch_end.is_some_and(|end| start + len as u64 > end) {
            return Err(self.damaged(FaultKind::BeyondBatch));
        }
        let bytes = &self.buffer[self.at..self.at + len];
        let name = self.cutter.command(bytes).name();
        if name.eq_ignore_ascii_case(b"multi") {
            if self.multi.is_some() {
                return Err(self.misplaced(FaultKind::NestedMulti));
            }
            self.multi = Some(start);
        } else if name.eq_ignore_ascii_case(b"exec") && self.multi.take().is_none() {
            return Err(self.misplaced(FaultKind::LoneExec));
        }
        self.at += len;
        self.behind_batch = false;
        let bytes = &self.buffer[self.at - len..self.at];
        let kind = EventKind::Command(self.cutter.command(bytes));
        Ok(Event { start, end: start + len as u64, kind })
    }

    fn annotation(&mut self) -> Result<Event<'_>, AofError> {
        if self.batch_end.is_some() {
            return Err(self.damaged(FaultKind::AnnotationInBatch));
        }
        let start = self.position();
        let len = match self.line_len()? {
            Ok(len) => len,
            Err(FaultKind::UnfinishedLine) if !self.behind_batch => {
                let (at, fault) = (self.whole_until(), self.fault(FaultKind::UnfinishedLine));
                return Err(AofError::Torn { at, fault });
            }
            Err(kind) => return Err(self.doubt(self.fault(kind))?),
        };
        let end = start + len as u64;
        let parsed = annotation::parse(&self.buffer[self.at..self.at + len]);
        match parsed {
            Annotation::Garbled if self.behind_batch => {
                return Err(self.doubt(self.fault(FaultKind::Garbled))?);
            }
            Annotation::Timestamp(_) | Annotation::Other | Annotation::Garbled => {}
            Annotation::Batch(_) | Annotation::BrokenBatch if self.multi.is_some() => {
                return Err(self.damaged(FaultKind::BatchInTransaction));
            }
            Annotation::BrokenBatch => {
                let doubtful = Doubtful { at: start, from: end, claimed: None };
                return Err(self.judge(self.fault(FaultKind::BatchLine), doubtful)?);
            }
            Annotation::Batch(line) => {
                let batch_end = end.saturating_add(line.bytes);
                if let Some(kind) = self.batch_fault(len, line)? {
                    let doubtful = Doubtful { at: start, from: end, claimed: Some(batch_end) };
                    return Err(self.judge(self.fault(kind), doubtful)?);
                }
                self.batch_end = Some(batch_end);
            }
        }
        self.at += len;
        let kind = match parsed {
            Annotation::Timestamp(seconds) => EventKind::Timestamp(seconds),
            Annotation::Batch(line) => {
                EventKind::Batch { ticket: line.ticket, end: end + line.bytes }
            }
            _ => EventKind::Annotation(&self.buffer[self.at - len..self.at]),
        };
        Ok(Event { start, end, kind })
    }

    /// The length of the line at `at`, or what is wrong with it.
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

    /// What is wrong with the batch whose line, of `len` bytes, stands at `at`. The buffer begins
    /// with that line afterwards, or still does.
    fn batch_fault(&mut self, len: usize, line: BatchLine) -> IoResult<Option<FaultKind>> {
        let wanted = line.bytes;
        let (got, computed) = if wanted <= self.batch_buffered_max {
            let whole = len + wanted as usize;
            self.fill(whole)?;
            let there = &self.buffer[self.at..self.end];
            let batch = &there[len..there.len().min(whole)];
            (batch.len() as u64, crc32c(0, batch))
        } else {
            let position = self.position();
            self.source.seek(SeekFrom::Start(position + len as u64))?;
            let summed = tail::checksum(&mut self.source, wanted, &mut self.buffer)?;
            // The second pass begins at the line again.
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

    /// What to make of something that cannot stand here. Behind a batch, the line of the next may have
    /// been lost with a page of the file.
    fn doubt(&mut self, fault: Fault) -> IoResult<AofError> {
        let at = self.whole_until();
        if self.behind_batch {
            return self.judge(fault, Doubtful { at, from: at, claimed: None });
        }
        Ok(AofError::Damaged { at, fault, behind: None })
    }

    /// Whether the end of the file is missing from here, or the file is damaged.
    fn judge(&mut self, fault: Fault, doubtful: Doubtful) -> IoResult<AofError> {
        let at = self.whole_until();
        Ok(match tail::proof_behind(&mut self.source, doubtful)? {
            None => AofError::Torn { at, fault },
            behind => AofError::Damaged { at, fault, behind },
        })
    }

    fn damaged(&self, kind: FaultKind) -> AofError {
        AofError::Damaged { at: self.whole_until(), fault: self.fault(kind), behind: None }
    }

    /// A command whose name must not stand there: its first line and the name's two are read.
    fn misplaced(&self, kind: FaultKind) -> AofError {
        let offset = self.position() + self.cutter.name_start() as u64;
        let fault = Fault { offset, lines: 3, kind };
        AofError::Damaged { at: self.whole_until(), fault, behind: None }
    }

    fn fault(&self, kind: FaultKind) -> Fault {
        Fault { offset: self.position(), lines: 0, kind }
    }

    fn fault_in_command(&self, kind: FaultKind) -> Fault {
        let (place, lines) = self.cutter.place();
        Fault { offset: self.position() + place as u64, lines, kind }
    }

    /// Reads until `needs` bytes stand at `at`; `false` if the file ends before. The buffer grows
    /// to no more than twice what has come.
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
                // A reader that claims more than there is room for is not believed.
                Ok(read) => self.end += read.min(room),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(true)
    }

    /// Gives memory back that was for something large.
    fn give_back(&mut self) {
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
