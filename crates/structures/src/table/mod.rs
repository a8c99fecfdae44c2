//! The hash table of one slot: an array of 64-byte buckets. It grows and shrinks without touching
//! an entry, is scanned with a stateless cursor, and is prefetched without a lock.
//!
//! The caller supplies a 64-bit hash with each key; its top 24 bits are the entry's *position*.
//! Buckets are ordered by position (`array.rs`), so both resizing and scanning are walks in one
//! direction. Arrays of up to 1,024 buckets are replaced in one step. Larger arrays are replaced
//! incrementally: the old and the new array exist side by side, and every insert and remove moves a
//! few buckets:
//!
//! ```text
//!  position 0                      watermark                              2^24
//!  |------- entries in `current` ------|------- entries in `draining` ------|
//! ```
//!
//! Access rules. `Root` contains the table's words. Its private methods that follow pointers
//! require that the caller has exclusive access (for changes), or at least that the table does not
//! change (for reading). Borrowing a [`Table`], or the slot guard, guarantees this; [`TableRef`]
//! and [`TableMut`] are the proof of this, and cannot be created in any other way. Only the two
//! prefetch methods may run at any time on `&Root`: they read array words and primary buckets as
//! relaxed atomics, and follow nothing else.
//!
//! Invariants (`check` verifies 2, 3 and, with `bucket.rs`, 5 to 7; SAFETY notes cite them)
//!  1. `current` and `draining` are null or arrays made by `Array::allocate` that this table owns.
//!     A replaced array goes to `reclaim::retire`, never directly back to the allocator.
//!  2. `draining` is null unless a resize is in progress. During a resize, `watermark` is the first
//!     position of a bucket of `draining`: all entries below `watermark` are in `current`, all
//!     others in `draining`. An entry is always in the bucket for its position.
//!  3. `len` is the number of entries; if there are no entries and no resize is in progress, there
//!     is no array.
//!  4. A thread that prefetches without holding the table is an online participant of `reclaim`,
//!     and passes no boundary between reading an array word and accessing the bucket that it leads
//!     to.
//!
//! Costs: find, insert, remove O(1), one cache miss for the bucket and one for the entry; `scan`
//! O(entries of a bucket); `sample` O(1) expected. 13 to 15 bytes of buckets per entry; the longest
//! pause is the replacement of 1,024 buckets.

mod array;
mod bucket;
mod handle;
mod resize;
mod sweep;
mod walk;

pub use handle::{EntryMut, EntryRef};

use crate::entry::Entry;
use crate::prefetch::prefetch;
use array::Array;
use bucket::{Bucket, Place, Position};
use std::marker::PhantomData;
use std::ptr::{NonNull, null_mut};
use std::sync::atomic::{
    AtomicPtr, AtomicU32,
    Ordering::{Acquire, Relaxed, Release},
};

/// The end of the position range. A scan cursor is always below it; 0 both starts and ends a scan.
pub const SCAN_END: u32 = Position::END;

/// Returns the position of an entry in a scan. A scan whose cursor is above this position has
/// already visited the entry.
#[inline]
#[must_use]
pub fn scan_position(hash: u64) -> u32 {
    Position::of_hash(hash).0
}

/// The words of a table, 24 bytes, which a slot embeds.
pub(crate) struct Root<V> {
    current: AtomicPtr<u8>,
    draining: AtomicPtr<u8>,
    len: AtomicU32,
    watermark: AtomicU32,
    owns: PhantomData<Entry<V>>,
}

impl<V> Root<V> {
    pub(crate) const fn new() -> Self {
        Self {
            current: AtomicPtr::new(null_mut()),
            draining: AtomicPtr::new(null_mut()),
            len: AtomicU32::new(0),
            watermark: AtomicU32::new(0),
            owns: PhantomData,
        }
    }

