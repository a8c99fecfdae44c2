//! One shard of the tracking table: keys and, for each key, the readers that may have cached it.
//!
//! Entries are stored contiguously, so that a random entry is found in O(1). An index of tagged
//! positions, with linear probing, finds them by hash. A key and two readers fit into the cache
//! line of an entry.

use crate::env::effect::{KeyName, TrackingClient};
use brisk_structures::prefetch::prefetch_value;
use smallvec::SmallVec;
use std::collections::HashSet;

/// Maximum number of readers that a key stores in a list. More readers are stored in a set.
const LISTED_MAX: usize = 32;
/// Size of the smallest index.
const INDEX_MIN: usize = 8;

/// The readers of one key, without duplicates.
#[derive(Debug)]
pub(super) enum Readers {
    Few([Option<TrackingClient>; FEW]),
    ManyReaders(Box<ManyReaders>),
}

/// Number of readers that fit into the entry itself.
const FEW: usize = 2;

/// The readers of a key that has more than [`FEW`].
#[derive(Debug)]
pub(super) enum ManyReaders {
    Listed(Vec<TrackingClient>),
    /// The second field is the size at which disconnected readers are searched for.
    Set(HashSet<TrackingClient>, usize),
}

impl Readers {
    fn of(reader: TrackingClient) -> Readers {
        Readers::Few([Some(reader), None])
    }

    /// Adds a reader. O([`LISTED_MAX`]), amortized. Readers for which `has_left` returns true may be
    /// dropped.
    fn add(
        &mut self,
        reader: TrackingClient,
        has_left: impl Fn(TrackingClient) -> bool,
    ) -> ReaderChange {
        match self {
            _ if self.has(reader) => ReaderChange { added: 0, dropped: 0 },
            Readers::Few(few) => {
                if let Some(free) = few.iter_mut().find(|place| place.is_none()) {
                    *free = Some(reader);
                } else {
                    let all = few.iter().flatten().copied().chain([reader]).collect();
                    *self = Readers::ManyReaders(Box::new(ManyReaders::Listed(all)));
                }
                ReaderChange { added: 1, dropped: 0 }
            }
            Readers::ManyReaders(crowd) => crowd.add(reader, has_left),
        }
    }

    #[inline]
    fn has(&self, reader: TrackingClient) -> bool {
        match self {
            Readers::Few(few) => few.contains(&Some(reader)),
            Readers::ManyReaders(crowd) => crowd.has(reader),
        }
    }

    pub(super) fn len(&self) -> usize {
        match self {
            Readers::Few(few) => few.iter().flatten().count(),
            Readers::ManyReaders(crowd) => match &**crowd {
                ManyReaders::Listed(list) => list.len(),
                ManyReaders::Set(set, _) => set.len(),
            },
        }
    }

    pub(super) fn into_list(self) -> SmallVec<[TrackingClient; 2]> {
        match self {
            Readers::Few(few) => few.into_iter().flatten().collect(),
            Readers::ManyReaders(crowd) => match *crowd {
                ManyReaders::Listed(list) => list.into(),
                ManyReaders::Set(set, _) => set.into_iter().collect(),
            },
        }
    }
}

impl ManyReaders {
    /// Adds a reader that is not in the list.
    fn add(
        &mut self,
        reader: TrackingClient,
        has_left: impl Fn(TrackingClient) -> bool,
    ) -> ReaderChange {
        let before = match self {
            ManyReaders::Listed(list) => {
                list.push(reader);
                if list.len() <= LISTED_MAX {
                    return ReaderChange { added: 1, dropped: 0 };
                }
                let before = list.len();
                *self = ManyReaders::Set(list.drain(..).collect(), 0);
                before
            }
            ManyReaders::Set(set, _) => {
                set.insert(reader);
                set.len()
            }
        };
        if let ManyReaders::Set(set, prune_at) = self
            && before >= *prune_at
        {
            set.retain(|reader| !has_left(*reader));
            *prune_at = 2 * set.len().max(LISTED_MAX);
            return ReaderChange { added: 1, dropped: before - set.len() };
        }
        ReaderChange { added: 1, dropped: 0 }
    }

    #[cold]
    fn has(&self, reader: TrackingClient) -> bool {
        match self {
            ManyReaders::Listed(list) => list.contains(&reader),
            ManyReaders::Set(set, _) => set.contains(&reader),
        }
    }
}

