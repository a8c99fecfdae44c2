//! The thread `brisk-switch`, with which a primary hands its shard over to a replica without losing a write.
//!
//! ```text
//!  a replica replies, and lags little ── writes wait ── it has the last offset ── reads wait ── promotion committed
//!            │ limit                          │ limit                                  │
//!            └────────── aborted: writes continue ──────────┘                          ├─ rejected: as before
//!                                                                                      └─ outcome unknown: settled
//! ```
//!
//! Reads are held back before the promotion is sent, because afterwards another node may serve writes. From then on,
//! this node serves only based on a later document. Either that document names another primary, or this node has
//! confirmed its role in it ([`reassert`]), so that the promotion can no longer be committed.

use super::query;
use super::watcher::TopologyWatcher;
use brisk_cluster::change::{ChangeError, Promotion, promote, reassert};
use brisk_cluster::document::{Member, NodeRole, NodeStatus, TermCause};
use brisk_cluster::id::{NodeId, NodeRun, ShardId, Term};
use brisk_cluster::map::MapRole;
use brisk_coordinate::error::CoordinatorError;
use brisk_node::cluster::{
    ChangeBasis, ClusterState, CommitError, CoordinatorState, HandoverRequest, LOOK_VALUE,
    SWITCH_OPTION, SwitchRequest,
};
use brisk_node::core::pause::Hold;
use brisk_node::core::shared::Shared;
use brisk_reactor::unix_ms;
use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// The maximum duration of a switch, as in Redis. A lower `cluster-node-timeout` reduces it.
const SWITCH_MAX: Duration = Duration::from_secs(5);
/// The lag of the replica below which writes begin to wait. A replica applies these bytes in a few milliseconds.
const LAG_BYTES_MAX: u64 = 64 << 10;
/// The pause between two reports of the replica.
const REPORT_PAUSE: Duration = Duration::from_millis(2);
/// The time limit for committing the promotion. If it passes, the outcome is unknown, and `settle` determines it.
const COMMIT_MAX: Duration = Duration::from_secs(1);
/// The time limit for one attempt to settle an unknown outcome. The next constant is the pause before the next attempt.
const SETTLE_MAX: Duration = Duration::from_millis(500);
const SETTLE_PAUSE: Duration = Duration::from_millis(100);
/// How long commands wait until the new primary serves. Without this wait, clients would be redirected back and forth.
const SUCCESSOR_MAX: Duration = Duration::from_secs(1);

/// Carries out requests until the threads are stopped.
pub(super) fn run(watcher: &Arc<TopologyWatcher>) {
    let switches = &watcher.state.switches;
    while let Some(request) = switches.next() {
        match request {
            SwitchRequest::TakeOver => take_over(watcher),
            SwitchRequest::HandOver(request) => hand_over(watcher, request),
            SwitchRequest::Depart { until_ms } => {
                let has_handed_over = depart(watcher, until_ms);
                switches.end_departure(has_handed_over);
            }
            // The watch reads the topology a little later if this fails.
            SwitchRequest::Look => drop(watcher.install_newest(SUCCESSOR_MAX)),
        }
    }
}

/// Requests a switch from the primary of this replica.
fn take_over(watcher: &TopologyWatcher) {
    let (shared, in_force) = (watcher.shared, watcher.state.in_force());
    let own = in_force.own.run();
    let topology = in_force.topology.as_deref();
    let shard = topology.and_then(|topology| topology.shard_of(own.node));
    let Some((topology, shard)) =
        topology.zip(shard).filter(|(_, shard)| shard.primary != own.node)
    else {
        return;
    };
    let Some(primary) = topology.members.get(&shard.primary) else { return };
    let label = primary.label(shard.primary);
    let request = HandoverRequest { shard: shard.id, term: shard.term, to: own }.to_string();
    let words = ["REPLCONF", SWITCH_OPTION, &request];
    let why = match query::request_of(&shared.config(), primary, &words) {
        Ok(reply) if reply == b"+OK" => {
            shared.log.notice(format_args!(
                "Cluster: a planned switch was requested from {label}, which logs the outcome"
            ));
            return;
        }
        Ok(reply) => String::from_utf8_lossy(&reply).into_owned(),
        Err(error) => error.to_string(),
    };
    shared.log.warning(format_args!(
        "Cluster: the primary {label} did not start the planned switch: {why}"
    ));
}

