//! Tests of all changes. Error texts are those of redis-server 7.0.15 in cluster mode.

use super::*;
use crate::document::tests::{member, node, range, run, shard_id, stamp, three_shards};
use crate::document::{Durability, TermCause, check_installation};
use crate::id::{Epoch, NodeRun};
use crate::slots::{SlotId, SlotRange, SlotRanges};
use brisk_testkit::random::Random;
use std::collections::BTreeSet;

fn registration(n: u8) -> Registration {
    let json = format!(
        r#"{{"id":"{}","incarnation":"{n:x}","version":"1","member":{{"ip":"x"}}}}"#,
        node(n)
    );
    let registration = Registration::parse(json.as_bytes()).unwrap();
    Registration { member: member(n), ..registration }
}

fn own(n: u8) -> OwnNode {
    OwnNode { id: node(n), has_keys: false }
}

fn empty() -> Topology {
    Topology::empty("brisk", stamp(0))
}

fn slots(args: &[&str]) -> Result<Vec<SlotRange>, ChangeError> {
    parse_slots(&args.iter().map(|arg| arg.as_bytes()).collect::<Vec<_>>())
}

fn ranges(args: &[&str]) -> Result<Vec<SlotRange>, ChangeError> {
    parse_slot_ranges(&args.iter().map(|arg| arg.as_bytes()).collect::<Vec<_>>())
}

fn text<T: std::fmt::Debug>(result: Result<T, ChangeError>) -> String {
    result.unwrap_err().to_string()
}

fn done(edit: Edit) -> Topology {
    edit.unwrap().unwrap()
}

fn to_node(n: u8, cause: TermCause, expected_term: Term) -> Promotion {
    let why = "node 1's lease ended".to_owned();
    Promotion { shard: shard_id(1), expected_term, to: run(n), cause, why }
}

#[test]
fn invalid_slots_get_the_errors_of_redis() {
    for wrong in ["16384", "-1", "a", "+1", "01", "", "99999999999999999999"] {
        assert_eq!(text(slots(&[wrong])), "ERR Invalid or out of range slot", "{wrong}");
    }
    assert_eq!(
        text(ranges(&["5", "3"])),
        "ERR start slot number 5 is greater than end slot number 3"
    );
    assert_eq!(slots(&["0", "16383"]).unwrap().len(), 2);
    assert_eq!(ranges(&["0", "5", "7", "7"]).unwrap().len(), 2);
}

#[test]
fn addslots_admits_an_unmet_node_and_rejects_owned_slots() {
    let added = done(add_slots(&empty(), stamp(1), &registration(1), &slots(&["1", "0"]).unwrap()));
    assert_eq!((added.epoch, added.change), (Epoch(1), stamp(1)));
    assert_eq!(added.shards[0].slots, range(0, 1));
    assert_eq!((added.shards[0].primary_run(), added.shards[0].term), (Some(run(1)), Term(1)));
    let add = |list: Vec<SlotRange>| add_slots(&added, stamp(2), &registration(2), &list);
    assert_eq!(text(add(slots(&["2", "1"]).unwrap())), "ERR Slot 1 is already busy");
    assert_eq!(
        text(add(ranges(&["2", "3", "3", "4"]).unwrap())),
        "ERR Slot 3 specified multiple times"
    );
    let second = done(add(ranges(&["2", "3"]).unwrap()));
    assert_eq!(second.shard_of(node(2)).unwrap().slots, range(2, 3));
    let at_replica = add_slots(&three_shards(), stamp(2), &registration(4), &[]);
    assert_eq!(at_replica, Err(ChangeError::SlotsOfReplica));
}

