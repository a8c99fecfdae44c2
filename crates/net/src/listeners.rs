//! The listening sockets: one per worker for each port and bind address (SO_REUSEPORT), and one
//! Unix socket that all workers share. The listeners of the admin lane belong to its own worker.
//!
//! Failures are logged. A failure at startup ends the process with exit code 1, as in Redis. CONFIG SET of ports and
//! addresses opens the new listeners first, so a failure changes nothing. Then it stops the old ones, and each worker
//! takes over its new listeners and drops the old ones.

use brisk_config::value::Text;
use brisk_config::{Config, os_reason};
use brisk_observe::log::Log;
use brisk_reactor::{ListenError, Listener, ListenerStopper, TcpOptions, probe_tcp};
use brisk_structures::poison::EvenPoisoned;
use rustix::io::Errno;
use std::io;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, ToSocketAddrs};
use std::sync::Mutex;

/// The purpose of a listener.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Purpose {
    Tcp,
    Unix,
    Tls,
    /// The admin lane over TCP.
    AdminTcp,
    /// The admin lane over a Unix socket.
    AdminUnix,
}

impl Purpose {
    /// Reports whether the listener belongs to the admin lane, whose connections are counted
    /// separately.
    pub const fn is_admin(self) -> bool {
        matches!(self, Purpose::AdminTcp | Purpose::AdminUnix)
    }
}

/// The listeners of one worker, with their purposes.
pub type Listeners = Vec<(Purpose, Listener)>;

/// The new listeners of one worker for one purpose.
#[derive(Debug)]
pub struct Replacement {
    pub purpose: Purpose,
    pub listeners: Vec<Listener>,
}

/// The new listeners of all workers for one purpose.
#[derive(Debug)]
pub struct Reopened {
    pub purpose: Purpose,
    /// The listeners of each worker, by the worker's number.
    pub each: Vec<Vec<Listener>>,
}

/// All listeners of the workers, so that they can be stopped regardless of what the workers are doing.
#[derive(Debug, Default)]
pub struct OpenListeners(Mutex<Vec<(Purpose, ListenerStopper)>>);

impl OpenListeners {
    /// Adds these listeners.
    pub fn note<'l>(&self, listeners: impl IntoIterator<Item = &'l (Purpose, Listener)>) {
        let noted = listeners.into_iter().map(|(purpose, listener)| (*purpose, listener.stopper()));
        self.0.lock().even_poisoned().extend(noted);
    }

    /// Adds the new listeners, and stops the previous ones with the same purpose. From then on, every new connection
    /// goes to a new listener. Without this, a client could still connect to a listener that its worker is about to
    /// close, and the kernel would reset the connection. Connections that no worker has accepted yet are reset, as in
    /// Redis.
    pub fn replace(&self, new: &Reopened) {
        let mut all = self.0.lock().even_poisoned();
        all.retain(|(purpose, stopper)| {
            if *purpose == new.purpose {
                stopper.stop();
            }
            *purpose != new.purpose
        });
        all.extend(new.each.iter().flatten().map(|one| (new.purpose, one.stopper())));
    }

    /// Stops the listeners. No client can connect anymore, and another server can listen on the same addresses.
    pub fn stop(&self) {
        self.0.lock().even_poisoned().iter().for_each(|(_, stopper)| stopper.stop());
    }
}

/// Opens all listeners that the configuration names, for `workers` workers. `None` if the server
/// cannot start; the log says why.
pub fn open(config: &Config, workers: usize, log: &Log) -> Option<Vec<Listeners>> {
    let network = &config.network;
    let mut each: Vec<Listeners> = (0..workers).map(|_| Vec::new()).collect();
    for (purpose, port, name) in ports(config) {
        match open_port(config, &network.bind, port, true, workers, log) {
            Ok(opened) => {
                for (own, listeners) in each.iter_mut().zip(opened) {
                    own.extend(listeners.into_iter().map(|listener| (purpose, listener)));
                }
            }
            Err(NotListening) => {
                log.warning(format_args!("Failed listening on port {port} ({name}), aborting."));
                return None;
            }
        }
    }
    if !network.unixsocket.is_empty() {
        let purpose = (Purpose::Unix, &network.unixsocket, network.unixsocketperm);
        if let Err(error) = open_unix(config, purpose, &mut each) {
            log.warning(format_args!("Failed opening Unix socket: {error}"));
            return None;
        }
        if let Err(error) = give_to_group(&network.unixsocket, &network.unixsocketgroup) {
            log.warning(format_args!("Failed opening Unix socket: {error}"));
            return None;
        }
    }
    if each.iter().all(Vec::is_empty) {
        log.warning(format_args!("Configured to not listen anywhere, exiting."));
        return None;
    }
    if network.has_admin_lane() {
        each.push(open_admin_lane(config, log)?);
    }
    Some(each)
}

