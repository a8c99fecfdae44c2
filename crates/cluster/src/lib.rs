//! Cluster mode without I/O: time and events are arguments.
//!
//! | module | about |
//! |---|---|
//! | [`id`] | identifiers: nodes, shards, runs of a process, terms, epochs, changes |
//! | [`slots`] | ranges of slots |
//! | [`document`] | the topology document and its validation |
//! | [`change`] | changes to the document, from one version to the next |
//! | [`map`] | the slot map in force on one node, and the routing decision |
//! | [`view`] | what the CLUSTER commands show |
//! | [`failover`] | promotion of replicas, and when a node may serve |
#![forbid(unsafe_code)]

pub mod change;
pub mod document;
pub mod failover;
pub mod id;
pub mod map;
pub mod slots;
pub mod view;
