//! Commits changes to the document.

use super::identity::{new_id, registration_of};
use super::watcher::{Found, Installation, TopologyWatcher};
use brisk_cluster::change::Edit;
use brisk_cluster::document::Topology as Document;
use brisk_cluster::id::ChangeId;
use brisk_coordinate::error::CoordinatorError;
use brisk_coordinate::values::{
    ChangeOutcome, ClusterSnapshot, Revision, Topology, TopologyChange, WatchEvent,
};
use brisk_node::cluster::{ChangeBasis, CommitError, TopologyWriter};
use brisk_node::persistence::loading::discard::flush_dataset;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// The time limit for one commit, which is how long clients of CLUSTER commands wait.
const COMMIT_MAX: Duration = Duration::from_secs(10);
/// The pause before another attempt, after another change came first or an error occurred.
const RETRY_PAUSE: Duration = Duration::from_millis(20);
/// The shortest time limit for a call. Even after the deadline, one more call is worthwhile to learn the outcome of a
/// change that was sent.
const CALL_MIN: Duration = Duration::from_millis(50);
/// How long a search for a change in the history waits for the coordinator.
const HISTORY_WAIT: Duration = Duration::from_millis(500);

/// The result of one attempt.
pub(super) enum Attempt {
    /// The document was changed or already had the wanted content, and is in force. Contains the revision of the
    /// change, if known.
    Done(Option<Revision>),
    /// The document was changed. This node will put it in force later.
    NotInForce(Option<Revision>),
    /// Another change came first.
    Overtaken,
}

impl TopologyWriter for TopologyWatcher {
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

    fn discard_copy(&self) -> Result<(), CommitError> {
        if !self.has_left_as_replica.load(Ordering::SeqCst) {
            return Ok(());
        }
        let (state, is_done) = (self.state, Arc::new(AtomicBool::new(false)));
        let done = Arc::clone(&is_done);
        let until = Some(Instant::now() + COMMIT_MAX);
        self.when_quiesced_within(until, false, move |core| {
            // In the meantime, this node may have joined a shard again.
            let is_outsider = state.in_force().map.own_shard().is_none();
            let is_replica = core.shared.conditions.is_replica();
            if is_outsider && !is_replica {
                flush_dataset(core);
            }
            done.store(!is_outsider || !is_replica, Ordering::SeqCst);
        });
        if !is_done.load(Ordering::SeqCst) {
            let why = "this node is busy and still has its keys, try again";
            return Err(CommitError::Coordinator(why.to_owned()));
        }
        self.has_left_as_replica.store(false, Ordering::SeqCst);
        Ok(())
    }

    fn take_settings(&self) {
        self.refresh_own();
    }
}

