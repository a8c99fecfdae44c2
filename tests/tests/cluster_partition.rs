//! Nodes that lose the connection to etcd, but stay connected to one another and to clients.

use brisk_testkit::etcd::{Etcd, EtcdLaunch};
use brisk_testkit::proxy::{Disconnect, Proxy};
use brisk_testkit::{BriskCluster, Conn, wait_until};
use std::time::{Duration, Instant};

/// A key in the first third of the slots, and one in the last third.
const KEYS: [&str; 2] = ["b", "a"];
const TTL_MS: &str = "4000";

/// A cluster with etcd as the coordinator. Each node reaches etcd through its own proxy.
struct PartitionedCluster {
    cluster: BriskCluster,
    proxies: Vec<Proxy>,
    etcd: Etcd,
}

impl PartitionedCluster {
    /// `None` if this machine has no etcd.
    #[track_caller]
    fn start(shards: usize, loss: &str) -> Option<PartitionedCluster> {
        PartitionedCluster::start_with(EtcdLaunch::new(1).start()?, shards, 1, loss)
    }

    #[track_caller]
    fn start_with(
        etcd: Etcd,
        shards: usize,
        replicas: usize,
        loss: &str,
    ) -> Option<PartitionedCluster> {
        PartitionedCluster::start_with_ttls(
            etcd,
            shards,
            &vec![TTL_MS; shards * (1 + replicas)],
            loss,
        )
    }

    /// Starts a node for each of these values of `cluster-node-timeout`.
    #[track_caller]
    fn start_with_ttls(
        etcd: Etcd,
        shards: usize,
        ttls_ms: &[&str],
        loss: &str,
    ) -> Option<PartitionedCluster> {
        let replicas = ttls_ms.len() / shards - 1;
        let mut cluster = BriskCluster::start_apart(0, &[]);
        let mut proxies = Vec::new();
        for ttl_ms in ttls_ms {
            let proxy = Proxy::to(&etcd.endpoints()[0]);
            cluster.add(&[
                ("cluster-coordinator", &format!("etcd://{}", proxy.address())),
                ("cluster-init-shards", &shards.to_string()),
                ("cluster-init-replicas", &replicas.to_string()),
                ("cluster-node-timeout", ttl_ms),
                ("cluster-etcd-loss", loss),
                ("cluster-require-full-coverage", "no"),
            ]);
            proxies.push(proxy);
        }
        cluster.wait_until_ok();
        Some(PartitionedCluster { cluster, proxies, etcd })
    }

    /// Cuts a node off from etcd: no data passes, but no connection is closed.
    fn cut(&self, at: usize) {
        self.proxies[at].part();
    }

    fn reconnect(&self, at: usize) {
        self.proxies[at].cut(Disconnect::Reset);
        self.proxies[at].heal();
    }

    /// The position of a primary's replica.
    #[track_caller]
    fn replica_of(&self, primary: usize) -> usize {
        let port = self.cluster.node(primary).port().to_string();
        let follows = |at: &usize| {
            let node = self.cluster.node(*at);
            node.info("role") == "slave" && node.info("master_port") == port
        };
        self.cluster.running().find(follows).expect("a replica")
    }
}

/// A client that increments a key on one node.
struct Counter {
    address: String,
    conn: Option<Conn>,
    key: &'static str,
    last_error: String,
}

impl Counter {
    fn new(cluster: &BriskCluster, at: usize, key: &'static str) -> Counter {
        let address = cluster.node(at).address();
        Counter { address, conn: None, key, last_error: String::new() }
    }

    /// Increments the key. Returns the value if the node has acknowledged the write.
    fn increment(&mut self) -> Option<i64> {
        // Reconnect, because a node that fences itself closes connections whose commands were executed.
        self.conn = self.conn.take().or_else(|| Conn::try_tcp(&self.address).ok());
        let reply = self.conn.as_mut()?.try_cmd(&format!("INCR {}", self.key));
        let Ok(reply) = reply else {
            self.conn = None;
            return None;
        };
        if reply.is_error() {
            self.last_error = reply.to_string();
            return None;
        }
        reply.text().parse().ok()
    }
}

