//! Intersections, unions and differences of sets, visited member by member or as a new set.
//!
//! - Intersection: the members of the smallest set that all other sets contain.
//! - Union, if visited: all members of the largest set, then those members of each other set that no previous set
//!   contains. With many sets, a table of visited members is used. If stored: all members are added to one set, or to a
//!   shared copy of the largest set.
//! - Difference: the members of the first set that no other set contains; or, if that is less work, a copy of the first
//!   set from which the members of all others are removed.
//!
//! Listpacks with many lookups get an index, unless the two listpacks have their members in the same order
//! (`probe.rs`). The encoding of a stored result is the same as in Redis 7.2, although the algorithm may be shorter.
//! For example, the order in which a union is built does not matter.

use super::probe::Probe;
use super::{Member, Members, Set};
use crate::types::EncodingLimits;
use brisk_structures::segments::{HashStart, Segments};
use smallvec::SmallVec;
use std::ops::ControlFlow;

/// Up to this number of sets, a union looks up each member in all previous sets.
const PROBED_SETS_MAX: usize = 4;

/// Visits the members that all of `sets` contain. Moves the smallest set to the front. O(n * sets),
/// where n is the length of the smallest set.
pub fn each_common<'a>(
    sets: &mut [&'a Set],
    limits: &EncodingLimits,
    mut visit: impl FnMut(Member<'a>) -> ControlFlow<()>,
) {
    each_of_smallest(sets, limits, |member, is_common| {
        if is_common { visit(member) } else { ControlFlow::Continue(()) }
    });
}

/// Number of members that all of `sets` contain, at most `count_max`. `None` if that is still
/// unknown after checking `members_max` members of the smallest set.
pub fn count_common(
    sets: &mut [&Set],
    limits: &EncodingLimits,
    count_max: usize,
    members_max: usize,
) -> Option<usize> {
    let (mut count, mut left, mut over) = (0, members_max, false);
    each_of_smallest(sets, limits, |_, is_common| {
        count += usize::from(is_common);
        over = left == 0;
        left = left.saturating_sub(1);
        if over || count >= count_max { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    });
    (!over).then_some(count)
}

/// Visits each member of the smallest of `sets`, along with whether all sets contain it.
fn each_of_smallest<'a>(
    sets: &mut [&'a Set],
    limits: &EncodingLimits,
    mut visit: impl FnMut(Member<'a>, bool) -> ControlFlow<()>,
) {
    sets.sort_by_key(|set| set.len());
    let Some((&smallest, others)) = sets.split_first() else { return };
    let mut others: SmallVec<[Probe<'_>; 4]> = others
        .iter()
        .filter(|set| !std::ptr::eq(**set, smallest))
        .map(|set| Probe::new(set, smallest.len(), limits))
        .collect();
    let _ = smallest.try_each_placed(|member, start| {
        visit(member, others.iter_mut().all(|set| set.contains(member, start)))
    });
}

/// The members that all of `sets` contain.
pub fn intersection(sets: &mut [&Set], limits: &EncodingLimits) -> Set {
    let smallest = sets.iter().min_by_key(|set| set.len());
    let mut common = match smallest.map(|set| &set.0) {
        Some(Members::Ints(_)) => Set::of_ints(),
        _ => Set::packed(),
    };
    let mut only_integers = true;
    each_common(sets, limits, |member| {
        // A text that has not been converted yet may be an integer.
        let member = match member {
            Member::Str(text) if only_integers => Member::from(text),
            other => other,
        };
        only_integers &= matches!(member, Member::Int(_));
        common.add_absent(member, limits);
        ControlFlow::Continue(())
    });
    if only_integers && common.len() <= limits.set_max_intset_entries {
        common.become_ints();
    }
    common
}

/// Visits each member of any of `sets` once. O(members of all sets).
pub fn each_of_any<'a>(
    sets: &mut [&'a Set],
    limits: &EncodingLimits,
    mut visit: impl FnMut(Member<'a>),
) {
    sets.sort_by_key(|set| std::cmp::Reverse(set.len()));
    if sets.len() <= PROBED_SETS_MAX {
        let mut before: SmallVec<[Probe<'_>; PROBED_SETS_MAX]> = SmallVec::new();
        for (index, set) in sets.iter().enumerate() {
            if sets[..index].iter().any(|other| std::ptr::eq(*other, *set)) {
                continue;
            }
            let _ = set.try_each_placed(|member, start| {
                if !before.iter_mut().any(|other| other.contains(member, start)) {
                    visit(member);
                }
                ControlFlow::Continue(())
            });
            let later = sets[index + 1..].iter().map(|set| set.len()).sum();
            before.push(Probe::new(set, later, limits));
        }
        return;
    }
    let mut seen = Set(Members::Table(Box::new(Segments::new(limits.hash_key))));
    for set in sets {
        set.each(|member| {
            if seen.add_member(member, limits) {
                visit(member);
            }
        });
    }
}

/// The union of `sets`. O(members of all sets), not counting those of a large set that is copied.
pub fn union(sets: &[&Set], limits: &EncodingLimits) -> Set {
    let shared = sets.iter().filter(|set| set.remains_table(limits)).max_by_key(|set| set.len());
    let mut all = shared.map_or_else(Set::of_ints, |set| Set::clone(set));
    if shared.is_none() && sets.iter().all(|set| !matches!(set.0, Members::Table(_))) {
        let mut sets: SmallVec<[&Set; 8]> = sets.iter().copied().collect();
        each_of_any(&mut sets, limits, |member| {
            all.add_absent(member, limits);
        });
        return all;
    }
    for set in sets {
        if shared.is_none_or(|shared| !std::ptr::eq(*shared, *set)) {
            set.each(|member| {
                all.add_member(member, limits);
            });
        }
    }
    all
}

/// Reports whether looking up each member of the first set in all others is less work than removing
/// their members from a copy of the first. A lookup often ends early and counts half, as in Redis.
fn is_cheaper_by_lookup(first: &Set, others: &[&Set]) -> bool {
    let lookups = first.len() * (others.len() + 1) / 2;
    let removing = first.len() + others.iter().map(|set| set.len()).sum::<usize>();
    lookups <= removing
}

/// Visits the members of `first` that none of `others` contains. Moves the largest of `others` to
/// the front.
pub fn each_only_in<'a>(
    first: &'a Set,
    others: &mut [&'a Set],
    limits: &EncodingLimits,
    visit: impl FnMut(Member<'_>),
) {
    if others.iter().any(|set| std::ptr::eq(*set, first)) {
        return;
    }
    if is_cheaper_by_lookup(first, others) {
        each_not_in(first, others, limits, visit);
    } else {
        without(first, others, limits).each(visit);
    }
}

fn each_not_in<'a>(
    first: &'a Set,
    others: &mut [&'a Set],
    limits: &EncodingLimits,
    mut visit: impl FnMut(Member<'a>),
) {
    others.sort_by_key(|set| std::cmp::Reverse(set.len()));
    let mut others: SmallVec<[Probe<'_>; 4]> =
        others.iter().map(|set| Probe::new(set, first.len(), limits)).collect();
    let _ = first.try_each_placed(|member, start| {
        if !others.iter_mut().any(|set| set.contains(member, start)) {
            visit(member);
        }
        ControlFlow::Continue(())
    });
}

/// A copy of `first` without the members of `others`.
fn without(first: &Set, others: &[&Set], limits: &EncodingLimits) -> Set {
    let mut rest = union(&[first], limits);
    for set in others {
        let _ = set.try_each(|member| {
            rest.remove_member(member);
            if rest.is_empty() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        });
    }
    rest
}

/// The members of `first` that none of `others` contains.
pub fn difference<'a>(first: &'a Set, others: &mut [&'a Set], limits: &EncodingLimits) -> Set {
    let mut rest = Set::of_ints();
    if others.iter().any(|set| std::ptr::eq(*set, first)) {
        return rest;
    }
    if !is_cheaper_by_lookup(first, others) {
        return without(first, others, limits);
    }
    each_not_in(first, others, limits, |member| {
        rest.add_absent(member, limits);
    });
    rest
}

impl Set {
    /// Like [`Set::try_each`], with the part of a member's hash that a table stores.
    fn try_each_placed<'a>(
        &'a self,
        mut visit: impl FnMut(Member<'a>, Option<HashStart>) -> ControlFlow<()>,
    ) -> ControlFlow<()> {
        match &self.0 {
            Members::Table(table) => table
                .iter_placed()
                .try_for_each(|(start, element)| visit(Member::Str(element.key), Some(start))),
            _ => self.try_each(|member| visit(member, None)),
        }
    }

    /// Reports whether adding the members to a new set would result in a table. Cheap, but may
    /// return false for some sets for which it would.
    fn remains_table(&self, limits: &EncodingLimits) -> bool {
        let compact_max = limits.set_max_intset_entries.max(limits.set_max_listpack_entries);
        matches!(self.0, Members::Table(_)) && self.len() > compact_max
    }

    /// Converts a set whose members are all integers to an intset.
    fn become_ints(&mut self) {
        if matches!(self.0, Members::Ints(_)) {
            return;
        }
        let mut numbers: Vec<i64> = Vec::with_capacity(self.len());
        self.each(|member| {
            let number = match member {
                Member::Str(text) => Member::from(text).int(),
                Member::Int(number) => Some(number),
            };
            numbers.extend(number);
        });
        // In ascending order each integer is added at the end.
        numbers.sort_unstable();
        self.0 = Members::Ints(numbers.into_iter().collect());
    }
}
