//! ZPOPMIN, ZPOPMAX, ZMPOP: remove members at either end and return them.

use super::reply::Show;
use crate::base::error::{CommandError, Result};
use crate::call::ctx::{Command, Ctx};
use crate::command::args::Args;
use crate::command::{Arg, Flags, Group, KeyFlags, KeySpec, Spec};
use crate::keyspace::Key;
use crate::reply::{Outcome, Reply};
use crate::types::{Edit, SortedSet};
use brisk_resp::Protocol;
use smallvec::SmallVec;

/// The end from which members are popped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum End {
    Min,
    Max,
}

/// The form of popped members in the reply.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum PopFormat {
    Flat,
    Pairs,
    /// Member and score are elements of an array that has already been begun.
    Inside,
}

fn zpopmin(ctx: &mut Ctx<'_, '_>, args: &mut Args<'_>) -> Result<Outcome> {
    zpop(ctx, args, End::Min)
}

fn zpopmax(ctx: &mut Ctx<'_, '_>, args: &mut Args<'_>) -> Result<Outcome> {
    zpop(ctx, args, End::Max)
}

fn zpop(ctx: &mut Ctx<'_, '_>, args: &mut Args<'_>, end: End) -> Result<Outcome> {
    let key = args.key()?;
    let count = match args.remaining() {
        0 => None,
        1 => {
            let count = args.integer().ok().and_then(|count| usize::try_from(count).ok());
            Some(count.ok_or(CommandError::MustBePositive)?)
        }
        _ => return Err(CommandError::Syntax),
    };
    if ctx.keys.open_mut::<SortedSet>(&key)?.is_none() || count == Some(0) {
        return Ok(ctx.reply.array(0));
    }
    let shape = match ctx.reply.protocol() {
        Protocol::Resp3 if count.is_some() => PopFormat::Pairs,
        _ => PopFormat::Flat,
    };
    pop(ctx, &key, count.unwrap_or(1), end, shape)
}

/// The arguments of ZMPOP and BZMPOP.
pub(super) struct ZmpopOptions<'a> {
    pub(super) keys: SmallVec<[Key<'a>; 4]>,
    end: End,
    count: usize,
}

impl<'a> ZmpopOptions<'a> {
    /// Takes the arguments, starting with the number of keys.
    pub(super) fn parse(args: &mut Args<'a>) -> Result<ZmpopOptions<'a>> {
        let positive = |args: &mut Args<'_>, what: &'static str| {
            let number = args.integer().ok().and_then(|number| usize::try_from(number).ok());
            let number = number.filter(|number| *number > 0);
            number.ok_or_else(|| CommandError::text(format!("ERR {what} should be greater than 0")))
        };
        let numkeys = positive(args, "numkeys")?;
        if numkeys >= args.remaining() {
            return Err(CommandError::Syntax);
        }
        let keys = (0..numkeys).map(|_| args.key()).collect::<Result<_>>()?;
        let end = if args.take("MIN") {
            End::Min
        } else if args.take("MAX") {
            End::Max
        } else {
            return Err(CommandError::Syntax);
        };
        let mut count = None;
        while args.remaining() > 0 {
            if count.is_some() || args.remaining() < 2 || !args.take("COUNT") {
                return Err(CommandError::Syntax);
            }
            count = Some(positive(args, "count")?);
        }
        Ok(ZmpopOptions { keys, end, count: count.unwrap_or(1) })
    }

    /// Pops from the first set that exists and replies. Returns false if there is none.
    pub(super) fn pop(&self, ctx: &mut Ctx<'_, '_>) -> Result<bool> {
        for key in &self.keys {
            if ctx.keys.open_mut::<SortedSet>(key)?.is_some() {
                let set = ctx.keys.inspect(key).and_then(|entry| entry.get::<SortedSet>());
                let count = self.count.min(set.map_or(0, |set| set.len()));
                ctx.reply.array(2);
                ctx.reply.bulk(key.bytes);
                pop(ctx, key, count, self.end, PopFormat::Pairs)?;
                let word = self.end.pop_command();
                let count = count.to_string().into_bytes();
                ctx.keys.propagate(|| vec![word.to_vec(), key.bytes.to_vec(), count]);
                return Ok(true);
            }
        }
        Ok(false)
    }
}

fn zmpop(ctx: &mut Ctx<'_, '_>, args: &mut Args<'_>) -> Result<Outcome> {
    let wanted = ZmpopOptions::parse(args)?;
    Ok(if wanted.pop(ctx)? { Outcome::Replied } else { ctx.reply.null_array() })
}

impl End {
    /// The command that pops at this end.
    pub(super) fn pop_command(self) -> &'static [u8] {
        match self {
            End::Min => b"ZPOPMIN",
            End::Max => b"ZPOPMAX",
        }
    }
}

