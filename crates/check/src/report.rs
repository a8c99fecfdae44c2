//! Output of the tools: error texts, bytes from files, exit codes.

use std::ffi::OsString;
use std::io;
use std::process::ExitCode;
use std::time::{SystemTime, UNIX_EPOCH};

/// Why a tool stops without success. The exit code is then 1.
#[derive(Debug)]
pub enum Stop {
    /// The reason has been written.
    AlreadyReported,
    /// The output cannot be written, or a confirmation cannot be read.
    Io(io::Error),
}

impl From<io::Error> for Stop {
    fn from(error: io::Error) -> Stop {
        Stop::Io(error)
    }
}

/// The exit code of a tool: 0 if all is well or was repaired.
#[must_use]
pub fn exit_code(outcome: Result<(), Stop>) -> ExitCode {
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(Stop::AlreadyReported) => ExitCode::FAILURE,
        Err(Stop::Io(error)) => {
            eprintln!("Cannot write the output or read a confirmation: {}", reason(&error));
            ExitCode::FAILURE
        }
    }
}

/// The help text or the version, if the option for it is the only argument. A file with the name of such an option can
/// be given as a path, such as `./-v`.
#[must_use]
pub fn about(tool: &str, help: &str, args: &[OsString]) -> Option<String> {
    let [option] = args else { return None };
    match option.to_str()? {
        "-h" | "--help" => Some(help.to_owned()),
        "-v" | "--version" => Some(format!("{tool} {}\n", env!("CARGO_PKG_VERSION"))),
        _ => None,
    }
}

/// Unix time in ms.
#[must_use]
pub fn now_ms() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_millis()).unwrap_or(i64::MAX)
}

/// The system's text for an error, without the number that Rust appends.
#[must_use]
pub fn reason(error: &io::Error) -> String {
    let full = error.to_string();
    full.rfind(" (os error ").map_or(full.as_str(), |at| &full[..at]).to_owned()
}

/// Bytes of a file as text for a line: at most the first [`SHOWN_BYTES_MAX`], with special bytes escaped.
#[must_use]
pub fn shown(bytes: &[u8]) -> String {
    let start = &bytes[..bytes.len().min(SHOWN_BYTES_MAX)];
    let more = if start.len() < bytes.len() { "…" } else { "" };
    format!("'{}'{more}", start.escape_ascii())
}

/// Maximum bytes of a name that are shown.
pub const SHOWN_BYTES_MAX: usize = 128;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_of_files_stay_on_their_line_and_short() {
        assert_eq!(shown(b"a\r\n\xff"), r"'a\r\n\xff'");
        assert_eq!(shown(&[b'x'; 1000]).len(), SHOWN_BYTES_MAX + "''…".len());
        assert_eq!(reason(&io::Error::from_raw_os_error(2)), "No such file or directory");
    }
}
