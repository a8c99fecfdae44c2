//! The thread `brisk-lease`: registers this node, renews its lease, and sets the lease deadline of the workers.
//!
//! The thread has no other work, so that neither a slow request to a node nor a slow call by the controller delays a
//! renewal.
//!
//! ```text
//! sent ── renew: at most TTL/2 ── read and install the document: at most TTL/2 ── deadline = sent + TTL − margin
//!         (one endpoint: TTL/6, the next one: TTL/3)
//! next renewal: TTL/3 after `sent`; after an error, TTL/6 after `sent`, or immediately if that time has passed
//! ```
//!
//! A renewal counts only after the newest document is installed. Otherwise this node could renew its lease and miss a
//! forced promotion. A primary that registers again first reasserts its role. If a promotion was decided while the
//! primary had no lease, the reassertion makes the promotion fail. A renewal of a primary also does not count while the
//! document has a shorter TTL of this node.

use super::coord::ErrorLog;
use super::identity::to_coordinator;
use super::watcher::{Installation, TopologyWatcher};
use brisk_cluster::change::{
    ChangeError, Edit, clear_former_ttl, correct_member, reassert, record_ttl,
};
use brisk_cluster::document::Registration;
use brisk_cluster::failover;
use brisk_cluster::map::MapRole;
use brisk_coordinate::error::CoordinatorError;
use brisk_coordinate::values::{Claim, Lease, LeaseTtl};
use brisk_node::cluster::{ChangeBasis, CommitError, CoordinatorState, boot_ms};
use std::sync::Arc;
use std::time::Duration;

/// A lease is renewed this many times per TTL, and twice as often after an error.
const RENEWALS_PER_TTL: u64 = 3;
/// A confirmation takes at most the TTL divided by this number, and a renewed lease lives longer than that.
const CONFIRMATION_PARTS: u64 = 2;
/// The pause after a call that took a long time and failed.
const RETRY_PAUSE_MS: u64 = 50;
/// The longest time between two turns. This is also the delay until the thread notices that the wait after a promotion
/// is over.
const TURN_MS_MAX: u64 = 100;

/// The reason why a renewal does not count.
enum RenewalError {
    Coordinator(CoordinatorError),
    /// The newest document is not in force yet.
    Unfinished,
    /// The coordinator did not confirm the address, the role or the TTL.
    Reassertion(CommitError),
}

impl From<CoordinatorError> for RenewalError {
    fn from(error: CoordinatorError) -> RenewalError {
        RenewalError::Coordinator(error)
    }
}

/// Keeps the lease until the threads are stopped.
pub(super) fn run(watcher: &Arc<TopologyWatcher>) {
    let mut lease = LeaseKeeper::new(watcher);
    while !watcher.lease_signal.is_stopped() {
        lease.turn();
        let now_ms = boot_ms();
        let wait_ms = lease.due_ms.saturating_sub(now_ms).min(TURN_MS_MAX);
        watcher.lease_signal.wait(Duration::from_millis(wait_ms));
    }
}

/// Keeps the lease of this node.
pub(super) struct LeaseKeeper {
    watcher: Arc<TopologyWatcher>,
    lease: Option<Lease>,
    /// True if the node has been registered by this process.
    has_registered: bool,
    /// True if the node has registered, but has not yet corrected its address or reasserted its role.
    must_reassert: bool,
    /// The TTL of the last registration.
    granted_ttl: Option<LeaseTtl>,
    /// When the next renewal is due, on the clock of [`boot_ms`].
    due_ms: u64,
    /// Since when a newer document could not be put in force, on the clock of [`boot_ms`].
    unfinished_since_ms: Option<u64>,
    errors: ErrorLog,
}

impl LeaseKeeper {
    pub(super) fn new(watcher: &Arc<TopologyWatcher>) -> LeaseKeeper {
        LeaseKeeper {
            watcher: Arc::clone(watcher),
            lease: None,
            has_registered: false,
            must_reassert: false,
            granted_ttl: None,
            due_ms: 0,
            unfinished_since_ms: None,
            errors: ErrorLog::new(watcher.shared, "the lease of this node"),
        }
    }

