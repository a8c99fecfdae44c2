//! Listening elsewhere while the server runs: CONFIG SET port and bind.
//!
//! The thread that runs CONFIG SET opens the new listeners, so that a failure leaves everything as
//! it was; each worker then takes over its own and drops the old ones.

use crate::boot::addresses;
use crate::config::Config;
use crate::log::Log;
use crate::worker::{Purpose, Worker};
use brisk_reactor::{ListenError, Listener, Reactor, TcpOptions, probe_tcp};

/// Opens the TCP listeners that `new` asks for, a set for each of `workers` workers. Empty sets
/// if `new` does not listen on TCP.
///
/// # Errors
/// An address cannot be listened on; what was opened is closed again.
pub(crate) fn open_tcp(
    old: &Config,
    new: &Config,
    workers: usize,
    log: &Log,
) -> Result<Vec<Vec<Listener>>, ()> {
    let network = &new.network;
    let mut each: Vec<Vec<Listener>> = (0..workers).map(|_| Vec::new()).collect();
    if network.port == 0 {
        return Ok(each);
    }
    let options = TcpOptions {
        backlog: network.tcp_backlog as i32,
        keepalive_s: network.tcp_keepalive as u32,
        reuse_port: true,
    };
    // On the port that is already this server's, its own listeners would answer the probe.
    let probe = network.port != old.network.port;
    let mut bound = 0;
    for (address, optional) in addresses(&network.bind, network.port as u16) {
        let mut open = || -> Result<(), ListenError> {
            if probe {
                probe_tcp(address)?;
            }
            for own in &mut each {
                own.push(Listener::tcp(address, &options)?);
            }
            Ok(())
        };
        match open() {
            Ok(()) => bound += 1,
            Err(error) if optional && !error.is_in_use() => {}
            Err(error) => {
                log.warning(format_args!("Could not create server TCP listening socket {error}"));
                return Err(());
            }
        }
    }
    if bound == 0 { Err(()) } else { Ok(each) }
}

/// Makes the worker accept on `listeners` and on none of its TCP listeners so far. Connections
/// stay.
pub fn replace_tcp(
    worker: &mut Worker,
    reactor: &mut Reactor,
    listeners: Vec<Listener>,
    log: &Log,
) {
    for index in 0..worker.listeners.len() {
        if worker.listeners[index] == Purpose::Tcp {
            // Its number may be given to another listener; until then nothing arrives under it.
            drop(reactor.unlisten(index));
        }
    }
    for listener in listeners {
        match reactor.listen(listener) {
            Ok(index) => {
                if worker.listeners.len() <= index {
                    worker.listeners.resize(index + 1, Purpose::Tcp);
                }
                worker.listeners[index] = Purpose::Tcp;
            }
            Err(error) => log.warning(format_args!("worker {}: {error}", worker.core.id)),
        }
    }
}
