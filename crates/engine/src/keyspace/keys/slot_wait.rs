//! Waiting for a slot that another thread holds, and the work that the thread does while it waits.

use super::SPIN_ROUNDS;
use crate::keyspace::{Database, SlotGuard, SlotId};
use std::cell::Cell;
use std::rc::Rc;

/// Locks a slot that no command of this thread holds. The thread that holds it does not wait, or
/// waits only for threads in [`back_off`].
pub(crate) fn lock_blocking(database: &Database, id: SlotId) -> SlotGuard<'_> {
    loop {
        if let Some(guard) = database.slot(id).lock_spin(SPIN_ROUNDS) {
            return guard;
        }
        back_off();
    }
}

thread_local! {
    static ON_SLOT_WAIT: Cell<Option<Rc<dyn Fn()>>> = const { Cell::new(None) };
}

/// Sets an `action` that runs repeatedly while this thread waits for a slot. The thread holds no
/// slot then, so the action may take part in quiescence.
pub fn on_slot_wait(action: impl Fn() + 'static) {
    ON_SLOT_WAIT.set(Some(Rc::new(action)));
}

thread_local! {
    static POSTPONES_WRITES: Cell<Option<Rc<dyn Fn() -> bool>>> = const { Cell::new(None) };
}

/// While `condition` holds, this thread postpones its own writes: serving waiters, finishing long
/// commands, expiry and eviction. The condition is checked with a slot locked, because it may have
/// changed during the wait for the lock.
pub fn postpone_writes_while(condition: impl Fn() -> bool + 'static) {
    POSTPONES_WRITES.set(Some(Rc::new(condition)));
}

/// Reports whether writes have to be postponed; see [`postpone_writes_while`].
pub(crate) fn must_postpone_writes() -> bool {
    let Some(condition) = POSTPONES_WRITES.take() else { return false };
    let postpones = condition();
    POSTPONES_WRITES.set(Some(condition));
    postpones
}

/// Lets other threads run while a slot is not free.
#[cold]
pub(crate) fn back_off() {
    if let Some(action) = ON_SLOT_WAIT.take() {
        action();
        ON_SLOT_WAIT.set(Some(action));
    }
    std::thread::yield_now();
}
