//! A worker's copy of the topology in force, and the check before each command.

use super::{ClusterState, InForce};
use brisk_cluster::map::{EndpointKind, RouteDecision, RouteGate, RouteRequest, RouteState};
use brisk_config::Config;
use brisk_config::choice::EndpointType;
use brisk_engine::args::PreparedKey;
use brisk_engine::keyspace::SlotId;
use std::sync::Arc;

/// A worker's copy. If cluster mode is off, it is empty, and every check ends after one comparison.
#[derive(Debug)]
pub struct WorkerCluster {
    installed: Option<Installed>,
}

/// The copy of a worker in cluster mode.
#[derive(Debug)]
struct Installed {
    state: &'static ClusterState,
    in_force: Arc<InForce>,
    generation: u64,
    route_state: RouteState,
    endpoint: EndpointKind,
    gate: RouteGate,
    /// The generation when waits and subscriptions were last checked, and whether the cluster was down at that time.
    checked: (u64, bool),
}

impl WorkerCluster {
    /// The copy of a worker that starts. `state` is `None` if cluster mode is off.
    #[must_use]
    pub fn new(state: Option<&'static ClusterState>, config: &Config) -> WorkerCluster {
        let copy = |state: &'static ClusterState| {
            let generation = state.generation();
            let in_force = state.in_force();
            let route_state = route_state(config, state.is_fenced());
            let gate = in_force.map.gate(&route_state);
            let endpoint = endpoint_kind(config);
            let checked = (generation, in_force.map.is_down(&route_state));
            Installed { state, in_force, generation, route_state, endpoint, gate, checked }
        };
        WorkerCluster { installed: state.map(copy) }
    }

    /// Applies changed settings.
    pub(crate) fn take_config(&mut self, config: &Config) {
        if let Some(copy) = &mut self.installed {
            copy.route_state = route_state(config, copy.route_state.is_fenced);
            copy.endpoint = endpoint_kind(config);
            copy.gate = copy.in_force.map.gate(&copy.route_state);
        }
    }

    /// Compares the lease deadline with the clock at the beginning of a turn. This is necessary because the process can
    /// be stopped at any instruction, and no timer runs while it is stopped. [`WorkerCluster::lost_lease`] makes the
    /// comparison at the end.
    #[inline]
    pub fn check_lease(&mut self) {
        if let Some(copy) = &mut self.installed {
            let is_fenced = copy.state.is_fenced();
            if is_fenced != copy.route_state.is_fenced {
                copy.route_state.is_fenced = is_fenced;
                copy.gate = copy.in_force.map.gate(&copy.route_state);
            }
        }
    }

    /// Reports whether the lease deadline has passed since the turn began. Commands of this turn may have run after the
    /// deadline, so their replies must not be sent. Another node may already serve the slots.
    #[inline]
    #[must_use]
    pub fn lost_lease(&self) -> bool {
        match &self.installed {
            None => false,
            Some(copy) => !copy.route_state.is_fenced && copy.state.is_fenced(),
        }
    }

    /// Reports whether the lease deadline has passed.
    #[inline]
    #[must_use]
    pub fn is_fenced(&self) -> bool {
        self.installed.as_ref().is_some_and(|copy| copy.state.is_fenced())
    }

    /// Switches to a newer version. Returns false if there is none.
    #[inline]
    pub(crate) fn takes_newer(&mut self) -> bool {
        match &mut self.installed {
            None => false,
            Some(copy) => {
                let generation = copy.generation;
                copy.refresh();
                generation != copy.generation
            }
        }
    }

    /// Reports whether another version has been installed or the state of the cluster has changed since the last call.
    /// If so, waits and subscriptions may have to end.
    #[inline]
    pub fn has_changed(&mut self) -> bool {
        match &mut self.installed {
            None => false,
            Some(copy) => {
                copy.refresh();
                let now = (copy.generation, copy.in_force.map.is_down(&copy.route_state));
                std::mem::replace(&mut copy.checked, now) != now
            }
        }
    }

    /// Reports whether the slot belongs to the shard of this node, which may be the primary or a replica. If cluster
    /// mode is off, every slot does.
    pub fn is_own(&mut self, slot: SlotId) -> bool {
        match &mut self.installed {
            None => true,
            Some(copy) => {
                copy.refresh();
                copy.in_force.map.is_own(slot)
            }
        }
    }

    /// Reports whether cluster mode is on.
    #[inline]
    #[must_use]
    pub const fn is_on(&self) -> bool {
        self.installed.is_some()
    }

    /// Reports whether a command with these keys needs a routing decision, because the keys are in several slots, or in
    /// a slot that this node does not serve.
    #[inline]
    pub fn must_route(&mut self, keys: &[PreparedKey]) -> bool {
        match &mut self.installed {
            None => false,
            Some(copy) => match keys {
                [] => false,
                [first, rest @ ..] => {
                    copy.refresh();
                    !copy.in_force.map.is_served(copy.gate, first.slot)
                        || rest.iter().any(|key| key.slot != first.slot)
                }
            },
        }
    }

    /// The version in force and the endpoint kind for MOVED. `None` if cluster mode is off.
    pub fn in_force(&mut self) -> Option<(&InForce, EndpointKind)> {
        let copy = self.installed.as_mut()?;
        copy.refresh();
        Some((&copy.in_force, copy.endpoint))
    }

    /// Decides what happens to a command. If cluster mode is off, every command is served.
    pub fn route(&mut self, request: &RouteRequest) -> RouteDecision<'_> {
        match &mut self.installed {
            None => RouteDecision::Serve,
            Some(copy) => {
                copy.refresh();
                copy.in_force.map.route(request, &copy.route_state)
            }
        }
    }

    /// Reports whether the state of the cluster is `fail` for this node.
    pub fn is_down(&mut self) -> bool {
        match &mut self.installed {
            None => false,
            Some(copy) => {
                copy.refresh();
                copy.in_force.map.is_down(&copy.route_state)
            }
        }
    }
}

impl Installed {
    /// Switches to a newer version. A version is installed while this worker is between two commands.
    #[inline]
    fn refresh(&mut self) {
        let generation = self.state.generation();
        if generation != self.generation {
            self.generation = generation;
            self.in_force = self.state.in_force();
            self.gate = self.in_force.map.gate(&self.route_state);
        }
    }
}

/// The facts about the node that routing depends on.
#[must_use]
pub fn route_state(config: &Config, is_fenced: bool) -> RouteState {
    let cluster = &config.cluster;
    RouteState {
        is_fenced,
        requires_full_coverage: cluster.cluster_require_full_coverage,
        allows_reads_when_down: cluster.cluster_allow_reads_when_down,
        allows_pubsub_when_down: cluster.cluster_allow_pubsubshard_when_down,
    }
}

/// The kind of name by which clients are referred to other nodes.
#[must_use]
pub fn endpoint_kind(config: &Config) -> EndpointKind {
    match config.cluster.cluster_preferred_endpoint_type {
        EndpointType::Ip => EndpointKind::Ip,
        EndpointType::Hostname => EndpointKind::Hostname,
        EndpointType::Unknown => EndpointKind::Unknown,
    }
}
