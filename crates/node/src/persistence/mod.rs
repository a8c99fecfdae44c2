//! The dataset in files.
//!
//! ```text
//!  BGSAVE, save points ──► bgsave ──► a thread of its own ──► replace ──► disk
//!  SAVE, SHUTDOWN, SIGTERM, DEBUG RELOAD ──► snapshot ──► replace ──► disk
//!  journal of the keyspace ──► aof: commands, behind a base ──────────► disk
//!  start, DEBUG RELOAD ◄── threads of their own ◄── loading ◄──────────── disk
//! ```
//!
//! | part | about |
//! |---|---|
//! | `bgsave` | snapshots that are taken while commands go on |
//! | `snapshot` | the dataset as an RDB file |
//! | `aof` | the append-only file, and replies that wait for it |
//! | `loading` | the dataset from files |
//! | `replace` | a file that is replaced as a whole, or stays what it was |
//! | `disk` | what is needed of a file system, so that tests can have it fail |
//! | `simulated` | for tests: a disk that fails and loses power |
//! | `ending` | the snapshot before the process ends |
//! | `state` | what INFO and LASTSAVE tell of all that |

pub mod aof;
pub mod bgsave;
pub mod disk;
pub mod ending;
pub mod loading;
pub mod replace;
#[cfg(test)]
mod simulated;
pub mod snapshot;
pub mod state;
