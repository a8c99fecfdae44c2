//! One thread of a run: its connections, and the loop that drives them.
//!
//! ```text
//!  open connections ─ (all open: Ready, wait for go) ─┐
//!        ┌─────────────────────────────────────────────┘
//!        └─ assign due requests ─ write and send ─ wait ─ receive, count, record ─┐
//!               └───────────────────────────────────────────────────────────────┘
//! ```
//!
//! System calls are most of the cost of a request. A batch takes only two of them, one send and one receive, and a
//! share of one wait. For this, sockets are registered once, edge-triggered, for both reading and writing. All ready
//! connections are read before anything is sent, so that the server finds several requests when it wakes up.

use super::lane::Lane;
use super::plan::{Pace, Plan, Target};
use super::schedule::Schedule;
use super::shared::{Line, Message, NEVER, Reports, Shared};
use super::socket::Connector;
use super::turns::Turns;
use crate::clock::{now_ns, thread_cpu_ns, thread_delay_ns, timespec};
use crate::error::RunError;
use crate::load::batch::RequestSource;
use crate::load::tag::Tag;
use crate::outcome::{Errors, new_histogram};
use hdrhistogram::Histogram;
use rustix::event::epoll::{self, CreateFlags, EventData, EventFlags};
use rustix::io::Errno;
use std::collections::VecDeque;
use std::io;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::atomic::Ordering::{Acquire, Relaxed};

/// The maximum number of events per wait. More would only delay handling the first of them.
const EVENTS_MAX: usize = 256;
/// The size of the receive buffer, in which the replies of most batches fit.
const RECEIVE_BYTES: usize = 64 * 1024;
/// Maximum number of connections being opened at a time. A listen queue holds a few hundred.
const OPENING_MAX: usize = 128;
/// How long the last replies may take.
const DRAIN_NS_MAX: u64 = 60_000_000_000;
/// The longest time that a worker waits before it looks at the clock.
const WAIT_NS_MAX: u64 = 1_000_000_000;
const WAKER: u64 = u64::MAX;

/// The measurements of one worker.
#[derive(Debug)]
pub(crate) struct Share {
    /// For each node, its index in the cluster and its latencies. Without a cluster, there is one entry.
    pub(crate) latency: Vec<(usize, Histogram<u64>)>,
    /// How late requests of an open loop were sent because of the generator itself.
    pub(crate) lateness: Histogram<u64>,
    pub(crate) operations: u64,
    pub(crate) errors: Errors,
    pub(crate) mismatches: u64,
    pub(crate) first_mismatch: Option<String>,
    /// Number of requests that a cluster node redirected.
    pub(crate) redirections: u64,
    /// When the last measured reply arrived.
    pub(crate) last_ns: u64,
    /// CPU time during the measurement, and the time spent waiting for a CPU.
    pub(crate) cpu_ns: u64,
    pub(crate) delay_ns: u64,
}

/// A node to which a worker has connections. Without a cluster, there is one.
pub(super) struct Site<'a> {
    /// Its index in the cluster.
    pub(super) node: usize,
    pub(super) target: &'a Target,
    pub(super) connector: Connector,
}

pub(super) struct Worker<'a> {
    pub(super) plan: &'a Plan,
    pub(super) shared: &'a Shared,
    pub(super) line: &'a Line,
    pub(super) index: usize,
    pub(super) epoll: OwnedFd,
    pub(super) lanes: Vec<Lane>,
    /// The nodes of its lanes.
    pub(super) sites: Vec<Site<'a>>,
    pub(super) prelude: (Vec<u8>, usize),
    pub(super) source: RequestSource,
    pub(super) buffer: Vec<u8>,
    pub(super) plain: Vec<u8>,
    pub(super) error_texts: Vec<Vec<u8>>,
    /// Lanes whose requests are to be written and sent.
    pub(super) to_load: Vec<u32>,
    pub(super) opened: usize,
    pub(super) greeted: usize,
    /// Number of lanes that wait for replies.
    pub(super) waiting: usize,
    pub(super) going: bool,
    pub(super) measure_ns: u64,
    pub(super) end_ns: u64,
    /// The time at which the worker found that there is nothing more to send.
    pub(super) exhausted_ns: Option<u64>,
    pub(super) schedule: Option<Schedule>,
    /// Lanes that can take requests of an open loop.
    pub(super) free: VecDeque<u32>,
    pub(super) starved: bool,
    pub(super) starved_until_ns: u64,
    /// The turns of lanes that use a connection per request.
    pub(super) turns: Turns,
    pub(super) latency_sum_ns: u64,
    pub(super) share: Share,
}

