//! ROLE: this server's role in replication.

use brisk_config::value::PrimaryAddress;
use brisk_engine::command::{Categories, Flags, Group, Spec};
use brisk_engine::{Args, Outcome, Result};
use brisk_node::core::call::{Call, Command};
use brisk_node::replication::replica::ReplicaStage;

fn role(call: &mut Call<'_>, _: &mut Args<'_>) -> Result<Outcome> {
    let primary = call.core.config.replication.replicaof.clone();
    match primary.filter(|_| call.core.shared.conditions.is_replica()) {
        Some(address) => Ok(replica(call, &address)),
        None => Ok(primary_with_replicas(call)),
    }
}

/// The reply of a replica: its primary, the phase of the upstream, and the offset.
fn replica(call: &mut Call<'_>, address: &PrimaryAddress) -> Outcome {
    let shared = call.core.shared;
    let primary = &shared.replication.upstream;
    call.reply.array(5);
    call.reply.bulk(b"slave");
    call.reply.bulk(address.host.as_bytes());
    call.reply.integer(i64::from(address.port));
    call.reply.bulk(primary.phase().word().as_bytes());
    let place = || shared.replication.applied(shared.keyspace.journal()).cast_signed();
    call.reply.integer(if primary.is_up() { place() } else { -1 })
}

/// The reply of a primary: its offset, and its replicas with their offsets.
fn primary_with_replicas(call: &mut Call<'_>) -> Outcome {
    call.reply.array(3);
    call.reply.bulk(b"master");
    let replication = &call.core.shared.replication;
    let offset = replication.offset(call.core.shared.keyspace.journal());
    call.reply.integer(offset.cast_signed());
    let mut replicas = replication.replicas.list();
    replicas.retain(|one| one.ip.is_some() && one.progress.stage() == ReplicaStage::Online);
    let mut outcome = call.reply.array(replicas.len());
    for replica in replicas {
        call.reply.array(3);
        call.reply.bulk(replica.ip.map(|ip| ip.to_string()).unwrap_or_default().as_bytes());
        call.reply.bulk(replica.port.to_string().as_bytes());
        outcome = call.reply.bulk(replica.acked.to_string().as_bytes());
    }
    outcome
}

const ROLE: Command = Command {
    spec: Spec {
        name: "role",
        group: Group::Server,
        summary: "Returns the replication role of this server, and its primary or replicas.",
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
