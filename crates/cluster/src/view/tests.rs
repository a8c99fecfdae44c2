//! The shapes are those of a cluster of redis-server 7.0.15: fields, their order, flags, metadata.

use super::*;
use crate::document::tests::{node, registration, run, shard_id, three_shards};

fn own(n: u8) -> Registration {
    registration(n, n.into())
}

/// All four nodes live; the offset of each is 680.
fn node_states() -> BTreeMap<NodeId, NodeState> {
    let node_state = NodeState {
        is_alive: true,
        offset: 680,
        last_report_ms: 1_795_777_223_310,
        ..NodeState::default()
    };
    (1..5).map(|n| (node(n), node_state)).collect()
}

static NONE: BTreeSet<NodeId> = BTreeSet::new();

/// The view of a client without TLS that prefers addresses.
fn view<'v>(
    topology: Option<&'v Topology>,
    own: &'v Registration,
    node_states: &'v BTreeMap<NodeId, NodeState>,
) -> ClusterView<'v> {
    ClusterView {
        topology,
        own,
        node_states,
        failed: &NONE,
        last_epochs: LastEpochs::default(),
        endpoint: EndpointKind::Ip,
        is_tls: false,
    }
}

fn with_host() -> Topology {
    let mut topology = three_shards();
    topology.members.get_mut(&node(2)).unwrap().host = "host-2.example.com".into();
    topology
}

#[test]
fn nodes_has_a_line_per_node_with_the_fields_of_redis() {
    let (topology, node_states, own) = (with_host(), node_states(), own(1));
    let mut dead = node_states.clone();
    dead.insert(node(3), NodeState { no_failover: true, ..NodeState::default() });
    let failed = BTreeSet::from([node(3)]);
    let view = ClusterView { failed: &failed, ..view(Some(&topology), &own, &dead) };
    let id = node;
    let pong = 1_795_777_223_310_u64;
    let expected = [
        format!("{} 127.0.0.1:7001@17001 myself,master - 0 {pong} 7 connected 0-5460\n", id(1)),
        format!("{} 127.0.0.1:7004@17004 slave {} 0 {pong} 7 connected\n", id(4), id(1)),
        format!(
            "{} 127.0.0.1:7002@17002,host-2.example.com master - 0 {pong} 7 connected 5461-10922\n",
            id(2)
        ),
        format!(
            "{} 127.0.0.1:7003@17003 master,fail,nofailover - 0 0 7 disconnected 10923-16383\n",
            id(3)
        ),
    ];
    assert_eq!(view.nodes(), expected.concat());
    assert_eq!(view.replicas(&id(1).to_string()).unwrap(), [expected[1].trim_end()]);
    assert_eq!(
        view.replicas(&id(4).to_string()).unwrap_err().to_string(),
        "ERR The specified node is not a master"
    );
    assert_eq!(view.replicas("abc").unwrap_err().to_string(), "ERR Unknown node abc");
    let file = view.nodes_file();
    assert!(file.ends_with("vars currentEpoch 41 lastVoteEpoch 0\n"), "{file}");
    assert_eq!(own_id(file.as_bytes()), Ok(id(1)));
}

#[test]
fn the_own_id_is_read_from_a_file_of_redis() {
    let file = "bf6f07d819f95559636640ce7ecdf9d336ad8b96 127.0.0.1:2@3 slave - 0 0 0 connected\n\
        7f85a381f35489247c840ac433db6d6c3638ace9 127.0.0.1:27101@37101,h myself,master - 0 0 5 \
        connected 0 [1-<-bf6f07d819f95559636640ce7ecdf9d336ad8b96]\n\
        vars currentEpoch 5 lastVoteEpoch 0\n";
    assert_eq!(
        own_id(file.as_bytes()).unwrap().to_string(),
        "7f85a381f35489247c840ac433db6d6c3638ace9"
    );
    assert_eq!(own_id(b""), Err(NodesFileError::WithoutMyself));
    assert_eq!(own_id(b"\nxyz :0@0 myself,master"), Err(NodesFileError::NoId(2)));
}

