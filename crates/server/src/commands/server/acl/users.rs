//! ACL SETUSER, DELUSER, LOAD and SAVE, which change or store users, and GETUSER, LIST and USERS, which show them.
//!
//! Users are changed while all other workers are quiesced. Commands that have already begun were checked against the
//! old rules. After the reply, every command is checked against the new rules.

use super::{ADMIN, ROW};
use brisk_acl::{DEFAULT_USER, Selector, SetError, User, has_spaces};
use brisk_engine::command::{Arg, Scope, Spec};
use brisk_engine::{Args, CommandError, Outcome, Reply, Result};
use brisk_node::core::call::{Call, Command};
use brisk_node::run::permission;

pub(super) const SETUSER: Command = Command {
    spec: Spec {
        name: "setuser",
        summary: "Creates a user, or changes its permissions.",
        complexity: "O(N) in the number of rules.",
        arity: -3,
        flags: ADMIN,
        args: &[Arg::string("username"), Arg::string("rule").optional().multiple()],
        history: &[
            ("6.2.0", "Supports patterns of channels."),
            ("7.0.0", "Supports selectors, and keys that can only be read or only be written."),
        ],
        scope: Scope::Quiescent,
        ..ROW
    },
    run: setuser,
    subcommands: &[],
};

fn setuser(call: &mut Call<'_>, args: &mut Args<'_>) -> Result<Outcome> {
    redact_from(call, args, 2);
    let name = args.bytes()?;
    if has_spaces(name) {
        return Err(CommandError::text("ERR Usernames can't contain spaces or null characters"));
    }
    let shared = call.core.shared;
    let vocabulary = shared.vocabulary();
    let rules: Vec<&[u8]> = args.rest().collect();
    let known = shared.accounts.find(name).map(|account| account.user());
    let before = known.map_or_else(|| User::new(vocabulary.channels), |user| User::clone(&user));
    let user = before.changed(&rules, vocabulary).map_err(|error| match error {
        SetError::Unmatched(rule) => CommandError::text_around(
            "ERR Unmatched parenthesis in acl selector starting at '",
            &rule,
            "'.",
        ),
        SetError::Rule(rule, why) => CommandError::text_around(
            "ERR Error in ACL SETUSER modifier '",
            &rule,
            &format!("': {why}"),
        ),
    })?;
    let affected = shared.accounts.set(name, user, &shared.clients);
    permission::settle_users(call.core, call.session, affected);
    Ok(call.reply.ok())
}

/// Redacts names and rules, because they are confidential.
fn redact_from(call: &mut Call<'_>, args: &Args<'_>, first: usize) {
    for at in first..args.argc() {
        call.redact(at);
    }
}

pub(super) const DELUSER: Command = Command {
    spec: Spec {
        name: "deluser",
        summary: "Removes users and closes their connections.",
        complexity: "O(1) for a user with few rules.",
        arity: -3,
        flags: ADMIN,
        args: &[Arg::string("username").multiple()],
        scope: Scope::Quiescent,
        ..ROW
    },
    run: deluser,
    subcommands: &[],
};

fn deluser(call: &mut Call<'_>, args: &mut Args<'_>) -> Result<Outcome> {
    redact_from(call, args, 2);
    if args.rest().any(|name| name == DEFAULT_USER.as_bytes()) {
        return Err(CommandError::text("ERR The 'default' user cannot be removed"));
    }
    let shared = call.core.shared;
    let mut removed = 0;
    while let Some(name) = args.optional() {
        if let Some(affected) = shared.accounts.remove(name, &shared.clients) {
            permission::settle_users(call.core, call.session, affected);
            removed += 1;
        }
    }
    Ok(call.reply.count(removed))
}

pub(super) const GETUSER: Command = Command {
    spec: Spec {
        name: "getuser",
        summary: "Shows the settings and permissions of a user.",
        complexity: "O(N) in the number of the user's rules.",
        arity: 3,
        flags: ADMIN,
        args: &[Arg::string("username")],
        history: &[
            ("6.2.0", "Supports patterns of channels."),
            ("7.0.0", "Shows selectors, and keys and channels as rules."),
        ],
        ..ROW
    },
    run: getuser,
    subcommands: &[],
};

