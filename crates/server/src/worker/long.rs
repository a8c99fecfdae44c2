//! Sessions whose commands are computed elsewhere, and those that wait for the end of that because
//! they would write to what it is computed from.

use super::Worker;
use crate::core::Core;
use crate::core::long::{Asker, Job, Outcome};
use crate::core::mailbox::{Delivery, Message};
use crate::core::session::{Session, Stall};
use brisk_engine::env::Garbage;
use brisk_engine::long::{Finished, finish};
use brisk_engine::table::Row;
use brisk_reactor::Control;
use std::sync::Arc;

impl Core {
    /// Has the command that the session just ran worked on elsewhere.
    pub(crate) fn leave_long(&mut self, session: &Session, row: &'static Row) {
        let Some(long) = self.env.take_long() else { return };
        let ticks = self.clock.ticks();
        let ns = self.clock.ns(ticks.wrapping_sub(self.last_ticks));
        self.last_ticks = ticks;
        self.note_last(session, row);
        let asker = Asker { record: Arc::clone(&session.record), row, ns };
        self.send_long(Box::new(Job { asker, long }));
        // FLUSHALL has changed keys that others wait for.
        if self.env.has_ready() {
            self.serve_waiters();
        }
    }

    fn send_long(&self, job: Box<Job>) {
        let shared = self.shared;
        if let Err(job) = shared.long.send(job) {
            let outcome = job.run(&shared.keyspace, self.clock);
            shared.mailboxes[self.id].send(Message::Computed(Box::new(outcome)));
        }
    }

    /// Ends a command whose work is done; its answer, unless the work has to be done again. The
    /// outcome is given back if the data is to stay as it is for now.
    fn finish_long(&mut self, outcome: Outcome) -> Result<Option<Delivery>, Box<Outcome>> {
        let Outcome { mut asker, computed } = outcome;
        let shared = self.shared;
        self.read_clocks();
        let finished = finish(&shared.keyspace, &self.env, computed);
        let ticks = self.clock.ticks();
        asker.ns += self.clock.ns(ticks.wrapping_sub(self.last_ticks));
        self.last_ticks = ticks;
        let over = match finished {
            Finished::Again(long) => {
                self.send_long(Box::new(Job { asker, long }));
                return Ok(None);
            }
            Finished::Later(computed) => return Err(Box::new(Outcome { asker, computed })),
            Finished::Over(over) => over,
        };
        self.stats().changes.add(over.dirty);
        if let Some(error) = &over.error {
            self.count_error(error);
        }
        over.with_args(&shared.keyspace, |args| {
            self.book(&asker.record, asker.row, over.error.is_some(), asker.ns, args);
        });
        if over.thawed {
            shared.mailboxes.iter().for_each(|mailbox| mailbox.send(Message::Thawed));
        }
        if self.env.has_ready() {
            self.serve_waiters();
        }
        let Asker { record, .. } = asker;
        Ok(Some(Delivery { token: record.token, client: record.id, replies: over.replies }))
    }
}

impl Worker {
    /// The work for a command of one of this worker's clients, who may be gone, is done.
    pub(super) fn take_computed(&mut self, io: &mut Control, outcome: Box<Outcome>) {
        if outcome.computed.writes() && self.core.is_paused() {
            // The data is to stay as it is until the pause is over.
            self.held_back.push(*outcome);
            return;
        }
        match self.core.finish_long(*outcome) {
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
