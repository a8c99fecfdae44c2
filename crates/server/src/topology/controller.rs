//! The controller: an elected node that decides about failovers, forms the cluster, and corrects addresses.
//!
//! Each pass makes decisions based on one snapshot, which contains the document and the nodes at the same revision. A
//! change is committed only if that document is still current. A node that registers after the snapshot reasserts
//! itself before it serves, which changes the document. So a promotion cannot conflict with a primary that has come
//! back.

use super::coord::ErrorLog;
use super::identity::registration_of;
use super::query;
use super::watcher::{Installation, TopologyWatcher};
use super::writer::Attempt;
use brisk_cluster::document::{Member, NodeStatus, Registration, Topology};
use brisk_cluster::failover::{Controller, Decision, QUERY_MS_MAX, ReceivedStatus, Situation};
use brisk_cluster::id::NodeId;
use brisk_coordinate::CALL_MAX;
use brisk_coordinate::error::CoordinatorError;
use brisk_coordinate::values::{self, Campaign, Lease, Revision, TopologyChange};
use brisk_node::cluster::{CommitError, boot_ms};
use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// The maximum number of passes in one turn. Each pass carries out the decisions for a newer situation.
const PASSES_MAX: usize = 8;
/// The time limit for committing one change.
const CHANGE_MAX: Duration = Duration::from_secs(3);
/// The pause between two passes that wait for reports.
const QUERY_PAUSE_MS: u64 = 50;

/// This node's part in the election, and in the work of the controller.
pub(super) struct ControllerOffice {
    watcher: Arc<TopologyWatcher>,
    /// The term, if this node is the controller.
    held: Option<(values::Controller, Controller)>,
    statuses: BTreeMap<NodeId, ReceivedStatus>,
    /// When the reports were last read, on the clock of [`boot_ms`].
    statuses_read_ms: u64,
    pongs: BTreeMap<NodeId, u64>,
    /// When the next campaign and the next pass are due, on the clock of [`boot_ms`].
    campaign_due_ms: u64,
    pass_due_ms: u64,
    /// True if too many simultaneous failures (a storm) were logged and have not ended.
    is_storm: bool,
    /// The last decision that could not be carried out. It is repeated, but logged only once.
    refusal: Option<String>,
    election_errors: ErrorLog,
    errors: ErrorLog,
}

/// The reason why a turn ends early.
enum TurnError {
    Coordinator(CoordinatorError),
    Commit(CommitError),
}

impl From<CoordinatorError> for TurnError {
    fn from(error: CoordinatorError) -> TurnError {
        TurnError::Coordinator(error)
    }
}

impl From<CommitError> for TurnError {
    fn from(error: CommitError) -> TurnError {
        TurnError::Commit(error)
    }
}

impl fmt::Display for TurnError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            TurnError::Coordinator(error) => error.fmt(f),
            TurnError::Commit(error) => error.fmt(f),
        }
    }
}

/// The outcome of a pass.
enum Pass {
    /// The situation has changed, so another pass follows immediately.
    Again,
    /// The next pass is due at this time unless an event arrives.
    Until(u64),
}

/// The document on which the decisions of a pass are based.
struct PassDocument {
    revision: Revision,
    topology: Option<Topology>,
}

impl ControllerOffice {
    pub(super) fn new(watcher: &Arc<TopologyWatcher>) -> ControllerOffice {
        ControllerOffice {
            watcher: Arc::clone(watcher),
            held: None,
            statuses: BTreeMap::new(),
            statuses_read_ms: 0,
            pongs: BTreeMap::new(),
            campaign_due_ms: 0,
            pass_due_ms: 0,
            is_storm: false,
            refusal: None,
            election_errors: ErrorLog::new(watcher.shared, "the election of the controller"),
            errors: ErrorLog::new(watcher.shared, "the controller"),
        }
    }

    /// When the next turn is due, on the clock of [`boot_ms`].
    pub(super) fn due_ms(&self) -> u64 {
        match self.held {
            Some(_) => self.campaign_due_ms.min(self.pass_due_ms),
            None => self.campaign_due_ms,
        }
    }

