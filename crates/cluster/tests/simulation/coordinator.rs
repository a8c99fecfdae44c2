//! The model of a coordinator.

use brisk_cluster::document::{Registration, Topology, check_installation};
use brisk_cluster::id::{ChangeId, NodeId, NodeRun};
use std::collections::BTreeMap;
use std::rc::Rc;

/// The lease of a registered process.
#[derive(Debug, Clone, Copy)]
struct Lease {
    run: NodeRun,
    ttl_ms: u64,
    expires_ms: u64,
    number: u64,
}

/// The result of a renewal or a registration.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Renewal {
    Renewed,
    /// The lease has ended, or a later registration has replaced it.
    Lost,
    /// The node was registered with the lease that has this number.
    Granted(u64),
    /// A newer process of the node has the lease.
    Replaced,
}

/// A change under way, and the version that it expects.
#[derive(Debug, Clone)]
pub(crate) struct Request {
    pub(crate) expected: u64,
    pub(crate) document: Rc<Topology>,
}

/// Document, leases and the history of changes.
#[derive(Debug)]
pub(crate) struct Coordinator {
    pub(crate) revision: u64,
    pub(crate) document: Option<Rc<Topology>>,
    leases: BTreeMap<NodeId, Lease>,
    /// The registrations of the nodes in `leases`.
    pub(crate) registered: BTreeMap<NodeId, Registration>,
    /// The coordinator has no quorum until this time: requests wait, and leases do not end.
    pub(crate) frozen_until_ms: u64,
    history: Vec<ChangeId>,
    /// The number of leases that were granted.
    granted: u64,
}

impl Coordinator {
    pub(crate) fn new() -> Coordinator {
        Coordinator {
            revision: 0,
            document: None,
            leases: BTreeMap::new(),
            registered: BTreeMap::new(),
            frozen_until_ms: 0,
            history: Vec::new(),
            granted: 0,
        }
    }

    /// Freezes the coordinator. Leases are extended, as they are by a new leader of etcd.
    pub(crate) fn freeze(&mut self, until_ms: u64) {
        self.frozen_until_ms = self.frozen_until_ms.max(until_ms);
        for lease in self.leases.values_mut() {
            lease.expires_ms = lease.expires_ms.max(self.frozen_until_ms + lease.ttl_ms);
        }
    }

    /// Removes the leases that have ended.
    pub(crate) fn expire(&mut self, now_ms: u64) {
        self.leases.retain(|_, lease| lease.expires_ms > now_ms);
        self.registered.retain(|id, _| self.leases.contains_key(id));
    }

    /// Renews the lease with this number; without a number, registers the node with a new lease. A
    /// process that was replaced by a newer one gets no lease.
    pub(crate) fn renew(
        &mut self,
        registration: Registration,
        number: Option<u64>,
        now_ms: u64,
    ) -> Renewal {
        self.expire(now_ms);
        let ttl_ms = registration.member.ttl * 1000;
        let expires_ms = now_ms + ttl_ms;
        let held = self.leases.get_mut(&registration.id);
        if let Some(number) = number {
            return match held.filter(|held| held.number == number) {
                Some(held) => {
                    held.expires_ms = expires_ms;
                    Renewal::Renewed
                }
                None => Renewal::Lost,
            };
        }
        if held.is_some_and(|held| held.run.incarnation > registration.incarnation) {
            return Renewal::Replaced;
        }
        self.granted += 1;
        let number = self.granted;
        self.leases
            .insert(registration.id, Lease { run: registration.run(), ttl_ms, expires_ms, number });
        self.registered.insert(registration.id, registration);
        Renewal::Granted(number)
    }

    /// Applies a change if its comparisons hold. Every document must pass the checks that nodes
    /// make before they install it.
    pub(crate) fn change(&mut self, request: &Request, now_ms: u64) -> bool {
        self.expire(now_ms);
        if request.expected != self.revision {
            return false;
        }
        let old = self.document.as_deref();
        check_installation("brisk", old, Some(&request.document)).unwrap();
        assert_eq!(request.document.slots_assigned(), 16_384, "every slot has one owner");
        self.revision += 1;
        self.history.push(request.document.change);
        self.document = Some(Rc::clone(&request.document));
        true
    }

    /// True if the history contains the change.
    pub(crate) fn has_applied(&self, change: ChangeId) -> bool {
        self.history.contains(&change)
    }

    /// True if this run holds a lease at this moment.
    pub(crate) fn has_lease(&self, run: NodeRun, now_ms: u64) -> bool {
        self.leases
            .get(&run.node)
            .is_some_and(|lease| lease.run == run && lease.expires_ms > now_ms)
    }
}
