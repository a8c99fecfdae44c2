//! The history of typed lines. Lines with a password are not kept in the file.

use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::PathBuf;

/// Maximum number of lines in the file.
const LINES_MAX: usize = 1000;
/// A longer file is not our history and is left unchanged.
const FILE_BYTES_MAX: u64 = 16 * 1024 * 1024;
/// Only the owner has access, because even commands without passwords reveal data.
const FILE_MODE: u32 = 0o600;

/// The environment variables that name the file. The first one that is set applies.
const VARIABLES: [&str; 2] = ["BRISK_CLI_HISTFILE", "REDISCLI_HISTFILE"];
const FILE: &str = ".brisk_cli_history";

/// The lines of the file.
pub(super) struct History {
    path: Option<PathBuf>,
    lines: Vec<String>,
}

impl History {
    /// Reads the file, if there is one.
    pub(super) fn load() -> History {
        History::of_file(path())
    }

    /// If a file is not a history or cannot be read, it is not written either.
    fn of_file(path: Option<PathBuf>) -> History {
        let text = path.as_ref().map(|path| match fs::metadata(path) {
            Ok(file) if file.is_file() && file.len() <= FILE_BYTES_MAX => fs::read(path),
            Ok(_) => Err(io::ErrorKind::InvalidData.into()),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Vec::new()),
            Err(error) => Err(error),
        });
        let text = text.and_then(Result::ok).filter(|text| !text.contains(&0));
        let Some(text) = text else { return History { path: None, lines: Vec::new() } };
        let text = String::from_utf8_lossy(&text);
        let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
        lines.drain(..lines.len().saturating_sub(LINES_MAX));
        History { path, lines }
    }

    pub(super) fn lines(&self) -> impl Iterator<Item = &str> {
        self.lines.iter().map(String::as_str)
    }

    /// Adds a line to the history and to the file. If the file cannot be written, the session continues.
    pub(super) fn keep(&mut self, line: &str) {
        if self.lines.last().is_some_and(|last| last == line) {
            return;
        }
        self.lines.push(line.to_owned());
        if self.lines.len() > LINES_MAX {
            self.lines.remove(0);
        }
        let Some(path) = &self.path else { return };
        let text: String = self.lines.iter().flat_map(|line| [line.as_str(), "\n"]).collect();
        let open =
            OpenOptions::new().write(true).create(true).truncate(true).mode(FILE_MODE).open(path);
        if let Ok(mut file) = open {
            let _ = file.set_permissions(fs::Permissions::from_mode(FILE_MODE));
            let _ = file.write_all(text.as_bytes());
        }
    }
}

fn path() -> Option<PathBuf> {
    match VARIABLES.iter().find_map(std::env::var_os) {
        // An empty name or /dev/null turns the history off.
        Some(path) if path.is_empty() || path == "/dev/null" => None,
        Some(path) => Some(path.into()),
        None => {
            let home = std::env::var_os("HOME").filter(|home| !home.is_empty())?;
            Some(PathBuf::from(home).join(FILE))
        }
    }
}

/// The words of a line with unbalanced quotes, for `holds_secret`. Omits the quotes and a leading repeat count.
pub(super) fn words_of_broken(line: &[u8]) -> Vec<Vec<u8>> {
    let is_separator = |byte: &u8| byte.is_ascii_whitespace() || matches!(byte, b'"' | b'\'');
    let words = line.split(is_separator).filter(|word| !word.is_empty());
    let is_repeat = |word: &&[u8]| word.iter().all(u8::is_ascii_digit);
    words.skip_while(is_repeat).map(<[u8]>::to_vec).collect()
}

/// Reports whether a command has a password among its arguments.
pub(super) fn holds_secret(words: &[Vec<u8>]) -> bool {
    let lower: Vec<Vec<u8>> = words.iter().map(|word| word.to_ascii_lowercase()).collect();
    let lower: Vec<&[u8]> = lower.iter().map(Vec::as_slice).collect();
    let is_secret = |name: &&[u8]| {
        const NAMES: [&[u8]; 7] = [
            b"masterauth",
            b"masteruser",
            b"primaryauth",
            b"primaryuser",
            b"requirepass",
            b"tls-key-file-pass",
            b"tls-client-key-file-pass",
        ];
        NAMES.contains(name)
    };
    match lower.as_slice() {
        [b"auth", ..] => true,
        [b"acl", b"setuser" | b"deluser", ..] => true,
        [b"config", b"set", settings @ ..] => settings.iter().step_by(2).any(is_secret),
        [b"hello", rest @ ..] => rest.contains(&&b"auth"[..]),
        [b"migrate", rest @ ..] => rest.iter().any(|word| matches!(*word, b"auth" | b"auth2")),
        [b"sentinel", b"set" | b"config", rest @ ..] => rest.iter().any(|word| {
            matches!(*word, b"auth-pass" | b"auth-user" | b"sentinel-pass" | b"sentinel-user")
        }),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::quote::split;

    #[test]
    fn a_file_that_is_not_a_history_is_left_alone() {
        let home = brisk_testkit::TempDir::new();
        let file = home.path("file");
        let keep = || {
            let mut history = History::of_file(Some(file.clone()));
            history.keep("ping");
            history.lines().map(str::to_owned).collect::<Vec<_>>()
        };
        assert_eq!(keep(), ["ping"]);
        let text = fs::read(&file).unwrap();
        assert_eq!((text.as_slice(), keep()), (&b"ping\n"[..], vec!["ping".to_owned()]));
        fs::write(&file, b"\xff\0 a picture").unwrap();
        assert_eq!(keep(), ["ping"]);
        assert_eq!(fs::read(&file).unwrap(), b"\xff\0 a picture");
        let long = OpenOptions::new().write(true).open(&file).unwrap();
        long.set_len(FILE_BYTES_MAX + 1).unwrap();
        assert_eq!(keep(), ["ping"]);
        assert_eq!(fs::metadata(&file).unwrap().len(), FILE_BYTES_MAX + 1);
    }

    #[test]
    fn a_password_is_found_in_a_line_with_unbalanced_quotes() {
        let secret = |line: &str| {
            assert_eq!(split(line.as_bytes()), None, "{line}");
            holds_secret(&words_of_broken(line.as_bytes()))
        };
        for line in [
            "auth \"secret",
            "AUTH 'secret",
            "auth joe \"secret",
            "  auth \"se cret",
            "\"auth\" \"secret",
            "\"auth secret",
            "3 auth \"secret",
            "auth \"secret\"x",
            "acl setuser joe \">secret",
            "config set requirepass \"secret",
            "config set \"requirepass\" \"secret",
            "config set maxmemory 1 masterauth 'x",
            "hello 3 auth joe \"secret",
        ] {
            assert!(secret(line), "{line}");
        }
        for line in ["get \"auth", "echo 'x", "\"", "3 '", "config get \"requirepass"] {
            assert!(!secret(line), "{line}");
        }
    }

    #[test]
    fn commands_with_passwords_are_known() {
        let secret = |line: &str| holds_secret(&split(line.as_bytes()).unwrap());
        for line in [
            "AUTH x",
            "auth joe x",
            "acl setuser joe on >x",
            "CONFIG SET requirepass x",
            "config set maxmemory 1 masterauth x",
            "hello 3 auth joe x",
            "migrate h 1 k 0 1 auth x",
            "sentinel set m auth-pass x",
        ] {
            assert!(secret(line), "{line}");
        }
        for line in
            ["get auth", "acl cat", "config get requirepass", "hello 3", "set requirepass 1"]
        {
            assert!(!secret(line), "{line}");
        }
    }
}
