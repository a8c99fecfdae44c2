//! Marks of slots. A mark is a bit in the cache line that every access to the slot reads, so that a
//! feature that few slots use costs the other slots one test.

/// A client waits for a key of the slot, whether the key exists or not.
pub(in crate::keyspace) const WAITED_FOR: u8 = 1;
/// Fields of hashes in the slot may have TTLs.
pub(in crate::keyspace) const HAS_FIELD_TTLS: u8 = 1 << 1;
/// Like [`HAS_FIELD_TTLS`], for TTLs set since the current walk over the slot began.
pub(in crate::keyspace) const FIELD_TTLS_SET_SINCE_WALK: u8 = 1 << 2;
/// Both marks for field TTLs.
pub(in crate::keyspace) const FIELD_MARKS: u8 = HAS_FIELD_TTLS | FIELD_TTLS_SET_SINCE_WALK;
/// A session watches a key of the slot, whether the key exists or not.
pub(in crate::keyspace) const WATCHED: u8 = 1 << 3;
/// Commands that write to the slot wait while something is being computed from its values.
pub(in crate::keyspace) const FROZEN: u8 = 1 << 4;
/// The database's [`Occupied`](super::occupied::Occupied) set contains the slot.
pub(in crate::keyspace) const OCCUPIED: u8 = 1 << 5;
/// Clients may cache keys of the slot, so each change checks `tracking`.
pub(in crate::keyspace) const TRACKED: u8 = 1 << 6;
/// Changes to the slot's keys are counted for a computation (see `observed`).
pub(in crate::keyspace) const OBSERVED: u8 = 1 << 7;
/// Changes to the slot's keys have to be reported.
pub(in crate::keyspace) const CONCERNED: u8 = WATCHED | TRACKED | OBSERVED;

const _: () = {
    let fields = [HAS_FIELD_TTLS, FIELD_TTLS_SET_SINCE_WALK];
    let all = [WAITED_FOR, fields[0], fields[1], WATCHED, FROZEN, OCCUPIED, TRACKED, OBSERVED];
    let (mut seen, mut at) = (0, 0);
    while at < all.len() {
        assert!(seen & all[at] == 0 && all[at].is_power_of_two(), "a mark is a bit of its own");
        seen |= all[at];
        at += 1;
    }
};
