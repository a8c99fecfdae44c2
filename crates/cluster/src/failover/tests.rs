//! Tests of the controller's decisions. TTL 3 s, validity factor 10.

use super::*;
use crate::document::tests::{member, node, registration, run, shard_id, stamp, three_shards};
use crate::document::{Durability, NodeRole, TermCause};
use crate::id::{Incarnation, NodeRun, Term};
use serde_json::Map;

const SETTINGS: FailoverSettings =
    FailoverSettings { ttl_ms: 3_000, validity_factor: 10, init_shards: 0, init_replicas: 0 };

/// A controller and the state that it sees, which tests build step by step.
struct World {
    controller: Controller,
    topology: Option<Topology>,
    registered: BTreeMap<NodeId, Registration>,
    statuses: BTreeMap<NodeId, ReceivedStatus>,
    pongs: BTreeMap<NodeId, u64>,
    now_ms: u64,
}

impl World {
    /// Three shards whose primaries are alive; nodes 4 and 5 are replicas of node 1.
    fn new() -> World {
        let mut topology = three_shards();
        topology.members.insert(node(5), member(5));
        topology.shards[0].replicas.push(node(5));
        World {
            controller: Controller::new(SETTINGS),
            topology: Some(topology),
            registered: (1..6).map(|n| (node(n), registration(n, n.into()))).collect(),
            statuses: BTreeMap::new(),
            pongs: BTreeMap::new(),
            now_ms: 100_000,
        }
    }

    fn report(&mut self, n: u8, change: impl FnOnce(&mut NodeStatus)) {
        let mut status = NodeStatus {
            incarnation: self.registered[&node(n)].incarnation,
            role: NodeRole::Replica,
            term: Term(7),
            replid: "r".into(),
            offset: 812_345,
            loading: false,
            last_contact_ms: Some(3_500),
            dataset: Dataset::Disk,
            full_copy: false,
            other: Map::new(),
        };
        change(&mut status);
        self.statuses.insert(node(n), ReceivedStatus { status, received_ms: self.now_ms });
    }

    fn decide(&mut self) -> Vec<Decision> {
        let situation = Situation {
            topology: self.topology.as_ref(),
            registered: &self.registered,
            statuses: &self.statuses,
            pongs: &self.pongs,
            now_ms: self.now_ms,
        };
        self.controller.decide(&situation)
    }

    fn lose(&mut self, n: u8) {
        self.registered.remove(&node(n));
    }

    fn promoted(&mut self) -> Promotion {
        match &self.decide()[..] {
            [Decision::Promote(promotion) | Decision::Resume { promotion, .. }] => {
                promotion.clone()
            }
            other => panic!("{other:?}"),
        }
    }

    fn alarm(&mut self) -> String {
        match &self.decide()[..] {
            [Decision::NoCandidate { why, .. }] => why.clone(),
            other => panic!("{other:?}"),
        }
    }
}

/// A node as log lines name it.
fn label(n: u8) -> String {
    registration(n, n.into()).label()
}

#[test]
fn nothing_happens_while_all_primaries_live() {
    assert_eq!(World::new().decide(), []);
}

#[test]
fn an_ended_lease_promotes_the_replica_with_the_highest_offset() {
    let mut world = World::new();
    world.report(1, |status| {
        (status.role, status.offset) = (NodeRole::Primary, 812_350);
    });
    world.decide();
    world.lose(1);
    let query = Decision::Query { shard: shard_id(1), nodes: vec![node(4), node(5)] };
    assert_eq!(world.decide(), [query]);
    world.now_ms += 300;
    world.report(4, |_| ());
    world.report(5, |status| status.offset -= 1);
    let decisions = world.decide();
    let why = format!("{}'s lease ended 0.3 s ago; offset 812345, behind by 5", label(1));
    let promotion = Promotion {
        shard: shard_id(1),
        expected_term: Term(7),
        to: run(4),
        cause: TermCause::Failover,
        why,
    };
    assert_eq!(decisions, [Decision::Promote(promotion)]);
    let (registered, statuses, pongs) = (&world.registered, &world.statuses, &world.pongs);
    let topology = world.topology.as_ref();
    let situation = Situation { topology, registered, statuses, pongs, now_ms: world.now_ms };
    let next = decisions[0].apply(&situation, "brisk", stamp(9)).unwrap().unwrap();
    assert_eq!((next.shards[0].primary, next.shards[0].term), (node(4), Term(8)));
    world.topology = Some(next);
    assert_eq!(world.decide(), []);
}

