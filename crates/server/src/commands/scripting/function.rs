//! FUNCTION: the libraries of functions.

use crate::call::{Call, Command};
use brisk_engine::command::{Arg, Categories, Flags, Group, Spec};
use brisk_engine::{Args, CommandError, Outcome, Result};

fn flush(call: &mut Call<'_>, args: &mut Args<'_>) -> Result<Outcome> {
    if args.remaining() > 1 {
        return Err(call.subcommand_syntax(args.word(1)));
    }
    if args.remaining() == 1 && !(args.take("SYNC") || args.take("ASYNC")) {
        return Err(CommandError::text("ERR FUNCTION FLUSH only supports SYNC|ASYNC option"));
    }
    Ok(call.reply.ok())
}

fn help(call: &mut Call<'_>, _: &mut Args<'_>) -> Result<Outcome> {
    Ok(call.help(&[
        "FLUSH [ASYNC|SYNC]",
        "    Remove all libraries: while the client waits (SYNC) or in the background (ASYNC).",
    ]))
}

const FLUSH: Command = Command {
    spec: Spec {
        name: "flush",
        group: Group::Scripting,
        summary: "Removes all libraries of functions.",
        since: "7.0.0",
        complexity: "O(N) with N functions",
        arity: -2,
        flags: Flags::NOSCRIPT.union(Flags::WRITE),
        categories: Categories::SCRIPTING,
        tips: &["request_policy:all_shards", "response_policy:all_succeeded"],
        args: &[Arg::one_of("async", &[Arg::token("async", "ASYNC"), Arg::token("sync", "SYNC")])
            .optional()],
        ..Spec::EMPTY
    },
    run: flush,
    subcommands: &[],
};

const HELP: Command = Command {
    spec: Spec {
        name: "help",
        group: Group::Scripting,
        summary: "Explains the subcommands.",
        since: "7.0.0",
        complexity: "O(1)",
        arity: 2,
        flags: Flags::LOADING.union(Flags::STALE),
        categories: Categories::SCRIPTING,
        ..Spec::EMPTY
    },
    run: help,
    subcommands: &[],
};

const FUNCTION: Command = Command {
    spec: Spec {
        name: "function",
        group: Group::Scripting,
        summary: "Manages the libraries of functions.",
        since: "7.0.0",
        complexity: "Depends on subcommand.",
        arity: -2,
        ..Spec::EMPTY
    },
    run: help,
    subcommands: &[FLUSH, HELP],
};

pub(super) const COMMANDS: &[Command] = &[FUNCTION];