    // Acquire, paired with the release of `publish`: a prefetching thread must see an array's
    // buckets zeroed. This costs nothing on x86-64.
    #[inline(always)]
    fn current(&self) -> Array {
        Array(self.current.load(Acquire))
    }

    #[inline(always)]
    fn draining(&self) -> Array {
        Array(self.draining.load(Acquire))
    }

    /// Sets both array words.
    fn publish(&self, current: Array, draining: Array) {
        self.draining.store(draining.0, Release);
        self.current.store(current.0, Release);
    }

    /// Returns the array that holds entries of `position`.
    #[inline(always)]
    fn array_of(&self, position: Position) -> Array {
        let draining = self.draining();
        if draining.is_null() || position.0 < self.watermark.load(Relaxed) {
            self.current()
        } else {
            draining
        }
    }

    /// Prefetches the bucket for `hash`; reads only the table's own words.
    #[inline(always)]
    pub(crate) fn prefetch_bucket(&self, hash: u64) {
        let position = Position::of_hash(hash);
        let array = self.array_of(position);
        prefetch(array.address(array.index(position)));
    }

    /// Prefetches the entry that most likely has this `hash`, or the overflow bucket. Reads the
    /// primary bucket, so it should be called some time after `prefetch_bucket`.
    #[inline(always)]
    pub(crate) fn prefetch_entry(&self, hash: u64) {
        let position = Position::of_hash(hash);
        let array = self.array_of(position);
        if !array.is_null() {
            // SAFETY: 1, and 4 or the proof of a TableRef: the array is live; the index is below
            // its count.
            unsafe { array.bucket(array.index(position)) }.prefetch_entry(position);
        }
    }

    /// Returns the bucket of `position`; `None` if there is no array. The table must not change
    /// during the borrow.
    #[inline(always)]
    fn bucket_of(&self, position: Position) -> Option<&Bucket> {
        let array = self.array_of(position);
        if array.is_null() {
            return None;
        }
        // SAFETY: 1: live as long as the table does not change; the index belongs to its count.
        Some(unsafe { array.bucket(array.index(position)) })
    }

    #[inline(always)]
    fn find(&self, hash: u64, key: &[u8]) -> Option<(&Bucket, Place<'_>)> {
        let position = Position::of_hash(hash);
        let bucket = self.bucket_of(position)?;
        let place = bucket.find(position, |entry| {
            // SAFETY: 5: an entry of this table, live as long as the table does not change.
            key_eq(unsafe { EntryRef::<V>::new(entry) }.key(), key)
        })?;
        Some((bucket, place))
    }

    fn len(&self) -> usize {
        self.len.load(Relaxed) as usize
    }

    fn add_len(&self, change: i32) {
        self.len.store(self.len.load(Relaxed).wrapping_add_signed(change), Relaxed);
    }
}

/// Compares two keys. Keys of 8 to 16 bytes are compared as two overlapping words, without a call.
#[inline(always)]
fn key_eq(a: &[u8], b: &[u8]) -> bool {
    let n = a.len();
    if n != b.len() {
        return false;
    }
    if (8..=16).contains(&n) {
        return word_at(a, 0) == word_at(b, 0) && word_at(a, n - 8) == word_at(b, n - 8);
    }
    a == b
}

#[inline(always)]
fn word_at(bytes: &[u8], at: usize) -> u64 {
    let mut word = [0; 8];
    word.copy_from_slice(&bytes[at..at + 8]);
    u64::from_ne_bytes(word)
}

/// A table that is owned, or borrowed whole, by one thread: see [`Table::view`] and
/// [`Table::view_mut`] for its operations.
pub struct Table<V> {
    root: Root<V>,
}

// SAFETY: the words own entries with their V, which may be sent because V may; nothing is tied to a
// thread.
unsafe impl<V: Send> Send for Root<V> {}
// SAFETY: with only shared references nothing changes but access clocks, which are atomic.
unsafe impl<V: Sync> Sync for Root<V> {}

impl<V> Default for Table<V> {
    fn default() -> Self {
        Self::new()
    }
}

