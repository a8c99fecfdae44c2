//! Many membership questions to one set: a listpack, which would be walked for each, gets an index.

use super::{Member, Members, Set};
use crate::types::EncodingLimits;
use brisk_structures::hash::HashKey;
use brisk_structures::listpack::{self, ListPack};
use brisk_structures::places::Places;
use brisk_structures::segments::{HashStart, Lookup};

/// An index pays from so many questions on, to so many members.
const INDEXED_MIN: usize = 8;
/// Without an index so many members are looked at behind that of the last question.
const AHEAD_MAX: usize = 4;

/// A set in which members are looked up.
pub(super) enum Probe<'a> {
    /// A listpack with enough look-ups to be worth it.
    Pack(PackProbe<'a>),
    Table(Lookup<'a>),
    Other(&'a Set),
}

impl<'a> Probe<'a> {
    /// Prepares `set` for about so many questions. O(1).
    pub(super) fn new(set: &'a Set, questions: usize, limits: &EncodingLimits) -> Probe<'a> {
        match &set.0 {
            Members::Pack(pack) if questions.min(pack.len()) >= INDEXED_MIN => {
                let (key, rest) = (limits.hash_key, pack.iter());
                Probe::Pack(PackProbe { pack, key, rest, index: None })
            }
            Members::Table(table) => Probe::Table(table.lookup()),
            _ => Probe::Other(set),
        }
    }

    /// Whether a member of another set is there. O(1) expected for a listpack that is indexed, and
    /// once O(members); else as [`Set::contains_member`].
    #[inline]
    pub(super) fn contains(&mut self, member: Member<'_>, start: Option<HashStart>) -> bool {
        match (self, start, member) {
            (Probe::Table(table), Some(start), Member::Str(text)) => table.contains(start, text),
            (Probe::Table(table), _, member) => {
                table.map().contains(member.text(&mut itoa::Buffer::new()))
            }
            (Probe::Pack(pack), ..) => pack.contains(member.canonical()),
            (Probe::Other(set), ..) => set.contains_member(member),
        }
    }
}

/// A listpack with many look-ups. Sets often have their members in the same order, so what follows
/// the member last found is looked at first; the index is made when that fails.
pub(super) struct PackProbe<'a> {
    pack: &'a ListPack,
    key: HashKey,
    /// What follows the member last found, while there is no index.
    rest: listpack::Iter<'a>,
    index: Option<Index<'a>>,
}

impl PackProbe<'_> {
    fn contains(&mut self, member: Member<'_>) -> bool {
        if let Some(index) = &mut self.index {
            return index.contains(member);
        }
        let mut rest = self.rest.clone();
        if rest.by_ref().take(AHEAD_MAX).any(|own| own == member) {
            self.rest = rest;
            return true;
        }
        self.index.insert(Index::new(self.pack, self.key)).contains(member)
    }
}

/// The members of a listpack by hash.
struct Index<'a> {
    members: Vec<Member<'a>>,
    places: Places,
    /// The place behind the member last found.
    next: usize,
}

impl<'a> Index<'a> {
    fn new(pack: &'a ListPack, key: HashKey) -> Index<'a> {
        let len = pack.len();
        let mut members = Vec::with_capacity(len);
        let mut places = Places::new(key, len, len);
        for member in pack.iter().map(Member::canonical) {
            places.insert(places.hash(member), members.len());
            members.push(member);
        }
        Index { members, places, next: 0 }
    }

    fn contains(&mut self, member: Member<'_>) -> bool {
        if self.members.get(self.next) == Some(&member) {
            self.next += 1;
            return true;
        }
        let hash = self.places.hash(member);
        let found = self.places.find(hash, |place| self.members[place] == member);
        if let Some(place) = found {
            self.next = place + 1;
        }
        found.is_some()
    }
}
