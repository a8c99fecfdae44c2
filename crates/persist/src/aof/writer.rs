//! Appends commands and annotations to a buffer.
//!
//! The caller must follow the rules for batches of [`super`]: annotations come between batches, and
//! a transaction is within one batch.

use super::annotation::{self, BatchLine};

/// Maximum length of a batch's line in bytes.
pub const BATCH_LINE_BYTES_MAX: usize = "#B:".len() + 20 + 1 + 20 + 1 + 8 + 1 + 20 + 2;

/// Appends a command. O(bytes).
pub fn command<W: AsRef<[u8]>>(out: &mut Vec<u8>, args: &[W]) {
    brisk_resp::request::encode(out, args);
}

/// Appends a timestamp: the following commands ran in this second or later. O(1).
pub fn timestamp(out: &mut Vec<u8>, unix_seconds: i64) {
    annotation::put_timestamp(out, unix_seconds);
}

/// Appends the line of a batch. `bytes` are the commands of the batch, `last_ticket` is the ticket
/// of the last one. The batch itself is not appended, so that it can be written without a copy.
/// O(bytes).
pub fn batch_line(out: &mut Vec<u8>, last_ticket: u64, bytes: &[u8]) {
    annotation::put_batch(out, line_of(last_ticket, bytes, None));
}

/// Like [`batch_line`], for a file that continues: the line also records how many bytes before it
/// may not be on the disk yet. With this number, a reader can distinguish the effect of a power
/// loss from damage to data that was already on the disk.
pub fn batch_line_with_unsynced(out: &mut Vec<u8>, unsynced: u64, last_ticket: u64, bytes: &[u8]) {
    annotation::put_batch(out, line_of(last_ticket, bytes, Some(unsynced)));
}

fn line_of(ticket: u64, bytes: &[u8], unsynced: Option<u64>) -> BatchLine {
    BatchLine { ticket, bytes: bytes.len() as u64, crc: crc32c(0, bytes), unsynced }
}

/// Returns the checksum (CRC-32C, Castagnoli) of some data followed by `bytes`, where `crc` is the
/// checksum of that data (0 for none). O(bytes), with the CPU's own instruction if it has one.
#[must_use]
pub fn crc32c(crc: u32, bytes: &[u8]) -> u32 {
    crc32c::crc32c_append(crc, bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// RFC 3720, appendix B.4, and the check value from the catalog of CRC algorithms.
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
