//! Comparisons of the datasets of a primary and its replicas: requests, results, and the reports of replicas on the
//! comparison in progress.
//!
//! | file | purpose |
//! |---|---|
//! | `marker` | the markers in the stream |
//! | `report` | the reports of replicas |
//! | `observed` | the state of a replica: the differences that it has found so far |
//!
//! The work itself is in [`super::compare`].

pub mod marker;
pub mod observed;
pub mod report;

use self::report::ComparisonReport;
use brisk_engine::keyspace::{DbNumber, DbSlot, SlotId};
use brisk_engine::{Outcome, Reply};
use brisk_structures::poison::EvenPoisoned;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// Maximum number of replicas, and replicas of replicas, in one comparison.
const REPLICAS_MAX: usize = 256;
/// Maximum length of a replica's name, which includes the names of the replicas between it and this
/// server.
const NAME_LEN_MAX: usize = 300;

/// A slot that differs on a replica.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Difference {
    pub db: DbNumber,
    pub slot: SlotId,
    /// The offset in the stream at which it was compared.
    pub offset: u64,
}

/// The result for one replica.
#[derive(Debug, Clone, Default)]
pub struct ReplicaComparison {
    /// The offset in the stream at which the last pass ended; `None` if the replica did not report.
    pub offset: Option<u64>,
    pub compared: u64,
    pub skipped: u64,
    /// Slots that differed, and the offset at which the difference was found.
    pub differed: BTreeMap<DbSlot, u64>,
    /// Slots that still differ.
    pub differing: BTreeSet<DbSlot>,
    /// The number of slots that differ and were not named.
    pub unnamed: u64,
}

impl ReplicaComparison {
    /// Slots that differed and were repaired.
    pub fn repaired(&self) -> impl Iterator<Item = &DbSlot> {
        self.differed.keys().filter(|place| !self.differing.contains(place))
    }

    /// Number of slots that were found to differ.
    pub fn differed_count(&self) -> u64 {
        self.differed.len() as u64 + self.unnamed
    }

    fn word(&self) -> &'static str {
        if self.offset.is_none() {
            "silent"
        } else if !self.differing.is_empty() || self.unnamed > 0 {
            "differs"
        } else if !self.differed.is_empty() {
            "healed"
        } else {
            "equal"
        }
    }
}

/// The result of a comparison, for each replica.
#[derive(Debug, Clone, Default)]
pub struct Finding {
    pub number: u64,
    pub ended_ms: u64,
    pub replicas: BTreeMap<String, ReplicaComparison>,
    /// The reason why the comparison could not be completed.
    pub failure: Option<&'static str>,
}

impl Finding {
    /// The sum of a number over the replicas.
    pub fn sum(&self, of: impl Fn(&ReplicaComparison) -> u64) -> u64 {
        self.replicas.values().map(of).sum()
    }
}

/// Comparisons of this server as a primary.
#[derive(Default)]
pub struct Comparison {
    state: Mutex<State>,
    is_requested: AtomicBool,
    /// Number of completed comparisons.
    ended: AtomicU64,
}

#[derive(Default)]
struct State {
    /// True if the requested or running comparison repairs differences.
    repairs: bool,
    /// The reports of replicas on the current pass.
    round: Option<u64>,
    reports: BTreeMap<String, ComparisonReport>,
    last: Option<Finding>,
}

impl Comparison {
    /// Requests a comparison, or requests that the running comparison also repair differences. Returns its number.
    pub fn request(&self, repairs: bool) -> u64 {
        let mut state = self.state.lock().even_poisoned();
        state.repairs |= repairs;
        self.is_requested.store(true, Ordering::Release);
        self.ended() + 1
    }

    /// Reports whether a comparison is requested or in progress.
    #[inline]
    pub fn is_requested(&self) -> bool {
        self.is_requested.load(Ordering::Relaxed)
    }

    /// Number of completed comparisons.
    pub fn ended(&self) -> u64 {
        self.ended.load(Ordering::Acquire)
    }

    /// Returns true if the comparison repairs differences.
    pub(super) fn repairs(&self) -> bool {
        self.state.lock().even_poisoned().repairs
    }

    /// Begins a round: from now on, only reports on this round count.
    pub(super) fn listen(&self, round: u64) {
        let mut state = self.state.lock().even_poisoned();
        state.round = Some(round);
        state.reports.clear();
    }

    /// Adds a report of a replica.
    pub(super) fn add_report(&self, who: &str, report: ComparisonReport) {
        let mut state = self.state.lock().even_poisoned();
        // Reports that are passed on for other replicas must leave room for direct reports.
        let has_room = state.reports.len() < REPLICAS_MAX || report.who.is_none();
        let has_room = has_room && who.len() <= NAME_LEN_MAX;
        if state.round == Some(report.round) && has_room {
            state.reports.insert(who.to_owned(), report);
        }
    }

