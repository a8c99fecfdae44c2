//! Adopts this node's run and address from a document that never changes.

use brisk_cluster::document::{Registration, Topology};

/// Takes this node's address from a document of `static:FILE`, and its run if the document names the node as a primary.
/// A new run cannot be added to the document, and no other node can become the primary, so any run may serve.
pub(super) fn adopt_place(own: &mut Registration, topology: &Topology) {
    if let Some(member) = topology.members.get(&own.id) {
        own.member = member.clone();
    }
    let run = topology.shard_of(own.id).and_then(|shard| shard.primary_run());
    if let Some(run) = run.filter(|run| run.node == own.id) {
        own.incarnation = run.incarnation;
    }
}
