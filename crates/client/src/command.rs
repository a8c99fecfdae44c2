//! A command: its words, what its reply is made into, and, once it belongs to a client, the future of it.

use crate::blocking::{self, Waits};
use crate::client::Cluster;
use crate::client::cluster::redirect::{Onward, Trip};
use crate::client::cluster::spread::Spread;
use crate::client::cluster::{Paused, Sent};
use crate::error::{Code, Error, Kind, Phase, Result};
use crate::lane::Waiting;
use crate::lane::cell::{Submitted, timeout};
use crate::lane::slot::Slot;
use crate::observe::Watched;
use crate::observe::course::Course;
use crate::reply::{FromReply, Reply};
use crate::request::Request;
use crate::wait::{Home, block_on_within};
use std::future::Future;
use std::marker::PhantomData;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::{Duration, Instant};

/// Whether a command may be sent again when the connection was lost and its reply is not known.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Replay {
    /// Never, not even a read. What was not sent at all still goes by the next connection.
    Never,
    /// If it changes nothing.
    #[default]
    Reads,
    /// Always: it is executed at least once, and maybe twice.
    AtLeastOnce,
}

/// Where commands can be sent to: a [`Client`](crate::Client), or a [`Session`](crate::Session).
pub trait Target: sealed::Target {}

impl<C: sealed::Target> Target for C {}

pub(crate) mod sealed {
    use super::{Arc, Cluster, Duration, Home, Replay, Result, Submitted, Waker, Watched, Way};

    pub trait Target {
        /// Puts requests into the queue of a connection, in one piece.
        #[expect(private_interfaces, reason = "nobody outside can name or call it")]
        fn submit(&self, way: &Way<'_>, waker: &Waker) -> Result<Submitted>;
        /// Who wants to know what becomes of them.
        #[expect(private_interfaces, reason = "nobody outside can name or call it")]
        fn watched(&self, way: &Way<'_>) -> Option<&Arc<Watched>>;
        fn default_replay(&self) -> Replay;
        fn default_timeout(&self) -> Option<Duration>;
        /// The thread that runs the connections, if it is a single one.
        #[expect(private_interfaces, reason = "nobody outside can name or call it")]
        fn home(&self) -> Home;

        /// The nodes that commands are sent to, if there are several: then it takes them instead.
        #[expect(private_interfaces, reason = "nobody outside can name or call it")]
        #[inline]
        fn cluster(&self) -> Option<&Cluster> {
            None
        }
    }
}

/// A command whose reply becomes a `T`.
///
/// `C` is the owner: `&Client` or `&Session` makes it a future, and [`Command::wait`] waits for it
/// without a runtime; `()` means no owner, for a [batch](crate::Client::batch). `O` stands for the
/// command's own options.
#[must_use = "a command does nothing unless it is awaited, waited for or put into a batch"]
#[derive(Debug)]
pub struct Command<C, T, O = ()> {
    target: C,
    request: Request,
    timeout: Option<Duration>,
    replay: Option<Replay>,
    state: Course,
    types: PhantomData<fn() -> (T, O)>,
}

#[derive(Debug, Default)]
pub(crate) enum State {
    #[default]
    New,
    /// There was no room for it, since then.
    Full {
        since: Instant,
        trip: Trip,
    },
    /// It was sent.
    Waits {
        slot: Waiting,
        trip: Trip,
    },
    /// It is to be sent again.
    Again {
        trip: Trip,
    },
    /// The same, after a pause.
    Paused(Box<Paused>),
    /// It goes to several nodes.
    Spread(Box<Spread>),
    /// Nothing had to be sent.
    Ready(Reply),
    Done,
}

impl<T> Command<(), T> {
    /// A command of these words.
    pub fn new(request: Request) -> Command<(), T> {
        Command::typed(request)
    }
}

impl<T, O> Command<(), T, O> {
    /// A command of these words, with options of its own.
    #[doc(hidden)]
    pub fn typed(request: Request) -> Command<(), T, O> {
        Command {
            target: (),
            request,
            timeout: None,
            replay: None,
            state: Course::default(),
            types: PhantomData,
        }
    }

