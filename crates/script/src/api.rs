//! The Rust functions of `redis.*`, `math.random` and `loadstring`, which `prelude.luau` wraps.
//!
//! Functions that may fail return the value, and then a flag that is true for an error. A script
//! would receive an error raised here as a different kind of value, not as the table that Redis uses.

use crate::header::FLAGS;
use crate::host::{Called, Words};
use crate::interpreter::{OWN_CHUNKS, State, Version, stopped};
use crate::libraries;
use crate::lua51;
use crate::random::Random;
use crate::room::{Bounded, Unbounded};
use crate::texts::Texts;
use crate::to_lua::{convert, short_text};
use brisk_resp::Protocol;
use brisk_resp::reply::encode;
use brisk_structures::sha1::sha1;
use mlua::chunk::ChunkMode;
use mlua::{BString, Either, Lua, MultiValue, Result, Table, Value};
use std::rc::Rc;

/// A value, and `true` if it is an error to raise.
type ScriptValue = (Value, Option<bool>);

/// The result of a command, and its kind; no kind if the script gets the value unchanged. A string
/// is passed to the VM without a handle. Passing the last part restores the memory limit.
type CommandValue = (Either<String, Value>, Option<u8>, Bounded);

/// The text of a status reply.
const STATUS: u8 = 1;
/// An error, which `redis.call` raises.
const ERROR: u8 = 2;
/// No value: the reply is the status `OK`.
const OK: u8 = 3;

/// The first argument of a command: a string, or any other value.
type First = Either<BString, Value>;

const LOG_LEVEL_MAX: f64 = 3.0;

/// Creates the table of functions that the prelude uses.
pub(crate) fn host_table(lua: &Lua, state: &Rc<State>, version: &Version) -> Result<Table> {
    let host = lua.create_table()?;
    let set = |name: &str, run: fn(&Lua, &State, MultiValue) -> Result<ScriptValue>| {
        let state = Rc::clone(state);
        host.raw_set(name, lua.create_function(move |lua, args| run(lua, &state, args))?)
    };
    let with_words = |name: &str, at: fn(&Lua, &State, MultiValue) -> Result<CommandValue>| {
        let state = Rc::clone(state);
        host.raw_set(name, lua.create_function(move |lua, args| at(lua, &state, args))?)
    };
    with_words("call", call)?;
    let two = Rc::clone(state);
    host.raw_set(
        "call_two",
        lua.create_function(move |lua, (first, second): (First, BString)| {
            call_texts(lua, &two, first, &[second])
        })?,
    )?;
    let three = Rc::clone(state);
    host.raw_set(
        "call_three",
        lua.create_function(move |lua, (first, second, third): (First, BString, BString)| {
            call_texts(lua, &three, first, &[second, third])
        })?,
    )?;
    set("log", log)?;
    set("sha1hex", sha1hex)?;
    set("setresp", setresp)?;
    set("set_repl", set_repl)?;
    set("acl_check_cmd", acl_check_cmd)?;
    let random_state = Rc::clone(state);
    host.raw_set(
        "random",
        lua.create_function(move |lua, args: MultiValue| random(lua, &random_state, &args))?,
    )?;
    let seed_state = Rc::clone(state);
    host.raw_set(
        "randomseed",
        lua.create_function(move |_, seed: f64| {
            seed_state.random.set(Random::seeded(int_of(seed)));
            Ok(())
        })?,
    )?;
    host.raw_set("loadstring", lua.create_function(loadstring)?)?;
    host.raw_set("libraries", libraries::NAMES)?;
    host.raw_set("arg_table", lua51::ARG_TABLE)?;
    host.raw_set("api", state.texts.api)?;
    let own_chunks = OWN_CHUNKS.into_iter().map(|name| (name, true));
    host.raw_set("own_chunks", lua.create_table_from(own_chunks)?)?;
    let flags = lua.create_table()?;
    for (flag, name) in FLAGS {
        flags.raw_set(*name, flag.bits())?;
    }
    host.raw_set("flags", flags)?;
    host.raw_set("constants", constants(lua, version)?)?;
    Ok(host)
}

fn constants(lua: &Lua, version: &Version) -> Result<Table> {
    let table = lua.create_table()?;
    for (name, value) in [
        ("LOG_DEBUG", 0),
        ("LOG_VERBOSE", 1),
        ("LOG_NOTICE", 2),
        ("LOG_WARNING", 3),
        ("REPL_NONE", 0),
        ("REPL_AOF", 1),
        ("REPL_SLAVE", 2),
        ("REPL_REPLICA", 2),
        ("REPL_ALL", 3),
    ] {
        table.raw_set(name, value)?;
    }
    table.raw_set("REDIS_VERSION", version.redis)?;
    table.raw_set("REDIS_VERSION_NUM", version.redis_number)?;
    table.raw_set("SERVER_NAME", version.name)?;
    table.raw_set("SERVER_VERSION", version.own)?;
    table.raw_set("SERVER_VERSION_NUM", version.own_number)?;
    Ok(table)
}

