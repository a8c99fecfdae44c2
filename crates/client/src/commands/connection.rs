//! Commands of the group `connection`.
//!
//! Written by the test `client_commands` from the server's command table: do not edit.

use super::{BINDS, PLAIN};
use crate::arg::{ToArg, ToArgs};
use crate::command::Command;
use crate::commands::{options, types};
use crate::request::Request;

/// Says who the client is, by a password.
///
/// `AUTH [username] password`
///
/// O(N) where N is the number of passwords defined for the user. Since Redis 1.0.0. Errors: the server's.
///
/// It changes what the connection is, or tells of it: it is no method of [`Client`](crate::Client), whose
/// connections are shared.
pub fn auth(password: impl ToArg) -> Command<(), (), options::Auth> {
    let mut request = Request::new("AUTH", BINDS);
    request.end_of_options();
    request.arg(password);
    Command::typed(request)
}

/// Says whether the keys of the connection's next command are tracked.
///
/// `CLIENT CACHING <YES | NO>`
///
/// O(1). Since Redis 6.0.0. Errors: the server's.
///
/// It changes what the connection is, or tells of it: it is no method of [`Client`](crate::Client), whose
/// connections are shared.
pub fn client_caching(mode: types::YesNo) -> Command<(), ()> {
    let mut request = Request::new("CLIENT CACHING", BINDS);
    request.arg(mode);
    Command::typed(request)
}

/// Tells what the client can do.
///
/// `CLIENT CAPA capability …`
///
/// O(1). Since Redis 8.0.0. Errors: the server's.
///
/// It changes what the connection is, or tells of it: it is no method of [`Client`](crate::Client), whose
/// connections are shared.
pub fn client_capa(capabilities: impl ToArgs) -> Command<(), ()> {
    let mut request = Request::new("CLIENT CAPA", BINDS);
    request.args(capabilities);
    Command::typed(request)
}

/// Says how far changes must have come before the connection is answered.
///
/// `CLIENT DURABILITY [MEMORY | LOG | DISK | DEFAULT] [REPLICAS numreplicas [TIMEOUT milliseconds]]`
///
/// O(1). Since Redis 7.2.0. Errors: the server's.
///
/// It changes what the connection is, or tells of it: it is no method of [`Client`](crate::Client), whose
/// connections are shared.
pub fn client_durability() -> Command<(), (), options::ClientDurability> {
    Command::typed(Request::new("CLIENT DURABILITY", BINDS))
}

/// Tells the name of the connection.
///
/// `CLIENT GETNAME`
///
/// O(1). Since Redis 2.6.9. Errors: the server's; `UnexpectedReply` if `T` does not fit.
pub fn client_getname<T>() -> Command<(), Option<T>> {
    Command::typed(Request::new("CLIENT GETNAME", PLAIN))
}

/// Tells the client id that invalidations for this connection go to.
///
/// `CLIENT GETREDIR`
///
/// O(1). Since Redis 6.0.0. Errors: the server's.
pub fn client_getredir() -> Command<(), i64> {
    Command::typed(Request::new("CLIENT GETREDIR", PLAIN))
}

/// Lists the subcommands.
///
/// `CLIENT HELP`
///
/// O(1). Since Redis 5.0.0. Errors: the server's.
pub fn client_help() -> Command<(), Vec<String>> {
    Command::typed(Request::new("CLIENT HELP", PLAIN))
}

/// Tells the id of the connection.
///
/// `CLIENT ID`
///
/// O(1). Since Redis 5.0.0. Errors: the server's.
pub fn client_id() -> Command<(), i64> {
    Command::typed(Request::new("CLIENT ID", PLAIN))
}

/// Describes the connection in one line.
///
/// `CLIENT INFO`
///
/// O(1). Since Redis 6.2.0. Errors: the server's.
pub fn client_info() -> Command<(), String> {
    Command::typed(Request::new("CLIENT INFO", PLAIN))
}

/// Closes connections.
///
/// `CLIENT KILL [ID client-id] [TYPE NORMAL | MASTER | SLAVE | REPLICA | PUBSUB] [USER username] [ADDR
/// ip:port] [LADDR ip:port] [SKIPME yes/no] [MAXAGE maxage]`
///
/// O(N) where N is the number of client connections. Since Redis 2.4.0. Errors: the server's.
pub fn client_kill() -> Command<(), i64, options::ClientKill> {
    Command::typed(Request::new("CLIENT KILL", PLAIN))
}

