//! Keeps the map up to date: one task reads the slots from a node periodically, and soon after a hint that something
//! has changed. Without a cluster, the task queries the primary or the sentinels. The task has its own connection, so
//! that its queries and the commands do not wait for each other.

use super::Cluster;
use super::source::{Role, Source, by_roles, by_sentinels};
use super::topology::{AddressContext, AddressMap, Topology, epoch};
use crate::address::Address;
use crate::error::{Error, Kind, Result};
use crate::lane::cell::Shared;
use crate::lane::connect::{Connection, Setup, open};
use crate::lane::driver::Watch;
use crate::reply::Reply;
use crate::request::{Request, Traits};
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};
use tokio::sync::Notify;
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};

/// The shortest pause between two refreshes. The pause doubles while hints arrive but the map does not change.
const PAUSE_FIRST: Duration = Duration::from_millis(100);
const PAUSE_LONGEST: Duration = Duration::from_secs(1);
/// If a node has not replied for this long, another one is queried as well.
const HEDGE: Duration = Duration::from_millis(100);
/// The time limit for a node's reply.
const REPLY_TIMEOUT: Duration = Duration::from_secs(1);

/// Signals that the map may be out of date.
#[derive(Debug, Default)]
pub(crate) struct Signal(Notify);

impl Signal {
    /// Requests a refresh. This is cheap, and several calls have the effect of one.
    pub(crate) fn hint(&self) {
        self.0.notify_one();
    }
}

/// Watches the lanes of a node.
#[derive(Debug)]
pub(super) struct NodeWatch {
    pub(super) signal: Arc<Signal>,
    /// True if requests that wait for this node may be sent to another node immediately.
    pub(super) has_others: bool,
}

impl Watch for NodeWatch {
    fn disconnected(&self, shared: &Shared) {
        self.signal.hint();
        if self.has_others || shared.is_retired() {
            shared.reject_unsent();
        }
    }
}

/// How nodes are queried.
#[derive(Debug)]
pub(super) struct Discovery {
    pub(super) source: Source,
    pub(super) setup: Arc<Setup>,
    pub(super) seeds: Vec<Address>,
    pub(super) map: Option<AddressMap>,
}

/// The topology, and the connection to the node that reported it.
pub(crate) struct Discovered {
    pub(super) topology: Topology,
    pub(super) scout: Option<Scout>,
}

pub(super) struct Scout {
    address: Address,
    connection: Connection,
}

impl Discovery {
    /// The setup of a connection to another node.
    pub(super) fn setup_at(&self, address: &Address, reads: bool) -> Arc<Setup> {
        self.source.setup_at(&self.setup, address, reads)
    }

    pub(super) fn address_context<'a>(&'a self, by: &'a Address) -> AddressContext<'a> {
        AddressContext { by, tls: self.is_tls(), map: self.map.as_ref() }
    }

    pub(super) fn is_tls(&self) -> bool {
        matches!(self.setup.address, Address::Tcp { tls: true, .. })
    }

    pub(super) fn address(&self, by: &Address, host: &str, port: u16) -> Option<Address> {
        self.address_context(by).address(host, port)
    }

    /// Queries the nodes one after the other, without waiting long for any. Returns the first reply that is not older
    /// than the known map. If all replies are older, returns the newest one, because the cluster may have been
    /// recreated.
    ///
    /// # Errors
    /// If no node replies, the error of the first one.
    pub(super) async fn discover(
        self: &Arc<Discovery>,
        candidates: Vec<Address>,
        known_epoch: u64,
    ) -> Result<Discovered> {
        if let Source::Sentinels(sentinels) = &self.source {
            return Ok(Discovered { topology: by_sentinels(self, sentinels).await?, scout: None });
        }
        let mut left = candidates.into_iter();
        let mut queries = JoinSet::new();
        let (mut best, mut failed): (Option<Discovered>, Option<Error>) = (None, None);
        loop {
            if let Some(address) = left.next() {
                queries.spawn(query_first(Arc::clone(self), address));
            } else if queries.is_empty() {
                break;
            }
            tokio::select! {
                Some(done) = queries.join_next() => match done {
                    Ok(Ok(found)) if found.topology.epoch >= known_epoch => return Ok(found),
                    Ok(Ok(found)) => {
                        let epoch = best.as_ref().map(|best| best.topology.epoch);
                        if epoch.is_none_or(|epoch| epoch < found.topology.epoch) {
                            best = Some(found);
                        }
                    }
                    Ok(Err(error)) => failed = failed.or(Some(error)),
                    Err(_) => {}
                },
                () = sleep(HEDGE), if left.len() > 0 => {}
            }
        }
        let no_reply = || Error::new(Kind::Disconnected, "no node of the cluster has replied");
        best.ok_or_else(|| failed.unwrap_or_else(no_reply))
    }
}

