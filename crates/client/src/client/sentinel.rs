//! Redis Sentinel: finds the primary of a service for each connection, and follows failovers.
//!
//! | actor | action |
//! |---|---|
//! | a new connection | queries the sentinels for the primary, and verifies its role with ROLE |
//! | [`watch`], one task of a client | receives notice of failovers, and closes the connections to the former primary |
//!
//! Sentinels do not learn of a failover at the same time. If a sentinel still names a primary that another sentinel has
//! just reported as replaced, the client uses the new primary, for up to [`LAG_MAX`] after the report.
//!
//! A failover begins with the promotion of a replica. The former primary still accepts writes at that time, and these
//! are lost. The sentinel that leads the failover announces the promotion beforehand. Other sentinels do not, so the
//! client listens to all of them. After the announcement, the client sends no new commands until the switch, an
//! abort, or the end of [`HOLD_MAX`]; see [`Destination::held_until`].

use crate::address::Address;
use crate::error::{Error, Kind, Result};
use crate::lane::connect::{Origin, Setup, open};
use crate::poison::lock;
use crate::reply::Reply;
use crate::request::{Request, Traits};
use crate::subscriber::{Event, Message, Subscriber};
use std::collections::{HashMap, VecDeque};
use std::fmt;
use std::future::pending;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{Duration, Instant};
use tokio::runtime::Handle;
use tokio::sync::watch;
use tokio::task::{AbortHandle, JoinSet};
use tokio::time::sleep;

/// If a sentinel has not replied for this time, the next one is queried as well.
const STAGGER: Duration = Duration::from_millis(200);
/// The maximum number of known sentinels, including those that other sentinels reported.
const KNOWN_MAX: usize = 32;
/// The time after a failover during which a sentinel may not know of it yet.
const LAG_MAX: Duration = Duration::from_secs(10);
/// The time limit for a vote of all sentinels, if one of them reports a primary other than the known one.
const VOTE_MAX: Duration = Duration::from_millis(500);
/// The interval at which the client queries the sentinels, because a sentinel that it listens to may be cut off from
/// the others.
const QUERY_INTERVAL: Duration = Duration::from_secs(5);
/// If a failover takes longer, commands are no longer held back, because its leader may be down.
const HOLD_MAX: Duration = Duration::from_secs(5);
/// The leader of a failover publishes the first message before it promotes a replica, and the second after it has sent
/// the command to that replica.
const PROMOTIONS: [&str; 2] =
    ["+failover-state-send-slaveof-noone", "+failover-state-wait-promotion"];
/// The prefix of the message with which the leader aborts the failover.
const ABORTS: &str = "-failover-abort-";
/// The pause before listening to a sentinel again.
const LISTEN_AGAIN: Duration = Duration::from_millis(250);

/// The destination of a connection.
#[derive(Clone, Debug, Default)]
pub(crate) enum Destination {
    /// The fixed address in the options.
    #[default]
    Fixed,
    /// The primary of a service.
    Primary(Arc<Sentinels>),
    /// A connection to any sentinel that replies.
    Sentinel(Arc<Sentinels>),
}

impl Destination {
    /// The current address of the destination, and the number of known failovers. `fixed` is the address for
    /// [`Destination::Fixed`].
    pub(crate) async fn find(&self, fixed: &Address) -> Result<(Address, u64)> {
        match self {
            Destination::Fixed => Ok((fixed.clone(), 0)),
            Destination::Primary(sentinels) => {
                let switches = sentinels.switches();
                let report = sentinels.query().await?;
                Ok((sentinels.agreed(report.primary).await, switches))
            }
            Destination::Sentinel(sentinels) => Ok((sentinels.query().await?.sentinel, 0)),
        }
    }

    /// Reports whether the server at this place must be a primary.
    pub(crate) fn wants_primary(&self) -> bool {
        matches!(self, Destination::Primary(_))
    }

