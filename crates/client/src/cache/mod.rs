//! Client-side caching: replies are kept in the client until the server invalidates one of their keys.
//!
//! | part | what it is |
//! |---|---|
//! | [`Cache`] | the API: sends commands like a client |
//! | `reads` | the commands that are cached, and the positions of their keys |
//! | `store` | the cached replies, and when they are dropped |
//! | `flight` | a request in progress, and all callers that wait for it |
//!
//! A cache has its own RESP3 connection, on which the server tracks the keys that were read (`CLIENT TRACKING ON`).
//! Replies and invalidation messages share this connection, and the driver of its lane passes them on in the order in
//! which they arrive:
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
use crate::client::{Client, CloseWithClient};
use crate::command::sealed::Target;
use crate::command::{Replay, SendPlan};
use crate::error::{Error, Kind, Result};
use crate::lane::Lane;
use crate::lane::cell::{Shared, Submitted};
use crate::lane::connect::{Connection, open};
use crate::lane::driver::{PushHandler, Task};
use crate::lane::pending_reply::PendingReply;
use crate::observe::ObservedServer;
use crate::request::{Request, Traits};
use crate::wait::{Home, block_on};
use flight::{FetchPlan, Flight};
use std::fmt;
use std::sync::Arc;
use std::task::Waker;
use std::time::Duration;
use store::{Lookup, Store};

/// The default size limit of a cache.
const BYTES_MAX: usize = 64 << 20;
/// The default maximum age of a value. It is only a safety net, because the server invalidates changed keys.
const AGE_MAX: Duration = Duration::from_secs(600);

const READS: Traits = Traits { reads_only: true, blocks: false, binds: false };
const BINDS: Traits = Traits { reads_only: false, blocks: false, binds: true };

/// The options of a [`Cache`].
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
    /// Sets the size limit: commands, replies, and about 300 bytes for each entry. Entries that have not been used
    /// recently are evicted first. Default: 64 MiB.
    pub fn bytes(mut self, bytes_max: usize) -> CacheOptions {
        self.bytes_max = bytes_max;
        self
    }

    /// Sets the maximum age of a value. A reader can set a lower one with [`Cache::no_older_than`]. Default: 10
    /// minutes.
    pub fn age(mut self, age_max: Duration) -> CacheOptions {
        self.age_max = age_max;
        self
    }

    /// Does not query the TTL of keys, which saves one PTTL per key for each read that is sent to the server. With this
    /// option, the cache may serve an expired value: the server invalidates a key only when it removes the key, which
    /// may be long after the expiry time.
    pub fn ignore_expiry(mut self) -> CacheOptions {
        self.ignores_expiry = true;
        self
    }

    /// Restricts the cache to keys with this prefix, or with one of the other prefixes that were added. The server then
    /// sends invalidations for all changes of matching keys (`BCAST`), and does not remember which keys were read. Use
    /// this mode for a small number of keys that many clients read. No prefix may begin with another one.
    pub fn prefix(mut self, prefix: impl Into<Vec<u8>>) -> CacheOptions {
        self.prefixes.push(prefix.into());
        self
    }
}

/// A client-side cache of replies, which the server invalidates when keys change; [`Client::cache`] opens it.
///
/// Send commands through it with [`Command::on`](crate::Command::on), as through a client. Commands whose reply depends
/// only on the values of the keys that they name (GET, HGETALL, MGET, ZRANGE …) are served from memory if possible. All
/// other commands fail with [`Kind::Invalid`]; send them through the client. If many callers send the same command at
/// the same time, only one request goes to the server. A reply is cached as a whole, under its command: MGET with
/// different keys is a different entry.
///
/// # Stale values
///
/// The cache does not serve a value in these cases:
///
/// - after the invalidation message has arrived;
/// - after the connection of the cache was lost;
/// - after the expiry time of one of its keys, unless [`CacheOptions::ignore_expiry`] is set;
/// - after its maximum age, see [`CacheOptions::age`] and [`Cache::no_older_than`].
///
/// A value can therefore be stale while the invalidation message is on its way. It can also be stale until a dead
/// connection is noticed, which takes a few seconds; see [`Builder::silence`](crate::Builder::silence). Even a caller
/// that has just written a key through the client may read a stale value. To read its own write, the caller first calls
/// [`Cache::forget`] for the key, or reads through the client.
///
/// # Example
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
#[derive(Clone)]
pub struct Cache {
    inner: Arc<Inner>,
    age_max: Duration,
}

