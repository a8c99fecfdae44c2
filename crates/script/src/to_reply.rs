//! From the value that a script returns to the reply that its client gets.

use crate::interpreter::Watch;
use crate::libraries::{RESULT_BYTES_MAX, truncated};
use brisk_resp::Protocol;
use brisk_resp::reply::encode::{self, Aggregate};
use mlua::{Result, Table, Value};
use std::cell::Cell;

/// How deep tables may be nested; what is deeper becomes an error within the reply.
const DEPTH_MAX: usize = 1000;

/// The longest reply, but for its last element: the longest string and as much beside it. A table may
/// contain another many times, and that yet another, so a small one may have a reply without end.
const REPLY_BYTES_MAX: usize = 2 * RESULT_BYTES_MAX;

/// How values look on the wire, and how many may be written.
pub(crate) struct Dialect {
    /// The client's protocol.
    pub(crate) client: Protocol,
    /// The one that the script chose with `redis.setresp`: in that of RESP2, `false` is null.
    pub(crate) script: Protocol,
    pub(crate) allowance: Allowance,
}

/// How much may be written.
pub(crate) enum Allowance {
    /// So many values: when none are left, that is an error.
    Values(Cell<u32>),
    /// What gives way as the script does, on whose stack it runs.
    Watched(Watch),
}

impl Allowance {
    fn step(&self) -> Result<()> {
        match self {
            Allowance::Values(left) => {
                left.set(left.get().saturating_sub(1));
                if left.get() == 0 { Err(mlua::Error::runtime("too many values")) } else { Ok(()) }
            }
            Allowance::Watched(watch) => watch.step(),
        }
    }
}

impl Dialect {
    /// Whether that is why there is no reply.
    pub(crate) fn is_too_long(&self) -> bool {
        matches!(&self.allowance, Allowance::Values(left) if left.get() == 0)
    }
}

/// Appends the reply. `is_list`: it is a table none of whose fields has a meaning.
pub(crate) fn encode(
    value: &Value,
    is_list: bool,
    dialect: &Dialect,
    out: &mut Vec<u8>,
) -> Result<()> {
    match value {
        Value::Table(table) if is_list => encode_list(table, dialect, out, 1),
        _ => encode_at(value, dialect, out, 0),
    }
}

fn encode_at(value: &Value, dialect: &Dialect, out: &mut Vec<u8>, depth: usize) -> Result<()> {
    if out.len() > REPLY_BYTES_MAX {
        let text = format!("the reply is longer than {REPLY_BYTES_MAX} bytes");
        return Err(mlua::Error::runtime(text));
    }
    dialect.allowance.step()?;
    match value {
        Value::String(text) => encode::bulk(out, &text.as_bytes()),
        Value::Integer(number) => encode::integer(out, *number),
        Value::Number(number) => encode::integer(out, truncated(*number)),
        Value::Boolean(truth) => match dialect.script {
            Protocol::Resp3 => encode::boolean(out, dialect.client, *truth),
            Protocol::Resp2 if *truth => encode::integer(out, 1),
            Protocol::Resp2 => encode::null(out, dialect.client),
        },
        Value::Table(_) if depth >= DEPTH_MAX => encode::error(out, b"ERR reached lua stack limit"),
        Value::Table(table) => return encode_table(table, dialect, out, depth + 1),
        _ => encode::null(out, dialect.client),
    }
    Ok(())
}

fn encode_table(table: &Table, dialect: &Dialect, out: &mut Vec<u8>, depth: usize) -> Result<()> {
    if encode_named(table, dialect, out, depth)? {
        return Ok(());
    }
    encode_list(table, dialect, out, depth)
}

fn encode_list(table: &Table, dialect: &Dialect, out: &mut Vec<u8>, depth: usize) -> Result<()> {
    let begin = out.len();
    let mut count = 0;
    loop {
        let element: Value = table.raw_get(count + 1)?;
        if element.is_nil() {
            break;
        }
        encode_at(&element, dialect, out, depth)?;
        count += 1;
    }
    encode::insert_aggregate(out, begin, dialect.client, Aggregate::Array, count);
    Ok(())
}

/// Writes a table with a field that has a meaning; false if it has none.
fn encode_named(table: &Table, dialect: &Dialect, out: &mut Vec<u8>, depth: usize) -> Result<bool> {
    let client = dialect.client;
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
        let begin = out.len();
        let mut pairs = 0;
        for pair in map.pairs::<Value, Value>() {
            let (key, value) = pair?;
            encode_at(&key, dialect, out, depth)?;
            encode_at(&value, dialect, out, depth)?;
            pairs += 1;
        }
        encode::insert_aggregate(out, begin, client, Aggregate::Map, pairs);
    } else if let Value::Table(set) = field("set")? {
        let begin = out.len();
        let mut members = 0;
        for pair in set.pairs::<Value, Value>() {
            encode_at(&pair?.0, dialect, out, depth)?;
            members += 1;
        }
        encode::insert_aggregate(out, begin, client, Aggregate::Set, members);
    } else {
        return Ok(false);
    }
    Ok(true)
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
