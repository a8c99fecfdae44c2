//! The connections over which this node sends messages to the other nodes of its cluster.
//!
//! `brisk-peers` distributes the messages of the [`ForwardQueue`](super::ForwardQueue). For each node that receives
//! messages, there is a thread, `brisk-peer`, with its own bounded queue. So a dead or slow node does not delay other
//! nodes. The thread connects with the replication credentials and switches replies off. It ends when its node has
//! received nothing for a while.

use super::forward::{Audience, Forwarded, WAITING_BYTES_MAX};
use super::{ClusterState, InForce};
use crate::core::shared::Shared;
use crate::replication::upstream::wire::{Wire, encrypt};
use brisk_cluster::document::Member;
use brisk_cluster::id::NodeId;
use brisk_config::Config;
use brisk_resp::request;
use brisk_structures::poison::EvenPoisoned as _;
use std::collections::BTreeMap;
use std::io::{self, ErrorKind};
use std::sync::{Arc, Condvar, Mutex};
use std::thread::Builder;
use std::time::{Duration, Instant};

/// How often the threads check whether the server is shutting down.
const SLICE: Duration = Duration::from_millis(200);
/// How long a connection attempt or a write may take. Messages to the node wait during this time.
const IO_TIMEOUT: Duration = Duration::from_secs(1);
/// The pause after a failed connection attempt. Messages to the node are dropped during the pause.
const RETRY_AFTER: Duration = Duration::from_millis(500);
/// A thread whose node has received nothing for this long ends.
const IDLE_MAX: Duration = Duration::from_secs(60);
/// Maximum number of bytes in one write.
const WRITE_BYTES_MAX: usize = 1 << 20;

/// The option of REPLCONF with which a node introduces a connection over which it forwards messages. The receiver does
/// not forward messages that are published over this connection.
pub const PEER_OPTION: &str = "brisk-peer";

/// Starts the thread that distributes messages.
///
/// # Errors
/// The system cannot create a thread.
pub fn start(shared: &'static Shared, state: &'static ClusterState) -> io::Result<()> {
    Builder::new().name("brisk-peers".to_owned()).spawn(move || distribute(shared, state))?;
    Ok(())
}

fn distribute(shared: &'static Shared, state: &'static ClusterState) {
    let mut peers: BTreeMap<NodeId, Arc<PeerQueue>> = BTreeMap::new();
    while !shared.process.shutdown.is_requested() {
        let messages = state.forward.take(SLICE);
        if messages.is_empty() {
            continue;
        }
        let in_force = state.in_force();
        peers.retain(|node, queue| in_force.member(*node).is_some() && !queue.has_ended());
        for message in messages {
            for node in in_force.audience(message.audience) {
                if let Some(peer) = peer(&mut peers, node, shared, state)
                    && peer.push(&message)
                {
                    continue;
                }
                state.forward.note_dropped(1);
            }
        }
    }
}

/// Returns the queue of a node. Starts the thread that sends its messages, if necessary.
fn peer<'p>(
    peers: &'p mut BTreeMap<NodeId, Arc<PeerQueue>>,
    node: NodeId,
    shared: &'static Shared,
    state: &'static ClusterState,
) -> Option<&'p PeerQueue> {
    if peers.get(&node).is_none_or(|queue| queue.has_ended()) {
        let queue = Arc::new(PeerQueue::default());
        let sender = Sender { shared, state, node, queue: Arc::clone(&queue), wire: None };
        let thread = Builder::new().name("brisk-peer".to_owned());
        thread.spawn(move || sender.run()).ok()?;
        peers.insert(node, queue);
    }
    peers.get(&node).map(|queue| &**queue)
}

/// The messages that wait for one node.
#[derive(Debug, Default)]
struct PeerQueue {
    waiting: Mutex<PeerWaiting>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct PeerWaiting {
    requests: Vec<Arc<[u8]>>,
    bytes: usize,
    /// True if the thread has ended, so that nothing is sent any more.
    has_ended: bool,
}

impl PeerQueue {
    fn has_ended(&self) -> bool {
        self.waiting.lock().even_poisoned().has_ended
    }

    /// Appends a message. Returns false if too many bytes wait or the thread has ended.
    fn push(&self, message: &Forwarded) -> bool {
        let mut waiting = self.waiting.lock().even_poisoned();
        let bytes = message.request.len();
        if waiting.has_ended || waiting.bytes + bytes > WAITING_BYTES_MAX {
            return false;
        }
        waiting.bytes += bytes;
        waiting.requests.push(Arc::clone(&message.request));
        self.changed.notify_one();
        true
    }

    /// Takes all messages. Waits up to `timeout` for the first.
    fn take(&self, timeout: Duration) -> Vec<Arc<[u8]>> {
        let mut waiting = self.waiting.lock().even_poisoned();
        if waiting.requests.is_empty() {
            waiting = self.changed.wait_timeout(waiting, timeout).even_poisoned().0;
        }
        waiting.bytes = 0;
        std::mem::take(&mut waiting.requests)
    }

