//! The contract of all coordinators. The same tests run against each of them, to verify that all
//! behave the same.

use crate::subject::{Subject, each_subject, id, registration};
use brisk_coordinate::error::CoordinatorError;
use brisk_coordinate::values::{
    Campaign, ChangeOutcome, Claim, Controller, DETAILS_BYTES_MAX, DOCUMENT_BYTES_MAX, LeaseTtl,
    Revision, STATUS_BYTES_MAX, TopologyChange, WatchEvent,
};
use brisk_coordinate::{Coordinator, Watch};
use std::time::Duration;

/// A TTL that does not expire during a test. The time limit of a renewal is a fraction of it, which
/// is long enough for a busy machine.
fn ttl() -> LeaseTtl {
    LeaseTtl::at_least(Duration::from_secs(30))
}

/// The TTL of leases that tests let expire.
fn short_ttl() -> LeaseTtl {
    LeaseTtl::at_least(Duration::from_secs(2))
}

fn change_of(expected: Revision, document: &[u8]) -> TopologyChange<'_> {
    TopologyChange { expected, document, controller: None }
}

/// Makes a change and returns its revision. No other client makes changes in the meantime. On a
/// busy disk, etcd may take longer than a call, and the outcome of the call is then unknown. The
/// document shows whether the change was made.
#[track_caller]
fn changed(
    subject: &Subject,
    coordinator: &dyn Coordinator,
    change: &TopologyChange<'_>,
) -> Revision {
    let (mut revision, mut is_unknown) = (None, false);
    subject.wait_until("the change is made", || {
        match coordinator.change(change) {
            ChangeOutcome::Changed(new) => revision = Some(new),
            ChangeOutcome::Unknown(_) => is_unknown = true,
            // An earlier call made the change.
            ChangeOutcome::Conflict if is_unknown => {
                revision = coordinator.read().ok().map(|topology| {
                    assert_eq!(topology.document.as_deref(), Some(change.document));
                    topology.revision
                });
            }
            other => panic!("the change was not made: {other:?}"),
        }
        revision.is_some()
    });
    revision.expect("the change was made")
}

/// Waits for events until `is_done` returns true.
#[track_caller]
fn events_until(
    subject: &Subject,
    watch: &mut dyn Watch,
    is_done: impl Fn(&[WatchEvent]) -> bool,
) -> Vec<WatchEvent> {
    let mut events = Vec::new();
    subject.wait_until("the events of a watch", || {
        events.extend(watch.next(Duration::from_millis(50)).expect("the watch works"));
        is_done(&events)
    });
    events
}

#[test]
fn a_document_changes_only_from_the_expected_revision() {
    each_subject(|subject| {
        let (a, b) = (subject.connect(), subject.connect());
        let empty = a.read().unwrap();
        assert_eq!((empty.revision, empty.document), (Revision::NONE, None));
        let first = changed(subject, &*a, &change_of(Revision::NONE, b"one"));
        assert!(first > Revision::NONE);
        assert!(matches!(b.change(&change_of(Revision::NONE, b"x")), ChangeOutcome::Conflict));
        let read = b.read().unwrap();
        assert_eq!((read.revision, read.document.as_deref()), (first, Some(&b"one"[..])));
        let second = changed(subject, &*b, &change_of(first, b"\0two\xff"));
        assert!(second > first);
        assert!(matches!(a.change(&change_of(first, b"x")), ChangeOutcome::Conflict));
        assert_eq!(a.read().unwrap().document.as_deref(), Some(&b"\0two\xff"[..]));
        let snapshot = a.snapshot().unwrap();
        assert_eq!(snapshot.topology, a.read().unwrap());
        assert!(snapshot.revision >= second);
    });
}

