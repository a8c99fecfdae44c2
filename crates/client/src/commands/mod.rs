//! Free functions that build a command without a client: for a batch, or for a client that sends it
//! ([`on`](crate::Command::on)).
//!
//! Required arguments are parameters. Optional arguments are methods of the command, see [`options`]. The
//! number of keys is not a parameter: it is counted.
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
mod pubsub;
mod scripting;
mod server;
mod session_methods;
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

/// Commands that change the state of their connection; sorted.
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

/// Commands that may block until another client acts; sorted.
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
