//! Ranges of slots, as the document and the replies of CLUSTER write them.

pub use brisk_resp::slot::SlotId;

use brisk_resp::slot::SLOTS;
use serde::{Deserialize, Serialize};
use std::fmt;

/// Maximum number of ranges in a set. Nothing has to enforce it, because 16,384 slots have no room for more ranges that
/// do not touch.
pub const RANGES_MAX: usize = SLOTS as usize / 2;

/// Why a list of ranges was rejected.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum SlotRangesError {
    #[error("slot {0} does not exist")]
    OutOfRange(u64),
    #[error("the range of slots {first}-{last} ends before it begins")]
    Reversed { first: u16, last: u16 },
    #[error("slot {0} occurs twice")]
    Repeated(u16),
    #[error("there are more than {RANGES_MAX} ranges of slots")]
    TooMany,
}

/// Slots from `first` to `last`, both included. `first` is at most `last`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct SlotRange {
    first: SlotId,
    last: SlotId,
}

impl SlotRange {
    /// The range, unless it ends before it begins.
    #[must_use]
    pub fn new(first: SlotId, last: SlotId) -> Option<SlotRange> {
        (first <= last).then_some(SlotRange { first, last })
    }

    #[must_use]
    pub const fn first(self) -> SlotId {
        self.first
    }

    #[must_use]
    pub const fn last(self) -> SlotId {
        self.last
    }

    /// The number of slots.
    #[must_use]
    pub const fn count(self) -> usize {
        self.last.index() - self.first.index() + 1
    }

    /// The slots in ascending order.
    pub fn iter(self) -> impl Iterator<Item = SlotId> {
        (self.first.number()..=self.last.number()).filter_map(SlotId::checked)
    }
}

/// `0-5460`, or `7000` for one slot, as CLUSTER NODES writes them.
impl fmt::Display for SlotRange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.first.number())?;
        if self.last > self.first {
            write!(f, "-{}", self.last.number())?;
        }
        Ok(())
    }
}

/// A set of slots: ranges in ascending order that neither overlap nor touch. Equal sets are equal values.
#[derive(Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(into = "Vec<(u16, u16)>", try_from = "Vec<(u64, u64)>")]
pub struct SlotRanges(Vec<SlotRange>);

impl SlotRanges {
    /// The set of all slots.
    #[must_use]
    pub fn all() -> SlotRanges {
        let (first, last) = (SlotId::new(0), SlotId::new(SLOTS - 1));
        SlotRanges(vec![SlotRange { first, last }])
    }

    /// The set of the slots in `ranges`, in any order. Overlapping ranges count once. O(n log n).
    #[must_use]
    pub fn merged(mut ranges: Vec<SlotRange>) -> SlotRanges {
        ranges.sort_unstable();
        let mut merged: Vec<SlotRange> = Vec::with_capacity(ranges.len().min(RANGES_MAX));
        for range in ranges {
            match merged.last_mut() {
                Some(before) if range.first.index() <= before.last.index() + 1 => {
                    before.last = before.last.max(range.last);
                }
                _ => merged.push(range),
            }
        }
        SlotRanges(merged)
    }

    /// The slots for which `is_in` returns true. O(16,384).
    #[must_use]
    pub fn of_all(is_in: impl Fn(SlotId) -> bool) -> SlotRanges {
        SlotRanges::all().iter().filter(|slot| is_in(*slot)).collect()
    }

    /// The ranges in ascending order.
    #[must_use]
    pub fn ranges(&self) -> &[SlotRange] {
        &self.0
    }

    /// The slots in ascending order.
    pub fn iter(&self) -> impl Iterator<Item = SlotId> + '_ {
        self.0.iter().flat_map(|range| range.iter())
    }

    /// The number of slots. O(ranges).
    #[must_use]
    pub fn count(&self) -> usize {
        self.0.iter().map(|range| range.count()).sum()
    }

    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// True if the slot is in the set. O(log ranges).
    #[must_use]
    pub fn contains(&self, slot: SlotId) -> bool {
        let at = self.0.partition_point(|range| range.last < slot);
        self.0.get(at).is_some_and(|range| range.first <= slot)
    }

    /// The slots that are in either set. O(n log n).
    #[must_use]
    pub fn union(&self, other: &SlotRanges) -> SlotRanges {
        SlotRanges::merged([self.0.as_slice(), other.0.as_slice()].concat())
    }

    /// The slots of this set that are not in `other`. O(slots).
    #[must_use]
    pub fn without(&self, other: &SlotRanges) -> SlotRanges {
        self.iter().filter(|slot| !other.contains(*slot)).collect()
    }

    /// The lowest slot in both sets. O(slots).
    #[must_use]
    pub fn first_common(&self, other: &SlotRanges) -> Option<SlotId> {
        self.iter().find(|slot| other.contains(*slot))
    }
}

