//! Commands of the group `hyperloglog` as methods of a session.
//!
//! Written by the test `client_commands` from the server's command table: do not edit.

use crate::arg::{ToArg, ToArgs};
use crate::command::Command;
use crate::commands;
use crate::session::Session;

/// Commands of the group `hyperloglog`.
impl Session {
    /// Adds elements to a HyperLogLog. Creates the key if it does not exist.
    ///
    /// `PFADD key element …`
    pub fn pfadd(&self, key: impl ToArg, elements: impl ToArgs) -> Command<&Session, bool> {
        commands::pfadd(key, elements).on(self)
    }

    /// Estimates the number of distinct elements in HyperLogLogs.
    ///
    /// `PFCOUNT key …`
    pub fn pfcount(&self, keys: impl ToArgs) -> Command<&Session, i64> {
        commands::pfcount(keys).on(self)
    }

    /// Merges HyperLogLogs into one.
    ///
    /// `PFMERGE destkey sourcekey …`
    pub fn pfmerge(&self, destination: impl ToArg, sources: impl ToArgs) -> Command<&Session, ()> {
        commands::pfmerge(destination, sources).on(self)
    }
}
