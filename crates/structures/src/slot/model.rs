//! Tests the slot lock with loom. Run like `reclaim/model.rs`.

use super::Slot;
use loom::cell::UnsafeCell;
use loom::sync::Arc;
use loom::thread;

#[test]
fn holders_of_the_lock_see_each_others_writes_one_after_the_other() {
    loom::model(|| {
        let slot: Arc<Slot<(), UnsafeCell<u32>>> = Arc::new(Slot::new(UnsafeCell::new(0)));
        let add = |slot: &Slot<(), UnsafeCell<u32>>| {
            slot.lock_spin(1).map(|guard| {
                // SAFETY: the lock is held; loom reports if another holder can have access.
                guard.meta().with_mut(|count| unsafe { *count += 1 });
            })
        };
        let other = thread::spawn({
            let slot = Arc::clone(&slot);
            move || add(&slot).is_some()
        });
        let mine = add(&slot).is_some();
        let theirs = other.join().expect("no panic");
        let guard = slot.try_lock().expect("both are done");
        // SAFETY: as above.
        let count = guard.meta().with(|count| unsafe { *count });
        assert_eq!(count, u32::from(mine) + u32::from(theirs));
    });
}
