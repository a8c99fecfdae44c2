//! The state that the threads of the topology share, and the installation of documents.
//!
//! Any thread may install a document: the thread that waits for events, the thread that renews the lease, and a thread
//! that has committed a change. They do so one at a time ([`DocumentLock`]). A document is put in force on worker 0
//! while all other workers are quiesced, so that no two workers use different versions.
//!
//! No thread holds a lock of this state while it calls the coordinator. Only [`DocumentLock`] is held during
//! quiescence, and the thread that renews the lease waits for it only for a limited time.

use super::deadline::LeaseDeadline;
use super::document::{DocumentLock, DocumentState};
use super::files::TopologyFiles;
use super::identity::{self, node_id};
use super::registered::RegisteredNodes;
use super::role;
use super::signal::TopologySignal;
use super::status::LastContact;
use brisk_cluster::document::{
    DocumentError, InstallError, Registration, Shard, Topology, check_installation,
};
use brisk_cluster::failover::{
    FailoverSettings, FailureDetector, LeaseHorizon, NewTerm, SentAcks, longest_ttl_ms,
    serves_from_ms,
};
use brisk_cluster::id::{ChangeId, NodeId, NodeRun, ShardId};
use brisk_cluster::map::MapRole;
use brisk_cluster::view::NodeState;
use brisk_coordinate::error::CoordinatorError;
use brisk_coordinate::setting::CoordinatorSetting;
use brisk_coordinate::values::{
    self, ClusterName, ClusterSnapshot, Lease, LeaseTtl, RegisteredNode, Revision,
};
use brisk_coordinate::{CALL_MAX, Coordinator, values::Topology as CoordinatorTopology};
use brisk_node::cluster::{ClusterState, CoordinatorState, InForce, boot_ms};
use brisk_node::core::shared::Shared;
use brisk_structures::poison::EvenPoisoned as _;
use std::collections::BTreeMap;
use std::fmt;
use std::net::IpAddr;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// The parts of a [`TopologyWatcher`].
pub(super) struct WatcherParts {
    pub(super) shared: &'static Shared,
    pub(super) state: &'static ClusterState,
    pub(super) coordinator: Box<dyn Coordinator>,
    pub(super) setting: CoordinatorSetting,
    pub(super) name: ClusterName,
    pub(super) files: TopologyFiles,
    pub(super) routed_ip: Option<IpAddr>,
}

/// The state that the threads of the topology share.
pub(super) struct TopologyWatcher {
    pub(super) shared: &'static Shared,
    pub(super) state: &'static ClusterState,
    pub(super) coordinator: Box<dyn Coordinator>,
    pub(super) setting: CoordinatorSetting,
    name: ClusterName,
    /// Locked while a file is written.
    pub(super) files: Mutex<TopologyFiles>,
    /// The requested TTL of the lease.
    pub(super) ttl: LeaseTtl,
    /// Wakes `brisk-coord`.
    pub(super) signal: TopologySignal,
    /// Wakes `brisk-lease`.
    pub(super) lease_signal: TopologySignal,
    /// Wakes `brisk-files`.
    pub(super) files_signal: TopologySignal,
    pub(super) document: DocumentLock,
    pub(super) registered: Mutex<RegisteredNodes>,
    /// The primary of this node's shard, and the revision of the first document that this process has seen name it.
    first_named: Mutex<Option<(NodeRun, Revision)>>,
    /// The current lease, which is needed by the controller, for the report, and to end the lease on shutdown.
    lease: Mutex<Option<Lease>>,
    /// True if the workers are running. Worker 0 then puts documents in force.
    has_workers: AtomicBool,
    pub(super) deadline: Arc<LeaseDeadline>,
    /// The time until which a primary of an earlier term may hold a lease.
    horizon: Mutex<LeaseHorizon>,
    /// The start time of this process, on the clock of [`boot_ms`].
    started_ms: u64,
    /// Numbers the changes of this process.
    changes: AtomicU64,
    /// True if there is no controller.
    is_vacant: AtomicBool,
    /// True if CLUSTER RESET HARD has changed the id of this node.
    has_new_id: AtomicBool,
    /// True if changed settings have changed the registration.
    has_new_details: AtomicBool,
    /// True if this node was fenced because the document has a shorter TTL of it.
    lacks_ttl: AtomicBool,
    /// True if the watch has had no error since its last events, so that `registered` is current.
    pub(super) is_watch_sound: AtomicBool,
    /// True if the coordinator had no space for the last write.
    is_coordinator_full: AtomicBool,
    /// True if the lease was lost since the watch has read everything.
    has_lost_lease: AtomicBool,
    /// True if this node is in no shard and was a replica before.
    pub(super) has_left_as_replica: AtomicBool,
    /// The local address of the route to etcd.
    routed_ip: Option<IpAddr>,
    pub(super) failures: Mutex<FailureDetector>,
    /// The shard of this node, if it has been the only one since the process started. In that case, a dataset that was
    /// loaded from disk is a copy of this shard's dataset.
    pub(super) shard_at_start: Mutex<Option<ShardId>>,
    /// The last contact with the primary of the shard.
    pub(super) contact: Mutex<Option<LastContact>>,
}

