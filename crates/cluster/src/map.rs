//! The slot map in force on one node, and the routing decision for a command.
//!
//! ```text
//!  document + own id ── SlotMap::new ──> owners: 16,384 × u16, published as one pointer
//!  per turn:    map.gate(fenced …)   ──> the number of the shard that this node serves now, or none
//!  per command: map.is_served(gate, slot)   a table lookup and a compare
//!  otherwise:   map.route(request, state) ──> Serve, Moved, or an error
//! ```

use crate::document::{Member, Shard, Topology};
use crate::id::{Epoch, NodeId, NodeRun, ShardId, Term};
use crate::slots::SlotId;
use brisk_resp::slot::SLOTS;
use std::collections::BTreeSet;
use std::fmt;

/// The owner number of a slot without an owner. Shards are numbered from 0, and there are never this many.
const UNOWNED: u16 = u16::MAX;
/// A gate that no slot passes.
const CLOSED: u16 = u16::MAX - 1;

/// The role of this node in the document.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MapRole {
    /// The node is not a member, and knows only itself.
    Outsider,
    /// The primary of its shard, in this run.
    Primary,
    /// The primary of its shard, but the document has a different run: this run must not serve before a new term
    /// begins.
    RestartedPrimary,
    Replica,
}

/// How other nodes are named to clients: `cluster-preferred-endpoint-type`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum EndpointKind {
    #[default]
    Ip,
    Hostname,
    /// The client keeps the address that it used.
    Unknown,
}

/// The keys of a command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RouteKeys {
    None,
    /// All keys are in this slot.
    One(SlotId),
    /// The keys are in several slots; this is the slot of the first key.
    Several(SlotId),
}

/// The facts about a command that routing depends on.
#[derive(Debug, Clone, Copy)]
pub struct RouteRequest {
    pub keys: RouteKeys,
    /// The command, or one queued for EXEC, may write.
    pub is_write: bool,
    /// The command belongs to sharded Pub/Sub: its channels are the keys.
    pub is_sharded_pubsub: bool,
    /// The session sent READONLY.
    pub is_readonly_session: bool,
}

/// The facts about the node that routing depends on.
#[derive(Debug, Clone, Copy)]
pub struct RouteState {
    /// The lease deadline has passed: the node may serve nothing.
    pub is_fenced: bool,
    /// `cluster-require-full-coverage`.
    pub requires_full_coverage: bool,
    /// `cluster-allow-reads-when-down`.
    pub allows_reads_when_down: bool,
    /// `cluster-allow-pubsubshard-when-down`.
    pub allows_pubsub_when_down: bool,
}

/// The routing decision.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum RouteDecision<'m> {
    Serve,
    /// The primary of the slot's shard serves it.
    Moved {
        slot: SlotId,
        to: &'m Member,
    },
    Refused(RouteError),
}

/// Why a command is neither served nor redirected. `Display` is the error reply of Redis.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum RouteError {
    #[error("CROSSSLOT Keys in request don't hash to the same slot")]
    CrossSlot,
    #[error("CLUSTERDOWN Hash slot not served")]
    SlotNotServed,
    #[error("CLUSTERDOWN The cluster is down")]
    ClusterDown,
    #[error("CLUSTERDOWN The cluster is down and only accepts read commands")]
    OnlyReads,
}

/// Why a command of a script was rejected. `Display` is the error reply of Redis, which then names the script.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum ScriptRouteError {
    /// For scripts that begin with `#!` and lack the flag `allow-cross-slot-keys`: the script has used a key in another
    /// slot before. The caller compares the slots.
    #[error("ERR Script attempted to access keys that do not hash to the same slot")]
    CrossSlot,
    #[error("ERR Script attempted to access a non local key in a cluster node")]
    NotLocal,
    #[error("ERR Script attempted to execute a command while the cluster is down")]
    ClusterDown,
    #[error(
        "ERR Script attempted to execute a write command while the cluster is down and readonly"
    )]
    OnlyReads,
}

impl RouteDecision<'_> {
    /// The error for a command that a script executes; `None` if it is served.
    #[must_use]
    pub const fn script_error(&self) -> Option<ScriptRouteError> {
        match self {
            RouteDecision::Serve => None,
            RouteDecision::Refused(RouteError::ClusterDown) => Some(ScriptRouteError::ClusterDown),
            RouteDecision::Refused(RouteError::OnlyReads) => Some(ScriptRouteError::OnlyReads),
            RouteDecision::Refused(RouteError::CrossSlot | RouteError::SlotNotServed)
            | RouteDecision::Moved { .. } => Some(ScriptRouteError::NotLocal),
        }
    }
}

