//! XINFO: information about streams, groups and consumers. The long form is in `full.rs`.

mod full;

use crate::base::error::{CommandError, Result};
use crate::call::ctx::{Command, Ctx};
use crate::command::args::Args;
use crate::command::{Arg, Flags, Group, KeyFlags, KeySpec, Spec};
use crate::commands::stream::entries::{reply_entry, reply_id};
use crate::commands::stream::quote;
use crate::keyspace::{Key, Keys};
use crate::reply::{Outcome, Reply};
use crate::types::stream::{ENTRIES_READ_UNKNOWN, Group as StreamGroup, Stream};
use full::full;

fn open<'k>(keys: &'k Keys<'_>, key: &Key<'_>) -> Result<&'k Stream> {
    keys.open::<Stream>(key)?.ok_or(CommandError::NoSuchKey)
}

fn stream(ctx: &mut Ctx<'_, '_>, args: &mut Args<'_>) -> Result<Outcome> {
    let key = args.key()?;
    let stream = open(ctx.keys, &key)?;
    let reply = &mut ctx.reply;
    if args.remaining() > 0 {
        return full(reply, stream, args);
    }
    reply.map(10);
    reply_counts(reply, stream);
    reply.bulk(b"groups");
    reply.count(stream.groups().len());
    for (name, entry) in
        [("first-entry", stream.entries().first()), ("last-entry", stream.entries().last())]
    {
        reply.bulk(name.as_bytes());
        match entry {
            Some(entry) => reply_entry(reply, &entry),
            None => reply.null(),
        };
    }
    Ok(Outcome::Replied)
}

/// The seven pairs at the start of both forms.
pub(super) fn reply_counts(reply: &mut Reply<'_>, stream: &Stream) {
    for (name, count) in [
        ("length", stream.len()),
        ("radix-tree-keys", stream.blocks()),
        ("radix-tree-nodes", stream.radix_nodes()),
    ] {
        reply.bulk(name.as_bytes());
        reply.count(count);
    }
    reply.bulk(b"last-generated-id");
    reply_id(reply, stream.last_id);
    reply.bulk(b"max-deleted-entry-id");
    reply_id(reply, stream.max_deleted_id);
    reply.bulk(b"entries-added");
    reply.integer(stream.entries_added as i64);
    reply.bulk(b"recorded-first-entry-id");
    reply_id(reply, stream.first_id());
}

/// The pairs `entries-read` and `lag`, null where unknown.
pub(super) fn progress(reply: &mut Reply<'_>, stream: &Stream, group: &StreamGroup) {
    let read = Some(group.entries_read).filter(|read| *read != ENTRIES_READ_UNKNOWN);
    for (name, value) in [("entries-read", read), ("lag", stream.lag(group))] {
        reply.bulk(name.as_bytes());
        match value {
            Some(value) => reply.integer(value),
            None => reply.null(),
        };
    }
}

fn groups(ctx: &mut Ctx<'_, '_>, args: &mut Args<'_>) -> Result<Outcome> {
    let key = args.key()?;
    let stream = open(ctx.keys, &key)?;
    let reply = &mut ctx.reply;
    reply.array(stream.groups().len());
    for (name, group) in stream.groups() {
        reply.map(6);
        reply.bulk(b"name");
        reply.bulk(name);
        reply.bulk(b"consumers");
        reply.count(group.consumers().len());
        reply.bulk(b"pending");
        reply.count(group.pending().len());
        reply.bulk(b"last-delivered-id");
        reply_id(reply, group.last_id);
        progress(reply, stream, group);
    }
    Ok(Outcome::Replied)
}

