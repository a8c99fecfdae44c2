//! ACL CAT, DRYRUN, GENPASS, WHOAMI: queries about users and permissions.

use super::{ADMIN, ROW};
use brisk_acl::check;
use brisk_engine::command::{Arg, Categories, Spec};
use brisk_engine::table::Row;
use brisk_engine::{Args, CommandError, Outcome, Result};
use brisk_node::core::call::{Call, Command};

pub(super) const CAT: Command = Command {
    spec: Spec {
        name: "cat",
        summary: "Lists the command categories, or the commands of one category.",
        complexity: "O(1), because categories and commands are fixed.",
        arity: -2,
        args: &[Arg::string("categoryname").optional()],
        ..ROW
    },
    run: cat,
    subcommands: &[],
};

fn cat(call: &mut Call<'_>, args: &mut Args<'_>) -> Result<Outcome> {
    if args.remaining() > 1 {
        return Err(call.subcommand_syntax(args.argument(1)));
    }
    let Some(word) = args.optional() else {
        call.reply.array(Categories::NAMES.len());
        for (_, name) in Categories::NAMES {
            call.reply.bulk(name.as_bytes());
        }
        return Ok(Outcome::Replied);
    };
    let is_it = |(_, name): &&(Categories, &str)| name.as_bytes().eq_ignore_ascii_case(word);
    let Some((category, _)) = Categories::NAMES.iter().find(is_it) else {
        let word = &word[..word.len().min(CATEGORY_SHOWN_MAX)];
        return Err(CommandError::text_around("ERR Unknown category '", word, "'"));
    };
    let table = call.core.shared.table;
    let with_subcommands =
        table.original().flat_map(|row| std::iter::once(row).chain(&row.subcommands));
    let names: Vec<&str> = with_subcommands
        .filter(|row| row.spec.all_categories().contains(*category))
        .map(Row::full_name)
        .collect();
    call.reply.array(names.len());
    for name in names {
        call.reply.bulk(name.as_bytes());
    }
    Ok(Outcome::Replied)
}

/// Maximum number of bytes of an unknown category that the error repeats.
const CATEGORY_SHOWN_MAX: usize = 128;

pub(super) const WHOAMI: Command = Command {
    spec: Spec {
        name: "whoami",
        summary: "Returns the user name of the connection.",
        arity: 2,
        ..ROW
    },
    run: |call, _| Ok(call.reply.bulk(&call.session.account().name)),
    subcommands: &[],
};

pub(super) const GENPASS: Command = Command {
    spec: Spec {
        name: "genpass",
        summary: "Generates a random password.",
        arity: -2,
        args: &[Arg::integer("bits").optional()],
        ..ROW
    },
    run: genpass,
    subcommands: &[],
};

const BITS_MAX: i64 = 4096;

fn genpass(call: &mut Call<'_>, args: &mut Args<'_>) -> Result<Outcome> {
    if args.remaining() > 1 {
        return Err(call.subcommand_syntax(args.argument(1)));
    }
    let bits = if args.remaining() == 0 { 256 } else { args.integer()? };
    if !(1..=BITS_MAX).contains(&bits) {
        return Err(CommandError::text(format!(
            "ERR ACL GENPASS argument must be the number of bits for the output password, a \
             positive number up to {BITS_MAX}"
        )));
    }
    let digits = (bits as usize).div_ceil(4);
    let mut random = vec![0; digits.div_ceil(2)];
    getrandom::fill(&mut random)
        .map_err(|error| CommandError::text(format!("ERR no random bytes: {error}")))?;
    Ok(call.reply.bulk(&brisk_acl::hex(&random).as_bytes()[..digits]))
}

pub(super) const DRYRUN: Command = Command {
    spec: Spec {
        name: "dryrun",
        summary: "Checks whether a user may run a command, without running it.",
        since: "7.0.0",
        complexity: "O(1).",
        arity: -4,
        flags: ADMIN,
        args: &[
            Arg::string("username"),
            Arg::string("command"),
            Arg::string("arg").optional().multiple(),
        ],
        ..ROW
    },
    run: dryrun,
    subcommands: &[],
};

/// The index of the first argument of the command to test.
const COMMAND_AT: usize = 3;

fn dryrun(call: &mut Call<'_>, args: &mut Args<'_>) -> Result<Outcome> {
    let shared = call.core.shared;
    let name = args.argument(2);
    let account = shared.accounts.find(name);
    let account =
        account.ok_or_else(|| CommandError::text_around("ERR User '", name, "' not found"))?;
    let argc = args.argc() - COMMAND_AT;
    let word = |at: usize| args.argument(COMMAND_AT + at);
    let found = shared.table.find(word(0)).and_then(|row| {
        if row.is_container() && argc > 1 { row.subcommand(word(1)) } else { Some(row) }
    });
    let not_found = || CommandError::text_around("ERR Command '", word(0), "' not found");
    let row = found.ok_or_else(not_found)?;
    if !row.spec.arity_admits(argc) {
        return Err(CommandError::Arity(row.full_name().into()));
    }
    Ok(match check(&account.user(), row, argc, &word) {
        Ok(()) => call.reply.ok(),
        Err(denied) => {
            let text = denied.text(name, row, Some(word(denied.arg_index)));
            call.reply.bulk(&text)
        }
    })
}