/// Describes connections, a line each.
///
/// `CLIENT LIST [TYPE NORMAL | MASTER | REPLICA | PUBSUB] [ID client-id …]`
///
/// O(N) where N is the number of client connections. Since Redis 2.4.0. Errors: the server's.
pub fn client_list() -> Command<(), String, options::ClientList> {
    Command::typed(Request::new("CLIENT LIST", PLAIN))
}

/// Says whether the connection is spared when clients take too much memory.
///
/// `CLIENT NO-EVICT <ON | OFF>`
///
/// O(1). Since Redis 7.0.0. Errors: the server's.
///
/// It changes what the connection is, or tells of it: it is no method of [`Client`](crate::Client), whose
/// connections are shared.
pub fn client_no_evict(enabled: types::Switch) -> Command<(), ()> {
    let mut request = Request::new("CLIENT NO-EVICT", BINDS);
    request.arg(enabled);
    Command::typed(request)
}

/// Says whether commands of the connection leave the access times of keys alone.
///
/// `CLIENT NO-TOUCH <ON | OFF>`
///
/// O(1). Since Redis 7.2.0. Errors: the server's.
///
/// It changes what the connection is, or tells of it: it is no method of [`Client`](crate::Client), whose
/// connections are shared.
pub fn client_no_touch(enabled: types::Switch) -> Command<(), ()> {
    let mut request = Request::new("CLIENT NO-TOUCH", BINDS);
    request.arg(enabled);
    Command::typed(request)
}

/// Lets all commands, or those that write, wait for some time.
///
/// `CLIENT PAUSE timeout [WRITE | ALL]`
///
/// O(1). Since Redis 2.9.50. Errors: the server's.
pub fn client_pause(timeout: impl ToArg) -> Command<(), (), options::ClientPause> {
    let mut request = Request::new("CLIENT PAUSE", PLAIN);
    request.arg(timeout);
    Command::typed(request)
}

/// Says whether the connection gets replies.
///
/// `CLIENT REPLY <ON | OFF | SKIP>`
///
/// O(1). Since Redis 3.2.0. Errors: the server's.
///
/// It changes what the connection is, or tells of it: it is no method of [`Client`](crate::Client), whose
/// connections are shared.
pub fn client_reply(on_off_skip: types::Replies) -> Command<(), ()> {
    let mut request = Request::new("CLIENT REPLY", BINDS);
    request.arg(on_off_skip);
    Command::typed(request)
}

/// Tells the server which client library the connection uses.
///
/// `CLIENT SETINFO <LIB-NAME libname | LIB-VER libver>`
///
/// O(1). Since Redis 7.2.0. Errors: the server's.
///
/// It changes what the connection is, or tells of it: it is no method of [`Client`](crate::Client), whose
/// connections are shared.
pub fn client_setinfo_lib_name(name: impl ToArg) -> Command<(), ()> {
    let mut request = Request::new("CLIENT SETINFO", BINDS);
    request.arg("LIB-NAME");
    request.arg(name);
    Command::typed(request)
}

/// Tells the server which client library the connection uses.
///
/// `CLIENT SETINFO <LIB-NAME libname | LIB-VER libver>`
///
/// O(1). Since Redis 7.2.0. Errors: the server's.
///
/// It changes what the connection is, or tells of it: it is no method of [`Client`](crate::Client), whose
/// connections are shared.
pub fn client_setinfo_lib_ver(version: impl ToArg) -> Command<(), ()> {
    let mut request = Request::new("CLIENT SETINFO", BINDS);
    request.arg("LIB-VER");
    request.arg(version);
    Command::typed(request)
}

/// Names the connection.
///
/// `CLIENT SETNAME connection-name`
///
/// O(1). Since Redis 2.6.9. Errors: the server's.
///
/// It changes what the connection is, or tells of it: it is no method of [`Client`](crate::Client), whose
/// connections are shared.
pub fn client_setname(connection_name: impl ToArg) -> Command<(), ()> {
    let mut request = Request::new("CLIENT SETNAME", BINDS);
    request.arg(connection_name);
    Command::typed(request)
}

