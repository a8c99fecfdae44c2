//! Sends invalidations for changed keys, which the engine has recorded, to the clients that cache these keys.

use super::notice::{Broadcast, Notice, array};
use crate::core::Core;
use crate::pubsub::PushMessage;
use crate::pubsub::publish;
use brisk_engine::effect::Hooks;
use brisk_engine::keyspace::{Invalidation, KeyName};
use smallvec::SmallVec;
use std::collections::BTreeMap;
use std::sync::Arc;

/// Reports whether invalidations must be sent before the current command and have not been sent yet.
#[cold]
pub(crate) fn must_precede_command(core: &mut Core) -> bool {
    let any = core.env.hooks.get().contains(Hooks::INVALIDATE);
    core.tracking.must_send_before_request(any)
}

/// Sends the invalidations that the engine recorded since the last call, in order.
#[cold]
pub fn send_invalidations(core: &mut Core) {
    core.env.set_hooks(Hooks::INVALIDATE, false);
    let mut invalidations = std::mem::take(&mut core.env.aftermath.borrow_mut().invalidations);
    for invalidation in invalidations.drain(..) {
        match invalidation {
            Invalidation::Key { name, mut readers, by } => {
                let keys = Arc::new(array([name.as_slice()].into_iter()));
                while let Some(worker) = readers.last().map(|reader| reader.worker()) {
                    let of_worker = readers.iter().filter(|reader| reader.worker() == worker);
                    let clients: SmallVec<_> = of_worker.map(|reader| reader.client()).collect();
                    readers.retain(|reader| reader.worker() != worker);
                    let deliveries = clients.len();
                    let keys = Arc::clone(&keys);
                    send_notice(core, worker, Notice::Keys { clients, keys, by }, deliveries);
                }
            }
            Invalidation::All { by } => {
                let deliveries = core.shared.keyspace.tracking().client_count();
                for worker in 0..core.shared.workers() {
                    send_notice(core, worker, Notice::All { by }, deliveries);
                }
            }
        }
    }
    let kept = &mut core.env.aftermath.borrow_mut().invalidations;
    if kept.is_empty() && invalidations.capacity() <= KEPT_MAX {
        *kept = invalidations;
    }
}

/// Sends the names of keys that were changed since the last call to the clients that track their prefixes. There is one
/// message for each prefix and worker.
#[cold]
pub fn send_broadcasts(core: &mut Core) {
    core.env.set_hooks(Hooks::BROADCAST, false);
    let changed = std::mem::take(&mut core.env.aftermath.borrow_mut().changed);
    // Only the client that changed a key last counts.
    let changed: BTreeMap<KeyName, u64> = changed.into_iter().collect();
    let shared = core.shared;
    shared.tracking.each_match(&changed, |prefix, keys, counts| {
        let broadcast = Arc::new(Broadcast::new(prefix, keys));
        for (worker, count) in counts.iter().enumerate().filter(|(_, count)| **count > 0) {
            let notice = Notice::Broadcast(Arc::clone(&broadcast));
            send_notice(core, worker, notice, *count as usize);
        }
    });
}

/// Adds a message for this number of sessions to a worker's inbox.
pub fn send_notice(core: &Core, worker: usize, notice: Notice, deliveries: usize) {
    publish::send_push(core, worker, PushMessage::Notice(notice), deliveries);
}

/// A larger buffer is freed.
const KEPT_MAX: usize = 1024;
