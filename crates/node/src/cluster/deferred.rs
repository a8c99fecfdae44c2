//! Changes of the topology that a transaction or a script requests. Its commands need replies at once, so a thread
//! commits the changes afterwards.

use super::writer::{ChangeBasis, CommitError, TopologyWriter};
use brisk_cluster::change::Edit;
use brisk_cluster::document::Topology;
use brisk_structures::poison::EvenPoisoned;
use std::fmt;
use std::sync::{Arc, Mutex};

/// Maximum number of changes that wait: `redis-cli --cluster fix` sends a transaction for each uncovered slot, with
/// two changes.
const WAITING_MAX: usize = 2 * 16_384;

/// Computes the next document.
pub type TopologyEdit = Box<dyn Fn(&ChangeBasis<'_>) -> Edit + Send + Sync>;

/// The changes that wait.
#[derive(Default)]
pub struct DeferredChanges {
    queue: Mutex<Queue>,
}

#[derive(Default)]
struct Queue {
    waiting: Vec<TopologyEdit>,
    /// A thread commits changes.
    is_running: bool,
}

impl fmt::Debug for DeferredChanges {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DeferredChanges").finish_non_exhaustive()
    }
}

impl DeferredChanges {
    /// Commits a change later. `report` is called for changes that failed. Returns false if too many wait, or if the
    /// system provides no thread.
    pub fn submit(
        &'static self,
        writer: Arc<dyn TopologyWriter>,
        edit: TopologyEdit,
        report: impl Fn(&CommitError) + Send + 'static,
    ) -> bool {
        let mut queue = self.queue.lock().even_poisoned();
        if queue.waiting.len() >= WAITING_MAX {
            return false;
        }
        queue.waiting.push(edit);
        if queue.is_running {
            return true;
        }
        let thread = std::thread::Builder::new().name("brisk-topology".to_owned());
        let started = thread.spawn(move || {
            while let Some(edits) = self.take() {
                if let Err(error) = writer.commit(&|basis| combine(&edits, basis)) {
                    report(&error);
                }
            }
        });
        queue.is_running = started.is_ok();
        if started.is_err() {
            queue.waiting.pop();
        }
        started.is_ok()
    }

    /// The changes that wait; the thread ends if there are none.
    fn take(&self) -> Option<Vec<TopologyEdit>> {
        let mut queue = self.queue.lock().even_poisoned();
        let edits = std::mem::take(&mut queue.waiting);
        queue.is_running = !edits.is_empty();
        queue.is_running.then_some(edits)
    }
}

/// The document after all changes. A change that is rejected is left out, since each command had its reply. O(changes
/// x document).
fn combine(edits: &[TopologyEdit], basis: &ChangeBasis<'_>) -> Edit {
    let mut next: Option<Topology> = None;
    for edit in edits {
        let topology = next.as_ref().unwrap_or(basis.topology);
        if let Ok(Some(changed)) = edit(&ChangeBasis { topology, ..*basis }) {
            next = Some(changed);
        }
    }
    Ok(next)
}

#[cfg(test)]
mod tests {
    use super::*;
    use brisk_cluster::change::{add_slots, parse_slots};
    use brisk_cluster::document::{Member, Registration};
    use brisk_cluster::id::{ChangeId, Incarnation, NodeId};
    use std::collections::BTreeMap;

    #[test]
    fn changes_build_upon_one_another_and_a_rejected_one_is_left_out() {
        let own = Registration {
            id: NodeId::from_bytes([1; 20]),
            incarnation: Incarnation(1),
            version: String::new(),
            member: Member { ip: "127.0.0.1".to_owned(), port: 7000, ..Member::default() },
            no_failover: false,
            other: Default::default(),
        };
        let change = ChangeId { writer: own.run(), number: 1 };
        let topology = Topology::empty("brisk", change);
        let registered = BTreeMap::new();
        let basis = ChangeBasis {
            topology: &topology,
            change,
            own: &own,
            registered: &registered,
            now_s: 0,
        };
        let add = |slot: &[u8]| -> TopologyEdit {
            let slots = parse_slots(&[slot]).unwrap();
            Box::new(move |basis| add_slots(basis.topology, basis.change, basis.own, &slots))
        };
        let next = combine(&[add(b"1"), add(b"1"), add(b"2")], &basis).unwrap().unwrap();
        assert_eq!(next.shards[0].slots.to_string(), "1-2");
        assert_eq!(combine(&[], &basis), Ok(None));
    }
}