    /// Called when an event has arrived. The next turn then makes a pass.
    pub(super) fn look(&mut self) {
        self.pass_due_ms = 0;
        if self.watcher.take_vacancy() {
            self.campaign_due_ms = 0;
        }
    }

    /// Notes the reports that the coordinator has. A report that differs from the previous one arrived at some time
    /// since the last read.
    pub(super) fn note_statuses(&mut self, statuses: BTreeMap<NodeId, NodeStatus>) {
        let before_ms = std::mem::replace(&mut self.statuses_read_ms, boot_ms());
        self.statuses.retain(|id, _| statuses.contains_key(id));
        for (id, status) in statuses {
            let known = self.statuses.get(&id);
            if known.is_none_or(|known| known.status != status && known.received_ms < before_ms) {
                self.statuses.insert(id, ReceivedStatus { status, received_ms: before_ms });
            }
        }
        self.pass_due_ms = 0;
    }

    /// Runs for election, and makes passes while this node is the controller.
    pub(super) fn turn(&mut self, lease: &Lease) {
        let config = self.watcher.shared.config();
        if !config.cluster.cluster_controller || self.watcher.is_static() {
            (self.campaign_due_ms, self.held) = (u64::MAX, None);
            return;
        }
        let campaigns = boot_ms() >= self.campaign_due_ms;
        let elected = self.campaign(lease).map_err(TurnError::from);
        if !self.note_result(elected, campaigns, |office| &mut office.election_errors) {
            return;
        }
        let makes_passes = self.held.is_some() && boot_ms() >= self.pass_due_ms;
        let passed = self.make_passes();
        self.note_result(passed, makes_passes, |office| &mut office.errors);
    }

    /// Logs an error, or the end of an error if something `was_done`. Returns true if there was no error.
    fn note_result(
        &mut self,
        result: Result<(), TurnError>,
        was_done: bool,
        log: fn(&mut ControllerOffice) -> &mut ErrorLog,
    ) -> bool {
        match result {
            Ok(()) => {
                if was_done {
                    log(self).clear();
                }
                return true;
            }
            Err(TurnError::Coordinator(
                CoordinatorError::Stopped | CoordinatorError::LeaseLost,
            )) => {}
            Err(error) => {
                log(self).note(&error.to_string());
                self.pass_due_ms = boot_ms() + self.third_ms() / 2;
            }
        }
        false
    }

    fn third_ms(&self) -> u64 {
        self.watcher.ttl.seconds().saturating_mul(1000) / 3
    }

    fn campaign(&mut self, lease: &Lease) -> Result<(), CoordinatorError> {
        let now_ms = boot_ms();
        if now_ms < self.campaign_due_ms {
            return Ok(());
        }
        self.campaign_due_ms = now_ms + self.third_ms();
        match self.watcher.coordinator.campaign(lease)? {
            Campaign::Held(_) => self.held = None,
            Campaign::Elected(office) => {
                if self.held.as_ref().is_none_or(|(held, _)| *held != office) {
                    self.watcher
                        .shared
                        .log
                        .notice(format_args!("Cluster: this node is now the controller"));
                    self.held = Some((office, Controller::new(self.watcher.failover_settings())));
                    self.pass_due_ms = 0;
                }
            }
        }
        Ok(())
    }

    fn make_passes(&mut self) -> Result<(), TurnError> {
        for _ in 0..PASSES_MAX {
            let Some((office, mut controller)) = self.held.take() else { return Ok(()) };
            if boot_ms() < self.pass_due_ms {
                self.held = Some((office, controller));
                return Ok(());
            }
            let pass = self.pass(office, &mut controller);
            self.held = Some((office, controller));
            match pass? {
                Pass::Again => self.pass_due_ms = 0,
                Pass::Until(due_ms) => {
                    self.pass_due_ms = due_ms;
                    return Ok(());
                }
            }
        }
        self.pass_due_ms = boot_ms() + QUERY_PAUSE_MS;
        Ok(())
    }

