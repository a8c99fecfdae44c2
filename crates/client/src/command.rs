//! A command: its arguments, the type of its reply, and, once it is bound to a client, its future.

use crate::blocking::{self, BlockLimit};
use crate::client::Cluster;
use crate::client::cluster::redirect::{RedirectState, Retry};
use crate::client::cluster::spread::Spread;
use crate::client::cluster::{Paused, Sent};
use crate::error::{Code, Error, Kind, Phase, Result};
use crate::lane::cell::{Submitted, timeout};
use crate::lane::pending_reply::PendingReply;
use crate::observe::ObservedServer;
use crate::observe::observed::ObservedState;
use crate::reply::{FromReply, Reply};
use crate::request::Request;
use crate::wait::{Home, block_on_within};
use brisk_resp::reply::value::Value;
use std::future::Future;
use std::marker::PhantomData;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::{Duration, Instant};

/// Determines whether a command is sent again if the connection was lost after the command was sent and before its
/// reply arrived.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Replay {
    /// Never, not even a read. Commands that were not sent at all are still sent on the next connection.
    Never,
    /// Only commands that do not change data.
    #[default]
    Reads,
    /// Always. The command is executed at least once, and possibly twice.
    AtLeastOnce,
}

/// Something that can send commands: a [`Client`](crate::Client), a [`Session`](crate::Session) or a
/// [`Cache`](crate::Cache).
pub trait Target: sealed::Target {}

impl<C: sealed::Target> Target for C {}

pub(crate) mod sealed {
    use super::{
        Arc, Cluster, Duration, Home, ObservedServer, Replay, Result, SendPlan, Submitted, Waker,
    };

    pub trait Target {
        /// Puts requests into the queue of a connection, with no other requests between them.
        #[expect(private_interfaces, reason = "not nameable or callable outside this crate")]
        fn submit(&self, plan: &SendPlan<'_>, waker: &Waker) -> Result<Submitted>;
        /// The observers of these commands.
        #[expect(private_interfaces, reason = "not nameable or callable outside this crate")]
        fn observed(&self, plan: &SendPlan<'_>) -> Option<&Arc<ObservedServer>>;
        fn default_replay(&self) -> Replay;
        fn default_timeout(&self) -> Option<Duration>;
        /// The thread that runs the connections, if a single thread runs all of them.
        #[expect(private_interfaces, reason = "not nameable or callable outside this crate")]
        fn home(&self) -> Home;

        /// The cluster, if there is one. It then receives the commands instead of `submit`.
        #[expect(private_interfaces, reason = "not nameable or callable outside this crate")]
        #[inline]
        fn cluster(&self) -> Option<&Cluster> {
            None
        }
    }
}

/// A command whose reply is converted to a `T`.
///
/// With `&Client` or `&Session` as `C`, the command is a future; without a runtime, [`Command::wait`] blocks until the
/// reply arrives. With `()` as `C`, the command is not bound to a client; such commands form a
/// [batch](crate::Client::batch). `O` selects the options that the command has.
#[must_use = "a command does nothing unless it is awaited, waited for or put into a batch"]
#[derive(Debug)]
pub struct Command<C, T, O = ()> {
    target: C,
    request: Request,
    timeout: Option<Duration>,
    replay: Option<Replay>,
    state: ObservedState,
    types: PhantomData<fn() -> (T, O)>,
}

#[derive(Debug, Default)]
pub(crate) enum State {
    #[default]
    New,
    /// The budget has been full since this time.
    Full {
        since: Instant,
        redirects: RedirectState,
    },
    /// Sent, and waiting for the reply.
    Waits {
        pending_reply: crate::sync::Arc<PendingReply>,
        redirects: RedirectState,
    },
    /// To be sent again.
    Again {
        redirects: RedirectState,
    },
    /// To be sent again after a pause.
    Paused(Box<Paused>),
    /// Split over several nodes.
    Spread(Box<Spread>),
    /// Nothing had to be sent.
    Ready(Reply),
    Done,
}

impl<T> Command<(), T> {
    /// Returns a command with these arguments, not bound to a client.
    pub fn new(request: Request) -> Command<(), T> {
        Command::typed(request)
    }
}

impl<T, O> Command<(), T, O> {
    /// A command with these arguments and its own options.
    #[doc(hidden)]
    pub fn typed(request: Request) -> Command<(), T, O> {
        Command {
            target: (),
            request,
            timeout: None,
            replay: None,
            state: ObservedState::default(),
            types: PhantomData,
        }
    }

