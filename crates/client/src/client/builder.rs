//! The options of a client, and how it connects.

use super::cluster::read_from::ReadFrom;
use super::cluster::refresh::Discovered;
use super::cluster::source::Source;
use super::cluster::topology::AddressMap;
use super::cluster::{self, Cluster, ClusterOptions};
use super::node::Node;
use super::sentinel::{Destination, Sentinels, Watcher};
use super::{Client, Inner, Route};
use crate::address::{self, Address, Service, Url};
use crate::command::Replay;
use crate::credentials::{self, Credentials, Login};
use crate::error::{Error, Kind, Result};
use crate::lane::Lane;
use crate::lane::cell::{Bounds, Shared, WhenFull};
#[cfg(not(feature = "tls"))]
use crate::lane::connect::without_tls;
use crate::lane::connect::{Connection, Setup, Tuning, open};
use crate::lane::driver::{Task, Watch};
use crate::lane::pool::{Pool, PoolSlot};
use crate::observe::{Observer, Observers};
use crate::session::Session;
#[cfg(feature = "tls")]
use crate::tls::TlsClient;
use crate::wait::Home;
use std::sync::{Arc, OnceLock, Weak};
use std::thread;
use std::time::Duration;
use tokio::runtime::{Handle, Runtime};
use tokio::sync::oneshot;

/// Default time limit of a command, and of connecting.
const TIMEOUT: Duration = Duration::from_secs(3);
/// The default time after which a silent peer that owes a reply is disconnected.
const SILENCE_MAX: Duration = Duration::from_secs(4);
const BUDGET_BYTES: usize = 16 << 20;
/// The maximum number of lanes with [`Lanes::Auto`].
const LANES_MAX: usize = 4;
/// The number of lanes for large values. One is enough, because large values may wait for each other.
const BULK_LANES: usize = 1;
/// The lower limit for the configured pauses between attempts to connect.
const RETRY_MIN: Duration = Duration::from_millis(1);
/// A larger number of connections to one server is rejected as a mistake.
const LANES_BOUND: usize = 1024;

/// The number of connections, and whether all callers share them.
///
/// ```no_run
/// # async fn example() -> brisk::Result<()> {
/// use brisk::{Client, Lanes};
/// let shared = Client::connect("redis://127.0.0.1").await?;
/// let pooled = Client::builder("redis://127.0.0.1").lanes(Lanes::Pool(50)).connect().await?;
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Lanes {
    /// One shared connection per CPU core, at most four.
    #[default]
    Auto,
    /// This many shared connections, from 1 to 1024.
    Count(usize),
    /// A pool of this many connections, from 1 to 1024. A connection carries one command, batch or transaction at a
    /// time, until its reply has been read. If all connections are in use, further commands wait in order, within the
    /// budget and their time limits.
    ///
    /// Each command costs one round trip, one write and one read, so shared connections are much faster. Use a pool for
    /// commands that run for a long time on the server and would delay the commands after them, and for blocking
    /// commands such as [`commands::blpop`](crate::commands::blpop), which a pool accepts. Commands on one key may use
    /// different connections, so their order is undefined unless each is awaited before the next is polled.
    ///
    /// If the future of a command is dropped, or the command times out, its connection stays in use until the reply
    /// arrives. If the command is blocking, the connection is closed instead, so that the server drops the command.
    Pool(usize),
}

impl Lanes {
    /// The number of connections, and whether they are a pool.
    fn counted(self) -> Result<(usize, bool)> {
        let (count, is_pool) = match self {
            Lanes::Count(count) => (count, false),
            Lanes::Pool(count) => (count, true),
            Lanes::Auto => {
                let processors = thread::available_parallelism().map_or(1, usize::from);
                (processors.min(LANES_MAX), false)
            }
        };
        if !(1..=LANES_BOUND).contains(&count) {
            return Err(Error::new(Kind::Invalid, "the number of lanes must be from 1 to 1024"));
        }
        Ok((count, is_pool))
    }
}

