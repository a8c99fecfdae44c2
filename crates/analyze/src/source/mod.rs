//! The sources of records.
//!
//! | part | contents |
//! |---|---|
//! | [`rdb`] | a snapshot, read as a stream |
//! | [`aof`] | an append-only file: its base, and the commands after it |
//! | `replay` | executes those commands in memory |
//! | [`live`] | a server, read with SCAN |
//! | [`resume_file`] | the records of an unfinished scan of a server, in a file from which it can resume |

pub mod aof;
pub mod live;
pub mod rdb;
mod replay;
pub mod resume_file;

/// The reason why a source could not be read, or not completely.
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
