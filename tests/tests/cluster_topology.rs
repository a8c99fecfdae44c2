//! Cluster mode: nodes form a cluster, follow its topology, and survive the loss of nodes and of the coordinator.

use brisk_testkit::etcd::EtcdLaunch;
use brisk_testkit::server::redis_tool;
use brisk_testkit::{BriskCluster, Launch, wait_until};
use std::process::Command;

/// Keys of the first, the second and the last third of the slots.
const KEYS: [&str; 3] = ["b", "c", "a"];

/// The reply that `redis-cli -c` shows, which follows redirects.
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
    let owners: std::collections::BTreeSet<usize> =
        KEYS.iter().map(|key| cluster.owner(key)).collect();
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
    // The old primary comes back as a replica of the new one.
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
    let log = cluster.node(at).log();
    assert!(log.contains("restarted with its dataset from disk"), "{log}");
}

#[test]
fn a_second_process_with_the_same_nodes_file_is_refused() {
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

#[test]
fn a_topology_is_served_from_etcd() {
    let Some(etcd) = EtcdLaunch::new(1).start() else { return };
    let coordinator = BriskCluster::coordinator_of(&etcd);
    let cluster = BriskCluster::start_with(2, 0, &[("cluster-coordinator", &coordinator)]);
    for key in KEYS {
        wait_until_written(&cluster, key, "v");
        for at in cluster.running() {
            assert_eq!(follow_redirects(&cluster, at, &["GET", key]), "v");
        }
    }
}
