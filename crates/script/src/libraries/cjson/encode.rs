//! JSON from Lua values, written directly to a buffer.
//!
//! A table is written in one pass as long as it looks like an array of scalars, or an object of
//! scalars. A table that contains tables is continued from a list of open tables, so nesting uses
//! no stack.

use super::{Config, InvalidNumbers};
use crate::interpreter::Watch;
use crate::libraries::call::{Failure, Outcome, as_number, string, type_name};
use crate::libraries::number::write_number;
use crate::libraries::{RESULT_BYTES_MAX, STACK_SLOTS_MAX};
use crate::pairs::{COLLECTED_MAX, Pairs};
use mlua::{Function, Lua, LuaString, Table, Value};

/// The longest form of a byte: `\u0000`.
const ESCAPE_BYTES_MAX: usize = 6;

/// The stack slots that the C library uses for the argument, and those it requests at each table.
const SLOTS_AT_START: usize = 1;
const SLOTS_NEEDED: usize = 3;

/// Writes `value`; `next` is Lua's own function of that name.
pub(super) fn encode(lua: &Lua, next: &Function, config: &Config, value: &Value) -> Outcome {
    let mut encoder = Encoder {
        watch: Watch::of(lua),
        config,
        next,
        out: Vec::new(),
        open: Vec::new(),
        collected: 0,
        slots: SLOTS_AT_START,
    };
    encoder.value(value)?;
    while encoder.step()? {}
    string(lua, &encoder.out)
}

struct Encoder<'a> {
    watch: Watch,
    config: &'a Config,
    next: &'a Function,
    out: Vec<u8>,
    open: Vec<Open>,
    /// How many pairs `open` holds.
    collected: usize,
    /// How many stack slots the C library would use.
    slots: usize,
}

/// A table that is being written, with its remaining items.
enum Open {
    /// Elements from `next` to `len`.
    Array {
        table: Table,
        next: usize,
        len: usize,
    },
    Object {
        rest: Pairs,
        comma: bool,
    },
}

/// The kind of a table, according to its keys.
enum Shape {
    /// Up to this index, which is above zero.
    Array(usize),
    Object,
}

