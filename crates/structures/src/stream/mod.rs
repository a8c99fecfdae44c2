//! Streams: entries of fields and values, ordered by ID, and consumer groups that read them.
//!
//! ```text
//!  sequence of blocks:   [5-0 …]   [9-1 …]   [12-0 …]      a block: its first ID and a listpack of
//!                                                          some entries, in Redis's format
//!  groups:  name -> last delivered ID, pending entries by ID, consumers -> their pending IDs
//! ```
//!
//! A clone shares all blocks and groups. A change copies only the block or group that it touches.
//! IDs only grow, so appending is O(1) and finding an ID is O(log blocks + entries of a block).
//!
//! Invariants (`check` verifies each)
//!  1. IDs ascend within and across blocks, and none is above `last_id`. Every block has live entries.
//!  2. `first_id` is the ID of the first live entry, or 0-0 if there are no entries.
//!  3. A group's pending entries are exactly the pending entries of its consumers, and each belongs
//!     to exactly one consumer.
//!
//! Blocks are in `block.rs`, groups in `group.rs`. There is no clock here: callers pass times as
//! arguments.

mod block;
mod group;
mod id;
mod id_map;
mod range;
mod tally;

#[cfg(test)]
mod tests;

pub use block::{BlockLimits, Entry};
pub use group::{Consumer, Group, Nack};
pub use id::StreamId;
pub use id_map::IdMap;
pub use range::{Entries, Range};
pub use tally::Tally;

use crate::listpack::ListPack;
use crate::malformed::Malformed;
use crate::shared::Shared;
use block::Block;
use std::collections::BTreeMap;
use std::sync::Arc;

/// The value of a group's counter of entries read if the number is unknown.
pub const ENTRIES_READ_UNKNOWN: i64 = -1;

/// A stream: entries and consumer groups.
#[derive(Debug, Clone, Default)]
pub struct Stream {
    entries: Entries,
    groups: BTreeMap<Box<[u8]>, Arc<Group>>,
    /// The highest ID ever assigned.
    pub last_id: StreamId,
    first_id: StreamId,
    /// The highest ID that was deleted individually.
    pub max_deleted_id: StreamId,
    /// Number of entries ever added.
    pub entries_added: u64,
}

/// Which entries at the beginning to remove.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Trim {
    /// Keep only the last N entries.
    MaxLen(u64),
    /// Remove the entries below an ID.
    MinId(StreamId),
}

impl Stream {
    #[must_use]
    pub fn new() -> Stream {
        Stream::default()
    }

    /// Creates a stream from external blocks: for each block, the ID to which its entries are relative, and the entries
    /// in the layout of `block.rs`. `last_id` and `entries_added` become the lowest values that the blocks allow.
    /// O(elements).
    ///
    /// # Errors
    /// Fails if a block is malformed, or if its entries do not follow those of the previous block.
    pub fn from_blocks(
        blocks: impl IntoIterator<Item = (StreamId, ListPack)>,
    ) -> Result<Stream, Malformed> {
        let mut stream = Stream::new();
        let mut before = None;
        for (first, pack) in blocks {
            let block = Block::from_listpack(first, pack)?;
            if before.is_some_and(|before| before >= first) {
                return Err(Malformed { offset: 0, what: "stream blocks are not in order" });
            }
            if let Some(block) = block {
                before = Some(block.last_id());
                stream.last_id = block.last_id();
                stream.entries.0.push_back(block);
            }
        }
        stream.entries_added = stream.len() as u64;
        stream.find_first();
        Ok(stream)
    }

    /// Returns the blocks, as dumps contain them.
    pub fn packed_blocks(&self) -> impl ExactSizeIterator<Item = (StreamId, &ListPack)> {
        self.entries.0.iter().map(|block| (block.first_id(), block.pack()))
    }

    /// Returns the number of entries.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the entries. Later changes do not affect a clone of them. O(1).
    pub fn entries(&self) -> &Entries {
        &self.entries
    }

    pub fn first_id(&self) -> StreamId {
        self.first_id
    }

