//! Removes entries bucket by bucket, for sweeps that must be able to stop anywhere; and replaces an
//! empty table with a full one.

use super::bucket::Position;
use super::handle::EntryRef;
use super::{Table, TableMut, owned};
use crate::entry::Entry;
use std::sync::atomic::Ordering::Relaxed;

impl<V> TableMut<'_, V> {
    /// Removes the wanted entries from the bucket that holds position `cursor`, passes them to
    /// `sink`, and returns the next cursor. 0 starts a walk, and is returned at its end. Every
    /// entry that exists during a whole walk is passed to `is_wanted` at least once. O(entries of
    /// the bucket), plus a bounded part of a resize.
    pub fn extract_at(
        &mut self,
        cursor: u32,
        mut is_wanted: impl FnMut(EntryRef<'_, V>) -> bool,
        mut sink: impl FnMut(Entry<V>),
    ) -> u32 {
        if cursor >= Position::END {
            return 0;
        }
        let Some((bucket, next)) = self.root.bucket_from(cursor) else { return 0 };
        bucket.prefetch_all();
        let mut removed_any = false;
        let mut n = 0;
        // A hole is filled from the chain's end, so the emptied location is checked again.
        while let Some(place) = bucket.nth(n) {
            // SAFETY: 5: an entry of this table, which we hold exclusively.
            if is_wanted(unsafe { EntryRef::new(place.entry()) }) {
                let removed = bucket.remove(place);
                self.root.add_len(-1);
                removed_any = true;
                sink(owned(removed));
            } else {
                n += 1;
            }
        }
        if removed_any {
            self.root.after_remove();
        }
        if next == Position::END { 0 } else { next }
    }

    /// Moves `table` here. This table must be empty. O(1).
    pub fn put(&mut self, mut table: Table<V>) {
        assert!(self.as_ref().is_empty(), "put into a table that is not empty");
        // An empty table may still have an array, which is retired like all replaced arrays.
        drop(self.take());
        let other = table.view_mut();
        for (to, from) in
            [(&self.root.current, &other.root.current), (&self.root.draining, &other.root.draining)]
        {
            to.store(from.load(Relaxed), Relaxed);
            from.store(std::ptr::null_mut(), Relaxed);
        }
        self.root.watermark.store(other.root.watermark.load(Relaxed), Relaxed);
        self.root.len.store(other.root.len.load(Relaxed), Relaxed);
        other.root.len.store(0, Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hash::HashKey;

    fn hash(key: &[u8]) -> u64 {
        HashKey { k0: 1, k1: 2 }.hash(key)
    }

    fn filled(keys: u32) -> Table<()> {
        let mut table = Table::new();
        for n in 0..keys {
            let key = n.to_le_bytes();
            table.view_mut().insert(hash(&key), Entry::new_int(&key, 0, i64::from(n)));
        }
        table
    }

    #[test]
    fn a_walk_in_steps_removes_all_wanted_entries_and_no_others() {
        let keys = if cfg!(miri) { 60 } else { 5000 };
        let mut table = filled(keys);
        let even = |entry: &Entry<()>| entry.key()[0].is_multiple_of(2);
        let mut cursor = 0;
        let mut out = 0;
        loop {
            cursor = table.view_mut().extract_at(cursor, |entry| even(&entry), |_| out += 1);
            table.view().check();
            if cursor == 0 {
                break;
            }
        }
        let left = table.view().len();
        table.view().for_each(|entry| assert!(!even(&entry)));
        assert_eq!((out + left) as u32, keys);
        assert_eq!(out as u32, keys / 2);
    }

    #[test]
    fn a_table_moves_into_an_empty_one() {
        let mut target = filled(9);
        for n in 0..9u32 {
            let key = n.to_le_bytes();
            assert!(target.view_mut().remove(hash(&key), &key).is_some());
        }
        target.view_mut().put(filled(40));
        target.view().check();
        assert_eq!(target.view().len(), 40);
    }
}
