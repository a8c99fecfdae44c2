//! The commands that change how a connection is routed: ASKING, READONLY, READWRITE.

use super::{ROW, refuse};
use brisk_engine::command::{Categories, Flags, Spec};
use brisk_engine::{Args, Outcome, Result};
use brisk_node::clients::flag;
use brisk_node::core::call::{Call, Command};

/// ASKING has no effect. A slot and all of its keys move in one step, so this node never redirects with ASK.
fn asking(call: &mut Call<'_>, args: &mut Args<'_>) -> Result<Outcome> {
    if call.core.cluster.is_on() { Ok(call.reply.ok()) } else { refuse(call, args) }
}

pub(super) const ASKING: Command = Command {
    spec: Spec {
        name: "asking",
        summary: "Has no effect, because slots are not imported.",
        complexity: "O(1)",
        arity: 1,
        flags: Flags::FAST,
        categories: Categories::CONNECTION,
        ..ROW
    },
    run: asking,
    subcommands: &[],
};

/// READONLY and READWRITE. Valkey also supports them outside of cluster mode, for clients that a replica would redirect
/// to its primary.
fn read_here(call: &mut Call<'_>, args: &mut Args<'_>, on: bool) -> Result<Outcome> {
    let core = &*call.core;
    let record = &call.session.record;
    if !core.cluster.is_on() && !core.is_valkey() && !record.has(flag::REDIRECTS) {
        return refuse(call, args);
    }
    // As in Redis, a script's commands do not change the connection.
    if !core.env.in_script.get() {
        record.set(flag::READS_REPLICA, on);
    }
    Ok(call.reply.ok())
}

pub(super) const READONLY: Command = Command {
    spec: Spec {
        name: "readonly",
        summary: "Allows this connection to read from a replica.",
        complexity: "O(1)",
        arity: 1,
        flags: Flags::FAST.union(Flags::LOADING).union(Flags::STALE),
        categories: Categories::CONNECTION,
        ..ROW
    },
    run: |call, args| read_here(call, args, true),
    subcommands: &[],
};

pub(super) const READWRITE: Command = Command {
    spec: Spec {
        name: "readwrite",
        summary: "Disables READONLY for this connection.",
        complexity: "O(1)",
        arity: 1,
        flags: Flags::FAST.union(Flags::LOADING).union(Flags::STALE),
        categories: Categories::CONNECTION,
        ..ROW
    },
    run: |call, args| read_here(call, args, false),
    subcommands: &[],
};
