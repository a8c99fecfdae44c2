//! Requests to other nodes over a separate connection to the client port: status reports and pings.

use brisk_cluster::document::{Member, NodeStatus, REPORT_BYTES_MAX};
use brisk_cluster::id::NodeId;
use brisk_config::Config;
use brisk_net::tls::outgoing;
use brisk_node::cluster::peers::peer_port;
use brisk_resp::request;
use rustls::StreamOwned;
use std::collections::BTreeMap;
use std::io::{self, ErrorKind, Read, Write};
use std::net::{TcpStream, ToSocketAddrs as _};
use std::time::{Duration, Instant};

/// The time limit for one request, including the time to connect. Requests run in parallel, so the controller waits no
/// longer than this.
const QUERY_MAX: Duration = Duration::from_millis(300);
/// The option of REPLCONF that replies with a status report.
pub(super) const STATUS_OPTION: &str = "brisk-status";
/// The maximum number of nodes that are queried in parallel. A shard has fewer replicas than this.
const QUERIES_MAX: usize = 64;

/// A connection to a node, with or without TLS.
trait Stream: Read + Write {}
impl<S: Read + Write> Stream for S {}

/// A socket whose reads and writes fail after a certain time. It is needed because the TLS handshake reads and writes
/// on its own.
#[derive(Debug)]
struct TimedSocket {
    socket: TcpStream,
    until: Instant,
}

impl Read for TimedSocket {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        self.socket.set_read_timeout(Some(left(self.until)?))?;
        self.socket.read(into)
    }
}

impl Write for TimedSocket {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.socket.set_write_timeout(Some(left(self.until)?))?;
        self.socket.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.socket.flush()
    }
}

/// Requests the reports of these nodes. The result does not include nodes that do not reply in time.
pub(super) fn statuses(
    config: &Config,
    nodes: &[(NodeId, Member)],
) -> BTreeMap<NodeId, NodeStatus> {
    let replies = each(nodes, |member| {
        let reply = request_of(config, member, &["REPLCONF", STATUS_OPTION, "?"])?;
        NodeStatus::parse(&reply).map_err(io::Error::other)
    });
    replies.into_iter().filter_map(|(id, status)| Some((id, status.ok()?))).collect()
}

/// Pings these nodes. Any reply counts, including an error.
pub(super) fn pings(config: &Config, nodes: &[(NodeId, Member)]) -> Vec<NodeId> {
    let replies = each(nodes, |member| request_of(config, member, &["PING"]));
    let is_alive = |(id, reply): (NodeId, io::Result<Vec<u8>>)| {
        let replied = reply.is_ok_and(|reply| !reply.is_empty());
        replied.then_some(id)
    };
    replies.into_iter().filter_map(is_alive).collect()
}

/// Sends a request to each node, in parallel.
fn each<T: Send>(
    nodes: &[(NodeId, Member)],
    request: impl Fn(&Member) -> io::Result<T> + Sync,
) -> Vec<(NodeId, io::Result<T>)> {
    let mut results = Vec::new();
    for some in nodes.chunks(QUERIES_MAX) {
        std::thread::scope(|scope| {
            let run = |(id, member): &'_ (NodeId, Member)| {
                let (id, member, request) = (*id, member.clone(), &request);
                scope.spawn(move || (id, request(&member)))
            };
            let threads: Vec<_> = some.iter().map(run).collect();
            results.extend(threads.into_iter().filter_map(|thread| thread.join().ok()));
        });
    }
    results
}

