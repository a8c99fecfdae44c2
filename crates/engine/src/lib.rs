//! The data store: keyspace, types, command specifications and data commands.
//!
//! Deterministic: the same calls with the same times and the same random seed give the same
//! replies. Nothing here waits, reads a clock or sees a socket.
#![forbid(unsafe_code)]

pub mod args;
pub mod command;
pub mod commands;
pub mod ctx;
pub mod digest;
pub mod double;
pub mod effect;
pub mod env;
pub mod error;
pub mod exec;
pub mod glob;
pub mod keyspace;
pub mod keyspec;
pub mod long;
pub mod long_double;
pub mod number;
pub mod random;
pub mod reply;
pub mod serve;
pub mod snapshot;
pub mod table;
#[doc(hidden)]
pub mod testing;
pub mod transfer;
pub mod types;
pub mod unit;

pub use args::Args;
pub use ctx::{Command, Ctx, Handler};
pub use env::{Dialect, Env, Settings};
pub use error::{CommandError, Result};
pub use keyspace::{DbIndex, Key, Keyspace, UnixMs};
pub use reply::{Outcome, Reply, ReplyBuffer};
