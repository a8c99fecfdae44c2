//! Visits many entries: scan with a cursor, samples, whole walks, removal in bulk, `check`.

use super::array::Array;
use super::bucket::{Bucket, Place, Position};
use super::{EntryMut, EntryRef, Root, Table, TableMut, TableRef, owned};
use crate::entry::Entry;
use std::sync::atomic::Ordering::Relaxed;

/// All entries of chains up to this length are sampled with the same probability.
const FAIR_CHAIN_LEN: u64 = 16;
/// Number of random buckets to try before a sample takes the next entry that it finds.
const SAMPLE_TRIES: u32 = 64;
/// Number of buckets that a prefetching walk looks ahead, so that entries are in the cache when
/// they are needed.
const LOOK_AHEAD: u64 = 4;

impl<V> Root<V> {
    /// Returns the bucket that currently holds position `cursor`, and the first position after it
    /// that may be in another bucket. `None` if there is no array.
    pub(super) fn bucket_from(&self, cursor: u32) -> Option<(&Bucket, u32)> {
        let position = Position(cursor);
        let draining = self.draining();
        let watermark = self.watermark.load(Relaxed);
        // A bucket of the current array may reach beyond the watermark, but its entries do not (2).
        let (array, limit) = if !draining.is_null() && cursor < watermark {
            (self.current(), watermark)
        } else {
            (self.array_of(position), Position::END)
        };
        if array.is_null() {
            return None;
        }
        let index = array.index(position);
        // SAFETY: 1: live while the table does not change; the index belongs to its count.
        Some((unsafe { array.bucket(index) }, array.first_position(index + 1).min(limit)))
    }

    fn arrays(&self) -> impl Iterator<Item = Array> {
        [self.current(), self.draining()].into_iter().filter(|array| !array.is_null())
    }

    fn buckets(&self) -> impl Iterator<Item = &Bucket> {
        self.arrays().flat_map(|array| {
            // SAFETY: 1: live while the table does not change; the index is below the count.
            (0..array.count()).map(move |index| unsafe { array.bucket(index) })
        })
    }

    fn sample(&self, random: u64) -> Option<Place<'_>> {
        if self.len() == 0 {
            return None;
        }
        let mut state = random;
        for _ in 0..SAMPLE_TRIES {
            let bits = next_random(&mut state);
            let (bucket, _) = self.bucket_from((bits >> 40) as u32)?;
            let len = bucket.chain_len() as u64;
            // Draw from more locations than a chain usually has. Short chains are then rejected
            // more often, so that their entries are not preferred.
            let n = (u64::from(bits as u32) * len.max(FAIR_CHAIN_LEN)) >> 32;
            if n < len {
                return bucket.nth(n as usize);
            }
        }
        self.first_from((next_random(&mut state) >> 40) as u32)
    }

    /// Returns the first entry at or after `cursor`, wrapping around.
    fn first_from(&self, cursor: u32) -> Option<Place<'_>> {
        for start in [cursor, 0] {
            let mut at = start;
            while at < Position::END {
                let (bucket, next) = self.bucket_from(at)?;
                if let Some(place) = bucket.nth(0) {
                    return Some(place);
                }
                at = next;
            }
        }
        None
    }
}

