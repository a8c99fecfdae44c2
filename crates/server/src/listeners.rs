//! The listening sockets: for each port and bind address one per worker (SO_REUSEPORT), and one
//! Unix socket shared by all workers.
//!
//! What stands in the way is told in the log; the process then ends with code 1, as Redis does.

use crate::config::{Config, os_reason};
use crate::log::Log;
use crate::worker::Purpose;
use brisk_reactor::{ListenError, Listener, TcpOptions, probe_tcp};
use rustix::io::Errno;
use std::io;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, ToSocketAddrs};

/// The listeners of one worker, with what they are for.
pub type Listeners = Vec<(Purpose, Listener)>;

/// Opens everything the configuration names, for `workers` workers. `None` if the server cannot
/// start; the log says why.
pub fn open(config: &Config, workers: usize, log: &Log) -> Option<Vec<Listeners>> {
    let network = &config.network;
    let mut each: Vec<Listeners> = (0..workers).map(|_| Vec::new()).collect();
    let ports = [(Purpose::Tcp, network.port, "TCP"), (Purpose::Tls, config.tls.port, "TLS")];
    for (purpose, port, name) in ports {
        if port > 0 && !open_port(config, purpose, port as u16, &mut each, log) {
            log.warning(format_args!("Failed listening on port {port} ({name}), aborting."));
            return None;
        }
    }
    if !network.unixsocket.is_empty()
        && let Err(error) = open_unix(config, &mut each)
    {
        log.warning(format_args!("Failed opening Unix socket: {error}"));
        return None;
    }
    if each.iter().all(Vec::is_empty) {
        log.warning(format_args!("Configured to not listen anywhere, exiting."));
        return None;
    }
    Some(each)
}

/// Listens on all bind addresses; false if one cannot be had, save where Redis goes on without it.
fn open_port(
    config: &Config,
    purpose: Purpose,
    port: u16,
    each: &mut [Listeners],
    log: &Log,
) -> bool {
    let options = TcpOptions {
        backlog: config.network.tcp_backlog as i32,
        keepalive_s: config.network.tcp_keepalive as u32,
        reuse_port: true,
    };
    for word in &config.network.bind {
        let (name, optional) = match word.strip_prefix('-') {
            Some(name) => (name, true),
            None => (word.as_str(), false),
        };
        let opened =
            resolve(name, port).and_then(|address| listen_tcp(purpose, address, &options, each));
        if let Err(ListenError { step, cause, .. }) = opened {
            let cause_text = os_reason(&cause);
            log.warning(format_args!(
                "Warning: Could not create server TCP listening socket {name}:{port}: {step}: \
                 {cause_text}"
            ));
            if !may_be_missing(&cause, optional) {
                return false;
            }
        }
    }
    true
}

fn listen_tcp(
    purpose: Purpose,
    address: SocketAddr,
    options: &TcpOptions,
    each: &mut [Listeners],
) -> Result<(), ListenError> {
    probe_tcp(address)?;
    for own in each {
        own.push((purpose, Listener::tcp(address, options)?));
    }
    Ok(())
}

/// Whether the server starts without an address: one marked as optional that this machine does not
/// have, or any of a protocol that it does not have.
fn may_be_missing(cause: &io::Error, optional: bool) -> bool {
    let Some(number) = Errno::from_io_error(cause) else { return false };
    match number {
        Errno::ADDRNOTAVAIL => optional,
        Errno::NOPROTOOPT
        | Errno::PROTONOSUPPORT
        | Errno::SOCKTNOSUPPORT
        | Errno::PFNOSUPPORT
        | Errno::AFNOSUPPORT => true,
        _ => false,
    }
}

fn open_unix(config: &Config, each: &mut [Listeners]) -> Result<(), String> {
    let network = &config.network;
    let path = network.unixsocket.as_path();
    let permissions = (network.unixsocketperm != 0).then_some(network.unixsocketperm);
    let said = |error: ListenError| format!("{}: {}", error.step, os_reason(&error.cause));
    let listener = Listener::unix(path, permissions, network.tcp_backlog as i32).map_err(said)?;
    for own in each {
        own.push((Purpose::Unix, listener.try_clone().map_err(|error| os_reason(&error))?));
    }
    Ok(())
}

/// The address a word of `bind` stands for; names are asked for.
fn resolve(name: &str, port: u16) -> Result<SocketAddr, ListenError> {
    match name {
        "*" => return Ok(SocketAddr::new(Ipv4Addr::UNSPECIFIED.into(), port)),
        "::*" => return Ok(SocketAddr::new(Ipv6Addr::UNSPECIFIED.into(), port)),
        _ => {}
    }
    let failed = |cause| ListenError { address: name.to_owned(), step: "resolve", cause };
    let mut found = (name, port).to_socket_addrs().map_err(failed)?;
    found.next().ok_or_else(|| failed(io::ErrorKind::NotFound.into()))
}
