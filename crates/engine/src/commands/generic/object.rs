//! OBJECT: the encoding and the use of a value.

use crate::base::error::{CommandError, Result};
use crate::call::ctx::{Command, Ctx};
use crate::command::args::Args;
use crate::command::{Arg, Categories, Flags, Group, KeyFlags, KeySpec, Spec};
use crate::keyspace::evict;
use crate::reply::Outcome;

fn encoding(ctx: &mut Ctx<'_, '_>, args: &mut Args<'_>) -> Result<Outcome> {
    let key = args.key()?;
    Ok(match ctx.keys.peek_silently(&key) {
        Some(entry) => ctx.reply.bulk(entry.encoding().name().as_bytes()),
        None => ctx.reply.null(),
    })
}

fn refcount(ctx: &mut Ctx<'_, '_>, args: &mut Args<'_>) -> Result<Outcome> {
    let key = args.key()?;
    let settings = &ctx.keys.env().settings;
    Ok(match ctx.keys.peek_silently(&key) {
        Some(entry) => ctx.reply.integer(entry.reference_count(settings)),
        None => ctx.reply.null(),
    })
}

const FREQUENCY_UNKNOWN: &str = "ERR An LFU maxmemory policy is not selected, access frequency \
    not tracked. Please note that when switching between policies at runtime LRU and LFU data \
    will take some time to adjust.";

const IDLE_TIME_UNKNOWN: &str = "ERR An LFU maxmemory policy is selected, idle time not tracked. \
    Please note that when switching between policies at runtime LRU and LFU data will take some \
    time to adjust.";

fn freq(ctx: &mut Ctx<'_, '_>, args: &mut Args<'_>) -> Result<Outcome> {
    let key = args.key()?;
    let env = ctx.keys.env();
    let Some(entry) = ctx.keys.peek_silently(&key) else { return Ok(ctx.reply.null()) };
    if !env.settings.eviction.is_lfu() {
        return Err(CommandError::text(FREQUENCY_UNKNOWN));
    }
    Ok(ctx.reply.integer(i64::from(evict::frequency(env, entry.clock()))))
}

fn idletime(ctx: &mut Ctx<'_, '_>, args: &mut Args<'_>) -> Result<Outcome> {
    let key = args.key()?;
    let env = ctx.keys.env();
    let Some(entry) = ctx.keys.peek_silently(&key) else { return Ok(ctx.reply.null()) };
    if env.settings.eviction.is_lfu() {
        return Err(CommandError::text(IDLE_TIME_UNKNOWN));
    }
    Ok(ctx.reply.integer((evict::idle_ms(env, entry.clock()) / 1000) as i64))
}

fn help(ctx: &mut Ctx<'_, '_>, _args: &mut Args<'_>) -> Result<Outcome> {
    const LINES: &[&str] = &[
        "ENCODING <key>",
        "    Return the encoding of the value.",
        "FREQ <key>",
        "    Return the logarithmic access frequency of the key, from 0 to 255.",
        "    Available only with an LFU eviction policy.",
        "IDLETIME <key>",
        "    Return the time in seconds since the last access of the key.",
        "    Not available with an LFU eviction policy.",
        "REFCOUNT <key>",
        "    Return the reference count of the value.",
    ];
    Ok(ctx.reply.help("OBJECT", LINES))
}

/// The common part of the rows of subcommands with a key.
const INSPECT: Spec = Spec {
    group: Group::Generic,
    complexity: "O(1)",
    arity: 3,
    flags: Flags::READONLY,
    categories: Categories::KEYSPACE,
    tips: &["nondeterministic_output"],
    keys: &[KeySpec::at(2).read_only(KeyFlags::empty())],
    args: &[Arg::key("key")],
    ..Spec::EMPTY
};

const ENCODING: Command = Command {
    spec: Spec {
        name: "encoding",
        summary: "Returns the encoding of a value.",
        since: "2.2.3",
        ..INSPECT
    },
    run: encoding,
    subcommands: &[],
};

const FREQ: Command = Command {
    spec: Spec {
        name: "freq",
        summary: "Returns the logarithmic access frequency of a key.",
        since: "4.0.0",
        ..INSPECT
    },
    run: freq,
    subcommands: &[],
};

const HELP: Command = Command {
    spec: Spec { categories: Categories::KEYSPACE, ..Spec::help(Group::Generic, "6.2.0") },
    run: help,
    subcommands: &[],
};

const IDLETIME: Command = Command {
    spec: Spec {
        name: "idletime",
        summary: "Returns the time in seconds since the last access to a key.",
        since: "2.2.3",
        ..INSPECT
    },
    run: idletime,
    subcommands: &[],
};

const REFCOUNT: Command = Command {
    spec: Spec {
        name: "refcount",
        summary: "Returns the reference count of a value.",
        since: "2.2.3",
        ..INSPECT
    },
    run: refcount,
    subcommands: &[],
};

const OBJECT: Command = Command {
    spec: Spec {
        name: "object",
        group: Group::Generic,
        summary: "Shows how values are stored and used.",
        since: "2.2.3",
        complexity: "Depends on subcommand.",
        arity: -2,
        ..Spec::EMPTY
    },
    run: help,
    subcommands: &[ENCODING, FREQ, HELP, IDLETIME, REFCOUNT],
};

pub(super) const COMMANDS: &[Command] = &[OBJECT];
