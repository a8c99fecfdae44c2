//! The order in which entries are handled: as they arrived, entries of one key one after another, and failed entries
//! after their pause.

use super::message::Id;
use bytes::Bytes;
use std::collections::{BTreeSet, HashMap, VecDeque};
use std::time::Instant;

/// Entries that are not being handled. The caller bounds their number.
#[derive(Debug, Default)]
pub(super) struct Queue {
    ready: VecDeque<Id>,
    /// For each key with an entry in progress, the later entries of that key.
    by_key: HashMap<Bytes, BTreeSet<Id>>,
    due: BTreeSet<(Instant, Id)>,
}

impl Queue {
    /// Adds an entry. If the entry has a key, it waits for earlier entries of the same key. O(log entries).
    pub(super) fn add(&mut self, id: Id, key: Option<&Bytes>) {
        if let Some(key) = key {
            if let Some(line) = self.by_key.get_mut(key) {
                line.insert(id);
                return;
            }
            self.by_key.insert(key.clone(), BTreeSet::new());
        }
        self.ready.push_back(id);
    }

    /// The next entry to handle.
    pub(super) fn pop(&mut self) -> Option<Id> {
        self.ready.pop_front()
    }

    /// Schedules another attempt to handle an entry at this time. Later entries of its key continue to wait.
    pub(super) fn again(&mut self, id: Id, at: Instant) {
        self.due.insert((at, id));
    }

    /// Moves entries whose next attempt is due to the front of the queue.
    pub(super) fn wake(&mut self, now: Instant) {
        while let Some(&(at, id)) = self.due.first()
            && at <= now
        {
            self.due.pop_first();
            self.ready.push_front(id);
        }
    }

    /// The time of the next scheduled attempt.
    pub(super) fn next_due(&self) -> Option<Instant> {
        self.due.first().map(|(at, _)| *at)
    }

    /// Records that an entry of this key has completed, so that the next entry of the key may run.
    pub(super) fn settle(&mut self, key: Option<&Bytes>) {
        let Some(key) = key else { return };
        match self.by_key.get_mut(key).map(BTreeSet::pop_first) {
            Some(Some(next)) => self.ready.push_back(next),
            _ => {
                self.by_key.remove(key);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    fn id(seq: u64) -> Id {
        Id { ms: 1, seq }
    }

    #[test]
    fn entries_of_a_key_wait_for_each_other_but_not_for_other_keys() {
        let mut queue = Queue::default();
        let [a, b] = [Bytes::from("a"), Bytes::from("b")];
        // Claimed entries may arrive in any order.
        for (seq, key) in [(1, &a), (4, &a), (3, &a), (2, &b)] {
            queue.add(id(seq), Some(key));
        }
        queue.add(id(5), None);
        let now = Instant::now();
        assert_eq!(
            [queue.pop(), queue.pop(), queue.pop()],
            [Some(id(1)), Some(id(2)), Some(id(5))]
        );
        assert_eq!(queue.pop(), None);
        // The entry failed, so later entries of its key wait for it.
        queue.again(id(1), now + Duration::from_secs(1));
        queue.settle(Some(&b));
        queue.wake(now);
        assert_eq!((queue.pop(), queue.next_due()), (None, Some(now + Duration::from_secs(1))));
        queue.wake(now + Duration::from_secs(1));
        assert_eq!((queue.pop(), queue.next_due()), (Some(id(1)), None));
        for expected in [Some(id(3)), Some(id(4)), None] {
            queue.settle(Some(&a));
            assert_eq!(queue.pop(), expected);
        }
        assert!(queue.by_key.is_empty());
        queue.add(id(9), Some(&a));
        assert_eq!(queue.pop(), Some(id(9)));
    }
}