    /// Binds the command to a client, session or cache, which sends it.
    pub fn on<C: Target>(self, target: &C) -> Command<&C, T, O> {
        Command {
            target,
            request: self.request,
            timeout: self.timeout,
            replay: self.replay,
            state: ObservedState::default(),
            types: PhantomData,
        }
    }
}

impl<C, T, O> Command<C, T, O> {
    /// Overrides the client's time limit for this command.
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = Some(timeout);
        self
    }

    /// Overrides the client's setting for whether this command may be sent again.
    pub fn replay(mut self, replay: Replay) -> Self {
        self.replay = Some(replay);
        self
    }

    /// Changes the type of the reply.
    pub fn reply_as<U>(self) -> Command<C, U, O> {
        Command {
            target: self.target,
            request: self.request,
            timeout: self.timeout,
            replay: self.replay,
            state: ObservedState::default(),
            types: PhantomData,
        }
    }

    /// Returns the command with the reply type [`Value`] and without its options. Different commands then
    /// have the same type, for example in a batch that is built in a loop.
    ///
    /// ```no_run
    /// # async fn example(db: brisk::Client) -> brisk::Result<()> {
    /// use brisk::commands::{incr, set};
    /// let mut batch = Vec::new();
    /// for user in ["ana", "bo"] {
    ///     batch.push(set(format!("user:{user}"), "new").ex(60).erase());
    ///     batch.push(incr("users").erase());
    /// }
    /// let replies: Vec<brisk::Value> = db.batch(batch).await?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn erase(self) -> Command<C, Value> {
        Command {
            target: self.target,
            request: self.request,
            timeout: self.timeout,
            replay: self.replay,
            state: ObservedState::default(),
            types: PhantomData,
        }
    }

    /// Appends an argument, for options without a method.
    pub fn arg(mut self, arg: impl crate::arg::ToArg) -> Self {
        self.request.arg(arg);
        self
    }

    /// Appends several arguments.
    pub fn args(mut self, args: impl crate::arg::ToArgs) -> Self {
        self.request.args(args);
        self
    }

    /// Appends an argument that is a key.
    pub fn key(mut self, key: impl crate::arg::ToArg) -> Self {
        self.request.key(key);
        self
    }

    /// Appends the arguments of an option.
    #[doc(hidden)]
    pub fn option(mut self, write: impl FnOnce(&mut Request)) -> Self {
        self.request.option(write);
        self
    }

    /// Returns the request as it will be sent.
    pub fn request(&self) -> &Request {
        &self.request
    }

    pub(crate) fn into_request(self) -> Request {
        self.request
    }
}

impl<C, T, O> Command<C, Option<T>, O> {
    /// Turns a missing value (null) into the error [`Kind::Missing`]. Call it last.
    pub fn required(self) -> Required<C, T, O> {
        Required(self)
    }
}

/// A command whose reply must not be null; see [`Command::required`].
#[must_use = "a command does nothing unless it is awaited or waited for"]
#[derive(Debug)]
pub struct Required<C, T, O = ()>(Command<C, Option<T>, O>);

fn present<T>(reply: Result<Option<T>>) -> Result<T> {
    reply?.ok_or_else(|| Error::new(Kind::Missing, "there is no such value"))
}

impl<C: Target, T: FromReply, O> Required<&C, T, O> {
    /// Like [`Command::wait`].
    ///
    /// # Errors
    /// The same as when awaited.
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
    /// Sends the command and blocks this thread until the reply arrives. No runtime is needed.
    ///
    /// Do not call it from a task of a runtime, since it blocks the task's thread.
    ///
    /// # Errors
    /// The same as when awaited, and [`Kind::Invalid`] if this thread runs the client's connections, or
    /// [`Kind::Timeout`] if all threads that run them are blocked.
    pub fn wait(self) -> Result<T> {
        let limit = self.plan().limit(self.target.default_timeout());
        wait_for(self.target, limit, self)
    }

    fn plan(&self) -> SendPlan<'_> {
        SendPlan {
            requests: std::slice::from_ref(&self.request),
            timeout: self.timeout,
            replay: self.replay,
            grouping: Grouping::Separate,
        }
    }
}