    /// Makes decisions for one situation and carries them out.
    fn pass(
        &mut self,
        office: values::Controller,
        controller: &mut Controller,
    ) -> Result<Pass, TurnError> {
        let (snapshot, installation) = self.watcher.snapshot(CALL_MAX)?;
        let idle_until = boot_ms() + self.third_ms();
        if let Installation::Refused(_) = installation {
            // No decisions are made based on a document that this node rejects.
            return Ok(Pass::Until(idle_until));
        }
        let topology = snapshot.topology.document.as_deref().map(Topology::parse);
        let Ok(topology) = topology.transpose() else { return Ok(Pass::Until(idle_until)) };
        let nodes = snapshot.nodes.iter().filter_map(registration_of);
        let registered: BTreeMap<NodeId, Registration> =
            nodes.map(|node| (node.id, node)).collect();
        let mut document = PassDocument { revision: snapshot.topology.revision, topology };
        let decisions = controller.decide(&self.situation(&document, &registered));
        self.is_storm &=
            decisions.iter().any(|decision| matches!(decision, Decision::AwaitStorm { .. }));
        let mut pass = Pass::Until(idle_until);
        for decision in decisions {
            match self.carry_out(&decision, office, &mut document, &registered)? {
                Pass::Again => pass = Pass::Again,
                Pass::Until(due_ms) => {
                    if let Pass::Until(earliest) = &mut pass {
                        *earliest = due_ms.min(*earliest);
                    }
                }
            }
        }
        Ok(pass)
    }

