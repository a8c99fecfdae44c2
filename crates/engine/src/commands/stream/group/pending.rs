//! XACK and XPENDING: acknowledge delivered entries, and list those that have not been
//! acknowledged.

use super::read_group::idle_ms;
use crate::base::error::{CommandError, Result};
use crate::call::ctx::{Command, Ctx};
use crate::command::args::Args;
use crate::command::{Arg, Flags, Group, KeyFlags, KeySpec, Spec};
use crate::commands::stream::entries::reply_id;
use crate::commands::stream::id;
use crate::commands::stream::stream_with_group;
use crate::reply::Outcome;
use crate::types::Edit;
use crate::types::stream::{Stream, StreamId};

fn xack(ctx: &mut Ctx<'_, '_>, args: &mut Args<'_>) -> Result<Outcome> {
    let key = args.key()?;
    let name = args.bytes()?;
    // As in Redis, the stream is looked up as if it were only read.
    ctx.keys.peek(&key);
    let acknowledged = ctx.keys.update::<Stream, _>(&key, |stream, _| {
        if stream.group(name).is_none() {
            return Ok(Edit::unchanged(0));
        }
        let mut judged = args.clone();
        while let Some(word) = judged.optional() {
            id::parse(word, 0)?;
        }
        let mut acknowledged = 0;
        if let Some(group) = stream.group_mut(name) {
            while let Some(word) = args.optional() {
                acknowledged += u64::from(group.acknowledge(id::parse(word, 0)?));
            }
        }
        Ok(Edit::silent(acknowledged, acknowledged).metadata_only())
    })?;
    Ok(ctx.reply.integer(acknowledged.unwrap_or(0) as i64))
}

/// The pending entries that XPENDING lists.
struct Filter<'a> {
    idle_min_ms: i64,
    start: StreamId,
    end: StreamId,
    count: usize,
    consumer: Option<&'a [u8]>,
}

fn xpending(ctx: &mut Ctx<'_, '_>, args: &mut Args<'_>) -> Result<Outcome> {
    let key = args.key()?;
    let name = args.bytes()?;
    if args.remaining() == 0 {
        return summary(ctx, &key, name);
    }
    let filter = parse_filter(args)?;
    let now_ms = ctx.now().0 as i64;
    let (_, group) = stream_with_group(ctx.keys, &key, name)?;
    let mut found = Vec::new();
    let mut list = |id: StreamId| {
        let Some(nack) = group.pending().get(id) else { return };
        let idle = idle_ms(nack, now_ms);
        if idle >= filter.idle_min_ms {
            found.push((id, group.owner(nack), idle, nack.count));
        }
    };
    let inside = |id: &StreamId| *id <= filter.end;
    // The count limits the entries found, not the entries checked. With IDLE, all entries of the
    // range may be checked.
    match filter.consumer {
        Some(consumer) => {
            let Some(consumer) = group.consumer(consumer) else { return Ok(ctx.reply.array(0)) };
            let mut ids = consumer.pending().iter_from(filter.start).map(|(id, ())| id);
            take_some(&mut ids, inside, filter.count, &mut list, |id| {
                group.pending().get(*id).is_some_and(|n| idle_ms(n, now_ms) >= filter.idle_min_ms)
            });
        }
        None => {
            let mut ids = group.pending().iter_from(filter.start).map(|(id, _)| id);
            take_some(&mut ids, inside, filter.count, &mut list, |id| {
                group.pending().get(*id).is_some_and(|n| idle_ms(n, now_ms) >= filter.idle_min_ms)
            });
        }
    }
    ctx.reply.array(found.len());
    for (id, consumer, idle, count) in found {
        ctx.reply.array(4);
        reply_id(&mut ctx.reply, id);
        ctx.reply.bulk(&consumer.name);
        ctx.reply.integer(idle);
        ctx.reply.integer(count as i64);
    }
    Ok(Outcome::Replied)
}

fn take_some(
    ids: &mut dyn Iterator<Item = StreamId>,
    inside: impl Fn(&StreamId) -> bool,
    count: usize,
    list: &mut dyn FnMut(StreamId),
    admits: impl Fn(&StreamId) -> bool,
) {
    ids.take_while(inside).filter(admits).take(count).for_each(list);
}

fn parse_filter<'a>(args: &mut Args<'a>) -> Result<Filter<'a>> {
    if !(3..=6).contains(&args.remaining()) {
        return Err(CommandError::Syntax);
    }
    let mut idle_min_ms = 0;
    if args.take("IDLE") {
        idle_min_ms = args.integer()?;
        if args.remaining() < 3 {
            return Err(CommandError::Syntax);
        }
    }
    let (start, end) = (args.bytes()?, args.bytes()?);
    let count = args.integer()?.max(0) as usize;
    let (start, end) = (id::parse_start(start)?, id::parse_end(end)?);
    Ok(Filter { idle_min_ms, start, end, count, consumer: args.optional() })
}

fn summary(ctx: &mut Ctx<'_, '_>, key: &crate::keyspace::Key<'_>, name: &[u8]) -> Result<Outcome> {
    let (_, group) = stream_with_group(ctx.keys, key, name)?;
    let pending = group.pending();
    let reply = &mut ctx.reply;
    reply.array(4);
    reply.count(pending.len());
    let (Some(first), Some(last)) = (pending.first_id(), pending.last_id()) else {
        reply.null();
        reply.null();
        return Ok(reply.null_array());
    };
    reply_id(reply, first);
    reply_id(reply, last);
    let busy = || group.consumers().filter(|consumer| !consumer.pending().is_empty());
    reply.array(busy().count());
    for consumer in busy() {
        reply.array(2);
        reply.bulk(&consumer.name);
        reply.bulk_integer(consumer.pending().len() as i64);
    }
    Ok(Outcome::Replied)
}

const XACK: Command = Command {
    spec: Spec {
        name: "xack",
        group: Group::Stream,
        summary: "Acknowledges messages of a consumer group.",
        since: "5.0.0",
        complexity: "O(1) for each message.",
        arity: -4,
        flags: Flags::WRITE.union(Flags::FAST),
        keys: &[KeySpec::at(1).read_write(KeyFlags::UPDATE)],
        args: &[Arg::key("key"), Arg::string("group"), Arg::string("id").multiple()],
        ..Spec::EMPTY
    },
    run: xack,
    subcommands: &[],
};

const XPENDING: Command = Command {
    spec: Spec {
        name: "xpending",
        group: Group::Stream,
        summary: "Lists the messages of a group that were delivered but not acknowledged.",
        since: "5.0.0",
        complexity: "O(N) in the number of messages returned, or of messages examined with IDLE. The summary is O(N) in the number of consumers.",
        arity: -3,
        flags: Flags::READONLY,
        tips: &["nondeterministic_output"],
        keys: &[KeySpec::at(1).read_only(KeyFlags::ACCESS)],
        args: &[
            Arg::key("key"),
            Arg::string("group"),
            Arg::block(
                "filters",
                &[
                    Arg::integer("min-idle-time").after("IDLE").optional().since("6.2.0"),
                    Arg::string("start"),
                    Arg::string("end"),
                    Arg::integer("count"),
                    Arg::string("consumer").optional(),
                ],
            )
            .optional(),
        ],
        history: &[("6.2.0", "Accepts the option `IDLE`, and takes exclusive ranges.")],
        ..Spec::EMPTY
    },
    run: xpending,
    subcommands: &[],
};

pub(in crate::commands::stream) const COMMANDS: &[Command] = &[XACK, XPENDING];
