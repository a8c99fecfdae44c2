//! CLUSTER commands compared with a real cluster. Brisk nodes follow a topology document with the IDs, ports and slots
//! of the real nodes, so the replies must be equal, except for times and offsets.
#![allow(clippy::unwrap_used, reason = "a test ends at the first thing that goes wrong")]

use brisk_testkit::cluster::Cluster;
use brisk_testkit::port::Port;
use brisk_testkit::reply::Reply;
use brisk_testkit::server::{Program, subject_is_redis};
use brisk_testkit::{Conn, Launch, Server, TempDir, assert_reply, wait_until};
use serde_json::{Map, Value, json};

/// A shard ID and an incarnation. Both are arbitrary.
const ID: &str = "1111111111111111111111111111111111111111";

/// A node that follows a document from a file.
struct Node {
    server: Server,
    _dir: TempDir,
}

impl Node {
    /// Starts the node with this ID.
    fn start(id: &str, document: &Value, directives: &[(&str, &str)]) -> Node {
        Node::start_with(Launch::new(Program::Brisk), id, document, directives)
    }

    fn start_with(launch: Launch, id: &str, document: &Value, directives: &[(&str, &str)]) -> Node {
        let dir = TempDir::new();
        let (file, nodes) = (dir.path("topology.json"), dir.path("nodes.conf"));
        std::fs::write(&file, document.to_string()).unwrap();
        let own = format!("{id} 127.0.0.1:1@2 myself,master - 0 0 0 connected\n");
        std::fs::write(&nodes, own).unwrap();
        let launch = launch
            .set("cluster-enabled", "yes")
            .set("cluster-config-file", nodes.to_str().unwrap())
            .set("cluster-coordinator", &format!("static:{}", file.display()));
        let add = |launch: Launch, (name, value): &(&str, &str)| launch.set(name, value);
        let server = directives.iter().fold(launch, add).start();
        let node = Node { server, _dir: dir };
        wait_until("the node to be registered", || {
            field(&node.connect().cmd("CLUSTER INFO").text(), "cluster_fenced") == "0"
        });
        node
    }

    fn connect(&self) -> Conn {
        self.server.connect()
    }
}

/// Waits until a replica is connected to its primary.
fn wait_for_link(node: &Node) {
    wait_until("the replica to follow its primary", || {
        node.server.info("role") == "master" || node.server.info("master_link_status") == "up"
    });
}

/// The document of a cluster without members.
fn empty_document() -> Value {
    json!({ "format": 1, "epoch": 0, "change": format!("{ID}@1:1") })
}

/// The document of a cluster that is identical to the real one.
fn document_of(real: &Cluster) -> Value {
    let mut node = real.node(0).connect();
    let (mut members, mut shards) = (Map::new(), Vec::new());
    let text = node.cmd("CLUSTER NODES").text();
    let lines: Vec<Vec<&str>> = text.lines().map(|line| line.split(' ').collect()).collect();
    for (at, line) in lines.iter().enumerate() {
        let [id, address, flags, _, _, _, term, _, slots @ ..] = &line[..] else {
            panic!("{text}")
        };
        members.insert((*id).to_owned(), member_of(address));
        if flags.contains("slave") {
            continue;
        }
        let is_replica = |other: &&Vec<&str>| other[3] == *id;
        let replicas: Vec<&str> = lines.iter().filter(is_replica).map(|other| other[0]).collect();
        let slots: Vec<Value> = slots.iter().map(|range| range_of(range)).collect();
        let term: u64 = term.parse().unwrap();
        shards.push(json!({
            "id": format!("{at:0>40}"), "slots": slots, "term": term, "primary": id,
            "isr": [format!("{id}@1")], "replicas": replicas,
        }));
    }
    let epoch: u64 =
        field(&node.cmd("CLUSTER INFO").text(), "cluster_current_epoch").parse().unwrap();
    json!({
        "format": 1, "epoch": epoch, "change": format!("{ID}@1:1"), "members": members, "shards": shards,
    })
}

/// A member of the document from `ip:port@bus,host`.
fn member_of(address: &str) -> Value {
    let (address, host) = address.split_once(',').unwrap_or((address, ""));
    let (ip, ports) = address.rsplit_once(':').unwrap();
    let (port, bus) = ports.split_once('@').unwrap();
    let (port, bus): (u16, u16) = (port.parse().unwrap(), bus.parse().unwrap());
    json!({ "ip": ip, "port": port, "bus": bus, "host": host })
}

