//! Cluster mode without I/O: time and events are arguments.
//!
//! | module | about |
//! |---|---|
//! | [`id`] | identifiers: nodes, shards, runs of a process, terms, epochs, changes |
//! | [`slots`] | ranges of slots |
//! | [`document`] | the topology document and its validation |
#![forbid(unsafe_code)]

pub mod document;
pub mod id;
pub mod slots;
