//! Persistence: the dataset in files.
//!
//! ```text
//! BGSAVE, save points ──► bgsave ──► a thread of its own ──► replace ──► disk
//! SAVE, SHUTDOWN, SIGTERM, DEBUG RELOAD ──► snapshot ──► replace ──► disk
//! journal of the keyspace ──► aof: commands, after a base ───────────► disk
//! start, DEBUG RELOAD ◄── threads of their own ◄── loading ◄──────────── disk
//! ```
//!
//! | part | purpose |
//! |---|---|
//! | `bgsave` | snapshots that are taken while commands run |
//! | `snapshot` | the dataset as an RDB file |
//! | `aof` | the append-only file, and replies that wait for it |
//! | `pace` | limits the CPU time of the threads that write snapshots |
//! | `loading` | loading the dataset from files |
//! | `replace` | replaces a file atomically |
//! | `disk` | the file system calls, which tests can make fail |
//! | `simulated` | for tests: a disk that fails and loses power |
//! | `ending` | the shutdown of the server |
//! | `state` | the state of persistence, for INFO and LASTSAVE |

pub mod aof;
pub mod bgsave;
pub mod disk;
pub mod ending;
pub mod loading;
pub(crate) mod pace;
pub mod replace;
#[cfg(test)]
mod simulated;
pub mod snapshot;
pub mod state;
