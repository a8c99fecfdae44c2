//! CRC-64 with the Jones polynomial, reflected, without inversion at the start or end: the checksum
//! of RDB files and DUMP payloads.
//!
//! The implementation processes 16 bytes at a time with 16 tables ("slicing by 16"), which are
//! computed at compile time and take 32 KiB. Slicing by 8 takes 1.8 times as long; the checksum is
//! a twentieth of the time of a small DUMP.

/// The polynomial ad93d23594c935a9, bits reversed.
const POLYNOMIAL: u64 = 0x95ac_9329_ac4b_c9b5;

/// `TABLES[n][byte]`: what `byte` does to the checksum `n` bytes later.
static TABLES: [[u64; 256]; 16] = tables();

const fn tables() -> [[u64; 256]; 16] {
    let mut tables = [[0; 256]; 16];
    let mut byte = 0;
    while byte < 256 {
        let mut crc = byte as u64;
        let mut bit = 0;
        while bit < 8 {
            crc = if crc & 1 == 1 { crc >> 1 ^ POLYNOMIAL } else { crc >> 1 };
            bit += 1;
        }
        tables[0][byte] = crc;
        byte += 1;
    }
    let mut byte = 0;
    while byte < 256 {
        let mut later = 1;
        while later < 16 {
            let before = tables[later - 1][byte];
            tables[later][byte] = tables[0][(before & 0xff) as usize] ^ before >> 8;
            later += 1;
        }
        byte += 1;
    }
    tables
}

/// Returns the checksum of some data followed by `bytes`, where `crc` is the checksum of that data
/// (0 for none). O(bytes).
#[must_use]
pub fn crc64(crc: u64, bytes: &[u8]) -> u64 {
    let (blocks, tail) = bytes.as_chunks::<16>();
    let mut crc = crc;
    for block in blocks {
        let mixed = u128::from_le_bytes(*block) ^ u128::from(crc);
        crc = 0;
        for (table, byte) in TABLES.iter().rev().zip(mixed.to_le_bytes()) {
            crc ^= table[usize::from(byte)];
        }
    }
    for byte in tail {
        crc = TABLES[0][usize::from(crc as u8 ^ byte)] ^ crc >> 8;
    }
    crc
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