    /// The time until which nothing new may be sent to the primary, since it is about to be demoted.
    pub(crate) fn held_until(&self) -> Option<watch::Receiver<Option<Instant>>> {
        match self {
            Destination::Primary(sentinels) => Some(sentinels.hold.subscribe()),
            Destination::Fixed | Destination::Sentinel(_) => None,
        }
    }

    /// Completes when the connection's server is no longer the primary.
    pub(crate) async fn left(&self, origin: &Origin) -> Error {
        let Destination::Primary(sentinels) = self else { return pending().await };
        let mut switches = sentinels.switches.subscribe();
        loop {
            if *switches.borrow_and_update() > origin.switches
                && let Some(switch) = &sentinels.lock().switch
                && switch.to != origin.address
            {
                let text = format!("{} is the primary now, not {}", switch.to, origin.address);
                return Error::new(Kind::Disconnected, text);
            }
            if switches.changed().await.is_err() {
                return pending().await;
            }
        }
    }
}

/// The sentinels of a service.
pub(crate) struct Sentinels {
    service: String,
    /// The setup of connections to sentinels, without an address.
    setup: Setup,
    /// True if connections to sentinels, and to the servers that they name, use TLS.
    tls: bool,
    state: Mutex<State>,
    /// The number of known failovers.
    switches: watch::Sender<u64>,
    /// The time until which nothing new is sent to the primary.
    hold: watch::Sender<Option<Instant>>,
}

struct State {
    /// The sentinels in the client's options, beginning with the one that replied most recently.
    named: Vec<Address>,
    /// The sentinels that were listed in the most recent reply of a sentinel.
    reported: Vec<Address>,
    /// The known primary.
    primary: Option<Address>,
    switch: Option<Switch>,
}

/// The last failover.
struct Switch {
    from: Option<Address>,
    to: Address,
    at: Instant,
}

/// A sentinel's report.
struct SentinelReport {
    sentinel: Address,
    primary: Address,
    /// Replicas that can serve reads.
    replicas: Vec<Address>,
    others: Vec<Address>,
}

impl fmt::Debug for Sentinels {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Sentinels").field("service", &self.service).finish_non_exhaustive()
    }
}

impl State {
    /// All sentinels, in the order in which they are queried.
    fn known(&self) -> VecDeque<Address> {
        let mut known = VecDeque::new();
        for address in self.named.iter().chain(&self.reported) {
            if known.len() < KNOWN_MAX && !known.contains(address) {
                known.push_back(address.clone());
            }
        }
        known
    }

    /// Returns the new primary if `said` is the primary that a recent failover replaced; otherwise returns `said`.
    /// Sentinels may report the former primary for some time.
    fn corrected(&self, said: Address) -> Address {
        match &self.switch {
            Some(switch)
                if switch.from.as_ref() == Some(&said) && switch.at.elapsed() < LAG_MAX =>
            {
                switch.to.clone()
            }
            _ => said,
        }
    }
}

impl Sentinels {
    /// `setup` is the setup of connections to sentinels.
    pub(crate) fn new(service: String, named: Vec<Address>, setup: Setup) -> Sentinels {
        let tls = named.iter().any(|address| matches!(address, Address::Tcp { tls: true, .. }));
        let state = State { named, reported: Vec::new(), primary: None, switch: None };
        let switches = watch::Sender::new(0);
        let hold = watch::Sender::new(None);
        Sentinels { service, setup, tls, state: Mutex::new(state), switches, hold }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        lock(&self.state)
    }

    fn switches(&self) -> u64 {
        *self.switches.borrow()
    }