    /// Does the work that is due.
    pub(super) fn turn(&mut self) {
        if self.watcher.take_new_id() {
            self.leave();
        }
        if self.watcher.take_new_details() {
            self.announce();
        }
        if self.watcher.take_lacking_ttl() {
            self.due_ms = 0;
        }
        self.keep();
        self.watcher.deadline.publish(self.watcher.state);
    }

    /// As [`LeaseKeeper::turn`], even if no renewal is due.
    #[cfg(test)]
    pub(super) fn turn_now(&mut self) {
        self.due_ms = 0;
        self.turn();
    }

    fn ttl_ms(&self) -> u64 {
        self.watcher.ttl.seconds().saturating_mul(1000)
    }

    /// Makes the node register again immediately, with changed details.
    fn announce(&mut self) {
        self.lease = None;
        self.due_ms = 0;
    }

    /// Ends the lease of an id that this node has given up, and makes the node register with the new id immediately.
    fn leave(&mut self) {
        if let Some(lease) = self.lease.take()
            && let Err(error) = self.watcher.coordinator.end(&lease)
        {
            // The lease will expire anyway.
            self.errors.note(&error.to_string());
        }
        self.watcher.note_lease(None);
        (self.has_registered, self.due_ms) = (false, 0);
    }

    /// Renews the lease if a renewal is due.
    fn keep(&mut self) {
        let sent_ms = boot_ms();
        if sent_ms < self.due_ms {
            return;
        }
        if self.lets_lease_end(sent_ms) {
            return self.finish_installation(sent_ms);
        }
        let result = match &self.lease {
            Some(lease) => self.watcher.coordinator.renew(lease),
            None => self.register(),
        };
        let confirmed = result.map_err(RenewalError::from).and_then(|mut lease| {
            // All other nodes reckon with the TTL of their setting, so a longer lease must not make this node serve
            // longer. The time limits of a renewal follow from the same TTL.
            lease.ttl = lease.ttl.min(self.watcher.ttl);
            self.must_reassert |= self.lease.is_none();
            self.watcher.note_lease(Some(lease.clone()));
            let lease = self.lease.insert(lease).clone();
            self.confirm(&lease, sent_ms)
        });
        match confirmed {
            Ok(()) => {
                self.errors.clear();
                self.due_ms = sent_ms + self.ttl_ms() / RENEWALS_PER_TTL;
            }
            Err(error) => {
                let again_ms = sent_ms + self.ttl_ms() / RENEWALS_PER_TTL / 2;
                self.due_ms = again_ms.max(boot_ms() + RETRY_PAUSE_MS);
                self.note_failure(&error);
            }
        }
    }

    /// True if the newest document could not be put in force for a whole TTL, so that no renewal counted during this
    /// time. This node then lets its lease end, so that another node can be promoted.
    pub(super) fn lets_lease_end(&self, now_ms: u64) -> bool {
        let since_ms = self.unfinished_since_ms;
        since_ms.is_some_and(|since_ms| now_ms.saturating_sub(since_ms) > self.ttl_ms())
    }

    /// Tries again to put the newest document in force, without a renewal.
    fn finish_installation(&mut self, now_ms: u64) {
        self.due_ms = now_ms + self.ttl_ms() / RENEWALS_PER_TTL / 2;
        match self.watcher.install_newest(self.confirmation_max()) {
            Ok(Installation::Unfinished) => {}
            Ok(Installation::InForce | Installation::Refused(_)) => {
                (self.unfinished_since_ms, self.due_ms) = (None, 0);
            }
            Err(error) => self.errors.note(&error.to_string()),
        }
    }

    /// The time limit for installing the newest document, and for committing a change.
    fn confirmation_max(&self) -> Duration {
        Duration::from_millis(self.ttl_ms() / CONFIRMATION_PARTS)
    }

