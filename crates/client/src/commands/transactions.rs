//! Commands of the group `transactions`.
//!
//! Written by the test `client_commands` from the server's command table: do not edit.

use super::BINDS;
use crate::arg::ToArgs;
use crate::command::Command;
use crate::request::Request;

/// Forgets the queued commands and ends the transaction.
///
/// `DISCARD`
///
/// O(N), when N is the number of queued commands. Since Redis 2.0.0. Errors: the server's.
///
/// It changes what the connection is, or tells of it: it is no method of [`Client`](crate::Client), whose
/// connections are shared.
pub fn discard() -> Command<(), ()> {
    Command::typed(Request::new("DISCARD", BINDS))
}

/// Runs the queued commands, unless a watched key was changed.
///
/// `EXEC`
///
/// Depends on commands in the transaction. Since Redis 1.2.0. Errors: the server's; `UnexpectedReply` if `T`
/// does not fit.
///
/// It changes what the connection is, or tells of it: it is no method of [`Client`](crate::Client), whose
/// connections are shared.
pub fn exec<T>() -> Command<(), T> {
    Command::typed(Request::new("EXEC", BINDS))
}

/// Begins a transaction: what follows is queued until EXEC.
///
/// `MULTI`
///
/// O(1). Since Redis 1.2.0. Errors: the server's.
///
/// It changes what the connection is, or tells of it: it is no method of [`Client`](crate::Client), whose
/// connections are shared.
pub fn multi() -> Command<(), ()> {
    Command::typed(Request::new("MULTI", BINDS))
}

/// Forgets which keys are watched.
///
/// `UNWATCH`
///
/// O(1). Since Redis 2.2.0. Errors: the server's.
///
/// It changes what the connection is, or tells of it: it is no method of [`Client`](crate::Client), whose
/// connections are shared.
pub fn unwatch() -> Command<(), ()> {
    Command::typed(Request::new("UNWATCH", BINDS))
}

/// Lets the next EXEC answer null if one of the keys is changed before it.
///
/// `WATCH key …`
///
/// O(1) for every key. Since Redis 2.2.0. Errors: the server's.
///
/// It changes what the connection is, or tells of it: it is no method of [`Client`](crate::Client), whose
/// connections are shared.
pub fn watch(keys: impl ToArgs) -> Command<(), ()> {
    let mut request = Request::new("WATCH", BINDS);
    request.keys(keys);
    Command::typed(request)
}
