//! SINTER, SINTERCARD, SUNION, SDIFF and their STORE forms: several sets at once.

use crate::args::Args;
use crate::command::{Arg, Flags, Group, KeyFlags, KeySpec, Spec};
use crate::ctx::{Command, Ctx, Handler};
use crate::error::{CommandError, Result};
use crate::keyspace::{Key, Keys};
use crate::number::parse_i64;
use crate::reply::{Outcome, Reply};
use crate::types::set::{self, Member, Set};
use smallvec::SmallVec;
use std::ops::ControlFlow;

/// The sets of a command's keys, `None` where there is no key.
type Sets<'k> = SmallVec<[Option<&'k Set>; 8]>;
/// Those that exist.
type Existing<'k> = SmallVec<[&'k Set; 8]>;

/// The sets of the next `count` keys. All of them are looked at: a wrong type among them is an
/// error whatever the others are.
fn open<'k>(keys: &'k Keys<'_>, args: &mut Args<'_>, count: usize) -> Result<Sets<'k>> {
    (0..count).map(|_| keys.open::<Set>(&args.key()?)).collect()
}

/// All sets to intersect; `None` if one is missing, hence empty.
fn all<'k>(sets: Sets<'k>) -> Option<Existing<'k>> {
    sets.into_iter().collect()
}

/// The sets to unite.
fn existing<'k>(sets: Sets<'k>) -> Existing<'k> {
    sets.into_iter().flatten().collect()
}

/// The set to subtract from and those to subtract; `None` if the first is missing.
fn first_and_others<'k>(sets: Sets<'k>) -> Option<(&'k Set, Existing<'k>)> {
    let mut sets = sets.into_iter();
    let first = sets.next().flatten()?;
    Some((first, sets.flatten().collect()))
}

/// Replies with the members that `each` shows.
fn reply_with(reply: &mut Reply<'_>, each: impl FnOnce(&mut dyn FnMut(Member<'_>))) -> Outcome {
    let mark = reply.buffer().mark();
    let mut count = 0;
    each(&mut |member| {
        reply.item(member);
        count += 1;
    });
    reply.before(mark, |reply| {
        reply.set(count);
    })
}

fn sinter(ctx: &mut Ctx<'_, '_>, args: &mut Args<'_>) -> Result<Outcome> {
    let sets = open(ctx.keys, args, args.remaining())?;
    let Some(mut sets) = all(sets) else { return Ok(ctx.reply.set(0)) };
    Ok(reply_with(&mut ctx.reply, |show| {
        set::each_common(&mut sets, |member| {
            show(member);
            ControlFlow::Continue(())
        });
    }))
}