    /// The same command, for this one to send.
    pub fn on<C: Target>(self, target: &C) -> Command<&C, T, O> {
        Command {
            target,
            request: self.request,
            timeout: self.timeout,
            replay: self.replay,
            state: Course::default(),
            types: PhantomData,
        }
    }
}

impl<C, T, O> Command<C, T, O> {
    /// Time until the reply has to be there, instead of the client's.
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = Some(timeout);
        self
    }

    /// Whether it may be sent again, instead of the client's way.
    pub fn replay(mut self, replay: Replay) -> Self {
        self.replay = Some(replay);
        self
    }

    /// Another type for its reply.
    pub fn reply_as<U>(self) -> Command<C, U, O> {
        Command {
            target: self.target,
            request: self.request,
            timeout: self.timeout,
            replay: self.replay,
            state: Course::default(),
            types: PhantomData,
        }
    }

    /// One more word, for what has no method of its own.
    pub fn arg(mut self, arg: impl crate::arg::ToArg) -> Self {
        self.request.arg(arg);
        self
    }

    /// More words.
    pub fn args(mut self, args: impl crate::arg::ToArgs) -> Self {
        self.request.args(args);
        self
    }

    /// One more word, which is a key.
    pub fn key(mut self, key: impl crate::arg::ToArg) -> Self {
        self.request.key(key);
        self
    }

    /// Words of an option.
    #[doc(hidden)]
    pub fn option(mut self, write: impl FnOnce(&mut Request)) -> Self {
        self.request.option(write);
        self
    }

    /// As it will be sent.
    pub fn request(&self) -> &Request {
        &self.request
    }

    pub(crate) fn into_request(self) -> Request {
        self.request
    }
}

impl<C, T, O> Command<C, Option<T>, O> {
    /// Nothing is an error, [`Kind::Missing`]. To be called last.
    pub fn required(self) -> Required<C, T, O> {
        Required(self)
    }
}

/// A command whose reply must not be nothing.
#[must_use = "a command does nothing unless it is awaited or waited for"]
#[derive(Debug)]
pub struct Required<C, T, O = ()>(Command<C, Option<T>, O>);

fn present<T>(reply: Result<Option<T>>) -> Result<T> {
    reply?.ok_or_else(|| Error::new(Kind::Missing, "there is no such value"))
}

impl<C: Target, T: FromReply, O> Required<&C, T, O> {
    /// As [`Command::wait`].
    ///
    /// # Errors
    /// As awaiting it.
    pub fn wait(self) -> Result<T> {
        present(self.0.wait())
    }
}

impl<C: Target, T: FromReply, O> Future for Required<&C, T, O> {
    type Output = Result<T>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Result<T>> {
        Pin::new(&mut self.0).poll(cx).map(present)
    }
}

impl<C: Target, T: FromReply, O> Command<&C, T, O> {
    /// Sends it, and waits for the reply on this thread, without a runtime.
    ///
    /// # Errors
    /// The blocking form of awaiting the command. Do not call it from a task of a runtime, since it blocks the task's
    /// thread: the error is [`Kind::Invalid`] if that thread runs the client's connections, and [`Kind::Timeout`] if
    /// all threads that run them are blocked.
    pub fn wait(self) -> Result<T> {
        let limit = self.way().limit(self.target.default_timeout());
        wait_for(self.target, limit, self)
    }

    fn way(&self) -> Way<'_> {
        Way {
            requests: std::slice::from_ref(&self.request),
            timeout: self.timeout,
            replay: self.replay,
            unity: Unity::Each,
        }
    }
}

/// Time beyond all limits of a command, after which no runtime can still be enforcing them.
const NOBODY_AFTER: Duration = Duration::from_secs(1);

/// Waits for this request's result. The runtime that runs the connections enforces the time limits. If that runtime
/// is blocked, or is gone (a forked process has none of its threads), the caller gives up by itself.
pub(crate) fn wait_for<T>(
    target: &impl Target,
    limit: Option<Duration>,
    future: impl Future<Output = Result<T>> + Unpin,
) -> Result<T> {
    let limit = limit.or(target.default_timeout());
    // Waiting for room, the first attempt, and all retries together may each take the whole limit.
    let patience = limit.map(|limit| limit.saturating_mul(3).saturating_add(NOBODY_AFTER));
    block_on_within(future, patience).unwrap_or_else(|| {
        let text = ": what runs the client's connections stands still, or is gone";
        Err(Error::new(Kind::Timeout(Phase::Sent), text))
    })
}

