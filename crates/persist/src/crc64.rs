//! CRC-64 with the Jones polynomial, reflected, without inversion at the start or end: the checksum
//! of RDB files and DUMP payloads.

use crc_fast::{CrcAlgorithm, Digest};

/// Returns the checksum of some data followed by `bytes`, where `crc` is the checksum of that data
/// (0 for none). O(bytes).
#[must_use]
pub fn crc64(crc: u64, bytes: &[u8]) -> u64 {
    let mut digest = Digest::new_with_init_state(CrcAlgorithm::Crc64Redis, crc);
    digest.update(bytes);
    digest.finalize()
}

#[cfg(test)]
mod tests {
    use super::crc64;

    #[test]
    fn the_check_value_is_the_published_one() {
        assert_eq!(crc64(0, b"123456789"), 0xe9c6_d914_c4b8_d9ca);
        assert_eq!(crc64(0, b""), 0);
    }

    #[test]
    fn parts_give_the_same_as_the_whole() {
        let bytes: Vec<u8> = (0..1000u32).map(|n| ((n * n) >> 3) as u8).collect();
        let whole = crc64(0, &bytes);
        for cut in [0, 1, 7, 8, 9, 63, 500, 999, 1000] {
            assert_eq!(crc64(crc64(0, &bytes[..cut]), &bytes[cut..]), whole);
        }
        let one_by_one = bytes.chunks(1).fold(0, crc64);
        assert_eq!(one_by_one, whole);
    }
}
