//! The dataset in files.
//!
//! ```text
//!  BGSAVE, save points ──► bgsave ──► a thread of its own ──► replace ──► disk
//!  SAVE, SHUTDOWN, SIGTERM, DEBUG RELOAD ──► snapshot ──► replace ──► disk
//!  start, DEBUG RELOAD ◄── threads of their own ◄── loading ◄──────────── disk
//! ```
//!
//! - `bgsave`: snapshots that are taken while commands go on.
//! - `snapshot`: the dataset as an RDB file.
//! - `loading`: the file on its way into the keyspace, by several threads.
//! - `queue`: the way from the thread that reads to those that load.
//! - `replace`: a file that is replaced as a whole, or stays what it was.
//! - `disk`: what both need of a file system, so that tests can have it fail.
//! - `ending`: the snapshot before the process ends.
//! - `state`: what INFO and LASTSAVE tell of all that.

pub mod aof;
pub mod bgsave;
pub(crate) mod disk;
pub mod ending;
pub mod loading;
mod queue;
pub mod replace;
pub mod snapshot;
pub mod state;
