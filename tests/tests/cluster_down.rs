//! A cluster with a failed node: the common behavior compared with a cluster of real nodes, and behavior that is
//! specific to Brisk.

use brisk_testkit::cluster::Cluster;
use brisk_testkit::etcd::EtcdLaunch;
use brisk_testkit::{BriskCluster, Conn, Server, wait_until};

/// Keys of the first, the second and the last third of the slots.
const KEYS: [&str; 3] = ["b", "c", "a"];

/// The value of a field of CLUSTER INFO.
fn info(conn: &mut Conn, name: &str) -> String {
    let info = conn.cmd("CLUSTER INFO").text();
    let value = info.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
    value.unwrap_or_default().to_owned()
}

#[track_caller]
fn wait_for_info(conn: &mut Conn, name: &str, value: &str) {
    wait_until("a field of CLUSTER INFO", || info(conn, name) == value);
}

/// The flags and the link state of each node, and the health in CLUSTER SHARDS, in the order of the slots.
fn nodes(conn: &mut Conn) -> String {
    let nodes = conn.cmd("CLUSTER NODES").text();
    let shards = conn.cmd("CLUSTER SHARDS");
    let mut lines: Vec<(u32, String)> = nodes
        .lines()
        .map(|line| {
            let fields: Vec<&str> = line.split(' ').collect();
            let slots = fields.get(8).and_then(|slots| slots.split('-').next());
            let first = slots.and_then(|first| first.parse().ok());
            let shards = shards.elements();
            let texts = shards.iter().map(ToString::to_string);
            let shard =
                texts.into_iter().find(|shard| shard.contains(fields[0])).unwrap_or_default();
            let health = if shard.contains("fail") { "fail" } else { "online" };
            let flags = fields[2].trim_start_matches("myself,");
            (first.unwrap_or_default(), format!("{flags} {} {health}", fields[7]))
        })
        .collect();
    lines.sort();
    lines.into_iter().map(|line| line.1).collect::<Vec<_>>().join("; ")
}

/// The error or the reply. A redirect is returned without its address.
fn outcome(conn: &mut Conn, line: &str) -> String {
    let reply = conn.cmd(line).to_string();
    let end = reply.rfind(' ').filter(|_| reply.contains("MOVED")).unwrap_or(reply.len());
    reply[..end].to_owned()
}

/// Two connections to a node of a cluster in which the primary of the last third of the slots dies. One of them is
/// blocked.
struct Survivor {
    conn: Conn,
    blocked: Conn,
}

impl Survivor {
    fn begin(server: &Server) -> Survivor {
        let mut blocked = server.connect();
        blocked.send(&format!("BLPOP {} 0", KEYS[0]));
        server.wait_for_info("blocked_clients", |count| count == "1");
        Survivor { conn: server.connect(), blocked }
    }

    /// Records what a client sees after the primary has died.
    fn observe(mut self, seen: &mut Vec<String>) -> Conn {
        let conn = &mut self.conn;
        wait_for_info(conn, "cluster_state", "fail");
        seen.push(self.blocked.reply().to_string());
        // The real node has one more slot in the last third.
        let [assigned, ok, pfail, fail] = ["assigned", "ok", "pfail", "fail"].map(|name| {
            let count = info(conn, &format!("cluster_slots_{name}"));
            count.parse::<u32>().expect("a number of slots")
        });
        assert!(fail == 5461 || fail == 5462, "{fail}");
        seen.push(format!("{assigned} {} {pfail}", ok + fail));
        seen.push(nodes(conn));
        let commands = ["GET b", "SET b v", "GET a", "MGET b a", "SPUBLISH b m", "PUBLISH b m"];
        seen.extend(commands.map(|line| outcome(conn, line)));
        conn.cmd("CONFIG SET cluster-allow-reads-when-down yes");
        wait_until("reads to be allowed", || !conn.cmd("GET b").is_error());
        seen.extend(commands.map(|line| outcome(conn, line)));
        conn.cmd("CONFIG SET cluster-allow-reads-when-down no cluster-require-full-coverage no");
        wait_for_info(conn, "cluster_state", "ok");
        assert_eq!(info(conn, "cluster_slots_fail"), fail.to_string());
        seen.extend(commands.map(|line| outcome(conn, line)));
        conn.cmd("CONFIG SET cluster-require-full-coverage yes");
        self.conn
    }
}