/// Extra time after all limits of a command. If this time has passed as well, no runtime is enforcing the limits.
const RUNTIME_GRACE: Duration = Duration::from_secs(1);

/// Waits for this request's result. The runtime that runs the connections enforces the time limits. If that runtime is
/// blocked or no longer exists (a forked process has none of its threads), the caller gives up on its own.
pub(crate) fn wait_for<T>(
    target: &impl Target,
    limit: Option<Duration>,
    future: impl Future<Output = Result<T>> + Unpin,
) -> Result<T> {
    let limit = limit.or(target.default_timeout());
    // Waiting for room, the first attempt, and all retries together may each take the whole limit.
    let total_limit = limit.map(|limit| limit.saturating_mul(3).saturating_add(RUNTIME_GRACE));
    block_on_within(future, total_limit).unwrap_or_else(|| {
        let text = "the runtime of the client's connections is blocked or has ended";
        Err(Error::new(Kind::Timeout(Phase::Sent), text))
    })
}

impl<C: Target, T: FromReply, O> Future for Command<&C, T, O> {
    type Output = Result<T>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Result<T>> {
        let this = self.get_mut();
        let plan = SendPlan {
            requests: std::slice::from_ref(&this.request),
            timeout: this.timeout,
            replay: this.replay,
            grouping: Grouping::Separate,
        };
        match this.state.poll(this.target, &plan, cx) {
            Poll::Ready(Ok(reply)) => {
                Poll::Ready(reply.read().map_err(|error| unreadable(error, &this.request)))
            }
            Poll::Ready(Err(error)) => Poll::Ready(Err(error)),
            Poll::Pending => Poll::Pending,
        }
    }
}

/// An error from the server means that it rejected the command. Any other error means that the reply does not fit the
/// requested type.
#[cold]
fn unreadable(error: Error, request: &Request) -> Error {
    let was_executed = matches!(error.kind(), Kind::UnexpectedReply | Kind::Protocol);
    match was_executed && !request.traits().reads_only {
        true => error.after_sending(),
        false => error,
    }
}

/// Requests that are sent together, and how they are sent.
pub(crate) struct SendPlan<'a> {
    pub(crate) requests: &'a [Request],
    pub(crate) timeout: Option<Duration>,
    pub(crate) replay: Option<Replay>,
    pub(crate) grouping: Grouping,
}

/// How requests are grouped if there are several nodes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Grouping {
    /// Each request may go to another node.
    Separate,
    /// All are executed together or not at all.
    Transaction,
    /// A part that was already assigned to a node.
    Routed,
}

/// A command is sent again at most this many times, in case the command itself breaks the connections.
const REPLAYS_MAX: u8 = 3;

/// Practically unlimited.
pub(crate) const UNLIMITED: Duration = Duration::from_secs(u32::MAX as u64);

