//! Lua values from MessagePack. Incomplete tables are kept in a list, so nesting uses no stack. A
//! declared length allocates nothing before the elements are read.

use super::tag;
use crate::libraries::STACK_SLOTS_MAX;
use crate::libraries::call::{Failure, Outcome};
use mlua::{Lua, MultiValue, Table, Value};

/// The stack slots that the C library uses for the string, and for an open table with its index or
/// key.
const SLOTS_AT_START: usize = 1;
const TABLE_SLOTS: usize = 2;

/// Unpacks `limit` values starting at `offset`. Returns the next offset (-1 at the end), followed
/// by the values. If `limit` and `offset` are both 0, returns all values without an offset.
pub(super) fn unpack(lua: &Lua, bytes: &[u8], limit: i64, offset: i64) -> Outcome {
    let len = bytes.len();
    let (Ok(limit), Ok(offset)) = (usize::try_from(limit), usize::try_from(offset)) else {
        // The C library reports the length as the limit.
        return Err(Failure::raised(format!(
            "Invalid request to unpack with offset of {} and limit of {}.",
            offset as i32, len as i32
        )));
    };
    let Some(rest) = bytes.get(offset..) else {
        return Err(Failure::raised(format!(
            "Start offset {} greater than input length {}.",
            offset as i32, len as i32
        )));
    };
    let all = limit == 0 && offset == 0;
    let limit = if all { usize::MAX } else { limit };
    let mut unpacker = Unpacker { lua, rest, open: Vec::new() };
    let mut results = MultiValue::new();
    while !unpacker.rest.is_empty() && results.len() < limit {
        let value = unpacker.value(SLOTS_AT_START + results.len())?;
        results.push_back(value);
    }
    if !all {
        if SLOTS_AT_START + results.len() + 1 > STACK_SLOTS_MAX {
            return Err(Failure::raised("stack overflow (in function mp_unpack_full)"));
        }
        let left = unpacker.rest.len();
        let next = if left == 0 { -1.0 } else { (len - left) as f64 };
        results.push_front(Value::Number(next));
    }
    Ok(results)
}

struct Unpacker<'a> {
    lua: &'a Lua,
    rest: &'a [u8],
    open: Vec<Open>,
}

/// A table with the number of its missing elements, which is not zero.
enum Open {
    Array {
        table: Table,
        len: usize,
        left: u32,
    },
    /// The key is nil if it has not been read yet.
    Map {
        table: Table,
        key: Option<Value>,
        left: u32,
    },
}

/// The kind of value that a first byte begins.
enum Begun {
    Whole(Value),
    Array(u32),
    Map(u32),
}

impl<'a> Unpacker<'a> {
    /// Reads a value at a point at which the C library would use `slots` stack slots.
    fn value(&mut self, slots: usize) -> Result<Value, Failure> {
        let mut slots = slots;
        loop {
            let begun = self.begin(slots)?;
            if matches!(begun, Begun::Array(_)) && slots + TABLE_SLOTS > STACK_SLOTS_MAX {
                let text = "stack overflow (in function mp_decode_to_lua_array)";
                return Err(Failure::raised(text));
            }
            let table = |len: u32| {
                // There cannot be more elements than bytes left, and reserving more than a page is
                // not worth it.
                let capacity = (len as usize).min(self.rest.len()).min(64);
                self.lua.create_table_with_capacity(capacity, 0)
            };
            let mut value = match begun {
                Begun::Whole(value) => value,
                Begun::Array(0) | Begun::Map(0) => Value::Table(self.lua.create_table()?),
                Begun::Array(left) => {
                    self.open.push(Open::Array { table: table(left)?, len: 0, left });
                    slots += TABLE_SLOTS;
                    continue;
                }
                Begun::Map(left) => {
                    let table = self.lua.create_table()?;
                    self.open.push(Open::Map { table, key: None, left });
                    slots += 1;
                    continue;
                }
            };
            // Adds a complete value to its table, which may complete the enclosing table.
            loop {
                match self.open.last_mut() {
                    None => return Ok(value),
                    Some(Open::Array { table, len, left }) => {
                        *len += 1;
                        *left -= 1;
                        // A nil leaves its index empty.
                        if !value.is_nil() {
                            table.raw_seti(*len, value)?;
                        }
                        if *left > 0 {
                            break;
                        }
                        slots -= TABLE_SLOTS;
                    }
                    Some(Open::Map { table, key, left }) => match key.take() {
                        None => {
                            *key = Some(value);
                            slots += 1;
                            break;
                        }
                        Some(key) => {
                            set(table, key, value)?;
                            *left -= 1;
                            slots -= 1;
                            if *left > 0 {
                                break;
                            }
                            slots -= 1;
                        }
                    },
                }
                value = match self.open.pop() {
                    Some(Open::Array { table, .. } | Open::Map { table, .. }) => {
                        Value::Table(table)
                    }
                    None => Value::Nil,
                };
            }
        }
    }

