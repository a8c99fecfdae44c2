//! `cargo xtask cluster nemesis`: clients write to all nodes of three shards with etcd as the coordinator, while in
//! each round nodes and etcd members are killed, stopped and cut off.
//!
//! Each node reaches each etcd member through a proxy, and other nodes reach the node through a proxy. In a round, one
//! or two faults last for some time. At the end of the round, all faults are over and the cluster must recover: each
//! shard is served and has a replica in sync with the same digest, and no term has decreased. The rules for
//! acknowledged writes are in [`super::history`]. A crash may lose the last writes, because replication is
//! asynchronous. Lost writes are counted.

use super::history::Clients;
use super::nodes::{Nodes, SETTLED_WITHIN};
use super::writer::pass;
use crate::options::Options;
use crate::outcome::Outcome;
use anyhow::{Context, Result, ensure};
use brisk_testkit::BriskCluster;
use brisk_testkit::etcd::{Etcd, EtcdLaunch};
use brisk_testkit::proxy::{Direction, Disconnect, Proxy};
use brisk_testkit::random::Random;
use std::time::Duration;

/// Keys in the first, the second and the last third of the slots.
const KEYS: [&str; 3] = ["b", "c", "a"];
const MEMBERS: usize = 3;

/// A fault that lasts for some time.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Fault {
    /// SIGKILL. The node is restarted later.
    Kill(usize),
    /// SIGSTOP.
    Stop(usize),
    /// No data passes between these nodes and etcd, in one or both directions.
    CutFromEtcd(Vec<usize>, Option<Direction>),
    /// Other nodes cannot reach this node, so its replication and its reports stop.
    CutFromNodes(usize, Option<Direction>),
    /// SIGSTOP of an etcd member.
    StopMember(usize),
    KillMember(usize),
    /// SIGSTOP of all etcd members.
    StopEtcd,
}

impl Fault {
    fn draw(random: &mut Random, nodes: usize) -> Fault {
        let (node, member) = (random.below(nodes), random.below(MEMBERS));
        let direction = *random.pick(&[None, Some(Direction::ToServer), Some(Direction::ToClient)]);
        match random.below(10) {
            0 | 1 => Fault::Kill(node),
            2 | 3 => Fault::Stop(node),
            4 => Fault::CutFromEtcd(vec![node], direction),
            5 => Fault::CutFromEtcd(some(random, nodes), direction),
            6 | 7 => Fault::CutFromNodes(node, direction),
            8 if random.percent(50) => Fault::KillMember(member),
            8 => Fault::StopMember(member),
            _ => Fault::StopEtcd,
        }
    }

    /// True if the two faults cannot be active at the same time.
    fn excludes(&self, other: &Fault) -> bool {
        let process = |fault: &Fault| match fault {
            Fault::Kill(node) | Fault::Stop(node) => Some((true, *node)),
            Fault::StopMember(_) | Fault::KillMember(_) | Fault::StopEtcd => Some((false, 0)),
            Fault::CutFromEtcd(..) | Fault::CutFromNodes(..) => None,
        };
        let is_same_cut = std::mem::discriminant(self) == std::mem::discriminant(other);
        is_same_cut || (process(self).is_some() && process(self) == process(other))
    }
}

/// The processes and the proxies between them.
struct Nemesis {
    nodes: Nodes,
    etcd: Etcd,
    /// Proxies from each node to each etcd member.
    to_etcd: Vec<Vec<Proxy>>,
    /// Proxies to each node, for the other nodes.
    to_node: Vec<Proxy>,
}

pub(super) fn main(options: &Options) -> Result<Outcome> {
    let rounds: usize = options.number("rounds", 20)?;
    let ttl: u64 = options.number("ttl", 3)?;
    let seed: u64 = options.number("seed", 1)?;
    let Some(etcd) = EtcdLaunch::new(MEMBERS).start() else { return Ok(Outcome::Skipped) };
    let mut nemesis = Nemesis::start(etcd, ttl);
    nemesis.nodes.check_roles(KEYS.len())?;
    let mut clients = Clients::start(&nemesis.nodes.addresses(), &KEYS);
    for round in 0..rounds {
        let mut random = Random::derived(seed, round as u64);
        let done = nemesis.round(&clients, &mut random, ttl);
        done.with_context(|| format!("round {round}, seed {seed}"))?;
        let (writes, lost) = clients.counts();
        eprintln!("{round}: {writes} acknowledged, {lost} lost by crashes so far");
    }
    clients.stop();
    let violations = clients.take_violations();
    ensure!(violations.is_empty(), "{violations:?}");
    for key in KEYS {
        let owner = nemesis.nodes.owner(key)?;
        let is_equal = nemesis.nodes.has_equal_replica(owner)?;
        ensure!(is_equal, "the digests of {key}'s shard differ\n{}", nemesis.nodes.logs());
    }
    let (writes, lost) = clients.counts();
    println!(
        "{rounds} rounds, TTL {ttl} s, seed {seed}: {writes} acknowledged writes, {lost} lost by crashes, at most one \
         primary per shard and term, terms never fell, digests equal"
    );
    Ok(Outcome::Passed)
}

