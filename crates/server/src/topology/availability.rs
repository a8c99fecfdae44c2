//! `cluster-etcd-loss availability`: a node continues to serve without the coordinator while the nodes of its shard are
//! in contact. The thread `brisk-acks` extends the lease deadline.
//!
//! - A primary serves while every replica of its shard acknowledges. A promoted replica stops acknowledging, and waits
//!   until its last acknowledgement has expired.
//! - A replica serves reads while its connection to its primary is up.
//!
//! An acknowledgement counts from the time at which this node sent the acknowledged part of the stream. Its arrival
//! time is not reliable, because a network can deliver it long after the replica was promoted. While renewals are
//! overdue, this node requests acknowledgements, so that there is always a new part of the stream to acknowledge.
//!
//! The deadline is extended only while renewals are overdue. A process that was suspended does not extend it before its
//! next renewal.

use super::role;
use super::watcher::TopologyWatcher;
use brisk_cluster::document::{Member, Shard};
use brisk_cluster::failover::{CoordinatorLoss, Lease, ReplicaAcks, ack_window_ms, may_serve};
use brisk_cluster::id::NodeId;
use brisk_cluster::map::MapRole;
use brisk_config::choice;
use brisk_node::cluster::{InForce, boot_ms};
use brisk_node::core::Core;
use brisk_node::core::mailbox::{Message, Work};
use brisk_node::replication::acks::GETACK_REQUEST;
use brisk_node::replication::replicas::ReplicaHandle;
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// The time between two checks of the acknowledgements.
const LOOK_PERIOD: Duration = Duration::from_millis(100);
/// The time between two requests for acknowledgements. There are several requests within the shortest window.
const REQUEST_PERIOD_MS: u64 = 300;
/// The number of stream marks that are kept. Each check adds one. Acknowledgements of older parts have no effect.
const MARKS_MAX: usize = 1024;

/// Extends the deadline until the threads are stopped.
pub(super) fn run(watcher: &Arc<TopologyWatcher>) {
    let mut extender = DeadlineExtender::new(Arc::clone(watcher), boot_ms());
    while !watcher.signal.is_stopped() {
        extender.turn(boot_ms());
        watcher.deadline.publish(watcher.state);
        let wait = watcher.deadline.wait_left_ms().map(Duration::from_millis);
        watcher.signal.pause(wait.unwrap_or(LOOK_PERIOD).min(LOOK_PERIOD));
    }
}

/// The state of the thread. Times are those of [`boot_ms`].
struct DeadlineExtender {
    watcher: Arc<TopologyWatcher>,
    looked_ms: u64,
    /// The last renewal before the process was suspended. It no longer counts.
    stalled: Option<Lease>,
    /// The last renewal at a time when a connected replica was not named in the document. A later document may name
    /// this replica, so it may be promoted.
    has_stranger: Option<Lease>,
    marks: StreamMarks,
    requested_ms: u64,
    /// True if the last request has not been executed yet.
    is_requesting: Arc<AtomicBool>,
}

impl DeadlineExtender {
    fn new(watcher: Arc<TopologyWatcher>, now_ms: u64) -> DeadlineExtender {
        DeadlineExtender {
            watcher,
            looked_ms: now_ms,
            stalled: None,
            has_stranger: None,
            marks: StreamMarks::default(),
            requested_ms: 0,
            is_requesting: Arc::default(),
        }
    }