impl TopologyWatcher {
    /// As [`TopologyWriter::commit`], within `limit`.
    pub(super) fn commit_within(
        &self,
        limit: Duration,
        edit: &dyn Fn(&ChangeBasis<'_>) -> Edit,
    ) -> Result<(), CommitError> {
        let until = Instant::now() + limit;
        let mut last = None;
        loop {
            let snapshot = match self.snapshot(left(until)) {
                Ok((_, Installation::Refused(refusal))) => {
                    return Err(CommitError::Coordinator(refusal.to_string()));
                }
                // The change is computed from the snapshot, regardless of the topology in force here.
                Ok((snapshot, Installation::InForce | Installation::Unfinished)) => Some(snapshot),
                Err(error) => {
                    last = Some(error.to_string());
                    None
                }
            };
            let attempt = snapshot.map(|snapshot| self.attempt(&snapshot, until, edit));
            match attempt.transpose()? {
                Some(Attempt::Done(_)) => return Ok(()),
                // After the workers have ended, a node no longer puts documents in force.
                Some(Attempt::NotInForce(_)) if self.shared.process.shutdown.is_requested() => {
                    return Ok(());
                }
                Some(Attempt::NotInForce(_)) => return Err(CommitError::Unknown),
                Some(Attempt::Overtaken) | None => {}
            }
            if Instant::now() >= until || self.signal.is_stopped() {
                // The outcome is known: another change always came first, or nothing was sent.
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
            None => Document::empty(self.name(), change),
            Some(json) => Document::parse(json)
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

    /// Sends a change repeatedly until its outcome is known, and installs it, both before `until`. Sending it again is
    /// safe. It is applied at most once, because its expected revision is no longer current afterwards.
    pub(super) fn propose(
        &self,
        proposal: &TopologyChange<'_>,
        change: ChangeId,
        until: Instant,
    ) -> Result<Attempt, CommitError> {
        let mut is_undecided = false;
        loop {
            if !is_undecided && Instant::now() >= until {
                return Err(CommitError::Coordinator("there was no time to send it".to_owned()));
            }
            match self.coordinator.change_within(proposal, left(until)) {
                ChangeOutcome::Changed(revision) => {
                    self.note_write_result(false);
                    return self.installed(proposal, revision, until);
                }
                ChangeOutcome::Conflict if !is_undecided => return Ok(Attempt::Overtaken),
                ChangeOutcome::Conflict => match self.find_change(proposal.expected, change, until)
                {
                    Some((true, Installation::InForce)) => return Ok(Attempt::Done(None)),
                    Some((true, Installation::Unfinished)) => return Ok(Attempt::NotInForce(None)),
                    // The log has the reason. The change is committed, so it is not rejected.
                    Some((true, Installation::Refused(_))) => return Err(CommitError::Unknown),
                    Some((false, _)) => return Ok(Attempt::Overtaken),
                    None => {}
                },
                ChangeOutcome::Refused(error) if !is_undecided => {
                    if matches!(error, CoordinatorError::NoSpace) {
                        self.note_write_result(true);
                    }
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
    fn installed(
        &self,
        proposal: &TopologyChange<'_>,
        revision: Revision,
        until: Instant,
    ) -> Result<Attempt, CommitError> {
        let topology = Topology { revision, document: Some(proposal.document.to_vec()) };
        let found = Found { topology: &topology, known: proposal.expected };
        match self.install(found, until) {
            Installation::InForce => Ok(Attempt::Done(Some(revision))),
            Installation::Unfinished => Ok(Attempt::NotInForce(Some(revision))),
            // The log has the reason. The change is committed, so it is not rejected.
            Installation::Refused(_) => Err(CommitError::Unknown),
        }
    }

    /// Looks for a change in the document and in the history after `expected`, and installs the document. Returns
    /// `None` if the outcome cannot be determined.
    fn find_change(
        &self,
        expected: Revision,
        change: ChangeId,
        until: Instant,
    ) -> Option<(bool, Installation)> {
        let known = self.known_revision();
        let present = self.coordinator.read_within(left(until)).ok()?;
        let installation = self.install(Found { topology: &present, known }, until);
        let carries = |json: &Option<Vec<u8>>| {
            let topology = json.as_deref().and_then(|json| Document::parse(json).ok());
            topology.is_some_and(|topology| topology.change == change)
        };
        if carries(&present.document) {
            return Some((true, installation));
        }
        if present.revision == expected {
            return None;
        }
        let mut watch = self.coordinator.watch(expected);
        while watch.position() < present.revision {
            let events = watch.next(HISTORY_WAIT.min(left(until))).ok()?;
            for event in events {
                match event {
                    WatchEvent::Topology(topology) if carries(&topology.document) => {
                        return Some((true, installation));
                    }
                    WatchEvent::Compacted { .. } | WatchEvent::NoLeader => return None,
                    _ => {}
                }
            }
        }
        Some((false, installation))
    }
}

/// The time limit for the next call.
fn left(until: Instant) -> Duration {
    until.saturating_duration_since(Instant::now()).max(CALL_MIN)
}