/// Builds `{err=…}`. A text without a leading `-` gets the error code `ERR`; otherwise the text
/// after the `-` has its own code.
fn refused(lua: &Lua, text: &str) -> Result<Table> {
    let table = lua.create_table_with_capacity(0, 2)?;
    match text.strip_prefix('-') {
        Some(whole) => table.raw_set("err", whole)?,
        None => table.raw_set("err", format!("ERR {text}"))?,
    }
    Ok(table)
}

fn raise(lua: &Lua, text: &str) -> Result<ScriptValue> {
    Ok((Value::Table(refused(lua, text)?), Some(true)))
}

/// Collects the arguments of a command. Returns an error text if they are not valid arguments.
fn collect(
    words: &mut Words,
    args: &MultiValue,
    texts: &'static Texts,
) -> std::result::Result<(), &'static str> {
    words.clear();
    if args.is_empty() {
        return Err(texts.no_command);
    }
    for arg in args {
        match arg {
            Value::String(text) => words.push(&text.as_bytes()),
            Value::Integer(number) => push_number(words, *number as f64),
            Value::Number(number) => push_number(words, *number),
            _ => return Err(texts.not_a_command),
        }
    }
    Ok(())
}

/// Adds a number in the format in which Redis passes it on, which differs from a script's
/// `tostring`.
fn push_number(words: &mut Words, number: f64) {
    let begin = words.bytes.len();
    encode::double_text(&mut words.bytes, number);
    words.spans.push(begin, words.bytes.len() - begin);
}

/// Returns an error that `redis.call` raises.
fn raise_call(lua: &Lua, text: &str) -> Result<CommandValue> {
    Ok((Either::Right(Value::Table(refused(lua, text)?)), Some(ERROR), Bounded))
}

/// Runs a command with arguments of any type.
fn call(lua: &Lua, state: &State, args: MultiValue) -> Result<CommandValue> {
    run_command(lua, state, |words| collect(words, &args, state.texts))
}

/// Runs a command whose arguments are strings, which is the usual case: strings need no handles.
fn call_texts(lua: &Lua, state: &State, first: First, texts: &[BString]) -> Result<CommandValue> {
    run_command(lua, state, |words| {
        words.clear();
        match first {
            Either::Left(name) => words.push(&name),
            Either::Right(_) => return Err(state.texts.not_a_command),
        }
        texts.iter().for_each(|text| words.push(text));
        Ok(())
    })
}

fn run_command(
    lua: &Lua,
    state: &State,
    collect: impl FnOnce(&mut Words) -> std::result::Result<(), &'static str>,
) -> Result<CommandValue> {
    if state.stop.get() {
        return Err(stopped());
    }
    let unbounded = Unbounded::begin(lua)?;
    let (Ok(mut words), Ok(mut reply)) =
        (state.words.try_borrow_mut(), state.reply.try_borrow_mut())
    else {
        return raise_call(lua, "recursive call of redis.call");
    };
    if let Err(text) = collect(&mut words) {
        return raise_call(lua, text);
    }
    reply.clear();
    let mut called = state.host.call(&words, state.protocol.get(), &mut reply);
    while called == Called::Wait && state.wait().inspect_err(|_| state.note_place(lua))? {
        called = state.host.call(&words, state.protocol.get(), &mut reply);
    }
    let value = match called {
        Called::Replied => {
            let value = convert_reply(lua, &reply)?;
            if reply.capacity() > State::REPLY_KEPT_MAX {
                *reply = Vec::new();
            }
            value
        }
        Called::Refused(text) => {
            let table = refused(lua, &text)?;
            table.raw_set("ignore_error_stats_update", true)?;
            (Either::Right(Value::Table(table)), Some(ERROR), Bounded)
        }
        Called::Wait | Called::Abandoned => {
            state.stop.set(true);
            state.note_place(lua);
            return Err(stopped());
        }
    };
    unbounded.leave_to_bounded();
    Ok(value)
}

/// Converts a reply to the value that the script gets.
fn convert_reply(lua: &Lua, reply: &[u8]) -> Result<CommandValue> {
    if reply == b"+OK\r\n" {
        return Ok((Either::Right(Value::Nil), Some(OK), Bounded));
    }
    if let Some((text, is_status)) = short_text(reply) {
        return Ok((Either::Left(text.to_owned()), is_status.then_some(STATUS), Bounded));
    }
    let converted = convert(lua, reply)?;
    Ok((Either::Right(converted.value), converted.is_error.then_some(ERROR), Bounded))
}

fn log(lua: &Lua, state: &State, args: MultiValue) -> Result<ScriptValue> {
    if args.len() < 2 {
        return raise(lua, &format!("{}.log() requires two arguments or more.", state.texts.api));
    }
    let level = args.front().and_then(|level| lua.coerce_number(level.clone()).ok().flatten());
    let Some(level) = level else {
        return raise(lua, "First argument must be a number (log level).");
    };
    if !(0.0..LOG_LEVEL_MAX + 1.0).contains(&level) {
        return raise(lua, state.texts.no_level);
    }
    let level = level as u8;
    if state.host.logs(level) {
        let mut line = Vec::new();
        for (at, arg) in args.iter().skip(1).enumerate() {
            if let Some(text) = lua.coerce_string(arg.clone())? {
                if at > 0 {
                    line.push(b' ');
                }
                line.extend_from_slice(&text.as_bytes());
            }
        }
        state.host.log(level, &line);
    }
    Ok((Value::Nil, None))
}

