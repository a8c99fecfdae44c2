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
    /// Tells the name of the connection.
    ///
    /// `CLIENT GETNAME`
    pub fn client_getname<T>(&self) -> Command<&Client, Option<T>> {
        commands::client_getname().on(self)
    }

    /// Tells the client id that invalidations for this connection go to.
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

    /// Tells the id of the connection.
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

    /// Describes connections, a line each.
    ///
    /// `CLIENT LIST [TYPE NORMAL | MASTER | REPLICA | PUBSUB] [ID client-id …]`
    pub fn client_list(&self) -> Command<&Client, String, options::ClientList> {
        commands::client_list().on(self)
    }

    /// Lets all commands, or those that write, wait for some time.
    ///
    /// `CLIENT PAUSE timeout [WRITE | ALL]`
    pub fn client_pause(&self, timeout: impl ToArg) -> Command<&Client, (), options::ClientPause> {
        commands::client_pause(timeout).on(self)
    }

    /// Tells how client-side caching is set for the connection.
    ///
    /// `CLIENT TRACKINGINFO`
    pub fn client_trackinginfo<T>(&self) -> Command<&Client, T> {
        commands::client_trackinginfo().on(self)
    }

    /// Ends the wait of a client that is blocked in a command.
    ///
    /// `CLIENT UNBLOCK client-id [TIMEOUT | ERROR]`
    pub fn client_unblock(
        &self,
        client_id: impl ToArg,
    ) -> Command<&Client, bool, options::ClientUnblock> {
        commands::client_unblock(client_id).on(self)
    }

    /// Ends a pause; what waited goes on.
    ///
    /// `CLIENT UNPAUSE`
    pub fn client_unpause(&self) -> Command<&Client, ()> {
        commands::client_unpause().on(self)
    }

    /// Answers the message it was given.
    ///
    /// `ECHO message`
    pub fn echo<T>(&self, message: impl ToArg) -> Command<&Client, T> {
        commands::echo(message).on(self)
    }

    /// Answers PONG, or the message it was given.
    ///
    /// `PING [message]`
    pub fn ping(&self) -> Command<&Client, String, options::Ping> {
        commands::ping().on(self)
    }
}
