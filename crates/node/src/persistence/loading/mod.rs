//! Loads the dataset: from files when the server starts and in DEBUG RELOAD and LOADAOF, and from a primary.
//!
//! ```text
//! brisk-load: reads, splits, checks checksums ──steps──► the first worker: executes, serves clients
//! ```
//!
//! | file | purpose |
//! |---|---|
//! | `rdb` | loads a snapshot into the keyspace, with several threads |
//! | `queue` | the queue from the reading thread to the loading threads |
//! | `aof` | the append-only file: its files, and handling of damaged ones |
//! | `steps` | the steps of loading that a worker executes between its rounds |
//! | `discard` | removes the current dataset |
//! | `replay` | executes the commands of a file |

pub mod aof;
pub mod discard;
mod queue;
pub mod rdb;
mod replay;
pub mod steps;
