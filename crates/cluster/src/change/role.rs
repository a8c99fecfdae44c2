//! Roles: promotions, planned switches, in-sync sets, durability.

use super::{ChangeError, Edit, begin, finish, shard_mut};
use crate::document::{Durability, REASON_BYTES_MAX, Shard, TermCause, Topology};
use crate::id::{ChangeId, NodeId, NodeRun, ShardId, Term};

/// A new primary for a shard, with the next term.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Promotion {
    pub shard: ShardId,
    /// The term in which the promotion was decided. If the shard has a different term by now, the change is rejected.
    pub expected_term: Term,
    /// A replica of the shard, or its primary with [`TermCause::Resumed`].
    pub to: NodeRun,
    pub cause: TermCause,
    /// The reason in words, shown to operators. Longer reasons are cut off.
    pub why: String,
}

/// Makes a replica the primary, or lets a restarted primary resume, with the next term. The previous primary becomes a
/// replica. The in-sync set begins with the new primary; a planned switch with durability `sync` keeps the other runs,
/// since they have everything. O(document).
pub fn promote(topology: &Topology, change: ChangeId, promotion: &Promotion) -> Edit {
    let mut next = begin(topology, change);
    let shard = shard_mut(&mut next, promotion.shard)?;
    check_term(shard, promotion.expected_term)?;
    let to = promotion.to;
    let is_resumption = promotion.cause == TermCause::Resumed;
    let wanted = if is_resumption { "master" } else { "replica" };
    let is_possible =
        if is_resumption { shard.primary == to.node } else { shard.replicas.contains(&to.node) };
    if !is_possible {
        return Err(ChangeError::NotOfShard { node: to.node, shard: shard.id, wanted });
    }
    if !is_resumption {
        let before = std::mem::replace(&mut shard.primary, to.node);
        shard.replicas.retain(|replica| *replica != to.node);
        shard.replicas.push(before);
    }
    let keeps_others =
        promotion.cause == TermCause::Planned && shard.durability == Durability::Sync;
    shard.isr.retain(|run| keeps_others && run.node != to.node);
    shard.isr.insert(0, to);
    shard.term = shard.term.next();
    shard.cause = promotion.cause;
    shard.why = shortened(&promotion.why);
    finish(next)
}

/// Confirms that `run` is the primary of its shard. A node that lost its lease and registered again writes this change
/// before it serves: the epoch grows, so that a promotion that was decided while it had no lease can no longer be
/// committed. A primary that does not know the outcome of a planned switch settles it in the same way before it serves
/// again. O(document).
///
/// The document also gets the TTL of the primary's lease, in seconds.
///
/// # Errors
/// The document has a different primary, or a different run of it.
pub fn reassert(topology: &Topology, change: ChangeId, run: NodeRun, ttl: u64) -> Edit {
    let own = topology.shard_of(run.node);
    let own = own.ok_or_else(|| ChangeError::UnknownNode(run.node.to_string()))?;
    if own.primary_run() != Some(run) {
        let (node, shard) = (run.node, own.id);
        return Err(ChangeError::NotOfShard { node, shard, wanted: "master" });
    }
    let mut next = begin(topology, change);
    if let Some(member) = next.members.get_mut(&run.node) {
        member.ttl = ttl;
    }
    finish(next)
}

/// Removes [`Shard::former_ttl`] from the shard whose primary of `term` is `run`. This primary makes the change once it
/// serves: no earlier primary of the shard can serve then. O(document).
pub fn clear_former_ttl(
    topology: &Topology,
    change: ChangeId,
    shard: ShardId,
    term: Term,
    run: NodeRun,
) -> Edit {
    let is_own = |shard: &&Shard| shard.term == term && shard.primary_run() == Some(run);
    let own = topology.shard(shard).filter(is_own);
    if own.is_none_or(|own| own.former_ttl == 0) {
        return Ok(None);
    }
    let mut next = begin(topology, change);
    shard_mut(&mut next, shard)?.former_ttl = 0;
    finish(next)
}

/// The shard on which CLUSTER FAILOVER acts when the node `own` receives it.
///
/// # Errors
/// As in Redis, if the node is not a replica.
pub fn failover_shard(topology: &Topology, own: NodeId) -> Result<&Shard, ChangeError> {
    let shard = topology.shards.iter().find(|shard| shard.replicas.contains(&own));
    shard.ok_or(ChangeError::FailoverAtPrimary)
}

/// Replaces the in-sync set of a shard. The primary of `term` makes this change when a replica has caught up or no
/// longer responds. O(document).
pub fn set_in_sync(
    topology: &Topology,
    change: ChangeId,
    shard: ShardId,
    term: Term,
    runs: &[NodeRun],
) -> Edit {
    let mut next = begin(topology, change);
    let shard = shard_mut(&mut next, shard)?;
    check_term(shard, term)?;
    if !runs.iter().any(|run| Some(*run) == shard.primary_run()) {
        let node = shard.primary;
        return Err(ChangeError::NotOfShard { node, shard: shard.id, wanted: "member in sync" });
    }
    if shard.isr == runs {
        return Ok(None);
    }
    shard.isr = runs.to_vec();
    finish(next)
}

/// Sets the durability of a shard. The in-sync set begins with the primary. O(document).
pub fn set_durability(
    topology: &Topology,
    change: ChangeId,
    shard: ShardId,
    durability: Durability,
) -> Edit {
    let mut next = begin(topology, change);
    let shard = shard_mut(&mut next, shard)?;
    if shard.durability == durability {
        return Ok(None);
    }
    let primary = shard.primary;
    shard.durability = durability;
    shard.isr.retain(|run| run.node == primary);
    finish(next)
}

fn check_term(shard: &Shard, expected: Term) -> Result<(), ChangeError> {
    if shard.term == expected {
        return Ok(());
    }
    Err(ChangeError::StaleTerm { shard: shard.id, expected, term: shard.term })
}

fn shortened(why: &str) -> String {
    let end = (0..=REASON_BYTES_MAX.min(why.len())).rev().find(|at| why.is_char_boundary(*at));
    why[..end.unwrap_or(0)].to_owned()
}