fn sintercard(ctx: &mut Ctx<'_, '_>, args: &mut Args<'_>) -> Result<Outcome> {
    let count = parse_i64(args.bytes()?).filter(|count| *count > 0);
    let count = count.ok_or(CommandError::text("ERR numkeys should be greater than 0"))?;
    let count = usize::try_from(count).unwrap_or(usize::MAX);
    if count > args.remaining() {
        return Err(CommandError::text("ERR Number of keys can't be greater than number of args"));
    }
    let mut keys = args.clone();
    (0..count).try_for_each(|_| args.bytes().map(drop))?;
    let mut limit = 0;
    while let Some(word) = args.optional() {
        if !word.eq_ignore_ascii_case(b"LIMIT") {
            return Err(CommandError::Syntax);
        }
        limit = parse_i64(args.bytes()?)
            .filter(|limit| *limit >= 0)
            .ok_or(CommandError::text("ERR LIMIT can't be negative"))?;
    }
    let sets = open(ctx.keys, &mut keys, count)?;
    let Some(mut sets) = all(sets) else { return Ok(ctx.reply.integer(0)) };
    let mut found = 0;
    set::each_common(&mut sets, |_| {
        found += 1;
        if found == limit { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    });
    Ok(ctx.reply.integer(found))
}

fn sunion(ctx: &mut Ctx<'_, '_>, args: &mut Args<'_>) -> Result<Outcome> {
    let mut sets = existing(open(ctx.keys, args, args.remaining())?);
    let limits = &ctx.keys.env().settings.limits;
    Ok(reply_with(&mut ctx.reply, |show| set::each_of_any(&mut sets, limits, show)))
}

fn sdiff(ctx: &mut Ctx<'_, '_>, args: &mut Args<'_>) -> Result<Outcome> {
    let sets = open(ctx.keys, args, args.remaining())?;
    let Some((first, mut others)) = first_and_others(sets) else { return Ok(ctx.reply.set(0)) };
    let limits = &ctx.keys.env().settings.limits;
    Ok(reply_with(&mut ctx.reply, |show| set::each_only_in(first, &mut others, limits, show)))
}

/// Puts a result under the key of a STORE form and replies with its length.
fn store(
    ctx: &mut Ctx<'_, '_>,
    destination: &Key<'_>,
    result: Option<Set>,
    event: &'static str,
) -> Outcome {
    let result = result.unwrap_or_default();
    let len = result.len();
    ctx.keys.put(destination, result, event);
    ctx.reply.count(len)
}

fn sinterstore(ctx: &mut Ctx<'_, '_>, args: &mut Args<'_>) -> Result<Outcome> {
    let destination = args.key()?;
    let sets = all(open(ctx.keys, args, args.remaining())?);
    let limits = &ctx.keys.env().settings.limits;
    let common = sets.map(|mut sets| set::intersection(&mut sets, limits));
    Ok(store(ctx, &destination, common, "sinterstore"))
}

fn sunionstore(ctx: &mut Ctx<'_, '_>, args: &mut Args<'_>) -> Result<Outcome> {
    let destination = args.key()?;
    let sets = existing(open(ctx.keys, args, args.remaining())?);
    let all = set::union(&sets, &ctx.keys.env().settings.limits);
    drop(sets);
    Ok(store(ctx, &destination, Some(all), "sunionstore"))
}

fn sdiffstore(ctx: &mut Ctx<'_, '_>, args: &mut Args<'_>) -> Result<Outcome> {
    let destination = args.key()?;
    let sets = first_and_others(open(ctx.keys, args, args.remaining())?);
    let limits = &ctx.keys.env().settings.limits;
    let rest = sets.map(|(first, mut others)| set::difference(first, &mut others, limits));
    Ok(store(ctx, &destination, rest, "sdiffstore"))
}

/// A command that replies with members of its keys' sets.
const fn shown(
    name: &'static str,
    summary: &'static str,
    complexity: &'static str,
    run: Handler,
) -> Command {
    Command {
        spec: Spec {
            name,
            group: Group::Set,
            summary,
            complexity,
            arity: -2,
            flags: Flags::READONLY,
            tips: &["nondeterministic_output_order"],
            keys: const { &[KeySpec::range(1, -1, 1).read_only(KeyFlags::ACCESS)] },
            args: const { &[Arg::key("key").multiple()] },
            ..Spec::EMPTY
        },
        run,
        subcommands: &[],
    }
}

/// The STORE form of such a command.
const fn stored(
    name: &'static str,
    summary: &'static str,
    complexity: &'static str,
    keys: &'static [KeySpec],
    run: Handler,
) -> Command {
    Command {
        spec: Spec {
            name,
            group: Group::Set,
            summary,
            complexity,
            arity: -3,
            flags: Flags::WRITE.union(Flags::DENYOOM),
            keys,
            args: const { &[Arg::key("destination"), Arg::key("key").spec(1).multiple()] },
            ..Spec::EMPTY
        },
        run,
        subcommands: &[],
    }
}

const SOURCES: KeySpec = KeySpec::range(2, -1, 1).read_only(KeyFlags::ACCESS);

const O_INTERSECTION: &str =
    "O(N*M) with N the number of members of the smallest set and M the number of sets, at worst";
const O_ALL: &str = "O(N) in the number of members of all sets together";

const SINTER: Command =
    shown("sinter", "Lists the members that all of several sets have.", O_INTERSECTION, sinter);

const SINTERCARD: Command = Command {
    spec: Spec {
        name: "sintercard",
        group: Group::Set,
        summary: "Counts the members that all of several sets have.",
        since: "7.0.0",
        complexity: O_INTERSECTION,
        arity: -3,
        flags: Flags::READONLY.union(Flags::MOVABLEKEYS),
        keys: &[KeySpec::counted(1).read_only(KeyFlags::ACCESS)],
        args: &[
            Arg::integer("numkeys"),
            Arg::key("key").multiple(),
            Arg::integer("limit").after("LIMIT").optional(),
        ],
        ..Spec::EMPTY
    },
    run: sintercard,
    subcommands: &[],
};

const SINTERSTORE: Command = stored(
    "sinterstore",
    "Stores the members that all of several sets have.",
    O_INTERSECTION,
    &[KeySpec::at(1).read_write(KeyFlags::UPDATE), SOURCES],
    sinterstore,
);

const SUNION: Command =
    shown("sunion", "Lists the members that any of several sets has.", O_ALL, sunion);

const SUNIONSTORE: Command = stored(
    "sunionstore",
    "Stores the members that any of several sets has.",
    O_ALL,
    &[KeySpec::at(1).overwrite(KeyFlags::UPDATE), SOURCES],
    sunionstore,
);

const SDIFF: Command =
    shown("sdiff", "Lists the members of a set that no other of several has.", O_ALL, sdiff);

const SDIFFSTORE: Command = stored(
    "sdiffstore",
    "Stores the members of a set that no other of several has.",
    O_ALL,
    &[KeySpec::at(1).overwrite(KeyFlags::UPDATE), SOURCES],
    sdiffstore,
);

pub(super) const COMMANDS: &[Command] =
    &[SINTER, SINTERCARD, SINTERSTORE, SUNION, SUNIONSTORE, SDIFF, SDIFFSTORE];