fn range_of(text: &str) -> Value {
    let (first, last) = text.split_once('-').unwrap_or((text, text));
    json!([first.parse::<u16>().unwrap(), last.parse::<u16>().unwrap()])
}

/// The value of a field of CLUSTER INFO.
fn field<'t>(text: &'t str, name: &str) -> &'t str {
    let found = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
    found.unwrap_or_else(|| panic!("no {name} in {text}"))
}

/// A line of CLUSTER NODES in which the two times are replaced.
fn without_times(line: &str) -> String {
    let mut fields: Vec<&str> = line.split(' ').collect();
    (fields[4], fields[5]) = ("0", "0");
    fields.join(" ")
}

/// Normalizes a reply, so that the order of its lines and elements and its times do not depend on the node that sends
/// it.
fn normal(command: &str, reply: Reply) -> Reply {
    let text = |reply: &Reply| match reply {
        Reply::Verbatim(bytes) | Reply::Bulk(bytes) => String::from_utf8(bytes.clone()).unwrap(),
        other => panic!("{other}"),
    };
    let as_before = |reply: &Reply, text: String| match reply {
        Reply::Verbatim(_) => Reply::Verbatim(text.into_bytes()),
        _ => Reply::Bulk(text.into_bytes()),
    };
    if reply.is_error() {
        return reply;
    }
    match (command.split(' ').nth(1).unwrap(), &reply) {
        ("NODES", _) => {
            let found = text(&reply);
            let (format, found) =
                found.split_at(found.find(':').filter(|at| *at == 3).map_or(0, |at| at + 1));
            let mut lines: Vec<String> = found.lines().map(without_times).collect();
            lines.sort();
            as_before(&reply, format!("{format}{}\n", lines.join("\n")))
        }
        ("REPLICAS" | "SLAVES", Reply::Array(lines)) => {
            let lines = lines.iter().map(|line| as_before(line, without_times(&text(line))));
            Reply::Array(lines.collect())
        }
        ("INFO", _) => {
            let is_compared = |line: &&str| {
                let own = ["cluster_coordinator", "cluster_document_", "cluster_shard_"];
                let more = [
                    "cluster_lease_",
                    "cluster_primary_run",
                    "cluster_fenced",
                    "cluster_migrations",
                ];
                let names = ["cluster_name", "cluster_controller", "cluster_registered_nodes"];
                let stats = ["cluster_stats_messages_", "total_cluster_links"];
                let ignored = own.iter().chain(&more).chain(&names).chain(&stats);
                !ignored.copied().any(|begin| line.starts_with(begin))
            };
            let found = text(&reply);
            let lines: Vec<&str> = found.split("\r\n").filter(is_compared).collect();
            as_before(&reply, lines.join("\r\n"))
        }
        ("SHARDS", Reply::Array(shards)) => {
            let mut shards: Vec<Reply> = shards.iter().map(without_offsets).collect();
            shards.sort();
            Reply::Array(shards)
        }
        _ => reply,
    }
}

/// A part of CLUSTER SHARDS with each replication offset replaced by 0.
fn without_offsets(reply: &Reply) -> Reply {
    let is_offset = |name: &Reply| name.text() == "replication-offset";
    match reply {
        Reply::Map(pairs) => Reply::Map(
            pairs
                .iter()
                .map(|(name, value)| match is_offset(name) {
                    true => (name.clone(), Reply::Integer(0)),
                    false => (name.clone(), without_offsets(value)),
                })
                .collect(),
        ),
        Reply::Array(items) => {
            let mut items: Vec<Reply> = items.iter().map(without_offsets).collect();
            let offset = items.iter().position(is_offset);
            if let Some(at) = offset {
                items[at + 1] = Reply::Integer(0);
            }
            Reply::Array(items)
        }
        other => other.clone(),
    }
}

