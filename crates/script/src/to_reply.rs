//! Converts the value that a script returns to the reply for its client.

use crate::interpreter::Watch;
use crate::libraries::{RESULT_BYTES_MAX, STACK_SLOTS_MAX, c_string, truncated};
use crate::pairs::{self, COLLECTED_MAX, Pairs};
use brisk_resp::Protocol;
use brisk_resp::reply::encode::{self, Aggregate};
use mlua::{Function, Lua, LuaString, Result, Table, Value};
use std::cell::Cell;

/// Maximum number of slots of the Lua 5.1 stack that may be in use below a value. A deeper value
/// becomes an error within the reply. A list uses one slot for the element that is being written. A
/// table with keys uses three or four slots for its pair. Another six are reserved.
const SLOTS_MAX: usize = STACK_SLOTS_MAX - 6;
/// Slots used by a list for its elements; by a pair for its value, or by a set for its member; and
/// by a pair for its key.
const ELEMENT_SLOTS: usize = 1;
const VALUE_SLOTS: usize = 3;
const KEY_SLOTS: usize = 4;
/// Maximum nesting of a value that is written immediately.
const DEPTH_AT_ONCE: usize = 64;

/// Maximum length of a reply without its last element: twice the length of the longest string. A
/// table may contain another table many times, and that table yet another, so a small table may
/// have an endless reply.
const REPLY_BYTES_MAX: usize = 2 * RESULT_BYTES_MAX;

/// The encoding of values, and the limit on how many may be written.
pub(crate) struct Conversion {
    pub(crate) lua: Lua,
    /// The client's protocol.
    pub(crate) client: Protocol,
    /// The protocol that the script chose with `redis.setresp`. In RESP2, `false` becomes null.
    pub(crate) script: Protocol,
    pub(crate) allowance: Allowance,
}

/// The limit on what may be written.
pub(crate) enum Allowance {
    /// Up to a number of values, and up to a length of the output. Exceeding either is an error.
    AtOnce { values: Cell<u32>, end: usize },
    /// The writer runs on the script's stack, and yields as the script does.
    Watched(Watch),
}

impl Allowance {
    /// Called before each value, with the length that the output will then have.
    #[inline]
    fn step(&self, end: usize) -> Result<()> {
        match self {
            Allowance::AtOnce { values, end: last } => {
                let left = values.get().saturating_sub(1);
                if left == 0 || end > *last {
                    return self.refuse_at_once();
                }
                values.set(left);
                Ok(())
            }
            Allowance::Watched(watch) => watch.step(end),
        }
    }

    /// Returns an error if the value is to be written immediately.
    #[cold]
    fn refuse_at_once(&self) -> Result<()> {
        let Allowance::AtOnce { values, .. } = self else { return Ok(()) };
        values.set(0);
        Err(mlua::Error::runtime("too much"))
    }
}

impl Conversion {
    /// True if this limit is the reason why there is no reply.
    pub(crate) fn is_too_long(&self) -> bool {
        matches!(&self.allowance, Allowance::AtOnce { values, .. } if values.get() == 0)
    }

    /// Called before a value is written after `written` bytes, with the known part of its length.
    #[inline]
    fn allow(&self, written: usize, len: usize) -> Result<()> {
        if written > REPLY_BYTES_MAX {
            return Err(too_long());
        }
        self.allowance.step(written + len)
    }

    /// Writes a value that is not a table.
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

#[cold]
fn too_long() -> mlua::Error {
    mlua::Error::runtime(format!("the reply is longer than {REPLY_BYTES_MAX} bytes"))
}

/// Appends the reply. With `is_list`, the value is a table without a field that has a special
/// meaning.
pub(crate) fn encode(
    value: &Value,
    is_list: bool,
    conversion: &Conversion,
    out: &mut Vec<u8>,
) -> Result<()> {
    let mut encoder = Encoder { conversion, out, open: Vec::new(), collected: 0, next: None };
    match value {
        Value::Table(table) if is_list => encoder.open_list(table, 0)?,
        Value::Table(table) => encoder.table(table, 0)?,
        scalar => conversion.scalar(scalar, encoder.out)?,
    }
    while encoder.step()? {}
    Ok(())
}

/// Writes a value without recursion: tables may be nested deeper than the stack allows.
struct Encoder<'a> {
    conversion: &'a Conversion,
    out: &'a mut Vec<u8>,
    open: Vec<Open>,
    /// How many pairs `open` holds.
    collected: usize,
    /// Lua's function of that name, after its first use.
    next: Option<Function>,
}

/// A table whose items are being written.
struct Open {
    items: Items,
    /// Slots in use below it.
    slots: usize,
}

enum Items {
    /// Elements starting at `next`, up to the first that is nil if their number is unknown. For a
    /// list that is written immediately, starting at `begin`, the number of elements is known only
    /// at the end. Inserting the number moves the written bytes. With deep nesting that would take
    /// quadratic time, so the elements are counted first in that case.
    List { table: Table, next: usize, len: Option<usize>, begin: usize },
    /// Keys, or keys and values; `value` is that of the previous key.
    Pairs { pairs: Pairs, has_values: bool, value: Option<Value> },
}

