//! A coordinator in memory for simulations: a virtual clock, and faults drawn from a seed.
//!
//! A [`Model`] is the store; each simulated node calls it through a [`ModelCoordinator`] of its
//! own, which the simulation may cut off. Nothing waits: a call returns immediately, and the clock
//! moves only with [`Model::advance`]. The same seed and the same sequence of calls give the same
//! results.
//!
//! A call can have one of these faults ([`ModelFaults`]): the request is lost; the request is
//! applied, but its response is lost; or a change to the topology is applied later, if its
//! comparisons hold then. In all three cases the caller gets [`CoordinatorError::TimedOut`] or
//! [`ChangeOutcome::Unknown`].

mod store;

use self::store::{LateApplication, ModelStore, OwnedChange};
use crate::clock::BootTime;
use crate::coordinator::{Coordinator, Watch};
use crate::error::CoordinatorError;
use crate::stop::StopFlag;
use crate::values::{
    Campaign, ChangeOutcome, Claim, ClusterSnapshot, DETAILS_BYTES_MAX, DOCUMENT_BYTES_MAX, Lease,
    LeaseTtl, NodeRegistration, NodeStatus, Revision, STATUS_BYTES_MAX, Topology, TopologyChange,
    WatchEvent, check_size,
};
use brisk_structures::poison::EvenPoisoned as _;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

/// The time limit that the errors for lost responses state.
const CALL_LIMIT: Duration = Duration::from_secs(3);

/// How often and how far the model misbehaves. The default has no faults.
#[derive(Debug, Clone, Copy, Default)]
pub struct ModelFaults {
    /// Percentage of requests that are lost.
    pub lost_percent: u8,
    /// Percentage of requests that are applied without a response.
    pub unanswered_percent: u8,
    /// Percentage of topology changes that are applied later, without a response.
    pub late_percent: u8,
    /// The longest delay of a late change.
    pub late_max: Duration,
    /// The longest time from a change until a watch reports it; each watch has its own delays.
    pub watch_lag_max: Duration,
    /// The longest time by which a lease outlives its TTL.
    pub expiry_lag_max: Duration,
}

/// The state of a model with its random numbers.
#[derive(Debug)]
struct ModelState {
    store: ModelStore,
    faults: ModelFaults,
    random: SplitMix,
    seed: u64,
    clients: u64,
    watches: u64,
}

/// The store of a simulation. Clones share it.
#[derive(Debug, Clone)]
pub struct Model(Arc<Mutex<ModelState>>);

impl Model {
    /// An empty store.
    #[must_use]
    pub fn new(seed: u64, faults: ModelFaults) -> Model {
        let state = ModelState {
            store: ModelStore::default(),
            faults,
            random: SplitMix(seed),
            seed,
            clients: 0,
            watches: 0,
        };
        Model(Arc::new(Mutex::new(state)))
    }

    /// The connection of one simulated node.
    #[must_use]
    pub fn connect(&self) -> ModelCoordinator {
        let mut state = self.state();
        state.clients += 1;
        let client = state.clients;
        ModelCoordinator { model: self.clone(), client, stop: StopFlag::default() }
    }

    /// The current virtual time.
    #[must_use]
    pub fn now(&self) -> BootTime {
        self.state().store.now
    }

    /// Moves the clock: leases end and late changes are applied in the order of their times.
    pub fn advance(&self, duration: Duration) {
        self.state().store.advance(duration);
    }

    /// Replaces the faults of later calls.
    pub fn set_faults(&self, faults: ModelFaults) {
        self.state().faults = faults;
    }

    /// Takes the quorum away or restores it. Without a quorum, the outcomes of changes are unknown,
    /// reads fail, and leases do not end. When the quorum is restored, some of the changes are
    /// applied, and leases get their full TTL.
    pub fn set_quorum(&self, has_quorum: bool) {
        let store = &mut self.state().store;
        if !has_quorum {
            store.has_no_quorum = true;
        } else if store.has_no_quorum {
            store.restore_quorum();
        }
    }

    /// Forgets all events up to now: a watch that has not reported them is compacted.
    pub fn compact(&self) {
        self.state().store.compact();
    }

    fn state(&self) -> MutexGuard<'_, ModelState> {
        self.0.lock().even_poisoned()
    }
}

/// The fate of a call.
#[derive(Clone, Copy, PartialEq, Eq)]
enum CallFate {
    Delivered,
    RequestLost,
    ResponseLost,
    /// Drawn only for changes to the topology.
    Late,
}