struct Inner {
    store: Arc<Store>,
    lane: Lane,
    options: CacheOptions,
    /// The client, which runs the connection.
    client: Client,
    /// The time limit of a PING.
    silence_max: Duration,
}

impl fmt::Debug for Cache {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Cache")
            .field("client", &self.inner.client)
            .field("stats", &self.stats())
            .field("age_max", &self.age_max)
            .finish_non_exhaustive()
    }
}

impl Client {
    /// Opens a cache with its own connection. The cache is closed together with the client.
    ///
    /// # Errors
    /// The server cannot be reached, rejects CLIENT TRACKING (the user may lack the permission), or does not support
    /// RESP3; or the client is configured for RESP2, or is closed. [`Kind::Invalid`] for a client of a whole cluster:
    /// open a cache on each of [`Client::primaries`].
    pub async fn cache(&self, options: CacheOptions) -> Result<Cache> {
        if self.stays_with_a_node() {
            let text = "a cache is for one server: open one on each of the client's primaries";
            return Err(Error::new(Kind::Invalid, text));
        }
        let (setup, handle) = self.setup(None);
        if setup.protocol == Some(2) {
            return Err(needs_resp3("the client is configured for RESP2"));
        }
        let mut setup = (*setup).clone();
        setup.tracking = Some(tracking(&options));
        let setup = Arc::new(setup);
        let theirs = Arc::clone(&setup);
        let connection = self.run_on_runtime(async move { open(&theirs).await }).await?;
        let store = Arc::new(Store::new(options.bytes_max));
        let push_handler: Arc<dyn PushHandler> = Arc::<Store>::clone(&store);
        let shared = Arc::new(Shared::new(self.bounds()));
        let silence_max = setup.silence_max;
        let task = Task {
            shared: Arc::clone(&shared),
            setup,
            silence_max,
            reconnects: true,
            push_handler: Some(push_handler),
            watch: None,
        };
        handle.spawn(task.run(Some(connection)));
        let (lane, client, age_max) = (Lane::new(shared), self.clone(), options.age_max);
        let inner = Arc::new(Inner { store, lane, options, client, silence_max });
        self.attach(&inner)?;
        Ok(Cache { inner, age_max })
    }

    /// Like [`Client::cache`], but blocks this thread. No runtime is needed.
    ///
    /// # Errors
    /// Those of [`Client::cache`].
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
    /// Turns tracking on. From then on, the server sends an invalidation if a key that was read changes.
    pub(crate) async fn track(&mut self, request: &Request) -> Result<()> {
        if self.protocol < 3 {
            return Err(needs_resp3("the server does not support it"));
        }
        let replies = self.request(std::slice::from_ref(request)).await?;
        replies.iter().try_for_each(|reply| reply.read::<()>())
    }
}

impl Cache {
    /// Returns a handle to the same cache that serves no value older than `age_max`. The age of a value is counted from
    /// the time at which it was requested. If `age_max` is zero, each read is sent to the server, and its reply is
    /// cached for other handles.
    #[must_use]
    pub fn no_older_than(&self, age_max: Duration) -> Cache {
        Cache { inner: Arc::clone(&self.inner), age_max }
    }

    /// Drops all replies that depend on this key, so that the next read is sent to the server. Call it after a write,
    /// to read that write without waiting for the server's invalidation.
    pub fn forget(&self, key: impl ToArg) {
        let mut request = Request::new("", READS);
        request.arg(key);
        for arg in request.arguments().skip(1) {
            self.inner.store.forget(arg);
        }
    }

    /// Drops all replies.
    pub fn clear(&self) {
        self.inner.store.forget_all();
    }

    /// Returns the counters and the current size of the cache.
    #[must_use]
    pub fn stats(&self) -> CacheStats {
        self.inner.store.stats()
    }

    /// The commands that are cached; for tests.
    #[doc(hidden)]
    pub fn kept() -> impl Iterator<Item = (&'static str, &'static str)> {
        reads::cached()
    }

    /// Returns the approximate number of commands without a reply.
    #[must_use]
    pub fn pending(&self) -> usize {
        self.inner.lane.pending()
    }
}

