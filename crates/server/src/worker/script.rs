//! A slow script of this worker: between two of its slices, the worker serves its sessions.

use super::Worker;
use brisk_node::script::run;
use brisk_reactor::Control;

impl Worker {
    /// Continues the script for one slice, if one is running.
    pub(super) fn go_on_with_script(&mut self, io: &mut Control) {
        if self.core.scripts.parked.is_none() {
            return;
        }
        self.core.shared.quiesce.checkpoint(self.core.id);
        let client = self.core.scripts.parked.as_ref().and_then(|parked| parked.client());
        let mut client = client.and_then(|token| self.sessions.take(token));
        let delivery = run::go_on_with_script(&mut self.core, client.as_deref_mut());
        if let Some(session) = client {
            self.sessions.put(session);
        }
        if let Some(delivery) = delivery {
            self.deliver(io, delivery);
        }
        self.core.free_garbage();
    }
}
