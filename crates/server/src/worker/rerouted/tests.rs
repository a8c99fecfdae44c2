//! Tests of a worker while the topology and the lease change. Expected replies are those of Redis 7.0.15.

use crate::boot::assemble;
use crate::commands;
use crate::worker::Worker;
use brisk_cluster::document::{Member, Registration, Topology};
use brisk_cluster::id::{Incarnation, NodeId};
use brisk_config::value::Text;
use brisk_config::{Config, Store};
use brisk_engine::keyspace::KeyHasher;
use brisk_node::cluster::ClusterState;
use brisk_node::core::Core;
use brisk_node::core::conditions::Condition;
use brisk_observe::log::{Level, Log};
use brisk_reactor::{Accept, Handler, Reactor, ReactorConfig, Token};
use brisk_structures::reclaim::Participant;
use brisk_testkit::{TempDir, words};
use std::io::{ErrorKind, Read, Write};
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::time::Duration;

const OWN: &str = "00000000000000000000000000000000000000aa";
const OTHER: &str = "00000000000000000000000000000000000000bb";
/// The last slot. The key `b` is in slot 3300, and `f` is in slot 3168.
const ALL: u16 = 16_383;

/// A node of a cluster, with one worker and without threads.
struct Node {
    worker: Worker,
    reactor: Reactor,
    state: &'static ClusterState,
    epoch: u64,
    _dir: TempDir,
}

/// A connection to the node.
struct Client {
    socket: UnixStream,
    token: Token,
}

impl Node {
    /// Starts a node that serves all slots.
    fn start() -> Node {
        let dir = TempDir::new();
        let log = Arc::new(Log::to_file(Level::Warning, &dir.path("log")).unwrap());
        let mut config = Config::default();
        config.process.dir = Text::from(dir.path("").to_str().unwrap());
        config.cluster.cluster_enabled = true;
        config.cluster.cluster_require_full_coverage = false;
        let (table, handlers) = commands::table(&[]).unwrap();
        let table = (&*Box::leak(Box::new(table)), &*handlers.leak());
        let keys = (KeyHasher::seeded(1, 2), ("r".repeat(40), "i".repeat(40)));
        let shared = assemble(&log, Store::new(config, None), 1, false, table, keys);
        shared.conditions.set(Condition::Loading, false);
        let own = Registration {
            id: OWN.parse::<NodeId>().unwrap(),
            incarnation: Incarnation(1),
            version: String::new(),
            member: Member::default(),
            no_failover: false,
            other: Default::default(),
        };
        shared.cluster.enable(own);
        let state = shared.cluster.state().unwrap();
        let worker =
            Worker::new(Core::new(shared, 0, 1), Participant::register().unwrap(), Vec::new());
        let reactor = Reactor::new(&ReactorConfig::default()).unwrap();
        let mut node = Node { worker, reactor, state, epoch: 0, _dir: dir };
        node.install(Some(ALL));
        node.state.set_deadline(u64::MAX);
        node.turn();
        node
    }

