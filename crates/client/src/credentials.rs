//! Who we are, for a server: a login that stays, or one that changes while commands run.
//!
//! Each new connection asks for the login of that moment. Connections that are there and shared are told of a new
//! one with AUTH, between the commands of others; whatever the server makes of it, they go on.

use crate::address::Secret;
use crate::error::Result;
use std::fmt;
use std::future::{Future, pending, ready};
use std::pin::Pin;
use std::sync::Arc;
use tokio::sync::watch;

/// A future in a box.
pub type BoxFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// A user and a password, or nobody. The password is not shown.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Login {
    pub(crate) user: Option<String>,
    pub(crate) password: Option<Secret>,
}

impl Login {
    /// A user and his password.
    #[must_use]
    pub fn new(user: impl Into<String>, password: impl Into<String>) -> Login {
        Login { user: Some(user.into()), password: Some(Secret(password.into())) }
    }

    /// A password alone, which is that of the user `default`.
    #[must_use]
    pub fn password(password: impl Into<String>) -> Login {
        Login { user: None, password: Some(Secret(password.into())) }
    }

    /// Nobody in particular.
    #[must_use]
    pub fn nobody() -> Login {
        Login { user: None, password: None }
    }
}

/// Who knows the login of the moment: for [`Builder::credentials`](crate::Builder::credentials).
///
/// A [`Login`] is one that never changes, [`Rotating`] one that the program changes. One of your own may ask a
/// vault, or a provider of tokens:
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
    /// The login of this moment. Asked for each connection, within the time for connecting.
    ///
    /// # Errors
    /// There is none now: no connection is made, and it is tried again as if the server were not there.
    fn current(&self) -> BoxFuture<'_, Result<Login>>;

    /// Waits until the login is another one than this. By default for ever. It may be dropped at any moment.
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

/// A login that the program changes: keep a clone, and [`set`](Rotating::set) the next one.
///
/// ```no_run
/// # async fn example() -> brisk::Result<()> {
/// let login = brisk::Rotating::new(brisk::Login::new("app", "first"));
/// let db = brisk::Client::builder("redis://h").credentials(login.clone()).connect().await?;
/// // When the server knows the next password as well:
/// login.set(brisk::Login::new("app", "second"));
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct Rotating(Arc<watch::Sender<Login>>);

impl Rotating {
    /// With this login at first.
    #[must_use]
    pub fn new(login: Login) -> Rotating {
        Rotating(Arc::new(watch::Sender::new(login)))
    }

    /// From now on it is this one: for new connections, and for those that are there and shared.
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
            // It cannot be closed, since we have it.
            let _ = self.0.subscribe().wait_for(|login| login != known).await;
        })
    }
}

/// Those of a client.
#[derive(Clone)]
pub(crate) struct Source {
    pub(crate) credentials: Arc<dyn Credentials>,
    /// Connections that are there may have to be told of another login.
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