impl Inner {
    fn find(
        &self,
        request: &Request,
        plan: &SendPlan<'_>,
        age_max: Duration,
        waker: &Waker,
    ) -> Result<Submitted> {
        let mut first = None;
        let begin = || {
            let keys = self.keys(request)?;
            let pending_reply = PendingReply::take(waker);
            first = Some(crate::sync::Arc::clone(&pending_reply));
            let hashes = keys.iter().map(|key| self.store.hash(key)).collect();
            let fetch = self.fetch_plan(request, &keys, plan.timeout);
            Ok((Flight::new(&self.store, &self.lane, fetch, Some(pending_reply)), hashes))
        };
        match self.store.find(request.body(), age_max, plan.timeout, waker, begin)? {
            Lookup::Value { reply, needs_ping } => {
                if needs_ping {
                    self.ping();
                }
                Ok(Submitted::Ready(reply))
            }
            Lookup::Shared(submitted) => Ok(submitted),
            Lookup::Started(flight) => {
                flight.advance();
                first.map(Submitted::Waits).ok_or_else(crate::lane::cell::closed)
            }
        }
    }

    /// The keys of a command that can be cached.
    fn keys<'a>(&self, request: &'a Request) -> Result<Vec<&'a [u8]>> {
        let invalid = |why: &str| {
            let name = request.arguments().next().unwrap_or_default().escape_ascii().to_string();
            Error::new(Kind::Invalid, format!("{name} {why}: send it on the client"))
        };
        let keys = reads::keys(request)
            .ok_or_else(|| invalid("is not a read that depends only on its keys"))?;
        let prefixes = &self.options.prefixes;
        let is_tracked = |key: &&[u8]| {
            prefixes.is_empty() || prefixes.iter().any(|start| key.starts_with(start))
        };
        match keys.iter().all(is_tracked) {
            true => Ok(keys),
            false => Err(invalid("has a key without a prefix of the cache")),
        }
    }

    /// Plans a PTTL for each key, followed by the read. All of them are sent together. The order matters: the server
    /// starts to track a key when it executes the PTTL. A change between the PTTL and the read therefore invalidates
    /// the key, and the reply is not cached.
    fn fetch_plan(
        &self,
        request: &Request,
        keys: &[&[u8]],
        timeout: Option<Duration>,
    ) -> FetchPlan {
        let ttl_keys = if self.options.ignores_expiry { &[] } else { keys };
        let mut requests = Vec::with_capacity(ttl_keys.len() + 1);
        for key in ttl_keys {
            let mut left = Request::new("PTTL", READS);
            left.key(*key);
            requests.push(left);
        }
        requests.push(request.clone());
        FetchPlan {
            requests,
            command: request.body().into(),
            ttl_replies: ttl_keys.len(),
            timeout,
            queue_timeout: timeout.or(self.client.default_timeout()),
        }
    }

    /// Sends PING to the server. If no reply arrives, the driver closes the connection.
    fn ping(&self) {
        let fetch = FetchPlan {
            requests: vec![Request::new("PING", READS)],
            command: Arc::new([]),
            ttl_replies: 0,
            timeout: Some(self.silence_max),
            queue_timeout: Some(self.silence_max),
        };
        Flight::new(&self.store, &self.lane, fetch, None).advance();
    }
}

impl Target for Cache {
    #[expect(private_interfaces, reason = "not nameable or callable outside this crate")]
    fn submit(&self, plan: &SendPlan<'_>, waker: &Waker) -> Result<Submitted> {
        let [request] = plan.requests else {
            return Err(Error::new(Kind::Invalid, "a cache accepts one command at a time"));
        };
        self.inner.find(request, plan, self.age_max, waker)
    }

    #[expect(private_interfaces, reason = "not nameable or callable outside this crate")]
    fn observed(&self, plan: &SendPlan<'_>) -> Option<&Arc<ObservedServer>> {
        self.inner.client.observed(plan)
    }

    fn default_replay(&self) -> Replay {
        self.inner.client.default_replay()
    }

    fn default_timeout(&self) -> Option<Duration> {
        self.inner.client.default_timeout()
    }

    #[expect(private_interfaces, reason = "not nameable or callable outside this crate")]
    fn home(&self) -> Home {
        self.inner.client.home()
    }
}

impl CloseWithClient for Inner {
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
