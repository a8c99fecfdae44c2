//! The dataset from files: when the server starts, by DEBUG RELOAD and LOADAOF, and from a primary.
//!
//! ```text
//!  brisk-load: reads, cuts, compares checksums ──steps──► the first worker: executes, answers others
//! ```
//!
//! | file | about |
//! |---|---|
//! | `rdb` | a snapshot on its way into the keyspace, by several threads |
//! | `queue` | the way from the thread that reads to those that load |
//! | `aof` | the append-only file: which files, and what becomes of damaged ones |
//! | `steps` | the steps of loading that a worker executes between its rounds |
//! | `discard` | removes the present dataset |
//! | `replay` | executes commands of a file |

pub mod aof;
pub mod discard;
mod queue;
pub mod rdb;
mod replay;
pub mod steps;
