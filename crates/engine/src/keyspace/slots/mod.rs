//! Slots: a table behind a lock, and the information that is available without searching the table.
//!
//! | part | about |
//! |---|---|
//! | `slot` | one slot, and the guard that locks it |
//! | `marks` | the bits that a slot keeps next to its lock |
//! | `occupied` | the slots of a database that may hold keys |
//! | `freeze` | blocking writers while a long command works on values of the slot |
//! | `observed` | counting the changes to a slot |

mod freeze;
pub(super) mod marks;
pub(super) mod observed;
pub(super) mod occupied;
pub(super) mod slot;
