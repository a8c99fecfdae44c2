//! Chooses the number of buckets of a table, and moves the entries when the number changes.
//!
//! Counts follow the allocator's size classes, in steps of 1.14 to 1.25. An entry moves about five
//! times while a table grows to any size, but moving is a sequential walk through both arrays and
//! touches no entry. In return, the load stays between 75 and 93 %. Buckets then cost 13.2 to 14.2
//! bytes per entry, and a quarter of them overflow at 610 entries (`examples/table_cost.rs`).
//! Larger steps were not measured; a Poisson estimate of bucket loads suggests that they need more
//! memory.

use super::Root;
use super::array::{Array, COUNT_MAX, size_up};
use super::bucket::Position;
use crate::reclaim;
use std::sync::atomic::Ordering::Relaxed;

/// Load at which the array grows, in sixteenths of an entry per bucket: 6.5 of 7.
const LOAD_MAX_SIXTEENTHS: u64 = 104;
/// The array shrinks if less than 1/`SHRINK_BELOW_PART` of its room is in use. It then keeps room
/// for twice its entries.
const SHRINK_BELOW_PART: u64 = 8;
/// Arrays with more buckets than this are replaced step by step. The limit is estimated, not
/// measured.
const ONE_GO_BUCKETS_MAX: u64 = if cfg!(any(test, miri, fuzzing)) { 8 } else { 1024 };
/// Number of buckets moved per insert or remove. A growth step of 1.14 leaves room for 0.14 * 6.5
/// inserts per old bucket, so 2 would already finish in time.
const BUCKETS_PER_STEP: u32 = 4;

/// Returns the number of entries that an array of `count` buckets holds before it grows.
fn room(count: u64) -> u64 {
    (count * LOAD_MAX_SIXTEENTHS).div_ceil(16)
}

/// Returns the lowest count with room for `len` entries, at least 1.
fn count_for(len: u64) -> u64 {
    size_up(len.saturating_sub(1) * 16 / LOAD_MAX_SIXTEENTHS + 1)
}

impl<V> Root<V> {
    /// Called before an insert: ensures that there is an array with room, or that a resize is in
    /// progress.
    #[inline]
    pub(super) fn make_room(&self) {
        if !self.draining().is_null() {
            self.resize_step(BUCKETS_PER_STEP);
        }
        let count = self.current().count();
        if self.len() as u64 >= room(count) {
            self.grow(count);
        }
    }

    /// Allocates an array with room for `len` entries, at least 1, if there is none yet.
    pub(super) fn reserve(&self, len: u64) {
        if self.current().is_null() {
            self.publish(Array::allocate(count_for(len).min(COUNT_MAX)), Array::NULL);
        }
    }

    #[cold]
    fn grow(&self, count: u64) {
        if self.draining().is_null() && count < COUNT_MAX {
            self.resize(size_up(count + 1));
        }
    }

    /// Called after a remove: continues a resize, or starts one if the table has become sparse.
    #[inline]
    pub(super) fn after_remove(&self) {
        if !self.draining().is_null() {
            self.resize_step(BUCKETS_PER_STEP);
        } else if (self.len() as u64) < room(self.current().count()) / SHRINK_BELOW_PART {
            self.shrink();
        } else if self.len() == 0 {
            self.free_empty();
        }
    }

    #[cold]
    fn shrink(&self) {
        let len = self.len() as u64;
        let count = count_for(len * 2);
        if len == 0 {
            self.free_empty();
        } else if count < self.current().count() {
            self.resize(count);
        }
    }

    pub(super) fn shrink_to_fit(&self) {
        let len = self.len() as u64;
        if !self.draining().is_null() {
            return; // a resize is in progress; the next call does the rest
        }
        if len == 0 {
            self.free_empty();
        } else if count_for(len) < self.current().count() {
            self.resize(count_for(len));
        }
    }

    /// Frees the array of an empty table.
    #[cold]
    fn free_empty(&self) {
        debug_assert!(self.draining().is_null() && self.len() == 0);
        let array = self.current();
        if !array.is_null() {
            self.publish(Array::NULL, Array::NULL);
            Self::retire(array);
        }
    }

    /// Replaces the array: in one step if both arrays are small, otherwise by starting to drain the
    /// old one.
    fn resize(&self, count: u64) {
        let old = self.current();
        let new = Array::allocate(count);
        if old.is_null() {
            self.publish(new, Array::NULL);
            return;
        }
        self.watermark.store(0, Relaxed);
        self.publish(new, old);
        if old.count().max(count) <= ONE_GO_BUCKETS_MAX {
            self.resize_step(u32::MAX);
        }
    }

    /// Moves up to `buckets` buckets to the new array. Returns true if more remain.
    pub(super) fn resize_step(&self, buckets: u32) -> bool {
        let old = self.draining();
        if old.is_null() {
            return false;
        }
        let new = self.current();
        let count = old.count();
        let first = old.index(Position(self.watermark.load(Relaxed)));
        let end = count.min(first.saturating_add(u64::from(buckets)));
        for index in first..end {
            // SAFETY: 1: both arrays are live and ours; the indexes are below their counts.
            unsafe { old.bucket(index) }.drain(|position, entry| {
                // SAFETY: as above.
                unsafe { new.bucket(new.index(position)) }.push(position, entry);
            });
        }
        old.release_drained(first, end);
        if end < count {
            self.watermark.store(old.first_position(end), Relaxed);
            return true;
        }
        self.publish(new, Array::NULL);
        Self::retire(old);
        if self.len() == 0 {
            self.free_empty();
        }
        false
    }

    /// Passes the memory of an array without entries to reclamation.
    pub(super) fn retire(array: Array) {
        // SAFETY: 1: made by Array::allocate with this layout, and unlinked by the caller.
        unsafe { reclaim::retire(array.start(), Array::layout(array.count())) };
    }

    /// Drops all entries of `array` and frees its overflow buckets.
    pub(super) fn drop_entries(&self, array: Array) {
        const LOOK_AHEAD: u64 = 4;
        let count = array.count();
        for index in 0..count {
            // SAFETY: 1: the array is live and ours.
            unsafe { array.bucket((index + LOOK_AHEAD).min(count - 1)) }.prefetch_all();
            // SAFETY: as above.
            unsafe { array.bucket(index) }.drain(|_, entry| drop(super::owned::<V>(entry)));
        }
    }
}
