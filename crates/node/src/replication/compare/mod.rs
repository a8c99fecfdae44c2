//! A primary compares its dataset with the datasets of its replicas while commands continue to run.
//!
//! ```text
//! lock some slots ─ digests ─ append marker ───┐     ┌─ replica executes up to the marker: own digests
//! … the next slots                             ├─ stream ─ …
//! end ─────────────────────────────────────────┘     └─ reports what differs
//!                ┌────────── REPLCONF brisk-compared ◄───────────┘
//! differing slots are sent whole, and compared again
//! ```
//! On both sides, the contents of a slot result from the stream up to the marker. So each slot is compared at the same
//! offset on both sides, regardless of concurrent writes, and no step has to be retried.
//!
//! The first worker compares between the rounds of its event loop, a slice at a time. [`replica`] is the other side.

pub mod replica;

use super::comparison::marker::Marker;
use super::comparison::report::ComparisonReport;
use super::comparison::{Difference, Finding, ReplicaComparison};
use super::replicas::ReplicaHandle;
use crate::core::Core;
use crate::core::conditions::Condition;
use crate::core::long::yield_to_workers;
use crate::core::shared::Shared;
use brisk_engine::Keyspace;
use brisk_engine::compare::{self, DigestContext, LargeValue, SlotDigest};
use brisk_engine::keyspace::{DbIndex, DbSlot, SLOTS, SlotId, UnixMs};
use brisk_structures::hash::HashKey;
use std::collections::{BTreeMap, BTreeSet};
use std::thread::JoinHandle;

/// Maximum number of slots that are locked at the same time, and maximum number of keys in them. The slots stay locked
/// for some tens of microseconds.
const SLOTS_AT_ONCE: usize = 64;
const KEYS_AT_ONCE: usize = 256;
/// Maximum number of passes of a comparison. More than two passes are needed if replicas differ in
/// more slots than a report can name: each pass repairs the named slots.
const PASSES_MAX: usize = 32;
/// Maximum number of large values in one marker.
const LARGE_PER_MARKER: usize = 1000;
/// Maximum number of slots that a log line names.
const LOGGED_MAX: usize = 32;

const IS_REPLICA: &str = "ERR this server is a replica now, the comparison has ended";

/// The result of one turn of a comparison.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Compared {
    /// There is more work that can be done immediately.
    Part,
    /// Replicas or a thread have to finish some work first.
    Waits,
    /// No comparison is in progress.
    Nothing,
}

/// The first worker's state for comparisons.
#[derive(Default)]
pub struct Comparer {
    work: Option<Box<Work>>,
    /// When the next comparison is due according to `replica-compare-period`, in Unix ms; 0 if that is not known yet.
    due_ms: u64,
}

/// A comparison in progress.
struct Work {
    pass: Pass,
    passes: usize,
    phase: Phase,
    /// True if, at the last check, the comparison was requested to repair differences.
    repairs: bool,
    found: BTreeMap<String, ReplicaComparison>,
}

/// One walk over slots.
struct Pass {
    kind: Kind,
    round: u64,
    lens: DigestContext,
    /// Slots that are still to be processed, in reverse order.
    runs: Vec<Run>,
    databases: Vec<DbIndex>,
}

/// The set of slots that a pass covers.
#[derive(Clone, PartialEq)]
enum Kind {
    /// All slots of the databases in which this server has keys.
    All,
    /// The slots of databases in which only replicas have keys.
    Beyond,
    /// The slots that were sent whole.
    Named(BTreeSet<DbSlot>),
}

/// Consecutive slots.
#[derive(Clone, Copy)]
struct Run {
    db: DbIndex,
    first: usize,
    end: usize,
}

enum Phase {
    Walks,
    /// A thread computes the digests of large values of the last slots.
    WaitsForLarge(JoinHandle<Vec<Marker>>),
    /// All slots have been processed. Replicas may report until this time, in Unix ms.
    Listens(u64),
    Repairs(Vec<DbSlot>),
}

impl Comparer {
    /// Requests a comparison if one is due. Called by the timers.
    pub fn request_if_due(&mut self, core: &Core, now_ms: u64) {
        let settings = &core.config.replication;
        let period_ms = settings.replica_compare_period_s.max(0).cast_unsigned() * 1000;
        if period_ms == 0 || core.shared.conditions.is_replica() || !has_comparable(core.shared) {
            self.due_ms = 0;
        } else if self.due_ms == 0 || self.due_ms > now_ms.saturating_add(period_ms) {
            // This is the first call, or the period has become shorter.
            self.due_ms = now_ms.saturating_add(period_ms);
        } else if now_ms >= self.due_ms {
            self.due_ms = now_ms.saturating_add(period_ms);
            core.shared.replication.comparison.request(settings.replica_compare_heal);
        }
    }

