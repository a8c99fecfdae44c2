//! Looks for valid data after a faulty batch that proves that the batch was once complete.
//!
//! The search tries every line that could be the line of a batch, wherever it is, because the
//! faulty line cannot be trusted to say where its batch ends. A complete batch is proof if its line
//! says that the faulty bytes were already on the disk, or says nothing about that. Otherwise both
//! batches were being written when the power was lost, and the disk wrote the later one first.
//!
//! Commands are proof if no line claims them for a batch, because another server has then continued
//! the file. That server appends after a batch, or where it has truncated one. Its commands
//! therefore follow one after another, starting after a line or at the end of a batch. Commands
//! after a hole are the rest of a batch whose line was lost.

use super::annotation::{self, Annotation, BATCH, LINE_BYTES_MAX};
use super::command::{CommandParser, ParseStep};
use super::writer::crc32c;
use std::io::{ErrorKind, Read, Result as IoResult, Seek, SeekFrom};

/// Size of the search window in bytes. A command larger than half a window is not found.
const WINDOW_BYTES: usize = 1 << 20;
/// Number of bytes that are checksummed at a time.
const SUM_BYTES: usize = 64 << 10;
/// Bound on the bytes to checksum: this many times the bytes of the rest of the file, plus
/// [`SUM_BYTES_MIN`]. In a crafted file, each line could claim all the others.
const SUMS_PER_BYTE: u64 = 4;
const SUM_BYTES_MIN: u64 = 64 << 20;

/// A faulty batch or line.
#[derive(Debug, Clone, Copy)]
pub(super) struct SuspectBatch {
    /// Its offset.
    pub(super) at: u64,
    /// Where to look for later data: the beginning of a line.
    pub(super) from: u64,
    /// The end of its batch according to its line, if it has a readable line.
    pub(super) claimed: Option<u64>,
}

/// Returns the offset of data after `suspect` that was written when `suspect` was on the disk, or
/// by another server. If the search takes too much work, returns the offset where it gave up: the
/// caller must not conclude that nothing follows. O(bytes after `suspect`).
pub(super) fn find_proof_after<R: Read + Seek>(
    source: &mut R,
    suspect: SuspectBatch,
) -> IoResult<Option<u64>> {
    let SuspectBatch { at: suspect, from, claimed } = suspect;
    let end = source.seek(SeekFrom::End(0))?;
    let mut work = end.saturating_sub(from) * SUMS_PER_BYTE + SUM_BYTES_MIN;
    // Offset of the next command that another server would have appended.
    let mut run = claimed.map(|_| from);
    let mut claimed = claimed.unwrap_or(suspect);
    let mut window = vec![0; WINDOW_BYTES];
    let mut sums = vec![0; SUM_BYTES];
    let mut base = from;
    let mut line_begins = true;
    loop {
        source.seek(SeekFrom::Start(base))?;
        let len = read_up_to(source, &mut window)?;
        let last = len < window.len();
        let looked_at = if last { len } else { len / 2 };
        for at in 0..looked_at {
            let position = base + at as u64;
            // A line also begins where the end of the previous one was lost.
            let begins = std::mem::replace(&mut line_begins, window[at] == b'\n');
            if !begins && position != claimed && !window[at..len].starts_with(BATCH) {
                continue;
            }
            let is_next = run == Some(position) || position == claimed;
            match window[at] {
                b'#' => {
                    let line = &window[at..len.min(at + LINE_BYTES_MAX)];
                    let line = up_to_newline(line);
                    let line_end = position + line.len() as u64;
                    let parsed = annotation::parse(line);
                    if let Annotation::Batch(line) = parsed {
                        source.seek(SeekFrom::Start(line_end))?;
                        let (got, crc) = checksum(source, line.bytes.min(work), &mut sums)?;
                        work -= got;
                        let is_whole = got == line.bytes && crc == line.crc;
                        if work == 0 || (is_whole && line.synced_until(position) > suspect) {
                            return Ok(Some(position));
                        }
                        claimed = claimed.max(line_end.saturating_add(line.bytes));
                        run = Some(line_end);
                    } else if is_next && is_text(parsed) && line.ends_with(b"\n") {
                        run = Some(line_end);
                    }
                }
                b'*' if is_next => {
                    if let Ok(ParseStep::Whole(bytes)) =
                        CommandParser::default().advance(&window[at..len])
                    {
                        let end = position + bytes as u64;
                        if end > claimed {
                            return Ok(Some(position));
                        }
                        run = Some(end);
                    }
                }
                _ => {}
            }
        }
        if last {
            return Ok(None);
        }
        base += looked_at as u64;
    }
}

/// Returns true if another server could have written this line, or ignores it.
fn is_text(line: Annotation) -> bool {
    matches!(line, Annotation::Timestamp(_) | Annotation::Other)
}

fn up_to_newline(line: &[u8]) -> &[u8] {
    let len = line.iter().position(|byte| *byte == b'\n').map_or(line.len(), |last| last + 1);
    &line[..len]
}

/// Returns the number and the checksum of the next `len` bytes, or of those that are left.
pub(super) fn checksum<R: Read>(
    source: &mut R,
    len: u64,
    buffer: &mut [u8],
) -> IoResult<(u64, u32)> {
    let (mut got, mut crc) = (0, 0);
    let mut source = source.take(len);
    loop {
        match read_up_to(&mut source, buffer)? {
            0 => return Ok((got, crc)),
            read => {
                crc = crc32c(crc, &buffer[..read]);
                got += read as u64;
            }
        }
    }
}

/// Fills the buffer, or as much of it as there are bytes for, and returns their number.
fn read_up_to<R: Read>(source: &mut R, buffer: &mut [u8]) -> IoResult<usize> {
    let mut filled = 0;
    while filled < buffer.len() {
        match source.read(&mut buffer[filled..]) {
            Ok(0) => break,
            Ok(read) => filled += read.min(buffer.len() - filled),
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(filled)
}
