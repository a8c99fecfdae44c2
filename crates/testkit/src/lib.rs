//! The test kit: real server processes and scripted connections. It does not depend on the server's crates, so that
//! tests of a published crate build little. The differential runner, which does depend on them, is
//! `brisk-differential`.
//!
//! - [`server`]: starts, watches and stops a server process, either Brisk or a real Redis.
//! - [`cluster`]: several server processes that serve a cluster's slots.
//! - [`brisk_cluster`]: Brisk nodes in cluster mode, with a coordinator.
//! - [`conn`]: a connection driven by a script of commands, with replies as `redis-cli` shows them.
//! - [`matrix`]: runs a test body for every protocol and I/O back end.
//! - [`writers`]: clients that change values of every type.
//! - [`digest`]: compares the datasets of two servers.
//! - [`race`]: runs many clients concurrently, and checks that some order of their operations explains the replies.
//! - [`proxy`]: simulates network faults between two nodes.
//! - [`etcd`]: starts etcd members.
//! - [`sentinels`]: real sentinels that watch a primary.
//! - [`kind`]: the kind of server that a node runs: Brisk, Redis or Valkey.
//! - [`skip`]: the line that a test prints if this machine lacks something that the test needs.
//! - [`wait`]: the only module that sleeps; all other code passes it a condition and a deadline.
//!
//! There is no manual clock. Time is an argument of every call into `brisk-engine`, so an engine test can pass any
//! instant to each call. A test of a server process runs in real time, so choose expiry times so far in the future or
//! the past that delays do not matter.
//!
//! Functions of this crate fail by panicking at the caller's line, as assertions do, because a test cannot handle an
//! error. The exception is [`race`], which returns its findings.
#![forbid(unsafe_code)]

pub mod brisk_cluster;
pub mod cluster;
pub mod conn;
pub mod crowd;
pub mod digest;
pub mod etcd;
mod hang;
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
