//! Which replica is promoted, and whether a restarted primary may resume.

use super::{FailoverSettings, ReceivedStatus, Situation};
use crate::document::{Dataset, Durability, NodeStatus, Registration, Shard};
use crate::id::{NodeId, NodeRun, Term};
use std::cmp::Reverse;

/// A position in a replication history.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Lineage {
    pub(super) term: Term,
    pub(super) replid: String,
    pub(super) offset: u64,
}

/// The result of looking for a successor.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Search {
    Found {
        run: NodeRun,
        offset: u64,
    },
    /// No status report of these live replicas is recent.
    Query(Vec<NodeId>),
    /// The reason in words.
    None(String),
}

/// Looks for the best replica. `since_ms` is when the shard lost its primary. Only reports that arrived since then
/// count. While `is_patient` is true, missing reports are requested; later, replicas without a report are left out.
/// O(replicas).
///
/// The order is: data of the latest term, the highest offset, a zone different from that of the lost primary, the
/// lowest id.
pub(super) fn search(
    shard: &Shard,
    situation: &Situation<'_>,
    settings: &FailoverSettings,
    since_ms: u64,
    is_patient: bool,
) -> Search {
    let mut unheard = Vec::new();
    let mut reasons = Vec::new();
    let mut found = Vec::new();
    for id in &shard.replicas {
        let Some(node) = situation.registered.get(id) else {
            reasons.push(format!("{} has no lease", situation.label(*id)));
            continue;
        };
        if let Some(reason) = unfit(shard, node) {
            reasons.push(format!("{} {reason}", node.label()));
            continue;
        }
        match recent_status(situation, node, since_ms) {
            None => unheard.push(*id),
            Some(report) => match invalid(report, situation.now_ms, settings) {
                Some(reason) => reasons.push(format!("{} {reason}", node.label())),
                None => found.push((node, report)),
            },
        }
    }
    if !unheard.is_empty() && is_patient {
        return Search::Query(unheard);
    }
    reasons.extend(unheard.iter().map(|id| format!("{} sends no status", situation.label(*id))));
    let topology = situation.topology;
    let zone_of = |id: &NodeId| topology.and_then(|t| t.members.get(id)).map(|m| m.zone.as_str());
    let lost_zone = zone_of(&shard.primary);
    let best = found.into_iter().min_by_key(|(node, report)| {
        let is_same_zone = Some(node.member.zone.as_str()) == lost_zone;
        (Reverse((report.status.term, report.status.offset)), is_same_zone, node.id)
    });
    match best {
        Some((node, report)) => Search::Found { run: node.run(), offset: report.status.offset },
        None if reasons.is_empty() => Search::None("the shard has no replicas".to_owned()),
        None => Search::None(reasons.join("; ")),
    }
}

/// Why a live replica must not be promoted, regardless of what it reports.
fn unfit(shard: &Shard, node: &Registration) -> Option<&'static str> {
    if node.no_failover {
        Some("has cluster-replica-no-failover")
    } else if shard.durability == Durability::Sync && !shard.isr.contains(&node.run()) {
        Some("is not in sync")
    } else {
        None
    }
}

/// The status of this run, if it arrived after the shard lost its primary.
fn recent_status<'s>(
    situation: &Situation<'s>,
    node: &Registration,
    since_ms: u64,
) -> Option<&'s ReceivedStatus> {
    let report = situation.statuses.get(&node.id)?;
    let is_recent = report.received_ms >= since_ms;
    (is_recent && report.status.incarnation == node.incarnation).then_some(report)
}

/// Why a replica with this report must not be promoted without an operator, and what the operator can do.
fn invalid(report: &ReceivedStatus, now_ms: u64, settings: &FailoverSettings) -> Option<String> {
    let status = &report.status;
    let age_ms = status
        .last_contact_ms
        .map(|contact| contact.saturating_add(now_ms.saturating_sub(report.received_ms)));
    let age_ms_max = settings.ttl_ms.saturating_mul(settings.validity_factor);
    let reason = match age_ms {
        None => "has not been connected to its primary since its start",
        Some(_) if status.loading => "is loading or in a full synchronisation",
        Some(age_ms) if settings.validity_factor > 0 && age_ms > age_ms_max => {
            "has not heard from its primary for too long"
        }
        Some(_) => return None,
    };
    let advice = if status.full_copy { ": use CLUSTER FAILOVER FORCE on it" } else { "" };
    Some(format!("{reason}{advice}"))
}

/// Why the controller does not promote this replica of a shard that has lost its primary, if the replica has this
/// status now. `None` if the replica can be promoted.
#[must_use]
pub fn why_not_promoted(
    shard: &Shard,
    node: &Registration,
    status: &NodeStatus,
    settings: &FailoverSettings,
) -> Option<String> {
    let report = ReceivedStatus { status: status.clone(), received_ms: 0 };
    unfit(shard, node).map(str::to_owned).or_else(|| invalid(&report, 0, settings))
}

/// The decision about a restarted primary.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Resumption {
    Yes(Dataset),
    /// The primary is still loading, or has not reported yet.
    NotYet,
    /// The reason in words.
    No(String),
}

/// Decides whether the restarted primary of a shard, for which no replica can take over, may resume. `known` is the
/// last reported position of the previous run. O(replicas).
///
/// An empty dataset would replace those of the replicas, so a primary without data resumes only if no replica may have
/// any.
pub(super) fn resumption(
    shard: &Shard,
    situation: &Situation<'_>,
    node: &Registration,
    known: Option<&Lineage>,
) -> Resumption {
    let Some(report) = recent_status(situation, node, 0) else { return Resumption::NotYet };
    let status = &report.status;
    if status.loading {
        return Resumption::NotYet;
    }
    if shard.slots.is_empty() {
        return Resumption::Yes(status.dataset);
    }
    if shard.durability == Durability::Sync {
        let has_all = known
            .is_some_and(|known| status.replid == known.replid && status.offset >= known.offset);
        let why = "the restarted primary cannot show that it has every acknowledged write";
        return if has_all {
            Resumption::Yes(status.dataset)
        } else {
            Resumption::No(why.to_owned())
        };
    }
    let may_have_data = |id: &&NodeId| {
        let report = situation.statuses.get(*id);
        let is_registered = |report: &&ReceivedStatus| {
            let node = situation.registered.get(*id);
            node.is_some_and(|node| node.incarnation == report.status.incarnation)
        };
        let report = report.filter(is_registered);
        report
            .is_none_or(|r| r.status.dataset == Dataset::Disk || r.status.last_contact_ms.is_some())
    };
    match shard.replicas.iter().find(may_have_data) {
        Some(replica) if status.dataset == Dataset::Empty => Resumption::No(format!(
            "the primary restarted without data, and replica {} may have some",
            situation.label(*replica)
        )),
        _ => Resumption::Yes(status.dataset),
    }
}
