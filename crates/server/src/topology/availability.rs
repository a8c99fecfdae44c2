//! `cluster-etcd-loss availability`: a node serves on without its coordinator while its shard is in contact. The thread
//! `brisk-acks` extends the lease deadline.
//!
//! - A primary serves while every replica of its shard acknowledges: a replica that is promoted stops to.
//! - A replica serves reads while its connection to its primary is up.
//!
//! The deadline is extended only while renewals are overdue. A process that was stopped does not extend it before its
//! next renewal: acknowledgements that wait in its sockets may be old.

use super::follower::TopologyFollower;
use super::role;
use brisk_cluster::document::{Member, Shard};
use brisk_cluster::failover::{CoordinatorLoss, Lease, ReplicaAcks, may_serve};
use brisk_cluster::id::NodeId;
use brisk_cluster::map::MapRole;
use brisk_config::choice;
use brisk_node::cluster::boot_ms;
use brisk_node::replication::replicas::ReplicaHandle;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

/// The time between two looks at the acknowledgements. Replicas acknowledge once a second.
const LOOK_PERIOD: Duration = Duration::from_millis(100);

/// Extends the deadline until the threads are stopped.
pub(super) fn run(follower: &Arc<TopologyFollower>) {
    let mut extender = DeadlineExtender::new(Arc::clone(follower), boot_ms());
    while !follower.signal.is_stopped() {
        extender.turn(boot_ms());
        follower.signal.pause(LOOK_PERIOD);
    }
}

/// The state of the thread. Times are those of [`boot_ms`].
struct DeadlineExtender {
    follower: Arc<TopologyFollower>,
    looked_ms: u64,
    /// The process was stopped: the renewal that was the last one then does not count.
    stalled: Option<Lease>,
    /// The last acknowledgement of each replica.
    seen: SeenAcks,
}

impl DeadlineExtender {
    fn new(follower: Arc<TopologyFollower>, now_ms: u64) -> DeadlineExtender {
        DeadlineExtender { follower, looked_ms: now_ms, stalled: None, seen: SeenAcks::default() }
    }

    fn turn(&mut self, now_ms: u64) {
        let before_ms = std::mem::replace(&mut self.looked_ms, now_ms);
        let replicas = self.follower.shared.replication.replicas.list();
        self.seen.note(&replicas, before_ms);
        let Some(lease) = self.follower.deadline.lease() else { return };
        if now_ms.saturating_sub(before_ms) > lease.ttl_ms / 2 {
            self.stalled = Some(lease);
        }
        let is_overdue = now_ms.saturating_sub(lease.renewed_ms) > lease.ttl_ms / 2;
        if !is_overdue || self.stalled == Some(lease) {
            return;
        }
        let config = self.follower.shared.config();
        let loss = match config.cluster.cluster_etcd_loss {
            choice::CoordinatorLoss::Safe => CoordinatorLoss::Safe,
            choice::CoordinatorLoss::Availability => CoordinatorLoss::Availability,
        };
        if let Some(from_ms) = self.in_contact(lease, now_ms, loss, &replicas) {
            let until_ms = from_ms.saturating_add(lease.ttl_ms);
            self.follower.deadline.extend(self.follower.state, until_ms);
        }
    }

    /// The time at which the shard was last known to be in contact with this node, if it may serve for that reason.
    fn in_contact(
        &self,
        lease: Lease,
        now_ms: u64,
        loss: CoordinatorLoss,
        replicas: &[ReplicaHandle],
    ) -> Option<u64> {
        let (shared, state) = (self.follower.shared, self.follower.state);
        let in_force = state.in_force();
        let topology = in_force.topology.as_deref()?;
        let acks = match in_force.map.role() {
            MapRole::Primary => {
                let shard = topology.shard_of(in_force.map.own())?;
                self.oldest_ack(shard, &topology.members, replicas)
            }
            // Nothing that depends on time is read from a replica.
            MapRole::Replica
                if !role::differs(shared, state) && shared.replication.upstream.is_up() =>
            {
                ReplicaAcks::NoReplicas
            }
            _ => return None,
        };
        let is_served = may_serve(Some(lease), now_ms.max(lease.deadline_ms()), loss, acks);
        let at_ms = if let ReplicaAcks::Oldest(at_ms) = acks { at_ms } else { now_ms };
        is_served.then_some(at_ms)
    }

    fn oldest_ack(
        &self,
        shard: &Shard,
        members: &BTreeMap<NodeId, Member>,
        replicas: &[ReplicaHandle],
    ) -> ReplicaAcks {
        if shard.replicas.is_empty() {
            return ReplicaAcks::NoReplicas;
        }
        let last_ack = |id: &NodeId| {
            let member = members.get(id)?;
            let connections = replicas.iter().filter(|replica| is_of(replica, member));
            connections.filter_map(|replica| self.seen.last(replica)).max()
        };
        let acks: Option<Vec<u64>> = shard.replicas.iter().map(last_ack).collect();
        let oldest = acks.and_then(|acks| acks.into_iter().min());
        oldest.map_or(ReplicaAcks::Missing, ReplicaAcks::Oldest)
    }
}

/// True if this connection is of a member, by the address that the replica announces.
fn is_of(replica: &ReplicaHandle, member: &Member) -> bool {
    let has_port = replica.port != 0 && (replica.port == member.port || replica.port == member.tls);
    let announced = replica.ip.map(|ip| ip.to_string());
    let address = replica.client.addr.to_string();
    let peer = address.rsplit_once(':').map(|(host, _)| host.trim_matches(['[', ']']));
    has_port && (announced.as_deref() == Some(&*member.ip) || peer == Some(&*member.ip))
}

/// When the last acknowledgement of each connection arrived: not before the look that precedes the one that found it.
/// The wall clock, by which connections note the arrival, may be set.
#[derive(Debug, Default)]
struct SeenAcks {
    /// By the id of the connection: the noted arrival, and the time of [`boot_ms`].
    by_client: BTreeMap<u64, (u64, u64)>,
}

impl SeenAcks {
    fn note(&mut self, replicas: &[ReplicaHandle], before_ms: u64) {
        let online = replicas.iter().filter(|replica| replica.is_online() && replica.has_acked);
        let seen = online.map(|replica| {
            let (id, acked) = (replica.client.id, replica.acked_ms);
            let known = self.by_client.get(&id).filter(|known| known.0 == acked);
            (id, known.copied().unwrap_or((acked, before_ms)))
        });
        self.by_client = seen.collect();
    }

    fn last(&self, replica: &ReplicaHandle) -> Option<u64> {
        self.by_client.get(&replica.client.id).map(|(_, at_ms)| *at_ms)
    }
}