impl Nemesis {
    fn start(etcd: Etcd, ttl_s: u64) -> Nemesis {
        let mut cluster = BriskCluster::start_apart(0, &[]);
        let (mut to_etcd, mut to_node) = (Vec::new(), Vec::new());
        let timeout = (ttl_s * 1000).to_string();
        for _ in 0..2 * KEYS.len() {
            let members: Vec<Proxy> =
                etcd.endpoints().iter().map(|address| Proxy::to(address)).collect();
            let endpoints: Vec<String> = members.iter().map(Proxy::address).collect();
            let at = cluster.add(&[
                ("cluster-coordinator", &format!("etcd://{}", endpoints.join(","))),
                ("cluster-name", "nemesis"),
                ("cluster-node-timeout", &timeout),
                ("cluster-init-shards", &KEYS.len().to_string()),
                ("cluster-init-replicas", "1"),
                ("cluster-require-full-coverage", "no"),
            ]);
            to_etcd.push(members);
            to_node.push(Proxy::to(&cluster.node(at).address()));
        }
        cluster.wait_until_ok();
        let announced = to_node.iter().map(Proxy::port).collect();
        let nodes = Nodes::of_brisk(cluster, announced);
        let nemesis = Nemesis { nodes, etcd, to_etcd, to_node };
        (0..nemesis.to_node.len()).for_each(|at| nemesis.announce(at));
        nemesis
    }

    /// Makes the other nodes reach a node through its proxy.
    fn announce(&self, at: usize) {
        let set = format!("CONFIG SET cluster-announce-port {}", self.to_node[at].port());
        self.nodes.node(at).connect().cmd(&set);
    }

    fn round(&mut self, clients: &Clients, random: &mut Random, ttl_s: u64) -> Result<()> {
        let mut faults = vec![Fault::draw(random, self.to_node.len())];
        let second = Fault::draw(random, self.to_node.len());
        if random.percent(50) && !faults[0].excludes(&second) {
            faults.push(second);
        }
        let span_ms = 200 + random.below(3 * ttl_s as usize * 1000) as u64;
        eprintln!("{faults:?} for {span_ms} ms");
        for fault in &faults {
            self.begin(fault);
            pass(Duration::from_millis(random.below(500) as u64));
        }
        pass(Duration::from_millis(span_ms));
        for fault in &faults {
            self.end(fault);
        }
        let progresses = clients.all_progress(SETTLED_WITHIN);
        ensure!(progresses, "a shard does not serve requests\n{}", self.nodes.logs());
        for key in KEYS {
            self.nodes.shard_of(key)?;
        }
        self.nodes.check_roles(KEYS.len())?;
        let violations = clients.take_violations();
        ensure!(violations.is_empty(), "{violations:?}\n{}", self.nodes.logs());
        Ok(())
    }

    fn begin(&mut self, fault: &Fault) {
        match fault {
            Fault::Kill(node) => self.nodes.kill(*node),
            Fault::Stop(node) => self.nodes.node(*node).signal("STOP"),
            Fault::CutFromEtcd(nodes, direction) => {
                self.ways_to_etcd(nodes).for_each(|proxy| cut(proxy, *direction));
            }
            Fault::CutFromNodes(node, direction) => cut(&self.to_node[*node], *direction),
            Fault::StopMember(member) => self.etcd.freeze(*member),
            Fault::KillMember(member) => self.etcd.kill(*member),
            Fault::StopEtcd => (0..MEMBERS).for_each(|member| self.etcd.freeze(member)),
        }
    }

    fn end(&mut self, fault: &Fault) {
        match fault {
            Fault::Kill(node) => {
                self.nodes.restart(*node);
                self.announce(*node);
            }
            Fault::Stop(node) => self.nodes.node(*node).signal("CONT"),
            Fault::CutFromEtcd(nodes, _) => self.ways_to_etcd(nodes).for_each(reconnect),
            Fault::CutFromNodes(node, _) => reconnect(&self.to_node[*node]),
            Fault::StopMember(member) => self.etcd.thaw(*member),
            Fault::KillMember(member) => self.etcd.restart(*member),
            Fault::StopEtcd => (0..MEMBERS).for_each(|member| self.etcd.thaw(member)),
        }
    }

    /// The proxies between these nodes and the members of etcd.
    fn ways_to_etcd(&self, nodes: &[usize]) -> impl Iterator<Item = &Proxy> {
        nodes.iter().flat_map(|node| &self.to_etcd[*node])
    }
}

/// Two or more different nodes, in random order.
fn some(random: &mut Random, nodes: usize) -> Vec<usize> {
    let count = 2 + random.below(nodes - 1);
    let mut rest: Vec<usize> = (0..nodes).collect();
    (0..count).map(|_| rest.swap_remove(random.below(rest.len()))).collect()
}

/// Blocks all data without closing connections.
fn cut(proxy: &Proxy, direction: Option<Direction>) {
    match direction {
        Some(direction) => proxy.swallow(direction, true),
        None => proxy.part(),
    }
}

fn reconnect(proxy: &Proxy) {
    proxy.cut(Disconnect::Reset);
    proxy.heal();
}
