//! Documents for tests, and tests of parsing and validation.

use super::*;
use crate::id::Incarnation;
use crate::slots::{SlotId, SlotRange};

/// The id of the n-th node of a test.
pub(crate) fn node(n: u8) -> NodeId {
    let mut bytes = [0x11; 20];
    bytes[0] = n;
    NodeId::from_bytes(bytes)
}

/// The first run of the n-th node.
pub(crate) fn run(n: u8) -> NodeRun {
    NodeRun { node: node(n), incarnation: Incarnation(u64::from(n)) }
}

/// A change by the first run of node 1.
pub(crate) fn stamp(number: u64) -> ChangeId {
    ChangeId { writer: run(1), number }
}

/// The registration of member `n`.
pub(crate) fn registration(n: u8, incarnation: u64) -> Registration {
    Registration {
        id: node(n),
        incarnation: Incarnation(incarnation),
        version: "1".into(),
        member: member(n),
        no_failover: false,
        other: Map::new(),
    }
}

pub(crate) fn member(n: u8) -> Member {
    Member { ip: "127.0.0.1".into(), port: 7000 + u16::from(n), ..Member::default() }
}

pub(crate) fn shard_id(n: u8) -> ShardId {
    let mut bytes = [0x22; 20];
    bytes[0] = n;
    ShardId::from_bytes(bytes)
}

pub(crate) fn range(first: u16, last: u16) -> SlotRanges {
    SlotRanges::merged(vec![SlotRange::new(SlotId::new(first), SlotId::new(last)).unwrap()])
}

/// Three shards: nodes 1 to 3 are primaries with all slots, node 4 is a replica of node 1.
pub(crate) fn three_shards() -> Topology {
    let mut topology = Topology::empty("brisk", stamp(1));
    topology.epoch = Epoch(41);
    for (n, (first, last)) in [(1, (0, 5460)), (2, (5461, 10_922)), (3, (10_923, 16_383))] {
        topology.members.insert(node(n), member(n));
        let mut shard = Shard::founded(shard_id(n), run(n));
        shard.slots = range(first, last);
        shard.term = Term(7);
        topology.shards.push(shard);
    }
    topology.members.insert(node(4), member(4));
    topology.shards[0].replicas.push(node(4));
    topology
}

fn changed(change: impl FnOnce(&mut Topology)) -> Topology {
    let mut topology = three_shards();
    change(&mut topology);
    topology
}

