//! Which nodes form the first topology. A node with keys is left out: as a replica, it would lose them.

use super::{Decision, FailoverSettings, QUERY_MS_MAX, Situation};
use crate::document::{NodeContents, Registration};
use crate::id::NodeId;
use std::collections::BTreeSet;

/// The decision about a cluster without a topology. `left_out` are the nodes that were reported before. O(registered).
pub(super) fn decide_formation(
    settings: &FailoverSettings,
    situation: &Situation<'_>,
    left_out: &mut BTreeSet<NodeId>,
) -> Vec<Decision> {
    let (shards, replicas) = (settings.init_shards, settings.init_replicas);
    let wanted = shards.saturating_mul(replicas.saturating_add(1));
    if shards == 0 || situation.registered.len() < wanted {
        return Vec::new();
    }
    let contents_of = |node: &Registration| contents(situation, node);
    let with = |contents: NodeContents| {
        situation.registered.values().filter(move |node| contents_of(node) == contents)
    };
    let empty = with(NodeContents::Empty).count();
    let with_keys: BTreeSet<NodeId> = with(NodeContents::Keys).map(|node| node.id).collect();
    left_out.retain(|node| with_keys.contains(node));
    if empty < wanted && with(NodeContents::Loading).next().is_some() {
        return vec![Decision::WaitUntil(situation.now_ms + QUERY_MS_MAX)];
    }
    let mut decisions: Vec<Decision> = with_keys
        .into_iter()
        .filter(|node| left_out.insert(*node))
        .map(|node| Decision::LeaveOut { node, empty, wanted })
        .collect();
    if empty >= wanted {
        decisions.push(Decision::Form { shards, replicas });
    }
    decisions
}

/// The registered nodes without keys. O(registered).
pub(super) fn founders(situation: &Situation<'_>) -> Vec<Registration> {
    let is_empty = |node: &&Registration| contents(situation, node) == NodeContents::Empty;
    situation.registered.values().filter(is_empty).cloned().collect()
}

fn contents(situation: &Situation<'_>, node: &Registration) -> NodeContents {
    let report = situation.statuses.get(&node.id);
    NodeContents::reported(report.map(|report| &report.status), node)
}
