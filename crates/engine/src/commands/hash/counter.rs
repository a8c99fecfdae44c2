//! HINCRBY, HINCRBYFLOAT: fields that are numbers.

use crate::base::error::{CommandError, Result};
use crate::base::long_double::LongDouble;
use crate::base::number::{Digits, parse_i64};
use crate::call::ctx::{Command, Ctx};
use crate::command::args::Args;
use crate::command::{Arg, ElementArgs, Flags, Group, KeyFlags, KeySpec, Spec};
use crate::reply::Outcome;
use crate::types::Edit;
use crate::types::hash::{FieldDeadline, Hash, Text};

fn hincrby(ctx: &mut Ctx<'_, '_>, args: &mut Args<'_>) -> Result<Outcome> {
    let key = args.key()?;
    let field = args.bytes()?;
    let increment = args.integer()?;
    let sum = ctx.keys.upsert::<Hash, _>(&key, |hash, limits| {
        let number = match hash.get(field) {
            None => Some(0),
            Some(Text::Int(number)) => Some(number),
            Some(Text::Str(text)) => parse_i64(text),
        };
        let number = number.ok_or(CommandError::text("ERR hash value is not an integer"))?;
        let sum = number.checked_add(increment).ok_or(CommandError::Overflow)?;
        hash.set(field, Digits::new().format(sum), FieldDeadline::Keep, limits);
        Ok(Edit::new(sum, 1, "hincrby"))
    })?;
    Ok(ctx.reply.integer(sum))
}

fn hincrbyfloat(ctx: &mut Ctx<'_, '_>, args: &mut Args<'_>) -> Result<Outcome> {
    let key = args.key()?;
    let field = args.bytes()?;
    let increment = LongDouble::parse(args.bytes()?).ok_or(CommandError::NotAFloat)?;
    if increment == LongDouble::Infinite {
        return Err(CommandError::text("ERR value is NaN or Infinity"));
    }
    let sum = ctx.keys.upsert::<Hash, _>(&key, |hash, limits| {
        let number = match hash.get(field) {
            None => Some(LongDouble::ZERO),
            Some(text) => LongDouble::parse(text.text(&mut itoa::Buffer::new())),
        };
        let number = number.ok_or(CommandError::text("ERR hash value is not a float"))?;
        let sum = number.plus(increment).ok_or(CommandError::NanOrInfinity)?.to_text();
        hash.set(field, sum.as_bytes(), FieldDeadline::Keep, limits);
        Ok(Edit::new(sum, 1, "hincrbyfloat"))
    })?;
    // The sum is propagated, not the addition, because replicas might round differently.
    ctx.keys.propagate(|| {
        [&b"HSET"[..], key.bytes, field, sum.as_bytes()].map(<[u8]>::to_vec).to_vec()
    });
    Ok(ctx.reply.bulk(sum.as_bytes()))
}

const HINCRBY: Command = Command {
    spec: Spec {
        name: "hincrby",
        group: Group::Hash,
        summary: "Increments the integer value of a field by a number.",
        since: "2.0.0",
        complexity: "O(1)",
        arity: 4,
        flags: Flags::WRITE.union(Flags::DENYOOM).union(Flags::FAST),
        keys: &[KeySpec::at(1).read_write(KeyFlags::ACCESS.union(KeyFlags::UPDATE))],
        elements: ElementArgs::ONE,
        args: &[Arg::key("key"), Arg::string("field"), Arg::integer("increment")],
        ..Spec::EMPTY
    },
    run: hincrby,
    subcommands: &[],
};

const HINCRBYFLOAT: Command = Command {
    spec: Spec {
        name: "hincrbyfloat",
        group: Group::Hash,
        summary: "Increments the value of a field by a floating-point number.",
        since: "2.6.0",
        complexity: "O(1)",
        arity: 4,
        flags: Flags::WRITE.union(Flags::DENYOOM).union(Flags::FAST),
        keys: &[KeySpec::at(1).read_write(KeyFlags::ACCESS.union(KeyFlags::UPDATE))],
        elements: ElementArgs::ONE,
        args: &[Arg::key("key"), Arg::string("field"), Arg::double("increment")],
        ..Spec::EMPTY
    },
    run: hincrbyfloat,
    subcommands: &[],
};

pub(super) const COMMANDS: &[Command] = &[HINCRBY, HINCRBYFLOAT];
