//! The client's integration tests, in one executable; `cargo test -p brisk --test it MODULE::` runs the tests of one
//! file.
//!
//! Two files are separate executables: `allocations.rs` has a global allocator that counts, and `outage.rs` measures
//! the memory of its process.

mod caching;
mod client_metrics;
mod cluster;
mod cluster_faults;
mod consumer;
mod contract;
mod credentials;
mod debug_output;
mod derived;
mod examples;
mod lanes;
mod large;
mod observing;
mod pool;
mod readme;
mod recipes;
mod replays;
mod replica_reads;
mod scanning;
mod scripted;
mod sentinel;
mod sessions;
mod shapes;
mod storms;
mod streamed;
mod subscribing;
mod syscalls;
#[cfg(feature = "tls")]
mod tls;