/// The shard that this node serves now. Computed once per turn, compared once per command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RouteGate(u16);

/// The map in force.
#[derive(Debug, Clone)]
pub struct SlotMap {
    owners: Box<[u16]>,
    /// The primaries of the shards, by the shards' numbers.
    primaries: Vec<Member>,
    own: NodeId,
    role: MapRole,
    /// The number of this node's shard, or [`CLOSED`].
    own_shard: u16,
    own_shard_id: Option<ShardId>,
    term: Term,
    epoch: Epoch,
    /// The primaries of the shards with slots.
    slot_owners: Vec<NodeId>,
    /// Every slot has an owner.
    is_assigned: bool,
    has_failed_owner: bool,
}

impl SlotMap {
    /// The map for the run `own` of a node; `topology` is `None` if there is no document. The document must have been
    /// checked. A node that is not a member has no slots and knows none, as in Redis before MEET. O(slots + shards).
    #[must_use]
    pub fn new(topology: Option<&Topology>, own: NodeRun) -> SlotMap {
        let mut map = SlotMap {
            owners: vec![UNOWNED; SLOTS.into()].into_boxed_slice(),
            primaries: Vec::new(),
            own: own.node,
            role: MapRole::Outsider,
            own_shard: CLOSED,
            own_shard_id: None,
            term: Term::default(),
            epoch: topology.map(|topology| topology.epoch).unwrap_or_default(),
            slot_owners: Vec::new(),
            is_assigned: false,
            has_failed_owner: false,
        };
        let topology = topology.filter(|topology| topology.members.contains_key(&own.node));
        let Some(topology) = topology else { return map };
        // The number of a shard fits: a checked document has at most 1,000 shards.
        for (number, shard) in (0..CLOSED).zip(&topology.shards) {
            for range in shard.slots.ranges() {
                map.owners[range.first().index()..=range.last().index()].fill(number);
            }
            let primary = topology.members.get(&shard.primary).cloned().unwrap_or_default();
            map.primaries.push(primary);
            if shard.has(own.node) {
                map.own_shard = number;
                map.own_shard_id = Some(shard.id);
                map.term = shard.term;
                map.role = role(shard, own);
            }
        }
        let with_slots = topology.shards.iter().filter(|shard| !shard.slots.is_empty());
        map.slot_owners = with_slots.map(|shard| shard.primary).collect();
        map.is_assigned = topology.slots_assigned() == usize::from(SLOTS);
        map
    }

    /// Sets which members have failed. O(shards · log failed).
    pub fn set_failed(&mut self, failed: &BTreeSet<NodeId>) {
        self.has_failed_owner = self.slot_owners.iter().any(|owner| failed.contains(owner));
    }

    /// The gate of this turn.
    #[inline]
    #[must_use]
    pub fn gate(&self, state: &RouteState) -> RouteGate {
        let serves = self.role == MapRole::Primary && !self.is_down(state);
        RouteGate(if serves { self.own_shard } else { CLOSED })
    }

    /// True if this node serves the slot, for reads and writes. Otherwise [`SlotMap::route`] decides.
    #[inline]
    #[must_use]
    pub fn is_served(&self, gate: RouteGate, slot: SlotId) -> bool {
        self.owners[slot.index()] == gate.0
    }