    /// Queries the sentinels one after another. If a sentinel is slow, the next one is queried as well. The first reply
    /// counts.
    async fn query(&self) -> Result<SentinelReport> {
        let mut waiting = self.lock().known();
        let mut queries = JoinSet::new();
        let mut errors = String::new();
        loop {
            if let Some(sentinel) = waiting.pop_front() {
                queries.spawn(query_one(self.setup_for(sentinel), self.service.clone(), self.tls));
            }
            tokio::select! {
                Some(joined) = queries.join_next() => match joined {
                    Ok(Ok(report)) => {
                        self.learn(&report);
                        return Ok(report);
                    }
                    Ok(Err(error)) => {
                        if !errors.is_empty() {
                            errors.push_str("; ");
                        }
                        errors.push_str(error.message());
                    }
                    Err(_) => {}
                },
                () = sleep(STAGGER), if !waiting.is_empty() => {}
            }
            if queries.is_empty() && waiting.is_empty() {
                let text = format!("no sentinel names the primary of '{}': ", self.service);
                return Err(Error::new(Kind::Disconnected, text + &errors));
            }
        }
    }

    /// The replicas that follow the primary, are reachable and are announced to clients, according to a sentinel.
    ///
    /// # Errors
    /// No sentinel replies, or none knows the service.
    pub(crate) async fn replicas(&self) -> Result<Vec<Address>> {
        let report = self.query().await?;
        let primary = self.lock().primary.clone();
        let mut replicas = report.replicas;
        replicas.retain(|replica| Some(replica) != primary.as_ref());
        Ok(replicas)
    }

    /// Receives the number of known failovers.
    pub(crate) fn subscribe(&self) -> watch::Receiver<u64> {
        self.switches.subscribe()
    }

    fn setup_for(&self, address: Address) -> Setup {
        Setup { address, ..self.setup.clone() }
    }

    /// Makes the sentinel that replied the first to query next time.
    fn learn(&self, report: &SentinelReport) {
        let mut state = self.lock();
        state.named.retain(|named| *named != report.sentinel);
        state.named.insert(0, report.sentinel.clone());
        state.named.truncate(KNOWN_MAX);
        state.reported = report.others.clone();
        if state.primary.is_none() {
            state.primary = Some(report.primary.clone());
        }
    }

    /// Records the primary, which may be new.
    fn observe(&self, from: Option<Address>, to: Address) {
        {
            let mut state = self.lock();
            if state.primary.as_ref() == Some(&to) {
                return;
            }
            let from = from.or(state.primary.take());
            state.primary = Some(to.clone());
            state.switch = Some(Switch { from, to, at: Instant::now() });
        }
        // First close the connections to the former primary, so that nothing more is sent to it.
        self.switches.send_modify(|switches| *switches += 1);
        self.hold.send_replace(None);
    }

    /// Returns the primary to use after a sentinel has reported `said`. If `said` differs from the known primary,
    /// queries all known sentinels, because the one that reported it may be cut off from the others. The known primary
    /// is kept only if more sentinels report it than `said`.
    async fn agreed(&self, said: Address) -> Address {
        let (said, known, voters) = {
            let state = self.lock();
            (state.corrected(said), state.primary.clone(), state.known())
        };
        let Some(known) = known.filter(|known| *known != said) else { return said };
        let mut votes = JoinSet::new();
        for sentinel in voters {
            votes.spawn(query_one(self.setup_for(sentinel), self.service.clone(), self.tls));
        }
        let (mut pros, mut cons) = (0, 0);
        let count = async {
            while let Some(vote) = votes.join_next().await {
                let Ok(Ok(report)) = vote else { continue };
                pros += usize::from(report.primary == said);
                cons += usize::from(report.primary == known);
            }
        };
        // A sentinel that does not reply in time has no vote.
        let _ = tokio::time::timeout(VOTE_MAX, count).await;
        if pros >= cons { said } else { known }
    }

    async fn look(&self) {
        // While no sentinel replies, nothing changes.
        if let Ok(report) = self.query().await {
            let primary = self.agreed(report.primary).await;
            self.observe(None, primary);
        }
    }

