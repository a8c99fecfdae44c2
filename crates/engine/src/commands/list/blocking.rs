//! BLPOP, BRPOP, BLMPOP, BLMOVE, BRPOPLPUSH: pops that wait for an element.
//!
//! Each command first runs in its non-blocking form, and waits if it finds nothing. It runs again
//! when one of its lists is created. The non-blocking form is propagated.

use super::pop::LmpopOptions;
use super::transfer::{KEYS, transfer};
use super::{ENDS, end, pop_command, pop_event};
use crate::base::error::Result;
use crate::call::ctx::{Command, Ctx};
use crate::command::args::Args;
use crate::command::{Arg, Deprecated, Flags, Group, KeyFlags, KeySpec, Spec};
use crate::keyspace::{EmptyReply, Key};
use crate::reply::Outcome;
use crate::types::list::{End, List};
use crate::types::{Edit, ValueKind};
use smallvec::SmallVec;

fn blpop(ctx: &mut Ctx<'_, '_>, args: &mut Args<'_>) -> Result<Outcome> {
    pop(ctx, args, End::Front)
}

fn brpop(ctx: &mut Ctx<'_, '_>, args: &mut Args<'_>) -> Result<Outcome> {
    pop(ctx, args, End::Back)
}

fn pop(ctx: &mut Ctx<'_, '_>, args: &mut Args<'_>, end: End) -> Result<Outcome> {
    let timeout_ms = args.last_timeout_ms(ctx.now())?;
    let mut keys = SmallVec::<[Key<'_>; 4]>::new();
    while args.remaining() > 1 {
        keys.push(args.key()?);
    }
    for key in &keys {
        let popped = ctx.keys.update::<List, _>(key, |list, limits| {
            ctx.reply.array(2);
            ctx.reply.bulk(key.bytes);
            list.pop(end, limits, |item| _ = ctx.reply.item(item));
            Ok(Edit::new((), 1, pop_event(end)))
        })?;
        if popped.is_some() {
            ctx.keys.propagate(|| vec![pop_command(end).to_vec(), key.bytes.to_vec()]);
            return Ok(Outcome::Replied);
        }
    }
    wait(ctx, args, &keys, timeout_ms, EmptyReply::NullArray)
}

fn wait(
    ctx: &mut Ctx<'_, '_>,
    args: &Args<'_>,
    keys: &[Key<'_>],
    timeout_ms: u64,
    unserved: EmptyReply,
) -> Result<Outcome> {
    let words: SmallVec<[&[u8]; 8]> = args.arguments().collect();
    Ok(ctx.wait(&words, ValueKind::List, keys, timeout_ms, unserved))
}

fn blmpop(ctx: &mut Ctx<'_, '_>, args: &mut Args<'_>) -> Result<Outcome> {
    // The timeout is the first argument and is checked last.
    let mut first = args.clone();
    args.bytes()?;
    let wanted = LmpopOptions::parse(args)?;
    let timeout_ms = first.timeout_ms(ctx.now())?;
    if wanted.pop(ctx)? {
        return Ok(Outcome::Replied);
    }
    wait(ctx, args, &wanted.keys, timeout_ms, EmptyReply::NullArray)
}

fn blmove(ctx: &mut Ctx<'_, '_>, args: &mut Args<'_>) -> Result<Outcome> {
    let (source, destination) = (args.key()?, args.key()?);
    let (from, to) = (end(args)?, end(args)?);
    let timeout_ms = args.timeout_ms(ctx.now())?;
    if ctx.keys.inspect(&source).is_none() {
        return wait(ctx, args, &[source], timeout_ms, EmptyReply::Null);
    }
    let outcome = transfer(ctx, &source, &destination, from, to)?;
    let ends = 3..5;
    ctx.keys.propagate(|| {
        let mut words = vec![b"LMOVE".to_vec(), source.bytes.to_vec(), destination.bytes.to_vec()];
        words.extend(ends.map(|at| args.argument(at).to_vec()));
        words
    });
    Ok(outcome)
}

fn brpoplpush(ctx: &mut Ctx<'_, '_>, args: &mut Args<'_>) -> Result<Outcome> {
    let (source, destination) = (args.key()?, args.key()?);
    let timeout_ms = args.timeout_ms(ctx.now())?;
    if ctx.keys.inspect(&source).is_none() {
        return wait(ctx, args, &[source], timeout_ms, EmptyReply::Null);
    }
    let outcome = transfer(ctx, &source, &destination, End::Back, End::Front)?;
    ctx.keys.propagate(|| {
        vec![b"RPOPLPUSH".to_vec(), source.bytes.to_vec(), destination.bytes.to_vec()]
    });
    Ok(outcome)
}

const TIMEOUT: Arg = Arg::double("timeout");
const FRACTIONS: (&str, &str) = ("6.0.0", "The timeout can be a fraction of a second.");

/// The common part of BLPOP and BRPOP.
const POP: Spec = Spec {
    group: Group::List,
    since: "2.0.0",
    complexity: "O(N) in the number of keys.",
    arity: -3,
    flags: Flags::WRITE.union(Flags::NOSCRIPT).union(Flags::BLOCKING),
    keys: &[KeySpec::range(1, -2, 1).read_write(KeyFlags::ACCESS.union(KeyFlags::DELETE))],
    args: &[Arg::key("key").multiple(), TIMEOUT],
    history: &[FRACTIONS],
    ..Spec::EMPTY
};

const BLPOP: Spec = Spec {
    name: "blpop",
    summary: "Removes and returns the first element of a list. Blocks until there is one.",
    ..POP
};

const BRPOP: Spec = Spec {
    name: "brpop",
    summary: "Removes and returns the last element of a list. Blocks until there is one.",
    ..POP
};

const BLMPOP: Spec = Spec {
    name: "blmpop",
    group: Group::List,
    summary: "Removes and returns elements at an end of the first list that is not empty. Blocks until there is one.",
    since: "7.0.0",
    complexity: "O(N+M) in the numbers of keys and of elements returned.",
    arity: -5,
    flags: Flags::WRITE.union(Flags::BLOCKING).union(Flags::MOVABLEKEYS),
    keys: &[KeySpec::counted(2).read_write(KeyFlags::ACCESS.union(KeyFlags::DELETE))],
    args: &[
        TIMEOUT,
        Arg::integer("numkeys"),
        Arg::key("key").multiple(),
        Arg::one_of("where", ENDS),
        Arg::integer("count").after("COUNT").optional(),
    ],
    ..Spec::EMPTY
};

const MOVE: Flags =
    Flags::WRITE.union(Flags::DENYOOM).union(Flags::NOSCRIPT).union(Flags::BLOCKING);

const BLMOVE: Spec = Spec {
    name: "blmove",
    group: Group::List,
    summary: "Moves an element from one list to another. Blocks until there is one.",
    since: "6.2.0",
    arity: 6,
    flags: MOVE,
    keys: KEYS,
    args: &[
        Arg::key("source"),
        Arg::key("destination").spec(1),
        Arg::one_of("wherefrom", ENDS),
        Arg::one_of("whereto", ENDS),
        TIMEOUT,
    ],
    ..Spec::EMPTY
};

const BRPOPLPUSH: Spec = Spec {
    name: "brpoplpush",
    group: Group::List,
    summary: "Moves the last element of one list to the front of another. Blocks until there is one.",
    since: "2.2.0",
    arity: 4,
    flags: MOVE,
    keys: KEYS,
    args: &[Arg::key("source"), Arg::key("destination").spec(1), TIMEOUT],
    history: &[FRACTIONS],
    deprecated: Some(Deprecated {
        since: "6.2.0",
        replaced_by: "`BLMOVE` with the `RIGHT` and `LEFT` arguments",
    }),
    ..Spec::EMPTY
};

pub(super) const COMMANDS: &[Command] = &[
    Command { spec: BLPOP, run: blpop, subcommands: &[] },
    Command { spec: BRPOP, run: brpop, subcommands: &[] },
    Command { spec: BLMPOP, run: blmpop, subcommands: &[] },
    Command { spec: BLMOVE, run: blmove, subcommands: &[] },
    Command { spec: BRPOPLPUSH, run: brpoplpush, subcommands: &[] },
];
