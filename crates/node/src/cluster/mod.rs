//! Cluster mode: the topology in force on this node, and the routing of commands based on it.
//!
//! ```text
//!  topology thread ── install ──> ClusterState (shared) ── generation ──> WorkerCluster (one per worker)
//!                  ── set_deadline ──> lease deadline ── begin_turn ──────────┘        │
//!  CLUSTER ADDSLOTS … ── TopologyWriter::commit ──> coordinator            dispatch ── must_route
//! ```
//!
//! | file | about |
//! |---|---|
//! | here | the state that all threads share |
//! | `worker` | a worker's copy, and the check before each command |
//! | `forward` | messages of PUBLISH that are to be sent to other nodes |
//! | `peers` | the connections to other nodes, over which the messages are sent |
//! | `writer` | changes to the topology that commands request; the reports of this node |
//! | `deferred` | changes that transactions and scripts request |
//! | `switch` | requests for planned switches |
//!
//! The topology document is the only source of truth for slots and roles. The topology thread of the server follows the
//! document. It installs each version while all workers are quiesced, so that no two workers use different versions.

mod deferred;
mod forward;
pub mod peers;
mod switch;
mod worker;
mod writer;

pub use deferred::{DeferredChanges, RejectedChanges, TopologyEdit};
pub use forward::{Audience, ForwardQueue};
pub use switch::{
    Departure, HandoverRequest, LOOK_VALUE, PlannedSwitches, SWITCH_OPTION, SwitchRequest,
};
pub use worker::{WorkerCluster, endpoint_kind, route_state};
pub use writer::{ChangeBasis, CommitError, StatusReporter, TopologyWriter};

use arc_swap::ArcSwap;
use brisk_cluster::document::{Registration, Topology, UnassignedNode};
use brisk_cluster::id::{NodeId, NodeRun};
use brisk_cluster::map::{MapRole, SlotMap};
use brisk_cluster::view::{LastEpochs, NodeState};
use brisk_structures::poison::EvenPoisoned as _;
use rustix::time::{ClockId, clock_gettime};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock};

/// The deadline of a node that has never held a lease. A node with this deadline serves nothing.
const NEVER: u64 = 0;

/// Cluster mode of this process. Empty if cluster mode is off.
#[derive(Debug, Default)]
pub struct Cluster {
    state: OnceLock<ClusterState>,
}

impl Cluster {
    /// Turns cluster mode on, before the workers start. `own` is the registration of this run of this node. Later calls
    /// have no effect.
    pub fn enable(&self, own: Registration) {
        // A process calls this only once.
        let _ = self.state.set(ClusterState::new(own));
    }

    /// The state of cluster mode; `None` if it is off.
    #[inline]
    #[must_use]
    pub fn state(&self) -> Option<&ClusterState> {
        self.state.get()
    }
}

/// The state of a node in cluster mode.
#[derive(Debug)]
pub struct ClusterState {
    in_force: ArcSwap<InForce>,
    /// Serializes replacements of `in_force`.
    replacing: Mutex<()>,
    /// Counts installations. A worker whose copy has another number switches to the new version before its next
    /// command.
    generation: AtomicU64,
    /// The lease deadline in milliseconds of [`boot_ms`]. From this time on, the node serves nothing.
    deadline_ms: AtomicU64,
    node_states: ArcSwap<BTreeMap<NodeId, NodeState>>,
    unassigned: ArcSwap<Vec<UnassignedNode>>,
    controller: Mutex<Option<NodeId>>,
    writer: OnceLock<Arc<dyn TopologyWriter>>,
    /// Messages of PUBLISH that are to be sent to other nodes.
    pub forward: ForwardQueue,
    /// Changes that are committed after the reply.
    pub deferred: DeferredChanges,
    /// Requests for planned switches.
    pub switches: PlannedSwitches,
    reporter: OnceLock<Arc<dyn StatusReporter>>,
    /// A [`CoordinatorState`].
    coordinator: AtomicU8,
    /// The last successful renewal of the lease, in milliseconds of [`boot_ms`].
    coordinator_contact_ms: AtomicU64,
    /// True if the topology is a file that never changes.
    is_static: AtomicBool,
}

