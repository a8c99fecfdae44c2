//! Listpack: many small strings and integers in one allocation, readable in both directions.
//!
//! Used by small lists, hashes, sets and sorted sets, and by list nodes and stream blocks. The
//! bytes are in Redis's own format, since RDB files and DUMP payloads contain them unchanged.
//!
//! ```text
//!  total: u32 LE   count: u16 LE      entry 0                    entry 1        end
//! +--------------+--------------+---------------------------+---------------+------+
//! | whole length | 65535 = many | encoding+data |  back len |      ...      | 0xFF |
//! +--------------+--------------+---------------------------+---------------+------+
//!                                 \_ n bytes __/ \_ value n: 7 bits per byte, read from the right
//! ```
//! `listpack/codec.rs` shows the encodings.
//!
//! Invariants (`check` verifies each)
//!  1. `total` is the length of the bytes; the last is 0xFF, and no entry begins with that byte.
//!  2. Walking forward by encoded lengths and backward by back lengths visits the same boundaries.
//!  3. `count` is exact, or 65535, which means that counting takes a walk over all entries.
//!
//! Integers and lengths are written in their shortest encoding. Bytes that another server wrote
//! (external bytes) may use longer encodings, so equality compares elements, never bytes.
//!
//! Costs: get by index and find O(n); push at either end amortised O(1), delete there O(1); insert
//! and delete elsewhere O(bytes after the entry). Memory grows in the allocator's size classes, so
//! a listpack leaves no more memory unused than the allocator would waste anyway. Callers keep a
//! listpack small, and always below [`BYTES_MAX`].
//!
//! External bytes enter only through [`ListPack::from_bytes`] and [`Checked`], which check 1 to 3.

mod buffer;
mod codec;
mod find;
mod item;
#[cfg(test)]
mod tests;

pub use item::Item;

use crate::malformed::Malformed;
use buffer::{Buffer, size_class};
use codec::{
    COUNT_UNKNOWN, END, Encoded, HEADER_LEN, INT_16, INT_64, INT_LENS, SHORT, SHORT_MAX, back_len,
    back_len_size, encoded_len,
};
use std::ops::Range;

/// Maximum size of a listpack, as in Redis: 1 GiB. Callers must not exceed it (see
/// [`ListPack::has_room`]).
pub const BYTES_MAX: usize = 1 << 30;

/// The bytes of a listpack without elements.
const EMPTY: [u8; HEADER_LEN + 1] = [HEADER_LEN as u8 + 1, 0, 0, 0, 0, 0, END];

/// The position of an entry. Valid until the listpack is changed. Using a position of another
/// listpack, or one kept across a change, gives a wrong element or a panic.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Pos(u32);

/// Small strings and integers in one allocation.
#[derive(Debug, Clone)]
pub struct ListPack {
    bytes: Buffer,
}

impl Default for ListPack {
    fn default() -> Self {
        Self::new()
    }
}

impl ListPack {
    /// Creates an empty listpack.
    #[must_use]
    pub fn new() -> ListPack {
        ListPack::with_capacity(0)
    }

    /// Creates an empty listpack with memory for entries of `bytes` bytes in total.
    #[must_use]
    pub fn with_capacity(bytes: usize) -> ListPack {
        let mut own = Vec::with_capacity(size_class(EMPTY.len() + bytes));
        own.extend_from_slice(&EMPTY);
        ListPack { bytes: Buffer::of(own) }
    }

    /// Takes external bytes after validating them. O(bytes).
    ///
    /// # Errors
    /// Fails if they are not a well-formed listpack.
    pub fn from_bytes(bytes: Vec<u8>) -> Result<ListPack, Malformed> {
        validate(&bytes)?;
        Ok(ListPack { bytes: Buffer::of(bytes) })
    }

    /// Copies external bytes that were validated. O(bytes).
    #[must_use]
    pub fn copy_of(checked: Checked<'_>) -> ListPack {
        let mut own = Vec::with_capacity(size_class(checked.0.len()));
        own.extend_from_slice(checked.0);
        ListPack { bytes: Buffer::of(own) }
    }

