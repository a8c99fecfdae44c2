//! Listeners that a changed setting replaces: only the loop around a worker can do that.

use super::Worker;
use brisk_net::listeners::Replacement;
use brisk_node::core::mailbox::Message;
use brisk_observe::log::Log;
use brisk_reactor::Reactor;

/// Does what the worker was told of its listeners.
#[cold]
pub fn take_over(worker: &mut Worker, reactor: &mut Reactor, log: &Log) {
    for message in std::mem::take(&mut worker.listening) {
        match message {
            Message::Listen(replacement) => replace(worker, reactor, replacement, log),
            Message::Keepalive(seconds) => {
                if let Err(error) = reactor.set_keepalive(seconds) {
                    log.warning(format_args!("tcp-keepalive: {error}"));
                }
            }
            _ => {}
        }
    }
    worker.configure_loop(reactor.io());
}

/// Makes the worker accept on new listeners and on none of their purpose so far. Connections stay.
fn replace(worker: &mut Worker, reactor: &mut Reactor, new: Replacement, log: &Log) {
    let Replacement { purpose, listeners } = new;
    for index in 0..worker.listeners.len() {
        if worker.listeners[index] == purpose {
            // Its number may be given to another listener; until then nothing arrives under it.
            drop(reactor.unlisten(index));
        }
    }
    for listener in listeners {
        match reactor.listen(listener) {
            Ok(index) => {
                if worker.listeners.len() <= index {
                    worker.listeners.resize(index + 1, purpose);
                }
                worker.listeners[index] = purpose;
            }
            Err(error) => log.warning(format_args!("worker {}: {error}", worker.core.id)),
        }
    }
}
