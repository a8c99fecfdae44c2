//! Tests that arrays are freed once nothing can read them any more, but not earlier. The counters
//! are those of the whole process, and other tests retire arrays at the same time, so these tests
//! check only the limbo of their own thread.

use super::{FREED_PER_BOUNDARY, Participant, announce_boundary, offline_while, retire};
use std::alloc::{Layout, alloc};
use std::sync::mpsc;
use std::time::{Duration, Instant};

fn retire_one() {
    let layout = Layout::new::<[u64; 8]>();
    // SAFETY: a new allocation with this layout, known to no other code (1).
    unsafe { retire(alloc(layout), layout) };
}

/// Maximum time to wait for the threads of other tests to pass a boundary. It is long enough even
/// if they rarely get a CPU.
const OTHERS_MAX: Duration = Duration::from_secs(30);

/// Announces boundaries until nothing is left, or until [`OTHERS_MAX`] has passed.
fn settle(participant: &Participant) -> usize {
    settle_by(participant, || participant.announce_boundary())
}

fn settle_by(participant: &Participant, announce: impl Fn()) -> usize {
    let until = Instant::now() + OTHERS_MAX;
    loop {
        announce();
        let left = participant.limbo_len();
        if left == 0 || Instant::now() >= until {
            return left;
        }
        std::thread::yield_now();
    }
}

#[test]
fn a_thread_registers_once_at_a_time() {
    let first = Participant::register().expect("few threads");
    assert!(Participant::register().is_none());
    drop(first);
    assert!(Participant::register().is_some());
}

#[test]
fn nothing_is_freed_before_a_slow_participant_passes_a_boundary() {
    let (ready, is_ready) = mpsc::channel();
    let (go_on, may_go_on) = mpsc::channel::<()>();
    std::thread::scope(|scope| {
        scope.spawn(move || {
            let slow = Participant::register().expect("few threads");
            ready.send(()).expect("the test waits");
            may_go_on.recv().expect("the test lives");
            slow.offline();
            ready.send(()).expect("the test waits");
            may_go_on.recv().expect_err("the test hangs up");
        });
        is_ready.recv().expect("the thread lives");
        let participant = Participant::register().expect("few threads");
        for _ in 0..100 {
            retire_one();
        }
        for _ in 0..10 {
            participant.announce_boundary();
        }
        assert_eq!(participant.limbo_len(), 100);
        go_on.send(()).expect("the thread lives");
        is_ready.recv().expect("the thread lives");
        assert_eq!(settle(&participant), 0);
        drop(go_on);
    });
}

#[test]
fn one_boundary_frees_a_bounded_number() {
    let participant = Participant::register().expect("few threads");
    for _ in 0..3 * FREED_PER_BOUNDARY {
        retire_one();
    }
    participant.announce_boundary();
    assert!(participant.limbo_len() >= 2 * FREED_PER_BOUNDARY);
    assert_eq!(settle(&participant), 0);
}

#[test]
fn memory_retired_by_an_ending_thread_is_freed_by_others() {
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let _participant = Participant::register().expect("few threads");
            (0..5).for_each(|_| retire_one());
        });
    });
    // Miri reports a leak if the arrays are not freed.
    let participant = Participant::register().expect("few threads");
    retire_one();
    assert_eq!(settle(&participant), 0);
}

#[test]
fn a_thread_that_waits_offline_holds_nothing_back() {
    let (waits, is_waiting) = mpsc::channel();
    let (go_on, may_go_on) = mpsc::channel::<()>();
    std::thread::scope(|scope| {
        let waiting = scope.spawn(move || {
            let participant = Participant::register().expect("few threads");
            offline_while(|| {
                waits.send(()).expect("the test waits");
                may_go_on.recv().expect("the test lives");
            });
            participant.is_online()
        });
        is_waiting.recv().expect("the thread lives");
        let participant = Participant::register().expect("few threads");
        retire_one();
        assert_eq!(settle(&participant), 0);
        go_on.send(()).expect("the thread lives");
        assert!(waiting.join().expect("it does not panic"), "it is online again");
    });
}

#[test]
fn a_boundary_during_a_command_frees_retired_memory() {
    announce_boundary();
    let participant = Participant::register().expect("few threads");
    retire_one();
    assert_eq!(participant.limbo_len(), 1);
    assert_eq!(settle_by(&participant, announce_boundary), 0);
    participant.offline();
    announce_boundary();
    assert!(!participant.is_online());
}