/// The state of this node's contact with the coordinator.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum CoordinatorState {
    /// The lease is renewed, and the newest document is in force.
    Ok,
    /// The lease is renewed. The newest document was rejected, so an older one is in force.
    Stale,
    /// The coordinator accepts no changes until an operator frees space.
    Frozen,
    /// The lease cannot be renewed.
    Unreachable,
}

impl CoordinatorState {
    /// The state in one word, as CLUSTER INFO shows it.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            CoordinatorState::Ok => "ok",
            CoordinatorState::Stale => "stale",
            CoordinatorState::Frozen => "frozen",
            CoordinatorState::Unreachable => "unreachable",
        }
    }
}

/// The option of REPLCONF with which a replica names the run of the primary that its topology names. If another process
/// has the primary's address, it rejects the replica, which would otherwise copy an empty dataset or one of another
/// shard.
pub const PRIMARY_OPTION: &str = "brisk-primary";

/// The version of the topology that this node uses.
#[derive(Debug)]
pub struct InForce {
    /// This node's registration: its id and announced address.
    pub own: Registration,
    /// The document. `None` before the first one.
    pub topology: Option<Arc<Topology>>,
    pub map: SlotMap,
    /// The members that have failed.
    pub failed: Arc<BTreeSet<NodeId>>,
    pub last_epochs: LastEpochs,
}

impl InForce {
    /// A node as log lines name it: its ID, and its address if it is a member.
    #[must_use]
    pub fn label(&self, node: NodeId) -> String {
        let topology = self.topology.as_deref();
        topology.map_or_else(|| node.to_string(), |topology| topology.label(node))
    }

    /// The next version, with this registration and document.
    fn next(&self, own: Registration, topology: Option<Arc<Topology>>) -> InForce {
        let mut map = SlotMap::new(topology.as_deref(), own.run());
        map.set_failed(&self.failed);
        let last_epochs = match map.own_shard() {
            Some((_, term)) => LastEpochs { document: map.epoch(), term },
            None if own.id == self.own.id => self.last_epochs,
            None => LastEpochs::default(),
        };
        InForce { own, topology, map, failed: Arc::clone(&self.failed), last_epochs }
    }
}

impl ClusterState {
    fn new(own: Registration) -> ClusterState {
        let map = SlotMap::new(None, own.run());
        let (failed, last_epochs) = (Arc::default(), LastEpochs::default());
        let in_force = InForce { own, topology: None, map, failed, last_epochs };
        ClusterState {
            in_force: ArcSwap::from_pointee(in_force),
            replacing: Mutex::default(),
            generation: AtomicU64::new(1),
            deadline_ms: AtomicU64::new(NEVER),
            node_states: ArcSwap::default(),
            unassigned: ArcSwap::default(),
            controller: Mutex::default(),
            writer: OnceLock::new(),
            forward: ForwardQueue::default(),
            deferred: DeferredChanges::default(),
            switches: PlannedSwitches::default(),
            reporter: OnceLock::new(),
            coordinator: AtomicU8::new(CoordinatorState::Unreachable as u8),
            coordinator_contact_ms: AtomicU64::new(0),
            is_static: AtomicBool::new(false),
        }
    }

    /// Notes that the topology is a file that never changes. In this case, any process at a primary's address may be
    /// the primary, even a server other than Brisk.
    pub fn set_static(&self) {
        self.is_static.store(true, Ordering::SeqCst);
    }

    /// True if the topology is a file that never changes.
    pub fn is_static(&self) -> bool {
        self.is_static.load(Ordering::SeqCst)
    }

    /// The id of this run of this node. CLUSTER RESET HARD changes the id of the node.
    #[must_use]
    pub fn run(&self) -> NodeRun {
        self.in_force.load().own.run()
    }