impl FromIterator<SlotId> for SlotRanges {
    fn from_iter<I: IntoIterator<Item = SlotId>>(slots: I) -> SlotRanges {
        let mut ranges: Vec<SlotRange> = Vec::new();
        for slot in slots {
            match ranges.last_mut() {
                Some(range) if range.last.index() + 1 == slot.index() => range.last = slot,
                _ => ranges.push(SlotRange { first: slot, last: slot }),
            }
        }
        SlotRanges::merged(ranges)
    }
}

impl From<SlotRanges> for Vec<(u16, u16)> {
    fn from(slots: SlotRanges) -> Vec<(u16, u16)> {
        slots.0.iter().map(|range| (range.first.number(), range.last.number())).collect()
    }
}

/// Accepts ranges in any order, and ranges that touch, but no slot twice.
impl TryFrom<Vec<(u64, u64)>> for SlotRanges {
    type Error = SlotRangesError;

    fn try_from(pairs: Vec<(u64, u64)>) -> Result<SlotRanges, SlotRangesError> {
        if pairs.len() > SLOTS.into() {
            return Err(SlotRangesError::TooMany);
        }
        let slot = |number| SlotId::checked(number).ok_or(SlotRangesError::OutOfRange(number));
        let mut ranges = Vec::with_capacity(pairs.len());
        for (first, last) in pairs {
            let (first, last) = (slot(first)?, slot(last)?);
            let reversed = SlotRangesError::Reversed { first: first.number(), last: last.number() };
            ranges.push(SlotRange::new(first, last).ok_or(reversed)?);
        }
        ranges.sort_unstable();
        if let Some(pair) = ranges.windows(2).find(|pair| pair[1].first <= pair[0].last) {
            return Err(SlotRangesError::Repeated(pair[1].first.number()));
        }
        Ok(SlotRanges::merged(ranges))
    }
}

/// Ranges with spaces between them, as in CLUSTER NODES.
impl fmt::Display for SlotRanges {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, range) in self.0.iter().enumerate() {
            let separator = if at == 0 { "" } else { " " };
            write!(f, "{separator}{range}")?;
        }
        Ok(())
    }
}

impl fmt::Debug for SlotRanges {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "[{self}]")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use brisk_testkit::random::Random;
    use std::collections::BTreeSet;

    fn set(pairs: &[(u64, u64)]) -> Result<SlotRanges, SlotRangesError> {
        SlotRanges::try_from(pairs.to_vec())
    }

    #[test]
    fn ranges_are_sorted_and_merged() {
        assert_eq!(set(&[(10, 12), (0, 3), (4, 9)]).unwrap().to_string(), "0-12");
        assert_eq!(set(&[(7, 7), (0, 5)]).unwrap().to_string(), "0-5 7");
        assert_eq!(set(&[]).unwrap(), SlotRanges::default());
        assert_eq!(SlotRanges::all().count(), 16_384);
    }

    #[test]
    fn impossible_ranges_are_rejected() {
        assert_eq!(set(&[(0, 16_384)]), Err(SlotRangesError::OutOfRange(16_384)));
        assert_eq!(set(&[(u64::MAX, 1)]), Err(SlotRangesError::OutOfRange(u64::MAX)));
        assert_eq!(set(&[(3, 2)]), Err(SlotRangesError::Reversed { first: 3, last: 2 }));
        assert_eq!(set(&[(0, 5), (5, 6)]), Err(SlotRangesError::Repeated(5)));
        assert_eq!(set(&vec![(0, 0); 16_385]), Err(SlotRangesError::TooMany));
    }

    #[test]
    fn sets_behave_as_sets_of_numbers_do() {
        let mut random = Random::new(40);
        for round in 0..200 {
            let mut draw = || -> BTreeSet<u16> {
                (0..random.below(30)).map(|_| random.below(40) as u16).collect()
            };
            let (a, b) = (draw(), draw());
            let ranges = |set: &BTreeSet<u16>| -> SlotRanges {
                set.iter().map(|slot| SlotId::new(*slot)).collect()
            };
            let (x, y) = (ranges(&a), ranges(&b));
            let union: BTreeSet<u16> = &a | &b;
            let difference: BTreeSet<u16> = &a - &b;
            assert_eq!(x.union(&y), ranges(&union), "round {round}");
            assert_eq!(x.without(&y), ranges(&difference), "round {round}");
            let common = (&a & &b).first().copied();
            assert_eq!(x.first_common(&y).map(SlotId::number), common, "round {round}");
            assert_eq!((x.count(), x.is_empty()), (a.len(), a.is_empty()), "round {round}");
            for slot in 0..41 {
                assert_eq!(x.contains(SlotId::new(slot)), a.contains(&slot), "round {round}");
            }
        }
    }
}
