//! ZREM, ZREMRANGEBYRANK, ZREMRANGEBYSCORE, ZREMRANGEBYLEX: remove members.

use crate::base::error::Result;
use crate::call::ctx::{Command, Ctx};
use crate::command::args::Args;
use crate::command::{Arg, ElementArgs, Flags, Group, KeyFlags, KeySpec, Spec};
use crate::keyspace::Key;
use crate::reply::Outcome;
use crate::types::sorted_set::{LexRange, ScoreRange};
use crate::types::{Edit, SortedSet};
use std::ops::Range;

fn zrem(ctx: &mut Ctx<'_, '_>, args: &mut Args<'_>) -> Result<Outcome> {
    let key = args.key()?;
    let removed = ctx.keys.update::<SortedSet, _>(&key, |set, _| {
        let mut removed = 0;
        while let Some(member) = args.optional() {
            removed += u64::from(set.remove(member));
            if set.is_empty() {
                break;
            }
        }
        Ok(Edit::new(removed, removed, "zrem"))
    })?;
    Ok(ctx.reply.integer(removed.unwrap_or(0) as i64))
}

fn zremrangebyrank(ctx: &mut Ctx<'_, '_>, args: &mut Args<'_>) -> Result<Outcome> {
    let key = args.key()?;
    let (start, end) = (args.integer()?, args.integer()?);
    remove(ctx, &key, "zremrangebyrank", |set| set.ranks(start, end))
}

fn zremrangebyscore(ctx: &mut Ctx<'_, '_>, args: &mut Args<'_>) -> Result<Outcome> {
    let key = args.key()?;
    let range = ScoreRange::parse(args.bytes()?, args.bytes()?)?;
    remove(ctx, &key, "zremrangebyscore", |set| set.score_ranks(&range))
}

fn zremrangebylex(ctx: &mut Ctx<'_, '_>, args: &mut Args<'_>) -> Result<Outcome> {
    let key = args.key()?;
    let range = LexRange::parse(args.bytes()?, args.bytes()?)?;
    remove(ctx, &key, "zremrangebylex", |set| set.lex_ranks(&range, false))
}

fn remove(
    ctx: &mut Ctx<'_, '_>,
    key: &Key<'_>,
    event: &'static str,
    ranks: impl FnOnce(&SortedSet) -> Range<usize>,
) -> Result<Outcome> {
    let removed = ctx.keys.update::<SortedSet, _>(key, |set, _| {
        let ranks = ranks(set);
        let removed = ranks.len();
        if removed > 0 {
            set.remove_ranks(ranks);
        }
        Ok(Edit::new(removed, removed as u64, event))
    })?;
    Ok(ctx.reply.count(removed.unwrap_or(0)))
}

const ZREM: Command = Command {
    spec: Spec {
        name: "zrem",
        group: Group::SortedSet,
        summary: "Removes members of a sorted set.",
        since: "1.2.0",
        complexity: "O(M*log(N)) with N members, M of which are removed",
        arity: -3,
        flags: Flags::WRITE.union(Flags::FAST),
        keys: &[KeySpec::at(1).read_write(KeyFlags::DELETE)],
        elements: ElementArgs::ALL,
        args: &[Arg::key("key"), Arg::string("member").multiple()],
        history: &[("2.4.0", "Accepts several members.")],
        ..Spec::EMPTY
    },
    run: zrem,
    subcommands: &[],
};

const ZREMRANGEBYRANK: Command = Command {
    spec: Spec {
        name: "zremrangebyrank",
        group: Group::SortedSet,
        summary: "Removes the members with ranks in a range.",
        since: "2.0.0",
        complexity: "O(log(N)+M) with N members, M of which are removed",
        arity: 4,
        flags: Flags::WRITE,
        keys: &[KeySpec::at(1).read_write(KeyFlags::DELETE)],
        args: &[Arg::key("key"), Arg::integer("start"), Arg::integer("stop")],
        ..Spec::EMPTY
    },
    run: zremrangebyrank,
    subcommands: &[],
};

const ZREMRANGEBYSCORE: Command = Command {
    spec: Spec {
        name: "zremrangebyscore",
        group: Group::SortedSet,
        summary: "Removes the members with scores in a range.",
        since: "1.2.0",
        complexity: "O(log(N)+M) with N members, M of which are removed",
        arity: 4,
        flags: Flags::WRITE,
        keys: &[KeySpec::at(1).read_write(KeyFlags::DELETE)],
        args: &[Arg::key("key"), Arg::double("min"), Arg::double("max")],
        ..Spec::EMPTY
    },
    run: zremrangebyscore,
    subcommands: &[],
};

const ZREMRANGEBYLEX: Command = Command {
    spec: Spec {
        name: "zremrangebylex",
        group: Group::SortedSet,
        summary: "Removes the members in a lexicographic range.",
        since: "2.8.9",
        complexity: "O(log(N)+M) with N members, M of which are removed",
        arity: 4,
        flags: Flags::WRITE,
        keys: &[KeySpec::at(1).read_write(KeyFlags::DELETE)],
        args: &[Arg::key("key"), Arg::string("min"), Arg::string("max")],
        ..Spec::EMPTY
    },
    run: zremrangebylex,
    subcommands: &[],
};

pub(super) const COMMANDS: &[Command] = &[ZREM, ZREMRANGEBYRANK, ZREMRANGEBYSCORE, ZREMRANGEBYLEX];