impl Encoder<'_> {
    /// Writes the next element or the end of the innermost open table. Returns false when none is
    /// open.
    fn step(&mut self) -> Result<bool, Failure> {
        match self.open.last_mut() {
            None => return Ok(false),
            Some(Open::Array { table, next, len }) if *next <= *len => {
                let value: Value = table.raw_get(*next as f64)?;
                if *next > 1 {
                    self.out.push(b',');
                }
                *next += 1;
                self.value(&value)?;
            }
            Some(Open::Array { .. }) => {
                self.out.push(b']');
                self.slots -= 1;
                self.open.pop();
            }
            Some(Open::Object { rest, comma }) => {
                let pair = rest.following(self.next, &mut self.collected)?;
                let comma = std::mem::replace(comma, true);
                match pair {
                    Some((key, value)) => {
                        self.key(comma, &key)?;
                        self.value(&value)?;
                    }
                    None => {
                        self.out.push(b'}');
                        self.slots -= 2;
                        self.open.pop();
                    }
                }
            }
        }
        Ok(true)
    }

    /// Writes a scalar, or begins a table.
    fn value(&mut self, value: &Value) -> Result<(), Failure> {
        match value {
            Value::Table(table) => self.table(table),
            scalar => self.scalar(scalar),
        }
    }

    fn scalar(&mut self, value: &Value) -> Result<(), Failure> {
        self.watch.step(self.out.len())?;
        match value {
            Value::String(text) => self.string(text)?,
            Value::Boolean(true) => self.out.extend_from_slice(b"true"),
            Value::Boolean(false) => self.out.extend_from_slice(b"false"),
            Value::Nil => self.out.extend_from_slice(b"null"),
            Value::LightUserData(pointer) if pointer.0.is_null() => {
                self.out.extend_from_slice(b"null");
            }
            other => match as_number(other) {
                Some(number) => self.number(number)?,
                None => return Err(refused(other, "type not supported")),
            },
        }
        if self.out.len() > RESULT_BYTES_MAX { Err(Failure::too_long()) } else { Ok(()) }
    }

    fn number(&mut self, number: f64) -> Result<(), Failure> {
        if !number.is_finite() {
            match self.config.encode_invalid_numbers {
                InvalidNumbers::Refused => {
                    return Err(refused(&Value::Number(number), "must not be NaN or Inf"));
                }
                InvalidNumbers::Null => {
                    self.out.extend_from_slice(b"null");
                    return Ok(());
                }
                InvalidNumbers::Written if number.is_nan() => {
                    self.out.extend_from_slice(b"nan");
                    return Ok(());
                }
                InvalidNumbers::Written => {}
            }
        }
        write_number(&mut self.out, number, self.config.encode_number_precision as usize);
        Ok(())
    }

    fn string(&mut self, text: &LuaString) -> Result<(), Failure> {
        let bytes = text.as_bytes();
        if self.out.len() + bytes.len() * ESCAPE_BYTES_MAX > RESULT_BYTES_MAX {
            let exact: usize = bytes.iter().map(|&byte| escaped_len(byte)).sum();
            if self.out.len() + exact > RESULT_BYTES_MAX {
                return Err(Failure::too_long());
            }
        }
        self.out.push(b'"');
        let mut rest: &[u8] = &bytes;
        while let Some(at) = rest.iter().position(|&byte| ESCAPED[usize::from(byte)]) {
            self.out.extend_from_slice(&rest[..at]);
            escape(&mut self.out, rest[at]);
            rest = &rest[at + 1..];
        }
        self.out.extend_from_slice(rest);
        self.out.push(b'"');
        Ok(())
    }

    fn key(&mut self, comma: bool, key: &Value) -> Result<(), Failure> {
        if comma {
            self.out.push(b',');
        }
        match key {
            Value::String(text) => self.string(text)?,
            other => match as_number(other) {
                Some(number) => {
                    self.out.push(b'"');
                    self.number(number)?;
                    self.out.push(b'"');
                }
                None => return Err(refused(other, "table key must be a number or string")),
            },
        }
        self.out.push(b':');
        Ok(())
    }

    /// Writes a table of scalars, or the items before the first table in it, and opens the rest.
    fn table(&mut self, table: &Table) -> Result<(), Failure> {
        self.watch.step(self.out.len())?;
        let depth = self.open.len() + 1;
        if depth > self.config.encode_max_depth as usize
            || self.slots + SLOTS_NEEDED > STACK_SLOTS_MAX
        {
            let text = format!("Cannot serialise, excessive nesting ({depth})");
            return Err(Failure::raised(text));
        }
        let start = self.out.len();
        if self.sequence(table)? {
            return Ok(());
        }
        self.out.truncate(start);
        match self.shape(table)? {
            Shape::Array(len) => {
                self.out.push(b'[');
                self.slots += 1;
                self.open.push(Open::Array { table: table.clone(), next: 1, len });
                Ok(())
            }
            Shape::Object => self.object(table),
        }
    }

    /// Writes a table whose keys are 1, 2, 3 and so on in iteration order, which is the case for
    /// arrays. Returns false if the table is something else, or contains a value that cannot be
    /// written; the output is then discarded.
    fn sequence(&mut self, table: &Table) -> Result<bool, Failure> {
        let (mut len, mut first_table) = (0, None);
        self.out.push(b'[');
        let walked = table.for_each(|key: Value, value: Value| {
            if as_number(&key) != Some((len + 1) as f64) {
                return Err(STOP);
            }
            len += 1;
            if first_table.is_some() {
                return Ok(());
            }
            if value.is_table() {
                first_table = Some(len);
                return Ok(());
            }
            if len > 1 {
                self.out.push(b',');
            }
            self.scalar(&value).map_err(|_| STOP)
        });
        if walked.is_err() || len == 0 || len > i32::MAX as usize {
            return Ok(false);
        }
        match first_table {
            None => self.out.push(b']'),
            Some(next) => {
                self.slots += 1;
                self.open.push(Open::Array { table: table.clone(), next, len });
            }
        }
        Ok(true)
    }

    fn shape(&self, table: &Table) -> Result<Shape, Failure> {
        let (mut max, mut items) = (0.0f64, 0i64);
        let walked = table.for_each(|key: Value, _: Value| match as_number(&key) {
            Some(index) if index >= 1.0 && index.floor() == index => {
                max = max.max(index);
                items += 1;
                Ok(())
            }
            _ => Err(STOP),
        });
        // An index that exceeds C's `int` makes the table an object, as in the C library.
        if walked.is_err() || max > f64::from(i32::MAX) || items == 0 {
            return Ok(Shape::Object);
        }
        let (max, config) = (max as i64, self.config);
        let ratio = i64::from(config.encode_sparse_ratio);
        let sparse = ratio > 0
            && max > items.saturating_mul(ratio)
            && max > i64::from(config.encode_sparse_safe);
        match sparse {
            true if config.encode_sparse_convert => Ok(Shape::Object),
            true => Err(Failure::raised("Cannot serialise table: excessively sparse array")),
            false => Ok(Shape::Array(max as usize)),
        }
    }

    fn object(&mut self, table: &Table) -> Result<(), Failure> {
        let mut rest = Vec::new();
        let (mut comma, mut failed, mut full) = (false, None, false);
        self.out.push(b'{');
        let walked = table.for_each(|key: Value, value: Value| {
            if !rest.is_empty() || value.is_table() {
                rest.push((key, value));
                // One pair is always collected, so that the others can be found after it.
                full = self.collected + rest.len() >= COLLECTED_MAX;
                return if full { Err(STOP) } else { Ok(()) };
            }
            let written = self.key(comma, &key).and_then(|()| self.scalar(&value));
            comma = true;
            written.map_err(|failure| {
                failed = Some(failure);
                STOP
            })
        });
        if let Some(failure) = failed {
            return Err(failure);
        }
        if !full {
            walked?;
        }
        if rest.is_empty() {
            self.out.push(b'}');
            return Ok(());
        }
        self.slots += 2;
        self.collected += rest.len();
        self.open.push(Open::Object { rest: Pairs::new(table, rest, full), comma });
        Ok(())
    }
}

