//! Client-side caching: replies that are kept here until the server says that a key of theirs has changed.
//!
//! | part | what it is |
//! |---|---|
//! | [`Cache`] | what callers have: a target of commands like a client |
//! | `reads` | which commands are kept, and where their keys stand |
//! | `store` | what is kept, and what is forgotten when |
//! | `flight` | a request on its way, and all who wait for it |
//!
//! A cache has a connection of its own, in RESP3, on which the server tracks what is read
//! (`CLIENT TRACKING ON`). Replies and the messages that keys have changed come on it in one order, and the
//! driver of its lane hands both over in that order:
//!
//! ```text
//!              begin                    its reply comes
//!   absent ──────────────> in flight ──────────────────> value ──┐ served
//!      ^                       │                           │  ^───┘
//!      │   a key has changed, FLUSHALL, the connection     │
//!      └──── was lost: forgotten; the reply that still ────┘ also: too old, no room
//!            comes goes to its callers and is not kept
//! ```

mod flight;
mod reads;
mod store;

pub use store::CacheStats;

use crate::arg::ToArg;
use crate::client::{Client, Ends};
use crate::command::sealed::Target;
use crate::command::{Replay, Way};
use crate::error::{Error, Kind, Result};
use crate::lane::Lane;
use crate::lane::Waiting;
use crate::lane::cell::{Shared, Submitted};
use crate::lane::connect::{Connection, open};
use crate::lane::driver::{Pushed, Task};
use crate::lane::slot::Slot;
use crate::observe::Watched;
use crate::request::{Request, Traits};
use crate::wait::{Home, block_on};
use flight::{Flight, Plan};
use std::sync::Arc;
use std::task::Waker;
use std::time::Duration;
use store::{Found, Store};

/// What a cache may hold unless it is told otherwise.
const BYTES_MAX: usize = 64 << 20;
/// How old a value may be unless a reader says otherwise: changes are told, so this is only a last resort.
const AGE_MAX: Duration = Duration::from_secs(600);

const READS: Traits = Traits { reads_only: true, blocks: false, binds: false };
const BINDS: Traits = Traits { reads_only: false, blocks: false, binds: true };

/// What a cache is to be.
#[must_use]
#[derive(Clone, Debug)]
pub struct CacheOptions {
    bytes_max: usize,
    age_max: Duration,
    ignores_expiry: bool,
    prefixes: Vec<Vec<u8>>,
}

impl Default for CacheOptions {
    fn default() -> CacheOptions {
        CacheOptions {
            bytes_max: BYTES_MAX,
            age_max: AGE_MAX,
            ignores_expiry: false,
            prefixes: Vec::new(),
        }
    }
}

impl CacheOptions {
    /// What it may hold: commands, replies, and about 300 bytes for each of them. The least used go first.
    /// Default: 64 MiB.
    pub fn bytes(mut self, bytes_max: usize) -> CacheOptions {
        self.bytes_max = bytes_max;
        self
    }

    /// How old a value may be unless a reader [says otherwise](Cache::no_older_than). Default: 10 minutes.
    pub fn age(mut self, age_max: Duration) -> CacheOptions {
        self.age_max = age_max;
        self
    }

    /// Does not ask how long keys live, which spares a PTTL for each key of a read that is sent. A server tells
    /// that a key has expired when it notices, which may be long after: a value may then be served for so long.
    pub fn ignore_expiry(mut self) -> CacheOptions {
        self.ignores_expiry = true;
        self
    }

    /// Only keys that begin with this, or with another that was given, are read by it; the server then tells all
    /// changes of such keys (`BCAST`) and remembers nothing. For few keys that many clients read. No prefix may
    /// begin with another one.
    pub fn prefix(mut self, prefix: impl Into<Vec<u8>>) -> CacheOptions {
        self.prefixes.push(prefix.into());
        self
    }
}