fn sha1hex(lua: &Lua, _: &State, args: MultiValue) -> Result<ScriptValue> {
    if args.len() != 1 {
        return raise(lua, "wrong number of arguments");
    }
    let text = lua.coerce_string(args[0].clone())?;
    let digest = sha1(&text.as_ref().map(|text| text.as_bytes().to_vec()).unwrap_or_default());
    let mut hex = String::with_capacity(2 * digest.len());
    for byte in digest {
        hex.push_str(&format!("{byte:02x}"));
    }
    Ok((Value::String(lua.create_string(hex)?), None))
}

fn setresp(lua: &Lua, state: &State, args: MultiValue) -> Result<ScriptValue> {
    if args.len() != 1 {
        return raise(lua, &format!("{}.setresp() requires one argument.", state.texts.api));
    }
    let version = lua.coerce_number(args[0].clone())?;
    state.protocol.set(match version {
        Some(2.0) => Protocol::Resp2,
        Some(3.0) => Protocol::Resp3,
        _ => return raise(lua, "RESP version must be 2 or 3."),
    });
    Ok((Value::Nil, None))
}

/// `redis.set_repl`. Every effect is propagated regardless of what the script requests, because an
/// effect that is left out would be missing on replicas. The argument is validated as in Redis.
fn set_repl(lua: &Lua, state: &State, args: MultiValue) -> Result<ScriptValue> {
    const REPL_ALL: i64 = 3;
    if args.len() != 1 {
        return raise(lua, state.texts.set_repl);
    }
    let flags = lua.coerce_number(args[0].clone())?.unwrap_or(0.0) as i64;
    if flags & !REPL_ALL != 0 {
        let text = "Invalid replication flags. Use REPL_AOF, REPL_REPLICA, REPL_ALL or REPL_NONE.";
        return raise(lua, text);
    }
    Ok((Value::Nil, None))
}

fn acl_check_cmd(lua: &Lua, state: &State, args: MultiValue) -> Result<ScriptValue> {
    let Ok(mut words) = state.words.try_borrow_mut() else {
        return raise(lua, "recursive call of redis.acl_check_cmd");
    };
    if let Err(text) = collect(&mut words, &args, state.texts) {
        return raise(lua, text);
    }
    match state.host.may_call(&words) {
        Some(allowed) => Ok((Value::Boolean(allowed), None)),
        None => {
            let api = state.texts.api;
            raise(lua, &format!("Invalid command passed to {api}.acl_check_cmd()"))
        }
    }
}

/// `math.random` with zero, one or two bounds; the second result describes an error in the bounds.
fn random(lua: &Lua, state: &State, args: &MultiValue) -> Result<(f64, Option<String>)> {
    let mut random = state.random.get();
    let fraction = random.fraction();
    state.random.set(random);
    if args.is_empty() {
        return Ok((fraction, None));
    }
    if args.len() > 2 {
        return Ok((0.0, Some("wrong number of arguments".to_owned())));
    }
    let mut bounds = [1; 2];
    for (at, arg) in args.iter().enumerate() {
        let Some(bound) = lua.coerce_number(arg.clone())? else {
            let got = crate::libraries::type_name(arg);
            let text = format!("bad argument #{} to 'random' (number expected, got {got})", at + 1);
            return Ok((0.0, Some(text)));
        };
        bounds[2 - args.len() + at] = int_of(bound);
    }
    let [low, high] = bounds;
    if low > high {
        let text = format!("bad argument #{} to 'random' (interval is empty)", args.len());
        return Ok((0.0, Some(text)));
    }
    // As in Redis, the width has 32 bits regardless of the bounds.
    let width = high.wrapping_sub(low).wrapping_add(1);
    Ok(((fraction * f64::from(width)).floor() + f64::from(low), None))
}

/// Converts a number to C's `int` as casts on x86 do: 0 if it is not a number, or too large for 64
/// bits.
fn int_of(number: f64) -> i32 {
    libraries::truncated(number) as i32
}

/// Compiles source text, but never bytecode, because bytecode is not verified.
fn loadstring(
    lua: &Lua,
    (source, name): (mlua::LuaString, Option<mlua::LuaString>),
) -> Result<(Value, Option<String>)> {
    let source = source.as_bytes().to_vec();
    let name = name.map_or_else(
        || String::from_utf8_lossy(&source).into_owned(),
        |name| name.to_string_lossy(),
    );
    let source = lua51::to_luau(&source);
    let chunk = lua.load(source.as_ref()).set_name(name).set_mode(ChunkMode::Text);
    match chunk.into_function() {
        Ok(function) => Ok((Value::Function(function), None)),
        Err(error) => Ok((Value::Nil, Some(crate::interpreter::compile_error(&error)))),
    }
}
