//! When a primary may serve. All times are milliseconds on the node's own clock, `CLOCK_BOOTTIME`, which keeps running
//! while the machine is suspended.

use crate::document::{Shard, TTL_SECONDS_MAX, TermCause, Topology};
use crate::id::{Incarnation, NodeRun, ShardId, Term};

/// The lease of a node, as the node sees it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Lease {
    /// When the node sent its last successful renewal. A renewal counts only once the node has installed the document
    /// of the revision in the reply: otherwise it could renew its lease and miss a forced promotion.
    pub renewed_ms: u64,
    pub ttl_ms: u64,
}

/// The difference between a lease's end at the coordinator and the node's own deadline: a tenth of the time
/// to live for clocks that run at different rates, and 200 ms for a batch in progress.
#[must_use]
pub const fn margin_ms(ttl_ms: u64) -> u64 {
    ttl_ms / 10 + 200
}

/// The shortest [`ack_window_ms`]: replicas acknowledge once a second.
const ACK_WINDOW_MS_MIN: u64 = 1_500;

/// The time for which an acknowledgement lets a primary serve without its coordinator. After a crash of its holder, a
/// lease remains valid for at least two thirds of the time to live. The window is shorter, so a promotion after a crash
/// seldom waits for it.
#[must_use]
pub const fn ack_window_ms(ttl_ms: u64) -> u64 {
    let half = ttl_ms / 2;
    if half > ACK_WINDOW_MS_MIN { half } else { ACK_WINDOW_MS_MIN }
}

impl Lease {
    /// The time from which the node serves nothing unless it has renewed the lease.
    #[must_use]
    pub const fn deadline_ms(self) -> u64 {
        let served = self.ttl_ms.saturating_sub(margin_ms(self.ttl_ms));
        self.renewed_ms.saturating_add(served)
    }

    /// The time to the deadline in milliseconds; 0 once the node is fenced.
    #[must_use]
    pub const fn left_ms(self, now_ms: u64) -> u64 {
        self.deadline_ms().saturating_sub(now_ms)
    }
}

/// `cluster-etcd-loss`: what a primary does without its coordinator.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum CoordinatorLoss {
    /// The primary stops serving at its lease deadline.
    #[default]
    Safe,
    /// The primary serves as long as every replica of its shard acknowledges. A replica that is promoted stops
    /// acknowledging, and serves only after the last acknowledgement that it sent no longer has any effect.
    Availability,
}

/// The acknowledgements of the replicas that the shard has in the document in force.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReplicaAcks {
    /// The shard has no replicas: no other node can be promoted.
    NoReplicas,
    /// Each replica has acknowledged data that this node sent at this time or later. This is not the time at which an
    /// acknowledgement arrived, because a network can deliver an acknowledgement long after its sender was promoted.
    Oldest(u64),
    /// A replica has acknowledged nothing in this term.
    Missing,
}

/// True if a primary may serve now. Checked before a batch is executed and again before its replies are sent, since a
/// process can be suspended at any instruction. O(1).
#[must_use]
pub fn may_serve(
    lease: Option<Lease>,
    now_ms: u64,
    loss: CoordinatorLoss,
    acks: ReplicaAcks,
) -> bool {
    // A process that never held a lease does not know its term.
    let Some(lease) = lease else { return false };
    if now_ms < lease.deadline_ms() {
        return true;
    }
    match (loss, acks) {
        (CoordinatorLoss::Safe, _) | (_, ReplicaAcks::Missing) => false,
        (CoordinatorLoss::Availability, ReplicaAcks::NoReplicas) => true,
        (CoordinatorLoss::Availability, ReplicaAcks::Oldest(at)) => {
            now_ms < at.saturating_add(ack_window_ms(lease.ttl_ms))
        }
    }
}

/// The times at which this process sent acknowledgements to primaries. If it has sent none, the time is that of its
/// start, because the previous process may have sent some.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SentAcks {
    pub started_ms: u64,
    /// The last acknowledgement to the primary that the process followed last.
    pub last_ms: u64,
    /// The last acknowledgement to a primary that the process followed earlier.
    pub earlier_ms: u64,
}

/// The time until which a primary of an earlier term may hold a lease, as far as this node knows. An operator can force
/// a promotion while the lease is valid, and the new primary can be lost before its own wait is over.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct LeaseHorizon(u64);

impl LeaseHorizon {
    /// The horizon at the start of a process if leases end by time: the process does not know the earlier terms.
    #[must_use]
    pub const fn at_start(started_ms: u64, ttl_ms: u64) -> LeaseHorizon {
        LeaseHorizon(started_ms.saturating_add(ttl_ms).saturating_add(margin_ms(ttl_ms)))
    }

