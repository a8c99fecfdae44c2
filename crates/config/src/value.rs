//! Types of settings that are more than a number or a switch, and the parsing and formatting of
//! numbers. Enumerations are in `choice.rs`.

use std::borrow::Cow;
use std::fmt;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// Why a value is rejected: the text after the dash in CONFIG SET's error, or the last line of a
/// file error.
pub type SettingRejection = Cow<'static, str>;

/// A text setting. Redis accepts any bytes here, including passwords and paths, so these are bytes
/// too.
#[derive(Clone, Default, PartialEq, Eq, Hash)]
pub struct Text(Box<[u8]>);

impl Text {
    /// Returns the bytes.
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    /// Returns the bytes as a path of the file system.
    pub fn as_path(&self) -> &Path {
        Path::new(std::ffi::OsStr::from_bytes(&self.0))
    }

    /// Returns true if the setting is empty.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns the text for messages; bytes that are not UTF-8 are replaced.
    pub fn to_string_lossy(&self) -> Cow<'_, str> {
        String::from_utf8_lossy(&self.0)
    }
}

impl From<&[u8]> for Text {
    fn from(bytes: &[u8]) -> Self {
        Self(bytes.into())
    }
}

impl From<&str> for Text {
    fn from(text: &str) -> Self {
        Self(text.as_bytes().into())
    }
}

impl fmt::Debug for Text {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", self.to_string_lossy())
    }
}

/// `maxmemory-clients`: bytes, or a percentage of `maxmemory`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MemoryShare {
    /// A fixed number of bytes, 0 for no limit.
    Bytes(u64),
    /// 1 to 100 percent of `maxmemory`.
    Percent(u8),
}

impl Default for MemoryShare {
    fn default() -> Self {
        Self::Bytes(0)
    }
}

impl MemoryShare {
    /// Returns the limit in bytes; `None` for no limit. A percentage of an unlimited `maxmemory`
    /// means no limit either.
    pub fn limit(self, maxmemory: u64) -> Option<u64> {
        let bytes = match self {
            Self::Bytes(bytes) => bytes,
            // Divides first, so that the product cannot overflow. The lost remainder is below one
            // percent of 100 bytes.
            Self::Percent(percent) => maxmemory / 100 * u64::from(percent),
        };
        (bytes > 0).then_some(bytes)
    }
}

/// `threads`: a number of workers, or one per core.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Threads {
    /// The configured value; 0 means one per core.
    pub configured: usize,
}

impl Threads {
    /// Returns the number of workers to run: at least 1. Queries the system each time if the value
    /// is 0.
    pub fn count(self) -> usize {
        match self.configured {
            0 => std::thread::available_parallelism().map_or(1, usize::from),
            configured => configured,
        }
    }
}

/// One `save` rule: snapshot after `seconds` if there were at least `changes` changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SaveRule {
    /// At least 1.
    pub seconds: i64,
    /// At least 0.
    pub changes: i64,
}

/// One class of `client-output-buffer-limit`; zero means no limit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct OutputLimit {
    /// Bytes of unsent output at which the client is disconnected immediately.
    pub hard_bytes: u64,
    /// Bytes that the unsent output may exceed for at most `soft_seconds`.
    pub soft_bytes: u64,
    /// Maximum time above `soft_bytes` in seconds.
    pub soft_seconds: i64,
}

/// The client classes of `client-output-buffer-limit`, in the order of the array.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClientClass {
    /// All other clients, including MONITOR.
    Normal = 0,
    /// Replicas of this server.
    Replica = 1,
    /// Clients with a subscription.
    Pubsub = 2,
}

/// `replicaof host port`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PrimaryAddress {
    /// Name or address, as given.
    pub host: Text,
    /// 0 to 65,535.
    pub port: u16,
}

/// A `rename-command` line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rename {
    /// The command's original name.
    pub command: Text,
    /// Its new name; empty removes the command.
    pub to: Text,
}

/// Parses a number as Redis parses integers: no sign except `-`, no leading zero, no whitespace.
pub(super) fn integer(bytes: &[u8]) -> Option<i64> {
    let digits = bytes.strip_prefix(b"-").unwrap_or(bytes);
    let canonical = match digits {
        [b'0'] => digits.len() == bytes.len(),
        [first, ..] => *first != b'0' && digits.iter().all(u8::is_ascii_digit),
        [] => false,
    };
    if !canonical {
        return None;
    }
    std::str::from_utf8(bytes).ok()?.parse().ok()
}

