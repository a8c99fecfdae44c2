//! A cluster of real servers for a test. Its nodes are started and introduced to each other, and the test begins when
//! all of them report that every slot is served.
//!
//! The nodes are Redis or Brisk. [`crate::brisk_cluster`] starts Brisk nodes that form a cluster on their own.

use crate::conn::Conn;
use crate::kind::Kind;
use crate::port::Port;
use crate::server::{Launch, Server};
use crate::temp_dir::TempDir;
use crate::wait::wait_until;

/// Number of slots in a cluster.
const SLOTS: usize = 16_384;
/// A node that sends nothing for this long counts as failed. It leaves time for a loaded machine, and keeps tests
/// short.
const NODE_TIMEOUT_MS: &str = "1500";
/// The shortest timeout that Brisk accepts, because an etcd lease lasts at least two seconds.
const BRISK_NODE_TIMEOUT_MS: &str = "2000";

/// A node of a cluster.
#[derive(Debug)]
pub struct Member {
    launch: Launch,
    /// The process; `None` after [`Cluster::kill`].
    server: Option<Server>,
    /// True while the process is running.
    is_up: bool,
    port: u16,
    id: String,
    /// The cluster bus port of a Redis node. Brisk nodes have no bus.
    bus: Option<Port>,
}

/// Primaries with their slots and replicas. The processes end when this value is dropped.
#[derive(Debug)]
pub struct Cluster {
    kind: Kind,
    members: Vec<Member>,
    primaries: usize,
    /// The nodes that [`Cluster::kill`] has ended.
    killed: Vec<Server>,
    /// The coordinator of Brisk nodes. It is dropped after the nodes.
    _store: TempDir,
}

impl Cluster {
    /// Starts `primaries` primaries with `replicas_each` replicas each. Primary `n` owns the `n`th part of the slots.
    /// The primaries come first, then the first replica of each primary in the same order, then the second replicas.
    ///
    /// # Panics
    /// If the cluster does not start.
    #[must_use]
    #[track_caller]
    pub fn start(primaries: usize, replicas_each: usize) -> Cluster {
        Cluster::start_with(primaries, replicas_each, &[])
    }

    /// Like [`Cluster::start`], with more directives for each node.
    ///
    /// # Panics
    /// If the cluster does not start.
    #[must_use]
    #[track_caller]
    pub fn start_with(
        primaries: usize,
        replicas_each: usize,
        directives: &[(&str, &str)],
    ) -> Cluster {
        Cluster::start_of(Kind::Redis, primaries, replicas_each, directives)
    }

