//! The slots that a command holds.

use crate::keyspace::{DbSlot, SLOTS, SlotGuard, SlotId};
use smallvec::SmallVec;

/// From this number on, slots that are added one by one are no longer kept in order. In a SORT BY,
/// inserting each key's slot into the list and searching for it would take longer than all other
/// work for the key.
const SORTED_MAX: usize = 64;

/// The slots that a command holds.
pub(super) enum HeldSlots<'a> {
    None,
    One(DbSlot, SlotGuard<'a>),
    Many(Guards<'a>),
}

pub(super) type GuardList<'a> = SmallVec<[(DbSlot, SlotGuard<'a>); 4]>;

/// Several slots, without duplicates.
#[derive(Default)]
pub(super) struct Guards<'a> {
    /// In ascending order, unless there is an index.
    list: GuardList<'a>,
    /// The position of each slot in the list, if all are in one database. Entries of slots that are
    /// not in the list are meaningless.
    index: Option<Box<[u16; SLOTS]>>,
}

impl<'a> HeldSlots<'a> {
    #[inline]
    pub(super) fn at(&self, place: DbSlot) -> Option<&SlotGuard<'a>> {
        match self {
            HeldSlots::One(held, guard) if *held == place => Some(guard),
            HeldSlots::None | HeldSlots::One(..) => None,
            HeldSlots::Many(guards) => Some(&guards.list[guards.position(place)?].1),
        }
    }

    #[inline]
    pub(super) fn at_mut(&mut self, place: DbSlot) -> Option<&mut SlotGuard<'a>> {
        match self {
            HeldSlots::One(held, guard) if *held == place => Some(guard),
            HeldSlots::None | HeldSlots::One(..) => None,
            HeldSlots::Many(guards) => {
                let at = guards.position(place)?;
                Some(&mut guards.list[at].1)
            }
        }
    }

    /// The slots, which may be slots of several databases.
    pub(super) fn slots(&self) -> impl Iterator<Item = SlotId> + Clone {
        let (one, many) = match self {
            HeldSlots::None => (None, [].as_slice()),
            HeldSlots::One(place, _) => (Some(place), [].as_slice()),
            HeldSlots::Many(guards) => (None, guards.list.as_slice()),
        };
        one.into_iter().chain(many.iter().map(|(place, _)| place)).map(|place| place.1)
    }

    /// Adds a slot that is not held yet.
    pub(super) fn add(&mut self, place: DbSlot, guard: SlotGuard<'a>) {
        let mut guards = match std::mem::replace(self, HeldSlots::None) {
            HeldSlots::None => Guards::default(),
            HeldSlots::One(place, guard) => Guards::in_order(SmallVec::from_iter([(place, guard)])),
            HeldSlots::Many(guards) => guards,
        };
        guards.add(place, guard);
        *self = HeldSlots::Many(guards);
    }
}

impl<'a> Guards<'a> {
    /// Creates guards from a list in ascending order.
    #[inline]
    pub(super) const fn in_order(list: GuardList<'a>) -> Guards<'a> {
        Guards { list, index: None }
    }

    // Not inlined into its callers, most of which hold one slot.
    #[inline(never)]
    fn position(&self, place: DbSlot) -> Option<usize> {
        match &self.index {
            None => self.list.binary_search_by_key(&place, |(held, _)| *held).ok(),
            Some(index) => {
                let at = usize::from(index[place.1.index()]);
                (self.list.get(at)?.0 == place).then_some(at)
            }
        }
    }

    /// Adds a slot. O(1) for most slots of a long list, O(slots) for slots of several databases.
    fn add(&mut self, place: DbSlot, guard: SlotGuard<'a>) {
        let all_of = |db| self.list.iter().all(|(held, _)| held.0 == db);
        match &mut self.index {
            None if self.list.len() == SORTED_MAX && all_of(place.0) => {
                let mut index = Box::new([0; SLOTS]);
                for (at, (held, _)) in self.list.iter().enumerate() {
                    index[held.1.index()] = at as u16;
                }
                index[place.1.index()] = SORTED_MAX as u16;
                self.index = Some(index);
            }
            Some(index) if self.list[0].0.0 == place.0 => {
                index[place.1.index()] = self.list.len() as u16;
            }
            _ => {
                if self.index.take().is_some() {
                    self.list.sort_unstable_by_key(|(held, _)| *held);
                }
                let at = self.list.partition_point(|(held, _)| *held < place);
                self.list.insert(at, (place, guard));
                return;
            }
        }
        self.list.push((place, guard));
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &(DbSlot, SlotGuard<'a>)> {
        self.list.iter()
    }

    pub(super) fn iter_mut(&mut self) -> impl Iterator<Item = &mut (DbSlot, SlotGuard<'a>)> {
        self.list.iter_mut()
    }
}

impl<'a> IntoIterator for Guards<'a> {
    type Item = (DbSlot, SlotGuard<'a>);
    type IntoIter = smallvec::IntoIter<[(DbSlot, SlotGuard<'a>); 4]>;

    fn into_iter(self) -> Self::IntoIter {
        self.list.into_iter()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::keyspace::{DbIndex, KeyHasher, Keyspace, SlotId};

    const FIRST: DbIndex = DbIndex::FIRST;
    const OTHER: DbIndex = DbIndex::of(1);

    fn add<'a>(held: &mut HeldSlots<'a>, keyspace: &'a Keyspace, place: DbSlot) {
        assert!(held.at(place).is_none() && held.at_mut(place).is_none());
        let guard = keyspace.database(place.0).slot(place.1).lock_spin(1);
        held.add(place, guard.expect("no thread holds it"));
    }

    /// Slots in any order, through all representations: one, a few, many, many of two databases.
    #[test]
    fn each_slot_is_found_however_many_are_held() {
        let keyspace = Keyspace::new(2, KeyHasher::seeded(1, 2));
        let mut held = HeldSlots::None;
        let slot = |number: u16| SlotId::new(number.wrapping_mul(7919) % SLOTS as u16);
        let mut places = Vec::new();
        for number in 0..3 * SORTED_MAX as u16 {
            // The last third uses a second database.
            let is_late = usize::from(number) > 2 * SORTED_MAX && number % 3 == 0;
            let place = (if is_late { OTHER } else { FIRST }, slot(number));
            add(&mut held, &keyspace, place);
            places.push(place);
            for place in &places {
                assert!(held.at(*place).is_some() && held.at_mut(*place).is_some());
            }
            assert!(held.at((FIRST, slot(number + 1))).is_none());
            assert!(held.at((OTHER, slot(0))).is_none());
        }
    }
}
