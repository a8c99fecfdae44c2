//! MODULE, with the replies of a server without modules, because Brisk never loads native code.

use brisk_engine::command::{Arg, Flags, Group, Spec};
use brisk_engine::{Args, CommandError, Outcome, Result};
use brisk_node::core::call::{Call, Command};

fn list(call: &mut Call<'_>, _: &mut Args<'_>) -> Result<Outcome> {
    Ok(call.reply.array(0))
}

fn load(call: &mut Call<'_>, args: &mut Args<'_>) -> Result<Outcome> {
    let path = String::from_utf8_lossy(args.argument(2)).into_owned();
    call.core
        .shared
        .log
        .warning(format_args!("Module {path} was not loaded: modules are not supported"));
    Err(CommandError::text("ERR Error loading the extension. Please check the server logs."))
}

fn unload(_: &mut Call<'_>, _: &mut Args<'_>) -> Result<Outcome> {
    Err(CommandError::text("ERR Error unloading module: no such module with that name"))
}

fn help(call: &mut Call<'_>, _: &mut Args<'_>) -> Result<Outcome> {
    Ok(call.help(&[
        "LIST",
        "    List the loaded modules: always empty.",
        "LOAD <path> [<arg> ...]",
        "    Always fails: modules are not supported.",
        "LOADEX <path> [[CONFIG <name> <value>] ...] [ARGS <arg> ...]",
        "    Always fails, like LOAD.",
        "UNLOAD <name>",
        "    Always fails: no module can be loaded.",
    ]))
}

/// The fields shared by the rows of the subcommands.
const SUBCOMMAND: Spec = Spec {
    group: Group::Server,
    since: "4.0.0",
    complexity: "O(1)",
    arity: 2,
    flags: Flags::ADMIN.union(Flags::NOSCRIPT),
    ..Spec::EMPTY
};

/// The row of subcommands that would load or unload modules.
const CHANGES: Spec = Spec {
    flags: SUBCOMMAND.flags.union(Flags::NO_ASYNC_LOADING).union(Flags::MODULE),
    ..SUBCOMMAND
};

const HELP: Command =
    Command { spec: Spec::help(Group::Server, "5.0.0"), run: help, subcommands: &[] };

const LIST: Command = Command {
    spec: Spec {
        name: "list",
        summary: "Lists the loaded modules: always empty.",
        complexity: "O(N) in the number of modules, which are not supported.",
        tips: &["nondeterministic_output_order"],
        ..SUBCOMMAND
    },
    run: list,
    subcommands: &[],
};

const LOAD: Command = Command {
    spec: Spec {
        name: "load",
        summary: "Always fails: modules are not supported.",
        arity: -3,
        args: &[Arg::string("path"), Arg::string("arg").optional().multiple()],
        ..CHANGES
    },
    run: load,
    subcommands: &[],
};

const LOADEX: Command = Command {
    spec: Spec {
        name: "loadex",
        summary: "Always fails: modules are not supported.",
        since: "7.0.0",
        arity: -3,
        args: &[
            Arg::string("path"),
            Arg::block("configs", &[Arg::string("name"), Arg::string("value")])
                .after("CONFIG")
                .optional()
                .multiple()
                .multiple_token(),
            Arg::block("args", &[Arg::string("arg")]).after("ARGS").optional().multiple(),
        ],
        ..CHANGES
    },
    run: load,
    subcommands: &[],
};

const UNLOAD: Command = Command {
    spec: Spec {
        name: "unload",
        summary: "Always fails: no module can be loaded.",
        arity: 3,
        args: &[Arg::string("name")],
        ..CHANGES
    },
    run: unload,
    subcommands: &[],
};

const MODULE: Command = Command {
    spec: Spec {
        name: "module",
        group: Group::Server,
        summary: "Manages modules, which are not supported.",
        since: "4.0.0",
        complexity: "Depends on subcommand.",
        arity: -2,
        ..Spec::EMPTY
    },
    run: help,
    subcommands: &[HELP, LIST, LOAD, LOADEX, UNLOAD],
};

pub(super) const COMMANDS: &[Command] = &[MODULE];
