//! SINTER, SINTERCARD, SUNION, SDIFF and their STORE forms: operations on several sets. For large
//! sets another thread does the work, using views.

use crate::base::error::{CommandError, Result};
use crate::base::number::parse_i64;
use crate::call::ctx::{Command, Ctx, Handler};
use crate::command::args::Args;
use crate::command::{Arg, Flags, Group, KeyFlags, KeySpec, Spec};
use crate::keyspace::{Key, Keys};
use crate::reply::{Outcome, Reply};
use crate::types::View;
use crate::types::set::{self, Member, Set};
use crate::types::{Collection, EncodingLimits};
use smallvec::SmallVec;
use std::ops::ControlFlow;

/// The keys of a command's sets.
type SetKeys<'k> = SmallVec<[Key<'k>; 8]>;
/// The sets, `None` where the key does not exist.
type Sets<'k> = SmallVec<[Option<&'k Set>; 8]>;
/// The sets that exist.
type Existing<'k> = SmallVec<[&'k Set; 8]>;

/// The operation on the sets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Operation {
    Inter,
    Union,
    Diff,
}

fn keys_of<'k>(args: &mut Args<'k>, count: usize) -> Result<SetKeys<'k>> {
    (0..count).map(|_| args.key()).collect()
}

/// All keys are checked: if one has a wrong type, that is an error, regardless of the other keys.
fn open<'k>(keys: &'k Keys<'_>, names: &[Key<'_>]) -> Result<Sets<'k>> {
    names.iter().map(|key| keys.open::<Set>(key)).collect()
}

/// The sets at the time when these views were taken.
fn sets_of(views: &[View]) -> Sets<'_> {
    views.iter().map(|view| view.as_ref().and_then(Set::of_value)).collect()
}

/// All sets to intersect; `None` if one is missing, because it counts as empty.
fn all<'k>(sets: Sets<'k>) -> Option<Existing<'k>> {
    sets.into_iter().collect()
}

/// The existing sets, for a union.
fn existing<'k>(sets: Sets<'k>) -> Existing<'k> {
    sets.into_iter().flatten().collect()
}

/// The first set and those to subtract from it; `None` if the first is missing.
fn first_and_others<'k>(sets: Sets<'k>) -> Option<(&'k Set, Existing<'k>)> {
    let mut sets = sets.into_iter();
    let first = sets.next().flatten()?;
    Some((first, sets.flatten().collect()))
}

impl Operation {
    /// Approximate number of members that are looked up or added.
    fn steps(self, sets: &Sets<'_>) -> usize {
        let len = |set: &Option<&Set>| set.map_or(0, Set::len);
        match self {
            Operation::Inter => sets.iter().map(len).min().unwrap_or(0) * sets.len(),
            Operation::Union | Operation::Diff => sets.iter().map(len).sum(),
        }
    }

    fn show(self, sets: Sets<'_>, limits: &EncodingLimits, reply: &mut Reply<'_>) -> Outcome {
        reply_with(reply, |show| match self {
            Operation::Inter => {
                let Some(mut sets) = all(sets) else { return };
                set::each_common(&mut sets, limits, |member| {
                    show(member);
                    ControlFlow::Continue(())
                });
            }
            Operation::Union => set::each_of_any(&mut existing(sets), limits, show),
            Operation::Diff => {
                let Some((first, mut others)) = first_and_others(sets) else { return };
                set::each_only_in(first, &mut others, limits, show);
            }
        })
    }

    fn make(self, sets: Sets<'_>, limits: &EncodingLimits) -> Set {
        let made = match self {
            Operation::Inter => all(sets).map(|mut sets| set::intersection(&mut sets, limits)),
            Operation::Union => Some(set::union(&existing(sets), limits)),
            Operation::Diff => first_and_others(sets)
                .map(|(first, mut others)| set::difference(first, &mut others, limits)),
        };
        made.unwrap_or_default()
    }
}

/// Replies with the members that `each` visits.
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
    show(ctx, args, Operation::Inter)
}

fn sunion(ctx: &mut Ctx<'_, '_>, args: &mut Args<'_>) -> Result<Outcome> {
    show(ctx, args, Operation::Union)
}

fn sdiff(ctx: &mut Ctx<'_, '_>, args: &mut Args<'_>) -> Result<Outcome> {
    show(ctx, args, Operation::Diff)
}

fn sinterstore(ctx: &mut Ctx<'_, '_>, args: &mut Args<'_>) -> Result<Outcome> {
    store(ctx, args, Operation::Inter, "sinterstore")
}

fn sunionstore(ctx: &mut Ctx<'_, '_>, args: &mut Args<'_>) -> Result<Outcome> {
    store(ctx, args, Operation::Union, "sunionstore")
}

fn sdiffstore(ctx: &mut Ctx<'_, '_>, args: &mut Args<'_>) -> Result<Outcome> {
    store(ctx, args, Operation::Diff, "sdiffstore")
}

