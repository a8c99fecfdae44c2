//! Tests of the topology threads with an in-memory coordinator. There are no workers.

use super::coord::{self, Coord};
use super::files::TopologyFiles;
use super::identity;
use super::lease::{self, LeaseKeeper};
use super::switch;
use super::watcher::{TopologyWatcher, WatcherParts};
use crate::commands::table;
use brisk_cluster::document::{Registration, TermCause, Topology as Document};
use brisk_cluster::id::{Incarnation, NodeId, NodeRun};
use brisk_config::{Config, Store};
use brisk_coordinate::clock::BootTime;
use brisk_coordinate::error::CoordinatorError;
use brisk_coordinate::model::{Model, ModelCoordinator, ModelFaults};
use brisk_coordinate::values::{
    Campaign, ChangeOutcome, Claim, ClusterName, ClusterSnapshot, Lease, LeaseTtl,
    NodeRegistration, NodeStatus, RegisteredNode, Revision, Topology, TopologyChange,
};
use brisk_coordinate::{Coordinator, Watch};
use brisk_engine::Keyspace;
use brisk_engine::keyspace::KeyHasher;
use brisk_node::cluster::boot_ms;
use brisk_node::core::process::Process;
use brisk_node::core::settings::Settings;
use brisk_node::core::shared::Shared;
use brisk_observe::log::{Level, Log};
use brisk_reactor::unix_ms;
use brisk_testkit::TempDir;
use brisk_testkit::wait::wait_until;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex};
use std::time::{Duration, Instant};

/// The calls to a coordinator.
#[derive(Debug, Default)]
struct Calls {
    renewals: AtomicU64,
    snapshots: AtomicU64,
    /// True if a report is in progress and hangs.
    is_reporting: AtomicBool,
    /// True if reports hang.
    hangs: Mutex<bool>,
    changed: Condvar,
    /// True if the coordinator has no space for changes.
    rejects_changes: AtomicBool,
    /// The document that another node commits after the next read.
    next_document: Mutex<Option<String>>,
}

impl Calls {
    fn renewals(&self) -> u64 {
        self.renewals.load(Ordering::SeqCst)
    }

    fn hang(&self, hangs: bool) {
        *self.hangs.lock().unwrap() = hangs;
        self.changed.notify_all();
    }
}

/// An in-memory coordinator that counts calls.
#[derive(Debug)]
struct CountingCoordinator {
    inner: ModelCoordinator,
    calls: Arc<Calls>,
}

impl Coordinator for CountingCoordinator {
    fn now(&self) -> BootTime {
        self.inner.now()
    }

    fn read_within(&self, limit: Duration) -> Result<Topology, CoordinatorError> {
        let read = self.inner.read_within(limit)?;
        if let Some(next) = self.calls.next_document.lock().unwrap().take() {
            commit(&self.inner, read.revision, &next);
        }
        Ok(read)
    }

    fn snapshot_within(&self, limit: Duration) -> Result<ClusterSnapshot, CoordinatorError> {
        self.calls.snapshots.fetch_add(1, Ordering::SeqCst);
        self.inner.snapshot_within(limit)
    }

    fn change_within(&self, change: &TopologyChange<'_>, limit: Duration) -> ChangeOutcome {
        if self.calls.rejects_changes.load(Ordering::SeqCst) {
            return ChangeOutcome::Refused(CoordinatorError::NoSpace);
        }
        self.inner.change_within(change, limit)
    }

    fn register(
        &self,
        registration: &NodeRegistration,
        ttl: LeaseTtl,
        claim: Claim,
    ) -> Result<Lease, CoordinatorError> {
        self.inner.register(registration, ttl, claim)
    }

    fn renew(&self, lease: &Lease) -> Result<Lease, CoordinatorError> {
        self.calls.renewals.fetch_add(1, Ordering::SeqCst);
        self.inner.renew(lease)
    }

    fn end(&self, lease: &Lease) -> Result<(), CoordinatorError> {
        self.inner.end(lease)
    }

    fn campaign(&self, lease: &Lease) -> Result<Campaign, CoordinatorError> {
        self.inner.campaign(lease)
    }

    fn resign(&self, lease: &Lease) -> Result<(), CoordinatorError> {
        self.inner.resign(lease)
    }

