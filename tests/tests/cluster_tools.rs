//! The unmodified `redis-cli --cluster` works on Brisk nodes that share a directory.
#![allow(clippy::unwrap_used, reason = "a test ends at the first thing that goes wrong")]

use brisk_testkit::brisk_cluster::BriskCluster;
use brisk_testkit::server::{redis_tool, subject_is_redis};
use brisk_testkit::{assert_reply, wait_until};
use std::process::{Command, Stdio};

const COVERED: &str = "[OK] All 16384 slots covered.";
const AGREE: &str = "[OK] All nodes agree about slots configuration.";

/// Runs `redis-cli --cluster` and returns its output. It must succeed.
#[track_caller]
fn cli(words: &[&str]) -> String {
    let mut command = Command::new(redis_tool("redis-cli"));
    command.arg("--cluster").args(words).stdin(Stdio::null());
    let output = command.output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "{words:?}: {text}");
    text
}

fn address(nodes: &BriskCluster, at: usize) -> String {
    format!("127.0.0.1:{}", nodes.node(at).port())
}

/// Forms a cluster of all nodes.
#[track_caller]
fn create(nodes: &BriskCluster, replicas_each: &str) -> String {
    let addresses: Vec<String> = (0..nodes.count()).map(|at| address(nodes, at)).collect();
    let mut words = vec!["create"];
    words.extend(addresses.iter().map(String::as_str));
    words.extend(["--cluster-replicas", replicas_each, "--cluster-yes"]);
    cli(&words)
}

/// Waits until every node shows this number of nodes.
#[track_caller]
fn wait_for_members(nodes: &BriskCluster, positions: &[usize], count: usize) {
    for at in positions {
        let mut conn = nodes.connect(*at);
        wait_until("the node to know the others", || {
            conn.cmd("CLUSTER NODES").text().lines().count() == count
        });
    }
}

#[test]
fn redis_cli_creates_checks_grows_and_shrinks_a_cluster_of_primaries() {
    if subject_is_redis() {
        return;
    }
    let mut nodes = BriskCluster::start_apart(3, &[]);
    let text = create(&nodes, "0");
    assert!(text.contains(AGREE) && text.contains(COVERED), "{text}");
    let first = address(&nodes, 0);
    let text = cli(&["check", &first]);
    assert!(text.contains("slots:[0-5460] (5461 slots) master"), "{text}");
    assert!(text.contains(AGREE) && text.contains(COVERED), "{text}");
    let text = cli(&["info", &first]);
    assert!(text.contains("[OK] 0 keys in 3 masters."), "{text}");
    let text = cli(&["call", &first, "PING"]);
    assert_eq!(text.matches(": PONG").count(), 3, "{text}");

    let added = nodes.add(&[]);
    let text = cli(&["add-node", &address(&nodes, added), &first]);
    assert!(text.contains("[OK] New node added correctly."), "{text}");
    wait_for_members(&nodes, &[0, 1, 2, added], 4);
    let id = nodes.connect(added).cmd("CLUSTER MYID").text();
    cli(&["del-node", &first, &id]);
    wait_for_members(&nodes, &[0, 1, 2], 3);
    wait_for_members(&nodes, &[added], 1);
}

#[test]
fn redis_cli_fixes_slots_without_an_owner() {
    if subject_is_redis() {
        return;
    }
    let nodes = BriskCluster::start_apart(3, &[]);
    create(&nodes, "0");
    assert_reply!(nodes.connect(0), "CLUSTER DELSLOTS 1 2 3", "OK");
    let first = address(&nodes, 0);
    let text = cli(&["fix", &first, "--cluster-yes"]);
    assert!(text.contains("Fixing slots coverage..."), "{text}");
    wait_until("all slots to have owners", || {
        nodes.connect(0).cmd("CLUSTER INFO").text().contains("cluster_slots_assigned:16384")
    });
    let text = cli(&["check", &first]);
    assert!(text.contains(COVERED), "{text}");
}

#[test]
fn redis_cli_creates_a_cluster_with_replicas() {
    if subject_is_redis() {
        return;
    }
    let mut nodes = BriskCluster::start_apart(6, &[]);
    let text = create(&nodes, "1");
    assert!(text.contains(AGREE) && text.contains(COVERED), "{text}");
    assert!(text.contains("1 additional replica(s)"), "{text}");
    nodes.wait_until_ok();
    let first = address(&nodes, 0);
    let added = nodes.add(&[]);
    let new = address(&nodes, added);
    let text = cli(&["add-node", &new, &first, "--cluster-slave"]);
    assert!(text.contains("[OK] New node added correctly."), "{text}");
    wait_until("the new node to follow its primary", || {
        nodes.connect(added).info("master_link_status") == "up"
    });
    let id = nodes.connect(added).cmd("CLUSTER MYID").text();
    cli(&["del-node", &first, &id]);
    wait_for_members(&nodes, &[0, 1, 2, 3, 4, 5], 6);
}
