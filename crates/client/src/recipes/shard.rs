//! The rule that assigns elements to shards.

use super::bytes_of;
use crate::arg::ToArg;
use crate::error::{Error, Kind, Result};

/// A larger number of shards is rejected as a mistake.
const SHARDS_MAX: u64 = 1 << 32;

/// Returns the key of the shard that contains an element. O(bytes).
///
/// If `key` is an integer, the shard number is `key / shard_size` (rounded down), so neighbors share a shard.
/// Otherwise, the shard number is the CRC32 (as in zlib) of the bytes of `key`, modulo
/// `2 * total_elements / shard_size`. That is twice the number of full shards, since hashing does not fill them evenly.
/// The key of a shard is `base:` and its number.
///
/// ```
/// use brisk::recipes::shard_key;
/// assert_eq!(shard_key("user", 125_000, 1_000_000, 1000), "user:125");
/// assert_eq!(shard_key("user", "ana", 1_000_000, 1000), "user:1570");
/// ```
#[must_use]
pub fn shard_key(base: &str, key: impl ToArg, total_elements: u64, shard_size: u64) -> String {
    let rule = Rule { total_elements, shard_size: shard_size.max(1) };
    format!("{base}:{}", rule.shard(&bytes_of(key)))
}

/// The parameters of the rule.
#[derive(Clone, Copy, Debug)]
pub(super) struct Rule {
    total_elements: u64,
    shard_size: u64,
}

impl Rule {
    pub(super) fn new(total_elements: u64, shard_size: u64) -> Result<Rule> {
        let rule = Rule { total_elements, shard_size: shard_size.max(1) };
        if shard_size == 0 || rule.shards() > SHARDS_MAX {
            let text = "a shard needs at least 1 element, and there are at most 2^32 shards";
            return Err(Error::new(Kind::Invalid, text));
        }
        Ok(rule)
    }

    /// The number of shards.
    pub(super) fn shards(&self) -> u64 {
        (self.total_elements.saturating_mul(2) / self.shard_size).max(1)
    }

    /// The shard of an element by the rule, even if its number is out of range.
    fn shard(&self, key: &[u8]) -> u64 {
        match number(key) {
            Some(number) => number / self.shard_size,
            None => u64::from(crc32(key)) % self.shards(),
        }
    }

    /// The shard of an element, or an error if its number is out of range, because iterations would not reach that
    /// shard.
    pub(super) fn shard_within(&self, key: &[u8]) -> Result<u64> {
        let shard = self.shard(key);
        if shard < self.shards() {
            return Ok(shard);
        }
        let (digits, total) = (key.len(), self.total_elements);
        let text = format!("a number of {digits} digits is too large for {total} elements");
        Err(Error::new(Kind::Invalid, text))
    }
}

/// The number, if the bytes are all digits. A number that is too large becomes the maximum.
fn number(key: &[u8]) -> Option<u64> {
    if key.is_empty() || !key.iter().all(u8::is_ascii_digit) {
        return None;
    }
    let add =
        |number: u64, digit: &u8| number.saturating_mul(10).saturating_add(u64::from(digit - b'0'));
    Some(key.iter().fold(0, add))
}

/// CRC-32 as in zlib. O(bytes), with eight steps per byte.
fn crc32(bytes: &[u8]) -> u32 {
    const POLYNOMIAL: u32 = 0xEDB8_8320;
    let step = |crc: u32, _| (crc >> 1) ^ (POLYNOMIAL & 0_u32.wrapping_sub(crc & 1));
    !bytes.iter().fold(u32::MAX, |crc, byte| (0..8).fold(crc ^ u32::from(*byte), step))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The values are those of Python's `binascii.crc32`.
    #[test]
    fn keys_have_the_same_shards_as_in_other_languages() {
        assert_eq!(crc32(b"123456789"), 0xCBF4_3926);
        for (key, million, few) in [
            ("ana", "user:1570", "user:170"),
            ("user:1", "user:802", "user:2"),
            ("", "user:0", "user:0"),
            ("X1", "user:889", "user:89"),
            ("550e8400-e29b-41d4-a716-446655440000", "user:1873", "user:73"),
            ("-5", "user:1075", "user:75"),
            ("999", "user:0", "user:9"),
            ("1000", "user:1", "user:10"),
            ("0001000", "user:1", "user:10"),
        ] {
            assert_eq!(shard_key("user", key, 1_000_000, 1000), million, "{key}");
            assert_eq!(shard_key("user", key, 10_000, 100), few, "{key}");
        }
        assert_eq!(shard_key("user", 999_999, 1_000_000, 1000), "user:999");
    }

    #[test]
    fn elements_without_a_shard_are_rejected() {
        let rule = Rule::new(1000, 100).unwrap();
        assert_eq!(rule.shards(), 20);
        assert_eq!(rule.shard_within(b"1999").unwrap(), 19);
        assert_eq!(rule.shard_within(b"2000").unwrap_err().kind(), Kind::Invalid);
        let huge = "9".repeat(50);
        assert_eq!(rule.shard_within(huge.as_bytes()).unwrap_err().kind(), Kind::Invalid);
        assert_eq!(Rule::new(1, 0).unwrap_err().kind(), Kind::Invalid);
        assert_eq!(Rule::new(u64::MAX, 1).unwrap_err().kind(), Kind::Invalid);
        // Fewer elements than one shard takes.
        assert_eq!(Rule::new(10, 1000).unwrap().shards(), 1);
    }
}