fn getuser(call: &mut Call<'_>, args: &mut Args<'_>) -> Result<Outcome> {
    call.redact(2);
    let Some(account) = call.core.shared.accounts.find(args.bytes()?) else {
        return Ok(call.reply.null());
    };
    let user = account.user();
    let reply = &mut call.reply;
    reply.map(6);
    reply.bulk(b"flags");
    let flags = user.flags();
    reply.set(flags.len());
    for flag in flags {
        reply.bulk(flag.as_bytes());
    }
    reply.bulk(b"passwords");
    reply.array(user.passwords().len());
    for hash in user.passwords() {
        reply.bulk(brisk_acl::hex(hash).as_bytes());
    }
    let (root, others) = user.selectors().split_first().expect("every user has a root selector");
    show_selector(reply, root);
    reply.bulk(b"selectors");
    reply.array(others.len());
    for selector in others {
        reply.map(3);
        show_selector(reply, selector);
    }
    Ok(Outcome::Replied)
}

/// Writes three pairs, each with a name and rules.
fn show_selector(reply: &mut Reply<'_>, selector: &Selector) {
    reply.bulk(b"commands");
    reply.bulk(&selector.describe_commands());
    reply.bulk(b"keys");
    reply.bulk(&selector.describe_keys());
    reply.bulk(b"channels");
    reply.bulk(&selector.describe_channels());
}

pub(super) const LIST: Command = Command {
    spec: Spec {
        name: "list",
        summary: "Shows all users in ACL file format.",
        complexity: "O(N) in the number of users.",
        arity: 2,
        flags: ADMIN,
        ..ROW
    },
    run: list,
    subcommands: &[],
};

fn list(call: &mut Call<'_>, _: &mut Args<'_>) -> Result<Outcome> {
    let lines = call.core.shared.accounts.lines();
    call.reply.array(lines.len());
    for line in lines {
        call.reply.bulk(&line);
    }
    Ok(Outcome::Replied)
}

pub(super) const USERS: Command = Command {
    spec: Spec {
        name: "users",
        summary: "Lists the names of all users.",
        complexity: "O(N) in the number of users.",
        arity: 2,
        flags: ADMIN,
        ..ROW
    },
    run: users,
    subcommands: &[],
};

fn users(call: &mut Call<'_>, _: &mut Args<'_>) -> Result<Outcome> {
    let accounts = call.core.shared.accounts.list();
    call.reply.array(accounts.len());
    for account in accounts {
        call.reply.bulk(&account.name);
    }
    Ok(Outcome::Replied)
}

pub(super) const LOAD: Command = Command {
    spec: Spec {
        name: "load",
        summary: "Reloads all users from the aclfile.",
        complexity: "O(N) in the number of users.",
        arity: 2,
        flags: ADMIN,
        scope: Scope::Quiescent,
        ..ROW
    },
    run: load,
    subcommands: &[],
};

const NO_FILE: &str = "ERR This Redis instance is not configured to use an ACL file. You may want to \
    specify users via the ACL SETUSER command and then issue a CONFIG REWRITE (assuming you have a \
    Redis configuration file set) in order to store users in the Redis configuration.";

fn load(call: &mut Call<'_>, _: &mut Args<'_>) -> Result<Outcome> {
    let shared = call.core.shared;
    let name = &call.core.config.security.aclfile;
    if name.is_empty() {
        return Err(CommandError::text(NO_FILE));
    }
    let path = call.core.config.path_in_dir(name);
    let vocabulary = shared.vocabulary();
    let loaded = shared.accounts.load(name.as_bytes(), &path, vocabulary, &shared.clients);
    let affected = loaded.map_err(|errors| CommandError::text_with("ERR ", &errors))?;
    permission::settle_users(call.core, call.session, affected);
    Ok(call.reply.ok())
}

pub(super) const SAVE: Command = Command {
    spec: Spec {
        name: "save",
        summary: "Saves all users to the aclfile.",
        complexity: "O(N) in the number of users.",
        arity: 2,
        flags: ADMIN,
        ..ROW
    },
    run: save,
    subcommands: &[],
};

fn save(call: &mut Call<'_>, _: &mut Args<'_>) -> Result<Outcome> {
    let shared = call.core.shared;
    let name = &call.core.config.security.aclfile;
    if name.is_empty() {
        return Err(CommandError::text(NO_FILE));
    }
    let path = call.core.config.path_in_dir(name);
    if let Err(error) = shared.accounts.save(&path) {
        let path = path.display();
        shared.log.warning(format_args!("ACL SAVE cannot write {path}: {error}"));
        return Err(CommandError::text(
            "ERR There was an error trying to save the ACLs. Please check the server logs for more \
             information",
        ));
    }
    Ok(call.reply.ok())
}
