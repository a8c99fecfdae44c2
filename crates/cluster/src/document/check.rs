//! Validation: the rules for a document by itself, and the rules that it must meet before a node installs it.

use super::{
    DOCUMENT_BYTES_MAX, Durability, FORMAT, HOST_BYTES_MAX, MEMBERS_MAX, MIGRATIONS_MAX, Member,
    NAME_BYTES_MAX, REASON_BYTES_MAX, REMOVED_MAX, Shard, Topology,
};
use crate::id::{Epoch, MigrationId, NodeId, NodeRun, ShardId, Term};
use crate::slots::{SlotId, SlotRanges};
use std::collections::BTreeSet;

/// Why a document was rejected, regardless of the document in force.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum DocumentError {
    #[error("the document has {0} bytes; at most {DOCUMENT_BYTES_MAX} are allowed")]
    TooLarge(usize),
    #[error("the document is not valid: {0}")]
    Syntax(String),
    #[error(
        "the document has format {0}, this version supports format {FORMAT} only: upgrade this node"
    )]
    Format(u64),
    #[error("the document has {count} {what}; at most {max} are allowed")]
    TooMany { what: &'static str, count: usize, max: usize },
    #[error(
        "the {field} of node {node} is empty, too long, or has characters other than letters, digits, '.', ':', '_' and '-'"
    )]
    MemberText { node: NodeId, field: &'static str },
    #[error("node {0} has no port")]
    NoPort(NodeId),
    #[error("shard {0} occurs twice")]
    RepeatedShard(ShardId),
    #[error("shard {shard} names node {node}, which is not a member")]
    NotAMember { shard: ShardId, node: NodeId },
    #[error("node {0} belongs to two shards, or twice to one")]
    RepeatedNode(NodeId),
    #[error("node {0} belongs to no shard")]
    WithoutShard(NodeId),
    #[error(
        "the in-sync set of shard {shard} has {run}, which is not one of its nodes or repeats one"
    )]
    InSync { shard: ShardId, run: NodeRun },
    #[error("the in-sync set of shard {0} has replicas, but its durability is async")]
    InSyncAsync(ShardId),
    #[error("shard {0} has term 0; terms begin at 1")]
    NoTerm(ShardId),
    #[error("slot {slot} has two owners: shards {first} and {second}")]
    SlotOwnedTwice { slot: u16, first: ShardId, second: ShardId },
    #[error("migration {0} occurs twice")]
    RepeatedMigration(MigrationId),
    #[error("migration {0} has no slots, or its source is its target")]
    EmptyMigration(MigrationId),
    #[error(
        "slot {slot} of migration {id} is also in another migration, or the source of the migration does not own it"
    )]
    MigratingSlot { id: MigrationId, slot: u16 },
    #[error("node {0} is a member and removed")]
    RemovedMember(NodeId),
    #[error("a reason is longer than {REASON_BYTES_MAX} bytes")]
    LongReason,
}

/// Why a node keeps the document in force instead of a new one.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum InstallError {
    #[error(transparent)]
    Invalid(#[from] DocumentError),
    #[error("the document is of cluster '{theirs}', this node belongs to cluster '{own}'")]
    OtherCluster { own: String, theirs: String },
    #[error("the document has epoch {new}, the document in force has epoch {in_force}")]
    EpochNotGrown { in_force: Epoch, new: Epoch },
    #[error("shard {shard} has term {new}, the document in force has term {in_force}")]
    TermFell { shard: ShardId, in_force: Term, new: Term },
    #[error(
        "shard {shard} has primary {new} in term {term}, the document in force has {in_force} in the same term"
    )]
    PrimaryChanged { shard: ShardId, term: Term, in_force: NodeId, new: NodeId },
    #[error(
        "the document has disappeared; this node keeps epoch {0}. A primary serves no longer than its present lease lives. Restore the document with: brisk-cli --cluster restore-topology"
    )]
    Disappeared(Epoch),
}

/// Checks the rules that apply to every document. O(n log n) in nodes and ranges, plus the slots of each migration.
pub fn check(topology: &Topology) -> Result<(), DocumentError> {
    if topology.format != FORMAT {
        return Err(DocumentError::Format(topology.format));
    }
    let bounds = [
        ("members", topology.members.len(), MEMBERS_MAX),
        ("shards", topology.shards.len(), MEMBERS_MAX),
        ("migrations", topology.migrations.len(), MIGRATIONS_MAX),
        ("removed nodes", topology.removed.len(), REMOVED_MAX),
    ];
    if let Some((what, count, max)) = bounds.into_iter().find(|(_, count, max)| count > max) {
        return Err(DocumentError::TooMany { what, count, max });
    }
    topology.members.iter().try_for_each(|(node, member)| check_member(*node, member))?;
    check_shards(topology)?;
    check_owners(topology)?;
    check_migrations(topology)?;
    match topology.removed.keys().find(|node| topology.members.contains_key(*node)) {
        Some(node) => Err(DocumentError::RemovedMember(*node)),
        None => Ok(()),
    }
}