    /// Ends the queue if nothing waits.
    fn end_if_empty(&self) -> bool {
        let mut waiting = self.waiting.lock().even_poisoned();
        waiting.has_ended |= waiting.requests.is_empty();
        waiting.has_ended
    }
}

/// Sends messages to one node.
struct Sender {
    shared: &'static Shared,
    state: &'static ClusterState,
    node: NodeId,
    queue: Arc<PeerQueue>,
    /// The connection and its address.
    wire: Option<(Wire, Member)>,
}

impl Sender {
    fn run(mut self) {
        let mut last = Instant::now();
        let mut retry_at = last;
        while !self.shared.process.shutdown.is_requested() {
            let requests = self.queue.take(SLICE);
            if requests.is_empty() {
                if last.elapsed() > IDLE_MAX && self.queue.end_if_empty() {
                    return;
                }
                continue;
            }
            last = Instant::now();
            if last < retry_at || self.send(&requests).is_err() {
                self.state.forward.note_dropped(requests.len());
                if last >= retry_at {
                    self.wire = None;
                    retry_at = Instant::now() + RETRY_AFTER;
                }
                continue;
            }
            self.state.forward.note_sent(requests.len());
        }
    }

    /// Sends requests, after connecting if necessary.
    fn send(&mut self, requests: &[Arc<[u8]>]) -> io::Result<()> {
        let in_force = self.state.in_force();
        let member = in_force.member(self.node).ok_or(ErrorKind::AddrNotAvailable)?;
        if self.wire.as_ref().is_none_or(|(_, address)| !address.is_same_place(member)) {
            let wire = connect(self.shared, member, &self.shared.config())?;
            self.wire = Some((wire, member.clone()));
        }
        let Some((wire, _)) = &self.wire else { return Err(ErrorKind::NotConnected.into()) };
        let mut bytes = Vec::new();
        for request in requests {
            bytes.extend_from_slice(request);
            if bytes.len() >= WRITE_BYTES_MAX {
                wire.write(&bytes)?;
                bytes.clear();
            }
        }
        wire.write(&bytes)
    }
}

/// The port to which this node connects for everything except replication, and true if that port uses TLS. With
/// `tls-cluster`, the TLS port is preferred. If a node has only one port, that port is used.
#[must_use]
pub fn peer_port(config: &Config, member: &Member) -> (u16, bool) {
    let has_tls = (config.tls.cluster && member.tls != 0) || member.port == 0;
    (if has_tls { member.tls } else { member.port }, has_tls)
}

/// Connects to a node, logs in, introduces the connection as a peer, and switches replies off.
fn connect(shared: &Shared, member: &Member, config: &Config) -> io::Result<Wire> {
    let (port, has_tls) = peer_port(config, member);
    let source = config.network.bind_source_addr.to_string_lossy().parse().ok();
    let environment = shared.replication.environment();
    let wire = Wire::open(environment, (&member.ip, port), source, IO_TIMEOUT)?;
    let wire = if has_tls { encrypt(config, wire)? } else { wire };
    wire.set_timeout(IO_TIMEOUT)?;
    let settings = &config.replication;
    let (user, password) = (settings.masteruser.as_bytes(), settings.masterauth.as_bytes());
    let mut requests: Vec<Vec<&[u8]>> = Vec::new();
    if !password.is_empty() {
        let user = Some(user).filter(|user| !user.is_empty());
        requests.push([Some(&b"AUTH"[..]), user, Some(password)].into_iter().flatten().collect());
    }
    requests.push(vec![b"REPLCONF", PEER_OPTION.as_bytes(), b"1"]);
    let mut bytes = Vec::new();
    for words in &requests {
        request::encode(&mut bytes, words);
    }
    wire.write(&bytes)?;
    for _ in &requests {
        expect_ok(&wire)?;
    }
    bytes.clear();
    let words: [&[u8]; 3] = [b"CLIENT", b"REPLY", b"OFF"];
    request::encode(&mut bytes, &words);
    wire.write(&bytes)?;
    Ok(wire)
}

/// Reads a reply, which must be OK. The replies during login are short, and nothing follows them.
fn expect_ok(wire: &Wire) -> io::Result<()> {
    let mut line = Vec::new();
    let mut byte = [0];
    while !line.ends_with(b"\r\n") {
        if line.len() > 512 || wire.read(&mut byte)? == 0 {
            return Err(ErrorKind::InvalidData.into());
        }
        line.push(byte[0]);
    }
    if line == b"+OK\r\n" { Ok(()) } else { Err(ErrorKind::PermissionDenied.into()) }
}

impl InForce {
    /// The member of the topology in force that has this id.
    fn member(&self, node: NodeId) -> Option<&Member> {
        self.topology.as_ref()?.members.get(&node)
    }

    /// The other nodes that receive a message.
    fn audience(&self, audience: Audience) -> Vec<NodeId> {
        let own = self.own.id;
        let Some(topology) = &self.topology else { return Vec::new() };
        let others = |node: &NodeId| *node != own;
        match audience {
            Audience::Cluster if topology.members.contains_key(&own) => {
                topology.members.keys().copied().filter(others).collect()
            }
            Audience::Cluster => Vec::new(),
            Audience::Shard => topology
                .shard_of(own)
                .map(|shard| shard.nodes().filter(others).collect())
                .unwrap_or_default(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tls_cluster_prefers_the_port_with_tls() {
        let mut config = Config::default();
        let mut port = |prefers_tls, port, tls| {
            config.tls.cluster = prefers_tls;
            peer_port(&config, &Member { port, tls, ..Member::default() })
        };
        assert_eq!(port(false, 6379, 6380), (6379, false));
        assert_eq!(port(true, 6379, 6380), (6380, true));
        assert_eq!(port(true, 6379, 0), (6379, false));
        assert_eq!(port(false, 0, 6380), (6380, true));
    }
}