impl fmt::Debug for TopologyWatcher {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TopologyWatcher")
            .field("coordinator", &self.coordinator)
            .finish_non_exhaustive()
    }
}

/// A document that was read, with the revision that was in force before the read began. If the document's revision is
/// lower than that, the coordinator was rolled back. If it is lower only than the current revision, another
/// installation was faster.
#[derive(Debug, Clone, Copy)]
pub(super) struct Found<'t> {
    pub(super) topology: &'t CoordinatorTopology,
    pub(super) known: Revision,
}

/// The result of an installation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Installation {
    /// This document or a later one is in force.
    InForce,
    /// The document in force stays.
    Refused(InstallError),
    /// The time limit has passed, because another thread is installing a document or a slow script or a long command is
    /// running. The thread that follows the events installs the document later.
    Unfinished,
}

impl TopologyWatcher {
    /// Puts the last document of this node in force, then the coordinator's document if it can be read. The workers are
    /// not running yet.
    ///
    /// # Errors
    /// A file is damaged.
    pub(super) fn begin(parts: WatcherParts) -> Result<Arc<TopologyWatcher>, String> {
        let WatcherParts { shared, state, coordinator, setting, name, files, routed_ip } = parts;
        let ttl = identity::lease_ttl(&shared.config());
        let (started_ms, ttl_ms) = (boot_ms(), ttl.seconds().saturating_mul(1000));
        let horizon = match setting {
            CoordinatorSetting::Etcd { .. } => LeaseHorizon::at_start(started_ms, ttl_ms),
            CoordinatorSetting::Local(_) | CoordinatorSetting::Static(_) => LeaseHorizon::default(),
        };
        let watcher = TopologyWatcher {
            shared,
            state,
            coordinator,
            setting,
            name,
            files: Mutex::new(files),
            ttl,
            signal: TopologySignal::default(),
            lease_signal: TopologySignal::default(),
            files_signal: TopologySignal::default(),
            document: DocumentLock::default(),
            registered: Mutex::default(),
            first_named: Mutex::default(),
            lease: Mutex::default(),
            has_workers: AtomicBool::new(false),
            deadline: Arc::default(),
            horizon: Mutex::new(horizon),
            started_ms,
            changes: AtomicU64::new(0),
            is_vacant: AtomicBool::new(true),
            has_new_id: AtomicBool::new(false),
            has_new_details: AtomicBool::new(false),
            lacks_ttl: AtomicBool::new(false),
            is_watch_sound: AtomicBool::new(false),
            is_coordinator_full: AtomicBool::new(false),
            has_lost_lease: AtomicBool::new(false),
            has_left_as_replica: AtomicBool::new(false),
            routed_ip,
            failures: Mutex::new(FailureDetector::new(ttl_ms)),
            shard_at_start: Mutex::default(),
            contact: Mutex::default(),
        };
        // The file of `static:` is authoritative, and an operator may replace it with any other.
        if !watcher.is_static()
            && let Some(last) = watcher.last_topology()?
        {
            watcher.put_in_force(Arc::new(last), None);
            *watcher.shard_at_start.lock().even_poisoned() =
                state.in_force().map.own_shard().map(|(shard, _)| shard);
        }
        watcher.write_nodes_file();
        if let Err(error) = watcher.install_newest(CALL_MAX) {
            let note = "it serves no requests until it has read the topology";
            shared.log.warning(format_args!("Cluster: {error}; {note}"));
        }
        watcher.has_workers.store(true, Ordering::SeqCst);
        Ok(Arc::new(watcher))
    }

