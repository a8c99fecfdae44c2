//! The client: shared connections to one server or to the nodes of a cluster, and the choice of a connection for each
//! command.
//!
//! | part | what it is |
//! |---|---|
//! | `builder` | the options of a client, and connecting |
//! | [`node`] | the lanes to one server |
//! | [`cluster`] | the nodes of a cluster |
//! | [`sentinel`] | finds the primary through Sentinel |

mod attached;
mod builder;
pub(crate) mod cluster;
pub(crate) mod node;
pub(crate) mod sentinel;

pub(crate) use attached::CloseWithClient;
pub use builder::{Budget, Builder, Lanes};
pub(crate) use cluster::Cluster;
pub use cluster::read_from::ReadFrom;

use crate::command::sealed::Target;
use crate::command::{Command, Replay, SendPlan};
use crate::error::{Error, Kind, Result};
use crate::lane::cell::Submitted;
use crate::observe::{Counts, ObservedServer};
use crate::request::Request;
use crate::wait::Home;
use attached::Attached;
use cluster::map::Member;
use node::Node;
use std::fmt;
use std::sync::{Arc, OnceLock};
use std::task::Waker;
use std::time::Duration;

/// A client for a server or a [cluster](Builder::cluster). It is cheap to clone: clones share connections.
///
/// Commands are methods. Each method returns a [`Command`], which is a future; nothing is sent before the future is
/// polled. All callers share a few connections, called *lanes*; commands that are ready at the same time are sent
/// together.
///
/// # Order
///
/// Commands with the same first key use the same lane and are executed in the order in which they were first polled.
/// There are three exceptions. A command may be overtaken:
///
/// - while it waits for room in the [budget](Builder::budget);
/// - when it is sent again after its connection was lost;
/// - in a cluster, when its slot moves to another node, for example in a failover.
///
/// If the order matters in these cases, await one command before you poll the next, or send a transaction.
///
/// # Fork
///
/// A forked child process has the sockets of its parent's clients, but none of the threads that run them. The child
/// must not use these clients, because the replies to its requests would go to the parent. Connect a new client in the
/// child.
///
/// # Example
///
/// ```no_run
/// # async fn example() -> brisk::Result<()> {
/// let db = brisk::Client::connect("redis://127.0.0.1").await?;
/// db.set("user:1", "ana").await?;
/// let name: Option<String> = db.get("user:1").await?;
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct Client {
    inner: Arc<Inner>,
    /// Sends commands over the lanes for large values.
    is_bulk: bool,
}

struct Inner {
    route: Route,
    /// The observers.
    observed: Option<Arc<ObservedServer>>,
    replay: Replay,
    timeout: Option<Duration>,
    /// The options for opening connections.
    options: builder::ClientOptions,
    /// The runtime that runs the connections.
    handle: tokio::runtime::Handle,
    /// The task that is notified of failovers, if the client finds the primary through Sentinel.
    watcher: Option<sentinel::Watcher>,
    /// Sessions, subscribers and caches, which are closed together with the client.
    attached: Arc<Attached>,
    /// Lanes for large values, created on first use.
    bulk: OnceLock<Node>,
    /// Runs the lanes if the client was created without a runtime.
    runtime: Option<Arc<builder::OwnRuntime>>,
}

/// Shows the server, the number of connections, and the number of commands without a reply, but no command.
impl fmt::Debug for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut shown = f.debug_struct("Client");
        match &self.inner.route {
            Route::Server(_) => shown.field("server", &self.inner.options.server()),
            Route::Cluster(cluster) => shown.field("primaries", &cluster.primaries().len()),
            Route::Member(_, member) => shown.field("server", &format_args!("{}", member.address)),
        };
        let lanes = self.counts().len();
        shown.field("lanes", &lanes).field("pending", &self.pending()).finish_non_exhaustive()
    }
}

/// Where commands are sent.
enum Route {
    Server(Node),
    /// To the node that has their keys.
    Cluster(Arc<Cluster>),
    /// To this node of a cluster.
    Member(Arc<Cluster>, Arc<Member>),
}

