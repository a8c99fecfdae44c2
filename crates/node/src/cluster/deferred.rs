//! Changes to the topology that transactions and scripts request. Their commands need immediate replies, so a thread
//! commits the changes afterwards.

use super::writer::{ChangeBasis, CommitError, TopologyWriter};
use brisk_cluster::change::Edit;
use brisk_cluster::document::Topology;
use brisk_structures::poison::EvenPoisoned;
use std::cell::RefCell;
use std::fmt;
use std::sync::{Arc, Mutex};

/// Maximum number of waiting changes. `redis-cli --cluster fix` sends a transaction with two changes for each uncovered
/// slot.
const WAITING_MAX: usize = 2 * 16_384;

/// Computes the next document.
pub type TopologyEdit = Box<dyn Fn(&ChangeBasis<'_>) -> Edit + Send + Sync>;

/// Changes that were not committed although their commands replied OK.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RejectedChanges {
    pub count: usize,
    /// Why the first of these changes was not committed.
    pub error: CommitError,
}

/// For the log.
impl fmt::Display for RejectedChanges {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let RejectedChanges { count, error } = self;
        match count {
            1 => write!(f, "a change of a transaction was not committed: {error}"),
            _ => write!(f, "{count} changes of transactions were not committed: {error}"),
        }
    }
}

/// The changes that wait.
#[derive(Default)]
pub struct DeferredChanges {
    queue: Mutex<Queue>,
}

#[derive(Default)]
struct Queue {
    waiting: Vec<TopologyEdit>,
    /// True while a thread commits changes.
    is_running: bool,
}

impl fmt::Debug for DeferredChanges {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DeferredChanges").finish_non_exhaustive()
    }
}

impl DeferredChanges {
    /// Commits a change later. `report` is called if changes were not committed. Returns false if too many changes wait
    /// or no thread can be started.
    pub fn submit(
        &'static self,
        writer: Arc<dyn TopologyWriter>,
        edit: TopologyEdit,
        report: impl Fn(&RejectedChanges) + Send + 'static,
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
                if let Some(rejected) = commit(&edits, &*writer) {
                    report(&rejected);
                }
            }
        });
        queue.is_running = started.is_ok();
        if started.is_err() {
            queue.waiting.pop();
        }
        started.is_ok()
    }

    /// Takes the waiting changes. The thread ends if there are none.
    fn take(&self) -> Option<Vec<TopologyEdit>> {
        let mut queue = self.queue.lock().even_poisoned();
        let edits = std::mem::take(&mut queue.waiting);
        queue.is_running = !edits.is_empty();
        queue.is_running.then_some(edits)
    }
}

/// Commits several changes together. Returns the changes that were not committed, if any.
fn commit(edits: &[TopologyEdit], writer: &dyn TopologyWriter) -> Option<RejectedChanges> {
    let rejected = RefCell::new(None);
    let committed = writer.commit(&|basis| {
        // If another writer was faster, the changes are computed again. Only the last attempt counts.
        let (next, left_out) = combine(edits, basis);
        rejected.replace(left_out);
        Ok(next)
    });
    match committed {
        Ok(()) => rejected.into_inner(),
        Err(error) => Some(RejectedChanges { count: edits.len(), error }),
    }
}

/// The document after all changes. Rejected changes are left out, because the replies to their commands have already
/// been sent. O(changes x document).
fn combine(
    edits: &[TopologyEdit],
    basis: &ChangeBasis<'_>,
) -> (Option<Topology>, Option<RejectedChanges>) {
    let mut next: Option<Topology> = None;
    let mut rejected: Option<RejectedChanges> = None;
    for edit in edits {
        let topology = next.as_ref().unwrap_or(basis.topology);
        match edit(&ChangeBasis { topology, ..*basis }) {
            Ok(changed) => next = changed.or(next),
            Err(error) => {
                let first = RejectedChanges { count: 0, error: error.into() };
                rejected.get_or_insert(first).count += 1;
            }
        }
    }
    (next, rejected)
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
        let (next, rejected) = combine(&[add(b"1"), add(b"1"), add(b"2")], &basis);
        assert_eq!(next.unwrap().shards[0].slots.to_string(), "1-2");
        let rejected = rejected.unwrap();
        assert_eq!(
            rejected.to_string(),
            "a change of a transaction was not committed: ERR Slot 1 is already busy"
        );
        assert_eq!(combine(&[], &basis), (None, None));
        let edits = [add(b"1"), add(b"1"), add(b"1")];
        // The first attempt was based on another document, in which no slot was free.
        let busy = combine(&[add(b"1")], &basis).0.unwrap();
        let writer = RepeatingWriter(Mutex::new(vec![topology.clone(), busy]), own.clone());
        assert_eq!(commit(&edits, &writer).unwrap().count, 2);
        assert_eq!(commit(&edits[..1], &RepeatingWriter(Mutex::new(vec![topology]), own)), None);
    }

    /// Computes a change from each of the documents, from the last one to the first.
    #[derive(Debug)]
    struct RepeatingWriter(Mutex<Vec<Topology>>, Registration);

    impl TopologyWriter for RepeatingWriter {
        fn commit(&self, edit: &dyn Fn(&ChangeBasis<'_>) -> Edit) -> Result<(), CommitError> {
            let (own, registered) = (&self.1, &BTreeMap::new());
            while let Some(topology) = self.0.lock().even_poisoned().pop() {
                let change = topology.change;
                edit(&ChangeBasis { topology: &topology, change, own, registered, now_s: 0 })?;
            }
            Ok(())
        }

        fn renew_id(&self) -> Result<(), CommitError> {
            Err(CommitError::Unknown)
        }

        fn discard_copy(&self) -> Result<(), CommitError> {
            Err(CommitError::Unknown)
        }

        fn take_settings(&self) {}
    }
}