/// Cuts a primary off from etcd until its replica serves, and then reconnects it.
#[track_caller]
fn cut_the_primary(loss: &str) {
    let Some(nodes) = PartitionedCluster::start(1, loss) else { return };
    let (cluster, key) = (&nodes.cluster, KEYS[0]);
    let old = cluster.owner(key);
    let new = nodes.replica_of(old);
    let mut before = Counter::new(cluster, old, key);
    let mut after = Counter::new(cluster, new, key);
    assert_eq!(before.increment(), Some(1));
    nodes.cut(old);
    let mut acknowledged = 0;
    wait_until("the replica to serve", || {
        // This order matters: the former primary must not serve after the new one has.
        before.increment();
        acknowledged = after.increment().unwrap_or_default();
        acknowledged > 0
    });
    assert_eq!(before.increment(), None, "two primaries serve");
    assert!(before.last_error.contains("CLUSTERDOWN"), "{}", before.last_error);
    for _ in 0..100 {
        assert_eq!(after.increment(), Some(acknowledged + 1));
        acknowledged += 1;
        assert_eq!(before.increment(), None, "two primaries serve");
    }
    nodes.reconnect(old);
    wait_until("the former primary to be a replica", || {
        assert_eq!(after.increment(), Some(acknowledged + 1));
        acknowledged += 1;
        assert_eq!(before.increment(), None, "two primaries serve");
        cluster.node(old).info("role") == "slave"
    });
    cluster.wait_until_ok();
    wait_until("it to have every write of the new primary", || {
        let mut conn = cluster.connect(old);
        conn.cmd("READONLY");
        conn.cmd(&format!("GET {key}")).text() == acknowledged.to_string()
    });
    assert_eq!(after.increment(), Some(acknowledged + 1));
}

#[test]
fn a_primary_that_loses_etcd_is_replaced_and_becomes_a_replica() {
    cut_the_primary("availability");
}

#[test]
fn a_safe_primary_that_loses_etcd_is_replaced_and_becomes_a_replica() {
    cut_the_primary("safe");
}

/// FORCE promotes a replica although the former primary may serve until its lease ends. Until then, the new primary
/// must not hand over, because the next primary would not wait.
#[test]
fn a_primary_that_does_not_serve_yet_does_not_hand_over() {
    let Some(etcd) = EtcdLaunch::new(1).start() else { return };
    let Some(nodes) = PartitionedCluster::start_with(etcd, 1, 2, "safe") else { return };
    let (cluster, key) = (&nodes.cluster, KEYS[0]);
    let old = cluster.owner(key);
    let replicas: Vec<usize> = cluster.running().filter(|at| *at != old).collect();
    let mut before = Counter::new(cluster, old, key);
    assert_eq!(before.increment(), Some(1));
    nodes.cut(old);
    assert_eq!(cluster.connect(replicas[0]).cmd("CLUSTER FAILOVER FORCE").text(), "OK");
    let port = cluster.node(replicas[0]).port().to_string();
    wait_until("the other replica to follow the forced primary", || {
        cluster.node(replicas[1]).info("master_port") == port
    });
    assert_eq!(cluster.connect(replicas[1]).cmd("CLUSTER FAILOVER").text(), "OK");
    let mut after = replicas.iter().map(|at| Counter::new(cluster, *at, key)).collect::<Vec<_>>();
    wait_until("one of the other nodes to serve", || {
        // This order matters: the former primary must not serve after another node has.
        before.increment();
        after.iter_mut().any(|counter| counter.increment().is_some())
    });
    assert_eq!(before.increment(), None, "two primaries serve");
}

/// The replica's own timeout is shorter than the lease of the primary.
#[test]
fn a_forced_replica_waits_for_the_lease_of_a_primary_with_a_longer_timeout() {
    let Some(etcd) = EtcdLaunch::new(1).start() else { return };
    let ttls_ms = ["8000", "2000"];
    let Some(nodes) = PartitionedCluster::start_with_ttls(etcd, 1, &ttls_ms, "safe") else {
        return;
    };
    let (cluster, key, [old, new]) = (&nodes.cluster, KEYS[0], [0, 1]);
    if cluster.owner(key) == new {
        assert_eq!(cluster.connect(old).cmd("CLUSTER FAILOVER").text(), "OK");
        wait_until("the planned switch", || {
            cluster.node(old).info("role") == "master" && cluster.node(new).info("role") == "slave"
        });
        cluster.wait_until_ok();
    }
    let mut before = Counter::new(cluster, old, key);
    let mut after = Counter::new(cluster, new, key);
    assert_eq!(before.increment(), Some(1));
    nodes.cut(old);
    assert_eq!(cluster.connect(new).cmd("CLUSTER FAILOVER FORCE").text(), "OK");
    wait_until("the replica to serve", || {
        // This order matters: the former primary must not serve after the new one has.
        before.increment();
        after.increment().is_some()
    });
    assert_eq!(before.increment(), None, "two primaries serve");
}

/// etcd grants leases of at least one and a half times its election timeout.
#[test]
fn a_lease_that_is_longer_than_requested_makes_no_primary_serve_longer() {
    let launch = EtcdLaunch::new(1).arg("--election-timeout=6000").arg("--heartbeat-interval=600");
    let Some(etcd) = launch.start() else { return };
    let Some(nodes) = PartitionedCluster::start_with(etcd, 1, 0, "safe") else { return };
    let info = nodes.cluster.connect(0).cmd("CLUSTER INFO").text();
    let left = info.lines().find_map(|line| line.strip_prefix("cluster_lease_left_ms:"));
    let left: u64 = left.and_then(|left| left.parse().ok()).expect("a lease");
    assert!(left < TTL_MS.parse().unwrap(), "{left}");
    assert!(nodes.cluster.node(0).log().contains("granted a lease of 9 s"));
}

