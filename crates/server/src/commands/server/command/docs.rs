//! COMMAND DOCS: documentation of commands, and the tree of their arguments.

use brisk_engine::command::{Arg, ArgKind};
use brisk_engine::table::Row;
use brisk_engine::{Args, Outcome, Reply, Result};
use brisk_node::core::call::Call;

/// Replies with the documentation of the named commands, or of all commands. Skips names that do not exist.
pub(super) fn docs(call: &mut Call<'_>, args: &mut Args<'_>) -> Result<Outcome> {
    let table = call.core.shared.table;
    let rows: Vec<&Row> = if args.remaining() == 0 {
        table.rows().iter().collect()
    } else {
        args.arguments().skip(2).filter_map(|name| table.find_full(name)).collect()
    };
    call.reply.map(rows.len());
    for row in rows {
        call.reply.bulk(row.full_name().as_bytes());
        entry(&mut call.reply, row);
    }
    Ok(Outcome::Replied)
}

fn entry(reply: &mut Reply<'_>, row: &Row) {
    let spec = row.spec;
    let deprecated = spec.deprecated.as_ref();
    let present = [
        !spec.complexity.is_empty(),
        deprecated.is_some() || spec.syscmd,
        deprecated.is_some(),
        deprecated.is_some_and(|d| !d.replaced_by.is_empty()),
        !spec.history.is_empty(),
        !spec.args.is_empty(),
        !row.subcommands.is_empty(),
    ];
    reply.map(3 + present.iter().filter(|present| **present).count());
    pair(reply, "summary", spec.summary);
    pair(reply, "since", spec.since);
    pair(reply, "group", spec.group.name());
    if !spec.complexity.is_empty() {
        pair(reply, "complexity", spec.complexity);
    }
    if deprecated.is_some() || spec.syscmd {
        let flags = [(deprecated.is_some(), "deprecated"), (spec.syscmd, "syscmd")];
        flag_set(reply, "doc_flags", &flags);
    }
    if let Some(deprecated) = deprecated {
        pair(reply, "deprecated_since", deprecated.since);
        if !deprecated.replaced_by.is_empty() {
            pair(reply, "replaced_by", deprecated.replaced_by);
        }
    }
    if !spec.history.is_empty() {
        reply.bulk(b"history");
        reply.set(spec.history.len());
        for (version, change) in spec.history {
            reply.array(2);
            reply.bulk(version.as_bytes());
            reply.bulk(change.as_bytes());
        }
    }
    if !spec.args.is_empty() {
        arguments(reply, spec.args);
    }
    if !row.subcommands.is_empty() {
        reply.bulk(b"subcommands");
        reply.map(row.subcommands.len());
        for subcommand in &row.subcommands {
            reply.bulk(subcommand.full_name().as_bytes());
            entry(reply, subcommand);
        }
    }
}

fn pair(reply: &mut Reply<'_>, name: &str, value: &str) {
    reply.bulk(name.as_bytes());
    reply.bulk(value.as_bytes());
}

fn flag_set(reply: &mut Reply<'_>, name: &str, flags: &[(bool, &str)]) {
    reply.bulk(name.as_bytes());
    reply.set(flags.iter().filter(|(set, _)| *set).count());
    for (_, flag) in flags.iter().filter(|(set, _)| *set) {
        reply.simple(flag);
    }
}

fn arguments(reply: &mut Reply<'_>, args: &[Arg]) {
    reply.bulk(b"arguments");
    reply.array(args.len());
    for arg in args {
        argument(reply, arg);
    }
}

fn argument(reply: &mut Reply<'_>, arg: &Arg) {
    let (kind, parts): (&str, &[Arg]) = match arg.kind {
        ArgKind::String => ("string", &[]),
        ArgKind::Integer => ("integer", &[]),
        ArgKind::Double => ("double", &[]),
        ArgKind::Key => ("key", &[]),
        ArgKind::Pattern => ("pattern", &[]),
        ArgKind::UnixTime => ("unix-time", &[]),
        ArgKind::Token => ("pure-token", &[]),
        ArgKind::OneOf(parts) => ("oneof", parts),
        ArgKind::Block(parts) => ("block", parts),
    };
    // An empty string can be a token: MIGRATE has one.
    let has_token = !arg.token.is_empty() || matches!(arg.kind, ArgKind::Token);
    let has_flags = arg.optional || arg.multiple || arg.multiple_token;
    let present = [
        arg.key_spec.is_some(),
        has_token,
        !arg.since.is_empty(),
        !arg.deprecated_since.is_empty(),
        has_flags,
        !parts.is_empty(),
    ];
    reply.map(2 + present.iter().filter(|present| **present).count());
    pair(reply, "name", arg.name);
    pair(reply, "type", kind);
    if let Some(index) = arg.key_spec {
        reply.bulk(b"key_spec_index");
        reply.integer(i64::from(index));
    }
    if has_token {
        pair(reply, "token", arg.token);
    }
    if !arg.since.is_empty() {
        pair(reply, "since", arg.since);
    }
    if !arg.deprecated_since.is_empty() {
        pair(reply, "deprecated_since", arg.deprecated_since);
    }
    if has_flags {
        let flags = [
            (arg.optional, "optional"),
            (arg.multiple, "multiple"),
            (arg.multiple_token, "multiple_token"),
        ];
        flag_set(reply, "flags", &flags);
    }
    if !parts.is_empty() {
        arguments(reply, parts);
    }
}
