//! Tests etcd with stopped and killed members, without a quorum, with authentication, frozen by an
//! alarm, and without the gateway.

use crate::gateway::enable_authentication;
use crate::subject::{open_endpoints, open_etcd, registration};
use brisk_coordinate::Coordinator;
use brisk_coordinate::error::CoordinatorError;
use brisk_coordinate::etcd::{EtcdCoordinator, EtcdOptions};
use brisk_coordinate::values::{
    ChangeOutcome, Claim, Lease, LeaseTtl, Revision, TopologyChange, WatchEvent,
};
use brisk_testkit::etcd::{Etcd, EtcdLaunch};
use brisk_testkit::wait::{holds_within, wait_until};
use std::time::Duration;

/// Time for several rounds of timeouts and elections on a busy machine.
const RECOVERY_MAX: Duration = Duration::from_secs(120);

fn ttl(seconds: u64) -> LeaseTtl {
    LeaseTtl::at_least(Duration::from_secs(seconds))
}

/// Repeats a change until it is made, as a caller does if the outcome is unknown: it reads the
/// document again and looks for its stamp.
#[track_caller]
fn change_until_made(coordinator: &EtcdCoordinator, stamp: &[u8]) -> Revision {
    let mut made = None;
    let is_made = holds_within(RECOVERY_MAX, || {
        let Ok(topology) = coordinator.read() else { return false };
        if topology.document.as_deref() == Some(stamp) {
            made = Some(topology.revision);
            return true;
        }
        let change =
            TopologyChange { expected: topology.revision, document: stamp, controller: None };
        match coordinator.change(&change) {
            ChangeOutcome::Changed(revision) => made = Some(revision),
            ChangeOutcome::Conflict | ChangeOutcome::Unknown(_) => {}
            ChangeOutcome::Refused(CoordinatorError::Unreachable(_)) => {}
            ChangeOutcome::Refused(error) => panic!("{error}"),
        }
        made.is_some()
    });
    assert!(is_made, "the change was not made in {RECOVERY_MAX:?}");
    made.unwrap_or_default()
}

/// Waits until a watch reports a document.
#[track_caller]
fn wait_for_document(watch: &mut dyn brisk_coordinate::Watch, stamp: &[u8]) {
    let is_reported = holds_within(RECOVERY_MAX, || {
        let events = watch.next(Duration::from_millis(200)).unwrap_or_default();
        let is_it = |event: &WatchEvent| match event {
            WatchEvent::Topology(topology) => topology.document.as_deref() == Some(stamp),
            _ => false,
        };
        events.iter().any(is_it)
    });
    assert!(is_reported, "the watch did not report the document in {RECOVERY_MAX:?}");
}

fn three() -> Option<(Etcd, EtcdCoordinator)> {
    let etcd = EtcdLaunch::new(3).start()?;
    let coordinator = open_etcd(&etcd, &EtcdOptions::default());
    Some((etcd, coordinator))
}

#[test]
fn a_frozen_member_is_left_by_calls_renewals_and_watches() {
    let Some((etcd, coordinator)) = three() else { return };
    change_until_made(&coordinator, b"before");
    let lease = coordinator.register(&registration(1, "i1"), ttl(60), Claim::Start).unwrap();
    let mut watch = coordinator.watch(coordinator.snapshot().unwrap().revision);
    assert_eq!(watch.next(Duration::from_millis(200)).unwrap(), []);
    // The coordinator and the watch use the first member, whose connections stay open.
    etcd.freeze(0);
    let renewed = coordinator.renew(&lease);
    change_until_made(&coordinator, b"after");
    wait_for_document(&mut *watch, b"after");
    // If the frozen member was the leader, the election is over by now.
    wait_until("a renewal", || coordinator.renew(&lease).is_ok());
    assert!(
        !matches!(renewed, Err(CoordinatorError::LeaseLost)),
        "an unanswered renewal loses no lease"
    );
    etcd.thaw(0);
    etcd.wait_until_healthy(0);
    assert_eq!(coordinator.nodes().unwrap().len(), 1);
}

