//! Commands of the group `connection` as methods of shared connections.
//!
//! Written by the test `client_commands` from the server's command table: do not edit.

use crate::arg::ToArg;
use crate::client::Client;
use crate::command::Command;
use crate::commands;
use crate::commands::options;

/// Commands of the group `connection`.
impl Client {
    /// Returns the connection's name.
    ///
    /// `CLIENT GETNAME`
    pub fn client_getname<T>(&self) -> Command<&Client, Option<T>> {
        commands::client_getname().on(self)
    }

    /// Returns the ID of the client that receives the invalidations of this connection.
    ///
    /// `CLIENT GETREDIR`
    pub fn client_getredir(&self) -> Command<&Client, i64> {
        commands::client_getredir().on(self)
    }

    /// Lists the subcommands.
    ///
    /// `CLIENT HELP`
    pub fn client_help(&self) -> Command<&Client, Vec<String>> {
        commands::client_help().on(self)
    }

    /// Returns the ID of the connection.
    ///
    /// `CLIENT ID`
    pub fn client_id(&self) -> Command<&Client, i64> {
        commands::client_id().on(self)
    }

    /// Describes the connection in one line.
    ///
    /// `CLIENT INFO`
    pub fn client_info(&self) -> Command<&Client, String> {
        commands::client_info().on(self)
    }

    /// Closes connections.
    ///
    /// `CLIENT KILL [ID client-id] [TYPE NORMAL | MASTER | SLAVE | REPLICA | PUBSUB] [USER username] [ADDR
    /// ip:port] [LADDR ip:port] [SKIPME yes/no] [MAXAGE maxage]`
    pub fn client_kill(&self) -> Command<&Client, i64, options::ClientKill> {
        commands::client_kill().on(self)
    }

    /// Describes connections, one per line.
    ///
    /// `CLIENT LIST [TYPE NORMAL | MASTER | REPLICA | PUBSUB] [ID client-id …]`
    pub fn client_list(&self) -> Command<&Client, String, options::ClientList> {
        commands::client_list().on(self)
    }

    /// Pauses all commands, or only writes, for a given time.
    ///
    /// `CLIENT PAUSE timeout [WRITE | ALL]`
    pub fn client_pause(&self, timeout: impl ToArg) -> Command<&Client, (), options::ClientPause> {
        commands::client_pause(timeout).on(self)
    }

    /// Returns the client-side caching settings of the connection.
    ///
    /// `CLIENT TRACKINGINFO`
    pub fn client_trackinginfo<T>(&self) -> Command<&Client, T> {
        commands::client_trackinginfo().on(self)
    }

    /// Unblocks a client that is blocked in a command.
    ///
    /// `CLIENT UNBLOCK client-id [TIMEOUT | ERROR]`
    pub fn client_unblock(
        &self,
        client_id: impl ToArg,
    ) -> Command<&Client, bool, options::ClientUnblock> {
        commands::client_unblock(client_id).on(self)
    }

    /// Ends a pause and resumes paused commands.
    ///
    /// `CLIENT UNPAUSE`
    pub fn client_unpause(&self) -> Command<&Client, ()> {
        commands::client_unpause().on(self)
    }

    /// Replies with the given message.
    ///
    /// `ECHO message`
    pub fn echo<T>(&self, message: impl ToArg) -> Command<&Client, T> {
        commands::echo(message).on(self)
    }

    /// Replies with PONG, or with the given message.
    ///
    /// `PING [message]`
    pub fn ping(&self) -> Command<&Client, String, options::Ping> {
        commands::ping().on(self)
    }
}