    fn last_topology(&self) -> Result<Option<Topology>, String> {
        self.files.lock().even_poisoned().last_topology()
    }

    /// Makes later documents take effect although no worker is running.
    #[cfg(test)]
    pub(super) fn install_without_workers(&self) {
        self.has_workers.store(false, Ordering::SeqCst);
    }

    /// Hands over, ends the lease, and stops the threads.
    pub(super) fn stop(&self) {
        self.state.switches.stop();
        // A planned switch before the shutdown has already handed over, unless it failed.
        self.hand_over();
        for signal in [&self.signal, &self.lease_signal, &self.files_signal] {
            signal.stop();
        }
        // If the coordinator was not reached before, calling it would only delay the shutdown.
        let lease = self.lease.lock().even_poisoned().take();
        if let Some(lease) = lease.filter(|_| self.is_reached())
            && let Err(error) = self.coordinator.end(&lease)
        {
            self.shared.log.warning(format_args!("Cluster: the lease was not released: {error}"));
        }
        self.coordinator.stop();
    }

    /// True if the last renewal of the lease reached the coordinator.
    pub(super) fn is_reached(&self) -> bool {
        self.state.coordinator() != CoordinatorState::Unreachable
    }

    /// Publishes whether the coordinator can be used. Renewals succeed even if etcd is full, so the result of the last
    /// write counts too.
    pub(super) fn publish_coordinator_state(&self, contact: CoordinatorState) {
        if contact == CoordinatorState::Ok && self.is_coordinator_full.load(Ordering::SeqCst) {
            self.state.note_full_coordinator();
        } else {
            self.state.note_coordinator(contact);
        }
    }

    /// Notes that the lease was lost. If etcd has lost its data, it counts its revisions from the beginning again, so
    /// the watch reads everything again, and known revisions are not compared with later ones.
    pub(super) fn note_lost_lease(&self) {
        *self.first_named.lock().even_poisoned() = None;
        self.has_lost_lease.store(true, Ordering::SeqCst);
    }

    /// Returns true once after the lease was lost.
    pub(super) fn take_lost_lease(&self) -> bool {
        self.has_lost_lease.swap(false, Ordering::SeqCst)
    }

    /// Notes the result of a write: whether the coordinator had no space for it.
    pub(super) fn note_write_result(&self, is_full: bool) {
        let was_full = self.is_coordinator_full.swap(is_full, Ordering::SeqCst);
        let replaced = match (was_full, is_full) {
            (false, true) => CoordinatorState::Ok,
            (true, false) => CoordinatorState::Frozen,
            _ => return,
        };
        if self.state.coordinator() == replaced {
            self.publish_coordinator_state(CoordinatorState::Ok);
        }
    }

    /// True for `static:`, where nothing changes and there is no failover.
    pub(super) const fn is_static(&self) -> bool {
        matches!(self.setting, CoordinatorSetting::Static(_))
    }

    /// True if a lease can end while the process lives.
    pub(super) const fn has_expiring_leases(&self) -> bool {
        matches!(self.setting, CoordinatorSetting::Etcd { .. })
    }

