//! XGROUP: consumer groups and their consumers.

pub(super) mod claim;
pub(super) mod pending;
pub(super) mod read_group;

use crate::base::error::{CommandError, Result};
use crate::call::ctx::{Command, Ctx};
use crate::command::args::Args;
use crate::command::{Arg, Flags, Group, KeyFlags, KeySpec, Spec};
use crate::commands::stream::id;
use crate::commands::stream::quote;
use crate::keyspace::Key;
use crate::reply::Outcome;
use crate::types::Edit;
use crate::types::stream::{ENTRIES_READ_UNKNOWN, Stream, StreamId};

/// The position at which a group begins to read.
#[derive(Debug, Clone, Copy)]
enum Start {
    /// `$`: after the existing entries.
    Last,
    Id(StreamId),
}

impl Start {
    fn parse(word: &[u8]) -> Result<Start> {
        if word == b"$" { Ok(Start::Last) } else { id::parse(word, 0).map(Start::Id) }
    }

    /// SETID also accepts `-` and `+`.
    fn parse_or_edge(word: &[u8]) -> Result<Start> {
        if word == b"$" { Ok(Start::Last) } else { id::parse_or_edge(word, 0).map(Start::Id) }
    }

    fn resolve(self, stream: &Stream) -> StreamId {
        match self {
            Start::Last => stream.last_id,
            Start::Id(id) => id,
        }
    }
}

/// The options of CREATE and SETID.
struct Options {
    make_stream: bool,
    entries_read: i64,
}

fn parse_options(args: &mut Args<'_>, may_make: bool) -> Result<Options> {
    let mut options = Options { make_stream: false, entries_read: ENTRIES_READ_UNKNOWN };
    while args.remaining() > 0 {
        if may_make && args.take("MKSTREAM") {
            options.make_stream = true;
        } else if args.remaining() >= 2 && args.take("ENTRIESREAD") {
            options.entries_read = args.integer()?;
            if options.entries_read < ENTRIES_READ_UNKNOWN {
                let text = "ERR value for ENTRIESREAD must be positive or -1";
                return Err(CommandError::text(text));
            }
        } else {
            return Err(unknown(args));
        }
    }
    Ok(options)
}

fn unknown(args: &Args<'_>) -> CommandError {
    let text = "ERR unknown subcommand or wrong number of arguments for '";
    CommandError::text_around(text, args.argument(1), "'. Try XGROUP HELP.")
}

fn needs_key() -> CommandError {
    CommandError::text(
        "ERR The XGROUP subcommand requires the key to exist. Note that for CREATE you may want \
         to use the MKSTREAM option to create an empty stream automatically.",
    )
}

fn no_group(key: &Key<'_>, group: &[u8]) -> CommandError {
    quote(&[b"NOGROUP No such consumer group '", group, b"' for key name '", key.bytes, b"'"])
}

fn create(ctx: &mut Ctx<'_, '_>, args: &mut Args<'_>) -> Result<Outcome> {
    let key = args.key()?;
    let name = args.bytes()?;
    let start = args.bytes()?;
    let options = parse_options(args, true)?;
    let exists = ctx.keys.open_mut::<Stream>(&key)?.is_some();
    if !exists && !options.make_stream {
        return Err(needs_key());
    }
    // Options may be repeated while the number of arguments allows it.
    if args.argc() > 8 {
        return Err(unknown(args));
    }
    let start = Start::parse(start)?;
    ctx.keys.upsert::<Stream, _>(&key, |stream, _| {
        if !stream.create_group(name, start.resolve(stream), options.entries_read) {
            let text = "BUSYGROUP Consumer Group name already exists";
            return Err(CommandError::text(text));
        }
        Ok(Edit::new((), 1, "xgroup-create").metadata_only())
    })?;
    Ok(ctx.reply.ok())
}

