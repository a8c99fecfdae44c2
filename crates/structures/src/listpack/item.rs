//! One element of a listpack: an integer or a string.

use crate::decimal::{decimal_len, parse_i64};

/// An element as it is stored. An integer stands for its decimal text: `Int(7)` equals `Str(b"7")`,
/// since a listpack that another server wrote may contain either.
#[derive(Debug, Clone, Copy)]
pub enum Item<'a> {
    Int(i64),
    Str(&'a [u8]),
}

impl<'a> Item<'a> {
    /// Returns how `text` is stored: as an integer if and only if it is canonical decimal.
    #[inline]
    #[must_use]
    pub fn of(text: &'a [u8]) -> Item<'a> {
        // "-9223372036854775808" has 20 bytes.
        if text.len() <= 20
            && matches!(text, [b'-' | b'0'..=b'9', ..])
            && let Some(number) = parse_i64(text)
        {
            return Item::Int(number);
        }
        Item::Str(text)
    }

    /// Returns the item in the form that [`Item::of`] would choose for its text. A listpack that
    /// another server wrote may store an integer as a string.
    #[inline]
    #[must_use]
    pub fn canonical(self) -> Item<'a> {
        match self {
            Item::Str(text) => Item::of(text),
            number => number,
        }
    }

    /// Returns the element's text. `digits` provides the memory for an integer's text.
    #[inline]
    pub fn text<'b>(self, digits: &'b mut itoa::Buffer) -> &'b [u8]
    where
        'a: 'b,
    {
        match self {
            Item::Int(number) => digits.format(number).as_bytes(),
            Item::Str(text) => text,
        }
    }

    /// Returns the length of the text in bytes.
    #[inline]
    #[must_use]
    pub fn len(self) -> usize {
        match self {
            Item::Int(number) => decimal_len(number),
            Item::Str(text) => text.len(),
        }
    }

    /// Returns true if the text is empty.
    #[inline]
    #[must_use]
    pub fn is_empty(self) -> bool {
        matches!(self, Item::Str([]))
    }

    /// Returns the integer if the text is canonical decimal, however it is stored.
    #[inline]
    #[must_use]
    pub fn int(self) -> Option<i64> {
        match self {
            Item::Int(number) => Some(number),
            Item::Str(text) => parse_i64(text),
        }
    }

    /// Copies the text into a vector.
    #[must_use]
    pub fn to_vec(self) -> Vec<u8> {
        self.text(&mut itoa::Buffer::new()).to_vec()
    }

    /// Returns true if the text equals `text`. Allocates nothing.
    #[inline]
    #[must_use]
    pub fn is(self, text: &[u8]) -> bool {
        match self {
            Item::Int(number) => text.len() <= 20 && parse_i64(text) == Some(number),
            Item::Str(own) => own == text,
        }
    }
}

impl<'a> From<&'a [u8]> for Item<'a> {
    #[inline]
    fn from(text: &'a [u8]) -> Item<'a> {
        Item::of(text)
    }
}

impl<'a, const N: usize> From<&'a [u8; N]> for Item<'a> {
    #[inline]
    fn from(text: &'a [u8; N]) -> Item<'a> {
        Item::of(text)
    }
}

impl From<i64> for Item<'_> {
    #[inline]
    fn from(number: i64) -> Self {
        Item::Int(number)
    }
}

impl PartialEq for Item<'_> {
    #[inline]
    fn eq(&self, other: &Item<'_>) -> bool {
        match (*self, *other) {
            (Item::Int(one), Item::Int(two)) => one == two,
            (one, Item::Str(text)) | (Item::Str(text), one) => one.is(text),
        }
    }
}

impl Eq for Item<'_> {}
