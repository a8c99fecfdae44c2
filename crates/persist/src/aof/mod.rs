//! The append-only file: a snapshot and the commands since then, in files that a manifest lists.
//!
//! ```text
//!  appendonlydir/appendonly.aof.manifest       list of the files, in the order of loading
//!                appendonly.aof.2.base.rdb     a snapshot of the dataset: an RDB file, or commands
//!                appendonly.aof.5.incr.aof     commands since then
//!                appendonly.aof.6.incr.aof     commands since the previous file was closed
//! ```
//! A file of commands is read from its beginning. If it begins with an RDB file (the preamble of a
//! single file from before Redis 7), it is read from the end of that RDB file:
//! ```text
//!  *3 $3 SET $1 k $1 v       a command: an array of bulk strings, as clients send it
//!  #TS:1700000000            the following commands ran in this second (Unix time) or later
//!  #B:812:92:9fb24a1e        a batch: last ticket, its number of bytes, their CRC32C in hex
//!  #anything                 ignored
//! ```
//! Each line and each string ends with CR LF. Lines with `#` are annotations. Servers since Redis 7
//! ignore unknown annotations, so they can load files with batches.
//!
//! Rules for batches, which [`writer`] follows and [`AofReader`] checks
//!  1. A batch follows its line and contains only whole commands, no annotations.
//!  2. A transaction (MULTI to EXEC) is within one batch, so a file may be truncated at any batch's line.
//!  3. Commands may occur outside of batches, because another server may have continued the file.
//!
//! - [`manifest`]: the manifest, and the changes to its list of files.
//! - [`AofReader`]: a file of commands as [`AofEvent`]s, and how it ends.
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

pub use command::AofCommand;
pub use fault::{AofError, Fault, FaultKind};
pub use manifest::{BaseFormat, FileKind, Manifest, ManifestError, ManifestFile, NotRdb};
pub use reader::{AofEvent, AofEventKind, AofReader, has_preamble};