    /// Decides what happens to a command. The order of the cases is that of Redis: a first key whose slot has no owner
    /// is reported before keys in several slots. O(1).
    #[must_use]
    pub fn route(&self, request: &RouteRequest, state: &RouteState) -> RouteDecision<'_> {
        let (slot, is_several) = match request.keys {
            RouteKeys::None => return RouteDecision::Serve,
            RouteKeys::One(slot) => (slot, false),
            RouteKeys::Several(first) => (first, true),
        };
        let number = self.owners[slot.index()];
        let Some(primary) = self.primaries.get(usize::from(number)) else {
            return RouteDecision::Refused(RouteError::SlotNotServed);
        };
        if is_several {
            return RouteDecision::Refused(RouteError::CrossSlot);
        }
        let refusal = refusal_when_down(request, state).filter(|_| self.is_down(state));
        if let Some(error) = refusal {
            return RouteDecision::Refused(error);
        }
        let is_own_shard = number == self.own_shard;
        let may_read =
            request.is_sharded_pubsub || (request.is_readonly_session && !request.is_write);
        match self.role {
            MapRole::Primary if is_own_shard => RouteDecision::Serve,
            MapRole::Replica if is_own_shard && may_read => RouteDecision::Serve,
            // A redirect would name this node itself.
            MapRole::RestartedPrimary if is_own_shard => {
                RouteDecision::Refused(RouteError::ClusterDown)
            }
            _ => RouteDecision::Moved { slot, to: primary },
        }
    }

    /// True if the state of the cluster is `fail` for this node.
    #[must_use]
    pub fn is_down(&self, state: &RouteState) -> bool {
        state.is_fenced
            || self.role == MapRole::RestartedPrimary
            || (state.requires_full_coverage && !self.is_covered())
    }

    /// The primary of the shard that owns the slot.
    #[must_use]
    pub fn owner(&self, slot: SlotId) -> Option<&Member> {
        self.primaries.get(usize::from(self.owners[slot.index()]))
    }

    /// True if the slot belongs to the shard of this node, as primary or replica.
    #[must_use]
    pub fn is_own(&self, slot: SlotId) -> bool {
        self.owners[slot.index()] == self.own_shard
    }

    /// True if every slot has an owner that has not failed.
    #[must_use]
    pub const fn is_covered(&self) -> bool {
        self.is_assigned && !self.has_failed_owner
    }

    #[must_use]
    pub const fn own(&self) -> NodeId {
        self.own
    }

    #[must_use]
    pub const fn role(&self) -> MapRole {
        self.role
    }

    /// The shard of this node, with its term.
    #[must_use]
    pub fn own_shard(&self) -> Option<(ShardId, Term)> {
        self.own_shard_id.map(|shard| (shard, self.term))
    }

    #[must_use]
    pub const fn epoch(&self) -> Epoch {
        self.epoch
    }
}

fn role(shard: &Shard, own: NodeRun) -> MapRole {
    if shard.primary != own.node {
        MapRole::Replica
    } else if shard.primary_run() == Some(own) {
        MapRole::Primary
    } else {
        MapRole::RestartedPrimary
    }
}

/// The error of a node that is down; `None` if it may serve the command anyway. A node that is down allows reads only
/// if the settings do.
fn refusal_when_down(request: &RouteRequest, state: &RouteState) -> Option<RouteError> {
    if request.is_sharded_pubsub {
        return (!state.allows_pubsub_when_down).then_some(RouteError::ClusterDown);
    }
    if !state.allows_reads_when_down {
        return Some(RouteError::ClusterDown);
    }
    request.is_write.then_some(RouteError::OnlyReads)
}

/// The host that clients are given for a member, as in MOVED: `?` if a host name is preferred and the member has none;
/// empty if the kind is unknown.
#[must_use]
pub fn endpoint(member: &Member, kind: EndpointKind) -> &str {
    match kind {
        EndpointKind::Ip => &member.ip,
        EndpointKind::Hostname if member.host.is_empty() => "?",
        EndpointKind::Hostname => &member.host,
        EndpointKind::Unknown => "",
    }
}

/// The port that clients are given for a member: the TLS port for TLS clients and the other port for other clients, if
/// the member has it.
#[must_use]
pub fn client_port(member: &Member, is_tls: bool) -> u16 {
    let (own, other) = if is_tls { (member.tls, member.port) } else { (member.port, member.tls) };
    if own == 0 { other } else { own }
}

/// The error reply MOVED: `MOVED <slot> <endpoint>:<port>`.
#[derive(Debug, Clone, Copy)]
pub struct MovedText<'m> {
    pub slot: SlotId,
    pub to: &'m Member,
    pub kind: EndpointKind,
    /// The client uses TLS.
    pub is_tls: bool,
}