/// Compares the replies of two nodes in both protocols.
#[track_caller]
fn assert_equal_replies(real: &Server, node: &Node, commands: &[String]) {
    for protocol in [2, 3] {
        let (mut theirs, mut own) = (real.connect(), node.connect());
        theirs.hello(protocol);
        own.hello(protocol);
        for command in commands {
            let expected = normal(command, theirs.cmd(command));
            assert_eq!(normal(command, own.cmd(command)), expected, "RESP{protocol} {command}");
        }
    }
}

#[test]
fn a_cluster_is_described_as_a_real_node_describes_it() {
    if subject_is_redis() {
        return;
    }
    let real = Cluster::start(3, 1);
    let document = document_of(&real);
    let id = |at: usize| real.node(at).connect().cmd("CLUSTER MYID").text();
    for at in [0, 3] {
        let node = Node::start(&id(at), &document, &[]);
        wait_for_link(&node);
        let mut commands: Vec<String> = ["INFO", "NODES", "SLOTS", "SHARDS", "MYID"]
            .map(|name| format!("CLUSTER {name}"))
            .to_vec();
        for other in [&id(0), &id(3), "abc", &"0".repeat(40)] {
            for name in ["REPLICAS", "SLAVES", "COUNT-FAILURE-REPORTS"] {
                commands.push(format!("CLUSTER {name} {other}"));
            }
        }
        for key in ["a", "{a}b", "''"] {
            commands.push(format!("CLUSTER KEYSLOT {key}"));
        }
        assert_equal_replies(real.node(at), &node, &commands);
        for kind in ["hostname", "unknown-endpoint"] {
            let set = format!("CONFIG SET cluster-preferred-endpoint-type {kind}");
            real.node(at).connect().cmd(&set);
            assert_reply!(node.connect(), &set, "OK");
            assert_equal_replies(real.node(at), &node, &commands[..4]);
        }
        for (command, line) in
            [("INFO cluster", "cluster_enabled:1"), ("INFO server", "redis_mode:cluster")]
        {
            let text = node.connect().cmd(command).text();
            assert!(text.lines().any(|found| found == line), "{text}");
        }
        let hello = node.connect().cmd("HELLO 3");
        assert_eq!(hello.field("mode").unwrap().text(), "cluster");
    }
}

#[test]
fn host_names_are_shown_as_a_real_node_shows_them() {
    if subject_is_redis() {
        return;
    }
    let real = Cluster::start_with(2, 0, &[("cluster-announce-hostname", "host.example.com")]);
    wait_until("the nodes to know the host names", || {
        let text = real.node(0).connect().cmd("CLUSTER NODES").text();
        text.lines().all(|line| line.contains(",host.example.com"))
    });
    let id = real.node(0).connect().cmd("CLUSTER MYID").text();
    let node = Node::start(&id, &document_of(&real), &[]);
    let commands = ["NODES", "SLOTS", "SHARDS"].map(|name| format!("CLUSTER {name}"));
    for kind in ["ip", "hostname", "unknown-endpoint"] {
        let set = format!("CONFIG SET cluster-preferred-endpoint-type {kind}");
        real.node(0).connect().cmd(&set);
        assert_reply!(node.connect(), &set, "OK");
        assert_equal_replies(real.node(0), &node, &commands);
    }
}