#[test]
fn slots_names_nodes_by_the_preferred_endpoint() {
    let (topology, node_states, own) = (with_host(), node_states(), own(1));
    let of =
        |endpoint| ClusterView { endpoint, ..view(Some(&topology), &own, &node_states) }.slots();
    let text = |value: &str| value.to_owned();
    let ip = of(EndpointKind::Ip);
    let shape: Vec<(String, usize)> =
        ip.iter().map(|entry| (entry.range.to_string(), entry.nodes.len())).collect();
    assert_eq!(shape, [(text("0-5460"), 2), (text("5461-10922"), 1), (text("10923-16383"), 1)]);
    assert_eq!(ip[0].nodes[1].id, node(4));
    assert_eq!(
        (&ip[0].nodes[0].endpoint, ip[0].nodes[0].metadata.len()),
        (&Some(text("127.0.0.1")), 0)
    );
    assert_eq!(ip[1].nodes[0].metadata, [("hostname", text("host-2.example.com"))]);
    let hostname = of(EndpointKind::Hostname);
    assert_eq!(hostname[0].nodes[0].endpoint, Some(text("?")));
    assert_eq!(hostname[1].nodes[0].endpoint, Some(text("host-2.example.com")));
    assert_eq!(hostname[1].nodes[0].metadata, [("ip", text("127.0.0.1"))]);
    let unknown = of(EndpointKind::Unknown);
    assert_eq!(unknown[1].nodes[0].endpoint, None);
    let both = [("ip", text("127.0.0.1")), ("hostname", text("host-2.example.com"))];
    assert_eq!(unknown[1].nodes[0].metadata, both);
}

#[test]
fn a_loading_or_failed_replica_is_not_in_cluster_slots() {
    let (topology, own) = (three_shards(), own(1));
    for node_state in [
        NodeState { is_alive: true, is_loading: true, offset: 5, ..NodeState::default() },
        NodeState { offset: 5, ..NodeState::default() },
    ] {
        let mut node_states = node_states();
        node_states.insert(node(4), node_state);
        let failed = BTreeSet::from([node(4)]);
        let failed = if node_state.is_alive { &NONE } else { &failed };
        let view = ClusterView { failed, ..view(Some(&topology), &own, &node_states) };
        assert_eq!(view.slots()[0].nodes.len(), 1, "{node_state:?}");
        let health = if node_state.is_alive { "loading" } else { "fail" };
        assert_eq!(view.shards()[0].nodes[1].health, health, "{node_state:?}");
    }
}

#[test]
fn shards_and_info_describe_the_document() {
    let (topology, node_states, own) = (with_host(), node_states(), own(4));
    let view = view(Some(&topology), &own, &node_states);
    let view = ClusterView { endpoint: EndpointKind::Unknown, is_tls: true, ..view };
    let shards = view.shards();
    let of_host = &shards[1].nodes[0];
    assert_eq!(of_host.hostname.as_deref(), Some("host-2.example.com"));
    assert_eq!((of_host.endpoint.as_str(), of_host.port, of_host.tls_port), ("", Some(7002), None));
    let roles: Vec<&str> = shards[0].nodes.iter().map(|node| node.role).collect();
    assert_eq!((roles, shards[0].nodes[1].replication_offset), (vec!["master", "replica"], 680));
    assert_eq!(view.my_shard_id(), shard_id(1));
    let info = view.info(false);
    assert_eq!((info.is_ok, info.slots_ok, info.known_nodes, info.size), (true, 16_384, 4, 3));
    assert_eq!((info.current_epoch, info.my_epoch), (Epoch(41), Term(7)));
    assert_eq!(info.primary_run, Some(run(1)));
    assert!(!view.info(true).is_ok);
}

