//! Several commands together, as a batch ([`Batch`]) or as a transaction ([`Transaction`]).
//!
//! Both are sent as a unit and take one round trip. On the connection, no command of another caller comes between the
//! commands of a batch. Between the commands of a transaction, the server executes no commands of other clients.

use crate::client::Client;
use crate::command::{Command, Grouping, Replay, SendPlan, Target, wait_for};
use crate::error::{Code, Error, Executed, Kind, Result, is_in_part};
use crate::observe::observed::ObservedState;
use crate::reply::{FromReply, Reader, Reply};
use crate::request::{Request, Traits};
use brisk_resp::reply::read::Part;
use std::future::Future;
use std::marker::PhantomData;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

/// Commands for a batch or a transaction: a tuple of up to twelve commands, or a `Vec` of commands of one type. They
/// are not bound to a client: use the functions in [`commands`](crate::commands), or [`Command::new`].
pub trait Commands: sealed::Commands {}

impl<T: sealed::Commands> Commands for T {}

mod sealed {
    use super::{Reader, Request, Result};

    #[diagnostic::on_unimplemented(
        message = "`{Self}` is not a tuple or a `Vec` of commands without a client",
        label = "not a tuple or a `Vec` of commands without a client",
        note = "use the functions in `brisk::commands`: `commands::get(…)` instead of `db.get(…)`",
        note = "one command is a tuple with a comma: `(commands::incr(\"n\"),)`"
    )]
    pub trait Commands {
        type Output;

        fn into_requests(self, requests: &mut Vec<Request>);

        /// Converts consecutive replies to values.
        fn read(count: usize, reader: &mut Reader<'_>) -> Result<Self::Output>;
    }
}

/// Reads one whole reply, even if it is an error or of another type, so that the reader is positioned at the next
/// reply.
fn one<T: FromReply>(reader: &mut Reader<'_>) -> Result<Result<T>> {
    let mut after = reader.clone();
    after.skip()?;
    let value = T::from_reply(reader);
    *reader = after;
    Ok(value)
}

macro_rules! tuples {
    ($($($type:ident $options:ident $value:ident)*;)*) => {$(
        impl<$($type: FromReply, $options),*> sealed::Commands for ($(Command<(), $type, $options>,)*) {
            type Output = ($($type,)*);

            fn into_requests(self, requests: &mut Vec<Request>) {
                let ($($value,)*) = self;
                $(requests.push($value.into_request());)*
            }

            fn read(_: usize, reader: &mut Reader<'_>) -> Result<Self::Output> {
                $(let $value = one::<$type>(reader)?;)*
                Ok(($($value?,)*))
            }
        }
    )*};
}

tuples! {
    A A1 a;
    A A1 a B B1 b;
    A A1 a B B1 b C C1 c;
    A A1 a B B1 b C C1 c D D1 d;
    A A1 a B B1 b C C1 c D D1 d E E1 e;
    A A1 a B B1 b C C1 c D D1 d E E1 e F F1 f;
    A A1 a B B1 b C C1 c D D1 d E E1 e F F1 f G G1 g;
    A A1 a B B1 b C C1 c D D1 d E E1 e F F1 f G G1 g H H1 h;
    A A1 a B B1 b C C1 c D D1 d E E1 e F F1 f G G1 g H H1 h I I1 i;
    A A1 a B B1 b C C1 c D D1 d E E1 e F F1 f G G1 g H H1 h I I1 i J J1 j;
    A A1 a B B1 b C C1 c D D1 d E E1 e F F1 f G G1 g H H1 h I I1 i J J1 j K K1 k;
    A A1 a B B1 b C C1 c D D1 d E E1 e F F1 f G G1 g H H1 h I I1 i J J1 j K K1 k L L1 l;
}

impl<T: FromReply, O> sealed::Commands for Vec<Command<(), T, O>> {
    type Output = Vec<T>;

    fn into_requests(self, requests: &mut Vec<Request>) {
        requests.extend(self.into_iter().map(Command::into_request));
    }

