//! What the engine noted of changed keys, on its way to those who cache.

use super::notice::{Broadcast, Notice, array};
use crate::core::Core;
use crate::pubsub::Mail;
use brisk_engine::effect::Armed;
use brisk_engine::keyspace::{Invalidation, KeyName};
use smallvec::SmallVec;
use std::collections::BTreeMap;
use std::sync::Arc;

impl Core {
    /// Sends on what the engine noted since the last call, in order.
    #[cold]
    pub fn send_invalidations(&mut self) {
        self.env.arm(Armed::TOLD, false);
        let mut told = std::mem::take(&mut self.env.aftermath.borrow_mut().invalidations);
        for invalidation in told.drain(..) {
            match invalidation {
                Invalidation::Key { name, mut readers, by } => {
                    let keys = Arc::new(array([name.as_slice()].into_iter()));
                    while let Some(worker) = readers.last().map(|reader| reader.worker()) {
                        let here = readers.iter().filter(|reader| reader.worker() == worker);
                        let clients: SmallVec<_> = here.map(|reader| reader.client()).collect();
                        readers.retain(|reader| reader.worker() != worker);
                        let deliveries = clients.len();
                        let keys = Arc::clone(&keys);
                        self.send_notice(worker, Notice::Keys { clients, keys, by }, deliveries);
                    }
                }
                Invalidation::All { by } => {
                    let deliveries = self.shared.keyspace.tracking().client_count();
                    for worker in 0..self.shared.workers() {
                        self.send_notice(worker, Notice::All { by }, deliveries);
                    }
                }
            }
        }
        let kept = &mut self.env.aftermath.borrow_mut().invalidations;
        if kept.is_empty() && told.capacity() <= KEPT_MAX {
            *kept = told;
        }
    }

    /// Tells who listens to prefixes of the keys that were changed since the last call: one message
    /// for each prefix and worker.
    #[cold]
    pub fn send_broadcasts(&mut self) {
        self.env.arm(Armed::BROADCAST, false);
        let changed = std::mem::take(&mut self.env.aftermath.borrow_mut().changed);
        // Whoever changed a key last counts.
        let changed: BTreeMap<KeyName, u64> = changed.into_iter().collect();
        let shared = self.shared;
        shared.tracking.each_match(&changed, |prefix, keys, counts| {
            let broadcast = Arc::new(Broadcast::new(prefix, keys));
            for (worker, count) in counts.iter().enumerate().filter(|(_, count)| **count > 0) {
                let notice = Notice::Broadcast(Arc::clone(&broadcast));
                self.send_notice(worker, notice, *count as usize);
            }
        });
    }

    /// Puts a message that so many sessions get into a worker's inbox.
    pub fn send_notice(&self, worker: usize, notice: Notice, deliveries: usize) {
        self.send_mail(worker, Mail::Notice(notice), deliveries);
    }
}

/// A buffer for more is given back.
const KEPT_MAX: usize = 1024;
