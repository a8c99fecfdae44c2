//! The facts that a cluster node reports about itself: the address that CONFIG SET announces, and its epochs.

use brisk_testkit::port::Port;
use brisk_testkit::{BriskCluster, Conn, Launch, Server, wait_until};

/// A single real node with its own bus port.
fn real_node(bus: &Port) -> Server {
    let bus = bus.number().to_string();
    Launch::redis().set("cluster-enabled", "yes").set("cluster-port", &bus).start()
}

/// The fields of CLUSTER INFO with these names.
fn info(conn: &mut Conn, names: &[&str]) -> Vec<String> {
    let info = conn.cmd("CLUSTER INFO").text();
    let value = |name: &&str| {
        let value = info.lines().find_map(|line| line.strip_prefix(*name)?.strip_prefix(':'));
        value.unwrap_or_default().to_owned()
    };
    names.iter().map(value).collect()
}

/// The address of a node in its own CLUSTER NODES, SLOTS and SHARDS, without its ID and ports.
fn own_address(conn: &mut Conn, port: u16, bus: &str) -> [String; 3] {
    let id = conn.cmd("CLUSTER MYID").text();
    let normal = |text: &str| {
        text.replace(&id, "ID")
            .replace(&format!("@{bus}"), "@BUS")
            .replace(&port.to_string(), "PORT")
    };
    let [nodes, slots, shards] =
        ["NODES", "SLOTS", "SHARDS"].map(|command| conn.cmd(&format!("CLUSTER {command}")));
    let nodes = nodes.text();
    let line = nodes.lines().find(|line| line.contains("myself")).unwrap_or_default();
    let fields: Vec<&str> = line.split(' ').collect();
    let of_own = |reply: &brisk_testkit::reply::Reply| {
        let all = reply.elements();
        let own = all.iter().map(ToString::to_string).find(|entry| entry.contains(&id));
        normal(&own.unwrap_or_default())
    };
    [normal(&format!("{} {}", fields[1], fields[2])), of_own(&slots), of_own(&shards)]
}

#[test]
fn announced_settings_are_shown_as_soon_as_config_set_replies() {
    let bus = Port::claim();
    let real = real_node(&bus);
    let cluster = BriskCluster::start_apart(1, &[]);
    let node = cluster.node(0);
    let (mut theirs, mut own) = (real.connect(), cluster.connect(0));
    let own_bus = own.cmd("CLUSTER NODES").text();
    let own_bus = own_bus.split(['@', ' ']).nth(2).unwrap_or_default().to_owned();
    let real_bus = bus.number().to_string();
    let settings = [
        "cluster-announce-ip 10.0.0.1",
        "cluster-announce-ip 10.0.0.2",
        "cluster-announce-port 61",
        "cluster-announce-bus-port 62",
        "cluster-announce-hostname host-1.example.com",
        "cluster-preferred-endpoint-type hostname",
        "cluster-announce-hostname host-2.example.com",
        "cluster-preferred-endpoint-type unknown-endpoint",
        "cluster-preferred-endpoint-type ip",
        "cluster-announce-ip 10.0.0.3 cluster-announce-port 0 cluster-announce-bus-port 0",
    ];
    // First as a single node, then as a member with slots.
    for is_member in [false, true] {
        if is_member {
            for conn in [&mut theirs, &mut own] {
                assert_eq!(conn.cmd("CLUSTER ADDSLOTSRANGE 0 16383").to_string(), "OK");
            }
        }
        for setting in settings {
            let line = format!("CONFIG SET {setting}");
            assert_eq!(theirs.cmd(&line).to_string(), "OK", "{setting}");
            assert_eq!(own.cmd(&line).to_string(), "OK", "{setting}");
            let expected = own_address(&mut theirs, real.port(), &real_bus);
            let found = own_address(&mut own, node.port(), &own_bus);
            assert_eq!(found, expected, "{setting}, member: {is_member}");
        }
        // The topology document is updated later.
        wait_until("the topology to have the address", || {
            let path = node.dir().join("topology.json");
            let text = std::fs::read_to_string(path).unwrap_or_default();
            !is_member || (text.contains("10.0.0.3") && text.contains("host-2"))
        });
    }
}

