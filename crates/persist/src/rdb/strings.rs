//! A sequence of byte strings in one allocation.
//!
//! Each string follows its length (7 bits per byte, low ones first). A million short elements
//! therefore take little more memory than their bytes in the file.

/// Byte strings, one after another.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Strings {
    bytes: Vec<u8>,
    len: usize,
}

impl Strings {
    #[must_use]
    pub fn new() -> Strings {
        Strings::default()
    }

    /// Returns the number of strings. O(1).
    #[must_use]
    pub fn len(&self) -> usize {
        self.len
    }

    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Returns the number of allocated bytes.
    #[must_use]
    pub fn allocated_bytes(&self) -> usize {
        self.bytes.capacity()
    }

    pub fn push(&mut self, string: &[u8]) {
        self.push_with(string.len() as u64).extend_from_slice(string);
    }

    /// Begins a string of `len` bytes, which the caller appends to the returned vector. A caller
    /// that appends something else must drop the whole sequence.
    pub(super) fn push_with(&mut self, len: u64) -> &mut Vec<u8> {
        let mut left = len;
        while left >= 0x80 {
            self.bytes.push(left as u8 | 0x80);
            left >>= 7;
        }
        self.bytes.push(left as u8);
        self.len += 1;
        &mut self.bytes
    }

    pub(super) fn clear(&mut self) {
        self.bytes.clear();
        self.len = 0;
    }

    /// Returns an iterator over all strings, in order.
    #[must_use]
    pub fn iter(&self) -> Iter<'_> {
        Iter { strings: self, at: 0 }
    }

    /// Returns the strings in pairs. If the number of strings is odd, the last one is not returned.
    pub fn pairs(&self) -> impl Iterator<Item = (&[u8], &[u8])> + Clone {
        let mut iter = self.iter();
        std::iter::from_fn(move || Some((iter.next()?, iter.next()?)))
    }

    /// Returns the string at the offset `at` (see [`Iter::offset`]), and the offset of the next
    /// one.
    pub(super) fn at(&self, at: usize) -> Option<(&[u8], usize)> {
        let mut len = 0;
        let mut shift = 0;
        let mut start = at;
        loop {
            let byte = *self.bytes.get(start)?;
            start += 1;
            len |= u64::from(byte & 0x7f).checked_shl(shift)?;
            if byte < 0x80 {
                break;
            }
            shift += 7;
        }
        let end = start.checked_add(usize::try_from(len).ok()?)?;
        Some((self.bytes.get(start..end)?, end))
    }
}

impl<T: AsRef<[u8]>> FromIterator<T> for Strings {
    fn from_iter<I: IntoIterator<Item = T>>(strings: I) -> Strings {
        let mut all = Strings::new();
        for string in strings {
            all.push(string.as_ref());
        }
        all
    }
}

impl<'a> IntoIterator for &'a Strings {
    type Item = &'a [u8];
    type IntoIter = Iter<'a>;

    fn into_iter(self) -> Iter<'a> {
        self.iter()
    }
}

/// Iterator over the strings of a sequence.
#[derive(Debug, Clone)]
pub struct Iter<'a> {
    strings: &'a Strings,
    at: usize,
}

impl Iter<'_> {
    /// Returns the offset of the next string.
    pub(super) fn offset(&self) -> usize {
        self.at
    }
}

impl<'a> Iterator for Iter<'a> {
    type Item = &'a [u8];

    fn next(&mut self) -> Option<&'a [u8]> {
        let (string, next) = self.strings.at(self.at)?;
        self.at = next;
        Some(string)
    }
}

#[cfg(test)]
mod tests {
    use super::Strings;

    #[test]
    fn strings_of_any_length_come_back() {
        let long = vec![7u8; 20_000];
        let all: Vec<&[u8]> = vec![b"", b"a", &long[..127], &long[..128], b"", &long];
        let strings: Strings = all.iter().collect();
        assert_eq!(strings.len(), 6);
        assert_eq!(strings.iter().collect::<Vec<_>>(), all);
        assert_eq!(
            strings.pairs().map(|(_, second)| second.len()).collect::<Vec<_>>(),
            [1, 128, 20_000]
        );
    }
}
