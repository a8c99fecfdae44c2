//! The user's preferences: `:set hints` and similar ones, in a file that is read at startup, or at the prompt.

use crate::quote::split;
use crate::screen;
use std::path::PathBuf;

/// The variables that name the file; the first that is set counts.
const VARIABLES: [&str; 2] = ["BRISK_CLI_RCFILE", "REDISCLI_RCFILE"];
/// The files in the home directory; the first that exists counts.
const FILES: [&str; 2] = [".brisk_clirc", ".redisclirc"];

/// Preferences.
#[derive(Debug)]
pub(super) struct Settings {
    /// Arguments are hinted at.
    pub(super) hints: bool,
}

impl Default for Settings {
    fn default() -> Self {
        Self { hints: true }
    }
}

impl Settings {
    /// Reads the file, if there is one.
    pub(super) fn load(&mut self) {
        let Some(path) = path() else { return };
        let Ok(text) = std::fs::read(&path) else { return };
        for line in text.split(|&byte| byte == b'\n') {
            if let Some(words) = split(line).filter(|words| !words.is_empty())
                && let Err(text) = self.apply(&words)
            {
                screen::print(format!("{}: {text}\n", path.display()));
            }
        }
    }

    /// Follows one line.
    ///
    /// # Errors
    /// There is no such preference.
    pub(super) fn apply(&mut self, words: &[Vec<u8>]) -> Result<(), String> {
        let text = |word: &Vec<u8>| String::from_utf8_lossy(word).into_owned();
        match words {
            [set, preference, ..] if set.eq_ignore_ascii_case(b":set") => {
                match preference.to_ascii_lowercase().as_slice() {
                    b"hints" => self.hints = true,
                    b"nohints" => self.hints = false,
                    _ => {
                        return Err(format!("unknown redis-cli preference '{}'", text(preference)));
                    }
                }
                Ok(())
            }
            [first, ..] => Err(format!("unknown redis-cli internal command '{}'", text(first))),
            [] => Ok(()),
        }
    }
}

fn path() -> Option<PathBuf> {
    if let Some(path) = VARIABLES.iter().find_map(std::env::var_os) {
        return Some(path.into());
    }
    let home = PathBuf::from(std::env::var_os("HOME").filter(|home| !home.is_empty())?);
    FILES.iter().map(|file| home.join(file)).find(|path| path.exists())
}
