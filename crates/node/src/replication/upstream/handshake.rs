//! The handshake of a replica with its primary, before the dataset or the stream is sent.

use super::UpstreamThread;
use super::wire::{RECEIVED_MAX, Wire};
use crate::cluster::{InForce, PRIMARY_OPTION};
use crate::core::shared::Shared;
use crate::replication::comparison::marker::CAPABILITY;
use crate::replication::environment::Moment;
use crate::replication::history::{Offset, is_id};
use crate::replication::upstream::state::{Upstream, UpstreamPhase};
use brisk_cluster::document::Shard;
use brisk_cluster::map::client_port;
use brisk_config::Config;
use brisk_engine::PrimaryWords;
use brisk_reactor::unix_ms;
use brisk_resp::request;
use std::io::{self, ErrorKind};
use std::sync::atomic::Ordering;
use std::time::Duration;

/// The longest line that is read.
const LINE_BYTES_MAX: usize = 64 * 1024;

/// Reasons why a connection to the primary ends.
#[derive(Debug)]
pub(super) enum Failure {
    Io(io::Error),
    /// The connection was rejected or failed; a text for the log.
    Refused(String),
    /// This server has another primary by now, or none.
    Unwanted,
}

impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Failure {
        Failure::Io(error)
    }
}

/// The time after which a primary that sends nothing is considered lost.
pub(super) fn silence_max(config: &Config) -> Duration {
    Duration::from_secs(config.replication.repl_timeout_s.max(1).unsigned_abs())
}

/// Reads from the primary, line by line or in parts.
pub(super) struct Reader<'a> {
    wire: &'a Wire,
    shared: &'a Shared,
    upstream: &'a Upstream,
    generation: u64,
    last_read: Moment,
    received: Vec<u8>,
    at: usize,
    /// The buffer for the next read. It has [`RECEIVED_MAX`] bytes. It is empty before the first read, and after the
    /// previous buffer was passed to the caller.
    buffer: Vec<u8>,
}

impl<'a> Reader<'a> {
    /// Creates a reader that fails if nothing arrives for `repl-timeout`.
    pub(super) fn new(wire: &'a Wire, thread: &'a UpstreamThread) -> Reader<'a> {
        let UpstreamThread { shared, upstream, generation, .. } = thread;
        let (generation, received, last_read) = (*generation, Vec::new(), Moment::now());
        Reader {
            wire,
            shared,
            upstream,
            generation,
            last_read,
            received,
            at: 0,
            buffer: Vec::new(),
        }
    }

    /// The failure to report if nothing has arrived for too long.
    fn timeout(&self) -> Failure {
        let who = self.shared.primary_words().upper;
        Failure::Refused(match self.upstream.phase() {
            UpstreamPhase::Connected => format!("{who} timeout: no data nor PING received..."),
            UpstreamPhase::Sync => format!(
                "Timeout receiving bulk data from {who}... If the problem persists try to set the \
                 'repl-timeout' parameter to a larger value."
            ),
            _ => format!("Timeout connecting to the {who}..."),
        })
    }

    /// The next bytes, or `None` if no bytes arrived for a while.
    ///
    /// # Errors
    /// The connection is closed, nothing has arrived for too long, or the upstream has ended.
    pub(super) fn next(&mut self) -> Result<Option<Vec<u8>>, Failure> {
        if self.at < self.received.len() {
            let rest = self.received.split_off(self.at);
            self.received.clear();
            self.at = 0;
            return Ok(Some(rest));
        }
        let mut bytes = std::mem::take(&mut self.buffer);
        bytes.resize(RECEIVED_MAX, 0);
        let len = self.read(&mut bytes)?;
        if len > RECEIVED_MAX / 4 {
            bytes.truncate(len);
            return Ok(Some(bytes));
        }
        // Copy small parts: they are frequent, and a new buffer for each would have to be allocated and zeroed.
        let part = bytes[..len].to_vec();
        self.buffer = bytes;
        Ok((len > 0).then_some(part))
    }

    fn read(&mut self, into: &mut [u8]) -> Result<usize, Failure> {
        if self.upstream.generation() != self.generation {
            return Err(Failure::Unwanted);
        }
        match self.wire.read(into) {
            Ok(0) if self.upstream.generation() != self.generation => Err(Failure::Unwanted),
            Ok(0) => Err(io::Error::from(ErrorKind::UnexpectedEof).into()),
            Ok(len) => {
                self.last_read = Moment::now();
                self.upstream.note_io(unix_ms());
                let received = &self.shared.observe.metrics.repl_input_bytes;
                received.fetch_add(len as u64, Ordering::Relaxed);
                Ok(len)
            }
            Err(error) if error.kind() == ErrorKind::WouldBlock => {
                if self.last_read.elapsed() > silence_max(&self.shared.config()) {
                    return Err(self.timeout());
                }
                Ok(0)
            }
            Err(error) => Err(error.into()),
        }
    }

    /// Puts bytes back, so that the next read returns them.
    pub(super) fn put_back(&mut self, bytes: Vec<u8>) {
        debug_assert!(self.at == self.received.len(), "unread bytes would follow them");
        (self.received, self.at) = (bytes, 0);
    }

    /// The next line, without its line ending. Empty lines only show that the primary is alive and are skipped.
    pub(super) fn line(&mut self) -> Result<Vec<u8>, Failure> {
        loop {
            let rest = &self.received[self.at..];
            if let Some(end) = rest.iter().position(|byte| *byte == b'\n') {
                let line = rest[..end].strip_suffix(b"\r").unwrap_or(&rest[..end]).to_vec();
                self.at += end + 1;
                if line.is_empty() {
                    continue;
                }
                return Ok(line);
            }
            if rest.len() > LINE_BYTES_MAX {
                return Err(Failure::Refused("a line without an end".to_owned()));
            }
            self.received.drain(..self.at);
            self.at = 0;
            let mut bytes = [0; 4096];
            let len = self.read(&mut bytes)?;
            self.received.extend_from_slice(&bytes[..len]);
        }
    }

    /// Shows the primary that this replica is alive. If the connection is lost, the next read fails.
    pub(super) fn show_life(&self) {
        let _ = self.wire.write(b"\n");
    }

    /// Sends as many of the waiting bytes as the kernel takes.
    pub(super) fn send_waiting(&self) -> Result<(), Failure> {
        Ok(self.wire.send_waiting()?)
    }

    /// Sends a request and reads its one-line reply.
    fn request(&mut self, words: &[&[u8]]) -> Result<Vec<u8>, Failure> {
        let mut bytes = Vec::new();
        request::encode(&mut bytes, words);
        self.wire.write(&bytes)?;
        self.line()
    }
}