    /// Takes bytes that came from [`ListPack::as_bytes`] unchanged.
    pub(crate) fn from_checked(bytes: Vec<u8>) -> ListPack {
        debug_assert_eq!(validate(&bytes), Ok(()));
        ListPack { bytes: Buffer::of(bytes) }
    }

    /// Returns the listpack's bytes.
    #[inline]
    #[must_use]
    pub fn as_bytes(&self) -> &[u8] {
        &self.bytes
    }

    #[must_use]
    pub fn into_bytes(self) -> Vec<u8> {
        self.bytes.into_vec()
    }

    /// Returns the length of the bytes.
    #[inline]
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.bytes.len()
    }

    /// Returns the size of the allocation in bytes.
    #[must_use]
    pub fn allocated_bytes(&self) -> usize {
        self.bytes.capacity()
    }

    /// Returns true if `entries` entries with texts of `bytes` bytes in total could be added.
    #[must_use]
    pub fn has_room(&self, entries: usize, bytes: usize) -> bool {
        // An entry has at most 5 bytes before its text and 5 after it.
        let added = entries.saturating_mul(10).saturating_add(bytes);
        self.bytes.len().saturating_add(added) <= BYTES_MAX
    }

    /// Returns the number of elements. O(1) below 65,535 elements, otherwise O(n).
    #[inline]
    #[must_use]
    pub fn len(&self) -> usize {
        match self.count() {
            COUNT_UNKNOWN => self.counted(),
            count => usize::from(count),
        }
    }

    #[cold]
    fn counted(&self) -> usize {
        self.iter().count()
    }

    #[inline]
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.bytes.len() == EMPTY.len()
    }

    /// Returns the first entry.
    #[inline]
    #[must_use]
    pub fn first(&self) -> Option<Pos> {
        (!self.is_empty()).then(|| pos(HEADER_LEN))
    }

    /// Returns the last entry.
    #[inline]
    #[must_use]
    pub fn last(&self) -> Option<Pos> {
        (!self.is_empty()).then(|| pos(self.before(self.end())))
    }

    /// Returns the entry after `at`.
    #[inline]
    #[must_use]
    pub fn next(&self, at: Pos) -> Option<Pos> {
        let next = self.after(offset(at));
        (next < self.end()).then(|| pos(next))
    }

    /// Returns the entry before `at`.
    #[inline]
    #[must_use]
    pub fn prev(&self, at: Pos) -> Option<Pos> {
        let at = offset(at);
        (at > HEADER_LEN).then(|| pos(self.before(at)))
    }

    /// Returns the element at `at`.
    #[inline]
    #[must_use]
    pub fn item(&self, at: Pos) -> Item<'_> {
        self.item_at(offset(at))
    }

    /// Returns the entry with index `index`. Negative indices count from the end, -1 being the last
    /// entry. Walks from the nearer end.
    #[must_use]
    pub fn seek(&self, index: i64) -> Option<Pos> {
        let distance = usize::try_from(index.unsigned_abs()).ok()?;
        let count = self.count();
        if count == COUNT_UNKNOWN {
            return if index < 0 {
                self.walk_backward(distance - 1)
            } else {
                self.walk_forward(distance)
            };
        }
        let count = usize::from(count);
        let index = if index < 0 { count.checked_sub(distance)? } else { distance };
        if index >= count {
            None
        } else if index <= count / 2 {
            self.walk_forward(index)
        } else {
            self.walk_backward(count - 1 - index)
        }
    }

    /// Returns the element with index `index`; negative indices count from the end.
    #[must_use]
    pub fn get(&self, index: i64) -> Option<Item<'_>> {
        self.seek(index).map(|at| self.item(at))
    }

    /// Returns an iterator over all elements, usable from either end.
    #[inline]
    #[must_use]
    pub fn iter(&self) -> Iter<'_> {
        Iter { list: self, front: HEADER_LEN, back: self.end() }
    }

    /// Returns the elements from `at` to the end.
    #[inline]
    #[must_use]
    pub fn iter_from(&self, at: Pos) -> Iter<'_> {
        Iter { list: self, front: offset(at), back: self.end() }
    }

    /// Returns the elements with these indices. Indices without an element are ignored. Walks from
    /// the nearer end.
    #[must_use]
    pub fn iter_range(&self, range: Range<usize>) -> Iter<'_> {
        let len = self.len();
        let (start, end) = (range.start.min(len), range.end.min(len));
        let offset_of = |index: usize| self.seek(index as i64).map_or(self.end(), offset);
        let front = offset_of(start);
        let back = if end <= start {
            front
        } else if end - start < len - end {
            (start..end).fold(front, |at, _| self.after(at))
        } else {
            offset_of(end)
        };
        Iter { list: self, front, back }
    }

    /// Appends an element. Amortised O(length of the element).
    #[inline]
    pub fn push_back<'a>(&mut self, element: impl Into<Item<'a>>) {
        let element = element.into();
        if let Item::Str(text) = element
            && text.len() < SHORT_MAX
        {
            // Head and back length take one byte each.
            let len = text.len() as u8;
            self.bytes.truncate(self.end());
            self.bytes.append([&[SHORT | len], text, &[len + 1, END]]);
        } else {
            let entry = Encoded::new(element);
            self.bytes.truncate(self.end());
            let [head, data, back] = entry.parts();
            self.bytes.append([head, data, back, &[END]]);
        }
        self.changed(1);
    }

    /// Prepends an element. Amortised O(length of the element).
    #[inline]
    pub fn push_front<'a>(&mut self, element: impl Into<Item<'a>>) {
        let element = element.into();
        if let Item::Str(text) = element
            && text.len() < SHORT_MAX
        {
            let len = text.len() as u8;
            self.bytes.insert_after_head(HEADER_LEN, [&[SHORT | len], text, &[len + 1]]);
        } else {
            self.bytes.insert_after_head(HEADER_LEN, Encoded::new(element).parts());
        }
        self.changed(1);
    }

    /// Inserts an element before `at`, and returns its position.
    #[inline]
    pub fn insert_before<'a>(&mut self, at: Pos, element: impl Into<Item<'a>>) -> Pos {
        self.put(offset(at), 0, element.into());
        self.changed(1);
        at
    }

    /// Inserts an element after `at`, and returns its position.
    #[inline]
    pub fn insert_after<'a>(&mut self, at: Pos, element: impl Into<Item<'a>>) -> Pos {
        let next = self.after(offset(at));
        self.put(next, 0, element.into());
        self.changed(1);
        pos(next)
    }

    /// Replaces the element at `at`. The new element has the same position.
    #[inline]
    pub fn replace<'a>(&mut self, at: Pos, element: impl Into<Item<'a>>) {
        let at = offset(at);
        self.put(at, self.after(at) - at, element.into());
        self.changed(0);
    }

    /// Removes the entry at `at`, and returns the position of the next one.
    pub fn delete(&mut self, at: Pos) -> Option<Pos> {
        self.delete_range(at, 1)
    }

    /// Removes `count` entries from `at` on, or as many as exist, and returns the position of the
    /// next one.
    pub fn delete_range(&mut self, at: Pos, count: usize) -> Option<Pos> {
        let (from, end) = (offset(at), self.end());
        let (mut to, mut deleted) = (from, 0);
        while deleted < count && to < end {
            to = self.after(to);
            deleted += 1;
        }
        if from == HEADER_LEN {
            self.bytes.remove_after_head(HEADER_LEN, to - from);
        } else {
            self.bytes.copy_within(to.., from);
            self.bytes.truncate(end + 1 - (to - from));
        }
        if self.bytes.len() <= self.bytes.capacity() / 2 {
            self.give_back();
        }
        self.changed(-(deleted as isize));
        (from < self.end()).then_some(at)
    }

    /// Shrinks the memory if a much smaller size class is enough.
    #[cold]
    fn give_back(&mut self) {
        let class = size_class(self.bytes.len());
        if class <= self.bytes.capacity() / 2 {
            self.bytes.shrink_to(class);
        }
    }

    /// Appends all elements of `other`. O(bytes of `other`).
    pub fn append(&mut self, other: &ListPack) {
        let entries = &other.bytes[HEADER_LEN..other.end()];
        self.bytes.truncate(self.end());
        self.bytes.append([entries, &[END]]);
        self.changed(other.len() as isize);
        if other.count() == COUNT_UNKNOWN {
            self.bytes[4..6].copy_from_slice(&COUNT_UNKNOWN.to_le_bytes());
        }
    }

    /// Removes all entries and keeps the memory.
    pub fn clear(&mut self) {
        self.bytes.truncate(0);
        self.bytes.append([&EMPTY]);
    }

    /// Verifies the invariants. O(bytes).
    pub fn check(&self) {
        assert_eq!(validate(&self.bytes), Ok(()), "1 to 3");
        let forward: Vec<usize> = self.iter().positions().collect();
        let mut at = self.end();
        for &start in forward.iter().rev() {
            at = self.before(at);
            assert_eq!(at, start, "2: boundaries");
        }
        assert_eq!(at, HEADER_LEN, "2: the way back ends at the first entry");
        assert!(self.bytes.len() <= BYTES_MAX, "longer than allowed");
    }

    #[inline]
    fn count(&self) -> u16 {
        u16::from_le_bytes([self.bytes[4], self.bytes[5]])
    }

    /// Returns the offset of the end byte.
    #[inline]
    fn end(&self) -> usize {
        self.bytes.len() - 1
    }

    /// Returns the offset after the entry at `at`.
    #[inline]
    fn after(&self, at: usize) -> usize {
        match self.bytes[at] {
            // The most common cases, with back lengths of one byte. Sorted sets have many integers.
            0..SHORT => at + 2,
            first @ SHORT..0xc0 => at + 2 + usize::from(first & 0x3f),
            first @ INT_16..=INT_64 => at + INT_LENS[usize::from(first - INT_16)],
            _ => self.after_other(at),
        }
    }

    fn after_other(&self, at: usize) -> usize {
        let len = encoded_len(&self.bytes[at..]).expect("by 2 an entry begins at each boundary");
        at + len + back_len_size(len)
    }

    /// Returns the offset of the entry that ends at `end`.
    #[inline]
    fn before(&self, end: usize) -> usize {
        let len = back_len(&self.bytes, end).expect("by 2 a back length ends at each boundary");
        end - len - back_len_size(len)
    }

    #[inline]
    fn item_at(&self, at: usize) -> Item<'_> {
        codec::item(&self.bytes[at..]).expect("by 2 an entry begins at each boundary")
    }

    fn walk_forward(&self, steps: usize) -> Option<Pos> {
        self.iter().positions().nth(steps).map(pos)
    }

    fn walk_backward(&self, steps: usize) -> Option<Pos> {
        let mut at = self.last()?;
        for _ in 0..steps {
            at = self.prev(at)?;
        }
        Some(at)
    }

    /// Writes an entry at `at` over the `old` bytes there.
    fn put(&mut self, at: usize, old: usize, item: Item<'_>) {
        let entry = Encoded::new(item);
        let (new, len) = (entry.len(), self.bytes.len());
        if new > old {
            self.bytes.append_zeros(new - old);
        }
        if new != old {
            self.bytes.copy_within(at + old..len, at + new);
            self.bytes.truncate(len + new - old);
        }
        entry.write_to(&mut self.bytes[at..at + new]);
    }

    /// Updates the header after `added` entries have changed the bytes.
    #[inline]
    fn changed(&mut self, added: isize) {
        debug_assert!(self.bytes.len() <= BYTES_MAX, "callers keep listpacks below the limit");
        let total = (self.bytes.len() as u32).to_le_bytes();
        let Some([length @ .., low, high]) = self.bytes.first_chunk_mut::<HEADER_LEN>() else {
            unreachable!("by 1 there is a header");
        };
        *length = total;
        let count = u16::from_le_bytes([*low, *high]);
        if count != COUNT_UNKNOWN {
            let count = usize::from(count).saturating_add_signed(added);
            let count = u16::try_from(count).unwrap_or(COUNT_UNKNOWN);
            [*low, *high] = count.to_le_bytes();
        }
    }
}

