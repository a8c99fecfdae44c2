//! Finds key patterns without configuration. Parts that vary from key to key become placeholders.
//!
//! | part | contents |
//! |---|---|
//! | this file | splits a key into tokens, and recognizes numbers, UUIDs and so on |
//! | [`tree`] | combines many keys: words that vary too much become `*`, and memory stays bounded |
//!
//! For example, the pattern of `user:1001:cart` is `user:<n>:cart`. Punctuation separates the words of a key. Digits at
//! the end of a word are a number. Words that consist of hexadecimal digits or of mixed characters are placeholders
//! (marks) too.

pub mod tree;

use std::fmt;
use std::ops::Range;

/// Maximum number of tokens of a key. The rest of the key becomes one mark.
pub const TOKENS_MAX: usize = 24;
/// A longer word is considered generated, not a name.
const WORD_BYTES_MAX: usize = 48;
/// A word of hexadecimal digits with at least this length is a mark.
const HEX_BYTES_MIN: usize = 8;
/// A word of letters and digits with at least this length is a mark.
const ID_BYTES_MIN: usize = 16;
/// Maximum number of runs of letters or digits in a word that is a name with a number.
const STRETCHES_MAX: usize = 4;
const UUID_BYTES: usize = 36;

/// The kind of a variable part of a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Mark {
    /// Decimal digits.
    Number,
    Uuid,
    /// Hexadecimal digits.
    Hex,
    /// Mixed letters and digits, as in base64.
    Id,
    /// Bytes that are not text.
    Binary,
    /// The rest of the key.
    Rest,
}

impl Mark {
    /// The placeholder in patterns.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Mark::Number => "<n>",
            Mark::Uuid => "<uuid>",
            Mark::Hex => "<hex>",
            Mark::Id => "<id>",
            Mark::Binary => "<bin>",
            Mark::Rest => "<…>",
        }
    }

    /// Reports whether this is a long ID that could be replaced with a number.
    #[must_use]
    pub fn is_long_id(self) -> bool {
        matches!(self, Mark::Uuid | Mark::Hex | Mark::Id)
    }
}

/// A part of a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Token<'a> {
    /// A name that may be common to many keys.
    Word(&'a [u8]),
    /// Punctuation.
    Separator(u8),
    Mark(Mark),
}

/// A token and its position in the key.
pub type Placed<'a> = (Token<'a>, Range<usize>);

/// Splits a key into tokens. `out` is cleared first. O(key).
pub fn tokens<'a>(key: &'a [u8], out: &mut Vec<Placed<'a>>) {
    out.clear();
    let is_text = str::from_utf8(key).is_ok();
    let mut at = 0;
    while at < key.len() {
        if out.len() + 1 >= TOKENS_MAX {
            out.push((Token::Mark(Mark::Rest), at..key.len()));
            return;
        }
        if is_uuid(&key[at..]) {
            out.push((Token::Mark(Mark::Uuid), at..at + UUID_BYTES));
            at += UUID_BYTES;
            continue;
        }
        let byte = key[at];
        let end = at + run(&key[at..], |other| class(other, is_text) == class(byte, is_text));
        match class(byte, is_text) {
            Class::Separator => {
                out.push((Token::Separator(byte), at..at + 1));
                at += 1;
                continue;
            }
            Class::Binary => out.push((Token::Mark(Mark::Binary), at..end)),
            Class::Word => word(key, at..end, out),
        }
        at = end;
    }
    // A word with a number may have added one token too many.
    if out.len() > TOKENS_MAX {
        out.truncate(TOKENS_MAX - 1);
        let from = out.last().map_or(0, |(_, place)| place.end);
        out.push((Token::Mark(Mark::Rest), from..key.len()));
    }
}

#[derive(PartialEq, Eq)]
enum Class {
    Word,
    Separator,
    Binary,
}

fn class(byte: u8, is_text: bool) -> Class {
    match byte {
        b'0'..=b'9' | b'a'..=b'z' | b'A'..=b'Z' => Class::Word,
        0x80.. if is_text => Class::Word,
        b' '..=b'~' => Class::Separator,
        _ => Class::Binary,
    }
}

fn run(bytes: &[u8], same: impl Fn(u8) -> bool) -> usize {
    bytes.iter().position(|byte| !same(*byte)).unwrap_or(bytes.len())
}

/// Reports whether the text begins with a UUID that no letter or digit follows.
fn is_uuid(bytes: &[u8]) -> bool {
    let Some(text) = bytes.get(..UUID_BYTES) else { return false };
    let fits = text.iter().enumerate().all(|(at, byte)| match at {
        8 | 13 | 18 | 23 => *byte == b'-',
        _ => byte.is_ascii_hexdigit(),
    });
    fits && !bytes.get(UUID_BYTES).is_some_and(u8::is_ascii_alphanumeric)
}