/// The limit, in bytes per lane, on requests that have no reply yet. Each request counts about 200 bytes in addition to
/// its arguments.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Budget {
    bytes: usize,
    when_full: WhenFull,
}

impl Budget {
    /// Limits the requests to this many bytes. While the budget is full, further callers wait until earlier requests
    /// have their replies.
    #[must_use]
    pub fn bytes(bytes: usize) -> Budget {
        Budget { bytes, when_full: WhenFull::Wait }
    }

    /// Sets what happens when the budget is full.
    #[must_use]
    pub fn when_full(mut self, when_full: WhenFull) -> Budget {
        self.when_full = when_full;
        self
    }
}

/// The options of a client. [`Client::builder`] returns one; [`Builder::connect`] connects.
#[must_use = "nothing is connected before `connect`"]
#[derive(Clone, Debug)]
pub struct Builder {
    url: Result<Url>,
    lanes: Option<Lanes>,
    timeout: Option<Option<Duration>>,
    connect_timeout: Duration,
    silence_max: Duration,
    budget: Budget,
    replay: Replay,
    name: Option<String>,
    credentials: Option<credentials::Source>,
    sentinel_login: Option<Login>,
    db: Option<u32>,
    protocol: Option<u8>,
    is_cluster: bool,
    seeds: Vec<Result<Url>>,
    read_from: ReadFrom,
    zone: Option<String>,
    addresses: Option<AddressMap>,
    #[cfg(feature = "tls")]
    tls: Option<crate::tls::Tls>,
    observers: Observers,
    tuning: Tuning,
    is_lazy: bool,
}

impl Builder {
    pub(super) fn new(url: &str) -> Builder {
        Builder {
            url: address::parse(url),
            lanes: None,
            timeout: None,
            connect_timeout: TIMEOUT,
            silence_max: SILENCE_MAX,
            budget: Budget::bytes(BUDGET_BYTES),
            replay: Replay::default(),
            name: None,
            credentials: None,
            sentinel_login: None,
            db: None,
            protocol: None,
            is_cluster: false,
            seeds: Vec::new(),
            read_from: ReadFrom::default(),
            zone: None,
            addresses: None,
            #[cfg(feature = "tls")]
            tls: None,
            observers: Observers::default(),
            tuning: Tuning::default(),
            is_lazy: false,
        }
    }

    /// Sets the number of connections, and whether all callers share them. Default: [`Lanes::Auto`].
    pub fn lanes(mut self, lanes: Lanes) -> Builder {
        self.lanes = Some(lanes);
        self
    }

    /// Sets the time limit of a command, from the time it is queued until its reply arrives. Default: 3 s. The error
    /// says whether the command was sent.
    pub fn timeout(mut self, timeout: Duration) -> Builder {
        self.timeout = Some(Some(timeout));
        self
    }

    /// Removes the time limit. Commands then wait as long as necessary, except those with their own
    /// [`Command::timeout`](crate::Command::timeout).
    pub fn no_timeout(mut self) -> Builder {
        self.timeout = Some(None);
        self
    }

    /// Sets the time limit for opening a connection, including login. Default: 3 s.
    pub fn connect_timeout(mut self, timeout: Duration) -> Builder {
        self.connect_timeout = timeout;
        self
    }

    /// Sets how long a server that owes a reply may stay silent. After that, the connection is closed and a new one is
    /// opened. Default: 4 s. If a waiting command has a longer time limit, that limit applies instead.
    ///
    /// If only reads are waiting, a second connection is tried after half of their time limit. If the server replies on
    /// the second connection, that connection replaces the silent one and the reads are sent again. This way, a read
    /// survives a dead connection.
    pub fn silence(mut self, silence: Duration) -> Builder {
        self.silence_max = silence;
        self
    }

