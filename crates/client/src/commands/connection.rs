//! Commands of the group `connection`.
//!
//! Written by the test `client_commands` from the server's command table: do not edit.

use super::{BINDS, PLAIN};
use crate::arg::{ToArg, ToArgs};
use crate::command::Command;
use crate::commands::{options, types};
use crate::request::Request;

/// Authenticates the connection.
///
/// `AUTH [username] password`
///
/// O(N) in the number of the user's passwords. Since Redis 1.0.0. Errors: those of the server.
///
/// This command changes or reports the state of its connection, so it is not a method of
/// [`Client`](crate::Client), whose connections are shared.
pub fn auth(password: impl ToArg) -> Command<(), (), options::Auth> {
    let mut request = Request::new("AUTH", BINDS);
    request.end_of_options();
    request.arg(password);
    Command::typed(request)
}

/// Sets whether the keys of the connection's next command are tracked.
///
/// `CLIENT CACHING <YES | NO>`
///
/// O(1). Since Redis 6.0.0. Errors: those of the server.
///
/// This command changes or reports the state of its connection, so it is not a method of
/// [`Client`](crate::Client), whose connections are shared.
pub fn client_caching(mode: types::YesNo) -> Command<(), ()> {
    let mut request = Request::new("CLIENT CACHING", BINDS);
    request.arg(mode);
    Command::typed(request)
}

/// Announces capabilities of the client.
///
/// `CLIENT CAPA capability …`
///
/// O(1). Since Valkey 8.0.0. Errors: those of the server.
///
/// This command changes or reports the state of its connection, so it is not a method of
/// [`Client`](crate::Client), whose connections are shared.
pub fn client_capa(capabilities: impl ToArgs) -> Command<(), ()> {
    let mut request = Request::new("CLIENT CAPA", BINDS);
    request.args(capabilities);
    Command::typed(request)
}

/// Sets the durability that writes need before the connection receives their replies.
///
/// `CLIENT DURABILITY [MEMORY | LOG | DISK | DEFAULT] [REPLICAS numreplicas [TIMEOUT milliseconds]]`
///
/// O(1). Since Brisk 0.1.0. Errors: those of the server.
///
/// This command changes or reports the state of its connection, so it is not a method of
/// [`Client`](crate::Client), whose connections are shared.
pub fn client_durability() -> Command<(), (), options::ClientDurability> {
    Command::typed(Request::new("CLIENT DURABILITY", BINDS))
}

/// Returns the connection's name.
///
/// `CLIENT GETNAME`
///
/// O(1). Since Redis 2.6.9. Errors: those of the server; `UnexpectedReply` if the reply cannot be converted
/// to `T`.
pub fn client_getname<T>() -> Command<(), Option<T>> {
    Command::typed(Request::new("CLIENT GETNAME", PLAIN))
}

/// Returns the ID of the client that receives the invalidations of this connection.
///
/// `CLIENT GETREDIR`
///
/// O(1). Since Redis 6.0.0. Errors: those of the server.
pub fn client_getredir() -> Command<(), i64> {
    Command::typed(Request::new("CLIENT GETREDIR", PLAIN))
}

/// Lists the subcommands.
///
/// `CLIENT HELP`
///
/// O(1). Since Redis 5.0.0. Errors: those of the server.
pub fn client_help() -> Command<(), Vec<String>> {
    Command::typed(Request::new("CLIENT HELP", PLAIN))
}

/// Returns the ID of the connection.
///
/// `CLIENT ID`
///
/// O(1). Since Redis 5.0.0. Errors: those of the server.
pub fn client_id() -> Command<(), i64> {
    Command::typed(Request::new("CLIENT ID", PLAIN))
}

/// Describes the connection in one line.
///
/// `CLIENT INFO`
///
/// O(1). Since Redis 6.2.0. Errors: those of the server.
pub fn client_info() -> Command<(), String> {
    Command::typed(Request::new("CLIENT INFO", PLAIN))
}

/// Closes connections.
///
/// `CLIENT KILL [ID client-id] [TYPE NORMAL | MASTER | SLAVE | REPLICA | PUBSUB] [USER username] [ADDR
/// ip:port] [LADDR ip:port] [SKIPME yes/no] [MAXAGE maxage]`
///
/// O(N) in the number of connections. Since Redis 2.4.0. Errors: those of the server.
pub fn client_kill() -> Command<(), i64, options::ClientKill> {
    Command::typed(Request::new("CLIENT KILL", PLAIN))
}

