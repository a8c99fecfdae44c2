//! Cluster mode: nodes form a cluster, follow its topology, and survive the loss of nodes and of the coordinator.

use brisk_coordinate::Coordinator as _;
use brisk_coordinate::local::LocalCoordinator;
use brisk_coordinate::values::{ChangeOutcome, ClusterName, Revision, TopologyChange};
use brisk_testkit::etcd::{Etcd, EtcdLaunch};
use brisk_testkit::server::redis_tool;
use brisk_testkit::{BriskCluster, Launch, wait_until};
use std::collections::BTreeSet;
use std::process::Command;

/// Keys of the first, the second and the last third of the slots.
const KEYS: [&str; 3] = ["b", "c", "a"];

/// The reply that `redis-cli -c` prints after following redirects.
#[track_caller]
fn follow_redirects(cluster: &BriskCluster, at: usize, words: &[&str]) -> String {
    let port = cluster.node(at).port().to_string();
    let output = Command::new(redis_tool("redis-cli"))
        .args(["-c", "-p", &port])
        .args(words)
        .output()
        .expect("redis-cli runs");
    String::from_utf8_lossy(&output.stdout).trim_end().to_owned()
}

/// Waits until a write through any of the nodes succeeds.
#[track_caller]
fn wait_until_written(cluster: &BriskCluster, key: &str, value: &str) {
    wait_until("a write to succeed", || {
        let at = cluster.running().next().expect("a node runs");
        follow_redirects(cluster, at, &["SET", key, value]) == "OK"
    });
}

#[test]
fn three_nodes_form_a_cluster_and_serve_every_slot() {
    let cluster = BriskCluster::start(3, 0);
    assert_eq!(cluster.primaries().len(), 3);
    for (at, key) in KEYS.iter().enumerate() {
        assert_eq!(follow_redirects(&cluster, at, &["SET", key, "v"]), "OK");
        for other in cluster.running() {
            assert_eq!(follow_redirects(&cluster, other, &["GET", key]), "v");
        }
    }
    let owners: BTreeSet<usize> = KEYS.iter().map(|key| cluster.owner(key)).collect();
    assert_eq!(owners.len(), 3);
}

#[test]
fn a_node_that_returns_on_another_port_is_found_there() {
    let mut cluster = BriskCluster::start_with(3, 0, &[("appendonly", "yes")]);
    let key = KEYS[0];
    wait_until_written(&cluster, key, "v");
    let at = cluster.owner(key);
    let port = cluster.node(at).port();
    cluster.kill(at);
    cluster.restart_elsewhere(at);
    assert_ne!(cluster.node(at).port(), port);
    cluster.wait_until_ok();
    let other = (at + 1) % 3;
    wait_until("the redirect to name the new port", || {
        let reply = cluster.connect(other).cmd(&format!("GET {key}")).to_string();
        reply.ends_with(&format!(":{}", cluster.node(at).port()))
    });
    assert_eq!(follow_redirects(&cluster, other, &["GET", key]), "v");
}

#[test]
fn a_replica_takes_over_from_a_primary_that_was_killed() {
    let mut cluster = BriskCluster::start(2, 1);
    let key = KEYS[0];
    wait_until_written(&cluster, key, "v");
    let at = cluster.owner(key);
    wait_until("the replica to have the write", || {
        let offset = cluster.node(at).info("master_repl_offset");
        cluster.node(at).info("slave0").contains(&format!("offset={offset}"))
    });
    cluster.kill(at);
    wait_until_written(&cluster, key, "w");
    assert_ne!(cluster.owner(key), at);
    // The old primary returns as a replica of the new one.
    cluster.restart(at);
    cluster.wait_until_ok();
    assert_eq!(cluster.node(at).info("role"), "slave");
    assert_eq!(follow_redirects(&cluster, at, &["GET", key]), "w");
}

#[test]
fn a_primary_without_replicas_resumes_with_its_data_after_a_restart() {
    let mut cluster = BriskCluster::start_with(3, 0, &[("appendonly", "yes")]);
    let key = KEYS[1];
    wait_until_written(&cluster, key, "v");
    let at = cluster.owner(key);
    cluster.kill(at);
    cluster.restart(at);
    cluster.wait_until_ok();
    assert_eq!(cluster.owner(key), at);
    assert_eq!(follow_redirects(&cluster, at, &["GET", key]), "v");
    wait_until("the log to say why it is the primary", || {
        cluster.node(at).log().contains("restarted with its dataset from disk")
    });
}

