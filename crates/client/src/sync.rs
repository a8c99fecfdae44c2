//! The locks and reference-counted pointers of a lane: those of the standard library, or loom's, which explores every
//! interleaving of a model (`lane/model.rs`).
//!
//! Selected by `cfg(brisk_loom)` and not by `cfg(loom)`, under which tokio has no sockets.

#[cfg(not(brisk_loom))]
pub(crate) use crate::poison::lock;
#[cfg(brisk_loom)]
pub(crate) use crate::poison::lock_in_model as lock;
#[cfg(brisk_loom)]
pub(crate) use loom::sync::{Arc, Mutex, MutexGuard};
#[cfg(not(brisk_loom))]
pub(crate) use std::sync::{Arc, Mutex, MutexGuard};