    fn read(count: usize, reader: &mut Reader<'_>) -> Result<Vec<T>> {
        (0..count).map(|_| one::<T>(reader)?).collect()
    }
}

/// Converts the replies to these requests into values. An error records which of the requests were
/// executed.
fn read_all<B: Commands>(requests: &[Request], replies: &Reader<'_>) -> Result<B::Output> {
    let failed = |error: Error| error.of_several(each_executed(requests, replies.clone()));
    B::read(requests.len(), &mut replies.clone()).map_err(failed)
}

/// Returns for each request whether it was executed, according to its reply, and whether it only reads.
fn each_executed(
    requests: &[Request],
    mut replies: Reader<'_>,
) -> impl Iterator<Item = (Executed, bool)> {
    requests.iter().map(move |request| {
        let executed = match replies.peek() {
            Ok(Part::Error(text)) if is_in_part(text) => Executed::Unknown,
            Ok(Part::Error(_)) => Executed::No,
            Ok(_) => Executed::Yes,
            Err(_) => Executed::Unknown,
        };
        let is_read = replies.skip().is_ok();
        (if is_read { executed } else { Executed::Unknown }, request.traits().reads_only)
    })
}

impl Client {
    /// Sends commands together, in one round trip.
    ///
    /// The server executes each command, even if others fail. The first error becomes the error of the batch, and
    /// [`Error::executed`] lists which commands were executed. If the reply type of a command is `Result<T>`, its error
    /// is returned as its own result instead.
    ///
    /// The first key in the batch selects the lane. In a cluster, the commands are grouped by node and sent to all
    /// nodes at the same time. The replies are in the order of the commands.
    ///
    /// ```no_run
    /// # async fn example(db: brisk::Client) -> brisk::Result<()> {
    /// use brisk::commands;
    /// let (a, n) = db.batch((commands::get::<String>("a"), commands::incr("n"))).await?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn batch<B: Commands>(&self, commands: B) -> Batch<&Client, B> {
        Batch::new(self, commands)
    }

    /// Sends commands as a transaction (from MULTI to EXEC), in one round trip. The server executes no other command
    /// between them.
    ///
    /// If the server rejects a command while queuing it, no command is executed. If the server rejects MULTI itself,
    /// for example because the user lacks the permission, the commands are executed one by one, and
    /// [`maybe_applied`](crate::Error::maybe_applied) of the error is true.
    ///
    /// In a cluster all keys must be in one slot. Otherwise the transaction fails with [`Code::CrossSlot`], and nothing
    /// is sent.
    pub fn transaction<B: Commands>(&self, commands: B) -> Transaction<&Client, B> {
        Transaction::new(self, commands)
    }
}

/// Commands that are sent together; [`Client::batch`] returns it.
#[must_use = "a batch does nothing unless it is awaited or waited for"]
#[derive(Debug)]
pub struct Batch<C, B> {
    target: C,
    requests: Vec<Request>,
    timeout: Option<Duration>,
    replay: Option<Replay>,
    grouping: Grouping,
    state: ObservedState,
    types: PhantomData<fn() -> B>,
}

impl<C, B: Commands> Batch<C, B> {
    pub(crate) fn new(target: C, commands: B) -> Batch<C, B> {
        let mut requests = Vec::new();
        commands.into_requests(&mut requests);
        Batch {
            target,
            requests,
            timeout: None,
            replay: None,
            grouping: Grouping::Separate,
            state: ObservedState::default(),
            types: PhantomData,
        }
    }

    /// Overrides the client's time limit for receiving all replies.
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = Some(timeout);
        self
    }

    /// Overrides the client's setting for whether the batch may be sent again. With [`Replay::Reads`] it is sent again
    /// only if all its commands are reads.
    pub fn replay(mut self, replay: Replay) -> Self {
        self.replay = Some(replay);
        self
    }
}

impl<C: Target, B: Commands> Batch<&C, B> {
    /// Like [`Command::wait`].
    ///
    /// # Errors
    /// The same as when awaited.
    pub fn wait(self) -> Result<B::Output> {
        let limit = self.limit();
        wait_for(self.target, limit, self)
    }

