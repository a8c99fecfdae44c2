//! `cjson`: JSON from Lua values (`encode.rs`) and back (`decode.rs`), and the settings of both.
//!
//! Settings belong to the module, so they outlast a script. `cjson.new` creates another module with
//! its own settings. `cjson.null` represents null in decoded values, because a table cannot hold
//! nil.

mod decode;
mod encode;

use super::call::{Args, Failure, Library, Outcome, one, string};
use super::number::{PRECISION, c_string};
use brisk_structures::poison::EvenPoisoned;
use mlua::{Lua, MultiValue, Table, Value};
use std::ops::RangeInclusive;
use std::sync::{Arc, Mutex, MutexGuard};

/// How infinities and NaN are handled.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum InvalidNumbers {
    Refused,
    Written,
    Null,
}

impl InvalidNumbers {
    const ALL: [InvalidNumbers; 3] =
        [InvalidNumbers::Refused, InvalidNumbers::Written, InvalidNumbers::Null];
}

/// The settings of a module, with the C library's names, types and defaults.
#[derive(Debug, Clone)]
struct Config {
    encode_sparse_convert: bool,
    encode_sparse_ratio: i32,
    encode_sparse_safe: i32,
    encode_max_depth: i32,
    encode_invalid_numbers: InvalidNumbers,
    encode_number_precision: i32,
    /// Has no effect at all.
    encode_keep_buffer: bool,
    decode_invalid_numbers: bool,
    decode_max_depth: i32,
}

impl Default for Config {
    fn default() -> Config {
        Config {
            encode_sparse_convert: false,
            encode_sparse_ratio: 2,
            encode_sparse_safe: 10,
            encode_max_depth: 1_000,
            encode_invalid_numbers: InvalidNumbers::Refused,
            encode_number_precision: PRECISION as i32,
            encode_keep_buffer: true,
            decode_invalid_numbers: true,
            decode_max_depth: 1_000,
        }
    }
}

/// The settings, shared by a module's functions.
#[derive(Debug, Clone, Default)]
struct Shared(Arc<Mutex<Config>>);

impl Shared {
    fn lock(&self) -> MutexGuard<'_, Config> {
        self.0.lock().even_poisoned()
    }
}

/// Sets the global `cjson`.
pub fn install(lua: &Lua) -> mlua::Result<()> {
    lua.globals().raw_set("cjson", module(lua)?)
}

fn module(lua: &Lua) -> mlua::Result<Table> {
    let library = Library::new(lua, "cjson")?;
    let config = Shared::default();
    let shared = config.clone();
    let next = crate::pairs::next(lua)?;
    library.function("encode", move |lua, args| {
        let value = only(&args)?;
        encode::encode(lua, &next, &shared.lock(), value)
    })?;
    let shared = config.clone();
    library.function("decode", move |lua, args| {
        only(&args)?;
        decode::decode(lua, &shared.lock(), &args.text(1)?)
    })?;
    settings(&library, &config)?;
    library.function("new", |lua, _| Ok(one(Value::Table(module(lua)?))))?;
    library.table.raw_set("null", Value::NULL)?;
    library.table.raw_set("_NAME", "cjson")?;
    library.table.raw_set("_VERSION", "2.1.0")?;
    Ok(library.table)
}

fn only(args: &Args) -> Result<&Value, Failure> {
    match args.get(1) {
        Some(value) if args.len() == 1 => Ok(value),
        _ => Err(Failure::argument(1, "expected 1 argument")),
    }
}

/// A function that changes a setting according to its arguments, and returns the value that then
/// applies.
type Setting = fn(&Lua, &mut Config, &Args) -> Outcome;

const SETTINGS: [(&str, usize, Setting); 7] = [
    ("encode_sparse_array", 3, |_, config, args| {
        let convert = on_or_off(args, &mut config.encode_sparse_convert)?;
        let ratio = integer(args, 2, &mut config.encode_sparse_ratio, 0..=i32::MAX)?;
        let safe = integer(args, 3, &mut config.encode_sparse_safe, 0..=i32::MAX)?;
        Ok(MultiValue::from_iter([convert, ratio, safe]))
    }),
    ("encode_max_depth", 1, |_, config, args| {
        Ok(one(integer(args, 1, &mut config.encode_max_depth, 1..=i32::MAX)?))
    }),
    ("decode_max_depth", 1, |_, config, args| {
        Ok(one(integer(args, 1, &mut config.decode_max_depth, 1..=i32::MAX)?))
    }),
    ("encode_number_precision", 1, |_, config, args| {
        Ok(one(integer(args, 1, &mut config.encode_number_precision, 1..=PRECISION as i32)?))
    }),
    ("encode_keep_buffer", 1, |_, config, args| {
        Ok(one(on_or_off(args, &mut config.encode_keep_buffer)?))
    }),
    ("encode_invalid_numbers", 1, |lua, config, args| {
        if let Some(chosen) = choice(args, &["off", "on", "null"])? {
            config.encode_invalid_numbers = InvalidNumbers::ALL[chosen];
        }
        match config.encode_invalid_numbers {
            InvalidNumbers::Refused => Ok(one(Value::Boolean(false))),
            InvalidNumbers::Written => Ok(one(Value::Boolean(true))),
            InvalidNumbers::Null => string(lua, b"null"),
        }
    }),
    ("decode_invalid_numbers", 1, |_, config, args| {
        Ok(one(on_or_off(args, &mut config.decode_invalid_numbers)?))
    }),
];

fn settings(library: &Library, config: &Shared) -> mlua::Result<()> {
    for (name, arguments_max, apply) in SETTINGS {
        let shared = config.clone();
        library.function(name, move |lua, args| {
            if args.len() > arguments_max {
                return Err(Failure::argument(arguments_max + 1, "found too many arguments"));
            }
            apply(lua, &mut shared.lock(), &args)
        })?;
    }
    Ok(())
}

/// Applies an integer argument, if it is present.
fn integer(
    args: &Args,
    position: usize,
    setting: &mut i32,
    range: RangeInclusive<i32>,
) -> Result<Value, Failure> {
    if !args.is_nil(position) {
        let value = args.integer(position)? as i32; // higher bits are dropped
        if !range.contains(&value) {
            let text = format!("expected integer between {} and {}", range.start(), range.end());
            return Err(Failure::argument(1, text)); // always reported for the first argument
        }
        *setting = value;
    }
    Ok(Value::Number(f64::from(*setting)))
}

/// Returns the index of the first argument in `options`, or `None` if the argument is missing. The
/// first two options may also be given as booleans.
fn choice(args: &Args, options: &[&str]) -> Result<Option<usize>, Failure> {
    match args.get(1) {
        None | Some(Value::Nil) => Ok(None),
        Some(Value::Boolean(on)) => Ok(Some(usize::from(*on))),
        Some(_) => {
            let text = args.text(1)?;
            let text = c_string(&text);
            let found = options.iter().position(|option| option.as_bytes() == text);
            let wrong = || [b"invalid option '".as_slice(), text, b"'"].concat();
            found.map(Some).ok_or_else(|| Failure::argument(1, wrong()))
        }
    }
}

fn on_or_off(args: &Args, setting: &mut bool) -> Result<Value, Failure> {
    if let Some(chosen) = choice(args, &["off", "on"])? {
        *setting = chosen == 1;
    }
    Ok(Value::Boolean(*setting))
}