#[test]
fn a_soft_reset_keeps_the_epochs_and_a_hard_one_begins_again() {
    let names = ["cluster_current_epoch", "cluster_my_epoch"];
    let bus = Port::claim();
    let real = real_node(&bus);
    let cluster = BriskCluster::start_apart(2, &[]);
    let mut theirs = real.connect();
    let mut own = cluster.connect(0);
    let epoch_of_line = |conn: &mut Conn| {
        let line = conn.cmd("CLUSTER NODES").text();
        line.split(' ').nth(6).unwrap_or_default().to_owned()
    };
    for conn in [&mut theirs, &mut own] {
        assert_eq!(info(conn, &names), ["0", "0"]);
        assert_eq!(conn.cmd("CLUSTER ADDSLOTS 1 2 3").to_string(), "OK");
        conn.cmd("CLUSTER BUMPEPOCH");
        let before = info(conn, &names);
        assert_ne!(before, ["0", "0"]);
        assert_eq!(conn.cmd("CLUSTER RESET").to_string(), "OK");
        assert_eq!(info(conn, &names), before);
        assert_eq!(epoch_of_line(conn), before[1]);
        assert_eq!(info(conn, &["cluster_known_nodes", "cluster_size"])[0], "1");
        assert_eq!(conn.cmd("CLUSTER RESET HARD").to_string(), "OK");
        assert_eq!(info(conn, &names), ["0", "0"]);
        assert_eq!(epoch_of_line(conn), "0");
    }
    // A node that was never a member reports no epoch, regardless of the document.
    assert_eq!(info(&mut cluster.connect(1), &names), ["0", "0"]);
}

#[test]
fn every_node_names_the_cluster_the_controller_and_the_running_primary() {
    let mut cluster = BriskCluster::start_with(1, 1, &[("cluster-name", "shop")]);
    let mut ids = Vec::new();
    let [primary] = cluster.primaries()[..] else { panic!("one primary") };
    for at in cluster.running() {
        ids.push(cluster.connect(at).cmd("CLUSTER MYID").text());
    }
    let names = ["cluster_name", "cluster_controller", "cluster_registered_nodes"];
    let first = info(&mut cluster.connect(0), &names);
    assert!(first[0] == "shop" && ids.contains(&first[1]), "{first:?} {ids:?}");
    for at in cluster.running() {
        let mut conn = cluster.connect(at);
        wait_until("the node to know the others", || {
            info(&mut conn, &names) == ["shop", &first[1], "2"].map(str::to_owned)
        });
        let [run] = &info(&mut conn, &["cluster_primary_run"])[..] else { panic!("one field") };
        assert!(run.starts_with(&format!("{}@", ids[primary])), "{run} {ids:?}");
    }
    // Another node becomes the controller when the process ends.
    let old = ids.iter().position(|id| *id == first[1]).expect("a position");
    cluster.kill(old);
    let mut conn = cluster.connect(1 - old);
    wait_until("the other node to be the controller", || {
        info(&mut conn, &names[1..2]) == [ids[1 - old].clone()]
    });
}

#[test]
fn a_process_with_a_copied_id_is_reported_with_its_address() {
    let mut cluster = BriskCluster::start_apart(1, &[]);
    let id = cluster.connect(0).cmd("CLUSTER MYID").text();
    let dir = brisk_testkit::temp_dir::TempDir::new();
    std::fs::copy(cluster.node(0).dir().join("nodes.conf"), dir.path("nodes.conf"))
        .expect("a copy");
    let copy = cluster.add(&[("dir", &dir.path("").to_string_lossy())]);
    let address = cluster.node(copy).address();
    wait_until("the first process to name the address of the other one", || {
        let log = cluster.node(0).log();
        log.contains(&format!("node {id} is registered by another process"))
            && log.contains(&format!("; that process announces the address {address}"))
    });
}
