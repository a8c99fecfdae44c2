//! A command: its words, what its reply is made into, and, once it belongs to a client, the future of it.

use crate::client::Client;
use crate::error::{Error, Kind, Phase, Result};
use crate::lane::Waiting;
use crate::lane::cell::{Submitted, timeout};
use crate::lane::slot::Slot;
use crate::reply::FromReply;
use crate::request::Request;
use std::future::Future;
use std::marker::PhantomData;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};
use std::thread::Thread;
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

/// A command whose reply becomes a `T`.
///
/// `C` is whose it is: `&Client` makes it a future, and [`Command::wait`] waits for it without a runtime; `()`
/// is nobody's, for a [batch](Client::batch). `O` stands for the command's own options.
#[must_use = "a command does nothing unless it is awaited, waited for or put into a batch"]
#[derive(Debug)]
pub struct Command<C, T, O = ()> {
    target: C,
    request: Request,
    timeout: Option<Duration>,
    replay: Option<Replay>,
    state: State,
    types: PhantomData<fn() -> (T, O)>,
}

#[derive(Debug)]
enum State {
    New,
    /// There was no room for it, since then.
    Full {
        since: Instant,
    },
    Waits {
        slot: Waiting,
    },
    Done,
}

impl<T, O> Command<(), T, O> {
    /// A command of these words.
    pub fn new(request: Request) -> Command<(), T, O> {
        Command {
            target: (),
            request,
            timeout: None,
            replay: None,
            state: State::New,
            types: PhantomData,
        }
    }

    /// The same command, for this client to send.
    pub fn on(self, client: &Client) -> Command<&Client, T, O> {
        Command {
            target: client,
            request: self.request,
            timeout: self.timeout,
            replay: self.replay,
            state: State::New,
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
            state: State::New,
            types: PhantomData,
        }
    }

    /// One more word, for what has no method of its own.
    pub fn arg(mut self, arg: impl crate::ToArg) -> Self {
        self.request.arg(arg);
        self
    }

    /// More words.
    pub fn args(mut self, args: impl crate::ToArgs) -> Self {
        self.request.args(args);
        self
    }

    /// One more word, which is a key.
    pub fn key(mut self, key: impl crate::ToArg) -> Self {
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

impl<T: FromReply, O> Required<&Client, T, O> {
    /// As [`Command::wait`].
    ///
    /// # Errors
    /// As awaiting it.
    pub fn wait(self) -> Result<T> {
        present(self.0.wait())
    }
}

impl<T: FromReply, O> Future for Required<&Client, T, O> {
    type Output = Result<T>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Result<T>> {
        Pin::new(&mut self.0).poll(cx).map(present)
    }
}

impl<T: FromReply, O> Command<&Client, T, O> {
    /// Sends it, and waits for the reply on this thread, without a runtime.
    ///
    /// # Errors
    /// As awaiting it. Not to be called from within a runtime: it holds up its thread.
    pub fn wait(self) -> Result<T> {
        block_on(self)
    }
}

/// Polls a future on this thread until it is done.
pub(crate) fn block_on<F: Future + Unpin>(mut future: F) -> F::Output {
    thread_local! {
        static PARKER: Waker = Waker::from(Arc::new(Parker(std::thread::current())));
    }
    PARKER.with(|waker| {
        let mut cx = Context::from_waker(waker);
        loop {
            match Pin::new(&mut future).poll(&mut cx) {
                Poll::Ready(done) => return done,
                Poll::Pending => std::thread::park(),
            }
        }
    })
}

struct Parker(Thread);

impl Wake for Parker {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

impl<T: FromReply, O> Future for Command<&Client, T, O> {
    type Output = Result<T>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Result<T>> {
        let this = self.get_mut();
        loop {
            match std::mem::replace(&mut this.state, State::Done) {
                State::Full { since } if this.is_over(since) => {
                    return Poll::Ready(Err(timeout(Phase::Queued, None)));
                }
                before @ (State::New | State::Full { .. }) => {
                    let lane = this.target.lane_of(&this.request)?;
                    let one = std::slice::from_ref(&this.request);
                    match lane.submit(one, this.timeout, cx.waker())? {
                        Submitted::Waits(slot) => {
                            this.state = State::Waits { slot };
                            // It cannot be there yet, and the slot has the waker.
                            return Poll::Pending;
                        }
                        Submitted::Full => {
                            this.state = match before {
                                State::Full { since } => State::Full { since },
                                _ => State::Full { since: Instant::now() },
                            };
                            return Poll::Pending;
                        }
                    }
                }
                State::Waits { slot } => {
                    let Poll::Ready(answer) = slot.poll(cx.waker()) else {
                        this.state = State::Waits { slot };
                        return Poll::Pending;
                    };
                    Slot::give_back(slot);
                    match answer {
                        Ok(reply) => return Poll::Ready(reply.read()),
                        Err(error) if this.may_send_again(&error) => this.state = State::New,
                        Err(error) => return Poll::Ready(Err(error)),
                    }
                }
                State::Done => {
                    let text = "a command was polled after it was done";
                    return Poll::Ready(Err(Error::new(Kind::Invalid, text)));
                }
            }
        }
    }
}

impl<T, O> Command<&Client, T, O> {
    fn is_over(&self, since: Instant) -> bool {
        let timeout = self.timeout.or(self.target.timeout());
        timeout.is_some_and(|timeout| since.elapsed() >= timeout)
    }

    fn may_send_again(&self, error: &Error) -> bool {
        if error.kind() != Kind::Disconnected {
            return false;
        }
        match self.replay.unwrap_or(self.target.replay()) {
            Replay::Never => false,
            Replay::Reads => self.request.traits().reads_only,
            Replay::AtLeastOnce => true,
        }
    }
}
