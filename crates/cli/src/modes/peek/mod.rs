//! `peek`: shows values of any type. A line describes the key; the content follows: a string as text, formatted JSON or
//! a dump, other types as a table. Without `--all`, only the beginning is read.
//!
//! | file | about |
//! |---|---|
//! | here | the description of a key, and strings |
//! | `content.rs` | the elements of the other types |
//! | `json.rs`, `hex.rs` | formatted JSON; dumps of bytes |

mod content;
mod hex;
mod json;

use self::content::{Elements, Kind};
use crate::amount::{aligned, bytes, counted, duration, grouped, readable, shortened};
use crate::link::LinkError;
use crate::quote::unquote;
use crate::screen;
use crate::session::Session;
use brisk_resp::Value;
use std::time::Duration;

/// Number of elements that are shown without `--all`.
const ELEMENTS_SHOWN: usize = 50;
/// Number of characters of a cell that are shown without `--all`.
const CELL_CHARS_MAX: usize = 100;
/// Number of bytes of a text that are shown without `--all`.
const TEXT_BYTES_SHOWN: u64 = 16 * 1024;
/// Number of bytes of binary data that are shown without `--all`.
const DUMPED_BYTES_SHOWN: u64 = 512;
/// Number of bytes that a request returns. A multiple of the bytes in a line of a dump.
const STEP_BYTES: u64 = 1 << 20;
/// Longer strings are not read completely to find out whether they are JSON.
const JSON_BYTES_MAX: u64 = 16 << 20;

/// The reason why a key cannot be shown.
#[derive(Debug)]
enum PeekError {
    Link(LinkError),
    /// The error of the server, or a description.
    Because(String),
}

impl PeekError {
    fn shape() -> PeekError {
        PeekError::Because("The server's reply has an unexpected format".to_owned())
    }
}

impl From<LinkError> for PeekError {
    fn from(error: LinkError) -> Self {
        PeekError::Link(error)
    }
}

/// The description of a key.
struct KeyFacts {
    kind: String,
    encoding: Option<String>,
    memory: Option<u64>,
    /// The number of elements, or the length of a string.
    count: Option<u64>,
    ttl_ms: i64,
}

pub(super) fn run(session: &mut Session) -> i32 {
    let mut keys = session.options.words.clone();
    if session.options.quoted_input {
        match keys.iter().map(|key| unquote(key)).collect() {
            Some(unquoted) => keys = unquoted,
            None => {
                screen::warn("Invalid quoted string\n");
                return 1;
            }
        }
    }
    if keys.is_empty() {
        screen::warn("Usage: brisk-cli [options] peek key ... [--all]\n");
        return 1;
    }
    let mut code = 0;
    for (at, key) in keys.iter().enumerate() {
        if at > 0 {
            screen::print("\n");
        }
        match peek(session, key) {
            Ok(()) => {}
            Err(PeekError::Link(error)) => return super::lost(&error),
            Err(PeekError::Because(text)) => {
                screen::flush();
                screen::warn(format!("{}: {text}\n", readable(key)));
                code = 1;
            }
        }
    }
    screen::flush();
    code
}

fn peek(session: &mut Session, key: &[u8]) -> Result<(), PeekError> {
    let facts = facts(session, key)?;
    let kind = Kind::of(&facts.kind);
    screen::print(format!("{}: {}\n", readable(key), facts.line(kind)));
    match kind {
        Some(kind) => table(session, key, kind, facts.count.unwrap_or(0)),
        None if facts.kind == "string" => string(session, key, facts.count.unwrap_or(0)),
        None => Err(PeekError::Because(format!("the type {} cannot be shown", facts.kind))),
    }
}

/// Sends a request to the node that serves the key, which is the current one.
fn request(session: &mut Session, words: &[&[u8]]) -> Result<Value, PeekError> {
    let reply = session.request_following_redirects(words)?;
    match reply.as_error() {
        Some(text) if text.starts_with(b"MOVED ") => {
            let text = String::from_utf8_lossy(text);
            Err(PeekError::Because(format!("{text} (-c follows redirections)")))
        }
        Some(text) => Err(PeekError::Because(String::from_utf8_lossy(text).into_owned())),
        None => Ok(reply),
    }
}