    fn register(&mut self) -> Result<Lease, CoordinatorError> {
        let watcher = Arc::clone(&self.watcher);
        let own = to_coordinator(&watcher.own()).map_err(CoordinatorError::Rejected)?;
        let claim = if self.has_registered { Claim::Resume } else { Claim::Start };
        let lease = watcher.coordinator.register(&own, watcher.ttl, claim)?;
        self.has_registered = true;
        let (granted, requested) = (lease.ttl.seconds(), watcher.ttl.seconds());
        let is_known = self.granted_ttl.replace(lease.ttl) == Some(lease.ttl);
        if lease.expires_at.is_some() && granted > requested && !is_known {
            watcher.shared.log.warning(format_args!(
                "Cluster: etcd granted a lease of {granted} s, but cluster-node-timeout requests {requested} s, so a \
                 failover takes up to {granted} s: etcd's minimum is one and a half times its election timeout"
            ));
        }
        Ok(lease)
    }

    /// Puts a lease renewal into effect: installs the newest document, then extends the lease deadline. If this node
    /// does not understand the document, the deadline stays as it is.
    fn confirm(&mut self, lease: &Lease, sent_ms: u64) -> Result<(), RenewalError> {
        let refusal = match self.watcher.install_newest(self.confirmation_max())? {
            Installation::InForce => None,
            Installation::Refused(refusal) => Some(refusal),
            Installation::Unfinished => {
                self.unfinished_since_ms.get_or_insert(sent_ms);
                return Err(RenewalError::Unfinished);
            }
        };
        self.unfinished_since_ms = None;
        let contact =
            if refusal.is_some() { CoordinatorState::Stale } else { CoordinatorState::Ok };
        self.watcher.publish_coordinator_state(contact);
        // A node that does not understand the newest document does not know its role, so it lets its deadline pass.
        if refusal.is_some_and(|refusal| TopologyWatcher::is_incomprehensible(&refusal)) {
            return Ok(());
        }
        if self.must_reassert && !self.watcher.is_static() {
            self.correct_address()?;
            self.reassert()?;
        }
        self.must_reassert = false;
        if !self.watcher.is_static() {
            self.record_ttl()?;
        }
        let ttl_ms = lease.ttl.seconds().saturating_mul(1000);
        let renewed = failover::Lease { renewed_ms: sent_ms, ttl_ms };
        self.watcher.deadline.confirm(self.watcher.state, lease.expires_at.map(|_| renewed));
        if !self.watcher.is_static() {
            self.clear_former_ttl();
        }
        Ok(())
    }

    /// If a member has registered with an address that differs from the one in the document, corrects the document.
    fn correct_address(&self) -> Result<(), RenewalError> {
        let own = self.watcher.own();
        let in_force = self.watcher.state.in_force();
        let known = in_force.topology.as_deref().and_then(|topology| topology.members.get(&own.id));
        if known.is_none_or(|known| known.is_same_place(&own.member)) {
            return Ok(());
        }
        let edit = |basis: &ChangeBasis<'_>| correct_member(basis.topology, basis.change, &own);
        let log = &self.watcher.shared.log;
        match self.commit(&edit) {
            Ok(()) => {
                let address = own.member.address();
                log.notice(format_args!("Cluster: this node has a new address: {address}"));
                Ok(())
            }
            // The node continues to serve at its old address.
            Err(RenewalError::Reassertion(CommitError::Refused(error))) => {
                log.warning(format_args!(
                    "Cluster: the address of this node was rejected: {error}"
                ));
                Ok(())
            }
            other => other,
        }
    }

    /// If the document has another TTL of this node, records the TTL in the document. Only a primary with a shorter TTL
    /// in the document must succeed: the next primary would not wait long enough for the end of its lease.
    fn record_ttl(&self) -> Result<(), RenewalError> {
        let (own, ttl) = (self.watcher.state.run(), self.watcher.ttl.seconds());
        let known = || {
            let in_force = self.watcher.state.in_force();
            in_force.topology.as_deref()?.members.get(&own.node).map(|member| member.ttl)
        };
        if known().is_none_or(|known| known == ttl) {
            return Ok(());
        }
        let result = self.commit(&|basis| record_ttl(basis.topology, basis.change, own.node, ttl));
        let is_primary = self.watcher.state.in_force().map.role() == MapRole::Primary;
        if is_primary && known().is_some_and(|known| known < ttl) { result } else { Ok(()) }
    }

