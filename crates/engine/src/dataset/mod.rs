//! All data at once: its digest, and snapshots of it.

pub mod digest;
pub mod loader;
pub mod snapshot;