fn facts(session: &mut Session, key: &[u8]) -> Result<KeyFacts, PeekError> {
    let text =
        |reply: &Value| reply.as_bytes().map(|bytes| String::from_utf8_lossy(bytes).into_owned());
    let kind = text(&request(session, &[b"TYPE", key])?).ok_or_else(PeekError::shape)?;
    if kind == "none" {
        return Err(PeekError::Because("no such key".to_owned()));
    }
    let counting = Kind::of(&kind).map_or("STRLEN", |kind| kind.count().0);
    let requests: Vec<Vec<&[u8]>> = vec![
        vec![b"OBJECT", b"ENCODING", key],
        vec![b"MEMORY", b"USAGE", key, b"SAMPLES", b"0"],
        vec![b"PTTL", key],
        vec![counting.as_bytes(), key],
    ];
    // A user who may not run one of these commands still sees the rest.
    let replies = session.request_all(&requests)?;
    let number = |at: usize| replies.get(at).and_then(Value::as_integer);
    let natural = |at: usize| number(at).and_then(|number| u64::try_from(number).ok());
    let encoding = replies.first().filter(|reply| reply.as_error().is_none()).and_then(text);
    let (memory, count) = (natural(1), natural(3));
    Ok(KeyFacts { kind, encoding, memory, count, ttl_ms: number(2).unwrap_or(-1) })
}

impl KeyFacts {
    fn line(&self, kind: Option<Kind>) -> String {
        let mut line = self.kind.clone();
        if let Some(encoding) = &self.encoding {
            line.push_str(&format!(" ({encoding})"));
        }
        match (self.count, kind.map(|kind| kind.count().1)) {
            (Some(1), Some("entry")) => line.push_str(", 1 entry"),
            (Some(count), Some("entry")) => line.push_str(&format!(", {} entries", grouped(count))),
            (Some(count), Some(noun)) => line.push_str(&format!(", {}", counted(count, noun))),
            (Some(count), None) => line.push_str(&format!(", {}", counted(count, "byte"))),
            (None, _) => {}
        }
        if let Some(memory) = self.memory {
            line.push_str(&format!(", {} of memory", bytes(memory as f64)));
        }
        match u64::try_from(self.ttl_ms) {
            Ok(ttl) if ttl < 1000 => line.push_str(&format!(", TTL {ttl} ms")),
            Ok(ttl) => line.push_str(&format!(", TTL {}", duration(Duration::from_millis(ttl)))),
            Err(_) => line.push_str(", no TTL"),
        }
        line
    }
}

/// Prints the elements of a key.
fn table(session: &mut Session, key: &[u8], kind: Kind, total: u64) -> Result<(), PeekError> {
    let all = session.options.all;
    let limit = if all { usize::MAX } else { ELEMENTS_SHOWN };
    let mut elements = Elements::new(key, kind);
    let (mut shown, mut headings) = (0, Vec::new());
    while let Some(found) = elements.next(session, limit - shown)? {
        if found.rows.is_empty() {
            continue;
        }
        let mut rows = found.rows;
        shown += rows.len();
        if !all {
            let cells = rows.iter_mut().flatten();
            cells.for_each(|cell| *cell = shortened(cell, CELL_CHARS_MAX));
        }
        if headings != found.headings {
            headings.clone_from(&found.headings);
            rows.insert(0, found.headings);
        }
        screen::print(aligned(&rows, &found.are_numbers));
    }
    if kind == Kind::Stream {
        groups(session, key)?;
    }
    if (shown as u64) < total && !all {
        let total = grouped(total);
        screen::print(format!("({shown} of {total} shown; --all shows everything)\n"));
    }
    Ok(())
}

