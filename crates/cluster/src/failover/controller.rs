//! The controller: a state machine that turns observations into decisions.
//!
//! Several controllers may run. Each change checks that the document still has the version that the change began with,
//! so at most one of two decisions about the same document is committed.

use super::candidates::{Lineage, Resumption, Search, resumption, search};
use super::formation::decide_formation;
use super::{Decision, FailoverSettings, Situation};
use crate::change::Promotion;
use crate::document::{Dataset, NodeRole, Registration, Shard, TermCause, Topology};
use crate::id::{NodeId, NodeRun, ShardId};
use std::collections::{BTreeMap, BTreeSet};

/// Milliseconds for which a failover waits for status reports of live replicas.
pub const QUERY_MS_MAX: u64 = 500;
/// After a storm, the controller waits this many TTLs before it gives up on a primary that has no lease but replies to
/// pings.
pub const STORM_TTLS_MAX: u64 = 3;

/// The state of a shard's primary.
enum PrimaryState<'s> {
    Serving,
    /// The primary's lease is absent.
    Lost,
    /// The primary runs in an incarnation different from the one in the document.
    Restarted(&'s Registration),
}

/// Most leases ended within one TTL.
#[derive(Debug, Clone, Copy)]
struct Storm {
    began_ms: u64,
    until_ms: u64,
}

/// The state of a controller.
#[derive(Debug)]
pub struct Controller {
    settings: FailoverSettings,
    /// The time since which each shard has been without its primary's run.
    lost_since: BTreeMap<ShardId, u64>,
    /// The time at which the lease of each shard's primary ended, if within the last TTL.
    ended: BTreeMap<ShardId, u64>,
    storm: Option<Storm>,
    /// The last position that each shard's primary reported.
    lineages: BTreeMap<ShardId, Lineage>,
    /// The last alarm about each shard.
    alarms: BTreeMap<ShardId, String>,
    /// The nodes with keys that were reported while no cluster exists.
    left_out: BTreeSet<NodeId>,
}

impl Controller {
    /// A controller that has seen nothing.
    #[must_use]
    pub fn new(settings: FailoverSettings) -> Controller {
        Controller {
            settings,
            lost_since: BTreeMap::new(),
            ended: BTreeMap::new(),
            storm: None,
            lineages: BTreeMap::new(),
            alarms: BTreeMap::new(),
            left_out: BTreeSet::new(),
        }
    }

    /// The decisions about a situation. The situation must be complete: a node that is missing from it counts as having
    /// no lease. A decision that could not be committed is made again. O(document + registered).
    pub fn decide(&mut self, situation: &Situation<'_>) -> Vec<Decision> {
        let topology = situation.topology.filter(|topology| !topology.members.is_empty());
        let Some(topology) = topology else {
            return decide_formation(&self.settings, situation, &mut self.left_out);
        };
        self.forget_ended_shards(topology);
        self.note_lineages(topology, situation);
        self.note_lost(topology, situation);
        let mut decisions = corrections(topology, situation);
        self.note_storm(topology, situation.now_ms);
        let mut storm_pings = Vec::new();
        for shard in &topology.shards {
            match state_of(shard, situation) {
                PrimaryState::Serving => {}
                // No slot is down and no replica waits: there is nothing to decide.
                PrimaryState::Lost if shard.slots.is_empty() && shard.replicas.is_empty() => {}
                PrimaryState::Lost if self.is_held_back(shard, situation) => {
                    storm_pings.push(shard.primary);
                }
                PrimaryState::Lost => decisions.push(self.replace(shard, situation, None)),
                PrimaryState::Restarted(node) => {
                    decisions.push(self.replace(shard, situation, Some(node)));
                }
            }
        }
        if let Some(storm) = self.storm.filter(|_| !storm_pings.is_empty()) {
            let until_ms = storm.until_ms.max(situation.now_ms + QUERY_MS_MAX);
            decisions.push(Decision::AwaitStorm { until_ms, ping: storm_pings });
        }
        self.without_known_alarms(decisions)
    }