impl<C: Target, T: FromReply, O> Future for Command<&C, T, O> {
    type Output = Result<T>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Result<T>> {
        let this = self.get_mut();
        let way = Way {
            requests: std::slice::from_ref(&this.request),
            timeout: this.timeout,
            replay: this.replay,
            unity: Unity::Each,
        };
        match this.state.poll(this.target, &way, cx) {
            Poll::Ready(Ok(reply)) => {
                Poll::Ready(reply.read().map_err(|error| unreadable(error, &this.request)))
            }
            Poll::Ready(Err(error)) => Poll::Ready(Err(error)),
            Poll::Pending => Poll::Pending,
        }
    }
}

/// An error from the server means that the command was refused; any other error, that its reply does
/// not fit.
#[cold]
fn unreadable(error: Error, request: &Request) -> Error {
    let was_executed = matches!(error.kind(), Kind::UnexpectedReply | Kind::Protocol);
    match was_executed && !request.traits().reads_only {
        true => error.after_sending(),
        false => error,
    }
}

/// What is to be sent, in one piece, and how.
pub(crate) struct Way<'a> {
    pub(crate) requests: &'a [Request],
    pub(crate) timeout: Option<Duration>,
    pub(crate) replay: Option<Replay>,
    pub(crate) unity: Unity,
}

/// How far requests belong together, if there are several nodes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Unity {
    /// They may go to several nodes.
    Each,
    /// They are executed together or not at all.
    Whole,
    /// They were dealt out to a node.
    Piece,
}

/// A command that ends each connection it goes by is not sent by more.
const REPLAYS_MAX: u8 = 3;

/// As good as for ever.
pub(crate) const UNLIMITED: Duration = Duration::from_secs(u32::MAX as u64);

impl Way<'_> {
    /// Its own time. One that waits for other clients takes as long as it says to the server, and `margin` beside.
    pub(crate) fn limit(&self, margin: Option<Duration>) -> Option<Duration> {
        let blocks = || self.requests.iter().any(|request| request.traits().blocks);
        self.timeout.or_else(|| {
            blocks().then(|| match blocking::limit(self.requests, margin) {
                Some(Waits::For(time)) => time,
                Some(Waits::ForEver) | None => UNLIMITED,
            })
        })
    }

    /// The same, sent again: all attempts from the second on have the time of one. When the first one began only its
    /// lane knew.
    ///
    /// # Errors
    /// That is over.
    fn what_is_left(&self, began: Instant, target: &impl Target) -> Result<Way<'_>> {
        let default = target.default_timeout();
        let limit = self.limit(default).or(default);
        let left = limit.map(|limit| limit.saturating_sub(began.elapsed()));
        if left.is_some_and(|left| left.is_zero()) {
            return Err(timeout(Phase::Sent, None));
        }
        Ok(Way { requests: self.requests, timeout: left, replay: self.replay, unity: self.unity })
    }

    fn is_over(&self, since: Instant, target: &impl Target) -> bool {
        let timeout = self.timeout.or(target.default_timeout());
        timeout.is_some_and(|timeout| since.elapsed() >= timeout)
    }

    fn may_send_again(&self, error: &Error, target: &impl Target, replays: u8) -> bool {
        if error.code() == Some(Code::ReadOnly) {
            // An answer like this stands for the command only if nothing of it was executed.
            return replays < REPLAYS_MAX;
        }
        if replays >= REPLAYS_MAX || error.kind() != Kind::Disconnected || !error.maybe_applied() {
            return false;
        }
        match self.replay.unwrap_or(target.default_replay()) {
            Replay::Never => false,
            Replay::Reads => self.requests.iter().all(|request| request.traits().reads_only),
            Replay::AtLeastOnce => true,
        }
    }
}

