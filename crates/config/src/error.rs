//! What can go wrong with configuration, in the words users of Redis know.

use super::value::Refusal;
use brisk_engine::CommandError;
use std::path::PathBuf;

/// What precedes the name nobody knows.
const UNKNOWN: &str = "ERR Unknown option or number of arguments for CONFIG SET - '";

/// The message of a line whose quotes do not close.
pub(super) const UNBALANCED: &str = "Unbalanced quotes in configuration line";

/// Why a configuration file or command line could not be loaded. The process ends with exit code 1;
/// `Display` is what goes to standard error.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FileError {
    /// A line that cannot be taken. Command-line options count as lines after those of the file.
    #[error(
        "\n*** FATAL CONFIG FILE ERROR (Brisk {}) ***\nReading the configuration file, at line {line}\n>>> \
         '{text}'\n{reason}",
        env!("CARGO_PKG_VERSION")
    )]
    Line {
        /// Line number in the file that holds it, from 1.
        line: usize,
        /// The line without blanks at its ends.
        text: String,
        /// What is wrong with it.
        reason: Refusal,
    },
    /// Lines that are good alone but not together.
    #[error("\n*** FATAL CONFIG FILE ERROR (Brisk {}) ***\n{reason}", env!("CARGO_PKG_VERSION"))]
    Conflict {
        /// What does not go together.
        reason: &'static str,
    },
    /// A log file that cannot be written.
    #[error(
        "\n*** FATAL CONFIG FILE ERROR (Brisk {}) ***\nCan't open the log file {}: {reason}",
        env!("CARGO_PKG_VERSION"),
        path.display()
    )]
    Log {
        /// The file, inside `dir`.
        path: PathBuf,
        /// The system's reason.
        reason: String,
    },
    /// A file that cannot be read.
    #[error("Fatal error, can't open config file '{}': {reason}", path.display())]
    Open {
        /// The file, as named.
        path: PathBuf,
        /// The system's reason.
        reason: String,
    },
    /// A file that is larger than `FILE_BYTES_MAX`, or one too many (`DEPTH_MAX`, `FILES_MAX`).
    #[error("Fatal error, config file '{}' goes beyond a limit: {limit}", path.display())]
    Limit {
        /// The file at which loading stopped.
        path: PathBuf,
        /// Which limit, and its value.
        limit: String,
    },
}

/// Why CONFIG SET changed nothing. `Display` is the error reply without its leading `-`; names come
/// from the client and may hold line ends, which the reply writer must replace.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ConfigError {
    /// No directive of this name.
    #[error("{UNKNOWN}{}'", String::from_utf8_lossy(name))]
    Unknown {
        /// As the client wrote it.
        name: Vec<u8>,
    },
    /// A directive that takes no value while a dataset is loaded. The words are those of all that is refused
    /// then, which name the program.
    #[error("LOADING the dataset is being loaded")]
    Loading,
    /// A directive that does not take this value, or not now.
    #[error("ERR CONFIG SET failed (possibly related to argument '{name}') - {reason}")]
    Refused {
        /// As the client wrote it if the directive cannot be set at all or twice,
        /// else in its own spelling.
        name: String,
        /// Why.
        reason: Refusal,
    },
}

impl From<ConfigError> for CommandError {
    fn from(error: ConfigError) -> CommandError {
        match error {
            ConfigError::Unknown { name } => CommandError::text_around(UNKNOWN, &name, "'"),
            other @ (ConfigError::Refused { .. } | ConfigError::Loading) => {
                CommandError::text(other.to_string().replace(['\r', '\n'], " "))
            }
        }
    }
}

/// The server could not put a new configuration in force; the old one stays.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rejection {
    /// Name of the directive whose new value is to blame.
    pub directive: &'static str,
    /// The text after the dash, for instance "Unable to listen on this port. Check server logs."
    pub reason: Refusal,
}

/// Why CONFIG REWRITE failed; the old file is as it was. `Display` is the error reply without its
/// leading `-`.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RewriteError {
    /// Started from the command line or standard input only.
    #[error("ERR The server is running without a config file")]
    NoFile,
    /// The file system refused.
    #[error("ERR Rewriting config file: {reason}")]
    Io {
        /// The system's reason.
        reason: String,
    },
}
