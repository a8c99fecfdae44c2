//! MessagePack from Lua values. Numbers take the fewest bytes that hold them. Tables become arrays
//! if their keys are 1 to n, otherwise maps. Values without a MessagePack form become nil.

use super::tag;
use crate::interpreter::Watch;
use crate::libraries::call::{Args, Failure, Outcome, as_number, string};
use crate::libraries::number::truncated;
use crate::libraries::{RESULT_BYTES_MAX, STACK_SLOTS_MAX};
use mlua::{Lua, Table, Value};

/// Tables nested deeper than this become nil. This also bounds the recursion here.
const NESTING_MAX: usize = 16;

pub(super) fn pack(lua: &Lua, args: &Args) -> Outcome {
    if args.len() == 0 {
        return Err(Failure::argument(0, "MessagePack pack needs input."));
    }
    // The C library's stack holds each argument twice.
    if args.len() * 2 > STACK_SLOTS_MAX {
        return Err(Failure::argument(0, "Too many arguments for MessagePack pack."));
    }
    let (mut out, watch) = (Vec::new(), Watch::of(lua));
    for value in &args.0 {
        pack_value(&mut out, value, 0, &watch)?;
    }
    string(lua, &out)
}

fn pack_value(
    out: &mut Vec<u8>,
    value: &Value,
    level: usize,
    watch: &Watch,
) -> Result<(), Failure> {
    watch.step(out.len())?;
    match value {
        Value::String(text) => pack_string(out, &text.as_bytes())?,
        Value::Boolean(true) => out.push(tag::TRUE),
        Value::Boolean(false) => out.push(tag::FALSE),
        Value::Table(table) if level < NESTING_MAX => pack_table(out, table, level, watch)?,
        other => match as_number(other) {
            Some(number) => pack_number(out, number),
            None => out.push(tag::NIL),
        },
    }
    if out.len() > RESULT_BYTES_MAX { Err(Failure::too_long()) } else { Ok(()) }
}

fn pack_number(out: &mut Vec<u8>, number: f64) {
    let integer = truncated(number);
    if integer as f64 == number {
        return pack_integer(out, integer);
    }
    let float = number as f32;
    if f64::from(float) == number {
        out.push(tag::FLOAT32);
        out.extend_from_slice(&float.to_be_bytes());
    } else {
        out.push(tag::FLOAT64);
        out.extend_from_slice(&number.to_be_bytes());
    }
}

fn pack_integer(out: &mut Vec<u8>, integer: i64) {
    let bytes = integer.to_be_bytes();
    let (tag, len) = match integer {
        -32..=127 => return out.push(integer as u8),
        128..=0xff => (tag::UINT8, 1),
        0x100..=0xffff => (tag::UINT16, 2),
        0x1_0000..=0xffff_ffff => (tag::UINT32, 4),
        0x1_0000_0000.. => (tag::UINT64, 8),
        -0x80.. => (tag::INT8, 1),
        -0x8000.. => (tag::INT16, 2),
        -0x8000_0000.. => (tag::INT32, 4),
        _ => (tag::INT64, 8),
    };
    out.push(tag);
    out.extend_from_slice(&bytes[bytes.len() - len..]);
}

fn pack_string(out: &mut Vec<u8>, bytes: &[u8]) -> Result<(), Failure> {
    if out.len() + bytes.len() > RESULT_BYTES_MAX {
        return Err(Failure::too_long());
    }
    let len = bytes.len() as u32; // below the limit above
    match len {
        0..32 => out.push(0xa0 | len as u8),
        32..=0xff => out.extend_from_slice(&[tag::STRING8, len as u8]),
        _ => pack_len(out, len, tag::STRING16, tag::STRING32),
    }
    out.extend_from_slice(bytes);
    Ok(())
}

fn pack_len(out: &mut Vec<u8>, len: u32, tag16: u8, tag32: u8) {
    if let Ok(short) = u16::try_from(len) {
        out.push(tag16);
        out.extend_from_slice(&short.to_be_bytes());
    } else {
        out.push(tag32);
        out.extend_from_slice(&len.to_be_bytes());
    }
}

fn pack_table(
    out: &mut Vec<u8>,
    table: &Table,
    level: usize,
    watch: &Watch,
) -> Result<(), Failure> {
    let (len, is_array) = measure(table)?;
    let (fixed, tag16, tag32) =
        if is_array { (0x90, tag::ARRAY16, tag::ARRAY32) } else { (0x80, tag::MAP16, tag::MAP32) };
    match len {
        0..16 => out.push(fixed | len as u8),
        _ => pack_len(out, len, tag16, tag32),
    }
    if is_array {
        for index in 1..=len {
            let value: Value = table.raw_get(f64::from(index))?;
            pack_value(out, &value, level + 1, watch)?;
        }
        return Ok(());
    }
    let mut failed = None;
    let walked = table.for_each(|key: Value, value: Value| {
        let packed = pack_value(out, &key, level + 1, watch);
        packed.and_then(|()| pack_value(out, &value, level + 1, watch)).map_err(|failure| {
            failed = Some(failure);
            mlua::Error::StackError // ends the iteration
        })
    });
    failed.map_or(Ok(walked?), Err)
}

/// Returns the number of keys, and true if they are 1 to that number.
fn measure(table: &Table) -> Result<(u32, bool), Failure> {
    let (mut len, mut max, mut indices) = (0u32, 0.0f64, true);
    table.for_each(|key: Value, _: Value| {
        len = len.saturating_add(1);
        match as_number(&key) {
            Some(index) if index > 0.0 && index.trunc() == index => max = max.max(index),
            _ => indices = false,
        }
        Ok(())
    })?;
    Ok((len, indices && max == f64::from(len)))
}