/// Changes the stream that a subcommand names. The stream must exist.
fn change<R>(
    ctx: &mut Ctx<'_, '_>,
    key: &Key<'_>,
    edit: impl FnOnce(&mut Stream) -> Result<Edit<R>>,
) -> Result<R> {
    ctx.keys.update::<Stream, R>(key, |stream, _| edit(stream))?.ok_or_else(needs_key)
}

fn setid(ctx: &mut Ctx<'_, '_>, args: &mut Args<'_>) -> Result<Outcome> {
    let key = args.key()?;
    let name = args.bytes()?;
    let start = args.bytes()?;
    let options = parse_options(args, false)?;
    change(ctx, &key, |stream| {
        if stream.group(name).is_none() {
            return Err(no_group(&key, name));
        }
        if args.argc() > 7 {
            return Err(unknown(args));
        }
        let start = Start::parse_or_edge(start)?.resolve(stream);
        let group = stream.group_mut(name).ok_or_else(|| no_group(&key, name))?;
        (group.last_id, group.entries_read) = (start, options.entries_read);
        Ok(Edit::new((), 1, "xgroup-setid").metadata_only())
    })?;
    Ok(ctx.reply.ok())
}

fn destroy(ctx: &mut Ctx<'_, '_>, args: &mut Args<'_>) -> Result<Outcome> {
    let key = args.key()?;
    let name = args.bytes()?;
    let removed = change(ctx, &key, |stream| {
        let removed = stream.destroy_group(name);
        Ok(Edit::new(removed, u64::from(removed), "xgroup-destroy").metadata_only())
    })?;
    Ok(ctx.reply.integer(i64::from(removed)))
}

fn createconsumer(ctx: &mut Ctx<'_, '_>, args: &mut Args<'_>) -> Result<Outcome> {
    let key = args.key()?;
    let (name, consumer) = (args.bytes()?, args.bytes()?);
    let now_ms = ctx.now().0 as i64;
    let created = change(ctx, &key, |stream| {
        let group = stream.group_mut(name).ok_or_else(|| no_group(&key, name))?;
        let created = group.create_consumer(consumer, now_ms);
        Ok(Edit::new(created, u64::from(created), "xgroup-createconsumer").metadata_only())
    })?;
    Ok(ctx.reply.integer(i64::from(created)))
}

fn delconsumer(ctx: &mut Ctx<'_, '_>, args: &mut Args<'_>) -> Result<Outcome> {
    let key = args.key()?;
    let (name, consumer) = (args.bytes()?, args.bytes()?);
    let pending = change(ctx, &key, |stream| {
        let group = stream.group_mut(name).ok_or_else(|| no_group(&key, name))?;
        let pending = group.delete_consumer(consumer);
        let changes = u64::from(pending.is_some());
        Ok(Edit::new(pending.unwrap_or(0), changes, "xgroup-delconsumer").metadata_only())
    })?;
    Ok(ctx.reply.count(pending))
}

fn help(ctx: &mut Ctx<'_, '_>, _args: &mut Args<'_>) -> Result<Outcome> {
    const LINES: &[&str] = &[
        "CREATE <key> <groupname> <id|$> [option]",
        "    Create a group that reads the entries after the ID. Options:",
        "    * MKSTREAM",
        "      Create the stream if it does not exist.",
        "    * ENTRIESREAD entries_read",
        "      Set the number of entries that count as read by the group.",
        "CREATECONSUMER <key> <groupname> <consumer>",
        "    Create a consumer in the group.",
        "DELCONSUMER <key> <groupname> <consumer>",
        "    Delete a consumer with its pending entries.",
        "DESTROY <key> <groupname>",
        "    Delete the group.",
        "SETID <key> <groupname> <id|$> [ENTRIESREAD entries_read]",
        "    Set the last delivered ID of the group.",
    ];
    Ok(ctx.reply.help("XGROUP", LINES))
}

