//! The address of a server: a TCP address or the path of a Unix socket.

use std::fmt;
use std::net::{SocketAddr, ToSocketAddrs, UdpSocket};
use std::path::PathBuf;

/// The default port of Redis.
pub const PORT_DEFAULT: u16 = 6379;

/// Where a server listens.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Address {
    /// A host name or an IP address, and the address to which it resolved.
    Tcp {
        /// As the user wrote it.
        host: String,
        /// The first address of the host.
        resolved: SocketAddr,
    },
    /// A path.
    Unix(PathBuf),
}

impl Address {
    /// Resolves a host.
    ///
    /// # Errors
    /// There is no such host.
    pub fn tcp(host: &str, port: u16) -> Result<Address, String> {
        let mut found =
            (host, port).to_socket_addrs().map_err(|error| format!("{host}:{port}: {error}"))?;
        let resolved = found.next().ok_or_else(|| format!("{host}:{port}: no address"))?;
        Ok(Address::Tcp { host: host.to_owned(), resolved })
    }

    /// Reads `host:port`, `host`, `:port`, or a path (with a slash, or after `unix:`).
    ///
    /// # Errors
    /// The text is none of these, or the host is unknown.
    pub fn parse(text: &str) -> Result<Address, String> {
        if let Some(path) = text.strip_prefix("unix:") {
            return Ok(Address::Unix(path.into()));
        }
        if text.contains('/') {
            return Ok(Address::Unix(text.into()));
        }
        let Some((host, port)) = text.rsplit_once(':') else {
            return Address::tcp(text, PORT_DEFAULT);
        };
        let port = port.parse().map_err(|_| format!("not a port: \"{port}\""))?;
        let host = host.trim_start_matches('[').trim_end_matches(']');
        Address::tcp(if host.is_empty() { "127.0.0.1" } else { host }, port)
    }

    /// Returns true if the address shows that the server runs on this machine.
    #[must_use]
    pub fn is_local(&self) -> bool {
        match self {
            Address::Tcp { resolved, .. } => {
                resolved.ip().is_loopback() || is_of_this_machine(*resolved)
            }
            Address::Unix(_) => true,
        }
    }

    /// The name of the host, for TLS.
    #[must_use]
    pub fn host(&self) -> &str {
        match self {
            Address::Tcp { host, .. } => host,
            Address::Unix(_) => "localhost",
        }
    }
}

/// Returns true if this machine has the address, or would connect to itself through it, as with
/// 0.0.0.0. Only in these cases can a socket be bound to the address.
fn is_of_this_machine(mut address: SocketAddr) -> bool {
    address.set_port(0);
    UdpSocket::bind(address).is_ok()
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Address::Tcp { host, resolved } => write!(f, "{host}:{}", resolved.port()),
            Address::Unix(path) => write!(f, "{}", path.display()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_read_as_people_write_them() {
        for (text, shown) in [
            ("127.0.0.1:7000", "127.0.0.1:7000"),
            ("127.0.0.1", "127.0.0.1:6379"),
            (":7000", "127.0.0.1:7000"),
            ("[::1]:7000", "::1:7000"),
            ("unix:redis.sock", "redis.sock"),
            ("/run/redis.sock", "/run/redis.sock"),
        ] {
            assert_eq!(Address::parse(text).unwrap().to_string(), shown);
        }
        assert!(Address::parse("127.0.0.1:x").is_err());
        assert!(Address::parse("/run/redis.sock").unwrap().is_local());
    }

    #[test]
    fn a_machine_knows_its_own_addresses() {
        let is_local = |text: &str| Address::parse(text).unwrap().is_local();
        assert!(is_local("127.0.0.1:1") && is_local("127.1.2.3:1") && is_local("0.0.0.0:1"));
        // Reserved for documentation. So is 192.0.2.0/24, but some emulated machines have such an
        // address.
        assert!(!is_local("203.0.113.77:1"));
        // The address from which this machine would send; nothing is sent. The machine may have no
        // such address.
        let from = UdpSocket::bind("0.0.0.0:0").unwrap();
        if from.connect("203.0.113.77:9").is_ok() {
            let own = from.local_addr().unwrap().ip();
            assert!(is_local(&format!("{own}:1")), "{own}");
        }
    }
}
