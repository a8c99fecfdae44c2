//! Sets of slots.

use super::place::{SLOTS, SlotId};
use std::fmt;

const WORDS: usize = SLOTS / 64;

/// A set of slots. 2 KiB.
#[derive(Clone, PartialEq, Eq)]
pub struct SlotSet(Box<[u64; WORDS]>);

impl SlotSet {
    /// The empty set.
    pub fn new() -> SlotSet {
        SlotSet(Box::new([0; WORDS]))
    }

    /// The set of all slots.
    pub fn all() -> SlotSet {
        SlotSet(Box::new([u64::MAX; WORDS]))
    }

    /// Adds a slot. True if the set did not have it.
    pub fn insert(&mut self, slot: SlotId) -> bool {
        let (word, bit) = position(slot);
        let is_new = self.0[word] & bit == 0;
        self.0[word] |= bit;
        is_new
    }

    /// Removes a slot. True if the set had it.
    pub fn remove(&mut self, slot: SlotId) -> bool {
        let (word, bit) = position(slot);
        let was_there = self.0[word] & bit != 0;
        self.0[word] &= !bit;
        was_there
    }

    /// True if the slot is in the set.
    #[inline]
    pub fn contains(&self, slot: SlotId) -> bool {
        let (word, bit) = position(slot);
        self.0[word] & bit != 0
    }

    /// The number of slots. O(1): at most 256 words.
    pub fn len(&self) -> usize {
        self.0.iter().map(|word| word.count_ones() as usize).sum()
    }

    /// True if the set has no slots.
    pub fn is_empty(&self) -> bool {
        self.0.iter().all(|word| *word == 0)
    }

    /// True if every slot is in the set.
    pub fn is_all(&self) -> bool {
        self.0.iter().all(|word| *word == u64::MAX)
    }

    /// True if no slot is in both sets.
    pub fn is_disjoint(&self, other: &SlotSet) -> bool {
        self.0.iter().zip(other.0.iter()).all(|(own, other)| own & other == 0)
    }

    /// The slots in ascending order.
    pub fn iter(&self) -> impl Iterator<Item = SlotId> + '_ {
        (0..SLOTS as u16).map(SlotId::new).filter(|slot| self.contains(*slot))
    }
}

#[inline]
fn position(slot: SlotId) -> (usize, u64) {
    (slot.index() / 64, 1 << (slot.index() % 64))
}

impl Default for SlotSet {
    fn default() -> SlotSet {
        SlotSet::new()
    }
}

impl FromIterator<SlotId> for SlotSet {
    fn from_iter<I: IntoIterator<Item = SlotId>>(slots: I) -> SlotSet {
        let mut set = SlotSet::new();
        for slot in slots {
            set.insert(slot);
        }
        set
    }
}

/// Ranges, as in `CLUSTER NODES`: `0-5460 7000`.
impl fmt::Debug for SlotSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut slots = self.iter().map(SlotId::index).peekable();
        let mut separator = "";
        while let Some(first) = slots.next() {
            let mut last = first;
            while let Some(next) = slots.next_if(|next| *next == last + 1) {
                last = next;
            }
            write!(f, "{separator}{first}")?;
            if last > first {
                write!(f, "-{last}")?;
            }
            separator = " ";
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn set(slots: &[u16]) -> SlotSet {
        slots.iter().map(|slot| SlotId::new(*slot)).collect()
    }

    #[test]
    fn a_set_has_the_slots_that_were_added_and_not_removed() {
        let mut set = set(&[0, 63, 64, 16_383]);
        assert!(!set.insert(SlotId::new(63)) && set.insert(SlotId::new(65)));
        assert!(set.remove(SlotId::new(64)) && !set.remove(SlotId::new(64)));
        let slots: Vec<usize> = set.iter().map(SlotId::index).collect();
        assert_eq!((slots, set.len()), (vec![0, 63, 65, 16_383], 4));
        assert!(set.contains(SlotId::new(65)) && !set.contains(SlotId::new(64)));
        assert_eq!((SlotSet::all().len(), SlotSet::new().len()), (SLOTS, 0));
        assert!(SlotSet::all().is_all() && SlotSet::new().is_empty() && !set.is_all());
    }

    #[test]
    fn sets_that_share_a_slot_are_not_disjoint() {
        assert!(set(&[1, 100]).is_disjoint(&set(&[2, 101])));
        assert!(!set(&[1, 100]).is_disjoint(&set(&[100])));
        assert!(SlotSet::new().is_disjoint(&SlotSet::all()));
    }

    #[test]
    fn a_set_is_printed_as_ranges() {
        assert_eq!(format!("{:?}", set(&[0, 1, 2, 7, 9, 10])), "0-2 7 9-10");
        assert_eq!(format!("{:?}", SlotSet::all()), "0-16383");
        assert_eq!(format!("{:?}", SlotSet::new()), "");
    }
}
