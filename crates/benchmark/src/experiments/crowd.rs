//! Clients that are connected but idle.

use super::stage::{connect, info};
use crate::engine::allow_descriptors;
use crate::subject::Subject;
use brisk_dial::address::Address;
use std::net::TcpStream;
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

/// Open files in addition to the idle clients.
const DESCRIPTORS_RESERVED: usize = 64;
/// How long the server may take to accept all clients.
const TIMEOUT: Duration = Duration::from_secs(60);

/// The warm-up time after many clients have connected, so that the rest of the work of accepting them is not measured.
pub(super) const SETTLING: Duration = Duration::from_millis(300);

/// Idle connections.
pub(super) enum Crowd {
    Tcp(#[expect(dead_code, reason = "held open")] Vec<TcpStream>),
    Unix(#[expect(dead_code, reason = "held open")] Vec<UnixStream>),
}

impl Crowd {
    /// Connects `count` clients, and waits until the server has accepted them.
    pub(super) fn connect(subject: &Subject, count: usize) -> Result<Crowd, String> {
        allow_descriptors(count + DESCRIPTORS_RESERVED).map_err(|error| error.to_string())?;
        let describe = |error: std::io::Error| format!("an idle client: {error}");
        let crowd = match &subject.target.address {
            Address::Tcp { resolved, .. } => {
                let all = (0..count).map(|_| TcpStream::connect(resolved));
                Crowd::Tcp(all.collect::<Result<_, _>>().map_err(describe)?)
            }
            Address::Unix(path) => {
                let all = (0..count).map(|_| UnixStream::connect(path));
                Crowd::Unix(all.collect::<Result<_, _>>().map_err(describe)?)
            }
        };
        let mut requester = connect(subject)?;
        let begun = Instant::now();
        loop {
            let seen = info(&mut requester, "clients", "connected_clients")?;
            if seen.parse::<usize>().is_ok_and(|seen| seen > count) {
                return Ok(crowd);
            }
            if begun.elapsed() > TIMEOUT {
                return Err(format!("the server has seen only {seen} of {count} idle clients"));
            }
        }
    }
}
