//! Consumer groups: a worker that reads entries of a stream, calls a handler for each, and acknowledges them (XACK).
//!
//! | part | what it is |
//! |---|---|
//! | [`Consumer`] | the options, and [`run`](Consumer::run) |
//! | [`Message`], [`Id`] | the argument of the handler |
//! | [`Event`], [`Summary`] | reports for logs and metrics |
//! | `source` | reads entries: pending ones, abandoned ones of other members, new ones |
//! | `queue` | the order in which entries are handled |
//! | `ledger` | reports to the server: acknowledged, dead, in progress, returned |
//! | `work` | the main loop |
//!
//! **Each entry is handled at least once, and sometimes twice.** An entry is acknowledged after its handler has
//! returned `Ok`. If the process ends or the connection is lost before the acknowledgment, the entry is delivered
//! again, and [`Message::deliveries`] is then larger than 1. Handlers must therefore be idempotent, for example by
//! storing the entry's id together with its effect.
//!
//! Further guarantees:
//!
//! - An entry stays pending until it is acknowledged. A member that restarts handles its own pending entries first. If
//!   a member does not return, other members take over its entries after [`claim_idle`](Consumer::claim_idle).
//! - While a handler runs, the consumer resets the idle time of its entry on the server. No other member takes over the
//!   entry unless the connection is lost for longer than [`claim_idle`](Consumer::claim_idle).
//! - At most [`parallel`](Consumer::parallel) handlers run at the same time. At most `parallel` plus
//!   [`ahead`](Consumer::ahead) entries are pending for the member, because the consumer requests no more entries than
//!   it has room for.
//! - The server counts the attempts, so the count survives a restart of the member and a takeover.
//! - A handler that panics counts as failed. The consumer continues.

mod event;
mod ledger;
mod message;
mod queue;
mod source;
mod work;

pub use event::{Event, Fate, Summary};
pub use message::{Id, Message};

use crate::client::Client;
use crate::error::{Error, Kind, Result};
use bytes::Bytes;
use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

/// The default number of handlers that run at the same time.
const PARALLEL: usize = 16;
/// The maximum of [`Consumer::parallel`] plus [`Consumer::ahead`]. A larger number is rejected as a mistake, because
/// entries are held in memory.
const HELD_MAX: usize = 65_536;
const CLAIM_IDLE: Duration = Duration::from_secs(30);
/// The minimum of [`Consumer::claim_idle`]. With a lower value, a member would lose its entries during a network delay.
const CLAIM_IDLE_MIN: Duration = Duration::from_millis(100);
const ATTEMPTS: u64 = 5;
const RETRY_FIRST: Duration = Duration::from_secs(1);
const RETRY_LONGEST: Duration = Duration::from_secs(60);
const STOP_WITHIN: Duration = Duration::from_secs(10);

/// The first entry that a newly created group delivers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Begin {
    /// The oldest entry of the stream.
    #[default]
    Oldest,
    /// The first entry that is added after the group has been created.
    Newest,
    /// The entry after this one.
    After(Id),
}

/// What happens to entries that have no attempts left.
#[derive(Clone, Debug)]
enum OnExhausted {
    Keep,
    Discard,
    DeadLetter(Bytes),
}

type Observer = Arc<dyn Fn(&Event<'_>) + Send + Sync>;
type Until = Pin<Box<dyn Future<Output = ()> + Send>>;

/// The options of a consumer.
#[derive(Clone)]
struct Plan {
    stream: Bytes,
    group: Bytes,
    member: Bytes,
    begin: Begin,
    claim_idle: Duration,
    parallel: usize,
    ahead: Option<usize>,
    attempts: u64,
    retry_first: Duration,
    retry_longest: Duration,
    on_exhausted: OnExhausted,
    key: Option<Bytes>,
    observer: Option<Observer>,
    stop_within: Duration,
    leaves: bool,
}

impl Plan {
    /// The maximum number of entries that are pending for this member.
    fn room(&self) -> usize {
        self.parallel.saturating_add(self.ahead.unwrap_or(self.parallel))
    }

    fn check(&self) -> Result<()> {
        let invalid = |text: &'static str| Err(Error::new(Kind::Invalid, text));
        if self.group.is_empty() || self.member.is_empty() {
            return invalid("a consumer needs the names of a group and a member");
        }
        if self.parallel == 0 || self.room() > HELD_MAX {
            return invalid("from 1 to 65536 entries can be held at once");
        }
        if self.claim_idle < CLAIM_IDLE_MIN {
            return invalid("claim_idle must be at least 100 ms");
        }
        if self.attempts == 0 {
            return invalid("an entry needs at least one attempt");
        }
        Ok(())
    }

    fn notify(&self, event: &Event<'_>) {
        if let Some(observer) = &self.observer {
            observer(event);
        }
    }

    /// The pause before an entry is handled again, which doubles with each failure.
    fn rest(&self, deliveries: u64) -> Duration {
        let doublings = u32::try_from(deliveries.saturating_sub(1)).unwrap_or(u32::MAX).min(31);
        self.retry_first.saturating_mul(1 << doublings).min(self.retry_longest)
    }
}

/// A member of a consumer group. [`Client::consumer`] returns it, and [`run`](Consumer::run) starts the work.
///
/// The [module](self) lists the guarantees.
#[must_use = "a consumer does nothing before `run`"]
pub struct Consumer {
    db: Client,
    plan: Plan,
    until: Option<Until>,
}

impl fmt::Debug for Consumer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Consumer")
            .field("stream", &self.plan.stream)
            .field("group", &self.plan.group)
            .field("member", &self.plan.member)
            .finish_non_exhaustive()
    }
}