/// Commands that a node rejects if it knows no other nodes, or that change nothing on it. `MYID` is the node's own ID.
const UNMET: &[&str] = &[
    "INFO",
    "SLOTS",
    "LINKS",
    "INFO x",
    "NOSUCH",
    "COUNTKEYSINSLOT 5",
    "COUNTKEYSINSLOT -1",
    "COUNTKEYSINSLOT 16384",
    "COUNTKEYSINSLOT abc",
    "GETKEYSINSLOT 5 -1",
    "GETKEYSINSLOT 5 10",
    "GETKEYSINSLOT 16384 10",
    "GETKEYSINSLOT abc 10",
    "GETKEYSINSLOT 5 abc",
    "GETKEYSINSLOT 16384 abc",
    "REPLICAS abc",
    "REPLICAS MYID",
    "SLAVES abc",
    "COUNT-FAILURE-REPORTS abc",
    "COUNT-FAILURE-REPORTS MYID",
    "MEET 127.0.0.1",
    "MEET abc 7000",
    "MEET 127.0.0.1 abc",
    "MEET 127.0.0.1 0",
    "MEET 127.0.0.1 70000",
    "MEET 127.0.0.1 7000 abc",
    "MEET 127.0.0.1 7000 70000",
    "MEET 127.0.0.1 7000 17000 x",
    "ADDSLOTS",
    "ADDSLOTS abc",
    "ADDSLOTS 16384",
    "ADDSLOTS 5 5",
    "ADDSLOTS 05",
    "ADDSLOTSRANGE 5 4",
    "ADDSLOTSRANGE 5",
    "ADDSLOTSRANGE 5 6 7",
    "ADDSLOTSRANGE 5 abc",
    "ADDSLOTSRANGE 5 7 6 8",
    "DELSLOTS 5",
    "DELSLOTS abc",
    "DELSLOTSRANGE 5 6",
    "DELSLOTSRANGE 5 6 7",
    "DELSLOTSRANGE 6 5",
    "FLUSHSLOTS",
    "FLUSHSLOTS x",
    "REPLICATE abc",
    "REPLICATE MYID",
    "REPLICATE 0123456789012345678901234567890123456789",
    "FORGET abc",
    "FORGET MYID",
    "SET-CONFIG-EPOCH abc",
    "SET-CONFIG-EPOCH -1",
    "SETSLOT 5 STABLE",
    "SETSLOT abc STABLE",
    "SETSLOT 16384 STABLE",
    "SETSLOT 5 FOO",
    "SETSLOT 5 STABLE x",
    "SETSLOT 5 NODE",
    "SETSLOT 5 NODE abc",
    "SETSLOT 5 IMPORTING abc",
    "SETSLOT 5 MIGRATING abc",
    "FAILOVER",
    "FAILOVER FORCE",
    "FAILOVER TAKEOVER",
    "FAILOVER x",
    "FAILOVER FORCE x",
    "RESET x",
    "RESET SOFT x",
    "RESET SOFT",
    "RESET",
    "SAVECONFIG",
];

#[test]
fn a_node_without_others_replies_as_a_real_one() {
    if subject_is_redis() {
        return;
    }
    let bus = Port::claim();
    let real = Launch::redis()
        .set("cluster-enabled", "yes")
        .set("cluster-port", &bus.number().to_string())
        .start();
    let node = Node::start(ID, &empty_document(), &[]);
    let id = real.connect().cmd("CLUSTER MYID").text();
    // Redis first computes the state two seconds after its start.
    wait_until("the real node to count the shards with slots", || {
        field(&real.connect().cmd("CLUSTER INFO").text(), "cluster_size") == "0"
    });
    for protocol in [2, 3] {
        let (mut theirs, mut own) = (real.connect(), node.connect());
        theirs.hello(protocol);
        own.hello(protocol);
        for words in UNMET {
            let command = format!("CLUSTER {words}");
            let expected = normal(&command, theirs.cmd(&command.replace("MYID", &id)));
            let found = normal(&command, own.cmd(&command.replace("MYID", ID)));
            assert_eq!(found, expected, "RESP{protocol} {command}");
        }
        for (command, expected) in
            [("ROLE", theirs.cmd("ROLE")), ("CLUSTER", theirs.cmd("CLUSTER"))]
        {
            assert_eq!(own.cmd(command), expected, "RESP{protocol} {command}");
        }
    }
    let mut conn = node.connect();
    assert_reply!(conn, "CLUSTER BUMPEPOCH", "STILL 0");
    assert_reply!(conn, "CLUSTER SET-CONFIG-EPOCH 5", "OK");
    assert_eq!(conn.cmd("CLUSTER MYSHARDID").text().len(), 40);
    let nodes = conn.cmd("CLUSTER NODES").text();
    let line = nodes.strip_suffix('\n').unwrap();
    let port = node.server.port();
    let bus = u32::from(port) + 10_000;
    let expected = match u16::try_from(bus) {
        Ok(bus) => format!("{ID} 127.0.0.1:{port}@{bus} myself,master - 0 0 0 connected"),
        Err(_) => format!("{ID} 127.0.0.1:{port}@0 myself,master - 0 0 0 connected"),
    };
    assert_eq!(without_times(line), expected);
    let fixed = "(error) ERR the topology comes from a file (static:) and cannot be changed";
    for command in ["CLUSTER ADDSLOTS 1", "CLUSTER SETSLOT 1 NODE", "CLUSTER ADDSLOTSRANGE 1 2"] {
        let command =
            if command.ends_with("NODE") { format!("{command} {ID}") } else { command.to_owned() };
        assert_eq!(conn.cmd(&command).to_string(), fixed, "{command}");
    }
}