/// Opens the listeners of the admin lane. Its port is open only on the loopback addresses, because
/// its traffic is not encrypted and its requests are served before all others.
fn open_admin_lane(config: &Config, log: &Log) -> Option<Listeners> {
    let network = &config.network;
    let mut lane = vec![Listeners::new()];
    if network.admin_port > 0 {
        let port = u16::try_from(network.admin_port).unwrap_or(0);
        let addresses = ["127.0.0.1".to_owned(), "-::1".to_owned()];
        let Ok(opened) = open_port(config, &addresses, port, true, 1, log) else {
            log.warning(format_args!("Failed listening on port {port} (admin), aborting."));
            return None;
        };
        lane[0].extend(opened.into_iter().flatten().map(|one| (Purpose::AdminTcp, one)));
    }
    if !network.admin_unixsocket.is_empty() {
        let (path, mode) = (&network.admin_unixsocket, network.admin_unixsocketperm);
        if let Err(error) = open_unix(config, (Purpose::AdminUnix, path, mode), &mut lane) {
            log.warning(format_args!("Failed opening the admin lane's Unix socket: {error}"));
            return None;
        }
    }
    lane.pop()
}

/// Opens the listeners of `http-port` and `http-bind`. `None` if the server cannot start; the log says why.
pub fn open_http(config: &Config, log: &Log) -> Option<Vec<Listener>> {
    let network = &config.network;
    let port = u16::try_from(network.http_port).unwrap_or(0);
    match open_port(config, &network.http_bind, port, true, 1, log) {
        Ok(opened) => Some(opened.into_iter().flatten().collect()),
        Err(NotListening) => {
            log.warning(format_args!("Failed listening on port {port} (HTTP), aborting."));
            None
        }
    }
}