/// Returns the next output of a splitmix64 generator.
fn next_random(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mut z = *state;
    z = (z ^ z >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ z >> 31
}

impl<'a, V> TableRef<'a, V> {
    /// Visits the entries of the bucket that holds position `cursor`, from that position on, and
    /// returns the next cursor. 0 starts a scan, and is returned at its end. Every entry that
    /// exists during a whole scan is visited exactly once, regardless of inserts, removals and
    /// resizes between the calls. A cursor of [`super::SCAN_END`] or above ends the scan
    /// immediately.
    pub fn scan(self, cursor: u32, mut visit: impl FnMut(EntryRef<'a, V>)) -> u32 {
        if cursor >= Position::END {
            return 0;
        }
        let Some((bucket, next)) = self.root.bucket_from(cursor) else { return 0 };
        bucket.prefetch_all();
        bucket.for_each(|position, place| {
            if position.0 >= cursor {
                // SAFETY: 5: an entry of this table, unchanged for 'a.
                visit(unsafe { EntryRef::new(place.entry()) });
            }
        });
        if next == Position::END { 0 } else { next }
    }

    /// Returns a random entry. All entries have nearly the same probability if `random` is uniform.
    /// During a resize, entries in the smaller buckets of the larger array are returned less often,
    /// but none is excluded. O(1) expected.
    #[must_use]
    pub fn sample(self, random: u64) -> Option<EntryRef<'a, V>> {
        // SAFETY: 5: an entry of this table, unchanged for 'a.
        self.root.sample(random).map(|place| unsafe { EntryRef::new(place.entry()) })
    }

    /// Visits `n` consecutive entries from a random location on, or all entries if there are fewer.
    /// Cheaper than `n` samples, and good enough to choose an entry for eviction. O(n) expected.
    pub fn sample_many(self, random: u64, n: usize, mut visit: impl FnMut(EntryRef<'a, V>)) {
        let mut state = random;
        let start = (next_random(&mut state) >> 40) as u32;
        let mut left = n.min(self.len());
        // From `start` to the end, then from 0 up to `start`: no entry twice.
        for (from, to) in [(start, Position::END), (0, start)] {
            let mut at = from;
            while at < to && left > 0 {
                let Some((bucket, next)) = self.root.bucket_from(at) else { return };
                bucket.prefetch_all();
                bucket.for_each(|position, place| {
                    if left > 0 && (at..to).contains(&position.0) {
                        left -= 1;
                        // SAFETY: 5: an entry of this table, unchanged for 'a.
                        visit(unsafe { EntryRef::new(place.entry()) });
                    }
                });
                at = next;
            }
        }
    }

    /// Visits every entry, in no particular order. O(len).
    pub fn for_each(self, mut visit: impl FnMut(EntryRef<'a, V>)) {
        for bucket in self.root.buckets() {
            // SAFETY: 5: an entry of this table, unchanged for 'a.
            bucket.for_each(|_, place| visit(unsafe { EntryRef::new(place.entry()) }));
        }
    }

    /// Like `for_each`, but prefetches entries some buckets ahead. For sweeps that read every
    /// entry.
    pub fn for_each_prefetched(self, mut visit: impl FnMut(EntryRef<'a, V>)) {
        for array in self.root.arrays() {
            let count = array.count();
            for index in 0..count + LOOK_AHEAD {
                if index < count {
                    // SAFETY: 1: live while the table does not change, the index below its count.
                    unsafe { array.bucket(index) }.prefetch_all();
                }
                if let Some(ready) = index.checked_sub(LOOK_AHEAD) {
                    // SAFETY: as above; behind < count since index < count + LOOK_AHEAD.
                    unsafe { array.bucket(ready) }.for_each(|_, place| {
                        // SAFETY: 5: an entry of this table, unchanged for 'a.
                        visit(unsafe { EntryRef::new(place.entry()) });
                    });
                }
            }
        }
    }

    /// Returns the memory usage in bytes of bucket arrays and overflow buckets, without the
    /// entries. O(buckets).
    #[must_use]
    pub fn allocated_bytes(self) -> usize {
        let bucket_bytes = size_of::<Bucket>();
        self.root.buckets().map(|bucket| bucket_bytes * (1 + bucket.overflow_buckets())).sum()
    }

    /// Returns the number of overflow buckets. O(buckets).
    #[must_use]
    pub fn overflow_buckets(self) -> usize {
        self.root.buckets().map(Bucket::overflow_buckets).sum()
    }

    /// Returns the number of buckets of the current array. O(1).
    #[must_use]
    pub fn bucket_count(self) -> usize {
        self.root.current().count() as usize
    }

    /// Returns true if a resize is in progress. O(1).
    #[must_use]
    pub fn is_resizing(self) -> bool {
        !self.root.draining().is_null()
    }

    /// Verifies the invariants, panicking on the first that does not hold. O(len).
    pub fn check(self) {
        let root = self.root;
        let watermark = root.watermark.load(Relaxed);
        let draining = root.draining();
        if !draining.is_null() {
            let first = draining.first_position(draining.index(Position(watermark)));
            assert_eq!(watermark, first, "2: the watermark is not a bucket's first position");
        }
        let mut len = 0;
        for array in root.arrays() {
            for index in 0..array.count() {
                // SAFETY: 1: live while the table does not change; the index is below the count.
                let bucket = unsafe { array.bucket(index) };
                bucket.check_chain();
                bucket.for_each(|position, place| {
                    assert_eq!(array.index(position), index, "2: an entry in the wrong bucket");
                    assert!(root.array_of(position).0 == array.0, "2: an entry in the wrong array");
                    // SAFETY: 5: an entry of this table, unchanged for 'a.
                    unsafe { EntryRef::<V>::new(place.entry()) }.check();
                    len += 1;
                });
            }
        }
        assert_eq!(len, root.len(), "3: len");
        assert!(len > 0 || !draining.is_null() || root.current().is_null(), "3: array kept");
    }
}

impl<V> TableMut<'_, V> {
    /// Visits every entry mutably. O(len).
    pub fn for_each_mut(&mut self, mut visit: impl FnMut(EntryMut<'_, V>)) {
        for bucket in self.root.buckets() {
            // SAFETY: 5: an entry of this table, which we hold exclusively; each is visited once.
            bucket.for_each(|_, place| visit(unsafe { EntryMut::new(place) }));
        }
    }

    /// Removes every entry for which `is_wanted` returns true, and passes it to `sink`. O(len).
    pub fn extract_if(
        &mut self,
        mut is_wanted: impl FnMut(EntryRef<'_, V>) -> bool,
        mut sink: impl FnMut(Entry<V>),
    ) {
        let root = self.root;
        root.resize_step(u32::MAX);
        for bucket in root.buckets() {
            let mut n = 0;
            // A hole is filled from the chain's end, so the emptied location is checked again.
            // Everything before location `n` has been kept.
            while let Some(place) = bucket.nth(n) {
                // SAFETY: 5: an entry of this table, which we hold exclusively.
                if is_wanted(unsafe { EntryRef::new(place.entry()) }) {
                    let removed = bucket.remove(place);
                    root.add_len(-1);
                    sink(owned(removed));
                } else {
                    n += 1;
                }
            }
        }
        root.after_remove();
    }

    /// Drops every entry for which `keep` returns false. O(len).
    pub fn retain(&mut self, mut keep: impl FnMut(EntryRef<'_, V>) -> bool) {
        self.extract_if(|entry| !keep(entry), drop);
    }

    /// Removes everything. O(len). In contrast, `take` is O(1), and its result can be dropped later
    /// or by another thread.
    pub fn clear(&mut self) {
        let removed: Table<V> = self.take();
        drop(removed);
    }
}
