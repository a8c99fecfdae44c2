//! The test machinery: real server processes and scripted connections. It depends on no crate of the server, so that
//! the tests of a published crate build little; the differential runner, which does, is `brisk-differential`.
//!
//! - [`server`]: start, watch and stop a server process, ours or a real Redis.
//! - [`cluster`]: several of them that serve a cluster's slots.
//! - [`brisk_cluster`]: nodes of ours in cluster mode, with a coordinator.
//! - [`conn`]: a connection driven by a script of commands, with replies as `redis-cli` shows them.
//! - [`matrix`]: run one test body for every protocol and I/O back end.
//! - [`writers`]: clients that change values of every type.
//! - [`digest`]: whether two servers hold the same.
//! - [`race`]: many clients at once, and whether some order of what they did explains the answers.
//! - [`proxy`]: a bad network between two nodes.
//! - [`etcd`]: members of etcd.
//! - [`sentinels`]: real sentinels that watch a primary.
//! - [`kind`]: which server a node is, ours, Redis or Valkey.
//! - [`skip`]: what a test prints if this machine lacks what it needs.
//! - [`wait`]: the only place that waits; everything else names a condition and a deadline.
//!
//! A manual clock is not here: time is an argument of every call into `brisk-engine`, so a test of the engine simply
//! passes the instant it wants, and the next instant to the next call. A test of a process sees real time; choose
//! expiry times far enough in the future or the past that time does not matter.
//!
//! Everything here fails by panicking at the caller's line, as assertions do: a test kit has no
//! caller who could handle an error. The exception is [`race`], whose findings are values.
#![forbid(unsafe_code)]

pub mod brisk_cluster;
pub mod cluster;
pub mod conn;
pub mod crowd;
pub mod digest;
pub mod etcd;
pub mod kind;
pub mod matrix;
pub mod port;
pub mod proxy;
pub mod race;
pub mod random;
pub mod reply;
pub mod sentinels;
pub mod server;
pub mod skip;
pub mod temp_dir;
pub mod wait;
pub mod words;
pub mod writers;

pub use brisk_cluster::BriskCluster;
pub use cluster::Cluster;
pub use conn::Conn;
pub use kind::Kind;
pub use matrix::{Config, each_backend, each_config, each_protocol};
pub use proxy::Proxy;
pub use server::{Launch, Server};
pub use skip::skipped;
pub use temp_dir::TempDir;
pub use wait::wait_until;