    /// Adds an entry of alternating fields and values. The ID must be above `last_id`.
    pub fn append<'w>(
        &mut self,
        id: StreamId,
        words: impl ExactSizeIterator<Item = &'w [u8]> + Clone,
        limits: &BlockLimits,
    ) {
        assert!(id > self.last_id, "IDs only grow");
        let blocks = &mut self.entries.0;
        let last = blocks.parts().checked_sub(1);
        let has_room = |block: &Block| block.has_room(words.clone(), limits);
        match last.filter(|last| blocks.get(*last).is_some_and(|block| has_room(block))) {
            Some(last) => blocks.update(last, |block| block.append(id, words)),
            None => {
                let mut block = Block::new(id, words.clone());
                block.append(id, words);
                blocks.push_back(block);
            }
        }
        self.last_id = id;
        self.entries_added += 1;
        if self.len() == 1 {
            self.first_id = id;
        }
    }

    /// Deletes an entry. Returns false if no entry has that ID.
    pub fn delete(&mut self, id: StreamId) -> bool {
        let Some(place) = self.entries.place_of(id) else { return false };
        let blocks = &mut self.entries.0;
        let Some(block) = blocks.get(place) else { return false };
        let Some(at) = block.find(id) else { return false };
        if block.live() == 1 {
            blocks.remove(place);
        } else {
            blocks.update(place, |block| block.bury(&[at]));
        }
        self.max_deleted_id = self.max_deleted_id.max(id);
        if id == self.first_id {
            self.find_first();
        }
        true
    }

    /// Removes entries from the beginning, and returns their number. If `approximate`, only whole
    /// blocks are removed, and in total at most `limit` entries (0: no limit). O(blocks removed +
    /// entries of one block).
    pub fn trim(&mut self, trim: Trim, approximate: bool, limit: u64) -> u64 {
        let mut removed = 0;
        while let Some(block) = self.entries.0.get(0) {
            let (live, len) = (block.live() as u64, self.len() as u64);
            if matches!(trim, Trim::MaxLen(len_max) if len <= len_max) {
                break;
            }
            if limit > 0 && removed + live > limit {
                break;
            }
            let whole = match trim {
                Trim::MaxLen(len_max) => len - live >= len_max,
                Trim::MinId(id) => block.last_id() < id,
            };
            if whole {
                self.entries.0.remove(0);
                removed += live;
                continue;
            }
            if !approximate {
                let doomed: Vec<_> = match trim {
                    Trim::MaxLen(len_max) => block
                        .iter()
                        .take((len - len_max) as usize)
                        .map(|entry| entry.at())
                        .collect(),
                    Trim::MinId(id) => block
                        .iter()
                        .take_while(|entry| entry.id < id)
                        .map(|entry| entry.at())
                        .collect(),
                };
                removed += doomed.len() as u64;
                if !doomed.is_empty() {
                    self.entries.0.update(0, |block| block.bury(&doomed));
                }
            }
            break;
        }
        if removed > 0 {
            self.find_first();
        }
        removed
    }

    fn find_first(&mut self) {
        let first = self.entries.range(StreamId::MIN, StreamId::MAX).next();
        self.first_id = first.map_or(StreamId::MIN, |entry| entry.id);
    }

    /// Returns the groups sorted by name.
    pub fn groups(&self) -> impl ExactSizeIterator<Item = (&[u8], &Group)> {
        self.groups.iter().map(|(name, group)| (&**name, &**group))
    }

    pub fn group(&self, name: &[u8]) -> Option<&Group> {
        self.groups.get(name).map(|group| &**group)
    }

    pub fn group_mut(&mut self, name: &[u8]) -> Option<&mut Group> {
        self.groups.get_mut(name).map(Arc::make_mut)
    }

    /// Adds a group. Returns false if the name already exists.
    pub fn create_group(&mut self, name: &[u8], last_id: StreamId, entries_read: i64) -> bool {
        if self.groups.contains_key(name) {
            return false;
        }
        self.groups.insert(name.into(), Arc::new(Group::new(last_id, entries_read)));
        true
    }

    /// Removes a group. Returns false if it does not exist.
    pub fn destroy_group(&mut self, name: &[u8]) -> bool {
        self.groups.remove(name).is_some()
    }

    /// Returns true if an entry at or above `id` may have been deleted, which makes counting
    /// impossible.
    pub fn has_tombstone_from(&self, id: StreamId) -> bool {
        !self.is_empty() && self.max_deleted_id != StreamId::MIN && id <= self.max_deleted_id
    }

    /// Returns how many entries were ever added up to and including `id`, if that is known.
    pub fn entries_read_at(&self, id: StreamId) -> Option<u64> {
        let added = self.entries_added;
        if added == 0 {
            return Some(0);
        }
        if self.is_empty() && id <= self.last_id {
            return Some(added);
        }
        if id == self.last_id {
            return Some(added);
        }
        if id > self.last_id {
            return None;
        }
        let whole = self.max_deleted_id == StreamId::MIN || self.max_deleted_id < self.first_id;
        let before_first = added.saturating_sub(self.len() as u64);
        match id.cmp(&self.first_id) {
            std::cmp::Ordering::Less if whole => Some(before_first),
            std::cmp::Ordering::Equal if whole => Some(before_first + 1),
            _ => None,
        }
    }

    /// Returns how many entries were ever added up to and including the entry `id`. A group whose
    /// last ID is `last_id` and whose count is `read` reads this entry next. Returns
    /// [`ENTRIES_READ_UNKNOWN`] if the number is unknown. The count continues only if no entry
    /// between the two IDs was deleted or trimmed.
    pub fn entries_read_after(&self, last_id: StreamId, read: i64, id: StreamId) -> i64 {
        let is_counted = read != ENTRIES_READ_UNKNOWN
            && last_id >= self.first_id
            && !self.has_tombstone_from(last_id);
        if is_counted {
            return read.saturating_add(1);
        }
        if self.entries_added == 0 {
            return read;
        }
        self.entries_read_at(id).map_or(ENTRIES_READ_UNKNOWN, |read| read as i64)
    }

    /// Returns how many entries a group has not read yet, if that is known.
    pub fn lag(&self, group: &Group) -> Option<i64> {
        if self.entries_added == 0 || self.is_empty() {
            return Some(0);
        }
        if group.last_id < self.first_id && self.max_deleted_id < self.first_id {
            // All remaining entries are unread, and none of them was deleted.
            return Some(self.len() as i64);
        }
        let known = group.entries_read != ENTRIES_READ_UNKNOWN;
        let read = if known && !self.has_tombstone_from(group.last_id) {
            Some(group.entries_read)
        } else {
            self.entries_read_at(group.last_id).map(|read| read as i64)
        };
        read.map(|read| (self.entries_added as i64).wrapping_sub(read))
    }

    /// Returns the number of blocks.
    pub fn blocks(&self) -> usize {
        self.entries.0.parts()
    }

    /// Returns how many nodes a radix tree over the blocks' first IDs would have. O(blocks).
    pub fn radix_nodes(&self) -> usize {
        let key = |block: &Shared<Block>| {
            let StreamId { ms, seq } = block.first_id();
            let mut key = [0; 16];
            key[..8].copy_from_slice(&ms.to_be_bytes());
            key[8..].copy_from_slice(&seq.to_be_bytes());
            key
        };
        let keys: Vec<[u8; 16]> = self.entries.0.iter().map(key).collect();
        radix_nodes(&keys, 0)
    }

    /// Returns the memory usage of the value in bytes, excluding the struct itself. O(blocks +
    /// groups and consumers).
    pub fn allocated_bytes(&self) -> usize {
        let groups = self.groups.iter().map(|(name, group)| name.len() + group.allocated_bytes());
        self.entries.0.allocated_bytes()
            + self.entries.0.iter().map(|block| block.allocated_bytes()).sum::<usize>()
            + groups.sum::<usize>()
    }

    /// Verifies all invariants. Panics if one does not hold.
    pub fn check(&self) {
        self.entries.0.check(Block::check);
        let mut before = StreamId::MIN;
        for entry in self.entries.range(StreamId::MIN, StreamId::MAX) {
            assert!(entry.id > before || before == StreamId::MIN, "IDs ascend");
            before = entry.id;
        }
        assert!(before <= self.last_id);
        let first = self.entries.range(StreamId::MIN, StreamId::MAX).next();
        assert_eq!(self.first_id, first.map_or(StreamId::MIN, |entry| entry.id));
        self.groups.values().for_each(|group| group.check());
    }
}

/// Returns the number of nodes of a compressed radix tree over these ascending keys of equal
/// length. Redis reports this number for its index of blocks, and so does this server.
fn radix_nodes(keys: &[[u8; 16]], depth: usize) -> usize {
    let [first, .., last] = keys else {
        // The rest of a key, and its end; or the root of an empty tree.
        return 1 + usize::from(keys.len() == 1 && depth < 16);
    };
    let common = first[depth..].iter().zip(&last[depth..]).take_while(|(a, b)| a == b).count();
    let at = depth + common;
    let below = keys.chunk_by(|a, b| a[at] == b[at]).map(|part| radix_nodes(part, at + 1));
    usize::from(common > 0) + 1 + below.sum::<usize>()
}
