//! COMMAND GETKEYS and GETKEYSANDFLAGS: the keys in a command that is not run.

use super::info;
use crate::call::Call;
use crate::table::{CommandTable, Row};
use brisk_engine::command::{Begin, Find, Flags, KeyFlags, KeySpec};
use brisk_engine::keyspec::{self, FoundKey, FoundKeys};
use brisk_engine::{Args, CommandError, Outcome, Result};

pub(super) fn getkeys(call: &mut Call<'_>, args: &mut Args<'_>) -> Result<Outcome> {
    let found = find(call.core.shared.table, args)?;
    call.reply.array(found.len());
    for key in found {
        call.reply.bulk(args.word(COMMAND_AT + key.index));
    }
    Ok(Outcome::Replied)
}

pub(super) fn getkeysandflags(call: &mut Call<'_>, args: &mut Args<'_>) -> Result<Outcome> {
    let found = find(call.core.shared.table, args)?;
    call.reply.array(found.len());
    for key in found {
        call.reply.array(2);
        call.reply.bulk(args.word(COMMAND_AT + key.index));
        info::key_flags(&mut call.reply, key.flags);
    }
    Ok(Outcome::Replied)
}

/// Where the command to be looked at begins: behind `COMMAND GETKEYS`.
const COMMAND_AT: usize = 2;

fn find(table: &'static CommandTable, args: &Args<'_>) -> Result<FoundKeys> {
    let argc = args.argc() - COMMAND_AT;
    let word = |at: usize| args.word(COMMAND_AT + at);
    let row = lookup(table, word(0), word(1))
        .ok_or(CommandError::text("ERR Invalid command specified"))?;
    let names_keys = |keys: &&KeySpec| !keys.flags.contains(KeyFlags::NOT_KEY);
    if !row.spec.keys.iter().any(|keys| names_keys(&keys)) {
        return Err(CommandError::text("ERR The command has no key arguments"));
    }
    if !row.spec.arity_admits(argc) {
        return Err(CommandError::text("ERR Invalid number of arguments specified for command"));
    }
    let found = keyspec::find_keys(row.spec, argc, &word);
    let mut found = found.unwrap_or_else(|_| counted_loosely(row.spec.keys, argc, &word));
    found.retain(|key| !key.flags.contains(KeyFlags::NOT_KEY));
    // PFMERGE may be called without sources, but Redis finds no key then.
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

/// The keys behind a count that is no integer but begins with one: where the key specifications
/// fail, Redis tries what it had before there were any, which knows no flags and reads as C does.
fn counted_loosely<'w>(
    specs: &[KeySpec],
    argc: usize,
    word: &impl Fn(usize) -> &'w [u8],
) -> FoundKeys {
    let mut found = FoundKeys::new();
    let mut add = |index| found.push(FoundKey { index, flags: KeyFlags::empty() });
    for spec in specs {
        let (Begin::Index(at), Find::KeyNum { count_at, first, step }) = (spec.begin, spec.find)
        else {
            continue;
        };
        let (count_at, first, step) =
            (usize::from(at + count_at), usize::from(at + first), usize::from(step.max(1)));
        let room = argc.saturating_sub(first) / step;
        let count = if count_at < argc { leading_integer(word(count_at)) } else { 0 };
        if (1..=room).contains(&count) {
            (0..count).for_each(|i| add(first + i * step));
        }
    }
    // The key that a result is stored under comes last.
    let single = |spec: &&KeySpec| matches!(spec.find, Find::Range { last: 0, .. });
    if let Some(Begin::Index(at)) = specs.iter().find(single).map(|spec| spec.begin)
        && !found.is_empty()
    {
        found.push(FoundKey { index: usize::from(at), flags: KeyFlags::empty() });
    }
    found
}

/// The integer that a text begins with as C's `atoi` reads it: cut to 32 bits; 0 for what is
/// negative or no integer.
fn leading_integer(text: &[u8]) -> usize {
    let text = text.trim_ascii_start();
    let (sign, text) = match text {
        [b'-', rest @ ..] => (-1, rest),
        [b'+', rest @ ..] => (1, rest),
        _ => (1, text),
    };
    let digits = text.iter().take_while(|byte| byte.is_ascii_digit());
    let number = digits.fold(0i64, |number, digit| {
        number.saturating_mul(10).saturating_add(sign * i64::from(digit - b'0'))
    });
    usize::try_from(number as i32).unwrap_or(0)
}

/// The command, or the subcommand if it is a container.
fn lookup(table: &'static CommandTable, name: &[u8], word: &[u8]) -> Option<&'static Row> {
    let row = table.find(name)?;
    if row.is_container() { row.subcommand(word) } else { Some(row) }
}
