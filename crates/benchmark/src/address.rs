//! Where a server is: a TCP address or the path of a Unix socket.

use std::fmt;
use std::net::{SocketAddr, ToSocketAddrs};
use std::path::PathBuf;

/// The port of Redis.
pub const PORT_DEFAULT: u16 = 6379;

/// Where a server listens.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Address {
    /// A name or number of a host, with what it resolved to.
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
    /// It is none of these, or the host is unknown.
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

    /// Whether the server runs on this machine, as far as the address tells.
    #[must_use]
    pub fn is_local(&self) -> bool {
        match self {
            Address::Tcp { resolved, .. } => resolved.ip().is_loopback(),
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
        assert!(!Address::parse("192.0.2.1:1").unwrap().is_local());
    }
}
