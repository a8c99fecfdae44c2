//! ZSCAN: members bit by bit.

use crate::args::Args;
use crate::command::{Arg, Flags, Group, KeyFlags, KeySpec, Spec};
use crate::commands::iteration::{self, Step};
use crate::ctx::{Command, Ctx};
use crate::error::Result;
use crate::reply::Outcome;
use crate::types::SortedSet;

fn zscan(ctx: &mut Ctx<'_, '_>, args: &mut Args<'_>) -> Result<Outcome> {
    let key = args.key()?;
    let cursor = iteration::cursor(args)?;
    let Some(set) = ctx.keys.open::<SortedSet>(&key)? else {
        ctx.reply.array(2);
        ctx.reply.bulk_integer(0);
        return Ok(ctx.reply.array(0));
    };
    let step = Step::parse(args)?;
    let count = usize::try_from(step.count).unwrap_or(usize::MAX);
    let reply = &mut ctx.reply;
    reply.array(2);
    let mark = reply.buffer().mark();
    let mut shown = 0;
    let next = set.scan(cursor, count, |member, score| {
        if step.admits(member) {
            reply.item(member);
            reply.bulk(score);
            shown += 2;
        }
    });
    Ok(reply.before(mark, |reply| {
        // Cursors have fewer bits than 63.
        reply.bulk_integer(next as i64);
        reply.array(shown);
    }))
}

const ZSCAN: Command = Command {
    spec: Spec {
        name: "zscan",
        group: Group::SortedSet,
        summary: "Lists members bit by bit.",
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
        ],
        ..Spec::EMPTY
    },
    run: zscan,
    subcommands: &[],
};

pub(super) const COMMANDS: &[Command] = &[ZSCAN];
