//! The model of a node.

use brisk_cluster::document::{
    Dataset, InstallError, NodeRole, NodeStatus, Registration, Shard, Topology, check_installation,
};
use brisk_cluster::failover::{
    CoordinatorLoss, Lease, LeaseHorizon, NewTerm, ReplicaAcks, SeenRegistration, SentAcks,
    longest_ttl_ms, may_serve, serves_from_ms,
};
use brisk_cluster::id::{ChangeId, Epoch, Incarnation, NodeId, NodeRun, ShardId, Term};
use brisk_cluster::map::{MapRole, RouteState, SlotMap};
use brisk_cluster::slots::SlotId;
use std::collections::BTreeMap;
use std::rc::Rc;

/// A node.
#[derive(Debug)]
pub(crate) struct Node {
    pub(crate) run: NodeRun,
    /// The registration of the first process.
    first_registration: Registration,
    /// The TTL of this process's lease. It is in the registration too.
    pub(crate) ttl_ms: u64,
    pub(crate) is_up: bool,
    /// The process is stopped until this time and executes nothing.
    pub(crate) paused_until_ms: u64,
    /// The node is cut off from the coordinator until this time.
    pub(crate) cut_until_ms: u64,
    /// The node is cut off from its primary or its replicas until this time.
    pub(crate) unlinked_until_ms: u64,
    /// The node's acknowledgements are lost until this time, but it receives the stream.
    pub(crate) mute_until_ms: u64,
    pub(crate) loading_until_ms: u64,
    pub(crate) dataset: Dataset,
    pub(crate) offset: u64,
    last_contact_ms: Option<u64>,
    /// The document in force. It survives restarts, like the file of a real node.
    pub(crate) installed: Option<Rc<Topology>>,
    pub(crate) map: SlotMap,
    /// The first slot of this node's shard, and the shard's replicas. They are needed after each event, so they are
    /// not looked up in the document each time.
    shard: Option<(SlotId, Vec<NodeId>)>,
    lease: Option<Lease>,
    /// The primary of the shard, and the epoch of the first document that this process has seen name it.
    first_named: Option<(NodeRun, u64)>,
    /// The number of terms that began without a wait for acknowledgements, because the primary had restarted.
    pub(crate) short_waits: u64,
    /// The last registration of each node that this node has seen.
    registered: BTreeMap<NodeId, SeenRegistration>,
    /// The number of the lease that this process holds, as far as it knows. Without one it registers.
    pub(crate) lease_number: Option<u64>,
    /// The lease was lost, and the node has not reasserted itself as a primary. Its renewals do not count.
    pub(crate) must_reassert: bool,
    /// The last reassertion; it is in force once a document with it is installed.
    pub(crate) reassertion: Option<ChangeId>,
    /// The epoch in which this primary began to hand over. It serves again once it knows the outcome, that is, once it
    /// has installed a later document.
    pub(crate) handing_over: Option<Epoch>,
    serves_from_ms: u64,
    loss: CoordinatorLoss,
    /// The primary that this replica follows.
    following: Option<NodeId>,
    acks: SentAcks,
    horizon: LeaseHorizon,
    /// For each replica, the time (on this primary's clock) at which this primary sent the data that the replica has
    /// acknowledged last.
    acknowledged: BTreeMap<NodeId, u64>,
    /// The clock's start, and its error in parts per million.
    clock: (u64, i64),
}

impl Node {
    pub(crate) fn new(id: NodeId, clock: (u64, i64), loss: CoordinatorLoss, ttl_ms: u64) -> Node {
        let run = NodeRun { node: id, incarnation: Incarnation(1) };
        Node {
            run,
            first_registration: first_registration(run),
            ttl_ms,
            is_up: true,
            paused_until_ms: 0,
            cut_until_ms: 0,
            unlinked_until_ms: 0,
            mute_until_ms: 0,
            loading_until_ms: 0,
            dataset: Dataset::Empty,
            offset: 0,
            last_contact_ms: None,
            installed: None,
            map: SlotMap::new(None, run),
            shard: None,
            lease: None,
            first_named: None,
            short_waits: 0,
            registered: BTreeMap::new(),
            lease_number: None,
            must_reassert: false,
            reassertion: None,
            handing_over: None,
            serves_from_ms: 0,
            loss,
            following: None,
            acks: SentAcks { started_ms: 0, last_ms: 0, earlier_ms: 0 },
            horizon: LeaseHorizon::default(),
            acknowledged: BTreeMap::new(),
            clock,
        }
    }