#[test]
fn a_node_that_is_not_a_member_shows_only_itself() {
    let (topology, node_states, own) = (three_shards(), node_states(), own(9));
    for topology in [None, Some(&topology)] {
        let view = view(topology, &own, &node_states);
        let line = format!("{} 127.0.0.1:7009@17009 myself,master - 0 0 0 connected\n", node(9));
        assert_eq!((view.nodes(), view.slots().len()), (line, 0));
        let shards = view.shards();
        assert_eq!(
            (shards.len(), shards[0].slots.is_empty(), shards[0].nodes[0].role),
            (1, true, "master")
        );
        let info: Vec<String> = view
            .info(false)
            .lines()
            .iter()
            .map(|(name, value)| format!("{name}:{value}"))
            .collect();
        let redis = "cluster_state:fail cluster_slots_assigned:0 cluster_slots_ok:0 \
            cluster_slots_pfail:0 cluster_slots_fail:0 cluster_known_nodes:1 cluster_size:0 \
            cluster_current_epoch:0 cluster_my_epoch:0 cluster_stats_messages_sent:0 \
            cluster_stats_messages_received:0 total_cluster_links_buffer_limit_exceeded:0";
        assert_eq!(info.join(" "), redis);
        assert_eq!(view.failure_reports(&node(9).to_string()), Ok(0));
        let unknown = view.failure_reports(&node(1).to_string()).unwrap_err();
        assert_eq!(unknown.to_string(), format!("ERR Unknown node {}", node(1)));
        assert_eq!(view.replicas(&node(9).to_string()), Ok(Vec::new()));
    }
}

#[test]
fn a_member_without_a_lease_is_suspected_until_it_has_failed() {
    let (topology, mut node_states, own) = (three_shards(), node_states(), own(1));
    node_states.remove(&node(3));
    let failed = BTreeSet::from([node(3)]);
    let suspects = view(Some(&topology), &own, &node_states);
    let fails = ClusterView { failed: &failed, ..suspects };
    for (view, flag, health, counts) in [
        (suspects, "master,fail? -", "online", (10_923, 5461, 0)),
        (fails, "master,fail -", "fail", (10_923, 0, 5461)),
    ] {
        let line = view.nodes().lines().last().unwrap_or_default().to_owned();
        assert!(line.contains(flag) && line.contains(" disconnected "), "{line}");
        assert_eq!(view.shards()[2].nodes[0].health, health);
        let info = view.info(false);
        assert_eq!((info.slots_ok, info.slots_pfail, info.slots_fail), counts);
    }
    // Clients still get its address: it may come back.
    assert_eq!(fails.slots()[2].nodes[0].id, node(3));
}

#[test]
fn a_node_shows_its_own_settings_before_the_document_has_them() {
    let (topology, node_states, mut own) = (three_shards(), node_states(), own(1));
    own.member.ip = "10.0.0.9".into();
    own.member.port = 99;
    own.member.host = "host-1.example.com".into();
    let view = view(Some(&topology), &own, &node_states);
    assert!(view.nodes().contains(" 10.0.0.9:99@10099,host-1.example.com myself,master "));
    let slots = &view.slots()[0].nodes[0];
    assert_eq!((slots.endpoint.as_deref(), slots.port), (Some("10.0.0.9"), 99));
    assert_eq!(slots.metadata, [("hostname", "host-1.example.com".to_owned())]);
    let shards = &view.shards()[0].nodes[0];
    assert_eq!((shards.ip.as_str(), shards.port), ("10.0.0.9", Some(99)));
}

#[test]
fn a_node_that_has_left_shows_the_epochs_that_it_had() {
    let (node_states, own) = (node_states(), own(9));
    let last_epochs = LastEpochs { document: Epoch(41), term: Term(7) };
    let view = ClusterView { last_epochs, ..view(None, &own, &node_states) };
    let info = view.info(false);
    assert_eq!((info.current_epoch, info.my_epoch, info.size), (Epoch(41), Term(7), 0));
    assert!(view.nodes().ends_with(" myself,master - 0 0 7 connected\n"), "{}", view.nodes());
    assert!(view.nodes_file().ends_with("vars currentEpoch 41 lastVoteEpoch 0\n"));
}