    /// Sets the idle time of TCP keep-alive. After the peer has sent nothing for this long, the operating system probes
    /// the connection once a second. After two probes without a reply it closes the connection. Default: 2 s. `None`
    /// turns keep-alive off. This option has no effect on Unix sockets.
    ///
    /// ```no_run
    /// # async fn example() -> brisk::Result<()> {
    /// use std::time::Duration;
    /// // On a metered network: fewer packets, but a dead peer is noticed later.
    /// let minute = Duration::from_secs(60);
    /// let db = brisk::Client::builder("redis://10.0.0.1")
    ///     .keep_alive(Some(minute))
    ///     .idle_ping(None)
    ///     .reconnect(Duration::from_millis(100), minute)
    ///     .connect()
    ///     .await?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn keep_alive(mut self, idle: Option<Duration>) -> Builder {
        self.tuning.keep_alive = idle;
        self
    }

    /// Sets the idle time after which a shared connection sends PING. The PING shows whether the server still replies.
    /// TCP keep-alive may not show this, because a proxy in between acknowledges packets even after it has lost its
    /// connection to the server. The PING also keeps a proxy from closing an idle connection. Default: 15 s. With
    /// `None`, no PING is sent.
    pub fn idle_ping(mut self, pause: Option<Duration>) -> Builder {
        self.tuning.idle_ping = pause;
        self
    }

    /// Sets the first and the longest pause between attempts to connect. The pause doubles after each failed attempt.
    /// Each pause is shortened by a random amount, at most half of it, so that many clients do not reconnect at the
    /// same time. Default: 10 ms and 2 s. The minimum is 1 ms.
    pub fn reconnect(mut self, first: Duration, longest: Duration) -> Builder {
        let first = first.max(RETRY_MIN);
        self.tuning.retry = (first, longest.max(first));
        self
    }

    /// Does not send the name and version of this library to the server (`CLIENT SETINFO`). Use this option with
    /// proxies and servers that close a connection after an unknown command.
    ///
    /// ```no_run
    /// # async fn example() -> brisk::Result<()> {
    /// let db = brisk::Client::builder("redis://10.0.0.1").no_client_info().connect().await?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn no_client_info(mut self) -> Builder {
        self.tuning.announces = false;
        self
    }

    /// Makes [`Builder::connect`] return without waiting for the server. Connections are opened in the background, and
    /// commands wait for them within their time limits. A program can then start while its server is down. A wrong
    /// address or password shows up in the errors of commands. Not supported for clusters or for reads from replicas,
    /// because their nodes must be discovered first.
    ///
    /// ```no_run
    /// # async fn example() -> brisk::Result<()> {
    /// let db = brisk::Client::builder("redis://10.0.0.1").lazy().connect().await?;
    /// db.set("k", 1).await?; // The first command that needs the server.
    /// # Ok(())
    /// # }
    /// ```
    pub fn lazy(mut self) -> Builder {
        self.is_lazy = true;
        self
    }

    /// Sets the limit on requests that have no reply yet. Default: 16 MiB per lane. While the budget is full, further
    /// callers wait.
    pub fn budget(mut self, budget: Budget) -> Builder {
        self.budget = budget;
        self
    }

    /// Sets which commands are sent again if the connection is lost before their reply. Default: [`Replay::Reads`].
    pub fn replay(mut self, replay: Replay) -> Builder {
        self.replay = replay;
        self
    }

    /// Sets the name of the connections in `CLIENT LIST`.
    pub fn name(mut self, name: impl Into<String>) -> Builder {
        self.name = Some(name.into());
        self
    }

    /// Sets the user and password. They take precedence over those in the URL.
    pub fn login(mut self, user: impl Into<String>, password: impl Into<String>) -> Builder {
        self.credentials = Some(credentials::Source::fixed(Login::new(user, password)));
        self
    }

    /// Sets a source of logins that may change. It takes precedence over the fixed login in the URL. Each new
    /// connection uses the current login. Open shared connections send AUTH between commands, and no command fails
    /// because of this. If the server rejects the AUTH, the connection keeps its previous login and tries again later.
    /// A [session](Session) and a [subscriber](crate::Subscriber) keep the login they were connected with.
    pub fn credentials(mut self, credentials: impl Credentials) -> Builder {
        self.credentials = Some(credentials::Source::changing(credentials));
        self
    }

    /// Returns a builder for a client of the primary that Redis Sentinel names. Pass the addresses of the sentinels,
    /// `host:port`, and the name of the service. The URL `redis-sentinel://host:port,host:port/service` does the same.
    ///
    /// Each connection gets the address of the primary from the sentinels. After a failover, the connections to the
    /// former primary are closed. Commands that were not sent go to the new primary. Commands without a reply fail or
    /// are sent again, as after a lost connection; see [`Builder::replay`]. A write that a replica rejects is sent
    /// again, since it was not executed.
    ///
    /// ```no_run
    /// # async fn example() -> brisk::Result<()> {
    /// let sentinels = ["10.0.0.1:26379", "10.0.0.2:26379", "10.0.0.3:26379"];
    /// let db = brisk::Builder::sentinel(sentinels, "mymaster").login("app", "secret").connect().await?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn sentinel<S: AsRef<str>>(
        sentinels: impl IntoIterator<Item = S>,
        service: impl Into<String>,
    ) -> Builder {
        let builder = Builder::new("");
        let url = Url::of_service(sentinels, service.into());
        Builder { url, ..builder }
    }

    /// Sets the login for the sentinels. Default: `sentinelUser` and `sentinelPass` in the URL, or no login.
    pub fn sentinel_login(
        mut self,
        user: impl Into<String>,
        password: impl Into<String>,
    ) -> Builder {
        self.sentinel_login = Some(Login::new(user, password));
        self
    }

    /// Sets the database. It takes precedence over the one in the URL.
    pub fn db(mut self, db: u32) -> Builder {
        self.db = Some(db);
        self
    }

    /// Sets the version of the protocol, 2 or 3. Default: 3, or 2 if the server does not support RESP3.
    pub fn protocol(mut self, version: u8) -> Builder {
        self.protocol = Some(version);
        self
    }

    /// Connects to a cluster, like a URL that begins with `redis-cluster://`. The URL may name several nodes, separated
    /// by commas. One reachable node is enough; the client discovers the others through it.
    ///
    /// A command is sent to the node that has its keys. A command without a key is sent to the primary that has the
    /// first slot. For commands that concern all nodes (DBSIZE, SCAN, KEYS, FLUSHALL, SCRIPT LOAD …), use
    /// [`Client::primaries`].
    ///
    /// MGET, MSET, DEL, UNLINK, EXISTS and TOUCH are split if their keys are in several slots, and a
    /// [batch](Client::batch) is split if its keys belong to several nodes. A split command is not atomic, not even
    /// MSET. Any other command, and a transaction, fails if its keys are in several slots, and nothing is sent.
    ///
    /// ```no_run
    /// # async fn example() -> brisk::Result<()> {
    /// let db = brisk::Client::connect("redis-cluster://10.0.0.1:7000,10.0.0.2:7000").await?;
    /// db.mset([("a", 1), ("b", 2)]).await?;
    /// let sizes: i64 = {
    ///     let mut sum = 0;
    ///     for node in db.primaries() {
    ///         sum += node.dbsize().await?;
    ///     }
    ///     sum
    /// };
    /// # Ok(())
    /// # }
    /// ```
    pub fn cluster(mut self) -> Builder {
        self.is_cluster = true;
        self
    }

    /// Adds the address of a node (`host:port`), through which the client can discover a cluster, or a primary and its
    /// replicas.
    ///
    /// If the server is not a cluster, the client sends ROLE to the node. A replica's reply names the primary, so the
    /// client finds the primary, even after a failover.
    pub fn seed(mut self, address: &str) -> Builder {
        self.seeds.push(address::parse(address));
        self
    }

    /// Sets which nodes receive commands that only read. Default: [`ReadFrom::Primary`].
    ///
    /// This option works in a cluster, with Sentinel, and with a single primary whose reply to ROLE lists its replicas.
    /// In the last case, also add some of the replicas as [seeds](Builder::seed), so that the client finds the current
    /// primary even if the primary in the URL is unreachable.
    ///
    /// ```no_run
    /// # async fn example() -> brisk::Result<()> {
    /// use brisk::{Client, ReadFrom};
    /// let db = Client::builder("redis-sentinel://10.0.0.1:26379,10.0.0.2:26379/orders")
    ///     .read_from(ReadFrom::PreferReplica)
    ///     .connect()
    ///     .await?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn read_from(mut self, read_from: ReadFrom) -> Builder {
        self.read_from = read_from;
        self
    }

    /// Sets the availability zone of this client, for [`ReadFrom::Nearest`].
    pub fn zone(mut self, zone: impl Into<String>) -> Builder {
        self.zone = Some(zone.into());
        self
    }

    /// Translates the host and port that nodes announce for each other into an address that this client can reach.
    pub fn map_addresses(
        mut self,
        map: impl Fn(&str, u16) -> (String, u16) + Send + Sync + 'static,
    ) -> Builder {
        self.addresses = Some(AddressMap(Arc::new(map)));
        self
    }

    /// Uses TLS with these settings. Without this option, a URL that begins with `rediss://` or `valkeys://` uses the
    /// defaults of [`Tls::new`](crate::tls::Tls::new).
    #[cfg(feature = "tls")]
    pub fn tls(mut self, tls: crate::tls::Tls) -> Builder {
        self.tls = Some(tls);
        self
    }

    /// Adds an [`Observer`] that receives events about commands and connections. Call it again to add more observers.
    pub fn observer(mut self, observer: impl Observer) -> Builder {
        self.observers.add(observer);
        self
    }

    /// Connects. Call it within a tokio runtime, which then runs the connections. Returns when the first connection is
    /// open; the others are opened in the background.
    ///
    /// # Errors
    /// [`Kind::Invalid`] if the options are invalid or contradict each other. Any other error means that the server
    /// cannot be reached, or that it rejects the connection.
    pub async fn connect(self) -> Result<Client> {
        let handle = Handle::try_current().map_err(|_| {
            Error::new(Kind::Invalid, "no tokio runtime on this thread: use connect_blocking")
        })?;
        let options = self.options(Home::of(&handle).await?)?;
        let first = options.first().await?;
        Ok(options.start(&handle, first, None))
    }

    /// Connects, and runs the connections on the client's own thread. Use it in programs without a runtime, together
    /// with [`Command::wait`](crate::Command::wait).
    ///
    /// # Errors
    /// The errors of [`Builder::connect`], and [`Kind::Invalid`] if the thread cannot be started.
    pub fn connect_blocking(self) -> Result<Client> {
        let options = self.options(Home::default())?;
        let runtime = OwnRuntime::start()?;
        let (sender, receiver) = std::sync::mpsc::sync_channel(1);
        let handle = runtime.handle.clone();
        let opening = options.clone();
        handle.spawn(async move {
            // The caller may have stopped waiting.
            let _ = sender.send(opening.first().await);
        });
        let ended = |_| Error::new(Kind::Closed, "the thread of the client has ended");
        let first = receiver.recv().map_err(ended)??;
        Ok(options.start(&handle, first, Some(runtime)))
    }

    fn options(self, home: Home) -> Result<ClientOptions> {
        #[cfg_attr(not(feature = "tls"), expect(unused_mut, reason = "TLS changes it"))]
        let mut url = self.url?;
        #[cfg(feature = "tls")]
        let tls = tls_client(&mut url, self.tls)?;
        #[cfg(not(feature = "tls"))]
        if url.is_tls() {
            return Err(without_tls());
        }
        let invalid = |text: &str| Error::new(Kind::Invalid, text.to_owned());
        let wanted = self.lanes.or(url.pool.map(Lanes::Pool)).or(url.lanes.map(Lanes::Count));
        let (lanes, is_pool) = wanted.unwrap_or_default().counted()?;
        let protocol = self.protocol.or(url.protocol);
        if protocol.is_some_and(|version| !matches!(version, 2 | 3)) {
            return Err(invalid("the protocol version must be 2 or 3"));
        }
        let mut seeds = all_seeds(&url, self.seeds)?;
        let db = self.db.unwrap_or(url.db);
        let is_cluster = self.is_cluster || url.is_cluster;
        if is_cluster && db != 0 {
            return Err(invalid("a cluster has only database 0"));
        }
        let has_sentinels = url.service.is_some();
        if has_sentinels && !seeds.is_empty() {
            return Err(invalid("the additional hosts in the URL are sentinels, not nodes"));
        }
        let is_several = !seeds.is_empty() || self.read_from != ReadFrom::Primary;
        if self.addresses.is_some() && (has_sentinels || !(is_cluster || is_several)) {
            return Err(invalid("addresses are translated only if nodes are discovered"));
        }
        seeds.insert(0, url.address.clone());
        let ours = Login { user: url.user, password: url.password };
        let mut setup = Setup {
            observed: self.observers.watch(&url.address, db),
            address: url.address,
            #[cfg(feature = "tls")]
            tls,
            destination: Destination::Fixed,
            credentials: self.credentials.unwrap_or_else(|| credentials::Source::fixed(ours)),
            db,
            name: self.name.or(url.name),
            protocol,
            connect_timeout: self.connect_timeout,
            readonly: false,
            silence_max: self.silence_max,
            tracking: None,
            home,
            tuning: self.tuning,
        };
        if let Some(Service { name, sentinels }) = url.service {
            let login = self.sentinel_login.unwrap_or(url.sentinel_login);
            let credentials = credentials::Source::fixed(login);
            let theirs = Setup { db: 0, credentials, ..setup.clone() };
            setup.destination =
                Destination::Primary(Arc::new(Sentinels::new(name, sentinels, theirs)));
        }
        let timeout = self.timeout.unwrap_or(Some(url.timeout.unwrap_or(TIMEOUT)));
        setup.tuning.limit_unacked(self.silence_max, timeout);
        let Budget { bytes: bytes_max, when_full } = self.budget;
        let bounds = Bounds { bytes_max, when_full, timeout, replay: self.replay };
        let source = source(&setup.destination, is_several, is_cluster);
        let (read_from, zone, addresses) = (self.read_from, self.zone, self.addresses);
        let cluster = source
            .map(|source| Arc::new(ClusterOptions { source, seeds, read_from, zone, addresses }));
        if self.is_lazy && cluster.is_some() {
            return Err(invalid(
                "a client for several nodes cannot be lazy: it must discover them first",
            ));
        }
        Ok(ClientOptions {
            setup: Arc::new(setup),
            bounds,
            lanes,
            is_pool,
            replay: self.replay,
            cluster,
            is_lazy: self.is_lazy,
        })
    }
}