/// Checks a new document before a node installs it. `own_name` is `cluster-name`; `new` is `None` if the
/// coordinator has no document.
///
/// # Errors
/// The node keeps the document in force, logs the error, and counts it in `cluster_documents_refused`.
pub fn check_installation(
    own_name: &str,
    in_force: Option<&Topology>,
    new: Option<&Topology>,
) -> Result<(), InstallError> {
    let Some(new) = new else {
        return in_force.map_or(Ok(()), |old| Err(InstallError::Disappeared(old.epoch)));
    };
    if let Some(theirs) = new.name.as_ref().filter(|theirs| *theirs != own_name) {
        return Err(InstallError::OtherCluster {
            own: own_name.to_owned(),
            theirs: theirs.clone(),
        });
    }
    // The cheap comparison comes first: nodes read the document in force again and again.
    if let Some(old) = in_force.filter(|old| new.epoch <= old.epoch) {
        return Err(InstallError::EpochNotGrown { in_force: old.epoch, new: new.epoch });
    }
    check(new)?;
    in_force.map_or(Ok(()), |old| check_succession(old, new))
}

/// The rules that compare a document with the one before it.
fn check_succession(old: &Topology, new: &Topology) -> Result<(), InstallError> {
    for before in &old.shards {
        let Some(after) = new.shard(before.id) else { continue };
        if after.term < before.term {
            let (in_force, new) = (before.term, after.term);
            return Err(InstallError::TermFell { shard: before.id, in_force, new });
        }
        if after.term == before.term && after.primary != before.primary {
            return Err(InstallError::PrimaryChanged {
                shard: before.id,
                term: before.term,
                in_force: before.primary,
                new: after.primary,
            });
        }
    }
    Ok(())
}

fn check_member(node: NodeId, member: &Member) -> Result<(), DocumentError> {
    let texts = [
        ("ip", &member.ip, HOST_BYTES_MAX, true),
        ("host", &member.host, HOST_BYTES_MAX, false),
        ("zone", &member.zone, NAME_BYTES_MAX, false),
        ("name", &member.name, NAME_BYTES_MAX, false),
    ];
    for (field, text, bytes_max, is_required) in texts {
        let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b".:_-".contains(&byte);
        let is_missing = is_required && text.is_empty();
        if is_missing || text.len() > bytes_max || !text.bytes().all(is_plain) {
            return Err(DocumentError::MemberText { node, field });
        }
    }
    if member.port == 0 && member.tls == 0 {
        return Err(DocumentError::NoPort(node));
    }
    Ok(())
}

/// Each member belongs to exactly one shard, and each in-sync run to its shard.
fn check_shards(topology: &Topology) -> Result<(), DocumentError> {
    let (mut ids, mut nodes) = (BTreeSet::new(), BTreeSet::new());
    for shard in &topology.shards {
        if !ids.insert(shard.id) {
            return Err(DocumentError::RepeatedShard(shard.id));
        }
        if shard.term < Term::FIRST {
            return Err(DocumentError::NoTerm(shard.id));
        }
        if shard.why.len() > REASON_BYTES_MAX {
            return Err(DocumentError::LongReason);
        }
        for node in shard.nodes() {
            if !topology.members.contains_key(&node) {
                return Err(DocumentError::NotAMember { shard: shard.id, node });
            }
            if !nodes.insert(node) {
                return Err(DocumentError::RepeatedNode(node));
            }
        }
        check_in_sync(shard)?;
    }
    match topology.members.keys().find(|node| !nodes.contains(*node)) {
        Some(node) => Err(DocumentError::WithoutShard(*node)),
        None => Ok(()),
    }
}

fn check_in_sync(shard: &Shard) -> Result<(), DocumentError> {
    let mut nodes = BTreeSet::new();
    for run in &shard.isr {
        if !shard.has(run.node) || !nodes.insert(run.node) {
            return Err(DocumentError::InSync { shard: shard.id, run: *run });
        }
        if shard.durability == Durability::Async && run.node != shard.primary {
            return Err(DocumentError::InSyncAsync(shard.id));
        }
    }
    Ok(())
}

/// Each slot has at most one owner. Compares neighboring ranges of all shards.
fn check_owners(topology: &Topology) -> Result<(), DocumentError> {
    let of_shard = |shard: &Shard| {
        let id = shard.id;
        shard.slots.ranges().iter().map(move |range| (*range, id)).collect::<Vec<_>>()
    };
    let mut ranges: Vec<_> = topology.shards.iter().flat_map(of_shard).collect();
    ranges.sort_unstable();
    for pair in ranges.windows(2) {
        let [(before, first), (after, second)] = pair else { continue };
        if after.first() <= before.last() {
            let slot = after.first().number();
            return Err(DocumentError::SlotOwnedTwice { slot, first: *first, second: *second });
        }
    }
    Ok(())
}

fn check_migrations(topology: &Topology) -> Result<(), DocumentError> {
    let mut ids = BTreeSet::new();
    let mut moving = SlotRanges::default();
    for migration in &topology.migrations {
        let id = migration.id;
        if !ids.insert(id) {
            return Err(DocumentError::RepeatedMigration(id));
        }
        if migration.slots.is_empty() || migration.src == migration.dst {
            return Err(DocumentError::EmptyMigration(id));
        }
        if migration.why.len() > REASON_BYTES_MAX {
            return Err(DocumentError::LongReason);
        }
        if !migration.state.is_open() {
            continue;
        }
        let source = topology.shard(migration.src);
        let is_free = |slot: &SlotId| {
            source.is_some_and(|shard| shard.slots.contains(*slot)) && !moving.contains(*slot)
        };
        if let Some(slot) = migration.slots.iter().find(|slot| !is_free(slot)) {
            return Err(DocumentError::MigratingSlot { id, slot: slot.number() });
        }
        moving = moving.union(&migration.slots);
    }
    Ok(())
}
