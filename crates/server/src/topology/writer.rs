//! Commits changes of the document.

use super::follower::{Found, TopologyFollower};
use super::identity::{new_id, registration_of};
use brisk_cluster::change::Edit;
use brisk_cluster::document::Topology;
use brisk_cluster::id::ChangeId;
use brisk_coordinate::values::{
    ChangeOutcome, ClusterSnapshot, Revision, TopologyChange, WatchEvent,
};
use brisk_node::cluster::{ChangeBasis, CommitError, TopologyWriter};
use std::time::{Duration, Instant};

/// The time for one commit, as clients of CLUSTER commands wait.
const COMMIT_MAX: Duration = Duration::from_secs(10);
/// The pause before another attempt after a lost race or an error.
const RETRY_PAUSE: Duration = Duration::from_millis(20);
/// How long a look for a change in the history waits for the coordinator.
const HISTORY_WAIT: Duration = Duration::from_millis(500);

/// The result of one attempt.
pub(super) enum Attempt {
    /// The document was changed, or already was as wanted. The revision of the change, if it is known.
    Done(Option<Revision>),
    /// Another change came first.
    Overtaken,
}

impl TopologyWriter for TopologyFollower {
    fn commit(&self, edit: &dyn Fn(&ChangeBasis<'_>) -> Edit) -> Result<(), CommitError> {
        self.commit_within(COMMIT_MAX, edit)
    }

    fn renew_id(&self) -> Result<(), CommitError> {
        let id = new_id().map_err(CommitError::Coordinator)?;
        self.adopt_id(id);
        let until = Instant::now() + COMMIT_MAX;
        while !self.registered().contains_key(&id) {
            if Instant::now() >= until || self.signal.is_stopped() {
                return Err(CommitError::Unknown);
            }
            self.signal.pause(RETRY_PAUSE);
        }
        Ok(())
    }

    fn take_settings(&self) {
        self.refresh_own();
    }
}

impl TopologyFollower {
    /// As [`TopologyWriter::commit`], within `limit`.
    pub(super) fn commit_within(
        &self,
        limit: Duration,
        edit: &dyn Fn(&ChangeBasis<'_>) -> Edit,
    ) -> Result<(), CommitError> {
        let until = Instant::now() + limit;
        let mut last = None;
        loop {
            let snapshot = match self.snapshot() {
                Ok((_, Err(refusal))) => return Err(CommitError::Coordinator(refusal.to_string())),
                Ok((snapshot, Ok(()))) => Some(snapshot),
                Err(error) => {
                    last = Some(error.to_string());
                    None
                }
            };
            if let Some(snapshot) = snapshot
                && let Attempt::Done(_) = self.attempt(&snapshot, until, edit)?
            {
                return Ok(());
            }
            if Instant::now() >= until || self.signal.is_stopped() {
                // Nothing is undecided: each attempt was overtaken, or nothing was sent.
                let nothing = || "the topology changes too often, try again".to_owned();
                return Err(CommitError::Coordinator(last.unwrap_or_else(nothing)));
            }
            self.signal.pause(RETRY_PAUSE);
        }
    }

    fn attempt(
        &self,
        snapshot: &ClusterSnapshot,
        until: Instant,
        edit: &dyn Fn(&ChangeBasis<'_>) -> Edit,
    ) -> Result<Attempt, CommitError> {
        let change = self.next_change();
        let topology = match &snapshot.topology.document {
            None => Topology::empty(self.name(), change),
            Some(json) => Topology::parse(json)
                .map_err(|error| CommitError::Coordinator(error.to_string()))?,
        };
        let own = self.own();
        let nodes = snapshot.nodes.iter().filter_map(registration_of);
        let mut registered: std::collections::BTreeMap<_, _> =
            nodes.map(|node| (node.id, node)).collect();
        registered.entry(own.id).or_insert_with(|| own.clone());
        let now_s = brisk_reactor::unix_ms() / 1000;
        let basis =
            ChangeBasis { topology: &topology, change, own: &own, registered: &registered, now_s };
        let Some(next) = edit(&basis)? else { return Ok(Attempt::Done(None)) };
        let json = next.to_json().map_err(|error| CommitError::Coordinator(error.to_string()))?;
        let proposal = TopologyChange {
            expected: snapshot.topology.revision,
            document: &json,
            controller: None,
        };
        self.propose(&proposal, change, until)
    }

    /// Sends a change until its outcome is known, and installs it. Sending it again is safe: it is applied at most
    /// once, since its expected revision is gone afterwards.
    pub(super) fn propose(
        &self,
        proposal: &TopologyChange<'_>,
        change: ChangeId,
        until: Instant,
    ) -> Result<Attempt, CommitError> {
        let mut is_undecided = false;
        loop {
            match self.coordinator.change(proposal) {
                ChangeOutcome::Changed(revision) => return self.installed(Some(revision)),
                ChangeOutcome::Conflict if !is_undecided => return Ok(Attempt::Overtaken),
                ChangeOutcome::Conflict => match self.find_change(proposal.expected, change) {
                    Some(true) => return self.installed(None),
                    Some(false) => return Ok(Attempt::Overtaken),
                    None => {}
                },
                ChangeOutcome::Refused(error) if !is_undecided => {
                    return Err(CommitError::Coordinator(error.to_string()));
                }
                ChangeOutcome::Refused(_) | ChangeOutcome::Unknown(_) => is_undecided = true,
            }
            if Instant::now() >= until || self.signal.is_stopped() {
                return Err(CommitError::Unknown);
            }
            self.signal.pause(RETRY_PAUSE);
        }
    }

    /// Puts a committed change in force.
    fn installed(&self, revision: Option<Revision>) -> Result<Attempt, CommitError> {
        // The watch installs it if it cannot be read now.
        match self.install_newest() {
            Ok(None) | Err(_) => Ok(Attempt::Done(revision)),
            // The log has the reason. The change is committed, so this is no refusal of it.
            Ok(Some(_)) => Err(CommitError::Unknown),
        }
    }

    /// Looks for a change in the document and in the history after `expected`. `None` if this cannot be known.
    fn find_change(&self, expected: Revision, change: ChangeId) -> Option<bool> {
        let known = self.known_revision();
        let present = self.coordinator.read().ok()?;
        let _ = self.install(Found { topology: &present, known });
        let carries = |json: &Option<Vec<u8>>| {
            let topology = json.as_deref().and_then(|json| Topology::parse(json).ok());
            topology.is_some_and(|topology| topology.change == change)
        };
        if carries(&present.document) {
            return Some(true);
        }
        if present.revision == expected {
            return None;
        }
        let mut watch = self.coordinator.watch(expected);
        while watch.position() < present.revision {
            let events = watch.next(HISTORY_WAIT).ok()?;
            for event in events {
                match event {
                    WatchEvent::Topology(topology) if carries(&topology.document) => {
                        return Some(true);
                    }
                    WatchEvent::Compacted { .. } | WatchEvent::NoLeader => return None,
                    _ => {}
                }
            }
        }
        Some(false)
    }
}