    /// A Redis cluster and then a Brisk cluster, for tests that both must pass. The iterator starts each cluster when
    /// it reaches it.
    ///
    /// # Panics
    /// If a cluster does not start.
    pub fn start_each<'a>(
        primaries: usize,
        replicas_each: usize,
        directives: &'a [(&'a str, &'a str)],
    ) -> impl Iterator<Item = Cluster> + 'a {
        let start = move |kind| Cluster::start_of(kind, primaries, replicas_each, directives);
        [Kind::Redis, Kind::Brisk].into_iter().map(start)
    }

    /// Like [`Cluster::start_with`], with nodes of this kind. Brisk nodes share a directory as their coordinator,
    /// unless a directive names another coordinator.
    ///
    /// # Panics
    /// If the cluster does not start.
    #[must_use]
    #[track_caller]
    pub fn start_of(
        kind: Kind,
        primaries: usize,
        replicas_each: usize,
        directives: &[(&str, &str)],
    ) -> Cluster {
        let store = TempDir::new();
        let coordinator = format!("local:{}", store.path("coordinator").display());
        let start = |_| {
            let bus = (kind != Kind::Brisk).then(Port::claim);
            let launch = match &bus {
                None => kind
                    .launch()
                    .set("cluster-coordinator", &coordinator)
                    .set("cluster-node-timeout", BRISK_NODE_TIMEOUT_MS),
                Some(bus) => kind
                    .launch()
                    .set("cluster-port", &bus.number().to_string())
                    .set("cluster-node-timeout", NODE_TIMEOUT_MS),
            };
            let launch = launch
                .set("cluster-enabled", "yes")
                .set("cluster-replica-validity-factor", "0")
                .set("cluster-allow-replica-migration", "no");
            let add = |launch: Launch, (name, value): &(&str, &str)| launch.set(name, value);
            let launch = directives.iter().fold(launch, add);
            let server = launch.clone().start();
            let id = server.connect().cmd("CLUSTER MYID").text();
            Member { launch, port: server.port(), server: Some(server), is_up: true, id, bus }
        };
        let members: Vec<Member> = (0..primaries * (1 + replicas_each)).map(start).collect();
        let cluster = Cluster { kind, members, primaries, killed: Vec::new(), _store: store };
        cluster.join();
        cluster
    }

    /// The kind of server that the nodes run.
    #[must_use]
    pub const fn kind(&self) -> Kind {
        self.kind
    }

    /// Returns true if the nodes support [`Cluster::begin_move`].
    #[must_use]
    pub fn moves_slots(&self) -> bool {
        self.kind != Kind::Brisk
    }

    fn join(&self) {
        let count = self.members.len();
        for at in 0..count {
            let mut node = self.node(at).connect();
            // Otherwise the nodes would first have to agree on their configuration epochs.
            ok(&mut node, &format!("CLUSTER SET-CONFIG-EPOCH {}", at + 1));
            if at < self.primaries {
                let slots = self.slots_of(at);
                ok(&mut node, &format!("CLUSTER ADDSLOTSRANGE {} {}", slots.start, slots.end - 1));
            }
        }
        let mut first = self.node(0).connect();
        for member in &self.members[1..] {
            let bus = member.bus.as_ref().map(|bus| bus.number().to_string()).unwrap_or_default();
            let meet = format!("CLUSTER MEET 127.0.0.1 {} {bus}", member.port);
            // A node of Brisk registers itself while it starts.
            wait_until("the first node to know another", || first.cmd(&meet).to_string() == "OK");
        }
        for at in 0..count {
            let mut node = self.node(at).connect();
            wait_until("every node to know the others", || {
                let nodes = node.cmd("CLUSTER NODES").text();
                nodes.lines().filter(|line| !line.contains("handshake")).count() == count
            });
            if at >= self.primaries {
                let primary = &self.members[at % self.primaries].id;
                ok(&mut node, &format!("CLUSTER REPLICATE {primary}"));
                wait_until("the replica to follow", || node.info("master_link_status") == "up");
            }
        }
        for at in 0..self.primaries {
            // A replica that has received no write yet is not announced to any node.
            let (mut node, key) = (self.node(at).connect(), self.key_of(at, 0));
            let set = format!("SET {key} 1");
            wait_until("a slot to be served", || node.cmd(&set).to_string() == "OK");
            node.cmd(&format!("DEL {key}"));
        }
        self.wait_until_whole();
    }

    /// Waits until all nodes report that all slots are served, and list every replica.
    #[track_caller]
    fn wait_until_whole(&self) {
        let replicas = self.members.len() - self.primaries;
        for at in 0..self.members.len() {
            let mut node = self.node(at).connect();
            wait_until("the cluster to be whole", || {
                let info = node.cmd("CLUSTER INFO").text();
                let slots = node.cmd("CLUSTER SLOTS");
                let ranges = slots.elements();
                // First and last slot, the primary, and then its replicas.
                let listed = ranges.iter().map(|range| range.elements().len() - 3).sum::<usize>();
                info.contains("cluster_state:ok")
                    && info.contains("cluster_slots_ok:16384")
                    && listed == replicas
            });
        }
    }

    /// The slots that a primary got when the cluster was created.
    #[must_use]
    pub fn slots_of(&self, primary: usize) -> std::ops::Range<usize> {
        SLOTS * primary / self.primaries..SLOTS * (primary + 1) / self.primaries
    }

    /// A key in one of the slots of that primary. Each `n` gives a different key.
    ///
    /// # Panics
    /// Never, because there are enough slots.
    #[must_use]
    pub fn key_of(&self, primary: usize, n: usize) -> String {
        let slots = self.slots_of(primary);
        let is_there = |key: &String| slots.contains(&usize::from(slot(key)));
        let keys = (0..).map(|n| format!("key:{n}")).filter(is_there);
        keys.take(n + 1).last().expect("keys have no end")
    }

    /// The number of nodes, including killed ones.
    #[must_use]
    pub fn count(&self) -> usize {
        self.members.len()
    }

    /// A node.
    ///
    /// # Panics
    /// If the node was killed.
    #[must_use]
    #[track_caller]
    pub fn node(&self, at: usize) -> &Server {
        self.members[at].server.as_ref().expect("this node was killed")
    }

    /// The port of a node, even if it was killed.
    #[must_use]
    pub fn port(&self, at: usize) -> u16 {
        self.members[at].port
    }

    /// `127.0.0.1:port` of nodes, separated by commas.
    #[must_use]
    pub fn addresses(&self, nodes: &[usize]) -> String {
        let addresses = nodes.iter().map(|at| format!("127.0.0.1:{}", self.port(*at)));
        addresses.collect::<Vec<_>>().join(",")
    }

    /// The positions of the running nodes.
    pub fn running(&self) -> impl Iterator<Item = usize> + '_ {
        (0..self.members.len()).filter(|at| self.members[*at].is_up)
    }

    /// Kills a node permanently. Its port stays claimed, because clients of this cluster still connect to it.
    pub fn kill(&mut self, at: usize) {
        self.members[at].is_up = false;
        if let Some(mut server) = self.members[at].server.take() {
            server.kill_for_now();
            self.killed.push(server);
        }
    }

    /// Kills a node. Its port and its files stay for [`Cluster::restart`].
    ///
    /// # Panics
    /// If the node is not running.
    #[track_caller]
    pub fn kill_for_now(&mut self, at: usize) {
        let member = &mut self.members[at];
        assert!(member.is_up, "the node runs");
        member.is_up = false;
        member.server.iter_mut().for_each(Server::kill_for_now);
    }

    /// Restarts a node that [`Cluster::kill_for_now`] has ended.
    ///
    /// # Panics
    /// If the node does not start.
    #[track_caller]
    pub fn restart(&mut self, at: usize) {
        let member = &mut self.members[at];
        let server = member.server.as_mut().expect("this node was killed for good");
        member.launch.start_again(server);
        member.is_up = true;
    }

    /// Begins to move a slot. From now on, clients look for keys that are not at `from` at `to`.
    ///
    /// # Panics
    /// If a node replies with an error.
    #[track_caller]
    pub fn begin_move(&self, slot: u16, from: usize, to: usize) {
        let (source, target) = (&self.members[from].id, &self.members[to].id);
        ok(&mut self.node(to).connect(), &format!("CLUSTER SETSLOT {slot} IMPORTING {source}"));
        ok(&mut self.node(from).connect(), &format!("CLUSTER SETSLOT {slot} MIGRATING {target}"));
    }

    /// Moves a key whose slot is being moved.
    ///
    /// # Panics
    /// If the node replies with an error.
    #[track_caller]
    pub fn move_key(&self, key: &str, from: usize, to: usize) {
        let move_one = format!("MIGRATE 127.0.0.1 {} {key} 0 5000", self.port(to));
        let reply = self.node(from).connect().cmd(&move_one);
        assert!(!reply.is_error(), "{move_one}: {reply}");
    }

    /// Completes the move of a slot: moves the remaining keys and assigns the slot on the two nodes. Other nodes learn
    /// of it by gossip.
    ///
    /// # Panics
    /// If a node replies with an error.
    #[track_caller]
    pub fn end_move(&self, slot: u16, from: usize, to: usize) {
        let mut source = self.node(from).connect();
        loop {
            let keys = source.cmd(&format!("CLUSTER GETKEYSINSLOT {slot} 100"));
            if keys.elements().is_empty() {
                break;
            }
            keys.elements().iter().for_each(|key| self.move_key(&key.text(), from, to));
        }
        let id = &self.members[to].id;
        for at in [to, from] {
            ok(&mut self.node(at).connect(), &format!("CLUSTER SETSLOT {slot} NODE {id}"));
        }
    }
}

