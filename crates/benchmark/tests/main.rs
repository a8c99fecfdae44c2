//! The load generator's integration tests, in one executable.

mod cluster;
mod delay;
mod experiments;
mod latency;
mod library;
mod plot;
mod tls;
mod tool;
