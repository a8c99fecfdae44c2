//! The state that the threads of the topology share, and the installation of documents.
//!
//! Any thread may install a document: the one that waits for events, the one that renews the lease, and one that
//! has committed a change. A lock makes them do so one after another. A document is put in force on worker 0 while
//! all other workers are quiesced, so that no two workers act by different versions.

use super::deadline::LeaseDeadline;
use super::files::TopologyFiles;
use super::identity::{self, node_id, registration_of};
use super::role;
use super::signal::TopologySignal;
use super::status::LastContact;
use brisk_cluster::document::{
    DocumentError, InstallError, Registration, Shard, Topology, check_installation,
};
use brisk_cluster::failover::{FailureDetector, LeaseHorizon, NewTerm, SentAcks, serves_from_ms};
use brisk_cluster::id::{ChangeId, NodeId, ShardId};
use brisk_cluster::map::{EndpointKind, MapRole};
use brisk_cluster::view::{ClusterView, NodeLife};
use brisk_coordinate::error::CoordinatorError;
use brisk_coordinate::setting::CoordinatorSetting;
use brisk_coordinate::values::{
    self, ClusterName, ClusterSnapshot, Lease, LeaseTtl, RegisteredNode, Revision,
};
use brisk_coordinate::{Coordinator, values::Topology as CoordinatorTopology};
use brisk_node::cluster::{ClusterState, CoordinatorState, InForce, boot_ms};
use brisk_node::core::Core;
use brisk_node::core::mailbox::{Message, Work};
use brisk_node::core::shared::Shared;
use brisk_structures::poison::EvenPoisoned as _;
use std::collections::BTreeMap;
use std::fmt;
use std::net::IpAddr;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{RecvTimeoutError, sync_channel};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// How often a thread that waits for worker 0 checks that the server still runs, and how often it tries again
/// while a slow script prevents quiescence.
const LOOK_AGAIN: Duration = Duration::from_millis(10);

/// The parts of a [`TopologyFollower`].
pub(super) struct FollowerParts {
    pub(super) shared: &'static Shared,
    pub(super) state: &'static ClusterState,
    pub(super) coordinator: Box<dyn Coordinator>,
    pub(super) setting: CoordinatorSetting,
    pub(super) name: ClusterName,
    pub(super) files: TopologyFiles,
    pub(super) ttl: LeaseTtl,
    pub(super) routed_ip: Option<IpAddr>,
}

/// The state that the threads of the topology share.
pub(super) struct TopologyFollower {
    pub(super) shared: &'static Shared,
    pub(super) state: &'static ClusterState,
    pub(super) coordinator: Box<dyn Coordinator>,
    pub(super) setting: CoordinatorSetting,
    name: ClusterName,
    files: TopologyFiles,
    /// The requested TTL of the lease.
    pub(super) ttl: LeaseTtl,
    pub(super) signal: TopologySignal,
    pub(super) document: Mutex<DocumentState>,
    /// The nodes with a lease, as the watch reports them.
    pub(super) registered: Mutex<BTreeMap<NodeId, Registration>>,
    /// The lease, for the end of the process.
    lease: Mutex<Option<Lease>>,
    /// The workers run: documents are put in force by worker 0.
    has_workers: AtomicBool,
    pub(super) deadline: Arc<LeaseDeadline>,
    /// Until when a primary of an earlier term may hold a lease.
    horizon: Mutex<LeaseHorizon>,
    /// The start of this process, on the clock of [`boot_ms`].
    started_ms: u64,
    /// Numbers the changes of this process.
    changes: AtomicU64,
    /// The office of the controller is vacant.
    is_vacant: AtomicBool,
    /// CLUSTER RESET HARD has changed the id of this node.
    has_new_id: AtomicBool,
    /// The address from which etcd is reached.
    routed_ip: Option<IpAddr>,
    /// CONFIG SET has changed the registration of this node.
    has_new_settings: AtomicBool,
    pub(super) failures: Mutex<FailureDetector>,
    /// The shard of this node at the start of the process: a dataset from disk is a copy of that shard's.
    pub(super) shard_at_start: Option<ShardId>,
    /// The last contact with the primary of the shard.
    pub(super) contact: Mutex<Option<LastContact>>,
}

