//! External events that concern an open connection: a failover reported by Sentinel, and a change of the login.

use super::cell::{Shared, Submitted};
use super::connect::{Origin, Setup};
use super::pending_reply::PendingReply;
use crate::credentials::Login;
use crate::error::{Error, Result};
use crate::reply::Reply;
use crate::request::{Request, Traits};
use std::convert::Infallible;
use std::future::{pending, poll_fn};
use std::slice;
use std::task::Poll;
use std::time::{Duration, Instant};
use tokio::time::{sleep, sleep_until};

/// The first and the longest wait before a rejected login is tried again.
const RETRY_FIRST: Duration = Duration::from_millis(250);
const RETRY_LONGEST: Duration = Duration::from_secs(32);

/// Reports whether the driver has to watch external events. If not, a driver that wakes up checks only its lane.
pub(super) fn is_needed(setup: &Setup) -> bool {
    setup.destination.wants_primary() || setup.credentials.may_change
}

/// Completes when the connection must be closed, and returns the reason.
pub(super) async fn watch(
    setup: &Setup,
    shared: &Shared,
    origin: &Origin,
    is_shared: bool,
) -> Error {
    tokio::select! {
        // The order matters: held requests must not be sent to a primary that has been demoted.
        biased;
        error = setup.destination.left(origin) => error,
        never = hold_back(setup, shared) => match never {},
        never = keep_logged_in(setup, shared, &origin.login, is_shared) => match never {},
    }
}

/// Decides whether requests are held back. Call this before the connection is used.
pub(super) fn begin(setup: &Setup, shared: &Shared) {
    let until = setup.destination.held_until().and_then(|until| *until.borrow());
    shared.hold(until.is_some_and(|until| until > Instant::now()));
}

/// Sends no new requests while the primary is about to be demoted.
async fn hold_back(setup: &Setup, shared: &Shared) -> Infallible {
    let Some(mut holds) = setup.destination.held_until() else { return pending().await };
    loop {
        let until = *holds.borrow_and_update();
        let until = until.filter(|until| *until > Instant::now());
        shared.hold(until.is_some());
        let over = async {
            match until {
                Some(until) => sleep_until(until.into()).await,
                None => pending().await,
            }
        };
        tokio::select! {
            changed = holds.changed() => if changed.is_err() {
                return pending().await;
            },
            () = over => {}
        }
    }
}

/// Sends AUTH when the login changes. The reply does not affect other requests: if the server rejects the login, the
/// connection keeps its user, and AUTH is sent again later.
async fn keep_logged_in(
    setup: &Setup,
    shared: &Shared,
    first: &Login,
    is_shared: bool,
) -> Infallible {
    if !is_shared {
        // The connection may be in a transaction, and AUTH would become a part of it.
        return pending().await;
    }
    let credentials = &setup.credentials.credentials;
    let mut known = first.clone();
    loop {
        credentials.changed(&known).await;
        let mut retry = RETRY_FIRST;
        loop {
            if let Ok(login) = credentials.current().await {
                let is_over = login == known || login.password.is_none();
                if is_over || send(shared, &auth(&login)).await.is_ok() {
                    known = login;
                    break;
                }
            }
            sleep(retry).await;
            retry = (retry * 2).min(RETRY_LONGEST);
        }
    }
}

/// The AUTH command for a login that has a password.
pub(super) fn auth(login: &Login) -> Request {
    let mut auth = Request::new("AUTH", Traits::default());
    login.user.iter().for_each(|user| auth.arg(user));
    login.password.iter().for_each(|password| auth.arg(&password.0));
    auth
}

/// Sends a request between the requests of callers.
async fn send(shared: &Shared, request: &Request) -> Result<()> {
    let mut sent = None;
    let result = poll_fn(|cx| match sent.take() {
        None => match shared.submit(slice::from_ref(request), None, cx.waker()) {
            Ok(Submitted::Waits(pending_reply)) => {
                sent = Some(pending_reply);
                Poll::Pending
            }
            Ok(Submitted::Full) => Poll::Pending,
            Ok(Submitted::Ready(reply)) => Poll::Ready(Ok(reply)),
            Err(error) => Poll::Ready(Err(error)),
        },
        Some(pending_reply) => match pending_reply.poll(cx.waker()) {
            Poll::Ready(result) => {
                PendingReply::give_back(pending_reply);
                Poll::Ready(result)
            }
            Poll::Pending => {
                sent = Some(pending_reply);
                Poll::Pending
            }
        },
    });
    result.await.and_then(|reply: Reply| reply.read())
}