fn consumers(ctx: &mut Ctx<'_, '_>, args: &mut Args<'_>) -> Result<Outcome> {
    let key = args.key()?;
    let name = args.bytes()?;
    let now_ms = ctx.now().0 as i64;
    let stream = open(ctx.keys, &key)?;
    let group = stream.group(name).ok_or_else(|| {
        quote(&[b"NOGROUP No such consumer group '", name, b"' for key name '", key.bytes, b"'"])
    })?;
    let reply = &mut ctx.reply;
    reply.array(group.consumers().len());
    for consumer in group.consumers() {
        reply.map(4);
        reply.bulk(b"name");
        reply.bulk(&consumer.name);
        reply.bulk(b"pending");
        reply.count(consumer.pending().len());
        reply.bulk(b"idle");
        reply.integer(now_ms.saturating_sub(consumer.seen_ms).max(0));
        reply.bulk(b"inactive");
        let inactive = |active: i64| now_ms.saturating_sub(active).max(0);
        reply.integer(consumer.active_ms.map_or(-1, inactive));
    }
    Ok(Outcome::Replied)
}

fn help(ctx: &mut Ctx<'_, '_>, _args: &mut Args<'_>) -> Result<Outcome> {
    const LINES: &[&str] = &[
        "CONSUMERS <key> <groupname>",
        "    List the consumers of a group.",
        "GROUPS <key>",
        "    List the groups of a stream.",
        "STREAM <key> [FULL [COUNT <count>]]",
        "    Show information about a stream; FULL adds entries, groups and pending entries.",
    ];
    Ok(ctx.reply.help("XINFO", LINES))
}

const CONSUMERS: Command = Command {
    spec: Spec {
        name: "consumers",
        group: Group::Stream,
        summary: "Lists the consumers of a group.",
        since: "5.0.0",
        complexity: "O(1)",
        arity: 4,
        flags: Flags::READONLY,
        tips: &["nondeterministic_output"],
        keys: &[KeySpec::at(2).read_only(KeyFlags::ACCESS)],
        args: &[Arg::key("key"), Arg::string("groupname")],
        ..Spec::EMPTY
    },
    run: consumers,
    subcommands: &[],
};

const GROUPS: Command = Command {
    spec: Spec {
        name: "groups",
        group: Group::Stream,
        summary: "Lists the groups of a stream.",
        since: "5.0.0",
        complexity: "O(1)",
        arity: 3,
        flags: Flags::READONLY,
        keys: &[KeySpec::at(2).read_only(KeyFlags::ACCESS)],
        args: &[Arg::key("key")],
        history: &[("7.0.0", "Shows `entries-read` and `lag`.")],
        ..Spec::EMPTY
    },
    run: groups,
    subcommands: &[],
};

const HELP: Command =
    Command { spec: Spec::help(Group::Stream, "5.0.0"), run: help, subcommands: &[] };

const STREAM: Command = Command {
    spec: Spec {
        name: "stream",
        group: Group::Stream,
        summary: "Returns information about a stream.",
        since: "5.0.0",
        complexity: "O(1)",
        arity: -3,
        flags: Flags::READONLY,
        keys: &[KeySpec::at(2).read_only(KeyFlags::ACCESS)],
        args: &[
            Arg::key("key"),
            Arg::block("full", &[Arg::integer("count").after("COUNT").optional()])
                .after("FULL")
                .optional(),
        ],
        history: &[
            ("6.0.0", "Accepts the option `FULL`."),
            (
                "7.0.0",
                "Shows `max-deleted-entry-id`, `entries-added`, `recorded-first-entry-id`, `entries-read` and `lag`.",
            ),
        ],
        ..Spec::EMPTY
    },
    run: stream,
    subcommands: &[],
};

const XINFO: Command = Command {
    spec: Spec {
        name: "xinfo",
        group: Group::Stream,
        summary: "Returns information about streams, their groups and consumers.",
        since: "5.0.0",
        complexity: "Depends on subcommand.",
        arity: -2,
        ..Spec::EMPTY
    },
    run: help,
    subcommands: &[CONSUMERS, GROUPS, HELP, STREAM],
};

pub(super) const COMMANDS: &[Command] = &[XINFO];