/// The slot of a key: CRC16 (XMODEM) of the key, or of its hash tag, modulo 16384. This implementation is independent
/// of those in the server and the client, so that it cannot share their bugs.
#[must_use]
pub fn slot(key: &str) -> u16 {
    let tag = key.split_once('{').and_then(|(_, rest)| Some(rest.split_once('}')?.0));
    let hashed = tag.filter(|tag| !tag.is_empty()).unwrap_or(key);
    let crc = hashed.bytes().fold(0u16, |crc, byte| {
        (0..8).fold(crc ^ (u16::from(byte) << 8), |crc, _| {
            if crc & 0x8000 == 0 { crc << 1 } else { (crc << 1) ^ 0x1021 }
        })
    });
    crc % 16_384
}

#[track_caller]
fn ok(node: &mut Conn, command: &str) {
    let reply = node.cmd(command);
    assert_eq!(reply.to_string(), "OK", "reply to {command}");
}

#[cfg(test)]
mod tests {
    use super::slot;

    /// The expected slots are those that CLUSTER KEYSLOT of Redis 7.0.15 returns.
    #[test]
    fn slots_are_those_of_redis() {
        for (key, expected) in [
            ("", 0),
            ("123456789", 12_739),
            ("foo", 12_182),
            ("{foo}bar", 12_182),
            ("x{foo}{bar}", 12_182),
        ] {
            assert_eq!(slot(key), expected, "{key}");
        }
        assert_eq!(slot("foo{}{bar}"), 8363);
        assert_ne!(slot("{foo"), slot("foo"));
    }
}