/// Hands over from this primary to a replica that has requested it.
fn hand_over(watcher: &TopologyWatcher, request: HandoverRequest) {
    let timeout_ms = watcher.shared.config().cluster.cluster_node_timeout_ms;
    let limit = SWITCH_MAX.min(Duration::from_millis(timeout_ms.max(0).unsigned_abs()));
    let switch = PlannedSwitch {
        watcher,
        shard: request.shard,
        term: request.term,
        to: Some(request.to),
        until: Instant::now() + limit,
        why: "CLUSTER FAILOVER",
    };
    switch.run();
}

/// Hands over from this primary to any replica before it shuts down. Returns true if another node is now the primary.
fn depart(watcher: &TopologyWatcher, until_ms: u64) -> bool {
    let in_force = watcher.state.in_force();
    let Some((shard, term)) = in_force.map.own_shard() else { return false };
    let left = Duration::from_millis(until_ms.saturating_sub(unix_ms()));
    let switch = PlannedSwitch {
        watcher,
        shard,
        term,
        to: None,
        until: Instant::now() + left,
        why: "the primary shuts down",
    };
    switch.run()
}

/// A switch of the shard of which this node is the primary.
struct PlannedSwitch<'f> {
    watcher: &'f TopologyWatcher,
    shard: ShardId,
    /// The term of this node as the primary.
    term: Term,
    /// The replica that takes over. `None` means any replica, before a shutdown.
    to: Option<NodeRun>,
    /// The time at which the switch is aborted, unless it is being committed.
    until: Instant,
    /// The reason for the switch, for the document.
    why: &'static str,
}

/// How long writes waited in each phase.
struct WriteStop {
    /// Until the replica had received the last writes.
    for_replica: Duration,
    /// Until the promotion was committed and in force.
    for_commit: Duration,
    /// Until the new primary served.
    for_successor: Duration,
}

impl fmt::Display for WriteStop {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let parts = [self.for_replica, self.for_commit, self.for_successor];
        let all = parts.iter().sum::<Duration>().as_millis();
        let [replica, commit, successor] = parts.map(|part| part.as_millis());
        write!(
            f,
            "writes waited for {all} ms: {replica} ms for the replica, {commit} ms for the commit, {successor} ms for \
             the new primary"
        )
    }
}

/// A replica with a lease.
type Candidate = (NodeRun, Member);

/// Commands that wait until this value is dropped.
struct HeldCommands {
    shared: &'static Shared,
    purpose: Hold,
}

impl Drop for HeldCommands {
    fn drop(&mut self) {
        // If the server shuts down during a switch, the outcome of the switch may be unknown, so nothing more is
        // served.
        if !self.shared.process.shutdown.is_requested() {
            self.shared.release_writes(self.purpose);
        }
    }
}