/// Reads that are kept here until the server says that they have changed; [`Client::cache`] makes it.
///
/// Commands are sent [on](crate::Command::on) it as on a client. Those that follow from the values of the keys
/// they name (GET, HGETALL, MGET, ZRANGE …) are answered from memory if that is possible; all others are
/// [`Kind::Invalid`], and belong to the client. Of many callers of the same command one sends a request. A reply
/// is kept as a whole, by its command: MGET of other keys is another reply.
///
/// **How old a value can be.** None is served after the message that it changed was received, after the
/// connection of the cache was lost, later than its key lives, or than a reader [wants it](Cache::no_older_than).
/// So it is older than the server's by the time of that message, and while a connection is dead and nobody has
/// noticed: some seconds, see [`Builder::silence`](crate::Builder::silence). This is also so for who wrote the
/// key by the client: to read what one wrote one [forgets](Cache::forget) the key first, or reads by the client.
///
/// ```no_run
/// # async fn example(db: brisk::Client) -> brisk::Result<()> {
/// use brisk::CacheOptions;
/// use std::time::Duration;
/// let cache = db.cache(CacheOptions::default()).await?;
/// let price: Option<f64> = brisk::commands::get("price:7").on(&cache).await?;
/// let recent = cache.no_older_than(Duration::from_secs(10));
/// let price: Option<f64> = brisk::commands::get("price:7").on(&recent).await?;
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct Cache {
    inner: Arc<Inner>,
    age_max: Duration,
}

#[derive(Debug)]
struct Inner {
    store: Arc<Store>,
    lane: Lane,
    options: CacheOptions,
    /// Whose connection it is, and who runs it.
    client: Client,
    /// A question whether the server is there is given up after this.
    silence_max: Duration,
}

impl Client {
    /// A cache with a connection of its own, made now. It ends when the client is closed.
    ///
    /// # Errors
    /// The server is not there, refuses CLIENT TRACKING (a user may not be allowed to use it), or does not speak
    /// RESP3; the client was told to speak RESP2, or is closed.
    pub async fn cache(&self, options: CacheOptions) -> Result<Cache> {
        if self.stays_with_a_node() {
            let text = "a cache is of one server: take one of each primary that this client has";
            return Err(Error::new(Kind::Invalid, text));
        }
        let (setup, handle) = self.setup(None);
        if setup.protocol == Some(2) {
            return Err(needs_resp3("the client was told to speak RESP2"));
        }
        let mut setup = (*setup).clone();
        setup.tracking = Some(tracking(&options));
        let setup = Arc::new(setup);
        let theirs = Arc::clone(&setup);
        let connection = self.run_there(async move { open(&theirs).await }).await?;
        let store = Arc::new(Store::new(options.bytes_max));
        let pushed: Arc<dyn Pushed> = Arc::<Store>::clone(&store);
        let shared = Arc::new(Shared::new(self.bounds()));
        let silence_max = setup.silence_max;
        let task = Task {
            shared: Arc::clone(&shared),
            setup,
            silence_max,
            reconnects: true,
            pushed: Some(pushed),
            watch: None,
        };
        handle.spawn(task.run(Some(connection)));
        let (lane, client, age_max) = (Lane::new(shared), self.clone(), options.age_max);
        let inner = Arc::new(Inner { store, lane, options, client, silence_max });
        self.attach(&inner)?;
        Ok(Cache { inner, age_max })
    }

    /// As [`Client::cache`], for programs without a runtime.
    ///
    /// # Errors
    /// As [`Client::cache`].
    pub fn cache_blocking(&self, options: CacheOptions) -> Result<Cache> {
        block_on(Box::pin(self.cache(options)))
    }
}

fn tracking(options: &CacheOptions) -> Request {
    let mut request = Request::new("CLIENT TRACKING", BINDS);
    request.arg("ON");
    if !options.prefixes.is_empty() {
        request.arg("BCAST");
    }
    for prefix in &options.prefixes {
        request.arg("PREFIX");
        request.arg(prefix);
    }
    request
}

fn needs_resp3(why: &str) -> Error {
    Error::new(Kind::Invalid, format!("client-side caching needs RESP3, and {why}"))
}

impl Connection {
    /// From here on the server tells what has changed of what was read.
    pub(crate) async fn track(&mut self, request: &Request) -> Result<()> {
        if self.protocol < 3 {
            return Err(needs_resp3("the server does not speak it"));
        }
        let replies = self.ask(std::slice::from_ref(request)).await?;
        replies.iter().try_for_each(|reply| reply.read::<()>())
    }
}

impl Cache {
    /// The same cache for who wants no value of which the request was made longer ago than this. With zero each
    /// read is sent, and kept for others.
    #[must_use]
    pub fn no_older_than(&self, age_max: Duration) -> Cache {
        Cache { inner: Arc::clone(&self.inner), age_max }
    }

    /// Drops all replies that read this key: the next read is sent. After a write of one's own it makes sure that
    /// one reads that, without waiting for the server's message.
    pub fn forget(&self, key: impl ToArg) {
        let mut request = Request::new("", READS);
        request.arg(key);
        for word in request.words().skip(1) {
            self.inner.store.forget(word);
        }
    }

    /// Drops everything.
    pub fn clear(&self) {
        self.inner.store.forget_all();
    }

