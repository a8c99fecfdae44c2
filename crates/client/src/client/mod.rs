//! The client: shared connections to one server or to the nodes of a cluster, and which of them a command takes.
//!
//! | part | what it is |
//! |---|---|
//! | `builder` | what a client is to be |
//! | [`node`] | the lanes to one server |
//! | [`cluster`] | the nodes of a cluster |
//! | [`sentinel`] | who the primary is, by those that watch it |

mod attached;
mod builder;
pub(crate) mod cluster;
pub(crate) mod node;
pub(crate) mod sentinel;

pub(crate) use attached::Ends;
pub use builder::{Budget, Builder, Lanes};
pub(crate) use cluster::Cluster;
pub use cluster::read_from::ReadFrom;

use crate::command::sealed::Target;
use crate::command::{Command, Replay, Way};
use crate::error::{Error, Kind, Result};
use crate::lane::cell::Submitted;
use crate::observe::{Counts, Watched};
use crate::request::Request;
use crate::wait::Home;
use attached::Attached;
use cluster::map::Member;
use node::Node;
use std::sync::{Arc, OnceLock};
use std::task::Waker;
use std::time::Duration;

/// A client of a server, or of a [cluster](Builder::cluster). Cheap to clone: clones share connections.
///
/// Commands are methods. Each gives a [`Command`], which is a future; nothing is sent before it is polled.
/// Commands of all callers go by a few shared connections (*lanes*), are sent together, and are answered in
/// order. Commands with the same first key take the same lane, so they are executed in the order in which
/// they were polled first. Three exceptions: a command may be overtaken while it waits for room in the
/// [budget](Builder::budget), when it is sent again after its connection was lost, and in a cluster when its slot
/// moves to another node, as in a failover. If the order matters in these cases, await one command before you poll
/// the next, or send a transaction.
///
/// A process made by `fork` has the sockets of its parent's clients but none of the threads that run them. It must
/// not use these clients, since the replies to its requests would go to its parent. It makes its own client.
///
/// ```no_run
/// # async fn example() -> brisk::Result<()> {
/// let db = brisk::Client::connect("redis://127.0.0.1").await?;
/// db.set("user:1", "ana").await?;
/// let name: Option<String> = db.get("user:1").await?;
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct Client {
    inner: Arc<Inner>,
    /// Its commands go by the lanes for large values.
    is_bulk: bool,
}

#[derive(Debug)]
struct Inner {
    route: Route,
    /// Who wants to know what it does.
    watched: Option<Arc<Watched>>,
    replay: Replay,
    timeout: Option<Duration>,
    /// How connections are made.
    plan: builder::Plan,
    /// Where they are run.
    handle: tokio::runtime::Handle,
    /// Hears of switches, if the primary is found by sentinels.
    watcher: Option<sentinel::Watcher>,
    /// What has connections of its own, and ends with the client's.
    attached: Arc<Attached>,
    /// Lanes for large values, once somebody has asked for them.
    bulk: OnceLock<Node>,
    /// Runs the lanes of a client without a runtime.
    runtime: Option<Arc<builder::OwnRuntime>>,
}

/// Where commands go.
#[derive(Debug)]
enum Route {
    Server(Node),
    /// To the node of their keys.
    Cluster(Arc<Cluster>),
    /// To this node of a cluster.
    Member(Arc<Cluster>, Arc<Member>),
}

impl Client {
    /// What a client is to be, beginning with where the server is: a URL, or `host:port`.
    pub fn builder(url: &str) -> Builder {
        Builder::new(url)
    }

    /// Connects with the defaults. To be called within a tokio runtime.
    ///
    /// # Errors
    /// The server is not there, or refuses.
    pub async fn connect(url: &str) -> Result<Client> {
        Client::builder(url).connect().await
    }

    /// A command by its name, for what has no method: `db.raw("FT.SEARCH").arg("index").arg("query")`. It is
    /// taken to change data; keys have to be told as such.
    pub fn raw<T>(&self, name: &str) -> Command<&Client, T> {
        Command::new(Request::named(name)).on(self)
    }