#[test]
fn a_shard_that_loses_etcd_keeps_serving_while_its_replica_acknowledges() {
    let Some(nodes) = PartitionedCluster::start(2, "availability") else { return };
    let cluster = &nodes.cluster;
    let [cut, other] = KEYS.map(|key| cluster.owner(key));
    let replica = nodes.replica_of(cut);
    let term = |at: usize| {
        let info = cluster.connect(at).cmd("CLUSTER INFO").text();
        info.lines().find(|line| line.starts_with("cluster_shard_term:")).map(str::to_owned)
    };
    let term_before = term(cut);
    let mut counter = Counter::new(cluster, cut, KEYS[0]);
    let mut last = 0;
    let mut is_served = || {
        last += 1;
        assert_eq!(counter.increment(), Some(last), "{}", counter.last_error);
    };
    let others = [other, nodes.replica_of(other)];
    // Cut the replica off first, so that its lease expires first. Otherwise it could be promoted although it is cut
    // off.
    nodes.cut(replica);
    let address = format!("{}@", cluster.node(replica).address());
    wait_until("the lease of the replica to end", || {
        is_served();
        let text = cluster.connect(other).cmd("CLUSTER NODES").text();
        text.lines().any(|line| line.contains(&address) && line.contains("fail"))
    });
    nodes.cut(cut);
    let without_primary = |at: usize| cluster.node(at).log().contains("has no primary: ");
    wait_until("a controller to find no candidate", || {
        is_served();
        others.iter().any(|at| without_primary(*at))
    });
    let unreachable = "cluster_coordinator_state:unreachable";
    assert!(cluster.connect(cut).cmd("CLUSTER INFO").text().contains(unreachable));
    // Reconnect the primary first. Otherwise the replica could be promoted before the primary has registered again.
    for at in [cut, replica] {
        nodes.reconnect(at);
        wait_until("the lease to be renewed", || {
            is_served();
            cluster.connect(at).cmd("CLUSTER INFO").text().contains("cluster_coordinator_state:ok")
        });
    }
    is_served();
    assert_eq!((cluster.owner(KEYS[0]), term(cut)), (cut, term_before));
}

#[test]
fn primaries_that_lose_only_etcd_do_not_take_the_cluster_down() {
    let Some(mut nodes) = PartitionedCluster::start(3, "availability") else { return };
    let cluster = &nodes.cluster;
    for at in cluster.running() {
        let set = "CONFIG SET cluster-require-full-coverage yes";
        assert_eq!(cluster.connect(at).cmd(set).text(), "OK");
    }
    let connected = cluster.owner(KEYS[0]);
    let cut = [cluster.owner("c"), cluster.owner(KEYS[1])];
    let mut counters: Vec<(Counter, i64)> = [KEYS[0], "c", KEYS[1]]
        .map(|key| (Counter::new(cluster, cluster.owner(key), key), 0))
        .into_iter()
        .collect();
    let mut all_serve = || {
        for (counter, last) in &mut counters {
            *last += 1;
            assert_eq!(counter.increment(), Some(*last), "{}", counter.last_error);
        }
    };
    cut.iter().for_each(|at| nodes.cut(*at));
    // When etcd starts, leases get their full TTL again, so both expire at the same time.
    nodes.etcd.kill(0);
    nodes.etcd.restart(0);
    let of_most = "the leases of most primaries expired at the same time";
    wait_until("a controller to notice that most leases ended", || {
        all_serve();
        cluster.running().any(|at| cluster.node(at).log().contains(of_most))
    });
    let suspects = |at: usize| {
        let text = cluster.connect(at).cmd("CLUSTER NODES").text();
        text.lines().filter(|line| line.contains("fail?")).count()
    };
    wait_until("the connected primary to suspect them", || {
        all_serve();
        suspects(connected) == 2
    });
    // A single primary without a lease counts as failed after this delay. Wait twice as long.
    let until = Instant::now() + failure_delay() * 2;
    while Instant::now() < until {
        all_serve();
    }
    assert_eq!(suspects(connected), 2);
    cut.iter().for_each(|at| nodes.reconnect(*at));
    wait_until("the leases to be back", || {
        all_serve();
        suspects(connected) == 0
    });
}

/// The time after the expiry of its lease at which a member counts as failed.
fn failure_delay() -> Duration {
    let ttl_ms = TTL_MS.parse::<u64>().expect("a number");
    Duration::from_millis((ttl_ms / 2).max(ttl_ms / 3 + 1000))
}
