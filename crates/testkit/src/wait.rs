//! Waiting for a condition with a deadline. No other module of the test kit sleeps.

use std::time::{Duration, Instant};

/// How long a condition may take before a test gives up. It is long because a loaded machine is slow. A test that
/// succeeds never waits this long.
pub const DEADLINE: Duration = Duration::from_secs(60);

/// Pause between two checks of a condition: short compared with a test, long compared with a check.
const PAUSE: Duration = Duration::from_millis(2);

/// Waits until `condition` holds. Panics with `what` if it does not hold within [`DEADLINE`].
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