/// The primary's reply to PSYNC, which indicates what the primary sends next.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum PsyncReply {
    /// The dataset at this offset of this history, then the stream.
    Full { id: String, offset: Offset },
    /// The stream from this server's offset on. The history may have another id by now.
    Partial { id: Option<String> },
    /// Nothing. PSYNC may succeed later. Contains the reply.
    Later(String),
}

/// Introduces this server to the primary.
///
/// # Errors
/// The connection ends, or the primary rejects this server.
pub(super) fn introduce(reader: &mut Reader<'_>, config: &Config) -> Result<(), Failure> {
    let settings = &config.replication;
    let (user, password) = (settings.masteruser.as_bytes(), settings.masterauth.as_bytes());
    // The primary uses the address of a member of its shard to find that member's acknowledgements.
    let state = reader.shared.cluster.state();
    let cluster = state.map(|state| state.in_force());
    let changing = cluster.as_ref().filter(|_| state.is_some_and(|state| !state.is_static()));
    let run = changing.map(|in_force| primary_run(in_force)).transpose()?;
    let member = cluster.as_ref().map(|in_force| &in_force.own.member);
    let port = match member.filter(|_| settings.replica_announce_port == 0) {
        Some(member) => i64::from(client_port(member, config.tls.replication)),
        None => announced_port(config),
    };
    let port = port.to_string();
    let announced = Some(settings.replica_announce_ip.as_bytes()).filter(|ip| !ip.is_empty());
    let announced = announced.or(member.map(|member| member.ip.as_bytes())).unwrap_or_default();
    let mut requests: Vec<Vec<&[u8]>> = vec![vec![b"PING"]];
    if !password.is_empty() {
        let user = Some(user).filter(|user| !user.is_empty());
        requests.push([Some(&b"AUTH"[..]), user, Some(password)].into_iter().flatten().collect());
    }
    requests.push(vec![b"REPLCONF", b"listening-port", port.as_bytes()]);
    if !announced.is_empty() {
        requests.push(vec![b"REPLCONF", b"ip-address", announced]);
    }
    if let Some(run) = &run {
        requests.push(vec![b"REPLCONF", PRIMARY_OPTION.as_bytes(), run.as_bytes()]);
    }
    // A primary ignores capabilities that it does not know.
    let own = CAPABILITY.as_bytes();
    requests.push(vec![b"REPLCONF", b"capa", b"eof", b"capa", b"psync2", b"capa", own]);
    // All requests are sent together. Each wait for a reply would delay PSYNC. If the former primary sends more of its
    // stream during that time, this replica may need a full copy.
    let mut bytes = Vec::new();
    for words in &requests {
        request::encode(&mut bytes, words);
    }
    reader.wire.write(&bytes)?;
    let mut compares = false;
    let primary = reader.shared.primary_words();
    for words in &requests {
        let reply = reader.line()?;
        let denies = |word: &[u8]| reply.starts_with(word);
        if words[0] == b"PING" {
            let wants_password = denies(b"-NOAUTH") || denies(b"-ERR operation not permitted");
            // A primary that cannot save needs replicas most. (A Redis replica does not follow such a primary.)
            let is_alive = denies(b"+") || denies(b"-MISCONF");
            if !is_alive && !wants_password && !denies(b"-NOPERM") {
                let what = format!("Error reply to PING from {}", primary.lower);
                return Err(refused(&what, &reply));
            }
            continue;
        }
        compares |= reply.strip_prefix(b"+OK ") == Some(own);
        if words[0] == b"AUTH" && denies(b"-") {
            return Err(refused(&format!("Unable to AUTH to {}", primary.upper), &reply));
        }
        if words[1] == PRIMARY_OPTION.as_bytes() && !denies(b"+") {
            let what = format!("{} is not the one of the topology", primary.title);
            return Err(refused(&what, &reply));
        }
        // Older servers reject options that they do not know. That is harmless.
        if denies(b"-NOAUTH") || denies(b"-NOPERM") {
            let what = format!("{} rejected REPLCONF", primary.title);
            return Err(refused(&what, &reply));
        }
    }
    reader.upstream.set_compares(reader.generation, compares);
    Ok(())
}

