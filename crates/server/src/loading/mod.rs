//! The dataset from the append-only file: when the server starts, and by DEBUG LOADAOF.
//!
//! | file | about |
//! |---|---|
//! | `aof` | which files, and what becomes of damaged ones |
//! | `replay` | their commands, executed |

pub mod aof;
mod replay;