impl PlannedSwitch<'_> {
    /// Returns true if another node is the primary.
    fn run(&self) -> bool {
        let (shared, shard, term) = (self.watcher.shared, self.shard, self.term);
        let log = &shared.log;
        let began = Instant::now();
        match self.attempt() {
            Ok((to, stop)) => {
                let to = self.watcher.state.in_force().label(to.node);
                log.notice(format_args!(
                    "Cluster: shard {shard} term {term}: handed over to {to}; {stop}"
                ));
                true
            }
            Err(why) => {
                let ms = began.elapsed().as_millis();
                log.warning(format_args!(
                    "Cluster: shard {shard} term {term}: the planned switch was aborted after {ms} ms: {why}"
                ));
                false
            }
        }
    }

    /// Returns the new primary, and how long writes waited.
    fn attempt(&self) -> Result<(NodeRun, WriteStop), String> {
        if self.watcher.is_static() {
            return Err("the topology of a file does not change".to_owned());
        }
        if !self.is_primary() {
            return Err("this node is no longer the primary".to_owned());
        }
        if self.watcher.state.coordinator() == CoordinatorState::Frozen {
            return Err(CoordinatorError::NoSpace.to_string());
        }
        self.wait_until_serving()?;
        let candidates = self.candidates();
        if candidates.is_empty() {
            return Err("the replica has no lease".to_owned());
        }
        self.wait_until_near(&candidates)?;
        let writes = self.hold_writes()?;
        let held = Instant::now();
        let (to, reads) = self.wait_until_equal(&candidates)?;
        let equal = Instant::now();
        let outcome = self.commit(to);
        let committed = Instant::now();
        if outcome.is_ok() {
            self.wait_for_successor(to, &candidates);
        }
        drop((reads, writes));
        let stop = WriteStop {
            for_replica: equal - held,
            for_commit: committed - equal,
            for_successor: committed.elapsed(),
        };
        outcome.map(|()| (to, stop))
    }

    fn is_primary(&self) -> bool {
        is_primary(self.watcher.state, self.shard, self.term)
    }

    /// Waits until this node serves. After a promotion, an earlier primary may still serve. The next primary does not
    /// wait for it, so this node must not hand over before its own wait is over.
    fn wait_until_serving(&self) -> Result<(), String> {
        let (deadline, state) = (&self.watcher.deadline, self.watcher.state);
        while deadline.wait_left_ms().is_some() {
            self.pause("this node waits, because an earlier primary may still serve")?;
        }
        deadline.publish(state);
        // A renewal may only be late.
        let renewal_end = Instant::now() + self.watcher.ttl.duration() / 3;
        while state.is_fenced() {
            let why = "this node does not serve, because its lease may have ended";
            if Instant::now() >= renewal_end {
                return Err(why.to_owned());
            }
            self.pause(why)?;
        }
        Ok(())
    }

    fn candidates(&self) -> Vec<Candidate> {
        let in_force = self.watcher.state.in_force();
        let topology = in_force.topology.as_deref();
        let shard = topology.and_then(|topology| topology.shard(self.shard));
        let replicas = shard.map(|shard| shard.replicas.as_slice()).unwrap_or_default();
        let registered = self.watcher.registered();
        let candidate = |id: &NodeId| {
            let node = registered.get(id)?;
            let run = node.run();
            let is_wanted = self.to.map_or(!node.no_failover, |to| to == run);
            is_wanted.then(|| (run, node.member.clone()))
        };
        replicas.iter().filter_map(candidate).collect()
    }

    /// The reports of these nodes.
    fn statuses(&self, candidates: &[Candidate]) -> BTreeMap<NodeId, NodeStatus> {
        let nodes: Vec<_> =
            candidates.iter().map(|(run, member)| (run.node, member.clone())).collect();
        query::statuses(&self.watcher.shared.config(), &nodes)
    }

    /// The candidates that follow this node's stream, each with its offset.
    fn offsets(&self, candidates: &[Candidate], replid: &str) -> Vec<(NodeRun, u64)> {
        let statuses = self.statuses(candidates);
        let offset = |(run, _): &Candidate| {
            let status = statuses.get(&run.node)?;
            let follows = status.incarnation == run.incarnation
                && status.role == NodeRole::Replica
                && !status.loading
                && status.replid == replid;
            follows.then_some((*run, status.offset))
        };
        candidates.iter().filter_map(offset).collect()
    }

    fn position(&self) -> (String, u64) {
        let shared = self.watcher.shared;
        shared.replication.position(&shared.keyspace)
    }

    /// Waits for the report of a replica with a small lag. After half of the time, any lag is accepted.
    fn wait_until_near(&self, candidates: &[Candidate]) -> Result<(), String> {
        let half = Instant::now() + self.until.saturating_duration_since(Instant::now()) / 2;
        loop {
            let (replid, offset) = self.position();
            let offsets = self.offsets(candidates, &replid);
            let is_near =
                |(_, other): &(NodeRun, u64)| offset.saturating_sub(*other) <= LAG_BYTES_MAX;
            let is_late = !offsets.is_empty() && Instant::now() >= half;
            if is_late || offsets.iter().any(is_near) {
                return Ok(());
            }
            self.pause("the replica does not report that it follows this node")?;
        }
    }

    /// Holds writes back as soon as no slow script is running.
    fn hold_writes(&self) -> Result<HeldCommands, String> {
        let shared = self.watcher.shared;
        let is_held = self.watcher.when_quiesced_within(Some(self.until), false, |core| {
            core.shared.conditions.hold_writes(Hold::Failover);
            core.shared.dispatch_changes(core.id);
        });
        if is_held {
            return Ok(HeldCommands { shared, purpose: Hold::Failover });
        }
        Err("a slow script is running, or the server is shutting down".to_owned())
    }

    /// Waits until a replica has the whole stream. From then on, reads wait as well.
    fn wait_until_equal(
        &self,
        candidates: &[Candidate],
    ) -> Result<(NodeRun, HeldCommands), String> {
        loop {
            let (replid, offset) = self.position();
            let offsets = self.offsets(candidates, &replid);
            if let Some((to, _)) = offsets.into_iter().find(|(_, other)| *other == offset)
                && let Some(reads) = self.hold_reads((replid, offset))
            {
                return Ok((to, reads));
            }
            if !self.is_primary() {
                return Err("this node is no longer the primary".to_owned());
            }
            self.pause("the replica did not get the last writes in time")?;
        }
    }

    /// Holds reads back, if the stream still ends at this position and this node still serves as the primary.
    fn hold_reads(&self, expected: (String, u64)) -> Option<HeldCommands> {
        let (shared, state) = (self.watcher.shared, self.watcher.state);
        let (shard, term) = (self.shard, self.term);
        let is_held = Arc::new(AtomicBool::new(false));
        let holds = Arc::clone(&is_held);
        self.watcher.when_quiesced_within(Some(self.until), false, move |core| {
            let position = core.shared.replication.position(&core.shared.keyspace);
            if position == expected && is_primary(state, shard, term) && !state.is_fenced() {
                core.shared.conditions.hold_writes(Hold::Switch);
                holds.store(true, Ordering::SeqCst);
            }
        });
        let is_held = is_held.load(Ordering::SeqCst);
        is_held.then_some(HeldCommands { shared, purpose: Hold::Switch })
    }

    /// Pauses before the next report.
    ///
    /// # Errors
    /// The time limit has passed, with the reason `late`, or the switch was canceled.
    fn pause(&self, late: &str) -> Result<(), String> {
        let shutdown = &self.watcher.shared.process.shutdown;
        if self.to.is_none() && !shutdown.is_planned() {
            return Err("the shutdown was called off".to_owned());
        }
        if shutdown.is_requested() {
            return Err("the server is shutting down".to_owned());
        }
        if Instant::now() >= self.until {
            return Err(late.to_owned());
        }
        self.watcher.signal.pause(REPORT_PAUSE);
        Ok(())
    }

    /// Commits the promotion. Returns once the document in force names the primary.
    ///
    /// # Errors
    /// The primary is this node, or a node other than `to`.
    fn commit(&self, to: NodeRun) -> Result<(), String> {
        let promotion = Promotion {
            shard: self.shard,
            expected_term: self.term,
            to,
            cause: TermCause::Planned,
            why: self.why.to_owned(),
        };
        let edit = |basis: &ChangeBasis<'_>| {
            let node = basis.registered.get(&to.node);
            if node.is_none_or(|node| node.incarnation != to.incarnation) {
                let (node, shard) = (to.node, self.shard);
                return Err(ChangeError::NotOfShard { node, shard, wanted: "running replica" });
            }
            promote(basis.topology, basis.change, &promotion)
        };
        match self.watcher.commit_within(COMMIT_MAX, &edit) {
            Ok(()) | Err(CommitError::Unknown) => self.settle(to),
            // Nothing was committed.
            Err(error) => Err(error.to_string()),
        }
    }

    /// Waits until a document that was created after the promotion was sent is in force. Commands wait too, but at most
    /// for one TTL: then this node is fenced until the outcome is known.
    fn settle(&self, to: NodeRun) -> Result<(), String> {
        let (shared, state) = (self.watcher.shared, self.watcher.state);
        let deadline = &self.watcher.deadline;
        let suspended_from = Instant::now() + self.watcher.ttl.duration();
        let (mut is_logged, mut is_suspended) = (false, false);
        loop {
            if !self.is_primary() {
                deadline.resume(state);
                let in_force = state.in_force();
                let topology = in_force.topology.as_deref();
                let shard = topology.and_then(|topology| topology.shard(self.shard));
                let is_done = shard.is_some_and(|shard| shard.primary_run() == Some(to));
                return if is_done { Ok(()) } else { Err("another change came first".to_owned()) };
            }
            if shared.process.shutdown.is_requested() || self.watcher.signal.is_stopped() {
                return Err("the server is shutting down, and the outcome is unknown".to_owned());
            }
            let (run, ttl) = (state.run(), self.watcher.ttl.seconds());
            let edit = |basis: &ChangeBasis<'_>| reassert(basis.topology, basis.change, run, ttl);
            match self.watcher.commit_within(SETTLE_MAX, &edit) {
                Ok(()) => {
                    deadline.resume(state);
                    return Err("the coordinator did not reply in time".to_owned());
                }
                Err(error) if !std::mem::replace(&mut is_logged, true) => {
                    let shard = self.shard;
                    shared.log.warning(format_args!(
                        "Cluster: shard {shard}: it is unknown whether the planned switch was committed, so commands \
                         wait until the coordinator confirms a change: {error}"
                    ));
                }
                Err(_) => {}
            }
            if !is_suspended && Instant::now() >= suspended_from {
                is_suspended = true;
                deadline.suspend(state);
                let (shard, ttl) = (self.shard, self.watcher.ttl.seconds());
                shared.log.warning(format_args!(
                    "Cluster: shard {shard}: the outcome of the planned switch is still unknown after {ttl} s, so this \
                     node serves nothing until the coordinator confirms a change"
                ));
            }
            if state.is_fenced() {
                // Waiting commands get the CLUSTERDOWN error.
                shared.check_paused_again();
            }
            self.watcher.signal.pause(SETTLE_PAUSE);
        }
    }

    /// Makes the new primary read the topology and waits until it serves.
    fn wait_for_successor(&self, to: NodeRun, candidates: &[Candidate]) {
        let is_new = |(run, _): &&Candidate| *run == to;
        let Some(successor) = candidates.iter().find(is_new) else { return };
        let until = Instant::now() + SUCCESSOR_MAX;
        let words = ["REPLCONF", SWITCH_OPTION, LOOK_VALUE];
        // If this request fails, the new primary's watch finds the document a little later.
        let _ = query::request_of(&self.watcher.shared.config(), &successor.1, &words);
        let serves = || {
            let statuses = self.statuses(std::slice::from_ref(successor));
            let status = statuses.get(&to.node);
            status.is_some_and(|status| status.role == NodeRole::Primary && status.term > self.term)
        };
        while !serves() && Instant::now() < until && !self.watcher.signal.is_stopped() {
            self.watcher.signal.pause(REPORT_PAUSE);
        }
    }
}

/// True if this node is the primary of this shard in this term, according to the document in force.
fn is_primary(state: &ClusterState, shard: ShardId, term: Term) -> bool {
    let map = &state.in_force().map;
    map.role() == MapRole::Primary && map.own_shard() == Some((shard, term))
}

/// Settles a switch to `to` whose outcome is unknown.
#[cfg(test)]
pub(super) fn settle_switch(watcher: &TopologyWatcher, to: NodeRun) -> Result<(), String> {
    let in_force = watcher.state.in_force();
    let (shard, term) = in_force.map.own_shard().ok_or("this node is in no shard")?;
    let switch =
        PlannedSwitch { watcher, shard, term, to: Some(to), until: Instant::now(), why: "" };
    switch.settle(to)
}