/// The document that was examined last.
#[derive(Debug, Default)]
pub(super) struct DocumentState {
    /// The coordinator's revision of the document in force.
    revision: Revision,
    refused: Option<(Revision, InstallError)>,
}

impl fmt::Debug for TopologyFollower {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TopologyFollower")
            .field("coordinator", &self.coordinator)
            .finish_non_exhaustive()
    }
}

/// A document that was read, with the revision that was in force before the read began. A lower revision than
/// that is a rollback; one that is only lower by now was overtaken.
#[derive(Debug, Clone, Copy)]
pub(super) struct Found<'t> {
    pub(super) topology: &'t CoordinatorTopology,
    pub(super) known: Revision,
}

impl TopologyFollower {
    /// Puts the last document of this node in force, then that of the coordinator if it can be read. The workers do
    /// not run yet.
    ///
    /// # Errors
    /// A file is damaged.
    pub(super) fn begin(parts: FollowerParts) -> Result<Arc<TopologyFollower>, String> {
        let FollowerParts { shared, state, coordinator, setting, name, files, ttl, routed_ip } =
            parts;
        let (started_ms, ttl_ms) = (boot_ms(), ttl.seconds().saturating_mul(1000));
        let horizon = match setting {
            CoordinatorSetting::Etcd { .. } => LeaseHorizon::at_start(started_ms, ttl_ms),
            CoordinatorSetting::Local(_) | CoordinatorSetting::Static(_) => LeaseHorizon::default(),
        };
        let mut follower = TopologyFollower {
            shared,
            state,
            coordinator,
            setting,
            name,
            files,
            ttl,
            signal: TopologySignal::default(),
            document: Mutex::default(),
            registered: Mutex::default(),
            lease: Mutex::default(),
            has_workers: AtomicBool::new(false),
            deadline: Arc::default(),
            horizon: Mutex::new(horizon),
            started_ms,
            changes: AtomicU64::new(0),
            is_vacant: AtomicBool::new(true),
            has_new_id: AtomicBool::new(false),
            routed_ip,
            has_new_settings: AtomicBool::new(false),
            failures: Mutex::new(FailureDetector::new(ttl_ms)),
            shard_at_start: None,
            contact: Mutex::default(),
        };
        // The file of `static:` is the truth by itself, and an operator may replace it by any other.
        if !follower.is_static()
            && let Some(last) = follower.files.last_topology()?
        {
            follower.put_in_force(Arc::new(last));
            follower.shard_at_start = state.in_force().map.own_shard().map(|(shard, _)| shard);
        }
        follower.write_nodes_file();
        if let Err(error) = follower.install_newest() {
            let note = "it serves no requests until it has read the topology";
            shared.log.warning(format_args!("Cluster: {error}; {note}"));
        }
        follower.has_workers.store(true, Ordering::SeqCst);
        Ok(Arc::new(follower))
    }

    /// Hands over, ends the lease and the threads.
    pub(super) fn stop(&self) {
        self.state.switches.stop();
        // A switch before the shutdown has handed over already, unless it failed.
        self.hand_over();
        self.signal.stop();
        // A coordinator that was not reached before would only delay the shutdown.
        let is_reached = self.state.coordinator() != CoordinatorState::Unreachable;
        if let Some(lease) = self.lease.lock().even_poisoned().take().filter(|_| is_reached)
            && let Err(error) = self.coordinator.end(&lease)
        {
            self.shared.log.warning(format_args!("Cluster: the lease was not released: {error}"));
        }
        self.coordinator.stop();
    }

    /// True for `static:`: nothing changes, and there is no failover.
    pub(super) const fn is_static(&self) -> bool {
        matches!(self.setting, CoordinatorSetting::Static(_))
    }