#[test]
fn delslots_takes_empty_slots_of_the_own_shard() {
    let delete = |args: &[&str]| {
        delete_slots(&three_shards(), stamp(2), node(1), &slots(args).unwrap(), |slot| {
            slot == SlotId::new(9)
        })
    };
    assert_eq!(done(delete(&["0", "5460"])).shards[0].slots, range(1, 5459));
    assert_eq!(text(delete(&["1", "1"])), "ERR Slot 1 specified multiple times");
    assert_eq!(text(delete(&["9"])), "ERR Slot 9 is not empty");
    assert!(text(delete(&["6000"])).starts_with("ERR Slot 6000 belongs to node 02"));
    let unassigned = delete_slots(&empty(), stamp(2), node(1), &slots(&["5"]).unwrap(), |_| false);
    assert_eq!(text(unassigned), "ERR Slot 5 is already unassigned");
}

#[test]
fn flushslots_needs_an_empty_database() {
    let flush = |n, has_keys| flush_slots(&three_shards(), stamp(2), node(n), has_keys);
    assert_eq!(text(flush(1, true)), "ERR DB must be empty to perform CLUSTER FLUSHSLOTS.");
    assert!(done(flush(1, false)).shards[0].slots.is_empty());
    assert_eq!(flush(4, false), Ok(None));
}

#[test]
fn meet_admits_both_nodes() {
    let registered = [registration(1), registration(2)];
    let address = MeetAddress::parse("127.0.0.1", "7002", Some("17002")).unwrap();
    let met = done(meet(&empty(), stamp(1), &registered[0], &address, &registered));
    let primaries: Vec<NodeId> = met.shards.iter().map(|shard| shard.primary).collect();
    assert_eq!(primaries, [node(1), node(2)]);
    assert_eq!(meet(&met, stamp(2), &registered[0], &address, &registered), Ok(None));
    let nowhere = MeetAddress::parse("127.0.0.1", "7009", None).unwrap();
    assert_eq!(
        text(meet(&met, stamp(2), &registered[0], &nowhere, &registered)),
        "ERR No node with that address is registered with this cluster's coordinator \
         (cluster-name brisk)"
    );
}

#[test]
fn addresses_of_meet_get_the_texts_of_redis() {
    let parse = |ip, port, bus| text(MeetAddress::parse(ip, port, bus));
    assert_eq!(parse("x", "1", None), "ERR Invalid node address specified: x:1");
    let large = "ERR Invalid node address specified: 127.0.0.1:99999999";
    assert_eq!(parse("127.0.0.1", "99999999", None), large);
    let bus = "ERR Invalid node address specified: 127.0.0.1:1";
    assert_eq!(parse("127.0.0.1", "1", Some("99999999")), bus);
    assert_eq!(parse("127.0.0.1", "abc", None), "ERR Invalid TCP base port specified: abc");
    assert_eq!(parse("127.0.0.1", "1", Some("abc")), "ERR Invalid TCP bus port specified: abc");
}

#[test]
fn replicate_before_and_after_meet() {
    let id = |n: u8| node(n).to_string();
    let unmet = replicate(&three_shards(), stamp(2), own(9), &id(1));
    assert_eq!(text(unmet), format!("ERR Unknown node {}", id(1)));
    let before = replicate(&empty(), stamp(2), own(9), &id(9));
    assert_eq!(text(before), "ERR Can't replicate myself");
    let at = |own, target: &str| replicate(&three_shards(), stamp(2), own, target);
    assert_eq!(text(at(own(1), "abc")), "ERR Unknown node abc");
    assert_eq!(text(at(own(1), &id(4))), "ERR I can only replicate a master, not a replica.");
    let with_slots = "ERR To set a master the node must be empty and without assigned slots.";
    assert_eq!(text(at(own(1), &id(2))), with_slots);
    assert_eq!(at(own(4), &id(1)), Ok(None));
    let moved = done(at(own(4), &id(2)));
    assert_eq!(
        (moved.shards[0].replicas.len(), &moved.shards[1].replicas[..]),
        (0, &[node(4)][..])
    );
    let address = MeetAddress::parse("127.0.0.1", "7005", None).unwrap();
    let met = done(meet(&three_shards(), stamp(2), &registration(1), &address, &[registration(5)]));
    let with_keys = OwnNode { id: node(5), has_keys: true };
    assert_eq!(text(replicate(&met, stamp(3), with_keys, &id(1))), with_slots);
    let joined = done(replicate(&met, stamp(3), own(5), &id(1)));
    assert_eq!((joined.shards.len(), &joined.shards[0].replicas[..]), (3, &[node(4), node(5)][..]));
}