#[test]
fn values_above_their_bounds_are_rejected() {
    each_subject(|subject| {
        let a = subject.connect();
        let largest = vec![b'x'; DOCUMENT_BYTES_MAX];
        let revision = changed(subject, &*a, &change_of(Revision::NONE, &largest));
        assert_eq!(a.read().unwrap().document.as_deref(), Some(&largest[..]));
        let outcome = a.change(&change_of(revision, &vec![b'x'; DOCUMENT_BYTES_MAX + 1]));
        assert!(
            matches!(outcome, ChangeOutcome::Refused(CoordinatorError::TooLarge { .. })),
            "{outcome:?}"
        );
        let mut node = registration(1, "i1");
        node.details = vec![b'x'; DETAILS_BYTES_MAX + 1];
        let error = a.register(&node, ttl(), Claim::Start).unwrap_err();
        assert!(matches!(error, CoordinatorError::TooLarge { .. }), "{error}");
        node.details.pop();
        let lease = a.register(&node, ttl(), Claim::Start).unwrap();
        let error = a.put_status(&lease, &vec![b'x'; STATUS_BYTES_MAX + 1]).unwrap_err();
        assert!(matches!(error, CoordinatorError::TooLarge { .. }), "{error}");
    });
}

#[test]
fn nodes_are_listed_while_their_leases_live() {
    each_subject(|subject| {
        let (a, b) = (subject.connect(), subject.connect());
        let (one, two) = (registration(1, "i1"), registration(2, "j1"));
        let second = b.register(&two, ttl(), Claim::Start).unwrap();
        let first = a.register(&one, ttl(), Claim::Start).unwrap();
        assert_eq!((first.node, &first.incarnation), (one.node, &one.incarnation));
        assert!(first.ttl >= ttl());
        let nodes = b.nodes().unwrap();
        let listed: Vec<_> = nodes.iter().map(|node| node.registration.clone()).collect();
        assert_eq!(listed, [one, two.clone()]);
        assert_ne!(nodes[0].revision, nodes[1].revision);
        let renewed = a.renew(&first).unwrap();
        assert_eq!(renewed.id, first.id);
        assert!(renewed.expires_at >= first.expires_at);
        a.end(&first).unwrap();
        a.end(&first).unwrap();
        let nodes = b.nodes().unwrap();
        assert_eq!(nodes.len(), 1);
        assert_eq!(nodes[0].registration, two);
        let error = a.renew(&first).unwrap_err();
        assert!(matches!(error, CoordinatorError::LeaseLost), "{error}");
        b.end(&second).unwrap();
        assert_eq!(a.nodes().unwrap(), []);
    });
}

#[test]
fn a_started_process_replaces_its_earlier_incarnation_which_cannot_come_back() {
    each_subject(|subject| {
        let (old, new) = (subject.connect(), subject.connect());
        let (earlier, later) = (registration(1, "i1"), registration(1, "i2"));
        let lost = old.register(&earlier, ttl(), Claim::Start).unwrap();
        let lease = new.register(&later, ttl(), Claim::Start).unwrap();
        let error = old.renew(&lost).unwrap_err();
        assert!(matches!(error, CoordinatorError::LeaseLost), "{error}");
        let error = old.register(&earlier, ttl(), Claim::Resume).unwrap_err();
        assert!(matches!(error, CoordinatorError::NodeIdTaken { .. }), "{error}");
        new.renew(&lease).unwrap();
        // The earlier lease is gone, and ending it does not end the later registration.
        old.end(&lost).unwrap();
        let nodes = new.nodes().unwrap();
        assert_eq!(nodes.len(), 1);
        assert_eq!(nodes[0].registration, later);
    });
}

#[test]
fn a_process_that_lives_on_registers_again_with_the_same_incarnation() {
    each_subject(|subject| {
        let a = subject.connect();
        let node = registration(1, "i1");
        let lost = a.register(&node, ttl(), Claim::Start).unwrap();
        a.end(&lost).unwrap();
        let lease = a.register(&node, ttl(), Claim::Resume).unwrap();
        a.renew(&lease).unwrap();
        // Register again, as after an unknown outcome.
        let lease = a.register(&node, ttl(), Claim::Resume).unwrap();
        a.renew(&lease).unwrap();
        assert_eq!(a.nodes().unwrap().len(), 1);
    });
}

