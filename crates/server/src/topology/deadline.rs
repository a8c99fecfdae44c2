//! The lease deadline of this node: the time at which it stops serving unless its lease is renewed.
//!
//! ```text
//!  deadline = the later of the lease's own deadline and its extension
//!             0 until a promoted node may serve, and while the node is suspended
//! ```

use brisk_cluster::failover::Lease;
use brisk_node::cluster::{ClusterState, boot_ms};
use brisk_structures::poison::EvenPoisoned as _;
use std::sync::Mutex;

/// The deadline, which is shared by the thread that renews the lease and the thread that extends the deadline.
#[derive(Debug, Default)]
pub(super) struct LeaseDeadline(Mutex<DeadlineTimes>);

/// Times of [`boot_ms`].
#[derive(Debug, Default)]
struct DeadlineTimes {
    /// The last confirmed renewal, if the coordinator can end the lease.
    lease: Option<Lease>,
    /// The deadline that results from the lease.
    own_ms: u64,
    /// The deadline that results from acknowledgements of replicas, without the coordinator.
    extended_ms: u64,
    /// After a promotion, this node serves only from this time on.
    serves_from_ms: u64,
    /// The number of the current role. Incremented with each change of the role.
    roles: u64,
    /// True if this node serves nothing, whatever its lease is.
    is_suspended: bool,
}

impl LeaseDeadline {
    /// Called when a renewal is confirmed. `None` means that the lease lives as long as the process.
    pub(super) fn confirm(&self, state: &ClusterState, lease: Option<Lease>) {
        self.change(state, |times| {
            times.lease = lease;
            times.own_ms = lease.map_or(u64::MAX, Lease::deadline_ms);
        });
    }

    /// Called when the lease has ended. The deadline does not change, because it has passed or replicas have extended
    /// it.
    pub(super) fn end_lease(&self) {
        self.0.lock().even_poisoned().lease = None;
    }

    /// Makes this node stop serving immediately.
    pub(super) fn fence(&self, state: &ClusterState) {
        self.change(state, |times| (times.lease, times.own_ms, times.extended_ms) = (None, 0, 0));
    }

    /// The number of the current role.
    pub(super) fn role_number(&self) -> u64 {
        self.0.lock().even_poisoned().roles
    }

    /// Called when this node gets another role, shard or term. Extensions for the previous one have no effect. A
    /// replica does not wait for the end of an earlier primary's lease, even if it waited as the primary of the
    /// previous term.
    pub(super) fn begin_role(&self, state: &ClusterState, is_replica: bool) {
        self.change(state, |times| {
            times.roles += 1;
            times.extended_ms = 0;
            if is_replica {
                times.serves_from_ms = 0;
            }
        });
    }

    /// Extends the deadline for the role with this number. An earlier time has no effect.
    pub(super) fn extend(&self, state: &ClusterState, role: u64, until_ms: u64) {
        self.change(state, |times| {
            if times.roles == role {
                times.extended_ms = times.extended_ms.max(until_ms);
            }
        });
    }

    /// Makes this node serve nothing before this time.
    pub(super) fn wait_until(&self, state: &ClusterState, from_ms: u64) {
        self.change(state, |times| times.serves_from_ms = times.serves_from_ms.max(from_ms));
    }

    /// Makes this node stop serving until [`LeaseDeadline::resume`]. Renewals do not make it serve until then.
    pub(super) fn suspend(&self, state: &ClusterState) {
        self.change(state, |times| times.is_suspended = true);
    }

    /// Ends [`LeaseDeadline::suspend`].
    pub(super) fn resume(&self, state: &ClusterState) {
        self.change(state, |times| times.is_suspended = false);
    }

    #[cfg(test)]
    pub(super) fn is_suspended(&self) -> bool {
        self.0.lock().even_poisoned().is_suspended
    }

    /// Publishes the deadline to the workers. Needed when the wait after a promotion is over.
    pub(super) fn publish(&self, state: &ClusterState) {
        self.change(state, |_| {});
    }

    /// The time until this node may serve after a promotion.
    pub(super) fn wait_left_ms(&self) -> Option<u64> {
        let from_ms = self.0.lock().even_poisoned().serves_from_ms;
        Some(from_ms.saturating_sub(boot_ms())).filter(|left| *left > 0)
    }

    /// The last confirmed renewal. `None` if the lease has ended or cannot end.
    pub(super) fn lease(&self) -> Option<Lease> {
        self.0.lock().even_poisoned().lease
    }

    fn change(&self, state: &ClusterState, change: impl FnOnce(&mut DeadlineTimes)) {
        let mut times = self.0.lock().even_poisoned();
        change(&mut times);
        let waits = times.is_suspended || boot_ms() < times.serves_from_ms;
        state.set_deadline(if waits { 0 } else { times.own_ms.max(times.extended_ms) });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use brisk_cluster::document::{Member, Registration};
    use brisk_cluster::id::{Incarnation, NodeId};
    use brisk_node::cluster::Cluster;

    /// Far in the future, so that the speed of the machine does not matter.
    const LONG_MS: u64 = 3_600_000;

    #[test]
    fn a_node_serves_until_the_later_of_lease_and_extension() {
        let cluster = Cluster::default();
        cluster.enable(Registration {
            id: NodeId::from_bytes([1; 20]),
            incarnation: Incarnation(1),
            version: String::new(),
            member: Member::default(),
            no_failover: false,
            other: Default::default(),
        });
        let state = cluster.state().unwrap();
        let deadline = LeaseDeadline::default();
        assert!(state.is_fenced());
        deadline.extend(state, 0, boot_ms() + LONG_MS);
        assert!(!state.is_fenced());
        // The extension for a replica does not apply after it has become a primary, even if the extension comes late.
        let role = deadline.role_number();
        deadline.begin_role(state, false);
        deadline.extend(state, role, boot_ms() + LONG_MS);
        assert!(state.is_fenced());
        deadline.extend(state, deadline.role_number(), boot_ms() + LONG_MS);
        assert!(!state.is_fenced());
        deadline.fence(state);
        assert!(state.is_fenced());
        let lease = Lease { renewed_ms: boot_ms(), ttl_ms: LONG_MS };
        deadline.confirm(state, Some(lease));
        assert!(!state.is_fenced());
        assert_eq!(deadline.lease(), Some(lease));
        deadline.end_lease();
        assert!(!state.is_fenced() && deadline.lease().is_none());
        deadline.confirm(state, None);
        assert!(!state.is_fenced());
        // A promoted node waits, and renewals during the wait change nothing.
        deadline.wait_until(state, boot_ms() + LONG_MS);
        assert!(state.is_fenced());
        deadline.confirm(state, None);
        assert!(state.is_fenced());
        deadline.begin_role(state, false);
        assert!(state.is_fenced());
        // As a replica, it serves reads again.
        deadline.begin_role(state, true);
        assert!(!state.is_fenced() && deadline.wait_left_ms().is_none());
    }
}