impl<'a> Worker<'a> {
    pub(super) fn new(
        plan: &'a Plan,
        shared: &'a Shared,
        index: usize,
    ) -> Result<Worker<'a>, RunError> {
        let epoll = epoll::create(CreateFlags::CLOEXEC).map_err(RunError::machine("epoll"))?;
        let line = &shared.lines[index];
        let events = EventFlags::IN | EventFlags::ET;
        epoll::add(&epoll, &line.waker, EventData::new_u64(WAKER), events)
            .map_err(RunError::machine("epoll"))?;
        let (sites, lanes) = sites_and_lanes(plan, shared, index);
        let latency = |site: &Site<'_>| Ok((site.node, new_histogram(plan.precision)?));
        let latency = sites.iter().map(latency).collect::<Result<_, RunError>>()?;
        let turns = Turns::new(lanes.len(), plan.clients, plan.threads);
        let workload = Arc::clone(&plan.workload);
        Ok(Worker {
            plan,
            shared,
            line,
            index,
            epoll,
            lanes,
            sites,
            prelude: plan.target.session.prelude(),
            source: RequestSource::new(workload, plan.seed, index, plan.threads, plan.verify),
            buffer: vec![0; RECEIVE_BYTES],
            plain: Vec::new(),
            error_texts: Vec::new(),
            to_load: Vec::new(),
            opened: 0,
            greeted: 0,
            waiting: 0,
            going: false,
            measure_ns: NEVER,
            end_ns: NEVER,
            exhausted_ns: None,
            schedule: None,
            free: VecDeque::new(),
            starved: false,
            starved_until_ns: 0,
            turns,
            latency_sum_ns: 0,
            share: Share {
                latency,
                lateness: new_histogram(plan.precision)?,
                operations: 0,
                errors: Errors::default(),
                mismatches: 0,
                first_mismatch: None,
                redirections: 0,
                last_ns: 0,
                cpu_ns: 0,
                delay_ns: 0,
            },
        })
    }

    /// Drives the connections until the run is over.
    pub(super) fn run(mut self, reports: &Reports) -> Result<Box<Share>, RunError> {
        let mut events = Vec::with_capacity(EVENTS_MAX);
        let (mut ready, mut since) = (false, None);
        loop {
            if self.shared.abort.load(Relaxed) {
                break;
            }
            self.open()?;
            if !ready && self.greeted == self.lanes.len() {
                ready = true;
                // The receiver is gone only if the run is being aborted.
                let _ = reports.send(Message::Ready);
            }
            let now = now_ns();
            self.look_at_phases(now);
            if since.is_none() && now >= self.measure_ns {
                since = Some((thread_cpu_ns(), thread_delay_ns()));
            }
            self.assign(now);
            self.send_loaded(now)?;
            self.publish();
            if self.is_over(now)? {
                break;
            }
            let timeout = timespec(self.timeout_ns(now));
            events.clear();
            let wait = epoll::wait(
                &self.epoll,
                rustix::buffer::spare_capacity(&mut events),
                Some(&timeout),
            );
            match wait {
                Ok(_) | Err(Errno::INTR) => {}
                Err(error) => return Err(RunError::machine("epoll_wait")(error)),
            }
            for event in &events {
                let (data, flags) = (event.data, event.flags);
                if data.u64() != WAKER {
                    #[expect(clippy::cast_possible_truncation, reason = "made from an index")]
                    let i = data.u64() as usize;
                    self.ready(i, flags).map_err(|error| self.at_node(i, error))?;
                }
            }
        }
        if let Some((cpu_ns, delay_ns)) = since {
            self.share.cpu_ns = thread_cpu_ns() - cpu_ns;
            self.share.delay_ns = thread_delay_ns() - delay_ns;
        }
        Ok(Box::new(self.share))
    }

    /// Reports whether each request has a separate connection.
    fn reconnects(&self) -> bool {
        !self.plan.keep_alive && self.plan.pace != Pace::Idle
    }

    fn look_at_phases(&mut self, now: u64) {
        if self.going || self.shared.go_ns.load(Acquire) == NEVER {
            return;
        }
        self.going = true;
        self.measure_ns = self.shared.measure_ns.load(Relaxed);
        self.end_ns = self.shared.end_ns.load(Relaxed);
        let all = 0..u32::try_from(self.lanes.len()).unwrap_or(u32::MAX);
        match self.plan.pace {
            Pace::Closed if self.reconnects() => {}
            Pace::Closed => self.to_load.extend(all),
            Pace::Open { rate, arrivals } => {
                let place = (self.index, self.plan.threads);
                let start = self.shared.go_ns.load(Relaxed).max(now);
                self.schedule = Some(Schedule::new(rate, arrivals, start, place, self.plan.seed));
                self.free.extend(all);
                self.lanes.iter_mut().for_each(|lane| lane.offered = true);
            }
            Pace::Idle => {}
        }
    }

    /// Starts connecting, unless too many connections are already being opened.
    fn open(&mut self) -> Result<(), RunError> {
        while self.opened < self.lanes.len() && self.opened - self.greeted < OPENING_MAX {
            let i = self.opened;
            self.opened += 1;
            if self.reconnects() {
                // `begin` connects, and sends a request that is not measured.
                self.begin(i, 0)?;
            } else {
                self.connect(i)?;
                self.flush(i)?;
            }
        }
        Ok(())
    }

    fn connect(&mut self, i: usize) -> Result<(), RunError> {
        let site = &mut self.sites[self.lanes[i].site];
        let target = site.target;
        let socket = site.connector.connect()?;
        self.turns.connects(i);
        let events = EventFlags::IN | EventFlags::OUT | EventFlags::RDHUP | EventFlags::ET;
        epoll::add(&self.epoll, &socket, EventData::new_u64(i as u64), events)
            .map_err(RunError::machine("epoll"))?;
        let session = match &target.tls {
            Some(tls) => Some(tls.session(&target.address).map_err(RunError::Tls)?),
            None => None,
        };
        let prelude = (self.prelude.0.as_slice(), self.prelude.1);
        let lane = &mut self.lanes[i];
        lane.connected(socket, session, prelude).map_err(RunError::Socket)
    }

    /// Assigns due requests of an open loop to connections that can take them.
    fn assign(&mut self, now: u64) {
        let Some(schedule) = &mut self.schedule else { return };
        if self.exhausted_ns.is_some() {
            return;
        }
        if self.starved && !self.free.is_empty() {
            self.starved = false;
            self.starved_until_ns = now;
        }
        while schedule.due() <= now {
            let due = schedule.due();
            if due >= self.end_ns {
                self.exhausted_ns = Some(now);
                return;
            }
            let Some(&i) = self.free.front() else {
                self.starved = true;
                return;
            };
            let counts = due >= self.measure_ns;
            if counts && !self.shared.take(1) {
                self.exhausted_ns = Some(now);
                return;
            }
            if counts && due >= self.starved_until_ns {
                self.share.lateness.saturating_record(now - due);
            }
            schedule.advance();
            let lane = &mut self.lanes[i as usize];
            lane.due_ns.push_back(due);
            self.free.pop_front();
            if lane.due_ns.len() < self.plan.pipeline {
                self.free.push_back(i);
            } else {
                lane.offered = false;
            }
            if !lane.listed {
                lane.listed = true;
                self.to_load.push(i);
            }
        }
    }

    /// Writes requests to the listed lanes and sends them.
    fn send_loaded(&mut self, now: u64) -> Result<(), RunError> {
        let mut lanes = std::mem::take(&mut self.to_load);
        for &i in &lanes {
            let i = i as usize;
            self.lanes[i].listed = false;
            if self.schedule.is_some() {
                self.send_due(i)?;
            } else if self.reconnects() {
                self.end_turn(i)?;
            } else {
                self.begin(i, now)?;
            }
        }
        lanes.clear();
        // Sending has not added lanes to the list, so its allocation can be reused.
        self.to_load = lanes;
        if self.reconnects() && self.going {
            self.give_turns(now)?;
        }
        Ok(())
    }

    /// Handles a lane whose turn is over: it waits for its next turn without a connection, or connects ahead.
    fn end_turn(&mut self, i: usize) -> Result<(), RunError> {
        if self.exhausted_ns.is_some() {
            return Ok(());
        }
        if self.turns.connect_ahead() {
            self.lanes[i].held = true;
            self.connect(i)?;
            // The prelude is sent now. The lane waits for its turn once the socket is connected.
            return self.flush(i);
        }
        #[expect(clippy::cast_possible_truncation, reason = "at most CLIENTS_MAX")]
        self.turns.wait(i as u32);
        Ok(())
    }

    fn give_turns(&mut self, now: u64) -> Result<(), RunError> {
        while self.exhausted_ns.is_none()
            && let Some(i) = self.turns.next(self.waiting)
        {
            self.begin(i as usize, now)?;
        }
        Ok(())
    }

    /// Sends the next batch of a closed loop, unless the run is over.
    #[inline]
    fn begin(&mut self, i: usize, now: u64) -> Result<(), RunError> {
        let count = self.plan.pipeline;
        let counts = now >= self.measure_ns;
        if self.exhausted_ns.is_some() {
            return Ok(());
        }
        if now >= self.end_ns || (counts && !self.shared.take(count)) {
            self.exhausted_ns = Some(now);
            return Ok(());
        }
        let mut started = None;
        if self.lanes[i].socket.is_none() {
            // If a client connects for one request, the latency includes connecting.
            started = Some(now_ns());
            self.connect(i)?;
        }
        let lane = &mut self.lanes[i];
        let tag = tag(self.plan, &self.sites[lane.site]);
        let len = self.source.fill(&mut lane.batch, count, tag);
        lane.started_ns = started.unwrap_or_else(now_ns);
        lane.counts = counts;
        lane.load(len, count).map_err(RunError::Socket)?;
        self.waiting += 1;
        self.flush(i)
    }

    /// Sends the requests of an open loop that were assigned to this lane.
    fn send_due(&mut self, i: usize) -> Result<(), RunError> {
        let lane = &mut self.lanes[i];
        if !lane.is_empty() {
            // The rest of the last batch must be sent first. The lane is listed again afterwards.
            return Ok(());
        }
        let count = lane.due_ns.len() - lane.pending;
        if count == 0 {
            return Ok(());
        }
        self.waiting += usize::from(lane.pending == 0);
        let tag = tag(self.plan, &self.sites[lane.site]);
        let len = self.source.fill(&mut lane.batch, count, tag);
        lane.load(len, count).map_err(RunError::Socket)?;
        self.flush(i)
    }

    #[inline]
    pub(super) fn flush(&mut self, i: usize) -> Result<(), RunError> {
        let lane = &mut self.lanes[i];
        let connector = &self.sites[lane.site].connector;
        lane.flush(&self.prelude.0).map_err(|error| failed(connector, lane, error))
    }

    /// Adds the cluster node on which the error happened.
    #[cold]
    pub(super) fn at_node(&self, i: usize, error: RunError) -> RunError {
        if self.plan.cluster.is_none() || !error.is_of_a_connection() {
            return error;
        }
        let address = self.sites[self.lanes[i].site].target.address.clone();
        RunError::AtNode { address, source: Box::new(error) }
    }

    /// Handles an event on a connection.
    #[inline]
    fn ready(&mut self, i: usize, flags: EventFlags) -> Result<(), RunError> {
        if flags.intersects(EventFlags::OUT) {
            if !self.lanes[i].is_empty() {
                self.flush(i)?;
                self.list_if_due(i);
            }
            if std::mem::take(&mut self.lanes[i].held) {
                #[expect(clippy::cast_possible_truncation, reason = "at most CLIENTS_MAX")]
                self.turns.wait(i as u32);
            }
        }
        let ended = flags.intersects(EventFlags::ERR | EventFlags::HUP | EventFlags::RDHUP);
        if ended || flags.intersects(EventFlags::IN) {
            self.receive(i, ended)?;
        }
        if !self.lanes[i].greeted {
            self.greet(i)?;
        }
        Ok(())
    }

    /// Counts a connection that has become usable.
    fn greet(&mut self, i: usize) -> Result<(), RunError> {
        if self.lanes[i].tls.is_some() {
            self.flush(i)?;
        }
        let first_reply_is_out = self.reconnects();
        let lane = &mut self.lanes[i];
        let handshaking = lane.tls.as_ref().is_some_and(|session| session.is_handshaking());
        if handshaking || lane.prelude_pending > 0 || (first_reply_is_out && lane.pending > 0) {
            return Ok(());
        }
        lane.greeted = true;
        self.greeted += 1;
        self.line.tally.connected.store(self.greeted as u64, Relaxed);
        Ok(())
    }

    /// In an open loop, lists a lane that has requests to send, and offers a lane that can take more.
    pub(super) fn list_if_due(&mut self, i: usize) {
        if self.schedule.is_none() {
            return;
        }
        let lane = &mut self.lanes[i];
        #[expect(clippy::cast_possible_truncation, reason = "at most CLIENTS_MAX")]
        let name = i as u32;
        if !lane.offered && lane.is_empty() && lane.due_ns.len() < self.plan.pipeline {
            lane.offered = true;
            self.free.push_back(name);
        }
        if !lane.listed && lane.is_empty() && lane.due_ns.len() > lane.pending {
            lane.listed = true;
            self.to_load.push(name);
        }
    }

    fn publish(&self) {
        let tally = &self.line.tally;
        tally.operations.store(self.share.operations, Relaxed);
        tally.latency_us.store(self.latency_sum_ns / 1000, Relaxed);
        tally.waiting.store(self.waiting as u64, Relaxed);
    }

    /// Reports whether everything is sent and all replies have arrived.
    fn is_over(&mut self, now: u64) -> Result<bool, RunError> {
        let Some(since) = self.exhausted_ns else { return Ok(false) };
        if self.waiting == 0 {
            return Ok(true);
        }
        if now.saturating_sub(since) < DRAIN_NS_MAX {
            return Ok(false);
        }
        let missing = self.lanes.iter().map(|lane| lane.pending as u64).sum();
        Err(RunError::Unanswered { missing, seconds: DRAIN_NS_MAX / 1_000_000_000 })
    }

    /// The maximum time to wait for events.
    fn timeout_ns(&self, now: u64) -> u64 {
        let due = match &self.schedule {
            // Without a free lane, nothing can be sent before a reply arrives.
            Some(schedule) if self.exhausted_ns.is_none() && !self.free.is_empty() => {
                schedule.due().saturating_sub(now)
            }
            _ => WAIT_NS_MAX,
        };
        due.min(WAIT_NS_MAX)
    }
}

