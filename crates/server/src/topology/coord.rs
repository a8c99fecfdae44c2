//! The thread `brisk-coord`: follows the role, reports the status, and acts as the controller. The lease has a separate
//! thread.

use super::controller::ControllerOffice;
use super::role;
use super::watcher::TopologyWatcher;
use brisk_cluster::document::{Dataset, NodeRole, NodeStatus};
use brisk_cluster::failover::why_not_promoted;
use brisk_cluster::id::NodeId;
use brisk_cluster::map::MapRole;
use brisk_coordinate::error::CoordinatorError;
use brisk_node::cluster::boot_ms;
use brisk_node::core::Core;
use brisk_node::core::shared::Shared;
use brisk_reactor::unix_ms;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// The longest time between two turns. This is also the delay until a changed role or a loaded dataset is noticed.
const TURN_MS_MAX: u64 = 100;
/// How long this thread waits for quiescence at most.
pub(super) const QUIESCE_MAX: Duration = Duration::from_millis(100);
/// The longest time between two reports.
const REPORT_MS_MAX: u64 = 5_000;

/// Runs turns until the threads are stopped.
pub(super) fn run(watcher: &Arc<TopologyWatcher>) {
    let mut coord = Coord::new(watcher);
    while !watcher.signal.is_stopped() {
        let has_turned = coord.turn();
        let now_ms = boot_ms();
        // While the coordinator is unreachable, the controller's work is overdue and must not shorten the wait.
        let office_ms = if has_turned { coord.office.due_ms() } else { u64::MAX };
        let due_ms = office_ms.min(now_ms + TURN_MS_MAX);
        coord.wait(Duration::from_millis(due_ms.saturating_sub(now_ms)));
        watcher.note_failures();
    }
}

/// The facts of a report that other nodes wait for: the role, the loading state, and the dataset. The dataset of a
/// member does not count, because its clients may add and delete a key all the time.
type UrgentFacts = (NodeRole, bool, Option<Dataset>);

/// The state of the thread.
pub(super) struct Coord {
    watcher: Arc<TopologyWatcher>,
    office: ControllerOffice,
    /// The facts of the last report that must not be late.
    reported: Option<UrgentFacts>,
    /// When the next report is due, on the clock of [`boot_ms`].
    report_due_ms: u64,
    /// The last reports of all nodes, each with its arrival time in Unix ms.
    statuses: BTreeMap<NodeId, (NodeStatus, u64)>,
    /// True if the log says that this node has keys and therefore does not join on its own.
    has_warned_of_keys: bool,
    /// The reason in the log why this replica is not promoted in place of its failed primary.
    logged_obstacle: Option<String>,
    /// The generation of the settings in the registration.
    settings: u64,
    errors: ErrorLog,
}

impl Coord {
    pub(super) fn new(watcher: &Arc<TopologyWatcher>) -> Coord {
        Coord {
            watcher: Arc::clone(watcher),
            office: ControllerOffice::new(watcher),
            reported: None,
            report_due_ms: 0,
            statuses: BTreeMap::new(),
            has_warned_of_keys: false,
            logged_obstacle: None,
            settings: 0,
            errors: ErrorLog::new(watcher.shared, "the status of this node"),
        }
    }

    /// Does the work that is due. Returns true if the controller had its turn, for which the coordinator must be
    /// reachable.
    pub(super) fn turn(&mut self) -> bool {
        let generation = self.watcher.shared.settings.generation();
        if std::mem::replace(&mut self.settings, generation) != generation {
            self.watcher.refresh_own();
        }
        self.follow_role();
        // While the lease cannot be renewed, other calls would only repeat the error.
        let lease = self.watcher.lease().filter(|_| self.watcher.is_reached());
        let Some(lease) = lease else { return false };
        match self.report(&lease) {
            Ok(()) | Err(CoordinatorError::Stopped | CoordinatorError::LeaseLost) => {}
            Err(error) => self.errors.note(&error.to_string()),
        }
        self.office.turn(&lease);
        true
    }

    /// Waits for an event for up to `limit`.
    pub(super) fn wait(&mut self, limit: Duration) {
        if self.watcher.signal.wait(limit) {
            self.office.look();
            self.watcher.publish_node_states(&self.statuses);
        }
    }

    /// Adopts the role in the document, if a dataset was being loaded when the document was installed.
    fn follow_role(&self) {
        let (shared, state) = (self.watcher.shared, self.watcher.state);
        if role::differs(shared, state) && !role::is_loading(shared) {
            // If this fails, the next turn tries again, because the controller must not wait for a slow script.
            let until = Some(Instant::now() + QUIESCE_MAX);
            let follow = move |core: &mut Core| role::follow_document(core, state);
            self.watcher.when_quiesced_within(until, false, follow);
        }
    }

    /// Reports immediately if the role or the loading state has changed, otherwise periodically. Then reads the reports
    /// of the other nodes.
    fn report(&mut self, lease: &brisk_coordinate::values::Lease) -> Result<(), CoordinatorError> {
        let status = self.watcher.node_status();
        let now_ms = boot_ms();
        let is_outsider = self.watcher.state.in_force().map.role() == MapRole::Outsider;
        let urgent = (status.role, status.loading, is_outsider.then_some(status.dataset));
        self.warn_of_keys(&status, is_outsider);
        self.explain_role(&status);
        let is_changed = self.reported != Some(urgent);
        if !is_changed && now_ms < self.report_due_ms {
            return Ok(());
        }
        let third_ms = self.watcher.ttl.seconds().saturating_mul(1000) / 3;
        self.report_due_ms = now_ms + third_ms.min(REPORT_MS_MAX);
        // The report has a fixed form and always fits.
        let json = status.to_json().unwrap_or_default();
        let put = self.watcher.coordinator.put_status(lease, &json);
        match &put {
            Ok(()) => self.watcher.note_write_result(false),
            Err(CoordinatorError::NoSpace) => self.watcher.note_write_result(true),
            Err(_) => {}
        }
        put?;
        self.reported = Some(urgent);
        let statuses = self.read_statuses()?;
        self.office.note_statuses(statuses);
        self.errors.clear();
        Ok(())
    }

