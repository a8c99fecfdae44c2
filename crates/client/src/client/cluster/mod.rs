//! A cluster: the node of each command, and redirections.
//!
//! | part | what it is |
//! |---|---|
//! | [`source`] | the source of the map: a cluster, Sentinel, or a primary and its replicas |
//! | [`topology`] | parses a node's description of the cluster |
//! | [`map`] | the nodes of the slots, and the lanes to them |
//! | [`read_from`] | the choice between a primary and its replicas for reads |
//! | [`redirect`] | replies that redirect a command to another node |
//! | [`split`] | commands with keys in several slots |
//! | [`spread`] | requests that go to several nodes in parallel |
//! | [`refresh`] | the task that keeps the map up to date |
//!
//! The lanes of a node are created when the node is first needed, and they connect in the background, so a command
//! waits only for nodes that it needs. If a node leaves the cluster or changes its role, requests that are waiting for
//! it are sent to the node that the new map names.

pub(crate) mod map;
pub(crate) mod read_from;
pub(crate) mod redirect;
pub(crate) mod refresh;
pub(crate) mod source;
pub(crate) mod split;
pub(crate) mod spread;
pub(crate) mod topology;

use super::builder::ClientOptions;
use super::node::check_allowed;
use crate::address::Address;
use crate::command::{Grouping, SendPlan};
use crate::error::{Code, Error, Kind, Phase, Result};
use crate::lane::cell::{Submitted, closed, timeout};
use crate::lane::connect::{Setup, open};
use crate::lane::driver::Watch;
use crate::lane::pending_reply::PendingReply;
use crate::observe::Counts;
use crate::poison::{read, write};
use crate::reply::Reply;
use crate::request::{Request, Traits};
use map::{Map, Member};
use read_from::ReadFrom;
use redirect::{RedirectState, Retry};
use refresh::{Discovered, Discovery, NodeWatch, Signal};
use source::Source;
use split::{SlotRouting, cross_slot_error, slot_routing};
use spread::Spread;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, RwLock};
use std::task::Waker;
use std::time::{Duration, Instant};
use tokio::runtime::Handle;
use tokio::time::{Sleep, sleep};
use topology::{AddressMap, Topology};

/// The maximum number of nodes of a cluster. The specification recommends up to 1,000.
pub(crate) const NODES_MAX: usize = 1024;
/// The lanes to a node that has left the cluster are closed when all replies have arrived, but after this time at the
/// latest.
const DRAIN_MAX: Duration = Duration::from_secs(10);
const DRAIN_INTERVAL: Duration = Duration::from_millis(20);

/// The requested options of a cluster.
#[derive(Clone, Debug)]
pub(crate) struct ClusterOptions {
    pub(crate) source: Source,
    pub(crate) seeds: Vec<Address>,
    pub(crate) read_from: ReadFrom,
    pub(crate) zone: Option<String>,
    pub(crate) addresses: Option<AddressMap>,
}

/// The nodes that serve the slots.
#[derive(Debug)]
pub(crate) struct Cluster {
    map: RwLock<Map>,
    discovery: Arc<Discovery>,
    signal: Arc<Signal>,
    options: ClientOptions,
    handle: Handle,
    read_from: ReadFrom,
    zone: Option<String>,
    /// A counter that selects the next replica.
    turn: AtomicUsize,
    is_closed: AtomicBool,
}

/// The result of submitting requests.
#[derive(Debug)]
pub(crate) enum Sent {
    /// The reply will arrive here.
    Waits(crate::sync::Arc<PendingReply>),
    /// The budget is full.
    Full,
    /// The reply is already known.
    Ready(Reply),
    /// The node has left the cluster: the request must be sent again.
    Redirected(Retry),
    /// The requests go to several nodes.
    Spread(Box<Spread>),
}

/// A command that pauses before it is sent again.
#[derive(Debug)]
pub(crate) struct Paused {
    pub(crate) sleep: Pin<Box<Sleep>>,
    pub(crate) redirects: RedirectState,
}

impl Paused {
    pub(crate) fn new(cluster: &Cluster, pause: Duration, redirects: RedirectState) -> Paused {
        // The caller may be on a thread without a runtime.
        let _within = cluster.handle.enter();
        Paused { sleep: Box::pin(sleep(pause)), redirects }
    }
}