/// The seeds of the URL, and those added by `Builder::seed`.
fn all_seeds(url: &Url, more: Vec<Result<Url>>) -> Result<Vec<Address>> {
    let mut seeds = url.seeds.clone();
    for seed in more {
        seeds.push(match seed?.address {
            Address::Tcp { host, port, .. } => Address::Tcp { host, port, tls: url.is_tls() },
            address => address,
        });
    }
    Ok(seeds)
}

/// The source of the cluster map, if the client connects to several nodes.
fn source(destination: &Destination, is_several: bool, is_cluster: bool) -> Option<Source> {
    match destination {
        Destination::Primary(sentinels) if is_several => {
            Some(Source::Sentinels(Arc::clone(sentinels)))
        }
        _ if is_cluster => Some(Source::Slots),
        Destination::Primary(_) | Destination::Sentinel(_) => None,
        Destination::Fixed => is_several.then_some(Source::Roles),
    }
}

/// The TLS client, if TLS is used.
#[cfg(feature = "tls")]
fn tls_client(url: &mut Url, wanted: Option<crate::tls::Tls>) -> Result<Option<TlsClient>> {
    if wanted.is_some() && !url.wants_tls() {
        return Err(Error::new(Kind::Invalid, "TLS is not supported over Unix sockets"));
    }
    if !url.is_tls() {
        return Ok(None);
    }
    let wanted = wanted.unwrap_or_default();
    let wanted = if url.is_insecure { wanted.insecure() } else { wanted };
    TlsClient::new(&wanted).map(Some)
}