    /// Handles the start or the abort of a failover: `slave … @ service ip port`, or `master service ip port`.
    fn handle_failover(&self, message: &Message) {
        let text = String::from_utf8_lossy(&message.payload);
        let mut words = text.split(' ');
        let is_ours = match words.next() {
            Some("master") => words.next() == Some(&self.service),
            _ => words.by_ref().any(|word| word == "@") && words.next() == Some(&self.service),
        };
        if !is_ours {
            return;
        }
        if PROMOTIONS.iter().any(|begin| message.channel == *begin) {
            self.hold.send_replace(Some(Instant::now() + HOLD_MAX));
        } else if message.channel.starts_with(ABORTS.as_bytes()) {
            self.hold.send_replace(None);
        }
    }

    /// Handles `+switch-master`: the service, and the address before and after.
    fn handle_switch(&self, message: &Message) {
        let text = String::from_utf8_lossy(&message.payload);
        let words: Vec<&str> = text.split(' ').collect();
        if let [service, old_host, old_port, host, port] = words[..]
            && message.channel == "+switch-master"
            && service == self.service
            && let (Some(from), Some(to)) =
                (address(old_host, old_port, self.tls), address(host, port, self.tls))
        {
            self.observe(Some(from), to);
        }
    }
}

fn address(host: &str, port: &str, tls: bool) -> Option<Address> {
    Some(Address::Tcp { host: host.to_owned(), port: port.parse().ok()?, tls })
}

type PendingReport = Pin<Box<dyn Future<Output = Result<SentinelReport>> + Send>>;

/// Queries one sentinel. The future is boxed, because opening a connection may itself query sentinels.
fn query_one(setup: Setup, service: String, tls: bool) -> PendingReport {
    Box::pin(async move {
        let sentinel = setup.address.clone();
        let failed = |error: Error| {
            Error::new(Kind::Disconnected, format!("{sentinel} says: {}", error.message()))
        };
        let exchange = async {
            let mut connection = open(&setup).await?;
            let request = |name: &str| {
                let mut request = Request::new(name, Traits::default());
                request.arg(&service);
                request
            };
            let requests =
                ["SENTINEL GET-MASTER-ADDR-BY-NAME", "SENTINEL SENTINELS", "SENTINEL REPLICAS"]
                    .map(request);
            connection.request(&requests).await
        };
        let unanswered = |_| Err(Error::new(Kind::Disconnected, "no reply within the time limit"));
        let outcome = tokio::time::timeout(setup.connect_timeout, exchange).await;
        let replies = outcome.unwrap_or_else(unanswered).map_err(failed)?;
        let [primary, others, replicas] = &replies[..] else {
            return Err(failed(Error::new(Kind::Protocol, "an unexpected reply")));
        };
        let named: Option<(String, String)> = primary.read().map_err(failed)?;
        let unknown =
            || failed(Error::new(Kind::Missing, "the sentinel does not know the service"));
        let (host, port) = named.ok_or_else(unknown)?;
        let primary = address(&host, &port, tls)
            .ok_or_else(|| failed(Error::new(Kind::Protocol, "an address without a port")))?;
        let others = addresses(others, tls, |_| true);
        let replicas = addresses(replicas, tls, can_be_read);
        Ok(SentinelReport { sentinel, primary, replicas, others })
    })
}

/// The addresses in a list of nodes that pass the filter. Malformed entries are skipped.
fn addresses(reply: &Reply, tls: bool, is_fit: impl Fn(&Fields) -> bool) -> Vec<Address> {
    let nodes: Vec<Fields> = reply.read().unwrap_or_default();
    let nodes = nodes.iter().filter(|fields| is_fit(fields)).take(KNOWN_MAX);
    nodes.filter_map(|fields| address(fields.get("ip")?, fields.get("port")?, tls)).collect()
}

type Fields = HashMap<String, String>;

/// Reports whether a replica is reachable, follows its primary and is announced to clients (`replica-announced`).
fn can_be_read(fields: &Fields) -> bool {
    let is = |name: &str, value: &str| fields.get(name).is_some_and(|field| field == value);
    let flags = fields.get("flags").map_or("", String::as_str);
    let is_away = flags.split(',').any(|flag| matches!(flag, "s_down" | "o_down" | "disconnected"));
    !is_away && is("master-link-status", "ok") && !is("replica-announced", "0")
}