#[test]
fn primaries_that_die_together_are_replaced_after_a_storm() {
    let mut cluster = BriskCluster::start_with(3, 1, &[("cluster-node-timeout", "2000")]);
    for key in KEYS {
        wait_until_written(&cluster, key, "v");
    }
    let [first, second] = [KEYS[0], KEYS[1]].map(|key| cluster.owner(key));
    cluster.kill(first);
    cluster.kill(second);
    for key in KEYS {
        wait_until_written(&cluster, key, "w");
    }
    let logs: Vec<String> = cluster.running().map(|at| cluster.node(at).log()).collect();
    let is_storm =
        |log: &String| log.contains("the leases of most primaries expired at the same time");
    assert!(logs.iter().any(is_storm), "no controller suspected the coordinator");
}

#[test]
fn a_node_that_announces_another_address_is_named_by_it() {
    let cluster = BriskCluster::start(2, 0);
    let at = cluster.owner(KEYS[0]);
    let reply = cluster.connect(at).cmd("CONFIG SET cluster-announce-ip 127.0.0.9");
    assert_eq!(reply.to_string(), "OK");
    let mut other = cluster.connect(1 - at);
    wait_until("the redirect to name the address", || {
        let reply = other.cmd(&format!("GET {}", KEYS[0])).to_string();
        reply.contains("MOVED 3300 127.0.0.9:")
    });
    assert_eq!(cluster.connect(at).cmd(&format!("SET {} v", KEYS[0])).to_string(), "OK");
}

#[test]
fn a_cluster_whose_processes_all_died_resumes_with_its_data() {
    let mut cluster = BriskCluster::start_with(2, 1, &[("appendonly", "yes")]);
    for key in KEYS {
        wait_until_written(&cluster, key, "v");
    }
    let nodes: Vec<usize> = cluster.running().collect();
    nodes.iter().for_each(|at| cluster.kill(*at));
    nodes.iter().for_each(|at| cluster.restart(*at));
    cluster.wait_until_ok();
    assert_eq!(cluster.primaries().len(), 2);
    for key in KEYS {
        assert_eq!(follow_redirects(&cluster, 0, &["GET", key]), "v");
    }
}

#[test]
fn a_document_from_a_file_is_served_without_a_coordinator() {
    let mut cluster = BriskCluster::start_with(2, 0, &[("appendonly", "yes")]);
    wait_until_written(&cluster, KEYS[0], "v");
    let at = cluster.owner(KEYS[0]);
    let dir = cluster.node(at).dir().to_owned();
    wait_until("the node to keep its topology", || dir.join("topology.json").exists());
    cluster.kill(at);
    std::fs::copy(dir.join("topology.json"), dir.join("static.json")).unwrap();
    let server = Launch::subject()
        .set("cluster-enabled", "yes")
        .set("cluster-coordinator", "static:static.json")
        .set("appendonly", "yes")
        .set("dir", &dir.to_string_lossy())
        .start();
    let mut conn = server.connect();
    assert_eq!(conn.cmd(&format!("GET {}", KEYS[0])).to_string(), "\"v\"");
    assert!(conn.cmd(&format!("GET {}", KEYS[2])).to_string().contains("MOVED 15495 "));
}

#[test]
fn a_second_process_with_the_same_nodes_file_is_rejected() {
    let cluster = BriskCluster::start(1, 0);
    let dir = cluster.node(0).dir().to_string_lossy().into_owned();
    let error = Launch::subject()
        .set("cluster-enabled", "yes")
        .set("cluster-coordinator", &cluster.coordinator())
        .set("dir", &dir)
        .try_start()
        .unwrap_err();
    assert!(error.contains("is already used by a different Redis Cluster node"), "{error}");
}

#[test]
fn a_damaged_nodes_file_is_an_error_that_names_it() {
    let mut cluster = BriskCluster::start(1, 0);
    cluster.kill(0);
    let path = cluster.node(0).dir().join("nodes.conf");
    std::fs::write(&path, "damaged").unwrap();
    let error = Launch::subject()
        .set("cluster-enabled", "yes")
        .set("cluster-coordinator", &cluster.coordinator())
        .set("dir", &cluster.node(0).dir().to_string_lossy())
        .try_start()
        .unwrap_err();
    assert!(error.contains("nodes.conf is damaged"), "{error}");
}