/// The ports of a configuration: purpose, number (0 for none), and name.
fn ports(config: &Config) -> [(Purpose, u16, &'static str); 2] {
    let number = |port: i64| u16::try_from(port).unwrap_or(0);
    [
        (Purpose::Tcp, number(config.network.port), "TCP"),
        (Purpose::Tls, number(config.tls.port), "TLS"),
    ]
}

/// An address cannot be listened on; the log says which and why.
#[derive(Debug)]
pub struct NotListening;

/// Opens the listeners that differ between `old` and `new`: for each purpose that changes, those of
/// each worker. There are none if `new` has no such port.
///
/// # Errors
/// The purpose for which an address cannot be listened on. Listeners that were already opened are
/// closed again.
pub fn reopen(
    old: &Config,
    new: &Config,
    workers: usize,
    log: &Log,
) -> Result<Vec<Reopened>, Purpose> {
    let mut all = Vec::new();
    for ((purpose, before, _), (_, port, _)) in ports(old).into_iter().zip(ports(new)) {
        if before != port || old.network.bind != new.network.bind {
            // There is no probe if the port stays the same, because this server's own listeners
            // would answer it.
            let opened = open_port(new, &new.network.bind, port, before != port, workers, log);
            let opened = opened.map_err(|NotListening| purpose)?;
            if port > 0 && opened.iter().all(Vec::is_empty) && !new.network.bind.is_empty() {
                return Err(purpose);
            }
            all.push(Reopened { purpose, each: opened });
        }
    }
    Ok(all)
}

/// Opens a listener for each worker on each of the addresses, which are in the notation of `bind`.
/// Port 0 means no listeners. With `probe`, a listener of another process is detected.
///
/// # Errors
/// An address cannot be listened on, and Redis would not continue without it either.
fn open_port(
    config: &Config,
    addresses: &[String],
    port: u16,
    probe: bool,
    workers: usize,
    log: &Log,
) -> Result<Vec<Vec<Listener>>, NotListening> {
    let mut each: Vec<Vec<Listener>> = (0..workers).map(|_| Vec::new()).collect();
    if port == 0 {
        return Ok(each);
    }
    let options = TcpOptions {
        backlog: config.network.tcp_backlog as i32,
        keepalive_s: config.network.tcp_keepalive as u32,
        reuse_port: true,
    };
    let mut taken: Vec<SocketAddr> = Vec::new();
    for word in addresses {
        let (name, optional) = match word.strip_prefix('-') {
            Some(name) => (name, true),
            None => (word.as_str(), false),
        };
        let mut open = || -> Result<(), ListenError> {
            let address = resolve(name, port)?;
            if taken.iter().any(|other| overlap(*other, address)) {
                let cause = Errno::ADDRINUSE.into();
                return Err(ListenError { address: name.to_owned(), step: "bind", cause });
            }
            if probe {
                probe_tcp(address)?;
            }
            taken.push(address);
            for listeners in &mut each {
                listeners.push(Listener::tcp(address, &options)?);
            }
            Ok(())
        };
        if let Err(ListenError { step, cause, .. }) = open() {
            let reason = os_reason(&cause);
            let step = if step == RESOLVE { String::new() } else { format!("{step}: ") };
            log.warning(format_args!(
                "Warning: Could not create server TCP listening socket {name}:{port}: {step}\
                 {reason}"
            ));
            if !may_be_missing(&cause, optional) {
                return Err(NotListening);
            }
        }
    }
    Ok(each)
}

/// Reports whether the server starts without this address: an optional address that this machine does not have, or any
/// address of a protocol that the machine does not support.
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

/// Listens on a Unix socket with this mode (0: the mode that results from the umask), for all
/// workers in `each`.
fn open_unix(
    config: &Config,
    (purpose, path, mode): (Purpose, &Text, u32),
    each: &mut [Listeners],
) -> Result<(), String> {
    let (backlog, permissions) = (config.network.tcp_backlog as i32, (mode != 0).then_some(mode));
    let said = |error: ListenError| format!("{}: {}", error.step, os_reason(&error.cause));
    let listener = Listener::unix(path.as_path(), permissions, backlog).map_err(said)?;
    for own in each {
        own.push((purpose, listener.try_clone().map_err(|error| os_reason(&error))?));
    }
    Ok(())
}

/// Changes the group of a file to `group`, a name or a number. Does nothing if `group` is empty.
fn give_to_group(path: &Text, group: &Text) -> Result<(), String> {
    if group.is_empty() {
        return Ok(());
    }
    let name = group.to_string_lossy();
    let groups = std::fs::read_to_string(GROUP_FILE).unwrap_or_default();
    let number = group_id(&groups, &name).or_else(|| name.parse().ok());
    let number = number.ok_or_else(|| format!("there is no group '{name}' in {GROUP_FILE}"))?;
    std::os::unix::fs::chown(path.as_path(), None, Some(number))
        .map_err(|error| format!("giving it to group '{name}': {}", os_reason(&error)))
}

/// The file in which groups are looked up. Groups of a directory service must be given by number.
const GROUP_FILE: &str = "/etc/group";

/// The number of a group in lines of `name:password:number:members`.
fn group_id(groups: &str, name: &str) -> Option<u32> {
    groups.lines().find_map(|line| {
        let mut fields = line.split(':');
        (fields.next() == Some(name)).then(|| fields.nth(1)?.parse().ok()).flatten()
    })
}

/// Reports whether one socket would receive connections that are meant for the other. Sockets that share a port do not
/// detect this themselves.
fn overlap(one: SocketAddr, other: SocketAddr) -> bool {
    let (a, b) = (one.ip(), other.ip());
    // An IPv6 socket accepts only IPv6 connections.
    one.port() == other.port()
        && a.is_ipv4() == b.is_ipv4()
        && (a == b || a.is_unspecified() || b.is_unspecified())
}

/// The step that resolves a name. As in Redis, the log does not name this step, only its error.
const RESOLVE: &str = "resolve";

/// The address that an argument of `bind` stands for. Names are resolved.
fn resolve(name: &str, port: u16) -> Result<SocketAddr, ListenError> {
    match name {
        "*" => return Ok(SocketAddr::new(Ipv4Addr::UNSPECIFIED.into(), port)),
        "::*" => return Ok(SocketAddr::new(Ipv6Addr::UNSPECIFIED.into(), port)),
        _ => {}
    }
    let failed = |cause| ListenError { address: name.to_owned(), step: RESOLVE, cause };
    let mut found = (name, port).to_socket_addrs().map_err(failed)?;
    found.next().ok_or_else(|| failed(io::ErrorKind::NotFound.into()))
}

#[cfg(test)]
mod tests {
    use super::group_id;

    #[test]
    fn groups_are_found_by_their_full_name() {
        let groups = "root:x:0:\nwww-data:x:33:me,you\nwww:x:34:\nbroken\n";
        let found =
            ["root", "www-data", "www", "ww", "broken", ""].map(|name| group_id(groups, name));
        assert_eq!(found, [Some(0), Some(33), Some(34), None, None, None]);
    }
}
