//! The run of this node in a document that never changes.

use brisk_cluster::document::{Registration, Topology};

/// Takes the run over that a document of `static:FILE` names for this node. No change can put a new run into the
/// document, and no other node can become the primary, so any run may serve.
pub(super) fn adopt_run(own: &mut Registration, topology: &Topology) {
    let run = topology.shard_of(own.id).and_then(|shard| shard.primary_run());
    if let Some(run) = run.filter(|run| run.node == own.id) {
        own.incarnation = run.incarnation;
    }
}