    /// Continues the requested comparison while `more` returns true.
    pub fn advance(&mut self, core: &Core, mut more: impl FnMut() -> bool) -> Compared {
        let mut compared = Compared::Part;
        while compared == Compared::Part && more() {
            compared = self.step(core);
        }
        compared
    }

    fn step(&mut self, core: &Core) -> Compared {
        let shared = core.shared;
        let comparison = &shared.replication.comparison;
        if !comparison.is_requested() {
            self.work = None;
            return Compared::Nothing;
        }
        if shared.conditions.is_replica() {
            self.work = None;
            return end(core, Finding { failure: Some(IS_REPLICA), ..Finding::default() }, true);
        }
        let is_congested = shared.conditions.has(Condition::LogCongestion);
        if core.data_must_not_change() || is_congested {
            return Compared::Waits;
        }
        let Some(work) = &mut self.work else {
            if !has_comparable(shared) {
                return end(core, Finding::default(), true);
            }
            self.work = Some(Box::new(Work::begin(core)));
            return Compared::Part;
        };
        let step = work.step(core);
        if step == Compared::Nothing
            && let Some(work) = self.work.take()
        {
            log_found(core, &work.found);
            let finding = Finding { replicas: work.found, ..Finding::default() };
            return end(core, finding, work.repairs);
        }
        step
    }
}

/// Ends the comparison. If a repair was requested during it, the comparison starts over.
fn end(core: &Core, finding: Finding, repairs: bool) -> Compared {
    let finding = Finding { ended_ms: brisk_reactor::unix_ms(), ..finding };
    if !core.shared.replication.comparison.end(finding, repairs) {
        return Compared::Part;
    }
    core.shared.persistence.aof.wake_waiting(core.shared, Some(core.id));
    Compared::Nothing
}

/// Returns true if a connected replica supports comparisons.
fn has_comparable(shared: &Shared) -> bool {
    shared.replication.replicas.count(is_comparable) > 0
}

fn is_comparable(replica: &ReplicaHandle) -> bool {
    replica.compares && replica.is_online()
}

/// The names of the replicas that support comparisons. A replica that has lost its connection still counts until the
/// connection is closed here.
fn comparable(shared: &Shared) -> BTreeSet<String> {
    let replicas = shared.replication.replicas.list();
    replicas.iter().filter(|one| is_comparable(one)).map(ReplicaHandle::name).collect()
}

impl Work {
    fn begin(core: &Core) -> Work {
        let pass = Pass::all(core);
        Work { pass, passes: 1, phase: Phase::Walks, repairs: false, found: BTreeMap::new() }
    }

    /// Returns `Nothing` when the comparison is over.
    fn step(&mut self, core: &Core) -> Compared {
        let shared = core.shared;
        let append = |marker: &Marker| {
            shared.keyspace.journal().append_request(&marker.request());
        };
        match &mut self.phase {
            Phase::Walks => match self.pass.look(core) {
                Processed::Some(large) if large.is_empty() => Compared::Part,
                Processed::Some(large) => match self.pass.digest(large) {
                    Some(thread) => {
                        self.phase = Phase::WaitsForLarge(thread);
                        Compared::Waits
                    }
                    // Replicas notice that these slots were not compared.
                    None => Compared::Part,
                },
                Processed::Later => Compared::Waits,
                Processed::All => {
                    let Pass { round, databases, .. } = &self.pass;
                    append(&Marker::End {
                        round: *round,
                        databases: databases.iter().map(|db| (*db).into()).collect(),
                    });
                    let timeout_ms = core.config.replication.repl_timeout_s.max(1) * 1000;
                    let until = brisk_reactor::unix_ms() + timeout_ms.cast_unsigned();
                    self.phase = Phase::Listens(until);
                    Compared::Waits
                }
            },
            Phase::WaitsForLarge(thread) if !thread.is_finished() => Compared::Waits,
            Phase::WaitsForLarge(_) => {
                let phase = std::mem::replace(&mut self.phase, Phase::Walks);
                if let Phase::WaitsForLarge(thread) = phase {
                    thread.join().unwrap_or_default().iter().for_each(append);
                }
                Compared::Part
            }
            Phase::Listens(until) => {
                let comparison = &shared.replication.comparison;
                let awaited = comparable(shared);
                if !comparison.have_reported(&awaited) && brisk_reactor::unix_ms() < *until {
                    return Compared::Waits;
                }
                for who in awaited {
                    self.found.entry(who).or_default();
                }
                let beyond = self.take_reports(core, comparison.take_reports());
                self.after_pass(core, beyond)
            }
            Phase::Repairs(places) => {
                let Some((db, slot)) = places.last().copied() else {
                    self.phase = Phase::Walks;
                    return Compared::Part;
                };
                let lens = self.pass.lens;
                let keep = |ids: &[u64]| {
                    Marker::Keep { lens, db: db.into(), slot, ids: ids.to_vec() }.request()
                };
                let at = (&shared.keyspace, &core.env);
                if !compare::emit_slot(at, db, slot, &lens, keep) {
                    return Compared::Waits;
                }
                places.pop();
                Compared::Part
            }
        }
    }

