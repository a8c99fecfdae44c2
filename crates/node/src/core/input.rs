//! The input of a session: bytes that have arrived but have not been executed yet, beginning at the start of a request.
//!
//! Its memory grows with the bytes that have arrived, not with the bytes that a client announced, because announcing a
//! large request costs the client nothing. A short input is held in a buffer that is at most a quarter larger than its
//! contents, or one page. A long input has its own memory mapping. The kernel backs only the pages that were written,
//! and the mapping grows without copying. Therefore an n-byte value costs O(n), regardless of how it arrives.

use brisk_structures::entry::size_class;
use brisk_structures::growing::GrowingBytes;
use std::ops::Deref;

/// The minimum capacity for a request that announced at least this many bytes.
const PAGE_BYTES: usize = 4096;
/// A buffer up to this size is kept for the next request until the timers find it idle. A longer input has its own
/// memory mapping, which is freed after the input is executed.
const SHORT_MAX: usize = 512 * 1024;
/// A buffer that was used recently is not cut below this size.
const TRIMMED_BYTES_MIN: usize = 16 * 1024;
/// A buffer that has not been used for this long is freed.
const IDLE_MS: u64 = 2000;

/// Bytes that wait to be executed.
#[derive(Debug, Default)]
pub struct Input {
    bytes: Bytes,
    /// Minimum number of bytes that the request at the end still lacks.
    missing: usize,
    /// The largest size since the last check by the timers.
    peak: usize,
    /// When the timers last noticed that the input had been used, in Unix ms.
    used_ms: u64,
}

/// The bytes of an input.
#[derive(Debug)]
pub enum Bytes {
    /// For up to [`SHORT_MAX`] bytes, or more if the system cannot map memory.
    Short(Vec<u8>),
    /// For more than [`SHORT_MAX`] bytes.
    Long(GrowingBytes),
}

impl Default for Bytes {
    fn default() -> Bytes {
        Bytes::Short(Vec::new())
    }
}

impl Deref for Bytes {
    type Target = [u8];

    #[inline]
    fn deref(&self) -> &[u8] {
        match self {
            Bytes::Short(bytes) => bytes,
            Bytes::Long(bytes) => bytes,
        }
    }
}

impl Bytes {
    /// Bytes of memory taken.
    #[inline]
    pub(super) fn capacity(&self) -> usize {
        match self {
            Bytes::Short(bytes) => bytes.capacity(),
            Bytes::Long(bytes) => bytes.memory(),
        }
    }
}

impl Input {
    /// Reports whether the input is empty.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    /// Bytes held.
    #[inline]
    pub fn len(&self) -> usize {
        self.bytes.len()
    }

    /// Bytes of memory taken.
    #[inline]
    pub fn capacity(&self) -> usize {
        self.bytes.capacity()
    }

    /// Sets the number of bytes that the request at the end still lacks; 0 if unknown.
    pub fn set_missing(&mut self, missing: usize) {
        self.missing = missing;
    }

    /// Adds bytes that arrived. Amortized O(new bytes).
    pub fn append(&mut self, new: &[u8]) {
        self.missing = self.missing.saturating_sub(new.len());
        self.keep(new);
    }

    /// Keeps the rest of the bytes that arrived. The bytes before the rest were executed in place. O(bytes).
    pub fn keep(&mut self, rest: &[u8]) {
        self.add(rest);
        self.peak = self.peak.max(self.len());
    }

    fn add(&mut self, new: &[u8]) {
        let len = self.len() + new.len();
        match &mut self.bytes {
            Bytes::Short(bytes) if len <= SHORT_MAX => {
                reserve(bytes, len, self.missing);
                bytes.extend_from_slice(new);
            }
            _ => self.add_to_long(new),
        }
    }

    #[cold]
    fn add_to_long(&mut self, new: &[u8]) {
        if let Bytes::Short(bytes) = &self.bytes
            && let Some(long) = GrowingBytes::new(bytes)
        {
            self.bytes = Bytes::Long(long);
        }
        let refused = match &mut self.bytes {
            Bytes::Long(bytes) => !bytes.append(new),
            Bytes::Short(_) => true,
        };
        if refused {
            let mut bytes = match self.take() {
                Bytes::Short(bytes) => bytes,
                Bytes::Long(bytes) => bytes.to_vec(),
            };
            let len = bytes.len() + new.len();
            reserve(&mut bytes, len, self.missing);
            bytes.extend_from_slice(new);
            self.bytes = Bytes::Short(bytes);
        }
    }

    /// Takes all bytes out, to be executed in place. [`Input::put_back`] must follow.
    pub fn take(&mut self) -> Bytes {
        std::mem::take(&mut self.bytes)
    }

