//! How a library's function gets its arguments, and how it raises errors.
//!
//! An error of a Rust function would reach the script as a userdata. Scripts expect a string that
//! begins with the caller's position, `user_script:1: `. A function therefore returns its error as
//! the first result, and a closure in Luau around it (`fast.luau`) raises the error. For functions
//! that scripts call often, the closure has a fast path that handles the usual cases itself.

use super::number::{format_number, parse_number, truncated};
use mlua::chunk::Compiler;
use mlua::{BorrowedBytes, Function, Lua, MaybeSend, MultiValue, Table, Value};
use std::ops::Deref;

/// Luau source that wraps the Rust functions for scripts.
const FAST: &str = include_str!("fast.luau");

/// The line of [`FAST`] that the functions of `bit` replace. They are written out from a template,
/// because a call of a shared function would cost more than the operation.
const BIT_MARK: &str = "--{bit}";
const BIT_ONE: &str = "NAME = function(raw) return function(...) local a = ... \
    if type(a) == 'number' and a > -LIMIT and a < LIMIT then \
    a = a + ALIGN - ALIGN local bits = RESULT \
    return if bits > 0x7fffffff then bits - 0x100000000 else bits end \
    return finish(raw(...)) end end,\n";
const BIT_TWO: &str = "NAME = function(raw) return function(...) local a, b = ... \
    if select('#', ...) == 2 and type(a) == 'number' and type(b) == 'number' \
    and a > -LIMIT and a < LIMIT and b > -LIMIT and b < LIMIT then \
    a, b = a + ALIGN - ALIGN, b + ALIGN - ALIGN local bits = RESULT \
    return if bits > 0x7fffffff then bits - 0x100000000 else bits end \
    return finish(raw(...)) end end,\n";
const BIT: [(&str, &str, &str); 11] = [
    ("tobit", BIT_ONE, "bor(a, 0)"),
    ("bnot", BIT_ONE, "bnot(a)"),
    ("bswap", BIT_ONE, "byteswap(a)"),
    ("band", BIT_TWO, "band(a, b)"),
    ("bor", BIT_TWO, "bor(a, b)"),
    ("bxor", BIT_TWO, "bxor(a, b)"),
    ("lshift", BIT_TWO, "lshift(a, band(b, 31))"),
    ("rshift", BIT_TWO, "rshift(a, band(b, 31))"),
    ("arshift", BIT_TWO, "arshift(a, band(b, 31))"),
    ("rol", BIT_TWO, "lrotate(a, band(b, 31))"),
    ("ror", BIT_TWO, "rrotate(a, band(b, 31))"),
];

/// The registry key of the table with the results of [`FAST`]. Scripts cannot reach the registry.
pub(super) const FAST_KEY: &str = "brisk.libraries.fast";

/// The stack level whose position an error names: 0 is the Rust function, 1 the guard around that
/// function, 2 the caller of the guard.
const CALLER_LEVEL: usize = 2;

/// The reason why a function failed.
#[derive(Debug)]
pub(super) enum Failure {
    /// A text that is prefixed with the caller's position.
    Raised(Vec<u8>),
    /// A text without a position.
    Unplaced(&'static str),
    /// An error in the argument at this position, counted from 1.
    Argument(usize, Vec<u8>),
    /// The interpreter's own error, mostly out of memory.
    Lua(mlua::Error),
}

impl Failure {
    pub(super) fn raised(text: impl Into<Vec<u8>>) -> Failure {
        Failure::Raised(text.into())
    }

    pub(super) fn argument(position: usize, text: impl Into<Vec<u8>>) -> Failure {
        Failure::Argument(position, text.into())
    }

    /// The error for a result that exceeds the maximum length.
    pub(super) fn too_long() -> Failure {
        Failure::raised(format!("the result is longer than {} bytes", super::RESULT_BYTES_MAX))
    }
}

impl From<mlua::Error> for Failure {
    fn from(error: mlua::Error) -> Failure {
        Failure::Lua(error)
    }
}

/// The result of a function.
pub(super) type Outcome = Result<MultiValue, Failure>;

/// A single result.
pub(super) fn one(value: Value) -> MultiValue {
    MultiValue::from_iter([value])
}

/// A string as the single result.
pub(super) fn string(lua: &Lua, bytes: &[u8]) -> Outcome {
    Ok(one(Value::String(lua.create_string(bytes)?)))
}

/// Returns the type's name as Lua writes it.
pub(crate) fn type_name(value: &Value) -> &'static str {
    match value {
        Value::Integer(_) | Value::Number(_) => "number",
        Value::LightUserData(_) | Value::Error(_) | Value::Other(_) => "userdata",
        other => other.type_name(),
    }
}

/// Returns the number if the value is a number.
pub(super) fn as_number(value: &Value) -> Option<f64> {
    match value {
        Value::Number(number) => Some(*number),
        Value::Integer(integer) => Some(*integer as f64),
        _ => None,
    }
}

/// Returns the number if the value is a number, or a string that can be parsed as one.
pub(super) fn to_number(value: &Value) -> Option<f64> {
    match value {
        Value::String(text) => parse_number(&text.as_bytes()),
        other => as_number(other),
    }
}

/// The bytes of a string argument, or of a number's text.
pub(super) enum Text {
    Lua(BorrowedBytes),
    Number(String),
}

