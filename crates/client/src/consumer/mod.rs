//! A member of a stream's consumer group: it reads entries, has them handled, and confirms them.
//!
//! | part | what it is |
//! |---|---|
//! | [`Consumer`] | what it is to be, and [`run`](Consumer::run) |
//! | [`Message`], [`Id`] | what the handler gets |
//! | [`Event`], [`Summary`] | what it tells of its work |
//! | `source` | reading: what was left pending, what others left, what is new |
//! | `queue` | in which order entries are handled |
//! | `ledger` | what the server is told: confirmed, dead, still at it, given back |
//! | `work` | the loop that holds all of it together |
//!
//! **Each entry is handled at least once, and sometimes twice.** It is confirmed after the handler
//! has said `Ok`. If the process ends, or the connection is lost, between the two, the entry is
//! delivered again; [`Message::deliveries`] is then larger than 1. Handlers must therefore be
//! idempotent, for instance by storing the entry's id together with its effect.
//!
//! What holds beyond that:
//!
//! - An entry stays pending until it is confirmed. A member that begins again first handles what it had left pending;
//!   what a member leaves that does not come back is taken over by others after [`claim_idle`](Consumer::claim_idle).
//! - While a handler runs, the server is told so, so that nobody takes its entry over however long it takes; unless
//!   the connection is lost for that long.
//! - Never are more than [`parallel`](Consumer::parallel) handlers at work, and never are more entries pending for
//!   the member than that and [`ahead`](Consumer::ahead): no more are asked for than there is room.
//! - Attempts are counted by the server: the count holds when the member begins again, or another takes over.
//! - A handler that panics has failed, and that is all.

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

/// Handlers at once, unless it is said otherwise.
const PARALLEL: usize = 16;
/// More than this is a mistake: entries that are held are held in memory.
const HELD_MAX: usize = 65_536;
const CLAIM_IDLE: Duration = Duration::from_secs(30);
/// Below, a member that only waits for the network would lose its entries.
const CLAIM_IDLE_MIN: Duration = Duration::from_millis(100);
const ATTEMPTS: u64 = 5;
const RETRY_FIRST: Duration = Duration::from_secs(1);
const RETRY_LONGEST: Duration = Duration::from_secs(60);
const STOP_WITHIN: Duration = Duration::from_secs(10);

/// Where a group begins that does not exist yet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Begin {
    /// With the oldest entry of the stream.
    #[default]
    Oldest,
    /// With what is added from then on.
    Newest,
    /// Behind this entry.
    Behind(Id),
}

/// What becomes of entries that have had all their attempts.
#[derive(Clone, Debug)]
enum Spent {
    Keep,
    Discard,
    DeadLetter(Bytes),
}

type Observer = Arc<dyn Fn(&Event<'_>) + Send + Sync>;
type Until = Pin<Box<dyn Future<Output = ()> + Send>>;

/// What was asked for.
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
    spent: Spent,
    key: Option<Bytes>,
    observer: Option<Observer>,
    stop_within: Duration,
    leaves: bool,
}

impl Plan {
    /// Entries that may be pending for this member.
    fn room(&self) -> usize {
        self.parallel.saturating_add(self.ahead.unwrap_or(self.parallel))
    }

    fn check(&self) -> Result<()> {
        let invalid = |text: &'static str| Err(Error::new(Kind::Invalid, text));
        if self.group.is_empty() || self.member.is_empty() {
            return invalid("a consumer needs a group and the name of a member");
        }
        if self.parallel == 0 || self.room() > HELD_MAX {
            return invalid("1 to 65536 entries can be held at once");
        }
        if self.claim_idle < CLAIM_IDLE_MIN {
            return invalid("claim_idle is at least 100 ms");
        }
        if self.attempts == 0 {
            return invalid("an entry needs an attempt");
        }
        Ok(())
    }

    fn tell(&self, event: &Event<'_>) {
        if let Some(observer) = &self.observer {
            observer(event);
        }
    }

    /// How long an entry rests after a failure: twice as long each time.
    fn rest(&self, deliveries: u64) -> Duration {
        let doublings = u32::try_from(deliveries.saturating_sub(1)).unwrap_or(u32::MAX).min(31);
        self.retry_first.saturating_mul(1 << doublings).min(self.retry_longest)
    }
}

/// A member of a consumer group; [`Client::consumer`] makes it, and [`run`](Consumer::run) sets it to work.
///
/// See the [module](self) for what holds.
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
    /// A member of a consumer group of a stream, with everything still to be said.
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
            spent: Spent::Keep,
            key: None,
            observer: None,
            stop_within: STOP_WITHIN,
            leaves: false,
        };
        Consumer { db: self.clone(), plan, until: None }
    }
}

impl Consumer {
    /// The group. It is made, and the stream with it, if it does not exist; also if the stream is deleted while the
    /// consumer is at work. Needed.
    pub fn group(mut self, group: impl Into<Bytes>) -> Consumer {
        self.plan.group = group.into();
        self
    }

    /// The member's name. Needed. No two at work at the same time may have the same one, else they handle each
    /// other's entries; but one that begins again should have the one it had, so that it finds what it left.
    pub fn member(mut self, member: impl Into<Bytes>) -> Consumer {
        self.plan.member = member.into();
        self
    }

