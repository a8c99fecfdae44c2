//! XCLAIM and XAUTOCLAIM: take over entries that were delivered to others.

use super::read_group::{Claim, announce_consumer, idle_ms};
use crate::base::error::{CommandError, Result};
use crate::call::ctx::{Command, Ctx};
use crate::command::args::Args;
use crate::command::{Arg, Flags, Group, KeyFlags, KeySpec, Spec};
use crate::commands::stream::entries::{reply_entry, reply_id};
use crate::commands::stream::id;
use crate::commands::stream::stream_with_group;
use crate::keyspace::Key;
use crate::reply::Outcome;
use crate::types::Edit;
use crate::types::stream::{Group as StreamGroup, Stream, StreamId};

/// The options of XCLAIM.
#[derive(Debug, Clone, Copy, Default)]
struct Options {
    idle_min_ms: i64,
    delivered_ms: Option<i64>,
    retry_count: Option<u64>,
    force: bool,
    just_id: bool,
    last_id: StreamId,
}

/// An entry that changed its owner or was deleted.
enum Claimed {
    Given { id: StreamId, delivered_ms: i64, count: u64 },
    Deleted { id: StreamId, delivered_ms: i64, count: u64 },
}

fn xclaim(ctx: &mut Ctx<'_, '_>, args: &mut Args<'_>) -> Result<Outcome> {
    let key = args.key()?;
    let (name, consumer) = (args.bytes()?, args.bytes()?);
    stream_with_group(ctx.keys, &key, name)?;
    let now_ms = ctx.now().0 as i64;
    let mut options = Options { idle_min_ms: parse_idle(args, "XCLAIM")?, ..Options::default() };
    let mut ids = Vec::new();
    // The options begin at the first argument that is not an ID.
    while let Some(id) = args.peek().and_then(|word| id::parse(word, 0).ok()) {
        ids.push(id);
        args.bytes()?;
    }
    parse_options(args, &mut options, now_ms)?;
    run(ctx, &key, name, consumer, options.just_id, |stream, group_name, claimed| {
        let entries = stream.entries().clone();
        let Some(group) = stream.group_mut(group_name) else { return };
        group.last_id = group.last_id.max(options.last_id);
        for id in ids {
            claim_one(group, consumer, id, entries.get(id).is_some(), &options, now_ms, claimed);
        }
    })
    .map(|_| Outcome::Replied)
}

fn claim_one(
    group: &mut StreamGroup,
    consumer: &[u8],
    id: StreamId,
    exists: bool,
    options: &Options,
    now_ms: i64,
    claimed: &mut Vec<Claimed>,
) {
    let nack = group.pending().get(id).copied();
    if let Some(nack) = nack.filter(|_| !exists) {
        // Deleted entries cannot be claimed. They are removed from the pending entries.
        group.acknowledge(id);
        let (delivered_ms, count) = (nack.delivered_ms, nack.count);
        claimed.push(Claimed::Deleted { id, delivered_ms, count });
        return;
    }
    if nack.is_none() && !(options.force && exists) {
        return;
    }
    if nack.is_some_and(|nack| idle_ms(&nack, now_ms) < options.idle_min_ms) {
        return;
    }
    let delivered_ms = options.delivered_ms.unwrap_or(now_ms);
    let before = nack.map_or(1, |nack| nack.count);
    let count = match options.retry_count {
        Some(count) => count,
        None if options.just_id => before,
        None => before.saturating_add(1),
    };
    group.assign(id, consumer, delivered_ms, count);
    claimed.push(Claimed::Given { id, delivered_ms, count });
}

/// Runs `work`, creates the consumer if it is new, replies with the claimed entries and propagates
/// them. Returns the IDs of deleted entries.
fn run(
    ctx: &mut Ctx<'_, '_>,
    key: &Key<'_>,
    name: &[u8],
    consumer: &[u8],
    just_id: bool,
    work: impl FnOnce(&mut Stream, &[u8], &mut Vec<Claimed>),
) -> Result<Vec<StreamId>> {
    let now_ms = ctx.now().0 as i64;
    let mut claimed = Vec::new();
    let mut created = false;
    ctx.keys.update::<Stream, _>(key, |stream, _| {
        if let Some(group) = stream.group_mut(name) {
            created = group.create_consumer(consumer, now_ms);
            if let Some(consumer) = group.consumer_mut(consumer) {
                consumer.seen_ms = now_ms;
            }
        }
        let before = stream.group(name).map(|group| group.last_id);
        work(stream, name, &mut claimed);
        let given = claimed.iter().any(|claimed| matches!(claimed, Claimed::Given { .. }));
        if let Some(group) = stream.group_mut(name).filter(|_| given)
            && let Some(consumer) = group.consumer_mut(consumer)
        {
            consumer.active_ms = Some(now_ms);
        }
        let moved = before != stream.group(name).map(|group| group.last_id);
        let changes = claimed.len() as u64 + u64::from(created) + u64::from(moved);
        Ok(Edit::silent((), changes).metadata_only())
    })?;
    if created {
        announce_consumer(ctx.keys, key);
    }
    propagate(ctx, key, name, consumer, created, &claimed);
    reply_claimed(ctx, key, just_id, &claimed)
}

