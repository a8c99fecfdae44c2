//! Which members have failed, as a node sees it. This determines the state of the cluster at this node, but not
//! promotions.
//!
//! ```text
//!  lease ends ── suspected ── failure_delay_ms ── failed ── registers again, or is removed ── alive or forgotten
//! ```
//!
//! If the leases of most primaries end together, the coordinator or the network to it may have failed instead. The
//! controller then replaces no primary that replies to pings ([`STORM_TTLS_MAX`]), and no further member fails.

use super::controller::{STORM_TTLS_MAX, are_most};
use crate::document::{Registration, Shard, Topology};
use crate::id::NodeId;
use std::collections::{BTreeMap, BTreeSet};

/// If several leases are lost at the same moment, their ends are at most this far apart, plus a third of the TTL (the
/// interval between renewals). etcd looks for expired leases every 500 ms, and the watch may be slow.
const SPREAD_MS_MAX: u64 = 1_000;
/// The longest time between two calls of [`FailureDetector::observe`] that does not restart the delay.
const GAP_MS_MAX: u64 = 500;

/// The time after the end of its lease at which a member counts as failed. A failover usually takes less time, so it
/// does not interrupt the other shards. The delay also gives a node that was cut off from the coordinator time to
/// register again. If most primaries are cut off together, the leases of all of them end before the first of them
/// counts as failed.
#[must_use]
pub fn failure_delay_ms(ttl_ms: u64) -> u64 {
    (ttl_ms / 2).max(ttl_ms / 3 + SPREAD_MS_MAX)
}

/// The view of a node at one moment. All times are milliseconds on its monotonic clock.
#[derive(Debug, Clone, Copy)]
pub struct SeenNodes<'s> {
    /// The document in force.
    pub topology: Option<&'s Topology>,
    pub own: NodeId,
    /// The nodes with a lease, as the watch has reported them.
    pub registered: &'s BTreeMap<NodeId, Registration>,
    /// The time of the last renewal of this node's lease.
    pub renewed_ms: Option<u64>,
    pub now_ms: u64,
}

/// Notices members that have failed.
#[derive(Debug)]
pub struct FailureDetector {
    ttl_ms: u64,
    /// The members without a lease that have not failed yet, each with the time since which it has had none.
    suspected: BTreeMap<NodeId, u64>,
    failed: BTreeSet<NodeId>,
    /// The time since which most primaries have been without a lease.
    storm_since_ms: Option<u64>,
    /// The time of the last call of [`FailureDetector::observe`].
    observed_ms: u64,
}

impl FailureDetector {
    /// A detector that has seen nothing. `ttl_ms` is the time to live of leases.
    #[must_use]
    pub fn new(ttl_ms: u64) -> FailureDetector {
        FailureDetector {
            ttl_ms,
            suspected: BTreeMap::new(),
            failed: BTreeSet::new(),
            storm_since_ms: None,
            observed_ms: 0,
        }
    }

    /// The members that have failed. This node is never among them: its lease deadline decides whether it serves.
    ///
    /// While this node is not in contact with the coordinator, or its own lease is absent, the coordinator may be what
    /// failed. During that time no further member fails, and the delay restarts afterwards. The delay also restarts
    /// after `GAP_MS_MAX` without a call, since an outage may have gone unnoticed. O(members · log members).
    pub fn observe(&mut self, seen: &SeenNodes<'_>) -> &BTreeSet<NodeId> {
        let members = seen.topology.map(|topology| &topology.members);
        let members = members.filter(|members| members.contains_key(&seen.own));
        let is_absent = |node: &NodeId| {
            *node != seen.own
                && members.is_some_and(|members| members.contains_key(node))
                && !seen.registered.contains_key(node)
        };
        self.failed.retain(is_absent);
        self.suspected.retain(|node, _| is_absent(node));
        let gap_ms = seen.now_ms.saturating_sub(self.observed_ms);
        self.observed_ms = seen.now_ms;
        let is_known = self.is_known(seen);
        if gap_ms > GAP_MS_MAX || !is_known {
            self.suspected.clear();
        }
        if self.suspected.is_empty() {
            self.storm_since_ms = None;
        }
        if !is_known {
            return &self.failed;
        }
        let absent = members.into_iter().flat_map(BTreeMap::keys).filter(|node| is_absent(node));
        for node in absent.filter(|node| !self.failed.contains(node)) {
            self.suspected.entry(*node).or_insert(seen.now_ms);
        }
        if self.is_in_storm(seen) {
            return &self.failed;
        }
        let delay_ms = failure_delay_ms(self.ttl_ms);
        let is_due = |since_ms: &u64| seen.now_ms.saturating_sub(*since_ms) >= delay_ms;
        let due: Vec<NodeId> =
            self.suspected.iter().filter(|(_, since)| is_due(since)).map(|(id, _)| *id).collect();
        for node in due {
            self.suspected.remove(&node);
            self.failed.insert(node);
        }
        &self.failed
    }

