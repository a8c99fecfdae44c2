//! SSCAN: iterate over the members of a set.

use crate::base::error::Result;
use crate::call::ctx::{Command, Ctx};
use crate::command::args::Args;
use crate::command::{Arg, Flags, Group, KeyFlags, KeySpec, Spec};
use crate::commands::iteration::{self, ScanOptions};
use crate::reply::Outcome;
use crate::types::set::Set;

fn sscan(ctx: &mut Ctx<'_, '_>, args: &mut Args<'_>) -> Result<Outcome> {
    let key = args.key()?;
    let cursor = iteration::cursor(args)?;
    let Some(set) = ctx.keys.open::<Set>(&key)? else {
        return Ok(iteration::reply_empty_step(&mut ctx.reply));
    };
    let step = ScanOptions::parse(args)?;
    Ok(iteration::reply_step(&mut ctx.reply, |reply| {
        let mut shown = 0;
        let next = set.scan(cursor, step.count, |member| {
            if step.admits(member) {
                reply.item(member);
                shown += 1;
            }
        });
        (next, shown)
    }))
}

const SSCAN: Command = Command {
    spec: Spec {
        name: "sscan",
        group: Group::Set,
        summary: "Iterates over the members of a set.",
        since: "2.8.0",
        complexity: "O(1) for every call. A whole iteration, until the cursor is 0 again, is O(N) in the number of members.",
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
    run: sscan,
    subcommands: &[],
};

pub(super) const COMMANDS: &[Command] = &[SSCAN];
