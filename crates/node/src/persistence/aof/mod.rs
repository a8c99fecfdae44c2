//! The append-only file: the stream of changes on the disk, and replies that wait for it.
//!
//! ```text
//!  journal ─ dispatch ─ push ─► pending ─┬─ a worker, at the end of its round ─┐
//!                                        └─ the thread, if a write may take long ┴─► write ─► written
//!                                                           fdatasync, by the policy ───────► durable
//! ```
//!
//! *Written* and *durable* are places in the stream ([`brisk_engine::keyspace::Ticket`]). A reply shows
//! the dataset up to a place, and leaves when that is written (`everysec`, `no`) or durable
//! (`always`), or as its client has asked for (CLIENT DURABILITY).
//!
//! | file | about |
//! |---|---|
//! | `state` | what is pending, how far it has come, and who waits for more |
//! | `unlogged` | output of a session that waits for the file |
//! | `wait` | which output waits |
//! | `file` | the file that is written |
//! | `files` | the order of work on files: at the start, and in a rewrite |
//! | `progress` | what is pending goes into the file, and onto the disk |
//! | `home` | the manifest and its directory |
//! | `lock` | no two servers write to the same files |
//! | `writer` | who writes, and puts it on the disk |
//! | `ending` | what becomes of a file that is not whole |
//! | `power` | tests: losses of power, and errors, at any call |
//! | `report` | what INFO shows of all that |
//! | `rewrite` | a new base: the dataset of a moment, and a new increment from there on |

pub mod ending;
mod file;
mod files;
pub mod home;
pub mod lock;
#[cfg(test)]
mod power;
mod progress;
pub mod report;
pub mod rewrite;
pub mod state;
pub mod unlogged;
pub mod wait;
pub mod writer;