/// Ends an iteration over a table early. It is never visible outside of this file.
const STOP: mlua::Error = mlua::Error::StackError;

fn refused(value: &Value, reason: &str) -> Failure {
    Failure::raised(format!("Cannot serialise {}: {reason}", type_name(value)))
}

/// The bytes that need an escape.
const ESCAPED: [bool; 256] = {
    let mut table = [false; 256];
    let mut byte = 0;
    while byte < 0x20 {
        table[byte] = true;
        byte += 1;
    }
    table[b'"' as usize] = true;
    table[b'\\' as usize] = true;
    table[b'/' as usize] = true;
    table[0x7f] = true;
    table
};

fn escaped_len(byte: u8) -> usize {
    match byte {
        _ if !ESCAPED[usize::from(byte)] => 1,
        b'"' | b'\\' | b'/' | 8 | 9 | 10 | 12 | 13 => 2,
        _ => ESCAPE_BYTES_MAX,
    }
}

fn escape(out: &mut Vec<u8>, byte: u8) {
    let short = match byte {
        b'"' | b'\\' | b'/' => byte,
        8 => b'b',
        b'\t' => b't',
        b'\n' => b'n',
        12 => b'f',
        b'\r' => b'r',
        _ => {
            const DIGITS: &[u8; 16] = b"0123456789abcdef";
            out.extend_from_slice(b"\\u00");
            out.push(DIGITS[usize::from(byte >> 4)]);
            return out.push(DIGITS[usize::from(byte & 15)]);
        }
    };
    out.extend_from_slice(&[b'\\', short]);
}
