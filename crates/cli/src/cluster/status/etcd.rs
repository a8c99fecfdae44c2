//! Checks which endpoints of etcd this machine can reach.

use crate::link::plain;
use brisk_coordinate::setting::{CoordinatorSetting, Endpoint};
use std::collections::BTreeSet;
use std::io::{self, ErrorKind, Read, Write};
use std::net::{TcpStream, ToSocketAddrs};
use std::time::Duration;

/// Time limit for connecting, and for each read.
const TIMEOUT: Duration = Duration::from_secs(2);
/// Maximum number of endpoints to check. Each is checked in a separate thread.
const ENDPOINTS_MAX: usize = 32;
/// Maximum bytes of a reply that are read. Its first line is enough.
const REPLY_BYTES_MAX: u64 = 4096;

/// An endpoint, and why it cannot be reached.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct EtcdEndpoint {
    /// `host:port`
    pub(super) address: String,
    pub(super) failure: Option<String>,
}

/// Checks the endpoints of these settings of `cluster-coordinator`, each once.
pub(super) fn probe(settings: &BTreeSet<&str>) -> Vec<EtcdEndpoint> {
    let mut all: Vec<(Endpoint, bool)> = Vec::new();
    for setting in settings {
        let Ok(CoordinatorSetting::Etcd { endpoints, is_tls }) = setting.parse() else { continue };
        for endpoint in endpoints {
            if all.len() < ENDPOINTS_MAX && !all.iter().any(|(known, _)| *known == endpoint) {
                all.push((endpoint, is_tls));
            }
        }
    }
    std::thread::scope(|scope| {
        let check = |(endpoint, is_tls): (Endpoint, bool)| {
            scope.spawn(move || EtcdEndpoint {
                address: endpoint.to_string(),
                failure: check(&endpoint, is_tls).err().map(|error| describe(&error)),
            })
        };
        let threads: Vec<_> = all.into_iter().map(check).collect();
        threads.into_iter().filter_map(|thread| thread.join().ok()).collect()
    })
}

/// Requests the version, for which etcd needs neither a user nor a quorum. With TLS, only connects, because the files
/// of the nodes may not exist on this machine.
fn check(endpoint: &Endpoint, is_tls: bool) -> io::Result<()> {
    let addresses = (endpoint.host.as_str(), endpoint.port).to_socket_addrs()?;
    let mut found = Err(ErrorKind::AddrNotAvailable.into());
    for address in addresses {
        found = TcpStream::connect_timeout(&address, TIMEOUT);
        if found.is_ok() {
            break;
        }
    }
    let mut stream = found?;
    if is_tls {
        return Ok(());
    }
    stream.set_read_timeout(Some(TIMEOUT))?;
    stream.set_write_timeout(Some(TIMEOUT))?;
    stream.write_all(format!("GET /version HTTP/1.0\r\nHost: {endpoint}\r\n\r\n").as_bytes())?;
    let mut reply = Vec::new();
    stream.take(REPLY_BYTES_MAX).read_to_end(&mut reply)?;
    let line = reply.split(|byte| *byte == b'\n').next().unwrap_or_default();
    if line.starts_with(b"HTTP/1.") && line.windows(5).any(|part| part == b" 200 ") {
        Ok(())
    } else {
        Err(io::Error::other("not etcd"))
    }
}

fn describe(error: &io::Error) -> String {
    match error.kind() {
        ErrorKind::WouldBlock | ErrorKind::TimedOut => "no reply".to_owned(),
        _ => plain(error),
    }
}
