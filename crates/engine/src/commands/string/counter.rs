//! INCR, DECR, INCRBY, DECRBY, INCRBYFLOAT: strings that are numbers.

use crate::base::error::{CommandError, Result};
use crate::base::long_double::LongDouble;
use crate::base::number::Digits;
use crate::call::ctx::{Command, Ctx};
use crate::command::args::Args;
use crate::command::{Arg, Flags, Group, KeyFlags, KeySpec, Spec};
use crate::keyspace::{Key, Overwrite};
use crate::reply::Outcome;
use crate::types::string::Str;

fn incr(ctx: &mut Ctx<'_, '_>, args: &mut Args<'_>) -> Result<Outcome> {
    let key = args.key()?;
    add(ctx, &key, 1)
}

fn decr(ctx: &mut Ctx<'_, '_>, args: &mut Args<'_>) -> Result<Outcome> {
    let key = args.key()?;
    add(ctx, &key, -1)
}

fn incrby(ctx: &mut Ctx<'_, '_>, args: &mut Args<'_>) -> Result<Outcome> {
    let key = args.key()?;
    let increment = args.integer()?;
    add(ctx, &key, increment)
}

fn decrby(ctx: &mut Ctx<'_, '_>, args: &mut Args<'_>) -> Result<Outcome> {
    let key = args.key()?;
    let increment = args.integer()?.checked_neg();
    add(ctx, &key, increment.ok_or_else(|| CommandError::text("ERR decrement would overflow"))?)
}

fn add(ctx: &mut Ctx<'_, '_>, key: &Key<'_>, increment: i64) -> Result<Outcome> {
    let sum = match ctx.keys.open_mut::<Str>(key)? {
        Some(mut entry) => {
            let number = entry.value().as_integer().ok_or(CommandError::NotAnInteger)?;
            let sum = number.checked_add(increment).ok_or(CommandError::Overflow)?;
            entry.store_integer(sum, "incrby");
            sum
        }
        None => {
            let mut digits = Digits::new();
            let text = digits.format(increment);
            ctx.keys.set_string(key, text, Overwrite::Persist, "incrby");
            increment
        }
    };
    Ok(ctx.reply.integer(sum))
}

fn incrbyfloat(ctx: &mut Ctx<'_, '_>, args: &mut Args<'_>) -> Result<Outcome> {
    let key = args.key()?;
    let increment = args.bytes()?;
    let number = match ctx.keys.open_mut::<Str>(&key)? {
        Some(entry) => LongDouble::parse(&entry.value().contiguous(&mut Digits::new())),
        None => Some(LongDouble::ZERO),
    };
    let number = number.ok_or(CommandError::NotAFloat)?;
    let increment = LongDouble::parse(increment).ok_or(CommandError::NotAFloat)?;
    let sum = number.plus(increment).ok_or(CommandError::NanOrInfinity)?;
    let text = sum.to_text();
    ctx.keys.open_or_insert_string(&key)?.store_text(text.as_bytes(), "incrbyfloat");
    // The sum is propagated, not the addition, because replicas might round differently.
    ctx.keys.propagate(|| {
        [&b"SET"[..], key.bytes, text.as_bytes(), b"KEEPTTL"].map(<[u8]>::to_vec).to_vec()
    });
    Ok(ctx.reply.bulk(text.as_bytes()))
}

const INCR: Command = Command {
    spec: Spec {
        name: "incr",
        group: Group::String,
        summary: "Increments an integer by one.",
        arity: 2,
        flags: Flags::WRITE.union(Flags::DENYOOM).union(Flags::FAST),
        keys: &[KeySpec::at(1).read_write(KeyFlags::ACCESS.union(KeyFlags::UPDATE))],
        args: &[Arg::key("key")],
        ..Spec::EMPTY
    },
    run: incr,
    subcommands: &[],
};

const DECR: Command = Command {
    spec: Spec {
        name: "decr",
        group: Group::String,
        summary: "Decrements an integer by one.",
        arity: 2,
        flags: Flags::WRITE.union(Flags::DENYOOM).union(Flags::FAST),
        keys: &[KeySpec::at(1).read_write(KeyFlags::ACCESS.union(KeyFlags::UPDATE))],
        args: &[Arg::key("key")],
        ..Spec::EMPTY
    },
    run: decr,
    subcommands: &[],
};

const INCRBY: Command = Command {
    spec: Spec {
        name: "incrby",
        group: Group::String,
        summary: "Increments an integer by a number.",
        arity: 3,
        flags: Flags::WRITE.union(Flags::DENYOOM).union(Flags::FAST),
        keys: &[KeySpec::at(1).read_write(KeyFlags::ACCESS.union(KeyFlags::UPDATE))],
        args: &[Arg::key("key"), Arg::integer("increment")],
        ..Spec::EMPTY
    },
    run: incrby,
    subcommands: &[],
};

const DECRBY: Command = Command {
    spec: Spec {
        name: "decrby",
        group: Group::String,
        summary: "Decrements an integer by a number.",
        arity: 3,
        flags: Flags::WRITE.union(Flags::DENYOOM).union(Flags::FAST),
        keys: &[KeySpec::at(1).read_write(KeyFlags::ACCESS.union(KeyFlags::UPDATE))],
        args: &[Arg::key("key"), Arg::integer("decrement")],
        ..Spec::EMPTY
    },
    run: decrby,
    subcommands: &[],
};

const INCRBYFLOAT: Command = Command {
    spec: Spec {
        name: "incrbyfloat",
        group: Group::String,
        summary: "Increments a number by a floating-point number.",
        since: "2.6.0",
        arity: 3,
        flags: Flags::WRITE.union(Flags::DENYOOM).union(Flags::FAST),
        keys: &[KeySpec::at(1).read_write(KeyFlags::ACCESS.union(KeyFlags::UPDATE))],
        args: &[Arg::key("key"), Arg::double("increment")],
        ..Spec::EMPTY
    },
    run: incrbyfloat,
    subcommands: &[],
};

pub(super) const COMMANDS: &[Command] = &[INCR, DECR, INCRBY, DECRBY, INCRBYFLOAT];
