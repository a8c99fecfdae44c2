//! Integer set: integers in ascending order in one allocation. All have the width that the widest
//! integer ever added needs.
//!
//! Small sets of integers use this encoding. The bytes are in Redis's own format, since RDB files
//! and DUMP payloads contain them verbatim. Everything is little-endian.
//!
//! ```text
//!  width: u32    length: u32     items: signed integers of `width` bytes, strictly ascending
//! +------------+---------------+----------+----------+----------+
//! | 2, 4 or 8  | items         |  item 0  |  item 1  |   ...    |
//! +------------+---------------+----------+----------+----------+
//! ```
//!
//! Invariants (`check` verifies each)
//!  1. `width` is 2, 4 or 8, and the allocation holds the header and `length` items, no byte more.
//!  2. Items are strictly ascending.
//!  3. There are at most [`LEN_MAX`] items.
//!
//! The width never shrinks. After removals, a set may be wider than necessary, and so may sets from
//! other servers.
//!
//! Costs: find O(log n); insert and remove O(bytes after the item); a new width O(n). All of it is
//! safe code: the searches run over arrays of one width, so the compiler removes their bounds
//! checks.

use crate::malformed::Malformed;
use std::fmt;

const HEADER: usize = 8;

/// Maximum number of items in a set: their bytes fit in 33 bits, as Redis requires.
pub const LEN_MAX: usize = 1 << 30;

/// Integers in ascending order. See the module documentation.
#[derive(Clone, PartialEq, Eq)]
pub struct IntSet {
    bytes: Vec<u8>,
}

/// Returns the number of bytes that an integer needs.
const fn width_of(value: i64) -> usize {
    if value >= i16::MIN as i64 && value <= i16::MAX as i64 {
        2
    } else if value >= i32::MIN as i64 && value <= i32::MAX as i64 {
        4
    } else {
        8
    }
}

/// The items of a set by their width.
#[derive(Clone, Copy)]
enum Items<'a> {
    Two(&'a [[u8; 2]]),
    Four(&'a [[u8; 4]]),
    Eight(&'a [[u8; 8]]),
}

impl Items<'_> {
    fn of(width: usize, bytes: &[u8]) -> Items<'_> {
        match width {
            2 => Items::Two(bytes.as_chunks().0),
            4 => Items::Four(bytes.as_chunks().0),
            _ => Items::Eight(bytes.as_chunks().0),
        }
    }

    fn get(&self, index: usize) -> Option<i64> {
        match self {
            Items::Two(items) => items.get(index).map(|item| i64::from(i16::from_le_bytes(*item))),
            Items::Four(items) => items.get(index).map(|item| i64::from(i32::from_le_bytes(*item))),
            Items::Eight(items) => items.get(index).map(|item| i64::from_le_bytes(*item)),
        }
    }

    /// Returns the index of `value`, or the index at which to insert it.
    fn search(&self, value: i64) -> Result<usize, usize> {
        match self {
            Items::Two(items) => {
                items.binary_search_by_key(&value, |item| i64::from(i16::from_le_bytes(*item)))
            }
            Items::Four(items) => {
                items.binary_search_by_key(&value, |item| i64::from(i32::from_le_bytes(*item)))
            }
            Items::Eight(items) => {
                items.binary_search_by_key(&value, |item| i64::from_le_bytes(*item))
            }
        }
    }

    /// Returns the first item that is not greater than the previous one.
    fn first_out_of_order(&self) -> Option<usize> {
        fn first<const W: usize>(items: &[[u8; W]], number: fn([u8; W]) -> i64) -> Option<usize> {
            let pairs = items.iter().zip(items.iter().skip(1));
            let mut pairs = pairs.map(|(a, b)| number(*a) < number(*b));
            pairs.position(|ascending| !ascending).map(|before| before + 1)
        }
        match self {
            Items::Two(items) => first(items, |item| i64::from(i16::from_le_bytes(item))),
            Items::Four(items) => first(items, |item| i64::from(i32::from_le_bytes(item))),
            Items::Eight(items) => first(items, i64::from_le_bytes),
        }
    }
}

impl Default for IntSet {
    fn default() -> IntSet {
        IntSet::new()
    }
}

impl IntSet {
    /// Creates an empty set.
    pub fn new() -> IntSet {
        IntSet::with_capacity(0, 0)
    }