impl Deref for Text {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        match self {
            Text::Lua(bytes) => bytes,
            Text::Number(text) => text.as_bytes(),
        }
    }
}

/// The arguments of a call, counted from 1.
pub(super) struct Args(pub(super) MultiValue);

impl Args {
    pub(super) fn len(&self) -> usize {
        self.0.len()
    }

    pub(super) fn get(&self, position: usize) -> Option<&Value> {
        self.0.get(position - 1)
    }

    /// True if the argument is missing or nil.
    pub(super) fn is_nil(&self, position: usize) -> bool {
        self.get(position).is_none_or(Value::is_nil)
    }

    fn wrong_type(&self, position: usize, wanted: &str) -> Failure {
        let got = self.get(position).map_or("no value", type_name);
        Failure::argument(position, format!("{wanted} expected, got {got}"))
    }

    pub(super) fn number(&self, position: usize) -> Result<f64, Failure> {
        let number = self.get(position).and_then(to_number);
        number.ok_or_else(|| self.wrong_type(position, "number"))
    }

    /// Returns a number without its fraction; the smallest integer if it is out of range.
    pub(super) fn integer(&self, position: usize) -> Result<i64, Failure> {
        Ok(truncated(self.number(position)?))
    }

    pub(super) fn integer_or(&self, position: usize, default: i64) -> Result<i64, Failure> {
        if self.is_nil(position) { Ok(default) } else { self.integer(position) }
    }

    pub(super) fn text(&self, position: usize) -> Result<Text, Failure> {
        match self.get(position) {
            Some(Value::String(text)) => Ok(Text::Lua(text.as_bytes())),
            Some(value) => match as_number(value) {
                Some(number) => Ok(Text::Number(format_number(number))),
                None => Err(self.wrong_type(position, "string")),
            },
            None => Err(self.wrong_type(position, "string")),
        }
    }
}

/// A table of functions under construction.
pub(super) struct Library<'a> {
    lua: &'a Lua,
    name: &'static str,
    pub(super) table: Table,
    /// Wraps functions that have no fast path.
    guard: Function,
    /// Functions that wrap those with a fast path, by name.
    makers: Table,
}

impl<'a> Library<'a> {
    pub(super) fn new(lua: &'a Lua, name: &'static str) -> mlua::Result<Library<'a>> {
        let kept = lua.named_registry_value::<Option<Table>>(FAST_KEY)?;
        let fast = kept.map_or_else(|| fast(lua), Ok)?;
        let makers_of: Function = fast.raw_get(2)?;
        Ok(Library {
            lua,
            name,
            table: lua.create_table()?,
            guard: fast.raw_get(1)?,
            makers: makers_of.call((name, Value::NULL))?,
        })
    }

    /// Adds a function.
    pub(super) fn function(
        &self,
        name: &'static str,
        body: impl Fn(&Lua, Args) -> Outcome + MaybeSend + 'static,
    ) -> mlua::Result<()> {
        let raw = self.lua.create_function(move |lua, arguments: MultiValue| {
            match body(lua, Args(arguments)) {
                Ok(mut results) => {
                    results.push_front(Value::Nil);
                    Ok(results)
                }
                Err(failure) => raise(lua, name, failure).map(one),
            }
        })?;
        let maker = self.makers.raw_get::<Option<Function>>(name)?;
        let function: Function = maker.as_ref().unwrap_or(&self.guard).call(raw)?;
        self.table.raw_set(name, function)
    }

    /// Makes the table a global.
    pub(super) fn install(self) -> mlua::Result<()> {
        self.lua.globals().raw_set(self.name, self.table)
    }
}

/// Runs [`FAST`], and keeps its results in the registry. This must happen before any script runs,
/// because [`FAST`] takes Luau's functions from the globals.
fn fast(lua: &Lua) -> mlua::Result<Table> {
    let bit = BIT.map(|(name, text, result)| text.replace("NAME", name).replace("RESULT", result));
    let source = FAST.replace(BIT_MARK, &bit.concat());
    let compiler = Compiler::new().set_optimization_level(2).set_debug_level(1);
    let chunk = lua.load(source).set_name("=libraries").set_compiler(compiler);
    let made: (Function, Function) = chunk.eval()?;
    let made = lua.create_sequence_from([made.0, made.1])?;
    lua.set_named_registry_value(FAST_KEY, &made)?;
    Ok(made)
}

/// The string that the guard raises.
fn raise(lua: &Lua, name: &str, failure: Failure) -> mlua::Result<Value> {
    let caller = lua.inspect_stack(CALLER_LEVEL, |frame| {
        let source = frame.source();
        let native = source.what == "C";
        let line = frame.current_line().filter(|_| !native);
        let file = source.short_src.unwrap_or_default();
        (native, line.map(|line| format!("{file}:{line}: ")).unwrap_or_default())
    });
    let (native, place) = caller.unwrap_or_default();
    let text = match failure {
        Failure::Lua(error) => return Err(error),
        Failure::Unplaced(text) => text.into(),
        Failure::Raised(text) => [place.into_bytes(), text].concat(),
        Failure::Argument(position, text) => {
            let name = if native { "?" } else { name };
            let start = format!("{place}bad argument #{position} to '{name}' (");
            [start.into_bytes(), text, b")".to_vec()].concat()
        }
    };
    Ok(Value::String(lua.create_string(text)?))
}
