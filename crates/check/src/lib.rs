//! The check tools. They find out whether the files of a dataset are intact, and how much of them
//! can be saved.
//!
//! - [`rdb`]: `brisk-check-rdb`, with the arguments, texts and exit codes of redis-check-rdb.
//! - [`aof`]: `brisk-check-aof`, with those of redis-check-aof.
//! - [`report`]: the output that both tools share.
//!
//! Both tools detect the same damage as a server that loads the file. Redis's tools check batches
//! and files of later versions less closely, so their verdicts differ. `docs/design/aof-format.md`
//! lists the differences.
#![forbid(unsafe_code)]

pub mod aof;
pub mod rdb;
pub mod report;
