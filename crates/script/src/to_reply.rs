//! From the value that a script returns to the reply that its client gets.

use crate::interpreter::Watch;
use crate::libraries::{RESULT_BYTES_MAX, truncated};
use brisk_resp::Protocol;
use brisk_resp::reply::encode::{self, Aggregate};
use mlua::{Lua, Result, Table, Value};
use std::cell::Cell;

/// How deep tables may be nested; what is deeper becomes an error within the reply.
const DEPTH_MAX: usize = 1000;

/// The longest reply, but for its last element: the longest string and as much beside it. A table may
/// contain another many times, and that yet another, so a small one may have a reply without end.
const REPLY_BYTES_MAX: usize = 2 * RESULT_BYTES_MAX;

/// How values look on the wire, and how many may be written.
pub(crate) struct Dialect {
    pub(crate) lua: Lua,
    /// The client's protocol.
    pub(crate) client: Protocol,
    /// The one that the script chose with `redis.setresp`: in that of RESP2, `false` is null.
    pub(crate) script: Protocol,
    pub(crate) allowance: Allowance,
}

/// How much may be written.
pub(crate) enum Allowance {
    /// So many values, and up to that length: when none are left, that is an error.
    AtOnce { values: Cell<u32>, end: usize },
    /// What gives way as the script does, on whose stack it runs.
    Watched(Watch),
}

impl Allowance {
    /// Called before each value, with the length up to which it will be written.
    fn step(&self, end: usize) -> Result<()> {
        match self {
            Allowance::AtOnce { values, end: last } => {
                values.set(if end > *last { 0 } else { values.get().saturating_sub(1) });
                if values.get() == 0 { Err(mlua::Error::runtime("too much")) } else { Ok(()) }
            }
            Allowance::Watched(watch) => watch.step(end),
        }
    }
}

impl Dialect {
    /// Whether that is why there is no reply.
    pub(crate) fn is_too_long(&self) -> bool {
        matches!(&self.allowance, Allowance::AtOnce { values, .. } if values.get() == 0)
    }

    /// Called before a value is written behind `written` bytes, with what is known of its length.
    fn allow(&self, written: usize, len: usize) -> Result<()> {
        if written > REPLY_BYTES_MAX {
            let text = format!("the reply is longer than {REPLY_BYTES_MAX} bytes");
            return Err(mlua::Error::runtime(text));
        }
        self.allowance.step(written + len)
    }

    /// Writes what is no table.
    #[inline]
    fn scalar(&self, value: &Value, out: &mut Vec<u8>) -> Result<()> {
        if let Value::String(text) = value {
            let text = text.as_bytes();
            self.allow(out.len(), text.len())?;
            encode::bulk(out, &text);
            return Ok(());
        }
        self.allow(out.len(), 0)?;
        match value {
            Value::Integer(number) => encode::integer(out, *number),
            Value::Number(number) => encode::integer(out, truncated(*number)),
            Value::Boolean(truth) => match self.script {
                Protocol::Resp3 => encode::boolean(out, self.client, *truth),
                Protocol::Resp2 if *truth => encode::integer(out, 1),
                Protocol::Resp2 => encode::null(out, self.client),
            },
            _ => encode::null(out, self.client),
        }
        Ok(())
    }
}

/// Appends the reply. `is_list`: it is a table none of whose fields has a meaning.
pub(crate) fn encode(
    value: &Value,
    is_list: bool,
    dialect: &Dialect,
    out: &mut Vec<u8>,
) -> Result<()> {
    let mut encoder = Encoder { dialect, out, open: Vec::new() };
    match value {
        Value::Table(table) if is_list => encoder.open_list(table)?,
        Value::Table(table) => encoder.table(table)?,
        scalar => dialect.scalar(scalar, encoder.out)?,
    }
    while encoder.step()? {}
    Ok(())
}

/// Writes a value without recursion: tables may be nested deeper than a stack is.
struct Encoder<'a> {
    dialect: &'a Dialect,
    out: &'a mut Vec<u8>,
    open: Vec<Open>,
}

/// A table whose elements are being written.
struct Open {
    table: Table,
    /// Index of the next element.
    next: usize,
    /// How many there are. What is written at once learns that last, and moves what it wrote; where much
    /// is nested that would take the square of it, so that there they are counted first.
    len: Option<usize>,
    /// Where its reply begins.
    begin: usize,
}