/// The tokens of a word.
fn word<'a>(key: &'a [u8], place: Range<usize>, out: &mut Vec<Placed<'a>>) {
    let text = &key[place.clone()];
    let digits = text.iter().filter(|byte| byte.is_ascii_digit()).count();
    if digits == text.len() {
        out.push((Token::Mark(Mark::Number), place));
        return;
    }
    let has = |test: fn(&u8) -> bool| text.iter().any(test);
    let (lower, upper) = (has(u8::is_ascii_lowercase), has(u8::is_ascii_uppercase));
    let is_hex = text.iter().all(u8::is_ascii_hexdigit) && !(lower && upper);
    if is_hex && text.len() >= HEX_BYTES_MIN && digits > 0 {
        out.push((Token::Mark(Mark::Hex), place));
        return;
    }
    let is_mixed = digits > 0 && (lower && upper || digits * 5 >= text.len());
    if text.len() > WORD_BYTES_MAX || text.len() >= ID_BYTES_MIN && is_mixed {
        out.push((Token::Mark(Mark::Id), place));
        return;
    }
    if digits == 0 {
        out.push((Token::Word(text), place));
        return;
    }
    let starts =
        |at: &usize| *at == 0 || text[*at].is_ascii_digit() != text[*at - 1].is_ascii_digit();
    let stretches: Vec<usize> = (0..text.len()).filter(starts).collect();
    if stretches.len() > STRETCHES_MAX {
        out.push((Token::Mark(Mark::Id), place));
        return;
    }
    let ends = stretches.iter().skip(1).copied().chain([text.len()]);
    for (from, to) in stretches.iter().copied().zip(ends) {
        let part = &text[from..to];
        let token = match part[0].is_ascii_digit() {
            true => Token::Mark(Mark::Number),
            false => Token::Word(part),
        };
        out.push((token, place.start + from..place.start + to));
    }
}

/// A part of a pattern.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Part {
    Word(Vec<u8>),
    Separator(u8),
    Mark(Mark),
    /// Any word.
    Any,
}

impl Part {
    /// Reports whether keys of the pattern differ in this part.
    #[must_use]
    pub fn varies(&self) -> bool {
        matches!(self, Part::Mark(_) | Part::Any)
    }
}

/// A pattern: the parts that the keys of a group have in common.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Pattern(pub Vec<Part>);

impl fmt::Display for Pattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0.is_empty() {
            return f.write_str("(empty)");
        }
        for part in &self.0 {
            match part {
                Part::Word(text) => f.write_str(&shown(text))?,
                Part::Separator(byte) => write!(f, "{}", char::from(*byte))?,
                Part::Mark(mark) => f.write_str(mark.name())?,
                Part::Any => f.write_str("*")?,
            }
        }
        Ok(())
    }
}

/// Bytes in readable form: text is unchanged, and other bytes are escaped.
#[must_use]
pub fn shown(bytes: &[u8]) -> String {
    match str::from_utf8(bytes) {
        Ok(text) => text.chars().map(plain).collect(),
        Err(_) => bytes.escape_ascii().to_string(),
    }
}

/// A character, escaped if it could move the cursor.
fn plain(character: char) -> String {
    match character {
        _ if character.is_control() => character.escape_default().to_string(),
        // Characters that change the text direction could make a key look like another.
        '\u{200e}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' => {
            character.escape_default().to_string()
        }
        _ => character.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pattern(key: &[u8]) -> String {
        let mut found = Vec::new();
        tokens(key, &mut found);
        let mut end = 0;
        for (_, place) in &found {
            assert_eq!(place.start, end, "tokens are the whole key");
            end = place.end;
        }
        assert_eq!(end, key.len());
        assert!(found.len() <= TOKENS_MAX);
        let part = |token: &Token<'_>| match token {
            Token::Word(text) => Part::Word(text.to_vec()),
            Token::Separator(byte) => Part::Separator(*byte),
            Token::Mark(mark) => Part::Mark(*mark),
        };
        Pattern(found.iter().map(|(token, _)| part(token)).collect()).to_string()
    }

    #[test]
    fn varying_parts_become_placeholders() {
        for (key, expected) in [
            ("user:1001", "user:<n>"),
            ("user1001", "user<n>"),
            ("user:1001:cart", "user:<n>:cart"),
            ("{user:7}.profile", "{user:<n>}.profile"),
            ("session:550e8400-e29b-41d4-a716-446655440000", "session:<uuid>"),
            (
                "session:550e8400-e29b-41d4-a716-4466554400001",
                "session:<hex>-e<n>b-<n>d<n>-a<n>-<n>",
            ),
            ("cache:d41d8cd98f00b204e9800998ecf8427e:v2", "cache:<hex>:v<n>"),
            ("token:dGhpcyBpcyBhIHRlc3Q0", "token:<id>"),
            ("config/deadbeef", "config/deadbeef"),
            ("2024-05-01T10", "<n>-<n>-<n>T<n>"),
            ("a1b2c3", "<id>"),
            ("größe:5", "größe:<n>"),
            ("", "(empty)"),
        ] {
            assert_eq!(pattern(key.as_bytes()), expected, "{key}");
        }
        assert_eq!(pattern(b"k:\x00\xff\x01:x"), "k:<bin>:x");
    }

    #[test]
    fn a_key_of_many_parts_ends_in_a_mark() {
        let long = "a:".repeat(100);
        assert!(pattern(long.as_bytes()).ends_with("<…>"));
        assert!(pattern("a1z".repeat(100).as_bytes()).ends_with("<id>"));
    }

    #[test]
    fn nothing_moves_the_cursor() {
        assert_eq!(shown("a\u{1b}[2Jb".as_bytes()), "a\\u{1b}[2Jb");
        assert_eq!(shown("\u{202e}x".as_bytes()), "\\u{202e}x");
        assert_eq!(shown(b"\xff\n"), "\\xff\\n");
    }
}
