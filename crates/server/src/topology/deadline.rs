//! The lease deadline of this node: the time at which it stops serving unless its lease is renewed.
//!
//! ```text
//!  deadline = the later of the lease's own deadline and its extension
//!             0 until a promoted node may serve
//! ```

use brisk_cluster::failover::Lease;
use brisk_node::cluster::{ClusterState, boot_ms};
use brisk_structures::poison::EvenPoisoned as _;
use std::sync::Mutex;

/// The deadline, shared by the thread that renews and the one that extends it.
#[derive(Debug, Default)]
pub(super) struct LeaseDeadline(Mutex<DeadlineTimes>);

/// Times of [`boot_ms`].
#[derive(Debug, Default)]
struct DeadlineTimes {
    /// The last confirmed renewal of a lease that the coordinator may end.
    lease: Option<Lease>,
    /// The deadline by the lease.
    own_ms: u64,
    /// The deadline by acknowledgements of replicas, without the coordinator.
    extended_ms: u64,
    /// After a promotion: this node serves from then on.
    serves_from_ms: u64,
    /// Counts the roles of this node.
    roles: u64,
}

impl LeaseDeadline {
    /// A renewal was confirmed. `None`: the lease lives as long as the process.
    pub(super) fn confirm(&self, state: &ClusterState, lease: Option<Lease>) {
        self.change(state, |times| {
            times.lease = lease;
            times.own_ms = lease.map_or(u64::MAX, Lease::deadline_ms);
        });
    }

    /// The lease has ended. The deadline does not change: it has passed, or replicas have extended it.
    pub(super) fn end_lease(&self) {
        self.0.lock().even_poisoned().lease = None;
    }

    /// This node stops serving at once.
    pub(super) fn fence(&self, state: &ClusterState) {
        self.change(state, |times| (times.lease, times.own_ms, times.extended_ms) = (None, 0, 0));
    }

    /// The number of the current role.
    pub(super) fn role_number(&self) -> u64 {
        self.0.lock().even_poisoned().roles
    }

    /// This node has another role, shard or term: an extension for the previous one has no effect.
    pub(super) fn begin_role(&self, state: &ClusterState) {
        self.change(state, |times| {
            times.roles += 1;
            times.extended_ms = 0;
        });
    }

    /// Extends the deadline for the role with this number; an earlier time has no effect.
    pub(super) fn extend(&self, state: &ClusterState, role: u64, until_ms: u64) {
        self.change(state, |times| {
            if times.roles == role {
                times.extended_ms = times.extended_ms.max(until_ms);
            }
        });
    }

    /// This node serves nothing before this time.
    pub(super) fn wait_until(&self, state: &ClusterState, from_ms: u64) {
        self.change(state, |times| times.serves_from_ms = times.serves_from_ms.max(from_ms));
    }

    /// Gives the deadline to the workers. After a promotion it begins to count later.
    pub(super) fn publish(&self, state: &ClusterState) {
        self.change(state, |_| {});
    }

    /// The time until this node may serve after a promotion.
    pub(super) fn wait_left_ms(&self) -> Option<u64> {
        let from_ms = self.0.lock().even_poisoned().serves_from_ms;
        Some(from_ms.saturating_sub(boot_ms())).filter(|left| *left > 0)
    }

    /// The last confirmed renewal; `None` if the lease has ended or cannot end.
    pub(super) fn lease(&self) -> Option<Lease> {
        self.0.lock().even_poisoned().lease
    }

    fn change(&self, state: &ClusterState, change: impl FnOnce(&mut DeadlineTimes)) {
        let mut times = self.0.lock().even_poisoned();
        change(&mut times);
        let waits = boot_ms() < times.serves_from_ms;
        state.set_deadline(if waits { 0 } else { times.own_ms.max(times.extended_ms) });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use brisk_cluster::document::{Member, Registration};
    use brisk_cluster::id::{Incarnation, NodeId};
    use brisk_node::cluster::Cluster;

    /// Far away, so that the speed of the machine does not matter.
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
        // The extension for a replica does not apply to a primary, even if it comes late.
        let role = deadline.role_number();
        deadline.begin_role(state);
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
        // A promoted node waits, and renewals meanwhile change nothing.
        deadline.wait_until(state, boot_ms() + LONG_MS);
        assert!(state.is_fenced());
        deadline.confirm(state, None);
        assert!(state.is_fenced());
    }
}
