//! Tests locking, and prefetching while another thread changes the table.

use super::Slot;
use crate::entry::{Entry, ValueRef};
use crate::hash::HashKey;
use crate::reclaim::Participant;
use std::sync::atomic::{AtomicBool, Ordering};

const _: () = assert!(size_of::<Slot<Vec<u8>, [u64; 4]>>() == 64);
const _: () = assert!(align_of::<Slot<Vec<u8>, [u64; 4]>>() == 64);

#[test]
fn only_one_guard_exists_at_a_time() {
    let slot: Slot<(), u64> = Slot::default();
    let mut guard = slot.try_lock().expect("free");
    assert!(slot.is_locked());
    assert!(slot.try_lock().is_none());
    assert!(slot.lock_spin(10).is_none());
    *guard.meta_mut() += 1;
    assert_eq!(*guard.meta(), 1);
    drop(guard);
    assert!(!slot.is_locked());
    assert!(slot.lock_spin(0).is_some());
}

#[test]
fn threads_count_together_under_the_lock() {
    let slot: Slot<(), u64> = Slot::default();
    let rounds: u64 = if cfg!(miri) { 20 } else { 10_000 };
    std::thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(|| {
                for _ in 0..rounds {
                    let mut guard = loop {
                        match slot.lock_spin(100) {
                            Some(guard) => break guard,
                            None => std::thread::yield_now(),
                        }
                    };
                    *guard.meta_mut() += 1;
                }
            });
        }
    });
    assert_eq!(*slot.try_lock().expect("free").meta(), 3 * rounds);
}

#[test]
fn prefetching_is_safe_during_growth_and_shrinking() {
    let slot: Slot<String, ()> = Slot::default();
    let key = HashKey { k0: 1, k1: 2 };
    let done = AtomicBool::new(false);
    let n: u32 = if cfg!(miri) { 150 } else { 20_000 };
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                let participant = Participant::register().expect("few threads");
                while !done.load(Ordering::Relaxed) {
                    for i in 0..32u32 {
                        let hash = key.hash(&(i * 37).to_le_bytes());
                        slot.prefetch();
                        slot.prefetch_bucket(hash);
                        slot.prefetch_entry(hash, &participant);
                    }
                    participant.announce_boundary();
                }
            });
        }
        for round in 0..3 {
            for i in 0..n {
                let bytes = i.to_le_bytes();
                let mut guard = slot.try_lock().expect("no other thread locks");
                guard.table_mut().insert(key.hash(&bytes), Entry::new_bytes(&bytes, 0, b"v"));
            }
            for i in 0..n {
                let bytes = i.to_le_bytes();
                let mut guard = slot.try_lock().expect("no other thread locks");
                let entry = guard.table_mut().remove(key.hash(&bytes), &bytes).expect("inserted");
                assert!(matches!(entry.value(), ValueRef::Bytes(b"v")), "round {round}");
            }
        }
        done.store(true, Ordering::Relaxed);
    });
    assert_eq!(slot.try_lock().expect("free").table().len(), 0);
}