    /// Creates an empty set with room for `items` items as wide as `widest`.
    pub fn with_capacity(items: usize, widest: i64) -> IntSet {
        let width = width_of(widest);
        let mut bytes = Vec::with_capacity(HEADER + items.min(LEN_MAX) * width);
        bytes.extend_from_slice(&(width as u32).to_le_bytes());
        bytes.extend_from_slice(&[0; 4]);
        IntSet { bytes }
    }

    /// Creates a set from external bytes, which are kept unchanged. O(n).
    ///
    /// # Errors
    /// Fails if the bytes violate an invariant, or contain no items, which servers never write.
    pub fn from_bytes(bytes: Vec<u8>) -> Result<IntSet, Malformed> {
        validate(&bytes)?;
        Ok(IntSet { bytes })
    }

    /// Returns the bytes as written to files.
    #[inline]
    pub fn as_bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Returns the allocated bytes.
    pub fn allocated_bytes(&self) -> usize {
        self.bytes.capacity()
    }

    #[inline]
    fn width(&self) -> usize {
        // Invariant 1: the first byte determines the width.
        usize::from(self.bytes[0])
    }

    #[inline]
    fn items(&self) -> Items<'_> {
        Items::of(self.width(), &self.bytes[HEADER..])
    }

    #[inline]
    pub fn len(&self) -> usize {
        let body = self.bytes.len() - HEADER;
        // A shift, because a division by an unknown width would be the most expensive part of a
        // small operation.
        body >> self.width().trailing_zeros()
    }

    #[inline]
    pub fn is_empty(&self) -> bool {
        self.bytes.len() == HEADER
    }

    /// Returns the item at `index` in ascending order. O(1).
    #[inline]
    pub fn get(&self, index: usize) -> Option<i64> {
        self.items().get(index)
    }

    #[inline]
    pub fn min(&self) -> Option<i64> {
        self.get(0)
    }

    #[inline]
    pub fn max(&self) -> Option<i64> {
        self.get(self.len().checked_sub(1)?)
    }

    /// Returns all items in ascending order.
    pub fn iter(&self) -> Iter<'_> {
        Iter { items: self.items(), range: 0..self.len() }
    }

    #[inline]
    pub fn contains(&self, value: i64) -> bool {
        width_of(value) <= self.width() && self.items().search(value).is_ok()
    }

    /// Returns the index of `value` in ascending order.
    pub fn position(&self, value: i64) -> Option<usize> {
        if width_of(value) > self.width() { None } else { self.items().search(value).ok() }
    }

    /// Adds `value`. Returns false if it already exists. Panics beyond [`LEN_MAX`] items.
    pub fn insert(&mut self, value: i64) -> bool {
        let (width, len) = (self.width(), self.len());
        assert!(len < LEN_MAX, "callers convert long before");
        if width_of(value) > width {
            self.widen(value);
            return true;
        }
        // Numbers often arrive in ascending order, and results are built that way.
        let at = if self.max().is_none_or(|max| max < value) {
            len
        } else {
            match self.items().search(value) {
                Ok(_) => return false,
                Err(at) => at,
            }
        };
        self.reserve(width);
        let end = self.bytes.len();
        let place = HEADER + at * width;
        self.bytes.resize(end + width, 0);
        self.bytes.copy_within(place..end, place + width);
        self.bytes[place..place + width].copy_from_slice(&value.to_le_bytes()[..width]);
        self.set_len(len + 1);
        true
    }

    /// Removes `value`. Returns false if it does not exist.
    pub fn remove(&mut self, value: i64) -> bool {
        match self.position(value) {
            Some(at) => {
                self.remove_at(at);
                true
            }
            None => false,
        }
    }

    /// Removes the item at `index` in ascending order, and returns it if it exists.
    pub fn remove_at(&mut self, index: usize) -> Option<i64> {
        let value = self.get(index)?;
        let (width, len) = (self.width(), self.len());
        let place = HEADER + index * width;
        self.bytes.copy_within(place + width.., place);
        self.bytes.truncate(self.bytes.len() - width);
        self.set_len(len - 1);
        self.give_back();
        Some(value)
    }

    /// Keeps the items for which `keep` returns true. `keep` is called with the index and value of
    /// each item, in ascending order. O(n).
    pub fn retain(&mut self, mut keep: impl FnMut(usize, i64) -> bool) {
        let (width, len) = (self.width(), self.len());
        let mut kept = 0;
        for index in 0..len {
            let value = self.get(index).expect("the index is below the length");
            if keep(index, value) {
                let place = HEADER + index * width;
                self.bytes.copy_within(place..place + width, HEADER + kept * width);
                kept += 1;
            }
        }
        self.bytes.truncate(HEADER + kept * width);
        self.set_len(kept);
        self.give_back();
    }

    /// Verifies the invariants; panics if one is broken.
    pub fn check(&self) {
        assert!(matches!(self.bytes[..4], [2 | 4 | 8, 0, 0, 0]), "1: width");
        assert_eq!(self.bytes.len(), HEADER + stored_len(&self.bytes) * self.width(), "1: length");
        assert_eq!(self.items().first_out_of_order(), None, "2: order");
        assert!(self.len() <= LEN_MAX, "3: too long");
    }

    /// Widens all items to the width of `value`, which is wider and therefore below or above all of
    /// them, and adds it.
    fn widen(&mut self, value: i64) {
        let len = self.len();
        let mut wide = IntSet::with_capacity(len + 1, value);
        let mut push = |item: i64| {
            wide.bytes.extend_from_slice(&item.to_le_bytes()[..width_of(value)]);
        };
        if value < 0 {
            push(value);
        }
        self.iter().for_each(&mut push);
        if value > 0 {
            push(value);
        }
        wide.set_len(len + 1);
        *self = wide;
    }

    fn set_len(&mut self, len: usize) {
        self.bytes[4..HEADER].copy_from_slice(&(len as u32).to_le_bytes());
    }

    /// Makes room for one more item. Doubling would waste half the memory; an eighth more than
    /// needed keeps appending linear.
    fn reserve(&mut self, width: usize) {
        if self.bytes.len() + width > self.bytes.capacity() {
            self.bytes.reserve_exact((self.bytes.len() / 8).max(width));
        }
    }

    /// Frees memory once less than half is used.
    fn give_back(&mut self) {
        const SMALL: usize = 64;
        if self.bytes.capacity() > SMALL && self.bytes.len() < self.bytes.capacity() / 2 {
            self.bytes.shrink_to(self.bytes.len() + self.bytes.len() / 8);
        }
    }
}

