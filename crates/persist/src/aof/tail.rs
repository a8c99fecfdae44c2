//! What stands behind a batch that is not whole: nothing, or something that was written later.
//!
//! Every line that could be that of a batch is tried, wherever it stands: the line that cannot be
//! trusted says where its batch ends. A whole batch counts if its line says that what is not whole was
//! on the disk by then, or does not say. Otherwise both were under way when the power was lost, and the
//! disk has taken the later one first.
//!
//! Commands count where no line claims them for a batch: another server has continued the file. That
//! appends behind a batch, or where it has cut one. So they follow, one by one, from behind a line or
//! the end of a batch. Behind a hole they are what is left of a batch whose line was lost.

use super::annotation::{self, Annotation, BATCH, LINE_BYTES_MAX};
use super::command::{Cutter, Step};
use super::writer::crc32c;
use std::io::{ErrorKind, Read, Result as IoResult, Seek, SeekFrom};

/// Bytes looked at together. A command larger than half of them is not found.
const WINDOW_BYTES: usize = 1 << 20;
/// Bytes summed at a time.
const SUM_BYTES: usize = 64 << 10;
/// Bytes may be summed this many times the bytes there are, and so many more. A file that was made
/// for it could have each of its lines claim all the others.
const SUMS_PER_BYTE: u64 = 4;
const SUM_BYTES_MIN: u64 = 64 << 20;

/// A batch, or line, that is not whole.
#[derive(Debug, Clone, Copy)]
pub(super) struct Doubtful {
    /// Where it begins.
    pub(super) at: u64,
    /// Where to look for what follows: the beginning of a line.
    pub(super) from: u64,
    /// Where it says that its batch ends, if it says so.
    pub(super) claimed: Option<u64>,
}

/// Where behind `doubtful` something stands that was written when `doubtful` was on the disk, or by
/// another server. If that takes too much work, the place where it was given up: nobody may conclude
/// then that nothing is there. O(bytes behind it).
pub(super) fn proof_behind<R: Read + Seek>(
    source: &mut R,
    doubtful: Doubtful,
) -> IoResult<Option<u64>> {
    let Doubtful { at: doubtful, from, claimed } = doubtful;
    let end = source.seek(SeekFrom::End(0))?;
    let mut work = end.saturating_sub(from) * SUMS_PER_BYTE + SUM_BYTES_MIN;
    // Where the next command would stand that another server has appended.
    let mut run = claimed.map(|_| from);
    let mut claimed = claimed.unwrap_or(doubtful);
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
            // A line also begins where the end of the one before was lost.
            let begins = std::mem::replace(&mut line_begins, window[at] == b'\n');
            if !begins && position != claimed && !window[at..len].starts_with(BATCH) {
                continue;
            }
            let is_next = run == Some(position) || position == claimed;
            match window[at] {
                b'#' => {
                    let line = &window[at..len.min(at + LINE_BYTES_MAX)];
                    let line = up_to_newline(line);
                    let behind = position + line.len() as u64;
                    let parsed = annotation::parse(line);
                    if let Annotation::Batch(line) = parsed {
                        source.seek(SeekFrom::Start(behind))?;
                        let (got, crc) = checksum(source, line.bytes.min(work), &mut sums)?;
                        work -= got;
                        let is_whole = got == line.bytes && crc == line.crc;
                        if work == 0 || (is_whole && line.synced_until(position) > doubtful) {
                            return Ok(Some(position));
                        }
                        claimed = claimed.max(behind.saturating_add(line.bytes));
                        run = Some(behind);
                    } else if is_next && is_text(parsed) && line.ends_with(b"\n") {
                        run = Some(behind);
                    }
                }
                b'*' if is_next => {
                    if let Ok(Step::Whole(bytes)) = Cutter::default().go_on(&window[at..len]) {
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

/// Whether another server has written this line, or passes over it.
fn is_text(line: Annotation) -> bool {
    matches!(line, Annotation::Timestamp(_) | Annotation::Other)
}

fn up_to_newline(line: &[u8]) -> &[u8] {
    let len = line.iter().position(|byte| *byte == b'\n').map_or(line.len(), |last| last + 1);
    &line[..len]
}

/// The checksum of the next `len` bytes, or of as many as there are, and their number.
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

/// Fills the buffer, or as much of it as there are bytes; gives their number.
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
