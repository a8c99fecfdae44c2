//! When a primary may serve. All times are milliseconds on the node's own clock, `CLOCK_BOOTTIME`, which goes
//! on while the machine sleeps.

use crate::document::TermCause;

/// The lease of a node, as the node sees it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Lease {
    /// When the node sent its last successful renewal. A renewal counts only once the node has installed
    /// the document of the revision in the reply: otherwise it could renew and miss a forced promotion.
    pub renewed_ms: u64,
    pub ttl_ms: u64,
}

/// The difference between a lease's end at the coordinator and the node's own deadline: a tenth of the time
/// to live for clocks that run at different rates, and 200 ms for a batch in progress.
#[must_use]
pub const fn margin_ms(ttl_ms: u64) -> u64 {
    ttl_ms / 10 + 200
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
    /// It stops serving at its lease deadline.
    #[default]
    Safe,
    /// It serves as long as every replica of its shard acknowledges. If a replica is promoted meanwhile, both
    /// may serve for up to the time to live.
    Availability,
}

/// The acknowledgements of the replicas that the document in force has for the shard.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReplicaAcks {
    /// The shard has no replicas: no other node can be promoted.
    NoReplicas,
    /// The time of the oldest among the last acknowledgements of each replica.
    Oldest(u64),
    /// A replica has acknowledged nothing in this term.
    Missing,
}

/// True if a primary may serve now. Checked before a batch is executed and again before its replies are sent,
/// since a process can stop at any instruction. O(1).
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
            now_ms < at.saturating_add(lease.ttl_ms)
        }
    }
}

/// The time from which a new primary may serve, if it installed the document of its term at `installed_ms`.
/// After a forced promotion the lease of the primary before may still live. O(1).
#[must_use]
pub const fn serves_from_ms(cause: TermCause, installed_ms: u64, ttl_ms: u64) -> u64 {
    match cause {
        TermCause::Forced => installed_ms.saturating_add(ttl_ms + margin_ms(ttl_ms)),
        TermCause::Founded | TermCause::Failover | TermCause::Planned | TermCause::Resumed => {
            installed_ms
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
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
    fn a_primary_serves_until_its_deadline_and_longer_only_if_replicas_acknowledge() {
        let lease = Some(Lease { renewed_ms: 0, ttl_ms: 5_000 });
        let cases = [
            (4_299, Safe, Missing, true),
            (4_300, Safe, NoReplicas, false),
            (4_300, Safe, Oldest(4_300), false),
            (4_300, Availability, NoReplicas, true),
            (9_299, Availability, Oldest(4_300), true),
            (9_300, Availability, Oldest(4_300), false),
            (4_300, Availability, Missing, false),
        ];
        for (now, loss, acks, expected) in cases {
            assert_eq!(may_serve(lease, now, loss, acks), expected, "{now} {loss:?} {acks:?}");
        }
        assert!(!may_serve(None, 0, Availability, NoReplicas));
    }

    #[test]
    fn only_a_forced_promotion_waits() {
        assert_eq!(serves_from_ms(TermCause::Forced, 100, 3_000), 100 + 3_000 + 500);
        assert_eq!(serves_from_ms(TermCause::Failover, 100, 3_000), 100);
    }
}
