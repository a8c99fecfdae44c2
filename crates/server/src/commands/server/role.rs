//! ROLE: this server's part in replication.

use brisk_engine::command::{Categories, Flags, Group, Spec};
use brisk_engine::{Args, Outcome, Result};
use brisk_node::core::call::{Call, Command};
use brisk_node::replication::replica::Stage;

/// A primary, its place in the stream, and its replicas with theirs.
fn role(call: &mut Call<'_>, _: &mut Args<'_>) -> Result<Outcome> {
    call.reply.array(3);
    call.reply.bulk(b"master");
    let feed = &call.core.shared.replication.feed;
    call.reply.integer(feed.offset(call.core.shared.keyspace.journal()) as i64);
    let mut replicas = feed.members();
    replicas.retain(|one| one.ip.is_some() && one.attachment.stage() == Stage::Online);
    let mut outcome = call.reply.array(replicas.len());
    for replica in replicas {
        call.reply.array(3);
        call.reply.bulk(replica.ip.map(|ip| ip.to_string()).unwrap_or_default().as_bytes());
        call.reply.bulk(replica.port.to_string().as_bytes());
        outcome = call.reply.bulk(replica.acked.to_string().as_bytes());
    }
    Ok(outcome)
}

const ROLE: Command = Command {
    spec: Spec {
        name: "role",
        group: Group::Server,
        summary: "Tells whether this is a primary or a replica, and of whom.",
        since: "2.8.12",
        complexity: "O(1)",
        arity: 1,
        flags: Flags::FAST.union(Flags::LOADING).union(Flags::NOSCRIPT).union(Flags::STALE),
        categories: Categories::ADMIN.union(Categories::DANGEROUS),
        ..Spec::EMPTY
    },
    run: role,
    subcommands: &[],
};

pub(super) const COMMANDS: &[Command] = &[ROLE];
