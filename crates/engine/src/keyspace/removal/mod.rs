//! Expiry and eviction: removing keys whose TTL has passed, and keys when memory is short.
//!
//! | part | about |
//! |---|---|
//! | `expire` | the expiry cycle |
//! | `fields` | TTLs of hash fields |
//! | `hidden` | expired keys that stay, for example on a replica |
//! | `replica_expires` | TTLs that clients of a writable replica have set |
//! | `evict` | eviction, and the access clocks that it reads |
//! | `clocks` | restarting the access clocks when the eviction policy changes |

pub(super) mod clocks;
pub mod evict;
pub mod expire;
pub(super) mod fields;
mod hidden;
pub(super) mod replica_expires;
