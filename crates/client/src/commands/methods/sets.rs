//! Commands of the group `set` as methods of shared connections.
//!
//! Written by the test `client_commands` from the server's command table: do not edit.

use crate::arg::{ToArg, ToArgs};
use crate::client::Client;
use crate::command::Command;
use crate::commands;
use crate::commands::options;

/// Commands of the group `set`.
impl Client {
    /// Adds members to a set. Creates the key if it does not exist.
    ///
    /// `SADD key member …`
    pub fn sadd(&self, key: impl ToArg, members: impl ToArgs) -> Command<&Client, i64> {
        commands::sadd(key, members).on(self)
    }

    /// Returns the number of members in a set.
    ///
    /// `SCARD key`
    pub fn scard(&self, key: impl ToArg) -> Command<&Client, i64> {
        commands::scard(key).on(self)
    }

    /// Returns the difference of sets.
    ///
    /// `SDIFF key …`
    pub fn sdiff<T>(&self, keys: impl ToArgs) -> Command<&Client, T> {
        commands::sdiff(keys).on(self)
    }

    /// Stores the difference of sets.
    ///
    /// `SDIFFSTORE destination key …`
    pub fn sdiffstore(&self, destination: impl ToArg, keys: impl ToArgs) -> Command<&Client, i64> {
        commands::sdiffstore(destination, keys).on(self)
    }

    /// Returns the intersection of sets.
    ///
    /// `SINTER key …`
    pub fn sinter<T>(&self, keys: impl ToArgs) -> Command<&Client, T> {
        commands::sinter(keys).on(self)
    }

    /// Returns the number of members in the intersection of sets.
    ///
    /// `SINTERCARD numkeys key … [LIMIT limit]`
    pub fn sintercard(&self, keys: impl ToArgs) -> Command<&Client, i64, options::Sintercard> {
        commands::sintercard(keys).on(self)
    }

    /// Stores the intersection of sets.
    ///
    /// `SINTERSTORE destination key …`
    pub fn sinterstore(&self, destination: impl ToArg, keys: impl ToArgs) -> Command<&Client, i64> {
        commands::sinterstore(destination, keys).on(self)
    }

    /// Checks if a member exists in a set.
    ///
    /// `SISMEMBER key member`
    pub fn sismember(&self, key: impl ToArg, member: impl ToArg) -> Command<&Client, bool> {
        commands::sismember(key, member).on(self)
    }

    /// Returns all members of a set.
    ///
    /// `SMEMBERS key`
    pub fn smembers<T>(&self, key: impl ToArg) -> Command<&Client, T> {
        commands::smembers(key).on(self)
    }

    /// Checks if several members exist in a set.
    ///
    /// `SMISMEMBER key member …`
    pub fn smismember(&self, key: impl ToArg, members: impl ToArgs) -> Command<&Client, Vec<bool>> {
        commands::smismember(key, members).on(self)
    }

    /// Moves a member from one set to another.
    ///
    /// `SMOVE source destination member`
    pub fn smove(
        &self,
        source: impl ToArg,
        destination: impl ToArg,
        member: impl ToArg,
    ) -> Command<&Client, bool> {
        commands::smove(source, destination, member).on(self)
    }

    /// Removes and returns random members of a set.
    ///
    /// `SPOP key [count]`
    pub fn spop<T>(&self, key: impl ToArg) -> Command<&Client, Option<T>, options::Spop> {
        commands::spop(key).on(self)
    }

    /// Returns random members of a set.
    ///
    /// `SRANDMEMBER key [count]`
    pub fn srandmember<T>(
        &self,
        key: impl ToArg,
    ) -> Command<&Client, Option<T>, options::Srandmember> {
        commands::srandmember(key).on(self)
    }

    /// Removes members from a set. Deletes the set if no members are left.
    ///
    /// `SREM key member …`
    pub fn srem(&self, key: impl ToArg, members: impl ToArgs) -> Command<&Client, i64> {
        commands::srem(key, members).on(self)
    }

    /// Iterates over the members of a set. Start with cursor 0; the iteration is complete when the reply's cursor
    /// is 0. The elements are members.
    ///
    /// `SSCAN key cursor [MATCH pattern] [COUNT count]`
    pub fn sscan<T>(
        &self,
        key: impl ToArg,
        cursor: impl ToArg,
    ) -> Command<&Client, (u64, Vec<T>), options::Sscan> {
        commands::sscan(key, cursor).on(self)
    }

    /// Returns the union of sets.
    ///
    /// `SUNION key …`
    pub fn sunion<T>(&self, keys: impl ToArgs) -> Command<&Client, T> {
        commands::sunion(keys).on(self)
    }

    /// Stores the union of sets.
    ///
    /// `SUNIONSTORE destination key …`
    pub fn sunionstore(&self, destination: impl ToArg, keys: impl ToArgs) -> Command<&Client, i64> {
        commands::sunionstore(destination, keys).on(self)
    }
}
