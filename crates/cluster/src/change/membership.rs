//! Members: MEET, REPLICATE, FORGET, RESET, and addresses.

use super::{ChangeError, Edit, admit, begin, finish, shard_mut};
use crate::document::{Member, REMOVED_MAX, Registration, Shard, TermCause, Topology};
use crate::id::{ChangeId, NodeId, ShardId};
use core::net::IpAddr;
use std::collections::BTreeSet;

/// Seconds for which the document keeps the ID of a removed node. FORGET of this ID succeeds, because tools send FORGET
/// to every node, and the first one removes the node for all.
pub const FORGET_SECONDS: u64 = 600;

/// The target of MEET.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MeetAddress {
    pub ip: IpAddr,
    pub port: u16,
}

/// The node that executes a command.
#[derive(Debug, Clone, Copy)]
pub struct OwnNode {
    pub id: NodeId,
    /// True if the node's database contains keys.
    pub has_keys: bool,
}

impl MeetAddress {
    /// Reads the arguments of MEET. The bus port is checked but has no effect, since nodes have no bus.
    pub fn parse(ip: &str, port: &str, bus: Option<&str>) -> Result<MeetAddress, ChangeError> {
        let base: i64 = port.parse().map_err(|_| ChangeError::InvalidPort(port.to_owned()))?;
        let bus: i64 = match bus {
            Some(text) => text.parse().map_err(|_| ChangeError::InvalidBusPort(text.to_owned()))?,
            None => 1,
        };
        let is_port = |number: i64| u16::try_from(number).ok().filter(|port| *port > 0);
        match (ip.parse(), is_port(base), is_port(bus)) {
            (Ok(ip), Some(port), Some(_)) => Ok(MeetAddress { ip, port }),
            _ => Err(ChangeError::InvalidAddress { ip: ip.to_owned(), port: base.to_string() }),
        }
    }

    /// True if this is the address of the member, with its port or its TLS port.
    fn is_of(&self, member: &Member) -> bool {
        let has_ip = member.ip.parse() == Ok(self.ip);
        has_ip && (member.port == self.port || member.tls == self.port)
    }
}

/// MEET on the node `own`: those of the two nodes that are not members yet become members, each with a shard without
/// slots. `registered` are the nodes with a lease. O(nodes).
pub fn meet(
    topology: &Topology,
    change: ChangeId,
    own: &Registration,
    target: &MeetAddress,
    registered: &[Registration],
) -> Edit {
    let target = registered.iter().find(|node| target.is_of(&node.member));
    let name = || topology.name.clone().unwrap_or_default();
    let target = target.ok_or_else(|| ChangeError::NotRegistered(name()))?;
    if [own.id, target.id].iter().all(|id| topology.members.contains_key(id)) {
        return Ok(None);
    }
    let mut next = begin(topology, change);
    admit(&mut next, own);
    admit(&mut next, target);
    finish(next)
}

/// REPLICATE on the node `own`: the node joins the shard of the primary `target`. If it was a primary without slots,
/// its replicas come along. O(nodes).
///
/// # Errors
/// A node that is not a member knows only itself, as in Redis before MEET.
pub fn replicate(topology: &Topology, change: ChangeId, own: OwnNode, target: &str) -> Edit {
    let unknown = || ChangeError::UnknownNode(target.to_owned());
    let target: NodeId = target.parse().map_err(|_| unknown())?;
    let own_shard = topology.shard_of(own.id);
    let shard = topology.shard_of(target).filter(|_| own_shard.is_some());
    if target == own.id {
        return Err(ChangeError::ReplicateSelf);
    }
    let (shard, own_shard) = shard.zip(own_shard).ok_or_else(unknown)?;
    if shard.primary != target {
        return Err(ChangeError::ReplicateReplica);
    }
    if own_shard.id == shard.id {
        return Ok(None);
    }
    let is_primary = own_shard.primary == own.id;
    if is_primary && (own.has_keys || !own_shard.slots.is_empty()) {
        return Err(ChangeError::ReplicateWithData);
    }
    let (left, joined) = (own_shard.id, shard.id);
    let moved: Vec<NodeId> = if is_primary { own_shard.nodes().collect() } else { vec![own.id] };
    let mut next = begin(topology, change);
    if is_primary {
        next.shards.retain(|shard| shard.id != left);
    } else {
        remove_replica(shard_mut(&mut next, left)?, own.id);
    }
    shard_mut(&mut next, joined)?.replicas.extend(moved);
    finish(next)
}