    /// Returns true if all of these replicas have reported, and all further replicas that their reports announced.
    pub(super) fn have_reported(&self, who: &BTreeSet<String>) -> bool {
        let state = self.state.lock().even_poisoned();
        let followers =
            state.reports.values().fold(0, |sum: u64, one| sum.saturating_add(one.followers));
        who.iter().all(|one| state.reports.contains_key(one))
            && state.reports.len() as u64 >= followers.saturating_add(who.len() as u64)
    }

    /// Ends the round and returns the reports on it.
    pub(super) fn take_reports(&self) -> BTreeMap<String, ComparisonReport> {
        let mut state = self.state.lock().even_poisoned();
        state.round = None;
        std::mem::take(&mut state.reports)
    }

    /// Ends the comparison. `repairs` is the mode that it had. If a repair was requested after that mode was read, does
    /// nothing and returns false.
    pub(super) fn end(&self, mut finding: Finding, repairs: bool) -> bool {
        let mut state = self.state.lock().even_poisoned();
        if state.repairs && !repairs {
            return false;
        }
        finding.number = self.ended() + 1;
        *state = State { last: Some(finding), ..State::default() };
        self.is_requested.store(false, Ordering::Release);
        self.ended.fetch_add(1, Ordering::AcqRel);
        true
    }

    /// Calls `read` with the result of the last comparison.
    pub fn with_last<R>(&self, read: impl FnOnce(&Finding) -> R) -> R {
        let state = self.state.lock().even_poisoned();
        read(state.last.as_ref().unwrap_or(&Finding::default()))
    }

    /// Replies with the result of the last comparison, with a map for each replica.
    pub fn write_reply(&self, reply: &mut Reply<'_>) -> Outcome {
        self.with_last(|last| write_reply(reply, last))
    }
}

fn write_reply(reply: &mut Reply<'_>, last: &Finding) -> Outcome {
    if let Some(failure) = last.failure {
        return reply.error_text(failure);
    }
    let mut outcome = reply.array(last.replicas.len());
    for (who, found) in &last.replicas {
        reply.map(8);
        reply.bulk(b"replica");
        reply.bulk(who.as_bytes());
        reply.bulk(b"state");
        reply.bulk(found.word().as_bytes());
        reply.bulk(b"offset");
        reply.integer(found.offset.map_or(-1, u64::cast_signed));
        reply.bulk(b"compared");
        reply.integer(found.compared.cast_signed());
        reply.bulk(b"skipped");
        reply.integer(found.skipped.cast_signed());
        reply.bulk(b"differing");
        write_places(reply, found, found.differing.iter());
        reply.bulk(b"unnamed");
        reply.integer(found.unnamed.cast_signed());
        reply.bulk(b"healed");
        outcome = write_places(reply, found, found.repaired());
    }
    outcome
}

/// Replies with an array of slots: for each slot, its database, its index, and the offset at which it was found to
/// differ.
fn write_places<'p>(
    reply: &mut Reply<'_>,
    found: &ReplicaComparison,
    places: impl Iterator<Item = &'p DbSlot>,
) -> Outcome {
    let places: Vec<&DbSlot> = places.collect();
    let mut outcome = reply.array(places.len());
    for place in places {
        reply.array(3);
        reply.integer(i64::from(place.0.number()));
        reply.count(place.1.index());
        let offset = found.differed.get(place).copied().unwrap_or_default();
        outcome = reply.integer(offset.cast_signed());
    }
    outcome
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reports_count_only_for_their_round_and_a_repair_can_be_added() {
        let comparison = Comparison::default();
        assert!(!comparison.is_requested());
        assert_eq!((comparison.request(false), comparison.repairs()), (1, false));
        assert_eq!((comparison.request(true), comparison.repairs()), (1, true));
        let report = |round| ComparisonReport { round, ..ComparisonReport::default() };
        let both = BTreeSet::from(["a".to_owned(), "b".to_owned()]);
        comparison.add_report("a", report(7));
        comparison.listen(7);
        assert!(!comparison.have_reported(&both));
        comparison.add_report("a", ComparisonReport { followers: 1, ..report(7) });
        comparison.add_report("b", report(6));
        assert!(!comparison.have_reported(&both));
        comparison.add_report("b", report(7));
        assert!(!comparison.have_reported(&both));
        comparison.add_report("behind a", report(7));
        assert!(comparison.have_reported(&both) && comparison.take_reports().len() == 3);
        assert!(!comparison.end(Finding::default(), false) && comparison.is_requested());
        assert!(comparison.end(Finding::default(), true));
        assert!(!comparison.is_requested() && comparison.ended() == 1 && !comparison.repairs());
        assert_eq!(comparison.request(false), 2);
    }
}
