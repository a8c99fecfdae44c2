//! The slots of a unit of several commands: locked together, lent to each command in turn.

use super::{GuardList, Guards, HeldSlots, Keys, SPIN_ROUNDS};
use crate::base::error::{CommandError, Result};
use crate::command::args::PreparedKey;
use crate::keyspace::{DbSlot, Keyspace, SlotGuard};
use smallvec::SmallVec;

/// Slots held for several commands. Each command borrows those of its keys.
pub(crate) struct HeldLocks<'k> {
    keyspace: &'k Keyspace,
    /// In ascending order, without duplicates; `None` while a command has borrowed the guard.
    guards: SmallVec<[(DbSlot, Option<SlotGuard<'k>>); 2]>,
}

impl<'k> HeldLocks<'k> {
    /// Locks all of `places` or none. [`CommandError::SlotBusy`] if another thread holds one.
    pub(crate) fn take(
        keyspace: &'k Keyspace,
        places: impl Iterator<Item = DbSlot>,
    ) -> Result<HeldLocks<'k>> {
        let mut places = places;
        let lock = |place: DbSlot| -> Result<(DbSlot, Option<SlotGuard<'k>>)> {
            let slot = keyspace.database(place.0).slot(place.1);
            let guard = slot.lock_spin(SPIN_ROUNDS).ok_or(CommandError::SlotBusy)?;
            Ok((place, Some(guard)))
        };
        let mut guards = SmallVec::new();
        match (places.next(), places.next()) {
            (Some(only), None) => guards.push(lock(only)?),
            (None, _) => {}
            (Some(first), Some(second)) => {
                let places = distinct([first, second].into_iter().chain(places));
                guards.reserve_exact(places.len());
                for place in places {
                    guards.push(lock(place)?);
                }
            }
        }
        Ok(HeldLocks { keyspace, guards })
    }

    /// A held slot that no command has borrowed.
    pub(crate) fn at(&mut self, place: DbSlot) -> Option<&mut SlotGuard<'k>> {
        let at = self.guards.binary_search_by_key(&place, |(held, _)| *held).ok()?;
        self.guards[at].1.as_mut()
    }

    /// All slots, in ascending order.
    pub(crate) fn places(&self) -> Vec<DbSlot> {
        self.guards.iter().map(|(place, _)| *place).collect()
    }

    /// Reports whether a slot is held.
    pub(crate) fn has(&self, place: DbSlot) -> bool {
        self.guards.binary_search_by_key(&place, |(held, _)| *held).is_ok()
    }

    fn lend(&mut self, place: DbSlot) -> Result<SlotGuard<'k>> {
        let at = self.guards.binary_search_by_key(&place, |(held, _)| *held);
        let guard = at.ok().and_then(|at| self.guards[at].1.take());
        debug_assert!(guard.is_some(), "a unit holds the slots of all its commands");
        guard.ok_or(CommandError::SlotBusy)
    }

    /// Lends the slots of `wanted` to a `Keys` that holds nothing yet.
    pub(crate) fn lend_to<'a>(&mut self, keys: &mut Keys<'a>, wanted: &[PreparedKey]) -> Result<()>
    where
        'k: 'a,
    {
        keys.assert_holds_nothing();
        keys.held = match wanted {
            [] => HeldSlots::None,
            [key] => HeldSlots::One((keys.db, key.slot), self.lend((keys.db, key.slot))?),
            many => {
                let mut guards = GuardList::new();
                for place in distinct(many.iter().map(|key| (keys.db, key.slot))) {
                    guards.push((place, self.lend(place)?));
                }
                HeldSlots::Many(Guards::in_order(guards))
            }
        };
        Ok(())
    }

    /// Takes back the slots lent by [`HeldLocks::lend_to`].
    pub(crate) fn take_back(&mut self, keys: Keys<'_>) {
        let (keyspace, own) = (self.keyspace, &mut self.guards);
        let mut put = |place: DbSlot, guard: SlotGuard<'_>| {
            if let Ok(at) = own.binary_search_by_key(&place, |(held, _)| *held) {
                let slot = keyspace.database(place.0).slot(place.1);
                own[at].1 = Some(guard.through(slot));
            }
        };
        match keys.held {
            HeldSlots::None => {}
            HeldSlots::One(place, guard) => put(place, guard),
            HeldSlots::Many(guards) => {
                guards.into_iter().for_each(|(place, guard)| put(place, guard))
            }
        }
    }
}

/// The slots in ascending order, without duplicates.
pub(super) fn distinct(places: impl Iterator<Item = DbSlot>) -> SmallVec<[DbSlot; 16]> {
    let mut places: SmallVec<[DbSlot; 16]> = places.collect();
    places.sort_unstable();
    places.dedup();
    places
}