    /// True while most primaries are suspected, and afterwards as long as any member is. A storm lasts at most
    /// [`STORM_TTLS_MAX`] times to live plus [`failure_delay_ms`].
    fn is_in_storm(&mut self, seen: &SeenNodes<'_>) -> bool {
        let is_suspected = |shard: &Shard| self.suspected.contains_key(&shard.primary);
        if self.storm_since_ms.is_none()
            && seen.topology.is_some_and(|topology| are_most(topology, is_suspected))
        {
            self.storm_since_ms = Some(seen.now_ms);
        }
        let longest_ms = STORM_TTLS_MAX * self.ttl_ms + failure_delay_ms(self.ttl_ms);
        self.storm_since_ms.is_some_and(|since| seen.now_ms.saturating_sub(since) < longest_ms)
    }

    /// True if an absent lease means that its node has lost it. A lease is renewed three times per time to live.
    fn is_known(&self, seen: &SeenNodes<'_>) -> bool {
        let is_recent =
            |renewed_ms| seen.now_ms.saturating_sub(renewed_ms) <= failure_delay_ms(self.ttl_ms);
        seen.renewed_ms.is_some_and(is_recent) && seen.registered.contains_key(&seen.own)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::document::tests::{node, registration, three_shards};

    const TTL_MS: u64 = 3_000;
    const DELAY_MS: u64 = 2_000;

    /// A node that renews its lease continuously.
    struct World {
        detector: FailureDetector,
        topology: Topology,
        registered: BTreeMap<NodeId, Registration>,
        renewed_ms: Option<u64>,
        now_ms: u64,
    }

    impl World {
        fn new() -> World {
            World {
                detector: FailureDetector::new(TTL_MS),
                topology: three_shards(),
                registered: (1..5).map(|n| (node(n), registration(n, 1))).collect(),
                renewed_ms: Some(0),
                now_ms: 0,
            }
        }

        /// The failed members as node 1 sees them after another `ms`, without a renewal.
        fn cut_off_after(&mut self, ms: u64) -> Vec<NodeId> {
            let step_ms = GAP_MS_MAX - 1;
            for step_ms in (0..ms / step_ms).map(|_| step_ms).chain([ms % step_ms]) {
                self.observe_after(step_ms);
            }
            self.detector.failed.iter().copied().collect()
        }

        fn observe_after(&mut self, ms: u64) {
            self.now_ms += ms;
            let seen = SeenNodes {
                topology: Some(&self.topology),
                own: node(1),
                registered: &self.registered,
                renewed_ms: self.renewed_ms,
                now_ms: self.now_ms,
            };
            self.detector.observe(&seen);
        }

        fn after(&mut self, ms: u64) -> Vec<NodeId> {
            self.renewed_ms = Some(self.now_ms + ms);
            self.cut_off_after(ms)
        }
    }

    #[test]
    fn a_member_fails_some_time_after_its_lease_has_ended() {
        assert_eq!([1_500, TTL_MS, 15_000].map(failure_delay_ms), [1_500, DELAY_MS, 7_500]);
        let mut world = World::new();
        assert_eq!(world.after(10_000), []);
        world.registered.remove(&node(3));
        assert_eq!(world.after(0), []);
        assert_eq!(world.after(DELAY_MS - 1), []);
        assert_eq!(world.after(1), [node(3)]);
        // Another process of the node counts as alive. That process and the controller decide when it serves.
        world.registered.insert(node(3), registration(3, 1));
        assert_eq!(world.after(0), []);
        world.registered.remove(&node(3));
        assert_eq!(world.after(0), []);
        assert_eq!(world.after(DELAY_MS), [node(3)]);
        world.topology.members.remove(&node(3));
        assert_eq!(world.after(0), []);
    }

    #[test]
    fn a_gap_between_two_observations_begins_the_time_again() {
        let mut world = World::new();
        world.registered.remove(&node(3));
        assert_eq!(world.after(0), []);
        world.renewed_ms = Some(60_000);
        world.observe_after(60_000);
        assert_eq!(world.after(0), []);
        assert_eq!(world.after(DELAY_MS - 1), []);
        assert_eq!(world.after(1), [node(3)]);
    }

    #[test]
    fn a_renewed_lease_restarts_the_failure_timer() {
        let mut world = World::new();
        for _ in 0..5 {
            world.registered.remove(&node(2));
            assert_eq!(world.after(1), []);
            assert_eq!(world.after(DELAY_MS - 1), []);
            world.registered.insert(node(2), registration(2, 1));
            assert_eq!(world.after(DELAY_MS), []);
        }
    }

    #[test]
    fn no_member_fails_while_the_coordinator_is_not_reached() {
        let mut world = World::new();
        world.registered.remove(&node(3));
        assert_eq!(world.after(0), []);
        for _ in 0..10 {
            assert_eq!(world.cut_off_after(DELAY_MS + 1), []);
        }
        // A member that has failed stays failed. For a member that has not failed yet, the delay starts over when
        // contact is restored.
        assert_eq!(world.after(0), []);
        assert_eq!(world.after(DELAY_MS), [node(3)]);
        world.registered.remove(&node(2));
        for _ in 0..10 {
            assert_eq!(world.cut_off_after(DELAY_MS + 1), [node(3)]);
        }
        assert_eq!(world.after(0), [node(3)]);
        assert_eq!(world.after(DELAY_MS), [node(2), node(3)]);
    }

    #[test]
    fn no_member_fails_for_a_node_that_sees_no_own_lease() {
        let mut world = World::new();
        // This is the case before the first snapshot, and if the coordinator has lost all leases.
        world.registered.clear();
        for _ in 0..10 {
            assert_eq!(world.after(DELAY_MS), []);
        }
        world.registered = (1..3).map(|n| (node(n), registration(n, 1))).collect();
        assert_eq!(world.after(DELAY_MS), []);
        assert_eq!(world.after(DELAY_MS), [node(3), node(4)]);
        world.renewed_ms = None;
        assert_eq!(world.cut_off_after(1), [node(3), node(4)]);
    }

    #[test]
    fn members_whose_leases_ended_together_have_longer() {
        let mut world = World::new();
        for node in [node(2), node(3)] {
            world.registered.remove(&node);
            assert_eq!(world.after(DELAY_MS - 1), []);
        }
        assert_eq!(world.after(STORM_TTLS_MAX * TTL_MS), []);
        assert_eq!(world.after(DELAY_MS), [node(2), node(3)]);
        // They come back one after the other, and the last one has just as much time.
        for at in [2, 3] {
            world.registered.insert(node(at), registration(at, 1));
            world.after(0);
        }
        (2..4).for_each(|at| drop(world.registered.remove(&node(at))));
        assert_eq!(world.after(0), []);
        world.registered.insert(node(2), registration(2, 1));
        assert_eq!(world.after(STORM_TTLS_MAX * TTL_MS), []);
        assert_eq!(world.after(DELAY_MS), [node(3)]);
        // One of three is not a storm.
        world.registered.insert(node(3), registration(3, 1));
        assert_eq!(world.after(0), []);
        world.registered.remove(&node(2));
        assert_eq!(world.after(0), []);
        assert_eq!(world.after(DELAY_MS), [node(2)]);
    }

    #[test]
    fn a_node_that_is_no_member_sees_no_failed_members() {
        let mut world = World::new();
        world.registered.remove(&node(3));
        world.topology.members.remove(&node(1));
        assert_eq!(world.after(0), []);
        assert_eq!(world.after(DELAY_MS), []);
    }
}