    /// Where the group begins if it has to be made. Default: [`Begin::Oldest`].
    pub fn begin(mut self, begin: Begin) -> Consumer {
        self.plan.begin = begin;
        self
    }

    /// Entries that have been pending for so long are taken over. Default: 30 s; at least 100 ms. All
    /// members of a group should have the same. While an entry is being handled its time does not run.
    pub fn claim_idle(mut self, idle: Duration) -> Consumer {
        self.plan.claim_idle = idle;
        self
    }

    /// Handlers at work at the same time, at most. Default: 16.
    pub fn parallel(mut self, handlers: usize) -> Consumer {
        self.plan.parallel = handlers;
        self
    }

    /// Entries that are read ahead, beyond those being handled. Default: as many as handlers. With
    /// [`in_order_by`](Consumer::in_order_by) more of them keep one slow key from holding up the others.
    pub fn ahead(mut self, entries: usize) -> Consumer {
        self.plan.ahead = Some(entries);
        self
    }

    /// How often an entry is delivered before it is given up. Default: 5. The server counts, so the count holds if
    /// the member begins again or another one takes over; an entry with which processes end is given up, too.
    pub fn attempts(mut self, attempts: u64) -> Consumer {
        self.plan.attempts = attempts;
        self
    }

    /// How long an entry rests after its first failure, twice as long after each further one, and the longest.
    /// Default: 1 s, and 60 s. It keeps its place meanwhile.
    pub fn retry(mut self, first: Duration, longest: Duration) -> Consumer {
        (self.plan.retry_first, self.plan.retry_longest) = (first, longest);
        self
    }

    /// Entries that are given up go to this stream, with their fields and why: `dead:stream`, `dead:group`,
    /// `dead:member`, `dead:id`, `dead:deliveries`, `dead:error`. That and the confirmation are one script, so that an
    /// entry is not lost, nor in that stream twice. In a cluster both streams have to be in one slot:
    /// `{orders}` and `{orders}:dead`.
    ///
    /// Without it, and without [`discard`](Consumer::discard), they stay pending: nothing is lost, nobody handles them
    /// again, [`Event::Dead`] tells of them whenever somebody comes across one, and XPENDING shows them.
    pub fn dead_letter(mut self, stream: impl Into<Bytes>) -> Consumer {
        self.plan.spent = Spent::DeadLetter(stream.into());
        self
    }

    /// Entries that are given up are confirmed, and only [`Event::Dead`] tells of them.
    pub fn discard(mut self) -> Consumer {
        self.plan.spent = Spent::Discard;
        self
    }

    /// Entries with the same value in this field are handled one after the other, in the order of the stream, while
    /// others go on. One that fails holds up those behind it until it is done or given up. Entries without the field
    /// are in no order.
    ///
    /// **This holds within one member**: the server spreads entries over the members of a group without looking at
    /// them. An order that has to hold in a group of several members needs a stream for each.
    pub fn in_order_by(mut self, field: impl Into<Bytes>) -> Consumer {
        self.plan.key = Some(field.into());
        self
    }

    /// Hears of everything that happens: for logs and metrics. It is called between two steps of the consumer, so it
    /// should be quick; if it panics, `run` does.
    pub fn observe(mut self, observer: impl Fn(&Event<'_>) + Send + Sync + 'static) -> Consumer {
        self.plan.observer = Some(Arc::new(observer));
        self
    }

    /// When this is done, the consumer stops: it reads no more, begins nothing more, lets the handlers that are at work
    /// come to their end, and confirms what they did. What it had read and not begun is given back: others may
    /// take it at once. Without it, `run` ends only with an error.
    pub fn until(mut self, stop: impl Future<Output = ()> + Send + 'static) -> Consumer {
        self.until = Some(Box::pin(stop));
        self
    }

    /// How long handlers may still take when the consumer stops. Then they are dropped where they wait, and their
    /// entries are given back. Default: 10 s.
    pub fn stop_within(mut self, limit: Duration) -> Consumer {
        self.plan.stop_within = limit;
        self
    }

    /// When the consumer has stopped, the member is removed from the group, if nothing is pending for it. For names
    /// that do not come back.
    pub fn leave(mut self) -> Consumer {
        self.plan.leaves = true;
        self
    }

    /// Works, until [`until`](Consumer::until) is done: has each entry handled by a task of its own on this tokio
    /// runtime. `Ok` confirms the entry; after an `Err`, or a panic, it is handled again later.
    ///
    /// Lost connections and servers that refuse for a while are waited for. If this future is dropped, handlers
    /// are dropped where they wait, and their entries stay pending.
    ///
    /// # Errors
    /// What does not pass by itself: not allowed, no stream, closed, or a [`Kind::Invalid`] of what was asked for. The
    /// consumer stops before, as it does when it is told to.
    pub async fn run<F, Fut, E>(self, handler: F) -> Result<Summary>
    where
        F: Fn(Message) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = std::result::Result<(), E>> + Send + 'static,
        E: fmt::Display,
    {
        self.plan.check()?;
        if tokio::runtime::Handle::try_current().is_err() {
            return Err(Error::new(Kind::Invalid, "a consumer works within a tokio runtime"));
        }
        work::Worker::new(self.db, self.plan, handler, self.until).run().await
    }
}
