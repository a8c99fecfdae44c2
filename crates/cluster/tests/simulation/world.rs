//! Events, faults, and the invariants that hold after each event.

use crate::coordinator::{Coordinator, Renewal, Request};
use crate::node::{Node, serving};
use brisk_cluster::change::{Promotion, promote, reassert, record_ttl};
use brisk_cluster::document::{Dataset, Registration, TermCause, Topology};
use brisk_cluster::failover::{
    Controller, CoordinatorLoss, Decision, FailoverSettings, ReceivedStatus, Situation,
};
use brisk_cluster::id::{ChangeId, Incarnation, NodeId, NodeRun, ShardId, Term};
use brisk_cluster::map::MapRole;
use brisk_testkit::random::Random;
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

/// The TTL of the controllers, and of all nodes unless they have different ones.
const TTL_MS: u64 = 3_000;
/// The TTLs from which each process gets one in a run with different TTLs.
const TTLS_MS: [u64; 3] = [2_000, TTL_MS, 7_000];
/// The time between two messages of a primary that its replicas acknowledge.
const ACK_PERIOD_MS: u64 = 400;
const NODES: u8 = 6;
const CONTROLLERS: usize = 2;
/// Faults occur until this time.
const FAULTS_END_MS: u64 = 60_000;
/// The end of a run, which leaves time to recover: several lease TTLs, a storm, full copies.
const END_MS: u64 = FAULTS_END_MS + 40_000;

/// Settings for three shards with one replica each, or two shards with two replicas each.
const fn settings(has_more_replicas: bool) -> FailoverSettings {
    let (init_shards, init_replicas) = if has_more_replicas { (2, 2) } else { (3, 1) };
    FailoverSettings { ttl_ms: TTL_MS, validity_factor: 10, init_shards, init_replicas }
}

/// Counts of the events in all runs.
#[derive(Debug, Default)]
pub(crate) struct Totals {
    pub(crate) failovers: u64,
    pub(crate) resumed: u64,
    pub(crate) forced: u64,
    pub(crate) storms: u64,
    pub(crate) alarms: u64,
    /// Changes whose outcome the writer had to look up.
    pub(crate) unknown: u64,
    pub(crate) reasserted: u64,
    /// Changes that record the TTL of a node.
    pub(crate) ttls_recorded: u64,
    /// Planned switches that were proposed.
    pub(crate) planned: u64,
    /// Promotions that did not wait for acknowledgements, because the primary had restarted.
    pub(crate) short_waits: u64,
    pub(crate) served_checks: u64,
    /// Checks of primaries that served without a lease, while their replicas acknowledged.
    pub(crate) served_extended: u64,
}

impl Totals {
    pub(crate) fn add(&mut self, other: &Totals) {
        self.failovers += other.failovers;
        self.resumed += other.resumed;
        self.forced += other.forced;
        self.storms += other.storms;
        self.alarms += other.alarms;
        self.unknown += other.unknown;
        self.reasserted += other.reasserted;
        self.ttls_recorded += other.ttls_recorded;
        self.planned += other.planned;
        self.short_waits += other.short_waits;
        self.served_checks += other.served_checks;
        self.served_extended += other.served_extended;
    }
}

#[derive(Debug)]
enum Event {
    /// The node sends a renewal and sleeps until the next one.
    Renew(usize),
    RenewArrives {
        node: usize,
        registration: Rc<Registration>,
        number: Option<u64>,
        sent_ms: u64,
    },
    RenewReply {
        node: usize,
        run: NodeRun,
        sent_ms: u64,
        document: Option<Rc<Topology>>,
        renewal: Renewal,
    },
    WatchArrives {
        node: usize,
        document: Rc<Topology>,
    },
    /// A node learns that a run has registered.
    RegistrationSeen {
        node: usize,
        run: NodeRun,
        revision: u64,
    },
    /// The process of a node ends.
    End(usize),
    Restart {
        node: usize,
        keeps_data: bool,
    },
    Replicate,
    /// Primaries send messages that their replicas acknowledge.
    SendStream,
    StreamArrives(StreamMessage),
    AckArrives(StreamMessage),
    Control(usize),
    ChangeArrives {
        controller: Option<usize>,
        request: Request,
    },
    ChangeReply {
        controller: usize,
    },
    Fault,
}

