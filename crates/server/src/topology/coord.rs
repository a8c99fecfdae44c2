//! The thread `brisk-coord`: keeps the lease, follows the role, reports, and decides as the controller.

use super::controller::ControllerOffice;
use super::follower::TopologyFollower;
use super::lease::LeaseKeeper;
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
    let mut coord = Coord {
        follower: Arc::clone(follower),
        lease: LeaseKeeper::new(follower),
        office: ControllerOffice::new(follower),
        reported: None,
        report_due_ms: 0,
        statuses: BTreeMap::new(),
        settings: 0,
        errors: ErrorLog::new(follower.shared, "the status of this node"),
    };
    while !follower.signal.is_stopped() {
        coord.turn();
        let now_ms = boot_ms();
        let due_ms = coord.lease.due_ms().min(coord.office.due_ms()).min(now_ms + TURN_MS_MAX);
        if follower.signal.wait(Duration::from_millis(due_ms.saturating_sub(now_ms))) {
            coord.office.look();
            follower.publish_lives(&coord.statuses);
        }
        follower.note_failures();
    }
}

/// The state of the thread.
struct Coord {
    follower: Arc<TopologyFollower>,
    lease: LeaseKeeper,
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
    fn turn(&mut self) {
        if self.follower.take_new_id() {
            self.lease.leave();
        }
        let generation = self.follower.shared.settings.generation();
        let has_settings = std::mem::replace(&mut self.settings, generation) != generation;
        if has_settings {
            self.follower.refresh_own();
        }
        if self.follower.take_new_settings() {
            self.lease.announce();
        }
        let is_reached = self.lease.keep();
        self.follower.deadline.publish(self.follower.state);
        self.follow_role();
        // Further calls of an unreachable coordinator would only delay the next renewal.
        if let Some(lease) = self.lease.lease().filter(|_| is_reached).cloned() {
            match self.report(&lease) {
                Ok(()) | Err(CoordinatorError::Stopped | CoordinatorError::LeaseLost) => {}
                Err(error) => self.errors.note(&error.to_string()),
            }
            self.office.turn(&lease);
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

    /// True if the activity has succeeded since the last error.
    pub(super) const fn is_clear(&self) -> bool {
        self.last.is_none()
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
