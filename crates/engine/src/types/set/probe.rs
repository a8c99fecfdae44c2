//! Many membership questions to one set: a listpack, which would be walked for each, gets an index
//! first.

use super::{Member, Members, Set};
use crate::types::EncodingLimits;
use brisk_structures::hash::HashKey;
use brisk_structures::listpack::ListPack;

/// An index pays from so many questions on, to so many members.
const INDEXED_MIN: usize = 8;

/// A set that is asked for members.
pub(super) struct Probe<'a> {
    set: &'a Set,
    index: Option<Index<'a>>,
}

impl<'a> Probe<'a> {
    /// Prepares `set` for about so many questions. O(members) for a listpack, else O(1).
    pub(super) fn new(set: &'a Set, questions: usize, limits: &EncodingLimits) -> Probe<'a> {
        let index = match &set.0 {
            Members::Pack(pack) if questions.min(pack.len()) >= INDEXED_MIN => {
                Some(Index::new(pack, limits.hash_key))
            }
            _ => None,
        };
        Probe { set, index }
    }

    /// Whether a member of another set is there. O(1) expected with an index, else as
    /// [`Set::contains_member`].
    pub(super) fn contains(&self, member: Member<'_>) -> bool {
        match &self.index {
            Some(index) => index.contains(member),
            None => self.set.contains_member(member),
        }
    }
}

/// The members of a listpack by hash: a table with linear probing, at most half full.
struct Index<'a> {
    key: HashKey,
    members: Vec<Member<'a>>,
    /// Numbers of members plus 1; 0 is empty.
    slots: Vec<u32>,
}

impl<'a> Index<'a> {
    fn new(pack: &'a ListPack, key: HashKey) -> Index<'a> {
        let members: Vec<Member<'a>> = pack.iter().collect();
        let slots = vec![0; (members.len() * 2).next_power_of_two()];
        let mut index = Index { key, members, slots };
        for number in 0..index.members.len() {
            let mut at = index.first_slot(index.members[number]);
            while index.slots[at] != 0 {
                at = (at + 1) % index.slots.len();
            }
            index.slots[at] = number as u32 + 1;
        }
        index
    }

    /// Where the search for a member begins, which must be stored as listpacks store it.
    fn first_slot(&self, member: Member<'_>) -> usize {
        let hash = match member {
            Member::Int(number) => self.key.hash(&number.to_le_bytes()),
            Member::Str(text) => self.key.hash(text),
        };
        hash as usize & (self.slots.len() - 1)
    }

    fn contains(&self, member: Member<'_>) -> bool {
        let member = match member {
            Member::Str(text) => Member::of(text),
            number => number,
        };
        let mut at = self.first_slot(member);
        while self.slots[at] != 0 {
            if self.members[self.slots[at] as usize - 1] == member {
                return true;
            }
            at = (at + 1) % self.slots.len();
        }
        false
    }
}