fn show(ctx: &mut Ctx<'_, '_>, args: &mut Args<'_>, operation: Operation) -> Result<Outcome> {
    let names = keys_of(args, args.remaining())?;
    let sets = open(ctx.keys, &names)?;
    let limits = ctx.keys.env().settings.limits;
    if ctx.is_long(operation.steps(&sets)) {
        drop(sets);
        let views = ctx.keys.views(&names);
        return Ok(ctx.reply_elsewhere(args, move |_, reply| {
            Ok(operation.show(sets_of(&views), &limits, reply))
        }));
    }
    Ok(operation.show(sets, &limits, &mut ctx.reply))
}

/// Stores the result under the key of a STORE form and replies with its length.
fn store(
    ctx: &mut Ctx<'_, '_>,
    args: &mut Args<'_>,
    operation: Operation,
    event: &'static str,
) -> Result<Outcome> {
    let destination = args.key()?;
    let names = keys_of(args, args.remaining())?;
    let sets = open(ctx.keys, &names)?;
    let limits = ctx.keys.env().settings.limits;
    let result = if ctx.is_long(operation.steps(&sets)) {
        drop(sets);
        let make = move |views: &[View]| operation.make(sets_of(views), &limits);
        match ctx.result_elsewhere(args, &names, make) {
            Some(result) => result,
            None => return Ok(Outcome::Elsewhere),
        }
    } else {
        operation.make(sets, &limits)
    };
    let len = result.len();
    ctx.keys.put(&destination, result, event);
    Ok(ctx.reply.count(len))
}

fn sintercard(ctx: &mut Ctx<'_, '_>, args: &mut Args<'_>) -> Result<Outcome> {
    let count = parse_i64(args.bytes()?).filter(|count| *count > 0);
    let count = count.ok_or(CommandError::text("ERR numkeys should be greater than 0"))?;
    let count = usize::try_from(count).unwrap_or(usize::MAX);
    if count > args.remaining() {
        return Err(CommandError::text("ERR Number of keys can't be greater than number of args"));
    }
    let names = keys_of(args, count)?;
    let mut limit = 0;
    while let Some(word) = args.optional() {
        if !word.eq_ignore_ascii_case(b"LIMIT") {
            return Err(CommandError::Syntax);
        }
        limit = parse_i64(args.bytes()?)
            .filter(|limit| *limit >= 0)
            .ok_or(CommandError::text("ERR LIMIT can't be negative"))?;
    }
    let limit = usize::try_from(limit).ok().filter(|limit| *limit > 0).unwrap_or(usize::MAX);
    let sets = open(ctx.keys, &names)?;
    let limits = ctx.keys.env().settings.limits;
    let at_once = ctx.counted_at_once(Operation::Inter.steps(&sets), limit, sets.len());
    if let Some(count) = count_common(sets, &limits, limit, at_once) {
        return Ok(ctx.reply.count(count));
    }
    let views = ctx.keys.views(&names);
    Ok(ctx.reply_elsewhere(args, move |_, reply| {
        let count = count_common(sets_of(&views), &limits, limit, usize::MAX);
        Ok(reply.count(count.expect("a set has no more members than that")))
    }))
}

/// Number of members that all sets contain, up to `count_max`. `None` if `members_max` members of
/// the smallest set are not enough to determine it.
fn count_common(
    sets: Sets<'_>,
    limits: &EncodingLimits,
    count_max: usize,
    members_max: usize,
) -> Option<usize> {
    match all(sets) {
        Some(mut sets) => set::count_common(&mut sets, limits, count_max, members_max),
        None => Some(0),
    }
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

/// A command that stores the result of a set operation in a key.
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

const O_INTERSECTION: &str = "O(N*M) at worst, with N members in the smallest of M sets";
const O_ALL: &str = "O(N) in the number of members of all sets together";

const SINTER: Command =
    shown("sinter", "Returns the intersection of sets.", O_INTERSECTION, sinter);

const SINTERCARD: Command = Command {
    spec: Spec {
        name: "sintercard",
        group: Group::Set,
        summary: "Returns the number of members in the intersection of sets.",
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
    "Stores the intersection of sets.",
    O_INTERSECTION,
    &[KeySpec::at(1).read_write(KeyFlags::UPDATE), SOURCES],
    sinterstore,
);

const SUNION: Command = shown("sunion", "Returns the union of sets.", O_ALL, sunion);

const SUNIONSTORE: Command = stored(
    "sunionstore",
    "Stores the union of sets.",
    O_ALL,
    &[KeySpec::at(1).overwrite(KeyFlags::UPDATE), SOURCES],
    sunionstore,
);

const SDIFF: Command = shown("sdiff", "Returns the difference of sets.", O_ALL, sdiff);

const SDIFFSTORE: Command = stored(
    "sdiffstore",
    "Stores the difference of sets.",
    O_ALL,
    &[KeySpec::at(1).overwrite(KeyFlags::UPDATE), SOURCES],
    sdiffstore,
);

pub(super) const COMMANDS: &[Command] =
    &[SINTER, SINTERCARD, SINTERSTORE, SUNION, SUNIONSTORE, SDIFF, SDIFFSTORE];