/// Sends a request and returns its reply. For a bulk string, these are its bytes; for other replies, the line.
///
/// # Errors
/// The node cannot be reached or does not reply in time.
pub(super) fn request_of(config: &Config, member: &Member, words: &[&str]) -> io::Result<Vec<u8>> {
    let until = Instant::now() + QUERY_MAX;
    let (port, uses_tls) = peer_port(config, member);
    let address = (member.ip.as_str(), port).to_socket_addrs()?.next();
    let address = address.ok_or(ErrorKind::AddrNotAvailable)?;
    let socket = TcpStream::connect_timeout(&address, left(until)?)?;
    socket.set_nodelay(true)?;
    let socket = TimedSocket { socket, until };
    let mut stream: Box<dyn Stream> = if uses_tls {
        let tls = outgoing::connection(config, address.ip()).map_err(io::Error::other)?;
        Box::new(StreamOwned::new(tls, socket))
    } else {
        Box::new(socket)
    };
    let (user, password) = (&config.replication.masteruser, &config.replication.masterauth);
    let mut bytes = Vec::new();
    let authenticates = !password.is_empty();
    if authenticates {
        let words = [b"AUTH", user.as_bytes(), password.as_bytes()];
        let words: Vec<&[u8]> = words.into_iter().filter(|word| !word.is_empty()).collect();
        request::encode(&mut bytes, &words);
    }
    request::encode(&mut bytes, words);
    stream.write_all(&bytes)?;
    stream.flush()?;
    let mut received = Vec::new();
    let mut replies = usize::from(authenticates) + 1;
    loop {
        while let Some((reply, end)) = first_reply(&received)? {
            replies -= 1;
            if replies == 0 {
                return Ok(reply);
            }
            received.drain(..end);
        }
        if received.len() > 2 * REPORT_BYTES_MAX {
            return Err(ErrorKind::InvalidData.into());
        }
        let mut part = [0; 4 << 10];
        match stream.read(&mut part)? {
            0 => return Err(ErrorKind::UnexpectedEof.into()),
            len => received.extend_from_slice(&part[..len]),
        }
    }
}

fn left(until: Instant) -> io::Result<Duration> {
    let left = until.saturating_duration_since(Instant::now());
    if left.is_zero() { Err(ErrorKind::TimedOut.into()) } else { Ok(left) }
}

/// The first complete reply in these bytes (a bulk string or a line), and its end.
fn first_reply(bytes: &[u8]) -> io::Result<Option<(Vec<u8>, usize)>> {
    let Some(end) = bytes.windows(2).position(|pair| pair == b"\r\n") else { return Ok(None) };
    let (line, after) = (&bytes[..end], end + 2);
    let Some(digits) = line.strip_prefix(b"$") else {
        return Ok(Some((line.to_vec(), after)));
    };
    let len: Option<usize> = std::str::from_utf8(digits).ok().and_then(|text| text.parse().ok());
    let len = len.filter(|len| *len <= REPORT_BYTES_MAX).ok_or(ErrorKind::InvalidData)?;
    let whole = bytes.get(after..after + len + 2);
    Ok(whole.map(|whole| (whole[..len].to_vec(), after + len + 2)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use brisk_testkit::{TempDir, wait_until};
    use std::net::TcpListener;

    #[test]
    fn a_node_that_completes_no_handshake_is_given_up() {
        let dir = TempDir::new();
        let authority = dir.path("ca.crt");
        let key = rcgen::KeyPair::generate().unwrap();
        let certificate = rcgen::CertificateParams::default().self_signed(&key).unwrap();
        std::fs::write(&authority, certificate.pem()).unwrap();
        let mut config = Config::default();
        config.tls.cluster = true;
        config.tls.ca_cert_file = authority.to_str().unwrap().into();
        // The kernel accepts the connection, but no process reads from it.
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let tls = listener.local_addr().unwrap().port();
        let member = Member { ip: "127.0.0.1".to_owned(), tls, ..Member::default() };
        let query = std::thread::spawn(move || request_of(&config, &member, &["PING"]));
        wait_until("the query to end", || query.is_finished());
        let error = query.join().unwrap().unwrap_err();
        assert!(matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut), "{error}");
    }

    #[test]
    fn replies_are_taken_when_they_are_complete() {
        let taken = |bytes: &[u8]| first_reply(bytes).unwrap();
        assert_eq!(taken(b"$3\r\nab"), None);
        assert_eq!(taken(b"$3\r\nabc\r\n+OK"), Some((b"abc".to_vec(), 9)));
        assert_eq!(taken(b"-NOAUTH x\r\n"), Some((b"-NOAUTH x".to_vec(), 11)));
        assert_eq!(taken(b"+OK\r"), None);
        for bad in [&b"$-1\r\n"[..], b"$x\r\n", b"$99999999999\r\n"] {
            assert!(first_reply(bad).is_err());
        }
    }
}
