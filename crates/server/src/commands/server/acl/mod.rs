//! ACL: users and their permissions.
//!
//! `users` changes and shows users, `look` answers queries about them, `journal` shows denied
//! attempts.

mod journal;
mod look;
mod users;

use brisk_engine::command::{Flags, Group, Spec};
use brisk_engine::{Args, Outcome, Result};
use brisk_node::core::call::{Call, Command};

const ACL: Command = Command {
    spec: Spec {
        name: "acl",
        summary: "A container for commands about users.",
        complexity: "Depends on subcommand.",
        arity: -2,
        flags: Flags::empty(),
        ..ROW
    },
    run: |call, _| Err(call.wrong_arity()),
    subcommands: &[
        look::CAT,
        users::DELUSER,
        look::DRYRUN,
        look::GENPASS,
        users::GETUSER,
        HELP,
        users::LIST,
        users::LOAD,
        journal::LOG,
        users::SAVE,
        users::SETUSER,
        users::USERS,
        look::WHOAMI,
    ],
};

/// The row that subcommands start from.
const ROW: Spec = Spec {
    group: Group::Server,
    since: "6.0.0",
    flags: Flags::NOSCRIPT.union(Flags::LOADING).union(Flags::STALE),
    ..Spec::EMPTY
};

/// The flags of administrative subcommands.
const ADMIN: Flags = ROW.flags.union(Flags::ADMIN);

const HELP: Command =
    Command { spec: Spec::help(Group::Server, "6.0.0"), run: help, subcommands: &[] };

fn help(call: &mut Call<'_>, _: &mut Args<'_>) -> Result<Outcome> {
    Ok(call.help(&[
        "CAT [<category>]",
        "    List the categories, or the commands of one.",
        "DELUSER <username> [<username> ...]",
        "    Remove users, and close their connections.",
        "DRYRUN <username> <command> [<arg> ...]",
        "    Tell whether the user may run the command, without running it.",
        "GETUSER <username>",
        "    Show what a user is and may do.",
        "GENPASS [<bits>]",
        "    Make a password of 256 random bits, or of the requested number.",
        "LIST",
        "    Show all users as an aclfile does.",
        "LOAD",
        "    Read the users from the aclfile again.",
        "LOG [<count> | RESET]",
        "    Show who tried what he may not, or forget it.",
        "SAVE",
        "    Write the users into the aclfile.",
        "SETUSER <username> <attribute> [<attribute> ...]",
        "    Create a user or change what it may do.",
        "USERS",
        "    List the names of all users.",
        "WHOAMI",
        "    Tell the user of this connection.",
    ]))
}

pub(super) const COMMANDS: &[Command] = &[ACL];