    /// The version in force.
    #[must_use]
    pub fn in_force(&self) -> Arc<InForce> {
        self.in_force.load_full()
    }

    /// Puts a checked document in force. The caller has quiesced all other workers. O(slots + shards).
    pub fn install(&self, topology: Option<Arc<Topology>>) {
        let _replacing = self.replacing.lock().even_poisoned();
        let before = self.in_force();
        self.replace(before.next(before.own.clone(), topology));
    }

    /// Sets the members that have failed. The caller has quiesced all other workers, so that no script sees the cluster
    /// go down between two of its commands. O(slots + shards).
    pub fn set_failed(&self, failed: BTreeSet<NodeId>) {
        let _replacing = self.replacing.lock().even_poisoned();
        let before = self.in_force();
        let (failed, mut map) = (Arc::new(failed), before.map.clone());
        map.set_failed(&failed);
        let (own, topology) = (before.own.clone(), before.topology.clone());
        let last_epochs = before.last_epochs;
        self.replace(InForce { own, topology, map, failed, last_epochs });
    }

    /// Changes this node's registration. The caller has quiesced all other workers if the id changes. Returns true if
    /// the registration has changed. O(slots + shards).
    pub fn change_own(&self, change: impl FnOnce(&mut Registration)) -> bool {
        let _replacing = self.replacing.lock().even_poisoned();
        let before = self.in_force();
        let mut own = before.own.clone();
        change(&mut own);
        let has_changed = own != before.own;
        if has_changed {
            self.replace(before.next(own, before.topology.clone()));
        }
        has_changed
    }

    fn replace(&self, next: InForce) {
        self.in_force.store(Arc::new(next));
        self.generation.fetch_add(1, Ordering::Release);
    }

    /// The number of installations so far.
    #[inline]
    #[must_use]
    pub fn generation(&self) -> u64 {
        self.generation.load(Ordering::Acquire)
    }

    /// Requests a switch before the shutdown at `until_ms`, in Unix ms. Returns false if this node is not a primary or
    /// its shard has no replica.
    pub fn depart(&self, until_ms: u64) -> bool {
        let in_force = self.in_force();
        let own = in_force.map.own();
        let shard = in_force.topology.as_deref().and_then(|topology| topology.shard_of(own));
        let can_depart = in_force.map.role() == MapRole::Primary
            && shard.is_some_and(|shard| !shard.replicas.is_empty());
        if can_depart {
            self.switches.request(SwitchRequest::Depart { until_ms });
        }
        can_depart
    }

    /// Sets the lease deadline, in milliseconds of [`boot_ms`].
    pub fn set_deadline(&self, deadline_ms: u64) {
        self.deadline_ms.store(deadline_ms, Ordering::Release);
    }

    /// Reports whether the lease deadline has passed, so that this node serves nothing.
    #[inline]
    #[must_use]
    pub fn is_fenced(&self) -> bool {
        let deadline = self.deadline_ms.load(Ordering::Acquire);
        deadline != u64::MAX && boot_ms() >= deadline
    }

    /// Milliseconds until the lease deadline; 0 once the node is fenced. `None` if the node needs no lease.
    #[must_use]
    pub fn lease_left_ms(&self) -> Option<u64> {
        let deadline = self.deadline_ms.load(Ordering::Acquire);
        (deadline != u64::MAX).then(|| deadline.saturating_sub(boot_ms()))
    }

    /// The facts about nodes that the document does not contain.
    #[must_use]
    pub fn node_states(&self) -> Arc<BTreeMap<NodeId, NodeState>> {
        self.node_states.load_full()
    }

    /// Replaces the facts about nodes that the document does not contain.
    pub fn set_node_states(&self, node_states: BTreeMap<NodeId, NodeState>) {
        self.node_states.store(Arc::new(node_states));
    }

    /// The registered nodes that belong to no shard, at most
    /// [`UNASSIGNED_MAX`](brisk_cluster::document::UNASSIGNED_MAX).
    #[must_use]
    pub fn unassigned(&self) -> Arc<Vec<UnassignedNode>> {
        self.unassigned.load_full()
    }

