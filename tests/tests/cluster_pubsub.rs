//! Pub/Sub in a cluster: which nodes a message reaches, and what happens if a node is down.

use brisk_testkit::{BriskCluster, Conn, assert_reply, wait_until};

/// The bytes of a message for a RESP2 subscriber.
fn message(kind: &str, channel: &str, payload: &str) -> Vec<u8> {
    let word = |word: &str| format!("${}\r\n{word}\r\n", word.len());
    format!("*3\r\n{}{}{}", word(kind), word(channel), word(payload)).into_bytes()
}

/// A connection that subscribes to a channel.
fn subscriber(cluster: &BriskCluster, at: usize, request: &str) -> Conn {
    let mut conn = cluster.connect(at);
    conn.cmd(request);
    conn
}

/// A subscribed connection to this node, which may be a replica.
fn reader(cluster: &BriskCluster, at: usize, request: &str) -> Conn {
    let mut conn = cluster.connect(at);
    assert_reply!(conn, "READONLY", "OK");
    conn.cmd(request);
    conn
}

#[test]
fn a_message_reaches_the_subscribers_of_every_node_once() {
    let cluster = BriskCluster::start(2, 1);
    let nodes: Vec<usize> = cluster.running().collect();
    let mut listeners: Vec<Conn> =
        nodes.iter().map(|at| subscriber(&cluster, *at, "SUBSCRIBE news")).collect();
    for (number, at) in nodes.iter().enumerate() {
        // The reply counts the subscribers of this node, as in Redis.
        assert_reply!(cluster.connect(*at), &format!("PUBLISH news {number}"), "(integer) 1");
        for listener in &mut listeners {
            listener.expect_bytes(&message("message", "news", &number.to_string()));
        }
    }
    // Messages of one connection arrive in order, and none arrives twice.
    let mut publisher = cluster.connect(nodes[0]);
    for number in 0..1000 {
        publisher.send(&format!("PUBLISH news {number}"));
    }
    for listener in &mut listeners {
        for number in 0..1000 {
            listener.expect_bytes(&message("message", "news", &number.to_string()));
        }
    }
}

#[test]
fn a_message_of_a_shard_stays_in_its_shard() {
    let cluster = BriskCluster::start(2, 1);
    let channel = "b";
    let owner = cluster.owner(channel);
    let id = cluster.node(owner).info("master_replid");
    let is_of_shard = |at: &usize| cluster.node(*at).info("master_replid") == id;
    let shard: Vec<usize> = cluster.running().filter(is_of_shard).collect();
    assert_eq!(shard.len(), 2, "a primary and its replica");
    let mut listeners: Vec<Conn> =
        shard.iter().map(|at| reader(&cluster, *at, &format!("SSUBSCRIBE {channel}"))).collect();
    assert_reply!(cluster.connect(owner), &format!("SPUBLISH {channel} x"), "(integer) 1");
    for listener in &mut listeners {
        listener.expect_bytes(&message("smessage", channel, "x"));
    }
    let other = cluster.running().find(|at| !is_of_shard(at)).unwrap_or_default();
    let reply = cluster.connect(other).cmd(&format!("SPUBLISH {channel} y")).to_string();
    assert!(reply.contains("MOVED"), "{reply}");
}

#[test]
fn a_dead_node_costs_its_messages_and_delays_no_other() {
    let mut cluster = BriskCluster::start(3, 0);
    let mut listener = subscriber(&cluster, 1, "SUBSCRIBE news");
    let mut publisher = cluster.connect(0);
    cluster.kill(2);
    for number in 0..100 {
        publisher.send(&format!("PUBLISH news {number}"));
        listener.expect_bytes(&message("message", "news", &number.to_string()));
    }
    cluster.restart(2);
    cluster.wait_until_ok();
    let mut back = subscriber(&cluster, 2, "SUBSCRIBE news");
    wait_until("messages to reach the restarted node", || {
        publisher.send("PUBLISH news again");
        back.has_reply_within(std::time::Duration::from_millis(100))
    });
}

#[test]
fn messages_of_another_node_are_not_sent_on() {
    let cluster = BriskCluster::start(2, 0);
    let mut listener = subscriber(&cluster, 1, "SUBSCRIBE news");
    // Outside of cluster mode, the option is unknown. In cluster mode, it marks the connection of a node.
    let mut node = cluster.connect(0);
    assert_reply!(node, "REPLCONF brisk-peer 1", "OK");
    assert_reply!(node, "PUBLISH news quiet", "(integer) 0");
    assert_reply!(cluster.connect(0), "PUBLISH news loud", "(integer) 0");
    listener.expect_bytes(&message("message", "news", "loud"));
}