#[test]
fn one_lease_holds_the_leadership_until_it_ends() {
    each_subject(|subject| {
        let (a, b) = (subject.connect(), subject.connect());
        let first = a.register(&registration(1, "i1"), ttl(), Claim::Start).unwrap();
        let second = b.register(&registration(2, "j1"), ttl(), Claim::Start).unwrap();
        let Campaign::Elected(controller) = a.campaign(&first).unwrap() else {
            panic!("the office is vacant")
        };
        assert_eq!(controller.node, id(1));
        assert_eq!(a.campaign(&first).unwrap(), Campaign::Elected(controller));
        assert_eq!(b.campaign(&second).unwrap(), Campaign::Held(controller));
        assert_eq!(b.snapshot().unwrap().controller, Some(controller));
        // Without the office, resigning does nothing.
        b.resign(&second).unwrap();
        assert_eq!(b.campaign(&second).unwrap(), Campaign::Held(controller));
        a.resign(&first).unwrap();
        let Campaign::Elected(next) = b.campaign(&second).unwrap() else {
            panic!("the office is vacant")
        };
        assert!(next.node == id(2) && next.since > controller.since);
        b.end(&second).unwrap();
        assert_eq!(a.snapshot().unwrap().controller, None);
        let error = b.campaign(&second).unwrap_err();
        assert!(matches!(error, CoordinatorError::LeaseLost), "{error}");
    });
}

#[test]
fn a_former_controller_changes_nothing() {
    each_subject(|subject| {
        let a = subject.connect();
        let lease = a.register(&registration(1, "i1"), ttl(), Claim::Start).unwrap();
        let elected = |campaign| match campaign {
            Campaign::Elected(controller) => controller,
            Campaign::Held(by) => panic!("the office is held by {by:?}"),
        };
        let former: Controller = elected(a.campaign(&lease).unwrap());
        let change = |expected, controller| TopologyChange {
            expected,
            document: b"d",
            controller: Some(controller),
        };
        let revision = changed(subject, &*a, &change(Revision::NONE, former));
        a.resign(&lease).unwrap();
        assert!(matches!(a.change(&change(revision, former)), ChangeOutcome::Conflict));
        // The same node begins its next term of office.
        let present = elected(a.campaign(&lease).unwrap());
        assert!(matches!(a.change(&change(revision, former)), ChangeOutcome::Conflict));
        changed(subject, &*a, &change(revision, present));
    });
}

#[test]
fn a_status_lives_as_long_as_its_lease() {
    each_subject(|subject| {
        let (a, b) = (subject.connect(), subject.connect());
        let first = a.register(&registration(1, "i1"), ttl(), Claim::Start).unwrap();
        let second = b.register(&registration(2, "j1"), ttl(), Claim::Start).unwrap();
        assert_eq!(a.statuses().unwrap(), []);
        a.put_status(&first, b"old").unwrap();
        a.put_status(&first, b"offset 7").unwrap();
        b.put_status(&second, b"").unwrap();
        let statuses: Vec<_> =
            b.statuses().unwrap().into_iter().map(|status| (status.node, status.status)).collect();
        assert_eq!(statuses, [(id(1), b"offset 7".to_vec()), (id(2), Vec::new())]);
        a.end(&first).unwrap();
        let error = a.put_status(&first, b"late").unwrap_err();
        assert!(matches!(error, CoordinatorError::LeaseLost), "{error}");
        assert_eq!(b.statuses().unwrap().len(), 1);
    });
}

#[test]
fn a_watch_reports_each_change_after_its_revision_in_order() {
    each_subject(|subject| {
        let (a, b) = (subject.connect(), subject.connect());
        let mut revisions = vec![changed(subject, &*a, &change_of(Revision::NONE, b"0"))];
        let start = b.snapshot().unwrap().revision;
        let mut watch = b.watch(start);
        for number in 1..20_u8 {
            let last = revisions[revisions.len() - 1];
            revisions.push(changed(subject, &*a, &change_of(last, &[number])));
        }
        let events = events_until(subject, &mut *watch, |events| events.len() >= 19);
        for (number, event) in (1_u8..).zip(&events) {
            let WatchEvent::Topology(topology) = event else { panic!("{event:?}") };
            assert_eq!(topology.revision, revisions[usize::from(number)]);
            assert_eq!(topology.document.as_deref(), Some(&[number][..]));
        }
        assert_eq!(events.len(), 19);
        assert!(watch.position() >= revisions[19]);
        // Another watch starts from a revision in the middle.
        let mut again = a.watch(revisions[10]);
        let tail = events_until(subject, &mut *again, |events| events.len() >= 9);
        assert_eq!(tail, events[10..]);
    });
}

