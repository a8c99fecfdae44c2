//! The check tools: whether files of a dataset are sound, and what of them can be saved.
//!
//! - [`rdb`]: `brisk-check-rdb`, with the arguments, words and exit codes of redis-check-rdb.
//! - [`aof`]: `brisk-check-aof`, those of redis-check-aof.
//! - [`report`]: what both say alike.
//!
//! Both judge as a server would that loads the file; where the tools of Redis look less closely, at
//! batches and at files of later versions, so do the verdicts differ. `docs/design/aof-format.md`
//! lists that.
#![forbid(unsafe_code)]

pub mod aof;
pub mod rdb;
pub mod report;