    /// Adds the reports of replicas on the pass. Returns the databases in which replicas have keys and which the pass
    /// did not cover.
    fn take_reports(
        &mut self,
        core: &Core,
        reports: BTreeMap<String, ComparisonReport>,
    ) -> Vec<DbIndex> {
        let keyspace = &core.shared.keyspace;
        let mut beyond = BTreeSet::new();
        for (who, report) in reports {
            // Reports are not trusted. The databases that they name must exist.
            let Some(named) = places_of(keyspace, &report) else {
                core.shared.log.warning(format_args!(
                    "Replica {who} reported slots of databases that this server does not have: its \
                     report was ignored"
                ));
                continue;
            };
            let found = self.found.entry(who).or_default();
            let kind = &self.pass.kind;
            found.offset = Some(report.offset);
            match kind {
                Kind::All => (found.compared, found.skipped) = (report.compared, report.skipped),
                Kind::Beyond => {
                    found.compared += report.compared;
                    found.skipped += report.skipped;
                }
                Kind::Named(_) => {}
            }
            let was_looked_at = |place: &DbSlot| match kind {
                Kind::All | Kind::Beyond => self.pass.databases.contains(&place.0),
                Kind::Named(places) => places.contains(place),
            };
            found.differing.retain(|place| !was_looked_at(place));
            let unnamed = report.differing.saturating_sub(named.len() as u64);
            for (place, offset) in named {
                found.differing.insert(place);
                found.differed.entry(place).or_insert(offset);
            }
            match kind {
                Kind::All => found.unnamed = unnamed,
                Kind::Beyond | Kind::Named(_) => found.unnamed += unnamed,
            }
            // The replica may have more databases than this server.
            beyond.extend(report.beyond.iter().filter_map(|number| keyspace.db(*number)));
        }
        beyond.into_iter().collect()
    }

    fn after_pass(&mut self, core: &Core, beyond: Vec<DbIndex>) -> Compared {
        let differing: BTreeSet<DbSlot> =
            self.found.values().flat_map(|found| &found.differing).copied().collect();
        self.repairs = core.shared.replication.comparison.repairs();
        self.passes += 1;
        if self.passes > PASSES_MAX {
            return Compared::Nothing;
        }
        if self.pass.kind == Kind::All && !beyond.is_empty() {
            self.pass = Pass::of_databases(core, Kind::Beyond, beyond);
            self.phase = Phase::Walks;
            return Compared::Part;
        }
        if !self.repairs || differing.is_empty() {
            return Compared::Nothing;
        }
        if let Kind::Named(places) = &self.pass.kind
            && differing.iter().all(|place| places.contains(place))
        {
            // The slots differ again or never matched.
            return Compared::Nothing;
        }
        self.phase = Phase::Repairs(differing.iter().rev().copied().collect());
        let names_all = self.found.values().all(|found| found.unnamed == 0);
        self.pass = match names_all {
            true => Pass::of_places(core, differing),
            false => Pass::all(core),
        };
        Compared::Part
    }
}

/// The slots that a report names, each with the offset at which it differed. `None` if a database does not exist,
/// because this server cannot have compared it.
fn places_of(keyspace: &Keyspace, report: &ComparisonReport) -> Option<Vec<(DbSlot, u64)>> {
    let place = |one: &Difference| Some(((keyspace.db(one.db)?, one.slot), one.offset));
    report.named.iter().map(place).collect()
}

/// The result of processing the next slots.
enum Processed {
    /// Some slots were processed. Contains their large values.
    Some(Vec<(DbSlot, Vec<LargeValue>)>),
    Later,
    /// There are no more slots.
    All,
}

impl Pass {
    fn new(core: &Core, kind: Kind, runs: Vec<Run>, databases: Vec<DbIndex>) -> Pass {
        let (round, secret) = {
            let mut random = core.env.random.borrow_mut();
            (random.bits(), HashKey { k0: random.bits(), k1: random.bits() })
        };
        core.shared.replication.comparison.listen(round);
        let lens = DigestContext { secret, now: UnixMs(brisk_reactor::unix_ms()) };
        Pass { kind, round, lens, runs, databases }
    }

