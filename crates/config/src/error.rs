//! Configuration errors, with the texts that users of Redis know.

use super::value::SettingRejection;
use brisk_engine::CommandError;
use std::path::PathBuf;

/// The text before an unknown name.
const UNKNOWN: &str = "ERR Unknown option or number of arguments for CONFIG SET - '";

/// The message for a line whose quotes are not closed.
pub(super) const UNBALANCED: &str = "Unbalanced quotes in configuration line";

/// Why a configuration file or command line could not be loaded. The process ends with exit code 1,
/// and `Display` is the text for standard error.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FileError {
    /// A line that is not accepted. Command-line options count as lines after those of the file.
    #[error(
        "\n*** FATAL CONFIG FILE ERROR (Brisk {}) ***\nReading the configuration file, at line {line}\n>>> \
         '{text}'\n{reason}",
        env!("CARGO_PKG_VERSION")
    )]
    Line {
        /// Line number in its file, starting with 1.
        line: usize,
        /// The line without surrounding whitespace.
        text: String,
        /// The fault.
        reason: SettingRejection,
    },
    /// Lines that are valid alone but not together.
    #[error("\n*** FATAL CONFIG FILE ERROR (Brisk {}) ***\n{reason}", env!("CARGO_PKG_VERSION"))]
    Conflict {
        /// The conflict.
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
    /// A file that is larger than `FILE_BYTES_MAX`, or one file too many (`DEPTH_MAX`,
    /// `FILES_MAX`).
    #[error("Fatal error, config file '{}' exceeds a limit: {limit}", path.display())]
    Limit {
        /// The file at which loading stopped.
        path: PathBuf,
        /// The limit and its value.
        limit: String,
    },
}

/// Why CONFIG SET changed nothing. `Display` is the error reply without its leading `-`. Names come
/// from the client and may contain line breaks, which the writer of the reply must replace.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ConfigError {
    /// No directive has this name.
    #[error("{UNKNOWN}{}'", String::from_utf8_lossy(name))]
    Unknown {
        /// As the client wrote it.
        name: Vec<u8>,
    },
    /// A directive that cannot be set while a dataset is being loaded. The error reply is the same
    /// as for all commands that are rejected during loading, and contains the program's name.
    #[error("LOADING the dataset is being loaded")]
    Loading,
    /// A directive that does not accept this value, or does not accept it now.
    #[error("ERR CONFIG SET failed (possibly related to argument '{name}') - {reason}")]
    Refused {
        /// As the client wrote it if the directive cannot be set at all or was given twice;
        /// otherwise in the directive's own spelling.
        name: String,
        /// The reason.
        reason: SettingRejection,
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

/// The server could not apply a new configuration; the old one stays in force.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rejection {
    /// The directive whose new value caused the error.
    pub directive: &'static str,
    /// The text after the dash, for instance "Unable to listen on this port. Check server logs."
    pub reason: SettingRejection,
}

/// Why CONFIG REWRITE failed; the old file is unchanged. `Display` is the error reply without its
/// leading `-`.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RewriteError {
    /// The server was started from the command line or standard input only.
    #[error("ERR The server is running without a config file")]
    NoFile,
    /// The file system returned an error.
    #[error("ERR Rewriting config file: {reason}")]
    Io {
        /// The system's reason.
        reason: String,
    },
}
