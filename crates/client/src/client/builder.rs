//! What a client is to be.

use super::cluster::read_from::ReadFrom;
use super::cluster::refresh::Found;
use super::cluster::topology::AddressMap;
use super::cluster::{self, Cluster, Wanted};
use super::node::Node;
use super::{Client, Inner, Route};
use crate::address::{self, Address, Secret, Url};
use crate::command::Replay;
use crate::error::{Error, Kind, Result};
use crate::lane::Lane;
use crate::lane::cell::{Bounds, Shared, WhenFull};
use crate::lane::connect::{Connection, Setup, open};
use crate::lane::driver::{Task, Watch};
use crate::session::Session;
use std::sync::{Arc, Weak};
use std::thread;
use std::time::Duration;
use tokio::runtime::{Handle, Runtime};
use tokio::sync::oneshot;

/// Time for a command, and for connecting.
const TIMEOUT: Duration = Duration::from_secs(3);
/// A peer that says nothing although it should is given up.
const SILENCE_MAX: Duration = Duration::from_secs(4);
const BUDGET_BYTES: usize = 16 << 20;
/// With [`Lanes::Auto`].
const LANES_MAX: usize = 4;
/// More than this on one server is a mistake.
const LANES_BOUND: usize = 1024;

/// How many connections all callers share.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Lanes {
    /// As many as there are processors, at most four.
    #[default]
    Auto,
    /// So many.
    Count(usize),
}

/// How many bytes of requests may wait for their replies, each lane for itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Budget {
    bytes: usize,
    when_full: WhenFull,
}

impl Budget {
    /// At most so many bytes; who comes then waits for others' replies.
    #[must_use]
    pub fn bytes(bytes: usize) -> Budget {
        Budget { bytes, when_full: WhenFull::Wait }
    }

    /// What happens when there is no room.
    #[must_use]
    pub fn when_full(mut self, when_full: WhenFull) -> Budget {
        self.when_full = when_full;
        self
    }
}