    /// The settings of the controller that also concern other nodes.
    pub(super) fn failover_settings(&self) -> FailoverSettings {
        let config = self.shared.config();
        let cluster = &config.cluster;
        let count = |number: i64| usize::try_from(number).unwrap_or_default();
        FailoverSettings {
            ttl_ms: self.ttl.seconds().saturating_mul(1000),
            validity_factor: cluster.cluster_replica_validity_factor.max(0).unsigned_abs(),
            init_shards: count(cluster.cluster_init_shards),
            init_replicas: count(cluster.cluster_init_replicas),
        }
    }

    pub(super) fn name(&self) -> &str {
        self.name.as_str()
    }

    /// The registration of this node.
    pub(super) fn own(&self) -> Registration {
        self.state.in_force().own.clone()
    }

    /// Applies changed settings to the registration. If it has changed, the node registers again.
    pub(super) fn refresh_own(&self) {
        let config = self.shared.config();
        let in_force = self.state.in_force();
        // A fixed topology keeps its addresses.
        let fixed = in_force.topology.as_deref().filter(|_| self.is_static());
        let has_changed = self.state.change_own(|own| {
            let fixed = fixed.and_then(|topology| topology.members.get(&own.id));
            let announced = || identity::member(&config, self.routed_ip);
            own.member = fixed.cloned().unwrap_or_else(announced);
            own.no_failover = config.cluster.cluster_replica_no_failover;
        });
        if has_changed {
            self.has_new_details.store(true, Ordering::SeqCst);
            self.lease_signal.wake();
        }
    }

    /// Gives this node, which must not be a member, another id.
    pub(super) fn adopt_id(&self, id: NodeId) {
        // Ensure that no document is installed during this call.
        let document = self.document.take(None);
        let state = self.state;
        self.when_quiesced(true, move |_| {
            state.change_own(|own| own.id = id);
        });
        drop(document);
        // Write the id before the node registers, so that it restarts with this id after a crash.
        self.write_nodes_file();
        self.has_new_id.store(true, Ordering::SeqCst);
        self.lease_signal.wake();
    }

    /// Returns true once after this node was fenced because the document has a shorter TTL of it.
    pub(super) fn take_lacking_ttl(&self) -> bool {
        self.lacks_ttl.swap(false, Ordering::SeqCst)
    }

    /// Fences this node if the document that is being installed names it as a primary with a shorter TTL than that of
    /// its lease. `brisk-lease` then records the TTL before the next renewal counts.
    fn check_ttl(&self, topology: &Topology) {
        let own = self.state.run();
        let is_primary =
            topology.shard_of(own.node).and_then(Shard::primary_run).is_some_and(|run| run == own);
        let known = topology.members.get(&own.node).map(|member| member.ttl);
        if self.has_expiring_leases()
            && is_primary
            && known.is_some_and(|known| known < self.ttl.seconds())
        {
            self.deadline.fence(self.state);
            self.lacks_ttl.store(true, Ordering::SeqCst);
            self.lease_signal.wake();
        }
    }

    /// Returns true once after this node got another id.
    pub(super) fn take_new_id(&self) -> bool {
        self.has_new_id.swap(false, Ordering::SeqCst)
    }

    /// Returns true once after the registration has changed.
    pub(super) fn take_new_details(&self) -> bool {
        self.has_new_details.swap(false, Ordering::SeqCst)
    }

    /// Notes the current lease.
    pub(super) fn note_lease(&self, lease: Option<Lease>) {
        *self.lease.lock().even_poisoned() = lease;
    }

    /// The current lease.
    pub(super) fn lease(&self) -> Option<Lease> {
        self.lease.lock().even_poisoned().clone()
    }

    /// The id of the next change of this process.
    pub(super) fn next_change(&self) -> ChangeId {
        let number = self.changes.fetch_add(1, Ordering::Relaxed) + 1;
        ChangeId { writer: self.state.run(), number }
    }