#[test]
fn a_watch_reports_nodes_and_controllers() {
    each_subject(|subject| {
        let (a, b) = (subject.connect(), subject.connect());
        let mut watch = b.watch(b.snapshot().unwrap().revision);
        let node = registration(1, "i1");
        let lease = a.register(&node, ttl(), Claim::Start).unwrap();
        a.put_status(&lease, b"not watched").unwrap();
        let events = events_until(subject, &mut *watch, |events| !events.is_empty());
        let WatchEvent::NodeRegistered(registered) = &events[0] else { panic!("{events:?}") };
        assert_eq!(registered.registration, node);
        assert_eq!(&b.nodes().unwrap()[0], registered);
        let Campaign::Elected(controller) = a.campaign(&lease).unwrap() else { panic!() };
        let events = events_until(subject, &mut *watch, |events| !events.is_empty());
        assert_eq!(events, [WatchEvent::ControllerElected(controller)]);
        a.end(&lease).unwrap();
        let events = events_until(subject, &mut *watch, |events| events.len() >= 2);
        assert_eq!(events.len(), 2, "{events:?}");
        let is_removed = |event: &WatchEvent| matches!(event, WatchEvent::NodeRemoved { node, .. } if *node == id(1));
        assert!(events.iter().any(is_removed), "{events:?}");
        let is_vacant = |event: &WatchEvent| matches!(event, WatchEvent::ControllerRemoved { .. });
        assert!(events.iter().any(is_vacant), "{events:?}");
    });
}

#[test]
fn a_node_whose_process_ends_is_reported_and_loses_its_leadership() {
    each_subject(|subject| {
        let (a, b) = (subject.connect(), subject.connect());
        let lease = a.register(&registration(1, "i1"), short_ttl(), Claim::Start).unwrap();
        a.campaign(&lease).unwrap();
        let mut watch = b.watch(b.snapshot().unwrap().revision);
        // The lease is neither renewed nor ended.
        drop(a);
        let events = events_until(subject, &mut *watch, |events| events.len() >= 2);
        assert!(
            events.iter().any(|event| matches!(event, WatchEvent::NodeRemoved { .. })),
            "{events:?}"
        );
        let snapshot = b.snapshot().unwrap();
        assert_eq!((snapshot.nodes, snapshot.controller), (Vec::new(), None));
    });
}

#[test]
fn a_lease_without_renewal_ends_after_its_time_and_the_same_incarnation_registers_again() {
    each_subject(|subject| {
        let (a, b) = (subject.connect(), subject.connect());
        let node = registration(1, "i1");
        let lease = a.register(&node, short_ttl(), Claim::Start).unwrap();
        // A local lease lasts as long as its process.
        let Some(expires_at) = lease.expires_at else { return };
        subject.wait_until("the lease to end", || b.nodes().unwrap().is_empty());
        assert!(b.now() >= expires_at, "the lease ended before its time");
        let error = a.renew(&lease).unwrap_err();
        assert!(matches!(error, CoordinatorError::LeaseLost), "{error}");
        let lease = a.register(&node, ttl(), Claim::Resume).unwrap();
        a.renew(&lease).unwrap();
        assert_eq!(b.nodes().unwrap()[0].registration, node);
    });
}