/// How the number of readers changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct ReaderChange {
    pub(super) added: usize,
    pub(super) dropped: usize,
}

/// A key that readers may have cached. It takes one cache line, unless the name is long or there
/// are many readers. The name comes first, because names are compared with 32-byte loads. A load
/// across the end of the line would wait for the next line (80 ns).
#[derive(Debug)]
#[repr(C, align(64))]
pub(super) struct Tracked {
    pub(super) name: KeyName,
    pub(super) readers: Readers,
    pub(super) hash: u64,
}

/// The tag in the upper bits, the position + 1 in the lower bits; 0 is free.
pub(super) type IndexTag = u64;

const _: () = assert!(size_of::<Tracked>() == 64);

const fn mark_of(hash: u64, place: usize) -> IndexTag {
    (hash >> 32) << 32 | (place as u64 + 1)
}

const fn place_in(mark: IndexTag) -> usize {
    (mark as u32 - 1) as usize
}

/// The tracked keys of one shard.
#[derive(Debug, Default)]
pub(super) struct TrackingTable {
    entries: Vec<Tracked>,
    /// The number of tags is a power of two, and at most three quarters of them are in use.
    /// Initially empty.
    index: Vec<IndexTag>,
}

impl TrackingTable {
    /// The address of the index, and the mask that maps a hash to it, for prefetching the cache
    /// line without holding the table.
    pub(super) fn index(&self) -> (*const IndexTag, usize) {
        (self.index.as_ptr(), self.index.len().saturating_sub(1))
    }

    /// Prefetches the entry that looking up a key will read.
    #[inline]
    pub(super) fn prefetch_entry(&self, hash: u64) {
        let Some(mask) = self.index.len().checked_sub(1) else { return };
        let mut at = hash as usize & mask;
        while self.index[at] != 0 {
            if self.index[at] >> 32 == hash >> 32 {
                prefetch_value(&self.entries[place_in(self.index[at])]);
                return;
            }
            at = (at + 1) & mask;
        }
    }

    /// The key's position in the index.
    #[inline]
    fn find(&self, hash: u64, key: &[u8]) -> Option<usize> {
        let mask = self.index.len().checked_sub(1)?;
        let mut at = hash as usize & mask;
        loop {
            let mark = self.index[at];
            if mark == 0 {
                return None;
            }
            if mark >> 32 == hash >> 32 {
                let entry = &self.entries[place_in(mark)];
                if entry.hash == hash && entry.name.as_slice() == key {
                    return Some(at);
                }
            }
            at = (at + 1) & mask;
        }
    }

    /// Reports whether the reader is recorded for the key. O(1).
    #[inline]
    pub(super) fn has(&self, hash: u64, key: &[u8], reader: TrackingClient) -> bool {
        let Some(mask) = self.index.len().checked_sub(1) else { return false };
        let mut at = hash as usize & mask;
        loop {
            let mark = self.index[at];
            if mark == 0 {
                return false;
            }
            if mark >> 32 == hash >> 32 {
                let entry = &self.entries[place_in(mark)];
                if entry.hash == hash && entry.name.as_slice() == key {
                    return entry.readers.has(reader);
                }
            }
            at = (at + 1) & mask;
        }
    }

    /// Adds a reader of a key. Returns how the number of readers changed, and whether the key is
    /// new. Amortized O(1).
    pub(super) fn add(
        &mut self,
        hash: u64,
        key: &[u8],
        reader: TrackingClient,
        has_left: impl Fn(TrackingClient) -> bool,
    ) -> (ReaderChange, bool) {
        if let Some(at) = self.find(hash, key) {
            let place = place_in(self.index[at]);
            return (self.entries[place].readers.add(reader, has_left), false);
        }
        if (self.entries.len() + 1) * 4 > self.index.len() * 3 {
            self.grow();
        }
        let name = KeyName::from_slice(key);
        self.entries.push(Tracked { hash, name, readers: Readers::of(reader) });
        self.note(hash, self.entries.len() - 1);
        (ReaderChange { added: 1, dropped: 0 }, true)
    }

    /// Removes a key. O(1).
    pub(super) fn remove(&mut self, hash: u64, key: &[u8]) -> Option<Tracked> {
        let at = self.find(hash, key)?;
        Some(self.take(at))
    }