    /// Records a term of the node's shard when the node installs the document with that term. `before` is the shard and
    /// term in the previous document: a term between the two may have been forced. `ttl_ms` is that of
    /// [`longest_ttl_ms`]. O(1).
    pub fn note_term(
        &mut self,
        before: Option<(ShardId, Term)>,
        shard: &Shard,
        installed_ms: u64,
        ttl_ms: u64,
    ) {
        let follows = before.is_some_and(|(id, term)| {
            id == shard.id && (term == shard.term || term.next() == shard.term)
        });
        let is_known = before == Some((shard.id, shard.term));
        if !follows || (shard.cause == TermCause::Forced && !is_known) {
            self.0 = self.0.max(LeaseHorizon::at_start(installed_ms, ttl_ms).0);
        }
    }
}

/// The longest TTL, in milliseconds, of a lease that an earlier primary of this shard may hold: that of any node that
/// one of these documents has in the shard or has removed from it, and at least `own_ms`. The nodes may have different
/// settings of `cluster-node-timeout`, for example while it is changed. `topologies` are the document that is being
/// installed and the one before it. O(nodes of the shard).
#[must_use]
pub fn longest_ttl_ms(own_ms: u64, shard: ShardId, topologies: &[Option<&Topology>]) -> u64 {
    let ttls = topologies.iter().flatten().flat_map(|topology| {
        let shard = topology.shard(shard);
        let nodes = shard.into_iter().flat_map(Shard::nodes);
        let ttls = nodes.filter_map(|node| Some(topology.members.get(&node)?.ttl));
        ttls.chain(shard.map(|shard| shard.former_ttl))
    });
    // A damaged document must not make the wait endless.
    ttls.map(|ttl| ttl.min(TTL_SECONDS_MAX) * 1000).fold(own_ms, u64::max)
}

/// The last registration of a node that another node has seen. It may be outdated: the watch of registrations can be
/// later than the document.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SeenRegistration {
    pub incarnation: Incarnation,
    /// The coordinator's revision at which the process registered.
    pub revision: u64,
}

impl SeenRegistration {
    /// True if this is the registration of a process later than `primary`. `named_at` is the coordinator's revision of
    /// the first known document that names `primary`, or `None` if it is unknown. An earlier process has registered
    /// before that revision, because a process registers before it becomes the primary. O(1).
    #[must_use]
    pub fn is_later_than(self, primary: NodeRun, named_at: Option<u64>) -> bool {
        self.incarnation != primary.incarnation
            && named_at.is_some_and(|named_at| self.revision > named_at)
    }
}

/// The facts known to a node that begins a term as the primary.
#[derive(Debug, Clone, Copy)]
pub struct NewTerm {
    pub cause: TermCause,
    /// When the node installs the document of the term.
    pub installed_ms: u64,
    /// See [`longest_ttl_ms`].
    pub ttl_ms: u64,
    /// Leases end by time, so a primary may have extended its own lease.
    pub has_expiring_leases: bool,
    /// See [`Shard::has_or_had_replicas`].
    pub has_or_had_replicas: bool,
    /// The horizon, including this term.
    pub horizon: LeaseHorizon,
    /// The acknowledgements that the node has sent. It sends no more.
    pub acks: SentAcks,
    /// The process of the previous primary has ended, because a later process of that node is registered
    /// ([`SeenRegistration::is_later_than`]).
    pub is_primary_restarted: bool,
}

