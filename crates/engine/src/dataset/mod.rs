//! The whole dataset: its digest, comparisons, loading and snapshots.

pub mod compare;
pub mod digest;
pub mod loader;
pub mod snapshot;
