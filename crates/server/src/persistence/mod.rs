//! The dataset in files: snapshots for DEBUG RELOAD and for replicas.

pub(crate) mod snapshot;
