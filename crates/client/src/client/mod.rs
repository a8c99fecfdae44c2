//! The client: shared connections to one server, and which of them a command takes.

mod builder;
mod node;

pub use builder::{Budget, Builder, Lanes};

use crate::command::sealed::Target;
use crate::command::{Command, Replay, Way};
use crate::error::{Error, Kind, Result};
use crate::lane::cell::Submitted;
use crate::observe::{Counts, Watched};
use crate::request::Request;
use node::Node;
use std::sync::Arc;
use std::task::Waker;
use std::time::Duration;

/// A client of a server. Cheap to clone: clones share connections.
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
    node: Node,
    /// Who wants to know what it does.
    watched: Option<Arc<Watched>>,
    replay: Replay,
    timeout: Option<Duration>,
    /// How connections are made.
    plan: builder::Plan,
    /// Where they are run.
    handle: tokio::runtime::Handle,
    /// Runs the lanes of a client without a runtime.
    _runtime: Option<builder::OwnRuntime>,
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

    /// Closes all connections; what is under way gets [`crate::Kind::Closed`], of all clones.
    pub fn close(&self) {
        self.inner.node.close();
    }

    /// Commands whose replies have not come, about.
    #[must_use]
    pub fn pending(&self) -> usize {
        self.inner.node.pending()
    }

    /// What each lane has counted.
    pub(crate) fn counts(&self) -> Vec<Counts> {
        self.inner.node.counts().collect()
    }
}

impl Target for Client {
    #[expect(private_interfaces, reason = "nobody outside can name or call it")]
    fn submit(&self, way: &Way<'_>, waker: &Waker) -> Result<Submitted> {
        if way.requests.iter().any(Request::wants_its_own_connection) {
            let text = "this command would hold up, or change, a connection that others share: use a Session";
            return Err(Error::new(Kind::Invalid, text));
        }
        let key = way.requests.first().and_then(Request::first_key);
        self.inner.node.lane(key)?.submit(way.requests, way.limit(), waker)
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
}
