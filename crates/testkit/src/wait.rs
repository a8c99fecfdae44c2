//! Waiting for a condition with a deadline: the only place of the tests that lets time pass.

use std::time::{Duration, Instant};

/// How long a condition may take before a test gives up. Generous, since a loaded machine is
/// slow; a test that succeeds never waits this long.
pub const DEADLINE: Duration = Duration::from_secs(60);

/// Pause between two looks at a condition: short against a test, long against a look.
const PAUSE: Duration = Duration::from_millis(2);

/// Waits until `condition` holds. Panics with `what` when [`DEADLINE`] has passed.
#[track_caller]
pub fn wait_until(what: &str, condition: impl FnMut() -> bool) {
    assert!(holds_within(DEADLINE, condition), "waited {DEADLINE:?} in vain for: {what}");
}

/// Waits until `condition` holds or `limit` has passed; returns whether it held.
pub fn holds_within(limit: Duration, mut condition: impl FnMut() -> bool) -> bool {
    let give_up = Instant::now() + limit;
    loop {
        if condition() {
            return true;
        }
        if Instant::now() >= give_up {
            return false;
        }
        std::thread::sleep(PAUSE);
    }
}
