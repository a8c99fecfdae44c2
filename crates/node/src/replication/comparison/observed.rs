//! Of a replica: what it has found so far of the comparison that its primary's stream speaks of.
//!
//! Digests of large values are made by a thread of their own, which then also tells the primary. It gets what
//! the stream says in the stream's order.

use super::Difference;
use super::report::Report;
use brisk_engine::compare::{DigestContext, LargeValue};
use brisk_engine::keyspace::DbSlot;
use std::collections::HashMap;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};

/// Things that wait for the thread, at most: of further slots large values are not compared.
const WAITING_MAX: usize = 1024;

/// What the thread is told.
pub enum Item {
    /// What this server has in a slot, seen at an offset.
    Own { place: DbSlot, offset: u64, lens: DigestContext, large: Vec<LargeValue> },
    /// What the primary had there at that offset: what stands for each key, and its digest.
    Theirs { place: DbSlot, digests: Vec<(u64, u64)> },
    /// That was all; this is what was found without large values.
    End(Report),
}

/// The comparison that goes on.
#[derive(Default)]
pub struct Observed {
    pub report: Report,
    thread: Option<SyncSender<Item>>,
}

impl Observed {
    /// A new one.
    pub fn of(round: u64) -> Observed {
        Observed { report: Report { round, ..Report::default() }, thread: None }
    }

    /// Whether a thread has been told something.
    pub fn has_thread(&self) -> bool {
        self.thread.is_some()
    }

    /// A channel to a thread that `start` starts, which is false if there is none.
    pub fn start_thread(&mut self, start: impl FnOnce(Receiver<Item>) -> bool) -> bool {
        let (sender, receiver) = sync_channel(WAITING_MAX);
        let has_started = start(receiver);
        self.thread = has_started.then_some(sender);
        has_started
    }

    /// Tells the thread; whether it hears of it.
    pub fn send(&self, item: Item) -> bool {
        self.thread.as_ref().is_some_and(|thread| thread.try_send(item).is_ok())
    }
}

/// Makes digests of large values until the end of a comparison; the report, if it came to its end.
pub fn digest_large(items: &Receiver<Item>) -> Option<Report> {
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
                // Each is taken out, whether one before differed or not.
                if digests.iter().filter(|pair| differs(pair)).count() > 0 {
                    differences.push(Difference {
                        db: place.0.into(),
                        slot: place.1,
                        offset: *offset,
                    });
                }
            }
            Item::End(mut report) => {
                // Several parts of a slot's may differ.
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
