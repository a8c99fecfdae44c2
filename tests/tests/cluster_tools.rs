//! The unmodified `redis-cli --cluster` works on Brisk nodes that share a directory.
#![allow(clippy::unwrap_used, reason = "a test ends at the first thing that goes wrong")]

use brisk_testkit::brisk_cluster::BriskCluster;
use brisk_testkit::port::Port;
use brisk_testkit::server::{redis_tool, subject_is_redis};
use brisk_testkit::temp_dir::TempDir;
use brisk_testkit::{Conn, Launch, assert_reply, wait_until};
use std::io::Write as _;
use std::process::{Command, Stdio};

const COVERED: &str = "[OK] All 16384 slots covered.";
const AGREE: &str = "[OK] All nodes agree about slots configuration.";

/// Runs `redis-cli --cluster` with the answer `yes` to each prompt, and returns its output. It must succeed.
#[track_caller]
fn cli(words: &[&str]) -> String {
    let (succeeded, text) = try_cli(words);
    assert!(succeeded, "{words:?}: {text}");
    text
}

/// Like [`cli`], but the tool may fail. Also returns whether it succeeded.
fn try_cli(words: &[&str]) -> (bool, String) {
    let mut command = Command::new(redis_tool("redis-cli"));
    command.arg("--cluster").args(words).stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut child = command.spawn().unwrap();
    // A command without a prompt may already have exited.
    let _ = child.stdin.take().unwrap().write_all(b"yes\nyes\n");
    let output = child.wait_with_output().unwrap();
    (output.status.success(), String::from_utf8_lossy(&output.stdout).into_owned())
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

/// Waits until every node lists this number of nodes.
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

    import(&nodes, &first);

    let added = nodes.add(&[]);
    let text = cli(&["add-node", &address(&nodes, added), &first]);
    assert!(text.contains("[OK] New node added correctly."), "{text}");
    wait_for_members(&nodes, &[0, 1, 2, added], 4);
    let id = nodes.connect(added).cmd("CLUSTER MYID").text();
    cli(&["del-node", &first, &id]);
    wait_for_members(&nodes, &[0, 1, 2], 3);
    wait_for_members(&nodes, &[added], 1);
}

/// Imports the keys of a standalone server: first copies them, then moves them.
#[track_caller]
fn import(nodes: &BriskCluster, entry: &str) {
    const KEYS: usize = 50;
    let source = Launch::subject().start();
    let mut conn = source.connect();
    for at in 0..KEYS {
        assert_reply!(conn, &format!("SET key:{at} {at}"), "OK");
    }
    let from = source.address();
    let words = ["import", entry, "--cluster-from", &from];
    let sizes = || (0..nodes.count()).map(|at| nodes.connect(at).cmd("DBSIZE").integer());
    let text = cli(&[&words[..], &["--cluster-copy"]].concat());
    assert_eq!(text.matches("Migrating key:").count(), KEYS, "{text}");
    assert_eq!(conn.cmd("DBSIZE").integer(), KEYS as i64);
    assert_eq!(sizes().sum::<i64>(), KEYS as i64);
    assert!(sizes().all(|size| size > 0), "each node has keys");
    cli(&[&words[..], &["--cluster-replace"]].concat());
    assert_eq!(conn.cmd("DBSIZE").integer(), 0);
    assert_eq!(sizes().sum::<i64>(), KEYS as i64);
}

/// The messages are those that the tool prints for real nodes.
#[test]
fn redis_cli_rejects_a_node_with_keys_unless_it_is_the_first() {
    if subject_is_redis() {
        return;
    }
    let dir = TempDir::new();
    let home = dir.path("").to_string_lossy().into_owned();
    let single = Launch::subject().set("dir", &home).start();
    assert_reply!(single.connect(), "SET key v", "OK");
    assert_reply!(single.connect(), "SAVE", "OK");
    drop(single);
    let mut nodes = BriskCluster::start_apart(3, &[]);
    let with_keys = nodes.add(&[("dir", &home)]);
    let [full, first, second, third] = [with_keys, 0, 1, 2].map(|at| address(&nodes, at));
    let refused = format!("[ERR] Node {full} is not empty.");
    let (succeeded, text) = try_cli(&["create", &first, &second, &full, "--cluster-yes"]);
    assert!(!succeeded && text.contains(&refused), "{text}");
    cli(&["create", &first, &second, &third, "--cluster-yes"]);
    let (succeeded, text) = try_cli(&["add-node", &full, &first, "--cluster-slave"]);
    assert!(!succeeded && text.contains(&refused), "{text}");
    assert_eq!(nodes.connect(with_keys).cmd("DBSIZE").integer(), 1);

    // A server with keys founds another cluster, and an empty node joins as its replica.
    let other = TempDir::new();
    std::fs::copy(dir.path("dump.rdb"), other.path("dump.rdb")).unwrap();
    let home = other.path("").to_string_lossy().into_owned();
    let coordinator = format!("{}-2", nodes.coordinator());
    let directives = [("cluster-coordinator", &*coordinator), ("dir", &*home)];
    let founder = nodes.add(&directives);
    let replica = nodes.add(&directives[..1]);
    assert_reply!(nodes.connect(founder), "CLUSTER ADDSLOTSRANGE 0 16383", "OK");
    let (founder, joining) = (address(&nodes, founder), address(&nodes, replica));
    cli(&["add-node", &joining, &founder, "--cluster-slave"]);
    wait_until("the replica to have the key", || {
        nodes.connect(replica).cmd("DBSIZE").to_string() == "(integer) 1"
    });
}

