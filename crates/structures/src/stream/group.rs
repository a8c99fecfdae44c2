//! Consumer groups: which entries were delivered to which consumer and have not been acknowledged.

use super::id::StreamId;
use super::id_map::IdMap;
use std::collections::BTreeMap;
use std::sync::Arc;

/// An entry that was delivered and not acknowledged.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Nack {
    /// The consumer's number in the group.
    consumer: u32,
    /// Time of the last delivery.
    pub delivered_ms: i64,
    /// Number of deliveries.
    pub count: u64,
}

/// A consumer that reads on behalf of a group.
#[derive(Debug, Clone)]
pub struct Consumer {
    pub name: Arc<[u8]>,
    /// Time of the consumer's last attempt to read or claim.
    pub seen_ms: i64,
    /// Time of the consumer's last successful read or claim; `None` if there was none.
    pub active_ms: Option<i64>,
    pending: IdMap<()>,
}

impl Consumer {
    /// Returns the IDs that were delivered to the consumer and have not been acknowledged.
    pub fn pending(&self) -> &IdMap<()> {
        &self.pending
    }
}

/// A consumer group.
#[derive(Debug, Clone)]
pub struct Group {
    pub last_id: StreamId,
    /// Number of entries of the stream up to `last_id`, or [`super::ENTRIES_READ_UNKNOWN`].
    pub entries_read: i64,
    pending: IdMap<Nack>,
    numbers: BTreeMap<Arc<[u8]>, u32>,
    consumers: BTreeMap<u32, Consumer>,
    next_number: u32,
}

impl Group {
    pub(super) fn new(last_id: StreamId, entries_read: i64) -> Group {
        Group {
            last_id,
            entries_read,
            pending: IdMap::default(),
            numbers: BTreeMap::new(),
            consumers: BTreeMap::new(),
            next_number: 0,
        }
    }

    /// Returns the pending entries by ID.
    pub fn pending(&self) -> &IdMap<Nack> {
        &self.pending
    }

    /// Returns the consumers, sorted by name.
    pub fn consumers(&self) -> impl ExactSizeIterator<Item = &Consumer> {
        self.numbers.values().map(|number| &self.consumers[number])
    }

    pub fn consumer(&self, name: &[u8]) -> Option<&Consumer> {
        self.consumers.get(self.numbers.get(name)?)
    }

    pub fn consumer_mut(&mut self, name: &[u8]) -> Option<&mut Consumer> {
        self.consumers.get_mut(self.numbers.get(name)?)
    }

    /// Returns the consumer that owns a pending entry.
    pub fn owner(&self, nack: &Nack) -> &Consumer {
        &self.consumers[&nack.consumer]
    }

    /// Adds a consumer. Returns false if the name already exists.
    pub fn create_consumer(&mut self, name: &[u8], now_ms: i64) -> bool {
        if self.numbers.contains_key(name) {
            return false;
        }
        let name: Arc<[u8]> = name.into();
        let number = self.next_number;
        self.next_number += 1;
        self.numbers.insert(Arc::clone(&name), number);
        let pending = IdMap::default();
        let consumer = Consumer { name, seen_ms: now_ms, active_ms: None, pending };
        self.consumers.insert(number, consumer);
        true
    }

    /// Removes a consumer and its pending entries, and returns the number of these entries.
    pub fn delete_consumer(&mut self, name: &[u8]) -> Option<usize> {
        let number = self.numbers.remove(name)?;
        let consumer = self.consumers.remove(&number)?;
        for (id, ()) in consumer.pending.iter_from(StreamId::MIN) {
            self.pending.remove(id);
        }
        Some(consumer.pending.len())
    }

    /// Makes an entry pending for `consumer`, which must exist, and for no other consumer.
    pub fn assign(&mut self, id: StreamId, consumer: &[u8], delivered_ms: i64, count: u64) {
        let Some(&number) = self.numbers.get(consumer) else { return };
        let before = self.pending.get(id).map(|nack| nack.consumer);
        if let Some(before) = before.filter(|before| *before != number) {
            self.consumers.get_mut(&before).map(|owner| owner.pending.remove(id));
        }
        self.pending.insert(id, Nack { consumer: number, delivered_ms, count });
        if before != Some(number)
            && let Some(owner) = self.consumers.get_mut(&number)
        {
            owner.pending.insert(id, ());
        }
    }

    /// Records one more delivery to the same consumer.
    pub fn redeliver(&mut self, id: StreamId, now_ms: i64) {
        self.pending.update(id, |nack| {
            nack.delivered_ms = now_ms;
            nack.count = nack.count.saturating_add(1);
        });
    }

    /// Acknowledges a pending entry. Returns false if it was not pending.
    pub fn acknowledge(&mut self, id: StreamId) -> bool {
        let Some(nack) = self.pending.remove(id) else { return false };
        self.consumers.get_mut(&nack.consumer).map(|owner| owner.pending.remove(id));
        true
    }

    pub(super) fn allocated_bytes(&self) -> usize {
        let consumers = self.consumers.values();
        size_of::<Group>()
            + self.pending.allocated_bytes()
            + consumers
                .map(|c| size_of::<Consumer>() + c.name.len() + c.pending.allocated_bytes())
                .sum::<usize>()
    }

    pub(super) fn check(&self) {
        self.pending.check();
        assert_eq!(self.numbers.len(), self.consumers.len());
        let mut sum = 0;
        for (number, consumer) in &self.consumers {
            assert_eq!(self.numbers.get(&consumer.name), Some(number));
            consumer.pending.check();
            sum += consumer.pending.len();
            for (id, ()) in consumer.pending.iter_from(StreamId::MIN) {
                assert_eq!(self.pending.get(id).map(|nack| nack.consumer), Some(*number));
            }
        }
        assert_eq!(sum, self.pending.len());
    }
}
