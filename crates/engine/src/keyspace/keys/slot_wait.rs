//! Waiting for a slot that another thread holds, and what a thread does meanwhile.

use super::SPIN_ROUNDS;
use crate::keyspace::{Database, SlotGuard, SlotId};
use std::cell::Cell;
use std::rc::Rc;

/// Locks a slot that no command of this thread holds. Who holds it waits for nobody, or only for
/// threads that [`back_off`].
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

/// Has `action` called again and again whenever this thread waits for a slot, which it does while
/// it holds none: it may stand still then.
pub fn on_slot_wait(action: impl Fn() + 'static) {
    ON_SLOT_WAIT.set(Some(Rc::new(action)));
}

thread_local! {
    static POSTPONES_WRITES: Cell<Option<Rc<dyn Fn() -> bool>>> = const { Cell::new(None) };
}

/// While `condition` holds, what this thread does on its own account (serving waiters, finishing
/// what was computed elsewhere, expiry, eviction) leaves the data as it is and is done later. It is
/// checked with a slot locked, since it may have changed during the wait for the lock.
pub fn postpone_writes_while(condition: impl Fn() -> bool + 'static) {
    POSTPONES_WRITES.set(Some(Rc::new(condition)));
}

/// Whether the data is to stay as it is; see [`postpone_writes_while`].
pub(crate) fn must_postpone_writes() -> bool {
    let Some(condition) = POSTPONES_WRITES.take() else { return false };
    let answer = condition();
    POSTPONES_WRITES.set(Some(condition));
    answer
}

/// Lets others run while a slot is not free.
#[cold]
pub(crate) fn back_off() {
    if let Some(action) = ON_SLOT_WAIT.take() {
        action();
        ON_SLOT_WAIT.set(Some(action));
    }
    std::thread::yield_now();
}