impl fmt::Display for MovedText<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (host, port) = (endpoint(self.to, self.kind), client_port(self.to, self.is_tls));
        write!(f, "MOVED {} {host}:{port}", self.slot.number())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::document::tests::{member, node, range, run, three_shards};
    use crate::id::Incarnation;

    const UP: RouteState = RouteState {
        is_fenced: false,
        requires_full_coverage: true,
        allows_reads_when_down: false,
        allows_pubsub_when_down: true,
    };
    const FENCED: RouteState = RouteState { is_fenced: true, ..UP };
    const READS: RouteState = RouteState { allows_reads_when_down: true, ..FENCED };

    fn read(slot: u16) -> RouteRequest {
        RouteRequest {
            keys: RouteKeys::One(SlotId::new(slot)),
            is_write: false,
            is_sharded_pubsub: false,
            is_readonly_session: false,
        }
    }

    fn write(slot: u16) -> RouteRequest {
        RouteRequest { is_write: true, ..read(slot) }
    }

    fn text(map: &SlotMap, request: RouteRequest, state: RouteState) -> String {
        match map.route(&request, &state) {
            RouteDecision::Serve => "serve".into(),
            RouteDecision::Refused(error) => error.to_string(),
            RouteDecision::Moved { slot, to } => {
                MovedText { slot, to, kind: EndpointKind::Ip, is_tls: false }.to_string()
            }
        }
    }

    const NOT_SERVED: &str = "CLUSTERDOWN Hash slot not served";
    const DOWN: &str = "CLUSTERDOWN The cluster is down";
    const ONLY_READS: &str = "CLUSTERDOWN The cluster is down and only accepts read commands";
    const CROSS: &str = "CROSSSLOT Keys in request don't hash to the same slot";

    #[test]
    fn the_table_of_replies_for_a_primary() {
        let map = SlotMap::new(Some(&three_shards()), run(1));
        let several = RouteRequest { keys: RouteKeys::Several(SlotId::new(3)), ..read(0) };
        let none = RouteRequest { keys: RouteKeys::None, ..write(0) };
        let mut holed = three_shards();
        holed.shards[0].slots = range(0, 5459);
        let holed = SlotMap::new(Some(&holed), run(1));
        let partial = RouteState { requires_full_coverage: false, ..UP };
        let holed_several = RouteRequest { keys: RouteKeys::Several(SlotId::new(5460)), ..read(0) };
        let cases: &[(&SlotMap, RouteRequest, RouteState, &str)] = &[
            (&map, several, UP, CROSS),
            (&map, several, FENCED, CROSS),
            (&map, none, FENCED, "serve"),
            (&map, read(0), UP, "serve"),
            (&map, write(5460), UP, "serve"),
            (&map, read(16_287), UP, "MOVED 16287 127.0.0.1:7003"),
            (&map, read(0), FENCED, DOWN),
            (&map, read(16_287), FENCED, DOWN),
            (&map, read(0), READS, "serve"),
            (&map, write(0), READS, ONLY_READS),
            (&map, read(16_287), READS, "MOVED 16287 127.0.0.1:7003"),
            (&map, write(16_287), READS, ONLY_READS),
            (&holed, read(5460), UP, NOT_SERVED),
            (&holed, holed_several, UP, NOT_SERVED),
            (&holed, several, UP, CROSS),
            (&holed, read(0), UP, DOWN),
            (&holed, read(0), partial, "serve"),
            (&holed, read(5460), partial, NOT_SERVED),
            (&holed, read(16_287), partial, "MOVED 16287 127.0.0.1:7003"),
        ];
        for (map, request, state, expected) in cases {
            assert_eq!(text(map, *request, *state), *expected, "{request:?} {state:?}");
        }
    }

    #[test]
    fn a_failed_owner_of_slots_takes_the_cluster_down_unless_coverage_is_not_required() {
        let mut map = SlotMap::new(Some(&three_shards()), run(1));
        let partial = RouteState { requires_full_coverage: false, ..UP };
        map.set_failed(&BTreeSet::from([node(3)]));
        assert!(map.is_down(&UP) && !map.is_down(&partial));
        assert_eq!(text(&map, read(0), UP), DOWN);
        assert_eq!(text(&map, read(16_287), UP), DOWN);
        assert!(!map.is_served(map.gate(&UP), SlotId::new(0)));
        assert_eq!(text(&map, read(0), partial), "serve");
        assert_eq!(text(&map, read(16_287), partial), "MOVED 16287 127.0.0.1:7003");
        // A replica, and a node that is not a member, own no slots.
        map.set_failed(&BTreeSet::from([node(4), node(9)]));
        assert!(!map.is_down(&UP));
        assert_eq!(text(&map, write(0), UP), "serve");
    }

    #[test]
    fn a_replica_serves_reads_of_readonly_sessions_only() {
        let map = SlotMap::new(Some(&three_shards()), run(4));
        let readonly = |request| RouteRequest { is_readonly_session: true, ..request };
        let pubsub = |request| RouteRequest { is_sharded_pubsub: true, ..request };
        assert_eq!(map.role(), MapRole::Replica);
        assert_eq!(text(&map, read(0), UP), "MOVED 0 127.0.0.1:7001");
        assert_eq!(text(&map, readonly(read(0)), UP), "serve");
        assert_eq!(text(&map, readonly(write(0)), UP), "MOVED 0 127.0.0.1:7001");
        assert_eq!(text(&map, readonly(read(6000)), UP), "MOVED 6000 127.0.0.1:7002");
        assert_eq!(text(&map, pubsub(write(0)), UP), "serve");
        assert_eq!(text(&map, pubsub(write(0)), FENCED), "serve");
        let strict = RouteState { allows_pubsub_when_down: false, ..FENCED };
        assert_eq!(text(&map, pubsub(write(0)), strict), DOWN);
        assert!(!map.is_served(map.gate(&UP), SlotId::new(0)));
    }

    #[test]
    fn a_node_without_a_document_and_an_outsider_serve_no_slot() {
        for topology in [None, Some(three_shards())] {
            let map = SlotMap::new(topology.as_ref(), run(9));
            assert_eq!((map.role(), map.own_shard()), (MapRole::Outsider, None));
            assert_eq!(text(&map, read(0), UP), NOT_SERVED);
            let several = RouteRequest { keys: RouteKeys::Several(SlotId::new(3)), ..read(0) };
            assert_eq!(text(&map, several, UP), NOT_SERVED);
            assert!(!(0..SLOTS).any(|slot| map.is_served(map.gate(&UP), SlotId::new(slot))));
        }
    }

    #[test]
    fn a_restarted_primary_serves_nothing_before_its_run_is_in_the_document() {
        let restarted = NodeRun { node: node(1), incarnation: Incarnation(77) };
        let map = SlotMap::new(Some(&three_shards()), restarted);
        assert_eq!(map.role(), MapRole::RestartedPrimary);
        assert_eq!(text(&map, read(0), UP), DOWN);
        let lenient = RouteState { is_fenced: false, ..READS };
        assert_eq!(text(&map, read(0), lenient), DOWN);
        assert!(!map.is_served(map.gate(&UP), SlotId::new(0)));
    }

    #[test]
    fn the_gate_lets_exactly_the_served_slots_pass() {
        let map = SlotMap::new(Some(&three_shards()), run(2));
        for state in [UP, FENCED, READS] {
            let gate = map.gate(&state);
            for slot in 0..SLOTS {
                let is_served = map.route(&write(slot), &state) == RouteDecision::Serve;
                assert_eq!(map.is_served(gate, SlotId::new(slot)), is_served, "{slot} {state:?}");
            }
        }
    }

    #[test]
    fn a_script_gets_the_errors_for_scripts() {
        let mut holed = three_shards();
        holed.shards[0].slots = range(0, 5459);
        let holed = SlotMap::new(Some(&holed), run(1));
        let partial = RouteState { requires_full_coverage: false, ..UP };
        let text = |request, state: &RouteState| {
            holed.route(&request, state).script_error().map(|error| error.to_string())
        };
        let not_local = "ERR Script attempted to access a non local key in a cluster node";
        let down = "ERR Script attempted to execute a command while the cluster is down";
        let reads = "ERR Script attempted to execute a write command while the cluster is down and \
                     readonly";
        assert_eq!(text(read(0), &partial), None);
        assert_eq!(text(read(5460), &partial).as_deref(), Some(not_local));
        assert_eq!(text(read(16_287), &partial).as_deref(), Some(not_local));
        assert_eq!(text(read(0), &UP).as_deref(), Some(down));
        assert_eq!(text(write(0), &READS).as_deref(), Some(reads));
        assert_eq!(
            ScriptRouteError::CrossSlot.to_string(),
            "ERR Script attempted to access keys that do not hash to the same slot"
        );
    }

    #[test]
    fn endpoints_are_named_as_redis_names_them() {
        let mut to = member(3);
        let moved = |to: &Member, kind, is_tls| {
            MovedText { slot: SlotId::new(7365), to, kind, is_tls }.to_string()
        };
        assert_eq!(moved(&to, EndpointKind::Hostname, false), "MOVED 7365 ?:7003");
        assert_eq!(moved(&to, EndpointKind::Unknown, false), "MOVED 7365 :7003");
        to.host = "host-2.example.com".into();
        to.tls = 7103;
        let named = "MOVED 7365 host-2.example.com:7103";
        assert_eq!(moved(&to, EndpointKind::Hostname, true), named);
        assert_eq!(moved(&to, EndpointKind::Ip, false), "MOVED 7365 127.0.0.1:7003");
    }
}