/// Prints the consumer groups of a stream.
fn groups(session: &mut Session, key: &[u8]) -> Result<(), PeekError> {
    let reply = request(session, &[b"XINFO", b"GROUPS", key])?;
    for group in reply.as_slice().unwrap_or_default() {
        let fields = crate::docs::pairs(group);
        let field = |name: &str| {
            fields
                .iter()
                .find(|(key, _)| key.as_bytes() == Some(name.as_bytes()))
                .map(|(_, it)| *it)
        };
        let name = field("name").and_then(Value::as_bytes).map(readable).unwrap_or_default();
        let number = |name| {
            let number =
                field(name).and_then(Value::as_integer).and_then(|it| u64::try_from(it).ok());
            number.map_or_else(|| "unknown".to_owned(), grouped)
        };
        screen::print(format!(
            "group {name}: consumers {}, pending {}, lag {}\n",
            number("consumers"),
            number("pending"),
            number("lag")
        ));
    }
    Ok(())
}

/// Prints a string: as formatted JSON, as text, or as a dump.
fn string(session: &mut Session, key: &[u8], length: u64) -> Result<(), PeekError> {
    let all = session.options.all;
    let limit = if all { length } else { length.min(TEXT_BYTES_SHOWN) };
    let first = range(session, key, 0, limit.min(STEP_BYTES))?;
    if looks_like_json(&first)
        && (all || length <= TEXT_BYTES_SHOWN)
        && length <= JSON_BYTES_MAX
        && let Some(text) = json::pretty(&range(session, key, 0, length)?)
    {
        screen::print(format!("{text}\n"));
        return Ok(());
    }
    let is_text = is_text(&first);
    let limit = if is_text || all { limit } else { limit.min(DUMPED_BYTES_SHOWN) };
    let mut at = 0;
    while at < limit {
        let part = range(session, key, at, (limit - at).min(STEP_BYTES))?;
        if part.is_empty() {
            break;
        }
        if is_text {
            screen::print(&part);
        } else {
            screen::print(hex::dump(&part, usize::try_from(at).unwrap_or(usize::MAX)));
        }
        at += part.len() as u64;
    }
    if is_text && length > 0 {
        screen::print("\n");
    }
    if at < length && !all {
        let (at, length) = (grouped(at), grouped(length));
        screen::print(format!("({at} of {length} bytes shown; --all shows everything)\n"));
    }
    Ok(())
}

/// The bytes of a string from a position.
fn range(session: &mut Session, key: &[u8], at: u64, count: u64) -> Result<Vec<u8>, PeekError> {
    if count == 0 {
        return Ok(Vec::new());
    }
    let (first, last) = (at.to_string(), (at + count - 1).to_string());
    let reply = request(session, &[b"GETRANGE", key, first.as_bytes(), last.as_bytes()])?;
    reply.as_bytes().map(<[u8]>::to_vec).ok_or_else(PeekError::shape)
}

fn looks_like_json(bytes: &[u8]) -> bool {
    matches!(bytes.trim_ascii_start().first(), Some(b'{' | b'['))
}

/// Reports whether bytes can be printed as text. The last character may be incomplete.
fn is_text(bytes: &[u8]) -> bool {
    let text = match std::str::from_utf8(bytes) {
        Ok(text) => text,
        Err(error) if error.error_len().is_none() => {
            std::str::from_utf8(&bytes[..error.valid_up_to()]).unwrap_or_default()
        }
        Err(_) => return false,
    };
    !text.chars().any(|letter| letter.is_control() && !matches!(letter, '\n' | '\r' | '\t'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_distinguished_from_binary_data() {
        assert!(is_text(b"") && is_text("a\n\tä".as_bytes()) && is_text(&"aä".as_bytes()[..2]));
        assert!(!is_text(b"a\0") && !is_text(b"\xff") && !is_text(b"\x1b[2J"));
    }

    #[test]
    fn a_line_describes_the_key() {
        let mut facts = KeyFacts {
            kind: "hash".to_owned(),
            encoding: Some("listpack".to_owned()),
            memory: Some(1536),
            count: Some(1),
            ttl_ms: 61_000,
        };
        assert_eq!(
            facts.line(Some(Kind::Hash)),
            "hash (listpack), 1 field, 1.5 KiB of memory, TTL 1 min 1 s"
        );
        (facts.encoding, facts.memory, facts.ttl_ms) = (None, None, -1);
        assert_eq!(facts.line(None), "hash, 1 byte, no TTL");
    }
}
