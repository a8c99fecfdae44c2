//! Lua values from JSON: a scanner that produces tokens, and a parser that keeps open tables in a
//! list, so nesting uses no stack.
//!
//! The text ends at its first NUL. Strings may contain any other byte unescaped. Any number that
//! `strtod` accepts is accepted, unless `decode_invalid_numbers` is off. Even then some invalid
//! numbers are accepted, for example a point without digits after it.

use super::Config;
use crate::libraries::STACK_SLOTS_MAX;
use crate::libraries::call::{Failure, Outcome, one};
use crate::libraries::number::strtod;
use mlua::{Lua, LuaString, Table, Value};
use std::ops::Range;

/// The numbers of stack slots that the C library uses for the argument, and those that it requests
/// for a table and keeps for an open one.
const SLOTS_AT_START: usize = 1;
const ARRAY_SLOTS: (usize, usize) = (2, 1);
const OBJECT_SLOTS: (usize, usize) = (3, 2);

pub(super) fn decode(lua: &Lua, config: &Config, text: &[u8]) -> Outcome {
    if text.len() >= 2 && (text[0] == 0 || text[1] == 0) {
        return Err(Failure::raised("JSON parser does not support UTF-16 or UTF-32"));
    }
    let scanner =
        Scanner { text, at: 0, strict: !config.decode_invalid_numbers, unescaped: vec![] };
    let depth_max = config.decode_max_depth as usize;
    let mut parser = Parser { lua, scanner, depth_max, open: Vec::new(), slots: SLOTS_AT_START };
    let value = parser.document()?;
    Ok(one(value))
}

#[derive(Debug, Clone, PartialEq)]
enum Kind {
    ObjectBegin,
    ObjectEnd,
    ArrayBegin,
    ArrayEnd,
    /// The range in the text if it has no escapes; else the string is in `Scanner::unescaped`.
    String(Option<Range<usize>>),
    Number(f64),
    Boolean(bool),
    Null,
    Colon,
    Comma,
    End,
    Error(&'static str),
}

impl Kind {
    /// Returns the token's name for error texts.
    fn name(&self) -> &'static str {
        match self {
            Kind::ObjectBegin => "T_OBJ_BEGIN",
            Kind::ObjectEnd => "T_OBJ_END",
            Kind::ArrayBegin => "T_ARR_BEGIN",
            Kind::ArrayEnd => "T_ARR_END",
            Kind::String(_) => "T_STRING",
            Kind::Number(_) => "T_NUMBER",
            Kind::Boolean(_) => "T_BOOLEAN",
            Kind::Null => "T_NULL",
            Kind::Colon => "T_COLON",
            Kind::Comma => "T_COMMA",
            Kind::End => "T_END",
            Kind::Error(text) => text,
        }
    }
}

#[derive(Debug)]
struct Token {
    kind: Kind,
    /// Where the token begins, or where an error was found.
    at: usize,
}

struct Scanner<'a> {
    text: &'a [u8],
    at: usize,
    /// True if only JSON's own numbers are valid.
    strict: bool,
    /// The last string that had escapes.
    unescaped: Vec<u8>,
}