impl<V> Table<V> {
    /// Creates an empty table; allocates nothing.
    #[must_use]
    pub const fn new() -> Self {
        Self { root: Root::new() }
    }

    /// Returns the operations that read.
    #[inline]
    #[must_use]
    pub fn view(&self) -> TableRef<'_, V> {
        TableRef { root: &self.root }
    }

    /// Returns the operations that change the table.
    #[inline]
    pub fn view_mut(&mut self) -> TableMut<'_, V> {
        TableMut { root: &self.root }
    }
}

impl<V> Drop for Root<V> {
    fn drop(&mut self) {
        for array in [self.current(), self.draining()] {
            if !array.is_null() {
                self.drop_entries(array);
                Self::retire(array);
            }
        }
    }
}

/// Proof that the table does not change for 'a; provides the operations that read.
pub struct TableRef<'a, V> {
    root: &'a Root<V>,
}

impl<V> Clone for TableRef<'_, V> {
    fn clone(&self) -> Self {
        *self
    }
}
impl<V> Copy for TableRef<'_, V> {}

impl<'a, V> TableRef<'a, V> {
    /// For the slot guard: the caller holds the lock, and the table does not change for 'a.
    #[inline(always)]
    pub(crate) fn new(root: &'a Root<V>) -> Self {
        Self { root }
    }

    /// Returns the entry of `key`, whose hash is `hash`. O(1).
    #[inline]
    #[must_use]
    pub fn find(self, hash: u64, key: &[u8]) -> Option<EntryRef<'a, V>> {
        let (_, place) = self.root.find(hash, key)?;
        // SAFETY: 5: an entry of this table, unchanged for 'a.
        Some(unsafe { EntryRef::new(place.entry()) })
    }

    /// Prefetches the bucket of `hash`; useful some time before `find`.
    #[inline(always)]
    pub fn prefetch_bucket(self, hash: u64) {
        self.root.prefetch_bucket(hash);
    }

    /// Prefetches the entry of `hash`; reads the bucket.
    #[inline(always)]
    pub fn prefetch_entry(self, hash: u64) {
        self.root.prefetch_entry(hash);
    }

    /// Returns the number of entries. O(1).
    #[inline]
    #[must_use]
    pub fn len(self) -> usize {
        self.root.len()
    }

    #[inline]
    #[must_use]
    pub fn is_empty(self) -> bool {
        self.root.len() == 0
    }
}

/// Proof that nothing else reads or changes the table for 'a (except prefetching); provides the
/// operations that change the table.
pub struct TableMut<'a, V> {
    root: &'a Root<V>,
}

impl<'a, V> TableMut<'a, V> {
    /// For the slot guard: the caller holds the lock for 'a, borrowed for changes.
    #[inline(always)]
    pub(crate) fn new(root: &'a Root<V>) -> Self {
        Self { root }
    }