#[test]
fn a_call_with_a_limit_and_a_renewal_take_no_longer() {
    let Some(etcd) = EtcdLaunch::new(1).start() else { return };
    let coordinator = open_etcd(&etcd, &EtcdOptions::default());
    let lease = coordinator.register(&registration(1, "a"), ttl(600), Claim::Start).unwrap();
    let short = Lease { ttl: ttl(2), ..lease };
    let of_lease = Duration::from_secs(2) / 6;
    let limit = Duration::from_millis(300);
    let each = |call: &dyn Fn() -> Option<CoordinatorError>, limit_max: Duration| {
        // The call uses a connection that is open, and gets no response.
        etcd.thaw(0);
        coordinator.read().unwrap();
        etcd.freeze(0);
        match call() {
            Some(CoordinatorError::TimedOut { limit, .. }) => assert!(limit <= limit_max),
            other => panic!("{other:?}"),
        }
    };
    let document = TopologyChange { expected: Revision::NONE, document: b"1", controller: None };
    each(&|| coordinator.read_within(limit).err(), limit / 3);
    each(&|| coordinator.snapshot_within(limit).err(), limit / 3);
    each(
        &|| match coordinator.change_within(&document, limit) {
            ChangeOutcome::Unknown(error) => Some(error),
            _ => None,
        },
        limit / 3,
    );
    each(&|| coordinator.renew(&short).err(), of_lease);
    etcd.thaw(0);
}

#[test]
fn a_frozen_leader_is_replaced_and_the_lease_survives() {
    let Some((etcd, coordinator)) = three() else { return };
    let lease = coordinator.register(&registration(1, "i1"), ttl(60), Claim::Start).unwrap();
    let leader = etcd.leader();
    etcd.freeze(leader);
    change_until_made(&coordinator, b"after");
    wait_until("a renewal", || coordinator.renew(&lease).is_ok());
    etcd.thaw(leader);
    etcd.wait_until_healthy(leader);
    // The former leader responds again, in the new term.
    wait_until("a renewal by the former leader", || {
        let endpoints = [etcd.endpoints()[leader].clone()];
        let alone = open_endpoints(&endpoints, false, &EtcdOptions::default());
        alone.renew(&lease).is_ok()
    });
}

#[test]
fn killed_members_are_left_and_used_again() {
    let Some((mut etcd, coordinator)) = three() else { return };
    let mut watch = coordinator.watch(coordinator.snapshot().unwrap().revision);
    for at in [0, 1, 2, 0] {
        etcd.kill(at);
        let stamp = format!("without {at}");
        change_until_made(&coordinator, stamp.as_bytes());
        wait_for_document(&mut *watch, stamp.as_bytes());
        etcd.restart(at);
        etcd.wait_until_healthy(at);
    }
}

#[test]
fn without_quorum_a_change_is_unknown_and_the_history_decides_it_later() {
    let Some((etcd, coordinator)) = three() else { return };
    let expected = change_until_made(&coordinator, b"before");
    let lease = coordinator.register(&registration(1, "i1"), ttl(5), Claim::Start).unwrap();
    let mut watch = coordinator.watch(coordinator.snapshot().unwrap().revision);
    assert_eq!(watch.next(Duration::from_millis(200)).unwrap(), []);
    etcd.freeze(1);
    etcd.freeze(2);
    let change = TopologyChange { expected, document: b"during", controller: None };
    let outcome = coordinator.change(&change);
    assert!(matches!(outcome, ChangeOutcome::Unknown(_)), "{outcome:?}");
    let error = coordinator.read().unwrap_err();
    let is_transient = |error: &CoordinatorError| {
        matches!(
            error,
            CoordinatorError::TimedOut { .. }
                | CoordinatorError::ConnectionLost(_)
                | CoordinatorError::NoLeader(_)
                | CoordinatorError::Unreachable(_)
        )
    };
    assert!(is_transient(&error), "{error}");
    let error = coordinator.renew(&lease).unwrap_err();
    assert!(is_transient(&error), "{error}");
    let is_reported = holds_within(RECOVERY_MAX, || {
        let events = watch.next(Duration::from_millis(200)).unwrap_or_default();
        events.contains(&WatchEvent::NoLeader)
    });
    assert!(is_reported, "the watch reports the missing leader");
    etcd.thaw(1);
    etcd.thaw(2);
    for at in 0..3 {
        etcd.wait_until_healthy(at);
    }
    change_until_made(&coordinator, b"after");
    let mut seen = Vec::new();
    let is_complete = holds_within(RECOVERY_MAX, || {
        for event in watch.next(Duration::from_millis(200)).unwrap_or_default() {
            if let WatchEvent::Topology(topology) = event {
                seen.push(topology.document.unwrap_or_default());
            }
        }
        seen.last().is_some_and(|document| document == b"after")
    });
    assert!(is_complete, "{seen:?}");
    // Either the change was applied before the next one, or it never will be.
    assert!(seen == [b"after".to_vec()] || seen == [b"during".to_vec(), b"after".to_vec()]);
    // The process kept running, whether or not its lease survived.
    let lease = match coordinator.renew(&lease) {
        Err(CoordinatorError::LeaseLost) => {
            coordinator.register(&registration(1, "i1"), ttl(5), Claim::Resume).unwrap()
        }
        other => other.unwrap(),
    };
    assert_eq!(coordinator.nodes().unwrap()[0].registration.incarnation, lease.incarnation);
}

