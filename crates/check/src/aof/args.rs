//! The command line of `brisk-check-aof`.

use super::Repair;
use std::ffi::{OsStr, OsString};
use std::path::PathBuf;

#[derive(Debug, PartialEq, Eq)]
pub(super) struct Args {
    pub(super) path: PathBuf,
    pub(super) repair: Repair,
}

#[derive(Debug, PartialEq, Eq)]
pub(super) enum ArgsError {
    Usage,
    /// The time at which to truncate is not a number.
    Timestamp,
}

pub(super) fn parse(args: &[OsString]) -> Result<Args, ArgsError> {
    match args {
        [path] => Ok(Args { path: path.into(), repair: Repair::default() }),
        [option, path] if option == "--fix" => {
            Ok(Args { path: path.into(), repair: Repair { fix: true, until: None } })
        }
        [option, seconds, path] if option == "--truncate-to-timestamp" => {
            let seconds = number(seconds).ok_or(ArgsError::Timestamp)?;
            // Zero means that no time is given.
            let until = Some(seconds).filter(|seconds| *seconds != 0);
            Ok(Args { path: path.into(), repair: Repair { fix: false, until } })
        }
        _ => Err(ArgsError::Usage),
    }
}

/// Parses a number as C's `strtol` parses a whole text; an empty text counts as zero.
fn number(text: &OsStr) -> Option<i64> {
    match text.to_str()?.trim_start() {
        "" => text.is_empty().then_some(0),
        text => text.parse().ok(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(words: &[&str]) -> Result<Args, ArgsError> {
        parse(&words.iter().map(OsString::from).collect::<Vec<_>>())
    }

    #[test]
    fn positions_of_arguments_match_redis() {
        let args = |fix, until| Ok(Args { path: "a".into(), repair: Repair { fix, until } });
        assert_eq!(parsed(&["a"]), args(false, None));
        assert_eq!(parsed(&["--fix", "a"]), args(true, None));
        assert_eq!(parsed(&["--truncate-to-timestamp", "-7", "a"]), args(false, Some(-7)));
        assert_eq!(parsed(&["--truncate-to-timestamp", "0", "a"]), args(false, None));
        for words in [&[][..], &["a", "--fix"], &["--fix", "1", "a"], &["a", "b", "c", "d"]] {
            assert_eq!(parsed(words), Err(ArgsError::Usage));
        }
        for seconds in ["x", "1x", "99999999999999999999", " "] {
            let words = ["--truncate-to-timestamp", seconds, "a"];
            assert_eq!(parsed(&words), Err(ArgsError::Timestamp));
        }
    }
}