    fn forget_ended_shards(&mut self, topology: &Topology) {
        let ids: BTreeSet<ShardId> = topology.shards.iter().map(|shard| shard.id).collect();
        self.lost_since.retain(|id, _| ids.contains(id));
        self.ended.retain(|id, _| ids.contains(id));
        self.lineages.retain(|id, _| ids.contains(id));
        self.alarms.retain(|id, _| ids.contains(id));
    }

    /// Records the position of each primary. It is needed for the reason of a failover, and to judge restarted
    /// primaries.
    fn note_lineages(&mut self, topology: &Topology, situation: &Situation<'_>) {
        for shard in &topology.shards {
            let Some(run) = shard.primary_run() else { continue };
            let Some(report) = situation.statuses.get(&run.node) else { continue };
            let status = &report.status;
            let is_of_run = status.incarnation == run.incarnation;
            if is_of_run && status.role == NodeRole::Primary && status.term == shard.term {
                let (term, replid, offset) = (status.term, status.replid.clone(), status.offset);
                self.lineages.insert(shard.id, Lineage { term, replid, offset });
            }
        }
    }

    fn note_lost(&mut self, topology: &Topology, situation: &Situation<'_>) {
        for shard in &topology.shards {
            match state_of(shard, situation) {
                PrimaryState::Serving => {
                    self.lost_since.remove(&shard.id);
                    self.alarms.remove(&shard.id);
                }
                PrimaryState::Lost => {
                    if !self.lost_since.contains_key(&shard.id) {
                        self.ended.insert(shard.id, situation.now_ms);
                    }
                    self.lost_since.entry(shard.id).or_insert(situation.now_ms);
                }
                PrimaryState::Restarted(_) => {
                    self.lost_since.entry(shard.id).or_insert(situation.now_ms);
                }
            }
        }
    }

    /// A storm begins if the leases of more than half of the shards with slots, and at least two, ended within one TTL.
    /// The storm lasts one more TTL.
    fn note_storm(&mut self, topology: &Topology, now_ms: u64) {
        let ttl_ms = self.settings.ttl_ms;
        if let Some(storm) = self.storm {
            let is_over = now_ms >= storm.began_ms + STORM_TTLS_MAX * ttl_ms;
            let has_lost = |shard: &Shard| self.lost_since.contains_key(&shard.id);
            if is_over || !topology.shards.iter().any(has_lost) {
                self.storm = None;
                self.ended.clear();
            }
            return;
        }
        self.ended.retain(|_, at| now_ms.saturating_sub(*at) <= ttl_ms);
        if are_most(topology, |shard| self.ended.contains_key(&shard.id)) {
            self.storm = Some(Storm { began_ms: now_ms, until_ms: now_ms + ttl_ms });
        }
    }

    /// True if a lost primary may still be alive and only the coordinator failed: during a storm, and after it as long
    /// as the primary replies to pings.
    fn is_held_back(&self, shard: &Shard, situation: &Situation<'_>) -> bool {
        let Some(storm) = self.storm else { return false };
        let pong = situation.pongs.get(&shard.primary);
        let is_reachable = pong.is_some_and(|at| {
            *at >= storm.began_ms && situation.now_ms.saturating_sub(*at) <= self.settings.ttl_ms
        });
        situation.now_ms < storm.until_ms || is_reachable
    }

