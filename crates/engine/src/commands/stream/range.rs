//! XRANGE and XREVRANGE.

use super::entries::{EntryRange, reply_range};
use super::id;
use crate::base::error::{CommandError, Result};
use crate::call::ctx::{Command, Ctx};
use crate::command::args::Args;
use crate::command::{Arg, Flags, Group, KeyFlags, KeySpec, Spec};
use crate::reply::Outcome;
use crate::types::stream::Stream;

fn xrange(ctx: &mut Ctx<'_, '_>, args: &mut Args<'_>) -> Result<Outcome> {
    range(ctx, args, false)
}

fn xrevrange(ctx: &mut Ctx<'_, '_>, args: &mut Args<'_>) -> Result<Outcome> {
    range(ctx, args, true)
}

fn range(ctx: &mut Ctx<'_, '_>, args: &mut Args<'_>, reversed: bool) -> Result<Outcome> {
    let key = args.key()?;
    let (first, second) = (args.bytes()?, args.bytes()?);
    let (start, end) = if reversed { (second, first) } else { (first, second) };
    let (start, end) = (id::parse_start(start)?, id::parse_end(end)?);
    let mut count = None;
    while args.remaining() > 0 {
        if args.remaining() < 2 || !args.take("COUNT") {
            return Err(CommandError::Syntax);
        }
        count = Some(args.integer()?.max(0) as usize);
    }
    let Some(stream) = ctx.keys.open::<Stream>(&key)? else { return Ok(ctx.reply.array(0)) };
    if count == Some(0) {
        return Ok(ctx.reply.null_array());
    }
    let wanted = EntryRange { start, end, count, reversed };
    Ok(reply_range(&mut ctx.reply, stream.entries(), &wanted))
}

const XRANGE: Command = Command {
    spec: Spec {
        name: "xrange",
        group: Group::Stream,
        summary: "Returns the entries of a stream between two IDs.",
        since: "5.0.0",
        complexity: "O(N) in the number of entries returned.",
        arity: -4,
        flags: Flags::READONLY,
        keys: &[KeySpec::at(1).read_only(KeyFlags::ACCESS)],
        args: &[
            Arg::key("key"),
            Arg::string("start"),
            Arg::string("end"),
            Arg::integer("count").after("COUNT").optional(),
        ],
        history: &[("6.2.0", "Accepts exclusive ranges.")],
        ..Spec::EMPTY
    },
    run: xrange,
    subcommands: &[],
};

const XREVRANGE: Command = Command {
    spec: Spec {
        name: "xrevrange",
        group: Group::Stream,
        summary: "Returns the entries of a stream between two IDs, in reverse order.",
        since: "5.0.0",
        complexity: "O(N) in the number of entries returned.",
        arity: -4,
        flags: Flags::READONLY,
        keys: &[KeySpec::at(1).read_only(KeyFlags::ACCESS)],
        args: &[
            Arg::key("key"),
            Arg::string("end"),
            Arg::string("start"),
            Arg::integer("count").after("COUNT").optional(),
        ],
        history: &[("6.2.0", "Accepts exclusive ranges.")],
        ..Spec::EMPTY
    },
    run: xrevrange,
    subcommands: &[],
};

pub(super) const COMMANDS: &[Command] = &[XRANGE, XREVRANGE];