    /// The nodes with a lease.
    pub(super) fn registered(&self) -> BTreeMap<NodeId, Registration> {
        self.registered.lock().even_poisoned().nodes.clone()
    }

    pub(super) fn set_registered(&self, nodes: &[RegisteredNode]) {
        self.registered.lock().even_poisoned().replace(nodes);
        self.signal.wake();
    }

    pub(super) fn note_registered(&self, node: &RegisteredNode) {
        self.registered.lock().even_poisoned().note(node);
        self.signal.wake();
    }

    pub(super) fn note_removed(&self, node: values::NodeId) {
        self.registered.lock().even_poisoned().remove(node);
        self.signal.wake();
    }

    /// Notes which node is the controller, as the watch reports it.
    pub(super) fn note_controller(&self, controller: values::Controller) {
        self.state.set_controller(node_id(controller.node));
    }

    /// Notes that there is no controller.
    pub(super) fn note_vacancy(&self) {
        self.state.set_controller(None);
        self.is_vacant.store(true, Ordering::SeqCst);
        self.signal.wake();
    }

    /// Returns true once after the controller has gone.
    pub(super) fn take_vacancy(&self) -> bool {
        self.is_vacant.swap(false, Ordering::SeqCst)
    }

    /// The revision of the document in force.
    pub(super) fn known_revision(&self) -> Revision {
        self.document.revision()
    }

    /// Reads the document and installs it if it is newer. Both together take at most `limit`.
    ///
    /// # Errors
    /// The coordinator cannot be reached.
    pub(super) fn install_newest(&self, limit: Duration) -> Result<Installation, CoordinatorError> {
        let (known, until) = (self.known_revision(), Instant::now() + limit);
        let topology = self.coordinator.read_within(limit)?;
        Ok(self.install(Found { topology: &topology, known }, until))
    }

    /// Reads the topology and the nodes, and installs the topology if it is newer. Both together take at most `limit`.
    ///
    /// # Errors
    /// The coordinator cannot be reached.
    pub(super) fn snapshot(
        &self,
        limit: Duration,
    ) -> Result<(ClusterSnapshot, Installation), CoordinatorError> {
        let (known, until) = (self.known_revision(), Instant::now() + limit);
        let snapshot = self.coordinator.snapshot_within(limit)?;
        let found = Found { topology: &snapshot.topology, known };
        let installation = self.install(found, until);
        Ok((snapshot, installation))
    }

    /// Installs a document unless it is in force. Waits until it is in force, but no longer than `until`. A rejection
    /// is logged and counted once per document.
    pub(super) fn install(&self, found: Found<'_>, until: Instant) -> Installation {
        let until = Some(until);
        let revision = found.topology.revision;
        // If the document is not newer, return without waiting for the lock.
        if revision == self.document.revision() && found.topology.document.is_some() {
            return Installation::InForce;
        }
        let Some(guard) = self.document.take(until) else { return Installation::Unfinished };
        let mut document = guard.state();
        let is_overtaken = revision < document.revision && found.known < document.revision;
        if is_overtaken || (revision == document.revision && found.topology.document.is_some()) {
            return Installation::InForce;
        }
        if let Some((refused, error)) = document.refused
            && refused == revision
        {
            return Installation::Refused(error);
        }
        let has_changed = match self.examine(found.topology.document.as_deref()) {
            Ok(None) => false,
            Ok(Some(topology)) => {
                if !self.put_in_force(Arc::new(topology), until) {
                    return Installation::Unfinished;
                }
                true
            }
            Err(error) => {
                let metrics = &self.shared.observe.metrics;
                metrics.cluster_documents_refused.fetch_add(1, Ordering::Relaxed);
                self.shared.log.warning(format_args!(
                    "Cluster: the topology document of revision {revision} was rejected: {error}"
                ));
                document.refused = Some((revision, error.clone()));
                guard.set(document);
                return Installation::Refused(error);
            }
        };
        guard.set(DocumentState { revision, refused: None });
        self.note_primary(revision);
        drop(guard);
        // Wake the controller only after a change: it reads the document again, so without this check it would never
        // pause.
        if has_changed {
            self.signal.wake();
        }
        Installation::InForce
    }