    /// The node's own clock.
    pub(crate) fn local_ms(&self, now_ms: u64) -> u64 {
        let (start, error) = self.clock;
        let drift = now_ms as i64 * error / 1_000_000;
        start.saturating_add_signed(now_ms as i64 + drift)
    }

    pub(crate) fn is_running(&self, now_ms: u64) -> bool {
        self.is_up && now_ms >= self.paused_until_ms
    }

    pub(crate) fn registration(&self) -> Registration {
        let mut registration = self.first_registration.clone();
        registration.incarnation = self.run.incarnation;
        registration.member.ttl = self.ttl_ms / 1000;
        registration
    }

    /// Starts a new process. Without `keeps_data` the disk is empty too.
    pub(crate) fn restart(&mut self, keeps_data: bool, now_ms: u64, ttl_ms: u64) {
        self.run.incarnation = Incarnation(self.run.incarnation.0 + 1);
        self.ttl_ms = ttl_ms;
        self.is_up = true;
        self.paused_until_ms = now_ms;
        (self.lease, self.lease_number) = (None, None);
        self.registered.clear();
        self.first_named = None;
        (self.last_contact_ms, self.serves_from_ms) = (None, 0);
        (self.must_reassert, self.reassertion, self.handing_over) = (false, None, None);
        if !keeps_data || self.offset == 0 {
            (self.dataset, self.offset) = (Dataset::Empty, 0);
        }
        self.apply_document();
        let started_ms = self.local_ms(now_ms);
        self.acks = SentAcks { started_ms, last_ms: started_ms, earlier_ms: started_ms };
        // The node installs its last document when it starts.
        let shard = self.map.own_shard().map(|(shard, _)| shard);
        let ttl_ms = shard
            .map_or(ttl_ms, |shard| longest_ttl_ms(ttl_ms, shard, &[self.installed.as_deref()]));
        self.horizon = LeaseHorizon::at_start(started_ms, ttl_ms);
        self.acknowledged.clear();
        self.following = self.primary();
    }

    /// Derives the node's view of the cluster from the document in force.
    fn apply_document(&mut self) {
        self.map = SlotMap::new(self.installed.as_deref(), self.run);
        let own = self.installed.as_ref().and_then(|topology| topology.shard_of(self.run.node));
        let slot = own.and_then(|shard| Some((shard, shard.slots.iter().next()?)));
        self.shard = slot.map(|(shard, slot)| (slot, shard.replicas.to_vec()));
    }

    /// The primary that this node must follow.
    fn primary(&self) -> Option<NodeId> {
        let shard = self.installed.as_ref()?.shard_of(self.run.node)?;
        (self.map.role() == MapRole::Replica).then_some(shard.primary)
    }

    /// Records that a run has registered.
    pub(crate) fn note_registration(&mut self, run: NodeRun, revision: u64) {
        let seen = SeenRegistration { incarnation: run.incarnation, revision };
        let known = self.registered.entry(run.node).or_insert(seen);
        // Two registrations between two documents have the same revision here, unlike in etcd.
        if (known.revision, known.incarnation) < (revision, run.incarnation) {
            *known = seen;
        }
    }