    fn turn(&mut self, now_ms: u64) {
        let before_ms = std::mem::replace(&mut self.looked_ms, now_ms);
        let (shared, state) = (self.watcher.shared, self.watcher.state);
        // Read this before the document, because an extension for an earlier role has no effect.
        let role = self.watcher.deadline.role_number();
        let in_force = state.in_force();
        let Some(lease) = self.watcher.deadline.lease() else { return };
        let replicas = shared.replication.replicas.list();
        if in_force.map.role() == MapRole::Primary {
            self.marks.note(shared.replication.position(&shared.keyspace), now_ms);
            if has_stranger(&in_force, &replicas) {
                self.has_stranger = Some(lease);
            }
        } else {
            self.marks = StreamMarks::default();
        }
        if now_ms.saturating_sub(before_ms) > lease.ttl_ms / 2 {
            self.stalled = Some(lease);
        }
        let is_overdue = now_ms.saturating_sub(lease.renewed_ms) > lease.ttl_ms / 2;
        if !is_overdue || [self.stalled, self.has_stranger].contains(&Some(lease)) {
            return;
        }
        let config = shared.config();
        if config.cluster.cluster_etcd_loss == choice::CoordinatorLoss::Safe {
            return;
        }
        if in_force.map.role() == MapRole::Primary {
            self.request_acks(now_ms);
        }
        if let Some(from_ms) = self.in_contact(&in_force, lease, now_ms, &replicas) {
            let until_ms = from_ms.saturating_add(ack_window_ms(lease.ttl_ms));
            self.watcher.deadline.extend(state, role, until_ms);
        }
    }

    /// Makes worker 0 request acknowledgements. The reply to a request covers the previous request.
    fn request_acks(&mut self, now_ms: u64) {
        let is_due = now_ms.saturating_sub(self.requested_ms) >= REQUEST_PERIOD_MS;
        if !is_due || self.is_requesting.swap(true, Ordering::SeqCst) {
            return;
        }
        self.requested_ms = now_ms;
        let is_requesting = Arc::clone(&self.is_requesting);
        let request = move |core: &mut Core| {
            let shared = core.shared;
            let is_followed = shared.replication.replicas.following() > 0;
            if is_followed && !shared.conditions.is_replica() {
                shared.keyspace.journal().append_request(GETACK_REQUEST);
                shared.dispatch_changes(core.id);
            }
            is_requesting.store(false, Ordering::SeqCst);
        };
        self.watcher.shared.mailboxes.send(0, Message::Run(Work(Box::new(request))));
    }

    /// The time at which the shard was last known to be in contact with this node. `None` if this node must not serve
    /// on this basis.
    fn in_contact(
        &self,
        in_force: &InForce,
        lease: Lease,
        now_ms: u64,
        replicas: &[ReplicaHandle],
    ) -> Option<u64> {
        let (shared, state) = (self.watcher.shared, self.watcher.state);
        let acks = match in_force.map.role() {
            MapRole::Primary => self.oldest_ack(in_force, replicas)?,
            // A replica that is connected to its primary needs no acknowledgements, like a primary without replicas.
            MapRole::Replica
                if !role::differs(shared, state) && shared.replication.upstream.is_up() =>
            {
                ReplicaAcks::NoReplicas
            }
            _ => return None,
        };
        let at_ms = now_ms.max(lease.deadline_ms());
        let is_served = may_serve(Some(lease), at_ms, CoordinatorLoss::Availability, acks);
        let from_ms = if let ReplicaAcks::Oldest(sent_ms) = acks { sent_ms } else { now_ms };
        is_served.then_some(from_ms)
    }

    /// Returns the earliest time at which this node sent the acknowledged part of the stream, over all replicas of this
    /// shard.
    fn oldest_ack(&self, in_force: &InForce, replicas: &[ReplicaHandle]) -> Option<ReplicaAcks> {
        let topology = in_force.topology.as_deref()?;
        let shard = topology.shard_of(in_force.map.own())?;
        if shard.replicas.is_empty() {
            return Some(ReplicaAcks::NoReplicas);
        }
        let last_ack = |id: &NodeId| {
            let member = topology.members.get(id)?;
            let connections = replicas.iter().filter(|replica| is_of(replica, member));
            let acked = connections.filter(|replica| replica.is_online() && replica.has_acked);
            acked.filter_map(|replica| self.marks.sent_ms(replica.acked)).max()
        };
        let acks: Option<Vec<u64>> = shard.replicas.iter().map(last_ack).collect();
        let oldest = acks.and_then(|acks| acks.into_iter().min());
        Some(oldest.map_or(ReplicaAcks::Missing, ReplicaAcks::Oldest))
    }
}