impl Scanner<'_> {
    /// Returns the byte at `at`, or the NUL that ends the text.
    fn byte(&self, at: usize) -> u8 {
        self.text.get(at).copied().unwrap_or(0)
    }

    fn starts(&self, word: &[u8]) -> bool {
        self.text[self.at..].starts_with(word)
    }

    fn next(&mut self) -> Token {
        while matches!(self.byte(self.at), b' ' | b'\t' | b'\n' | b'\r') {
            self.at += 1;
        }
        let at = self.at;
        let kind = match self.byte(at) {
            b'{' => self.take(1, Kind::ObjectBegin),
            b'}' => self.take(1, Kind::ObjectEnd),
            b'[' => self.take(1, Kind::ArrayBegin),
            b']' => self.take(1, Kind::ArrayEnd),
            b',' => self.take(1, Kind::Comma),
            b':' => self.take(1, Kind::Colon),
            0 => Kind::End,
            b'"' => self.string(),
            b'-' | b'0'..=b'9' if self.strict && self.is_lenient_number() => {
                Kind::Error("invalid number")
            }
            b'-' | b'0'..=b'9' => self.number(),
            b't' if self.starts(b"true") => self.take(4, Kind::Boolean(true)),
            b'f' if self.starts(b"false") => self.take(5, Kind::Boolean(false)),
            b'n' if self.starts(b"null") => self.take(4, Kind::Null),
            b'+' | b'i' | b'I' | b'n' | b'N' if !self.strict && self.is_lenient_number() => {
                self.number()
            }
            _ => Kind::Error("invalid token"),
        };
        // An error within a string is reported at its own position, all others at the token's
        // start.
        let at = if matches!(kind, Kind::Error(_)) { self.at } else { at };
        Token { kind, at }
    }

    fn take(&mut self, len: usize, kind: Kind) -> Kind {
        self.at += len;
        kind
    }

    /// True if the number here is valid only for `strtod`.
    fn is_lenient_number(&self) -> bool {
        let first = self.byte(self.at);
        if first == b'+' {
            return true;
        }
        let at = self.at + usize::from(first == b'-');
        match self.byte(at) {
            b'0' => matches!(self.byte(at + 1), b'x' | b'X' | b'0'..=b'9'),
            byte if byte <= b'9' => false,
            _ => self.text.get(at..at + 3).is_some_and(|word| {
                word.eq_ignore_ascii_case(b"inf") || word.eq_ignore_ascii_case(b"nan")
            }),
        }
    }

    fn number(&mut self) -> Kind {
        match strtod(&self.text[self.at..]) {
            Some((number, len)) => self.take(len, Kind::Number(number)),
            None => Kind::Error("invalid number"),
        }
    }

    /// Reads a string that starts with the opening quote.
    fn string(&mut self) -> Kind {
        self.at += 1;
        let start = self.at;
        match self.plain() {
            b'"' => return self.take(1, Kind::String(Some(start..self.at))),
            b'\\' => {}
            _ => return Kind::Error("unexpected end of string"),
        }
        self.unescaped.clear();
        self.unescaped.extend_from_slice(&self.text[start..self.at]);
        loop {
            let start = self.at;
            let stop = self.plain();
            self.unescaped.extend_from_slice(&self.text[start..self.at]);
            match stop {
                b'"' => return self.take(1, Kind::String(None)),
                b'\\' => {}
                _ => return Kind::Error("unexpected end of string"),
            }
            if let Err(text) = self.escape() {
                return Kind::Error(text);
            }
        }
    }

    /// Advances to the next quote, backslash or NUL.
    fn plain(&mut self) -> u8 {
        let rest = &self.text[self.at..];
        let len = rest.iter().position(|byte| matches!(byte, b'"' | b'\\' | 0));
        self.at += len.unwrap_or(rest.len());
        self.byte(self.at)
    }

    fn escape(&mut self) -> Result<(), &'static str> {
        let byte = match self.byte(self.at + 1) {
            byte @ (b'"' | b'\\' | b'/') => byte,
            b'b' => 8,
            b't' => b'\t',
            b'n' => b'\n',
            b'f' => 12,
            b'r' => b'\r',
            b'u' => return self.unicode().ok_or("invalid unicode escape code"),
            _ => return Err("invalid escape code"),
        };
        self.unescaped.push(byte);
        self.at += 2;
        Ok(())
    }

    /// Reads `\uXXXX`, or two of them that form a surrogate pair. A lone surrogate is an error.
    fn unicode(&mut self) -> Option<()> {
        let first = self.hex4(self.at + 2)?;
        let (code, len) = match first {
            0xd800..0xdc00 => {
                let pair = self.byte(self.at + 6) == b'\\' && self.byte(self.at + 7) == b'u';
                let second = self.hex4(self.at + 8).filter(|_| pair)?;
                let low = second.checked_sub(0xdc00).filter(|&low| low < 0x400)?;
                (0x10000 + ((first - 0xd800) << 10 | low), 12)
            }
            _ => (first, 6),
        };
        let character = char::from_u32(code)?;
        self.unescaped.extend_from_slice(character.encode_utf8(&mut [0; 4]).as_bytes());
        self.at += len;
        Some(())
    }

    fn hex4(&self, at: usize) -> Option<u32> {
        let digits = self.text.get(at..at + 4)?;
        digits.iter().try_fold(0, |value, &digit| Some(value << 4 | (digit as char).to_digit(16)?))
    }
}

struct Parser<'a> {
    lua: &'a Lua,
    scanner: Scanner<'a>,
    depth_max: usize,
    open: Vec<Open>,
    /// How many stack slots the C library would use.
    slots: usize,
}

/// A table whose end has not been read.
enum Open {
    /// With its current length.
    Array(Table, usize),
    /// With the key whose value is being read.
    Object(Table, LuaString),
}

