//! The slots of a unit of several commands: locked together, lent to each command in turn.

use super::{GuardList, Guards, Held, Keys, SPIN_ROUNDS};
use crate::base::error::{CommandError, Result};
use crate::command::args::PreparedKey;
use crate::keyspace::{Keyspace, Place, SlotGuard};
use smallvec::SmallVec;

/// Slots held for several commands, each of which borrows those of its keys.
pub(crate) struct Locks<'k> {
    keyspace: &'k Keyspace,
    /// In ascending order, no place twice; `None` while a command has the guard.
    guards: SmallVec<[(Place, Option<SlotGuard<'k>>); 2]>,
}

impl<'k> Locks<'k> {
    /// Locks all of `places` or none. [`CommandError::SlotBusy`] if another thread holds one.
    pub(crate) fn take(
        keyspace: &'k Keyspace,
        places: impl Iterator<Item = Place>,
    ) -> Result<Locks<'k>> {
        let mut places = places;
        let mut guards = SmallVec::new();
        let mut lock = |place: Place| -> Result<()> {
            let slot = keyspace.database(place.0).slot(place.1);
            let guard = slot.lock_spin(SPIN_ROUNDS).ok_or(CommandError::SlotBusy)?;
            guards.push((place, Some(guard)));
            Ok(())
        };
        match (places.next(), places.next()) {
            (Some(only), None) => lock(only)?,
            (None, _) => {}
            (Some(first), Some(second)) => distinct([first, second].into_iter().chain(places))
                .into_iter()
                .try_for_each(lock)?,
        }
        Ok(Locks { keyspace, guards })
    }

    /// The slot of a place that is held, and that no command has.
    pub(crate) fn at(&mut self, place: Place) -> Option<&mut SlotGuard<'k>> {
        let at = self.guards.binary_search_by_key(&place, |(held, _)| *held).ok()?;
        self.guards[at].1.as_mut()
    }

    /// All places, in ascending order.
    pub(crate) fn places(&self) -> Vec<Place> {
        self.guards.iter().map(|(place, _)| *place).collect()
    }

    /// Whether a place is held.
    pub(crate) fn has(&self, place: Place) -> bool {
        self.guards.binary_search_by_key(&place, |(held, _)| *held).is_ok()
    }

    fn lend(&mut self, place: Place) -> Result<SlotGuard<'k>> {
        let at = self.guards.binary_search_by_key(&place, |(held, _)| *held);
        let guard = at.ok().and_then(|at| self.guards[at].1.take());
        debug_assert!(guard.is_some(), "a unit holds the slots of all its commands");
        guard.ok_or(CommandError::SlotBusy)
    }

    /// Gives the slots of `prepared` to keys that hold nothing yet.
    pub(crate) fn lend_to<'a>(&mut self, keys: &mut Keys<'a>, wanted: &[PreparedKey]) -> Result<()>
    where
        'k: 'a,
    {
        keys.assert_holds_nothing();
        keys.held = match wanted {
            [] => Held::None,
            [key] => Held::One((keys.db, key.slot), self.lend((keys.db, key.slot))?),
            many => {
                let mut guards = GuardList::new();
                for place in distinct(many.iter().map(|key| (keys.db, key.slot))) {
                    guards.push((place, self.lend(place)?));
                }
                Held::Many(Guards::in_order(guards))
            }
        };
        Ok(())
    }

    /// Takes back what [`Locks::lend_to`] gave.
    pub(crate) fn take_back(&mut self, keys: Keys<'_>) {
        let (keyspace, own) = (self.keyspace, &mut self.guards);
        let mut put = |place: Place, guard: SlotGuard<'_>| {
            if let Ok(at) = own.binary_search_by_key(&place, |(held, _)| *held) {
                let slot = keyspace.database(place.0).slot(place.1);
                own[at].1 = Some(guard.through(slot));
            }
        };
        match keys.held {
            Held::None => {}
            Held::One(place, guard) => put(place, guard),
            Held::Many(guards) => guards.into_iter().for_each(|(place, guard)| put(place, guard)),
        }
    }
}

/// Places in ascending order, none twice.
pub(super) fn distinct(places: impl Iterator<Item = Place>) -> SmallVec<[Place; 16]> {
    let mut places: SmallVec<[Place; 16]> = places.collect();
    places.sort_unstable();
    places.dedup();
    places
}