#[test]
fn redis_cli_fixes_slots_without_an_owner() {
    if subject_is_redis() {
        return;
    }
    let nodes = BriskCluster::start_apart(3, &[]);
    create(&nodes, "0");
    assert_reply!(nodes.connect(0), "CLUSTER DELSLOTS 1 2 3", "OK");
    for at in nodes.running() {
        wait_until("the node to follow", || {
            nodes.connect(at).cmd("CLUSTER INFO").text().contains("cluster_slots_assigned:16381")
        });
    }
    let first = address(&nodes, 0);
    let text = cli(&["fix", &first]);
    assert!(text.contains("Fixing slots coverage..."), "{text}");
    // The check fails if a node does not know the new owners yet.
    for at in nodes.running() {
        wait_until("all slots to have owners", || {
            nodes.connect(at).cmd("CLUSTER INFO").text().contains("cluster_slots_assigned:16384")
        });
    }
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
    // The new node is a replica of any of the primaries. Each of them has a key.
    for key in ["a", "b", "c", "d", "e", "f"] {
        assert_reply!(nodes.connect(nodes.owner(key)), &format!("SET {key} 1"), "OK");
    }
    wait_until("the new node to have a key", || nodes.connect(added).cmd("DBSIZE").text() != "0");
    let id = nodes.connect(added).cmd("CLUSTER MYID").text();
    cli(&["del-node", &first, &id]);
    wait_for_members(&nodes, &[0, 1, 2, 3, 4, 5], 6);
    assert_eq!(nodes.connect(added).cmd("DBSIZE").text(), "0");
    cli(&["add-node", &new, &first, "--cluster-slave"]);
    wait_until("the node to have a key again", || nodes.connect(added).cmd("DBSIZE").text() != "0");
    cli(&["del-node", &first, &id]);
    wait_for_members(&nodes, &[0, 1, 2, 3, 4, 5], 6);

    // A primary without slots is removed, and its replica gets another primary.
    let (leaving, kept) = (nodes.add(&[]), nodes.add(&[]));
    cli(&["add-node", &address(&nodes, leaving), &first]);
    let id = nodes.connect(leaving).cmd("CLUSTER MYID").text();
    wait_for_members(&nodes, &[0, 1, 2, 3, 4, 5], 7);
    let words = ["add-node", &address(&nodes, kept), &first, "--cluster-slave"];
    cli(&[&words[..], &["--cluster-master-id", &id]].concat());
    wait_until("the replica to follow", || nodes.node(kept).info("master_link_status") == "up");
    let (succeeded, text) = try_cli(&["del-node", &first, &id]);
    if succeeded {
        assert!(text.contains("Sending CLUSTER RESET SOFT"), "{text}");
    } else {
        // The tool moves the replica first. If that replica is already loading the dataset of its new primary, it
        // rejects the following FORGET, as in Redis, and the tool gives up. By then, the other nodes have forgotten the
        // removed node.
        assert!(text.contains("LOADING"), "{text}");
        assert_reply!(nodes.connect(leaving), "CLUSTER RESET SOFT", "OK");
    }
    wait_for_members(&nodes, &[0, 1, 2, 3, 4, 5, kept], 7);
    let port = nodes.node(leaving).port().to_string();
    wait_until("the replica to follow another primary", || {
        let mut conn = nodes.connect(kept);
        conn.info("role") == "slave"
            && conn.info("master_port") != port
            && conn.info("master_link_status") == "up"
    });
}