#[test]
fn a_watch_from_a_compacted_revision_reports_it_and_a_new_snapshot_continues() {
    each_subject(|subject| {
        let a = subject.connect();
        let first = changed(subject, &*a, &change_of(Revision::NONE, b"0"));
        let mut last = first;
        // More changes than are kept by an implementation that compacts on its own.
        for _ in 0..200 {
            last = changed(subject, &*a, &change_of(last, b"x"));
        }
        subject.compact(last);
        let mut watch = a.watch(first);
        let events = events_until(subject, &mut *watch, |events| !events.is_empty());
        assert!(matches!(events[..], [WatchEvent::Compacted { .. }]), "{events:?}");
        let events = watch.next(Duration::from_millis(10)).unwrap();
        assert!(matches!(events[..], [WatchEvent::Compacted { .. }]), "{events:?}");
        let snapshot = a.snapshot().unwrap();
        let mut watch = a.watch(snapshot.revision);
        let next = changed(subject, &*a, &change_of(snapshot.topology.revision, b"y"));
        let events = events_until(subject, &mut *watch, |events| !events.is_empty());
        let WatchEvent::Topology(topology) = &events[0] else { panic!("{events:?}") };
        assert_eq!(topology.revision, next);
    });
}

#[test]
fn each_acknowledged_concurrent_change_is_in_the_history() {
    each_subject(|subject| {
        const WRITERS: u8 = 4;
        const CHANGES: usize = 10;
        let observer = subject.connect();
        let mut watch = observer.watch(observer.snapshot().unwrap().revision);
        let conflicts = std::sync::Mutex::new(Vec::new());
        let write = |writer: u8| {
            let coordinator = subject.connect();
            let (mut acknowledged, mut number) = (Vec::new(), 0);
            while acknowledged.len() < CHANGES {
                let Ok(topology) = coordinator.read() else { continue };
                number += 1;
                let stamp: [u8; 2] = [writer, number];
                match coordinator.change(&change_of(topology.revision, &stamp)) {
                    ChangeOutcome::Changed(revision) => acknowledged.push((revision, stamp)),
                    ChangeOutcome::Conflict => conflicts.lock().expect("no panic").push(stamp),
                    // A busy etcd may elect another leader.
                    ChangeOutcome::Unknown(_) => {}
                    // On a busy disk, other writers may hold the lock for too long.
                    ChangeOutcome::Refused(CoordinatorError::Locked { .. }) => {}
                    ChangeOutcome::Refused(error) => panic!("{error}"),
                }
            }
            acknowledged
        };
        let mut acknowledged = Vec::new();
        std::thread::scope(|scope| {
            let writers: Vec<_> =
                (0..WRITERS).map(|writer| scope.spawn(move || write(writer))).collect();
            for writer in writers {
                acknowledged.extend(writer.join().expect("a writer works"));
            }
        });
        acknowledged.sort_unstable();
        let stamp_of = |event: &WatchEvent| match event {
            WatchEvent::Topology(topology) => {
                let document = topology.document.clone().unwrap_or_default();
                (topology.revision, [document[0], document[1]])
            }
            other => panic!("{other:?}"),
        };
        let last = acknowledged[acknowledged.len() - 1];
        let events = events_until(subject, &mut *watch, |events| {
            events.iter().any(|event| stamp_of(event) == last)
        });
        let mut seen: Vec<_> = events.iter().map(stamp_of).collect();
        for stamp in conflicts.lock().expect("no panic").iter() {
            assert!(!seen.iter().any(|(_, found)| found == stamp), "{stamp:?} was a conflict");
        }
        seen.retain(|found| acknowledged.contains(found));
        assert_eq!(seen, acknowledged);
    });
}

#[test]
fn a_stopped_coordinator_ends_its_calls() {
    each_subject(|subject| {
        let a = subject.connect();
        let mut watch = a.watch(a.snapshot().unwrap().revision);
        a.stop();
        let error = watch.next(Duration::from_secs(600)).unwrap_err();
        assert!(matches!(error, CoordinatorError::Stopped), "{error}");
        assert!(matches!(a.read(), Err(CoordinatorError::Stopped)));
        let outcome = a.change(&change_of(Revision::NONE, b"x"));
        assert!(
            matches!(outcome, ChangeOutcome::Refused(CoordinatorError::Stopped)),
            "{outcome:?}"
        );
    });
}
