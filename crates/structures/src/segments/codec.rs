//! The encoding of an entry in the arena of a segment.
//!
//! ```text
//!  +------+-----------+-------------+----------+-----------+-------------+
//!  | head | long head | value length| deadline |    key    |    value    |
//!  | u8   | u8, if L  | 1 or 3, if V| 8, if D  |           |             |
//!  +------+-----------+-------------+----------+-----------+-------------+
//!  head: L D V and the low 5 bits of the key's length; long head: the 8 bits above
//!  value length: 0..=253, or 254 and a u16, or 255 for a value outside
//! ```
//!
//! A key or value of more than [`INLINE_MAX`] bytes is stored outside of the arena. In its place,
//! the arena contains its number, a `u16`. Numbers are little-endian.

/// Maximum length in bytes of a key or value in the arena.
pub(super) const INLINE_MAX: usize = 512;

/// Maximum size in bytes of an entry without its key and value.
pub(super) const HEAD_MAX: usize = 13;

const LONG: u8 = 0x80;
const DEADLINE: u8 = 0x40;
const VALUE: u8 = 0x20;
const LOW: usize = 0x1f;
const KEY_OUTSIDE: usize = 0x1fff;
const VALUE_WORD: u8 = 254;
const VALUE_OUTSIDE: u8 = 255;

/// The position of a part of an entry.
#[derive(Debug, Clone, Copy)]
pub(super) struct Part {
    pub(super) start: usize,
    pub(super) len: usize,
    /// True if the bytes in the arena are the number of a part outside of it.
    pub(super) outside: bool,
}

impl Part {
    #[inline(always)]
    pub(super) fn bytes(self, arena: &[u8]) -> &[u8] {
        &arena[self.start..self.start + self.len]
    }

    pub(super) fn number(self, arena: &[u8]) -> usize {
        usize::from(u16::from_le_bytes([arena[self.start], arena[self.start + 1]]))
    }
}

/// A decoded entry.
#[derive(Debug, Clone, Copy)]
pub(super) struct Layout {
    pub(super) key: Part,
    pub(super) value: Option<Part>,
    pub(super) deadline: Option<u64>,
    /// Offset after the entry's last byte.
    pub(super) end: usize,
}

impl Layout {
    /// Returns the key of the entry at `at`, if the entry is only a short key.
    #[inline(always)]
    pub(super) fn plain_key(arena: &[u8], at: usize) -> Option<&[u8]> {
        Layout::plain_end(arena, at).map(|end| &arena[at + 1..end])
    }

    /// Returns the offset after the entry at `at`, if the entry is only a short key.
    #[inline(always)]
    pub(super) fn plain_end(arena: &[u8], at: usize) -> Option<usize> {
        let head = usize::from(arena[at]);
        // Without a flag, the head is the length.
        (head <= LOW).then_some(at + 1 + head)
    }

    /// Decodes the entry at `at`.
    #[inline]
    pub(super) fn read(arena: &[u8], at: usize) -> Layout {
        let head = arena[at];
        let mut next = at + 1;
        let mut key_len = usize::from(head) & LOW;
        if head & LONG != 0 {
            key_len |= usize::from(arena[next]) << 5;
            next += 1;
        }
        let mut value_len = (0, false);
        if head & VALUE != 0 {
            let first = arena[next];
            next += 1;
            value_len = (usize::from(first), false);
            if first == VALUE_WORD {
                value_len.0 = usize::from(u16::from_le_bytes([arena[next], arena[next + 1]]));
                next += 2;
            } else if first == VALUE_OUTSIDE {
                value_len = (2, true);
            }
        }
        let mut deadline = None;
        if head & DEADLINE != 0 {
            let mut word = [0; 8];
            word.copy_from_slice(&arena[next..next + 8]);
            deadline = Some(u64::from_le_bytes(word));
            next += 8;
        }
        let outside = key_len == KEY_OUTSIDE;
        let key = Part { start: next, len: if outside { 2 } else { key_len }, outside };
        next += key.len;
        let value = Part { start: next, len: value_len.0, outside: value_len.1 };
        Layout { key, value: (head & VALUE != 0).then_some(value), deadline, end: next + value.len }
    }
}

/// Returns the head of an entry that is only a key of this length, if the head is one byte.
#[inline(always)]
pub(super) fn plain_head(key: usize) -> Option<u8> {
    (key <= LOW).then_some(key as u8)
}

/// The bytes of an entry before its key.
pub(super) struct Head {
    bytes: [u8; HEAD_MAX],
    len: usize,
}

impl Head {
    /// Creates the head for a key and a value of these lengths. Parts longer than [`INLINE_MAX`]
    /// are outside of the arena.
    #[inline]
    pub(super) fn new(key: usize, value: Option<usize>, deadline: Option<u64>) -> Head {
        let mut head = Head { bytes: [0; HEAD_MAX], len: 1 };
        let key = if key > INLINE_MAX { KEY_OUTSIDE } else { key };
        head.bytes[0] = (key & LOW) as u8;
        if key > LOW {
            head.bytes[0] |= LONG;
            head.push(&[(key >> 5) as u8]);
        }
        if let Some(len) = value {
            head.bytes[0] |= VALUE;
            if len > INLINE_MAX {
                head.push(&[VALUE_OUTSIDE]);
            } else if len < usize::from(VALUE_WORD) {
                head.push(&[len as u8]);
            } else {
                let [low, high] = (len as u16).to_le_bytes();
                head.push(&[VALUE_WORD, low, high]);
            }
        }
        if let Some(deadline) = deadline {
            head.bytes[0] |= DEADLINE;
            head.push(&deadline.to_le_bytes());
        }
        head
    }

    #[inline(always)]
    fn push(&mut self, bytes: &[u8]) {
        self.bytes[self.len..self.len + bytes.len()].copy_from_slice(bytes);
        self.len += bytes.len();
    }

    #[inline(always)]
    pub(super) fn as_bytes(&self) -> &[u8] {
        &self.bytes[..self.len]
    }
}

/// Returns the bytes that a key or value of this length takes in the arena, without its head.
#[inline(always)]
pub(super) fn arena_len(len: usize) -> usize {
    if len > INLINE_MAX { 2 } else { len }
}
