//! Replaces listeners after a setting has changed. Only the loop around a worker can do this.

use super::Worker;
use brisk_net::listeners::Replacement;
use brisk_node::core::mailbox::Message;
use brisk_observe::log::Log;
use brisk_reactor::Reactor;

/// Applies the listener changes that the worker has received.
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

/// Makes the worker accept on the new listeners and closes its old listeners with the same purpose.
/// Connections stay open.
fn replace(worker: &mut Worker, reactor: &mut Reactor, new: Replacement, log: &Log) {
    let Replacement { purpose, listeners } = new;
    for index in 0..worker.listeners.len() {
        if worker.listeners[index] == purpose {
            // The index may be reused for another listener; until then no event arrives for it.
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
