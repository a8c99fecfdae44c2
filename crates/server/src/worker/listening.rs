//! The listeners of a worker, and changes to them. Only the loop around a worker can replace listeners.

use super::Worker;
use brisk_net::listeners::{Purpose, Replacement};
use brisk_node::core::Core;
use brisk_node::core::mailbox::Message;
use brisk_observe::log::Log;
use brisk_reactor::{Control, Reactor};
use std::time::Duration;

/// The purposes of a worker's listeners, and changes that the loop has not applied yet.
pub struct WorkerListeners {
    /// The purpose of each listener, by the listener's index.
    purposes: Vec<Purpose>,
    /// Messages that change the listeners. Only the loop around the worker can apply them.
    changes: Vec<Message>,
    /// The generation of the configuration whose settings the loop uses.
    loop_generation: Option<u64>,
}

impl WorkerListeners {
    pub(super) fn new(purposes: Vec<Purpose>) -> WorkerListeners {
        WorkerListeners { purposes, changes: Vec::new(), loop_generation: None }
    }

    /// The purpose of a listener.
    pub(super) fn purpose(&self, listener: usize) -> Purpose {
        self.purposes.get(listener).copied().unwrap_or(Purpose::Tcp)
    }

    /// Adds a change for the loop.
    pub(super) fn request_change(&mut self, message: Message) {
        self.changes.push(message);
    }

    /// Reports whether the loop has changes to apply.
    pub fn has_changes(&self) -> bool {
        !self.changes.is_empty()
    }

    /// Applies settings to the loop if the configuration has changed.
    #[inline]
    pub(super) fn follow_config(&mut self, core: &Core, io: &mut Control) {
        if self.loop_generation != Some(core.config_generation()) {
            self.configure_loop(core, io);
        }
    }

    /// Applies settings to the loop and accept limits to the listeners. Called at startup, for new listeners, and after
    /// the configuration has changed.
    #[cold]
    fn configure_loop(&mut self, core: &Core, io: &mut Control) {
        self.loop_generation = Some(core.config_generation());
        let network = &core.config.network;
        io.coalesce_wakes(Duration::from_micros(network.wake_coalescing_us.unsigned_abs()));
        for (index, purpose) in self.purposes.iter().enumerate() {
            let limit = match purpose {
                Purpose::Tcp | Purpose::Unix | Purpose::AdminTcp | Purpose::AdminUnix => {
                    network.max_new_connections_per_cycle
                }
                Purpose::Tls => network.max_new_tls_connections_per_cycle,
            };
            io.limit_accepts(index, usize::try_from(limit).unwrap_or(1));
        }
    }

    /// Makes the worker accept on the new listeners and closes its old listeners with the same purpose.
    /// Connections stay open.
    fn replace(&mut self, core: &Core, reactor: &mut Reactor, new: Replacement, log: &Log) {
        let Replacement { purpose, listeners } = new;
        for index in 0..self.purposes.len() {
            if self.purposes[index] == purpose {
                // The index may be reused for another listener. Until then, no events arrive for it.
                drop(reactor.unlisten(index));
            }
        }
        for listener in listeners {
            match reactor.listen(listener) {
                Ok(index) => {
                    if self.purposes.len() <= index {
                        self.purposes.resize(index + 1, purpose);
                    }
                    self.purposes[index] = purpose;
                }
                Err(error) => log.warning(format_args!("worker {}: {error}", core.id)),
            }
        }
    }
}

/// Applies the listener changes that the worker has received.
#[cold]
pub fn take_over(worker: &mut Worker, reactor: &mut Reactor, log: &Log) {
    let Worker { core, listeners, .. } = worker;
    for message in std::mem::take(&mut listeners.changes) {
        match message {
            Message::Listen(replacement) => listeners.replace(core, reactor, replacement, log),
            Message::Keepalive(seconds) => {
                if let Err(error) = reactor.set_keepalive(seconds) {
                    log.warning(format_args!("tcp-keepalive: {error}"));
                }
            }
            _ => {}
        }
    }
    listeners.configure_loop(core, reactor.io());
}