    fn begin(&mut self, slots: usize) -> Result<Begun, Failure> {
        let [first] = self.take()?;
        if slots + 1 > STACK_SLOTS_MAX {
            return Err(Failure::raised(
                "stack overflow (too many return values at once; \
                 use unpack_one or unpack_limit instead.)",
            ));
        }
        let number = |number: f64| Ok(Begun::Whole(Value::Number(number)));
        match first {
            0..=0x7f => number(f64::from(first)),
            0xe0..=0xff => number(f64::from(first as i8)),
            0x80..=0x8f => Ok(Begun::Map(u32::from(first & 0xf))),
            0x90..=0x9f => Ok(Begun::Array(u32::from(first & 0xf))),
            0xa0..=0xbf => self.string(u32::from(first & 0x1f)),
            tag::NIL => Ok(Begun::Whole(Value::Nil)),
            tag::FALSE => Ok(Begun::Whole(Value::Boolean(false))),
            tag::TRUE => Ok(Begun::Whole(Value::Boolean(true))),
            tag::FLOAT32 => number(f64::from(f32::from_be_bytes(self.take()?))),
            tag::FLOAT64 => number(f64::from_be_bytes(self.take()?)),
            tag::UINT8 => number(f64::from(u8::from_be_bytes(self.take()?))),
            tag::UINT16 => number(f64::from(u16::from_be_bytes(self.take()?))),
            tag::UINT32 => number(f64::from(u32::from_be_bytes(self.take()?))),
            // The C library reads the upper half of its range as negative numbers.
            tag::UINT64 | tag::INT64 => number(i64::from_be_bytes(self.take()?) as f64),
            tag::INT8 => number(f64::from(i8::from_be_bytes(self.take()?))),
            tag::INT16 => number(f64::from(i16::from_be_bytes(self.take()?))),
            tag::INT32 => number(f64::from(i32::from_be_bytes(self.take()?))),
            tag::STRING8 => {
                let [len] = self.take()?;
                self.string(u32::from(len))
            }
            tag::STRING16 => {
                let len = self.len16()?;
                self.string(len)
            }
            tag::STRING32 => {
                let len = self.len32()?;
                self.string(len)
            }
            tag::ARRAY16 => Ok(Begun::Array(self.len16()?)),
            tag::ARRAY32 => Ok(Begun::Array(self.len32()?)),
            tag::MAP16 => Ok(Begun::Map(self.len16()?)),
            tag::MAP32 => Ok(Begun::Map(self.len32()?)),
            _ => Err(Failure::raised("Bad data format in input.")),
        }
    }

    fn take<const N: usize>(&mut self) -> Result<[u8; N], Failure> {
        let (bytes, rest) = self.rest.split_first_chunk().ok_or_else(missing)?;
        self.rest = rest;
        Ok(*bytes)
    }

    fn len16(&mut self) -> Result<u32, Failure> {
        Ok(u32::from(u16::from_be_bytes(self.take()?)))
    }

    fn len32(&mut self) -> Result<u32, Failure> {
        Ok(u32::from_be_bytes(self.take()?))
    }

    fn string(&mut self, len: u32) -> Result<Begun, Failure> {
        let (bytes, rest) = self.rest.split_at_checked(len as usize).ok_or_else(missing)?;
        self.rest = rest;
        Ok(Begun::Whole(Value::String(self.lua.create_string(bytes)?)))
    }
}

fn missing() -> Failure {
    Failure::raised("Missing bytes in input.")
}

fn set(table: &Table, key: Value, value: Value) -> Result<(), Failure> {
    match &key {
        Value::Nil => Err(Failure::Unplaced("table index is nil")),
        Value::Number(number) if number.is_nan() => Err(Failure::Unplaced("table index is NaN")),
        _ => Ok(table.raw_set(key, value)?),
    }
}
