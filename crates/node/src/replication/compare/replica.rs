//! The replica's side: compares its dataset with the markers in its primary's stream, and reports
//! to the primary. This module also receives the reports of this server's own replicas.

use crate::core::Core;
use crate::core::long::yield_to_workers;
use crate::core::session::Session;
use crate::core::shared::Shared;
use crate::replication::comparison::Difference;
use crate::replication::comparison::marker::Marker;
use crate::replication::comparison::observed::{Item, Observed, digest_large};
use crate::replication::comparison::report::ComparisonReport;
use crate::replication::replicas;
use brisk_engine::compare::{self, DigestContext, SlotDigest};
use brisk_engine::keyspace::{DbNumber, SlotId};
use brisk_engine::{CommandError, Result};
use brisk_structures::poison::EvenPoisoned;

/// Handles the message of a PING in the primary's stream, or in an append-only file, if the message
/// is a marker. The marker's offset is the end of the stream executed so far.
///
/// # Errors
/// [`CommandError::SlotFrozen`] if the marker removes keys and writes are paused. The caller then executes it again
/// after the pause.
#[cold]
pub fn execute(core: &Core, session: &Session, message: &[u8]) -> Result<()> {
    let Some(marker) = Marker::read(message) else { return Ok(()) };
    if let Marker::Keep { .. } = marker
        && session.source.is_primary()
        && !core.unit.is_running()
        && core.pause_in_force().is_some()
    {
        return Err(CommandError::SlotFrozen);
    }
    obey(core, session, marker);
    Ok(())
}

fn obey(core: &Core, session: &Session, marker: Marker) {
    let at = (&core.shared.keyspace, &core.env);
    if let Marker::Keep { lens, db, slot, ids } = marker {
        // A server with fewer databases than its primary has no data there.
        if let Some(db) = core.shared.keyspace.db(db) {
            compare::keep_only(at, db, slot, &lens, &ids.into_iter().collect());
        }
        return;
    }
    let replication = &core.shared.replication;
    // If the report has no receiver, there is no need to compare.
    if !session.source.is_primary() || !replication.upstream.compares() {
        return;
    }
    let mut observed = replication.observed.lock().even_poisoned();
    match marker {
        Marker::Slots { round, lens, db, first, digests } => {
            if observed.report.round != round {
                *observed = Observed::of(round);
            }
            compare_slots(core, &mut observed, &lens, (db, first), digests);
        }
        Marker::Large { round, db, slot, digests } if observed.report.round == round => {
            if let Some(db) = core.shared.keyspace.db(db) {
                observed.send(Item::Theirs { place: (db, slot), digests });
            }
        }
        Marker::End { round, databases } => {
            if observed.report.round != round {
                *observed = Observed::of(round);
            }
            finish(core, std::mem::take(&mut *observed), &databases);
        }
        Marker::Large { .. } | Marker::Keep { .. } => {}
    }
}

fn compare_slots(
    core: &Core,
    observed: &mut Observed,
    lens: &DigestContext,
    (number, first): (DbNumber, SlotId),
    digests: Vec<Option<u64>>,
) {
    let shared = core.shared;
    let Some(db) = shared.keyspace.db(number) else {
        observed.report.skipped += digests.len() as u64;
        return;
    };
    let offset = shared.replication.applied(shared.keyspace.journal());
    let slots: Vec<SlotId> =
        (first.index()..first.index() + digests.len()).map_while(SlotId::checked).collect();
    let seen = match shared.keyspace.database_if_used(db) {
        None => Some(slots.iter().map(|_| Some(SlotDigest::default())).collect()),
        Some(_) => {
            let at = (&shared.keyspace, &core.env);
            compare::digest_slots(at, db, &slots, lens, |seen: Vec<Option<SlotDigest>>| seen)
        }
    };
    let Some(seen) = seen else {
        observed.report.skipped += slots.len() as u64;
        return;
    };
    for ((slot, own), theirs) in slots.into_iter().zip(seen).zip(digests) {
        let Some(theirs) = theirs else {
            observed.report.skipped += 1;
            continue;
        };
        observed.report.compared += 1;
        match own {
            Some(own) if own.sum == theirs => {
                if own.large.is_empty() {
                    continue;
                }
                let item = Item::Own { place: (db, slot), offset, lens: *lens, large: own.large };
                if !send_to_thread(shared, observed, item) {
                    observed.report.compared -= 1;
                    observed.report.skipped += 1;
                }
            }
            _ => observed.report.note(Difference { db: number, slot, offset }),
        }
    }
}

/// Sends an item to the thread that computes digests of large values. The first item starts the thread. Returns true if
/// the thread receives the item.
fn send_to_thread(shared: &'static Shared, observed: &mut Observed, item: Item) -> bool {
    let has_thread = observed.has_thread()
        || observed.start_thread(|items| {
            let digest = move || {
                yield_to_workers();
                if let Some(report) = digest_large(&items) {
                    send_report(shared, &report);
                }
            };
            let name = "brisk-compare".to_owned();
            std::thread::Builder::new().name(name).spawn(digest).is_ok()
        });
    has_thread && observed.send(item)
}

/// Called after these databases were compared completely. Reports to the primary; if there is a thread, the thread
/// sends the report.
fn finish(core: &Core, mut observed: Observed, databases: &[DbNumber]) {
    let (shared, keyspace) = (core.shared, &core.shared.keyspace);
    observed.report.offset = shared.replication.applied(keyspace.journal());
    observed.report.followers = super::comparable(shared).len() as u64;
    let with_keys =
        keyspace.databases().filter(|db| keyspace.key_count(*db) > 0).map(DbNumber::from);
    observed.report.beyond = with_keys.filter(|db| !databases.contains(db)).collect();
    let report = observed.report.clone();
    if observed.has_thread() {
        // If the thread's queue is full, the primary notices that this replica does not report.
        observed.send(Item::End(report));
    } else {
        send_report(shared, &report);
    }
}

/// Reports the differences to the primary.
fn send_report(shared: &Shared, report: &ComparisonReport) {
    if !shared.replication.upstream.offer(&report.request()) {
        shared.log.warning(format_args!(
            "The result of a comparison cannot be reported to the primary, which has not read data from \
             this server for a long time. The primary considers this replica unresponsive."
        ));
    }
}

/// Receives a report from a replica of this server. The replica reports its own differences, or
/// those of one of its own replicas.
pub fn receive_report(core: &Core, session: &Session, text: &[u8]) {
    let Some(replica) = session.replication.replica().filter(|replica| replica.follows()) else {
        return;
    };
    let Some(report) = ComparisonReport::read(text) else { return };
    let replication = &core.shared.replication;
    let ip = replica.options().ip.or_else(|| session.record.addr.tcp().map(|addr| addr.ip()));
    let own_name = replicas::name_of(ip, replica.options().port, &session.record);
    // The names of other servers are prefixed with the sender's name, because the sender can only report for its own
    // replicas.
    let who = match &report.who {
        None => own_name,
        Some(behind) => format!("{own_name}/{behind}"),
    };
    if !core.shared.conditions.is_replica() {
        replication.comparison.add_report(&who, report);
    } else if replication.upstream.compares() {
        send_report(core.shared, &ComparisonReport { who: Some(who), ..report });
    }
}