impl Encoder<'_> {
    /// Writes the next items up to a nested table, which is opened, or up to the end of the
    /// innermost open one. Returns false when none is open.
    fn step(&mut self) -> Result<bool> {
        let Some(open) = self.open.last_mut() else { return Ok(false) };
        loop {
            let (item, slots) = match &mut open.items {
                Items::List { table, next, len, .. } => {
                    if len.is_some_and(|len| *next > len) {
                        break;
                    }
                    let element: Value = table.raw_get(*next)?;
                    if element.is_nil() && len.is_none() {
                        break;
                    }
                    *next += 1;
                    (element, ELEMENT_SLOTS)
                }
                Items::Pairs { pairs, has_values, value } => match value.take() {
                    Some(value) => (value, VALUE_SLOTS),
                    None => {
                        let next = match &mut self.next {
                            Some(next) => next,
                            none => none.insert(pairs::next(&self.conversion.lua)?),
                        };
                        let Some((key, its)) = pairs.following(next, &mut self.collected)? else {
                            break;
                        };
                        *value = has_values.then_some(its);
                        (key, if *has_values { KEY_SLOTS } else { VALUE_SLOTS })
                    }
                },
            };
            let slots = open.slots + slots;
            if slots > SLOTS_MAX {
                self.conversion.allow(self.out.len(), 0)?;
                encode::error(self.out, b"ERR reached lua stack limit");
            } else if let Value::Table(table) = &item {
                self.table(table, slots)?;
                return Ok(true);
            } else {
                self.conversion.scalar(&item, self.out)?;
            }
        }
        if let Some(Open { items: Items::List { len: None, next, begin, .. }, .. }) =
            self.open.pop()
        {
            let client = self.conversion.client;
            encode::insert_aggregate(self.out, begin, client, Aggregate::Array, next - 1);
        }
        Ok(true)
    }

    /// Writes a table with a field that defines its type, or opens its elements.
    fn table(&mut self, table: &Table, slots: usize) -> Result<()> {
        self.conversion.allow(self.out.len(), 0)?;
        if self.named(table, slots)? { Ok(()) } else { self.open_list(table, slots) }
    }

    fn push(&mut self, items: Items, slots: usize) -> Result<()> {
        if self.open.len() >= DEPTH_AT_ONCE {
            self.conversion.allowance.refuse_at_once()?;
        }
        self.open.push(Open { items, slots });
        Ok(())
    }

    /// Opens the elements up to the first that is nil.
    fn open_list(&mut self, table: &Table, slots: usize) -> Result<()> {
        let (mut known, begin) = (None, self.out.len());
        if let Allowance::Watched(watch) = &self.conversion.allowance {
            let mut len = 0;
            while table.raw_get::<Value>(len + 1)? != Value::Nil {
                watch.step(begin)?;
                len += 1;
            }
            encode::aggregate(self.out, self.conversion.client, Aggregate::Array, len);
            known = Some(len);
        }
        self.push(Items::List { table: table.clone(), next: 1, len: known, begin }, slots)
    }

    /// Opens the keys of a table, with or without their values.
    fn open_pairs(&mut self, kind: Aggregate, table: &Table, slots: usize) -> Result<()> {
        let (mut count, mut collected) = (0, Vec::new());
        table.for_each(|key: Value, value: Value| {
            self.conversion.allow(self.out.len(), 0)?;
            count += 1;
            // One pair is always collected, so that the others can be found after it.
            if collected.is_empty() || self.collected + collected.len() < COLLECTED_MAX {
                collected.push((key, value));
            }
            Ok(())
        })?;
        encode::aggregate(self.out, self.conversion.client, kind, count);
        self.collected += collected.len();
        let is_part = collected.len() < count;
        let pairs = Pairs::new(table, collected, is_part);
        self.push(Items::Pairs { pairs, has_values: kind == Aggregate::Map, value: None }, slots)
    }

    /// Writes or opens a table with a field that has a special meaning. Returns false if it has
    /// none.
    fn named(&mut self, table: &Table, slots: usize) -> Result<bool> {
        let (conversion, client) = (self.conversion, self.conversion.client);
        let coming = |out: &Vec<u8>, len| conversion.allow(out.len(), len);
        let out = &mut *self.out;
        let field = |name: &str| table.raw_get::<Value>(name);
        if let Value::String(text) = field("err")? {
            let text = text.as_bytes();
            coming(out, text.len())?;
            encode::error(out, error_text(&text));
        } else if let Value::String(text) = field("ok")? {
            let text = text.as_bytes();
            coming(out, text.len())?;
            encode::simple(out, c_string(&text));
        } else if let Some(number) = as_number(&field("double")?) {
            encode::double(out, client, number);
        } else if let Value::String(digits) = field("big_number")? {
            let digits = digits.as_bytes();
            coming(out, digits.len())?;
            let digits: Vec<u8> = digits.iter().map(|byte| without_line_end(*byte)).collect();
            encode::big_number(out, client, &digits);
        } else if let Some((letters, text)) = verbatim(&field("verbatim_string")?)? {
            let text = text.as_bytes();
            coming(out, text.len())?;
            encode::verbatim(out, client, letters, &text);
        } else if let Value::Table(map) = field("map")? {
            self.open_pairs(Aggregate::Map, &map, slots)?;
        } else if let Value::Table(set) = field("set")? {
            self.open_pairs(Aggregate::Set, &set, slots)?;
        } else {
            return Ok(false);
        }
        Ok(true)
    }
}

/// Returns the padded format of a verbatim string, and its text, if the value is one.
fn verbatim(value: &Value) -> Result<Option<([u8; 3], LuaString)>> {
    let Value::Table(table) = value else { return Ok(None) };
    let (Value::String(format), Value::String(text)) =
        (table.raw_get::<Value>("format")?, table.raw_get::<Value>("string")?)
    else {
        return Ok(None);
    };
    let mut letters = *b"   ";
    for (to, from) in letters.iter_mut().zip(c_string(&format.as_bytes())) {
        *to = *from;
    }
    Ok(Some((letters, text)))
}

/// Returns the text of an error reply without trailing line ends.
pub(crate) fn error_text(text: &[u8]) -> &[u8] {
    let mut text = c_string(text);
    while let [rest @ .., b'\r' | b'\n'] = text {
        text = rest;
    }
    text
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