impl ModelState {
    fn draw_fate(&mut self, is_change: bool) -> CallFate {
        let faults = self.faults;
        let drawn = self.random.below(100);
        let lost = u64::from(faults.lost_percent);
        let unanswered = lost + u64::from(faults.unanswered_percent);
        let late = unanswered + u64::from(faults.late_percent);
        match drawn {
            drawn if drawn < lost => CallFate::RequestLost,
            drawn if drawn < unanswered => CallFate::ResponseLost,
            drawn if drawn < late && is_change => CallFate::Late,
            _ => CallFate::Delivered,
        }
    }

    fn draw_up_to(&mut self, max: Duration) -> Duration {
        let nanoseconds = u64::try_from(max.as_nanos()).unwrap_or(u64::MAX);
        Duration::from_nanos(self.random.below(nanoseconds.saturating_add(1)))
    }
}

/// A [`Coordinator`] of one simulated node.
#[derive(Debug)]
pub struct ModelCoordinator {
    model: Model,
    client: u64,
    stop: StopFlag,
}

impl ModelCoordinator {
    /// Cuts this node off from the store, or connects it again.
    pub fn set_cut(&self, is_cut: bool) {
        let clients = &mut self.model.state().store.cut_clients;
        if is_cut {
            clients.insert(self.client);
        } else {
            clients.remove(&self.client);
        }
    }

    fn check_running(&self) -> Result<(), CoordinatorError> {
        if self.stop.is_stopped() { Err(CoordinatorError::Stopped) } else { Ok(()) }
    }

    fn check_reachable(&self, store: &ModelStore) -> Result<(), CoordinatorError> {
        self.check_running()?;
        if store.cut_clients.contains(&self.client) {
            return Err(CoordinatorError::Unreachable("cut off by the simulation".to_owned()));
        }
        if store.has_no_quorum {
            return Err(CoordinatorError::NoLeader("no quorum in the simulation".to_owned()));
        }
        Ok(())
    }

    /// A call that does not change the topology.
    fn call<T>(
        &self,
        what: &str,
        apply: impl FnOnce(&mut ModelStore, Duration) -> Result<T, CoordinatorError>,
    ) -> Result<T, CoordinatorError> {
        let state = &mut *self.model.state();
        self.check_reachable(&state.store)?;
        let fate = state.draw_fate(false);
        let slack = state.draw_up_to(state.faults.expiry_lag_max);
        if fate == CallFate::RequestLost {
            return Err(timed_out(what));
        }
        let result = apply(&mut state.store, slack);
        if fate == CallFate::ResponseLost { Err(timed_out(what)) } else { result }
    }
}

fn timed_out(what: &str) -> CoordinatorError {
    CoordinatorError::TimedOut { what: what.to_owned(), limit: CALL_LIMIT }
}

impl Coordinator for ModelCoordinator {
    fn now(&self) -> BootTime {
        self.model.now()
    }

    fn read_within(&self, _: Duration) -> Result<Topology, CoordinatorError> {
        self.call("read", |store, _| Ok(store.topology()))
    }

    fn snapshot_within(&self, _: Duration) -> Result<ClusterSnapshot, CoordinatorError> {
        self.call("snapshot", |store, _| Ok(store.snapshot()))
    }

    fn change_within(&self, change: &TopologyChange<'_>, _: Duration) -> ChangeOutcome {
        if let Err(error) = check_size("document", change.document.len(), DOCUMENT_BYTES_MAX) {
            return ChangeOutcome::Refused(error);
        }
        let state = &mut *self.model.state();
        let owned = OwnedChange {
            expected: change.expected,
            document: change.document.to_vec(),
            controller: change.controller,
        };
        match self.check_reachable(&state.store) {
            Ok(()) => {}
            Err(error @ CoordinatorError::NoLeader(_)) => {
                if state.random.below(2) == 0 {
                    state.store.apply_late(LateApplication::WhenQuorumReturns, owned);
                }
                return ChangeOutcome::Unknown(error);
            }
            Err(error) => return ChangeOutcome::Refused(error),
        }
        let fate = state.draw_fate(true);
        let unknown = ChangeOutcome::Unknown(timed_out("change"));
        match fate {
            CallFate::RequestLost => unknown,
            CallFate::Late => {
                let delay = state.draw_up_to(state.faults.late_max);
                let at = LateApplication::At(state.store.now.after(delay));
                state.store.apply_late(at, owned);
                unknown
            }
            CallFate::ResponseLost => {
                state.store.change(&owned);
                unknown
            }
            CallFate::Delivered => match state.store.change(&owned) {
                Some(revision) => ChangeOutcome::Changed(revision),
                None => ChangeOutcome::Conflict,
            },
        }
    }

