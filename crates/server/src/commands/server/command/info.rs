//! COMMAND and COMMAND INFO: the properties that clients need to route and pipeline commands.

use brisk_engine::command::{Begin, Categories, Find, Flags, KeyFlags, KeySpec, Spec};
use brisk_engine::table::Row;
use brisk_engine::{Args, Outcome, Reply, Result};
use brisk_node::core::call::Call;

/// Replies with all commands.
pub(super) fn all(call: &mut Call<'_>) -> Result<Outcome> {
    let rows = call.core.shared.table.rows();
    call.reply.array(rows.len());
    for row in rows {
        entry(&mut call.reply, row);
    }
    Ok(Outcome::Replied)
}

/// Replies with the named commands, and null for names that do not exist.
pub(super) fn info(call: &mut Call<'_>, args: &mut Args<'_>) -> Result<Outcome> {
    if args.remaining() == 0 {
        return all(call);
    }
    let table = call.core.shared.table;
    call.reply.array(args.remaining());
    while let Some(name) = args.optional() {
        match table.find_full(name) {
            Some(row) => entry(&mut call.reply, row),
            None => _ = call.reply.null(),
        }
    }
    Ok(Outcome::Replied)
}

fn entry(reply: &mut Reply<'_>, row: &Row) {
    let spec = row.spec;
    reply.array(10);
    reply.bulk(row.full_name().as_bytes());
    reply.integer(i64::from(spec.arity));
    let flags = Flags::NAMES.iter().filter(|(flag, _)| spec.flags.contains(*flag));
    name_set(reply, "", flags.map(|(_, name)| *name));
    let (first, last, step) = first_last_step(spec);
    reply.integer(first);
    reply.integer(last);
    reply.integer(step);
    let all = spec.all_categories();
    let categories = Categories::NAMES.iter().filter(|(category, _)| all.contains(*category));
    name_set(reply, "@", categories.map(|(_, name)| *name));
    reply.set(spec.tips.len());
    for tip in spec.tips {
        reply.bulk(tip.as_bytes());
    }
    reply.set(spec.keys.len());
    for keys in spec.keys {
        key_spec(reply, keys);
    }
    if row.subcommands.is_empty() {
        reply.set(0);
    } else {
        reply.array(row.subcommands.len());
        for subcommand in &row.subcommands {
            entry(reply, subcommand);
        }
    }
}

/// Writes a set of names, each with the prefix `prefix`.
fn name_set<'n>(reply: &mut Reply<'_>, prefix: &str, names: impl Iterator<Item = &'n str> + Clone) {
    reply.set(names.clone().count());
    for name in names {
        if prefix.is_empty() {
            reply.simple(name);
        } else {
            reply.simple(&format!("{prefix}{name}"));
        }
    }
}

/// Writes the set of flags for a command's use of a key.
pub(super) fn key_flags(reply: &mut Reply<'_>, flags: KeyFlags) {
    let names = KeyFlags::NAMES.iter().filter(|(flag, _)| flags.contains(*flag));
    name_set(reply, "", names.map(|(_, name)| *name));
}

fn key_spec(reply: &mut Reply<'_>, keys: &KeySpec) {
    reply.map(if keys.notes.is_empty() { 3 } else { 4 });
    if !keys.notes.is_empty() {
        reply.bulk(b"notes");
        reply.bulk(keys.notes.as_bytes());
    }
    reply.bulk(b"flags");
    key_flags(reply, keys.flags);
    reply.bulk(b"begin_search");
    match keys.begin {
        Begin::Index(index) => step_of(reply, "index", &[("index", i64::from(index))]),
        Begin::Keyword { keyword, from } => {
            typed(reply, "keyword", 2);
            reply.bulk(b"keyword");
            reply.bulk(keyword.as_bytes());
            reply.bulk(b"startfrom");
            reply.integer(i64::from(from));
        }
        Begin::Unknown => step_of(reply, "unknown", &[]),
    }
    reply.bulk(b"find_keys");
    match keys.find {
        Find::Range { last, step, limit } => {
            let (last, step, limit) = (i64::from(last), i64::from(step), i64::from(limit));
            step_of(reply, "range", &[("lastkey", last), ("keystep", step), ("limit", limit)]);
        }
        Find::KeyNum { count_at, first, step } => {
            let (at, first, step) = (i64::from(count_at), i64::from(first), i64::from(step));
            step_of(reply, "keynum", &[("keynumidx", at), ("firstkey", first), ("keystep", step)]);
        }
        Find::Unknown => step_of(reply, "unknown", &[]),
    }
}

/// Writes the header of one key search step with this number of parameters.
fn typed(reply: &mut Reply<'_>, kind: &str, parameters: usize) {
    reply.map(2);
    reply.bulk(b"type");
    reply.bulk(kind.as_bytes());
    reply.bulk(b"spec");
    reply.map(parameters);
}

fn step_of(reply: &mut Reply<'_>, kind: &str, parameters: &[(&str, i64)]) {
    typed(reply, kind, parameters.len());
    for (name, value) in parameters {
        reply.bulk(name.as_bytes());
        reply.integer(*value);
    }
}

/// Returns the first key, the last key and the step, for clients that do not know key specifications. The values are
/// exact if there is a single range. Otherwise they cover the adjoining ranges with step one. If there is no such
/// range, all values are zero.
fn first_last_step(spec: &Spec) -> (i64, i64, i64) {
    let absolute = |first: i64, last: i16| {
        if last >= 0 { first + i64::from(last) } else { i64::from(last) }
    };
    if let [KeySpec { begin: Begin::Index(first), find: Find::Range { last, step, .. }, .. }] =
        spec.keys
    {
        let first = i64::from(*first);
        return (first, absolute(first, *last), i64::from(*step));
    }
    let mut joined: Option<(i64, i64)> = None;
    for keys in spec.keys {
        let (Begin::Index(first), Find::Range { last, step: 1, .. }) = (keys.begin, keys.find)
        else {
            continue;
        };
        let first = i64::from(first);
        let last = absolute(first, last);
        joined = match joined {
            None => Some((first, last)),
            // No range can follow a range that extends to the end.
            Some((begin, end)) if end >= 0 && end + 1 == first => Some((begin, last)),
            kept => kept,
        };
    }
    joined.map_or((0, 0, 0), |(first, last)| (first, last, 1))
}