const CREATE: Command = Command {
    spec: Spec {
        name: "create",
        group: Group::Stream,
        summary: "Creates a consumer group.",
        since: "5.0.0",
        complexity: "O(1)",
        arity: -5,
        flags: Flags::WRITE.union(Flags::DENYOOM),
        keys: &[KeySpec::at(2).read_write(KeyFlags::INSERT)],
        args: &[
            Arg::key("key"),
            Arg::string("groupname"),
            Arg::one_of("id", &[Arg::string("id"), Arg::token("new_id", "$")]),
            Arg::token("mkstream", "MKSTREAM").optional(),
            Arg::integer("entries_read").after("ENTRIESREAD").optional(),
        ],
        history: &[("7.0.0", "Accepts the option `ENTRIESREAD`.")],
        ..Spec::EMPTY
    },
    run: create,
    subcommands: &[],
};

const CREATECONSUMER: Command = Command {
    spec: Spec {
        name: "createconsumer",
        group: Group::Stream,
        summary: "Creates a consumer in a group.",
        since: "6.2.0",
        complexity: "O(1)",
        arity: 5,
        flags: Flags::WRITE.union(Flags::DENYOOM),
        keys: &[KeySpec::at(2).read_write(KeyFlags::INSERT)],
        args: &[Arg::key("key"), Arg::string("groupname"), Arg::string("consumername")],
        ..Spec::EMPTY
    },
    run: createconsumer,
    subcommands: &[],
};

const DELCONSUMER: Command = Command {
    spec: Spec {
        name: "delconsumer",
        group: Group::Stream,
        summary: "Deletes a consumer from a group.",
        since: "5.0.0",
        complexity: "O(1)",
        arity: 5,
        flags: Flags::WRITE,
        keys: &[KeySpec::at(2).read_write(KeyFlags::DELETE)],
        args: &[Arg::key("key"), Arg::string("groupname"), Arg::string("consumername")],
        ..Spec::EMPTY
    },
    run: delconsumer,
    subcommands: &[],
};

const DESTROY: Command = Command {
    spec: Spec {
        name: "destroy",
        group: Group::Stream,
        summary: "Deletes a consumer group.",
        since: "5.0.0",
        complexity: "O(N) in the number of pending messages.",
        arity: 4,
        flags: Flags::WRITE,
        keys: &[KeySpec::at(2).read_write(KeyFlags::DELETE)],
        args: &[Arg::key("key"), Arg::string("groupname")],
        ..Spec::EMPTY
    },
    run: destroy,
    subcommands: &[],
};

const HELP: Command =
    Command { spec: Spec::help(Group::Stream, "5.0.0"), run: help, subcommands: &[] };

const SETID: Command = Command {
    spec: Spec {
        name: "setid",
        group: Group::Stream,
        summary: "Sets the last delivered ID of a group.",
        since: "5.0.0",
        complexity: "O(1)",
        arity: -5,
        flags: Flags::WRITE,
        keys: &[KeySpec::at(2).read_write(KeyFlags::UPDATE)],
        args: &[
            Arg::key("key"),
            Arg::string("groupname"),
            Arg::one_of("id", &[Arg::string("id"), Arg::token("new_id", "$")]),
            Arg::integer("entries_read").after("ENTRIESREAD").optional(),
        ],
        history: &[("7.0.0", "Accepts the option `ENTRIESREAD`.")],
        ..Spec::EMPTY
    },
    run: setid,
    subcommands: &[],
};

const XGROUP: Command = Command {
    spec: Spec {
        name: "xgroup",
        group: Group::Stream,
        summary: "Manages the groups of streams and their consumers.",
        since: "5.0.0",
        complexity: "Depends on subcommand.",
        arity: -2,
        ..Spec::EMPTY
    },
    run: help,
    subcommands: &[CREATE, CREATECONSUMER, DELCONSUMER, DESTROY, HELP, SETID],
};

pub(super) const COMMANDS: &[Command] = &[XGROUP];
