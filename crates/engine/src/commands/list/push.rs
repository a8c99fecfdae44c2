//! LPUSH, RPUSH, LPUSHX, RPUSHX: add elements at an end.

use super::push_event;
use crate::base::error::Result;
use crate::call::ctx::{Command, Ctx};
use crate::command::args::Args;
use crate::command::{Arg, Flags, Group, KeyFlags, KeySpec, Spec};
use crate::reply::Outcome;
use crate::types::Edit;
use crate::types::list::{End, List};

fn push(ctx: &mut Ctx<'_, '_>, args: &mut Args<'_>, end: End) -> Result<Outcome> {
    let key = args.key()?;
    let elements = args.rest();
    let len = ctx.keys.upsert::<List, _>(&key, |list, limits| {
        let count = elements.len() as u64;
        list.push(end, elements, limits);
        Ok(Edit::new(list.len(), count, push_event(end)))
    })?;
    Ok(ctx.reply.count(len))
}

fn push_existing(ctx: &mut Ctx<'_, '_>, args: &mut Args<'_>, end: End) -> Result<Outcome> {
    let key = args.key()?;
    let elements = args.rest();
    let len = ctx.keys.update::<List, _>(&key, |list, limits| {
        let count = elements.len() as u64;
        list.push(end, elements, limits);
        Ok(Edit::new(list.len(), count, push_event(end)))
    })?;
    Ok(ctx.reply.count(len.unwrap_or(0)))
}

fn lpush(ctx: &mut Ctx<'_, '_>, args: &mut Args<'_>) -> Result<Outcome> {
    push(ctx, args, End::Front)
}

fn rpush(ctx: &mut Ctx<'_, '_>, args: &mut Args<'_>) -> Result<Outcome> {
    push(ctx, args, End::Back)
}

fn lpushx(ctx: &mut Ctx<'_, '_>, args: &mut Args<'_>) -> Result<Outcome> {
    push_existing(ctx, args, End::Front)
}

fn rpushx(ctx: &mut Ctx<'_, '_>, args: &mut Args<'_>) -> Result<Outcome> {
    push_existing(ctx, args, End::Back)
}

/// The common part of the four commands.
const PUSH: Spec = Spec {
    group: Group::List,
    complexity: "O(1) for each element added.",
    arity: -3,
    flags: Flags::WRITE.union(Flags::DENYOOM).union(Flags::FAST),
    keys: &[KeySpec::at(1).read_write(KeyFlags::INSERT)],
    args: &[Arg::key("key"), Arg::string("element").multiple()],
    ..Spec::EMPTY
};

const LPUSH: Command = Command {
    spec: Spec {
        name: "lpush",
        summary: "Adds elements at the front of a list.",
        history: &[("2.4.0", "Accepts several elements.")],
        ..PUSH
    },
    run: lpush,
    subcommands: &[],
};

const RPUSH: Command = Command {
    spec: Spec {
        name: "rpush",
        summary: "Adds elements at the back of a list.",
        history: &[("2.4.0", "Accepts several elements.")],
        ..PUSH
    },
    run: rpush,
    subcommands: &[],
};

const LPUSHX: Command = Command {
    spec: Spec {
        name: "lpushx",
        summary: "Adds elements at the front of a list only if the list exists.",
        since: "2.2.0",
        history: &[("4.0.0", "Accepts several elements.")],
        ..PUSH
    },
    run: lpushx,
    subcommands: &[],
};

const RPUSHX: Command = Command {
    spec: Spec {
        name: "rpushx",
        summary: "Adds elements at the back of a list only if the list exists.",
        since: "2.2.0",
        history: &[("4.0.0", "Accepts several elements.")],
        ..PUSH
    },
    run: rpushx,
    subcommands: &[],
};

pub(super) const COMMANDS: &[Command] = &[LPUSH, RPUSH, LPUSHX, RPUSHX];
