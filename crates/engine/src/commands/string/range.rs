//! APPEND, SETRANGE, GETRANGE, SUBSTR: parts of a string.

use crate::base::error::{CommandError, Result};
use crate::base::number::Digits;
use crate::call::ctx::{Command, Ctx};
use crate::command::args::Args;
use crate::command::{Arg, Deprecated, Flags, Group, KeyFlags, KeySpec, Spec};
use crate::keyspace::Overwrite;
use crate::reply::Outcome;
use crate::types::string::{Str, StrRef};
use std::ops::Range;

fn append(ctx: &mut Ctx<'_, '_>, args: &mut Args<'_>) -> Result<Outcome> {
    let key = args.key()?;
    let tail = args.bytes()?;
    let bytes_max = ctx.keys.env().string_bytes_max();
    let len = match ctx.keys.open_mut::<Str>(&key)? {
        Some(mut entry) => {
            let old_len = entry.value().len();
            let len = checked_len(old_len, tail.len(), bytes_max)?;
            entry.append(tail, "append");
            len
        }
        None => {
            ctx.keys.set_string(&key, tail, Overwrite::Persist, "append");
            tail.len()
        }
    };
    Ok(ctx.reply.count(len))
}

fn setrange(ctx: &mut Ctx<'_, '_>, args: &mut Args<'_>) -> Result<Outcome> {
    let key = args.key()?;
    let offset = args.integer()?;
    let part = args.bytes()?;
    let offset = usize::try_from(offset).map_err(|_| CommandError::OffsetOutOfRange)?;
    let bytes_max = ctx.keys.env().string_bytes_max();

    let old_len = ctx.keys.open_mut::<Str>(&key)?.map_or(0, |entry| entry.value().len());
    if part.is_empty() {
        // Nothing to write: the string is not changed, and a missing key is not created.
        return Ok(ctx.reply.count(old_len));
    }
    let end = checked_len(offset, part.len(), bytes_max)?;
    let len = old_len.max(end);
    let mut entry = ctx.keys.open_or_insert_string(&key)?;
    entry.modify(len, "setrange", |string| string.write_at(offset, part));
    Ok(ctx.reply.count(len))
}

/// The sum, if strings may have that length.
fn checked_len(len: usize, more: usize, bytes_max: u64) -> Result<usize> {
    let sum = len.checked_add(more).filter(|sum| *sum as u64 <= bytes_max);
    sum.ok_or(CommandError::StringTooLong)
}

fn getrange(ctx: &mut Ctx<'_, '_>, args: &mut Args<'_>) -> Result<Outcome> {
    let key = args.key()?;
    let start = args.integer()?;
    let end = args.integer()?;
    let Some(value) = ctx.keys.open::<Str>(&key)? else { return Ok(ctx.reply.bulk(b"")) };
    let range = clip(value.len(), start, end);
    Ok(match value {
        StrRef::Bytes(bytes) => ctx.reply.bulk(&bytes[range]),
        StrRef::Int(number) => ctx.reply.bulk(&Digits::new().format(number)[range]),
        StrRef::Chunked(data) => ctx.reply.bulk_chunked(data, range),
    })
}

/// The range from `start` to `end`, both included, of `len` bytes. Negative positions count from
/// the end; -1 is the last byte. The range is limited to existing bytes.
fn clip(len: usize, start: i64, end: i64) -> Range<usize> {
    if start < 0 && end < 0 && start > end {
        return 0..0;
    }
    let len = len as i64;
    let from_end = |index: i64| if index < 0 { index.saturating_add(len).max(0) } else { index };
    let (start, end) = (from_end(start), from_end(end).min(len - 1));
    if start > end { 0..0 } else { start as usize..end as usize + 1 }
}

const APPEND: Command = Command {
    spec: Spec {
        name: "append",
        group: Group::String,
        summary: "Appends bytes to a string. Creates the key if it does not exist.",
        since: "2.0.0",
        complexity: "O(1) amortised, for short values",
        arity: 3,
        flags: Flags::WRITE.union(Flags::DENYOOM).union(Flags::FAST),
        keys: &[KeySpec::at(1).read_write(KeyFlags::INSERT)],
        args: &[Arg::key("key"), Arg::string("value")],
        ..Spec::EMPTY
    },
    run: append,
    subcommands: &[],
};

const SETRANGE: Command = Command {
    spec: Spec {
        name: "setrange",
        group: Group::String,
        summary: "Overwrites a part of a string, starting at an offset.",
        since: "2.2.0",
        complexity: "O(1) for short values, else O(M) with M the length of the value",
        arity: 4,
        flags: Flags::WRITE.union(Flags::DENYOOM),
        keys: &[KeySpec::at(1).read_write(KeyFlags::UPDATE)],
        args: &[Arg::key("key"), Arg::integer("offset"), Arg::string("value")],
        ..Spec::EMPTY
    },
    run: setrange,
    subcommands: &[],
};

const GETRANGE: Command = Command {
    spec: Spec {
        name: "getrange",
        group: Group::String,
        summary: "Returns a part of a string.",
        since: "2.4.0",
        complexity: "O(N) with N the length of the reply",
        arity: 4,
        flags: Flags::READONLY,
        keys: &[KeySpec::at(1).read_only(KeyFlags::ACCESS)],
        args: &[Arg::key("key"), Arg::integer("start"), Arg::integer("end")],
        ..Spec::EMPTY
    },
    run: getrange,
    subcommands: &[],
};

const SUBSTR: Command = Command {
    spec: Spec {
        name: "substr",
        group: Group::String,
        summary: "Returns a part of a string.",
        complexity: "O(N) with N the length of the reply",
        arity: 4,
        flags: Flags::READONLY,
        keys: &[KeySpec::at(1).read_only(KeyFlags::ACCESS)],
        args: &[Arg::key("key"), Arg::integer("start"), Arg::integer("end")],
        deprecated: Some(Deprecated { since: "2.0.0", replaced_by: "`GETRANGE`" }),
        ..Spec::EMPTY
    },
    run: getrange,
    subcommands: &[],
};

pub(super) const COMMANDS: &[Command] = &[APPEND, SETRANGE, GETRANGE, SUBSTR];
