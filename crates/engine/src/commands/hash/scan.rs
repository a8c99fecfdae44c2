//! HSCAN: iterate over the fields of a hash.

use crate::base::error::Result;
use crate::call::ctx::{Command, Ctx};
use crate::command::args::Args;
use crate::command::{Arg, Flags, Group, KeyFlags, KeySpec, Spec};
use crate::commands::iteration::{self, ScanOptions};
use crate::reply::Outcome;
use crate::types::hash::Hash;

fn hscan(ctx: &mut Ctx<'_, '_>, args: &mut Args<'_>) -> Result<Outcome> {
    let key = args.key()?;
    let cursor = iteration::cursor(args)?;
    let Some(hash) = ctx.keys.open::<Hash>(&key)? else {
        return Ok(iteration::reply_empty_step(&mut ctx.reply));
    };
    let step = ScanOptions::parse_of_pairs(args, "NOVALUES")?;
    Ok(iteration::reply_step(&mut ctx.reply, |reply| {
        let mut shown = 0;
        let next = hash.scan(cursor, step.count, |field, value| {
            if step.admits(field) {
                reply.item(field);
                shown += 1;
                if step.with_values {
                    reply.item(value);
                    shown += 1;
                }
            }
        });
        (next, shown)
    }))
}

const HSCAN: Command = Command {
    spec: Spec {
        name: "hscan",
        group: Group::Hash,
        summary: "Iterates over the fields and values of a hash.",
        since: "2.8.0",
        complexity: "O(1) for every call. A whole iteration, until the cursor is 0 again, is O(N) in the number of fields.",
        arity: -3,
        flags: Flags::READONLY,
        tips: &["nondeterministic_output"],
        keys: &[KeySpec::at(1).read_only(KeyFlags::ACCESS)],
        args: &[
            Arg::key("key"),
            Arg::integer("cursor"),
            Arg::pattern("pattern").after("MATCH").optional(),
            Arg::integer("count").after("COUNT").optional(),
            Arg::token("novalues", "NOVALUES").since("7.4.0").optional(),
        ],
        ..Spec::EMPTY
    },
    run: hscan,
    subcommands: &[],
};

pub(super) const COMMANDS: &[Command] = &[HSCAN];
