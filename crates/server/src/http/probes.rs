//! `/health` and `/ready`: report whether the process is alive, and whether clients should be
//! routed to it.

use brisk_node::core::shared::Shared;
use brisk_node::persistence::bgsave;

/// The reason why clients should not be routed to this server; `None` if they should. The first of these reasons that
/// applies is returned: The server is shutting down, or is waiting for its replicas before it shuts down. It is loading
/// the dataset. It is a cluster node without a topology, or its lease has ended. It is a replica without a link to its
/// primary, so its data may be stale. It rejects writes because writing to the disk fails. A replica that loads a full
/// copy while it serves its old data has no link, so it is not ready.
pub(super) fn unready(shared: &Shared) -> Option<&'static str> {
    if shared.process.shutdown.is_in_progress() || shared.quiesce.is_for_good() {
        return Some("ending");
    }
    if shared.conditions.is_loading() {
        return Some("loading the dataset");
    }
    if let Some(cluster) = shared.cluster.state() {
        if cluster.in_force().topology.is_none() {
            return Some("no cluster topology");
        }
        if cluster.is_fenced() {
            return Some("no lease from the cluster coordinator");
        }
    }
    if shared.conditions.is_replica() && !shared.replication.upstream.is_up() {
        return Some("no link to the primary");
    }
    let config = shared.config();
    bgsave::refuses_writes(shared, &config.persistence).then_some("the disk rejects writes")
}
