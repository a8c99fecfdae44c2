//! Optional arguments of commands: a type for each command that has any.
//!
//! Written by the test `client_commands` from the server's command table: do not edit.

mod bitmap;
mod cluster;
mod connection;
mod generic;
mod geo;
mod hashes;
mod lists;
mod pubsub;
mod scripting;
mod server;
mod sets;
mod sorted_sets;
mod streams;
mod strings;
pub use bitmap::*;
pub use cluster::*;
pub use connection::*;
pub use generic::*;
pub use geo::*;
pub use hashes::*;
pub use lists::*;
pub use pubsub::*;
pub use scripting::*;
pub use server::*;
pub use sets::*;
pub use sorted_sets::*;
pub use streams::*;
pub use strings::*;
