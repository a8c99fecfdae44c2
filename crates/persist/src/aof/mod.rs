//! The append-only file: a snapshot and the commands since, in files that a manifest lists.
//!
//! ```text
//!  appendonlydir/appendonly.aof.manifest       which files there are, in which order
//!                appendonly.aof.2.base.rdb     the dataset at some moment: an RDB file, or commands
//!                appendonly.aof.5.incr.aof     commands since then
//!                appendonly.aof.6.incr.aof     commands since the file before was closed
//! ```
//! A file of commands is read from its beginning, or from the end of an RDB file that stands first
//! in it (the preamble of a single file from before version 7):
//! ```text
//!  *3 $3 SET $1 k $1 v       a command: an array of bulk strings, as clients send it
//!  #TS:1700000000            what follows was executed in this second (Unix time) or later
//!  #B:812:92:9fb24a1e        a batch: last ticket, bytes that belong to it, their CRC32C in hex
//!  #anything                 passed over
//! ```
//! each line and each string ended by CR LF. Lines with `#` are annotations: servers from version 7
//! pass over those they do not know, so files with batches can be loaded by them.
//!
//! Rules for batches, which [`writer`] keeps and [`AofReader`] demands
//!  1. A batch stands behind its line, whole commands and nothing else: no annotations.
//!  2. A transaction (MULTI to EXEC) lies in one batch, so a file may be cut at any batch's line.
//!  3. Commands may stand outside of batches: another server may have continued the file.
//!
//! - [`manifest`]: the manifest, and what becomes of its files.
//! - [`AofReader`]: a file of commands as [`Event`]s, and how it ends.
//! - [`rebuild`]: a snapshot as commands.
//! - [`writer`]: commands and annotations as bytes.

mod annotation;
mod command;
mod fault;
pub mod manifest;
mod reader;
pub mod rebuild;
mod tail;
pub mod writer;

pub use command::Command;
pub use fault::{AofError, Fault, FaultKind};
pub use manifest::{BaseFormat, FileKind, Manifest, ManifestError, ManifestFile, NotRdb};
pub use reader::{AofReader, Event, EventKind, has_preamble};
