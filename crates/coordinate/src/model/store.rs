//! The shared state of a model: entries, leases, history, and requests that are still under way.

use crate::clock::BootTime;
use crate::error::CoordinatorError;
use crate::values::{
    Campaign, Claim, ClusterSnapshot, Controller, Lease, LeaseId, LeaseTtl, NodeId,
    NodeRegistration, NodeStatus, RegisteredNode, Revision, Topology, WatchEvent,
};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::time::Duration;

/// Maximum number of events that are kept for watchers; older events are compacted.
const HISTORY_MAX: usize = 10_000;
/// Maximum number of changes that wait to be applied late. Further changes are lost.
const LATE_CHANGES_MAX: usize = 1_000;

/// A topology change without borrowed data.
#[derive(Debug, Clone)]
pub(super) struct OwnedChange {
    pub(super) expected: Revision,
    pub(super) document: Vec<u8>,
    pub(super) controller: Option<Controller>,
}

/// When a change whose response was lost is applied.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum LateApplication {
    At(BootTime),
    WhenQuorumReturns,
}

/// A node's entry.
#[derive(Debug)]
struct ModelNode {
    entry: RegisteredNode,
    lease: LeaseId,
    status: Option<Vec<u8>>,
}

#[derive(Debug)]
struct ModelLease {
    ttl: LeaseTtl,
    ends_at: BootTime,
}

/// The state that all clients of a model share.
#[derive(Debug, Default)]
pub(super) struct ModelStore {
    pub(super) now: BootTime,
    pub(super) has_no_quorum: bool,
    pub(super) cut_clients: BTreeSet<u64>,
    /// Events up to this revision are not kept.
    pub(super) compacted: Revision,
    /// Events with the times at which they happened.
    pub(super) history: VecDeque<(BootTime, Revision, WatchEvent)>,
    revision: Revision,
    topology: Option<(Revision, Vec<u8>)>,
    nodes: BTreeMap<NodeId, ModelNode>,
    controller: Option<(Controller, LeaseId)>,
    leases: BTreeMap<LeaseId, ModelLease>,
    last_lease: u64,
    late: Vec<(LateApplication, OwnedChange)>,
}

impl ModelStore {
    /// Moves the clock. Everything that falls due in that time happens in order.
    pub(super) fn advance(&mut self, duration: Duration) {
        let target = self.now.after(duration);
        while let Some(due) = self.next_due().filter(|due| *due <= target) {
            self.now = self.now.max(due);
            self.settle();
        }
        self.now = target;
    }

    fn next_due(&self) -> Option<BootTime> {
        if self.has_no_quorum {
            return None;
        }
        let late = self.late.iter().filter_map(|(when, _)| match when {
            LateApplication::At(time) => Some(*time),
            LateApplication::WhenQuorumReturns => None,
        });
        late.chain(self.leases.values().map(|lease| lease.ends_at)).min()
    }

    /// Applies late changes and ends leases that are due now.
    fn settle(&mut self) {
        let now = self.now;
        let is_due = |when: &LateApplication| matches!(when, LateApplication::At(at) if *at <= now);
        let (due, late) = std::mem::take(&mut self.late).into_iter().partition(|(w, _)| is_due(w));
        self.late = late;
        for (_, change) in due {
            self.change(&change);
        }
        let ended = self.leases.iter().filter(|(_, lease)| lease.ends_at <= now);
        let ended: Vec<LeaseId> = ended.map(|(id, _)| *id).collect();
        for lease in ended {
            self.end(lease);
        }
    }

    /// A new leader grants each lease its full TTL again, as etcd does.
    pub(super) fn restore_quorum(&mut self) {
        self.has_no_quorum = false;
        let now = self.now;
        for lease in self.leases.values_mut() {
            lease.ends_at = lease.ends_at.max(now.after(lease.ttl.duration()));
        }
        for (when, _) in &mut self.late {
            *when = LateApplication::At(now);
        }
        self.settle();
    }

    pub(super) fn apply_late(&mut self, when: LateApplication, change: OwnedChange) {
        if self.late.len() < LATE_CHANGES_MAX {
            self.late.push((when, change));
        }
    }

    pub(super) fn compact(&mut self) {
        self.compacted = self.revision;
        self.history.clear();
    }

    fn advance_revision(&mut self) -> Revision {
        self.revision.0 += 1;
        self.revision
    }

    fn note(&mut self, revision: Revision, event: WatchEvent) {
        self.history.push_back((self.now, revision, event));
        while self.history.len() > HISTORY_MAX {
            if let Some((_, revision, _)) = self.history.pop_front() {
                self.compacted = revision;
            }
        }
    }

    pub(super) fn topology(&self) -> Topology {
        match &self.topology {
            Some((revision, document)) => {
                Topology { revision: *revision, document: Some(document.clone()) }
            }
            None => Topology { revision: Revision::NONE, document: None },
        }
    }

