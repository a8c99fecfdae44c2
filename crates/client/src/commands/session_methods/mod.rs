//! The commands as methods of a session.
//!
//! Written by the test `client_commands` from the server's command table: do not edit.

mod bitmap;
mod cluster;
mod connection;
mod generic;
mod geo;
mod hashes;
mod hyperloglog;
mod lists;
mod pubsub;
mod scripting;
mod server;
mod sets;
mod sorted_sets;
mod streams;
mod strings;
mod transactions;
