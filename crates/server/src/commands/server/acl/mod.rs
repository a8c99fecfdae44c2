//! ACL: users and their permissions.
//!
//! `users` changes and shows users, `look` answers queries about users and permissions, and `journal` shows denied
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

/// The row on which the rows of subcommands are based.
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
        "    List the command categories, or the commands of one category.",
        "DELUSER <username> [<username> ...]",
        "    Remove users, and close their connections.",
        "DRYRUN <username> <command> [<arg> ...]",
        "    Check whether the user may run the command, without running it.",
        "GETUSER <username>",
        "    Show the settings and permissions of a user.",
        "GENPASS [<bits>]",
        "    Generate a password of 256 random bits, or of the given number of bits.",
        "LIST",
        "    Show all users in ACL file format.",
        "LOAD",
        "    Reload all users from the aclfile.",
        "LOG [<count> | RESET]",
        "    Show or delete the log of denied commands and failed authentications.",
        "SAVE",
        "    Save all users in the aclfile.",
        "SETUSER <username> <attribute> [<attribute> ...]",
        "    Create a user, or change its permissions.",
        "USERS",
        "    List the names of all users.",
        "WHOAMI",
        "    Return the user name of this connection.",
    ]))
}

pub(super) const COMMANDS: &[Command] = &[ACL];
