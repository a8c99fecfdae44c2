//! SETBIT and GETBIT: individual bits.

use super::parse_offset;
use crate::base::error::{CommandError, Result};
use crate::base::number::parse_i64;
use crate::call::ctx::{Command, Ctx};
use crate::command::args::Args;
use crate::command::{Arg, Flags, Group, KeyFlags, KeySpec, Spec};
use crate::reply::Outcome;
use crate::types::Edit;
use crate::types::string::Str;
use brisk_structures::bits;

fn setbit(ctx: &mut Ctx<'_, '_>, args: &mut Args<'_>) -> Result<Outcome> {
    let key = args.key()?;
    let offset = parse_offset(args.bytes()?, ctx.keys.env().string_bytes_max())?;
    let set = match parse_i64(args.bytes()?) {
        Some(0) => false,
        Some(1) => true,
        _ => return Err(CommandError::text("ERR bit is not an integer or out of range")),
    };
    let mut entry = ctx.keys.open_or_insert_string(&key)?;
    let old_len = entry.value().len();
    let len = old_len.max((offset / 8) as usize + 1);
    let was = entry.edit(len, |mut string| {
        let (piece, start) = string.piece_of((offset / 8) as usize);
        let was = bits::set_bit(piece, offset - start as u64 * 8, set);
        let changes = u64::from(was != set || len > old_len);
        Edit::new(was, changes, "setbit")
    });
    Ok(ctx.reply.integer(i64::from(was)))
}

fn getbit(ctx: &mut Ctx<'_, '_>, args: &mut Args<'_>) -> Result<Outcome> {
    let key = args.key()?;
    let offset = parse_offset(args.bytes()?, ctx.keys.env().string_bytes_max())?;
    let value = ctx.keys.open::<Str>(&key)?;
    let set = value.is_some_and(|value| value.bit(offset));
    Ok(ctx.reply.integer(i64::from(set)))
}

const SETBIT: Command = Command {
    spec: Spec {
        name: "setbit",
        group: Group::Bitmap,
        summary: "Sets or clears a bit of a string. Creates the key if it does not exist.",
        since: "2.2.0",
        complexity: "O(1)",
        arity: 4,
        flags: Flags::WRITE.union(Flags::DENYOOM),
        keys: &[KeySpec::at(1).read_write(KeyFlags::ACCESS.union(KeyFlags::UPDATE))],
        args: &[Arg::key("key"), Arg::integer("offset"), Arg::integer("value")],
        ..Spec::EMPTY
    },
    run: setbit,
    subcommands: &[],
};

const GETBIT: Command = Command {
    spec: Spec {
        name: "getbit",
        group: Group::Bitmap,
        summary: "Returns a bit of a string.",
        since: "2.2.0",
        complexity: "O(1)",
        arity: 3,
        flags: Flags::READONLY.union(Flags::FAST),
        keys: &[KeySpec::at(1).read_only(KeyFlags::ACCESS)],
        args: &[Arg::key("key"), Arg::integer("offset")],
        ..Spec::EMPTY
    },
    run: getbit,
    subcommands: &[],
};

pub(super) const COMMANDS: &[Command] = &[SETBIT, GETBIT];