#[test]
fn without_any_member_a_change_is_rejected_and_not_unknown() {
    let Some(mut etcd) = EtcdLaunch::new(1).start() else { return };
    let coordinator = open_etcd(&etcd, &EtcdOptions::default());
    coordinator.read().unwrap();
    etcd.kill(0);
    let change = TopologyChange { expected: Revision::NONE, document: b"x", controller: None };
    let outcome = coordinator.change(&change);
    assert!(
        matches!(outcome, ChangeOutcome::Refused(CoordinatorError::Unreachable(_))),
        "{outcome:?}"
    );
    assert!(coordinator.read().unwrap_err().to_string().contains(&etcd.endpoints()[0]));
    etcd.restart(0);
    etcd.wait_until_healthy(0);
    change_until_made(&coordinator, b"x");
}

fn options_of(user: &str, password: &str) -> EtcdOptions {
    EtcdOptions {
        user: Some(user.to_owned()),
        password: Some(password.to_owned()),
        ..EtcdOptions::default()
    }
}

#[test]
fn wrong_credentials_are_rejected_and_expired_tokens_are_replaced() {
    let Some(mut etcd) = EtcdLaunch::new(1).arg("--auth-token-ttl=1").start() else { return };
    // Credentials do no harm before authentication is enabled.
    let coordinator = open_etcd(&etcd, &options_of("root", "secret"));
    coordinator.read().unwrap();
    enable_authentication(&etcd);
    change_until_made(&coordinator, b"1");
    for options in [
        EtcdOptions::default(),
        options_of("root", "wrong"),
        options_of("unknown", "secret"),
        options_of("stranger", "secret"),
    ] {
        let other = open_etcd(&etcd, &options);
        let error = other.read().unwrap_err();
        assert!(matches!(error, CoordinatorError::Unauthorized(_)), "{options:?}: {error}");
        let change = TopologyChange { expected: Revision::NONE, document: b"x", controller: None };
        let outcome = other.change(&change);
        assert!(
            matches!(outcome, ChangeOutcome::Refused(CoordinatorError::Unauthorized(_))),
            "{outcome:?}"
        );
        let error = other.watch(Revision(1)).next(Duration::from_secs(5)).unwrap_err();
        assert!(matches!(error, CoordinatorError::Unauthorized(_)), "{options:?}: {error}");
    }
    let lease = coordinator.register(&registration(1, "i1"), ttl(60), Claim::Start).unwrap();
    let mut watch = coordinator.watch(coordinator.snapshot().unwrap().revision);
    // A restart forgets all tokens.
    etcd.kill(0);
    etcd.restart(0);
    etcd.wait_until_healthy(0);
    let renewed = coordinator.renew(&lease);
    assert!(renewed.is_ok(), "{renewed:?}");
    change_until_made(&coordinator, b"2");
    wait_for_document(&mut *watch, b"2");
}