/// Errors of members. `MINE` is the node itself, `OWN` its replica or primary, `OTHER` another primary and `THEIRS` the
/// replica of that primary.
const AT_PRIMARY: &[&str] = &[
    "SETSLOT 5 IMPORTING OTHER",
    "SETSLOT 6000 IMPORTING abc",
    "SETSLOT 6000 IMPORTING THEIRS",
    "SETSLOT 6000 MIGRATING THEIRS",
    "SETSLOT 5 MIGRATING abc",
    "SETSLOT 5 MIGRATING THEIRS",
    "SETSLOT 5 NODE THEIRS",
    "SETSLOT 5 NODE abc",
    "SETSLOT 5 NODE MINE",
    "SETSLOT 6000 NODE MINEX",
    "SETSLOT 5 STABLE",
    "REPLICATE OTHER",
    "REPLICATE THEIRS",
    "FAILOVER",
    "FAILOVER FORCE",
    "ADDSLOTS 5",
    "ADDSLOTS 6000",
    "ADDSLOTSRANGE 100 200",
    "FORGET MINE",
];

const AT_REPLICA: &[&str] = &[
    "REPLICATE OWN",
    "REPLICATE THEIRS",
    "FORGET OWN",
    "FORGET MINE",
    "SETSLOT 5 NODE OWN",
    "SETSLOT 5 STABLE",
    "SETSLOT 5 MIGRATING OTHER",
    "SETSLOT abc",
    "ADDSLOTS 5",
    "FAILOVER x",
    "GETKEYSINSLOT 5 5",
    "COUNTKEYSINSLOT 5",
];

#[test]
fn members_reject_changes_as_real_ones() {
    if subject_is_redis() {
        return;
    }
    let real = Cluster::start(2, 1);
    let document = document_of(&real);
    let id = |at: usize| real.node(at).connect().cmd("CLUSTER MYID").text();
    for (at, commands) in [(0, AT_PRIMARY), (2, AT_REPLICA)] {
        let node = Node::start(&id(at), &document, &[]);
        wait_for_link(&node);
        let (own, other, theirs) = (id(2 - at), id(1), id(3));
        let named = |text: &str| {
            text.replace("OTHER", &other)
                .replace("THEIRS", &theirs)
                .replace("OWN", &own)
                .replace("MINE", &id(at))
        };
        let commands: Vec<String> =
            commands.iter().map(|text| format!("CLUSTER {}", named(text))).collect();
        assert_equal_replies(real.node(at), &node, &commands);
    }
}

#[test]
fn keys_of_a_slot_are_counted_and_listed() {
    if subject_is_redis() {
        return;
    }
    let member = json!({ "ip": "127.0.0.1", "port": 7000 });
    let shard = json!({
        "id": ID, "slots": [[0, 16383]], "term": 1, "primary": ID, "isr": [format!("{ID}@1")],
    });
    let mut document = empty_document();
    document["members"] = json!({ ID: member });
    document["shards"] = json!([shard]);
    let node = Node::start(ID, &document, &[]);
    let mut conn = node.connect();
    let slot = conn.cmd("CLUSTER KEYSLOT {a}").integer();
    for n in 0..100 {
        assert_reply!(conn, &format!("SET {{a}}{n} x"), "OK");
    }
    assert_eq!(conn.cmd(&format!("CLUSTER COUNTKEYSINSLOT {slot}")).integer(), 100);
    assert_eq!(conn.cmd(&format!("CLUSTER COUNTKEYSINSLOT {}", slot + 1)).integer(), 0);
    for (count, expected) in [(0, 0), (1, 1), (99, 99), (100, 100), (1000, 100)] {
        let reply = conn.cmd(&format!("CLUSTER GETKEYSINSLOT {slot} {count}"));
        let mut keys: Vec<String> = reply.elements().iter().map(|key| key.text()).collect();
        keys.sort();
        keys.dedup();
        assert_eq!(keys.len(), expected);
        assert!(keys.iter().all(|key| key.starts_with("{a}")), "{keys:?}");
    }
    assert_reply!(
        conn,
        &format!("CLUSTER DELSLOTS {slot}"),
        format!("(error) ERR Slot {slot} is not empty")
    );
    assert_reply!(
        conn,
        "CLUSTER FLUSHSLOTS",
        "(error) ERR DB must be empty to perform CLUSTER FLUSHSLOTS."
    );
    assert_reply!(conn, "MULTI", "OK");
    assert_reply!(conn, &format!("CLUSTER GETKEYSINSLOT {slot} 1"), "QUEUED");
    assert_reply!(conn, "GET {a}1", "QUEUED");
    let results = conn.cmd("EXEC");
    let results = results.elements();
    assert_eq!((results[0].elements().len(), results[1].text()), (1, "x".to_owned()));
}

