//! Non-blocking sockets, and the source addresses of short connections.
//!
//! After a connection is closed, its pair of addresses stays in use for a minute, so tens of thousands of short
//! connections from one address to one server exhaust the ports. Therefore short connections to a server on a loopback
//! address use many source addresses of 127.0.0.0/8 in turn, each with its own ports. This module also chooses the
//! port, which saves the kernel the search.

use crate::error::RunError;
use crate::load::random::Random;
use brisk_dial::address::Address;
use rustix::io::Errno;
use rustix::net::{self, AddressFamily, SocketFlags, SocketType, sockopt};
use std::fs;
use std::io::{Read, Write};
use std::net::{IpAddr, Ipv4Addr, SocketAddr, SocketAddrV4, TcpStream};
use std::ops::Range;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::time::Duration;

/// Number of source addresses of one worker.
const SOURCES: u32 = 256;
/// Number of ports to try before the kernel chooses: other sockets may use some.
const TRIES_MAX: usize = 16;
const PORT_RANGE: &str = "/proc/sys/net/ipv4/ip_local_port_range";
/// How long the first reply may take.
const PROBE_TIMEOUT: Duration = Duration::from_secs(2);
const PORTS_DEFAULT: Range<u32> = 32_768..61_000;

/// Opens the connections of one worker.
#[derive(Debug)]
pub(super) struct Connector {
    address: Address,
    sources: Option<Sources>,
}

#[derive(Debug)]
struct Sources {
    /// Second byte of the source addresses.
    net: u8,
    ports: Range<u32>,
    next: u32,
}

impl Connector {
    /// If `spread`, connections use many source addresses; see [`spreading`].
    pub(super) fn new(address: &Address, worker: usize, spread: bool, seed: u64) -> Connector {
        let sources = spread.then(|| {
            let ports = local_ports();
            // Start at a random address, because another run may just have used the same ones.
            let next = Random::new(seed ^ crate::clock::now_ns()).below(1 << 24);
            #[expect(clippy::cast_possible_truncation, reason = "below 200 and 2^24")]
            Sources { net: 16 + (worker % 200) as u8, ports, next: next as u32 }
        });
        Connector { address: address.clone(), sources }
    }

    /// Begins to connect; the socket becomes writable when it is connected.
    pub(super) fn connect(&mut self) -> Result<OwnedFd, RunError> {
        let connected = match &self.address {
            Address::Tcp { resolved, .. } => {
                let to = *resolved;
                let mut tried = 0;
                loop {
                    let source = match &mut self.sources {
                        Some(sources) if tried < TRIES_MAX => Some(sources.draw()),
                        _ => None,
                    };
                    tried += 1;
                    match connect_tcp(to, source) {
                        // Another socket uses this port, so try the next one.
                        Err(Errno::ADDRINUSE | Errno::ADDRNOTAVAIL) if source.is_some() => {}
                        result => break result.map_err(std::io::Error::from),
                    }
                }
            }
            Address::Unix(path) => UnixStream::connect(path).and_then(|stream| {
                stream.set_nonblocking(true)?;
                Ok(stream.into())
            }),
        };
        connected.map_err(|source| self.failed(source))
    }

    /// The error of a failed connection.
    pub(super) fn failed(&self, source: std::io::Error) -> RunError {
        RunError::Connect { address: self.address.clone(), source }
    }
}

/// Whether connections to this server can use many source addresses. With several servers, the last of their variants
/// in this order applies.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Spreading {
    /// The server is on a loopback address, and accepts connections from other loopback addresses.
    #[default]
    Possible,
    /// The server is on a loopback address, and rejects all source addresses except 127.0.0.1, as in protected mode.
    Refused,
    /// The server is not on a loopback address.
    Elsewhere,
}

/// Tests a connection from one of the source addresses.
pub(super) fn spreading(address: &Address) -> Spreading {
    let Address::Tcp { resolved, .. } = address else { return Spreading::Elsewhere };
    if !resolved.is_ipv4() || !resolved.ip().is_loopback() {
        return Spreading::Elsewhere;
    }
    let source = SocketAddrV4::new(Ipv4Addr::new(127, 16, 1, 1), 0);
    let greeting = || -> std::io::Result<Vec<u8>> {
        let mut stream = TcpStream::from(connect_tcp(*resolved, Some(source))?);
        stream.set_nonblocking(false)?;
        stream.set_read_timeout(Some(PROBE_TIMEOUT))?;
        stream.write_all(b"PING\r\n")?;
        let mut reply = [0; 64];
        let count = stream.read(&mut reply)?;
        Ok(reply[..count].to_vec())
    };
    // The run will report any other problem of the server.
    match greeting() {
        Ok(reply) if reply.starts_with(b"-DENIED") => Spreading::Refused,
        _ => Spreading::Possible,
    }
}

impl Sources {
    fn draw(&mut self) -> SocketAddrV4 {
        let at = self.next;
        self.next = self.next.wrapping_add(1);
        let port = self.ports.start + at / SOURCES % (self.ports.end - self.ports.start);
        #[expect(clippy::cast_possible_truncation, reason = "below 256, and a port")]
        SocketAddrV4::new(Ipv4Addr::new(127, self.net, 1, (at % SOURCES) as u8), port as u16)
    }
}

fn connect_tcp(to: SocketAddr, source: Option<SocketAddrV4>) -> Result<OwnedFd, Errno> {
    let family = match to.ip() {
        IpAddr::V4(_) => AddressFamily::INET,
        IpAddr::V6(_) => AddressFamily::INET6,
    };
    let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
    let socket = net::socket_with(family, SocketType::STREAM, flags, None)?;
    sockopt::set_tcp_nodelay(&socket, true)?;
    if to.ip().is_loopback() {
        // There is no congestion on loopback, and reno is the cheapest algorithm. A kernel without it uses its default.
        let _ = sockopt::set_tcp_congestion(&socket, "reno");
    }
    if let Some(source) = source {
        sockopt::set_socket_reuseaddr(&socket, true)?;
        net::bind(&socket, &source)?;
    }
    match net::connect(&socket, &to) {
        Ok(()) | Err(Errno::INPROGRESS) => Ok(socket),
        Err(error) => Err(error),
    }
}

fn local_ports() -> Range<u32> {
    let text = fs::read_to_string(PORT_RANGE).unwrap_or_default();
    let mut bounds = text.split_whitespace().filter_map(|word| word.parse::<u32>().ok());
    match (bounds.next(), bounds.next()) {
        (Some(first), Some(last)) if 0 < first && first < last && last < 65_536 => first..last + 1,
        _ => PORTS_DEFAULT,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sources_take_turns_and_repeat_late() {
        let mut sources = Sources { net: 16, ports: 40_000..40_010, next: 5 };
        let mut seen: Vec<SocketAddrV4> = (0..2560).map(|_| sources.draw()).collect();
        assert!(seen.iter().all(|source| source.ip().is_loopback()));
        let first = seen[0];
        assert_eq!(sources.draw(), first);
        seen.sort();
        seen.dedup();
        assert_eq!(seen.len(), 2560);
    }

    #[test]
    fn ports_of_this_machine_are_a_range() {
        let ports = local_ports();
        assert!(ports.start < ports.end && ports.end <= 65_536);
    }
}
