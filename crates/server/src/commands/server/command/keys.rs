//! COMMAND GETKEYS and GETKEYSANDFLAGS: the keys of a command that is not executed.

use super::info;
use brisk_acl::keys_of;
use brisk_engine::command::{Begin, Flags, KeyFlags, KeySpec};
use brisk_engine::keyspec::FoundKeys;
use brisk_engine::table::{CommandTable, Row};
use brisk_engine::{Args, CommandError, Outcome, Result};
use brisk_node::core::call::Call;

pub(super) fn getkeys(call: &mut Call<'_>, args: &mut Args<'_>) -> Result<Outcome> {
    let found = find(call.core.shared.table, args)?;
    call.reply.array(found.len());
    for key in found {
        call.reply.bulk(args.argument(COMMAND_AT + key.index));
    }
    Ok(Outcome::Replied)
}

pub(super) fn getkeysandflags(call: &mut Call<'_>, args: &mut Args<'_>) -> Result<Outcome> {
    let found = find(call.core.shared.table, args)?;
    call.reply.array(found.len());
    for key in found {
        call.reply.array(2);
        call.reply.bulk(args.argument(COMMAND_AT + key.index));
        info::key_flags(&mut call.reply, key.flags);
    }
    Ok(Outcome::Replied)
}

/// The index of the command to inspect, after `COMMAND GETKEYS`.
const COMMAND_AT: usize = 2;

fn find(table: &'static CommandTable, args: &Args<'_>) -> Result<FoundKeys> {
    let argc = args.argc() - COMMAND_AT;
    let word = |at: usize| args.argument(COMMAND_AT + at);
    let row = lookup(table, word(0), word(1))
        .ok_or(CommandError::text("ERR Invalid command specified"))?;
    let names_keys = |keys: &&KeySpec| !keys.flags.contains(KeyFlags::NOT_KEY);
    if !row.spec.keys.iter().any(|keys| names_keys(&keys)) {
        return Err(CommandError::text("ERR The command has no key arguments"));
    }
    if !row.spec.arity_admits(argc) {
        return Err(CommandError::text("ERR Invalid number of arguments specified for command"));
    }
    let mut found = keys_of(row.spec, argc, &word);
    // PFMERGE may be called without sources, but in this case Redis finds no keys.
    let cut_off =
        |keys: &KeySpec| matches!(keys.begin, Begin::Index(at) if usize::from(at) >= argc);
    if row.spec.keys.iter().any(cut_off) {
        found.clear();
    }
    if found.is_empty() && !row.has(Flags::NO_MANDATORY_KEYS) {
        return Err(CommandError::text("ERR Invalid arguments specified for command"));
    }
    Ok(found)
}

/// Returns the command, or the subcommand if the command is a container.
fn lookup(table: &'static CommandTable, name: &[u8], word: &[u8]) -> Option<&'static Row> {
    let row = table.find(name)?;
    if row.is_container() { row.subcommand(word) } else { Some(row) }
}