    /// Returns the operations that read.
    #[inline]
    #[must_use]
    pub fn as_ref(&self) -> TableRef<'_, V> {
        TableRef { root: self.root }
    }

    /// Returns the entry of `key` for reading. O(1).
    #[inline]
    #[must_use]
    pub fn find(&self, hash: u64, key: &[u8]) -> Option<EntryRef<'_, V>> {
        self.as_ref().find(hash, key)
    }

    /// Returns the entry of `key`, mutable. O(1).
    #[inline]
    #[must_use]
    pub fn find_mut(&mut self, hash: u64, key: &[u8]) -> Option<EntryMut<'_, V>> {
        let (_, place) = self.root.find(hash, key)?;
        // SAFETY: 5: an entry of this table, which we hold exclusively.
        Some(unsafe { EntryMut::new(place) })
    }

    /// Like [`TableMut::find_mut`], but the result lives as long as the borrow of the table.
    // Without inlining, a SET takes 37 more instructions (of 1,850).
    #[inline(always)]
    #[must_use]
    pub fn into_find_mut(self, hash: u64, key: &[u8]) -> Option<EntryMut<'a, V>> {
        let (_, place) = self.root.find(hash, key)?;
        // SAFETY: 5: an entry of this table, which we hold exclusively and give up here.
        Some(unsafe { EntryMut::new(place) })
    }

    /// Adds `entry`, whose key has the hash `hash` and is not in the table. Amortised O(1).
    #[inline]
    pub fn insert(&mut self, hash: u64, entry: Entry<V>) -> EntryMut<'_, V> {
        debug_assert!(self.find(hash, entry.key()).is_none(), "insert of a key that is there");
        self.root.make_room();
        let position = Position::of_hash(hash);
        let address = address_of(entry);
        let bucket = self.root.bucket_of(position).expect("make_room leaves an array");
        let place = bucket.push(position, address);
        self.root.add_len(1);
        // SAFETY: 5: an entry of this table, which we hold exclusively.
        unsafe { EntryMut::new(place) }
    }

    /// Adds `entry`, like [`TableMut::insert`]. An empty table immediately gets an array for
    /// `expected` entries, so that it need not grow to that size step by step. O(expected) in that
    /// case.
    #[inline]
    pub fn insert_first_of(
        &mut self,
        hash: u64,
        entry: Entry<V>,
        expected: u32,
    ) -> EntryMut<'_, V> {
        self.root.reserve(u64::from(expected).max(1));
        self.insert(hash, entry)
    }

    /// Replaces and returns the entry with the same key, or adds `entry` if there is none.
    pub fn replace(&mut self, hash: u64, entry: Entry<V>) -> Option<Entry<V>> {
        let Some((_, place)) = self.root.find(hash, entry.key()) else {
            self.insert(hash, entry);
            return None;
        };
        let old = place.entry();
        place.set_entry(address_of(entry));
        Some(owned(old))
    }

    /// Removes the entry of `key`. O(1), plus a bounded part of a resize.
    #[inline]
    pub fn remove(&mut self, hash: u64, key: &[u8]) -> Option<Entry<V>> {
        let (bucket, place) = self.root.find(hash, key)?;
        let removed = bucket.remove(place);
        self.root.add_len(-1);
        self.root.after_remove();
        Some(owned(removed))
    }

    /// Moves everything out and leaves an empty table. O(1).
    #[must_use]
    pub fn take(&mut self) -> Table<V> {
        let root = Root::new();
        root.publish(self.root.current(), self.root.draining());
        self.root.publish(Array::NULL, Array::NULL);
        root.len.store(self.root.len.load(Relaxed), Relaxed);
        root.watermark.store(self.root.watermark.load(Relaxed), Relaxed);
        self.root.len.store(0, Relaxed);
        Table { root }
    }

    /// Makes the bucket array as small as its entries allow: immediately or, for large arrays, by
    /// starting a resize that later calls and [`TableMut::resize_step`] continue.
    pub fn shrink_to_fit(&mut self) {
        self.root.shrink_to_fit();
    }

    /// Moves at most `buckets` buckets of a resize in progress. Returns true if more remain.
    pub fn resize_step(&mut self, buckets: u32) -> bool {
        self.root.resize_step(buckets)
    }
}

/// Passes ownership to a bucket.
#[inline(always)]
fn address_of<V>(entry: Entry<V>) -> *mut u8 {
    let address = entry.into_raw().as_ptr();
    debug_assert_eq!(address.addr() & !bucket::ADDRESS_MASK, 0);
    address
}

/// Takes back ownership of an entry that was just removed from its bucket.
#[inline(always)]
fn owned<V>(address: *mut u8) -> Entry<V> {
    // SAFETY: 5: present words hold addresses of entries that the table owned, and it no longer
    // owns this one.
    unsafe { Entry::from_raw(NonNull::new_unchecked(address)) }
}

#[cfg(test)]
mod tests;
