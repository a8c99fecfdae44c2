//! Changes to the document: functions from a document to the next one.
//!
//! | file | about |
//! |---|---|
//! | here | errors, and what all changes share |
//! | `membership` | MEET, REPLICATE, FORGET, RESET, addresses |
//! | `slot` | ADDSLOTS, DELSLOTS, FLUSHSLOTS |
//! | `role` | promotions, planned switches, in-sync sets, durability |
//! | `form` | a cluster formed from the registered nodes |
//! | `migration` | the records of migrations |
//!
//! Every change increments the epoch and carries the id of its writer. The writer replaces the document only
//! if the coordinator still has the version that the change began with, and otherwise computes the change
//! again. `Ok(None)` means that the document is already as the command wants it.

mod form;
mod membership;
mod migration;
mod role;
mod slot;
#[cfg(test)]
mod tests;

pub use form::form;
pub use membership::{
    FORGET_SECONDS, MeetAddress, OwnNode, check_config_epoch, correct_member, forget, meet,
    record_ttl, replicate, reset,
};
pub use migration::{
    abort_migration, begin_migration, commit_migration, end_migration, stream_migration,
};
pub use role::{
    Promotion, clear_former_ttl, failover_shard, promote, reassert, set_durability, set_in_sync,
};
pub use slot::{add_slots, delete_slots, flush_slots, parse_slot_ranges, parse_slots};

use crate::document::{
    DocumentError, MIGRATIONS_MAX, MigrationState, Registration, Shard, Topology, check,
};
use crate::id::{ChangeId, MigrationId, NodeId, ShardId, Term};

/// The next document, or `None` if nothing has to change.
pub type Edit = Result<Option<Topology>, ChangeError>;