#[test]
fn a_hard_reset_gives_the_node_a_new_id() {
    if subject_is_redis() {
        return;
    }
    let nodes = BriskCluster::start_apart(2, &[]);
    let mut conn = nodes.connect(0);
    let id = conn.cmd("CLUSTER MYID").text();
    assert_reply!(conn, "CLUSTER ADDSLOTSRANGE 0 16383", "OK");
    let meet = format!("CLUSTER MEET 127.0.0.1 {}", nodes.node(1).port());
    assert_reply!(conn, &meet, "OK");
    wait_for_members(&nodes, &[0, 1], 2);
    assert_reply!(conn, "CLUSTER RESET SOFT", "OK");
    assert_eq!(conn.cmd("CLUSTER MYID").text(), id);
    wait_for_members(&nodes, &[0, 1], 1);
    assert_reply!(conn, "CLUSTER RESET HARD", "OK");
    let renewed = conn.cmd("CLUSTER MYID").text();
    assert_ne!(renewed, id);
    assert!(conn.cmd("CLUSTER NODES").text().starts_with(&renewed));
    assert_reply!(conn, &meet, "OK");
    wait_for_members(&nodes, &[0, 1], 2);
    let known = nodes.connect(1).cmd("CLUSTER NODES").text();
    assert!(known.contains(&renewed) && !known.contains(&id), "{known}");
}

/// The reply of `/ready`.
fn readiness(port: &Port) -> String {
    let mut conn = Conn::tcp(&format!("127.0.0.1:{}", port.number()));
    conn.send_raw(b"GET /ready HTTP/1.0\r\nHost: localhost\r\n\r\n");
    String::from_utf8(conn.read_to_end()).unwrap()
}

#[test]
fn a_node_is_ready_once_it_has_a_topology() {
    if subject_is_redis() {
        return;
    }
    let port = Port::claim();
    let nodes = BriskCluster::start_apart(1, &[("http-port", &port.number().to_string())]);
    let text = readiness(&port);
    assert!(text.starts_with("HTTP/1.1 503") || text.starts_with("HTTP/1.0 503"), "{text}");
    assert!(text.contains("no cluster topology"), "{text}");
    assert_reply!(nodes.connect(0), "CLUSTER ADDSLOTSRANGE 0 16383", "OK");
    wait_until("the node to be ready", || readiness(&port).contains(" 200 "));
}

#[test]
fn a_transaction_changes_the_cluster_after_its_reply() {
    if subject_is_redis() {
        return;
    }
    let nodes = BriskCluster::start_apart(1, &[]);
    let mut conn = nodes.connect(0);
    assert_reply!(conn, "CLUSTER ADDSLOTS 1 2", "OK");
    assert_reply!(conn, "MULTI", "OK");
    for command in ["CLUSTER DELSLOTS 3", "CLUSTER ADDSLOTS 3", "CLUSTER ADDSLOTS 2"] {
        assert_reply!(conn, command, "QUEUED");
    }
    let results = conn.cmd("EXEC");
    let results: Vec<String> = results.elements().iter().map(|one| one.to_string()).collect();
    let expected =
        ["(error) ERR Slot 3 is already unassigned", "OK", "(error) ERR Slot 2 is already busy"];
    assert_eq!(results, expected);
    wait_until("the slot to have an owner", || {
        conn.cmd("CLUSTER NODES").text().ends_with(" connected 1-3\n")
    });
}

#[test]
fn a_forced_failover_promotes_a_replica_of_a_running_primary() {
    if subject_is_redis() {
        return;
    }
    let nodes = BriskCluster::start_with(1, 1, &[("cluster-node-timeout", "2000")]);
    let primary = nodes.primaries()[0];
    let replica = 1 - primary;
    let refused = "(error) ERR You should send CLUSTER FAILOVER to a replica";
    assert_reply!(nodes.connect(primary), "CLUSTER FAILOVER TAKEOVER", refused);
    assert_reply!(nodes.connect(replica), "CLUSTER FAILOVER FORCE", "OK");
    wait_until("the roles to change", || nodes.node(primary).info("role") == "slave");
    assert_eq!(nodes.node(replica).info("role"), "master");
    nodes.wait_until_ok();
    let info = nodes.connect(primary).cmd("CLUSTER INFO").text();
    assert!(info.contains("cluster_my_epoch:2\r\n"), "{info}");
    let lines = nodes.connect(primary).cmd("CLUSTER NODES").text();
    let own = lines.lines().find(|line| line.contains("myself,slave")).unwrap();
    let id = nodes.connect(replica).cmd("CLUSTER MYID").text();
    assert!(own.contains(&format!("myself,slave {id} ")), "{lines}");
    wait_until("the primary to list its replica", || {
        let slots = nodes.connect(replica).cmd("CLUSTER SLOTS");
        slots.elements()[0].elements().len() == 4
    });
}