    fn limit(&self) -> Option<Duration> {
        let plan = SendPlan {
            requests: &self.requests,
            timeout: self.timeout,
            replay: self.replay,
            grouping: self.grouping,
        };
        plan.limit(self.target.default_timeout())
    }

    fn poll_replies(&mut self, cx: &mut Context<'_>) -> Poll<Result<Reply>> {
        let plan = SendPlan {
            requests: &self.requests,
            timeout: self.timeout,
            replay: self.replay,
            grouping: self.grouping,
        };
        self.state.poll(self.target, &plan, cx)
    }
}

impl<C: Target, B: Commands> Future for Batch<&C, B> {
    type Output = Result<B::Output>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let this = self.get_mut();
        this.poll_replies(cx).map(|reply| read_all::<B>(&this.requests, &reply?.reader()))
    }
}

/// Commands that are executed together; [`Client::transaction`] returns it.
#[must_use = "a transaction does nothing unless it is awaited or waited for"]
#[derive(Debug)]
pub struct Transaction<C, B>(Batch<C, B>);

impl<C, B: Commands> Transaction<C, B> {
    pub(crate) fn new(target: C, commands: B) -> Transaction<C, B> {
        let mut batch = Batch::new(target, commands);
        batch.grouping = Grouping::Transaction;
        // The first request selects the lane. MULTI has no key, so it uses the first key of the commands.
        let traits = Traits::default();
        let first = batch.requests.iter().find_map(Request::first_key).map(<[u8]>::to_vec);
        let mut multi = Request::new("MULTI", traits);
        if let Some(key) = first {
            multi.goes_with(&key);
        }
        batch.requests.insert(0, multi);
        batch.requests.push(Request::new("EXEC", traits));
        Transaction(batch)
    }

    /// Overrides the client's time limit for receiving all replies.
    pub fn timeout(self, timeout: Duration) -> Self {
        Transaction(self.0.timeout(timeout))
    }
}

impl<C: Target, B: Commands> Transaction<&C, B> {
    /// Like [`Command::wait`].
    ///
    /// # Errors
    /// The same as when awaited.
    pub fn wait(self) -> Result<B::Output> {
        let (target, limit) = (self.0.target, self.0.limit());
        wait_for(target, limit, self)
    }

    fn read(&self, reply: &Reply) -> Result<B::Output> {
        let own = match &self.0.requests[..] {
            [_, own @ .., _] => own,
            _ => &[],
        };
        let mut reader = reply.reader();
        if let Err(error) = one::<()>(&mut reader)? {
            // Only MULTI was rejected: the server executed the commands after it one by one.
            let each: Vec<_> = each_executed(own, reader).collect();
            let note = "without MULTI the commands were executed one by one";
            let executed = each.iter().any(|(executed, _)| *executed != Executed::No);
            let error = if executed { error.with_note(note).after_sending() } else { error };
            return Err(error.of_several(each.into_iter()));
        }
        let mut rejected = None;
        for _ in own {
            if let Err(error) = one::<()>(&mut reader)? {
                rejected.get_or_insert(error);
            }
        }
        match reader.part() {
            Ok(Part::Array(executed)) if executed == own.len() as u64 => {
                read_all::<B>(own, &reader)
            }
            Ok(Part::Null) => {
                Err(Error::new(Kind::Aborted, "a watched key has changed, nothing was executed"))
            }
            Ok(part) => Err(Error::unexpected("a reply to EXEC", &part).after_sending()),
            // The error of the rejected command is more specific than EXECABORT.
            Err(error) if error.code() == Some(Code::ExecAbort) => Err(rejected.unwrap_or(error)),
            Err(error) => Err(error),
        }
    }
}

impl<C: Target, B: Commands> Future for Transaction<&C, B> {
    type Output = Result<B::Output>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let this = self.get_mut();
        this.0.poll_replies(cx).map(|reply| this.read(&reply?))
    }
}