/// The task that listens for failovers. Dropping this stops it.
#[derive(Debug)]
pub(super) struct Watcher(AbortHandle);

impl Watcher {
    /// Starts the task, if the primary is found through Sentinel.
    pub(super) fn start(setup: &Setup, handle: &Handle) -> Option<Watcher> {
        let Destination::Primary(sentinels) = &setup.destination else { return None };
        let watching = handle.spawn(watch(Arc::clone(sentinels), handle.clone()));
        Some(Watcher(watching.abort_handle()))
    }

    pub(super) fn stop(&self) {
        self.0.abort();
    }
}

impl Drop for Watcher {
    fn drop(&mut self) {
        self.stop();
    }
}

/// Listens to all known sentinels for the start of failovers. Never returns.
async fn hear_all(sentinels: Arc<Sentinels>, handle: Handle) {
    let mut listeners = JoinSet::new();
    let mut heard: HashMap<Address, AbortHandle> = HashMap::new();
    loop {
        let known = sentinels.lock().known();
        heard.retain(|address, listener| {
            let is_known = known.contains(address);
            if !is_known {
                listener.abort();
            }
            is_known
        });
        for address in known {
            let listen = || {
                let one = hear_one(Arc::clone(&sentinels), address.clone(), handle.clone());
                listeners.spawn_on(one, &handle)
            };
            heard.entry(address.clone()).or_insert_with(listen);
        }
        // Remove aborted listeners from the set.
        while listeners.try_join_next().is_some() {}
        sleep(QUERY_INTERVAL).await;
    }
}

async fn hear_one(sentinels: Arc<Sentinels>, address: Address, handle: Handle) {
    let setup = Arc::new(sentinels.setup_for(address));
    let limit = Some(setup.connect_timeout);
    let patterns: Vec<String> =
        PROMOTIONS.map(str::to_owned).into_iter().chain([format!("{ABORTS}*")]).collect();
    loop {
        if let Ok(mut listener) = Subscriber::at(Arc::clone(&setup), &handle, limit).await
            && listener.psubscribe(&patterns).await.is_ok()
        {
            while let Some(event) = listener.next().await {
                if let Event::Message(message) = event {
                    sentinels.handle_failover(&message);
                }
            }
        }
        sleep(LISTEN_AGAIN).await;
    }
}

/// Follows failovers through a sentinel that replies. Never returns.
async fn watch(sentinels: Arc<Sentinels>, handle: Handle) {
    let mut others = JoinSet::new();
    others.spawn(hear_all(Arc::clone(&sentinels), handle.clone()));
    let destination = Destination::Sentinel(Arc::clone(&sentinels));
    let setup = Arc::new(Setup { destination, ..sentinels.setup.clone() });
    loop {
        let limit = Some(setup.connect_timeout);
        if let Ok(mut listener) = Subscriber::at(Arc::clone(&setup), &handle, limit).await
            && listener.subscribe(["+switch-master"]).await.is_ok()
        {
            loop {
                // First query the primary, which may have changed before the subscription.
                sentinels.look().await;
                if !listen(&sentinels, &mut listener).await {
                    break;
                }
            }
        }
        sleep(LISTEN_AGAIN).await;
    }
}

/// Listens until the next query is due; false if the subscription has ended.
async fn listen(sentinels: &Sentinels, listener: &mut Subscriber) -> bool {
    let until = Instant::now() + QUERY_INTERVAL;
    loop {
        tokio::select! {
            event = listener.next() => match event {
                Some(Event::Message(message)) => sentinels.handle_switch(&message),
                Some(_) => return true,
                None => return false,
            },
            () = tokio::time::sleep_until(until.into()) => return true,
        }
    }
}