impl Client {
    /// Runs a future on the runtime of the connections, because the caller may have no runtime.
    pub(crate) async fn run_on_runtime<T: Send + 'static>(
        &self,
        work: impl Future<Output = Result<T>> + Send + 'static,
    ) -> Result<T> {
        self.inner.options.home().check()?;
        let done = self.inner.handle.spawn(work).await;
        done.unwrap_or_else(|_| Err(Error::new(Kind::Closed, "the runtime has ended")))
    }

    /// Opens a session. In a cluster, the session connects to the node of the key.
    pub(crate) async fn open_session(&self, key: Option<&[u8]>) -> Result<Session> {
        let (setup, handle) = self.setup(key);
        let opening = Arc::clone(&setup);
        let connection = self.run_on_runtime(async move { open(&opening).await }).await?;
        let lane = self.inner.options.start_lane(
            &handle,
            &setup,
            Some(connection),
            None,
            Shared::new(self.inner.options.bounds),
        );
        // If the client has been closed by now, `attach` fails, and dropping the session closes the connection.
        let session = Session::new(lane.clone(), self.inner.timeout, setup);
        self.attach(lane.shared())?;
        Ok(session)
    }

    /// The limits of a lane of this client.
    pub(crate) fn bounds(&self) -> Bounds {
        self.inner.options.bounds
    }

    /// The cluster, as a weak reference.
    pub(crate) fn weak_cluster(&self) -> Option<Weak<Cluster>> {
        match &self.inner.route {
            Route::Cluster(cluster) => Some(Arc::downgrade(cluster)),
            _ => None,
        }
    }

    /// The setup of a connection of this client (in a cluster, to the node that has the key), and the runtime that runs
    /// the client's tasks.
    pub(crate) fn setup(&self, key: Option<&[u8]>) -> (Arc<Setup>, Handle) {
        let setup = match &self.inner.route {
            Route::Server(_) => Arc::clone(&self.inner.options.setup),
            Route::Cluster(cluster) => cluster.setup_for(key),
            Route::Member(cluster, member) => cluster.setup_at(member),
        };
        (setup, self.inner.handle.clone())
    }
}

