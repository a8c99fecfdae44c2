//! What stands behind a batch that is not whole: nothing, or something that was written later.
//!
//! Every line that could be that of a batch is tried, wherever it stands: the line that cannot be
//! trusted says where its batch ends. Commands count where no line claims them for a batch: another
//! server has continued the file.

use super::annotation::{self, Annotation, LINE_BYTES_MAX};
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

/// Where behind `from`, which begins a line, a whole batch begins, or behind `claimed` a whole
/// command that belongs to no batch. If that takes too much work, the place where it was given up:
/// nobody may conclude then that nothing is there. O(bytes behind `from`).
pub(super) fn whole_behind<R: Read + Seek>(
    source: &mut R,
    from: u64,
    claimed: u64,
) -> IoResult<Option<u64>> {
    let end = source.seek(SeekFrom::End(0))?;
    let mut work = end.saturating_sub(from) * SUMS_PER_BYTE + SUM_BYTES_MIN;
    let mut claimed = claimed;
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
            // Where a batch ends a line begins, also if the end of the one before was lost.
            if std::mem::replace(&mut line_begins, window[at] == b'\n') || position == claimed {
                let whole = match window[at] {
                    b'#' => {
                        let line = &window[at..len.min(at + LINE_BYTES_MAX)];
                        whole_batch(source, position, line, &mut claimed, &mut work, &mut sums)?
                    }
                    b'*' => position >= claimed && whole_command(&window[at..len]),
                    _ => false,
                };
                if whole {
                    return Ok(Some(position));
                }
            }
        }
        if last {
            return Ok(None);
        }
        base += looked_at as u64;
    }
}

/// Whether a batch begins with this line and is as it was written, or `work` is used up.
fn whole_batch<R: Read + Seek>(
    source: &mut R,
    position: u64,
    line: &[u8],
    claimed: &mut u64,
    work: &mut u64,
    sums: &mut [u8],
) -> IoResult<bool> {
    let len = line.iter().position(|byte| *byte == b'\n').map_or(line.len(), |last| last + 1);
    let Annotation::Batch(line) = annotation::parse(&line[..len]) else {
        return Ok(false);
    };
    let start = position + len as u64;
    *claimed = (*claimed).max(start.saturating_add(line.bytes));
    source.seek(SeekFrom::Start(start))?;
    let (got, crc) = checksum(source, line.bytes.min(*work), sums)?;
    *work -= got;
    Ok(*work == 0 || (got == line.bytes && crc == line.crc))
}

fn whole_command(bytes: &[u8]) -> bool {
    matches!(Cutter::default().go_on(bytes), Ok(Step::Whole(_)))
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
