//! Completion of key names: the keys of the selected database that begin with the typed letters. They are requested
//! over a separate connection, so that they do not disturb a transaction, and for a short time.

use crate::keyspec::CommandKeys;
use crate::options::Options;
use crate::quote::{quote, split};
use crate::session::Session;
use brisk_resp::Value;
use std::collections::BTreeSet;
use std::time::{Duration, Instant};

/// How long a completion scans keys.
const SCAN_TIME: Duration = Duration::from_millis(200);
/// How long a completion waits for a connection and for each reply. The first completion connects and reads the command
/// table, which takes longer on a busy machine.
const REPLY_TIMEOUT: Duration = Duration::from_secs(1);
/// Maximum number of names.
const NAMES_MAX: usize = 100;
/// Number of keys that a step of the scan examines.
const STEP: &str = "1000";

/// The connection for completions, and the positions of keys.
#[derive(Default)]
pub(super) struct KeyNames {
    options: Option<Options>,
    session: Option<Session>,
    commands: Option<CommandKeys>,
}

/// The word at the cursor.
#[derive(Debug, PartialEq, Eq)]
struct TypedWord {
    /// The words before it.
    before: Vec<Vec<u8>>,
    /// Its position in the line, with its quote.
    start: usize,
    begun: Vec<u8>,
    is_quoted: bool,
}

impl KeyNames {
    /// Uses the same server, database and user as these options.
    pub(super) fn follow(&mut self, options: &Options) {
        let identity = |it: &Options| {
            let place = (it.host.clone(), it.port, it.socket.clone());
            (place, it.database, it.user.clone(), it.password.clone())
        };
        if self.options.as_ref().map(identity) != Some(identity(options)) {
            *self = KeyNames { options: Some(options.clone()), ..KeyNames::default() };
        }
    }

    /// The position at which the completed text begins, and the candidates. If a key cannot be typed at the cursor, or
    /// the server does not reply in time, there are none.
    pub(super) fn complete(&mut self, typed: &str) -> Option<(usize, Vec<String>)> {
        let word = TypedWord::of(typed)?;
        if self.session.is_none() {
            let mut options = self.options.clone()?;
            options.timeout = Some(REPLY_TIMEOUT);
            let mut session = Session::new(options).ok()?;
            session.open().ok()?;
            self.session = Some(session);
        }
        let found = self.names(&word);
        if found.is_none() {
            // A reply may still arrive, so the connection cannot be used again.
            self.session = None;
        }
        let shown = |key: Vec<u8>| match is_plain(&key) && !word.is_quoted {
            true => String::from_utf8_lossy(&key).into_owned(),
            false => quote(&key),
        };
        Some((word.start, found?.into_iter().map(shown).collect()))
    }

    fn names(&mut self, word: &TypedWord) -> Option<BTreeSet<Vec<u8>>> {
        let session = self.session.as_mut()?;
        if self.commands.is_none() {
            self.commands = Some(CommandKeys::of(&session.request(&["COMMAND"]).ok()?));
        }
        let mut names = BTreeSet::new();
        if !word.is_key(self.commands.as_ref()?) {
            return Some(names);
        }
        let pattern = [escaped(&word.begun), b"*".to_vec()].concat();
        let mut cursor = b"0".to_vec();
        let end = Instant::now() + SCAN_TIME;
        loop {
            let reply = session
                .request(&[&b"SCAN"[..], &cursor, b"MATCH", &pattern, b"COUNT", STEP.as_bytes()])
                .ok()?;
            let [next, keys] = reply.as_slice()? else { return None };
            cursor = next.as_bytes()?.to_vec();
            let keys = keys.as_slice()?.iter().filter_map(Value::as_bytes);
            names.extend(keys.take(NAMES_MAX).map(<[u8]>::to_vec));
            if cursor == b"0" || names.len() >= NAMES_MAX || Instant::now() >= end {
                return Some(names);
            }
        }
    }
}

impl TypedWord {
    /// The word at the end of a text; `None` if it is the first one or cannot be completed.
    fn of(typed: &str) -> Option<TypedWord> {
        let bytes = typed.as_bytes();
        let (mut before, start, begun, is_quoted) = match split(bytes) {
            Some(before) if bytes.last().is_none_or(u8::is_ascii_whitespace) => {
                (before, bytes.len(), Vec::new(), false)
            }
            Some(mut before) => {
                let begun = before.pop()?;
                let start = bytes.iter().rposition(u8::is_ascii_whitespace)? + 1;
                // A closed quote is complete.
                (bytes[start..] == begun).then_some(())?;
                (before, start, begun, false)
            }
            None => {
                let begins = |at: &usize| {
                    matches!(bytes[*at], b'"' | b'\'')
                        && *at > 0
                        && bytes[*at - 1].is_ascii_whitespace()
                        && split(&bytes[..*at]).is_some()
                };
                let start = (0..bytes.len()).rev().find(begins)?;
                let closed = [&bytes[start..], &bytes[start..=start]].concat();
                (split(&bytes[..start])?, start, split(&closed)?.pop()?, true)
            }
        };
        // A number before a command repeats it.
        if before.len() > 1 && before[0].iter().all(u8::is_ascii_digit) {
            before.remove(0);
        }
        (!before.is_empty()).then_some(TypedWord { before, start, begun, is_quoted })
    }

    /// Reports whether the word is a key. Some commands have other arguments after the keys, which are not typed yet.
    fn is_key(&self, commands: &CommandKeys) -> bool {
        let at = self.before.len();
        let mut words = self.before.clone();
        words.push(self.begun.clone());
        (0..=at).any(|_| {
            let is_key = commands.positions(&words).contains(&at);
            words.push(b"0".to_vec());
            is_key
        })
    }
}

/// The pattern that matches only these bytes.
fn escaped(bytes: &[u8]) -> Vec<u8> {
    let special = |byte: u8| matches!(byte, b'*' | b'?' | b'[' | b']' | b'\\' | b'^');
    let parts =
        bytes.iter().flat_map(|&byte| special(byte).then_some(b'\\').into_iter().chain([byte]));
    parts.collect()
}

/// Reports whether a key needs no quotes.
fn is_plain(key: &[u8]) -> bool {
    let is_plain_letter =
        |c: char| !c.is_whitespace() && !c.is_control() && !matches!(c, '"' | '\'');
    !key.is_empty() && std::str::from_utf8(key).is_ok_and(|text| text.chars().all(is_plain_letter))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_word_at_the_cursor_is_found_with_its_quote() {
        let of = |typed: &str| {
            TypedWord::of(typed).map(|it| {
                let begun = String::from_utf8_lossy(&it.begun).into_owned();
                (it.before.len(), it.start, begun, it.is_quoted)
            })
        };
        let word = |before, start, begun: &str, is_quoted| {
            Some((before, start, begun.to_owned(), is_quoted))
        };
        assert_eq!(of("get us"), word(1, 4, "us", false));
        assert_eq!(of("get "), word(1, 4, "", false));
        assert_eq!(of("3 get us"), word(1, 6, "us", false));
        assert_eq!(of("get \"a b"), word(1, 4, "a b", true));
        assert_eq!([of("ge"), of("get \"a\""), of(""), of("\"a")], [None, None, None, None]);
    }

    #[test]
    fn keys_are_escaped_in_patterns_and_quoted_in_lines() {
        assert_eq!(escaped(b"a*[b"), b"a\\*\\[b");
        assert!(
            is_plain("user:1ä".as_bytes())
                && !is_plain(b"a b")
                && !is_plain(b"")
                && !is_plain(b"\xff")
        );
    }
}
