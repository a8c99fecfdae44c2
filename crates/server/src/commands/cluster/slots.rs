//! CLUSTER SLOTS, SHARDS.

use super::{BOOTSTRAP, node_view};
use brisk_cluster::view::{ShardsEntry, ShardsNode, SlotsNode};
use brisk_engine::command::{Deprecated, Spec};
use brisk_engine::{Args, Outcome, Reply, Result};
use brisk_node::core::call::{Call, Command};

pub(super) const SLOTS: Command = Command {
    spec: Spec {
        name: "slots",
        summary: "Shows the nodes that serve each range of slots.",
        complexity: "O(N) in the number of nodes.",
        tips: &["nondeterministic_output"],
        deprecated: Some(Deprecated { since: "7.0.0", replaced_by: "`CLUSTER SHARDS`" }),
        history: &[
            ("4.0.0", "Shows the IDs of nodes."),
            ("7.0.0", "Shows further names of each node's host."),
        ],
        ..BOOTSTRAP
    },
    run: slots,
    subcommands: &[],
};

fn slots(call: &mut Call<'_>, _: &mut Args<'_>) -> Result<Outcome> {
    let entries = node_view(call)?.contents().slots();
    let reply = &mut call.reply;
    reply.array(entries.len());
    for entry in entries {
        reply.array(2 + entry.nodes.len());
        reply.integer(entry.range.first().number().into());
        reply.integer(entry.range.last().number().into());
        entry.nodes.iter().for_each(|node| write_slots_node(reply, node));
    }
    Ok(Outcome::Replied)
}

fn write_slots_node(reply: &mut Reply<'_>, node: &SlotsNode) {
    reply.array(4);
    match &node.endpoint {
        Some(endpoint) => reply.bulk(endpoint.as_bytes()),
        None => reply.null(),
    };
    reply.integer(node.port.into());
    reply.bulk(node.id.to_string().as_bytes());
    reply.map(node.metadata.len());
    for (name, value) in &node.metadata {
        reply.bulk(name.as_bytes());
        reply.bulk(value.as_bytes());
    }
}

pub(super) const SHARDS: Command = Command {
    spec: Spec {
        name: "shards",
        summary: "Shows slots and nodes by shard.",
        since: "7.0.0",
        complexity: "O(N) in the number of nodes.",
        tips: &["nondeterministic_output"],
        ..BOOTSTRAP
    },
    run: shards,
    subcommands: &[],
};

fn shards(call: &mut Call<'_>, _: &mut Args<'_>) -> Result<Outcome> {
    let entries = node_view(call)?.contents().shards();
    let reply = &mut call.reply;
    reply.array(entries.len());
    entries.iter().for_each(|entry| write_shard(reply, entry));
    Ok(Outcome::Replied)
}

fn write_shard(reply: &mut Reply<'_>, shard: &ShardsEntry) {
    reply.map(2);
    reply.bulk(b"slots");
    let ranges = shard.slots.ranges();
    reply.array(2 * ranges.len());
    for range in ranges {
        reply.integer(range.first().number().into());
        reply.integer(range.last().number().into());
    }
    reply.bulk(b"nodes");
    reply.array(shard.nodes.len());
    shard.nodes.iter().for_each(|node| write_shards_node(reply, node));
}

fn write_shards_node(reply: &mut Reply<'_>, node: &ShardsNode) {
    /// Fields that every node has.
    const ALWAYS: usize = 6;
    let optional = [node.port.is_some(), node.tls_port.is_some(), node.hostname.is_some()];
    reply.map(ALWAYS + optional.iter().filter(|is_shown| **is_shown).count());
    write_text(reply, "id", &node.id.to_string());
    for (name, port) in [("port", node.port), ("tls-port", node.tls_port)] {
        if let Some(port) = port {
            reply.bulk(name.as_bytes());
            reply.integer(port.into());
        }
    }
    write_text(reply, "ip", &node.ip);
    write_text(reply, "endpoint", &node.endpoint);
    if let Some(hostname) = &node.hostname {
        write_text(reply, "hostname", hostname);
    }
    write_text(reply, "role", node.role);
    reply.bulk(b"replication-offset");
    reply.integer(node.replication_offset.cast_signed());
    write_text(reply, "health", node.health);
}

fn write_text(reply: &mut Reply<'_>, name: &str, value: &str) {
    reply.bulk(name.as_bytes());
    reply.bulk(value.as_bytes());
}