/// What a client is to be; [`Client::builder`] begins it.
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
    login: Option<(Option<String>, Secret)>,
    db: Option<u32>,
    protocol: Option<u8>,
    is_cluster: bool,
    seeds: Vec<Result<Url>>,
    read_from: ReadFrom,
    zone: Option<String>,
    addresses: Option<AddressMap>,
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
            login: None,
            db: None,
            protocol: None,
            is_cluster: false,
            seeds: Vec::new(),
            read_from: ReadFrom::default(),
            zone: None,
            addresses: None,
        }
    }

    /// How many connections all callers share. Default: [`Lanes::Auto`].
    pub fn lanes(mut self, lanes: Lanes) -> Builder {
        self.lanes = Some(lanes);
        self
    }

    /// Time until a reply has to be there. Default: 3 s. The error says whether the command was sent.
    pub fn timeout(mut self, timeout: Duration) -> Builder {
        self.timeout = Some(Some(timeout));
        self
    }

    /// Commands wait for as long as it takes, unless one says otherwise.
    pub fn no_timeout(mut self) -> Builder {
        self.timeout = Some(None);
        self
    }

    /// Time for a connection until it can be used. Default: 3 s.
    pub fn connect_timeout(mut self, timeout: Duration) -> Builder {
        self.connect_timeout = timeout;
        self
    }

    /// A connection on which nothing came for so long, though replies should, is given up and made anew.
    /// Default: 4 s. Not before the time of the command that waits, if that has one of its own.
    pub fn silence(mut self, silence: Duration) -> Builder {
        self.silence_max = silence;
        self
    }

    /// How much may wait. Default: 16 MiB for each lane, and who comes then waits.
    pub fn budget(mut self, budget: Budget) -> Builder {
        self.budget = budget;
        self
    }

    /// What happens to commands that were sent when the connection was lost. Default: [`Replay::Reads`].
    pub fn replay(mut self, replay: Replay) -> Builder {
        self.replay = replay;
        self
    }

    /// The connections' name, for `CLIENT LIST`.
    pub fn name(mut self, name: impl Into<String>) -> Builder {
        self.name = Some(name.into());
        self
    }

    /// The user and the password, instead of the URL's.
    pub fn login(mut self, user: impl Into<String>, password: impl Into<String>) -> Builder {
        self.login = Some((Some(user.into()), Secret(password.into())));
        self
    }

    /// The database, instead of the URL's.
    pub fn db(mut self, db: u32) -> Builder {
        self.db = Some(db);
        self
    }

    /// The protocol's version, 2 or 3. Default: 3, and 2 if the server does not know that.
    pub fn protocol(mut self, version: u8) -> Builder {
        self.protocol = Some(version);
        self
    }

    /// The server is a node of a cluster, as with a URL that begins with `redis-cluster://`. The others are found by
    /// it; what is behind `redis://` may be several nodes, separated by commas, of which one has to be there.
    ///
    /// A command goes to the node of its keys. One without a key goes to the primary that has the first slot: what
    /// concerns all of them (DBSIZE, SCAN, KEYS, FLUSHALL, SCRIPT LOAD …) is done with [`Client::primaries`].
    /// MGET, MSET, DEL, UNLINK, EXISTS and TOUCH are split if their keys are of several slots, and so is a
    /// [batch](Client::batch) if they are of several nodes: then it is not one step, MSET neither. Another command
    /// or a transaction with keys of several slots is an error, and nothing is sent.
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

    /// One more node of the cluster, by which the others can be found: `host:port`.
    pub fn seed(mut self, address: &str) -> Builder {
        self.seeds.push(address::parse(address));
        self
    }

    /// Who answers commands that only read, in a cluster. Default: [`ReadFrom::Primary`].
    pub fn read_from(mut self, read_from: ReadFrom) -> Builder {
        self.read_from = read_from;
        self
    }

    /// Where this client stands, for [`ReadFrom::Nearest`].
    pub fn zone(mut self, zone: impl Into<String>) -> Builder {
        self.zone = Some(zone.into());
        self
    }

    /// Says where a node can be reached, if that is not where the nodes say: a host and a port for theirs.
    pub fn map_addresses(
        mut self,
        map: impl Fn(&str, u16) -> (String, u16) + Send + Sync + 'static,
    ) -> Builder {
        self.addresses = Some(AddressMap(Arc::new(map)));
        self
    }

    /// Connects, within a tokio runtime, which runs the lanes from then on. Returns when the first lane is
    /// there; the others follow.
    ///
    /// # Errors
    /// [`Kind::Invalid`] for what cannot be; else the server is not there, or refuses.
    pub async fn connect(self) -> Result<Client> {
        let plan = self.plan()?;
        let first = plan.first().await?;
        Ok(plan.start(&Handle::current(), first, None))
    }

    /// Connects, and runs the lanes on a thread of the client's own: for programs without a runtime, which
    /// then [wait](crate::Command::wait) for commands.
    ///
    /// # Errors
    /// As [`Builder::connect`]; and if no thread can be had.
    pub fn connect_blocking(self) -> Result<Client> {
        let plan = self.plan()?;
        let runtime = OwnRuntime::start()?;
        let (sender, receiver) = std::sync::mpsc::sync_channel(1);
        let handle = runtime.handle.clone();
        let opening = plan.clone();
        handle.spawn(async move {
            // Nobody waits any more, perhaps.
            let _ = sender.send(opening.first().await);
        });
        let gone = |_| Error::new(Kind::Closed, "the thread of the client has ended");
        let first = receiver.recv().map_err(gone)??;
        Ok(plan.start(&handle, first, Some(runtime)))
    }

    fn plan(self) -> Result<Plan> {
        let url = self.url?;
        let invalid = |text: &str| Error::new(Kind::Invalid, text.to_owned());
        let lanes = match (self.lanes, url.lanes) {
            (Some(Lanes::Count(count)), _) | (None, Some(count)) => count,
            _ => thread::available_parallelism().map_or(1, usize::from).min(LANES_MAX),
        };
        if !(1..=LANES_BOUND).contains(&lanes) {
            return Err(invalid("lanes are 1 to 1024"));
        }
        let protocol = self.protocol.or(url.protocol);
        if protocol.is_some_and(|version| !matches!(version, 2 | 3)) {
            return Err(invalid("the protocol's version is 2 or 3"));
        }
        let (user, password) = match self.login {
            Some((user, password)) => (user, Some(password)),
            None => (url.user, url.password),
        };
        let mut seeds = url.seeds;
        for seed in self.seeds {
            let tls = matches!(url.address, Address::Tcp { tls: true, .. });
            seeds.push(match seed?.address {
                Address::Tcp { host, port, .. } => Address::Tcp { host, port, tls },
                address => address,
            });
        }
        let db = self.db.unwrap_or(url.db);
        let is_cluster = self.is_cluster || url.is_cluster;
        if is_cluster && db != 0 {
            return Err(invalid("a cluster has database 0 only"));
        }
        let has_wishes = self.read_from != ReadFrom::Primary || self.addresses.is_some();
        if !is_cluster && (!seeds.is_empty() || has_wishes) {
            return Err(invalid("several servers, or who of them answers, are for a cluster"));
        }
        seeds.insert(0, url.address.clone());
        let wanted =
            Wanted { seeds, read_from: self.read_from, zone: self.zone, addresses: self.addresses };
        let setup = Setup {
            address: url.address,
            user,
            password,
            db,
            name: self.name.or(url.name),
            protocol,
            connect_timeout: self.connect_timeout,
            readonly: false,
            silence_max: self.silence_max,
        };
        let timeout = self.timeout.unwrap_or(Some(url.timeout.unwrap_or(TIMEOUT)));
        let bounds =
            Bounds { bytes_max: self.budget.bytes, when_full: self.budget.when_full, timeout };
        let cluster = is_cluster.then(|| Arc::new(wanted));
        Ok(Plan { setup: Arc::new(setup), bounds, lanes, replay: self.replay, cluster })
    }
}

