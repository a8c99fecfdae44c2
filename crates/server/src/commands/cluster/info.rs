//! CLUSTER INFO, MYID, MYSHARDID, HELP.

use super::{BOOTSTRAP, node_view, require_cluster_mode};
use brisk_engine::command::{Group, Spec};
use brisk_engine::{Args, Outcome, Result};
use brisk_node::core::call::{Call, Command};
use std::sync::Arc;

pub(super) const INFO: Command = Command {
    spec: Spec {
        name: "info",
        summary: "Shows the state of the cluster.",
        tips: &["nondeterministic_output"],
        ..BOOTSTRAP
    },
    run: info,
    subcommands: &[],
};

fn info(call: &mut Call<'_>, _: &mut Args<'_>) -> Result<Outcome> {
    let config = Arc::clone(&call.core.config);
    let lines = node_view(call)?.lines(&config);
    let lines = lines.iter().map(|(name, value)| format!("{name}:{value}\r\n"));
    let text: String = lines.collect();
    Ok(call.reply.verbatim(*b"txt", text.as_bytes()))
}

pub(super) const MYID: Command = Command {
    spec: Spec { name: "myid", summary: "Shows the id of this node.", ..BOOTSTRAP },
    run: my_id,
    subcommands: &[],
};

fn my_id(call: &mut Call<'_>, _: &mut Args<'_>) -> Result<Outcome> {
    let id = node_view(call)?.contents().own.id.to_string();
    Ok(call.reply.bulk(id.as_bytes()))
}

pub(super) const MYSHARDID: Command = Command {
    spec: Spec {
        name: "myshardid",
        summary: "Shows the id of the shard of this node.",
        since: "7.2.0",
        tips: &["nondeterministic_output"],
        ..BOOTSTRAP
    },
    run: my_shard_id,
    subcommands: &[],
};

fn my_shard_id(call: &mut Call<'_>, _: &mut Args<'_>) -> Result<Outcome> {
    let id = node_view(call)?.contents().my_shard_id().to_string();
    Ok(call.reply.bulk(id.as_bytes()))
}

pub(super) const HELP: Command =
    Command { spec: Spec::help(Group::Cluster, "5.0.0"), run: help, subcommands: &[] };

fn help(call: &mut Call<'_>, _: &mut Args<'_>) -> Result<Outcome> {
    require_cluster_mode(call)?;
    Ok(call.help(HELP_LINES))
}

const HELP_LINES: &[&str] = &[
    "ADDSLOTS <slot> [<slot> ...]",
    "    Assign slots without an owner to this node.",
    "ADDSLOTSRANGE <start slot> <end slot> [<start slot> <end slot> ...]",
    "    Assign ranges of slots without an owner to this node.",
    "BUMPEPOCH",
    "    No effect: the epoch grows with every change of the topology.",
    "COUNT-FAILURE-REPORTS <node-id>",
    "    Always 0: leases decide which nodes have failed.",
    "COUNTKEYSINSLOT <slot>",
    "    Count the keys of a slot at this node.",
    "DELSLOTS <slot> [<slot> ...]",
    "    Unassign empty slots of this node.",
    "DELSLOTSRANGE <start slot> <end slot> [<start slot> <end slot> ...]",
    "    Unassign ranges of empty slots of this node.",
    "FAILOVER [FORCE|TAKEOVER]",
    "    Promote this replica to master.",
    "FORGET <node-id>",
    "    Remove a node from the cluster.",
    "GETKEYSINSLOT <slot> <count>",
    "    Show up to <count> keys of a slot at this node.",
    "FLUSHSLOTS",
    "    Unassign all slots of this node, which must have no keys.",
    "INFO",
    "    Show the state of the cluster.",
    "KEYSLOT <key>",
    "    Compute the slot of a key.",
    "LINKS",
    "    Always empty: nodes have no cluster bus.",
    "MEET <ip> <port> [<bus-port>]",
    "    Add a node that uses the same coordinator.",
    "MYID",
    "    Show the id of this node.",
    "MYSHARDID",
    "    Show the id of the shard of this node.",
    "NODES",
    "    List the nodes, one per line:",
    "    <id> <ip:port> <flags> <master> <pings> <pongs> <epoch> <link> <slot> ...",
    "REPLICATE <node-id>",
    "    Make this node a replica of a master.",
    "RESET [HARD|SOFT]",
    "    Remove this node from the cluster (default: soft).",
    "SET-CONFIG-EPOCH <epoch>",
    "    No effect: the epoch grows with every change of the topology.",
    "SETSLOT <slot> (IMPORTING <node-id>|MIGRATING <node-id>|STABLE|NODE <node-id>)",
    "    Change the owner of a slot.",
    "REPLICAS <node-id>",
    "    Show the replicas of a master.",
    "SAVECONFIG",
    "    No effect: the node saves every change of the topology.",
    "SLOTS",
    "    Show ranges of slots, each with its master and replicas.",
    "SHARDS",
    "    Show shards, each with its slots and nodes.",
];
