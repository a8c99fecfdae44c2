//! Commands and annotations as bytes, appended to a buffer.
//!
//! Whoever writes a file keeps the rules for batches of [`super`]: annotations stand between
//! batches, a transaction lies in one of them.

use super::annotation::{self, BatchLine};

/// Bytes that the line of a batch takes at most.
pub const BATCH_LINE_BYTES_MAX: usize = "#B:".len() + 20 + 1 + 20 + 1 + 8 + 1 + 20 + 2;

/// Appends a command. O(bytes).
pub fn command<W: AsRef<[u8]>>(out: &mut Vec<u8>, words: &[W]) {
    brisk_resp::request::encode(out, words);
}

/// Appends the note that what follows was executed in this second or later. O(1).
pub fn timestamp(out: &mut Vec<u8>, unix_seconds: i64) {
    annotation::put_timestamp(out, unix_seconds);
}

/// Appends the line that stands before a batch: its commands as `bytes`, the ticket of the last of
/// them. The batch itself is not appended, so that it can be written from where it lies. O(bytes).
pub fn batch_line(out: &mut Vec<u8>, last_ticket: u64, bytes: &[u8]) {
    annotation::put_batch(out, line_of(last_ticket, bytes, None));
}

/// The same in a file that goes on: the line says too how many bytes before it may not be on the disk yet.
/// So a reader can tell what a loss of power took from damage of what was safe.
pub fn batch_line_behind(out: &mut Vec<u8>, unsynced: u64, last_ticket: u64, bytes: &[u8]) {
    annotation::put_batch(out, line_of(last_ticket, bytes, Some(unsynced)));
}

fn line_of(ticket: u64, bytes: &[u8], unsynced: Option<u64>) -> BatchLine {
    BatchLine { ticket, bytes: bytes.len() as u64, crc: crc32c(0, bytes), unsynced }
}

/// The checksum (CRC-32C, Castagnoli) of what had the checksum `crc` (0 for nothing), followed by
/// `bytes`. O(bytes), by the processor's own instruction where it has one.
#[must_use]
pub fn crc32c(crc: u32, bytes: &[u8]) -> u32 {
    crc32c::crc32c_append(crc, bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// RFC 3720, appendix B.4, and the check value of the catalogue of CRC algorithms.
    #[test]
    fn checksums_are_the_published_ones() {
        let ascending: Vec<u8> = (0..32).collect();
        let descending: Vec<u8> = (0..32).rev().collect();
        let read_command = [
            0x01, 0xc0, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00,
            0x00, 0x00, 0x14, 0x00, 0x00, 0x00, 0x00, 0x00, 0x04, 0x00, 0x00, 0x00, 0x00, 0x14,
            0x00, 0x00, 0x00, 0x18, 0x28, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x02, 0x00,
            0x00, 0x00, 0x00, 0x00, 0x00, 0x00,
        ];
        for (bytes, crc) in [
            (&b"123456789"[..], 0xe306_9283),
            (&[0; 32], 0x8a91_36aa),
            (&[0xff; 32], 0x62a8_ab43),
            (&ascending, 0x46dd_794e),
            (&descending, 0x113f_db5c),
            (&read_command, 0xd996_3a56),
            (b"", 0),
        ] {
            assert_eq!(crc32c(0, bytes), crc);
            let (start, end) = bytes.split_at(bytes.len() / 3);
            assert_eq!(crc32c(crc32c(0, start), end), crc);
        }
    }

    #[test]
    fn a_batch_has_its_line_before_it() {
        let (mut batch, mut file) = (Vec::new(), Vec::new());
        command(&mut batch, &["SET", "k", "a\r\nb"]);
        batch_line(&mut file, 812, &batch);
        let line = format!("#B:812:{}:{:08x}\r\n", batch.len(), crc32c(0, &batch));
        assert_eq!(file, line.as_bytes());
        timestamp(&mut file, 1_628_217_470);
        assert!(file.ends_with(b"#TS:1628217470\r\n"));
    }

    #[test]
    fn no_line_of_a_batch_is_longer_than_the_bound() {
        let mut line = Vec::new();
        let unsynced = Some(u64::MAX);
        let longest = BatchLine { ticket: u64::MAX, bytes: u64::MAX, crc: u32::MAX, unsynced };
        annotation::put_batch(&mut line, longest);
        assert_eq!(line.len(), BATCH_LINE_BYTES_MAX);
    }
}