    /// The document to put in force. `None` if it is already in force, or if there is none and was none.
    fn examine(&self, json: Option<&[u8]>) -> Result<Option<Topology>, InstallError> {
        let in_force = self.state.in_force();
        let in_force = in_force.topology.as_deref();
        let new = json.map(Topology::parse).transpose()?;
        if let (Some(new), Some(old)) = (&new, in_force)
            && (new.epoch, new.change) == (old.epoch, old.change)
        {
            return Ok(None);
        }
        check_installation(self.name(), in_force, new.as_ref())?;
        Ok(new)
    }

    /// True if this node cannot parse a rejected document. It must then not serve based on the document in force.
    pub(super) const fn is_incomprehensible(error: &InstallError) -> bool {
        matches!(error, InstallError::Invalid(DocumentError::Format(_)))
    }

    /// Returns false if the document could not be put in force before `until` or the server shuts down.
    fn put_in_force(&self, topology: Arc<Topology>, until: Option<Instant>) -> bool {
        let before = self.state.in_force();
        let own_before =
            before.map.own_shard().map(|(shard, term)| (before.map.role(), shard, term));
        // Do this before the document is in force, because from then on this node may serve.
        self.check_ttl(&topology);
        let has_ended_acks = self.note_term(&topology, &before);
        let own = self.own();
        let own_next = topology.shard_of(own.id);
        let own_next =
            own_next.map(|shard| (shard.primary_run() == Some(own.run()), shard.id, shard.term));
        let is_new_role = own_next
            != own_before.map(|(role, shard, term)| (role == MapRole::Primary, shard, term));
        let (shard_before, shard_next) =
            (own_before.map(|(_, shard, _)| shard), own_next.map(|(_, shard, _)| shard));
        if shard_before.is_some() && shard_before != shard_next {
            // The dataset is not a copy of the next shard's dataset, even if this node belonged to that shard before.
            *self.shard_at_start.lock().even_poisoned() = None;
            *self.contact.lock().even_poisoned() = None;
        }
        let (state, new) = (self.state, Arc::clone(&topology));
        let deadline = Arc::clone(&self.deadline);
        if self.has_workers.load(Ordering::SeqCst) {
            // A slow script must not prevent this node from renewing its lease. The script sees the new document from
            // its next command on. A change of the role waits until the script ends.
            let keeps_role = role::keeps_role(self.shared, &topology, &own);
            let is_done = self.when_quiesced_within(until, keeps_role, move |core| {
                state.install(Some(Arc::clone(&new)));
                if is_new_role {
                    let is_replica = state.in_force().map.role() == MapRole::Replica;
                    deadline.begin_role(state, is_replica);
                }
                role::follow_document(core, state);
            });
            if !is_done {
                if has_ended_acks {
                    // According to a later document, this node may stay a replica of the same primary.
                    self.shared.replication.upstream.resume_acks();
                }
                return false;
            }
            // Wake idle workers so that they end blocked commands and subscriptions on slots that this node no longer
            // serves.
            self.shared.mailboxes.wake_all();
        } else {
            state.install(Some(new));
            role::prepare(self.shared, state);
        }
        // At the start, keys may have been written outside of the cluster since this node was a replica.
        let has_workers = self.has_workers.load(Ordering::SeqCst);
        if has_workers && (own_before.is_some() || own_next.is_some()) {
            let was_replica = own_before.is_some_and(|(role, ..)| role == MapRole::Replica);
            let has_left = was_replica && own_next.is_none();
            self.has_left_as_replica.store(has_left, Ordering::SeqCst);
        }
        role::log_change(self.shared, state, own_before);
        if let Some((true, shard, term)) = own_next.filter(|_| is_new_role)
            && let Some(left_ms) = self.deadline.wait_left_ms()
        {
            self.shared.log.notice(format_args!(
                "Cluster: shard {shard} term {term}: this node serves in {left_ms} ms, because an earlier primary may \
                 serve until then"
            ));
        }
        self.files_signal.wake();
        true
    }