/// Reads the map from the seeds.
///
/// # Errors
/// None of the seeds replies, or none of them knows any slots.
pub(super) async fn find(setup: &Arc<Setup>, wanted: &ClusterOptions) -> Result<Discovered> {
    if let Source::Sentinels(_) = wanted.source {
        // The primary must be reachable, and must accept the login.
        open(setup).await?;
    }
    let discovery = Discovery {
        source: wanted.source.clone(),
        setup: Arc::clone(setup),
        seeds: wanted.seeds.clone(),
        map: wanted.addresses.clone(),
    };
    Arc::new(discovery).discover(wanted.seeds.clone(), 0).await
}

impl Cluster {
    /// Starts a cluster that was discovered, and the task that keeps its map up to date.
    pub(super) fn start(
        options: ClientOptions,
        setup: &Arc<Setup>,
        wanted: ClusterOptions,
        handle: &Handle,
        found: Discovered,
    ) -> Arc<Cluster> {
        let discovery = Arc::new(Discovery {
            source: wanted.source,
            setup: Arc::clone(setup),
            seeds: wanted.seeds,
            map: wanted.addresses,
        });
        let signal = Arc::new(Signal::default());
        let cluster = Arc::new(Cluster {
            map: RwLock::new(Map::new(found.topology.clone(), None)),
            discovery: Arc::clone(&discovery),
            signal: Arc::clone(&signal),
            options,
            handle: handle.clone(),
            read_from: wanted.read_from,
            zone: wanted.zone,
            turn: AtomicUsize::new(0),
            is_closed: AtomicBool::new(false),
        });
        let weak = Arc::downgrade(&cluster);
        handle.spawn(refresh::keep_up(weak, signal, discovery, found));
        cluster
    }

    /// Puts requests into the queue of the node that serves them.
    pub(crate) fn submit(
        &self,
        plan: &SendPlan<'_>,
        redirects: &mut RedirectState,
        waker: &Waker,
    ) -> Result<Sent> {
        if self.is_closed() {
            return Err(closed());
        }
        check_allowed(plan, self.options.is_pool())?;
        let now = Instant::now();
        let began = *redirects.began.get_or_insert(now);
        let slot = match plan.grouping {
            // Every node has all keys.
            _ if !self.is_sharded() => plan.requests.iter().find_map(Request::slot),
            Grouping::Separate if plan.requests.len() > 1 => {
                return Ok(Sent::Spread(Box::new(Spread::new(self, plan, redirects))));
            }
            Grouping::Separate => match plan.requests.first().map(slot_routing) {
                Some(SlotRouting::Split(..)) => {
                    return Ok(Sent::Spread(Box::new(Spread::new(self, plan, redirects))));
                }
                Some(SlotRouting::CrossSlot) => return Err(cross_slot_error()),
                Some(SlotRouting::OneSlot(slot)) => slot,
                None => None,
            },
            Grouping::Transaction => slot_of_all(plan.requests)?,
            Grouping::Routed => plan.requests.first().and_then(Request::slot),
        };
        let limit = if redirects.is_first_attempt() {
            plan.limit(self.options.timeout())
        } else {
            let limit = plan.limit(self.options.timeout()).or(self.options.timeout());
            let left = limit.map(|limit| limit.saturating_sub(now.duration_since(began)));
            if left.is_some_and(|left| left.is_zero()) {
                return Err(timeout(Phase::Queued, redirects.last_rejection.as_ref()));
            }
            left
        };
        let member = match redirects.at.take() {
            Some(member) if redirects.has_target => member,
            _ => self.member(slot, plan, redirects)?,
        };
        let key = plan.requests.first().and_then(Request::routing_key);
        let submitted = self.lanes(&member).and_then(|node| match redirects.needs_asking {
            true => node.take(&asking(plan), key, limit, waker),
            false => node.take(plan.requests, key, limit, waker),
        });
        redirects.at = Some(member);
        match submitted {
            Ok(Submitted::Waits(pending_reply)) => Ok(Sent::Waits(pending_reply)),
            Ok(Submitted::Full) => Ok(Sent::Full),
            Ok(Submitted::Ready(reply)) => Ok(Sent::Ready(reply)),
            Err(error) => match self.retry_unsent(&error, redirects) {
                Some(retry) => Ok(Sent::Redirected(retry)),
                None => Err(error),
            },
        }
    }