    fn all(core: &Core) -> Pass {
        let keyspace = &core.shared.keyspace;
        let databases = keyspace.databases();
        let with_keys = databases.filter(|db| keyspace.key_count(*db) > 0).collect();
        Pass::of_databases(core, Kind::All, with_keys)
    }

    fn of_databases(core: &Core, kind: Kind, databases: Vec<DbIndex>) -> Pass {
        let run = |db: &DbIndex| Run { db: *db, first: 0, end: SLOTS };
        let runs = databases.iter().rev().map(run).collect();
        Pass::new(core, kind, runs, databases)
    }

    fn of_places(core: &Core, places: BTreeSet<DbSlot>) -> Pass {
        let mut runs: Vec<Run> = Vec::new();
        for (db, slot) in &places {
            match runs.last_mut() {
                Some(run) if run.db == *db && run.end == slot.index() => run.end += 1,
                _ => runs.push(Run { db: *db, first: slot.index(), end: slot.index() + 1 }),
            }
        }
        runs.reverse();
        let all = core.shared.keyspace.databases().collect();
        Pass::new(core, Kind::Named(places), runs, all)
    }

    /// Processes the next slots and appends their marker.
    fn look(&mut self, core: &Core) -> Processed {
        let shared = core.shared;
        let Some(run) = self.runs.last_mut() else { return Processed::All };
        let database = shared.keyspace.database(run.db);
        let (mut slots, mut keys) = (Vec::new(), 0);
        for number in (run.first..run.end).take(SLOTS_AT_ONCE) {
            let slot = SlotId::new(number as u16);
            keys += database.slot(slot).len();
            if keys > KEYS_AT_ONCE && !slots.is_empty() {
                break;
            }
            slots.push(slot);
        }
        // Keys whose expiry time has passed count as deleted, even if they have not been removed yet.
        self.lens.now = UnixMs(brisk_reactor::unix_ms());
        let (db, first) = (run.db, slots[0]);
        let (round, lens) = (self.round, self.lens);
        let send = |seen: Vec<Option<SlotDigest>>| {
            let digests = seen.iter().map(|seen| seen.as_ref().map(|seen| seen.sum)).collect();
            let marker = Marker::Slots { round, lens, db: db.into(), first, digests };
            shared.keyspace.journal().append_request(&marker.request());
            seen
        };
        let at = (&shared.keyspace, &core.env);
        let Some(seen) = compare::digest_slots(at, db, &slots, &lens, send) else {
            return Processed::Later;
        };
        run.first += slots.len();
        if run.first >= run.end {
            self.runs.pop();
        }
        let large = |(slot, seen): (SlotId, Option<SlotDigest>)| {
            Some(((db, slot), seen?.large)).filter(|(_, large)| !large.is_empty())
        };
        Processed::Some(slots.into_iter().zip(seen).filter_map(large).collect())
    }

    /// Starts a thread that computes the digests of large values. Returns `None` if no thread could be started.
    fn digest(&self, slots: Vec<(DbSlot, Vec<LargeValue>)>) -> Option<JoinHandle<Vec<Marker>>> {
        let (round, lens) = (self.round, self.lens);
        let digest = move || {
            yield_to_workers();
            let mut markers = Vec::new();
            for ((db, slot), large) in slots {
                let digests: Vec<_> =
                    large.into_iter().map(|one| (one.id, one.digest(&lens))).collect();
                markers.extend(digests.chunks(LARGE_PER_MARKER).map(|part| Marker::Large {
                    round,
                    db: db.into(),
                    slot,
                    digests: part.to_vec(),
                }));
            }
            markers
        };
        std::thread::Builder::new().name("brisk-compare".to_owned()).spawn(digest).ok()
    }
}

/// Logs each replica that differed.
fn log_found(core: &Core, found: &BTreeMap<String, ReplicaComparison>) {
    let log = &core.shared.log;
    for (who, found) in found {
        if found.differed_count() == 0 {
            continue;
        }
        let names: Vec<String> = found
            .differed
            .keys()
            .take(LOGGED_MAX)
            .map(|(db, slot)| format!("{} of database {}", slot.index(), db.number()))
            .collect();
        let others = found.differed_count().saturating_sub(names.len() as u64);
        let more = if others > 0 { format!(" and {others} more") } else { String::new() };
        let repaired = found.repaired().count();
        log.warning(format_args!(
            "Replica {who} differed from this server at offset {}: slot {}{more}; \
             {repaired} of them were repaired",
            found.offset.unwrap_or_default(),
            names.join(", ")
        ));
    }
}