#[test]
fn the_commands_of_redis_cli_create_form_a_cluster() {
    let all: Vec<Registration> = (1..5).map(registration).collect();
    let mut topology = empty();
    for (at, list) in [["0", "5460"], ["5461", "10922"], ["10923", "16383"]].iter().enumerate() {
        topology = done(add_slots(&topology, stamp(1), &all[at], &ranges(list).unwrap()));
    }
    let primary = node(1).to_string();
    let early = replicate(&topology, stamp(2), own(4), &primary);
    assert_eq!(text(early), format!("ERR Unknown node {primary}"));
    let first = MeetAddress::parse("127.0.0.1", "7001", Some("17001")).unwrap();
    for node in &all[1..3] {
        assert_eq!(meet(&topology, stamp(3), node, &first, &all), Ok(None));
    }
    topology = done(meet(&topology, stamp(3), &all[3], &first, &all));
    topology = done(replicate(&topology, stamp(4), own(4), &primary));
    assert_eq!((topology.members.len(), topology.shards.len()), (4, 3));
    assert_eq!(topology.shards[0].replicas, [node(4)]);
    assert_eq!(topology.slots_assigned(), 16_384);
}

#[test]
fn forget_succeeds_again_for_ten_minutes() {
    let live: BTreeSet<NodeId> = (1..5).map(node).collect();
    let id = |n: u8| node(n).to_string();
    let topology = three_shards();
    let none = BTreeSet::new();
    let at = |topology: &Topology, own, target: &str, live, now| {
        forget(topology, stamp(2), node(own), target, live, now)
    };
    assert_eq!(
        text(at(&topology, 1, &id(1), &live, 0)),
        "ERR I tried hard but I can't forget myself..."
    );
    assert_eq!(text(at(&topology, 4, &id(1), &live, 0)), "ERR Can't forget my master!");
    assert_eq!(text(at(&topology, 1, &id(8), &live, 0)), format!("ERR Unknown node {}", id(8)));
    assert_eq!(at(&topology, 1, &id(2), &live, 0), Err(ChangeError::ForgetOwner(node(2))));
    assert_eq!(at(&topology, 2, &id(1), &none, 0), Err(ChangeError::ForgetPrimary(node(1))));
    let forgotten = done(at(&topology, 1, &id(4), &live, 1_000));
    assert!(!forgotten.members.contains_key(&node(4)));
    assert_eq!(at(&forgotten, 2, &id(4), &live, 1_599), Ok(None));
    assert_eq!(
        text(at(&forgotten, 2, &id(4), &live, 1_600)),
        format!("ERR Unknown node {}", id(4))
    );
    let dead = done(at(&topology, 1, &id(2), &none, 0));
    assert_eq!((dead.shards.len(), dead.slots_assigned()), (2, 16_384 - 5_462));
    let mut empty = topology.clone();
    empty.shards[0].slots = Default::default();
    let orphaned = done(at(&empty, 2, &id(1), &live, 0));
    assert_eq!(orphaned.shard_of(node(4)).unwrap().primary, node(4));
    assert!(orphaned.shard_of(node(1)).is_none());
}

#[test]
fn reset_leaves_the_cluster() {
    let with_keys = OwnNode { id: node(1), has_keys: true };
    assert_eq!(
        text(reset(&three_shards(), stamp(2), with_keys, 0)),
        "ERR CLUSTER RESET can't be called with master nodes containing keys"
    );
    let left = done(reset(&three_shards(), stamp(2), own(1), 5));
    let orphan = left.shard_of(node(4)).unwrap();
    assert_eq!((orphan.primary, orphan.primary_run(), orphan.slots.count()), (node(4), None, 0));
    assert_eq!(left.removed.get(&node(1)), Some(&5));
    assert_eq!(reset(&left, stamp(3), own(1), 6), Ok(None));
    let back = done(add_slots(&left, stamp(3), &registration(1), &slots(&["0"]).unwrap()));
    assert!(back.removed.is_empty());
    assert_eq!(check_installation("brisk", Some(&left), Some(&back)), Ok(()));
}