/// Removes members of an existing set and replies with them.
pub(super) fn pop(
    ctx: &mut Ctx<'_, '_>,
    key: &Key<'_>,
    count: usize,
    end: End,
    shape: PopFormat,
) -> Result<Outcome> {
    let reply = &mut ctx.reply;
    let event = if end == End::Min { "zpopmin" } else { "zpopmax" };
    ctx.keys.update::<SortedSet, _>(key, |set, _| {
        let len = set.len();
        let count = count.min(len);
        let ranks = if end == End::Min { 0..count } else { len - count..len };
        match shape {
            PopFormat::Flat => _ = reply.array(2 * count),
            PopFormat::Pairs => _ = reply.array(count),
            PopFormat::Inside => {}
        }
        let members = set.iter(ranks.clone());
        let mut show = |(member, score)| show_popped(reply, member, score, shape);
        if end == End::Min {
            members.for_each(&mut show);
        } else {
            members.rev().for_each(&mut show);
        }
        set.remove_ranks(ranks);
        Ok(Edit::new((), count as u64, event))
    })?;
    Ok(Outcome::Replied)
}

fn show_popped(
    reply: &mut Reply<'_>,
    member: brisk_structures::listpack::Item<'_>,
    score: f64,
    shape: PopFormat,
) {
    if shape == PopFormat::Pairs {
        reply.array(2);
    }
    Show::Members.member(reply, member, score);
    reply.double(score);
}

const ZPOPMIN: Command = Command {
    spec: Spec {
        name: "zpopmin",
        group: Group::SortedSet,
        summary: "Removes and returns the members with the lowest scores.",
        since: "5.0.0",
        complexity: "O(log(N)*M) with N members, M of which are removed",
        arity: -2,
        flags: Flags::WRITE.union(Flags::FAST),
        keys: &[KeySpec::at(1).read_write(KeyFlags::ACCESS.union(KeyFlags::DELETE))],
        args: &[Arg::key("key"), Arg::integer("count").optional()],
        ..Spec::EMPTY
    },
    run: zpopmin,
    subcommands: &[],
};

const ZPOPMAX: Command = Command {
    spec: Spec {
        name: "zpopmax",
        group: Group::SortedSet,
        summary: "Removes and returns the members with the highest scores.",
        since: "5.0.0",
        complexity: "O(log(N)*M) with N members, M of which are removed",
        arity: -2,
        flags: Flags::WRITE.union(Flags::FAST),
        keys: &[KeySpec::at(1).read_write(KeyFlags::ACCESS.union(KeyFlags::DELETE))],
        args: &[Arg::key("key"), Arg::integer("count").optional()],
        ..Spec::EMPTY
    },
    run: zpopmax,
    subcommands: &[],
};

const ZMPOP: Command = Command {
    spec: Spec {
        name: "zmpop",
        group: Group::SortedSet,
        summary: "Removes and returns members of the first sorted set that is not empty.",
        since: "7.0.0",
        complexity: "O(K) + O(M*log(N)) for K keys and N members, M of which are removed",
        arity: -4,
        flags: Flags::WRITE.union(Flags::MOVABLEKEYS),
        keys: &[KeySpec::counted(1).read_write(KeyFlags::ACCESS.union(KeyFlags::DELETE))],
        args: &[
            Arg::integer("numkeys"),
            Arg::key("key").multiple(),
            Arg::one_of("where", &[Arg::token("min", "MIN"), Arg::token("max", "MAX")]),
            Arg::integer("count").after("COUNT").optional(),
        ],
        ..Spec::EMPTY
    },
    run: zmpop,
    subcommands: &[],
};

pub(super) const COMMANDS: &[Command] = &[ZPOPMIN, ZPOPMAX, ZMPOP];
