//! All data at once: its digest, and snapshots of it.

pub mod compare;
pub mod digest;
pub mod loader;
pub mod snapshot;