#[test]
fn a_moved_node_corrects_its_address_and_keeps_unknown_fields() {
    let mut topology = three_shards();
    let known = topology.members.get_mut(&node(2)).unwrap();
    known.other.insert("rack".into(), "r2".into());
    assert_eq!(correct_member(&topology, stamp(2), &registration(2)), Ok(None));
    let mut moved = registration(2);
    moved.member.ip = "10.0.0.9".into();
    let corrected = done(correct_member(&topology, stamp(2), &moved));
    let member = &corrected.members[&node(2)];
    assert_eq!((member.ip.as_str(), member.other.len()), ("10.0.0.9", 1));
    assert_eq!(correct_member(&topology, stamp(2), &registration(9)), Ok(None));
}

#[test]
fn a_shard_remembers_the_ttl_of_a_forgotten_replica_until_its_primary_serves() {
    let mut topology = three_shards();
    topology.members.get_mut(&node(4)).unwrap().ttl = 15;
    let shard = topology.shard_of(node(1)).unwrap().clone();
    let target = node(4).to_string();
    let forgotten = done(forget(&topology, stamp(2), node(1), &target, &BTreeSet::new(), 0));
    assert_eq!(forgotten.shard(shard.id).unwrap().former_ttl, 15);
    let clear = |term, run| clear_former_ttl(&forgotten, stamp(3), shard.id, term, run);
    assert_eq!(clear(shard.term.next(), run(1)), Ok(None), "another term");
    assert_eq!(clear(shard.term, run(2)), Ok(None), "another primary");
    let cleared = done(clear(shard.term, run(1)));
    assert_eq!(cleared.shard(shard.id).unwrap().former_ttl, 0);
    // The TTL of the node is unknown.
    let forgotten = done(forget(&three_shards(), stamp(2), node(1), &target, &BTreeSet::new(), 0));
    assert_eq!(forgotten.shard(shard.id).unwrap().former_ttl, 1);
}

#[test]
fn only_the_change_of_the_node_itself_sets_its_ttl() {
    let recorded = done(record_ttl(&three_shards(), stamp(2), node(2), 15));
    assert_eq!(recorded.members[&node(2)].ttl, 15);
    assert_eq!(record_ttl(&recorded, stamp(3), node(2), 15), Ok(None));
    assert_eq!(record_ttl(&recorded, stamp(3), node(9), 15), Ok(None));
    // The controller may know only the previous registration.
    let mut outdated = registration(2);
    outdated.member.ttl = 5;
    assert_eq!(correct_member(&recorded, stamp(3), &outdated), Ok(None));
    outdated.member.ip = "10.0.0.9".into();
    let corrected = done(correct_member(&recorded, stamp(3), &outdated));
    assert_eq!(corrected.members[&node(2)].ttl, 15);
}

#[test]
fn a_promotion_raises_the_term_and_keeps_the_former_primary_as_a_replica() {
    let failover = to_node(4, TermCause::Failover, Term(7));
    let promoted = done(promote(&three_shards(), stamp(2), &failover));
    let shard = &promoted.shards[0];
    assert_eq!((shard.term, shard.primary, &shard.isr[..]), (Term(8), node(4), &[run(4)][..]));
    assert_eq!((&shard.replicas[..], shard.cause), (&[node(1)][..], TermCause::Failover));
    let late = promote(&promoted, stamp(3), &failover);
    assert!(text(late).contains("has term 8 by now, the change was made for term 7"));
    let no_replica = to_node(2, TermCause::Failover, Term(7));
    assert!(promote(&three_shards(), stamp(2), &no_replica).is_err());
    let restarted = NodeRun { node: node(1), incarnation: crate::id::Incarnation(99) };
    let resume = Promotion { to: restarted, ..to_node(1, TermCause::Resumed, Term(7)) };
    let resumed = done(promote(&three_shards(), stamp(2), &resume));
    assert_eq!(
        (resumed.shards[0].term, resumed.shards[0].primary_run()),
        (Term(8), Some(restarted))
    );
}

