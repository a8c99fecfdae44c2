//! HSET, HMSET, HSETNX: set fields.

use crate::base::error::Result;
use crate::call::ctx::{Command, Ctx};
use crate::command::args::Args;
use crate::command::{Arg, Deprecated, ElementArgs, Flags, Group, KeyFlags, KeySpec, Spec};
use crate::reply::Outcome;
use crate::types::Edit;
use crate::types::hash::{FieldDeadline, Hash};

fn hset(ctx: &mut Ctx<'_, '_>, args: &mut Args<'_>) -> Result<Outcome> {
    let added = set_all(ctx, args)?;
    Ok(ctx.reply.count(added))
}

fn hmset(ctx: &mut Ctx<'_, '_>, args: &mut Args<'_>) -> Result<Outcome> {
    set_all(ctx, args)?;
    Ok(ctx.reply.ok())
}

/// Sets all given fields. Returns the number of new ones.
fn set_all(ctx: &mut Ctx<'_, '_>, args: &mut Args<'_>) -> Result<usize> {
    let key = args.key()?;
    if !args.remaining().is_multiple_of(2) {
        return Err(ctx.wrong_arity());
    }
    ctx.keys.upsert::<Hash, _>(&key, |hash, limits| {
        let first = args.position();
        hash.prepare((first..args.argc()).map(|index| args.argument(index)), limits);
        let (mut added, mut pairs) = (0, 0);
        while let (Some(field), Some(value)) = (args.optional(), args.optional()) {
            added += usize::from(hash.set(field, value, FieldDeadline::Drop, limits));
            pairs += 1;
        }
        Ok(Edit::new(added, pairs, "hset"))
    })
}

fn hsetnx(ctx: &mut Ctx<'_, '_>, args: &mut Args<'_>) -> Result<Outcome> {
    let key = args.key()?;
    let (field, value) = (args.bytes()?, args.bytes()?);
    let added = ctx.keys.upsert::<Hash, _>(&key, |hash, limits| {
        if hash.contains(field) {
            return Ok(Edit::unchanged(false));
        }
        hash.set(field, value, FieldDeadline::Drop, limits);
        Ok(Edit::new(true, 1, "hset"))
    })?;
    Ok(ctx.reply.integer(i64::from(added)))
}

const PAIRS: Arg =
    Arg::block("field_value", &[Arg::string("field"), Arg::string("value")]).multiple();

const HSET: Command = Command {
    spec: Spec {
        name: "hset",
        group: Group::Hash,
        summary: "Sets fields of a hash.",
        since: "2.0.0",
        complexity: "O(1) for each field.",
        arity: -4,
        flags: Flags::WRITE.union(Flags::DENYOOM).union(Flags::FAST),
        keys: &[KeySpec::at(1).read_write(KeyFlags::UPDATE)],
        elements: ElementArgs { first: 2, step: 2, scored: false },
        args: &[Arg::key("key"), PAIRS],
        history: &[("4.0.0", "Accepts several fields.")],
        ..Spec::EMPTY
    },
    run: hset,
    subcommands: &[],
};

const HMSET: Command = Command {
    spec: Spec {
        name: "hmset",
        group: Group::Hash,
        summary: "Sets fields of a hash.",
        since: "2.0.0",
        complexity: "O(N) in the number of fields that are set.",
        arity: -4,
        flags: Flags::WRITE.union(Flags::DENYOOM).union(Flags::FAST),
        keys: &[KeySpec::at(1).read_write(KeyFlags::UPDATE)],
        elements: ElementArgs { first: 2, step: 2, scored: false },
        args: &[Arg::key("key"), PAIRS],
        deprecated: Some(Deprecated {
            since: "4.0.0",
            replaced_by: "`HSET` with multiple field-value pairs",
        }),
        ..Spec::EMPTY
    },
    run: hmset,
    subcommands: &[],
};

const HSETNX: Command = Command {
    spec: Spec {
        name: "hsetnx",
        group: Group::Hash,
        summary: "Sets a field of a hash only if the field does not exist.",
        since: "2.0.0",
        complexity: "O(1)",
        arity: 4,
        flags: Flags::WRITE.union(Flags::DENYOOM).union(Flags::FAST),
        keys: &[KeySpec::at(1).read_write(KeyFlags::INSERT)],
        elements: ElementArgs::ONE,
        args: &[Arg::key("key"), Arg::string("field"), Arg::string("value")],
        ..Spec::EMPTY
    },
    run: hsetnx,
    subcommands: &[],
};

pub(super) const COMMANDS: &[Command] = &[HMSET, HSET, HSETNX];
