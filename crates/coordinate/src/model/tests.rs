//! Tests of the model's faults and of its determinism.

use super::*;
use crate::values::{Incarnation, NodeId};

fn change_of(expected: Revision, document: &[u8]) -> TopologyChange<'_> {
    TopologyChange { expected, document, controller: None }
}

fn node() -> NodeRegistration {
    NodeRegistration {
        node: NodeId::parse(&"a".repeat(40)).unwrap(),
        incarnation: Incarnation::parse("i1").unwrap(),
        details: Vec::new(),
    }
}

const FAULTY: ModelFaults = ModelFaults {
    lost_percent: 15,
    unanswered_percent: 15,
    late_percent: 15,
    late_max: Duration::from_secs(5),
    watch_lag_max: Duration::from_millis(500),
    expiry_lag_max: Duration::from_secs(1),
};

/// The results of several hundred calls as text.
fn run(seed: u64) -> String {
    let model = Model::new(seed, FAULTY);
    let (a, b) = (model.connect(), model.connect());
    let mut watch = b.watch(Revision::NONE);
    let mut log = String::new();
    for number in 0..200_u8 {
        let expected = a.read().map_or(Revision::NONE, |topology| topology.revision);
        let outcome = a.change(&change_of(expected, &[number]));
        let lease = b.register(&node(), LeaseTtl::at_least(Duration::ZERO), Claim::Start);
        model.advance(Duration::from_millis(u64::from(number) * 10));
        let events = watch.next(Duration::ZERO);
        log += &format!("{outcome:?} {lease:?} {events:?}\n");
    }
    log
}

#[test]
fn the_same_seed_gives_the_same_results_and_another_seed_does_not() {
    assert_eq!(run(1), run(1));
    assert_ne!(run(1), run(2));
}

#[test]
fn every_outcome_agrees_with_the_history() {
    for seed in 0..50 {
        let model = Model::new(seed, FAULTY);
        let client = model.connect();
        let (mut changed, mut unknown, mut excluded) = (Vec::new(), 0, Vec::new());
        let (mut late, mut present) = (0, Revision::NONE);
        for number in 0..200_u8 {
            match client.change(&change_of(present, &[number])) {
                ChangeOutcome::Changed(revision) => changed.push((revision, number)),
                ChangeOutcome::Unknown(_) => unknown += 1,
                ChangeOutcome::Conflict => excluded.push(number),
                ChangeOutcome::Refused(error) => panic!("seed {seed}: {error}"),
            }
            model.advance(Duration::from_millis(200));
            if let Ok(topology) = client.read() {
                present = topology.revision;
            }
        }
        model.set_faults(ModelFaults::default());
        model.advance(Duration::from_secs(10));
        let mut history = Vec::new();
        for event in client.watch(Revision::NONE).next(Duration::ZERO).unwrap() {
            let WatchEvent::Topology(topology) = event else { panic!("seed {seed}: {event:?}") };
            history.push((topology.revision, topology.document.unwrap_or_default()[0]));
        }
        for acknowledged in &changed {
            assert!(history.contains(acknowledged), "seed {seed}: {acknowledged:?} is lost");
        }
        for number in excluded {
            assert!(!history.iter().any(|(_, n)| *n == number), "seed {seed}: {number} conflicted");
        }
        late += history.len() - changed.len();
        assert!(late > 0 && late < unknown, "seed {seed}: {late} of {unknown} were applied");
    }
}

#[test]
fn a_lease_ends_at_its_time_and_not_before() {
    let model = Model::new(3, ModelFaults::default());
    let client = model.connect();
    let lease = client.register(&node(), LeaseTtl::at_least(Duration::from_secs(5)), Claim::Start);
    let lease = lease.unwrap();
    assert_eq!(lease.expires_at, Some(model.now().after(Duration::from_secs(5))));
    model.advance(Duration::from_secs(4));
    let lease = client.renew(&lease).unwrap();
    model.advance(Duration::from_millis(4_999));
    assert_eq!(client.nodes().unwrap().len(), 1);
    model.advance(Duration::from_millis(1));
    assert_eq!(client.nodes().unwrap().len(), 0);
    assert!(matches!(client.renew(&lease), Err(CoordinatorError::LeaseLost)));
}

#[test]
fn without_quorum_changes_are_unknown_leases_stay_and_some_changes_come_later() {
    let mut applied = 0;
    for seed in 0..20 {
        let model = Model::new(seed, ModelFaults::default());
        let client = model.connect();
        let ttl = LeaseTtl::at_least(Duration::from_secs(2));
        client.register(&node(), ttl, Claim::Start).unwrap();
        let mut watch = client.watch(client.snapshot().unwrap().revision);
        model.set_quorum(false);
        let outcome = client.change(&change_of(Revision::NONE, b"x"));
        assert!(matches!(outcome, ChangeOutcome::Unknown(CoordinatorError::NoLeader(_))));
        assert!(matches!(client.read(), Err(CoordinatorError::NoLeader(_))));
        assert_eq!(watch.next(Duration::ZERO).unwrap(), [WatchEvent::NoLeader]);
        model.advance(Duration::from_secs(600));
        model.set_quorum(true);
        assert_eq!(client.nodes().unwrap().len(), 1);
        applied += usize::from(client.read().unwrap().document.is_some());
        model.advance(Duration::from_secs(2));
        assert_eq!(client.nodes().unwrap().len(), 0);
    }
    assert!((1..20).contains(&applied), "{applied} of 20 changes were applied");
}

#[test]
fn a_client_that_is_cut_off_changes_nothing_while_others_continue() {
    let model = Model::new(4, ModelFaults::default());
    let (cut, other) = (model.connect(), model.connect());
    let mut watch = cut.watch(Revision::NONE);
    cut.set_cut(true);
    let outcome = cut.change(&change_of(Revision::NONE, b"x"));
    assert!(matches!(outcome, ChangeOutcome::Refused(CoordinatorError::Unreachable(_))));
    assert!(matches!(watch.next(Duration::ZERO), Err(CoordinatorError::Unreachable(_))));
    assert!(matches!(other.change(&change_of(Revision::NONE, b"y")), ChangeOutcome::Changed(_)));
    cut.set_cut(false);
    assert_eq!(watch.next(Duration::ZERO).unwrap().len(), 1);
}