impl Client {
    /// Returns a member of a consumer group of this stream. Set at least the [group](Consumer::group) and the
    /// [member](Consumer::member), then call [`run`](Consumer::run).
    ///
    /// ```no_run
    /// use std::time::Duration;
    /// # async fn bill(user: String) -> brisk::Result<()> { Ok(()) }
    /// # async fn example(db: brisk::Client, stop: tokio::sync::oneshot::Receiver<()>) -> brisk::Result<()> {
    /// let summary = db
    ///     .consumer("orders")
    ///     .group("billing")
    ///     .member("billing-1")
    ///     .parallel(32)
    ///     .claim_idle(Duration::from_secs(30))
    ///     .dead_letter("orders:dead")
    ///     .until(async {
    ///         let _ = stop.await;
    ///     })
    ///     .run(|m| async move { bill(m.field("user")?).await })
    ///     .await?;
    /// println!("{} orders", summary.handled);
    /// # Ok(())
    /// # }
    /// ```
    pub fn consumer(&self, stream: impl Into<Bytes>) -> Consumer {
        let plan = Plan {
            stream: stream.into(),
            group: Bytes::new(),
            member: Bytes::new(),
            begin: Begin::default(),
            claim_idle: CLAIM_IDLE,
            parallel: PARALLEL,
            ahead: None,
            attempts: ATTEMPTS,
            retry_first: RETRY_FIRST,
            retry_longest: RETRY_LONGEST,
            on_exhausted: OnExhausted::Keep,
            key: None,
            observer: None,
            stop_within: STOP_WITHIN,
            leaves: false,
        };
        Consumer { db: self.clone(), plan, until: None }
    }
}

impl Consumer {
    /// Sets the group. Required. The consumer creates the group and the stream if they do not exist. It creates them
    /// again if the stream is deleted while the consumer is running.
    pub fn group(mut self, group: impl Into<Bytes>) -> Consumer {
        self.plan.group = group.into();
        self
    }

    /// Sets the member's name. Required. Two members that run at the same time must have different names; otherwise
    /// they handle each other's entries. A member that restarts should use the same name as before, so that it finds
    /// its pending entries.
    pub fn member(mut self, member: impl Into<Bytes>) -> Consumer {
        self.plan.member = member.into();
        self
    }

    /// Sets where the group begins if the consumer creates it. Default: [`Begin::Oldest`].
    pub fn begin(mut self, begin: Begin) -> Consumer {
        self.plan.begin = begin;
        self
    }

    /// Sets the idle time after which pending entries of other members are taken over. Default: 30 s; at least 100 ms.
    /// All members of a group should use the same value. While an entry is being handled, the consumer resets the
    /// entry's idle time.
    pub fn claim_idle(mut self, idle: Duration) -> Consumer {
        self.plan.claim_idle = idle;
        self
    }

    /// Sets the maximum number of handlers that run at the same time. Default: 16.
    pub fn parallel(mut self, handlers: usize) -> Consumer {
        self.plan.parallel = handlers;
        self
    }

    /// Sets how many entries are read in advance, beyond those being handled. Default: the number of handlers. With
    /// [`in_order_by`](Consumer::in_order_by), a larger number keeps one slow key from delaying the others.
    pub fn ahead(mut self, entries: usize) -> Consumer {
        self.plan.ahead = Some(entries);
        self
    }

