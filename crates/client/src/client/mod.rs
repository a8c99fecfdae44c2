//! The client: shared connections to one server or to the nodes of a cluster, and which of them a command takes.
//!
//! | part | what it is |
//! |---|---|
//! | `builder` | what a client is to be |
//! | [`node`] | the lanes to one server |
//! | [`cluster`] | the nodes of a cluster |

mod builder;
pub(crate) mod cluster;
pub(crate) mod node;

pub use builder::{Budget, Builder, Lanes};
pub(crate) use cluster::Cluster;
pub use cluster::read_from::ReadFrom;
pub(crate) use cluster::slot::key_slot;

use crate::command::sealed::Target;
use crate::command::{Command, Replay, Way};
use crate::error::{Error, Kind, Result};
use crate::lane::cell::Submitted;
use crate::request::Request;
use cluster::map::Member;
use node::Node;
use std::sync::Arc;
use std::task::Waker;
use std::time::Duration;

/// A client of a server, or of a [cluster](Builder::cluster). Cheap to clone: clones share connections.
///
/// Commands are methods. Each gives a [`Command`], which is a future; nothing is sent before it is polled.
/// Commands of all callers go by a few shared connections (*lanes*), are sent together, and are answered in
/// order. Commands with the same first key take the same lane, so they are executed in the order in which
/// they were polled first.
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
}

#[derive(Debug)]
struct Inner {
    route: Route,
    replay: Replay,
    timeout: Option<Duration>,
    /// How connections are made.
    plan: builder::Plan,
    /// Where they are run.
    handle: tokio::runtime::Handle,
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

    /// Closes all connections; what is under way gets [`crate::Kind::Closed`], of all clones and of the handles for
    /// single nodes.
    pub fn close(&self) {
        match &self.inner.route {
            Route::Server(node) => node.close(),
            Route::Cluster(cluster) | Route::Member(cluster, _) => cluster.close(),
        }
    }

    /// Commands whose replies have not come, about.
    #[must_use]
    pub fn pending(&self) -> usize {
        match &self.inner.route {
            Route::Server(node) => node.pending(),
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
    pub fn node_for(&self, key: impl crate::ToArg) -> Client {
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
            replay: self.inner.replay,
            timeout: self.inner.timeout,
            plan: self.inner.plan.clone(),
            handle: self.inner.handle.clone(),
            runtime: self.inner.runtime.clone(),
        };
        Client { inner: Arc::new(inner) }
    }
}

/// Not on connections that others share.
fn refuse_binding(way: &Way<'_>) -> Result<()> {
    if !way.requests.iter().any(Request::wants_its_own_connection) {
        return Ok(());
    }
    let text =
        "this command would hold up, or change, a connection that others share: use a Session";
    Err(Error::new(Kind::Invalid, text))
}

impl Target for Client {
    #[expect(private_interfaces, reason = "nobody outside can name or call it")]
    fn submit(&self, way: &Way<'_>, waker: &Waker) -> Result<Submitted> {
        let node = match &self.inner.route {
            Route::Server(node) => node,
            Route::Member(cluster, member) => return cluster.submit_to(member, way, waker),
            Route::Cluster(_) => {
                return Err(Error::new(Kind::Invalid, "the cluster takes commands itself"));
            }
        };
        refuse_binding(way)?;
        let key = way.requests.first().and_then(Request::first_key);
        node.lane(key)?.submit(way.requests, way.limit(), waker)
    }

    #[expect(private_interfaces, reason = "nobody outside can name or call it")]
    #[inline]
    fn cluster(&self) -> Option<&Cluster> {
        match &self.inner.route {
            Route::Cluster(cluster) => Some(cluster),
            _ => None,
        }
    }

    fn default_replay(&self) -> Replay {
        self.inner.replay
    }

    fn default_timeout(&self) -> Option<Duration> {
        self.inner.timeout
    }
}