/// FORGET on the node `own`. The replicas of a forgotten primary without slots become primaries. `live` are the nodes
/// with a lease, `now` is the Unix time in seconds. O(nodes).
pub fn forget(
    topology: &Topology,
    change: ChangeId,
    own: NodeId,
    target: &str,
    live: &BTreeSet<NodeId>,
    now: u64,
) -> Edit {
    let unknown = || ChangeError::UnknownNode(target.to_owned());
    let target: NodeId = target.parse().map_err(|_| unknown())?;
    if target == own {
        return Err(ChangeError::ForgetSelf);
    }
    if topology.removed.get(&target).is_some_and(|at| is_recent(*at, now)) {
        return Ok(None);
    }
    let own_shard = topology.shard_of(own).ok_or_else(unknown)?;
    let shard = topology.shard_of(target).ok_or_else(unknown)?;
    if shard.primary == target {
        if own_shard.id == shard.id {
            return Err(ChangeError::ForgetOwnPrimary);
        }
        if live.contains(&target) && !shard.slots.is_empty() {
            return Err(ChangeError::ForgetOwner(target));
        }
        // redis-cli's del-node sends FORGET before it has moved the replicas of a primary without slots.
        if !shard.slots.is_empty() && !shard.replicas.is_empty() {
            return Err(ChangeError::ForgetPrimary(target));
        }
    }
    let mut next = begin(topology, change);
    remove(&mut next, target, now)?;
    // An operator may have forced a promotion. Then this replica may be the former primary and still serve.
    if shard.primary != target
        && let Some(member) = topology.members.get(&target)
    {
        let rest = shard_mut(&mut next, shard.id)?;
        rest.former_ttl = rest.former_ttl.max(member.ttl).max(1);
    }
    finish(next)
}

/// RESET on the node `own`: the node leaves the cluster. Its replicas become primaries without slots. With HARD the
/// caller also takes a new id. `now` is the Unix time in seconds. O(nodes).
pub fn reset(topology: &Topology, change: ChangeId, own: OwnNode, now: u64) -> Edit {
    let Some(shard) = topology.shard_of(own.id) else { return Ok(None) };
    if shard.primary == own.id && own.has_keys {
        return Err(ChangeError::ResetWithKeys);
    }
    let mut next = begin(topology, change);
    remove(&mut next, own.id, now)?;
    finish(next)
}

/// Corrects the address, the zone and the names of a member that announces different ones. O(1).
pub fn correct_member(topology: &Topology, change: ChangeId, node: &Registration) -> Edit {
    let Some(known) = topology.members.get(&node.id) else { return Ok(None) };
    if known.is_same_place(&node.member) {
        return Ok(None);
    }
    let mut next = begin(topology, change);
    let (other, ttl) = (known.other.clone(), known.ttl);
    next.members.insert(node.id, Member { other, ttl, ..node.member.clone() });
    finish(next)
}

/// Records the TTL of the lease of the member `node`, in seconds. Only the node itself makes this change: another node
/// may know only an earlier registration. O(1).
pub fn record_ttl(topology: &Topology, change: ChangeId, node: NodeId, ttl: u64) -> Edit {
    if topology.members.get(&node).is_none_or(|known| known.ttl == ttl) {
        return Ok(None);
    }
    let mut next = begin(topology, change);
    if let Some(member) = next.members.get_mut(&node) {
        member.ttl = ttl;
    }
    finish(next)
}

/// SET-CONFIG-EPOCH has no effect: the document has one epoch.
///
/// # Errors
/// As in Redis, if the epoch is negative. Redis also rejects it once the node knows other nodes; here, ADDSLOTS has
/// already made the nodes known to each other before `redis-cli --cluster create` sends this command.
pub fn check_config_epoch(epoch: i64) -> Result<(), ChangeError> {
    if epoch < 0 { Err(ChangeError::InvalidConfigEpoch(epoch)) } else { Ok(()) }
}

fn is_recent(removed_at: u64, now: u64) -> bool {
    now.saturating_sub(removed_at) < FORGET_SECONDS
}

/// Removes a member. If the node is the primary of a shard, the shard is removed too.
fn remove(topology: &mut Topology, node: NodeId, now: u64) -> Result<(), ChangeError> {
    let shard = topology.shard_of(node).cloned();
    let shard = shard.ok_or_else(|| ChangeError::UnknownNode(node.to_string()))?;
    if shard.primary == node {
        topology.shards.retain(|other| other.id != shard.id);
        for replica in &shard.replicas {
            let id = ShardId::founded(*replica, topology.epoch);
            let why = format!("node {} left the cluster", topology.label(node));
            topology.shards.push(shard_of_orphan(id, *replica, &shard, why));
        }
    } else {
        remove_replica(shard_mut(topology, shard.id)?, node);
    }
    topology.members.remove(&node);
    topology.removed.retain(|_, at| is_recent(*at, now));
    if topology.removed.len() >= REMOVED_MAX {
        let oldest = topology.removed.iter().min_by_key(|(_, at)| **at).map(|(id, _)| *id);
        oldest.and_then(|id| topology.removed.remove(&id));
    }
    topology.removed.insert(node, now);
    Ok(())
}

/// The new shard of a replica whose primary left. It has no run in sync, so the controller lets its primary resume.
fn shard_of_orphan(id: ShardId, replica: NodeId, left: &Shard, why: String) -> Shard {
    Shard {
        id,
        slots: Default::default(),
        primary: replica,
        isr: Vec::new(),
        replicas: Vec::new(),
        cause: TermCause::Founded,
        why,
        ..left.clone()
    }
}

fn remove_replica(shard: &mut Shard, node: NodeId) {
    shard.replicas.retain(|replica| *replica != node);
    shard.isr.retain(|run| run.node != node);
}