    /// If this node serves as a primary, removes the TTLs of removed nodes from its shard. A failure is repeated with
    /// the next renewal.
    fn clear_former_ttl(&self) {
        let state = self.watcher.state;
        let in_force = state.in_force();
        let Some((shard, term)) = in_force.map.own_shard() else { return };
        let topology = in_force.topology.as_deref();
        let has_former = topology
            .and_then(|topology| topology.shard(shard))
            .is_some_and(|shard| shard.former_ttl > 0);
        if !has_former || in_force.map.role() != MapRole::Primary || state.is_fenced() {
            return;
        }
        let run = state.run();
        let edit = |basis: &ChangeBasis<'_>| {
            clear_former_ttl(basis.topology, basis.change, shard, term, run)
        };
        let _ = self.commit(&edit);
    }

    /// If this node is a primary that has just registered, commits a change that confirms its role.
    fn reassert(&self) -> Result<(), RenewalError> {
        if self.watcher.state.in_force().map.role() != MapRole::Primary {
            return Ok(());
        }
        let (run, ttl) = (self.watcher.state.run(), self.watcher.ttl.seconds());
        let edit = |basis: &ChangeBasis<'_>| reassert(basis.topology, basis.change, run, ttl);
        match self.commit(&edit) {
            // Another node is the primary by now. This node must not serve based on the earlier document.
            Err(RenewalError::Reassertion(CommitError::Refused(
                ChangeError::NotOfShard { .. } | ChangeError::UnknownNode(_),
            ))) => match self.watcher.state.in_force().map.role() {
                MapRole::Primary => Err(RenewalError::Unfinished),
                _ => Ok(()),
            },
            other => other,
        }
    }

    /// Commits a change without missing the next renewal.
    fn commit(&self, edit: &dyn Fn(&ChangeBasis<'_>) -> Edit) -> Result<(), RenewalError> {
        self.watcher.commit_within(self.confirmation_max(), edit).map_err(RenewalError::Reassertion)
    }

    fn note_failure(&mut self, error: &RenewalError) {
        let error = match error {
            RenewalError::Coordinator(error) => error,
            RenewalError::Unfinished => {
                self.errors.note(
                    "the newest topology is not in force yet: a slow script or a long command runs",
                );
                return;
            }
            RenewalError::Reassertion(error) => {
                self.errors
                    .note(&format!("its address, role or TTL is not in the topology yet: {error}"));
                return;
            }
        };
        let contact = match error {
            CoordinatorError::NoSpace => CoordinatorState::Frozen,
            _ => CoordinatorState::Unreachable,
        };
        self.watcher.publish_coordinator_state(contact);
        match error {
            CoordinatorError::Stopped => {}
            CoordinatorError::LeaseLost => {
                let is_bound_to_process =
                    self.lease.as_ref().is_some_and(|lease| lease.expires_at.is_none());
                if is_bound_to_process {
                    // Another process has registered this id.
                    self.watcher.deadline.fence(self.watcher.state);
                }
                self.watcher.deadline.end_lease();
                self.watcher.note_lost_lease();
                self.lease = None;
                self.watcher.note_lease(None);
                self.due_ms = 0;
                self.watcher.shared.log.warning(format_args!(
                    "Cluster: the lease of this node has expired; it registers again"
                ));
            }
            CoordinatorError::NodeIdTaken { details, .. } => {
                self.watcher.deadline.fence(self.watcher.state);
                let other = Registration::parse(details).map(|other| other.member.address());
                let address =
                    other.map(|address| format!("; that process announces the address {address}"));
                self.errors.note(&format!("{error}{}", address.unwrap_or_default()));
            }
            error => self.errors.note(&error.to_string()),
        }
    }
}
