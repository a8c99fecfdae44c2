//! FUNCTION: function libraries. The subcommands are implemented in `libraries`.

use super::{ROW, libraries};
use brisk_engine::command::{Arg, Categories, Flags, Scope, Spec};
use brisk_engine::{Args, Outcome, Result};
use brisk_node::core::call::{Call, Command};

fn help(call: &mut Call<'_>, _: &mut Args<'_>) -> Result<Outcome> {
    Ok(call.help(&[
        "DELETE <library name>",
        "    Remove a library.",
        "DUMP",
        "    Return a serialized payload of all libraries for RESTORE.",
        "FLUSH [ASYNC|SYNC]",
        "    Remove all libraries: while the client waits (SYNC) or in the background (ASYNC).",
        "KILL",
        "    Stop a slow function that has not written data.",
        "LIST [LIBRARYNAME pattern] [WITHCODE]",
        "    Show the name, engine and functions of each library and, with WITHCODE, its code.",
        "LOAD [REPLACE] <code>",
        "    Load a library; REPLACE replaces a library of the same name.",
        "RESTORE <payload> [FLUSH|APPEND|REPLACE]",
        "    Load the libraries of a payload. APPEND (the default) fails if a library of the same \
         name exists, REPLACE replaces it, and FLUSH deletes all libraries first.",
        "STATS",
        "    Show the slow function that is running, and statistics of the engine.",
    ]))
}

const CHANGES: Flags = Flags::NOSCRIPT.union(Flags::WRITE);
const CHANGE_TIPS: &[&str] = &["request_policy:all_shards", "response_policy:all_succeeded"];

/// The row on which the rows of the subcommands are based.
const SUB: Spec = Spec { since: "7.0.0", arity: 2, ..ROW };

/// The row of subcommands that change libraries. They run while all other workers are quiesced, so that replicas
/// receive changes in the order in which they happened.
const CHANGE: Spec = Spec { scope: Scope::Quiescent, flags: CHANGES, tips: CHANGE_TIPS, ..SUB };

const DELETE: Command = Command {
    spec: Spec {
        name: "delete",
        summary: "Removes a library.",
        arity: 3,
        args: &[Arg::string("library-name")],
        ..CHANGE
    },
    run: libraries::delete,
    subcommands: &[],
};

const DUMP: Command = Command {
    spec: Spec {
        name: "dump",
        summary: "Returns a serialized payload of all libraries.",
        complexity: "O(N) in the number of functions.",
        ..SUB
    },
    run: libraries::dump,
    subcommands: &[],
};

const FLUSH: Command = Command {
    spec: Spec {
        name: "flush",
        summary: "Removes all function libraries.",
        complexity: "O(N) in the number of functions.",
        arity: -2,
        args: &[Arg::one_of("async", &[Arg::token("async", "ASYNC"), Arg::token("sync", "SYNC")])
            .optional()],
        ..CHANGE
    },
    run: libraries::flush,
    subcommands: &[],
};

const HELP: Command = Command {
    spec: Spec { categories: ROW.categories, ..Spec::help(ROW.group, "7.0.0") },
    run: help,
    subcommands: &[],
};

const KILL: Command = Command {
    spec: Spec {
        name: "kill",
        summary: "Stops a slow function that has not written data.",
        flags: Flags::NOSCRIPT.union(Flags::ALLOW_BUSY),
        tips: &["request_policy:all_shards", "response_policy:one_succeeded"],
        ..SUB
    },
    run: |call, _| super::kill(call, false),
    subcommands: &[],
};

const LIST: Command = Command {
    spec: Spec {
        name: "list",
        summary: "Lists libraries and their functions.",
        complexity: "O(N) in the number of functions.",
        arity: -2,
        tips: &["nondeterministic_output_order"],
        args: &[
            Arg::string("library-name-pattern").after("LIBRARYNAME").optional(),
            Arg::token("withcode", "WITHCODE").optional(),
        ],
        ..SUB
    },
    run: libraries::list,
    subcommands: &[],
};

const LOAD: Command = Command {
    spec: Spec {
        name: "load",
        summary: "Loads a library.",
        complexity: "O(1), and the compilation of the code.",
        arity: -3,
        flags: CHANGES.union(Flags::DENYOOM),
        args: &[Arg::token("replace", "REPLACE").optional(), Arg::string("function-code")],
        ..CHANGE
    },
    run: libraries::load,
    subcommands: &[],
};

const RESTORE: Command = Command {
    spec: Spec {
        name: "restore",
        summary: "Loads the libraries in a payload from FUNCTION DUMP.",
        complexity: "O(N) in the number of functions in the payload.",
        arity: -3,
        flags: CHANGES.union(Flags::DENYOOM),
        args: &[
            Arg::string("serialized-value"),
            Arg::one_of(
                "policy",
                &[
                    Arg::token("flush", "FLUSH"),
                    Arg::token("append", "APPEND"),
                    Arg::token("replace", "REPLACE"),
                ],
            )
            .optional(),
        ],
        ..CHANGE
    },
    run: libraries::restore,
    subcommands: &[],
};

const STATS: Command = Command {
    spec: Spec {
        name: "stats",
        summary: "Shows the slow function that is running, and statistics of the engine.",
        flags: Flags::NOSCRIPT.union(Flags::ALLOW_BUSY),
        tips: &["nondeterministic_output", "request_policy:all_shards", "response_policy:special"],
        ..SUB
    },
    run: libraries::stats,
    subcommands: &[],
};

const FUNCTION: Command = Command {
    spec: Spec {
        name: "function",
        summary: "Manages function libraries.",
        complexity: "Depends on subcommand.",
        arity: -2,
        flags: Flags::empty(),
        categories: Categories::empty(),
        ..SUB
    },
    run: help,
    subcommands: &[DELETE, DUMP, FLUSH, HELP, KILL, LIST, LOAD, RESTORE, STATS],
};

pub(super) const COMMANDS: &[Command] = &[FUNCTION];
