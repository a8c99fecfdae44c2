//! Commands of the group `connection` as methods of a connection of one's own.
//!
//! Written by the test `client_commands` from the server's command table: do not edit.

use crate::arg::{ToArg, ToArgs};
use crate::command::Command;
use crate::commands;
use crate::commands::{options, types};
use crate::session::Session;

/// Commands of the group `connection`.
impl Session {
    /// Says who the client is, by a password.
    ///
    /// `AUTH [username] password`
    pub fn auth(&self, password: impl ToArg) -> Command<&Session, (), options::Auth> {
        commands::auth(password).on(self)
    }

    /// Says whether the keys of the connection's next command are tracked.
    ///
    /// `CLIENT CACHING <YES | NO>`
    pub fn client_caching(&self, mode: types::YesNo) -> Command<&Session, ()> {
        commands::client_caching(mode).on(self)
    }

    /// Tells what the client can do.
    ///
    /// `CLIENT CAPA capability …`
    pub fn client_capa(&self, capabilities: impl ToArgs) -> Command<&Session, ()> {
        commands::client_capa(capabilities).on(self)
    }

    /// Says how far changes must have come before the connection is answered.
    ///
    /// `CLIENT DURABILITY [MEMORY | LOG | DISK | DEFAULT] [REPLICAS numreplicas [TIMEOUT milliseconds]]`
    pub fn client_durability(&self) -> Command<&Session, (), options::ClientDurability> {
        commands::client_durability().on(self)
    }

    /// Tells the name of the connection.
    ///
    /// `CLIENT GETNAME`
    pub fn client_getname<T>(&self) -> Command<&Session, Option<T>> {
        commands::client_getname().on(self)
    }

    /// Tells the client id that invalidations for this connection go to.
    ///
    /// `CLIENT GETREDIR`
    pub fn client_getredir(&self) -> Command<&Session, i64> {
        commands::client_getredir().on(self)
    }

    /// Lists the subcommands.
    ///
    /// `CLIENT HELP`
    pub fn client_help(&self) -> Command<&Session, Vec<String>> {
        commands::client_help().on(self)
    }

    /// Tells the id of the connection.
    ///
    /// `CLIENT ID`
    pub fn client_id(&self) -> Command<&Session, i64> {
        commands::client_id().on(self)
    }

    /// Describes the connection in one line.
    ///
    /// `CLIENT INFO`
    pub fn client_info(&self) -> Command<&Session, String> {
        commands::client_info().on(self)
    }

    /// Closes connections.
    ///
    /// `CLIENT KILL [ID client-id] [TYPE NORMAL | MASTER | SLAVE | REPLICA | PUBSUB] [USER username] [ADDR
    /// ip:port] [LADDR ip:port] [SKIPME yes/no] [MAXAGE maxage]`
    pub fn client_kill(&self) -> Command<&Session, i64, options::ClientKill> {
        commands::client_kill().on(self)
    }

    /// Describes connections, a line each.
    ///
    /// `CLIENT LIST [TYPE NORMAL | MASTER | REPLICA | PUBSUB] [ID client-id …]`
    pub fn client_list(&self) -> Command<&Session, String, options::ClientList> {
        commands::client_list().on(self)
    }

    /// Says whether the connection is spared when clients take too much memory.
    ///
    /// `CLIENT NO-EVICT <ON | OFF>`
    pub fn client_no_evict(&self, enabled: types::Switch) -> Command<&Session, ()> {
        commands::client_no_evict(enabled).on(self)
    }

    /// Says whether commands of the connection leave the access times of keys alone.
    ///
    /// `CLIENT NO-TOUCH <ON | OFF>`
    pub fn client_no_touch(&self, enabled: types::Switch) -> Command<&Session, ()> {
        commands::client_no_touch(enabled).on(self)
    }

    /// Lets all commands, or those that write, wait for some time.
    ///
    /// `CLIENT PAUSE timeout [WRITE | ALL]`
    pub fn client_pause(&self, timeout: impl ToArg) -> Command<&Session, (), options::ClientPause> {
        commands::client_pause(timeout).on(self)
    }

    /// Tells the server which client library the connection uses.
    ///
    /// `CLIENT SETINFO <LIB-NAME libname | LIB-VER libver>`
    pub fn client_setinfo_lib_name(&self, name: impl ToArg) -> Command<&Session, ()> {
        commands::client_setinfo_lib_name(name).on(self)
    }

    /// Tells the server which client library the connection uses.
    ///
    /// `CLIENT SETINFO <LIB-NAME libname | LIB-VER libver>`
    pub fn client_setinfo_lib_ver(&self, version: impl ToArg) -> Command<&Session, ()> {
        commands::client_setinfo_lib_ver(version).on(self)
    }

    /// Names the connection.
    ///
    /// `CLIENT SETNAME connection-name`
    pub fn client_setname(&self, connection_name: impl ToArg) -> Command<&Session, ()> {
        commands::client_setname(connection_name).on(self)
    }

    /// Says whether the connection is told of changes to keys that it has read.
    ///
    /// `CLIENT TRACKING <ON | OFF> [REDIRECT client-id] [PREFIX prefix …] [BCAST] [OPTIN] [OPTOUT] [NOLOOP]`
    pub fn client_tracking(
        &self,
        status: types::Switch,
    ) -> Command<&Session, (), options::ClientTracking> {
        commands::client_tracking(status).on(self)
    }

    /// Tells how client-side caching is set for the connection.
    ///
    /// `CLIENT TRACKINGINFO`
    pub fn client_trackinginfo<T>(&self) -> Command<&Session, T> {
        commands::client_trackinginfo().on(self)
    }

    /// Ends the wait of a client that is blocked in a command.
    ///
    /// `CLIENT UNBLOCK client-id [TIMEOUT | ERROR]`
    pub fn client_unblock(
        &self,
        client_id: impl ToArg,
    ) -> Command<&Session, bool, options::ClientUnblock> {
        commands::client_unblock(client_id).on(self)
    }

    /// Ends a pause; what waited goes on.
    ///
    /// `CLIENT UNPAUSE`
    pub fn client_unpause(&self) -> Command<&Session, ()> {
        commands::client_unpause().on(self)
    }

    /// Answers the message it was given.
    ///
    /// `ECHO message`
    pub fn echo<T>(&self, message: impl ToArg) -> Command<&Session, T> {
        commands::echo(message).on(self)
    }

    /// Begins a conversation: protocol version, password, name of the connection.
    ///
    /// `HELLO [protover [AUTH username password] [SETNAME clientname]]`
    pub fn hello<T>(&self) -> Command<&Session, T, options::Hello> {
        commands::hello().on(self)
    }

    /// Answers PONG, or the message it was given.
    ///
    /// `PING [message]`
    pub fn ping(&self) -> Command<&Session, String, options::Ping> {
        commands::ping().on(self)
    }

    /// Closes the connection after the replies to what was sent before.
    ///
    /// `QUIT`
    pub fn quit(&self) -> Command<&Session, ()> {
        commands::quit().on(self)
    }

    /// Puts the connection back into the state of a new one.
    ///
    /// `RESET`
    pub fn reset(&self) -> Command<&Session, ()> {
        commands::reset().on(self)
    }

    /// Changes the database that the connection works on.
    ///
    /// `SELECT index`
    pub fn select(&self, index: impl ToArg) -> Command<&Session, ()> {
        commands::select(index).on(self)
    }
}
