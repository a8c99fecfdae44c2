//! Races: some sequential order explains the operations of many concurrent clients on the same keys, regardless of
//! their workers. `cargo xtask race` runs longer.
#![allow(clippy::unwrap_used, reason = "a test ends at the first thing that goes wrong")]

use brisk_testkit::race::{self, Options};
use brisk_tests::with_workers;

/// Number of operations, which take a few seconds.
const OPERATIONS: u64 = 20_000;

#[track_caller]
fn race_on(workers: usize) {
    let server = with_workers(workers).start();
    let options = Options { seed: workers as u64, operations: OPERATIONS, ..Options::default() };
    let (summary, found) = race::run(&server.address(), &options).unwrap();
    assert!(found.is_none(), "{}", found.unwrap());
    // Without overlapping operations, the test would prove nothing.
    assert!(summary.overlapping > OPERATIONS / 10, "{summary}");
    assert!(summary.aborted > 0 && summary.transactions > 0, "{summary}");
    assert!(summary.scripts > 0 && summary.waits > summary.released, "{summary}");
    assert_eq!(server.connect().info("blocked_clients"), "0");
}

#[test]
fn histories_of_two_workers_are_linearizable() {
    race_on(2);
}

#[test]
fn histories_of_four_workers_are_linearizable() {
    race_on(4);
}