/// The options of a client, validated.
#[derive(Clone, Debug)]
pub(super) struct ClientOptions {
    setup: Arc<Setup>,
    bounds: Bounds,
    lanes: usize,
    /// True if the lanes are a pool.
    is_pool: bool,
    replay: Replay,
    /// The options of the cluster, if the client connects to a cluster or to several nodes.
    cluster: Option<Arc<ClusterOptions>>,
    /// True if connecting does not wait for a server.
    is_lazy: bool,
}

/// The result that `connect` waits for: the first connection, or the cluster map. Nothing for a lazy client.
enum First {
    Nothing,
    Connection(Box<Connection>),
    Cluster(Box<Discovered>, Arc<ClusterOptions>),
}

impl ClientOptions {
    async fn first(&self) -> Result<First> {
        match &self.cluster {
            None if self.is_lazy => Ok(First::Nothing),
            None => Ok(First::Connection(Box::new(open(&self.setup).await?))),
            Some(wanted) => {
                let found = cluster::find(&self.setup, wanted).await?;
                Ok(First::Cluster(Box::new(found), Arc::clone(wanted)))
            }
        }
    }

    fn start(self, handle: &Handle, first: First, runtime: Option<OwnRuntime>) -> Client {
        let route = match first {
            First::Cluster(found, wanted) => {
                let wanted = ClusterOptions::clone(&wanted);
                Route::Cluster(Cluster::start(self.clone(), &self.setup, wanted, handle, *found))
            }
            First::Connection(first) => {
                Route::Server(self.node(handle, &self.setup, Some(*first), None))
            }
            First::Nothing => Route::Server(self.node(handle, &self.setup, None, None)),
        };
        let inner = Inner {
            route,
            observed: self.setup.observed.clone(),
            replay: self.replay,
            timeout: self.bounds.timeout,
            options: self.clone(),
            handle: handle.clone(),
            watcher: Watcher::start(&self.setup, handle),
            runtime: runtime.map(Arc::new),
            attached: Arc::default(),
            bulk: OnceLock::new(),
        };
        Client { inner: Arc::new(inner), is_bulk: false }
    }