#[test]
fn a_planned_switch_keeps_the_in_sync_set_of_a_sync_shard() {
    let sync = done(set_durability(&three_shards(), stamp(2), shard_id(1), Durability::Sync));
    let both = [run(1), run(4)];
    let grown = done(set_in_sync(&sync, stamp(3), shard_id(1), Term(7), &both));
    assert_eq!(set_in_sync(&grown, stamp(4), shard_id(1), Term(7), &both), Ok(None));
    assert!(set_in_sync(&grown, stamp(4), shard_id(1), Term(6), &both).is_err());
    assert!(set_in_sync(&grown, stamp(4), shard_id(1), Term(7), &[run(4)]).is_err());
    let switched = done(promote(&grown, stamp(4), &to_node(4, TermCause::Planned, Term(7))));
    assert_eq!(switched.shards[0].isr, [run(4), run(1)]);
    let failed = done(promote(&grown, stamp(4), &to_node(4, TermCause::Failover, Term(7))));
    assert_eq!(failed.shards[0].isr, [run(4)]);
}

#[test]
fn a_primary_that_reasserts_itself_makes_earlier_decisions_late() {
    let next = done(reassert(&three_shards(), stamp(2), run(1), 15));
    assert_eq!((next.epoch, &next.shards), (Epoch(42), &three_shards().shards));
    assert!(reassert(&three_shards(), stamp(2), run(4), 15).is_err());
    let restarted = NodeRun { incarnation: crate::id::Incarnation(99), ..run(1) };
    assert!(reassert(&three_shards(), stamp(2), restarted, 15).is_err());
}

#[test]
fn failover_and_config_epochs_get_the_texts_of_redis() {
    let topology = three_shards();
    assert_eq!(failover_shard(&topology, node(4)).unwrap().id, shard_id(1));
    assert_eq!(
        text(failover_shard(&topology, node(1))),
        "ERR You should send CLUSTER FAILOVER to a replica"
    );
    assert_eq!(text(check_config_epoch(-1)), "ERR Invalid config epoch specified: -1");
    assert_eq!(check_config_epoch(5), Ok(()));
}

#[test]
fn a_formed_cluster_is_spread_over_zones_and_hosts() {
    let nodes: Vec<Registration> = (0..6)
        .map(|n| {
            let mut node = registration(n);
            node.member.zone = ["a", "b", "c"][usize::from(n) / 2].into();
            node.member.ip = format!("10.0.0.{}", n / 2);
            node
        })
        .collect();
    let formed = done(form(&empty(), stamp(1), &nodes, 3, 1));
    let slots: Vec<String> = formed.shards.iter().map(|shard| shard.slots.to_string()).collect();
    assert_eq!(slots, ["0-5460", "5461-10922", "10923-16383"]); // as redis-cli --cluster create
    let zone = |id: NodeId| formed.members[&id].zone.clone();
    let primaries: BTreeSet<String> = formed.shards.iter().map(|s| zone(s.primary)).collect();
    assert_eq!(primaries.len(), 3);
    for shard in &formed.shards {
        assert_ne!(zone(shard.primary), zone(shard.replicas[0]), "{shard:?}");
    }
    let mut reversed = nodes.clone();
    reversed.reverse();
    assert_eq!(done(form(&empty(), stamp(1), &reversed, 3, 1)), formed);
    assert_eq!(form(&formed, stamp(2), &nodes, 3, 1), Err(ChangeError::AlreadyFormed));
    let twice = [nodes[0].clone(), nodes[0].clone()];
    let once = ChangeError::TooFewNodes { wanted: 2, registered: 1 };
    assert_eq!(form(&empty(), stamp(1), &twice, 2, 0), Err(once));
    let few = ChangeError::TooFewNodes { wanted: 9, registered: 6 };
    assert_eq!(form(&empty(), stamp(1), &nodes, 3, 2), Err(few));
}