/// The nodes of a worker, and its lanes. Each worker has a contiguous share of the clients, and so has each node, so a
/// worker's lanes use few nodes.
fn sites_and_lanes<'a>(
    plan: &'a Plan,
    shared: &Shared,
    index: usize,
) -> (Vec<Site<'a>>, Vec<Lane>) {
    // The first threads take the remaining clients.
    let (each, more) = (plan.clients / plan.threads, plan.clients % plan.threads);
    let first = index * each + index.min(more);
    let count = each + usize::from(index < more);
    let (mut sites, mut lanes) = (Vec::<Site<'_>>::new(), Vec::new());
    for client in first..first + count {
        let (node, target) = match &plan.cluster {
            Some(cluster) => {
                let node = cluster.node_of(client, plan.clients);
                (node, &cluster.nodes()[node].target)
            }
            None => (0, &plan.target),
        };
        if sites.last().is_none_or(|site| site.node != node) {
            let connector = Connector::new(&target.address, index, shared.spread, plan.seed);
            sites.push(Site { node, target, connector });
        }
        lanes.push(Lane::new(sites.len() - 1, plan.verify));
    }
    (sites, lanes)
}

/// The hash tag of requests to a node.
#[inline]
fn tag(plan: &Plan, site: &Site<'_>) -> Tag {
    match &plan.cluster {
        Some(cluster) => cluster.nodes()[site.node].tag(),
        None => Tag::default(),
    }
}

/// The error of a socket. It is a connection error if the lane has never received anything.
pub(super) fn failed(connector: &Connector, lane: &Lane, error: io::Error) -> RunError {
    if lane.greeted { RunError::Socket(error) } else { connector.failed(error) }
}
