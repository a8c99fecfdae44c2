//! Servers that have keys when they are configured as nodes of a new cluster. No node may lose them without a command
//! of an operator.

use brisk_testkit::temp_dir::TempDir;
use brisk_testkit::{BriskCluster, Conn, Launch, assert_reply, wait_until};

const KEYS: i64 = 5;
/// The log lines of the node, and of the controller.
const AT_NODE: &str = "this node has keys, so it does not join the cluster on its own";
const AT_CONTROLLER: &str = "has keys, so the cluster is formed without it. ";

/// The directory of a server that was not a node of a cluster, with a snapshot of some keys.
fn dataset() -> TempDir {
    let dir = TempDir::new();
    let server = Launch::subject().set("dir", &dir.path("").to_string_lossy()).start();
    let mut conn = server.connect();
    for at in 0..KEYS {
        assert_reply!(conn, &format!("SET key:{at} {at}"), "OK");
    }
    assert_reply!(conn, "SAVE", "OK");
    dir
}

/// Adds a node that begins with the files in `dir`, and loads each key for 100 ms.
#[track_caller]
fn add_with_keys(cluster: &mut BriskCluster, dir: &TempDir, directives: &[(&str, &str)]) -> usize {
    let dir = dir.path("");
    let own = [("dir", &*dir.to_string_lossy()), ("key-load-delay", "100000")]
        .map(|(n, v)| (n, v.to_owned()));
    let own: Vec<(&str, &str)> = own.iter().map(|(name, value)| (*name, &**value)).collect();
    cluster.add(&[directives, &own].concat())
}

fn forming(shards: &'static str, replicas: &'static str) -> [(&'static str, &'static str); 2] {
    [("cluster-init-shards", shards), ("cluster-init-replicas", replicas)]
}

#[track_caller]
fn wait_for_log(cluster: &BriskCluster, positions: &[usize], text: &str) {
    wait_until(text, || positions.iter().any(|at| cluster.node(*at).log().contains(text)));
}

fn is_ok(conn: &mut Conn) -> bool {
    conn.cmd("CLUSTER INFO").text().contains("cluster_state:ok")
}

#[test]
fn a_node_with_keys_is_left_out_when_a_cluster_is_formed() {
    let (dir, directives) = (dataset(), forming("1", "1"));
    let mut cluster = BriskCluster::start_apart(1, &directives);
    // Both nodes are registered while the second one loads its keys.
    let with_keys = add_with_keys(&mut cluster, &dir, &directives);
    wait_for_log(&cluster, &[with_keys], AT_NODE);
    let wanted = "1 of the 2 nodes that are needed are registered and have no keys";
    wait_for_log(&cluster, &[0, with_keys], &format!("{AT_CONTROLLER}{wanted}"));
    let mut conn = cluster.connect(with_keys);
    let id = conn.cmd("CLUSTER MYID").text();
    let (address, port) = (cluster.node(with_keys).address(), cluster.node(with_keys).port());
    wait_for_log(&cluster, &[0, with_keys], &format!("node {id} ({address}) {AT_CONTROLLER}"));
    let outsider = format!("id={id},ip=127.0.0.1,port={port},contents=keys");
    wait_until("the other node to show that this one has keys", || {
        cluster.connect(0).cmd("INFO brisk").text().contains(&outsider)
    });
    assert_eq!((conn.info("role"), conn.cmd("DBSIZE").integer()), ("master".to_owned(), KEYS));

    // Another empty node completes the cluster.
    cluster.add(&directives);
    for at in [0, 2] {
        let mut other = cluster.connect(at);
        wait_until("the cluster to be formed", || is_ok(&mut other));
        assert_eq!(other.cmd("CLUSTER NODES").text().lines().count(), 2);
    }
    assert_eq!((conn.info("role"), conn.cmd("DBSIZE").integer()), ("master".to_owned(), KEYS));
    // The files still contain the keys, too.
    cluster.terminate(with_keys);
    cluster.restart(with_keys);
    let mut conn = cluster.connect(with_keys);
    assert_eq!((conn.info("role"), conn.cmd("DBSIZE").integer()), ("master".to_owned(), KEYS));
    // It cannot become a replica before an operator deletes its keys.
    let meet = format!("CLUSTER MEET 127.0.0.1 {}", cluster.node(0).port());
    assert_reply!(conn, &meet, "OK");
    let primary = cluster.primaries().into_iter().find(|at| *at != with_keys).expect("a primary");
    let id = cluster.connect(primary).cmd("CLUSTER MYID").text();
    let replicate = format!("CLUSTER REPLICATE {id}");
    let refused = "(error) ERR To set a master the node must be empty and without assigned slots.";
    assert_reply!(conn, &replicate, refused);
    assert_reply!(conn, "FLUSHALL", "OK");
    assert_reply!(conn, &replicate, "OK");
    cluster.wait_until_ok();
}

#[test]
fn a_node_whose_keys_were_deleted_joins_the_formation() {
    let (dir, directives) = (dataset(), forming("1", "1"));
    let mut cluster = BriskCluster::start_apart(1, &directives);
    let with_keys = add_with_keys(&mut cluster, &dir, &directives);
    wait_for_log(&cluster, &[0, with_keys], AT_CONTROLLER);
    assert_reply!(cluster.connect(with_keys), "FLUSHALL", "OK");
    cluster.wait_until_ok();
    assert_eq!(cluster.connect(with_keys).cmd("CLUSTER NODES").text().lines().count(), 2);
}

/// The way to keep the keys that the log describes.
#[test]
fn a_server_with_keys_becomes_the_primary_of_the_only_shard() {
    let (dir, directives) = (dataset(), forming("1", "1"));
    let mut cluster = BriskCluster::start_apart(1, &directives);
    let with_keys = add_with_keys(&mut cluster, &dir, &directives);
    wait_for_log(&cluster, &[with_keys], "send CLUSTER ADDSLOTSRANGE 0 16383 to this node");
    let mut conn = cluster.connect(with_keys);
    assert_reply!(conn, "CLUSTER ADDSLOTSRANGE 0 16383", "OK");
    wait_until("the node to serve its keys", || conn.cmd("GET key:1").to_string() == "\"1\"");
    let mut other = cluster.connect(0);
    assert_reply!(
        other,
        &format!("CLUSTER MEET 127.0.0.1 {}", cluster.node(with_keys).port()),
        "OK"
    );
    let id = conn.cmd("CLUSTER MYID").text();
    assert_reply!(other, &format!("CLUSTER REPLICATE {id}"), "OK");
    cluster.wait_until_ok();
    let size = format!("(integer) {KEYS}");
    wait_until("the replica to have the keys", || other.cmd("DBSIZE").to_string() == size);
    assert_eq!(cluster.primaries(), [with_keys]);
}