/// Maximum number of digits in an amount of memory, as in Redis.
const MEMORY_DIGITS_MAX: usize = 127;

/// Parses an amount of memory: digits and an optional unit (`k` = 1,000, `kb` = 1,024, and so on).
///
/// As in Redis, no digits at all mean 0, a number above 64 bits counts as the maximum, a product
/// wraps around, and only a number of absurd length is rejected.
pub fn memory(bytes: &[u8]) -> Option<u64> {
    let digits = bytes.iter().take_while(|byte| byte.is_ascii_digit()).count();
    let (number, unit) = bytes.split_at(digits);
    let factor: u64 = match unit.to_ascii_lowercase().as_slice() {
        b"" | b"b" => 1,
        b"k" => 1_000,
        b"kb" => 1 << 10,
        b"m" => 1_000_000,
        b"mb" => 1 << 20,
        b"g" => 1_000_000_000,
        b"gb" => 1 << 30,
        _ => return None,
    };
    if number.is_empty() {
        return Some(0);
    }
    if digits > MEMORY_DIGITS_MAX {
        return None;
    }
    // There are only digits, so parsing fails only if the number is too large.
    let number = std::str::from_utf8(number).ok()?.parse().unwrap_or(u64::MAX);
    Some(number.wrapping_mul(factor))
}

/// Returns the part before the first NUL byte. Redis reads most kinds of values as C strings, which
/// end there.
pub(super) fn until_nul(bytes: &[u8]) -> &[u8] {
    bytes.split(|byte| *byte == 0).next().unwrap_or(bytes)
}

/// Formats an amount of memory with the largest unit that divides it, for configuration files.
pub(super) fn memory_text(bytes: u64) -> String {
    for (shift, unit) in [(30, "gb"), (20, "mb"), (10, "kb")] {
        if bytes != 0 && bytes & ((1 << shift) - 1) == 0 {
            return format!("{}{unit}", bytes >> shift);
        }
    }
    bytes.to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn integers_have_one_spelling() {
        assert_eq!(integer(b"-5"), Some(-5));
        assert_eq!(integer(b"0"), Some(0));
        assert_eq!(integer(b"-9223372036854775808"), Some(i64::MIN));
        for bad in ["", "-", "+5", "05", " 5", "5 ", "-0", "0x5", "5.0", "9223372036854775808"] {
            assert_eq!(integer(bad.as_bytes()), None, "{bad}");
        }
    }

    #[test]
    fn memory_units_are_decimal_without_b_and_binary_with_it() {
        assert_eq!(memory(b"1k"), Some(1_000));
        assert_eq!(memory(b"1KB"), Some(1_024));
        assert_eq!(memory(b"2gb"), Some(2 << 30));
        assert_eq!(memory(b""), Some(0));
        assert_eq!(memory(b"b"), Some(0));
        for bad in ["1.1kb", " 1", "1 ", "-5", "5kb5", "0x10", "+5", "1t"] {
            assert_eq!(memory(bad.as_bytes()), None, "{bad}");
        }
    }

    #[test]
    fn memory_above_64_bits_is_cut_off_and_wraps_around() {
        // As redis-server 7.0.15 replies to CONFIG SET maxmemory and CONFIG GET.
        assert_eq!(memory(b"18446744073709551616"), Some(u64::MAX));
        assert_eq!(memory(b"18446744073709551615kb"), Some(18_446_744_073_709_550_592));
        assert_eq!(memory(b"20000000000gb"), Some(3_028_092_406_290_448_384));
        assert_eq!(memory(b"17179869184gb"), Some(0));
        assert_eq!(memory("9".repeat(127).as_bytes()), Some(u64::MAX));
        assert_eq!(memory("9".repeat(128).as_bytes()), None);
    }

    #[test]
    fn memory_text_reads_back() {
        for bytes in [0, 1, 1_023, 1_024, 1 << 20, 3 << 30, (1 << 30) + 1, u64::MAX] {
            assert_eq!(memory(memory_text(bytes).as_bytes()), Some(bytes));
        }
    }

    #[test]
    fn a_percentage_of_unlimited_memory_is_no_limit() {
        assert_eq!(MemoryShare::Percent(5).limit(0), None);
        assert_eq!(MemoryShare::Percent(5).limit(1_000), Some(50));
        assert_eq!(MemoryShare::Bytes(7).limit(0), Some(7));
    }
}