    fn situation<'s>(
        &'s self,
        document: &'s PassDocument,
        registered: &'s BTreeMap<NodeId, Registration>,
    ) -> Situation<'s> {
        Situation {
            topology: document.topology.as_ref(),
            registered,
            statuses: &self.statuses,
            pongs: &self.pongs,
            now_ms: boot_ms(),
        }
    }

    fn carry_out(
        &mut self,
        decision: &Decision,
        office: values::Controller,
        document: &mut PassDocument,
        registered: &BTreeMap<NodeId, Registration>,
    ) -> Result<Pass, TurnError> {
        let (shared, now_ms) = (self.watcher.shared, boot_ms());
        match decision {
            Decision::Query { nodes, .. } => {
                let found = query::statuses(&shared.config(), &addresses(nodes, registered));
                let received_ms = boot_ms();
                for (id, status) in found {
                    self.statuses.insert(id, ReceivedStatus { status, received_ms });
                }
                Ok(Pass::Until(now_ms + QUERY_PAUSE_MS))
            }
            Decision::AwaitStorm { until_ms, ping } => {
                let members = members(ping, document.topology.as_ref());
                let pongs = query::pings(&shared.config(), &members);
                if !std::mem::replace(&mut self.is_storm, true) {
                    shared.log.warning(format_args!(
                    "Cluster: the leases of most primaries expired at the same time; {} of {} reply to a ping; no \
                     promotion for {} ms",
                    pongs.len(),
                    ping.len(),
                    until_ms.saturating_sub(now_ms)
                ));
                }
                let at_ms = boot_ms();
                self.pongs.extend(pongs.into_iter().map(|id| (id, at_ms)));
                Ok(Pass::Until((*until_ms).min(now_ms + QUERY_MS_MAX)))
            }
            Decision::LeaveOut { node, empty, wanted } => {
                let node =
                    registered.get(node).map_or_else(|| node.to_string(), Registration::label);
                shared.log.warning(format_args!(
                    "Cluster: node {node} has keys, so the cluster is formed without it. {empty} of the {wanted} \
                     nodes that are needed are registered and have no keys. To let this node join without its keys, \
                     send FLUSHALL to it. Its log describes how to keep them"
                ));
                Ok(Pass::Until(now_ms + self.third_ms()))
            }
            Decision::NoCandidate { shard, why } => {
                shared.log.warning(format_args!("Cluster: shard {shard} has no primary: {why}"));
                Ok(Pass::Until(now_ms + self.third_ms()))
            }
            // A restarted primary is loading its dataset, or has just reported that it is loaded.
            Decision::WaitUntil(at_ms) => {
                let statuses = self.watcher.read_statuses()?;
                self.note_statuses(statuses);
                Ok(Pass::Until((*at_ms).min(now_ms + 2 * QUERY_PAUSE_MS)))
            }
            change => self.commit(change, office, document, registered),
        }
    }

    /// Commits a decision that changes the document.
    fn commit(
        &mut self,
        decision: &Decision,
        office: values::Controller,
        document: &mut PassDocument,
        registered: &BTreeMap<NodeId, Registration>,
    ) -> Result<Pass, TurnError> {
        let (now_ms, change) = (boot_ms(), self.watcher.next_change());
        let next =
            decision.apply(&self.situation(document, registered), self.watcher.name(), change);
        let (watcher, log) = (&self.watcher, &self.watcher.shared.log);
        let next = match next {
            Ok(Some(next)) => next,
            Ok(None) => return Ok(Pass::Until(now_ms + QUERY_PAUSE_MS)),
            Err(error) => {
                let refusal = format!("{}: {error}", words(decision, document.topology.as_ref()));
                if self.refusal.as_ref() != Some(&refusal) {
                    log.warning(format_args!("Cluster: {refusal}"));
                    self.refusal = Some(refusal);
                }
                return Ok(Pass::Until(now_ms + self.third_ms()));
            }
        };
        let json = next.to_json().map_err(|error| CommitError::Coordinator(error.to_string()))?;
        let proposal = TopologyChange {
            expected: document.revision,
            document: &json,
            controller: Some(office),
        };
        match watcher.propose(&proposal, change, Instant::now() + CHANGE_MAX) {
            Ok(Attempt::Done(revision) | Attempt::NotInForce(revision)) => {
                log.notice(format_args!("Cluster: {}", words(decision, Some(&next))));
                // If the revision is unknown, no further change of this pass can be committed.
                document.revision = revision.unwrap_or(document.revision);
                document.topology = Some(next);
                Ok(Pass::Again)
            }
            // The next pass uses the newer document.
            Ok(Attempt::Overtaken) => Ok(Pass::Until(now_ms + QUERY_PAUSE_MS)),
            Err(error) => Err(error.into()),
        }
    }
}

/// A description of the decision, for the log. `topology` is the document after the decision, or the document that a
/// rejected decision was about.
fn words(decision: &Decision, topology: Option<&Topology>) -> String {
    let label =
        |node: NodeId| topology.map_or_else(|| node.to_string(), |topology| topology.label(node));
    match decision {
        Decision::Form { shards, replicas } => {
            format!("the cluster is formed: {shards} shards with {replicas} replicas each")
        }
        Decision::Correct(node) => format!("node {} has a new address", label(*node)),
        Decision::Promote(promotion) | Decision::Resume { promotion, .. } => {
            let term = promotion.expected_term.next();
            let (shard, node, why) = (promotion.shard, label(promotion.to.node), &promotion.why);
            format!("shard {shard} term {term}: {node} is now primary ({why})")
        }
        _ => "no change".to_owned(),
    }
}

/// The announced addresses of nodes with a lease.
fn addresses(
    nodes: &[NodeId],
    registered: &BTreeMap<NodeId, Registration>,
) -> Vec<(NodeId, Member)> {
    let address = |id: &NodeId| Some((*id, registered.get(id)?.member.clone()));
    nodes.iter().filter_map(address).collect()
}

/// The addresses of members, which may have no lease.
fn members(nodes: &[NodeId], topology: Option<&Topology>) -> Vec<(NodeId, Member)> {
    let member = |id: &NodeId| Some((*id, topology?.members.get(id)?.clone()));
    nodes.iter().filter_map(member).collect()
}
