//! The data store: keyspace, types, command specifications and data commands.
//!
//! Deterministic: the same calls with the same times and the same random seed give the same
//! replies. Nothing here waits, reads a clock or sees a socket.
//!
//! From the bottom up; `cargo xtask tidy` refuses an import that goes up:
//!
//! ```text
//! commands    the data commands, by group, and the table of all commands
//! dataset     all data at once: digests, comparisons, snapshots
//! run         calls that are run: one, several as a unit, those of clients that waited
//! ┌ call      one call: what its handler works with, and what is kept to run it again
//! ┤ keyspace  databases, slots, keys, and who waits for, watches and caches them
//! └ env       what a thread that runs commands brings along
//! reply       replies, as a handler says them
//! command     what a command is: its facts, its words, and the keys among them
//! types       the types of values over their encodings
//! base        numbers as text, patterns, randomness, errors, places and times
//! ```
//!
//! The three with a bracket know one another: a client that waits, or whose command takes long, is
//! kept with its call; a call works on the keyspace for a thread; and the keyspace notes for the
//! thread what a call leaves behind.
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

// The paths by which other crates know what lies in folders.
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