    pub(super) fn snapshot(&self) -> ClusterSnapshot {
        ClusterSnapshot {
            revision: self.revision,
            topology: self.topology(),
            nodes: self.nodes.values().map(|node| node.entry.clone()).collect(),
            controller: self.controller.map(|(controller, _)| controller),
        }
    }

    /// Changes the topology. `None` if a comparison failed.
    pub(super) fn change(&mut self, change: &OwnedChange) -> Option<Revision> {
        let present = self.topology.as_ref().map_or(Revision::NONE, |(revision, _)| *revision);
        let controller = self.controller.map(|(controller, _)| controller);
        let is_in_office = change.controller.is_none() || change.controller == controller;
        if present != change.expected || !is_in_office {
            return None;
        }
        let revision = self.advance_revision();
        self.topology = Some((revision, change.document.clone()));
        self.note(revision, WatchEvent::Topology(self.topology()));
        Some(revision)
    }

    pub(super) fn register(
        &mut self,
        registration: &NodeRegistration,
        ttl: LeaseTtl,
        claim: Claim,
        slack: Duration,
    ) -> Result<Lease, CoordinatorError> {
        let node = registration.node;
        if let Some(present) = self.nodes.get(&node) {
            let (earlier, present) = (present.lease, &present.entry.registration);
            if claim == Claim::Resume && present.incarnation != registration.incarnation {
                return Err(CoordinatorError::taken_by(present.clone()));
            }
            // The new registration takes the entry's name before the earlier lease ends.
            self.nodes.remove(&node);
            self.end(earlier);
        }
        self.last_lease += 1;
        let id = LeaseId(self.last_lease);
        let ends_at = self.now.after(ttl.duration() + slack);
        self.leases.insert(id, ModelLease { ttl, ends_at });
        let revision = self.advance_revision();
        let entry = RegisteredNode { registration: registration.clone(), revision };
        self.nodes.insert(node, ModelNode { entry: entry.clone(), lease: id, status: None });
        self.note(revision, WatchEvent::NodeRegistered(entry));
        let expires_at = Some(self.now.after(ttl.duration()));
        Ok(Lease { id, node, incarnation: registration.incarnation.clone(), ttl, expires_at })
    }

    pub(super) fn renew(
        &mut self,
        lease: &Lease,
        slack: Duration,
    ) -> Result<Lease, CoordinatorError> {
        let now = self.now;
        let present = self.leases.get_mut(&lease.id).ok_or(CoordinatorError::LeaseLost)?;
        present.ends_at = now.after(present.ttl.duration() + slack);
        Ok(Lease { expires_at: Some(now.after(present.ttl.duration())), ..lease.clone() })
    }

    /// Ends a lease, and everything that belongs to it.
    pub(super) fn end(&mut self, lease: LeaseId) {
        if self.leases.remove(&lease).is_none() {
            return;
        }
        self.resign(lease);
        let found = self.nodes.iter().find(|(_, entry)| entry.lease == lease);
        if let Some(node) = found.map(|(node, _)| *node) {
            self.nodes.remove(&node);
            let revision = self.advance_revision();
            self.note(revision, WatchEvent::NodeRemoved { node, revision });
        }
    }

    pub(super) fn campaign(&mut self, lease: &Lease) -> Result<Campaign, CoordinatorError> {
        if !self.leases.contains_key(&lease.id) {
            return Err(CoordinatorError::LeaseLost);
        }
        match self.controller {
            Some((controller, holder)) if holder == lease.id => Ok(Campaign::Elected(controller)),
            Some((controller, _)) => Ok(Campaign::Held(controller)),
            None => {
                let since = self.advance_revision();
                let controller = Controller { node: lease.node, since };
                self.controller = Some((controller, lease.id));
                self.note(since, WatchEvent::ControllerElected(controller));
                Ok(Campaign::Elected(controller))
            }
        }
    }

    pub(super) fn resign(&mut self, lease: LeaseId) {
        if self.controller.is_some_and(|(_, holder)| holder == lease) {
            self.controller = None;
            let revision = self.advance_revision();
            self.note(revision, WatchEvent::ControllerRemoved { revision });
        }
    }

    pub(super) fn put_status(
        &mut self,
        lease: &Lease,
        status: &[u8],
    ) -> Result<(), CoordinatorError> {
        let entry = self.nodes.get_mut(&lease.node).filter(|entry| entry.lease == lease.id);
        entry.ok_or(CoordinatorError::LeaseLost)?.status = Some(status.to_vec());
        Ok(())
    }

    pub(super) fn statuses(&self) -> Vec<NodeStatus> {
        let status = |(node, entry): (&NodeId, &ModelNode)| {
            Some(NodeStatus { node: *node, status: entry.status.clone()? })
        };
        self.nodes.iter().filter_map(status).collect()
    }
}
