//! The client's login: a fixed one, or one that changes while commands run.
//!
//! Each new connection uses the current login. When the login changes, open shared connections send AUTH between
//! commands, and continue whether or not the server accepts it.

use crate::address::Secret;
use crate::error::Result;
use std::fmt;
use std::future::{Future, pending, ready};
use std::pin::Pin;
use std::sync::Arc;
use tokio::sync::watch;

/// A boxed future.
pub type BoxFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// A user and a password, or no login. `Debug` does not show the password.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Login {
    pub(crate) user: Option<String>,
    pub(crate) password: Option<Secret>,
}

impl Login {
    /// Returns a login with a user and a password.
    #[must_use]
    pub fn new(user: impl Into<String>, password: impl Into<String>) -> Login {
        Login { user: Some(user.into()), password: Some(Secret(password.into())) }
    }

    /// Returns a login with only a password, for the user `default`.
    #[must_use]
    pub fn password(password: impl Into<String>) -> Login {
        Login { user: None, password: Some(Secret(password.into())) }
    }

    /// Returns an empty login, with which connections do not authenticate.
    #[must_use]
    pub fn none() -> Login {
        Login { user: None, password: None }
    }
}

/// A source of logins, for [`Builder::credentials`](crate::Builder::credentials).
///
/// A [`Login`] never changes; the program can change a [`Rotating`] login. Implement the trait to read logins from a
/// vault or a token provider:
///
/// ```no_run
/// use brisk::{BoxFuture, Credentials, Login};
/// use std::time::Duration;
///
/// struct Tokens;
///
/// impl Credentials for Tokens {
///     fn current(&self) -> BoxFuture<'_, brisk::Result<Login>> {
///         Box::pin(async { Ok(Login::new("app", read_token().await)) })
///     }
///
///     fn changed<'a>(&'a self, known: &'a Login) -> BoxFuture<'a, ()> {
///         Box::pin(async move {
///             while Login::new("app", read_token().await) == *known {
///                 tokio::time::sleep(Duration::from_secs(30)).await;
///             }
///         })
///     }
/// }
/// # async fn read_token() -> String { String::new() }
/// ```
pub trait Credentials: Send + Sync + 'static {
    /// Returns the current login. Called for each new connection, within the time limit for connecting.
    ///
    /// # Errors
    /// If no login is available, the connection is not opened, and the client tries again, as if the server could not
    /// be reached.
    fn current(&self) -> BoxFuture<'_, Result<Login>>;

    /// Waits until the login differs from `known`. The default implementation waits forever. The future may be dropped
    /// at any time.
    fn changed<'a>(&'a self, known: &'a Login) -> BoxFuture<'a, ()> {
        let _ = known;
        Box::pin(pending())
    }
}

impl Credentials for Login {
    fn current(&self) -> BoxFuture<'_, Result<Login>> {
        Box::pin(ready(Ok(self.clone())))
    }
}

/// A login that the program can change: keep a clone, and call [`set`](Rotating::set) with the next login.
///
/// ```no_run
/// # async fn example() -> brisk::Result<()> {
/// let login = brisk::Rotating::new(brisk::Login::new("app", "first"));
/// let db = brisk::Client::builder("redis://h").credentials(login.clone()).connect().await?;
/// // Once the server also accepts the next password:
/// login.set(brisk::Login::new("app", "second"));
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct Rotating(Arc<watch::Sender<Login>>);

impl Rotating {
    /// Returns a source that begins with this login.
    #[must_use]
    pub fn new(login: Login) -> Rotating {
        Rotating(Arc::new(watch::Sender::new(login)))
    }

    /// Changes the login, for new connections and for open shared connections.
    pub fn set(&self, login: Login) {
        self.0.send_replace(login);
    }
}

impl Credentials for Rotating {
    fn current(&self) -> BoxFuture<'_, Result<Login>> {
        Box::pin(ready(Ok(self.0.borrow().clone())))
    }

    fn changed<'a>(&'a self, known: &'a Login) -> BoxFuture<'a, ()> {
        Box::pin(async move {
            // The channel cannot be closed, because `self` has its sender.
            let _ = self.0.subscribe().wait_for(|login| login != known).await;
        })
    }
}

/// The credentials of a client.
#[derive(Clone)]
pub(crate) struct Source {
    pub(crate) credentials: Arc<dyn Credentials>,
    /// True if open connections may have to authenticate again.
    pub(crate) may_change: bool,
}

impl fmt::Debug for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("***")
    }
}

impl Source {
    pub(crate) fn fixed(login: Login) -> Source {
        Source { credentials: Arc::new(login), may_change: false }
    }

    pub(crate) fn changing(credentials: impl Credentials) -> Source {
        Source { credentials: Arc::new(credentials), may_change: true }
    }
}
