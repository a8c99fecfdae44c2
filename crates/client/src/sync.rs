//! Locks and counted pointers of what threads share in a lane: those of the standard library, or loom's, which tries
//! every interleaving of a model (`lane/model.rs`).
//!
//! Not under `cfg(loom)`: there tokio has no sockets.

#[cfg(not(brisk_loom))]
pub(crate) use crate::poison::lock;
#[cfg(brisk_loom)]
pub(crate) use crate::poison::lock_in_model as lock;
#[cfg(brisk_loom)]
pub(crate) use loom::sync::{Arc, Mutex, MutexGuard};
#[cfg(not(brisk_loom))]
pub(crate) use std::sync::{Arc, Mutex, MutexGuard};