/// Records what a client sees after the dead node has returned.
fn observe_return(conn: &mut Conn, seen: &mut Vec<String>) {
    wait_for_info(conn, "cluster_slots_ok", "16384");
    wait_for_info(conn, "cluster_state", "ok");
    wait_until("the node to have no flag", || !nodes(conn).contains("fail"));
    seen.push(nodes(conn));
    seen.extend(["GET b", "SET b v", "GET a"].map(|line| outcome(conn, line)));
}

#[test]
fn a_failed_primary_takes_the_cluster_down_as_on_redis() {
    let mut expected = Vec::new();
    let mut real = Cluster::start(3, 0);
    let survivor = Survivor::begin(real.node(0));
    real.kill_for_now(2);
    let mut conn = survivor.observe(&mut expected);
    real.restart(2);
    observe_return(&mut conn, &mut expected);

    let mut seen = Vec::new();
    let settings = [("cluster-node-timeout", "2000")];
    let mut cluster = BriskCluster::start_with(3, 0, &settings);
    let [own, lost] = [KEYS[0], KEYS[2]].map(|key| cluster.owner(key));
    let survivor = Survivor::begin(cluster.node(own));
    cluster.kill(lost);
    let mut conn = survivor.observe(&mut seen);
    let line = "has failed: it has no lease; 5461 slots are not served";
    wait_until("the failure to be logged", || cluster.node(own).log().contains(line));
    cluster.restart(lost);
    observe_return(&mut conn, &mut seen);
    assert_eq!(seen, expected);
}

/// Redis replies CLUSTERDOWN for about a second.
#[test]
fn a_failover_does_not_interrupt_the_other_shard() {
    // The timeout is so long that the failover ends before the node counts as failed, even on a slow machine.
    let mut cluster = BriskCluster::start_with(2, 1, &[("cluster-node-timeout", "30000")]);
    let [own, lost] = [KEYS[0], KEYS[2]].map(|key| cluster.owner(key));
    let mut conn = cluster.connect(own);
    let before = conn.cmd("GET a").to_string();
    assert!(before.contains("MOVED"), "{before}");
    let mut blocked = cluster.connect(own);
    blocked.send("BLPOP b 0");
    cluster.kill(lost);
    wait_until("a replica to be promoted", || {
        assert_eq!(conn.cmd("GET b").to_string(), "(nil)");
        assert_eq!(info(&mut conn, "cluster_state"), "ok");
        let state = (info(&mut conn, "cluster_slots_fail"), nodes(&mut conn));
        assert!(state.0 == "0" && !state.1.contains("fail "), "{state:?}");
        conn.cmd("GET a").to_string() != before
    });
    assert_eq!(cluster.connect(own).cmd("LPUSH b v").to_string(), "(integer) 1");
    assert_eq!(blocked.reply().elements().len(), 2);
}

/// After etcd has been paused, the leases of all nodes have expired until the nodes register again.
#[test]
fn without_etcd_no_further_node_fails_and_a_failed_one_stays_so() {
    let Some(etcd) = EtcdLaunch::new(1).start() else { return };
    let coordinator = BriskCluster::coordinator_of(&etcd);
    let settings = [("cluster-coordinator", &*coordinator), ("cluster-node-timeout", "2000")];
    let mut cluster = BriskCluster::start_with(3, 0, &settings);
    let [own, lost] = [KEYS[0], KEYS[2]].map(|key| cluster.owner(key));
    cluster.kill(lost);
    let mut conn = cluster.connect(own);
    wait_for_info(&mut conn, "cluster_state", "fail");
    conn.cmd("CONFIG SET cluster-require-full-coverage no");
    let is_as_before = |conn: &mut Conn| {
        assert_eq!(conn.cmd("SET b v").to_string(), "OK");
        assert_eq!(info(conn, "cluster_slots_fail"), "5461");
        info(conn, "cluster_coordinator_last_contact_ms").parse::<u64>().unwrap_or_default()
    };
    etcd.freeze(0);
    wait_until("three node timeouts to pass", || is_as_before(&mut conn) > 6_000);
    etcd.thaw(0);
    wait_until("the lease to be renewed", || {
        is_as_before(&mut conn);
        info(&mut conn, "cluster_coordinator_state") == "ok"
    });
    wait_until("the other node to have a lease", || {
        is_as_before(&mut conn);
        info(&mut conn, "cluster_slots_ok") == "10923"
    });
    cluster.restart(lost);
    wait_for_info(&mut conn, "cluster_slots_ok", "16384");
}

