//! The memory of clients, sorted by size, so that the largest client is found in O(1) if all clients together exceed a
//! limit. The limits are `maxmemory-clients` for all their memory and `input-total-limit` for their inputs.
//!
//! ```text
//! class 0: below 32 KiB   class 1: below 64 KiB   …   class 18: 4 GiB and more
//! ```
//!
//! A worker updates the weights of its own sessions after a turn in which they changed. A worker that finds the sum too
//! large takes clients from the highest class of all workers. Within a class, it may take any client, as in Redis. The
//! memory of a client that was taken no longer counts toward the limit, so no other client is taken because of it while
//! it is being closed. It still counts toward the total.

use crate::clients::{ClientRecord, flag};
use brisk_structures::poison::EvenPoisoned;
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};

/// Clients below 2^15 bytes are all in one class.
const SMALLEST_LOG: u32 = 15;
const CLASSES: usize = 19;
/// The class of clients that must not be evicted.
const NONE: u8 = u8::MAX;

fn class_of(bytes: u64) -> u8 {
    let log = u64::BITS - bytes.leading_zeros();
    (log.saturating_sub(SMALLEST_LOG) as usize).min(CLASSES - 1) as u8
}

/// A client's weight and its position in the classes. Changed only while the lock of its worker's classes is held.
#[derive(Debug)]
pub struct Weight {
    bytes: AtomicI64,
    /// The class in the high bits, the index within it in the low bits.
    place: AtomicI64,
}

impl Default for Weight {
    fn default() -> Weight {
        Weight { bytes: AtomicI64::new(0), place: AtomicI64::new(place(NONE, 0)) }
    }
}

const fn place(class: u8, at: usize) -> i64 {
    (class as i64) << 32 | at as i64
}

impl Weight {
    /// Bytes at the last update.
    pub fn bytes(&self) -> u64 {
        self.bytes.load(Ordering::Relaxed).max(0) as u64
    }

    fn class(&self) -> u8 {
        (self.place.load(Ordering::Relaxed) >> 32) as u8
    }

    fn at(&self) -> usize {
        self.place.load(Ordering::Relaxed) as u32 as usize
    }
}

/// Selects one of a client's weights.
type WeightOf = fn(&ClientRecord) -> &Weight;

type Classes = [Vec<Arc<ClientRecord>>; CLASSES];

/// One worker's clients.
#[derive(Debug, Default)]
#[repr(align(128))]
struct WorkerWeights {
    classes: Mutex<Classes>,
    total: AtomicI64,
    evictable: AtomicI64,
}

impl WorkerWeights {
    fn lock(&self) -> MutexGuard<'_, Classes> {
        self.classes.lock().even_poisoned()
    }

    fn put(&self, classes: &mut Classes, of: WeightOf, record: &Arc<ClientRecord>, class: u8) {
        let list = &mut classes[usize::from(class)];
        of(record).place.store(place(class, list.len()), Ordering::Relaxed);
        list.push(Arc::clone(record));
    }

    fn take(&self, classes: &mut Classes, of: WeightOf, record: &ClientRecord) {
        let weight = of(record);
        let (class, at) = (weight.class(), weight.at());
        if class != NONE {
            let list = &mut classes[usize::from(class)];
            list.swap_remove(at);
            if let Some(moved) = list.get(at) {
                of(moved).place.store(place(class, at), Ordering::Relaxed);
            }
            weight.place.store(place(NONE, 0), Ordering::Relaxed);
        }
    }

    fn weigh(&self, of: WeightOf, record: &Arc<ClientRecord>, bytes: u64, evictable: bool) {
        let mut classes = self.lock();
        let bytes = bytes as i64;
        let weight = of(record);
        let before = weight.bytes.swap(bytes, Ordering::Relaxed);
        self.total.fetch_add(bytes - before, Ordering::Relaxed);
        let was = weight.class();
        let class = if evictable { class_of(bytes as u64) } else { NONE };
        let counted = |class: u8, bytes: i64| if class == NONE { 0 } else { bytes };
        let change = counted(class, bytes) - counted(was, before);
        self.evictable.fetch_add(change, Ordering::Relaxed);
        if class != was {
            self.take(&mut classes, of, record);
            if class != NONE {
                self.put(&mut classes, of, record, class);
            }
        }
    }
}

/// All clients by size.
#[derive(Debug)]
pub struct Weights {
    workers: Box<[WorkerWeights]>,
    of: WeightOf,
    /// Flags of clients that are exempt from eviction.
    spared: u32,
}

impl Weights {
    /// Weights that measure all memory of a client, for `workers` workers. As in Redis, only ordinary clients and
    /// subscribers are evicted.
    pub fn of_memory(workers: usize) -> Weights {
        let spared = flag::NO_EVICT | flag::REPLICA | flag::PRIMARY | flag::ADMIN;
        Weights::new(workers, |record| &record.weight, spared)
    }