/// Says whether the connection is told of changes to keys that it has read.
///
/// `CLIENT TRACKING <ON | OFF> [REDIRECT client-id] [PREFIX prefix …] [BCAST] [OPTIN] [OPTOUT] [NOLOOP]`
///
/// O(1). Some options may introduce additional complexity. Since Redis 6.0.0. Errors: the server's.
///
/// It changes what the connection is, or tells of it: it is no method of [`Client`](crate::Client), whose
/// connections are shared.
pub fn client_tracking(status: types::Switch) -> Command<(), (), options::ClientTracking> {
    let mut request = Request::new("CLIENT TRACKING", BINDS);
    request.arg(status);
    Command::typed(request)
}

/// Tells how client-side caching is set for the connection.
///
/// `CLIENT TRACKINGINFO`
///
/// O(1). Since Redis 6.2.0. Errors: the server's; `UnexpectedReply` if `T` does not fit.
pub fn client_trackinginfo<T>() -> Command<(), T> {
    Command::typed(Request::new("CLIENT TRACKINGINFO", PLAIN))
}

/// Ends the wait of a client that is blocked in a command.
///
/// `CLIENT UNBLOCK client-id [TIMEOUT | ERROR]`
///
/// O(log N) where N is the number of client connections. Since Redis 5.0.0. Errors: the server's.
pub fn client_unblock(client_id: impl ToArg) -> Command<(), bool, options::ClientUnblock> {
    let mut request = Request::new("CLIENT UNBLOCK", PLAIN);
    request.arg(client_id);
    Command::typed(request)
}

/// Ends a pause; what waited goes on.
///
/// `CLIENT UNPAUSE`
///
/// O(N) Where N is the number of paused clients. Since Redis 6.2.0. Errors: the server's.
pub fn client_unpause() -> Command<(), ()> {
    Command::typed(Request::new("CLIENT UNPAUSE", PLAIN))
}

/// Answers the message it was given.
///
/// `ECHO message`
///
/// O(1). Since Redis 1.0.0. Errors: the server's; `UnexpectedReply` if `T` does not fit.
pub fn echo<T>(message: impl ToArg) -> Command<(), T> {
    let mut request = Request::new("ECHO", PLAIN);
    request.arg(message);
    Command::typed(request)
}

/// Begins a conversation: protocol version, password, name of the connection.
///
/// `HELLO [protover [AUTH username password] [SETNAME clientname]]`
///
/// O(1). Since Redis 6.0.0. Errors: the server's; `UnexpectedReply` if `T` does not fit.
///
/// It changes what the connection is, or tells of it: it is no method of [`Client`](crate::Client), whose
/// connections are shared.
pub fn hello<T>() -> Command<(), T, options::Hello> {
    Command::typed(Request::new("HELLO", BINDS))
}

/// Answers PONG, or the message it was given.
///
/// `PING [message]`
///
/// O(1). Since Redis 1.0.0. Errors: the server's.
pub fn ping() -> Command<(), String, options::Ping> {
    Command::typed(Request::new("PING", PLAIN))
}

/// Closes the connection after the replies to what was sent before.
///
/// `QUIT`
///
/// O(1). Since Redis 1.0.0. Errors: the server's.
///
/// It changes what the connection is, or tells of it: it is no method of [`Client`](crate::Client), whose
/// connections are shared.
pub fn quit() -> Command<(), ()> {
    Command::typed(Request::new("QUIT", BINDS))
}

/// Puts the connection back into the state of a new one.
///
/// `RESET`
///
/// O(1). Since Redis 6.2.0. Errors: the server's.
///
/// It changes what the connection is, or tells of it: it is no method of [`Client`](crate::Client), whose
/// connections are shared.
pub fn reset() -> Command<(), ()> {
    Command::typed(Request::new("RESET", BINDS))
}

/// Changes the database that the connection works on.
///
/// `SELECT index`
///
/// O(1). Since Redis 1.0.0. Errors: the server's.
///
/// It changes what the connection is, or tells of it: it is no method of [`Client`](crate::Client), whose
/// connections are shared.
pub fn select(index: impl ToArg) -> Command<(), ()> {
    let mut request = Request::new("SELECT", BINDS);
    request.arg(index);
    Command::typed(request)
}
