//! The user's preferences, such as `:set hints`, from a file that is read at startup, or typed at the prompt.

use crate::quote::split;
use crate::screen;
use std::path::PathBuf;

/// The environment variables that name the file. The first one that is set applies.
const VARIABLES: [&str; 2] = ["BRISK_CLI_RCFILE", "REDISCLI_RCFILE"];
/// The files in the home directory. The first one that exists is read.
const FILES: [&str; 2] = [".brisk_clirc", ".redisclirc"];

/// The preferences.
#[derive(Debug)]
pub(super) struct Settings {
    /// True if hints about arguments are shown.
    pub(super) hints: bool,
    /// True if long replies are shown in a pager.
    pub(super) pager: bool,
}

impl Default for Settings {
    fn default() -> Self {
        Self { hints: true, pager: true }
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

    /// Applies one line.
    ///
    /// # Errors
    /// If there is no such preference.
    pub(super) fn apply(&mut self, words: &[Vec<u8>]) -> Result<(), String> {
        let text = |word: &Vec<u8>| String::from_utf8_lossy(word).into_owned();
        match words {
            [set, preference, ..] if set.eq_ignore_ascii_case(b":set") => {
                match preference.to_ascii_lowercase().as_slice() {
                    b"hints" => self.hints = true,
                    b"nohints" => self.hints = false,
                    b"pager" => {
                        self.pager = !words[2..]
                            .first()
                            .is_some_and(|word| word.eq_ignore_ascii_case(b"off"))
                    }
                    b"nopager" => self.pager = false,
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
