//! `bit`: operations on 32-bit integers. Arguments are taken modulo 2^32, results are signed.

use super::call::{Args, Failure, Library, Outcome, one, string};
use mlua::{Lua, Value};

/// Adding this to a double leaves its integer part, modulo 2^32, in the low half of the sum's bits;
/// fractions are rounded to the nearest even.
const ALIGN: f64 = 6_755_399_441_055_744.0; // 2^52 + 2^51

/// The number of digits that `tohex` writes by default, and at most.
const HEX_DIGITS_MAX: u32 = 8;

/// Sets the global `bit`.
pub fn install(lua: &Lua) -> mlua::Result<()> {
    let library = Library::new(lua, "bit")?;
    library.function("tobit", |_, args| reply(bits(&args, 1)?))?;
    library.function("bnot", |_, args| reply(!bits(&args, 1)?))?;
    library.function("band", |_, args| fold(&args, |a, b| a & b))?;
    library.function("bor", |_, args| fold(&args, |a, b| a | b))?;
    library.function("bxor", |_, args| fold(&args, |a, b| a ^ b))?;
    library.function("lshift", |_, args| shift(&args, |bits, by| bits << by))?;
    library.function("rshift", |_, args| shift(&args, |bits, by| bits >> by))?;
    library.function("arshift", |_, args| shift(&args, |bits, by| (bits as i32 >> by) as u32))?;
    library.function("rol", |_, args| shift(&args, u32::rotate_left))?;
    library.function("ror", |_, args| shift(&args, u32::rotate_right))?;
    library.function("bswap", |_, args| reply(bits(&args, 1)?.swap_bytes()))?;
    library.function("tohex", |lua, args| to_hex(lua, &args))?;
    library.install()
}

fn bits(args: &Args, position: usize) -> Result<u32, Failure> {
    Ok((args.number(position)? + ALIGN).to_bits() as u32)
}

fn reply(bits: u32) -> Outcome {
    Ok(one(Value::Number(f64::from(bits as i32))))
}

/// Combines all arguments. Invalid ones are detected in the order first, last, second to last ...
fn fold(args: &Args, combine: impl Fn(u32, u32) -> u32) -> Outcome {
    let mut result = bits(args, 1)?;
    for position in (2..=args.len()).rev() {
        result = combine(result, bits(args, position)?);
    }
    reply(result)
}

fn shift(args: &Args, apply: impl Fn(u32, u32) -> u32) -> Outcome {
    let value = bits(args, 1)?;
    reply(apply(value, bits(args, 2)? & 31))
}

fn to_hex(lua: &Lua, args: &Args) -> Outcome {
    let value = bits(args, 1)?;
    // A nil is an argument too, and not a number.
    let width = if args.len() < 2 { HEX_DIGITS_MAX as i32 } else { bits(args, 2)? as i32 };
    let text = if width < 0 { format!("{value:08X}") } else { format!("{value:08x}") };
    let digits = width.unsigned_abs().min(HEX_DIGITS_MAX) as usize;
    string(lua, &text.as_bytes()[text.len() - digits..])
}