/// The replica cannot log in to its primary, so it gets no copy.
#[test]
fn a_replica_that_never_had_a_full_copy_is_never_promoted() {
    let settings = [("cluster-node-timeout", "2000"), ("appendonly", "yes")];
    let mut cluster = BriskCluster::start_with(2, 0, &settings);
    let [other, primary] = [KEYS[0], KEYS[2]].map(|key| cluster.owner(key));
    assert_eq!(cluster.connect(primary).cmd("SET a v").to_string(), "OK");
    let wrong = [("masteruser", "nobody"), ("masterauth", "wrong")];
    let replica = cluster.add(&[&settings[..], &wrong].concat());
    let mut conn = cluster.connect(replica);
    let meet = format!("CLUSTER MEET 127.0.0.1 {}", cluster.node(primary).port());
    assert_eq!(conn.cmd(&meet).to_string(), "OK");
    let id = cluster.connect(primary).cmd("CLUSTER MYID").text();
    assert_eq!(conn.cmd(&format!("CLUSTER REPLICATE {id}")).to_string(), "OK");
    wait_until("the replica to be refused", || cluster.node(replica).log().contains("AUTH"));
    let refusal = "(error) ERR This replica has no full copy of its master's dataset";
    for how in ["FORCE", "TAKEOVER"] {
        assert_eq!(conn.cmd(&format!("CLUSTER FAILOVER {how}")).to_string(), refusal);
    }
    // The controller does not promote it either.
    cluster.kill(primary);
    let mut survivor = cluster.connect(other);
    wait_for_info(&mut survivor, "cluster_state", "fail");
    wait_until("the controller to give the reason", || {
        let says = |at| {
            cluster.node(at).log().contains("has not been connected to its primary since its start")
        };
        [other, replica].into_iter().any(says)
    });
    assert_eq!(
        (conn.info("role"), conn.cmd("DBSIZE").to_string()),
        ("slave".into(), "(integer) 0".into())
    );
    assert_eq!(conn.cmd("CLUSTER FAILOVER TAKEOVER").to_string(), refusal);
    cluster.restart(primary);
    wait_for_info(&mut survivor, "cluster_state", "ok");
    wait_until("the primary to serve its data again", || {
        cluster.connect(primary).cmd("GET a").to_string() == "\"v\""
    });
    // With a copy, the replica is promoted, even after a restart with the data from disk.
    let words = ["CONFIG", "SET", "masteruser", "", "masterauth", ""];
    assert_eq!(conn.call(&words).to_string(), "OK");
    wait_until("the replica to have a copy", || {
        conn.info("master_link_status") == "up" && conn.cmd("DBSIZE").to_string() == "(integer) 1"
    });
    // An error means that a rewrite is already running.
    conn.cmd("BGREWRITEAOF");
    wait_until("the copy to be on the disk", || {
        let info = ["aof_rewrite_in_progress", "aof_rewrite_scheduled"].map(|name| conn.info(name));
        info == ["0", "0"]
    });
    // In this order: the replica would be promoted if it outlived its primary.
    cluster.kill(replica);
    cluster.kill(primary);
    let id = cluster.connect(other).cmd("CLUSTER NODES").text();
    let own = format!(":{}@", cluster.node(primary).port());
    let id = id.lines().find(|line| line.contains(&own)).map(|line| line[..40].to_owned());
    let id = id.expect("the primary is a member");
    cluster.restart(replica);
    // The replica itself names the reason and the command, since an operator may not know the controller.
    let address = cluster.node(primary).address();
    let line = format!(
        "Cluster: this replica is not promoted in place of its primary {id} ({address}), because it has not been \
         connected to its primary since its start: use CLUSTER FAILOVER FORCE on it"
    );
    wait_until("the replica to give the reason", || cluster.node(replica).log().contains(&line));
    let refusal = format!(
        "(error) ERR Node {id} is the master of replicas: promote one with CLUSTER FAILOVER FORCE first, or, if no \
         replica has the data, send CLUSTER RESET to each of them"
    );
    assert_eq!(survivor.cmd(&format!("CLUSTER FORGET {id}")).to_string(), refusal);
    let mut conn = cluster.connect(replica);
    wait_until("the replica to be the primary", || {
        conn.cmd("CLUSTER FAILOVER FORCE");
        conn.info("role") == "master"
    });
    wait_for_info(&mut conn, "cluster_state", "ok");
    assert_eq!(conn.cmd("GET a").text(), "v");
}

