//! Sessions whose commands are computed elsewhere, and those that wait for the end of that because
//! they would write to what it is computed from.

use super::Worker;
use brisk_engine::env::Garbage;
use brisk_node::core::long::Outcome;
use brisk_node::core::mailbox::Delivery;
use brisk_node::core::session::Stall;
use brisk_node::run::long;
use brisk_reactor::Control;

impl Worker {
    /// The work for a command of one of this worker's clients, who may be gone, is done.
    pub(super) fn take_computed(&mut self, io: &mut Control, outcome: Box<Outcome>) {
        if outcome.computed.writes() && self.core.data_must_not_change() {
            // The data is to stay as it is until the pause is over.
            self.held_back.push(*outcome);
            return;
        }
        match long::finish_long(&mut self.core, *outcome) {
            Ok(Some(delivery)) => self.deliver(io, delivery),
            Ok(None) => {}
            Err(outcome) => self.held_back.push(*outcome),
        }
        self.core.free_garbage();
    }

    /// What could not be finished during CLIENT PAUSE.
    pub(super) fn take_held_back(&mut self, io: &mut Control) {
        for outcome in std::mem::take(&mut self.held_back) {
            self.take_computed(io, Box::new(outcome));
        }
    }

    /// Slots that were frozen are not any more.
    pub(super) fn resume_frozen(&mut self, io: &mut Control) {
        self.core.read_clocks();
        for token in std::mem::take(&mut self.frozen) {
            self.go_on(io, token, Stall::Frozen);
        }
    }

    /// An answer that nobody waits for any more.
    pub(super) fn discard_answer(&self, delivery: Delivery) {
        self.core.env.garbage.borrow_mut().push(Garbage::Other(Box::new(delivery.replies)));
    }
}
