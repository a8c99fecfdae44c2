//! SLOWLOG: the latest slow commands.

use brisk_engine::command::{Arg, Flags, Group, Spec};
use brisk_engine::number::parse_i64;
use brisk_engine::{Args, CommandError, Outcome, Result};
use brisk_node::core::call::{Call, Command};

/// Number of entries that are shown if no count is given.
const DEFAULT_COUNT: i64 = 10;

fn get(call: &mut Call<'_>, args: &mut Args<'_>) -> Result<Outcome> {
    let count = match args.optional() {
        Some(word) => parse_i64(word)
            .filter(|count| *count >= -1)
            .ok_or_else(|| CommandError::text("ERR count should be greater than or equal to -1")),
        None => Ok(DEFAULT_COUNT),
    };
    if args.remaining() > 0 {
        return Err(call.subcommand_syntax(args.argument(1)));
    }
    // -1 means all entries.
    let entries =
        call.core.shared.observe.slowlog.latest(usize::try_from(count?).unwrap_or(usize::MAX));
    let reply = &mut call.reply;
    reply.array(entries.len());
    for entry in &entries {
        reply.array(6);
        reply.integer(entry.id as i64);
        reply.integer(entry.unix_seconds as i64);
        reply.integer(entry.duration_us as i64);
        reply.array(entry.words.len());
        for word in &entry.words {
            reply.bulk(word);
        }
        reply.bulk(entry.client.as_bytes());
        reply.bulk(entry.client_name.as_bytes());
    }
    Ok(Outcome::Replied)
}

fn len(call: &mut Call<'_>, _: &mut Args<'_>) -> Result<Outcome> {
    let len = call.core.shared.observe.slowlog.len();
    Ok(call.reply.count(len))
}

fn reset(call: &mut Call<'_>, _: &mut Args<'_>) -> Result<Outcome> {
    call.core.shared.observe.slowlog.clear();
    Ok(call.reply.ok())
}

fn help(call: &mut Call<'_>, _: &mut Args<'_>) -> Result<Outcome> {
    Ok(call.help(&[
        "GET [<count>]",
        "    Show the latest <count> entries (10 unless given, -1 for all), the latest first:",
        "    id, end (Unix time), duration in microseconds, arguments of the command,",
        "    the client's address, the client's name.",
        "LEN",
        "    Count the entries.",
        "RESET",
        "    Remove all entries.",
    ]))
}

/// The fields shared by the rows of the subcommands.
const SUBCOMMAND: Spec = Spec {
    group: Group::Server,
    since: "2.2.12",
    arity: 2,
    flags: Flags::ADMIN.union(Flags::LOADING).union(Flags::STALE),
    ..Spec::EMPTY
};

const GET: Command = Command {
    spec: Spec {
        name: "get",
        summary: "Shows the latest slow commands.",
        complexity: "O(N) with N entries shown",
        arity: -2,
        tips: &["request_policy:all_nodes", "nondeterministic_output"],
        args: &[Arg::integer("count").optional()],
        history: &[("4.0.0", "Entries have the address and the name of the client.")],
        ..SUBCOMMAND
    },
    run: get,
    subcommands: &[],
};

const HELP: Command =
    Command { spec: Spec::help(Group::Server, "6.2.0"), run: help, subcommands: &[] };

const LEN: Command = Command {
    spec: Spec {
        name: "len",
        summary: "Returns the number of entries in the slow log.",
        complexity: "O(1)",
        tips: &["request_policy:all_nodes", "response_policy:agg_sum", "nondeterministic_output"],
        ..SUBCOMMAND
    },
    run: len,
    subcommands: &[],
};

const RESET: Command = Command {
    spec: Spec {
        name: "reset",
        summary: "Empties the slow log.",
        complexity: "O(N) with N entries",
        tips: &["request_policy:all_nodes", "response_policy:all_succeeded"],
        ..SUBCOMMAND
    },
    run: reset,
    subcommands: &[],
};

const SLOWLOG: Command = Command {
    spec: Spec {
        name: "slowlog",
        group: Group::Server,
        summary: "Manages the log of slow commands.",
        since: "2.2.12",
        complexity: "Depends on subcommand.",
        arity: -2,
        ..Spec::EMPTY
    },
    run: help,
    subcommands: &[GET, HELP, LEN, RESET],
};

pub(super) const COMMANDS: &[Command] = &[SLOWLOG];