    /// Installs a document in which this node has the slots up to `last` and another node has the rest. With `None`,
    /// this node is a replica of the other node.
    fn install(&mut self, last: Option<u16>) {
        self.epoch += 1;
        let shard = |id, slots: &str, replicas: &str| {
            format!(
                r#"{{"id":"{id}","slots":{slots},"term":1,"primary":"{id}","isr":["{id}@1"],"replicas":[{replicas}]}}"#
            )
        };
        let shards = match last {
            None => shard(OTHER, &format!("[[0,{ALL}]]"), &format!("\"{OWN}\"")),
            Some(ALL) => {
                let all = format!("[[0,{ALL}]]");
                format!("{},{}", shard(OWN, &all, ""), shard(OTHER, "[]", ""))
            }
            Some(last) => {
                let rest = format!("[[{},{ALL}]]", last + 1);
                let own = shard(OWN, &format!("[[0,{last}]]"), "");
                format!("{own},{}", shard(OTHER, &rest, ""))
            }
        };
        let member = |id, port| format!(r#""{id}":{{"ip":"127.0.0.1","port":{port}}}"#);
        let document = format!(
            r#"{{"format":1,"epoch":{},"change":"{OWN}@1:{}","members":{{{},{}}},"shards":[{shards}]}}"#,
            self.epoch,
            self.epoch,
            member(OWN, 7001),
            member(OTHER, 7002),
        );
        let topology = Topology::parse(document.as_bytes()).unwrap();
        self.state.install(Some(Arc::new(topology)));
    }

    fn connect(&mut self) -> Client {
        let (socket, other) = UnixStream::pair().unwrap();
        socket.set_nonblocking(true).unwrap();
        other.set_nonblocking(true).unwrap();
        let token = self.reactor.io().adopt(other).unwrap();
        let accepted = self.worker.accepted(self.reactor.io(), token, 0);
        assert!(matches!(accepted, Accept::Keep));
        Client { socket, token }
    }

    /// Runs enough rounds to receive and send everything.
    fn turn(&mut self) {
        // A reply takes at most one round to be computed and another one to be sent.
        for _ in 0..4 {
            self.worker.between_rounds(self.reactor.io());
            self.reactor.poll(&mut self.worker, Some(Duration::ZERO)).unwrap();
        }
    }

    /// Sends a request and returns what the client receives.
    fn request(&mut self, client: &mut Client, line: &str) -> String {
        client.socket.write_all(&encoded(line)).unwrap();
        self.turn();
        client.received().unwrap()
    }
}

impl Client {
    /// The bytes received since the last call. `None` if the connection has ended.
    fn received(&mut self) -> Option<String> {
        let (mut bytes, mut text) = ([0; 4096], String::new());
        loop {
            match self.socket.read(&mut bytes) {
                Ok(0) => return None,
                Ok(len) => text.push_str(&String::from_utf8_lossy(&bytes[..len])),
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Some(text),
                Err(_) => return None,
            }
        }
    }
}

fn encoded(line: &str) -> Vec<u8> {
    words::encode(&words::split(line).unwrap())
}

const MOVED: &str = "-MOVED 3300 127.0.0.1:7002\r\n";
const DOWN: &str = "-CLUSTERDOWN The cluster is down\r\n";

#[test]
fn clients_blocked_on_keys_in_a_slot_that_moved_are_redirected() {
    let mut node = Node::start();
    let mut blocked: Vec<Client> = Vec::new();
    for line in
        ["BLPOP b 0", "BLMOVE b {b}2 LEFT LEFT 0", "BZPOPMIN b 0", "XREAD BLOCK 0 STREAMS b $"]
    {
        let mut client = node.connect();
        assert_eq!(node.request(&mut client, line), "");
        blocked.push(client);
    }
    let (mut kept, mut waits) = (node.connect(), node.connect());
    assert_eq!(node.request(&mut kept, "BLPOP f 0"), "");
    assert_eq!(node.request(&mut waits, "WAIT 1 0"), "");
    node.install(Some(3200));
    node.turn();
    for client in &mut blocked {
        assert_eq!(client.received().unwrap(), MOVED);
    }
    // The connections stay open.
    assert_eq!(node.request(&mut blocked[0], "PING"), "+PONG\r\n");
    assert_eq!(kept.received().unwrap(), "");
    let mut other = node.connect();
    assert_eq!(node.request(&mut other, "RPUSH f x"), ":1\r\n");
    assert_eq!(kept.received().unwrap(), "*2\r\n$1\r\nf\r\n$1\r\nx\r\n");
    node.state.set_deadline(1);
    node.turn();
    assert_eq!(waits.received().unwrap(), "");
}

#[test]
fn readers_blocked_on_a_replica_stay_if_they_sent_readonly() {
    let mut node = Node::start();
    node.install(None);
    let mut reader = node.connect();
    assert_eq!(node.request(&mut reader, "READONLY"), "+OK\r\n");
    assert_eq!(node.request(&mut reader, "XREAD BLOCK 0 STREAMS b $"), "");
    node.install(None);
    node.turn();
    assert_eq!(reader.received().unwrap(), "");
    node.install(Some(3200));
    node.turn();
    assert_eq!(reader.received().unwrap(), MOVED);
}

#[test]
fn subscriptions_to_shard_channels_end_with_their_slot() {
    let mut node = Node::start();
    let (mut resp2, mut resp3) = (node.connect(), node.connect());
    node.request(&mut resp2, "SSUBSCRIBE b");
    node.request(&mut resp2, "SSUBSCRIBE f");
    node.request(&mut resp2, "SUBSCRIBE b");
    assert!(node.request(&mut resp3, "HELLO 3").contains("cluster"));
    node.request(&mut resp3, "SSUBSCRIBE b");
    node.install(Some(3200));
    node.turn();
    let ended = |sigil: char, left: u32| {
        format!("{sigil}3\r\n$12\r\nsunsubscribe\r\n$1\r\nb\r\n:{left}\r\n")
    };
    assert_eq!(resp2.received().unwrap(), ended('*', 1));
    assert_eq!(resp3.received().unwrap(), ended('>', 0));
    let mut other = node.connect();
    assert_eq!(node.request(&mut other, "SPUBLISH f x"), ":1\r\n");
    assert_eq!(node.request(&mut other, "SPUBLISH b x"), MOVED);
    assert_eq!(node.request(&mut other, "PUBLISH b x"), ":1\r\n");
    assert_eq!(node.request(&mut other, "PUBSUB SHARDCHANNELS"), "*1\r\n$1\r\nf\r\n");
    // A new primary of the same shard continues to serve the channels.
    let mut kept = node.connect();
    node.request(&mut kept, "SSUBSCRIBE f");
    node.install(None);
    node.turn();
    assert_eq!(kept.received().unwrap(), "");
}

#[test]
fn a_transaction_is_checked_again_when_it_is_executed() {
    let mut node = Node::start();
    let mut client = node.connect();
    for _ in 0..2 {
        assert_eq!(node.request(&mut client, "MULTI"), "+OK\r\n");
        assert_eq!(node.request(&mut client, "SET b 1"), "+QUEUED\r\n");
        node.install(Some(3200));
        assert_eq!(node.request(&mut client, "EXEC"), MOVED);
        assert_eq!(node.request(&mut client, "EXEC"), "-ERR EXEC without MULTI\r\n");
        assert_eq!(node.request(&mut client, "GET b"), MOVED);
        node.install(Some(ALL));
        assert_eq!(node.request(&mut client, "GET b"), "$-1\r\n");
    }
}

#[test]
fn a_turn_after_the_lease_deadline_serves_nothing() {
    let mut node = Node::start();
    let (mut client, mut blocked) = (node.connect(), node.connect());
    assert_eq!(node.request(&mut client, "SET b 1"), "+OK\r\n");
    assert_eq!(node.request(&mut blocked, "BLPOP l 0"), "");
    node.state.set_deadline(1);
    for line in ["GET b", "SET b 2", "EVAL \"return 1\" 1 b"] {
        assert_eq!(node.request(&mut client, line), DOWN);
    }
    let script = node.request(&mut client, "EVAL \"return redis.call('GET', 'b')\" 0");
    assert!(script.contains("Script attempted to execute a command while the cluster is down"));
    assert_eq!(blocked.received().unwrap(), DOWN);
    assert_eq!(node.request(&mut client, "PING"), "+PONG\r\n");
    node.state.set_deadline(u64::MAX);
    assert_eq!(node.request(&mut client, "GET b"), "$1\r\n1\r\n");
}

#[test]
fn replies_of_a_turn_during_which_the_lease_ended_are_not_sent() {
    let mut node = Node::start();
    let mut client = node.connect();
    assert_eq!(node.request(&mut client, "SET b 1"), "+OK\r\n");
    let (worker, io) = (&mut node.worker, node.reactor.io());
    worker.begin_turn();
    let mut session = worker.sessions.take(client.token).unwrap();
    worker.execute(io, &mut session, &encoded("GET b"));
    node.state.set_deadline(1);
    worker.after_turn(io, &mut session);
    worker.sessions.put(session);
    node.turn();
    assert_eq!(client.received(), None);
}

#[test]
fn a_reply_served_by_another_client_is_not_sent_after_the_lease_deadline() {
    let mut node = Node::start();
    let (mut blocked, pusher) = (node.connect(), node.connect());
    assert_eq!(node.request(&mut blocked, "BLPOP b 0"), "");
    let (worker, io) = (&mut node.worker, node.reactor.io());
    worker.begin_turn();
    let mut session = worker.sessions.take(pusher.token).unwrap();
    worker.execute(io, &mut session, &encoded("RPUSH b x"));
    node.state.set_deadline(1);
    worker.after_turn(io, &mut session);
    worker.sessions.put(session);
    node.turn();
    assert_eq!(blocked.received(), None);
}