/// The primary dies while it is writing the snapshot for the next copy.
#[test]
fn a_replica_whose_next_copy_has_not_arrived_is_promoted_by_force() {
    let settings = [("cluster-node-timeout", "2000")];
    let mut cluster = BriskCluster::start_with(2, 1, &settings);
    let primary = cluster.owner(KEYS[2]);
    let port = cluster.node(primary).port().to_string();
    let follows = |at: &usize| {
        let node = cluster.node(*at);
        node.info("role") == "slave" && node.info("master_port") == port
    };
    let replica = cluster.running().find(follows).expect("a replica");
    let mut conn = cluster.connect(primary);
    assert_eq!(conn.cmd("SET a v").text(), "OK");
    let mut replica_conn = cluster.connect(replica);
    wait_until("the replica to have the key", || {
        replica_conn.info("master_link_status") == "up"
            && replica_conn.cmd("DBSIZE").to_string() == "(integer) 1"
    });
    // The snapshot pauses for 100 s at each key.
    for set in ["rdb-key-save-delay 100000000", "repl-backlog-size 16384"] {
        assert_eq!(conn.cmd(&format!("CONFIG SET {set}")).text(), "OK");
    }
    cluster.node(replica).signal("STOP");
    assert_eq!(conn.cmd("CLIENT KILL TYPE replica").to_string(), "(integer) 1");
    assert_eq!(conn.call(&["SET", "a", &"v".repeat(100_000)]).to_string(), "OK");
    cluster.node(replica).signal("CONT");
    wait_until("the replica to wait for a full copy", || {
        replica_conn.info("master_sync_in_progress") == "1"
    });
    cluster.kill(primary);
    wait_until("the controller to give the reason", || {
        let says = |at| cluster.node(at).log().contains("is loading or in a full synchronisation");
        cluster.running().any(says)
    });
    assert_eq!(replica_conn.info("role"), "slave");
    assert_eq!(replica_conn.cmd("CLUSTER FAILOVER FORCE").text(), "OK");
    wait_for_info(&mut replica_conn, "cluster_state", "ok");
    assert_eq!(replica_conn.cmd("GET a").text(), "v");
}

/// The replica must not copy the empty dataset before it is promoted.
#[test]
fn a_primary_that_restarts_without_its_data_does_not_empty_its_replica() {
    let Some(etcd) = EtcdLaunch::new(1).start() else { return };
    let coordinator = BriskCluster::coordinator_of(&etcd);
    let settings = [("cluster-coordinator", &*coordinator), ("cluster-node-timeout", "4000")];
    let mut cluster = BriskCluster::start_with(1, 1, &settings);
    let primary = cluster.owner("a");
    let replica = 1 - primary;
    assert_eq!(cluster.connect(primary).cmd("SET a v").text(), "OK");
    let mut conn = cluster.connect(replica);
    conn.cmd("READONLY");
    wait_until("the replica to have the key", || conn.cmd("GET a").text() == "v");
    // Otherwise the controller would promote the replica before it has tried to follow the restarted process.
    conn.cmd("CONFIG SET cluster-replica-no-failover yes");
    wait_until("the primary to know", || {
        cluster.connect(primary).cmd("CLUSTER NODES").text().contains("nofailover")
    });
    let dump = cluster.node(primary).dir().join("dump.rdb");
    cluster.kill(primary);
    assert!(!dump.exists(), "the primary has saved its data");
    cluster.restart(primary);
    let mut restarted = cluster.connect(primary);
    let why = "is not the one of the topology";
    wait_until("the replica to be rejected", || cluster.node(replica).log().contains(why));
    // The primary rejects other servers too.
    let reply = cluster.connect(primary).cmd("SYNC").to_string();
    assert!(reply.contains("NOMASTERLINK"), "{reply}");
    conn.cmd("CONFIG SET cluster-replica-no-failover no");
    wait_until("the restarted primary to be a replica", || restarted.info("role") == "slave");
    wait_until("the replica to serve", || conn.cmd("GET a").text() == "v");
    assert_eq!(conn.info("role"), "master");
    wait_until("the former primary to copy the data", || {
        restarted.cmd("DBSIZE").to_string() == "(integer) 1"
    });
}
