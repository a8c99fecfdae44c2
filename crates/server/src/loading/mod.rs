//! The dataset from the append-only file: when the server starts, and by DEBUG LOADAOF.
//!
//! ```text
//!  brisk-load: reads, cuts, compares checksums ──steps──► the first worker: executes, answers others
//! ```
//!
//! | file | about |
//! |---|---|
//! | `aof` | which files, and what becomes of damaged ones |
//! | `steps` | what loading leaves to a worker, between its rounds |
//! | `replay` | commands of a file, executed |

pub mod aof;
mod replay;
pub mod steps;
