//! `--cluster status` with the coordinator: etcd loses members, then its quorum, then the topology; and nodes that wait
//! for a cluster.

use crate::harness::{Case, ours, run, text};
use brisk_testkit::etcd::EtcdLaunch;
use brisk_testkit::{BriskCluster, wait_until};
use std::io::{Read, Write};
use std::net::TcpStream;

/// The key `/brisk/topology`, in base64.
const TOPOLOGY_KEY: &str = "L2JyaXNrL3RvcG9sb2d5";

/// The exit code and the output of `status`. Nothing may be printed on standard error.
#[track_caller]
fn status(address: &str) -> (Option<i32>, String) {
    let case = Case::new(&["--cluster", "status", address]);
    let output = run(&ours(), &case.with_var("TERM", "dumb"));
    assert_eq!(text(&output.stderr), "");
    (output.status.code(), text(&output.stdout))
}

/// Waits until `status` prints a text. Returns its exit code and its output.
#[track_caller]
fn status_with(address: &str, expected: &str) -> (Option<i32>, String) {
    let mut last = (None, String::new());
    let mut is_found = || {
        last = status(address);
        last.1.contains(expected)
    };
    if !brisk_testkit::wait::holds_within(std::time::Duration::from_secs(60), &mut is_found) {
        panic!("no {expected:?} in\n{}", last.1);
    }
    last
}

#[test]
fn status_names_the_endpoints_of_etcd_that_fail() {
    let Some(mut etcd) = EtcdLaunch::new(3).start() else { return };
    let coordinator = BriskCluster::coordinator_of(&etcd);
    let nodes = BriskCluster::start_with(1, 1, &[("cluster-coordinator", &coordinator)]);
    let address = nodes.node(0).address();
    let (code, said) = status_with(&address, "[OK] The cluster has no problem.");
    assert!(said.contains("etcd:        3 of 3 endpoints reachable"), "{said}");
    assert_eq!(code, Some(0), "{said}");

    etcd.kill(0);
    let (code, said) = status(&address);
    let endpoints = etcd.endpoints();
    let lost = format!(
        "etcd: {} cannot be reached (Connection refused); 2 of 3 endpoints are reachable\n",
        endpoints[0]
    );
    assert!(said.contains(&lost), "{said}");
    assert_eq!(code, Some(1), "{said}");

    etcd.kill(1);
    etcd.kill(2);
    let cut_off = format!(":\n  no node reaches etcd ({coordinator})\n");
    let (code, said) = status_with(&address, &cut_off);
    assert!(!said.contains("its coordinator is"), "{said}");
    assert_eq!(code, Some(1), "{said}");
}

#[test]
fn status_says_that_the_topology_has_disappeared() {
    let Some(etcd) = EtcdLaunch::new(1).start() else { return };
    let coordinator = BriskCluster::coordinator_of(&etcd);
    let nodes = BriskCluster::start_with(1, 1, &[("cluster-coordinator", &coordinator)]);
    let mut stream = TcpStream::connect(&etcd.endpoints()[0]).expect("etcd accepts connections");
    let body = format!("{{\"key\":\"{TOPOLOGY_KEY}\"}}");
    let head = "POST /v3/kv/deleterange HTTP/1.0\r\nContent-Type: application/json";
    let request = format!("{head}\r\nContent-Length: {}\r\n\r\n{body}", body.len());
    stream.write_all(request.as_bytes()).expect("the request can be sent");
    let mut reply = String::new();
    stream.read_to_string(&mut reply).expect("etcd replies");
    assert!(reply.contains("\"deleted\":\"1\""), "{reply}");
    let lost = "the topology has disappeared from the coordinator. Restore it with: \
                brisk-cli --cluster restore-topology\n";
    let (code, said) = status_with(&nodes.node(0).address(), lost);
    assert_eq!(said.matches("disappeared").count(), 1, "{said}");
    assert_eq!(code, Some(1), "{said}");
}

#[test]
fn status_says_what_a_node_without_a_cluster_waits_for() {
    let forming = [("cluster-init-shards", "1"), ("cluster-init-replicas", "2")];
    let named = [&forming[..], &[("cluster-name", "brsik")]].concat();
    let mut nodes = BriskCluster::start_apart(2, &forming);
    let other = nodes.add(&named);
    let expected = "waiting for nodes: 2 of 3 are registered in cluster brisk\n";
    let (code, said) = status_with(&nodes.node(0).address(), expected);
    assert!(said.contains("Cluster:     brisk\n"), "{said}");
    assert_eq!(code, Some(1), "{said}");
    let expected = "waiting for nodes: 1 of 3 are registered in cluster brsik\n";
    status_with(&nodes.node(other).address(), expected);
    // A node with keys is not counted on, and the operator learns why nothing is formed.
    assert_eq!(nodes.node(1).connect().cmd("DEBUG POPULATE 1").to_string(), "OK");
    let with_keys =
        format!("{} has keys, so the cluster is formed without it", nodes.node(1).address());
    status_with(&nodes.node(0).address(), &with_keys);
    // A node for `create` waits for an operator.
    let alone = BriskCluster::start_apart(1, &[]);
    wait_until("the node to be described", || {
        status(&alone.node(0).address()).1.contains("cluster brisk has not been created\n")
    });
}