#[test]
fn the_metrics_and_readiness_of_a_node_show_the_state_of_the_cluster() {
    if subject_is_redis() {
        return;
    }
    let port = Port::claim();
    let node = Node::start(ID, &empty_document(), &[("http-port", &port.number().to_string())]);
    let info = node.connect().cmd("CLUSTER INFO").text();
    for (name, expected) in [
        ("cluster_document_epoch", "0"),
        ("cluster_shard_term", "0"),
        ("cluster_lease_left_ms", "-1"),
        ("cluster_primary_run", ""),
        ("cluster_name", "brisk"),
        ("cluster_controller", ""),
        ("cluster_fenced", "0"),
        ("cluster_migrations", "0"),
    ] {
        assert_eq!(field(&info, name), expected, "{name}");
    }
    assert_eq!(field(&info, "cluster_coordinator"), "static");
    // Clients split each line at its colons.
    assert!(info.lines().all(|line| line.matches(':').count() == 1), "{info}");
    let sources = brisk_testkit::server::workspace_root()
        .join("crates/server/src/http/metrics/fields/cluster.rs");
    let sources = std::fs::read_to_string(sources).unwrap();
    let is_metric =
        |word: &&str| word.starts_with("redis_cluster_") || word.starts_with("brisk_cluster_");
    let names: Vec<&str> = sources.split('"').filter(is_metric).collect();
    assert!(names.len() > 10, "{names:?}");
    let metrics = http_body(&port, "/metrics");
    for name in names {
        let has_value = metrics.lines().any(|line| line.starts_with(&format!("{name} ")));
        assert!(has_value, "{name} is missing");
    }
    assert!(metrics.contains("\nredis_cluster_state 0\n"), "{metrics}");
}

fn http_body(port: &Port, path: &str) -> String {
    let mut conn = Conn::tcp(&format!("127.0.0.1:{}", port.number()));
    conn.send_raw(format!("GET {path} HTTP/1.0\r\nHost: localhost\r\n\r\n").as_bytes());
    let reply = String::from_utf8(conn.read_to_end()).unwrap();
    reply.split_once("\r\n\r\n").unwrap().1.to_owned()
}

/// Clients send these commands before their first command on a key.
#[test]
fn a_node_that_loads_replies_to_the_commands_that_clients_begin_with() {
    if subject_is_redis() {
        return;
    }
    let dir = TempDir::new();
    let dir_path = dir.path("");
    let home = dir_path.to_str().unwrap();
    let writer = Launch::new(Program::Brisk).set("dir", home).start();
    let mut conn = writer.connect();
    for n in 0..2000 {
        conn.cmd(&format!("SET key:{n} x"));
    }
    assert_reply!(conn, "SAVE", "OK");
    drop(writer);
    let launch = Launch::new(Program::Brisk)
        .set("dir", home)
        .set("key-load-delay", "100000")
        .while_loading();
    let node = Node::start_with(launch, ID, &empty_document(), &[]);
    let mut conn = node.connect();
    assert!(conn.cmd("PING").text().starts_with("LOADING "));
    for words in ["INFO", "NODES", "SLOTS", "SHARDS", "MYID", "MYSHARDID", "LINKS", "KEYSLOT a"] {
        let reply = conn.cmd(&format!("CLUSTER {words}"));
        assert!(!reply.is_error(), "{words}: {reply}");
    }
    assert!(!conn.cmd(&format!("CLUSTER REPLICAS {ID}")).is_error());
    assert!(conn.cmd("PING").text().starts_with("LOADING "));
}
