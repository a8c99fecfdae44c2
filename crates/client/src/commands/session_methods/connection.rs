//! Commands of the group `connection` as methods of a session.
//!
//! Written by the test `client_commands` from the server's command table: do not edit.

use crate::arg::{ToArg, ToArgs};
use crate::command::Command;
use crate::commands;
use crate::commands::{options, types};
use crate::session::Session;

/// Commands of the group `connection`.
impl Session {
    /// Authenticates the connection.
    ///
    /// `AUTH [username] password`
    pub fn auth(&self, password: impl ToArg) -> Command<&Session, (), options::Auth> {
        commands::auth(password).on(self)
    }

    /// Sets whether the keys of the connection's next command are tracked.
    ///
    /// `CLIENT CACHING <YES | NO>`
    pub fn client_caching(&self, mode: types::YesNo) -> Command<&Session, ()> {
        commands::client_caching(mode).on(self)
    }

    /// Announces capabilities of the client.
    ///
    /// `CLIENT CAPA capability …`
    pub fn client_capa(&self, capabilities: impl ToArgs) -> Command<&Session, ()> {
        commands::client_capa(capabilities).on(self)
    }

    /// Sets the durability that writes need before the connection receives their replies.
    ///
    /// `CLIENT DURABILITY [MEMORY | LOG | DISK | DEFAULT] [REPLICAS numreplicas [TIMEOUT milliseconds]]`
    pub fn client_durability(&self) -> Command<&Session, (), options::ClientDurability> {
        commands::client_durability().on(self)
    }

    /// Returns the connection's name.
    ///
    /// `CLIENT GETNAME`
    pub fn client_getname<T>(&self) -> Command<&Session, Option<T>> {
        commands::client_getname().on(self)
    }

    /// Returns the ID of the client that receives the invalidations of this connection.
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

    /// Returns the ID of the connection.
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

    /// Describes connections, one per line.
    ///
    /// `CLIENT LIST [TYPE NORMAL | MASTER | REPLICA | PUBSUB] [ID client-id …]`
    pub fn client_list(&self) -> Command<&Session, String, options::ClientList> {
        commands::client_list().on(self)
    }

    /// Sets whether the connection is exempt from client eviction.
    ///
    /// `CLIENT NO-EVICT <ON | OFF>`
    pub fn client_no_evict(&self, enabled: types::Switch) -> Command<&Session, ()> {
        commands::client_no_evict(enabled).on(self)
    }

    /// With ON, commands of the connection do not update the access times of keys.
    ///
    /// `CLIENT NO-TOUCH <ON | OFF>`
    pub fn client_no_touch(&self, enabled: types::Switch) -> Command<&Session, ()> {
        commands::client_no_touch(enabled).on(self)
    }

    /// Pauses all commands, or only writes, for a given time.
    ///
    /// `CLIENT PAUSE timeout [WRITE | ALL]`
    pub fn client_pause(&self, timeout: impl ToArg) -> Command<&Session, (), options::ClientPause> {
        commands::client_pause(timeout).on(self)
    }

    /// Sets the name or version of the client library of the connection.
    ///
    /// `CLIENT SETINFO <LIB-NAME libname | LIB-VER libver>`
    pub fn client_setinfo_lib_name(&self, name: impl ToArg) -> Command<&Session, ()> {
        commands::client_setinfo_lib_name(name).on(self)
    }

    /// Sets the name or version of the client library of the connection.
    ///
    /// `CLIENT SETINFO <LIB-NAME libname | LIB-VER libver>`
    pub fn client_setinfo_lib_ver(&self, version: impl ToArg) -> Command<&Session, ()> {
        commands::client_setinfo_lib_ver(version).on(self)
    }

    /// Sets the name of the connection.
    ///
    /// `CLIENT SETNAME connection-name`
    pub fn client_setname(&self, connection_name: impl ToArg) -> Command<&Session, ()> {
        commands::client_setname(connection_name).on(self)
    }

    /// Enables or disables invalidation messages for keys that the connection has read.
    ///
    /// `CLIENT TRACKING <ON | OFF> [REDIRECT client-id] [PREFIX prefix …] [BCAST] [OPTIN] [OPTOUT] [NOLOOP]`
    pub fn client_tracking(
        &self,
        status: types::Switch,
    ) -> Command<&Session, (), options::ClientTracking> {
        commands::client_tracking(status).on(self)
    }

    /// Returns the client-side caching settings of the connection.
    ///
    /// `CLIENT TRACKINGINFO`
    pub fn client_trackinginfo<T>(&self) -> Command<&Session, T> {
        commands::client_trackinginfo().on(self)
    }

    /// Unblocks a client that is blocked in a command.
    ///
    /// `CLIENT UNBLOCK client-id [TIMEOUT | ERROR]`
    pub fn client_unblock(
        &self,
        client_id: impl ToArg,
    ) -> Command<&Session, bool, options::ClientUnblock> {
        commands::client_unblock(client_id).on(self)
    }

    /// Ends a pause and resumes paused commands.
    ///
    /// `CLIENT UNPAUSE`
    pub fn client_unpause(&self) -> Command<&Session, ()> {
        commands::client_unpause().on(self)
    }

    /// Replies with the given message.
    ///
    /// `ECHO message`
    pub fn echo<T>(&self, message: impl ToArg) -> Command<&Session, T> {
        commands::echo(message).on(self)
    }

    /// Performs a handshake: protocol version, authentication, connection name.
    ///
    /// `HELLO [protover [AUTH username password] [SETNAME clientname]]`
    pub fn hello<T>(&self) -> Command<&Session, T, options::Hello> {
        commands::hello().on(self)
    }

    /// Replies with PONG, or with the given message.
    ///
    /// `PING [message]`
    pub fn ping(&self) -> Command<&Session, String, options::Ping> {
        commands::ping().on(self)
    }

    /// Closes the connection after all pending replies.
    ///
    /// `QUIT`
    pub fn quit(&self) -> Command<&Session, ()> {
        commands::quit().on(self)
    }

    /// Resets the connection to the state of a new one.
    ///
    /// `RESET`
    pub fn reset(&self) -> Command<&Session, ()> {
        commands::reset().on(self)
    }

    /// Changes the database of the connection.
    ///
    /// `SELECT index`
    pub fn select(&self, index: impl ToArg) -> Command<&Session, ()> {
        commands::select(index).on(self)
    }
}