    fn register(
        &self,
        registration: &NodeRegistration,
        ttl: LeaseTtl,
        claim: Claim,
    ) -> Result<Lease, CoordinatorError> {
        check_size("registration", registration.details.len(), DETAILS_BYTES_MAX)?;
        self.call("register", |store, slack| store.register(registration, ttl, claim, slack))
    }

    fn renew(&self, lease: &Lease) -> Result<Lease, CoordinatorError> {
        self.call("renew", |store, slack| store.renew(lease, slack))
    }

    fn end(&self, lease: &Lease) -> Result<(), CoordinatorError> {
        self.call("end", |store, _| {
            store.end(lease.id);
            Ok(())
        })
    }

    fn campaign(&self, lease: &Lease) -> Result<Campaign, CoordinatorError> {
        self.call("campaign", |store, _| store.campaign(lease))
    }

    fn resign(&self, lease: &Lease) -> Result<(), CoordinatorError> {
        self.call("resign", |store, _| {
            store.resign(lease.id);
            Ok(())
        })
    }

    fn put_status(&self, lease: &Lease, status: &[u8]) -> Result<(), CoordinatorError> {
        check_size("status", status.len(), STATUS_BYTES_MAX)?;
        self.call("put_status", |store, _| store.put_status(lease, status))
    }

    fn statuses(&self) -> Result<Vec<NodeStatus>, CoordinatorError> {
        self.call("statuses", |store, _| Ok(store.statuses()))
    }

    fn watch(&self, after: Revision) -> Box<dyn Watch> {
        let mut state = self.model.state();
        state.watches += 1;
        let seed = SplitMix(state.seed ^ state.watches.wrapping_mul(0xd1b5_4a32_d192_ed03)).bits();
        Box::new(ModelWatch {
            model: self.model.clone(),
            client: self.client,
            stop: self.stop.clone(),
            seed,
            position: after,
            is_compacted: false,
        })
    }

    fn stop(&self) {
        self.stop.stop();
    }
}

/// A watch of a model. [`Watch::next`] returns immediately, regardless of its limit.
#[derive(Debug)]
struct ModelWatch {
    model: Model,
    client: u64,
    stop: StopFlag,
    /// The seed from which the lag of each event is drawn.
    seed: u64,
    position: Revision,
    is_compacted: bool,
}

impl Watch for ModelWatch {
    fn next(&mut self, _: Duration) -> Result<Vec<WatchEvent>, CoordinatorError> {
        if self.stop.is_stopped() {
            return Err(CoordinatorError::Stopped);
        }
        let state = self.model.state();
        if state.store.cut_clients.contains(&self.client) {
            return Err(CoordinatorError::Unreachable("cut off by the simulation".to_owned()));
        }
        if self.is_compacted || self.position < state.store.compacted {
            self.is_compacted = true;
            return Ok(vec![WatchEvent::Compacted { revision: state.store.compacted }]);
        }
        if state.store.has_no_quorum {
            return Ok(vec![WatchEvent::NoLeader]);
        }
        let lag_max = u64::try_from(state.faults.watch_lag_max.as_nanos()).unwrap_or(u64::MAX);
        let mut events = Vec::new();
        for (happened, revision, event) in &state.store.history {
            if *revision <= self.position {
                continue;
            }
            let lag = SplitMix(self.seed ^ revision.0).below(lag_max.saturating_add(1));
            if happened.after(Duration::from_nanos(lag)) > state.store.now {
                break;
            }
            self.position = *revision;
            events.push(event.clone());
        }
        Ok(events)
    }

    fn position(&self) -> Revision {
        self.position
    }
}

/// Random numbers that are the same for the same seed on every machine.
#[derive(Debug)]
struct SplitMix(u64);

impl SplitMix {
    fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A number below `bound`; 0 for a bound of 0.
    fn below(&mut self, bound: u64) -> u64 {
        let product = u128::from(self.bits()) * u128::from(bound);
        u64::try_from(product >> 64).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests;
