//! The data store: keyspace, types, command specifications and data commands.
//!
//! The crate is deterministic: the same calls with the same times and the same random seed give the
//! same replies. It does not wait, read a clock or use a socket.
//!
//! The layers, from the top down. `cargo xtask tidy` rejects an import from a higher layer:
//!
//! ```text
//! commands    the data commands, by group, and the table of all commands
//! dataset     the whole dataset: digests, comparisons, snapshots
//! run         running commands: one, several as a unit, those of blocked clients
//! ┌ call      one call: the context of its handler, and the record for running it again
//! ┤ keyspace  databases, slots, keys, and the clients that block on, watch or cache keys
//! └ env       the state of a thread that runs commands
//! reply       replies, as a handler writes them
//! command     what a command is: its specification, its arguments, the keys among them
//! types       the types of values over their encodings
//! base        numbers as text, patterns, randomness, errors, slots and times
//! ```
//!
//! The three layers with a bracket depend on one another. Blocked clients, and clients whose commands take long, are
//! stored with their calls. A call uses the keyspace on behalf of a thread. The keyspace records the side effects of a
//! call in the thread's `env`.
#![forbid(unsafe_code)]

mod base;
mod call;
pub mod command;
pub mod commands;
mod dataset;
pub mod env;
pub mod keyspace;
pub mod reply;
mod run;
#[doc(hidden)]
pub mod testing;
pub mod types;

// Paths for other crates: these modules live in directories of this crate.
pub use base::{double, error, glob, long_double, number, random};
pub use call::{ctx, long};
pub use command::{args, keyspec};
pub use commands::table;
pub use dataset::{compare, digest, loader, snapshot};
pub use env::{effect, transfer};
pub use run::{exec, finish, serve, unit};

pub use args::Args;
pub use ctx::{Command, Ctx, Handler};
pub use env::{Dialect, Env, PrimaryWords, Settings};
pub use error::{CommandError, Result};
pub use keyspace::{DbIndex, DbNumber, Key, Keyspace, UnixMs};
pub use reply::{Outcome, Reply, ReplyBuffer};