#[test]
fn a_document_is_read_as_it_was_written() {
    let topology = three_shards();
    let json = topology.to_json().unwrap();
    assert_eq!(Topology::parse(&json).unwrap(), topology);
    let text = String::from_utf8(json).unwrap();
    assert!(text.contains(r#""slots":[[0,5460]],"term":7"#), "{text}");
    assert!(text.contains(r#""durability":"async""#), "{text}");
}

#[test]
fn unknown_fields_survive_at_every_level() {
    let id = node(1).to_string();
    let json = format!(
        r#"{{"format":1,"epoch":3,"change":"{id}@1:9","paused":{{"by":"x"}},
        "members":{{"{id}":{{"ip":"::1","port":7000,"rack":"r2"}}}},
        "shards":[{{"id":"{id}","slots":[[0,1]],"term":2,"primary":"{id}","weight":1.5}}]}}"#
    );
    let topology = Topology::parse(json.as_bytes()).unwrap();
    let text = String::from_utf8(topology.to_json().unwrap()).unwrap();
    for field in [r#""paused":{"by":"x"}"#, r#""rack":"r2""#, r#""weight":1.5"#] {
        assert!(text.contains(field), "{field} in {text}");
    }
}

#[test]
fn another_format_is_reported_before_other_errors() {
    let json = br#"{"format":2,"shards":"elsewhere"}"#;
    let error = Topology::parse(json).unwrap_err();
    assert_eq!(error, DocumentError::Format(2));
    assert_eq!(
        error.to_string(),
        "the document has format 2, this version supports format 1 only: upgrade this node"
    );
    assert!(matches!(Topology::parse(b"{"), Err(DocumentError::Syntax(_))));
    let large = vec![b' '; DOCUMENT_BYTES_MAX + 1];
    assert_eq!(Topology::parse(&large), Err(DocumentError::TooLarge(DOCUMENT_BYTES_MAX + 1)));
}

#[test]
fn every_rule_of_a_document_has_an_error() {
    type Case = (fn(&mut Topology), DocumentError);
    let cases: &[Case] = &[
        (
            |t| t.shards[1].slots = range(5460, 10_922),
            DocumentError::SlotOwnedTwice { slot: 5460, first: shard_id(1), second: shard_id(2) },
        ),
        (|t| t.shards[1].id = shard_id(1), DocumentError::RepeatedShard(shard_id(1))),
        (|t| t.shards[1].term = Term(0), DocumentError::NoTerm(shard_id(2))),
        (|t| t.shards[1].replicas.push(node(4)), DocumentError::RepeatedNode(node(4))),
        (|t| t.shards[0].replicas.clear(), DocumentError::WithoutShard(node(4))),
        (
            |t| t.shards[1].primary = node(9),
            DocumentError::NotAMember { shard: shard_id(2), node: node(9) },
        ),
        (
            |t| t.shards[1].isr = vec![run(3)],
            DocumentError::InSync { shard: shard_id(2), run: run(3) },
        ),
        (|t| t.shards[0].isr.push(run(4)), DocumentError::InSyncAsync(shard_id(1))),
        (|t| _ = t.removed.insert(node(4), 1), DocumentError::RemovedMember(node(4))),
        (|t| t.shards[0].why = "x".repeat(257), DocumentError::LongReason),
        (|t| t.members.get_mut(&node(1)).unwrap().port = 0, DocumentError::NoPort(node(1))),
        (
            |t| t.members.get_mut(&node(2)).unwrap().host = "a b".into(),
            DocumentError::MemberText { node: node(2), field: "host" },
        ),
        (
            |t| t.members.get_mut(&node(2)).unwrap().ip.clear(),
            DocumentError::MemberText { node: node(2), field: "ip" },
        ),
    ];
    for (change, error) in cases {
        assert_eq!(check(&changed(change)), Err(error.clone()));
    }
    assert_eq!(check(&three_shards()), Ok(()));
}

#[test]
fn an_older_document_is_not_installed() {
    let old = three_shards();
    let next = |change: fn(&mut Topology)| {
        let mut next = three_shards();
        next.epoch = Epoch(42);
        change(&mut next);
        check_installation("brisk", Some(&old), Some(&next))
    };
    assert_eq!(next(|_| ()), Ok(()));
    assert_eq!(
        next(|t| t.epoch = Epoch(41)),
        Err(InstallError::EpochNotGrown { in_force: Epoch(41), new: Epoch(41) })
    );
    let fell = InstallError::TermFell { shard: shard_id(1), in_force: Term(7), new: Term(6) };
    assert_eq!(next(|t| t.shards[0].term = Term(6)), Err(fell));
    let swapped = next(|t| {
        t.shards[0].primary = node(4);
        t.shards[0].replicas = vec![node(1)];
        t.shards[0].isr = vec![run(4)];
    });
    assert!(matches!(swapped, Err(InstallError::PrimaryChanged { .. })));
    let other = next(|t| t.name = Some("billing".into())).unwrap_err();
    assert_eq!(
        other.to_string(),
        "the document is of cluster 'billing', this node belongs to cluster 'brisk'"
    );
    assert_eq!(next(|t| t.name = None), Ok(()));
    let without_document = check_installation("brisk", Some(&old), None);
    assert_eq!(without_document, Err(InstallError::Disappeared(Epoch(41))));
    assert_eq!(check_installation("brisk", None, None), Ok(()));
}

#[test]
fn a_status_report_is_read_as_it_was_written() {
    let json = br#"{"incarnation":"c3","role":"replica","term":7,"replid":"r","offset":812345,"last_contact_ms":12,"load":1}"#;
    let status = NodeStatus::parse(json).unwrap();
    assert_eq!((status.incarnation, status.last_contact_ms), (Incarnation(0xc3), Some(12)));
    assert_eq!(NodeStatus::parse(&status.to_json().unwrap()).unwrap(), status);
    assert!(NodeStatus::parse(&vec![b' '; 20_000]).is_err());
}

#[test]
fn damaged_documents_are_errors_and_never_panic() {
    let whole = three_shards().to_json().unwrap();
    let mut random = brisk_testkit::random::Random::new(41);
    for round in 0..3_000 {
        let mut json = whole.clone();
        for _ in 0..=random.below(3) {
            let at = random.below(json.len());
            match random.below(3) {
                0 => json[at] = random.below(256) as u8,
                1 => json[at] = b"0123456789[]{},:\""[random.below(17)],
                _ => json.truncate(at.max(1)),
            }
        }
        if let Ok(topology) = Topology::parse(&json) {
            assert_eq!(check(&topology), Ok(()), "round {round}");
            // A document that was read can be mapped and shown.
            let map = crate::map::SlotMap::new(Some(&topology), run(1));
            assert_eq!(map.epoch(), topology.epoch, "round {round}");
        }
    }
}
