//! The addresses of the two ends of a connection, and the lookup of clients by address.

use brisk_observe::text::Text;
use brisk_reactor::PeerAddr;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::net::SocketAddr;

/// One end of a connection. It is formatted only when needed, which most connections never require.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Address {
    Socket(PeerAddr),
    /// The path of a Unix socket, which is the name of both ends.
    Path(Box<str>),
}

impl Address {
    /// Bytes of memory on the heap.
    pub fn heap_bytes(&self) -> usize {
        match self {
            Address::Socket(_) => 0,
            Address::Path(path) => path.len(),
        }
    }

    pub fn tcp(&self) -> Option<SocketAddr> {
        match self {
            Address::Socket(PeerAddr::Tcp(address)) => Some(*address),
            _ => None,
        }
    }

    /// Appends the same text as `Display`. IPv4 addresses bypass the formatting machinery, because client lists have
    /// thousands of addresses.
    pub fn write(&self, text: &mut Text) {
        let Address::Socket(PeerAddr::Tcp(SocketAddr::V4(address))) = self else {
            return text.push(&self.to_string());
        };
        for (at, octet) in address.ip().octets().into_iter().enumerate() {
            text.push(if at == 0 { "" } else { "." });
            text.push_number(u64::from(octet));
        }
        text.push(":");
        text.push_number(u64::from(address.port()));
    }

    /// Reports whether `text` is the text form of this address.
    pub fn reads(&self, text: &[u8]) -> bool {
        self.to_string().as_bytes() == text
    }
}

/// `127.0.0.1:6379`, `[::1]:6379`, `/path:0`.
impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Address::Socket(address) => address.fmt(f),
            Address::Path(path) => write!(f, "{path}:0"),
        }
    }
}

/// A TCP address as the key of a map. It is hashed in one piece.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AddressKey(pub SocketAddr);

impl Hash for AddressKey {
    fn hash<H: Hasher>(&self, state: &mut H) {
        match self.0 {
            SocketAddr::V4(v4) => {
                state.write_u64(u64::from(v4.ip().to_bits()) << 16 | u64::from(v4.port()));
            }
            SocketAddr::V6(v6) => {
                state.write_u128(v6.ip().to_bits());
                state.write_u16(v6.port());
            }
        }
    }
}

/// Hashes client ids. This server assigns ids consecutively, so no client can choose ids that
/// collide.
#[derive(Debug, Clone, Copy, Default)]
pub struct IdHasher(u64);

impl Hasher for IdHasher {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.write_u64(u64::from(*byte));
        }
    }

    fn write_u64(&mut self, id: u64) {
        // The odd constant next to 2^64 divided by the golden ratio (Knuth). Low bits stay distinct, and high bits
        // depend on all bits.
        self.0 = (self.0 ^ id).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_written_as_it_is_displayed() {
        let socket = |text: &str| Address::Socket(PeerAddr::Tcp(text.parse().expect("an address")));
        for address in [
            socket("1.2.3.4:5"),
            socket("255.0.10.100:65535"),
            socket("[::1]:6379"),
            socket("[fe80::1%3]:1"),
            Address::Socket(PeerAddr::Unknown),
            Address::Path("/a/b".into()),
        ] {
            let mut text = Text::with_capacity(0);
            address.write(&mut text);
            assert_eq!(text.done(), address.to_string());
        }
    }

    #[test]
    fn addresses_read_as_in_client_list() {
        for text in ["127.0.0.1:6379", "[::1]:6379"] {
            let address = Address::Socket(PeerAddr::Tcp(text.parse().unwrap()));
            assert!(address.reads(text.as_bytes()), "{address}");
            assert_eq!((address.heap_bytes(), address.tcp()), (0, text.parse().ok()));
        }
        let path = Address::Path("/tmp/redis.sock".into());
        assert!(path.reads(b"/tmp/redis.sock:0") && !path.reads(b"/tmp/redis.sock"));
        assert_eq!((path.heap_bytes(), path.tcp()), (15, None));
    }

    #[test]
    fn consecutive_ids_spread_over_a_table() {
        let hash = |id| {
            let mut hasher = IdHasher::default();
            hasher.write_u64(id);
            hasher.finish()
        };
        let low: std::collections::HashSet<u64> = (0..4096).map(|id| hash(id) & 4095).collect();
        assert_eq!(low.len(), 4096);
        let high: std::collections::HashSet<u64> = (0..4096).map(|id| hash(id) >> 57).collect();
        assert_eq!(high.len(), 128);
    }
}
