//! Commands of the group `transactions`.
//!
//! Written by the test `client_commands` from the server's command table: do not edit.

use super::BINDS;
use crate::arg::ToArgs;
use crate::command::Command;
use crate::request::Request;

/// Discards the queued commands and ends the transaction.
///
/// `DISCARD`
///
/// O(N) in the number of queued commands. Since Redis 2.0.0. Errors: those of the server.
///
/// This command changes or reports the state of its connection, so it is not a method of
/// [`Client`](crate::Client), whose connections are shared.
pub fn discard() -> Command<(), ()> {
    Command::typed(Request::new("DISCARD", BINDS))
}

/// Executes the queued commands, unless a watched key was changed.
///
/// `EXEC`
///
/// Depends on the queued commands. Since Redis 1.2.0. Errors: those of the server; `UnexpectedReply` if the
/// reply cannot be converted to `T`.
///
/// This command changes or reports the state of its connection, so it is not a method of
/// [`Client`](crate::Client), whose connections are shared.
pub fn exec<T>() -> Command<(), T> {
    Command::typed(Request::new("EXEC", BINDS))
}

/// Starts a transaction: the following commands are queued until EXEC.
///
/// `MULTI`
///
/// O(1). Since Redis 1.2.0. Errors: those of the server.
///
/// This command changes or reports the state of its connection, so it is not a method of
/// [`Client`](crate::Client), whose connections are shared.
pub fn multi() -> Command<(), ()> {
    Command::typed(Request::new("MULTI", BINDS))
}

/// Stops watching all keys.
///
/// `UNWATCH`
///
/// O(1). Since Redis 2.2.0. Errors: those of the server.
///
/// This command changes or reports the state of its connection, so it is not a method of
/// [`Client`](crate::Client), whose connections are shared.
pub fn unwatch() -> Command<(), ()> {
    Command::typed(Request::new("UNWATCH", BINDS))
}

/// Watches keys: the next EXEC returns null if one of them has changed.
///
/// `WATCH key …`
///
/// O(1) for every key. Since Redis 2.2.0. Errors: those of the server.
///
/// This command changes or reports the state of its connection, so it is not a method of
/// [`Client`](crate::Client), whose connections are shared.
pub fn watch(keys: impl ToArgs) -> Command<(), ()> {
    let mut request = Request::new("WATCH", BINDS);
    request.keys(keys);
    Command::typed(request)
}
