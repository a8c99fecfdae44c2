//! The state of a replica during a comparison that its primary runs: the differences that it has found so far.
//!
//! If there are large values, a separate thread computes their digests and then also sends the report. The thread
//! receives the markers in stream order.

use super::Difference;
use super::report::ComparisonReport;
use brisk_engine::compare::{DigestContext, LargeValue};
use brisk_engine::keyspace::DbSlot;
use std::collections::HashMap;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};

/// Maximum number of items that wait for the thread. If the queue is full, large values of further slots are not
/// compared.
const WAITING_MAX: usize = 1024;

/// An item for the thread.
pub enum Item {
    /// The large values of this server in a slot, at an offset.
    Own { place: DbSlot, offset: u64, lens: DigestContext, large: Vec<LargeValue> },
    /// The primary's large values at that offset: the hash of each key and the digest of its value.
    Theirs { place: DbSlot, digests: Vec<(u64, u64)> },
    /// The end of the comparison, with the report on everything except large values.
    End(ComparisonReport),
}

/// The comparison in progress.
#[derive(Default)]
pub struct Observed {
    pub report: ComparisonReport,
    thread: Option<SyncSender<Item>>,
}

impl Observed {
    /// A new comparison.
    pub fn of(round: u64) -> Observed {
        Observed { report: ComparisonReport { round, ..ComparisonReport::default() }, thread: None }
    }

    /// Reports whether the thread was started.
    pub fn has_thread(&self) -> bool {
        self.thread.is_some()
    }

    /// Creates a channel to a thread that `start` starts. `start` returns false if it could not start the thread.
    pub fn start_thread(&mut self, start: impl FnOnce(Receiver<Item>) -> bool) -> bool {
        let (sender, receiver) = sync_channel(WAITING_MAX);
        let has_started = start(receiver);
        self.thread = has_started.then_some(sender);
        has_started
    }

    /// Sends an item to the thread. Returns true if the thread receives it.
    pub fn send(&self, item: Item) -> bool {
        self.thread.as_ref().is_some_and(|thread| thread.try_send(item).is_ok())
    }
}

/// Computes digests of large values until the end of a comparison. Returns the report if the comparison was completed.
pub fn digest_large(items: &Receiver<Item>) -> Option<ComparisonReport> {
    let mut own: HashMap<DbSlot, (u64, HashMap<u64, u64>)> = HashMap::new();
    let mut differences = Vec::new();
    for item in items {
        match item {
            Item::Own { place, offset, lens, large } => {
                let digests = large.into_iter().map(|one| (one.id, one.digest(&lens))).collect();
                own.insert(place, (offset, digests));
            }
            Item::Theirs { place, digests } => {
                let Some((offset, mine)) = own.get_mut(&place) else { continue };
                let mut differs = |(id, digest): &(u64, u64)| mine.remove(id) != Some(*digest);
                // Each value must be removed from `mine`, so the loop must not stop at the first difference.
                if digests.iter().filter(|pair| differs(pair)).count() > 0 {
                    differences.push(Difference {
                        db: place.0.into(),
                        slot: place.1,
                        offset: *offset,
                    });
                }
            }
            Item::End(mut report) => {
                // A slot with several differing values is reported once.
                differences.dedup();
                let is_at = |one: &Difference, place: &DbSlot| {
                    (one.db, one.slot) == (place.0.into(), place.1)
                };
                let is_open = |place: &DbSlot| !differences.iter().any(|one| is_at(one, place));
                let rest = own.iter().filter(|(_, (_, mine))| !mine.is_empty());
                let open = rest.filter(|(place, _)| is_open(place)).count() as u64;
                report.compared = report.compared.saturating_sub(open);
                report.skipped += open;
                differences.into_iter().for_each(|one| report.note(one));
                return Some(report);
            }
        }
    }
    None
}
