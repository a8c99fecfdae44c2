//! A connection for one caller: for commands that change the state of a connection, and for blocking commands.

use crate::batch::{Commands, Transaction};
use crate::blocking::{self, BlockLimit};
use crate::client::Client;
use crate::command::sealed::Target;
use crate::command::{Command, Replay, SendPlan, UNLIMITED};
use crate::error::{Code, Error, Kind, Result};
use crate::lane::Lane;
use crate::lane::cell::Submitted;
use crate::lane::connect::Setup;
use crate::lane::driver::Jitter;
use crate::observe::ObservedServer;
use crate::request::{Request, Traits};
use crate::wait::Home;
use std::fmt;
use std::sync::Arc;
use std::task::Waker;
use std::time::Duration;
use tokio::time::sleep;

/// The number of attempts that [`Client::watch`] makes before it gives up.
const ATTEMPTS: usize = 16;
/// Pauses between attempts. Each pause is shortened by a random amount, at most half of it. Otherwise, transactions
/// that collided once would collide again.
const PAUSE_FIRST: Duration = Duration::from_micros(250);
const PAUSE_LONGEST: Duration = Duration::from_millis(50);

/// A connection for one caller, for SELECT, WATCH, MULTI over several awaits, and blocking commands.
///
/// [`Client::session`] opens one. A session does not reconnect, since its state (the database, watched keys) would be
/// lost silently. After the connection is lost, its commands fail; open a new session. [`Client::close`] also closes
/// the client's sessions.
///
/// A blocking command (BLPOP, XREAD with BLOCK, WAIT …) may take as long as the timeout in its arguments plus the
/// client's time limit. After that, the command fails. A command that blocks without a timeout (0) has no limit. If the
/// server's machine fails, TCP keep-alive detects this after about four seconds. A server process that hangs cannot be
/// distinguished from one that has nothing to send.
pub struct Session {
    lane: Lane,
    timeout: Option<Duration>,
    setup: Arc<Setup>,
}

impl fmt::Debug for Session {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Session")
            .field("server", &self.setup.server())
            .field("lane", &self.lane)
            .finish_non_exhaustive()
    }
}

impl Session {
    pub(crate) fn new(lane: Lane, timeout: Option<Duration>, setup: Arc<Setup>) -> Session {
        Session { lane, timeout, setup }
    }

    /// Builds a command by name, like [`Client::raw`].
    pub fn raw<T>(&self, name: &str) -> Command<&Session, T> {
        Command::new(Request::named(name)).on(self)
    }

    /// Like [`Client::transaction`]. Fails with [`Kind::Aborted`] if a watched key has changed.
    pub fn transaction<B: Commands>(&self, commands: B) -> Transaction<&Session, B> {
        Transaction::new(self, commands)
    }

    /// Closes the connection. The connection is never reused, because its state could affect other callers.
    pub fn close(&self) {
        self.lane.close();
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        self.lane.close();
    }
}

impl Target for Session {
    #[expect(private_interfaces, reason = "not nameable or callable outside this crate")]
    fn submit(&self, plan: &SendPlan<'_>, waker: &Waker) -> Result<Submitted> {
        let waits = || blocking::limit(plan.requests, self.timeout);
        let own = plan.timeout.or_else(|| {
            waits().map(|waits| match waits {
                BlockLimit::Within(time) => time,
                BlockLimit::Unlimited => UNLIMITED,
            })
        });
        self.lane.submit(plan.requests, own, waker)
    }

    #[expect(private_interfaces, reason = "not nameable or callable outside this crate")]
    fn observed(&self, _: &SendPlan<'_>) -> Option<&Arc<ObservedServer>> {
        self.setup.observed.as_ref()
    }

    fn default_replay(&self) -> Replay {
        Replay::Never
    }

    fn default_timeout(&self) -> Option<Duration> {
        self.timeout
    }

