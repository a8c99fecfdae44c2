//! A session's blocked command, which waits for a key, for replicas or for the disk.

use crate::replication::acks::AckWait;
use brisk_engine::keyspace::Waiter;
use brisk_structures::slab::Id;
use std::sync::Arc;

/// The state of a session's blocked command.
#[derive(Default)]
pub struct BlockedCommand {
    waiter: Option<Arc<Waiter>>,
    /// The timer of the wait.
    timer: Option<Id>,
    /// The acknowledgements that WAIT or WAITAOF waits for.
    acks: Option<AckWait>,
}

impl BlockedCommand {
    /// The waiter, if a command waits.
    pub fn waiter(&self) -> Option<&Arc<Waiter>> {
        self.waiter.as_ref()
    }

    /// Begins a wait.
    pub(crate) fn begin(&mut self, waiter: Option<Arc<Waiter>>) {
        self.waiter = waiter;
    }

    /// The acknowledgements that the command waits for.
    pub fn acks(&self) -> Option<AckWait> {
        self.acks
    }

    /// Sets the acknowledgements that the command, which is about to wait, will wait for.
    pub fn await_acks(&mut self, acks: AckWait) {
        self.acks = Some(acks);
    }

    /// Sets the timer that ends the wait.
    pub fn set_timer(&mut self, timer: Id) {
        self.timer = Some(timer);
    }

    /// Notes that the timer has expired.
    pub fn forget_timer(&mut self) {
        self.timer = None;
    }

    /// Ends the wait. Returns the timer that is to be canceled.
    pub fn end(&mut self) -> Option<Id> {
        std::mem::take(self).timer
    }
}
