//! ZSCAN: iterate over the members of a sorted set.

use crate::base::error::Result;
use crate::call::ctx::{Command, Ctx};
use crate::command::args::Args;
use crate::command::{Arg, Flags, Group, KeyFlags, KeySpec, Spec};
use crate::commands::iteration::{self, ScanOptions};
use crate::reply::Outcome;
use crate::types::SortedSet;

fn zscan(ctx: &mut Ctx<'_, '_>, args: &mut Args<'_>) -> Result<Outcome> {
    let key = args.key()?;
    let cursor = iteration::cursor(args)?;
    let Some(set) = ctx.keys.open::<SortedSet>(&key)? else {
        return Ok(iteration::reply_empty_step(&mut ctx.reply));
    };
    let step = ScanOptions::parse_of_pairs(args, "NOSCORES")?;
    let count = usize::try_from(step.count).unwrap_or(usize::MAX);
    Ok(iteration::reply_step(&mut ctx.reply, |reply| {
        let mut shown = 0;
        let next = set.scan(cursor, count, |member, score| {
            if step.admits(member) {
                reply.item(member);
                shown += 1;
                if step.with_values {
                    reply.bulk(score);
                    shown += 1;
                }
            }
        });
        (next, shown)
    }))
}

const ZSCAN: Command = Command {
    spec: Spec {
        name: "zscan",
        group: Group::SortedSet,
        summary: "Iterates over the members and scores of a sorted set.",
        since: "2.8.0",
        complexity: "O(1)",
        arity: -3,
        flags: Flags::READONLY,
        tips: &["nondeterministic_output"],
        keys: &[KeySpec::at(1).read_only(KeyFlags::ACCESS)],
        args: &[
            Arg::key("key"),
            Arg::integer("cursor"),
            Arg::pattern("pattern").after("MATCH").optional(),
            Arg::integer("count").after("COUNT").optional(),
            Arg::token("noscores", "NOSCORES").since("8.0.0").optional(),
        ],
        ..Spec::EMPTY
    },
    run: zscan,
    subcommands: &[],
};

pub(super) const COMMANDS: &[Command] = &[ZSCAN];