/// A message of a primary to a replica, and its acknowledgement.
#[derive(Debug, Clone, Copy)]
struct StreamMessage {
    primary: usize,
    primary_run: NodeRun,
    term: (ShardId, Term),
    replica: usize,
    replica_run: NodeRun,
    /// The time of sending, on the clock of the primary.
    sent_ms: u64,
}

#[derive(Debug)]
struct SimController {
    controller: Controller,
    number: u64,
    cut_until_ms: u64,
    /// A change that has no reply yet, and the time at which its outcome counts as unknown.
    pending: Option<(ChangeId, u64)>,
    alarmed: BTreeSet<ShardId>,
}

/// One run.
pub(crate) struct World {
    seed: u64,
    loss: CoordinatorLoss,
    settings: FailoverSettings,
    /// Each process gets a TTL at random.
    has_random_ttls: bool,
    now_ms: u64,
    random: Random,
    queue: BTreeMap<(u64, u64), Event>,
    sequence: u64,
    coordinator: Coordinator,
    nodes: Vec<Node>,
    controllers: Vec<SimController>,
    /// The node that served each term of each shard.
    served: BTreeMap<(ShardId, Term), NodeId>,
    pub(crate) totals: Totals,
}

impl World {
    pub(crate) fn new(seed: u64) -> World {
        let mut random = Random::new(seed);
        let loss = match seed % 2 {
            0 => CoordinatorLoss::Safe,
            _ => CoordinatorLoss::Availability,
        };
        let settings = settings((seed / 2).is_multiple_of(3));
        let has_random_ttls = seed % 5 == 4;
        let nodes = (1..=NODES).map(|n| {
            let ttl_ms = ttl_ms(has_random_ttls, &mut random);
            let error = random.below(20_000) as i64 - 10_000;
            let mut bytes = [0; 20];
            bytes[0] = n;
            let clock = (random.below(1_000_000) as u64, error);
            Node::new(NodeId::from_bytes(bytes), clock, loss, ttl_ms)
        });
        let nodes = nodes.collect();
        let controller = || SimController {
            controller: Controller::new(settings),
            number: 0,
            cut_until_ms: 0,
            pending: None,
            alarmed: BTreeSet::new(),
        };
        let mut world = World {
            seed,
            loss,
            settings,
            has_random_ttls,
            now_ms: 0,
            random,
            queue: BTreeMap::new(),
            sequence: 0,
            coordinator: Coordinator::new(),
            nodes,
            controllers: (0..CONTROLLERS).map(|_| controller()).collect(),
            served: BTreeMap::new(),
            totals: Totals::default(),
        };
        (0..world.nodes.len()).for_each(|node| world.after(node as u64, Event::Renew(node)));
        (0..CONTROLLERS).for_each(|at| world.after(50, Event::Control(at)));
        world.after(100, Event::Replicate);
        if loss == CoordinatorLoss::Availability {
            world.after(ACK_PERIOD_MS, Event::SendStream);
        }
        world.after(5_000, Event::Fault);
        world
    }

    fn after(&mut self, delay_ms: u64, event: Event) {
        self.sequence += 1;
        self.queue.insert((self.now_ms + delay_ms, self.sequence), event);
    }

    /// The delay of a message: mostly a few milliseconds, but sometimes seconds while faults occur.
    fn delay_ms(&mut self) -> u64 {
        let is_slow = self.now_ms < FAULTS_END_MS && self.random.percent(5);
        let bound = if is_slow { 4_000 } else { 30 };
        self.random.below(bound) as u64
    }

    pub(crate) fn run(&mut self) {
        while let Some(((at_ms, _), event)) = self.queue.pop_first() {
            if at_ms > END_MS {
                break;
            }
            self.now_ms = at_ms;
            self.handle(event);
            self.check();
        }
        self.check_recovery();
        self.totals.short_waits = self.nodes.iter().map(|node| node.short_waits).sum();
    }

