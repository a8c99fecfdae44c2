//! The append-only file: the stream of changes on the disk, and replies that wait for it.
//!
//! ```text
//! journal ─ dispatch ─ push ─► pending ─┬─ a worker, at the end of its round ─┐
//!                                       └─ the thread, if a write may take long ┴─► write ─► written
//!                                                          fdatasync, by the policy ───────► durable
//! ```
//!
//! *Written* and *durable* are positions in the stream ([`brisk_engine::keyspace::Ticket`]). A reply shows the dataset
//! up to a position. The reply is sent when that position is written (`everysec`, `no`) or durable (`always`), or has
//! reached the level that the client requested (CLIENT DURABILITY).
//!
//! | file | purpose |
//! |---|---|
//! | `state` | pending data, the positions that were reached, and the workers that wait for them |
//! | `held_replies` | output of a session that waits for the file or for replicas |
//! | `wait` | which output waits |
//! | `file` | the file that is being written |
//! | `files` | changes to the set of files: at startup and in a rewrite |
//! | `progress` | writes and syncs pending data |
//! | `home` | the manifest and its directory |
//! | `lock` | prevents two servers from writing to the same files |
//! | `writer` | the threads that write and sync the file |
//! | `ending` | handling of an incomplete or damaged file |
//! | `power` | tests: power failures and errors at any call |
//! | `report` | the state of the file for INFO |
//! | `rewrite` | a new base: a point-in-time snapshot, and a new increment from that point on |

pub mod ending;
mod file;
mod files;
pub mod held_replies;
pub mod home;
pub mod lock;
#[cfg(test)]
mod power;
mod progress;
pub mod report;
pub mod rewrite;
pub mod state;
pub mod wait;
pub mod writer;
