//! ZRANDMEMBER: random members.

use super::reply::Show;
use crate::base::error::{CommandError, Result};
use crate::base::random::Random;
use crate::call::ctx::{Command, Ctx};
use crate::command::args::Args;
use crate::command::{Arg, Flags, Group, KeyFlags, KeySpec, Spec};
use crate::reply::{Outcome, Reply};
use crate::types::SortedSet;
use std::collections::HashSet;

/// With more draws than this, the reply is written as the client reads it.
const AT_ONCE_MAX: u64 = 1_000;

fn zrandmember(ctx: &mut Ctx<'_, '_>, args: &mut Args<'_>) -> Result<Outcome> {
    let key = args.key()?;
    if args.remaining() == 0 {
        let Some(set) = ctx.keys.open::<SortedSet>(&key)? else { return Ok(ctx.reply.null()) };
        let rank = ctx.keys.env().random_below(set.len() as u64) as usize;
        let member = set.iter(rank..rank + 1).next();
        return Ok(match member {
            Some((member, _)) => ctx.reply.bulk(member.text(&mut itoa::Buffer::new())),
            None => ctx.reply.null(),
        });
    }
    let count = args.integer()?;
    if count == i64::MIN {
        return Err(CommandError::text(format!(
            "ERR value is out of range, value must between {} and {}",
            -i64::MAX,
            i64::MAX
        )));
    }
    let show = if args.remaining() == 1 && args.take("WITHSCORES") {
        Show::WithScores
    } else {
        Show::Members
    };
    args.end()?;
    if show == Show::WithScores && count.unsigned_abs() > i64::MAX as u64 / 2 {
        return Err(CommandError::OutOfRange);
    }
    let Some(set) = ctx.keys.open::<SortedSet>(&key)? else { return Ok(ctx.reply.array(0)) };
    let wanted = count.unsigned_abs();
    if count >= 0 && wanted >= set.len() as u64 {
        return Ok(show.ranks(&mut ctx.reply, set, 0..set.len(), false));
    }
    let mut random = Random::seeded(ctx.keys.env().random_below(u64::MAX));
    if count >= 0 {
        return Ok(distinct(&mut ctx.reply, set, wanted as usize, show, &mut random));
    }
    Ok(repeated(&mut ctx.reply, set, wanted, show, random))
}

/// Draws `wanted` distinct members. The set has more members than that.
fn distinct(
    reply: &mut Reply<'_>,
    set: &SortedSet,
    wanted: usize,
    show: Show,
    random: &mut Random,
) -> Outcome {
    show.announce(reply, wanted);
    // Draws the smaller group: the members to show, or those not to show.
    let len = set.len();
    let few = wanted <= len / 2;
    let drawn = draw(len, if few { wanted } else { len - wanted }, random);
    if few {
        for rank in drawn {
            set.iter(rank..rank + 1).for_each(|(member, score)| show.member(reply, member, score));
        }
    } else {
        let left_out: HashSet<usize> = drawn.into_iter().collect();
        for (rank, (member, score)) in set.iter(0..len).enumerate() {
            if !left_out.contains(&rank) {
                show.member(reply, member, score);
            }
        }
    }
    Outcome::Replied
}

/// `count` distinct numbers below `len`, in random order.
fn draw(len: usize, count: usize, random: &mut Random) -> Vec<usize> {
    let mut seen = HashSet::with_capacity(count);
    let mut drawn = Vec::with_capacity(count);
    while drawn.len() < count {
        let rank = random.below(len as u64) as usize;
        if seen.insert(rank) {
            drawn.push(rank);
        }
    }
    drawn
}

/// Draws `wanted` members, each from all members.
fn repeated(
    reply: &mut Reply<'_>,
    set: &SortedSet,
    wanted: u64,
    show: Show,
    mut random: Random,
) -> Outcome {
    show.announce(reply, wanted as usize);
    if wanted <= AT_ONCE_MAX {
        for _ in 0..wanted {
            draw_one(reply, set, show, &mut random);
        }
        return Outcome::Replied;
    }
    let view = set.clone();
    let mut left = wanted;
    reply.stream(move |reply, budget| {
        let end = reply.written().saturating_add(budget);
        while left > 0 && reply.written() < end {
            draw_one(reply, &view, show, &mut random);
            left -= 1;
        }
        left > 0
    })
}

fn draw_one(reply: &mut Reply<'_>, set: &SortedSet, show: Show, random: &mut Random) {
    let rank = random.below(set.len() as u64) as usize;
    set.iter(rank..rank + 1).for_each(|(member, score)| show.member(reply, member, score));
}

const ZRANDMEMBER: Command = Command {
    spec: Spec {
        name: "zrandmember",
        group: Group::SortedSet,
        summary: "Returns random members of a sorted set.",
        since: "6.2.0",
        complexity: "O(N)",
        arity: -2,
        flags: Flags::READONLY,
        tips: &["nondeterministic_output"],
        keys: &[KeySpec::at(1).read_only(KeyFlags::ACCESS)],
        args: &[
            Arg::key("key"),
            Arg::block(
                "options",
                &[Arg::integer("count"), Arg::token("withscores", "WITHSCORES").optional()],
            )
            .optional(),
        ],
        ..Spec::EMPTY
    },
    run: zrandmember,
    subcommands: &[],
};

pub(super) const COMMANDS: &[Command] = &[ZRANDMEMBER];