    #[expect(private_interfaces, reason = "not nameable or callable outside this crate")]
    fn home(&self) -> Home {
        self.setup.home
    }
}

/// The return value of the closure that is passed to [`Client::watch`]: the commands to execute, or none.
#[derive(Debug)]
pub enum Step<B> {
    /// Execute these commands, if no watched key has changed.
    Commit(B),
    /// Execute nothing.
    Abort,
}

impl Client {
    /// Opens a connection for one caller, with the client's login and database. In a cluster, the session connects to
    /// the primary that has the first slot; see [`Client::session_for`].
    ///
    /// # Errors
    /// The server cannot be reached, or rejects the connection.
    pub async fn session(&self) -> Result<Session> {
        self.open_session(None).await
    }

    /// Like [`Client::session`]. In a cluster, the session connects to the primary that has this key, and sends
    /// commands only to this node. A command on a key of another node fails with `MOVED`
    /// ([`Code::Moved`](crate::Code::Moved)).
    ///
    /// # Errors
    /// The server cannot be reached, or rejects the connection.
    pub async fn session_for(&self, key: impl crate::arg::ToArg) -> Result<Session> {
        let mut request = Request::new("", Traits::default());
        request.key(key);
        self.open_session(request.first_key()).await
    }

    /// Executes a transaction with optimistic locking: watches the keys, and then calls `work`, which reads values and
    /// returns the commands to execute. The commands are executed if no watched key has changed in the meantime.
    ///
    /// If a key has changed, the whole sequence is repeated, up to sixteen times, after short pauses that grow and are
    /// partly random. `None` if `work` returned [`Step::Abort`].
    ///
    /// ```no_run
    /// # async fn example(db: brisk::Client) -> brisk::Result<()> {
    /// use brisk::{Step, commands};
    /// let left = db
    ///     .watch(["stock:7"], async |session| {
    ///         let left: Option<i64> = session.get("stock:7").await?;
    ///         Ok(match left {
    ///             Some(1..) => Step::Commit((commands::decr("stock:7"),)),
    ///             _ => Step::Abort,
    ///         })
    ///     })
    ///     .await?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// The error of `work`; [`Kind::Aborted`] if a watched key changed in every attempt.
    pub async fn watch<B: Commands>(
        &self,
        keys: impl crate::arg::ToArgs,
        work: impl AsyncFn(&Session) -> Result<Step<B>>,
    ) -> Result<Option<B::Output>> {
        let watch = || {
            let mut watch = Request::new("WATCH", Traits { binds: true, ..Traits::default() });
            watch.keys(&keys);
            watch
        };
        let mut session = self.open_session(watch().first_key()).await?;
        let mut random = Jitter::new();
        for number in 0..ATTEMPTS {
            if number > 0 {
                let pause = random.spread((PAUSE_FIRST * (1 << number.min(16))).min(PAUSE_LONGEST));
                self.run_on_runtime(async move {
                    sleep(pause).await;
                    Ok(())
                })
                .await?;
            }
            let attempt = async {
                Command::<(), ()>::new(watch()).on(&session).await?;
                let Step::Commit(commands) = work(&session).await? else { return Ok(None) };
                session.transaction(commands).await.map(Some)
            };
            match attempt.await {
                Err(error) if error.kind() == Kind::Aborted => {}
                Err(error) if self.has_moved(&error) => {
                    session = self.open_session(watch().first_key()).await?;
                }
                done => return done,
            }
        }
        let text = format!("a watched key has changed or moved in each of {ATTEMPTS} attempts");
        Err(Error::new(Kind::Aborted, text))
    }

    /// Reports whether the error means that a key has moved to another node. If so, records that node in the cluster
    /// map.
    pub(crate) fn has_moved(&self, error: &Error) -> bool {
        let is_moved = error.code() == Some(Code::Moved);
        match self.cluster() {
            Some(cluster) if is_moved => {
                cluster.learn(error);
                true
            }
            _ => false,
        }
    }
}