    /// Weights that measure a client's input that waits to be executed, for `workers` workers. Only the primary and
    /// admin connections are exempt.
    pub fn of_input(workers: usize) -> Weights {
        let spared = flag::PRIMARY | flag::ADMIN;
        Weights::new(workers, |record| &record.input_weight, spared)
    }

    fn new(workers: usize, of: WeightOf, spared: u32) -> Weights {
        Weights { workers: (0..workers).map(|_| WorkerWeights::default()).collect(), of, spared }
    }

    /// Total bytes of all clients. O(workers).
    pub fn total(&self) -> u64 {
        let sum: i64 = self.workers.iter().map(|own| own.total.load(Ordering::Relaxed)).sum();
        sum.max(0) as u64
    }

    /// Total bytes of the clients that may be evicted. O(workers).
    pub fn evictable(&self) -> u64 {
        let sum: i64 = self.workers.iter().map(|own| own.evictable.load(Ordering::Relaxed)).sum();
        sum.max(0) as u64
    }

    /// Updates a client's weight. O(1).
    pub fn weigh(&self, record: &Arc<ClientRecord>, bytes: u64) {
        let evictable = !record.has(self.spared) && !record.killed.load(Ordering::Relaxed);
        self.workers[record.worker].weigh(self.of, record, bytes, evictable);
    }

    /// Updates a client whose size has not changed, but that is now exempt or killed, or no longer exempt. O(1).
    pub fn weigh_again(&self, record: &Arc<ClientRecord>) {
        self.weigh(record, (self.of)(record).bytes());
    }

    /// Removes a client that has disconnected. O(1).
    pub fn forget(&self, record: &Arc<ClientRecord>) {
        self.workers[record.worker].weigh(self.of, record, 0, false);
    }

    /// Takes one of the largest clients that may be evicted. Returns the client, which is to be killed, and its bytes.
    /// O(workers x classes).
    pub fn take_largest(&self) -> Option<(Arc<ClientRecord>, u64)> {
        let highest = |own: &WorkerWeights| own.lock().iter().rposition(|list| !list.is_empty());
        let own = self.workers.iter().max_by_key(|own| highest(own))?;
        let mut classes = own.lock();
        let record = classes.iter().rev().find_map(|list| list.last()).cloned()?;
        record.killed.store(true, Ordering::Relaxed);
        own.take(&mut classes, self.of, &record);
        let bytes = (self.of)(&record).bytes();
        own.evictable.fetch_sub(bytes as i64, Ordering::Relaxed);
        Some((record, bytes))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clients::testing::record;

    #[test]
    fn the_largest_of_all_workers_is_taken_first() {
        let weights = Weights::of_memory(2);
        let sizes = [(1, 0, 40_000), (2, 1, 90_000), (3, 0, 1_000_000), (4, 1, 100)];
        let records: Vec<_> = sizes.iter().map(|(id, worker, _)| record(*id, *worker)).collect();
        for (record, (_, _, bytes)) in records.iter().zip(sizes) {
            weights.weigh(record, 10);
            weights.weigh(record, bytes);
        }
        assert_eq!((weights.total(), weights.evictable()), (1_130_100, 1_130_100));
        records[1].set(flag::NO_EVICT, true);
        weights.weigh(&records[1], 2_000_000);
        assert_eq!((weights.total(), weights.evictable()), (3_040_100, 1_040_100));
        let taken: Vec<u64> =
            std::iter::from_fn(|| weights.take_largest()).map(|(record, _)| record.id).collect();
        assert_eq!(taken, [3, 1, 4]);
        assert_eq!((weights.total(), weights.evictable()), (3_040_100, 0));
        // A client is not evicted twice.
        weights.weigh(&records[0], 50_000);
        assert!(weights.take_largest().is_none());
        records.iter().for_each(|record| weights.forget(record));
        assert_eq!(weights.total(), 0);
    }

    #[test]
    fn no_evict_does_not_protect_a_client_with_large_input() {
        let inputs = Weights::of_input(1);
        let (client, admin) = (record(1, 0), record(2, 0));
        client.set(flag::NO_EVICT, true);
        admin.set(flag::ADMIN, true);
        inputs.weigh(&client, 50_000);
        inputs.weigh(&admin, 90_000);
        assert_eq!((inputs.total(), inputs.evictable()), (140_000, 50_000));
        let taken = inputs.take_largest().map(|(record, bytes)| (record.id, bytes));
        assert_eq!(taken, Some((1, 50_000)));
        assert!(inputs.take_largest().is_none());
    }

    #[test]
    fn classes_are_powers_of_two() {
        for (bytes, class) in [(0, 0), (32_767, 0), (32_768, 1), (65_535, 1), (65_536, 2)] {
            assert_eq!(class_of(bytes), class, "{bytes}");
        }
        assert_eq!((class_of((1 << 33) - 1), class_of(u64::MAX)), (18, 18));
    }
}
