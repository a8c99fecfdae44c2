//! Many membership tests on one set. A listpack, which each test would walk, gets an index.

use super::{Member, Members, Set};
use crate::types::EncodingLimits;
use brisk_structures::hash::HashKey;
use brisk_structures::listpack::{self, ListPack};
use brisk_structures::places::Places;
use brisk_structures::segments::{HashStart, Lookup};

/// Minimum number of lookups, and of members, for which an index pays off.
const INDEXED_MIN: usize = 8;
/// Number of members that are checked after the member found last, while there is no index.
const AHEAD_MAX: usize = 4;

/// A set for repeated lookups.
pub(super) enum Probe<'a> {
    /// A listpack with enough lookups to need an index.
    Pack(PackProbe<'a>),
    Table(Lookup<'a>),
    Other(&'a Set),
}

impl<'a> Probe<'a> {
    /// Prepares `set` for about this number of lookups. O(1).
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

    /// Reports whether the set contains a member of another set. O(1) expected for an indexed
    /// listpack, after O(members) to build the index; otherwise like [`Set::contains_member`].
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

/// A listpack with many lookups. Sets often have their members in the same order, so the members
/// after the one found last are checked first. The index is built when that fails.
pub(super) struct PackProbe<'a> {
    pack: &'a ListPack,
    key: HashKey,
    /// The members after the one found last, while there is no index.
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
    /// The position after the member found last.
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