impl State {
    /// Sends what is to be sent, if that has not happened; the replies, when they are there.
    pub(crate) fn poll(
        &mut self,
        target: &impl Target,
        way: &Way<'_>,
        cx: &mut Context<'_>,
    ) -> Poll<Result<Reply>> {
        loop {
            match std::mem::replace(self, State::Done) {
                State::Full { since, .. } if way.is_over(since, target) => {
                    return Poll::Ready(Err(timeout(Phase::Queued, None)));
                }
                before @ (State::New | State::Full { .. } | State::Again { .. }) => {
                    target.home().check()?;
                    if way.requests.is_empty() {
                        return Poll::Ready(Ok(Reply::default()));
                    }
                    *self = before.send(target, way, cx.waker())?;
                    if matches!(self, State::Waits { .. } | State::Full { .. }) {
                        // It cannot be there yet, and whoever has it has the waker.
                        return Poll::Pending;
                    }
                }
                State::Ready(reply) => return Poll::Ready(Ok(reply)),
                State::Waits { slot, mut trip } => {
                    let Poll::Ready(answer) = slot.poll(cx.waker()) else {
                        *self = State::Waits { slot, trip };
                        return Poll::Pending;
                    };
                    Slot::give_back(slot);
                    match answer {
                        Err(error) if way.may_send_again(&error, target, trip.replays) => {
                            trip.replays += 1;
                            trip.began.get_or_insert_with(Instant::now);
                            trip.by_map();
                            *self = State::Again { trip };
                        }
                        answer => {
                            let Some(cluster) = target.cluster() else {
                                return Poll::Ready(answer);
                            };
                            match cluster.onward(way, &answer, &mut trip) {
                                Some(onward) => *self = State::onward(cluster, onward, trip),
                                None => {
                                    return Poll::Ready(
                                        answer.map(|reply| trip.own_replies(reply)),
                                    );
                                }
                            }
                        }
                    }
                }
                State::Paused(mut paused) => {
                    if paused.sleep.as_mut().poll(cx).is_pending() {
                        *self = State::Paused(paused);
                        return Poll::Pending;
                    }
                    *self = State::Again { trip: paused.trip };
                }
                State::Spread(mut spread) => {
                    let done = spread.poll(target, way, cx);
                    if done.is_pending() {
                        *self = State::Spread(spread);
                    }
                    return done;
                }
                State::Done => {
                    let text = "a command was polled after it was done";
                    return Poll::Ready(Err(Error::new(Kind::Invalid, text)));
                }
            }
        }
    }

    /// Sends it; what it is then.
    fn send(self, target: &impl Target, way: &Way<'_>, waker: &Waker) -> Result<State> {
        let (since, mut trip) = match self {
            State::Full { since, trip } => (Some(since), trip),
            State::Again { trip } => (None, trip),
            _ => (None, Trip::default()),
        };
        let sent = match target.cluster() {
            None => {
                let submitted = match trip.began {
                    Some(began) => target.submit(&way.what_is_left(began, target)?, waker)?,
                    None => target.submit(way, waker)?,
                };
                match submitted {
                    Submitted::Waits(slot) => Sent::Waits(slot),
                    Submitted::Full => Sent::Full,
                    Submitted::Ready(reply) => Sent::Ready(reply),
                }
            }
            Some(cluster) => match cluster.submit(way, &mut trip, waker)? {
                Sent::Turned(onward) => return Ok(State::onward(cluster, onward, trip)),
                sent => sent,
            },
        };
        Ok(match sent {
            Sent::Waits(slot) => State::Waits { slot, trip },
            Sent::Spread(spread) => State::Spread(spread),
            Sent::Ready(reply) => State::Ready(reply),
            Sent::Full | Sent::Turned(_) => {
                State::Full { since: since.unwrap_or_else(Instant::now), trip }
            }
        })
    }

    /// It goes on to another node, or to the same one later.
    pub(crate) fn onward(cluster: &Cluster, onward: Onward, trip: Trip) -> State {
        match onward {
            Onward::Now => State::Again { trip },
            Onward::After(pause) => State::Paused(Box::new(Paused::new(cluster, pause, trip))),
        }
    }
}