    /// True if a lease can end while the process lives.
    pub(super) const fn has_expiring_leases(&self) -> bool {
        matches!(self.setting, CoordinatorSetting::Etcd { .. })
    }

    pub(super) fn name(&self) -> &str {
        self.name.as_str()
    }

    /// The registration of this node.
    pub(super) fn own(&self) -> Registration {
        self.state.in_force().own.clone()
    }

    /// Takes changed settings into the registration.
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
            self.has_new_settings.store(true, Ordering::SeqCst);
            self.signal.wake();
        }
    }

    /// Reports once that the registration of this node has changed, so that it must be announced.
    pub(super) fn take_new_settings(&self) -> bool {
        self.has_new_settings.swap(false, Ordering::SeqCst)
    }

    /// Gives this node, which is no member, another id.
    pub(super) fn adopt_id(&self, id: NodeId) {
        // No document is installed meanwhile.
        let document = self.document.lock().even_poisoned();
        let state = self.state;
        self.when_quiesced(true, move |_| {
            state.change_own(|own| own.id = id);
        });
        drop(document);
        self.write_nodes_file();
        self.has_new_id.store(true, Ordering::SeqCst);
        self.signal.wake();
    }

    /// Reports once that this node has another id.
    pub(super) fn take_new_id(&self) -> bool {
        self.has_new_id.swap(false, Ordering::SeqCst)
    }

    /// Notes the lease that the end of the process ends.
    pub(super) fn note_lease(&self, lease: Option<Lease>) {
        *self.lease.lock().even_poisoned() = lease;
    }

    /// The id of the next change of this process.
    pub(super) fn next_change(&self) -> ChangeId {
        let number = self.changes.fetch_add(1, Ordering::Relaxed) + 1;
        ChangeId { writer: self.state.run(), number }
    }

    /// The nodes with a lease.
    pub(super) fn registered(&self) -> BTreeMap<NodeId, Registration> {
        self.registered.lock().even_poisoned().clone()
    }

    pub(super) fn set_registered(&self, nodes: BTreeMap<NodeId, Registration>) {
        *self.registered.lock().even_poisoned() = nodes;
        self.signal.wake();
    }

    pub(super) fn note_registered(&self, node: &RegisteredNode) {
        if let Some(registration) = registration_of(node) {
            self.registered.lock().even_poisoned().insert(registration.id, registration);
            self.signal.wake();
        }
    }

    pub(super) fn note_gone(&self, node: values::NodeId) {
        if let Some(node) = node_id(node) {
            self.registered.lock().even_poisoned().remove(&node);
            self.signal.wake();
        }
    }

    /// Notes that the office of the controller is vacant.
    pub(super) fn note_vacancy(&self) {
        self.is_vacant.store(true, Ordering::SeqCst);
        self.signal.wake();
    }

    /// Reports once that the office of the controller has become vacant.
    pub(super) fn take_vacancy(&self) -> bool {
        self.is_vacant.swap(false, Ordering::SeqCst)
    }

    /// The revision of the document in force.
    pub(super) fn known_revision(&self) -> Revision {
        self.document.lock().even_poisoned().revision
    }

    /// Reads the document and installs it if it is newer. A refused document is no error: the one in force stays,
    /// and the refusal is returned.
    ///
    /// # Errors
    /// The coordinator cannot be reached.
    pub(super) fn install_newest(&self) -> Result<Option<InstallError>, CoordinatorError> {
        let known = self.known_revision();
        let topology = self.coordinator.read()?;
        Ok(self.install(Found { topology: &topology, known }).err())
    }

    /// Reads the topology and the nodes, and installs the topology if it is newer.
    ///
    /// # Errors
    /// The coordinator cannot be reached.
    pub(super) fn snapshot(
        &self,
    ) -> Result<(ClusterSnapshot, Result<(), InstallError>), CoordinatorError> {
        let known = self.known_revision();
        let snapshot = self.coordinator.snapshot()?;
        let installed = self.install(Found { topology: &snapshot.topology, known });
        Ok((snapshot, installed))
    }

    /// Installs a document unless it is in force. Returns after it is in force.
    ///
    /// # Errors
    /// The document was refused: the one in force stays. The refusal is logged and counted once per document.
    pub(super) fn install(&self, found: Found<'_>) -> Result<(), InstallError> {
        let mut document = self.document.lock().even_poisoned();
        let revision = found.topology.revision;
        let is_overtaken = revision < document.revision && found.known < document.revision;
        if is_overtaken || (revision == document.revision && found.topology.document.is_some()) {
            return Ok(());
        }
        if let Some((refused, error)) = &document.refused
            && *refused == revision
        {
            return Err(error.clone());
        }
        let has_changed = match self.examine(found.topology.document.as_deref()) {
            Ok(None) => false,
            Ok(Some(topology)) => {
                self.put_in_force(Arc::new(topology));
                true
            }
            Err(error) => {
                let metrics = &self.shared.observe.metrics;
                metrics.cluster_documents_refused.fetch_add(1, Ordering::Relaxed);
                self.shared.log.warning(format_args!(
                    "Cluster: the topology document of revision {revision} was rejected: {error}"
                ));
                document.refused = Some((revision, error.clone()));
                return Err(error);
            }
        };
        (document.revision, document.refused) = (revision, None);
        drop(document);
        // The woken controller reads the document again: without a change it would never pause.
        if has_changed {
            self.signal.wake();
        }
        Ok(())
    }

    /// The document to put in force; `None` if it is in force already, or if there is none and was none.
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

    /// True if this node cannot know what a refused document says. It must not serve by the document in force.
    pub(super) const fn is_incomprehensible(error: &InstallError) -> bool {
        matches!(error, InstallError::Invalid(DocumentError::Format(_)))
    }

    fn put_in_force(&self, topology: Arc<Topology>) {
        let before = self.state.in_force();
        let own_before =
            before.map.own_shard().map(|(shard, term)| (before.map.role(), shard, term));
        // Before the document is in force: from then on this node may serve.
        self.note_term(&topology, &before);
        let own = self.own();
        let own_next = topology.shard_of(own.id);
        let own_next =
            own_next.map(|shard| (shard.primary_run() == Some(own.run()), shard.id, shard.term));
        let is_new_role = own_next
            != own_before.map(|(role, shard, term)| (role == MapRole::Primary, shard, term));
        let (state, new) = (self.state, Arc::clone(&topology));
        let deadline = Arc::clone(&self.deadline);
        if self.has_workers.load(Ordering::SeqCst) {
            // A slow script must not keep this node from renewing its lease. It sees the new document from its
            // next call on. A change of the role waits for its end.
            let keeps_role = role::keeps_role(self.shared, &topology, &own);
            let is_done = self.when_quiesced(keeps_role, move |core| {
                state.install(Some(Arc::clone(&new)));
                if is_new_role {
                    deadline.begin_role(state);
                }
                role::follow_document(core, state);
            });
            if !is_done {
                return;
            }
            // Idle workers end waits and subscriptions of slots that have left.
            self.shared.mailboxes.wake_all();
        } else {
            state.install(Some(new));
            role::prepare(self.shared, state);
        }
        role::log_change(self.shared, state, own_before);
        self.write_files(&topology);
    }

    /// Notes from when on this node may serve if it begins a term as the primary: an earlier primary may serve until
    /// then. It acknowledges nothing more.
    fn note_term(&self, topology: &Topology, before: &InForce) {
        let run = self.state.run();
        let Some(shard) = topology.shard_of(run.node) else { return };
        let (installed_ms, ttl_ms) = (boot_ms(), self.ttl.seconds().saturating_mul(1000));
        let own_before = before.map.own_shard();
        let mut horizon = self.horizon.lock().even_poisoned();
        horizon.note_term(own_before, shard, installed_ms, ttl_ms);
        let is_known =
            before.map.role() == MapRole::Primary && own_before == Some((shard.id, shard.term));
        if is_known || shard.primary_run() != Some(run) {
            return;
        }
        let acks = self.shared.replication.upstream.end_acks();
        let started_ms = self.started_ms;
        let from_ms = serves_from_ms(&NewTerm {
            cause: shard.cause,
            installed_ms,
            ttl_ms,
            has_expiring_leases: self.has_expiring_leases(),
            has_replicas: !shard.replicas.is_empty(),
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
    }

    /// True if this node follows the primary of the term before `shard`'s, and a later process of that primary is
    /// registered.
    fn is_primary_restarted(&self, shard: &Shard, before: &InForce) -> bool {
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
        old.is_some_and(|old| {
            registered.get(&old.node).is_some_and(|node| node.incarnation > old.incarnation)
        })
    }

    fn write_files(&self, topology: &Topology) {
        self.write_nodes_file();
        if self.is_static() {
            return;
        }
        let written = match topology.to_json() {
            Ok(json) => self.files.write_topology(&json).map_err(|error| error.to_string()),
            Err(error) => Err(error.to_string()),
        };
        if let Err(error) = written {
            // The document is in force all the same: a full disk must not keep a node from following.
            self.shared.log.warning(format_args!("Cluster: cannot write topology.json: {error}"));
        }
    }

    fn write_nodes_file(&self) {
        let (in_force, lives) = (self.state.in_force(), self.state.lives());
        let view = ClusterView {
            topology: in_force.topology.as_deref(),
            own: &in_force.own,
            lives: &lives,
            failed: &in_force.failed,
            last_epochs: in_force.last_epochs,
            endpoint: EndpointKind::Ip,
            is_tls: false,
        };
        if let Err(error) = self.files.write_nodes(&view.nodes_file()) {
            self.shared.log.warning(format_args!("Cluster: cannot write nodes.conf: {error}"));
        }
    }

    /// The facts about nodes for the view, if all members of the document are alive: with `static:` no node has
    /// a lease.
    pub(super) fn set_all_alive(&self) {
        let in_force = self.state.in_force();
        let members = in_force.topology.iter().flat_map(|topology| topology.members.keys());
        let alive = |id: &NodeId| (*id, NodeLife { is_alive: true, ..NodeLife::default() });
        self.state.set_lives(members.map(alive).collect());
    }

    /// Runs `work` on worker 0 while all other workers are quiesced, and waits for its end. Waits while a slow
    /// script prevents quiescence, unless `despite_scripts`: for work that touches no keys. Returns false if the
    /// server shuts down.
    pub(super) fn when_quiesced(
        &self,
        despite_scripts: bool,
        work: impl Fn(&mut Core) + Send + Sync + 'static,
    ) -> bool {
        self.when_quiesced_within(None, despite_scripts, work)
    }

    /// The same, but returns false if a slow script still prevents quiescence at the time `until`. Then the work was
    /// not done.
    pub(super) fn when_quiesced_within(
        &self,
        until: Option<Instant>,
        despite_scripts: bool,
        work: impl Fn(&mut Core) + Send + Sync + 'static,
    ) -> bool {
        let (shared, work) = (self.shared, Arc::new(work));
        loop {
            let (done, is_done) = sync_channel(1);
            let work = Arc::clone(&work);
            let run = move |core: &mut Core| {
                let quiesced = match despite_scripts {
                    true => Ok(Some(core.quiesce_others_despite_scripts())),
                    false => core.quiesce_others(),
                };
                if quiesced.is_ok() {
                    work(core);
                }
                // The receiver is gone only if the server shuts down.
                let _ = done.send(quiesced.is_ok());
            };
            shared.mailboxes.send(0, Message::Run(Work(Box::new(run))));
            let is_done = loop {
                match is_done.recv_timeout(LOOK_AGAIN) {
                    Ok(is_done) => break is_done,
                    Err(RecvTimeoutError::Timeout) if !shared.process.shutdown.is_requested() => {}
                    Err(_) => return false,
                }
            };
            if is_done {
                return true;
            }
            if until.is_some_and(|until| Instant::now() >= until) {
                return false;
            }
            self.signal.pause(LOOK_AGAIN);
        }
    }
}