/// Replaces the document in the shared directory with any bytes.
#[track_caller]
fn replace_document(store: &LocalCoordinator, expected: Revision, document: &[u8]) -> Revision {
    let change = TopologyChange { expected, document, controller: None };
    match store.change(&change) {
        ChangeOutcome::Changed(revision) => revision,
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_rejected_document_leaves_the_old_one_in_force() {
    let cluster = BriskCluster::start(2, 0);
    let name = ClusterName::parse("brisk").unwrap();
    let store = LocalCoordinator::open(&cluster.directory(), &name).unwrap();
    let topology = store.read().unwrap();
    let document = topology.document.unwrap();
    let damaged = replace_document(&store, topology.revision, b"{\"format\":1}");
    let refusal = format!("the topology document of revision {damaged} was rejected");
    for at in cluster.running() {
        wait_until("the document to be refused", || cluster.node(at).log().contains(&refusal));
    }
    wait_until_written(&cluster, KEYS[0], "v");
    // Each node rejects it once, and follows the next valid one.
    let mut next: serde_json::Value = serde_json::from_slice(&document).unwrap();
    let epoch = next["epoch"].as_u64().unwrap() + 1;
    next["epoch"] = epoch.into();
    replace_document(&store, damaged, next.to_string().as_bytes());
    for at in cluster.running() {
        let path = cluster.node(at).dir().join("topology.json");
        wait_until("the next document to be in force", || {
            let text = std::fs::read_to_string(&path).unwrap();
            text.contains(&format!("\"epoch\":{epoch},"))
        });
        assert_eq!(cluster.node(at).log().matches(&refusal).count(), 1);
    }
    assert_eq!(follow_redirects(&cluster, 1, &["GET", KEYS[0]]), "v");
}

/// A cluster whose coordinator is a single etcd member, with this lease TTL.
#[track_caller]
fn start_on_etcd(etcd: &Etcd, shards: usize, replicas: usize, ttl_ms: &str) -> BriskCluster {
    let coordinator = BriskCluster::coordinator_of(etcd);
    let directives = [("cluster-coordinator", &*coordinator), ("cluster-node-timeout", ttl_ms)];
    BriskCluster::start_with(shards, replicas, &directives)
}

#[test]
fn a_replica_takes_over_when_the_lease_in_etcd_ends() {
    let Some(etcd) = EtcdLaunch::new(1).start() else { return };
    let mut cluster = start_on_etcd(&etcd, 2, 1, "3000");
    for key in KEYS {
        wait_until_written(&cluster, key, "v");
        for at in cluster.running() {
            assert_eq!(follow_redirects(&cluster, at, &["GET", key]), "v");
        }
    }
    let at = cluster.owner(KEYS[0]);
    cluster.kill(at);
    wait_until_written(&cluster, KEYS[0], "w");
    assert_ne!(cluster.owner(KEYS[0]), at);
}

#[test]
fn a_replica_takes_over_when_the_leader_of_etcd_dies_with_the_primary() {
    let Some(mut etcd) = EtcdLaunch::new(3).start() else { return };
    let mut cluster = start_on_etcd(&etcd, 1, 1, "3000");
    wait_until_written(&cluster, KEYS[0], "v");
    etcd.kill(etcd.leader());
    let at = cluster.owner(KEYS[0]);
    cluster.kill(at);
    wait_until_written(&cluster, KEYS[0], "w");
}

#[test]
fn a_primary_that_shuts_down_releases_its_lease() {
    let Some(etcd) = EtcdLaunch::new(1).start() else { return };
    // The leases outlast the test.
    let mut cluster = start_on_etcd(&etcd, 1, 1, "600000");
    wait_until_written(&cluster, KEYS[0], "v");
    let at = cluster.owner(KEYS[0]);
    cluster.terminate(at);
    wait_until_written(&cluster, KEYS[0], "w");
}

#[test]
fn a_primary_that_ends_at_once_is_replaced_without_a_wait() {
    let Some(etcd) = EtcdLaunch::new(1).start() else { return };
    // If leases expired, a new primary would wait for half of this time.
    let mut cluster = start_on_etcd(&etcd, 1, 1, "600000");
    wait_until_written(&cluster, KEYS[0], "v");
    let at = cluster.owner(KEYS[0]);
    assert!(cluster.connect(at).try_cmd("SHUTDOWN NOSAVE NOW").is_err());
    wait_until("the node to end", || cluster.node(at).log().contains("bye bye"));
    cluster.kill(at);
    let log = cluster.node(at).log();
    assert!(log.contains("Cluster: handing over shard "), "{log}");
    wait_until_written(&cluster, KEYS[0], "w");
}

#[test]
fn a_primary_stopped_for_longer_than_its_lease_serves_nothing() {
    let Some(etcd) = EtcdLaunch::new(1).start() else { return };
    let cluster = start_on_etcd(&etcd, 1, 1, "3000");
    let key = KEYS[0];
    wait_until_written(&cluster, key, "v");
    let at = cluster.owner(key);
    let other = 1 - at;
    let mut conn = cluster.connect(at);
    cluster.node(at).signal("STOP");
    wait_until("the replica to take over", || {
        cluster.connect(other).cmd(&format!("SET {key} w")).to_string() == "OK"
    });
    // The command waits in the socket until the process continues.
    conn.send(&format!("SET {key} lost"));
    cluster.node(at).signal("CONT");
    let reply = conn.reply().to_string();
    assert!(reply.contains("CLUSTERDOWN") || reply.contains("MOVED"), "{reply}");
    wait_until("it to be a replica", || cluster.node(at).info("role") == "slave");
    cluster.wait_until_ok();
    assert_eq!(follow_redirects(&cluster, at, &["GET", key]), "w");
}

/// Reports whether a node rejects a command because its lease has expired. A node whose lease expires during a command
/// closes the connection without a reply, so each check has its own connection.
fn is_down(cluster: &BriskCluster, at: usize, command: &str) -> bool {
    let reply = cluster.connect(at).try_cmd(command);
    reply.is_ok_and(|reply| reply.to_string().contains("CLUSTERDOWN"))
}

#[test]
fn without_etcd_a_primary_serves_or_stops_as_its_setting_says() {
    let Some(etcd) = EtcdLaunch::new(1).start() else { return };
    let cluster = start_on_etcd(&etcd, 2, 0, "4000");
    let [available, safe] = [KEYS[0], KEYS[2]].map(|key| cluster.owner(key));
    let reply = cluster.connect(safe).cmd("CONFIG SET cluster-etcd-loss safe");
    assert_eq!(reply.to_string(), "OK");
    let mut serves = cluster.connect(available);
    let read = format!("GET {}", KEYS[2]);
    let mut is_served = || {
        let reply = serves.cmd(&format!("SET {} v", KEYS[0])).to_string();
        assert_eq!(reply, "OK");
    };
    etcd.freeze(0);
    wait_until("the safe node to stop", || {
        is_served();
        is_down(&cluster, safe, &read)
    });
    etcd.thaw(0);
    wait_until("the safe node to serve again", || {
        is_served();
        !is_down(&cluster, safe, &read)
    });
}

#[test]
fn without_etcd_a_primary_serves_while_its_replica_acknowledges() {
    let Some(etcd) = EtcdLaunch::new(1).start() else { return };
    let mut cluster = start_on_etcd(&etcd, 1, 1, "4000");
    let key = KEYS[0];
    let at = cluster.owner(key);
    let replica = 1 - at;
    // The replica stops serving when its lease expires, which shows that the TTL has passed.
    let reply = cluster.connect(replica).cmd("CONFIG SET cluster-etcd-loss safe");
    assert_eq!(reply.to_string(), "OK");
    let (mut serves, write) = (cluster.connect(at), format!("SET {key} v"));
    etcd.freeze(0);
    wait_until("the replica to stop", || {
        assert_eq!(serves.cmd(&write).to_string(), "OK");
        is_down(&cluster, replica, &format!("GET {key}"))
    });
    cluster.kill(replica);
    wait_until("the primary to stop", || is_down(&cluster, at, &write));
    etcd.thaw(0);
    wait_until_written(&cluster, key, "w");
}

#[test]
fn an_outage_of_etcd_costs_neither_cpu_time_nor_log_lines() {
    const MEMBERS: usize = 3;
    const OUTAGE_MS: u64 = 3_000;
    let Some(mut etcd) = EtcdLaunch::new(MEMBERS).start() else { return };
    let cluster = start_on_etcd(&etcd, 1, 0, "2000");
    let (node, mut conn) = (cluster.node(0), cluster.connect(0));
    let mut silence_ms = || -> u64 {
        let info = conn.cmd("CLUSTER INFO").text();
        let field = "cluster_coordinator_last_contact_ms:";
        let value = info.lines().find_map(|line| line.strip_prefix(field));
        value.expect("CLUSTER INFO has the field").parse().expect("it is a number")
    };
    // Wait until the controller has completed its change.
    wait_until("the cluster to be formed", || node.log().contains("the cluster is formed"));
    (0..MEMBERS).for_each(|at| etcd.kill(at));
    wait_until("the node to miss a renewal", || silence_ms() > 1_000);
    let (began_ms, began_ns) = (silence_ms(), node.cpu_ns());
    wait_until("the outage to last", || silence_ms() > began_ms + OUTAGE_MS);
    let used_ms = (node.cpu_ns() - began_ns) / 1_000_000;
    assert!(used_ms < OUTAGE_MS / 2, "{used_ms} ms of CPU time");
    // Each activity logs this, most of them once. The watch alone retries ten times per second.
    let lines = node.log().matches("the coordinator is unreachable").count();
    assert!((1..10).contains(&lines), "{}", node.log());
    (0..MEMBERS).for_each(|at| etcd.restart(at));
    let line = "Cluster: the watch of the topology: it works again";
    wait_until("the end of the outage to be logged", || node.log().contains(line));
}