impl Parser<'_> {
    fn document(&mut self) -> Result<Value, Failure> {
        let mut token = self.scanner.next();
        loop {
            let Some(mut value) = self.value(&mut token)? else { continue };
            // Adds a complete value to its table, which may complete the enclosing table.
            loop {
                let next = self.scanner.next();
                let expected = match self.open.last_mut() {
                    None if next.kind == Kind::End => return Ok(value),
                    None => "the end",
                    Some(Open::Array(table, len)) => {
                        *len += 1;
                        table.raw_seti(*len, value)?;
                        "comma or array end"
                    }
                    Some(Open::Object(table, key)) => {
                        table.raw_set(&*key, value)?;
                        "comma or object end"
                    }
                };
                match (&next.kind, self.open.last_mut()) {
                    (Kind::Comma, Some(Open::Array(..))) => {
                        token = self.scanner.next();
                        break;
                    }
                    (Kind::Comma, Some(Open::Object(..))) => {
                        token = self.scanner.next();
                        let read = self.key(&mut token)?;
                        if let Some(Open::Object(_, key)) = self.open.last_mut() {
                            *key = read;
                        }
                        break;
                    }
                    (Kind::ArrayEnd, Some(Open::Array(..)))
                    | (Kind::ObjectEnd, Some(Open::Object(..))) => value = self.close(),
                    _ => return Err(unexpected(expected, &next)),
                }
            }
        }
    }

    /// Reads the value that begins with `token`. Returns `None` after the beginning of a nonempty
    /// table, whose first value then begins with the new `token`.
    fn value(&mut self, token: &mut Token) -> Result<Option<Value>, Failure> {
        Ok(Some(match &token.kind {
            Kind::String(at) => Value::String(self.text(at)?),
            Kind::Number(number) => Value::Number(*number),
            Kind::Boolean(boolean) => Value::Boolean(*boolean),
            Kind::Null => Value::NULL,
            Kind::ArrayBegin => {
                self.descend(ARRAY_SLOTS.0)?;
                let table = self.lua.create_table()?;
                *token = self.scanner.next();
                if token.kind != Kind::ArrayEnd {
                    self.slots += ARRAY_SLOTS.1;
                    self.open.push(Open::Array(table, 0));
                    return Ok(None);
                }
                Value::Table(table)
            }
            Kind::ObjectBegin => {
                self.descend(OBJECT_SLOTS.0)?;
                let table = self.lua.create_table()?;
                *token = self.scanner.next();
                if token.kind != Kind::ObjectEnd {
                    let key = self.key(token)?;
                    self.slots += OBJECT_SLOTS.1;
                    self.open.push(Open::Object(table, key));
                    return Ok(None);
                }
                Value::Table(table)
            }
            _ => return Err(unexpected("value", token)),
        }))
    }

    /// Reads a key, whose string is `token`, and the colon; `token` becomes the next one.
    fn key(&mut self, token: &mut Token) -> Result<LuaString, Failure> {
        let Kind::String(at) = &token.kind else {
            return Err(unexpected("object key string", token));
        };
        let key = self.text(at)?;
        let colon = self.scanner.next();
        if colon.kind != Kind::Colon {
            return Err(unexpected("colon", &colon));
        }
        *token = self.scanner.next();
        Ok(key)
    }

    fn text(&self, at: &Option<Range<usize>>) -> mlua::Result<LuaString> {
        self.lua.create_string(match at {
            Some(at) => &self.scanner.text[at.clone()],
            None => &self.scanner.unescaped,
        })
    }

    fn descend(&self, slots_needed: usize) -> Result<(), Failure> {
        let depth = self.open.len() + 1;
        if depth <= self.depth_max && self.slots + slots_needed <= STACK_SLOTS_MAX {
            return Ok(());
        }
        Err(Failure::raised(format!(
            "Found too many nested data structures ({depth}) at character {}",
            self.scanner.at
        )))
    }

    /// Closes the innermost open table and returns it.
    fn close(&mut self) -> Value {
        match self.open.pop() {
            Some(Open::Array(table, _)) => {
                self.slots -= ARRAY_SLOTS.1;
                Value::Table(table)
            }
            Some(Open::Object(table, _)) => {
                self.slots -= OBJECT_SLOTS.1;
                Value::Table(table)
            }
            None => Value::Nil,
        }
    }
}

fn unexpected(expected: &str, found: &Token) -> Failure {
    let (name, character) = (found.kind.name(), found.at + 1);
    Failure::raised(format!("Expected {expected} but found {name} at character {character}"))
}
