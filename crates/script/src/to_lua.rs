//! Converts the reply of a command to the value that a script gets.
//!
//! | RESP | Lua |
//! |---|---|
//! | `:` | number |
//! | `$` | string; null is `false` |
//! | `+`, `-` | `{ok=…}`, `{err=…}` |
//! | `*` | table; null is `false` |
//! | `_`, `#`, `,`, `(` | `nil`, boolean, `{double=…}`, `{big_number=…}` |
//! | `|` | the value after the attributes |
//! | `%`, `~`, `=` | `{map=…}`, `{set=…}`, `{verbatim_string={string=…, format=…}}` |

use crate::room::check;
use mlua::{Lua, Result, Value};

/// Maximum number of elements for which capacity is reserved in advance.
const RESERVED_MAX: usize = 1024;

/// A value, and true if it is an error reply.
pub(crate) struct Converted {
    pub(crate) value: Value,
    pub(crate) is_error: bool,
}

/// Converts a whole reply. The server wrote it, so it is well-formed; anything else results in
/// `nil`.
pub(crate) fn convert(lua: &Lua, reply: &[u8]) -> Result<Converted> {
    let is_error = reply.first() == Some(&b'-');
    let value = Reader { lua, rest: reply }.value()?;
    Ok(Converted { value, is_error })
}

/// Returns the text of a string or status that is the whole reply, and true if it is a status.
/// `None` if the text is long, or not UTF-8: it then takes the general path.
pub(crate) fn short_text(reply: &[u8]) -> Option<(&str, bool)> {
    let text = match reply {
        [b'+', line @ .., b'\r', b'\n'] => return Some((std::str::from_utf8(line).ok()?, true)),
        [b'$', digit @ b'0'..=b'9', b'\r', b'\n', text @ .., b'\r', b'\n']
            if text.len() == usize::from(*digit - b'0') =>
        {
            text
        }
        [b'$', tens @ b'1'..=b'9', ones @ b'0'..=b'9', b'\r', b'\n', text @ .., b'\r', b'\n']
            if text.len() == 10 * usize::from(*tens - b'0') + usize::from(*ones - b'0') =>
        {
            text
        }
        _ => return None,
    };
    Some((std::str::from_utf8(text).ok()?, false))
}

struct Reader<'a> {
    lua: &'a Lua,
    rest: &'a [u8],
}

impl<'a> Reader<'a> {
    fn line(&mut self) -> &'a [u8] {
        let end = self.rest.windows(2).position(|two| two == b"\r\n").unwrap_or(self.rest.len());
        let line = &self.rest[..end];
        self.rest = self.rest.get(end + 2..).unwrap_or_default();
        line
    }

    fn number(&mut self) -> i64 {
        let mut number = 0i64;
        let line = self.line();
        let (negative, digits) = match line {
            [b'-', digits @ ..] => (true, digits),
            digits => (false, digits),
        };
        for digit in digits {
            number = number.wrapping_mul(10).wrapping_sub(i64::from(digit.wrapping_sub(b'0')));
        }
        if negative { number } else { number.wrapping_neg() }
    }

    fn string(&mut self, len: usize) -> &'a [u8] {
        let len = len.min(self.rest.len());
        let bytes = &self.rest[..len];
        self.rest = self.rest.get(len + 2..).unwrap_or_default();
        bytes
    }

    fn value(&mut self) -> Result<Value> {
        let Some((&kind, rest)) = self.rest.split_first() else { return Ok(Value::Nil) };
        self.rest = rest;
        match kind {
            b'$' => match usize::try_from(self.number()) {
                Ok(len) => Ok(Value::String(self.lua.create_string(self.string(len))?)),
                Err(_) => Ok(Value::Boolean(false)),
            },
            b':' => Ok(number(self.number())),
            b'+' => self.field("ok"),
            b'-' => self.error(),
            b'*' | b'>' => match usize::try_from(self.number()) {
                Ok(len) => self.array(len),
                Err(_) => Ok(Value::Boolean(false)),
            },
            b'_' => {
                self.line();
                Ok(Value::Nil)
            }
            b'#' => Ok(Value::Boolean(self.line() == b"t")),
            b',' => {
                let text = String::from_utf8_lossy(self.line());
                let table = self.lua.create_table()?;
                table.raw_set("double", text.parse::<f64>().unwrap_or(f64::NAN))?;
                Ok(Value::Table(table))
            }
            b'(' => self.field("big_number"),
            b'%' => self.map(),
            b'~' => self.set(),
            b'=' => self.verbatim(),
            b'|' => {
                for _ in 0..2 * self.number().max(0) {
                    self.value()?;
                }
                self.value()
            }
            _ => Ok(Value::Nil),
        }
    }

    fn field(&mut self, name: &str) -> Result<Value> {
        let text = self.lua.create_string(self.line())?;
        let table = self.lua.create_table_with_capacity(0, 1)?;
        table.raw_set(name, text)?;
        Ok(Value::Table(table))
    }

    /// Converts an error reply. The error was counted when the command ran.
    fn error(&mut self) -> Result<Value> {
        let text = self.lua.create_string(self.line())?;
        let table = self.lua.create_table_with_capacity(0, 2)?;
        table.raw_set("err", text)?;
        table.raw_set("ignore_error_stats_update", true)?;
        Ok(Value::Table(table))
    }

    fn array(&mut self, len: usize) -> Result<Value> {
        let table = self.lua.create_table_with_capacity(len.min(RESERVED_MAX), 0)?;
        for at in 1..=len {
            let value = self.value()?;
            table.raw_set(at, value)?;
            check(self.lua)?;
        }
        Ok(Value::Table(table))
    }

    fn map(&mut self) -> Result<Value> {
        let len = self.number().max(0);
        let map = self.lua.create_table()?;
        for _ in 0..len {
            let (key, value) = (self.value()?, self.value()?);
            if !key.is_nil() {
                map.raw_set(key, value)?;
            }
            check(self.lua)?;
        }
        self.wrapped("map", map)
    }

    fn set(&mut self) -> Result<Value> {
        let len = self.number().max(0);
        let set = self.lua.create_table()?;
        for _ in 0..len {
            let member = self.value()?;
            if !member.is_nil() {
                set.raw_set(member, true)?;
            }
            check(self.lua)?;
        }
        self.wrapped("set", set)
    }

    fn verbatim(&mut self) -> Result<Value> {
        let len = self.number().max(0) as usize;
        let bytes = self.string(len);
        let (format, text) = bytes.split_at(bytes.len().min(3));
        let inner = self.lua.create_table()?;
        inner
            .raw_set("string", self.lua.create_string(text.strip_prefix(b":").unwrap_or(text))?)?;
        inner.raw_set("format", self.lua.create_string(format)?)?;
        self.wrapped("verbatim_string", inner)
    }

    fn wrapped(&self, name: &str, inner: mlua::Table) -> Result<Value> {
        let table = self.lua.create_table_with_capacity(0, 1)?;
        table.raw_set(name, inner)?;
        Ok(Value::Table(table))
    }
}

/// Converts an integer to a Lua number, which is a double.
fn number(integer: i64) -> Value {
    Value::Number(integer as f64)
}