/// Describes connections, one per line.
///
/// `CLIENT LIST [TYPE NORMAL | MASTER | REPLICA | PUBSUB] [ID client-id …]`
///
/// O(N) in the number of connections. Since Redis 2.4.0. Errors: those of the server.
pub fn client_list() -> Command<(), String, options::ClientList> {
    Command::typed(Request::new("CLIENT LIST", PLAIN))
}

/// Sets whether the connection is exempt from client eviction.
///
/// `CLIENT NO-EVICT <ON | OFF>`
///
/// O(1). Since Redis 7.0.0. Errors: those of the server.
///
/// This command changes or reports the state of its connection, so it is not a method of
/// [`Client`](crate::Client), whose connections are shared.
pub fn client_no_evict(enabled: types::Switch) -> Command<(), ()> {
    let mut request = Request::new("CLIENT NO-EVICT", BINDS);
    request.arg(enabled);
    Command::typed(request)
}

/// With ON, commands of the connection do not update the access times of keys.
///
/// `CLIENT NO-TOUCH <ON | OFF>`
///
/// O(1). Since Redis 7.2.0. Errors: those of the server.
///
/// This command changes or reports the state of its connection, so it is not a method of
/// [`Client`](crate::Client), whose connections are shared.
pub fn client_no_touch(enabled: types::Switch) -> Command<(), ()> {
    let mut request = Request::new("CLIENT NO-TOUCH", BINDS);
    request.arg(enabled);
    Command::typed(request)
}

/// Pauses all commands, or only writes, for a given time.
///
/// `CLIENT PAUSE timeout [WRITE | ALL]`
///
/// O(1). Since Redis 2.9.50. Errors: those of the server.
pub fn client_pause(timeout: impl ToArg) -> Command<(), (), options::ClientPause> {
    let mut request = Request::new("CLIENT PAUSE", PLAIN);
    request.arg(timeout);
    Command::typed(request)
}

/// Sets whether the connection receives replies.
///
/// `CLIENT REPLY <ON | OFF | SKIP>`
///
/// O(1). Since Redis 3.2.0. Errors: those of the server.
///
/// This command changes or reports the state of its connection, so it is not a method of
/// [`Client`](crate::Client), whose connections are shared.
pub fn client_reply(on_off_skip: types::Replies) -> Command<(), ()> {
    let mut request = Request::new("CLIENT REPLY", BINDS);
    request.arg(on_off_skip);
    Command::typed(request)
}

/// Sets the name or version of the client library of the connection.
///
/// `CLIENT SETINFO <LIB-NAME libname | LIB-VER libver>`
///
/// O(1). Since Redis 7.2.0. Errors: those of the server.
///
/// This command changes or reports the state of its connection, so it is not a method of
/// [`Client`](crate::Client), whose connections are shared.
pub fn client_setinfo_lib_name(name: impl ToArg) -> Command<(), ()> {
    let mut request = Request::new("CLIENT SETINFO", BINDS);
    request.arg("LIB-NAME");
    request.arg(name);
    Command::typed(request)
}

/// Sets the name or version of the client library of the connection.
///
/// `CLIENT SETINFO <LIB-NAME libname | LIB-VER libver>`
///
/// O(1). Since Redis 7.2.0. Errors: those of the server.
///
/// This command changes or reports the state of its connection, so it is not a method of
/// [`Client`](crate::Client), whose connections are shared.
pub fn client_setinfo_lib_ver(version: impl ToArg) -> Command<(), ()> {
    let mut request = Request::new("CLIENT SETINFO", BINDS);
    request.arg("LIB-VER");
    request.arg(version);
    Command::typed(request)
}

/// Sets the name of the connection.
///
/// `CLIENT SETNAME connection-name`
///
/// O(1). Since Redis 2.6.9. Errors: those of the server.
///
/// This command changes or reports the state of its connection, so it is not a method of
/// [`Client`](crate::Client), whose connections are shared.
pub fn client_setname(connection_name: impl ToArg) -> Command<(), ()> {
    let mut request = Request::new("CLIENT SETNAME", BINDS);
    request.arg(connection_name);
    Command::typed(request)
}