    /// If this node begins a term as the primary, notes the time from which it may serve, because an earlier primary
    /// may serve until then. The node also stops acknowledging. Returns true if it has stopped its acknowledgements.
    fn note_term(&self, topology: &Topology, before: &InForce) -> bool {
        let run = self.state.run();
        let Some(shard) = topology.shard_of(run.node) else { return false };
        let installed_ms = boot_ms();
        let topologies = [before.topology.as_deref(), Some(topology)];
        let ttl_ms = longest_ttl_ms(self.ttl.seconds().saturating_mul(1000), shard.id, &topologies);
        let own_before = before.map.own_shard();
        let mut horizon = self.horizon.lock().even_poisoned();
        horizon.note_term(own_before, shard, installed_ms, ttl_ms);
        let is_known =
            before.map.role() == MapRole::Primary && own_before == Some((shard.id, shard.term));
        if is_known || shard.primary_run() != Some(run) {
            return false;
        }
        let acks = self.shared.replication.upstream.end_acks();
        let started_ms = self.started_ms;
        let from_ms = serves_from_ms(&NewTerm {
            cause: shard.cause,
            installed_ms,
            ttl_ms,
            has_expiring_leases: self.has_expiring_leases(),
            has_or_had_replicas: shard.has_or_had_replicas(),
            horizon: *horizon,
            acks: SentAcks {
                started_ms,
                last_ms: acks.last_ms.unwrap_or(started_ms),
                earlier_ms: acks.earlier_ms.unwrap_or(started_ms),
            },
            is_primary_restarted: self.is_primary_restarted(shard, before),
        });
        if from_ms > installed_ms {
            self.deadline.wait_until(self.state, from_ms);
        }
        true
    }

    /// Notes that the document of this revision, which is in force, names the primary of this node's shard. Later
    /// documents that name the same process change nothing: the process may have restarted in the meantime.
    pub(super) fn note_primary(&self, revision: Revision) {
        let in_force = self.state.in_force();
        let topology = in_force.topology.as_deref();
        let shard = topology.and_then(|topology| topology.shard_of(in_force.map.own()));
        let run = shard.and_then(Shard::primary_run);
        let mut named = self.first_named.lock().even_poisoned();
        if named.map(|(run, _)| run) != run {
            *named = run.map(|run| (run, revision));
        }
    }

    /// True if this node follows the primary of the previous term of `shard` and a later process of that primary is
    /// registered. The watch may be later than the document in force and still report an earlier process.
    pub(super) fn is_primary_restarted(&self, shard: &Shard, before: &InForce) -> bool {
        let is_next = before.map.role() == MapRole::Replica
            && before
                .map
                .own_shard()
                .is_some_and(|(id, term)| id == shard.id && term.next() == shard.term);
        if !is_next || role::differs(self.shared, self.state) {
            return false;
        }
        let old = before.topology.as_deref().and_then(|old| old.shard(shard.id)?.primary_run());
        let registered = self.registered.lock().even_poisoned();
        let named = *self.first_named.lock().even_poisoned();
        old.is_some_and(|old| {
            let named_at = named.filter(|(run, _)| *run == old).map(|(_, revision)| revision.0);
            registered.seen(old.node).is_some_and(|seen| seen.is_later_than(old, named_at))
        })
    }

    /// Marks all members of the document as alive. Used with `static:`, where no node has a lease.
    pub(super) fn set_all_alive(&self) {
        let in_force = self.state.in_force();
        let members = in_force.topology.iter().flat_map(|topology| topology.members.keys());
        let alive = |id: &NodeId| (*id, NodeState { is_alive: true, ..NodeState::default() });
        self.state.set_node_states(members.map(alive).collect());
    }
}