    /// The server, as `Debug` shows it.
    pub(super) fn server(&self) -> String {
        self.setup.server()
    }

    /// The time limit of a command without its own limit.
    pub(super) fn timeout(&self) -> Option<Duration> {
        self.bounds.timeout
    }

    pub(super) fn is_pool(&self) -> bool {
        self.is_pool
    }

    pub(super) fn home(&self) -> Home {
        self.setup.home
    }

    /// The lanes to a server. The first lane may already have its connection.
    pub(super) fn node(
        &self,
        handle: &Handle,
        setup: &Arc<Setup>,
        mut first: Option<Connection>,
        watch: Option<&Arc<dyn Watch>>,
    ) -> Node {
        let pool = self.is_pool.then(|| Arc::new(Pool::new(self.bounds, self.lanes)));
        let lane = |at| {
            let reconnect = ReconnectSettings { watch: watch.cloned() };
            let shared = match &pool {
                Some(pool) => Shared::in_pool(self.bounds, PoolSlot::new(pool, at)),
                None => Shared::new(self.bounds),
            };
            self.start_lane(handle, setup, first.take(), Some(reconnect), shared)
        };
        Node::new((0..self.lanes).map(lane).collect(), pool.clone())
    }

    /// Lanes for large values. Their connections are opened in the background.
    pub(super) fn bulk(&self, handle: &Handle) -> Node {
        let lane = |_| {
            let reconnect = Some(ReconnectSettings { watch: None });
            self.start_lane(handle, &self.setup, None, reconnect, Shared::new(self.bounds))
        };
        Node::new((0..BULK_LANES).map(lane).collect(), None)
    }