    /// Checks the invariants.
    fn check(&mut self) {
        let (seed, now_ms) = (self.seed, self.now_ms);
        let serving = serving(&self.nodes, now_ms);
        let serving = serving.unwrap_or_else(|two| panic!("seed {seed}, {now_ms} ms: {two}"));
        for (shard, (term, run)) in serving {
            let served = self.served.entry((shard, term)).or_insert(run.node);
            assert_eq!(*served, run.node, "seed {seed}, {now_ms} ms: two primaries in {term}");
            let has_lease = self.coordinator.has_lease(run, now_ms);
            let is_extended = self.loss == CoordinatorLoss::Availability && !has_lease;
            assert!(
                has_lease || is_extended,
                "seed {seed}, {now_ms} ms: {run} serves after its lease"
            );
            self.totals.served_checks += 1;
            self.totals.served_extended += u64::from(is_extended);
        }
    }

    /// Checks that every shard is served again after the faults, unless an operator has to decide.
    fn check_recovery(&self) {
        let serving = serving(&self.nodes, self.now_ms).unwrap_or_default();
        let document = self.coordinator.document.as_ref().unwrap();
        for shard in &document.shards {
            let is_alarmed = self.controllers.iter().any(|c| c.alarmed.contains(&shard.id));
            let is_served = serving.contains_key(&shard.id);
            assert!(is_served || is_alarmed, "seed {}: {shard:?} is not served", self.seed);
        }
    }

    fn handle(&mut self, event: Event) {
        match event {
            Event::Renew(node) => {
                self.after(self.nodes[node].ttl_ms / 3, Event::Renew(node));
                self.renew(node);
            }
            Event::RenewArrives { .. } => self.renew_arrives(event),
            Event::RenewReply { .. } => self.renew_reply(event),
            Event::WatchArrives { node, document } => self.watch_arrives(node, document),
            Event::RegistrationSeen { node, run, revision } => {
                self.registration_seen(node, run, revision);
            }
            Event::End(node) => self.nodes[node].is_up = false,
            Event::Restart { node, keeps_data } => {
                let ttl_ms = ttl_ms(self.has_random_ttls, &mut self.random);
                self.nodes[node].restart(keeps_data, self.now_ms, ttl_ms);
            }
            Event::Replicate => self.replicate(),
            Event::SendStream => self.send_stream(),
            Event::StreamArrives(message) => self.stream_arrives(message),
            Event::AckArrives(message) => self.ack_arrives(message),
            Event::Control(at) => self.control(at),
            Event::ChangeArrives { controller, request } => {
                self.change_arrives(controller, request);
            }
            Event::ChangeReply { controller } => self.controllers[controller].pending = None,
            Event::Fault => self.fault(),
        }
    }

    fn is_cut(&self, node: usize) -> bool {
        self.now_ms < self.nodes[node].cut_until_ms
    }

    fn renew(&mut self, node: usize) {
        let (it, now_ms) = (&self.nodes[node], self.now_ms);
        if it.is_running(now_ms) && !self.is_cut(node) {
            let (registration, number) = (Rc::new(it.registration()), it.lease_number);
            let sent_ms = it.local_ms(now_ms);
            let delay = self.delay_ms();
            self.after(delay, Event::RenewArrives { node, registration, number, sent_ms });
        }
    }

    fn renew_arrives(&mut self, event: Event) {
        let Event::RenewArrives { node, ref registration, number, sent_ms } = event else { return };
        if self.is_cut(node) {
            return;
        }
        let thaw_ms = self.coordinator.frozen_until_ms;
        if self.now_ms < thaw_ms {
            return self.after(thaw_ms - self.now_ms, event);
        }
        let run = registration.run();
        let renewal =
            self.coordinator.renew(Registration::clone(registration), number, self.now_ms);
        if let Renewal::Granted(_) = renewal {
            // Revisions of registrations lie between those of documents.
            let revision = self.coordinator.revision + 1;
            for node in 0..self.nodes.len() {
                let delay = self.delay_ms();
                self.after(delay, Event::RegistrationSeen { node, run, revision });
            }
        }
        if renewal != Renewal::Replaced {
            let (delay, document) = (self.delay_ms(), self.coordinator.document.clone());
            self.after(delay, Event::RenewReply { node, run, sent_ms, document, renewal });
        }
    }