    /// What it has done so far, and what it holds.
    #[must_use]
    pub fn stats(&self) -> CacheStats {
        self.inner.store.stats()
    }

    /// The commands that are kept; for tests.
    #[doc(hidden)]
    pub fn kept() -> impl Iterator<Item = (&'static str, &'static str)> {
        reads::kept()
    }

    /// Commands whose replies have not come, about.
    #[must_use]
    pub fn pending(&self) -> usize {
        self.inner.lane.pending()
    }
}

impl Inner {
    fn find(
        &self,
        request: &Request,
        way: &Way<'_>,
        age_max: Duration,
        waker: &Waker,
    ) -> Result<Submitted> {
        let mut first = None;
        let begin = || {
            let keys = self.keys(request)?;
            let slot = Slot::take(waker);
            first = Some(Waiting::clone(&slot));
            let hashes = keys.iter().map(|key| self.store.hash(key)).collect();
            let plan = self.plan(request, &keys, way.timeout);
            Ok((Flight::new(&self.store, &self.lane, plan, Some(slot)), hashes))
        };
        match self.store.find(request.body(), age_max, way.timeout, waker, begin)? {
            Found::Value { reply, asks } => {
                if asks {
                    self.ask();
                }
                Ok(Submitted::Ready(reply))
            }
            Found::Shared(submitted) => Ok(submitted),
            Found::Begun(flight) => {
                flight.advance();
                first.map(Submitted::Waits).ok_or_else(crate::lane::cell::closed)
            }
        }
    }

    /// The keys of a command that can be kept.
    fn keys<'a>(&self, request: &'a Request) -> Result<Vec<&'a [u8]>> {
        let invalid = |why: &str| {
            let name = request.words().next().unwrap_or_default().escape_ascii().to_string();
            Error::new(Kind::Invalid, format!("{name} {why}: send it by the client"))
        };
        let keys = reads::keys(request)
            .ok_or_else(|| invalid("is no read that follows from the keys it names"))?;
        let prefixes = &self.options.prefixes;
        let is_told = |key: &&[u8]| {
            prefixes.is_empty() || prefixes.iter().any(|start| key.starts_with(start))
        };
        match keys.iter().all(is_told) {
            true => Ok(keys),
            false => Err(invalid("has a key that begins with no prefix of the cache")),
        }
    }

    /// First how long the keys live, then the read, in one piece. In this order: the server tracks a key from
    /// PTTL on, so whatever changes between the two is told, and the reply not kept.
    fn plan(&self, request: &Request, keys: &[&[u8]], timeout: Option<Duration>) -> Plan {
        let asked = if self.options.ignores_expiry { &[] } else { keys };
        let mut requests = Vec::with_capacity(asked.len() + 1);
        for key in asked {
            let mut left = Request::new("PTTL", READS);
            left.key(*key);
            requests.push(left);
        }
        requests.push(request.clone());
        Plan {
            requests,
            command: request.body().into(),
            deadlines: asked.len(),
            timeout,
            patience: timeout.or(self.client.default_timeout()),
        }
    }

    /// Asks the server whether it is there. Without an answer the driver gives the connection up.
    fn ask(&self) {
        let plan = Plan {
            requests: vec![Request::new("PING", READS)],
            command: Arc::new([]),
            deadlines: 0,
            timeout: Some(self.silence_max),
            patience: Some(self.silence_max),
        };
        Flight::new(&self.store, &self.lane, plan, None).advance();
    }
}

impl Target for Cache {
    #[expect(private_interfaces, reason = "nobody outside can name or call it")]
    fn submit(&self, way: &Way<'_>, waker: &Waker) -> Result<Submitted> {
        let [request] = way.requests else {
            return Err(Error::new(Kind::Invalid, "a cache takes one command at a time"));
        };
        self.inner.find(request, way, self.age_max, waker)
    }

    #[expect(private_interfaces, reason = "nobody outside can name or call it")]
    fn watched(&self, way: &Way<'_>) -> Option<&Arc<Watched>> {
        self.inner.client.watched(way)
    }

    fn default_replay(&self) -> Replay {
        self.inner.client.default_replay()
    }

    fn default_timeout(&self) -> Option<Duration> {
        self.inner.client.default_timeout()
    }

    #[expect(private_interfaces, reason = "nobody outside can name or call it")]
    fn home(&self) -> Home {
        self.inner.client.home()
    }
}

impl Ends for Inner {
    fn end(&self) {
        self.lane.close();
        self.store.forget_all();
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        self.lane.close();
    }
}
