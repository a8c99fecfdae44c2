//! Cluster mode against clusters of real servers: all primaries get requests, redirections are followed, and problems
//! with a cluster are reported.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use brisk_benchmark::load::suite::test_named;
use brisk_benchmark::subject::local_target;
use brisk_benchmark::{Arrivals, End, Material, Outcome, Pace, Plan, Unwatched, cluster, run};
use brisk_testkit::cluster::Cluster;
use brisk_testkit::kind::Kind;
use brisk_testkit::port::Port;
use brisk_testkit::server::redis_tool;
use brisk_testkit::{Launch, Server};
use std::process::{Command, Output, Stdio};
use std::sync::Arc;

fn tool(port: u16, arguments: &str) -> Output {
    Command::new(env!("CARGO_BIN_EXE_brisk-benchmark"))
        .args(["-p", &port.to_string()])
        .args(arguments.split_whitespace())
        .stdin(Stdio::null())
        .output()
        .unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// Returns the standard output. The run must succeed.
#[track_caller]
fn succeeds(port: u16, arguments: &str) -> String {
    let output = tool(port, arguments);
    assert!(output.status.success(), "{arguments}: {}", text(&output.stderr));
    text(&output.stdout)
}

/// Returns the standard error. The run must fail.
#[track_caller]
fn fails(port: u16, arguments: &str) -> String {
    let output = tool(port, arguments);
    assert!(!output.status.success(), "{arguments}: {}", text(&output.stdout));
    text(&output.stderr)
}

fn calls(server: &Server, command: &str) -> u64 {
    let line = server.info(&format!("cmdstat_{command}"));
    let calls = line.split(',').find_map(|field| field.strip_prefix("calls="));
    calls.map_or(0, |calls| calls.parse().unwrap())
}

#[test]
fn every_primary_gets_its_share_with_its_own_keys() {
    for cluster in Cluster::start_each(3, 0, &[]) {
        let out =
            succeeds(cluster.port(1), "--cluster -t set,lpush,mset -n 600 -c 6 -P 2 -r 100 -q");
        assert!(out.starts_with("Cluster has 3 master nodes:\n\nMaster 0: "), "{out}");
        for at in 0..3 {
            let node = cluster.node(at);
            for command in ["set", "lpush", "mset"] {
                assert!(calls(node, command) > 0, "{command} at {at}");
            }
            // There is one line for each test.
            assert_eq!(
                out.matches(&format!("  127.0.0.1:{}: ", cluster.port(at))).count(),
                3,
                "{out}"
            );
            let keys = node.connect().cmd("KEYS *");
            let keys: Vec<String> = keys.elements().iter().map(|key| key.text()).collect();
            let tag = keys[0].split(['{', '}']).nth(1).unwrap().to_owned();
            assert_eq!(tag.len(), 3, "{keys:?}");
            for key in &keys {
                let is_ours = key.starts_with(&format!("key:{{{tag}}}:000000000"))
                    || *key == format!("mylist:{{{tag}}}");
                assert!(is_ours, "{key}");
            }
        }
        let all = |command| (0..3).map(|at| calls(cluster.node(at), command)).sum::<u64>();
        // When the cluster was started, a key on each node was set and deleted.
        assert_eq!((all("lpush"), all("mset")), (600, 600));
    }
}

#[test]
fn all_tests_of_the_suite_and_custom_commands_work() {
    for cluster in Cluster::start_each(3, 0, &[]) {
        let port = cluster.port(0);
        let judged = "set,get,incr,lpush,rpush,sadd,hset,zadd,mset";
        let fill = "--fill --verify -r 20 -d 20";
        succeeds(port, &format!("--cluster -n 300 -c 3 {fill} -q -t {judged}"));
        succeeds(port, "--cluster -n 300 -c 3 -r 20 -d 20 -q");
        for at in 0..3 {
            assert!(cluster.node(at).connect().cmd("DBSIZE").integer() >= 20);
        }
        let out = succeeds(port, "--cluster -n 30 -c 1 -q set own{tag} __data__");
        assert!(out.contains("set own{tag} __data__: "), "{out}");
        succeeds(port, "--cluster -n 300 -k 0 -c 6 --threads 2 -t set -q");
        succeeds(port, "--cluster -n 300 --rate 5000 --mix get:9,mset:1 -3 -q");

        let long = succeeds(port, "--cluster -n 30 -t set");
        for wanted in [
            "  cluster mode: yes (3 masters)\n  node [0] configuration:\n    save: ",
            "  node [2] configuration:\n",
            "  multi-thread: yes\n  threads: 3\n",
        ] {
            assert!(long.contains(wanted), "{wanted:?} is not in\n{long}");
        }
        for at in 0..3 {
            let node = format!("  node 127.0.0.1:{}: ", cluster.port(at));
            assert!(long.contains(&node), "{long}");
        }
        let csv = succeeds(port, "--cluster -n 30 -t set --csv");
        assert_eq!(csv.lines().count(), 2, "{csv}");
        let json: serde_json::Value =
            serde_json::from_str(&succeeds(port, "--cluster -n 30 -t set --json")).unwrap();
        let nodes = json["nodes"].as_array().unwrap();
        let operations: u64 = nodes.iter().map(|node| node["operations"].as_u64().unwrap()).sum();
        assert_eq!((nodes.len(), operations, &json["redirections"]), (3, 30, &0.into()));
    }
}

/// Runs 600 requests. The topology is read before `change`.
fn run_through(cluster: &Cluster, pace: Pace, change: impl Fn()) -> Outcome {
    let target = local_target(cluster.port(0));
    let seen = cluster::Cluster::discover(&target).unwrap();
    change();
    let material = Material { keyspace: Some(1000), tagged: true, ..Material::default() };
    let plan = Plan {
        clients: 6,
        threads: 2,
        end: End::Requests(600),
        pace,
        cluster: Some(Arc::new(seen)),
        ..Plan::new(material.test(test_named("get").unwrap()), target)
    };
    let outcome = run(&plan, &mut Unwatched).unwrap();
    let nodes = outcome.nodes.iter().map(|node| node.operations());
    assert_eq!((outcome.operations, nodes.clone().sum::<u64>()), (600, 600));
    assert!(nodes.clone().all(|operations| operations > 0));
    outcome
}

#[test]
fn redirected_requests_are_sent_again_with_a_slot_that_the_node_serves() {
    let cluster = Cluster::start(3, 0);
    let first = |node| u16::try_from(cluster.slots_of(node).start).unwrap();
    let open = Pace::Open { rate: 5000.0, arrivals: Arrivals::Even };
    // A run uses the first slot of each node at the beginning.
    for (pace, slot) in [(Pace::Closed, first(1)), (open, first(1) + 1)] {
        let moved = run_through(&cluster, pace, || {
            cluster.begin_move(slot, 1, 2);
            cluster.end_move(slot, 1, 2);
        });
        assert!(moved.redirections > 0, "{pace:?}");
    }
    for pace in [Pace::Closed, open] {
        // The node redirects missing keys of a moving slot by ASK.
        let moving = run_through(&cluster, pace, || cluster.begin_move(first(0), 0, 2));
        assert!(moving.redirections > 0, "{pace:?}");
    }
}

#[test]
fn problems_of_a_cluster_are_reported() {
    let lone = Launch::redis().start();
    let error = fails(lone.port(), "--cluster -t set -n 10");
    assert!(error.contains("does not describe a cluster: ERR This instance has"), "{error}");

    let bus = Port::claim();
    let node = Launch::redis()
        .set("cluster-enabled", "yes")
        .set("cluster-port", &bus.number().to_string())
        .start();
    let error = fails(node.port(), "--cluster -t set -n 10");
    assert!(error.contains("is down: no node serves 16384 of 16384 slots (0-16383)"), "{error}");

    for mut cluster in Cluster::start_each(3, 0, &[]) {
        // With this number of requests, the key's owner cannot reply to all of them before the other nodes reply to
        // their first.
        let error = fails(cluster.port(0), "--cluster -n 1000000 -c 3 get foo");
        assert!(error.contains("Error from server: MOVED 12182 127.0.0.1:"), "{error}");
        assert!(
            error.contains("in cluster mode a key must contain {tag} (node 127.0.0.1:"),
            "{error}"
        );

        let dead = cluster.port(2);
        cluster.kill(2);
        let error = fails(cluster.port(0), "--cluster -t set -n 1000000");
        // The other nodes eventually notice that the node is down.
        let is_named = error.contains(&format!("Could not connect to Redis at 127.0.0.1:{dead}: "));
        assert!(is_named || error.contains("is down"), "{error}");
    }
}

/// redis-benchmark reads the topology of a Brisk cluster, and distributes its requests over the nodes.
#[test]
fn the_tool_of_redis_works_on_a_cluster_of_brisk() {
    let cluster = Cluster::start_of(Kind::Brisk, 3, 1, &[]);
    let output = Command::new(redis_tool("redis-benchmark"))
        .args(["-p", &cluster.port(0).to_string()])
        .args("--cluster -t set,get -n 600 -c 6 -P 2 -r 100 -q".split(' '))
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", text(&output.stderr));
    let out = text(&output.stdout);
    assert!(out.contains("Cluster has 3 master nodes:"), "{out}");
    for command in ["set", "get"] {
        let counts: Vec<u64> = (0..3).map(|at| calls(cluster.node(at), command)).collect();
        assert!(counts.iter().all(|count| *count > 0), "{command} {counts:?}");
    }
}