/// Checks that `bytes` are a well-formed listpack: lengths, every entry, back lengths, count.
/// O(bytes).
///
/// # Errors
/// Returns the first rule that is violated.
pub fn validate(bytes: &[u8]) -> Result<(), Malformed> {
    codec::validate_each(bytes, |_, _| Ok(()))
}

/// External bytes that were validated as a listpack.
#[derive(Debug, Clone, Copy)]
pub struct Checked<'b>(&'b [u8]);

impl<'b> Checked<'b> {
    /// Validates every byte, and calls `each` with the offset and value of every element, so that
    /// callers with further checks need no second walk. O(bytes).
    ///
    /// # Errors
    /// Returns the first rule that is violated, or the fault that `each` returned.
    #[inline]
    pub fn new(
        bytes: &'b [u8],
        each: impl FnMut(usize, Item<'b>) -> Result<(), &'static str>,
    ) -> Result<Checked<'b>, Malformed> {
        codec::validate_each(bytes, each).map(|()| Checked(bytes))
    }
}

/// Returns the element at byte `at` of external bytes, if there is one.
#[inline]
#[must_use]
pub fn element_at(bytes: &[u8], at: usize) -> Option<Item<'_>> {
    codec::item(bytes.get(at..)?)
}

/// Returns the number of elements that the header of a listpack states; `None` if it is unknown, or
/// if the bytes are not a listpack.
#[must_use]
pub fn count_said(bytes: &[u8]) -> Option<u16> {
    let &[_, _, _, _, low, high, ..] = bytes else { return None };
    Some(u16::from_le_bytes([low, high])).filter(|&count| count != COUNT_UNKNOWN)
}