async fn query_first(discovery: Arc<Discovery>, address: Address) -> Result<Discovered> {
    if !discovery.source.is_sharded() {
        return by_roles(&discovery, address).await;
    }
    let connection = open(&discovery.setup_at(&address, false)).await?;
    let mut scout = Scout::new(address, connection);
    Ok(Discovered { topology: scout.request(&discovery).await?, scout: Some(scout) })
}

impl Scout {
    pub(super) fn new(address: Address, connection: Connection) -> Scout {
        Scout { address, connection }
    }

    async fn replies<const N: usize>(&mut self, names: [&str; N]) -> Result<[Reply; N]> {
        let requests = names.map(|name| Request::new(name, Traits::default()));
        let late = |_| Error::new(Kind::Disconnected, format!("{} has not replied", self.address));
        let replies =
            timeout(REPLY_TIMEOUT, self.connection.request(&requests)).await.map_err(late)??;
        let other = |_| {
            Error::new(Kind::Protocol, "the number of replies differs from the number of requests")
        };
        replies.try_into().map_err(other)
    }

    /// The role of the node, which is queried only without a cluster.
    pub(super) async fn role(&mut self, discovery: &Discovery) -> Result<Role> {
        let [role] = self.replies(["ROLE"]).await?;
        Role::read(&role, &discovery.address_context(&self.address))
    }

    async fn request(&mut self, discovery: &Discovery) -> Result<Topology> {
        if !discovery.source.is_sharded() {
            return match self.role(discovery).await? {
                Role::Primary(replicas) => Ok(Topology::of_one(self.address.clone(), replicas)),
                Role::ReplicaOf(primary) => {
                    let text = format!("{} is now a replica of {primary}", self.address);
                    Err(Error::new(Kind::Disconnected, text))
                }
            };
        }
        let [slots, info] = self.replies(["CLUSTER SLOTS", "CLUSTER INFO"]).await?;
        let epoch = epoch(&info.read::<String>()?);
        Topology::read(&slots, epoch, &discovery.address_context(&self.address))
    }
}

/// Keeps the map of a cluster up to date while the cluster is in use.
pub(super) async fn keep_up(
    cluster: Weak<Cluster>,
    signal: Arc<Signal>,
    discovery: Arc<Discovery>,
    found: Discovered,
) {
    let mut scout = found.scout;
    let mut switches = discovery.source.switches();
    let mut pause = PAUSE_FIRST;
    let mut last = Instant::now();
    let mut turn = 0;
    loop {
        let Some(open) = cluster.upgrade().filter(|cluster| !cluster.is_closed()) else { return };
        // No hint arrives when a node that is down is replaced, so look more often.
        let rest = if open.is_in_trouble() { pause } else { discovery.source.interval() };
        drop(open);
        let has_hint = tokio::select! {
            () = signal.0.notified() => true,
            () = switches.next() => true,
            () = sleep(rest) => false,
        };
        if last.elapsed() > 2 * PAUSE_LONGEST {
            pause = PAUSE_FIRST;
        }
        sleep(pause.saturating_sub(last.elapsed())).await;
        last = Instant::now();
        let Some(open) = cluster.upgrade() else { return };
        let known_epoch = open.epoch();
        let candidates = open.candidates(turn);
        drop(open);
        let topology = refresh(&discovery, &mut scout, candidates, known_epoch).await;
        let Some(open) = cluster.upgrade() else { return };
        let has_changed = topology.is_ok_and(|topology| open.take(topology));
        if has_changed {
            pause = PAUSE_FIRST;
            continue;
        }
        pause = (pause * 2).min(PAUSE_LONGEST);
        if has_hint || open.is_in_trouble() {
            // Query another node next, because this one may be cut off from the others.
            scout = None;
            turn += 1;
        }
    }
}

async fn refresh(
    discovery: &Arc<Discovery>,
    scout: &mut Option<Scout>,
    candidates: Vec<Address>,
    known_epoch: u64,
) -> Result<Topology> {
    if let Some(mut known) = scout.take()
        && let Ok(topology) = known.request(discovery).await
        && topology.epoch >= known_epoch
    {
        *scout = Some(known);
        return Ok(topology);
    }
    let found = discovery.discover(candidates, known_epoch).await?;
    *scout = found.scout;
    Ok(found.topology)
}