impl Client {
    /// Returns a builder for a client of the server at this address: a URL, or `host:port`.
    ///
    /// | URL | server |
    /// |---|---|
    /// | `redis://[[user][:password]@]host[:port][/db][?…]` | a server over TCP; `valkey://` is the same |
    /// | `rediss://…`, `valkeys://…` | a server over TLS |
    /// | `unix://[[user][:password]@]/path[?…]`, or a path | a server on a Unix socket |
    /// | `redis-cluster://host[:port][,host[:port]…]` | a [cluster](Builder::cluster), through some of its nodes |
    /// | `redis-sentinel://host[:port][,host[:port]…]/service[/db]` | the primary that [Sentinel](Builder::sentinel) names |
    ///
    /// `rediss-cluster://` and `rediss-sentinel://` use TLS. A login without a colon is a password, as in Lettuce. In a
    /// user name or password, percent-encode the characters `/?#@:%` (`/` is `%2F`). Error texts never show any part of
    /// the URL, because it may contain a password.
    ///
    /// Query parameters are `db`, `user`, `pass`, `protocol` (2 or 3), `timeout` (`500ms`, `3s`), `clientName`,
    /// `lanes`, `pool` and `insecure`; with Sentinel also `sentinelUser` and `sentinelPass`. An unknown parameter is an
    /// error. The methods of [`Builder`] take precedence over the URL.
    pub fn builder(url: &str) -> Builder {
        Builder::new(url)
    }

    /// Connects with the default options. Call it within a tokio runtime.
    ///
    /// # Errors
    /// The server cannot be reached, or rejects the connection.
    pub async fn connect(url: &str) -> Result<Client> {
        Client::builder(url).connect().await
    }

    /// Builds a command by name, for commands without a method: `db.raw("FT.SEARCH").arg("index").arg("query")`.
    ///
    /// The client assumes that the command changes data. Add keys with [`Command::key`], so that the client can route
    /// the command.
    pub fn raw<T>(&self, name: &str) -> Command<&Client, T> {
        Command::new(Request::named(name)).on(self)
    }

    /// Returns a handle to the same client that uses a separate connection for large values. On a shared connection, a
    /// large reply delays all replies after it. Use this handle for values of about 64 KiB or more, in requests or in
    /// replies.
    ///
    /// Commands on one key stay in order among the commands that are sent through `bulk`, and among those that are sent
    /// through other handles. Between these two groups, the order is undefined unless one command is awaited before the
    /// other is polled.
    ///
    /// The separate connection is opened when the first command needs it. In a cluster, and with [`Lanes::Pool`], the
    /// handle uses the client's usual connections instead. O(1).
    ///
    /// ```no_run
    /// # async fn example(db: brisk::Client, image: Vec<u8>) -> brisk::Result<()> {
    /// db.bulk().set("image:7", &image).await?;
    /// let image: Option<brisk::Bytes> = db.bulk().get("image:7").await?;
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn bulk(&self) -> Client {
        Client { inner: Arc::clone(&self.inner), is_bulk: true }
    }

    /// Closes all connections, including those of clones, of handles for single nodes, and of sessions, subscribers and
    /// caches. Pending commands fail with [`crate::Kind::Closed`].
    pub fn close(&self) {
        match &self.inner.route {
            Route::Server(node) => {
                node.close();
                // If there are no bulk lanes yet, this call prevents them from being created later.
                self.inner.bulk.get_or_init(|| Node::new(Vec::new(), None)).close();
            }
            Route::Cluster(cluster) | Route::Member(cluster, _) => cluster.close(),
        }
        self.inner.watcher.iter().for_each(sentinel::Watcher::stop);
        self.inner.attached.close_all();
    }

    /// Reports whether a long-lived connection stays connected to the same node even if the roles of the nodes change.
    pub(crate) fn stays_with_a_node(&self) -> bool {
        matches!(&self.inner.route, Route::Cluster(cluster) if !cluster.finds_primaries())
    }

    /// Registers an object that is closed together with the client.
    ///
    /// # Errors
    /// The client is closed.
    pub(crate) fn attach(&self, one: &Arc<impl CloseWithClient + 'static>) -> Result<()> {
        self.inner.attached.add(one)
    }

    /// Returns the approximate number of commands without a reply.
    #[must_use]
    pub fn pending(&self) -> usize {
        match &self.inner.route {
            Route::Server(node) => node.pending() + self.inner.bulk.get().map_or(0, Node::pending),
            Route::Cluster(cluster) => cluster.pending(),
            Route::Member(_, member) => member.known_node().map_or(0, Node::pending),
        }
    }