impl SendPlan<'_> {
    /// The command's own time limit. A blocking command may take as long as the timeout in its arguments plus `margin`.
    pub(crate) fn limit(&self, margin: Option<Duration>) -> Option<Duration> {
        let blocks = || self.requests.iter().any(|request| request.traits().blocks);
        self.timeout.or_else(|| {
            blocks().then(|| match blocking::limit(self.requests, margin) {
                Some(BlockLimit::Within(time)) => time,
                Some(BlockLimit::Unlimited) | None => UNLIMITED,
            })
        })
    }

    /// The same requests, to be sent again. All attempts after the first share one time limit, since only the lane knew
    /// when the first attempt began.
    ///
    /// # Errors
    /// The time limit has passed.
    fn remaining(&self, began: Instant, target: &impl Target) -> Result<SendPlan<'_>> {
        let default = target.default_timeout();
        let limit = self.limit(default).or(default);
        let left = limit.map(|limit| limit.saturating_sub(began.elapsed()));
        if left.is_some_and(|left| left.is_zero()) {
            return Err(timeout(Phase::Sent, None));
        }
        Ok(SendPlan {
            requests: self.requests,
            timeout: left,
            replay: self.replay,
            grouping: self.grouping,
        })
    }

    fn is_over(&self, since: Instant, target: &impl Target) -> bool {
        let timeout = self.timeout.or(target.default_timeout());
        timeout.is_some_and(|timeout| since.elapsed() >= timeout)
    }

    fn may_send_again(&self, error: &Error, target: &impl Target, replays: u8) -> bool {
        if error.code() == Some(Code::ReadOnly) {
            // The command gets this error only if no part of it was executed.
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
    /// Sends the requests unless they have been sent already. Returns the replies once they have arrived.
    pub(crate) fn poll(
        &mut self,
        target: &impl Target,
        plan: &SendPlan<'_>,
        cx: &mut Context<'_>,
    ) -> Poll<Result<Reply>> {
        loop {
            match std::mem::replace(self, State::Done) {
                State::Full { since, .. } if plan.is_over(since, target) => {
                    return Poll::Ready(Err(timeout(Phase::Queued, None)));
                }
                before @ (State::New | State::Full { .. } | State::Again { .. }) => {
                    target.home().check()?;
                    if plan.requests.is_empty() {
                        return Poll::Ready(Ok(Reply::default()));
                    }
                    *self = before.send(target, plan, cx.waker())?;
                    if matches!(self, State::Waits { .. } | State::Full { .. }) {
                        // The reply cannot have arrived yet, and the lane has the waker.
                        return Poll::Pending;
                    }
                }
                State::Ready(reply) => return Poll::Ready(Ok(reply)),
                State::Waits { pending_reply, mut redirects } => {
                    let Poll::Ready(result) = pending_reply.poll(cx.waker()) else {
                        *self = State::Waits { pending_reply, redirects };
                        return Poll::Pending;
                    };
                    PendingReply::give_back(pending_reply);
                    match result {
                        Err(error) if plan.may_send_again(&error, target, redirects.replays) => {
                            redirects.replays += 1;
                            redirects.began.get_or_insert_with(Instant::now);
                            redirects.route_by_map();
                            *self = State::Again { redirects };
                        }
                        result => {
                            let Some(cluster) = target.cluster() else {
                                return Poll::Ready(result);
                            };
                            match cluster.retry_after_reply(plan, &result, &mut redirects) {
                                Some(retry) => *self = State::retry(cluster, retry, redirects),
                                None => {
                                    return Poll::Ready(
                                        result.map(|reply| redirects.own_replies(reply)),
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
                    *self = State::Again { redirects: paused.redirects };
                }
                State::Spread(mut spread) => {
                    let done = spread.poll(target, plan, cx);
                    if done.is_pending() {
                        *self = State::Spread(spread);
                    }
                    return done;
                }
                State::Done => {
                    let text = "a command was polled after it had completed";
                    return Poll::Ready(Err(Error::new(Kind::Invalid, text)));
                }
            }
        }
    }

    /// Sends the requests; returns the next state.
    fn send(self, target: &impl Target, plan: &SendPlan<'_>, waker: &Waker) -> Result<State> {
        let (since, mut redirects) = match self {
            State::Full { since, redirects } => (Some(since), redirects),
            State::Again { redirects } => (None, redirects),
            _ => (None, RedirectState::default()),
        };
        let sent = match target.cluster() {
            None => {
                let submitted = match redirects.began {
                    Some(began) => target.submit(&plan.remaining(began, target)?, waker)?,
                    None => target.submit(plan, waker)?,
                };
                match submitted {
                    Submitted::Waits(pending_reply) => Sent::Waits(pending_reply),
                    Submitted::Full => Sent::Full,
                    Submitted::Ready(reply) => Sent::Ready(reply),
                }
            }
            Some(cluster) => match cluster.submit(plan, &mut redirects, waker)? {
                Sent::Redirected(retry) => return Ok(State::retry(cluster, retry, redirects)),
                sent => sent,
            },
        };
        Ok(match sent {
            Sent::Waits(pending_reply) => State::Waits { pending_reply, redirects },
            Sent::Spread(spread) => State::Spread(spread),
            Sent::Ready(reply) => State::Ready(reply),
            Sent::Full | Sent::Redirected(_) => {
                State::Full { since: since.unwrap_or_else(Instant::now), redirects }
            }
        })
    }

    /// The state of a command that will be sent to another node, or later to the same node.
    pub(crate) fn retry(cluster: &Cluster, retry: Retry, redirects: RedirectState) -> State {
        match retry {
            Retry::Now => State::Again { redirects },
            Retry::After(pause) => State::Paused(Box::new(Paused::new(cluster, pause, redirects))),
        }
    }
}
