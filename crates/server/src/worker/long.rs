//! Commands that end outside of their session's turn: commands that other threads compute, and slow scripts. Between
//! two slices of a slow script, the worker serves its sessions.

use super::Worker;
use brisk_engine::command::Flags;
use brisk_engine::env::Garbage;
use brisk_node::core::long::ComputedJob;
use brisk_node::core::mailbox::DeliveredReply;
use brisk_node::run::long;
use brisk_node::script::run;
use brisk_reactor::Control;

impl Worker {
    /// Takes the result of a computation for one of this worker's clients. The client may have disconnected.
    pub(super) fn take_computed(&mut self, io: &mut Control, job: Box<ComputedJob>) {
        if job.computed.writes() && self.core.data_must_not_change() {
            // The data must not change until the pause is over.
            self.stalled.hold_back(*job);
            return;
        }
        // The replies of other commands show no data, so a fenced node may send them.
        let touches_keys =
            job.caller.row.spec.flags.intersects(Flags::WRITE.union(Flags::READONLY));
        match long::finish_long(&mut self.core, *job) {
            Ok(Some(delivery)) if touches_keys => self.deliver_executed(io, delivery),
            Ok(Some(delivery)) => self.deliver(io, delivery),
            Ok(None) => {}
            Err(job) => self.stalled.hold_back(*job),
        }
        self.core.free_garbage();
    }

    /// Discards a reply whose client has disconnected.
    pub(super) fn discard_reply(&self, delivery: DeliveredReply) {
        self.core.env.garbage.borrow_mut().push(Garbage::Other(Box::new(delivery.replies)));
    }

    /// Continues the slow script, if there is one, for one slice.
    pub(super) fn run_script_slice(&mut self, io: &mut Control) {
        if !self.core.scripts.is_parked() {
            return;
        }
        self.core.shared.quiesce.checkpoint(self.core.id);
        let client = self.core.scripts.parked_client();
        let mut client = client.and_then(|token| self.sessions.take(token));
        let delivery = run::run_script_slice(&mut self.core, client.as_deref_mut());
        if let Some(session) = client {
            self.sessions.put(session);
        }
        if let Some(delivery) = delivery {
            self.deliver_executed(io, delivery);
        }
        self.core.free_garbage();
    }
}