    /// The same client with a connection set apart for large values: what goes by it holds up no command of the
    /// others, whose replies would else have to wait until a long value before them has come. To be used for values of
    /// some 64 KiB and more, in requests or in replies.
    ///
    /// Commands of one key stay in order among those of this handle, and among those of the others. Between the two
    /// there is no order, unless one is awaited before the other is polled.
    ///
    /// The connection is opened when the first command needs it. In a cluster, and of a pool, it is the client itself.
    /// O(1).
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

    /// Closes all connections; what is under way gets [`crate::Kind::Closed`], of all clones and of the handles for
    /// single nodes.
    /// Sessions, subscribers and caches end too.
    pub fn close(&self) {
        match &self.inner.route {
            Route::Server(node) => {
                node.close();
                // If there are none yet there never will be.
                self.inner.bulk.get_or_init(|| Node::new(Vec::new(), None)).close();
            }
            Route::Cluster(cluster) | Route::Member(cluster, _) => cluster.close(),
        }
        self.inner.watcher.iter().for_each(sentinel::Watcher::stop);
        self.inner.attached.end_all();
    }

    /// Whether a connection that is kept goes to one and the same node, whatever becomes of that.
    pub(crate) fn stays_with_a_node(&self) -> bool {
        matches!(&self.inner.route, Route::Cluster(cluster) if !cluster.finds_primaries())
    }

    /// It ends when the client is closed.
    ///
    /// # Errors
    /// The client is closed.
    pub(crate) fn attach(&self, one: &Arc<impl Ends + 'static>) -> Result<()> {
        self.inner.attached.add(one)
    }

    /// Commands whose replies have not come, about.
    #[must_use]
    pub fn pending(&self) -> usize {
        match &self.inner.route {
            Route::Server(node) => node.pending() + self.inner.bulk.get().map_or(0, Node::pending),
            Route::Cluster(cluster) => cluster.pending(),
            Route::Member(_, member) => member.known_node().map_or(0, Node::pending),
        }
    }

    /// A handle for each primary of the cluster that has slots, in the order of these, as known now: for commands
    /// that concern a node as a whole, such as DBSIZE, SCAN, FLUSHALL or SCRIPT LOAD. What a handle sends goes to its
    /// node and nowhere else; a key of another one gets `MOVED`. Without a cluster it is the client itself.
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

    /// A handle for the primary that has a key, as known now; see [`Client::primaries`].
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
            watched: self.inner.watched.clone(),
            replay: self.inner.replay,
            timeout: self.inner.timeout,
            plan: self.inner.plan.clone(),
            handle: self.inner.handle.clone(),
            runtime: self.inner.runtime.clone(),
            watcher: None,
            attached: Arc::clone(&self.inner.attached),
            bulk: OnceLock::new(),
        };
        Client { inner: Arc::new(inner), is_bulk: false }
    }

    /// What each lane has counted.
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
    #[expect(private_interfaces, reason = "nobody outside can name or call it")]
    fn submit(&self, way: &Way<'_>, waker: &Waker) -> Result<Submitted> {
        match &self.inner.route {
            Route::Server(node) => {
                let node = match self.is_bulk && !node.is_pool() {
                    false => node,
                    true => {
                        self.inner.bulk.get_or_init(|| self.inner.plan.bulk(&self.inner.handle))
                    }
                };
                node.submit(way, waker)
            }
            Route::Member(cluster, member) => cluster.submit_to(member, way, waker),
            Route::Cluster(_) => {
                Err(Error::new(Kind::Invalid, "the cluster takes commands itself"))
            }
        }
    }

    #[expect(private_interfaces, reason = "nobody outside can name or call it")]
    #[inline]
    fn cluster(&self) -> Option<&Cluster> {
        match &self.inner.route {
            Route::Cluster(cluster) => Some(cluster),
            _ => None,
        }
    }

    #[expect(private_interfaces, reason = "nobody outside can name or call it")]
    #[inline]
    fn watched(&self, _: &Way<'_>) -> Option<&Arc<Watched>> {
        self.inner.watched.as_ref()
    }

    fn default_replay(&self) -> Replay {
        self.inner.replay
    }

    fn default_timeout(&self) -> Option<Duration> {
        self.inner.timeout
    }

    #[expect(private_interfaces, reason = "nobody outside can name or call it")]
    #[inline]
    fn home(&self) -> Home {
        self.inner.plan.home()
    }
}
