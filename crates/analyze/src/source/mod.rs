//! Where records come from.
//!
//! | part | about |
//! |---|---|
//! | [`rdb`] | a snapshot, read as a stream |
//! | [`aof`] | an append-only file: its base, and the commands since |
//! | `replay` | those commands, executed in memory |
//! | [`live`] | a server, read with SCAN |
//! | [`spool`] | the records of an unfinished walk through a server, in a file from which it can resume |

pub mod aof;
pub mod live;
pub mod rdb;
mod replay;
pub mod spool;

/// Why nothing, or not all, could be looked at.
#[derive(Debug, thiserror::Error)]
pub enum SourceError {
    #[error("{name}: {reason}")]
    File { name: String, reason: String },
    #[error("{0}")]
    Server(String),
}

impl SourceError {
    pub(crate) fn file(path: &std::path::Path, reason: impl ToString) -> SourceError {
        SourceError::File { name: path.display().to_string(), reason: reason.to_string() }
    }
}
