//! A cluster formed from the registered nodes, spread over zones and hosts.

use super::{ChangeError, Edit, begin, finish};
use crate::document::{MEMBERS_MAX, Registration, Shard, Topology};
use crate::id::{ChangeId, ShardId};
use crate::slots::{SlotId, SlotRange, SlotRanges};
use brisk_resp::slot::SLOTS;
use std::collections::BTreeMap;

/// Forms a cluster of `shards` primaries with `replicas` replicas each, once enough nodes are registered. Slots are
/// divided as `redis-cli --cluster create` divides them. The nodes of a shard are in different zones and on different
/// hosts if possible. The result depends only on the nodes, not on their order. O(nodes² · shards).
pub fn form(
    topology: &Topology,
    change: ChangeId,
    registered: &[Registration],
    shards: usize,
    replicas: usize,
) -> Edit {
    if !topology.members.is_empty() {
        return Err(ChangeError::AlreadyFormed);
    }
    let mut rest = spread(registered);
    let wanted = shards.saturating_mul(replicas.saturating_add(1));
    if shards == 0 || wanted > rest.len() || wanted > MEMBERS_MAX {
        return Err(ChangeError::TooFewNodes { wanted, registered: rest.len() });
    }
    let mut groups: Vec<Vec<&Registration>> = rest.drain(..shards).map(|node| vec![node]).collect();
    for _ in 0..replicas {
        for group in &mut groups {
            let best = (0..rest.len()).min_by_key(|at| (closeness(group, rest[*at]), *at));
            if let Some(best) = best {
                group.push(rest.remove(best));
            }
        }
    }
    improve(&mut groups);
    let mut next = begin(topology, change);
    for (at, group) in groups.iter().enumerate() {
        next.members.extend(group.iter().map(|node| (node.id, node.member.clone())));
        next.removed.retain(|id, _| !group.iter().any(|node| node.id == *id));
        let Some((primary, followers)) = group.split_first() else { continue };
        let id = ShardId::founded(primary.id, next.epoch);
        let mut shard = Shard::founded(id, primary.run());
        shard.slots = share(at, shards);
        shard.replicas = followers.iter().map(|node| node.id).collect();
        next.shards.push(shard);
    }
    finish(next)
}

/// The slots of the shard `at` of `shards`: equal parts, with rounded bounds.
fn share(at: usize, shards: usize) -> SlotRanges {
    let bound = |part: usize| {
        let slots = usize::from(SLOTS);
        (2 * part * slots + shards) / (2 * shards)
    };
    let first = SlotId::checked(bound(at));
    let last = bound(at + 1).checked_sub(1).and_then(SlotId::checked);
    let range = first.zip(last).and_then(|(first, last)| SlotRange::new(first, last));
    SlotRanges::merged(range.into_iter().collect())
}

/// The nodes in an order in which neighbors are in different zones and on different hosts: one from each
/// zone in turn, and within a zone one from each host in turn.
fn spread(nodes: &[Registration]) -> Vec<&Registration> {
    let mut zones: BTreeMap<&str, BTreeMap<&str, Vec<&Registration>>> = BTreeMap::new();
    let mut sorted: Vec<&Registration> = nodes.iter().collect();
    sorted.sort_by_key(|node| node.id);
    sorted.dedup_by_key(|node| node.id);
    // The nodes with the lowest ports of a host become primaries, as with `redis-cli --cluster create`.
    sorted.sort_by_key(|node| (node.member.port, node.id));
    for node in sorted {
        let hosts = zones.entry(node.member.zone.as_str()).or_default();
        hosts.entry(node.member.ip.as_str()).or_default().push(node);
    }
    let of_zone = |hosts: BTreeMap<&str, Vec<_>>| in_turn(hosts.into_values().collect());
    in_turn(zones.into_values().map(of_zone).collect())
}

/// The first of each list, then the second of each, and so on.
fn in_turn<T: Copy>(lists: Vec<Vec<T>>) -> Vec<T> {
    let longest = lists.iter().map(Vec::len).max().unwrap_or(0);
    (0..longest).flat_map(|at| lists.iter().filter_map(move |list| list.get(at).copied())).collect()
}

/// How close a node would be to the other nodes of a group: the number of nodes on the same host, then the number in
/// the same zone.
fn closeness(group: &[&Registration], node: &Registration) -> (usize, usize) {
    let others = || group.iter().filter(|other| other.id != node.id);
    let is_same_host = |other: &&&Registration| other.member.ip == node.member.ip;
    let is_same_zone = |other: &&&Registration| other.member.zone == node.member.zone;
    (others().filter(is_same_host).count(), others().filter(is_same_zone).count())
}

/// Exchanges replicas of two groups as long as that brings nodes of a group further apart.
fn improve(groups: &mut [Vec<&Registration>]) {
    /// Every exchange lowers the sum, so the rounds come to an end on their own. The limit keeps their time linear.
    const ROUNDS_MAX: usize = 8;
    for _ in 0..ROUNDS_MAX {
        let mut has_improved = false;
        for a in 0..groups.len() {
            for b in a + 1..groups.len() {
                has_improved |= exchange(groups, a, b);
            }
        }
        if !has_improved {
            return;
        }
    }
}

/// Exchanges one replica of each of two groups if that brings nodes further apart.
fn exchange(groups: &mut [Vec<&Registration>], a: usize, b: usize) -> bool {
    let total = |group: &[&Registration]| {
        let each = group.iter().map(|node| closeness(group, node));
        each.fold((0, 0), |sum, one| (sum.0 + one.0, sum.1 + one.1))
    };
    let both = |groups: &[Vec<&Registration>]| {
        let (one, two) = (total(&groups[a]), total(&groups[b]));
        (one.0 + two.0, one.1 + two.1)
    };
    let before = both(groups);
    for i in 1..groups[a].len() {
        for j in 1..groups[b].len() {
            let (one, two) = (groups[a][i], groups[b][j]);
            (groups[a][i], groups[b][j]) = (two, one);
            if both(groups) < before {
                return true;
            }
            (groups[a][i], groups[b][j]) = (one, two);
        }
    }
    false
}
