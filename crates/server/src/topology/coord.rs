//! The thread `brisk-coord`: follows the role, reports, and decides as the controller. The lease has a thread of its
//! own.

use super::controller::ControllerOffice;
use super::follower::TopologyFollower;
use super::role;
use brisk_cluster::document::{NodeRole, NodeStatus};
use brisk_cluster::id::NodeId;
use brisk_coordinate::error::CoordinatorError;
use brisk_node::cluster::boot_ms;
use brisk_node::core::shared::Shared;
use brisk_reactor::unix_ms;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

/// The longest time between two turns: a changed role or a loaded dataset is noticed after this time.
const TURN_MS_MAX: u64 = 100;
/// The longest time between two reports.
const REPORT_MS_MAX: u64 = 5_000;

/// Runs turns until the threads are stopped.
pub(super) fn run(follower: &Arc<TopologyFollower>) {
    let mut coord = Coord::new(follower);
    while !follower.signal.is_stopped() {
        coord.turn();
        let now_ms = boot_ms();
        let due_ms = coord.office.due_ms().min(now_ms + TURN_MS_MAX);
        coord.wait(Duration::from_millis(due_ms.saturating_sub(now_ms)));
    }
}

/// The state of the thread.
pub(super) struct Coord {
    follower: Arc<TopologyFollower>,
    office: ControllerOffice,
    /// Role and loading of the last report.
    reported: Option<(NodeRole, bool)>,
    /// The next report, on the clock of [`boot_ms`].
    report_due_ms: u64,
    /// The last reports of all nodes, each with its arrival in Unix ms.
    statuses: BTreeMap<NodeId, (NodeStatus, u64)>,
    /// The generation of the settings that the registration has.
    settings: u64,
    errors: ErrorLog,
}

impl Coord {
    pub(super) fn new(follower: &Arc<TopologyFollower>) -> Coord {
        Coord {
            follower: Arc::clone(follower),
            office: ControllerOffice::new(follower),
            reported: None,
            report_due_ms: 0,
            statuses: BTreeMap::new(),
            settings: 0,
            errors: ErrorLog::new(follower.shared, "the status of this node"),
        }
    }

    pub(super) fn turn(&mut self) {
        let generation = self.follower.shared.settings.generation();
        if std::mem::replace(&mut self.settings, generation) != generation {
            self.follower.refresh_own();
        }
        self.follow_role();
        // While the lease cannot be renewed, further calls would only repeat the error.
        if let Some(lease) = self.follower.lease().filter(|_| self.follower.is_reached()) {
            match self.report(&lease) {
                Ok(()) | Err(CoordinatorError::Stopped | CoordinatorError::LeaseLost) => {}
                Err(error) => self.errors.note(&error.to_string()),
            }
            self.office.turn(&lease);
        }
    }

    /// Waits for an event, at most for `limit`.
    pub(super) fn wait(&mut self, limit: Duration) {
        if self.follower.signal.wait(limit) {
            self.office.look();
            self.follower.publish_lives(&self.statuses);
        }
    }

    /// Takes the role of the document, if a dataset was being loaded when the document was installed.
    fn follow_role(&self) {
        let (shared, state) = (self.follower.shared, self.follower.state);
        if role::differs(shared, state) && !role::is_loading(shared) {
            self.follower.when_quiesced(false, move |core| role::follow_document(core, state));
        }
    }

    /// Reports at once if role or loading have changed, else from time to time; then reads the other reports.
    fn report(&mut self, lease: &brisk_coordinate::values::Lease) -> Result<(), CoordinatorError> {
        let status = self.follower.node_status();
        let now_ms = boot_ms();
        let is_changed = self.reported != Some((status.role, status.loading));
        if !is_changed && now_ms < self.report_due_ms {
            return Ok(());
        }
        let third_ms = self.follower.ttl.seconds().saturating_mul(1000) / 3;
        self.report_due_ms = now_ms + third_ms.min(REPORT_MS_MAX);
        // The report has a fixed form and always fits.
        let json = status.to_json().unwrap_or_default();
        self.follower.coordinator.put_status(lease, &json)?;
        self.reported = Some((status.role, status.loading));
        let statuses = self.read_statuses()?;
        self.office.note_statuses(statuses);
        self.errors.clear();
        Ok(())
    }

    fn read_statuses(&mut self) -> Result<BTreeMap<NodeId, NodeStatus>, CoordinatorError> {
        let statuses = self.follower.read_statuses()?;
        let now_ms = unix_ms();
        self.statuses = statuses.iter().map(|(id, one)| (*id, (one.clone(), now_ms))).collect();
        self.follower.publish_lives(&self.statuses);
        Ok(statuses)
    }
}

/// Logs an error of a repeated activity once, until the activity succeeds or fails in another way.
pub(super) struct ErrorLog {
    shared: &'static Shared,
    /// The activity, in words.
    what: &'static str,
    last: Option<String>,
}

impl ErrorLog {
    pub(super) const fn new(shared: &'static Shared, what: &'static str) -> ErrorLog {
        ErrorLog { shared, what, last: None }
    }

    pub(super) fn note(&mut self, error: &str) {
        if self.last.as_deref() != Some(error) {
            self.shared.log.warning(format_args!("Cluster: {}: {error}", self.what));
            self.last = Some(error.to_owned());
        }
    }

    pub(super) fn clear(&mut self) {
        if self.last.take().is_some() {
            self.shared.log.notice(format_args!("Cluster: {}: it works again", self.what));
        }
    }
}
