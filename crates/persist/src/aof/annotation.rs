//! Annotations: the lines that begin with `#`.

/// Maximum length of an annotation, including its line end. Servers would parse the rest of a
/// longer line as something else.
pub(super) const LINE_BYTES_MAX: usize = 1023;

const TIMESTAMP: &[u8] = b"#TS:";
pub(super) const BATCH: &[u8] = b"#B:";

/// The content of an annotation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Annotation {
    /// Unix time in seconds.
    Timestamp(i64),
    Batch(BatchLine),
    /// A line that begins like the line of a batch but does not continue like one.
    BrokenBatch,
    /// A broken timestamp, or a line that is not text. A lost page can leave a line of this kind,
    /// made of two fragments. Other servers ignore it.
    Garbled,
    Other,
}

/// The line before a batch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct BatchLine {
    pub(super) ticket: u64,
    /// Number of bytes after the line that belong to the batch.
    pub(super) bytes: u64,
    /// CRC32C (Castagnoli) of those bytes.
    pub(super) crc: u32,
    /// Number of bytes before the line that may not have been on the disk when the line was
    /// written. All bytes before those were on the disk. `None` if the line has no such field.
    pub(super) unsynced: Option<u64>,
}

impl BatchLine {
    /// Returns the offset up to which the file was on the disk when this line was written at
    /// `position`. A line without the field counts as written after everything was on the disk.
    pub(super) fn synced_until(self, position: u64) -> u64 {
        self.unsynced.map_or(u64::MAX, |unsynced| position.saturating_sub(unsynced))
    }
}

/// Parses a line, including its line end. O(line).
pub(super) fn parse(line: &[u8]) -> Annotation {
    if let Some(number) = line.strip_prefix(TIMESTAMP) {
        let text = number.strip_suffix(b"\r\n").and_then(|text| str::from_utf8(text).ok());
        let seconds = text.and_then(|text| text.parse().ok());
        seconds.map_or(Annotation::Garbled, Annotation::Timestamp)
    } else if let Some(fields) = line.strip_prefix(BATCH) {
        batch_line(fields).map_or(Annotation::BrokenBatch, Annotation::Batch)
    } else if line.iter().all(|byte| *byte >= b' ' || byte.is_ascii_whitespace()) {
        Annotation::Other
    } else {
        Annotation::Garbled
    }
}

fn batch_line(fields: &[u8]) -> Option<BatchLine> {
    let mut fields = fields.strip_suffix(b"\r\n")?.split(|byte| *byte == b':');
    let (ticket, bytes, crc) = (fields.next()?, fields.next()?, fields.next()?);
    let unsynced = fields.next();
    if fields.next().is_some() || crc.len() != 8 || !crc.iter().all(u8::is_ascii_hexdigit) {
        return None;
    }
    let number = |text: &[u8]| {
        let digits = text.iter().all(u8::is_ascii_digit);
        str::from_utf8(text).ok().filter(|_| digits)?.parse().ok()
    };
    let crc = u32::from_str_radix(str::from_utf8(crc).ok()?, 16).ok()?;
    let unsynced = match unsynced {
        Some(text) => Some(number(text)?),
        None => None,
    };
    Some(BatchLine { ticket: number(ticket)?, bytes: number(bytes)?, crc, unsynced })
}

/// Appends the line of a timestamp.
pub(super) fn put_timestamp(out: &mut Vec<u8>, unix_seconds: i64) {
    out.extend_from_slice(TIMESTAMP);
    out.extend_from_slice(itoa::Buffer::new().format(unix_seconds).as_bytes());
    out.extend_from_slice(b"\r\n");
}

/// Appends the line of a batch.
pub(super) fn put_batch(out: &mut Vec<u8>, line: BatchLine) {
    let mut digits = itoa::Buffer::new();
    out.extend_from_slice(BATCH);
    out.extend_from_slice(digits.format(line.ticket).as_bytes());
    out.push(b':');
    out.extend_from_slice(digits.format(line.bytes).as_bytes());
    out.push(b':');
    for shift in (0..8).rev() {
        out.push(b"0123456789abcdef"[(line.crc >> (4 * shift)) as usize & 0xf]);
    }
    if let Some(unsynced) = line.unsynced {
        out.push(b':');
        out.extend_from_slice(digits.format(unsynced).as_bytes());
    }
    out.extend_from_slice(b"\r\n");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_come_back_as_they_were_written() {
        const MAX: u64 = u64::MAX;
        for line in [
            BatchLine { ticket: 0, bytes: 0, crc: 0, unsynced: None },
            BatchLine { ticket: 812, bytes: 92, crc: 0x9fb2_4a1e, unsynced: Some(0) },
            BatchLine { ticket: MAX, bytes: MAX, crc: u32::MAX, unsynced: Some(MAX) },
        ] {
            let mut out = Vec::new();
            put_batch(&mut out, line);
            assert_eq!(parse(&out), Annotation::Batch(line));
        }
        for seconds in [i64::MIN, -1, 0, 1_628_217_470, i64::MAX] {
            let mut out = Vec::new();
            put_timestamp(&mut out, seconds);
            assert_eq!(parse(&out), Annotation::Timestamp(seconds));
        }
    }

    #[test]
    fn other_lines_are_distinguished_from_broken_ones() {
        for line in [&b"#ts:12\r\n"[..], b"#\r\n", b"# x\n"] {
            assert_eq!(parse(line), Annotation::Other, "{line:?}");
        }
        for line in [&b"#TS:\r\n"[..], b"#TS:12x\r\n", b"#TS:12\n", b"#\0\r\n"] {
            assert_eq!(parse(line), Annotation::Garbled, "{line:?}");
        }
        for line in [
            &b"#B:\r\n"[..],
            b"#B:1:2:0000000\r\n",
            b"#B:1:2:000000000\r\n",
            b"#B:1:2:0000000g\r\n",
            b"#B:1:2:+0000000\r\n",
            b"#B:1:+2:00000000\r\n",
            b"#B::2:00000000\r\n",
            b"#B:1:18446744073709551616:00000000\r\n",
            b"#B:1:2:00000000:\r\n",
            b"#B:1:2:00000000:+1\r\n",
            b"#B:1:2:00000000:1:\r\n",
            b"#B:1:2:00000000\n",
        ] {
            assert_eq!(parse(line), Annotation::BrokenBatch, "{line:?}");
        }
    }
}
