//! A replica compares what it holds with what the markers in its primary's stream say, and tells the primary;
//! and a server hears what its own replicas tell.

use crate::core::Core;
use crate::core::long::yield_to_workers;
use crate::core::session::Session;
use crate::core::shared::Shared;
use crate::replication::comparison::Difference;
use crate::replication::comparison::marker::Marker;
use crate::replication::comparison::observed::{Item, Observed, digest_large};
use crate::replication::comparison::report::Report;
use crate::replication::replicas;
use brisk_engine::compare::{self, DigestContext, SlotDigest};
use brisk_engine::keyspace::{DbNumber, SlotId};
use brisk_engine::{CommandError, Result};
use brisk_structures::poison::EvenPoisoned;

/// Does what a PING in the primary's stream, or in an append-only file, says beyond being one. Its place is
/// the end of what was executed.
///
/// # Errors
/// [`CommandError::SlotFrozen`] if it removes keys and writes are paused: it is to be executed when that is
/// over.
#[cold]
pub fn execute(core: &Core, session: &Session, message: &[u8]) -> Result<()> {
    let Some(marker) = Marker::read(message) else { return Ok(()) };
    if let Marker::Keep { .. } = marker
        && session.is_primary
        && core.unit.is_none()
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
    // Whoever does not hear what is found is not told, and it need not be found.
    if !session.is_primary || !replication.upstream.compares() {
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
                if !tell_thread(shared, observed, item) {
                    observed.report.compared -= 1;
                    observed.report.skipped += 1;
                }
            }
            _ => observed.report.note(Difference { db: number, slot, offset }),
        }
    }
}

/// Tells the thread that makes digests of large values, which is started with the first; whether it hears
/// of it.
fn tell_thread(shared: &'static Shared, observed: &mut Observed, item: Item) -> bool {
    let has_thread = observed.has_thread()
        || observed.start_thread(|items| {
            let digest = move || {
                yield_to_workers();
                if let Some(report) = digest_large(&items) {
                    tell(shared, &report);
                }
            };
            let name = "brisk-compare".to_owned();
            std::thread::Builder::new().name(name).spawn(digest).is_ok()
        });
    has_thread && observed.send(item)
}

/// All was compared of these databases: the primary is told, by the thread if there is one.
fn finish(core: &Core, mut observed: Observed, databases: &[DbNumber]) {
    let (shared, keyspace) = (core.shared, &core.shared.keyspace);
    observed.report.offset = shared.replication.applied(keyspace.journal());
    observed.report.followers = super::comparable(shared).len() as u64;
    let with_keys =
        keyspace.databases().filter(|db| keyspace.key_count(*db) > 0).map(DbNumber::from);
    observed.report.beyond = with_keys.filter(|db| !databases.contains(db)).collect();
    let report = observed.report.clone();
    if observed.has_thread() {
        // If it has too much to do the primary finds that this replica is silent.
        observed.send(Item::End(report));
    } else {
        tell(shared, &report);
    }
}

/// Tells the primary what was found.
fn tell(shared: &Shared, report: &Report) {
    if !shared.replication.upstream.offer(&report.request()) {
        shared.log.warning(format_args!(
            "The primary is not told what a comparison has found here, for it has not read for long what \
             this server says: it takes this server for silent."
        ));
    }
}

/// A replica of this server tells what it, or one of its own replicas, has found.
pub fn hear(core: &Core, session: &Session, text: &[u8]) {
    let Some(replica) = session.replica.as_ref().filter(|replica| replica.follows()) else {
        return;
    };
    let Some(report) = Report::read(text) else { return };
    let replication = &core.shared.replication;
    let ip = replica.ip.or_else(|| session.record.addr.tcp().map(|addr| addr.ip()));
    let own_name = replicas::name_of(ip, replica.port, &session.record);
    // Whatever it says of others stands behind its own name: it can speak for nobody else.
    let who = match &report.who {
        None => own_name,
        Some(behind) => format!("{own_name}/{behind}"),
    };
    if !core.shared.is_replica() {
        replication.comparison.tell(&who, report);
    } else if replication.upstream.compares() {
        tell(core.shared, &Report { who: Some(who), ..report });
    }
}
