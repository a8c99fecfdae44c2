//! ZSCAN: members bit by bit.

use crate::args::Args;
use crate::command::{Arg, Flags, Group, KeyFlags, KeySpec, Spec};
use crate::commands::generic::parse_cursor;
use crate::ctx::{Command, Ctx};
use crate::error::{CommandError, Result};
use crate::glob::{self, Case};
use crate::reply::Outcome;
use crate::types::SortedSet;
use brisk_resp::reply::encode;

fn zscan(ctx: &mut Ctx<'_, '_>, args: &mut Args<'_>) -> Result<Outcome> {
    let key = args.key()?;
    let cursor = parse_cursor(args.bytes()?).ok_or(CommandError::InvalidCursor)?;
    let Some(set) = ctx.keys.open::<SortedSet>(&key)? else {
        ctx.reply.array(2);
        ctx.reply.bulk(b"0");
        return Ok(ctx.reply.array(0));
    };
    let (mut count, mut pattern) = (10, None);
    while args.remaining() > 0 {
        if args.remaining() > 1 && args.take("COUNT") {
            count = args.integer()?;
            if count < 1 {
                return Err(CommandError::Syntax);
            }
        } else if args.remaining() > 1 && args.take("MATCH") {
            pattern = Some(args.bytes()?).filter(|pattern| *pattern != b"*");
        } else {
            return Err(CommandError::Syntax);
        }
    }
    let (mut encoded, mut found) = (Vec::new(), 0);
    let count = usize::try_from(count).unwrap_or(usize::MAX);
    let next = set.scan(cursor, count, |member, score| {
        if pattern.is_none_or(|pattern| glob::matches(pattern, member, Case::Matters)) {
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
