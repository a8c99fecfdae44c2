//! Commands of the group `transactions` as methods of a session.
//!
//! Written by the test `client_commands` from the server's command table: do not edit.

use crate::arg::ToArgs;
use crate::command::Command;
use crate::commands;
use crate::session::Session;

/// Commands of the group `transactions`.
impl Session {
    /// Discards the queued commands and ends the transaction.
    ///
    /// `DISCARD`
    pub fn discard(&self) -> Command<&Session, ()> {
        commands::discard().on(self)
    }

    /// Executes the queued commands, unless a watched key was changed.
    ///
    /// `EXEC`
    pub fn exec<T>(&self) -> Command<&Session, T> {
        commands::exec().on(self)
    }

    /// Starts a transaction: the following commands are queued until EXEC.
    ///
    /// `MULTI`
    pub fn multi(&self) -> Command<&Session, ()> {
        commands::multi().on(self)
    }

    /// Stops watching all keys.
    ///
    /// `UNWATCH`
    pub fn unwatch(&self) -> Command<&Session, ()> {
        commands::unwatch().on(self)
    }

    /// Watches keys: the next EXEC returns null if one of them has changed.
    ///
    /// `WATCH key …`
    pub fn watch(&self, keys: impl ToArgs) -> Command<&Session, ()> {
        commands::watch(keys).on(self)
    }
}
