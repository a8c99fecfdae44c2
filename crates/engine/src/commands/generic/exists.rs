//! EXISTS, TOUCH, TYPE: check whether keys exist, and what type they are.

use crate::base::error::Result;
use crate::call::ctx::{Command, Ctx};
use crate::command::args::Args;
use crate::command::{Arg, Categories, Flags, Group, KeyFlags, KeySpec, Spec};
use crate::reply::Outcome;

/// A key named twice counts twice.
fn exists(ctx: &mut Ctx<'_, '_>, args: &mut Args<'_>) -> Result<Outcome> {
    let mut found = 0;
    while args.remaining() > 0 {
        let key = args.key()?;
        found += usize::from(ctx.keys.peek(&key).is_some());
    }
    Ok(ctx.reply.count(found))
}

fn touch(ctx: &mut Ctx<'_, '_>, args: &mut Args<'_>) -> Result<Outcome> {
    // This is the one command that updates access clocks even after CLIENT NO-TOUCH.
    let touch = ctx.keys.env().touch.replace(true);
    let mut found = 0;
    while args.remaining() > 0 {
        let key = args.key()?;
        found += usize::from(ctx.keys.touch(&key));
    }
    ctx.keys.env().touch.set(touch);
    Ok(ctx.reply.count(found))
}

fn kind(ctx: &mut Ctx<'_, '_>, args: &mut Args<'_>) -> Result<Outcome> {
    let key = args.key()?;
    let name = ctx.keys.peek(&key).map_or("none", |entry| entry.kind().name());
    Ok(ctx.reply.word(name))
}

const EXISTS: Command = Command {
    spec: Spec {
        name: "exists",
        group: Group::Generic,
        summary: "Counts the given keys that exist.",
        since: "1.0.0",
        complexity: "O(N) in the number of keys.",
        arity: -2,
        flags: Flags::READONLY.union(Flags::FAST),
        categories: Categories::KEYSPACE,
        tips: &["request_policy:multi_shard", "response_policy:agg_sum"],
        keys: &[KeySpec::range(1, -1, 1).read_only(KeyFlags::empty())],
        args: &[Arg::key("key").multiple()],
        history: &[("3.0.3", "Accepts several keys.")],
        ..Spec::EMPTY
    },
    run: exists,
    subcommands: &[],
};

const TOUCH: Command = Command {
    spec: Spec {
        name: "touch",
        group: Group::Generic,
        summary: "Updates the access time of keys and counts those that exist.",
        since: "3.2.1",
        complexity: "O(N) in the number of keys.",
        arity: -2,
        flags: Flags::READONLY.union(Flags::FAST),
        categories: Categories::KEYSPACE,
        tips: &["request_policy:multi_shard", "response_policy:agg_sum"],
        keys: &[KeySpec::range(1, -1, 1).read_only(KeyFlags::empty())],
        args: &[Arg::key("key").multiple()],
        ..Spec::EMPTY
    },
    run: touch,
    subcommands: &[],
};

const TYPE: Command = Command {
    spec: Spec {
        name: "type",
        group: Group::Generic,
        summary: "Returns the type of a key's value.",
        since: "1.0.0",
        complexity: "O(1)",
        arity: 2,
        flags: Flags::READONLY.union(Flags::FAST),
        categories: Categories::KEYSPACE,
        keys: &[KeySpec::at(1).read_only(KeyFlags::empty())],
        args: &[Arg::key("key")],
        ..Spec::EMPTY
    },
    run: kind,
    subcommands: &[],
};

pub(super) const COMMANDS: &[Command] = &[EXISTS, TOUCH, TYPE];
