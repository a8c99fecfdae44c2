//! Sessions whose commands are computed by other threads, and sessions that wait because their
//! command would write to data that such a computation reads.

use super::Worker;
use brisk_engine::env::Garbage;
use brisk_node::core::long::Outcome;
use brisk_node::core::mailbox::Delivery;
use brisk_node::core::session::Stall;
use brisk_node::run::long;
use brisk_reactor::Control;

impl Worker {
    /// Takes the result of a computation for one of this worker's clients. The client may be gone.
    pub(super) fn take_computed(&mut self, io: &mut Control, outcome: Box<Outcome>) {
        if outcome.computed.writes() && self.core.data_must_not_change() {
            // The data must not change until the pause is over.
            self.stalled.hold_back(*outcome);
            return;
        }
        match long::finish_long(&mut self.core, *outcome) {
            Ok(Some(delivery)) => self.deliver(io, delivery),
            Ok(None) => {}
            Err(outcome) => self.stalled.hold_back(*outcome),
        }
        self.core.free_garbage();
    }

    /// Finishes computations whose results could not be stored during CLIENT PAUSE.
    pub(super) fn take_held_back(&mut self, io: &mut Control) {
        for outcome in self.stalled.take_held_back() {
            self.take_computed(io, Box::new(outcome));
        }
    }

    /// Resumes sessions that waited for frozen slots, after slots were released.
    pub(super) fn resume_frozen(&mut self, io: &mut Control) {
        self.core.read_clocks();
        for token in self.stalled.take_frozen() {
            self.go_on(io, token, Stall::Frozen);
        }
    }

    /// Discards a reply whose client is gone.
    pub(super) fn discard_answer(&self, delivery: Delivery) {
        self.core.env.garbage.borrow_mut().push(Garbage::Other(Box::new(delivery.replies)));
    }
}