/// True if a connected replica is not named as a member of this shard in the document.
fn has_stranger(in_force: &InForce, replicas: &[ReplicaHandle]) -> bool {
    let topology = in_force.topology.as_deref();
    let shard = topology.and_then(|topology| topology.shard_of(in_force.map.own()));
    let (Some(topology), Some(shard)) = (topology, shard) else { return false };
    let members = || members_of(shard, &topology.members);
    // Tools that read the stream announce no port.
    let mut servers = replicas.iter().filter(|replica| replica.port != 0);
    servers.any(|replica| !members().any(|member| is_of(replica, member)))
}

fn members_of<'t>(
    shard: &'t Shard,
    members: &'t BTreeMap<NodeId, Member>,
) -> impl Iterator<Item = &'t Member> {
    shard.replicas.iter().filter_map(|id| members.get(id))
}

/// True if this connection belongs to a member, according to the address that the replica announces.
fn is_of(replica: &ReplicaHandle, member: &Member) -> bool {
    let has_port = replica.port != 0 && (replica.port == member.port || replica.port == member.tls);
    let announced = replica.ip.map(|ip| ip.to_string());
    let address = replica.client.addr.to_string();
    let peer = address.rsplit_once(':').map(|(host, _)| host.trim_matches(['[', ']']));
    has_port && (announced.as_deref() == Some(&*member.ip) || peer == Some(&*member.ip))
}

/// The times by which this node, as the primary, had written the stream up to certain offsets.
#[derive(Debug, Default)]
struct StreamMarks {
    replid: String,
    /// Offsets with times, both in ascending order.
    marks: VecDeque<(u64, u64)>,
}

impl StreamMarks {
    /// Notes the end of the stream, which was read after `now_ms`.
    fn note(&mut self, (replid, offset): (String, u64), now_ms: u64) {
        let last = self.marks.back().map(|mark| mark.0);
        if self.replid != replid || last.is_some_and(|last| offset < last) {
            *self = StreamMarks { replid, marks: VecDeque::new() };
        }
        match self.marks.back_mut().filter(|mark| mark.0 == offset) {
            Some(mark) => mark.1 = now_ms,
            None => self.marks.push_back((offset, now_ms)),
        }
        if self.marks.len() > MARKS_MAX {
            self.marks.pop_front();
        }
    }

    /// The time of the last mark before this offset. The stream up to the offset was sent after that time. O(log
    /// marks).
    fn sent_ms(&self, offset: u64) -> Option<u64> {
        let at = self.marks.partition_point(|mark| mark.0 < offset);
        self.marks.get(at.checked_sub(1)?).map(|mark| mark.1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_acknowledgement_counts_from_when_its_part_of_the_stream_was_sent() {
        let mut marks = StreamMarks::default();
        let note = |marks: &mut StreamMarks, id: &str, offset, now_ms| {
            marks.note((id.to_owned(), offset), now_ms);
        };
        note(&mut marks, "a", 100, 1_000);
        // Nothing is known about the stream before the first mark.
        assert_eq!((marks.sent_ms(100), marks.sent_ms(101)), (None, Some(1_000)));
        note(&mut marks, "a", 100, 1_100);
        note(&mut marks, "a", 137, 1_200);
        assert_eq!((marks.sent_ms(137), marks.sent_ms(138)), (Some(1_100), Some(1_200)));
        // A different history, and then a history whose end is lost.
        note(&mut marks, "b", 150, 1_300);
        assert_eq!(marks.sent_ms(150), None);
        note(&mut marks, "b", 140, 1_400);
        assert_eq!((marks.sent_ms(140), marks.sent_ms(141)), (None, Some(1_400)));
        for offset in 0..2 * MARKS_MAX as u64 {
            note(&mut marks, "b", 200 + offset, 2_000 + offset);
        }
        assert_eq!(marks.marks.len(), MARKS_MAX);
    }
}