    /// Replaces the registered nodes that belong to no shard.
    pub fn set_unassigned(&self, nodes: Vec<UnassignedNode>) {
        self.unassigned.store(Arc::new(nodes));
    }

    /// The node that is the controller, as far as this node knows.
    #[must_use]
    pub fn controller(&self) -> Option<NodeId> {
        *self.controller.lock().even_poisoned()
    }

    /// Notes which node is the controller.
    pub fn set_controller(&self, controller: Option<NodeId>) {
        *self.controller.lock().even_poisoned() = controller;
    }

    /// Sets the writer of changes. Later calls have no effect.
    pub fn set_writer(&self, writer: Arc<dyn TopologyWriter>) {
        // A process calls this only once.
        let _ = self.writer.set(writer);
    }

    /// The writer of changes; `None` until the topology thread runs.
    #[must_use]
    pub fn writer(&self) -> Option<Arc<dyn TopologyWriter>> {
        self.writer.get().cloned()
    }

    /// Sets the reporter of this node's status. Later calls have no effect.
    pub fn set_reporter(&self, reporter: Arc<dyn StatusReporter>) {
        // A process calls this only once.
        let _ = self.reporter.set(reporter);
    }

    /// Notes the result of a renewal of the lease.
    pub fn note_coordinator(&self, coordinator: CoordinatorState) {
        self.coordinator.store(coordinator as u8, Ordering::Release);
        if matches!(coordinator, CoordinatorState::Ok | CoordinatorState::Stale) {
            self.coordinator_contact_ms.store(boot_ms(), Ordering::Release);
        }
    }

    /// Notes that the lease was renewed, but the coordinator had no space for the last write.
    pub fn note_full_coordinator(&self) {
        self.coordinator.store(CoordinatorState::Frozen as u8, Ordering::Release);
        self.coordinator_contact_ms.store(boot_ms(), Ordering::Release);
    }

    /// The contact with the coordinator at the last renewal of the lease.
    #[must_use]
    pub fn coordinator(&self) -> CoordinatorState {
        match self.coordinator.load(Ordering::Acquire) {
            0 => CoordinatorState::Ok,
            1 => CoordinatorState::Stale,
            2 => CoordinatorState::Frozen,
            _ => CoordinatorState::Unreachable,
        }
    }

    /// Milliseconds since the last successful renewal of the lease; `None` before the first.
    #[must_use]
    pub fn coordinator_contact_age_ms(&self) -> Option<u64> {
        let at_ms = self.coordinator_contact_ms.load(Ordering::Acquire);
        (at_ms > 0).then(|| boot_ms().saturating_sub(at_ms))
    }

    /// The status of this node as JSON; `None` until the topology thread runs.
    #[must_use]
    pub fn status(&self) -> Option<Vec<u8>> {
        self.reporter.get().map(|reporter| reporter.status())
    }

    /// The facts that this node has from its coordinator, as JSON; `None` until the topology thread runs.
    #[must_use]
    pub fn coordinator_report(&self) -> Option<Vec<u8>> {
        self.reporter.get().map(|reporter| reporter.coordinator_report())
    }

    /// Reports whether this replica has a full copy of its shard's dataset.
    #[must_use]
    pub fn has_full_copy(&self) -> bool {
        self.reporter.get().is_some_and(|reporter| reporter.has_full_copy())
    }
}

/// Milliseconds of `CLOCK_BOOTTIME`, which continues while the machine is suspended.
#[must_use]
pub fn boot_ms() -> u64 {
    let time = clock_gettime(ClockId::Boottime);
    let seconds = u64::try_from(time.tv_sec).unwrap_or_default();
    let nanoseconds = u64::try_from(time.tv_nsec).unwrap_or_default();
    seconds.saturating_mul(1000).saturating_add(nanoseconds / 1_000_000)
}