    /// Finds a new primary for a shard; `restarted` is the shard's primary if it runs in a new incarnation.
    fn replace(
        &self,
        shard: &Shard,
        situation: &Situation<'_>,
        restarted: Option<&Registration>,
    ) -> Decision {
        let since_ms = self.lost_since.get(&shard.id).copied().unwrap_or(situation.now_ms);
        let is_patient = situation.now_ms < since_ms + QUERY_MS_MAX;
        let found = search(shard, situation, &self.settings, since_ms, is_patient);
        let why = match found {
            Search::Found { run, offset } => {
                let why = self.reason(shard, situation, offset, restarted);
                return Decision::Promote(promotion(shard, run, TermCause::Failover, why));
            }
            Search::Query(nodes) => return Decision::Query { shard: shard.id, nodes },
            Search::None(why) => why,
        };
        let Some(node) = restarted else { return Decision::NoCandidate { shard: shard.id, why } };
        match resumption(shard, situation, node, self.lineages.get(&shard.id)) {
            Resumption::Yes(dataset) => {
                let state = match dataset {
                    Dataset::Disk => "with its dataset from disk",
                    Dataset::Empty => "without data",
                };
                let why = format!("{} restarted {state}; {why}", node.label());
                let promotion = promotion(shard, node.run(), TermCause::Resumed, why);
                Decision::Resume { promotion, dataset }
            }
            Resumption::NotYet => Decision::WaitUntil(situation.now_ms + QUERY_MS_MAX),
            Resumption::No(reason) => {
                Decision::NoCandidate { shard: shard.id, why: format!("{reason}; {why}") }
            }
        }
    }

    /// The reason for a promotion, for the log and the document.
    fn reason(
        &self,
        shard: &Shard,
        situation: &Situation<'_>,
        offset: u64,
        restarted: Option<&Registration>,
    ) -> String {
        let since_ms = self.lost_since.get(&shard.id).copied().unwrap_or(situation.now_ms);
        let tenths = situation.now_ms.saturating_sub(since_ms) / 100;
        let primary = situation.label(shard.primary);
        let event = if restarted.is_some() {
            format!("{primary} restarted")
        } else {
            format!("{primary}'s lease ended {}.{} s ago", tenths / 10, tenths % 10)
        };
        let known = self.lineages.get(&shard.id).filter(|known| known.term == shard.term);
        let behind = known.map(|known| known.offset.saturating_sub(offset));
        let behind = behind.map(|bytes| format!(", behind by {bytes}")).unwrap_or_default();
        format!("{event}; offset {offset}{behind}")
    }

    /// Drops alarms that were already reported with the same reason.
    fn without_known_alarms(&mut self, mut decisions: Vec<Decision>) -> Vec<Decision> {
        decisions.retain(|decision| match decision {
            Decision::NoCandidate { shard, why } => {
                self.alarms.insert(*shard, why.clone()).as_ref() != Some(why)
            }
            _ => true,
        });
        decisions
    }
}

/// True if `holds` is true for more than half of the shards with slots, and for at least two.
pub(super) fn are_most(topology: &Topology, holds: impl Fn(&Shard) -> bool) -> bool {
    let owners = || topology.shards.iter().filter(|shard| !shard.slots.is_empty());
    let count = owners().filter(|shard| holds(shard)).count();
    count >= 2 && 2 * count > owners().count()
}

fn promotion(shard: &Shard, to: NodeRun, cause: TermCause, why: String) -> Promotion {
    Promotion { shard: shard.id, expected_term: shard.term, to, cause, why }
}

fn state_of<'s>(shard: &Shard, situation: &Situation<'s>) -> PrimaryState<'s> {
    match situation.registered.get(&shard.primary) {
        None => PrimaryState::Lost,
        Some(node) if shard.primary_run() == Some(node.run()) => PrimaryState::Serving,
        Some(node) => PrimaryState::Restarted(node),
    }
}

/// Corrections of members that announce an address different from the one in the document.
fn corrections(topology: &Topology, situation: &Situation<'_>) -> Vec<Decision> {
    let differs = |id: &NodeId, node: &Registration| {
        topology.members.get(id).is_some_and(|known| !known.is_same_place(&node.member))
    };
    let nodes = situation.registered.iter().filter(|(id, node)| differs(id, node));
    nodes.map(|(id, _)| Decision::Correct(*id)).collect()
}