    /// Logs once why this node does not take part in the automatic formation of the cluster.
    fn warn_of_keys(&mut self, status: &NodeStatus, is_outsider: bool) {
        let shared = self.watcher.shared;
        let has_keys = !status.loading && status.dataset == Dataset::Disk;
        let shards = shared.config().cluster.cluster_init_shards;
        let is_left_out = is_outsider && has_keys && shards > 0;
        if std::mem::replace(&mut self.has_warned_of_keys, is_left_out) || !is_left_out {
            return;
        }
        let in_force = self.watcher.state.in_force();
        let exists = in_force.topology.as_deref().is_some_and(|known| !known.members.is_empty());
        let to_keep = if !exists && shards == 1 {
            "send CLUSTER ADDSLOTSRANGE 0 16383 to this node, so that it serves all slots, and add the other nodes as \
             its replicas: brisk-cli --cluster add-node ... --cluster-slave"
        } else {
            "restart this server with 'cluster-enabled no', and copy them into a cluster of other nodes: brisk-cli \
             --cluster import"
        };
        shared.log.warning(format_args!(
            "Cluster: this node has keys, so it does not join the cluster on its own: as a replica it would lose them. \
             To let it join without its keys, send FLUSHALL to this node. To keep them, {to_keep}"
        ));
    }

    /// If the primary of this replica has failed and the controller does not promote this replica, logs the reason when
    /// it changes. The controller logs it too, but an operator may not know which node is the controller.
    fn explain_role(&mut self, status: &NodeStatus) {
        let watcher = &self.watcher;
        let in_force = watcher.state.in_force();
        let topology = in_force.topology.as_deref();
        let shard = topology.and_then(|topology| topology.shard_of(in_force.own.id));
        let shard = shard.filter(|shard| in_force.failed.contains(&shard.primary));
        let why = shard.and_then(|shard| {
            let settings = watcher.failover_settings();
            let why = why_not_promoted(shard, &in_force.own, status, &settings)?;
            let primary = in_force.label(shard.primary);
            Some(format!(
                "this replica is not promoted in place of its primary {primary}, because it {why}"
            ))
        });
        if let Some(why) = why.as_ref().filter(|why| self.logged_obstacle.as_ref() != Some(*why)) {
            watcher.shared.log.warning(format_args!("Cluster: {why}"));
        }
        self.logged_obstacle = why;
    }

    fn read_statuses(&mut self) -> Result<BTreeMap<NodeId, NodeStatus>, CoordinatorError> {
        let statuses = self.watcher.read_statuses()?;
        let now_ms = unix_ms();
        self.statuses = statuses.iter().map(|(id, one)| (*id, (one.clone(), now_ms))).collect();
        self.watcher.publish_node_states(&self.statuses);
        Ok(statuses)
    }
}

/// Logs each kind of error of a repeated activity once, until the activity succeeds.
pub(super) struct ErrorLog {
    shared: &'static Shared,
    /// The name of the activity.
    what: &'static str,
    seen: ErrorKinds,
}

impl ErrorLog {
    pub(super) const fn new(shared: &'static Shared, what: &'static str) -> ErrorLog {
        ErrorLog { shared, what, seen: ErrorKinds(BTreeSet::new()) }
    }

    pub(super) fn note(&mut self, error: &str) {
        if self.seen.add(error) {
            self.shared.log.warning(format_args!("Cluster: {}: {error}", self.what));
        }
    }

    pub(super) fn clear(&mut self) {
        if !self.seen.0.is_empty() {
            self.seen.0.clear();
            self.shared.log.notice(format_args!("Cluster: {}: it works again", self.what));
        }
    }
}

/// The kinds of errors since the last success. The kind is the text before the first colon or parenthesis. Endpoints
/// and requests, which change with each attempt, come after it.
#[derive(Debug)]
struct ErrorKinds(BTreeSet<String>);

impl ErrorKinds {
    /// The coordinators have fewer kinds of errors than this. Further kinds are not logged.
    const KINDS_MAX: usize = 16;

    /// True if this kind is new.
    fn add(&mut self, error: &str) -> bool {
        let kind = error.split([':', '(']).next().unwrap_or_default();
        self.0.len() < ErrorKinds::KINDS_MAX && self.0.insert(kind.to_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_outage_of_several_endpoints_is_logged_once() {
        let mut kinds = ErrorKinds(BTreeSet::new());
        assert!(kinds.add("the coordinator is unreachable: 10.0.0.1:2379: Connection refused"));
        assert!(!kinds.add("the coordinator is unreachable: 10.0.0.2:2379: Connection refused"));
        assert!(
            kinds.add("no response from the coordinator within 833 ms (/v3/kv/range at 10.0.0.1)")
        );
        assert!(
            !kinds.add("no response from the coordinator within 833 ms (/v3/kv/txn at 10.0.0.2)")
        );
        assert!(!kinds.add("the coordinator is unreachable: 10.0.0.1:2379: Connection refused"));
    }
}
