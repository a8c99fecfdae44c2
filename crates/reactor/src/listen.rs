//! Listening sockets, and addresses of peers.
//!
//! For a TCP port, every worker has a listening socket of its own, and the kernel spreads
//! connections over them (SO_REUSEPORT). For a Unix path, every worker has a duplicate of one
//! socket. Accepted sockets inherit TCP_NODELAY and keep-alive from their listener on Linux. So
//! these options are set here once, instead of once per connection.

use socket2::{Domain, Protocol, SockAddr, SockRef, Socket, TcpKeepalive, Type};
use std::fmt;
use std::io;
use std::net::{Shutdown, SocketAddr};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::sync::{Arc, Weak};
use std::time::Duration;

/// Number of probes before a silent peer counts as gone. Also the divisor for the time between two
/// probes.
const KEEPALIVE_PROBES: u32 = 3;

/// The address of a peer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum PeerAddr {
    Tcp(SocketAddr),
    /// A Unix socket. Its peers have no address.
    Unix,
    /// The kernel no longer knows the address because the peer is gone.
    Unknown,
}

impl PeerAddr {
    pub(crate) fn from_sock_addr(address: &SockAddr) -> Self {
        if address.is_unix() {
            return PeerAddr::Unix;
        }
        address.as_socket().map_or(PeerAddr::Unknown, PeerAddr::Tcp)
    }

    /// Returns true if the peer is on this machine: a Unix socket or a loopback address.
    #[must_use]
    pub fn is_local(&self) -> bool {
        match self {
            PeerAddr::Tcp(address) => address.ip().to_canonical().is_loopback(),
            PeerAddr::Unix => true,
            PeerAddr::Unknown => false,
        }
    }
}

/// Prints `1.2.3.4:5` or `[::1]:5`. A Unix peer has no address and prints as `unix`.
impl fmt::Display for PeerAddr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            PeerAddr::Tcp(address) => address.fmt(f),
            PeerAddr::Unix => f.write_str("unix"),
            PeerAddr::Unknown => f.write_str("?"),
        }
    }
}

/// The error if a listener could not be created: its address, the failed step and the cause.
#[derive(Debug)]
pub struct ListenError {
    /// Address and port, or path.
    pub address: String,
    /// The step that failed: `socket`, `bind`, `listen`, …
    pub step: &'static str,
    pub cause: io::Error,
}

impl ListenError {
    /// Returns true if another process listens on the address.
    #[must_use]
    pub fn is_in_use(&self) -> bool {
        self.cause.kind() == io::ErrorKind::AddrInUse
    }
}

impl fmt::Display for ListenError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "cannot listen on {}: {}: {}", self.address, self.step, self.cause)
    }
}

impl std::error::Error for ListenError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        Some(&self.cause)
    }
}

/// Options of TCP listeners.
#[derive(Clone, Copy, Debug)]
pub struct TcpOptions {
    /// Length of the queue of connections that have not been accepted yet. The kernel limits it to
    /// `net.core.somaxconn`.
    pub backlog: i32,
    /// Idle seconds until the first keep-alive probe; 0 turns probes off. There are 3 probes, each
    /// after a third of this time.
    pub keepalive_s: u32,
    /// Allow several sockets of this user to listen on the same port.
    pub reuse_port: bool,
}

impl Default for TcpOptions {
    fn default() -> Self {
        Self { backlog: 511, keepalive_s: 300, reuse_port: true }
    }
}

/// A listening socket that is not yet part of a reactor.
#[derive(Debug)]
pub struct Listener {
    socket: Arc<Socket>,
    unix: bool,
}

/// Stops a listener from any thread, without the help of the thread that owns it.
#[derive(Debug, Clone)]
pub struct ListenerStopper(Weak<Socket>);

impl ListenerStopper {
    /// Stops the listener. From then on the kernel refuses new connections, and a server that sets
    /// SO_REUSEADDR can bind the address. Connections in the queue are refused.
    ///
    /// The kernel keeps reporting a stopped Unix listener as ready, so a reactor that still has it is woken in each
    /// round.
    pub fn stop(&self) {
        if let Some(socket) = self.0.upgrade() {
            // The listener may already be shut down.
            let _ = socket.shutdown(Shutdown::Both);
        }
    }

    /// Returns true if the listener is closed.
    #[must_use]
    pub fn is_closed(&self) -> bool {
        self.0.strong_count() == 0
    }
}

impl Listener {
    /// Listens on a TCP address. A listener on an IPv6 address accepts only IPv6, so that `0.0.0.0`
    /// and `::` can both be bound.
    ///
    /// # Errors
    /// Returns the step that failed, with the address and the cause. With `reuse_port`, a listener
    /// of another process is not detected: call [`probe_tcp`] first.
    pub fn tcp(address: SocketAddr, options: &TcpOptions) -> Result<Self, ListenError> {
        let failed = |step| move |cause| ListenError { address: address.to_string(), step, cause };
        let socket = tcp_socket(address, options.reuse_port)?;
        socket.set_tcp_nodelay(true).map_err(failed("set TCP_NODELAY"))?;
        socket.bind(&address.into()).map_err(failed("bind"))?;
        socket.listen(options.backlog).map_err(failed("listen"))?;
        let listener = Self { socket: Arc::new(socket), unix: false };
        listener.set_keepalive(options.keepalive_s).map_err(failed("set keep-alive"))?;
        Ok(listener)
    }