fn propagate(
    ctx: &mut Ctx<'_, '_>,
    key: &Key<'_>,
    name: &[u8],
    consumer: &[u8],
    created: bool,
    claimed: &[Claimed],
) {
    let entry = ctx.keys.inspect(key).and_then(|entry| entry.stream());
    let last_id = entry.and_then(|stream| Some(stream.group(name)?.last_id));
    let claim = Claim { key, group: name, consumer, last_id: last_id.unwrap_or_default() };
    // Nothing was claimed, but `last_id` may have changed: then the command itself is propagated.
    if claimed.is_empty() && !created {
        return;
    }
    if created {
        ctx.keys.propagate(|| {
            [b"XGROUP", &b"CREATECONSUMER"[..], key.bytes, name, consumer]
                .map(<[u8]>::to_vec)
                .into()
        });
    }
    for claimed in claimed {
        let (Claimed::Given { id, delivered_ms, count }
        | Claimed::Deleted { id, delivered_ms, count }) = claimed;
        claim.propagate(ctx.keys, *id, *delivered_ms, *count);
    }
}

fn reply_claimed(
    ctx: &mut Ctx<'_, '_>,
    key: &Key<'_>,
    just_id: bool,
    claimed: &[Claimed],
) -> Result<Vec<StreamId>> {
    let given = || {
        claimed.iter().filter_map(|claimed| match claimed {
            Claimed::Given { id, .. } => Some(*id),
            Claimed::Deleted { .. } => None,
        })
    };
    let entry = ctx.keys.inspect(key).and_then(|entry| entry.stream());
    ctx.reply.array(given().count());
    for id in given() {
        match entry.and_then(|stream| stream.entries().get(id)) {
            Some(entry) if !just_id => reply_entry(&mut ctx.reply, &entry),
            _ => reply_id(&mut ctx.reply, id),
        };
    }
    Ok(claimed
        .iter()
        .filter_map(|claimed| match claimed {
            Claimed::Deleted { id, .. } => Some(*id),
            Claimed::Given { .. } => None,
        })
        .collect())
}

fn parse_idle(args: &mut Args<'_>, command: &str) -> Result<i64> {
    let text = || CommandError::text(format!("ERR Invalid min-idle-time argument for {command}"));
    args.integer().map(|ms| ms.max(0)).map_err(|_| text())
}

fn parse_options(args: &mut Args<'_>, options: &mut Options, now_ms: i64) -> Result<()> {
    let invalid =
        |name: &str| CommandError::text(format!("ERR Invalid {name} option argument for XCLAIM"));
    while let Some(word) = args.optional() {
        let is = |name: &str| word.eq_ignore_ascii_case(name.as_bytes());
        let more = args.remaining() > 0;
        if is("FORCE") {
            options.force = true;
        } else if is("JUSTID") {
            options.just_id = true;
        } else if is("IDLE") && more {
            let idle = args.integer().map_err(|_| invalid("IDLE"))?;
            options.delivered_ms = Some(now_ms.saturating_sub(idle));
        } else if is("TIME") && more {
            options.delivered_ms = Some(args.integer().map_err(|_| invalid("TIME"))?);
        } else if is("RETRYCOUNT") && more {
            let count = args.integer().map_err(|_| invalid("RETRYCOUNT"))?;
            // A negative number counts as if RETRYCOUNT were not given.
            options.retry_count = u64::try_from(count).ok();
        } else if is("LASTID") && more {
            options.last_id = id::parse(args.bytes()?, 0)?;
        } else {
            return Err(CommandError::text_around("ERR Unrecognized XCLAIM option '", word, "'"));
        }
    }
    // Times in the future, or negative ones, count as now.
    let odd = |ms: i64| !(0..=now_ms).contains(&ms);
    if options.delivered_ms.is_some_and(odd) {
        options.delivered_ms = Some(now_ms);
    }
    Ok(())
}