#[test]
fn every_slot_has_one_owner_however_many_shards_are_formed() {
    for shards in [1, 2, 3, 5, 6, 7, 100, 256] {
        let nodes: Vec<Registration> = (0..shards).map(|n| registration(n as u8)).collect();
        let formed = done(form(&empty(), stamp(1), &nodes, shards, 0));
        let all = formed.shards.iter().fold(SlotRanges::default(), |all, s| all.union(&s.slots));
        assert_eq!((all, formed.slots_assigned()), (SlotRanges::all(), 16_384), "{shards}");
    }
}

fn random_change(random: &mut Random, topology: &Topology, number: u64) -> Edit {
    const NODES: usize = 8;
    let mut draw = || random.below(NODES) as u8;
    let (a, b) = (draw(), draw());
    let target = node(b).to_string();
    let live: BTreeSet<NodeId> =
        (0..NODES as u8).filter(|_| random.percent(60)).map(node).collect();
    let first = random.below(16_000) as u16;
    let picked = [range(first, first + 300).ranges()[0]];
    let change = stamp(number);
    match random.below(14) {
        0 | 9 => add_slots(topology, change, &registration(a), &picked),
        1 => delete_slots(topology, change, node(a), &picked, |_| false),
        2 => flush_slots(topology, change, node(a), random.percent(50)),
        3 | 10 => {
            let address =
                MeetAddress::parse("127.0.0.1", &format!("{}", 7000 + u16::from(b)), None)?;
            let all: Vec<Registration> = (0..NODES as u8).map(registration).collect();
            meet(topology, change, &registration(a), &address, &all)
        }
        4 => replicate(topology, change, own(a), &target),
        5 => forget(topology, change, node(a), &target, &live, number),
        6 => reset(topology, change, own(a), number),
        7 => {
            let mut bytes = [0; 20];
            bytes[12..].copy_from_slice(&number.to_be_bytes());
            let id = crate::id::MigrationId::from_bytes(bytes);
            let own = topology.shard_of(node(a)).map(|shard| shard.slots.clone());
            begin_migration(topology, change, id, &own.unwrap_or_default(), node(a), &target)
        }
        8 => match topology.migrations.last() {
            Some(last) if random.percent(70) => commit_migration(topology, change, last.id),
            Some(last) => abort_migration(topology, change, last.id, "cancelled"),
            None => Ok(None),
        },
        _ => {
            let Some(shard) = topology.shard_of(node(a)) else { return Ok(None) };
            let cause =
                if shard.primary == node(a) { TermCause::Resumed } else { TermCause::Failover };
            let (shard, expected_term) = (shard.id, shard.term);
            let promotion = Promotion { shard, expected_term, ..to_node(a, cause, expected_term) };
            promote(topology, change, &promotion)
        }
    }
}

#[test]
fn every_document_that_a_change_makes_can_be_installed_after_the_one_before() {
    for seed in 0..40 {
        let mut random = Random::new(seed);
        let mut topology = empty();
        let mut changes = 0;
        for number in 0..100 {
            if let Ok(Some(next)) = random_change(&mut random, &topology, number) {
                let installed = check_installation("brisk", Some(&topology), Some(&next));
                assert_eq!(installed, Ok(()), "seed {seed}, change {number}");
                assert_eq!(next.change, stamp(number), "seed {seed}");
                let json = next.to_json().unwrap();
                assert_eq!(Topology::parse(&json).unwrap(), next, "seed {seed}");
                topology = next;
                changes += 1;
            }
        }
        assert!(changes > 10, "seed {seed}: {changes} changes only");
    }
}
