//! MGET, MSET, MSETNX: several keys in one command.

use crate::base::error::Result;
use crate::call::ctx::{Command, Ctx};
use crate::command::args::Args;
use crate::command::{Arg, Flags, Group, KeyFlags, KeySpec, Spec};
use crate::keyspace::Overwrite;
use crate::reply::Outcome;
use crate::types::string::Str;

fn mget(ctx: &mut Ctx<'_, '_>, args: &mut Args<'_>) -> Result<Outcome> {
    let count = args.remaining();
    ctx.reply.array(count);
    for _ in 0..count {
        let key = args.key()?;
        match ctx.keys.open::<Str>(&key) {
            Ok(Some(value)) => ctx.reply.string(&value),
            // A key of another type counts as missing.
            Ok(None) | Err(_) => ctx.reply.null(),
        };
    }
    Ok(Outcome::Replied)
}

fn mset(ctx: &mut Ctx<'_, '_>, args: &mut Args<'_>) -> Result<Outcome> {
    if !args.remaining().is_multiple_of(2) {
        return Err(ctx.wrong_arity());
    }
    set_pairs(ctx, args)?;
    Ok(ctx.reply.ok())
}

fn msetnx(ctx: &mut Ctx<'_, '_>, args: &mut Args<'_>) -> Result<Outcome> {
    if !args.remaining().is_multiple_of(2) {
        return Err(ctx.wrong_arity());
    }
    let mut ahead = args.clone();
    while ahead.remaining() > 0 {
        let key = ahead.key()?;
        if ctx.keys.contains(&key) {
            return Ok(ctx.reply.integer(0));
        }
        ahead.bytes()?;
    }
    set_pairs(ctx, args)?;
    Ok(ctx.reply.integer(1))
}

fn set_pairs(ctx: &mut Ctx<'_, '_>, args: &mut Args<'_>) -> Result<()> {
    while args.remaining() > 0 {
        let key = args.key()?;
        let value = args.bytes()?;
        ctx.keys.set_string(&key, value, Overwrite::Persist, "set");
    }
    Ok(())
}

const MGET: Command = Command {
    spec: Spec {
        name: "mget",
        group: Group::String,
        summary: "Returns the string values of several keys.",
        complexity: "O(N) with N the number of keys",
        arity: -2,
        flags: Flags::READONLY.union(Flags::FAST),
        tips: &["request_policy:multi_shard"],
        keys: &[KeySpec::range(1, -1, 1).read_only(KeyFlags::ACCESS)],
        args: &[Arg::key("key").multiple()],
        ..Spec::EMPTY
    },
    run: mget,
    subcommands: &[],
};

const MSET: Command = Command {
    spec: Spec {
        name: "mset",
        group: Group::String,
        summary: "Sets the string values of several keys atomically.",
        since: "1.0.1",
        complexity: "O(N) with N the number of keys",
        arity: -3,
        flags: Flags::WRITE.union(Flags::DENYOOM),
        tips: &["request_policy:multi_shard", "response_policy:all_succeeded"],
        keys: &[KeySpec::range(1, -1, 2).overwrite(KeyFlags::UPDATE)],
        args: &[Arg::block("key_value", &[Arg::key("key"), Arg::string("value")]).multiple()],
        ..Spec::EMPTY
    },
    run: mset,
    subcommands: &[],
};

const MSETNX: Command = Command {
    spec: Spec {
        name: "msetnx",
        group: Group::String,
        summary: "Sets the string values of several keys only if none of the keys exists.",
        since: "1.0.1",
        complexity: "O(N) with N the number of keys",
        arity: -3,
        flags: Flags::WRITE.union(Flags::DENYOOM),
        tips: &["request_policy:multi_shard", "response_policy:agg_min"],
        keys: &[KeySpec::range(1, -1, 2).overwrite(KeyFlags::INSERT)],
        args: &[Arg::block("key_value", &[Arg::key("key"), Arg::string("value")]).multiple()],
        ..Spec::EMPTY
    },
    run: msetnx,
    subcommands: &[],
};

pub(super) const COMMANDS: &[Command] = &[MGET, MSET, MSETNX];