    /// Removes the entry at `place` modulo the number of entries; `None` if there are none.
    pub(super) fn remove_any(&mut self, place: usize) -> Option<Tracked> {
        let place = place.checked_rem(self.entries.len())?;
        let entry = &self.entries[place];
        let at = self.find(entry.hash, &entry.name)?;
        Some(self.take(at))
    }

    /// Removes the entry to which index position `at` refers.
    fn take(&mut self, at: usize) -> Tracked {
        let place = place_in(self.index[at]);
        self.free(at);
        let removed = self.entries.swap_remove(place);
        // The last entry has moved into the gap.
        if let Some(moved) = self.entries.get(place) {
            let old = mark_of(moved.hash, self.entries.len());
            let mask = self.index.len() - 1;
            let mut at = moved.hash as usize & mask;
            while self.index[at] != old {
                at = (at + 1) & mask;
            }
            self.index[at] = mark_of(moved.hash, place);
        }
        if self.entries.len() * 8 < self.index.len() && self.index.len() > INDEX_MIN {
            self.entries.shrink_to(self.entries.len() * 2);
            self.rebuild(self.index.len() / 2);
        }
        removed
    }

    /// Frees a position of the index. Later tags that would otherwise no longer be found move up.
    fn free(&mut self, mut gap: usize) {
        let mask = self.index.len() - 1;
        let mut at = gap;
        loop {
            at = (at + 1) & mask;
            let mark = self.index[at];
            if mark == 0 {
                break;
            }
            let home = self.entries[place_in(mark)].hash as usize & mask;
            // True if the gap lies between the tag's home position and its current position.
            if (at.wrapping_sub(home) & mask) >= (at.wrapping_sub(gap) & mask) {
                self.index[gap] = mark;
                gap = at;
            }
        }
        self.index[gap] = 0;
    }

    fn note(&mut self, hash: u64, place: usize) {
        let mask = self.index.len() - 1;
        let mut at = hash as usize & mask;
        while self.index[at] != 0 {
            at = (at + 1) & mask;
        }
        self.index[at] = mark_of(hash, place);
    }

    fn grow(&mut self) {
        self.rebuild((self.index.len() * 2).max(INDEX_MIN));
    }

    fn rebuild(&mut self, len: usize) {
        self.index = vec![0; len];
        for place in 0..self.entries.len() {
            self.note(self.entries[place].hash, place);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::{BTreeMap, BTreeSet};

    fn reader(id: u64) -> TrackingClient {
        TrackingClient::new(1, id)
    }

    /// Compares the table with a map, with many hash collisions.
    #[test]
    fn a_table_contains_what_a_map_contains() {
        let (mut table, mut model) =
            (TrackingTable::default(), BTreeMap::<Vec<u8>, BTreeSet<u64>>::new());
        let mut state = 1u64;
        for step in 0..20_000u64 {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(step);
            let number = (state >> 40) % 300;
            let key = format!("key {number}").into_bytes();
            let hash = ((number % 7) << 32) | (number % 50);
            match (state >> 20) % 8 {
                0..4 => {
                    let id = 1 + (state >> 30 & 3);
                    let (change, is_new) = table.add(hash, &key, reader(id), |_| false);
                    assert_eq!(is_new, !model.contains_key(&key));
                    let added = model.entry(key).or_default().insert(id);
                    assert_eq!(change, ReaderChange { added: usize::from(added), dropped: 0 });
                }
                4..7 => {
                    let removed = table.remove(hash, &key).map(|entry| entry.readers.len());
                    assert_eq!(removed, model.remove(&key).map(|ids| ids.len()));
                }
                _ => {
                    let removed = table.remove_any(state as usize).map(|entry| entry.name);
                    assert_eq!(removed.is_some(), !model.is_empty());
                    removed.into_iter().for_each(|name| {
                        assert!(model.remove(name.as_slice()).is_some());
                    });
                }
            }
            assert_eq!(table.entries.len(), model.len());
        }
    }

    #[test]
    fn disconnected_readers_do_not_pile_up() {
        let mut table = TrackingTable::default();
        let mut items = 0;
        for id in 1..100_000 {
            let (change, _) = table.add(1, b"hot", reader(id), |reader| reader.client() + 5 < id);
            items = items + change.added - change.dropped;
            assert!(items <= 4 * LISTED_MAX, "{items}");
        }
        let entry = table.remove(1, b"hot").unwrap();
        assert_eq!(entry.readers.len(), items);
        assert!(entry.readers.into_list().contains(&reader(99_999)));
    }
}
