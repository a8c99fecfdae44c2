//! ZCARD, ZSCORE, ZMSCORE, ZRANK, ZREVRANK, ZCOUNT, ZLEXCOUNT: counts, scores and ranks.

use crate::base::error::Result;
use crate::call::ctx::{Command, Ctx};
use crate::command::args::Args;
use crate::command::{Arg, ElementArgs, Flags, Group, KeyFlags, KeySpec, Spec};
use crate::reply::Outcome;
use crate::types::SortedSet;
use crate::types::sorted_set::{LexRange, ScoreRange};

fn zcard(ctx: &mut Ctx<'_, '_>, args: &mut Args<'_>) -> Result<Outcome> {
    let key = args.key()?;
    let len = ctx.keys.open::<SortedSet>(&key)?.map_or(0, SortedSet::len);
    Ok(ctx.reply.count(len))
}

fn zscore(ctx: &mut Ctx<'_, '_>, args: &mut Args<'_>) -> Result<Outcome> {
    let key = args.key()?;
    let member = args.bytes()?;
    Ok(match ctx.keys.open::<SortedSet>(&key)?.and_then(|set| set.score(member)) {
        Some(score) => ctx.reply.double(score),
        None => ctx.reply.null(),
    })
}

fn zmscore(ctx: &mut Ctx<'_, '_>, args: &mut Args<'_>) -> Result<Outcome> {
    let key = args.key()?;
    let set = ctx.keys.open::<SortedSet>(&key)?;
    ctx.reply.array(args.remaining());
    while let Some(member) = args.optional() {
        match set.and_then(|set| set.score(member)) {
            Some(score) => ctx.reply.double(score),
            None => ctx.reply.null(),
        };
    }
    Ok(Outcome::Replied)
}

fn zrank(ctx: &mut Ctx<'_, '_>, args: &mut Args<'_>) -> Result<Outcome> {
    rank(ctx, args, |_, rank| rank)
}

fn zrevrank(ctx: &mut Ctx<'_, '_>, args: &mut Args<'_>) -> Result<Outcome> {
    rank(ctx, args, |len, rank| len - 1 - rank)
}

fn rank(
    ctx: &mut Ctx<'_, '_>,
    args: &mut Args<'_>,
    counted: impl Fn(usize, usize) -> usize,
) -> Result<Outcome> {
    let key = args.key()?;
    let member = args.bytes()?;
    if args.remaining() > 1 {
        return Err(ctx.wrong_arity());
    }
    let with_score = args.take("WITHSCORE");
    args.end()?;
    let set = ctx.keys.open::<SortedSet>(&key)?;
    let found = set.and_then(|set| set.rank(member).map(|found| (set.len(), found)));
    Ok(match found {
        Some((len, (rank, score))) => {
            if with_score {
                ctx.reply.array(2);
                ctx.reply.count(counted(len, rank));
                ctx.reply.double(score)
            } else {
                ctx.reply.count(counted(len, rank))
            }
        }
        None if with_score => ctx.reply.null_array(),
        None => ctx.reply.null(),
    })
}

fn zcount(ctx: &mut Ctx<'_, '_>, args: &mut Args<'_>) -> Result<Outcome> {
    let key = args.key()?;
    let range = ScoreRange::parse(args.bytes()?, args.bytes()?)?;
    let set = ctx.keys.open::<SortedSet>(&key)?;
    Ok(ctx.reply.count(set.map_or(0, |set| set.score_ranks(&range).len())))
}

fn zlexcount(ctx: &mut Ctx<'_, '_>, args: &mut Args<'_>) -> Result<Outcome> {
    let key = args.key()?;
    let range = LexRange::parse(args.bytes()?, args.bytes()?)?;
    let set = ctx.keys.open::<SortedSet>(&key)?;
    Ok(ctx.reply.count(set.map_or(0, |set| set.lex_ranks(&range, false).len())))
}

const ZCARD: Command = Command {
    spec: Spec {
        name: "zcard",
        group: Group::SortedSet,
        summary: "Returns the number of members in a sorted set.",
        since: "1.2.0",
        complexity: "O(1)",
        arity: 2,
        flags: Flags::READONLY.union(Flags::FAST),
        keys: &[KeySpec::at(1).read_only(KeyFlags::empty())],
        args: &[Arg::key("key")],
        ..Spec::EMPTY
    },
    run: zcard,
    subcommands: &[],
};