    /// Returns a handle for each primary of the cluster that has slots, ordered by slot, as currently known. Use the
    /// handles for commands that concern a whole node, for example DBSIZE, SCAN, FLUSHALL or SCRIPT LOAD.
    ///
    /// A handle sends commands only to its node. A command on a key of another node fails with `MOVED`. Without a
    /// cluster, the only handle is the client itself.
    ///
    /// ```no_run
    /// # async fn example(db: brisk::Client) -> brisk::Result<()> {
    /// for node in db.primaries() {
    ///     node.flushall().await?;
    /// }
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn primaries(&self) -> Vec<Client> {
        match &self.inner.route {
            Route::Server(_) | Route::Member(..) => vec![self.clone()],
            Route::Cluster(cluster) => {
                cluster.primaries().into_iter().map(|member| self.at(cluster, member)).collect()
            }
        }
    }

    /// Returns a handle for the primary that has the slot of a key, as currently known; see [`Client::primaries`].
    #[must_use]
    pub fn node_for(&self, key: impl crate::arg::ToArg) -> Client {
        match &self.inner.route {
            Route::Cluster(cluster) => {
                let mut request = Request::new("", Default::default());
                request.key(key);
                let member = cluster.primary_of(request.first_key());
                member.map_or_else(|| self.clone(), |member| self.at(cluster, member))
            }
            Route::Server(_) | Route::Member(..) => self.clone(),
        }
    }

    fn at(&self, cluster: &Arc<Cluster>, member: Arc<Member>) -> Client {
        let inner = Inner {
            route: Route::Member(Arc::clone(cluster), member),
            observed: self.inner.observed.clone(),
            replay: self.inner.replay,
            timeout: self.inner.timeout,
            options: self.inner.options.clone(),
            handle: self.inner.handle.clone(),
            runtime: self.inner.runtime.clone(),
            watcher: None,
            attached: Arc::clone(&self.inner.attached),
            bulk: OnceLock::new(),
        };
        Client { inner: Arc::new(inner), is_bulk: false }
    }

    /// The counters of each lane.
    pub(crate) fn counts(&self) -> Vec<Counts> {
        match &self.inner.route {
            Route::Server(node) => {
                let bulk = self.inner.bulk.get().into_iter();
                node.counts().chain(bulk.flat_map(Node::counts)).collect()
            }
            Route::Cluster(cluster) => cluster.counts(),
            Route::Member(_, member) => {
                member.known_node().map_or_else(Vec::new, |node| node.counts().collect())
            }
        }
    }
}

impl Target for Client {
    #[expect(private_interfaces, reason = "not nameable or callable outside this crate")]
    fn submit(&self, plan: &SendPlan<'_>, waker: &Waker) -> Result<Submitted> {
        match &self.inner.route {
            Route::Server(node) => {
                let node = match self.is_bulk && !node.is_pool() {
                    false => node,
                    true => {
                        self.inner.bulk.get_or_init(|| self.inner.options.bulk(&self.inner.handle))
                    }
                };
                node.submit(plan, waker)
            }
            Route::Member(cluster, member) => cluster.submit_to(member, plan, waker),
            Route::Cluster(_) => {
                Err(Error::new(Kind::Invalid, "commands go to the cluster, not to a lane"))
            }
        }
    }

    #[expect(private_interfaces, reason = "not nameable or callable outside this crate")]
    #[inline]
    fn cluster(&self) -> Option<&Cluster> {
        match &self.inner.route {
            Route::Cluster(cluster) => Some(cluster),
            _ => None,
        }
    }

    #[expect(private_interfaces, reason = "not nameable or callable outside this crate")]
    #[inline]
    fn observed(&self, _: &SendPlan<'_>) -> Option<&Arc<ObservedServer>> {
        self.inner.observed.as_ref()
    }

    fn default_replay(&self) -> Replay {
        self.inner.replay
    }

    fn default_timeout(&self) -> Option<Duration> {
        self.inner.timeout
    }

    #[expect(private_interfaces, reason = "not nameable or callable outside this crate")]
    #[inline]
    fn home(&self) -> Home {
        self.inner.options.home()
    }
}