impl Encoder<'_> {
    /// Writes the next elements up to a table, which is begun, or the end of the innermost open one; false
    /// when none is open.
    fn step(&mut self) -> Result<bool> {
        let Some(open) = self.open.last_mut() else { return Ok(false) };
        while open.len.is_none_or(|len| open.next <= len) {
            let element: Value = open.table.raw_get(open.next)?;
            if element.is_nil() && open.len.is_none() {
                break;
            }
            open.next += 1;
            if let Value::Table(table) = &element {
                self.table(table)?;
                return Ok(true);
            }
            self.dialect.scalar(&element, self.out)?;
        }
        if let Some(Open { len: None, next, begin, .. }) = self.open.pop() {
            let client = self.dialect.client;
            encode::insert_aggregate(self.out, begin, client, Aggregate::Array, next - 1);
        }
        Ok(true)
    }

    /// Writes a table that says itself what it is, or begins its elements.
    fn table(&mut self, table: &Table) -> Result<()> {
        self.dialect.allow(self.out.len(), 0)?;
        if self.open.len() >= DEPTH_MAX {
            encode::error(self.out, b"ERR reached lua stack limit");
        } else if !self.named(table)? {
            self.open_list(table)?;
        }
        Ok(())
    }

    /// Begins the elements up to the first that is nil.
    fn open_list(&mut self, table: &Table) -> Result<()> {
        let mut open = Open { table: table.clone(), next: 1, len: None, begin: self.out.len() };
        if let Allowance::Watched(watch) = &self.dialect.allowance {
            let mut len = 0;
            while table.raw_get::<Value>(len + 1)? != Value::Nil {
                watch.step(self.out.len())?;
                len += 1;
            }
            encode::aggregate(self.out, self.dialect.client, Aggregate::Array, len);
            open.len = Some(len);
        }
        self.open.push(open);
        Ok(())
    }

    /// Begins so many items of `kind`, which are the elements of a list: for each item as many as the kind
    /// asks for.
    fn open_items(&mut self, kind: Aggregate, items: usize, elements: Table, len: usize) {
        let begin = self.out.len();
        encode::aggregate(self.out, self.dialect.client, kind, items);
        self.open.push(Open { table: elements, next: 1, len: Some(len), begin });
    }

    /// Writes or begins a table with a field that has a meaning; false if it has none.
    fn named(&mut self, table: &Table) -> Result<bool> {
        let (out, client) = (&mut *self.out, self.dialect.client);
        let field = |name: &str| table.raw_get::<Value>(name);
        if let Value::String(text) = field("err")? {
            encode::error(out, &text.as_bytes());
        } else if let Value::String(text) = field("ok")? {
            encode::simple(out, &text.as_bytes());
        } else if let Some(number) = as_number(&field("double")?) {
            encode::double(out, client, number);
        } else if let Value::String(digits) = field("big_number")? {
            let digits: Vec<u8> =
                digits.as_bytes().iter().map(|byte| without_line_end(*byte)).collect();
            encode::big_number(out, client, &digits);
        } else if encode_verbatim(&field("verbatim_string")?, client, out)? {
            // It is written.
        } else if let Value::Table(map) = field("map")? {
            let (elements, pairs) = self.keys(&map, true)?;
            self.open_items(Aggregate::Map, pairs, elements, 2 * pairs);
        } else if let Value::Table(set) = field("set")? {
            let (elements, members) = self.keys(&set, false)?;
            self.open_items(Aggregate::Set, members, elements, members);
        } else {
            return Ok(false);
        }
        Ok(true)
    }

    /// The keys of a table as a list, each followed by its value if wanted, and how many keys there are.
    fn keys(&self, table: &Table, with_values: bool) -> Result<(Table, usize)> {
        let (list, mut count, mut len) = (self.dialect.lua.create_table()?, 0, 0);
        for pair in table.pairs::<Value, Value>() {
            if let Allowance::Watched(watch) = &self.dialect.allowance {
                watch.step(self.out.len())?;
            }
            let (key, value) = pair?;
            count += 1;
            len += 1;
            list.raw_set(len, key)?;
            if with_values {
                len += 1;
                list.raw_set(len, value)?;
            }
        }
        Ok((list, count))
    }
}

fn encode_verbatim(value: &Value, client: Protocol, out: &mut Vec<u8>) -> Result<bool> {
    let Value::Table(table) = value else { return Ok(false) };
    let (Value::String(format), Value::String(text)) =
        (table.raw_get::<Value>("format")?, table.raw_get::<Value>("string")?)
    else {
        return Ok(false);
    };
    let mut letters = *b"   ";
    for (to, from) in letters.iter_mut().zip(format.as_bytes().iter()) {
        *to = *from;
    }
    encode::verbatim(out, client, letters, &text.as_bytes());
    Ok(true)
}

fn as_number(value: &Value) -> Option<f64> {
    match value {
        Value::Integer(number) => Some(*number as f64),
        Value::Number(number) => Some(*number),
        _ => None,
    }
}

fn without_line_end(byte: u8) -> u8 {
    if matches!(byte, b'\r' | b'\n') { b' ' } else { byte }
}
