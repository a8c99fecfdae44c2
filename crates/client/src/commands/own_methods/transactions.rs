//! Commands of the group `transactions` as methods of a connection of one's own.
//!
//! Written by the test `client_commands` from the server's command table: do not edit.

use crate::arg::ToArgs;
use crate::command::Command;
use crate::commands;
use crate::session::Session;

/// Commands of the group `transactions`.
impl Session {
    /// Forgets the queued commands and ends the transaction.
    ///
    /// `DISCARD`
    pub fn discard(&self) -> Command<&Session, ()> {
        commands::discard().on(self)
    }

    /// Runs the queued commands, unless a watched key was changed.
    ///
    /// `EXEC`
    pub fn exec<T>(&self) -> Command<&Session, T> {
        commands::exec().on(self)
    }

    /// Begins a transaction: what follows is queued until EXEC.
    ///
    /// `MULTI`
    pub fn multi(&self) -> Command<&Session, ()> {
        commands::multi().on(self)
    }

    /// Forgets which keys are watched.
    ///
    /// `UNWATCH`
    pub fn unwatch(&self) -> Command<&Session, ()> {
        commands::unwatch().on(self)
    }

    /// Lets the next EXEC answer null if one of the keys is changed before it.
    ///
    /// `WATCH key …`
    pub fn watch(&self, keys: impl ToArgs) -> Command<&Session, ()> {
        commands::watch(keys).on(self)
    }
}