    fn renew_reply(&mut self, event: Event) {
        let Event::RenewReply { node, run, sent_ms, ref document, renewal } = event else { return };
        let now_ms = self.now_ms;
        let (is_cut, this_node) = (self.is_cut(node), &mut self.nodes[node]);
        if is_cut || !this_node.is_up || this_node.run != run {
            return;
        }
        if now_ms < this_node.paused_until_ms {
            let delay = this_node.paused_until_ms - now_ms;
            return self.after(delay, event);
        }
        match renewal {
            Renewal::Lost => {
                this_node.lease_number = None;
                return self.renew(node);
            }
            Renewal::Granted(number) => {
                this_node.lease_number = Some(number);
                // A reassertion with an earlier lease confirms nothing: a promotion may have been decided in between.
                (this_node.must_reassert, this_node.reassertion) = (true, None);
            }
            Renewal::Renewed | Renewal::Replaced => {}
        }
        this_node.install(document.as_ref(), now_ms);
        this_node.renewed(sent_ms);
        // A renewal need not bring a later document: the change of a planned switch may be lost or still under way.
        if this_node.must_reassert || this_node.handing_over.is_some() {
            self.reassert(node);
        } else if this_node.has_other_ttl() {
            self.record_ttl(node);
        }
    }

    /// A node whose TTL differs from the document's changes the document. If another change comes first, the node tries
    /// again at its next renewal.
    fn record_ttl(&mut self, node: usize) {
        let it = &self.nodes[node];
        let Some(document) = &it.installed else { return };
        let change = ChangeId { writer: it.run, number: self.now_ms };
        let expected = document.epoch.0;
        let next = record_ttl(document, change, it.run.node, it.ttl_ms / 1000);
        let Ok(Some(document)) = next else { return };
        let request = Request { expected, document: Rc::new(document) };
        self.totals.ttls_recorded += 1;
        let delay = self.delay_ms();
        self.after(delay, Event::ChangeArrives { controller: None, request });
    }

    /// A primary that lost its lease, or does not know the outcome of a planned switch, confirms that it is still the
    /// primary. A document that it has not seen yet makes the change fail; the next renewal brings this document, and
    /// the node tries again.
    fn reassert(&mut self, node: usize) {
        let it = &mut self.nodes[node];
        let Some(document) = &it.installed else { return };
        let change = ChangeId { writer: it.run, number: self.now_ms };
        // Every change raises the revision and the epoch by one.
        let expected = document.epoch.0;
        let Ok(Some(document)) = reassert(document, change, it.run, it.ttl_ms / 1000) else {
            return;
        };
        it.reassertion = Some(change);
        let request = Request { expected, document: Rc::new(document) };
        self.totals.reasserted += 1;
        let delay = self.delay_ms();
        self.after(delay, Event::ChangeArrives { controller: None, request });
    }

    fn watch_arrives(&mut self, node: usize, document: Rc<Topology>) {
        let now_ms = self.now_ms;
        let (is_cut, it) = (self.is_cut(node), &mut self.nodes[node]);
        if is_cut || !it.is_up {
            return;
        }
        if now_ms < it.paused_until_ms {
            let delay = it.paused_until_ms - now_ms;
            return self.after(delay, Event::WatchArrives { node, document });
        }
        it.install(Some(&document), now_ms);
    }

    fn registration_seen(&mut self, node: usize, run: NodeRun, revision: u64) {
        let now_ms = self.now_ms;
        let (is_cut, this_node) = (self.is_cut(node), &mut self.nodes[node]);
        if now_ms < this_node.paused_until_ms {
            let delay = this_node.paused_until_ms - now_ms;
            return self.after(delay, Event::RegistrationSeen { node, run, revision });
        }
        if !is_cut && this_node.is_up {
            this_node.note_registration(run, revision);
        }
    }

