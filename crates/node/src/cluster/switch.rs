//! Requests for planned switches, in which a primary hands its shard over to a replica that has everything. The
//! server's thread `brisk-switch` carries them out.
//!
//! ```text
//!  CLUSTER FAILOVER ── TakeOver ── at the replica ── REPLCONF brisk-switch ──> the primary ── HandOver
//!  SHUTDOWN ── Depart ── at the primary
//! ```

use brisk_cluster::id::{NodeRun, ShardId, Term};
use brisk_structures::poison::EvenPoisoned as _;
use std::fmt;
use std::str::FromStr;
use std::sync::{Condvar, Mutex};

/// The option of REPLCONF with which a replica requests a switch from its primary.
pub const SWITCH_OPTION: &str = "brisk-switch";

/// With this value of [`SWITCH_OPTION`], a former primary makes the new primary read the topology immediately.
pub const LOOK_VALUE: &str = "look";

/// The request of a replica to become the primary of its shard. The text form is `shard:term:run`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HandoverRequest {
    pub shard: ShardId,
    /// The term of the primary that hands over.
    pub term: Term,
    /// The replica.
    pub to: NodeRun,
}

impl fmt::Display for HandoverRequest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}:{}", self.shard, self.term, self.to)
    }
}

impl FromStr for HandoverRequest {
    type Err = ();

    fn from_str(text: &str) -> Result<HandoverRequest, ()> {
        let mut parts = text.splitn(3, ':');
        let mut part = || parts.next().ok_or(());
        Ok(HandoverRequest {
            shard: part()?.parse().map_err(drop)?,
            term: Term(part()?.parse().map_err(drop)?),
            to: part()?.parse().map_err(drop)?,
        })
    }
}

/// A requested switch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SwitchRequest {
    /// This replica requests the role of its primary.
    TakeOver,
    /// This primary hands over to a replica that requested it.
    HandOver(HandoverRequest),
    /// This primary hands over to any replica, because it will shut down no later than this time, in Unix ms.
    Depart { until_ms: u64 },
    /// This node reads the topology because it has become a primary.
    Look,
}

/// The switch before a shutdown.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Departure {
    /// No shutdown has requested a switch.
    #[default]
    None,
    /// A switch was requested and has not ended.
    InProgress,
    /// Another node is now the primary.
    HandedOver,
    /// No replica could take over.
    Failed,
}

/// The requests that wait, and the switch before a shutdown.
#[derive(Debug, Default)]
pub struct PlannedSwitches {
    state: Mutex<SwitchState>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct SwitchState {
    /// The last request, if it has not begun yet. As in Redis, a later request replaces it.
    requested: Option<SwitchRequest>,
    /// The deadline of a shutdown whose requested switch has not begun yet, in Unix ms.
    departs_until_ms: Option<u64>,
    departure: Departure,
    is_stopped: bool,
}

impl PlannedSwitches {
    /// Requests a switch. Does not wait for it.
    pub fn request(&self, request: SwitchRequest) {
        let mut state = self.state.lock().even_poisoned();
        match request {
            SwitchRequest::Depart { until_ms } => {
                state.departs_until_ms = Some(until_ms);
                state.departure = Departure::InProgress;
            }
            other => state.requested = Some(other),
        }
        self.changed.notify_all();
    }

    /// Waits for a request. `None` if the server shuts down.
    pub fn next(&self) -> Option<SwitchRequest> {
        let mut state = self.state.lock().even_poisoned();
        loop {
            if state.is_stopped {
                return None;
            }
            if let Some(until_ms) = state.departs_until_ms.take() {
                return Some(SwitchRequest::Depart { until_ms });
            }
            if let Some(request) = state.requested.take() {
                return Some(request);
            }
            state = self.changed.wait(state).even_poisoned();
        }
    }

    /// Ends the wait for requests permanently.
    pub fn stop(&self) {
        self.state.lock().even_poisoned().is_stopped = true;
        self.changed.notify_all();
    }

    /// The switch before a shutdown.
    pub fn departure(&self) -> Departure {
        self.state.lock().even_poisoned().departure
    }

    /// Notes that the switch before a shutdown has ended.
    pub fn end_departure(&self, has_handed_over: bool) {
        let mut state = self.state.lock().even_poisoned();
        // Another shutdown may have been requested after this one was canceled.
        if state.departure == Departure::InProgress && state.departs_until_ms.is_none() {
            state.departure =
                if has_handed_over { Departure::HandedOver } else { Departure::Failed };
        }
    }

    /// Called when the shutdown is canceled. Its switch, if it has not begun yet, is dropped.
    pub fn call_departure_off(&self) {
        let mut state = self.state.lock().even_poisoned();
        (state.departs_until_ms, state.departure) = (None, Departure::None);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_is_read_back_from_its_text() {
        let id = "bf6f07d819f95559636640ce7ecdf9d336ad8b96";
        let text = format!("{id}:7:{id}@1f");
        let request: HandoverRequest = text.parse().unwrap();
        assert_eq!((request.term, request.to_string()), (Term(7), text));
        for bad in ["", "x:7:y", &format!("{id}:7"), &format!("{id}:-1:{id}@1f")] {
            assert!(bad.parse::<HandoverRequest>().is_err(), "{bad}");
        }
    }

    #[test]
    fn a_departure_precedes_other_requests_and_can_be_canceled() {
        let switches = PlannedSwitches::default();
        switches.request(SwitchRequest::TakeOver);
        switches.request(SwitchRequest::Depart { until_ms: 5 });
        assert_eq!(switches.departure(), Departure::InProgress);
        assert_eq!(switches.next(), Some(SwitchRequest::Depart { until_ms: 5 }));
        assert_eq!(switches.next(), Some(SwitchRequest::TakeOver));
        switches.call_departure_off();
        // The result of the previous switch says nothing about the next shutdown.
        switches.request(SwitchRequest::Depart { until_ms: 9 });
        switches.end_departure(true);
        assert_eq!(switches.departure(), Departure::InProgress);
        assert_eq!(switches.next(), Some(SwitchRequest::Depart { until_ms: 9 }));
        switches.end_departure(false);
        assert_eq!(switches.departure(), Departure::Failed);
        switches.stop();
        assert_eq!(switches.next(), None);
    }
}
