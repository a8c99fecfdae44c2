//! The lines that begin with `#`.

/// No line is longer, its end included; servers would take the rest for something else.
pub(super) const LINE_BYTES_MAX: usize = 1023;

const TIMESTAMP: &[u8] = b"#TS:";
const BATCH: &[u8] = b"#B:";

/// What a line says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Annotation {
    /// Unix time in seconds.
    Timestamp(i64),
    Batch(BatchLine),
    /// A line that begins as that of a batch and does not go on so.
    BrokenBatch,
    Other,
}

/// The line before a batch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct BatchLine {
    pub(super) ticket: u64,
    /// How many bytes behind the line belong to the batch.
    pub(super) bytes: u64,
    /// CRC32C (Castagnoli) of those bytes.
    pub(super) crc: u32,
}

/// Reads a line, given with its end. O(line).
pub(super) fn parse(line: &[u8]) -> Annotation {
    if let Some(number) = line.strip_prefix(TIMESTAMP) {
        let text = number.strip_suffix(b"\r\n").and_then(|text| str::from_utf8(text).ok());
        let seconds = text.and_then(|text| text.parse().ok());
        seconds.map_or(Annotation::Other, Annotation::Timestamp)
    } else if let Some(fields) = line.strip_prefix(BATCH) {
        batch_line(fields).map_or(Annotation::BrokenBatch, Annotation::Batch)
    } else {
        Annotation::Other
    }
}

fn batch_line(fields: &[u8]) -> Option<BatchLine> {
    let mut fields = fields.strip_suffix(b"\r\n")?.split(|byte| *byte == b':');
    let (ticket, bytes, crc) = (fields.next()?, fields.next()?, fields.next()?);
    if fields.next().is_some() || crc.len() != 8 || !crc.iter().all(u8::is_ascii_hexdigit) {
        return None;
    }
    let number = |text: &[u8]| {
        let digits = text.iter().all(u8::is_ascii_digit);
        str::from_utf8(text).ok().filter(|_| digits)?.parse().ok()
    };
    let crc = u32::from_str_radix(str::from_utf8(crc).ok()?, 16).ok()?;
    Some(BatchLine { ticket: number(ticket)?, bytes: number(bytes)?, crc })
}

/// Appends a timestamp's line.
pub(super) fn put_timestamp(out: &mut Vec<u8>, unix_seconds: i64) {
    out.extend_from_slice(TIMESTAMP);
    out.extend_from_slice(itoa::Buffer::new().format(unix_seconds).as_bytes());
    out.extend_from_slice(b"\r\n");
}

/// Appends a batch's line.
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
    out.extend_from_slice(b"\r\n");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_come_back_as_they_were_written() {
        for line in [
            BatchLine { ticket: 0, bytes: 0, crc: 0 },
            BatchLine { ticket: 812, bytes: 92, crc: 0x9fb2_4a1e },
            BatchLine { ticket: u64::MAX, bytes: u64::MAX, crc: u32::MAX },
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
    fn other_lines_are_told_apart_from_broken_ones() {
        for line in
            [&b"#TS:\r\n"[..], b"#TS:12x\r\n", b"#TS:12\n", b"#ts:12\r\n", b"#\r\n", b"# x\n"]
        {
            assert_eq!(parse(line), Annotation::Other, "{line:?}");
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
            b"#B:1:2:00000000\n",
        ] {
            assert_eq!(parse(line), Annotation::BrokenBatch, "{line:?}");
        }
    }
}
