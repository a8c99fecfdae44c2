//! Ports for server processes, claimed so that parallel tests never share one.
//!
//! Binding port 0 and closing the socket again is not enough: our own server listens with `SO_REUSEPORT`, so two
//! servers given the same port would both start and share its connections. Therefore a claim locks a file named after
//! the port. The kernel releases the lock when the process ends.

use std::fs::File;
use std::net::TcpListener;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, Ordering};

/// The first port to claim. All claimed ports are below the range that Linux uses for outgoing connections (32768 and
/// up).
const FIRST: u32 = 21_000;
const COUNT: u32 = 10_000;

/// A port that no other test gets while this value lives.
#[derive(Debug)]
pub struct Port {
    number: u16,
    _lock: File,
}

impl Port {
    /// Claims a port on which nothing listens.
    #[track_caller]
    pub fn claim() -> Port {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let dir = lock_dir();
        let start = std::process::id().wrapping_mul(101);
        for _ in 0..COUNT {
            let step = NEXT.fetch_add(1, Ordering::Relaxed);
            let number = (FIRST + start.wrapping_add(step) % COUNT) as u16;
            let path = dir.join(number.to_string());
            let Ok(lock) = File::options().create(true).truncate(false).write(true).open(&path)
            else {
                continue; // another user's claim
            };
            if lock.try_lock().is_ok() && TcpListener::bind(("127.0.0.1", number)).is_ok() {
                return Port { number, _lock: lock };
            }
        }
        panic!("no free port between {FIRST} and {}", FIRST + COUNT);
    }

    /// The port's number.
    pub const fn number(&self) -> u16 {
        self.number
    }
}

#[track_caller]
fn lock_dir() -> PathBuf {
    let dir = std::env::temp_dir().join("brisk-test-ports");
    if let Err(error) = std::fs::create_dir_all(&dir) {
        panic!("cannot create {}: {error}", dir.display());
    }
    dir
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_claims_never_share_a_port() {
        let claims: Vec<Port> = (0..50).map(|_| Port::claim()).collect();
        let mut numbers: Vec<u16> = claims.iter().map(Port::number).collect();
        numbers.sort_unstable();
        numbers.dedup();
        assert_eq!(numbers.len(), 50);
    }
}
