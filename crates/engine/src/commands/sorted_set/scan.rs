//! ZSCAN: members bit by bit.

use crate::args::Args;
use crate::command::{Arg, Flags, Group, KeyFlags, KeySpec, Spec};
use crate::commands::iteration::{self, Step};
use crate::ctx::{Command, Ctx};
use crate::error::Result;
use crate::reply::Outcome;
use crate::types::SortedSet;
use brisk_resp::reply::encode;

fn zscan(ctx: &mut Ctx<'_, '_>, args: &mut Args<'_>) -> Result<Outcome> {
    let key = args.key()?;
    let cursor = iteration::cursor(args)?;
    let Some(set) = ctx.keys.open::<SortedSet>(&key)? else {
        ctx.reply.array(2);
        ctx.reply.bulk(b"0");
        return Ok(ctx.reply.array(0));
    };
    let step = Step::parse(args)?;
    let (mut encoded, mut found) = (Vec::new(), 0);
    let count = usize::try_from(step.count).unwrap_or(usize::MAX);
    let next = set.scan(cursor, count, |member, score| {
        if step.admits_text(member) {
            encode::bulk(&mut encoded, member);
            encode::bulk(&mut encoded, score);
            found += 2;
        }
    });
    ctx.reply.array(2);
    ctx.reply.bulk(next.to_string().as_bytes());
    ctx.reply.array(found);
    ctx.reply.buffer().bytes_mut().extend_from_slice(&encoded);
    Ok(Outcome::Replied)
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