    /// Puts back the bytes that [`Input::take`] returned, without the first `used` bytes. O(bytes left).
    pub fn put_back(&mut self, bytes: Bytes, used: usize) {
        debug_assert!(self.bytes.is_empty(), "nothing arrives while a session executes");
        match bytes {
            Bytes::Short(mut bytes) if bytes.capacity() <= SHORT_MAX => {
                bytes.drain(..used.min(bytes.len()));
                self.bytes = Bytes::Short(bytes);
            }
            bytes if used == 0 => self.bytes = bytes,
            bytes => self.add(bytes.get(used..).unwrap_or_default()),
        }
    }

    /// Frees excess capacity. After two seconds without use, this is all unused capacity; before that, only the part
    /// that far exceeds recent use.
    pub fn trim(&mut self, now_ms: u64) {
        let peak = std::mem::take(&mut self.peak);
        if peak > 0 {
            self.used_ms = now_ms;
        }
        let Bytes::Short(bytes) = &mut self.bytes else { return };
        if now_ms.saturating_sub(self.used_ms) >= IDLE_MS {
            bytes.shrink_to_fit();
            return;
        }
        let needed = peak.max(bytes.len()).max(TRIMMED_BYTES_MIN);
        if bytes.capacity() / 2 > needed {
            bytes.shrink_to(needed);
        }
    }
}

/// Makes room for `len` bytes in total, of which `missing` are announced but have not arrived.
fn reserve(bytes: &mut Vec<u8>, len: usize, missing: usize) {
    if len > bytes.capacity() {
        bytes.reserve_exact(capacity_for(len, missing) - bytes.len());
    }
}

/// The capacity for a short input that holds `len` bytes and lacks `missing`. If the whole request is not much larger
/// than the bytes that have arrived, the capacity covers the whole request. Otherwise it is based on the bytes that
/// have arrived.
fn capacity_for(len: usize, missing: usize) -> usize {
    let most = (len + len / 4).max(PAGE_BYTES);
    let whole = size_class(len.saturating_add(missing).min(most));
    if whole <= most { whole } else { most }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Appends `total` bytes in pieces of `piece` bytes. Returns the largest ratio of memory (minus one page) to bytes
    /// held, and the number of bytes that were copied.
    fn arriving(total: usize, piece: usize, announced: usize) -> (f64, usize) {
        let mut input = Input::default();
        let (mut worst, mut copied) = (0.0, 0);
        let bytes = vec![b'x'; piece];
        while input.len() < total {
            input.set_missing(announced - input.len());
            let (before, held) = (input.capacity(), input.len());
            input.append(&bytes[..piece.min(total - held)]);
            if input.capacity() != before && held <= SHORT_MAX {
                copied += held;
            }
            let beyond_page = input.capacity().saturating_sub(PAGE_BYTES);
            worst = f64::max(worst, beyond_page as f64 / input.len() as f64);
        }
        (worst, copied)
    }

    #[test]
    fn memory_follows_the_bytes_that_arrived() {
        for piece in [1, 54, 1000, 10_000, 65_536] {
            for total in [54, 4096, 5000, 10_000, 40_000, 300_000, 3_000_000] {
                let (worst, copied) = arriving(total, piece, 536_870_912);
                assert!(worst <= 1.25, "{total} in pieces of {piece}: {worst}");
                assert!(copied <= 6 * total, "{total} in pieces of {piece}: {copied} copied");
            }
        }
    }

    #[test]
    fn a_nearly_complete_request_gets_room_for_all_of_it() {
        let mut input = Input::default();
        input.set_missing(20_000);
        input.append(&[b'x'; 16_500]);
        let capacity = input.capacity();
        assert!((20_000..=20_625).contains(&capacity), "{capacity}");
        input.append(&[b'x'; 3500]);
        assert_eq!(input.capacity(), capacity);
    }

    #[test]
    fn a_large_buffer_is_freed_with_its_bytes() {
        let mut input = Input::default();
        input.append(&vec![b'x'; 3_000_000]);
        let bytes = input.take();
        input.put_back(bytes, 2_999_990);
        assert_eq!(input.len(), 10);
        assert!(input.capacity() <= PAGE_BYTES);
        input.append(&vec![b'x'; 3_000_000]);
        let bytes = input.take();
        let used = bytes.len();
        input.put_back(bytes, used);
        assert_eq!((input.len(), input.capacity()), (0, 0));
        // A buffer of ordinary size is kept for the next request until it is idle.
        input.append(&[b'x'; 30_000]);
        let bytes = input.take();
        input.put_back(bytes, 30_000);
        input.trim(1000);
        assert!(input.capacity() >= 30_000);
        input.trim(2000);
        input.trim(3000);
        assert_eq!(input.capacity(), 0);
    }
}