/// The time from which a new primary may serve. O(1).
///
/// - After a failover, the previous primary has lost its lease. It may still serve until the ack window has passed
///   since it sent the data that this node acknowledged last.
/// - After a forced promotion, the lease of the previous primary may still be valid.
/// - A primary hands over only while it is serving, and then stops serving.
/// - A restarted primary may have been promoted just before its restart, or even after it: then this process has
///   followed the previous primary and acknowledged its data until it learned of the promotion. If there are no
///   replicas, no other node was the primary.
#[must_use]
pub fn serves_from_ms(term: &NewTerm) -> u64 {
    let (ttl_ms, acks) = (term.ttl_ms, term.acks);
    let after_acks_ms = |is_primary_over: bool| {
        let last_ms = if is_primary_over { acks.started_ms } else { acks.last_ms };
        let window_ms = ack_window_ms(ttl_ms) + margin_ms(ttl_ms);
        acks.earlier_ms.max(last_ms).saturating_add(window_ms).max(term.horizon.0)
    };
    let from_ms = match term.cause {
        TermCause::Forced => term.horizon.0,
        TermCause::Failover if term.has_expiring_leases => after_acks_ms(term.is_primary_restarted),
        TermCause::Resumed if term.has_expiring_leases && term.has_or_had_replicas => {
            after_acks_ms(false)
        }
        TermCause::Founded | TermCause::Failover | TermCause::Planned | TermCause::Resumed => 0,
    };
    from_ms.max(term.installed_ms)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::document::tests::three_shards;
    use CoordinatorLoss::{Availability, Safe};
    use ReplicaAcks::{Missing, NoReplicas, Oldest};

    #[test]
    fn the_deadline_is_the_time_to_live_less_a_tenth_and_200_ms() {
        let lease = Lease { renewed_ms: 1_000, ttl_ms: 5_000 };
        assert_eq!((margin_ms(5_000), lease.deadline_ms()), (700, 5_300));
        assert_eq!((lease.left_ms(5_000), lease.left_ms(6_000)), (300, 0));
        assert_eq!(Lease { renewed_ms: 1_000, ttl_ms: 100 }.deadline_ms(), 1_000);
    }

    #[test]
    fn a_primary_serves_until_its_deadline_or_longer_if_replicas_acknowledge() {
        let lease = Some(Lease { renewed_ms: 0, ttl_ms: 5_000 });
        let cases = [
            (4_299, Safe, Missing, true),
            (4_300, Safe, NoReplicas, false),
            (4_300, Safe, Oldest(4_300), false),
            (4_300, Availability, NoReplicas, true),
            (6_799, Availability, Oldest(4_300), true),
            (6_800, Availability, Oldest(4_300), false),
            (4_300, Availability, Missing, false),
        ];
        for (now, loss, acks, expected) in cases {
            assert_eq!(may_serve(lease, now, loss, acks), expected, "{now} {loss:?} {acks:?}");
        }
        assert!(!may_serve(None, 0, Availability, NoReplicas));
    }

    #[test]
    fn an_acknowledgement_counts_for_half_the_time_to_live_and_at_least_a_second_and_a_half() {
        let windows = [2_000, 3_000, 5_000, 600_000].map(ack_window_ms);
        assert_eq!(windows, [1_500, 1_500, 2_500, 300_000]);
    }

    #[test]
    fn the_wait_is_over_before_a_lease_that_was_renewed_three_times_per_ttl_ends() {
        for ttl_ms in [3_000, 5_000, 15_000, 60_000] {
            assert!(ack_window_ms(ttl_ms) + margin_ms(ttl_ms) <= ttl_ms - ttl_ms / 3, "{ttl_ms}");
        }
    }

    /// A term that begins at 10,000, long after the process started. Its window is 2,500 and its margin 700.
    fn term(cause: TermCause) -> NewTerm {
        NewTerm {
            cause,
            installed_ms: 10_000,
            ttl_ms: 5_000,
            has_expiring_leases: true,
            has_or_had_replicas: true,
            horizon: LeaseHorizon::at_start(1_000, 5_000),
            acks: SentAcks { started_ms: 1_000, last_ms: 9_000, earlier_ms: 8_000 },
            is_primary_restarted: false,
        }
    }

    #[test]
    fn a_promoted_replica_waits_until_its_last_acknowledgement_has_no_effect() {
        let failover = term(TermCause::Failover);
        assert_eq!(serves_from_ms(&failover), 9_000 + 3_200);
        let restarted = NewTerm { is_primary_restarted: true, ..failover };
        assert_eq!(serves_from_ms(&restarted), 8_000 + 3_200);
        let acks = SentAcks { started_ms: 1_000, last_ms: 6_000, earlier_ms: 5_000 };
        assert_eq!(serves_from_ms(&NewTerm { acks, ..failover }), 10_000);
        let acks = SentAcks { started_ms: 9_900, last_ms: 9_900, earlier_ms: 9_900 };
        assert_eq!(serves_from_ms(&NewTerm { acks, ..restarted }), 9_900 + 3_200);
        let horizon = LeaseHorizon::at_start(9_000, 5_000);
        assert_eq!(serves_from_ms(&NewTerm { horizon, ..restarted }), 9_000 + 5_700);
        assert_eq!(serves_from_ms(&NewTerm { has_expiring_leases: false, ..failover }), 10_000);
    }

    #[test]
    fn a_registration_proves_a_restart_only_if_it_is_later_than_the_document() {
        let node = three_shards().shards[0].primary;
        let primary = NodeRun { node, incarnation: Incarnation(3) };
        let is_later = |incarnation, revision, named_at| {
            let incarnation = Incarnation(incarnation);
            SeenRegistration { incarnation, revision }.is_later_than(primary, named_at)
        };
        // Incarnations are random, so they have no order.
        assert!(is_later(2, 11, Some(10)) && is_later(4, 11, Some(10)));
        assert!(!is_later(3, 11, Some(10)), "the primary itself");
        assert!(!is_later(2, 9, Some(10)), "an earlier process");
        assert!(!is_later(2, 11, None), "no order is known");
    }

    #[test]
    fn other_terms_wait_only_if_the_primary_before_may_serve() {
        let horizon = LeaseHorizon::at_start(10_000, 5_000);
        let forced = NewTerm { horizon, ..term(TermCause::Forced) };
        assert_eq!(serves_from_ms(&forced), 10_000 + 5_700);
        assert_eq!(serves_from_ms(&term(TermCause::Planned)), 10_000);
        assert_eq!(serves_from_ms(&term(TermCause::Founded)), 10_000);
        let resumed = NewTerm { installed_ms: 2_000, ..term(TermCause::Resumed) };
        let acks = SentAcks { started_ms: 1_000, last_ms: 1_000, earlier_ms: 1_000 };
        let restarted = NewTerm { acks, ..resumed };
        assert_eq!(serves_from_ms(&restarted), 1_000 + 5_700);
        assert_eq!(serves_from_ms(&NewTerm { has_or_had_replicas: false, ..resumed }), 2_000);
        // Promoted after the restart: the process has acknowledged data of the previous primary in the meantime.
        assert_eq!(serves_from_ms(&resumed), 9_000 + 3_200);
        let acks = SentAcks { last_ms: 1_000, earlier_ms: 9_500, ..acks };
        assert_eq!(serves_from_ms(&NewTerm { acks, ..resumed }), 9_500 + 3_200);
    }

    #[test]
    fn the_longest_ttl_is_that_of_any_node_of_the_shard_now_or_before() {
        let mut before = three_shards();
        let (shard, other) = (before.shards[0].clone(), before.shards[1].primary);
        let longest = |before: &Topology, now: &Topology| {
            longest_ttl_ms(5_000, shard.id, &[Some(before), None, Some(now)])
        };
        assert_eq!(longest(&before, &before), 5_000, "unknown TTLs");
        let now = before.clone();
        let set = |topology: &mut Topology, node, ttl| {
            topology.members.get_mut(&node).unwrap().ttl = ttl;
        };
        set(&mut before, other, 60);
        assert_eq!(longest(&before, &now), 5_000, "a node of another shard");
        set(&mut before, shard.replicas[0], 7);
        assert_eq!(longest(&before, &now), 7_000);
        set(&mut before, shard.primary, 15);
        assert_eq!((longest(&before, &now), longest(&now, &before)), (15_000, 15_000));
        set(&mut before, shard.primary, 3);
        set(&mut before, shard.replicas[0], u64::MAX);
        assert_eq!(longest(&before, &now), TTL_SECONDS_MAX * 1000);
        set(&mut before, shard.replicas[0], 0);
        before.shards[0].former_ttl = 9;
        assert_eq!(longest(&before, &now), 9_000, "a removed node");
    }

    #[test]
    fn a_forced_or_an_unknown_term_lets_an_earlier_lease_live() {
        let topology = three_shards();
        let mut shard = topology.shards[0].clone();
        let (id, term) = (shard.id, shard.term);
        shard.term = term.next();
        let horizon = |before, shard: &Shard| {
            let mut horizon = LeaseHorizon::default();
            horizon.note_term(before, shard, 10_000, 5_000);
            horizon
        };
        shard.cause = TermCause::Failover;
        let later = LeaseHorizon::at_start(10_000, 5_000);
        assert_eq!(horizon(Some((id, term)), &shard), LeaseHorizon::default());
        assert_eq!(horizon(Some((topology.shards[1].id, term)), &shard), later);
        assert_eq!(horizon(None, &shard), later);
        shard.cause = TermCause::Forced;
        assert_eq!(horizon(Some((id, term)), &shard), later);
        assert_eq!(horizon(Some((id, term.next())), &shard), LeaseHorizon::default());
        shard.cause = TermCause::Failover;
        shard.term = shard.term.next();
        assert_eq!(horizon(Some((id, term)), &shard), later);
    }
}
