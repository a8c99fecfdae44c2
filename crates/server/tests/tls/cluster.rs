//! Tests of a cluster whose nodes have no plain port. Nodes, replicas, and tools use only TLS.

use super::client::{Client, Site, config};
use brisk_testkit::port::Port;
use brisk_testkit::server::subject_is_redis;
use brisk_testkit::{Conn, Launch, Server, TempDir, assert_reply, wait_until};

/// A node and its TLS port.
struct Node {
    server: Server,
    port: Port,
}

impl Node {
    /// A connection over the Unix socket.
    fn connect(&self) -> Conn {
        self.server.connect_unix()
    }

    fn address(&self) -> String {
        format!("127.0.0.1:{}", self.port.number())
    }

    fn is_primary(&self) -> bool {
        self.connect().info("role") == "master"
    }
}

/// Starts nodes that form a cluster with this number of shards, each with one replica.
fn start(site: &Site, store: &TempDir, shards: usize) -> Vec<Node> {
    let coordinator = format!("local:{}", store.path("coordinator").display());
    let start = |_| {
        let port = Port::claim();
        let launch: Launch = site.launch();
        let server = launch
            .set("port", "0")
            .set("tls-port", &port.number().to_string())
            .set("tls-auth-clients", "yes")
            .set("tls-cluster", "yes")
            .set("tls-replication", "yes")
            .set("cluster-enabled", "yes")
            .set("cluster-coordinator", &coordinator)
            .set("cluster-init-shards", &shards.to_string())
            .set("cluster-init-replicas", "1")
            .set("shutdown-timeout", "10")
            .start();
        Node { server, port }
    };
    let nodes: Vec<Node> = (0..2 * shards).map(start).collect();
    wait_until("every replica to follow its primary", || {
        let is_up = |node: &Node| node.connect().info("master_link_status") == "up";
        let (primaries, replicas): (Vec<_>, Vec<_>) =
            nodes.iter().partition(|node| node.is_primary());
        primaries.len() == shards && replicas.into_iter().all(is_up)
    });
    nodes
}

/// A client with a certificate.
fn client_at(site: &Site, node: &Node) -> Client {
    let config = config(&site.authority, Some(&site.authority.issue()), rustls::ALL_VERSIONS);
    Client::connect(node.port.number(), config).unwrap()
}

/// The node that serves the key, and its replica.
fn shard_of<'n>(nodes: &'n [Node], key: &str) -> [&'n Node; 2] {
    let mut found = None;
    wait_until("a node to serve the key", || {
        let serves = |node: &&Node| !node.connect().cmd(&format!("TYPE {key}")).is_error();
        found = nodes.iter().find(serves);
        found.is_some()
    });
    let primary = found.expect("a node serves the key");
    let port = primary.port.number().to_string();
    let follows = |node: &&Node| {
        let mut conn = node.connect();
        conn.info("role") == "slave" && conn.info("master_port") == port
    };
    [primary, nodes.iter().find(follows).expect("the primary has a replica")]
}

#[test]
fn nodes_without_a_plain_port_form_a_cluster_and_replace_a_primary() {
    if subject_is_redis() {
        return;
    }
    let (site, store) = (Site::new(), TempDir::new());
    let mut nodes = start(&site, &store, 2);

    // Redirects and CLUSTER SLOTS name the TLS port.
    let [primary, replica] = shard_of(&nodes, "key");
    let moved = format!("(error) MOVED 12539 {}", primary.address());
    let mut client = client_at(&site, primary);
    assert_eq!(client.request(&["SET", "key", "1"]).to_string(), "OK");
    let mut client = client_at(&site, replica);
    assert_eq!(client.request(&["SET", "key", "2"]).to_string(), moved);
    // A replica is listed once it has reported that it is online.
    wait_until("all nodes to be listed", || {
        let slots = client.request(&["CLUSTER", "SLOTS"]).to_string();
        nodes.iter().all(|node| slots.contains(&format!("(integer) {}", node.port.number())))
    });

    // Messages reach subscribers on all nodes.
    for (from, to) in [(0, 3), (3, 0), (1, 2)] {
        let (mut subscriber, mut publisher) = (nodes[to].connect(), nodes[from].connect());
        // Use a separate channel each time, because the previous subscriber may not be gone yet.
        subscriber.cmd(&format!("SUBSCRIBE news{from}"));
        assert_eq!(publisher.cmd(&format!("PUBLISH news{from} hello")).integer(), 0);
        assert!(subscriber.reply().to_string().contains("hello"));
    }

    // Test the planned switch, to the replica and back.
    for _ in 0..2 {
        let [primary, replica] = shard_of(&nodes, "key");
        assert_reply!(replica.connect(), "CLUSTER FAILOVER", "OK");
        wait_until("the roles to change", || replica.is_primary() && !primary.is_primary());
        wait_until("the former primary to follow", || {
            primary.connect().info("master_link_status") == "up"
        });
        assert_reply!(replica.connect(), "GET key", "\"1\"");
    }

    // Test the failover.
    let lost = shard_of(&nodes, "key")[0].port.number();
    let lost = nodes.iter().position(|node| node.port.number() == lost).expect("it is a node");
    nodes[lost].server.kill_for_now();
    drop(nodes.remove(lost));
    wait_until("the replica to replace its primary", || {
        nodes.iter().any(|node| node.connect().cmd("GET key").to_string() == "\"1\"")
    });
}