    /// The lanes to a member, created if necessary.
    fn lanes<'a>(&self, member: &'a Member) -> Result<&'a super::node::Node> {
        member.node(|| {
            let setup = self.discovery.setup_at(&member.address, member.reads);
            let has_others = member.reads;
            let watch = NodeWatch { signal: Arc::clone(&self.signal), has_others };
            let watch: Arc<dyn Watch> = Arc::new(watch);
            self.options.node(&self.handle, &setup, None, Some(&watch))
        })
    }

    /// The member to which requests for a slot are sent.
    fn member(
        &self,
        slot: Option<u16>,
        plan: &SendPlan<'_>,
        redirects: &RedirectState,
    ) -> Result<Arc<Member>> {
        let map = read(&self.map);
        if slot.is_some_and(|slot| !map.serves(slot)) {
            self.signal.hint();
        }
        let shard = map.shard(slot).ok_or_else(closed)?;
        let may_be_replica = self.read_from != ReadFrom::Primary
            && slot.is_some()
            && !redirects.to_primary
            && plan
                .requests
                .iter()
                .all(|request| request.traits().reads_only && !has_cursor(request));
        if !may_be_replica {
            return Ok(Arc::clone(&shard.primary));
        }
        let turn = self.turn.fetch_add(1, Ordering::Relaxed);
        let chosen = self.read_from.choose(shard, turn, self.zone.as_deref());
        let no_replica = || Error::new(Kind::Disconnected, "no replica serves this slot");
        chosen.map(Arc::clone).ok_or_else(no_replica)
    }

    /// If a reply redirects the requests, returns when they are sent again. Returns `None` if the reply is for the
    /// caller.
    #[inline]
    pub(crate) fn retry_after_reply(
        &self,
        plan: &SendPlan<'_>,
        result: &crate::lane::ReplyResult,
        redirects: &mut RedirectState,
    ) -> Option<Retry> {
        match result {
            Ok(reply) => {
                let text = redirect::rejection(reply, plan, redirects.needs_asking)?;
                self.retry_rejected(text, redirects)
            }
            Err(error) => self.retry_unsent(error, redirects),
        }
    }

    /// Redirects requests that were never sent. They go to the node that the map now names.
    #[cold]
    fn retry_unsent(&self, error: &Error, redirects: &mut RedirectState) -> Option<Retry> {
        if matches!(error.kind(), Kind::Timeout(_)) {
            self.signal.hint();
        }
        let is_unsent = matches!(error.kind(), Kind::Disconnected | Kind::Tls | Kind::Closed)
            && !error.maybe_applied();
        if !is_unsent || self.is_closed() {
            return None;
        }
        redirects.route_by_map();
        redirects.count_hop(false)
    }

    /// Decides where and when a command that a node has rejected is sent again. `None` after too many attempts.
    #[cold]
    pub(crate) fn retry_rejected(
        &self,
        text: &[u8],
        redirects: &mut RedirectState,
    ) -> Option<Retry> {
        let code = Code::of(text);
        let was_replica = redirects.at.as_ref().is_some_and(|member| member.reads);
        let retry =
            redirects.count_hop(!matches!(code, Code::Moved | Code::Ask | Code::MasterDown))?;
        redirects.last_rejection = Some(Error::server(text));
        if matches!(code, Code::Moved | Code::Ask) {
            let (slot, host, port) = redirect::target(text)?;
            let by = redirects.at.as_ref().map_or(&self.discovery.setup.address, |at| &at.address);
            let address = self.discovery.address(by, host, port)?;
            let member = match code {
                Code::Moved => self.moved(slot, &address)?,
                _ => self.known(&address)?,
            };
            redirects.set_target(member, code == Code::Ask);
            return Some(retry);
        }
        if code != Code::TryAgain && !was_replica {
            self.signal.hint();
        }
        redirects.route_by_map();
        if was_replica && self.read_from != ReadFrom::Replica {
            // The primary will accept the command.
            redirects.to_primary = true;
            return Some(Retry::Now);
        }
        Some(retry)
    }

    /// Records in the map that a slot has moved to another node, before the whole map is read again.
    fn moved(&self, slot: u16, address: &Address) -> Option<Arc<Member>> {
        self.signal.hint();
        let mut map = write(&self.map);
        let index = map.primary_at(address)?;
        map.correct(slot, index);
        Some(Arc::clone(&map.shards().get(index)?.primary))
    }

    fn known(&self, address: &Address) -> Option<Arc<Member>> {
        let mut map = write(&self.map);
        let index = map.primary_at(address)?;
        Some(Arc::clone(&map.shards().get(index)?.primary))
    }

    /// Updates the map from an error that a session or a subscriber received, if the error names the slot's new node.
    pub(crate) fn learn(&self, error: &Error) {
        let text = error.message().as_bytes();
        if error.code() == Some(Code::Moved)
            && let Some((slot, host, port)) = redirect::target(text)
            && let Some(address) = self.discovery.address(&self.discovery.setup.address, host, port)
        {
            self.moved(slot, &address);
        }
        self.signal.hint();
    }

    /// The index of a slot's shard.
    pub(crate) fn shard_index(&self, slot: Option<u16>) -> usize {
        read(&self.map).shard_index(slot)
    }

    pub(crate) fn primary(&self, index: usize) -> Option<Arc<Member>> {
        read(&self.map).shards().get(index).map(|shard| Arc::clone(&shard.primary))
    }

    /// The primary that has a key; without a key, the primary of the first slot.
    pub(super) fn primary_of(&self, key: Option<&[u8]>) -> Option<Arc<Member>> {
        self.primary(self.shard_index(key.map(brisk_resp::slot::key_slot)))
    }

    /// All primaries that serve slots, in the order of their first slot.
    pub(super) fn primaries(&self) -> Vec<Arc<Member>> {
        let map = read(&self.map);
        let mut primaries: Vec<Arc<Member>> = Vec::new();
        let mut last = usize::MAX;
        for slot in (0..brisk_resp::slot::SLOTS).filter(|slot| map.serves(*slot)) {
            let index = map.shard_index(Some(slot));
            if std::mem::replace(&mut last, index) == index {
                continue;
            }
            let Some(shard) = map.shards().get(index) else { continue };
            if !primaries.iter().any(|known| Arc::ptr_eq(known, &shard.primary)) {
                primaries.push(Arc::clone(&shard.primary));
            }
        }
        primaries
    }

    /// The setup of a connection to the primary of a key.
    pub(crate) fn setup_for(&self, key: Option<&[u8]>) -> Arc<Setup> {
        match self.primary_of(key) {
            Some(member) => self.discovery.setup_at(&member.address, false),
            None => Arc::clone(&self.discovery.setup),
        }
    }

    /// The setup of a subscriber's connection: to the node of a sharded channel, otherwise to any reachable node.
    pub(crate) fn setup_to_listen(&self, channel: Option<&[u8]>) -> Arc<Setup> {
        if channel.is_some() || !self.is_sharded() {
            return self.setup_for(channel);
        }
        let turn = self.turn.fetch_add(1, Ordering::Relaxed);
        match self.candidates(turn).first() {
            Some(address) => self.discovery.setup_at(address, false),
            None => Arc::clone(&self.discovery.setup),
        }
    }

    /// The setup of a connection to a node.
    pub(super) fn setup_at(&self, member: &Member) -> Arc<Setup> {
        self.discovery.setup_at(&member.address, member.reads)
    }

    /// Like [`Cluster::submit`], but to one node, regardless of the slots.
    pub(super) fn submit_to(
        &self,
        member: &Member,
        plan: &SendPlan<'_>,
        waker: &Waker,
    ) -> Result<Submitted> {
        self.lanes(member)?.submit(plan, waker)
    }

    pub(super) fn close(&self) {
        self.is_closed.store(true, Ordering::SeqCst);
        let map = read(&self.map);
        map.members().filter_map(|member| member.known_node()).for_each(super::node::Node::close);
        self.signal.hint();
    }

    /// Reports whether the key decides which node a command goes to.
    pub(crate) fn is_sharded(&self) -> bool {
        self.discovery.source.is_sharded()
    }

    /// Reports whether each new connection finds the current primary on its own.
    pub(crate) fn finds_primaries(&self) -> bool {
        matches!(self.discovery.source, Source::Sentinels(_))
    }

    pub(crate) fn is_closed(&self) -> bool {
        self.is_closed.load(Ordering::Relaxed)
    }

    /// The counters of each lane of each node.
    pub(super) fn counts(&self) -> Vec<Counts> {
        let map = read(&self.map);
        let nodes = map.members().filter_map(|member| member.known_node());
        nodes.flat_map(super::node::Node::counts).collect()
    }

    pub(super) fn pending(&self) -> usize {
        let map = read(&self.map);
        let nodes = map.members().filter_map(|member| member.known_node());
        nodes.map(super::node::Node::pending).sum()
    }

    /// Reports whether any node cannot be reached.
    fn is_in_trouble(&self) -> bool {
        read(&self.map).members().any(|member| member.is_down())
    }

    fn epoch(&self) -> u64 {
        read(&self.map).topology.epoch
    }

    /// The nodes to query, reachable ones first; `turn` selects the first one.
    fn candidates(&self, turn: usize) -> Vec<Address> {
        let map = read(&self.map);
        let (down, mut all): (Vec<_>, Vec<_>) = map.members().partition(|member| member.is_down());
        let first = turn.checked_rem(all.len()).unwrap_or(0);
        all.rotate_left(first);
        let members = all.into_iter().chain(down).map(|member| &member.address);
        let mut known = std::collections::HashSet::new();
        let addresses = members.chain(&self.discovery.seeds);
        addresses.filter(|address| known.insert(*address)).cloned().collect()
    }

    /// Replaces the map with this topology. Returns whether it differs from the previous one.
    fn take(&self, topology: Topology) -> bool {
        let (before, has_changed) = {
            let mut map = write(&self.map);
            let has_changed = map.topology.shards != topology.shards;
            let new = Map::new(topology, Some(&map));
            (std::mem::replace(&mut *map, new), has_changed)
        };
        let left: Vec<Arc<Member>> = {
            let map = read(&self.map);
            let has_left =
                |member: &&Arc<Member>| !map.members().any(|kept| Arc::ptr_eq(kept, member));
            before.members().filter(has_left).cloned().collect()
        };
        for member in left {
            member.retire();
            if member.known_node().is_some() {
                self.handle.spawn(drain(member));
            }
        }
        has_changed
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        // Ends the task that keeps the map up to date.
        self.signal.hint();
    }
}

