//! TTL, PTTL, EXPIRETIME, PEXPIRETIME: read a key's TTL. `expire.rs` sets it.

use crate::base::error::Result;
use crate::call::ctx::{Command, Ctx};
use crate::command::args::Args;
use crate::command::{Arg, Categories, Flags, Group, KeyFlags, KeySpec, Spec};
use crate::reply::Outcome;

const NO_KEY: i64 = -2;
const NO_DEADLINE: i64 = -1;

/// Replies with the result of `convert` for the expiry time in ms.
fn reply_deadline(
    ctx: &mut Ctx<'_, '_>,
    args: &mut Args<'_>,
    convert: impl FnOnce(u64) -> u64,
) -> Result<Outcome> {
    let key = args.key()?;
    let number = match ctx.keys.peek(&key).map(|entry| entry.deadline()) {
        None => NO_KEY,
        Some(None) => NO_DEADLINE,
        Some(Some(deadline)) => convert(deadline.0) as i64,
    };
    Ok(ctx.reply.integer(number))
}

/// Rounded to the nearest second, so that a TTL that was just set is shown unchanged.
fn seconds(ms: u64) -> u64 {
    (ms + 500) / 1000
}

fn ttl(ctx: &mut Ctx<'_, '_>, args: &mut Args<'_>) -> Result<Outcome> {
    let now = ctx.now().0;
    reply_deadline(ctx, args, |deadline| seconds(deadline.saturating_sub(now)))
}

fn pttl(ctx: &mut Ctx<'_, '_>, args: &mut Args<'_>) -> Result<Outcome> {
    let now = ctx.now().0;
    reply_deadline(ctx, args, |deadline| deadline.saturating_sub(now))
}

fn expiretime(ctx: &mut Ctx<'_, '_>, args: &mut Args<'_>) -> Result<Outcome> {
    reply_deadline(ctx, args, seconds)
}

fn pexpiretime(ctx: &mut Ctx<'_, '_>, args: &mut Args<'_>) -> Result<Outcome> {
    reply_deadline(ctx, args, |deadline| deadline)
}

/// The common part of the four rows.
const READ_DEADLINE: Spec = Spec {
    group: Group::Generic,
    arity: 2,
    flags: Flags::READONLY.union(Flags::FAST),
    categories: Categories::KEYSPACE,
    keys: &[KeySpec::at(1).read_only(KeyFlags::ACCESS)],
    args: &[Arg::key("key")],
    ..Spec::EMPTY
};

const TTL: Command = Command {
    spec: Spec {
        name: "ttl",
        summary: "Returns the TTL of a key in seconds.",
        since: "1.0.0",
        tips: &["nondeterministic_output"],
        history: &[("2.8.0", "Returns -2 if the key does not exist.")],
        ..READ_DEADLINE
    },
    run: ttl,
    subcommands: &[],
};

const PTTL: Command = Command {
    spec: Spec {
        name: "pttl",
        summary: "Returns the TTL of a key in milliseconds.",
        since: "2.6.0",
        tips: &["nondeterministic_output"],
        history: &[("2.8.0", "Returns -2 if the key does not exist.")],
        ..READ_DEADLINE
    },
    run: pttl,
    subcommands: &[],
};

const EXPIRETIME: Command = Command {
    spec: Spec {
        name: "expiretime",
        summary: "Returns the expiry time of a key as a Unix time in seconds.",
        since: "7.0.0",
        ..READ_DEADLINE
    },
    run: expiretime,
    subcommands: &[],
};

const PEXPIRETIME: Command = Command {
    spec: Spec {
        name: "pexpiretime",
        summary: "Returns the expiry time of a key as a Unix time in milliseconds.",
        since: "7.0.0",
        ..READ_DEADLINE
    },
    run: pexpiretime,
    subcommands: &[],
};

pub(super) const COMMANDS: &[Command] = &[EXPIRETIME, PEXPIRETIME, PTTL, TTL];
