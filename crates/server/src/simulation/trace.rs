//! The event log of a run.

use std::cell::RefCell;

/// Number of events that are shown when a run fails.
const EVENTS_SHOWN_MAX: usize = 60;

thread_local! {
    static EVENTS: RefCell<Vec<String>> = RefCell::default();
}

/// Records an event. `now_ms` is its time in Unix ms.
pub(super) fn note(now_ms: u64, event: String) {
    EVENTS.with_borrow_mut(|events| events.push(format!("{:>7} {event}", now_ms % 10_000_000)));
}

/// Returns the events since the last call.
pub(super) fn take() -> Vec<String> {
    EVENTS.take()
}

/// Returns the latest events, one per line.
pub(super) fn latest() -> String {
    EVENTS.with_borrow(|events| {
        let from = events.len().saturating_sub(EVENTS_SHOWN_MAX);
        events[from..].iter().map(|event| format!("{event:.200}\n")).collect()
    })
}

/// Returns the first difference between two runs.
pub(super) fn difference(one: &[String], other: &[String]) -> Option<String> {
    let at = (0..one.len().max(other.len())).find(|at| one.get(*at) != other.get(*at))?;
    let before = one[at.saturating_sub(10)..at].join("\n");
    Some(format!("{before}\n  {:?}\n  {:?}", one.get(at), other.get(at)))
}