    /// Installs a document unless it is older.
    pub(crate) fn install(&mut self, document: Option<&Rc<Topology>>, now_ms: u64) {
        let Some(document) = document else { return };
        if self.installed.as_ref().is_some_and(|installed| Rc::ptr_eq(installed, document)) {
            return;
        }
        match check_installation("brisk", self.installed.as_deref(), Some(document)) {
            Err(InstallError::EpochNotGrown { .. }) => return,
            checked => checked.unwrap(),
        }
        if self.reassertion == Some(document.change) {
            (self.must_reassert, self.reassertion) = (false, None);
        }
        self.handing_over = self.handing_over.filter(|from| document.epoch <= *from);
        let before = (self.map.role(), self.map.own_shard());
        let before_document = self.installed.replace(Rc::clone(document));
        self.apply_document();
        let named_before = self.first_named;
        let run = document.shard_of(self.run.node).and_then(Shard::primary_run);
        if self.first_named.map(|(run, _)| run) != run {
            // Every change raises the revision and the epoch by one.
            self.first_named = run.map(|run| (run, document.epoch.0));
        }
        if self.must_record_ttl() {
            self.lease = None;
        }
        let has_new_term = before != (self.map.role(), self.map.own_shard());
        let Some(shard) = document.shard_of(self.run.node).filter(|_| has_new_term) else { return };
        // A restarted primary is in a later term than the one that this node knows, or in none.
        let is_next = before.0 == MapRole::Replica
            && before.1.is_some_and(|(id, term)| id == shard.id && term.next() == shard.term);
        let primary = before_document.as_ref().filter(|_| is_next);
        let primary = primary.and_then(|old| old.shard(shard.id)?.primary_run());
        let is_primary_restarted = primary.is_some_and(|old| {
            let registered = self.registered.get(&old.node);
            let named_at = named_before.filter(|(run, _)| *run == old).map(|(_, epoch)| epoch);
            registered.is_some_and(|registered| registered.is_later_than(old, named_at))
        });
        let is_promoted = self.map.role() == MapRole::Primary;
        self.short_waits += u64::from(is_primary_restarted && is_promoted);
        let installed_ms = self.local_ms(now_ms);
        let topologies = [before_document.as_deref(), Some(document)];
        let ttl_ms = longest_ttl_ms(self.ttl_ms, shard.id, &topologies);
        self.horizon.note_term(before.1, shard, installed_ms, ttl_ms);
        self.serves_from_ms = serves_from_ms(&NewTerm {
            cause: shard.cause,
            installed_ms,
            ttl_ms,
            has_expiring_leases: true,
            has_or_had_replicas: shard.has_or_had_replicas(),
            horizon: self.horizon,
            acks: self.acks,
            is_primary_restarted,
        });
        if self.map.role() == MapRole::Replica {
            self.last_contact_ms = self.last_contact_ms.filter(|_| before.1.is_some());
        }
        self.acknowledged.clear();
        let following = self.primary();
        if self.following != following {
            let SentAcks { started_ms, last_ms, earlier_ms } = self.acks;
            let earlier_ms = earlier_ms.max(last_ms);
            self.acks = SentAcks { started_ms, last_ms: started_ms, earlier_ms };
            self.following = following;
        }
    }

    /// The term of this primary, whether it may serve or not.
    pub(crate) fn primary_term(&self) -> Option<(ShardId, Term)> {
        self.map.own_shard().filter(|_| self.map.role() == MapRole::Primary)
    }

    /// True if this replica follows `primary` and has a copy of its dataset.
    pub(crate) fn follows(&self, primary: NodeId) -> bool {
        self.following == Some(primary) && self.last_contact_ms.is_some()
    }

    /// Records that this replica sends an acknowledgement.
    pub(crate) fn acknowledge(&mut self, now_ms: u64) {
        self.acks.last_ms = self.local_ms(now_ms);
    }

    /// Records that a replica has acknowledged the data that this primary sent at `sent_ms` on its clock.
    pub(crate) fn note_ack(&mut self, replica: NodeId, sent_ms: u64) {
        let acknowledged = self.acknowledged.entry(replica).or_default();
        *acknowledged = sent_ms.max(*acknowledged);
    }

    fn replica_acks(&self) -> ReplicaAcks {
        let replicas = self.shard.iter().flat_map(|(_, replicas)| replicas);
        let mut oldest = ReplicaAcks::NoReplicas;
        for replica in replicas {
            let Some(sent_ms) = self.acknowledged.get(replica) else { return ReplicaAcks::Missing };
            oldest = match oldest {
                ReplicaAcks::Oldest(other) => ReplicaAcks::Oldest(other.min(*sent_ms)),
                _ => ReplicaAcks::Oldest(*sent_ms),
            };
        }
        oldest
    }