    /// Primaries write, and their replicas follow.
    fn replicate(&mut self) {
        self.after(100, Event::Replicate);
        let now_ms = self.now_ms;
        for primary in 0..self.nodes.len() {
            let Some((shard, _)) = self.nodes[primary].serves(now_ms) else { continue };
            self.nodes[primary].offset += self.random.below(100) as u64;
            self.nodes[primary].dataset = Dataset::Disk;
            let (offset, own) = (self.nodes[primary].offset, self.nodes[primary].map.own_shard());
            let is_linked = |node: &Node| now_ms >= node.unlinked_until_ms;
            if !is_linked(&self.nodes[primary]) {
                continue;
            }
            for replica in &mut self.nodes {
                let is_replica = replica.map.role() == MapRole::Replica;
                let follows =
                    own.is_some_and(|own| own.0 == shard) && replica.map.own_shard() == own;
                if is_replica && follows && replica.is_running(now_ms) && is_linked(replica) {
                    let copy_ms = self.random.below(500) as u64;
                    replica.follow(offset, now_ms, copy_ms);
                }
            }
        }
    }

    fn is_linked(&self, one: usize, other: usize) -> bool {
        [one, other].iter().all(|node| self.now_ms >= self.nodes[*node].unlinked_until_ms)
    }

    /// Each primary sends its stream to the nodes that follow it according to their own documents.
    fn send_stream(&mut self) {
        self.after(ACK_PERIOD_MS, Event::SendStream);
        let now_ms = self.now_ms;
        for primary in 0..self.nodes.len() {
            let primary_node = &self.nodes[primary];
            let Some(term) =
                primary_node.primary_term().filter(|_| primary_node.is_running(now_ms))
            else {
                continue;
            };
            let (primary_run, sent_ms) = (primary_node.run, primary_node.local_ms(now_ms));
            for replica in 0..self.nodes.len() {
                if self.nodes[replica].follows(primary_run.node) && self.is_linked(primary, replica)
                {
                    let replica_run = self.nodes[replica].run;
                    let message =
                        StreamMessage { primary, primary_run, term, replica, replica_run, sent_ms };
                    let delay = self.delay_ms();
                    self.after(delay, Event::StreamArrives(message));
                }
            }
        }
    }

    /// A replica acknowledges. The acknowledgement may be lost, or arrive seconds later.
    fn stream_arrives(&mut self, message: StreamMessage) {
        let now_ms = self.now_ms;
        let replica_node = &mut self.nodes[message.replica];
        if !replica_node.is_up || replica_node.run != message.replica_run {
            return;
        }
        if now_ms < replica_node.paused_until_ms {
            let delay = replica_node.paused_until_ms - now_ms;
            return self.after(delay, Event::StreamArrives(message));
        }
        if !replica_node.follows(message.primary_run.node) {
            return;
        }
        replica_node.acknowledge(now_ms);
        if now_ms >= replica_node.mute_until_ms && self.is_linked(message.primary, message.replica)
        {
            let delay = self.delay_ms();
            self.after(delay, Event::AckArrives(message));
        }
    }

    fn ack_arrives(&mut self, message: StreamMessage) {
        let it = &mut self.nodes[message.primary];
        if !it.is_up || it.run != message.primary_run || it.primary_term() != Some(message.term) {
            return;
        }
        if self.now_ms < it.paused_until_ms {
            let delay = it.paused_until_ms - self.now_ms;
            return self.after(delay, Event::AckArrives(message));
        }
        it.note_ack(message.replica_run.node, message.sent_ms);
    }

    fn control(&mut self, at: usize) {
        let next = 50 + self.random.below(150) as u64;
        self.after(next, Event::Control(at));
        let now_ms = self.now_ms;
        let is_cut = now_ms < self.controllers[at].cut_until_ms;
        if is_cut || now_ms < self.coordinator.frozen_until_ms {
            return;
        }
        if let Some((change, unknown_from_ms)) = self.controllers[at].pending {
            if now_ms < unknown_from_ms {
                return;
            }
            // The outcome is unknown. In any case, the next decision begins with the document in force.
            let current = self.coordinator.document.as_ref().map(|document| document.change);
            assert!(current != Some(change) || self.coordinator.has_applied(change));
            self.controllers[at].pending = None;
            self.totals.unknown += 1;
        }
        self.coordinator.expire(now_ms);
        self.decide(at);
    }

