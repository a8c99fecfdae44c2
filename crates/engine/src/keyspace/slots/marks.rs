//! Marks of slots: a bit each, in the line of memory that a look into the slot touches anyway, so
//! that what concerns few slots costs the others one test.

/// Some client waits for one of the slot's keys, present or not.
pub(in crate::keyspace) const WAITED_FOR: u8 = 1;
/// Fields of its hashes may have deadlines.
pub(in crate::keyspace) const FIELDS_EXPIRE: u8 = 1 << 1;
/// The same for deadlines set since the present walk over the slot began.
pub(in crate::keyspace) const FIELDS_EXPIRE_ANEW: u8 = 1 << 2;
/// Both.
pub(in crate::keyspace) const FIELD_MARKS: u8 = FIELDS_EXPIRE | FIELDS_EXPIRE_ANEW;
/// Some session watches one of its keys, present or not.
pub(in crate::keyspace) const WATCHED: u8 = 1 << 3;
/// Commands that write wait while something is computed from its values.
pub(in crate::keyspace) const FROZEN: u8 = 1 << 4;
/// The database knows that the slot may hold keys.
pub(in crate::keyspace) const OCCUPIED: u8 = 1 << 5;
/// Clients may cache some of its keys: `tracking` is to be looked up.
pub(in crate::keyspace) const TRACKED: u8 = 1 << 6;
/// Changes of its keys are counted: something is computed from them (see `observed`).
pub(in crate::keyspace) const OBSERVED: u8 = 1 << 7;
/// Changes of its keys concern somebody.
pub(in crate::keyspace) const CONCERNED: u8 = WATCHED | TRACKED | OBSERVED;

const _: () = {
    let fields = [FIELDS_EXPIRE, FIELDS_EXPIRE_ANEW];
    let all = [WAITED_FOR, fields[0], fields[1], WATCHED, FROZEN, OCCUPIED, TRACKED, OBSERVED];
    let (mut seen, mut at) = (0, 0);
    while at < all.len() {
        assert!(seen & all[at] == 0 && all[at].is_power_of_two(), "a mark is a bit of its own");
        seen |= all[at];
        at += 1;
    }
};
