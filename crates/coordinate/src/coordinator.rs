//! The interface of all coordinators.

use crate::clock::BootTime;
use crate::error::CoordinatorError;
use crate::values::{
    Campaign, ChangeOutcome, Claim, ClusterSnapshot, Lease, LeaseTtl, NodeRegistration, NodeStatus,
    RegisteredNode, Revision, Topology, TopologyChange, WatchEvent,
};
use std::fmt::Debug;
use std::time::Duration;

/// The time limit of calls that take no limit as an argument. With `local:`, a call may also wait for other processes.
pub const CALL_MAX: Duration = Duration::from_secs(6);

/// A store that all nodes of a cluster share. Calls block; each has a time limit. Several threads may make calls at the
/// same time.
///
/// Reads are linearizable: a read that begins after a change was acknowledged sees it.
pub trait Coordinator: Debug + Send + Sync {
    /// The current time of the clock that [`Lease::expires_at`] uses.
    fn now(&self) -> BootTime;

    /// Reads the topology document.
    ///
    /// # Errors
    /// The coordinator cannot be reached or its data is damaged.
    fn read(&self) -> Result<Topology, CoordinatorError> {
        self.read_within(CALL_MAX)
    }

    /// Like [`Coordinator::read`], with this time limit. At least two endpoints can be tried within the limit.
    ///
    /// # Errors
    /// See [`Coordinator::read`].
    fn read_within(&self, limit: Duration) -> Result<Topology, CoordinatorError>;

    /// Reads the topology, the nodes and the controller as they were at one revision.
    ///
    /// # Errors
    /// The coordinator cannot be reached or its data is damaged.
    fn snapshot(&self) -> Result<ClusterSnapshot, CoordinatorError> {
        self.snapshot_within(CALL_MAX)
    }

    /// Like [`Coordinator::snapshot`], with this time limit.
    ///
    /// # Errors
    /// See [`Coordinator::snapshot`].
    fn snapshot_within(&self, limit: Duration) -> Result<ClusterSnapshot, CoordinatorError>;

    /// The nodes whose leases are alive, sorted by id.
    ///
    /// # Errors
    /// The coordinator cannot be reached or its data is damaged.
    fn nodes(&self) -> Result<Vec<RegisteredNode>, CoordinatorError> {
        self.snapshot().map(|snapshot| snapshot.nodes)
    }

    /// Replaces the document if no other change came first.
    fn change(&self, change: &TopologyChange<'_>) -> ChangeOutcome {
        self.change_within(change, CALL_MAX)
    }

    /// Like [`Coordinator::change`], with this time limit.
    fn change_within(&self, change: &TopologyChange<'_>, limit: Duration) -> ChangeOutcome;

    /// Registers a node with a new lease.
    ///
    /// # Errors
    /// [`CoordinatorError::NodeIdTaken`]: see [`Claim::Resume`]. After
    /// [`CoordinatorError::TimedOut`] the node may be registered; calling again is safe.
    fn register(
        &self,
        registration: &NodeRegistration,
        ttl: LeaseTtl,
        claim: Claim,
    ) -> Result<Lease, CoordinatorError>;

    /// Renews a lease. The call takes at most half of the TTL. The returned lease has a later [`Lease::expires_at`].
    ///
    /// # Errors
    /// [`CoordinatorError::LeaseLost`]: the process registers again with [`Claim::Resume`] and the same incarnation.
    /// After any other error, the lease may still be valid until `expires_at`.
    fn renew(&self, lease: &Lease) -> Result<Lease, CoordinatorError>;

    /// Ends a lease immediately. This removes the node's registration and status. If the node is the controller, the
    /// office becomes vacant. Ending a lease that has already ended succeeds.
    ///
    /// # Errors
    /// The coordinator cannot be reached. The lease then ends on its own.
    fn end(&self, lease: &Lease) -> Result<(), CoordinatorError>;

    /// Makes the node of the lease the controller if the office is vacant.
    ///
    /// # Errors
    /// [`CoordinatorError::LeaseLost`]: the lease has ended.
    fn campaign(&self, lease: &Lease) -> Result<Campaign, CoordinatorError>;

    /// Gives up the office of controller. Does nothing if the node does not hold the office.
    ///
    /// # Errors
    /// The coordinator cannot be reached.
    fn resign(&self, lease: &Lease) -> Result<(), CoordinatorError>;

    /// Replaces the status of the lease's node. The status is removed when the lease ends.
    ///
    /// # Errors
    /// [`CoordinatorError::LeaseLost`]: the lease has ended.
    fn put_status(&self, lease: &Lease, status: &[u8]) -> Result<(), CoordinatorError>;

    /// The statuses of all live nodes that have stored one, sorted by id.
    ///
    /// # Errors
    /// The coordinator cannot be reached.
    fn statuses(&self) -> Result<Vec<NodeStatus>, CoordinatorError>;

    /// A watch that reports each change after a revision. It connects with its first
    /// [`Watch::next`].
    fn watch(&self, after: Revision) -> Box<dyn Watch>;

    /// Makes the current calls of other threads fail soon with [`CoordinatorError::Stopped`]. Later calls fail with
    /// this error immediately. Leases are not ended.
    fn stop(&self);
}

/// A watch of the topology, the nodes and the controller.
///
/// Each document is reported, in the order of revisions. An event about a node or the controller may be left out if a
/// later one supersedes it. After a lost connection an event may be repeated.
pub trait Watch: Debug + Send {
    /// Waits for events for at most `limit`; the list is empty if there are none by then.
    ///
    /// # Errors
    /// The coordinator cannot be reached. The next call tries again from the same position. An error may be returned
    /// before `limit` has passed, but not more often than ten times a second.
    fn next(&mut self, limit: Duration) -> Result<Vec<WatchEvent>, CoordinatorError>;

    /// The revision up to which events were reported.
    fn position(&self) -> Revision;
}
