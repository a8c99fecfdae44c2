//! Clients that have registered interest in keys: they block on keys, watch them, or cache them.
//!
//! | part | about |
//! |---|---|
//! | `key_queues` | queues by key, shared by blocking commands and WATCH |
//! | `waiting` | clients in blocking commands |
//! | `watching` | WATCH |
//! | `tracking` | client-side caching |

pub(super) mod key_queues;
pub(super) mod tracking;
pub(super) mod waiting;
pub(super) mod watching;