    /// Listens on a Unix socket and sets its permission bits, if given. An existing file at `path`
    /// is replaced, but not a directory.
    ///
    /// # Errors
    /// Returns the step that failed, with the path and the cause.
    pub fn unix(path: &Path, permissions: Option<u32>, backlog: i32) -> Result<Self, ListenError> {
        let failed =
            |step| move |cause| ListenError { address: path.display().to_string(), step, cause };
        let address = SockAddr::unix(path).map_err(failed("path"))?;
        let socket = Socket::new(Domain::UNIX, Type::STREAM, None).map_err(failed("socket"))?;
        // If the file cannot be removed, the next step fails and reports it.
        let _ = std::fs::remove_file(path);
        socket.bind(&address).map_err(failed("bind"))?;
        if let Some(bits) = permissions {
            let bits = std::fs::Permissions::from_mode(bits);
            std::fs::set_permissions(path, bits).map_err(failed("set permissions"))?;
        }
        socket.listen(backlog).map_err(failed("listen"))?;
        Ok(Self { socket: Arc::new(socket), unix: true })
    }

    /// Duplicates the socket for another worker. Each connection goes to one of the workers.
    ///
    /// # Errors
    /// Fails if descriptors have run out.
    pub fn try_clone(&self) -> io::Result<Self> {
        Ok(Self { socket: Arc::new(self.socket.try_clone()?), unix: self.unix })
    }

    /// Returns a handle that can stop this listener from another thread.
    #[must_use]
    pub fn stopper(&self) -> ListenerStopper {
        ListenerStopper(Arc::downgrade(&self.socket))
    }

    /// Returns the bound address, which shows the chosen port if port 0 was requested; `None` for
    /// Unix sockets.
    #[must_use]
    pub fn local_addr(&self) -> Option<SocketAddr> {
        self.socket.local_addr().ok()?.as_socket()
    }

    /// Sets keep-alive (see [`TcpOptions`]) for connections that will be accepted. Does nothing on
    /// Unix sockets.
    ///
    /// # Errors
    /// Returns the error of the kernel.
    pub fn set_keepalive(&self, seconds: u32) -> io::Result<()> {
        if self.unix { Ok(()) } else { set_keepalive(self.socket.as_fd(), seconds) }
    }

    pub(crate) fn set_nonblocking(&self, nonblocking: bool) -> io::Result<()> {
        self.socket.set_nonblocking(nonblocking)
    }
}

impl AsFd for Listener {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

/// Checks whether another socket listens on `address`, by binding without SO_REUSEPORT.
///
/// # Errors
/// Returns the same errors as [`Listener::tcp`]. [`ListenError::is_in_use`] is true if the address
/// is taken.
pub fn probe_tcp(address: SocketAddr) -> Result<(), ListenError> {
    let socket = tcp_socket(address, false)?;
    let failed = |cause| ListenError { address: address.to_string(), step: "bind", cause };
    socket.bind(&address.into()).map_err(failed)
}

fn tcp_socket(address: SocketAddr, reuse_port: bool) -> Result<Socket, ListenError> {
    let failed = |step| move |cause| ListenError { address: address.to_string(), step, cause };
    let domain = Domain::for_address(address);
    let socket =
        Socket::new(domain, Type::STREAM, Some(Protocol::TCP)).map_err(failed("socket"))?;
    if address.is_ipv6() {
        socket.set_only_v6(true).map_err(failed("set IPV6_V6ONLY"))?;
    }
    socket.set_reuse_address(true).map_err(failed("set SO_REUSEADDR"))?;
    if reuse_port {
        socket.set_reuse_port(true).map_err(failed("set SO_REUSEPORT"))?;
    }
    Ok(socket)
}

fn set_keepalive(socket: BorrowedFd<'_>, seconds: u32) -> io::Result<()> {
    let socket = SockRef::from(&socket);
    if seconds == 0 {
        return socket.set_keepalive(false);
    }
    let interval = (seconds / KEEPALIVE_PROBES).max(1);
    socket.set_tcp_keepalive(
        &TcpKeepalive::new()
            .with_time(Duration::from_secs(seconds.into()))
            .with_interval(Duration::from_secs(interval.into()))
            .with_retries(KEEPALIVE_PROBES),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn loopback_addresses_are_local_in_every_spelling() {
        for (address, local) in [
            ("127.0.0.1:1", true),
            ("127.8.8.8:1", true),
            ("[::1]:1", true),
            ("[::ffff:127.0.0.1]:1", true),
            ("[::ffff:192.0.2.1]:1", false),
            ("192.0.2.1:1", false),
            ("[2001:db8::1]:1", false),
        ] {
            let address = address.parse().expect("an address");
            assert_eq!(PeerAddr::Tcp(address).is_local(), local, "{address}");
        }
        assert!(PeerAddr::Unix.is_local() && !PeerAddr::Unknown.is_local());
    }
}