impl Client {
    /// Runs something where the lanes are run: the caller may have no runtime.
    async fn run_there<T: Send + 'static>(
        &self,
        work: impl Future<Output = Result<T>> + Send + 'static,
    ) -> Result<T> {
        let done = self.inner.handle.spawn(work).await;
        done.unwrap_or_else(|_| Err(Error::new(Kind::Closed, "the runtime has ended")))
    }

    /// In a cluster with the node of a key.
    pub(crate) async fn open_session(&self, key: Option<&[u8]>) -> Result<Session> {
        let (setup, handle) = self.setup(key);
        let opening = Arc::clone(&setup);
        let connection = self.run_there(async move { open(&opening).await }).await?;
        let lane = self.inner.plan.start_lane(&handle, &setup, Some(connection), None);
        Ok(Session::new(lane, self.inner.timeout))
    }

    /// The cluster, without keeping it.
    pub(crate) fn weak_cluster(&self) -> Option<Weak<Cluster>> {
        match &self.inner.route {
            Route::Cluster(cluster) => Some(Arc::downgrade(cluster)),
            _ => None,
        }
    }

    /// What a connection of this client is, in a cluster with the node of a key, and where its tasks run.
    pub(crate) fn setup(&self, key: Option<&[u8]>) -> (Arc<Setup>, Handle) {
        let setup = match &self.inner.route {
            Route::Server(_) => Arc::clone(&self.inner.plan.setup),
            Route::Cluster(cluster) => cluster.setup_for(key),
            Route::Member(cluster, member) => cluster.setup_at(member),
        };
        (setup, self.inner.handle.clone())
    }
}

/// What was asked for, checked.
#[derive(Clone, Debug)]
pub(super) struct Plan {
    setup: Arc<Setup>,
    bounds: Bounds,
    lanes: usize,
    replay: Replay,
    /// The cluster that it is, if it is one.
    cluster: Option<Arc<Wanted>>,
}

/// What has to be there before there is a client.
enum First {
    Connection(Box<Connection>),
    Cluster(Box<Found>, Arc<Wanted>),
}

impl Plan {
    async fn first(&self) -> Result<First> {
        match &self.cluster {
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
                let wanted = Wanted::clone(&wanted);
                Route::Cluster(Cluster::start(self.clone(), &self.setup, wanted, handle, *found))
            }
            First::Connection(first) => {
                Route::Server(self.node(handle, &self.setup, Some(*first), None))
            }
        };
        let inner = Inner {
            route,
            replay: self.replay,
            timeout: self.bounds.timeout,
            plan: self.clone(),
            handle: handle.clone(),
            runtime: runtime.map(Arc::new),
        };
        Client { inner: Arc::new(inner) }
    }

    /// Time for a command that has none of its own.
    pub(super) fn timeout(&self) -> Option<Duration> {
        self.bounds.timeout
    }

    /// The lanes to a server, of which the first may have its connection already.
    pub(super) fn node(
        &self,
        handle: &Handle,
        setup: &Arc<Setup>,
        mut first: Option<Connection>,
        watch: Option<&Arc<dyn Watch>>,
    ) -> Node {
        let lane = |_| {
            let keeps = Keeps { watch: watch.cloned() };
            self.start_lane(handle, setup, first.take(), Some(keeps))
        };
        Node::new((0..self.lanes).map(lane).collect())
    }

    /// A lane that is made anew when it is lost, if it is kept.
    fn start_lane(
        &self,
        handle: &Handle,
        setup: &Arc<Setup>,
        first: Option<Connection>,
        keeps: Option<Keeps>,
    ) -> Lane {
        let shared = Arc::new(Shared::new(self.bounds));
        let task = Task {
            shared: Arc::clone(&shared),
            setup: Arc::clone(setup),
            silence_max: self.setup.silence_max,
            reconnects: keeps.is_some(),
            pushed: None,
            watch: keeps.and_then(|keeps| keeps.watch),
        };
        handle.spawn(task.run(first));
        Lane::new(shared)
    }
}

/// How a lane is kept.
struct Keeps {
    watch: Option<Arc<dyn Watch>>,
}

/// A thread that runs the lanes of a client.
#[derive(Debug)]
pub(super) struct OwnRuntime {
    handle: Handle,
    /// Dropped, it ends the thread.
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
