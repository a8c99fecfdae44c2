//! `/health` and `/ready`: whether the process serves, and whether clients should be sent to it.

use brisk_node::core::shared::Shared;
use brisk_node::persistence::bgsave;

/// Why clients should not be sent to this server; `None` if they should. The first of: it is ending, or
/// waits for its replicas to do so; the dataset is being loaded; it is a replica that does not hear from
/// its primary, so that what it knows is old; it refuses writes since the disk does not take them. A
/// replica that is loading a full copy beside the data which it serves has no link, and is not ready.
pub(super) fn unready(shared: &Shared) -> Option<&'static str> {
    if shared.shutdown.is_in_progress() || shared.quiesce.is_for_good() {
        return Some("ending");
    }
    if shared.is_loading() {
        return Some("loading the dataset");
    }
    if shared.is_replica() && !shared.replication.primary.is_up() {
        return Some("no link to the primary");
    }
    let config = shared.config();
    bgsave::refuses_writes(shared, &config.persistence).then_some("the disk refuses writes")
}