    fn put_status(&self, lease: &Lease, status: &[u8]) -> Result<(), CoordinatorError> {
        let mut hangs = self.calls.hangs.lock().unwrap();
        while *hangs {
            self.calls.is_reporting.store(true, Ordering::SeqCst);
            hangs = self.calls.changed.wait(hangs).unwrap();
        }
        drop(hangs);
        self.inner.put_status(lease, status)
    }

    fn statuses(&self) -> Result<Vec<NodeStatus>, CoordinatorError> {
        self.inner.statuses()
    }

    fn watch(&self, after: Revision) -> Box<dyn Watch> {
        self.inner.watch(after)
    }

    fn stop(&self) {
        self.inner.stop();
    }
}

fn commit(coordinator: &ModelCoordinator, expected: Revision, document: &str) {
    let change = TopologyChange { expected, document: document.as_bytes(), controller: None };
    assert!(matches!(coordinator.change(&change), ChangeOutcome::Changed(_)));
}

/// The TTL of the members of [`document`].
const TTL: Duration = Duration::from_secs(2);

/// A document with two members: the primary of all slots and its replica.
fn document(epoch: u64, primary: NodeRun, replica: NodeRun) -> String {
    let ttl = TTL.as_secs();
    let member =
        |run: NodeRun| format!(r#""{}":{{"ip":"127.0.0.1","port":6379,"ttl":{ttl}}}"#, run.node);
    let (members, shard) = (format!("{},{}", member(primary), member(replica)), primary.node);
    format!(
        r#"{{"format":1,"epoch":{epoch},"change":"{primary}:{epoch}","members":{{{members}}},"shards":[{{"id":"{}","slots":[[0,16383]],"term":{epoch},"primary":"{shard}","isr":["{primary}"],"replicas":["{}"]}}]}}"#,
        NodeId::from_bytes([9; 20]),
        replica.node,
    )
}

/// The other member.
const OTHER: NodeRun =
    NodeRun { node: NodeId::from_bytes([2; 20]), incarnation: Incarnation(0x1f) };

/// A node without workers.
struct Node {
    watcher: Arc<TopologyWatcher>,
    calls: Arc<Calls>,
    _dir: TempDir,
}

impl Node {
    /// A node without a document.
    fn new(ttl: Duration) -> Node {
        Node::with_document(ttl, |_| None)
    }

    /// A node with a document that is created for its run.
    fn with_document(ttl: Duration, make: impl Fn(NodeRun) -> Option<String>) -> Node {
        let dir = TempDir::new();
        let log = Arc::new(Log::to_file(Level::Notice, &dir.path("log")).unwrap());
        let (table, handlers) = table(&[]).unwrap();
        let (table, handlers) = (&*Box::leak(Box::new(table)), &*handlers.leak());
        let mut config = Config::default();
        config.cluster.cluster_node_timeout_ms = i64::try_from(ttl.as_millis()).unwrap();
        let settings = Settings::new(config.clone(), Store::new(config, None));
        let process = Process::new("r".repeat(40), unix_ms(), false, false);
        let keyspace = Keyspace::new(16, KeyHasher::seeded(1, 2));
        let shared =
            Shared::new(log, settings, (table, handlers), keyspace, 1, process, "i".repeat(40));
        let shared: &'static Shared = Box::leak(Box::new(shared));
        // Leases end by time.
        let setting = "etcd://127.0.0.1:2379".parse().unwrap();
        let id = NodeId::from_bytes([1; 20]);
        let own = identity::registration(&shared.config(), id, None).unwrap();
        shared.cluster.enable(own);
        let inner = Model::new(1, ModelFaults::default()).connect();
        if let Some(first) = make(shared.cluster.state().unwrap().run()) {
            commit(&inner, Revision::NONE, &first);
        }
        let calls = Arc::new(Calls::default());
        let coordinator = CountingCoordinator { inner, calls: Arc::clone(&calls) };
        let parts = WatcherParts {
            shared,
            state: shared.cluster.state().unwrap(),
            coordinator: Box::new(coordinator),
            setting,
            name: ClusterName::parse("brisk").unwrap(),
            files: TopologyFiles::open(&dir.path("nodes.conf")).unwrap(),
            routed_ip: None,
        };
        Node { watcher: TopologyWatcher::begin(parts).unwrap(), calls, _dir: dir }
    }

    fn is_fenced(&self) -> bool {
        self.watcher.state.is_fenced()
    }
}

#[test]
fn a_report_that_hangs_delays_no_renewal() {
    let node = Node::new(Duration::from_secs(2));
    node.calls.hang(true);
    let threads = [lease::run as fn(&Arc<TopologyWatcher>), coord::run].map(|run| {
        let watcher = Arc::clone(&node.watcher);
        std::thread::spawn(move || run(&watcher))
    });
    wait_until("a report", || node.calls.is_reporting.load(Ordering::SeqCst));
    let before = node.calls.renewals();
    wait_until("renewals", || node.calls.renewals() > before + 2);
    assert!(*node.calls.hangs.lock().unwrap() && !node.is_fenced());
    node.calls.hang(false);
    node.watcher.stop();
    threads.into_iter().for_each(|thread| thread.join().unwrap());
}

#[test]
fn an_installation_that_takes_long_leaves_the_lease_alive_for_one_time_to_live() {
    let node = Node::new(Duration::from_secs(2));
    let mut lease = LeaseKeeper::new(&node.watcher);
    let installing = node.watcher.document.take(None);
    wait_until("a renewal", || {
        lease.turn();
        node.calls.renewals() > 0
    });
    // Renewals do not count before the newest document is in force.
    assert!(node.is_fenced());
    wait_until("the lease to be given up", || {
        lease.turn();
        lease.lets_lease_end(boot_ms())
    });
    let before = node.calls.renewals();
    lease.turn_now();
    assert_eq!(node.calls.renewals(), before);
    drop(installing);
    lease.turn_now();
    lease.turn_now();
    assert!(node.calls.renewals() > before && !node.is_fenced());
}

#[test]
fn a_renewal_without_a_newer_document_waits_for_no_installation() {
    let other = NodeRun { node: NodeId::from_bytes([3; 20]), ..OTHER };
    let node = Node::with_document(Duration::from_secs(600), |_| Some(document(1, OTHER, other)));
    let _installing = node.watcher.document.take(None);
    LeaseKeeper::new(&node.watcher).turn();
    assert!(node.watcher.deadline.lease().is_some());
}

#[test]
fn a_primary_that_was_replaced_while_it_registered_has_no_confirmed_lease() {
    let node = Node::with_document(TTL, |own| Some(document(1, own, OTHER)));
    // The promotion cannot be put in force, because no worker is running.
    let next = document(2, OTHER, node.watcher.state.run());
    *node.calls.next_document.lock().unwrap() = Some(next);
    LeaseKeeper::new(&node.watcher).turn();
    assert_eq!(node.watcher.deadline.lease(), None);
    // Without a promotion, the lease counts.
    let node = Node::with_document(TTL, |own| Some(document(1, OTHER, own)));
    LeaseKeeper::new(&node.watcher).turn();
    assert!(node.watcher.deadline.lease().is_some());
}

#[test]
fn a_renewal_does_not_count_before_the_document_has_the_ttl() {
    let ttl = Duration::from_secs(600);
    let node = Node::with_document(ttl, |own| Some(document(1, OTHER, own)));
    let watcher = &node.watcher;
    watcher.install_without_workers();
    let own = watcher.state.run();
    let recorded = || watcher.state.in_force().topology.as_ref().unwrap().members[&own.node].ttl;
    let mut lease = LeaseKeeper::new(watcher);
    node.calls.rejects_changes.store(true, Ordering::SeqCst);
    // The shorter TTL of a replica does no harm.
    lease.turn_now();
    assert!(!node.is_fenced() && recorded() == TTL.as_secs());
    // As the primary, the node serves nothing, from the moment at which it installs the document.
    *node.calls.next_document.lock().unwrap() = Some(document(2, own, OTHER));
    for _ in 0..2 {
        watcher.install_newest(Duration::from_secs(10)).unwrap();
    }
    assert!(node.is_fenced() && watcher.deadline.lease().is_none());
    lease.turn();
    assert!(node.is_fenced() && recorded() == TTL.as_secs());
    node.calls.rejects_changes.store(false, Ordering::SeqCst);
    lease.turn_now();
    assert!(watcher.deadline.lease().is_some() && recorded() == ttl.as_secs());
}

#[test]
fn the_document_allows_the_longest_ttl_of_a_lease() {
    let longest = LeaseTtl::at_least(Duration::MAX).seconds();
    assert_eq!(brisk_cluster::document::TTL_SECONDS_MAX, longest);
}

#[test]
fn a_promoted_node_waits_for_the_longest_ttl_of_its_shard() {
    let node = Node::with_document(TTL, |own| Some(document(1, OTHER, own)));
    let watcher = &node.watcher;
    watcher.install_without_workers();
    // The primary has another setting. Then an operator forces a promotion.
    let own = watcher.state.run();
    let mut next = Document::parse(document(2, own, OTHER).as_bytes()).unwrap();
    next.shards[0].cause = TermCause::Forced;
    next.members.get_mut(&OTHER.node).unwrap().ttl = 3_600;
    let next = String::from_utf8(next.to_json().unwrap()).unwrap();
    *node.calls.next_document.lock().unwrap() = Some(next);
    for _ in 0..2 {
        watcher.install_newest(Duration::from_secs(10)).unwrap();
    }
    let left_ms = watcher.deadline.wait_left_ms().unwrap();
    assert!(left_ms > 3_600_000, "{left_ms}");
}

#[test]
fn a_primary_that_does_not_learn_the_outcome_of_a_switch_stops_serving_after_one_ttl() {
    let node = Node::with_document(TTL, |own| Some(document(1, own, OTHER)));
    let watcher = Arc::clone(&node.watcher);
    watcher.install_without_workers();
    let mut lease = LeaseKeeper::new(&watcher);
    lease.turn_now();
    assert!(!node.is_fenced());
    node.calls.rejects_changes.store(true, Ordering::SeqCst);
    let settling = std::thread::spawn({
        let watcher = Arc::clone(&watcher);
        move || switch::settle_switch(&watcher, OTHER)
    });
    wait_until("the node to be suspended", || {
        lease.turn();
        watcher.deadline.is_suspended()
    });
    // Renewals still succeed, and change nothing.
    let before = node.calls.renewals();
    lease.turn_now();
    assert!(node.calls.renewals() > before && node.is_fenced());
    node.calls.rejects_changes.store(false, Ordering::SeqCst);
    let outcome = settling.join().unwrap();
    assert_eq!(outcome, Err("the coordinator did not reply in time".to_owned()));
    lease.turn_now();
    assert!(!node.is_fenced() && !watcher.deadline.is_suspended());
}

#[test]
fn an_outdated_registration_does_not_prove_that_the_primary_has_restarted() {
    let node = Node::with_document(Duration::from_secs(600), |own| Some(document(1, OTHER, own)));
    let watcher = &node.watcher;
    let next = document(2, watcher.state.run(), OTHER);
    let next = Document::parse(next.as_bytes()).unwrap();
    let (before, named_at) = (watcher.state.in_force(), watcher.known_revision().0);
    let registered = |incarnation: &str, revision| {
        let json = format!(
            r#"{{"id":"{}","incarnation":"{incarnation}","version":"1","member":{{"ip":"127.0.0.1","port":6379}}}}"#,
            OTHER.node
        );
        let registration = Registration::parse(json.as_bytes()).unwrap();
        let registration = identity::to_coordinator(&registration).unwrap();
        watcher.note_registered(&RegisteredNode { registration, revision: Revision(revision) });
        watcher.is_primary_restarted(&next.shards[0], &before)
    };
    assert!(!registered("1e", named_at - 1), "an earlier process");
    assert!(!registered("1f", named_at + 1), "the primary itself");
    assert!(registered("1e", named_at + 1), "a later process");
    // A later document that still names the primary, for example with its new address.
    watcher.note_primary(Revision(named_at + 5));
    assert!(registered("1e", named_at + 1), "a process that registered before a later document");
}

#[test]
fn a_controller_without_a_document_waits_for_events() {
    let node = Node::new(Duration::from_secs(600));
    LeaseKeeper::new(&node.watcher).turn();
    let mut coord = Coord::new(&node.watcher);
    for _ in 0..20 {
        coord.turn();
        coord.wait(Duration::ZERO);
    }
    // There is one pass after the election. An event during startup may cause another one.
    let passes = node.calls.snapshots.load(Ordering::SeqCst);
    assert!((1..=2).contains(&passes), "{passes} passes in 20 turns");
}

#[test]
fn work_for_a_worker_that_does_not_reply_is_given_up() {
    let node = Node::new(Duration::from_secs(600));
    let until = Some(Instant::now());
    assert!(!node.watcher.when_quiesced_within(until, true, |_| unreachable!("no worker runs")));
}