/// The run id of the primary that a cluster node follows.
fn primary_run(in_force: &InForce) -> Result<String, Failure> {
    let shard = in_force.topology.as_deref().and_then(|all| all.shard_of(in_force.own.id));
    let run = shard.and_then(Shard::primary_run).map(|run| run.to_string());
    run.ok_or_else(|| Failure::Refused("The shard of this node has no primary".to_owned()))
}

/// The port that clients should use for this replica.
pub(super) fn announced_port(config: &Config) -> i64 {
    match config.replication.replica_announce_port {
        0 if config.tls.replication && config.tls.port > 0 => config.tls.port,
        0 => config.network.port,
        port => port,
    }
}

/// Requests the stream after `offset` bytes of the history `id`.
pub(super) fn request_stream(
    reader: &mut Reader<'_>,
    (id, offset): (&str, u64),
    takes_over: bool,
) -> Result<PsyncReply, Failure> {
    let next = (offset + 1).to_string();
    let mut words: Vec<&[u8]> = vec![b"PSYNC", id.as_bytes(), next.as_bytes()];
    if takes_over {
        words.push(b"FAILOVER");
    }
    let reply = reader.request(&words)?;
    parse_reply(&reply, reader.shared.primary_words())
}

fn parse_reply(reply: &[u8], primary: PrimaryWords) -> Result<PsyncReply, Failure> {
    let words: Vec<&[u8]> =
        reply.split(|byte| *byte == b' ').filter(|word| !word.is_empty()).collect();
    match words[..] {
        [b"+FULLRESYNC", id, offset] if is_id(id) => {
            let number = std::str::from_utf8(offset).ok().and_then(|text| text.parse::<u64>().ok());
            let what = format!("{} replied with wrong +FULLRESYNC syntax", primary.title);
            let wrong = || refused(&what, reply);
            let offset = Offset::checked(number.ok_or_else(wrong)?).ok_or_else(|| {
                let (title, most) = (primary.title, Offset::MAX);
                let what = format!(
                    "{title} replied with an offset above {most}: cannot replicate from it"
                );
                refused(&what, reply)
            })?;
            Ok(PsyncReply::Full { id: String::from_utf8_lossy(id).into_owned(), offset })
        }
        [b"+CONTINUE"] => Ok(PsyncReply::Partial { id: None }),
        [b"+CONTINUE", id] if is_id(id) => {
            Ok(PsyncReply::Partial { id: Some(String::from_utf8_lossy(id).into_owned()) })
        }
        [b"-NOMASTERLINK" | b"-LOADING", ..] => {
            Ok(PsyncReply::Later(String::from_utf8_lossy(reply).into_owned()))
        }
        _ => Err(refused(&format!("Unexpected reply to PSYNC from {}", primary.lower), reply)),
    }
}

fn refused(what: &str, reply: &[u8]) -> Failure {
    Failure::Refused(format!("{what}: '{}'", String::from_utf8_lossy(reply)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(reply: &[u8]) -> Result<PsyncReply, Failure> {
        parse_reply(reply, brisk_engine::Dialect::Redis.primary_words())
    }

    #[test]
    fn replies_to_psync_are_parsed_strictly() {
        let id = "0123456789abcdef0123456789abcdef01234567";
        let full = parsed(format!("+FULLRESYNC {id} 17").as_bytes()).expect("a valid reply");
        let offset = Offset::checked(17).expect("a small offset");
        assert_eq!(full, PsyncReply::Full { id: id.to_owned(), offset });
        assert_eq!(parsed(b"+CONTINUE").expect("a valid reply"), PsyncReply::Partial { id: None });
        let renamed = parsed(format!("+CONTINUE {id}").as_bytes()).expect("a valid reply");
        assert_eq!(renamed, PsyncReply::Partial { id: Some(id.to_owned()) });
        assert!(matches!(parsed(b"-LOADING x"), Ok(PsyncReply::Later(_))));
        for bad in ["+FULLRESYNC", "+FULLRESYNC abc 1", "+FULLRESYNC ? -1", "-ERR", "+CONTINUE x"] {
            assert!(matches!(parsed(bad.as_bytes()), Err(Failure::Refused(_))), "{bad}");
        }
        for bad in ["-1", "4611686018427387905", "9223372036854775807", "18446744073709551616"] {
            let reply = format!("+FULLRESYNC {id} {bad}");
            assert!(matches!(parsed(reply.as_bytes()), Err(Failure::Refused(_))), "{bad}");
        }
    }
}