/// Returns the length in the header.
fn stored_len(bytes: &[u8]) -> usize {
    u32::from_le_bytes([bytes[4], bytes[5], bytes[6], bytes[7]]) as usize
}

/// Checks that external bytes are an integer set with at least one item. O(n).
///
/// # Errors
/// Returns the first rule that is violated.
pub fn validate(bytes: &[u8]) -> Result<(), Malformed> {
    let malformed = |offset, what| Err(Malformed { offset, what });
    let Some((header, body)) = bytes.split_at_checked(HEADER) else {
        return malformed(bytes.len(), "integer set without its header");
    };
    let width = match header[..4] {
        [width @ (2 | 4 | 8), 0, 0, 0] => usize::from(width),
        _ => return malformed(0, "integer set of a width other than 2, 4 and 8"),
    };
    let len = stored_len(header);
    if len == 0 {
        return malformed(4, "integer set without items");
    }
    if len > LEN_MAX || len * width != body.len() {
        return malformed(4, "integer set whose length does not match its items");
    }
    match Items::of(width, body).first_out_of_order() {
        Some(index) => malformed(HEADER + index * width, "integer set out of order"),
        None => Ok(()),
    }
}

impl fmt::Debug for IntSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.iter()).finish()
    }
}

/// The items of a set in ascending order.
#[derive(Clone)]
pub struct Iter<'a> {
    items: Items<'a>,
    range: std::ops::Range<usize>,
}

impl Iterator for Iter<'_> {
    type Item = i64;

    #[inline]
    fn next(&mut self) -> Option<i64> {
        self.items.get(self.range.next()?)
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        self.range.size_hint()
    }

    fn nth(&mut self, n: usize) -> Option<i64> {
        self.items.get(self.range.nth(n)?)
    }
}

impl DoubleEndedIterator for Iter<'_> {
    fn next_back(&mut self) -> Option<i64> {
        self.items.get(self.range.next_back()?)
    }
}

impl ExactSizeIterator for Iter<'_> {}

impl<'a> IntoIterator for &'a IntSet {
    type Item = i64;
    type IntoIter = Iter<'a>;

    fn into_iter(self) -> Iter<'a> {
        self.iter()
    }
}

impl FromIterator<i64> for IntSet {
    fn from_iter<I: IntoIterator<Item = i64>>(items: I) -> IntSet {
        let mut set = IntSet::new();
        items.into_iter().for_each(|item| {
            set.insert(item);
        });
        set
    }
}

#[cfg(test)]
mod tests;
