//! The commands, as functions that make one of nobody: for a batch, or to be sent by
//! [somebody](crate::Command::on).
//!
//! What must be there is a parameter; what may be is a method of the command, see [`options`]. Numbers of
//! keys are never told, they are counted.
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
mod methods;
pub mod options;
mod own_methods;
mod pubsub;
mod scripting;
mod server;
mod sets;
mod sorted_sets;
mod streams;
mod strings;
mod transactions;
pub mod types;

use crate::request::Traits;

pub use bitmap::*;
pub use cluster::*;
pub use connection::*;
pub use generic::*;
pub use geo::*;
pub use hashes::*;
pub use hyperloglog::*;
pub use lists::*;
pub use pubsub::*;
pub use scripting::*;
pub use server::*;
pub use sets::*;
pub use sorted_sets::*;
pub use streams::*;
pub use strings::*;
pub use transactions::*;

const PLAIN: Traits = Traits { reads_only: false, blocks: false, binds: false };
const READS: Traits = Traits { reads_only: true, blocks: false, binds: false };
const BLOCKS: Traits = Traits { reads_only: false, blocks: true, binds: false };
const READS_AND_BLOCKS: Traits = Traits { reads_only: true, blocks: true, binds: false };
const BINDS: Traits = Traits { reads_only: false, blocks: false, binds: true };
const BINDS_AND_BLOCKS: Traits = Traits { reads_only: false, blocks: true, binds: true };

/// They change what a connection is; sorted.
pub(crate) const BINDING: &[&str] = &[
    "ASKING",
    "AUTH",
    "CLIENT CACHING",
    "CLIENT CAPA",
    "CLIENT DURABILITY",
    "CLIENT NO-EVICT",
    "CLIENT NO-TOUCH",
    "CLIENT REPLY",
    "CLIENT SETINFO",
    "CLIENT SETNAME",
    "CLIENT TRACKING",
    "DISCARD",
    "EXEC",
    "HELLO",
    "MONITOR",
    "MULTI",
    "PSUBSCRIBE",
    "PSYNC",
    "PUNSUBSCRIBE",
    "QUIT",
    "READONLY",
    "READWRITE",
    "REPLCONF",
    "RESET",
    "SCRIPT DEBUG",
    "SELECT",
    "SSUBSCRIBE",
    "SUBSCRIBE",
    "SUNSUBSCRIBE",
    "SYNC",
    "UNSUBSCRIBE",
    "UNWATCH",
    "WAIT",
    "WAITAOF",
    "WATCH",
];

/// They wait for other clients; sorted.
pub(crate) const BLOCKING: &[&str] = &[
    "BLMOVE",
    "BLMPOP",
    "BLPOP",
    "BRPOP",
    "BRPOPLPUSH",
    "BZMPOP",
    "BZPOPMAX",
    "BZPOPMIN",
    "WAITAOF",
];