#[test]
fn after_a_space_alarm_changes_have_no_effect_and_reads_continue() {
    let Some(etcd) = EtcdLaunch::new(1).arg("--quota-backend-bytes=500000").start() else { return };
    let coordinator = open_etcd(&etcd, &EtcdOptions::default());
    let mut expected = Revision::NONE;
    let mut refused = 0;
    for number in 0..100 {
        let document = vec![number; 100_000];
        let change = TopologyChange { expected, document: &document, controller: None };
        match coordinator.change(&change) {
            ChangeOutcome::Changed(revision) => expected = revision,
            // etcd applies the change that exceeds the quota, and none after the alarm.
            ChangeOutcome::Refused(CoordinatorError::NoSpace) => {
                refused += 1;
                assert_eq!(coordinator.read().unwrap().revision, expected);
            }
            other => panic!("{other:?}"),
        }
        if refused == 3 {
            break;
        }
    }
    assert_eq!(refused, 3);
    assert_eq!(coordinator.read().unwrap().revision, expected);
}

/// An etcd that has lost its data counts its revisions from the beginning again.
#[test]
fn a_watch_after_a_revision_that_etcd_has_not_reached_ends() {
    let Some(etcd) = EtcdLaunch::new(1).start() else { return };
    let coordinator = open_etcd(&etcd, &EtcdOptions::default());
    let mut watch = coordinator.watch(Revision(1_000_000));
    let mut events = Vec::new();
    wait_until("the watch to end", || {
        events = watch.next(Duration::from_millis(100)).unwrap();
        !events.is_empty()
    });
    assert!(matches!(events[..], [WatchEvent::Compacted { .. }]), "{events:?}");
}

#[test]
fn a_missing_gateway_is_named() {
    let Some(etcd) = EtcdLaunch::new(1).arg("--enable-grpc-gateway=false").start() else { return };
    let coordinator = open_etcd(&etcd, &EtcdOptions::default());
    let text = coordinator.read().unwrap_err().to_string();
    assert!(text.contains("--enable-grpc-gateway"), "{text}");
    let change = TopologyChange { expected: Revision::NONE, document: b"x", controller: None };
    let outcome = coordinator.change(&change);
    assert!(
        matches!(outcome, ChangeOutcome::Refused(CoordinatorError::NoGateway { .. })),
        "{outcome:?}"
    );
}

#[test]
fn a_stop_ends_a_call_that_waits_for_a_frozen_member() {
    let Some(etcd) = EtcdLaunch::new(1).start() else { return };
    let coordinator = open_etcd(&etcd, &EtcdOptions::default());
    let revision = coordinator.snapshot().unwrap().revision;
    let mut watch = coordinator.watch(revision);
    assert_eq!(watch.next(Duration::from_millis(200)).unwrap(), []);
    etcd.freeze(0);
    std::thread::scope(|scope| {
        let waiting = scope.spawn(|| watch.next(Duration::from_secs(3_600)));
        let reading = scope.spawn(|| coordinator.read());
        coordinator.stop();
        let read = reading.join().expect("no panic");
        assert!(matches!(read, Err(CoordinatorError::Stopped)), "{read:?}");
        assert!(waiting.join().expect("no panic").is_err());
    });
    etcd.thaw(0);
}

#[test]
fn an_unreachable_etcd_is_reported_with_all_endpoints() {
    let Some((mut etcd, coordinator)) = three() else { return };
    let position = coordinator.snapshot().unwrap().revision;
    let mut watch = coordinator.watch(position);
    assert_eq!(watch.next(Duration::from_millis(200)).unwrap(), []);
    (0..3).for_each(|at| etcd.kill(at));
    let names_all = |error: &CoordinatorError| {
        let text = error.to_string();
        text.starts_with("the coordinator is unreachable: ")
            && etcd.endpoints().iter().all(|endpoint| text.contains(endpoint))
    };
    wait_until("a call to name all endpoints", || coordinator.read().is_err_and(|e| names_all(&e)));
    let limit = Duration::from_secs(1);
    wait_until("the watch to name them", || watch.next(limit).is_err_and(|e| names_all(&e)));
}
