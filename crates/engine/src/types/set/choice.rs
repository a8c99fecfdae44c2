//! Random members: one, several with or without repeats, and those that SPOP removes.
//!
//! `below(n)` returns a random number below `n`. All choices are uniform.

use super::{Member, Members, Set};
use crate::types::EncodingLimits;
use brisk_structures::intset::IntSet;
use brisk_structures::listpack::ListPack;
use brisk_structures::segments::Segments;
use smallvec::SmallVec;

/// If the number of remaining members is at most 1/`MOVE_RATIO` of the number of removed ones, the
/// remaining members are moved to a new set, as in Redis. This is visible to clients: the new set
/// may have a compact encoding.
const MOVE_RATIO: usize = 5;

/// Selects `wanted` of `left` elements that are offered one by one. Every selection is equally
/// likely.
struct Selection {
    wanted: u64,
    left: u64,
}

impl Selection {
    fn new(wanted: usize, of: usize) -> Selection {
        Selection { wanted: wanted as u64, left: of as u64 }
    }

    /// Reports whether the offered element is selected.
    fn picks(&mut self, below: &mut impl FnMut(u64) -> u64) -> bool {
        let picked = self.wanted > 0 && below(self.left) < self.wanted;
        self.left -= 1;
        self.wanted -= u64::from(picked);
        picked
    }
}

/// Draws random members with repeats, O(1) per draw.
pub enum MemberDrawer<'a> {
    Ints(&'a IntSet),
    /// Members that cannot be accessed by index in their set.
    Listed(Vec<Member<'a>>),
    Table(&'a Segments),
}

impl<'a> MemberDrawer<'a> {
    /// A random member. The set must not be empty.
    pub fn draw(&self, below: &mut impl FnMut(u64) -> u64) -> Member<'a> {
        match self {
            MemberDrawer::Ints(ints) => {
                let index = below(ints.len() as u64) as usize;
                Member::Int(ints.get(index).expect("an index below the length"))
            }
            MemberDrawer::Listed(members) => members[below(members.len() as u64) as usize],
            MemberDrawer::Table(table) => {
                Member::Str(table.random(below).expect("a set is never without members").key)
            }
        }
    }
}

impl Set {
    /// Prepares for many draws. O(n) for a listpack.
    pub fn drawer(&self) -> MemberDrawer<'_> {
        match &self.0 {
            Members::None => MemberDrawer::Listed(Vec::new()),
            Members::Ints(ints) => MemberDrawer::Ints(ints),
            Members::Pack(pack) => MemberDrawer::Listed(pack.iter().collect()),
            Members::Table(table) => MemberDrawer::Table(table),
        }
    }

    /// A random member, `None` if the set is empty. O(1), but O(n) in a listpack.
    pub fn random(&self, mut below: impl FnMut(u64) -> u64) -> Option<Member<'_>> {
        match &self.0 {
            Members::None => None,
            Members::Ints(ints) if ints.is_empty() => None,
            Members::Ints(ints) => ints.get(below(ints.len() as u64) as usize).map(Member::Int),
            Members::Pack(pack) if pack.is_empty() => None,
            Members::Pack(pack) => pack.get(below(pack.len() as u64) as i64),
            Members::Table(table) => table.random(below).map(|element| Member::Str(element.key)),
        }
    }

    /// Calls `visit` with `count` distinct members, or with all if there are no more. Their order
    /// is not random. O(count) for a few members of a large set, else O(n).
    pub fn sample<'a>(
        &'a self,
        count: usize,
        mut below: impl FnMut(u64) -> u64,
        mut visit: impl FnMut(Member<'a>),
    ) {
        if let Members::Table(table) = &self.0 {
            return table.sample(count, below, |element| visit(Member::Str(element.key)));
        }
        let mut selection = Selection::new(count, self.len());
        self.each(|member| {
            if selection.picks(&mut below) {
                visit(member);
            }
        });
    }

    /// Removes a random member after calling `visit` with it. Does nothing if the set is empty.
    pub fn pop(&mut self, below: &mut impl FnMut(u64) -> u64, visit: impl FnOnce(Member<'_>)) {
        match &mut self.0 {
            Members::None => {}
            Members::Ints(ints) => {
                let index = if ints.is_empty() { 0 } else { below(ints.len() as u64) };
                if let Some(number) = ints.remove_at(index as usize) {
                    visit(Member::Int(number));
                }
            }
            Members::Pack(pack) => {
                let index = if pack.is_empty() { 0 } else { below(pack.len() as u64) };
                if let Some(at) = pack.seek(index as i64) {
                    visit(pack.item(at));
                    pack.delete(at);
                }
            }
            Members::Table(table) => {
                if let Some(element) = table.random(below) {
                    let member: SmallVec<[u8; 64]> = SmallVec::from_slice(element.key);
                    visit(Member::Str(&member));
                    table.remove(&member);
                }
            }
        }
    }

    /// Removes `count` members and calls `visit` with them. The set must have more than `count`
    /// members.
    pub fn pop_many(
        &mut self,
        count: usize,
        limits: &EncodingLimits,
        below: &mut impl FnMut(u64) -> u64,
        mut visit: impl FnMut(Member<'_>),
    ) {
        let len = self.len();
        debug_assert!(count < len, "taking all is another matter");
        if (len - count) * MOVE_RATIO <= count {
            return self.keep(len - count, limits, below, visit);
        }
        let mut selection = Selection::new(count, len);
        match &mut self.0 {
            Members::None => {}
            Members::Ints(ints) => ints.retain(|_, number| {
                let goes = selection.picks(below);
                if goes {
                    visit(Member::Int(number));
                }
                !goes
            }),
            Members::Pack(pack) => {
                let mut rest = ListPack::with_capacity(pack.bytes() / len * (len - count));
                for member in &*pack {
                    if selection.picks(below) {
                        visit(member);
                    } else {
                        rest.push_back(member);
                    }
                }
                *pack = rest;
            }
            Members::Table(_) => (0..count).for_each(|_| self.pop(below, &mut visit)),
        }
    }

    /// Removes all but `count` members and calls `visit` with the removed ones.
    fn keep(
        &mut self,
        count: usize,
        limits: &EncodingLimits,
        below: &mut impl FnMut(u64) -> u64,
        mut visit: impl FnMut(Member<'_>),
    ) {
        let mut rest = match &self.0 {
            Members::Ints(_) => Set::of_ints(),
            _ => Set::packed(),
        };
        let mut selection = Selection::new(count, self.len());
        self.each(|member| {
            if selection.picks(below) {
                rest.add_member(member, limits);
            } else {
                visit(member);
            }
        });
        *self = rest;
    }
}