/// Why a change was rejected. `Display` is the error reply; if Redis rejects the same request, it is Redis's text.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ChangeError {
    #[error("ERR Invalid or out of range slot")]
    InvalidSlot,
    #[error("ERR start slot number {first} is greater than end slot number {last}")]
    ReversedRange { first: u16, last: u16 },
    #[error("ERR Slot {0} specified multiple times")]
    RepeatedSlot(u16),
    #[error("ERR Slot {0} is already busy")]
    BusySlot(u16),
    #[error("ERR Slot {0} is already unassigned")]
    UnassignedSlot(u16),
    #[error("ERR Slot {0} is not empty")]
    SlotHoldsKeys(u16),
    #[error("ERR Slot {slot} belongs to node {owner}, send the command to that node")]
    ForeignSlot { slot: u16, owner: NodeId },
    #[error("ERR DB must be empty to perform CLUSTER FLUSHSLOTS.")]
    FlushWithKeys,
    #[error("ERR Slots can be changed at a master only")]
    SlotsOfReplica,
    #[error("ERR Invalid TCP base port specified: {0}")]
    InvalidPort(String),
    #[error("ERR Invalid TCP bus port specified: {0}")]
    InvalidBusPort(String),
    #[error("ERR Invalid node address specified: {ip}:{port}")]
    InvalidAddress { ip: String, port: String },
    #[error(
        "ERR No node with that address is registered with this cluster's coordinator (cluster-name {0})"
    )]
    NotRegistered(String),
    #[error("ERR Unknown node {0}")]
    UnknownNode(String),
    #[error("ERR Can't replicate myself")]
    ReplicateSelf,
    #[error("ERR I can only replicate a master, not a replica.")]
    ReplicateReplica,
    #[error("ERR To set a master the node must be empty and without assigned slots.")]
    ReplicateWithData,
    #[error("ERR I tried hard but I can't forget myself...")]
    ForgetSelf,
    #[error("ERR Can't forget my master!")]
    ForgetOwnPrimary,
    #[error("ERR Node {0} owns slots and is running: send CLUSTER DELSLOTS to it first")]
    ForgetOwner(NodeId),
    #[error(
        "ERR Node {0} is the master of replicas: promote one with CLUSTER FAILOVER FORCE first, or, if no replica has \
         the data, send CLUSTER RESET to each of them"
    )]
    ForgetPrimary(NodeId),
    #[error("ERR CLUSTER RESET can't be called with master nodes containing keys")]
    ResetWithKeys,
    #[error("ERR Invalid config epoch specified: {0}")]
    InvalidConfigEpoch(i64),
    #[error("ERR You should send CLUSTER FAILOVER to a replica")]
    FailoverAtPrimary,
    #[error("ERR This replica has no full copy of its master's dataset")]
    FailoverWithoutCopy,
    #[error("ERR Please use SETSLOT only with masters.")]
    SetslotAtReplica,
    #[error("ERR I'm not the owner of hash slot {0}")]
    NotOwnSlot(u16),
    #[error("ERR I don't know about node {0}")]
    UnknownTarget(String),
    #[error("ERR Target node is not a master")]
    TargetIsReplica,
    #[error("ERR Slot {0} is being migrated")]
    SlotIsMigrating(u16),
    #[error("ERR Migration {0} has ended or does not exist")]
    NoMigration(MigrationId),
    #[error("ERR Shard {0} no longer exists")]
    NoShard(ShardId),
    #[error("ERR Shard {shard} has term {term} by now, the change was made for term {expected}")]
    StaleTerm { shard: ShardId, expected: Term, term: Term },
    #[error("ERR Node {node} is not a {wanted} of shard {shard}")]
    NotOfShard { node: NodeId, shard: ShardId, wanted: &'static str },
    #[error("ERR The cluster exists already")]
    AlreadyFormed,
    #[error("ERR {wanted} nodes are needed to form the cluster, {registered} are registered")]
    TooFewNodes { wanted: usize, registered: usize },
    #[error("ERR The change is not possible: {0}")]
    Invalid(#[from] DocumentError),
}

/// Begins a change: the same document, one epoch later, with the writer's id.
fn begin(topology: &Topology, change: ChangeId) -> Topology {
    Topology { epoch: topology.epoch.next(), change, ..topology.clone() }
}

/// Ends a change: aborts migrations that it made impossible, and checks the document.
fn finish(mut topology: Topology) -> Edit {
    abort_impossible_migrations(&mut topology);
    drop_old_migrations(&mut topology);
    check(&topology)?;
    Ok(Some(topology))
}

/// Aborts migrations that are impossible: a migration is bound to the terms of both shards and to the source's slots.
fn abort_impossible_migrations(topology: &mut Topology) {
    let terms = |topology: &Topology, id| topology.shard(id).map(|shard| shard.term);
    let reasons: Vec<Option<&str>> = topology
        .migrations
        .iter()
        .map(|migration| {
            let source = topology.shard(migration.src);
            if !migration.state.is_open() {
                None
            } else if source.map(|shard| shard.term) != Some(migration.src_term) {
                Some("the source has another primary")
            } else if terms(topology, migration.dst) != Some(migration.dst_term) {
                Some("the target has another primary")
            } else if source
                .is_some_and(|shard| migration.slots.iter().any(|slot| !shard.slots.contains(slot)))
            {
                Some("the source no longer owns the slots")
            } else {
                None
            }
        })
        .collect();
    for (migration, reason) in topology.migrations.iter_mut().zip(reasons) {
        if let Some(reason) = reason {
            migration.state = MigrationState::Aborted;
            reason.clone_into(&mut migration.why);
        }
    }
}

/// Drops the oldest finished migrations, so that new ones have room.
fn drop_old_migrations(topology: &mut Topology) {
    const KEPT: usize = MIGRATIONS_MAX / 2;
    let mut excess = topology.migrations.len().saturating_sub(KEPT);
    topology.migrations.retain(|migration| {
        let is_dropped = excess > 0 && !migration.state.is_open();
        excess -= usize::from(is_dropped);
        !is_dropped
    });
}

/// Makes a registered node a member with a shard of its own, unless it is already a member.
fn admit(topology: &mut Topology, node: &Registration) {
    if topology.members.contains_key(&node.id) {
        return;
    }
    topology.members.insert(node.id, node.member.clone());
    topology.removed.remove(&node.id);
    let shard = ShardId::founded(node.id, topology.epoch);
    topology.shards.push(Shard::founded(shard, node.run()));
}

/// The shard with this id.
fn shard_mut(topology: &mut Topology, id: ShardId) -> Result<&mut Shard, ChangeError> {
    let shard = topology.shards.iter_mut().find(|shard| shard.id == id);
    shard.ok_or(ChangeError::NoShard(id))
}