const ZSCORE: Command = Command {
    spec: Spec {
        name: "zscore",
        group: Group::SortedSet,
        summary: "Returns the score of a member.",
        since: "1.2.0",
        complexity: "O(1)",
        arity: 3,
        flags: Flags::READONLY.union(Flags::FAST),
        keys: &[KeySpec::at(1).read_only(KeyFlags::ACCESS)],
        elements: ElementArgs::ONE,
        args: &[Arg::key("key"), Arg::string("member")],
        ..Spec::EMPTY
    },
    run: zscore,
    subcommands: &[],
};

const ZMSCORE: Command = Command {
    spec: Spec {
        name: "zmscore",
        group: Group::SortedSet,
        summary: "Returns the scores of several members.",
        since: "6.2.0",
        complexity: "O(N)",
        arity: -3,
        flags: Flags::READONLY.union(Flags::FAST),
        keys: &[KeySpec::at(1).read_only(KeyFlags::ACCESS)],
        elements: ElementArgs::ALL,
        args: &[Arg::key("key"), Arg::string("member").multiple()],
        ..Spec::EMPTY
    },
    run: zmscore,
    subcommands: &[],
};

const ZRANK: Command = Command {
    spec: Spec {
        name: "zrank",
        group: Group::SortedSet,
        summary: "Returns the rank of a member, counted from the lowest score.",
        since: "2.0.0",
        complexity: "O(log(N))",
        arity: -3,
        flags: Flags::READONLY.union(Flags::FAST),
        keys: &[KeySpec::at(1).read_only(KeyFlags::ACCESS)],
        elements: ElementArgs::ONE,
        args: &[
            Arg::key("key"),
            Arg::string("member"),
            Arg::token("withscore", "WITHSCORE").optional(),
        ],
        history: &[("7.2.0", "Accepts the option `WITHSCORE`.")],
        ..Spec::EMPTY
    },
    run: zrank,
    subcommands: &[],
};

const ZREVRANK: Command = Command {
    spec: Spec {
        name: "zrevrank",
        group: Group::SortedSet,
        summary: "Returns the rank of a member, counted from the highest score.",
        since: "2.0.0",
        complexity: "O(log(N))",
        arity: -3,
        flags: Flags::READONLY.union(Flags::FAST),
        keys: &[KeySpec::at(1).read_only(KeyFlags::ACCESS)],
        elements: ElementArgs::ONE,
        args: &[
            Arg::key("key"),
            Arg::string("member"),
            Arg::token("withscore", "WITHSCORE").optional(),
        ],
        history: &[("7.2.0", "Accepts the option `WITHSCORE`.")],
        ..Spec::EMPTY
    },
    run: zrevrank,
    subcommands: &[],
};

const ZCOUNT: Command = Command {
    spec: Spec {
        name: "zcount",
        group: Group::SortedSet,
        summary: "Counts the members with scores in a range.",
        since: "2.0.0",
        complexity: "O(log(N))",
        arity: 4,
        flags: Flags::READONLY.union(Flags::FAST),
        keys: &[KeySpec::at(1).read_only(KeyFlags::ACCESS)],
        args: &[Arg::key("key"), Arg::double("min"), Arg::double("max")],
        ..Spec::EMPTY
    },
    run: zcount,
    subcommands: &[],
};

const ZLEXCOUNT: Command = Command {
    spec: Spec {
        name: "zlexcount",
        group: Group::SortedSet,
        summary: "Counts the members in a lexicographic range.",
        since: "2.8.9",
        complexity: "O(log(N))",
        arity: 4,
        flags: Flags::READONLY.union(Flags::FAST),
        keys: &[KeySpec::at(1).read_only(KeyFlags::ACCESS)],
        args: &[Arg::key("key"), Arg::string("min"), Arg::string("max")],
        ..Spec::EMPTY
    },
    run: zlexcount,
    subcommands: &[],
};

pub(super) const COMMANDS: &[Command] =
    &[ZCARD, ZSCORE, ZMSCORE, ZRANK, ZREVRANK, ZCOUNT, ZLEXCOUNT];
