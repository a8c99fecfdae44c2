//! BZPOPMIN, BZPOPMAX, BZMPOP: pops that wait for a member.
//!
//! Each command first runs in its non-blocking form, and waits if it finds nothing. It runs again
//! when one of its sets is created. The non-blocking form is propagated.

use super::pop::{End, PopFormat, ZmpopOptions, pop};
use crate::base::error::Result;
use crate::call::ctx::{Command, Ctx};
use crate::command::args::Args;
use crate::command::{Arg, Flags, Group, KeyFlags, KeySpec, Spec};
use crate::keyspace::{EmptyReply, Key};
use crate::reply::Outcome;
use crate::types::{SortedSet, ValueKind};
use smallvec::SmallVec;

fn bzpopmin(ctx: &mut Ctx<'_, '_>, args: &mut Args<'_>) -> Result<Outcome> {
    bzpop(ctx, args, End::Min)
}

fn bzpopmax(ctx: &mut Ctx<'_, '_>, args: &mut Args<'_>) -> Result<Outcome> {
    bzpop(ctx, args, End::Max)
}

fn bzpop(ctx: &mut Ctx<'_, '_>, args: &mut Args<'_>, end: End) -> Result<Outcome> {
    let timeout_ms = args.last_timeout_ms(ctx.now())?;
    let mut keys = SmallVec::<[Key<'_>; 4]>::new();
    while args.remaining() > 1 {
        keys.push(args.key()?);
    }
    for key in &keys {
        if ctx.keys.open_mut::<SortedSet>(key)?.is_some() {
            ctx.reply.array(3);
            ctx.reply.bulk(key.bytes);
            pop(ctx, key, 1, end, PopFormat::Inside)?;
            ctx.keys.propagate(|| vec![end.pop_command().to_vec(), key.bytes.to_vec()]);
            return Ok(Outcome::Replied);
        }
    }
    wait(ctx, args, &keys, timeout_ms)
}

fn wait(
    ctx: &mut Ctx<'_, '_>,
    args: &Args<'_>,
    keys: &[Key<'_>],
    timeout_ms: u64,
) -> Result<Outcome> {
    let words: SmallVec<[&[u8]; 8]> = args.arguments().collect();
    Ok(ctx.wait(&words, ValueKind::SortedSet, keys, timeout_ms, EmptyReply::NullArray))
}

fn bzmpop(ctx: &mut Ctx<'_, '_>, args: &mut Args<'_>) -> Result<Outcome> {
    // The timeout is the first argument and is checked last.
    let mut first = args.clone();
    args.bytes()?;
    let wanted = ZmpopOptions::parse(args)?;
    let timeout_ms = first.timeout_ms(ctx.now())?;
    if wanted.pop(ctx)? {
        return Ok(Outcome::Replied);
    }
    wait(ctx, args, &wanted.keys, timeout_ms)
}

const USES: KeyFlags = KeyFlags::ACCESS.union(KeyFlags::DELETE);
const TIMEOUT: Arg = Arg::double("timeout");

/// The common part of BZPOPMIN and BZPOPMAX.
const POP: Spec = Spec {
    group: Group::SortedSet,
    since: "5.0.0",
    complexity: "O(log(N)) with N members.",
    arity: -3,
    flags: Flags::WRITE.union(Flags::NOSCRIPT).union(Flags::FAST).union(Flags::BLOCKING),
    keys: &[KeySpec::range(1, -2, 1).read_write(USES)],
    args: &[Arg::key("key").multiple(), TIMEOUT],
    history: &[("6.0.0", "The timeout can be a fraction of a second.")],
    ..Spec::EMPTY
};

const BZPOPMIN: Spec = Spec {
    name: "bzpopmin",
    summary: "Removes and returns the member with the lowest score. Blocks until there is one.",
    ..POP
};

const BZPOPMAX: Spec = Spec {
    name: "bzpopmax",
    summary: "Removes and returns the member with the highest score. Blocks until there is one.",
    ..POP
};

const BZMPOP: Spec = Spec {
    name: "bzmpop",
    group: Group::SortedSet,
    summary: "Removes and returns members of the first sorted set that is not empty. Blocks until there is one.",
    since: "7.0.0",
    complexity: "O(K) + O(M*log(N)) for K keys and N members, M of which are removed.",
    arity: -5,
    flags: Flags::WRITE.union(Flags::BLOCKING).union(Flags::MOVABLEKEYS),
    keys: &[KeySpec::counted(2).read_write(USES)],
    args: &[
        TIMEOUT,
        Arg::integer("numkeys"),
        Arg::key("key").multiple(),
        Arg::one_of("where", &[Arg::token("min", "MIN"), Arg::token("max", "MAX")]),
        Arg::integer("count").after("COUNT").optional(),
    ],
    ..Spec::EMPTY
};

pub(super) const COMMANDS: &[Command] = &[
    Command { spec: BZPOPMIN, run: bzpopmin, subcommands: &[] },
    Command { spec: BZPOPMAX, run: bzpopmax, subcommands: &[] },
    Command { spec: BZMPOP, run: bzmpop, subcommands: &[] },
];