    fn decide(&mut self, at: usize) {
        let now_ms = self.now_ms;
        let (mut statuses, mut pongs) = (BTreeMap::new(), BTreeMap::new());
        for node in &self.nodes {
            if node.is_running(now_ms) && self.random.percent(80) {
                let received = ReceivedStatus { status: node.status(now_ms), received_ms: now_ms };
                statuses.insert(node.run.node, received);
                pongs.insert(node.run.node, now_ms);
            }
        }
        let topology = self.coordinator.document.clone();
        let situation = Situation {
            topology: topology.as_deref(),
            registered: &self.coordinator.registered,
            statuses: &statuses,
            pongs: &pongs,
            now_ms,
        };
        let this_controller = &mut self.controllers[at];
        this_controller.number += 1;
        let change = change_of(at, this_controller.number);
        for decision in this_controller.controller.decide(&situation) {
            self.totals.storms += u64::from(matches!(decision, Decision::AwaitStorm { .. }));
            if let Decision::NoCandidate { shard, .. } = decision {
                this_controller.alarmed.insert(shard);
                self.totals.alarms += 1;
            }
            let Some(document) = decision.apply(&situation, "brisk", change).unwrap() else {
                continue;
            };
            this_controller.pending = Some((change, now_ms + 1_000));
            let (expected, document) = (self.coordinator.revision, Rc::new(document));
            let request = Request { expected, document };
            let delay = self.delay_ms();
            return self.after(delay, Event::ChangeArrives { controller: Some(at), request });
        }
    }

    /// A change arrives, perhaps after its writer gave up waiting. The change or its reply may also be lost.
    fn change_arrives(&mut self, controller: Option<usize>, request: Request) {
        let thaw_ms = self.coordinator.frozen_until_ms;
        if self.now_ms < thaw_ms {
            let event = Event::ChangeArrives { controller, request };
            return self.after(thaw_ms - self.now_ms, event);
        }
        if self.random.percent(10) {
            return;
        }
        if self.coordinator.change(&request, self.now_ms) {
            for shard in &request.document.shards {
                let is_new = !self.served.contains_key(&(shard.id, shard.term));
                self.totals.failovers += u64::from(is_new && shard.cause == TermCause::Failover);
                self.totals.resumed += u64::from(is_new && shard.cause == TermCause::Resumed);
                self.totals.forced += u64::from(is_new && shard.cause == TermCause::Forced);
            }
            for node in 0..self.nodes.len() {
                let (delay, document) = (self.delay_ms(), Rc::clone(&request.document));
                self.after(delay, Event::WatchArrives { node, document });
            }
        }
        if let Some(controller) = controller.filter(|_| self.random.percent(80)) {
            let delay = self.delay_ms();
            self.after(delay, Event::ChangeReply { controller });
        }
    }

    /// Cuts a node off from the coordinator. Soon afterwards, another member of its shard ends and restarts.
    fn cut_and_restart(&mut self, node: usize, until_ms: u64) {
        self.nodes[node].cut_until_ms = until_ms + TTL_MS;
        let shard = self.nodes[node].map.own_shard().map(|(shard, _)| shard);
        let is_other = |at: &usize| {
            let other = &self.nodes[*at];
            let own = other.map.own_shard().map(|(shard, _)| shard);
            *at != node && other.is_up && own.is_some() && own == shard
        };
        let Some(other) = (0..self.nodes.len()).find(is_other) else { return };
        let end_ms = self.random.below(TTL_MS as usize) as u64;
        let restart_ms = end_ms + 100 + self.random.below(1_000) as u64;
        self.after(end_ms, Event::End(other));
        self.after(restart_ms, Event::Restart { node: other, keeps_data: true });
    }