#[test]
fn equal_offsets_prefer_another_zone_and_then_the_lower_id() {
    let mut world = World::new();
    world.lose(1);
    world.decide();
    world.report(4, |_| ());
    world.report(5, |_| ());
    assert_eq!(world.promoted().to, run(4));
    let topology = world.topology.as_mut().unwrap();
    topology.members.get_mut(&node(1)).unwrap().zone = "a".into();
    topology.members.get_mut(&node(4)).unwrap().zone = "a".into();
    world.registered.get_mut(&node(4)).unwrap().member.zone = "a".into();
    assert_eq!(world.promoted().to, run(5));
    world.report(4, |status| status.offset += 1);
    assert_eq!(world.promoted().to, run(4));
    world.report(5, |status| (status.term, status.offset) = (Term(8), 1));
    assert_eq!(world.promoted().to, run(5));
}

#[test]
fn replicas_without_valid_data_are_not_promoted() {
    type Case = (fn(&mut NodeStatus), &'static str);
    let cases: &[Case] = &[
        (|status| status.loading = true, "is loading or in a full synchronisation"),
        (
            |status| status.last_contact_ms = None,
            "has not been connected to its primary since its start",
        ),
        (
            |status| status.last_contact_ms = Some(30_001),
            "has not heard from its primary for too long",
        ),
    ];
    for (change, why) in cases {
        let mut world = World::new();
        world.lose(1);
        world.lose(5);
        world.decide();
        world.report(4, change);
        assert_eq!(world.alarm(), format!("{} {why}; {} has no lease", label(4), label(5)));
        assert_eq!(world.decide(), [], "an alarm is reported once");
        world.report(4, |status| {
            change(status);
            status.full_copy = true;
        });
        let advice = ": use CLUSTER FAILOVER FORCE on it";
        assert_eq!(world.alarm(), format!("{} {why}{advice}; {} has no lease", label(4), label(5)));
    }
    let mut world = World::new();
    world.lose(1);
    world.lose(5);
    world.registered.get_mut(&node(4)).unwrap().no_failover = true;
    assert!(world.alarm().contains("has cluster-replica-no-failover"));
}

#[test]
fn a_silent_replica_is_waited_for_half_a_second() {
    let mut world = World::new();
    world.lose(1);
    world.decide();
    world.report(5, |status| status.offset = 1);
    let query = Decision::Query { shard: shard_id(1), nodes: vec![node(4)] };
    assert_eq!(world.decide(), [query]);
    world.now_ms += QUERY_MS_MAX;
    assert_eq!(world.promoted().to, run(5));
}

#[test]
fn a_status_of_an_earlier_process_does_not_count() {
    let mut world = World::new();
    world.lose(1);
    world.lose(5);
    world.decide();
    world.report(4, |_| ());
    world.registered.insert(node(4), registration(4, 99));
    world.now_ms += QUERY_MS_MAX;
    assert_eq!(world.alarm(), format!("{} has no lease; {} sends no status", label(5), label(4)));
}

#[test]
fn a_sync_shard_promotes_only_runs_in_sync() {
    let mut world = World::new();
    let shard = &mut world.topology.as_mut().unwrap().shards[0];
    shard.durability = Durability::Sync;
    shard.isr.push(run(5));
    world.lose(1);
    world.decide();
    world.report(4, |status| status.offset += 1_000);
    world.report(5, |_| ());
    assert_eq!(world.promoted().to, run(5));
    world.registered.insert(node(5), registration(5, 99));
    assert_eq!(world.alarm(), format!("{} is not in sync; {} is not in sync", label(4), label(5)));
}

#[test]
fn a_restarted_primary_gives_way_to_a_valid_replica() {
    let mut world = World::new();
    world.registered.insert(node(1), registration(1, 99));
    world.decide();
    world.report(4, |_| ());
    world.report(5, |_| ());
    match &world.decide()[..] {
        [Decision::Promote(promotion)] => assert_eq!(promotion.to, run(4)),
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_lone_primary_resumes_with_a_new_term() {
    let restarted = NodeRun { node: node(2), incarnation: Incarnation(99) };
    for (dataset, words) in
        [(Dataset::Disk, "with its dataset from disk"), (Dataset::Empty, "without data")]
    {
        let mut world = World::new();
        world.registered.insert(node(2), registration(2, 99));
        let wait = Decision::WaitUntil(world.now_ms + QUERY_MS_MAX);
        assert_eq!(world.decide(), std::slice::from_ref(&wait));
        world.report(2, |status| status.loading = true);
        assert_eq!(world.decide(), [wait]);
        world.report(2, |status| status.dataset = dataset);
        match &world.decide()[..] {
            [Decision::Resume { promotion, dataset: found }] => {
                assert_eq!((promotion.to, *found), (restarted, dataset));
                assert!(promotion.why.contains(words), "{}", promotion.why);
            }
            other => panic!("{other:?}"),
        }
    }
}

#[test]
fn an_empty_primary_does_not_replace_the_data_of_its_replicas() {
    let mut world = World::new();
    world.registered.insert(node(1), registration(1, 99));
    world.lose(5);
    world.decide();
    world.report(1, |status| status.dataset = Dataset::Empty);
    world.report(4, |status| status.last_contact_ms = Some(60_000));
    assert!(world.alarm().starts_with("the primary restarted without data, and replica "));
    // All restarted without data: there is nothing to lose.
    for n in [4, 5] {
        world.registered.insert(node(n), registration(n, 99));
        world.report(n, |status| {
            (status.last_contact_ms, status.dataset) = (None, Dataset::Empty);
        });
    }
    assert_eq!(world.promoted().cause, TermCause::Resumed);
    world.report(1, |_| ());
    assert_eq!(world.promoted().cause, TermCause::Resumed);
}

#[test]
fn a_sync_primary_resumes_only_with_every_acknowledged_write() {
    for (known, offset, is_resumed) in [(true, 500, true), (true, 499, false), (false, 500, false)]
    {
        let mut world = World::new();
        world.topology.as_mut().unwrap().shards[1].durability = Durability::Sync;
        if known {
            world.report(2, |status| (status.role, status.offset) = (NodeRole::Primary, 500));
            world.decide();
        }
        world.registered.insert(node(2), registration(2, 99));
        world.report(2, |status| status.offset = offset);
        let decisions = world.decide();
        let resumed = matches!(&decisions[..], [Decision::Resume { .. }]);
        assert_eq!(resumed, is_resumed, "{known} {offset} {decisions:?}");
    }
}

#[test]
fn when_most_leases_end_at_once_the_controller_waits_and_pings() {
    let mut world = World::new();
    let began = world.now_ms;
    for n in 1..6 {
        world.lose(n);
    }
    let ping = vec![node(1), node(2), node(3)];
    assert_eq!(world.decide(), [Decision::AwaitStorm { until_ms: began + 3_000, ping }]);
    world.registered.insert(node(4), registration(4, 4));
    world.now_ms = began + 2_900;
    world.report(4, |_| ());
    assert!(matches!(world.decide()[..], [Decision::AwaitStorm { .. }]));
    // Nodes 1 and 2 reply to pings: only node 3 is given up.
    world.now_ms = began + 3_000;
    world.pongs = [(node(1), began + 2_500), (node(2), began + 2_500)].into();
    let decisions = world.decide();
    let is_of = |shard| move |decision: &Decision| matches!(decision, Decision::NoCandidate { shard: s, .. } if *s == shard);
    assert!(decisions.iter().any(is_of(shard_id(3))), "{decisions:?}");
    assert!(!decisions.iter().any(|decision| matches!(decision, Decision::Promote(_))));
    world.now_ms = began + 9_000;
    world.pongs = [(node(1), began + 8_900)].into();
    world.report(4, |status| status.last_contact_ms = Some(0));
    let is_promoted = |decision: &Decision| matches!(decision, Decision::Promote(_));
    assert!(world.decide().iter().any(is_promoted));
}

#[test]
fn one_lost_primary_of_three_is_not_a_storm() {
    let mut world = World::new();
    world.lose(1);
    assert!(matches!(world.decide()[..], [Decision::Query { .. }]));
    world.now_ms += 3_001;
    world.lose(2);
    let decisions = world.decide();
    assert!(!decisions.iter().any(|d| matches!(d, Decision::AwaitStorm { .. })), "{decisions:?}");
}

#[test]
fn the_cluster_is_formed_once_enough_nodes_are_registered() {
    let mut world = World::new();
    let settings = FailoverSettings { init_shards: 2, init_replicas: 1, ..SETTINGS };
    world.controller = Controller::new(settings);
    world.topology = None;
    world.registered.retain(|id, _| *id < node(4));
    (1..4).for_each(|n| world.report(n, |status| status.dataset = Dataset::Empty));
    assert_eq!(world.decide(), []);
    world.registered.insert(node(4), registration(4, 4));
    // The node may have keys: first it has not reported, then it is loading.
    let waits = [Decision::WaitUntil(world.now_ms + QUERY_MS_MAX)];
    assert_eq!(world.decide(), waits);
    world.report(4, |status| (status.dataset, status.loading) = (Dataset::Empty, true));
    assert_eq!(world.decide(), waits);
    // The report of an earlier process says nothing about this one.
    world.report(4, |status| {
        (status.dataset, status.incarnation) = (Dataset::Empty, Incarnation(99))
    });
    assert_eq!(world.decide(), waits);
    world.report(4, |status| status.dataset = Dataset::Empty);
    assert_eq!(world.decide(), [Decision::Form { shards: 2, replicas: 1 }]);
}

#[test]
fn a_node_with_keys_takes_no_part_in_the_formation() {
    let mut world = World::new();
    let settings = FailoverSettings { init_shards: 2, init_replicas: 1, ..SETTINGS };
    world.controller = Controller::new(settings);
    world.topology = None;
    world.registered.retain(|id, _| *id < node(5));
    (1..5).for_each(|n| world.report(n, |status| status.dataset = Dataset::Empty));
    world.report(2, |status| status.dataset = Dataset::Disk);
    let left_out = Decision::LeaveOut { node: node(2), empty: 3, wanted: 4 };
    assert_eq!(world.decide(), [left_out]);
    // It is reported only once.
    assert_eq!(world.decide(), []);
    world.registered.insert(node(5), registration(5, 5));
    world.report(5, |status| status.dataset = Dataset::Empty);
    let forms = Decision::Form { shards: 2, replicas: 1 };
    assert_eq!(world.decide(), std::slice::from_ref(&forms));
    let (registered, statuses, pongs) = (&world.registered, &world.statuses, &world.pongs);
    let situation = Situation { topology: None, registered, statuses, pongs, now_ms: world.now_ms };
    let formed = forms.apply(&situation, "brisk", stamp(1)).unwrap().unwrap();
    let members: Vec<NodeId> = formed.members.keys().copied().collect();
    assert_eq!(members, [1, 3, 4, 5].map(node));
}

#[test]
fn a_member_that_announces_another_address_is_corrected() {
    let mut world = World::new();
    world.registered.get_mut(&node(3)).unwrap().member.port = 9_000;
    assert_eq!(world.decide(), [Decision::Correct(node(3))]);
}