#[inline]
fn pos(offset: usize) -> Pos {
    Pos(offset as u32) // below BYTES_MAX, or below what `total` can say
}

#[inline]
fn offset(pos: Pos) -> usize {
    pos.0 as usize
}

impl<'a> IntoIterator for &'a ListPack {
    type Item = Item<'a>;
    type IntoIter = Iter<'a>;

    fn into_iter(self) -> Iter<'a> {
        self.iter()
    }
}

/// The elements of a listpack, from either end.
#[derive(Debug, Clone)]
pub struct Iter<'a> {
    list: &'a ListPack,
    front: usize,
    back: usize,
}

impl<'a> Iter<'a> {
    /// Returns the position of the next element from the front.
    #[must_use]
    pub fn pos(&self) -> Option<Pos> {
        (self.front < self.back).then(|| pos(self.front))
    }

    fn positions(self) -> impl Iterator<Item = usize> {
        let Iter { list, front, back } = self;
        std::iter::successors((front < back).then_some(front), move |&at| {
            let next = list.after(at);
            (next < back).then_some(next)
        })
    }
}

impl<'a> Iter<'a> {
    /// Returns the next element if it is neither a short string nor a small integer.
    #[inline(never)]
    fn next_other(&mut self) -> Item<'a> {
        let item = self.list.item_at(self.front);
        self.front = self.list.after_other(self.front);
        item
    }
}

impl<'a> Iterator for Iter<'a> {
    type Item = Item<'a>;

    #[inline(always)]
    fn next(&mut self) -> Option<Item<'a>> {
        if self.front >= self.back {
            return None;
        }
        // Most elements are short strings, and most scores and counters are small integers.
        match self.list.bytes[self.front] {
            first @ SHORT..0xc0 => {
                let (start, len) = (self.front + 1, usize::from(first & 0x3f));
                self.front = start + len + 1;
                Some(Item::Str(&self.list.bytes[start..start + len]))
            }
            number @ 0..SHORT => {
                self.front += 2;
                Some(Item::Int(i64::from(number)))
            }
            _ => Some(self.next_other()),
        }
    }

    /// Does not decode the skipped elements.
    #[inline]
    fn nth(&mut self, count: usize) -> Option<Item<'a>> {
        for _ in 0..count {
            if self.front >= self.back {
                return None;
            }
            self.front = self.list.after(self.front);
        }
        self.next()
    }
}

impl DoubleEndedIterator for Iter<'_> {
    #[inline]
    fn next_back(&mut self) -> Option<Self::Item> {
        if self.front >= self.back {
            return None;
        }
        self.back = self.list.before(self.back);
        Some(self.list.item_at(self.back))
    }
}