    /// The TTL of this node in the document in force.
    fn known_ttl_ms(&self) -> Option<u64> {
        let known = self.installed.as_ref()?.members.get(&self.run.node)?;
        Some(known.ttl * 1000)
    }

    /// True if the document in force has another TTL of this node.
    pub(crate) fn has_other_ttl(&self) -> bool {
        self.known_ttl_ms().is_some_and(|known| known != self.ttl_ms)
    }

    /// True if this node is a primary, and the document in force has a shorter TTL of it.
    fn must_record_ttl(&self) -> bool {
        self.map.role() == MapRole::Primary
            && self.known_ttl_ms().is_some_and(|known| known < self.ttl_ms)
    }

    /// Records a renewal that was sent at `sent_ms` on the node's clock.
    pub(crate) fn renewed(&mut self, sent_ms: u64) {
        self.must_reassert &= self.map.role() == MapRole::Primary;
        if self.must_reassert || self.must_record_ttl() {
            return;
        }
        let ttl_ms = self.ttl_ms;
        let renewed_ms = self.lease.map_or(sent_ms, |lease| lease.renewed_ms.max(sent_ms));
        self.lease = Some(Lease { renewed_ms, ttl_ms });
    }

    /// The shard that this node serves at this moment.
    pub(crate) fn serves(&self, now_ms: u64) -> Option<(ShardId, Term)> {
        let local_ms = self.local_ms(now_ms);
        let is_handing_over = self.handing_over.is_some();
        if !self.is_running(now_ms) || local_ms < self.serves_from_ms || is_handing_over {
            return None;
        }
        let state = RouteState {
            is_fenced: !may_serve(self.lease, local_ms, self.loss, self.replica_acks()),
            requires_full_coverage: true,
            allows_reads_when_down: false,
            allows_pubsub_when_down: false,
        };
        let own = self.map.own_shard()?;
        let (slot, _) = self.shard.as_ref()?;
        self.map.is_served(self.map.gate(&state), *slot).then_some(own)
    }

    pub(crate) fn status(&self, now_ms: u64) -> NodeStatus {
        let is_replica = self.map.role() == MapRole::Replica;
        let contact = self.last_contact_ms.filter(|_| is_replica);
        NodeStatus {
            incarnation: self.run.incarnation,
            role: if is_replica { NodeRole::Replica } else { NodeRole::Primary },
            term: self.map.own_shard().map(|own| own.1).unwrap_or_default(),
            replid: "r".into(),
            offset: self.offset,
            loading: now_ms < self.loading_until_ms,
            last_contact_ms: contact.map(|at| self.local_ms(now_ms).saturating_sub(at)),
            dataset: self.dataset,
            full_copy: false,
            other: Default::default(),
        }
    }

    /// A replica receives everything up to `offset` from its primary; the first contact is a full copy.
    pub(crate) fn follow(&mut self, offset: u64, now_ms: u64, copy_ms: u64) {
        if self.last_contact_ms.is_none() {
            self.loading_until_ms = now_ms + copy_ms;
        }
        self.last_contact_ms = Some(self.local_ms(now_ms));
        (self.offset, self.dataset) = (offset, Dataset::Disk);
    }
}

fn first_registration(run: NodeRun) -> Registration {
    let port = 7_000 + u16::from(run.node.to_string().as_bytes()[1] - b'0');
    let json = format!(
        r#"{{"id":"{}","incarnation":"{}","version":"1","member":{{"ip":"10.0.0.1","port":{port},
        "host":"node-{port}","name":"node-{port}","zone":"one"}}}}"#,
        run.node, run.incarnation
    );
    Registration::parse(json.as_bytes()).unwrap()
}

/// The nodes that serve, by shard; an error message if two serve the same shard.
pub(crate) fn serving(
    nodes: &[Node],
    now_ms: u64,
) -> Result<BTreeMap<ShardId, (Term, NodeRun)>, String> {
    let mut serving = BTreeMap::new();
    for node in nodes {
        let Some((shard, term)) = node.serves(now_ms) else { continue };
        if let Some(other) = serving.insert(shard, (term, node.run)) {
            let own = (term, node.run);
            return Err(format!("shard {shard}: {other:?} and {own:?} serve at once"));
        }
    }
    Ok(serving)
}