    fn fault(&mut self) {
        if self.now_ms >= FAULTS_END_MS {
            return;
        }
        let next = 300 + self.random.below(3_000) as u64;
        self.after(next, Event::Fault);
        let (now_ms, node) = (self.now_ms, self.random.below(self.nodes.len()));
        let bound = if self.random.percent(50) { 2 * TTL_MS } else { 3 * TTL_MS };
        let until_ms = now_ms + 100 + self.random.below(bound as usize) as u64;
        match self.random.below(14) {
            0 | 1 if self.nodes[node].is_up => {
                self.nodes[node].is_up = false;
                let keeps_data = self.random.percent(80);
                self.after(until_ms - now_ms, Event::Restart { node, keeps_data });
            }
            2 => self.nodes[node].paused_until_ms = until_ms,
            3 | 9 | 11 => self.nodes[node].cut_until_ms = until_ms,
            4 => self.nodes[node].unlinked_until_ms = until_ms,
            5 if self.random.percent(40) => self.coordinator.freeze(until_ms),
            6 => self.force(),
            7 => self.controllers[node % CONTROLLERS].cut_until_ms = until_ms,
            8 => {
                let this_controller = &mut self.controllers[node % CONTROLLERS];
                (this_controller.controller, this_controller.pending) =
                    (Controller::new(self.settings), None);
            }
            10 => self.hand_over(node),
            12 => self.nodes[node].mute_until_ms = until_ms,
            13 => self.cut_and_restart(node, until_ms),
            _ => {}
        }
    }

    /// A serving primary stops serving, and proposes its replica as the new primary.
    fn hand_over(&mut self, node: usize) {
        if self.nodes[node].serves(self.now_ms).is_none() {
            return;
        }
        let Some(document) = self.nodes[node].installed.clone() else { return };
        let Some(shard) = document.shard_of(self.nodes[node].run.node) else { return };
        let replica = |it: &&Node| shard.replicas.contains(&it.run.node);
        let Some(replica) = self.nodes.iter().find(replica) else { return };
        let promotion = Promotion {
            shard: shard.id,
            expected_term: shard.term,
            to: replica.run,
            cause: TermCause::Planned,
            why: "planned switch".to_owned(),
        };
        let change = ChangeId { writer: self.nodes[node].run, number: self.now_ms };
        let next = promote(&document, change, &promotion).unwrap().unwrap();
        self.nodes[node].handing_over = Some(document.epoch);
        let (expected, document) = (document.epoch.0, Rc::new(next));
        let request = Request { expected, document };
        self.totals.planned += 1;
        let delay = self.delay_ms();
        self.after(delay, Event::ChangeArrives { controller: None, request });
    }

    /// An operator forces a promotion, whether the primary is alive or not.
    fn force(&mut self) {
        let Some(document) = &self.coordinator.document else { return };
        let shard = self.random.pick(&document.shards);
        let Some(replica) = shard.replicas.first() else { return };
        let Some(node) = self.nodes.iter().find(|node| node.run.node == *replica) else { return };
        let promotion = Promotion {
            shard: shard.id,
            expected_term: shard.term,
            to: node.run,
            cause: TermCause::Forced,
            why: "CLUSTER FAILOVER FORCE".to_owned(),
        };
        let change = change_of(CONTROLLERS, self.now_ms);
        let document = Rc::new(promote(document, change, &promotion).unwrap().unwrap());
        let request = Request { expected: self.coordinator.revision, document };
        let delay = self.delay_ms();
        self.after(delay, Event::ChangeArrives { controller: None, request });
    }
}

/// The TTL of a new process.
fn ttl_ms(has_random_ttls: bool, random: &mut Random) -> u64 {
    if has_random_ttls { *random.pick(&TTLS_MS) } else { TTL_MS }
}

fn change_of(writer: usize, number: u64) -> ChangeId {
    let node = NodeId::from_bytes([0xc0 + writer as u8; 20]);
    ChangeId { writer: NodeRun { node, incarnation: Incarnation(1) }, number }
}