    /// Sets how many times an entry is delivered before the consumer gives up on it. Default: 5. The server counts the
    /// deliveries, so the count survives a restart and a takeover. The consumer therefore also gives up on an entry
    /// that crashes the process.
    pub fn attempts(mut self, attempts: u64) -> Consumer {
        self.plan.attempts = attempts;
        self
    }

    /// Sets the pause after an entry's first failure, and the longest pause. The pause doubles after each further
    /// failure. Default: 1 s and 60 s. During the pause, the entry counts as pending.
    pub fn retry(mut self, first: Duration, longest: Duration) -> Consumer {
        (self.plan.retry_first, self.plan.retry_longest) = (first, longest);
        self
    }

    /// Sets the dead-letter stream. If the consumer gives up on an entry, it moves the entry to this stream, with the
    /// entry's fields and the reason: `dead:stream`, `dead:group`, `dead:member`, `dead:id`, `dead:deliveries`,
    /// `dead:error`. One script adds the entry and acknowledges the original, so an entry is neither lost nor added
    /// twice. In a cluster, both streams must be in the same slot, for example `{orders}` and `{orders}:dead`.
    ///
    /// Without a dead-letter stream, and without [`discard`](Consumer::discard), these entries stay pending. They are
    /// not lost and not handled again. [`Event::Dead`] reports them whenever a member encounters one, and XPENDING
    /// lists them.
    pub fn dead_letter(mut self, stream: impl Into<Bytes>) -> Consumer {
        self.plan.on_exhausted = OnExhausted::DeadLetter(stream.into());
        self
    }

    /// Acknowledges and drops the entries that the consumer gives up on. Only [`Event::Dead`] reports them.
    pub fn discard(mut self) -> Consumer {
        self.plan.on_exhausted = OnExhausted::Discard;
        self
    }

    /// Handles entries with the same value in this field one after the other, in the order of the stream. Entries with
    /// other values continue in parallel. A failed entry delays later entries with the same value until it has been
    /// handled or the consumer gives up on it. Entries without the field are handled in any order.
    ///
    /// **The order is guaranteed only within one member**: the server distributes entries over the members of a group
    /// regardless of their fields. To keep an order across several members, use one stream per member.
    pub fn in_order_by(mut self, field: impl Into<Bytes>) -> Consumer {
        self.plan.key = Some(field.into());
        self
    }

    /// Sets a callback for all events, for logs and metrics. It is called between two steps of the consumer, so it
    /// should return quickly. If it panics, `run` panics.
    pub fn observe(mut self, observer: impl Fn(&Event<'_>) + Send + Sync + 'static) -> Consumer {
        self.plan.observer = Some(Arc::new(observer));
        self
    }

    /// Stops the consumer when this future completes (clean shutdown). The consumer reads and starts no more entries,
    /// waits for the running handlers and acknowledges their entries. Entries that were read but not started are
    /// released, so that other members can claim them immediately. Without `until`, `run` ends only with an error.
    pub fn until(mut self, stop: impl Future<Output = ()> + Send + 'static) -> Consumer {
        self.until = Some(Box::pin(stop));
        self
    }

    /// Sets how long running handlers may take when the consumer stops. After that, their futures are dropped and their
    /// entries are returned. Default: 10 s.
    pub fn stop_within(mut self, limit: Duration) -> Consumer {
        self.plan.stop_within = limit;
        self
    }

    /// Removes the member from the group when the consumer has stopped, if no entries are pending for it. Use this
    /// option for names that are not used again.
    pub fn leave(mut self) -> Consumer {
        self.plan.leaves = true;
        self
    }

    /// Runs the consumer until [`until`](Consumer::until) completes. Each entry is handled in its own task on the
    /// current tokio runtime. `Ok` acknowledges the entry; after an `Err` or a panic, the entry is handled again later.
    ///
    /// If connections are lost or the server returns temporary errors, the consumer waits and tries again. If this
    /// future is dropped, the handlers' futures are dropped too, and their entries stay pending.
    ///
    /// # Errors
    /// Permanent errors: a missing permission, a key that is not a stream, a closed client, or [`Kind::Invalid`] for
    /// invalid options. Before `run` returns the error, the consumer stops as with [`until`](Consumer::until).
    pub async fn run<F, Fut, E>(self, handler: F) -> Result<Summary>
    where
        F: Fn(Message) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = std::result::Result<(), E>> + Send + 'static,
        E: fmt::Display,
    {
        self.plan.check()?;
        if tokio::runtime::Handle::try_current().is_err() {
            return Err(Error::new(Kind::Invalid, "a consumer requires a tokio runtime"));
        }
        work::Worker::new(self.db, self.plan, handler, self.until).run().await
    }
}