/// Enables or disables invalidation messages for keys that the connection has read.
///
/// `CLIENT TRACKING <ON | OFF> [REDIRECT client-id] [PREFIX prefix …] [BCAST] [OPTIN] [OPTOUT] [NOLOOP]`
///
/// O(1), and O(N) in the number of prefixes. Since Redis 6.0.0. Errors: those of the server.
///
/// This command changes or reports the state of its connection, so it is not a method of
/// [`Client`](crate::Client), whose connections are shared.
pub fn client_tracking(status: types::Switch) -> Command<(), (), options::ClientTracking> {
    let mut request = Request::new("CLIENT TRACKING", BINDS);
    request.arg(status);
    Command::typed(request)
}

/// Returns the client-side caching settings of the connection.
///
/// `CLIENT TRACKINGINFO`
///
/// O(1). Since Redis 6.2.0. Errors: those of the server; `UnexpectedReply` if the reply cannot be converted
/// to `T`.
pub fn client_trackinginfo<T>() -> Command<(), T> {
    Command::typed(Request::new("CLIENT TRACKINGINFO", PLAIN))
}

/// Unblocks a client that is blocked in a command.
///
/// `CLIENT UNBLOCK client-id [TIMEOUT | ERROR]`
///
/// O(log N) in the number of connections. Since Redis 5.0.0. Errors: those of the server.
pub fn client_unblock(client_id: impl ToArg) -> Command<(), bool, options::ClientUnblock> {
    let mut request = Request::new("CLIENT UNBLOCK", PLAIN);
    request.arg(client_id);
    Command::typed(request)
}

/// Ends a pause and resumes paused commands.
///
/// `CLIENT UNPAUSE`
///
/// O(N) in the number of paused clients. Since Redis 6.2.0. Errors: those of the server.
pub fn client_unpause() -> Command<(), ()> {
    Command::typed(Request::new("CLIENT UNPAUSE", PLAIN))
}

/// Replies with the given message.
///
/// `ECHO message`
///
/// O(1). Since Redis 1.0.0. Errors: those of the server; `UnexpectedReply` if the reply cannot be converted
/// to `T`.
pub fn echo<T>(message: impl ToArg) -> Command<(), T> {
    let mut request = Request::new("ECHO", PLAIN);
    request.arg(message);
    Command::typed(request)
}

/// Performs a handshake: protocol version, authentication, connection name.
///
/// `HELLO [protover [AUTH username password] [SETNAME clientname]]`
///
/// O(1). Since Redis 6.0.0. Errors: those of the server; `UnexpectedReply` if the reply cannot be converted
/// to `T`.
///
/// This command changes or reports the state of its connection, so it is not a method of
/// [`Client`](crate::Client), whose connections are shared.
pub fn hello<T>() -> Command<(), T, options::Hello> {
    Command::typed(Request::new("HELLO", BINDS))
}

/// Replies with PONG, or with the given message.
///
/// `PING [message]`
///
/// O(1). Since Redis 1.0.0. Errors: those of the server.
pub fn ping() -> Command<(), String, options::Ping> {
    Command::typed(Request::new("PING", PLAIN))
}

/// Closes the connection after all pending replies.
///
/// `QUIT`
///
/// O(1). Since Redis 1.0.0. Errors: those of the server.
///
/// This command changes or reports the state of its connection, so it is not a method of
/// [`Client`](crate::Client), whose connections are shared.
pub fn quit() -> Command<(), ()> {
    Command::typed(Request::new("QUIT", BINDS))
}

/// Resets the connection to the state of a new one.
///
/// `RESET`
///
/// O(1). Since Redis 6.2.0. Errors: those of the server.
///
/// This command changes or reports the state of its connection, so it is not a method of
/// [`Client`](crate::Client), whose connections are shared.
pub fn reset() -> Command<(), ()> {
    Command::typed(Request::new("RESET", BINDS))
}

/// Changes the database of the connection.
///
/// `SELECT index`
///
/// O(1). Since Redis 1.0.0. Errors: those of the server.
///
/// This command changes or reports the state of its connection, so it is not a method of
/// [`Client`](crate::Client), whose connections are shared.
pub fn select(index: impl ToArg) -> Command<(), ()> {
    let mut request = Request::new("SELECT", BINDS);
    request.arg(index);
    Command::typed(request)
}