/// Reports whether a request has a cursor. A cursor is valid only on the server that returned it, so an iteration over
/// alternating replicas would skip elements. O(1).
fn has_cursor(request: &Request) -> bool {
    let name = request.verb();
    let is = |known: &str| name.eq_ignore_ascii_case(known.as_bytes());
    name.len() == 5 && (is("HSCAN") || is("SSCAN") || is("ZSCAN"))
}

/// Keeps a node's lanes open until all replies have arrived.
async fn drain(member: Arc<Member>) {
    let until = Instant::now() + DRAIN_MAX;
    let is_busy = || member.known_node().is_some_and(|node| node.pending() > 0);
    while is_busy() && Instant::now() < until {
        sleep(DRAIN_INTERVAL).await;
    }
}

/// The common slot of requests that are executed together.
fn slot_of_all(requests: &[Request]) -> Result<Option<u16>> {
    let mut all = None;
    for request in requests {
        let slot = match slot_routing(request) {
            SlotRouting::OneSlot(None) => continue,
            SlotRouting::OneSlot(slot) => slot,
            SlotRouting::Split(..) | SlotRouting::CrossSlot => None,
        };
        if slot.is_none() || all.is_some_and(|all| Some(all) != slot) {
            let text =
                b"CROSSSLOT the keys of a transaction have to be of one slot, nothing was sent";
            return Err(Error::server(text));
        }
        all = slot;
    }
    Ok(all)
}

/// The requests, preceded by ASKING, which applies to one command or one transaction.
fn asking(plan: &SendPlan<'_>) -> Vec<Request> {
    let mut requests = vec![Request::new("ASKING", Traits::default())];
    requests.extend(plan.requests.iter().cloned());
    requests
}
