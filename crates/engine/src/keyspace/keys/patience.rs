//! Waiting for a slot that another thread holds, and what a thread does meanwhile.

use super::SPIN_ROUNDS;
use crate::keyspace::{Database, SlotGuard, SlotId};
use std::cell::Cell;
use std::rc::Rc;

/// Locks a slot that no command of this thread holds. Who holds it waits for nobody, or only for
/// threads that [`have_patience`].
pub(crate) fn lock_patiently(database: &Database, id: SlotId) -> SlotGuard<'_> {
    loop {
        if let Some(guard) = database.slot(id).lock_spin(SPIN_ROUNDS) {
            return guard;
        }
        have_patience();
    }
}

thread_local! {
    static WHILE_WAITING: Cell<Option<Rc<dyn Fn()>>> = const { Cell::new(None) };
}

/// Has `action` called again and again whenever this thread waits for a slot, which it does while
/// it holds none: it may stand still then.
pub fn while_waiting(action: impl Fn() + 'static) {
    WHILE_WAITING.set(Some(Rc::new(action)));
}

thread_local! {
    static GIVES_WAY: Cell<Option<Rc<dyn Fn() -> bool>>> = const { Cell::new(None) };
}

/// While `condition` holds, what this thread does on its own account (serving waiters, finishing
/// what was computed elsewhere, expiry, eviction) leaves the data as it is and is done later. It is
/// checked with a slot locked, since it may have changed during the wait for the lock.
pub fn giving_way(condition: impl Fn() -> bool + 'static) {
    GIVES_WAY.set(Some(Rc::new(condition)));
}

/// Whether the data is to stay as it is; see [`giving_way`].
pub(crate) fn must_give_way() -> bool {
    let Some(condition) = GIVES_WAY.take() else { return false };
    let answer = condition();
    GIVES_WAY.set(Some(condition));
    answer
}

/// Lets others run while a slot is not free.
#[cold]
pub(crate) fn have_patience() {
    if let Some(action) = WHILE_WAITING.take() {
        action();
        WHILE_WAITING.set(Some(action));
    }
    std::thread::yield_now();
}