fn xautoclaim(ctx: &mut Ctx<'_, '_>, args: &mut Args<'_>) -> Result<Outcome> {
    /// Number of pending entries checked per requested entry.
    const ATTEMPTS: i64 = 10;
    const COUNT_MAX: i64 = i64::MAX / 16;
    let key = args.key()?;
    let (name, consumer) = (args.bytes()?, args.bytes()?);
    let idle_min_ms = parse_idle(args, "XAUTOCLAIM")?;
    let start = id::parse_start(args.bytes()?)?;
    let mut count = 100;
    let mut options = Options { idle_min_ms, ..Options::default() };
    while args.remaining() > 0 {
        if args.remaining() >= 2 && args.take("COUNT") {
            // Each requested entry may need several checks, and their number must not overflow.
            let wanted = args.integer().ok().filter(|n| (1..=COUNT_MAX).contains(n));
            count = wanted.ok_or_else(|| CommandError::text("ERR COUNT must be > 0"))?;
        } else if args.take("JUSTID") {
            options.just_id = true;
        } else {
            return Err(CommandError::Syntax);
        }
    }
    stream_with_group(ctx.keys, &key, name)?;
    let now_ms = ctx.now().0 as i64;
    let mut next = StreamId::MIN;
    ctx.reply.array(3);
    // The next cursor is known only at the end but comes first in the reply, so the walk is done
    // first.
    let mut ids = Vec::new();
    {
        let (stream, group) = stream_with_group(ctx.keys, &key, name)?;
        let (mut left, mut attempts) = (count, count.saturating_mul(ATTEMPTS));
        for (id, nack) in group.pending().iter_from(start) {
            if attempts == 0 || left == 0 {
                next = id;
                break;
            }
            attempts -= 1;
            let exists = stream.entries().get(id).is_some();
            if !exists || idle_ms(nack, now_ms) >= idle_min_ms {
                ids.push((id, exists));
                left -= 1;
            }
        }
    }
    reply_id(&mut ctx.reply, next);
    let deleted = run(ctx, &key, name, consumer, options.just_id, |stream, group, claimed| {
        let Some(group) = stream.group_mut(group) else { return };
        for (id, exists) in ids {
            claim_one(group, consumer, id, exists, &options, now_ms, claimed);
        }
    })?;
    ctx.reply.array(deleted.len());
    for id in deleted {
        reply_id(&mut ctx.reply, id);
    }
    Ok(Outcome::Replied)
}

const XCLAIM: Command = Command {
    spec: Spec {
        name: "xclaim",
        group: Group::Stream,
        summary: "Makes a consumer the owner of pending messages.",
        since: "5.0.0",
        complexity: "O(log N) for each message, with N pending messages in the group.",
        arity: -6,
        flags: Flags::WRITE.union(Flags::FAST),
        tips: &["nondeterministic_output"],
        keys: &[KeySpec::at(1).read_write(KeyFlags::UPDATE)],
        args: &[
            Arg::key("key"),
            Arg::string("group"),
            Arg::string("consumer"),
            Arg::string("min-idle-time"),
            Arg::string("id").multiple(),
            Arg::integer("ms").after("IDLE").optional(),
            Arg::unix_time("unix-time-milliseconds").after("TIME").optional(),
            Arg::integer("count").after("RETRYCOUNT").optional(),
            Arg::token("force", "FORCE").optional(),
            Arg::token("justid", "JUSTID").optional(),
            Arg::string("id").after("LASTID").optional(),
        ],
        ..Spec::EMPTY
    },
    run: xclaim,
    subcommands: &[],
};

const XAUTOCLAIM: Command = Command {
    spec: Spec {
        name: "xautoclaim",
        group: Group::Stream,
        summary: "Makes a consumer the owner of messages that have been pending for a minimum time.",
        since: "6.2.0",
        complexity: "O(1) if COUNT is small.",
        arity: -6,
        flags: Flags::WRITE.union(Flags::FAST),
        tips: &["nondeterministic_output"],
        keys: &[KeySpec::at(1).read_write(KeyFlags::DELETE)],
        args: &[
            Arg::key("key"),
            Arg::string("group"),
            Arg::string("consumer"),
            Arg::string("min-idle-time"),
            Arg::string("start"),
            Arg::integer("count").after("COUNT").optional(),
            Arg::token("justid", "JUSTID").optional(),
        ],
        history: &[("7.0.0", "The reply has the IDs of messages that no longer exist.")],
        ..Spec::EMPTY
    },
    run: xautoclaim,
    subcommands: &[],
};

pub(in crate::commands::stream) const COMMANDS: &[Command] = &[XCLAIM, XAUTOCLAIM];