    /// Starts a lane. With `reconnect`, it reconnects after a lost connection.
    fn start_lane(
        &self,
        handle: &Handle,
        setup: &Arc<Setup>,
        first: Option<Connection>,
        reconnect: Option<ReconnectSettings>,
        shared: Shared,
    ) -> Lane {
        let shared = Arc::new(shared);
        let task = Task {
            shared: Arc::clone(&shared),
            setup: Arc::clone(setup),
            silence_max: self.setup.silence_max,
            reconnects: reconnect.is_some(),
            push_handler: None,
            watch: reconnect.and_then(|reconnect| reconnect.watch),
        };
        handle.spawn(task.run(first));
        Lane::new(shared)
    }
}

/// Settings of a lane that reconnects.
struct ReconnectSettings {
    watch: Option<Arc<dyn Watch>>,
}

/// A thread that runs the connections of a client.
#[derive(Debug)]
pub(super) struct OwnRuntime {
    handle: Handle,
    /// Dropping the sender stops the thread.
    _stop: oneshot::Sender<()>,
}

impl OwnRuntime {
    fn start() -> Result<OwnRuntime> {
        let failed =
            |error: std::io::Error| Error::new(Kind::Invalid, format!("no thread: {error}"));
        let runtime: Runtime =
            tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(failed)?;
        let handle = runtime.handle().clone();
        let (stop, stopped) = oneshot::channel::<()>();
        let run = move || {
            // Ends when the client is dropped.
            let _ = runtime.block_on(stopped);
        };
        thread::Builder::new().name("brisk-client".to_owned()).spawn(run).map_err(failed)?;
        Ok(OwnRuntime { handle, _stop: stop })
    }
}

#[cfg(all(test, not(feature = "tls")))]
mod tests {
    use super::*;

    #[test]
    fn a_tls_url_without_the_tls_feature_is_an_error_that_names_the_feature() {
        for url in ["rediss://h", "valkeys://h", "rediss://h#insecure"] {
            let error = Client::builder(url).options(Home::default()).unwrap_err();
            assert_eq!(error.kind(), Kind::Invalid);
            assert!(error.to_string().contains("feature `tls`"), "{error}");
        }
    }
}
