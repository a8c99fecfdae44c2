//! COMMAND: describes the server's commands, from the command table.

mod docs;
mod info;
mod keys;

use brisk_config::glob;
use brisk_engine::command::{Arg, Categories, Flags, Group, Spec};
use brisk_engine::table::Row;
use brisk_engine::{Args, CommandError, Outcome, Result};
use brisk_node::core::call::{Call, Command};

const FLAGS: Flags = Flags::LOADING.union(Flags::STALE);

const COMMAND: Command = Command {
    spec: Spec {
        name: "command",
        summary: "Returns information about all commands.",
        complexity: "O(N) with N commands",
        arity: -1,
        tips: UNORDERED,
        ..SPEC
    },
    run: |call, _| info::all(call),
    subcommands: &[COUNT, DOCS, GETKEYS, GETKEYSANDFLAGS, HELP, INFO, LIST],
};

/// The fields shared by all rows.
const SPEC: Spec = Spec {
    group: Group::Server,
    since: "2.8.13",
    flags: FLAGS,
    categories: Categories::CONNECTION,
    ..Spec::EMPTY
};

const UNORDERED: &[&str] = &["nondeterministic_output_order"];

const NAMES: &[Arg] = &[Arg::string("command-name").optional().multiple()];

const COUNT: Command = Command {
    spec: Spec { name: "count", summary: "Returns the number of commands.", arity: 2, ..SPEC },
    run: |call, _| {
        let count = call.core.shared.table.rows().len();
        Ok(call.reply.integer(count as i64))
    },
    subcommands: &[],
};

const DOCS: Command = Command {
    spec: Spec {
        name: "docs",
        summary: "Returns documentation of the given commands, or of all commands.",
        since: "7.0.0",
        complexity: "O(N) with N commands",
        arity: -2,
        tips: UNORDERED,
        args: NAMES,
        ..SPEC
    },
    run: docs::docs,
    subcommands: &[],
};

const GETKEYS: Command = Command {
    spec: Spec {
        name: "getkeys",
        summary: "Returns the keys of a complete command.",
        complexity: "O(N) in the number of arguments.",
        arity: -4,
        ..SPEC
    },
    run: keys::getkeys,
    subcommands: &[],
};

const GETKEYSANDFLAGS: Command = Command {
    spec: Spec {
        name: "getkeysandflags",
        summary: "Returns the keys of a complete command, and the access flags of each.",
        since: "7.0.0",
        complexity: "O(N) in the number of arguments.",
        arity: -4,
        ..SPEC
    },
    run: keys::getkeysandflags,
    subcommands: &[],
};

const INFO: Command = Command {
    spec: Spec {
        name: "info",
        summary: "Returns information about the given commands, or about all commands.",
        complexity: "O(N) with N commands",
        arity: -2,
        tips: UNORDERED,
        args: NAMES,
        history: &[("7.0.0", "The names are optional.")],
        ..SPEC
    },
    run: info::info,
    subcommands: &[],
};

const LIST: Command = Command {
    spec: Spec {
        name: "list",
        summary: "Lists the names of all commands, or of those that match a filter.",
        since: "7.0.0",
        complexity: "O(N) with N commands",
        arity: -2,
        tips: UNORDERED,
        args: &[Arg::one_of(
            "filterby",
            &[
                Arg::string("module-name").after("MODULE"),
                Arg::string("category").after("ACLCAT"),
                Arg::pattern("pattern").after("PATTERN"),
            ],
        )
        .after("FILTERBY")
        .optional()],
        ..SPEC
    },
    run: list,
    subcommands: &[],
};

fn list(call: &mut Call<'_>, args: &mut Args<'_>) -> Result<Outcome> {
    let table = call.core.shared.table;
    let mut names: Vec<&str> = Vec::new();
    if args.argc() == 2 {
        names.extend(table.all().map(Row::full_name));
    } else if args.argc() == 5 && args.take("filterby") {
        let (kind, word) = (args.bytes()?, args.bytes()?);
        match kind.to_ascii_lowercase().as_slice() {
            // Brisk has no modules.
            b"module" => {}
            b"aclcat" => {
                let category = Categories::NAMES
                    .iter()
                    .find(|(_, name)| name.as_bytes().eq_ignore_ascii_case(word));
                if let Some((category, _)) = category {
                    let has = |row: &&Row| row.spec.all_categories().contains(*category);
                    names.extend(table.all().filter(has).map(Row::full_name));
                }
            }
            b"pattern" => {
                let matches = |name: &&str| glob::matches(word, name.as_bytes(), true);
                names.extend(table.all().map(Row::full_name).filter(matches));
            }
            _ => return Err(CommandError::Syntax),
        }
    } else {
        return Err(CommandError::Syntax);
    }
    call.reply.array(names.len());
    for name in names {
        call.reply.bulk(name.as_bytes());
    }
    Ok(Outcome::Replied)
}

const HELP: Command = Command {
    spec: Spec { categories: SPEC.categories, ..Spec::help(Group::Server, "5.0.0") },
    run: help,
    subcommands: &[],
};

fn help(call: &mut Call<'_>, _: &mut Args<'_>) -> Result<Outcome> {
    Ok(call.help(&[
        "(no subcommand)",
        "    Return information about all commands.",
        "COUNT",
        "    Return the number of commands.",
        "LIST",
        "    List the names of all commands.",
        "INFO [<command-name> ...]",
        "    Return information about the given commands: arity, flags, keys.",
        "    Without names: about all commands, in",
        "    any order.",
        "DOCS [<command-name> ...]",
        "    Return the documentation of the given commands.",
        "    Without names: of all commands, in",
        "    any order.",
        "GETKEYS <full-command>",
        "    Return the keys of a complete command.",
        "GETKEYSANDFLAGS <full-command>",
        "    Return the keys of a complete command, and the access flags of each.",
    ]))
}

pub(in crate::commands) const COMMANDS: &[Command] = &[COMMAND];
