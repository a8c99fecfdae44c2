//! Commands of the group `set` as methods of a connection of one's own.
//!
//! Written by the test `client_commands` from the server's command table: do not edit.

use crate::arg::{ToArg, ToArgs};
use crate::command::Command;
use crate::commands;
use crate::commands::options;
use crate::session::Session;

/// Commands of the group `set`.
impl Session {
    /// Adds members to a set, which is made if there is none.
    ///
    /// `SADD key member …`
    pub fn sadd(&self, key: impl ToArg, members: impl ToArgs) -> Command<&Session, i64> {
        commands::sadd(key, members).on(self)
    }

    /// Counts the members of a set.
    ///
    /// `SCARD key`
    pub fn scard(&self, key: impl ToArg) -> Command<&Session, i64> {
        commands::scard(key).on(self)
    }

    /// Lists the members of a set that no other of several has.
    ///
    /// `SDIFF key …`
    pub fn sdiff<T>(&self, keys: impl ToArgs) -> Command<&Session, T> {
        commands::sdiff(keys).on(self)
    }

    /// Stores the members of a set that no other of several has.
    ///
    /// `SDIFFSTORE destination key …`
    pub fn sdiffstore(&self, destination: impl ToArg, keys: impl ToArgs) -> Command<&Session, i64> {
        commands::sdiffstore(destination, keys).on(self)
    }

    /// Lists the members that all of several sets have.
    ///
    /// `SINTER key …`
    pub fn sinter<T>(&self, keys: impl ToArgs) -> Command<&Session, T> {
        commands::sinter(keys).on(self)
    }

    /// Counts the members that all of several sets have.
    ///
    /// `SINTERCARD numkeys key … [LIMIT limit]`
    pub fn sintercard(&self, keys: impl ToArgs) -> Command<&Session, i64, options::Sintercard> {
        commands::sintercard(keys).on(self)
    }

    /// Stores the members that all of several sets have.
    ///
    /// `SINTERSTORE destination key …`
    pub fn sinterstore(
        &self,
        destination: impl ToArg,
        keys: impl ToArgs,
    ) -> Command<&Session, i64> {
        commands::sinterstore(destination, keys).on(self)
    }

    /// Tells whether a set has a member.
    ///
    /// `SISMEMBER key member`
    pub fn sismember(&self, key: impl ToArg, member: impl ToArg) -> Command<&Session, bool> {
        commands::sismember(key, member).on(self)
    }

    /// Lists the members of a set.
    ///
    /// `SMEMBERS key`
    pub fn smembers<T>(&self, key: impl ToArg) -> Command<&Session, T> {
        commands::smembers(key).on(self)
    }

    /// Tells of each of several members whether a set has it.
    ///
    /// `SMISMEMBER key member …`
    pub fn smismember(
        &self,
        key: impl ToArg,
        members: impl ToArgs,
    ) -> Command<&Session, Vec<bool>> {
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
    ) -> Command<&Session, bool> {
        commands::smove(source, destination, member).on(self)
    }

    /// Removes members chosen at random and returns them.
    ///
    /// `SPOP key [count]`
    pub fn spop<T>(&self, key: impl ToArg) -> Command<&Session, Option<T>, options::Spop> {
        commands::spop(key).on(self)
    }

    /// Returns members chosen at random.
    ///
    /// `SRANDMEMBER key [count]`
    pub fn srandmember<T>(
        &self,
        key: impl ToArg,
    ) -> Command<&Session, Option<T>, options::Srandmember> {
        commands::srandmember(key).on(self)
    }

    /// Removes members from a set, and the set with its last one.
    ///
    /// `SREM key member …`
    pub fn srem(&self, key: impl ToArg, members: impl ToArgs) -> Command<&Session, i64> {
        commands::srem(key, members).on(self)
    }

    /// Lists the members of a set bit by bit. Members, from a cursor that begins with 0 and ends with 0.
    ///
    /// `SSCAN key cursor [MATCH pattern] [COUNT count]`
    pub fn sscan<T>(
        &self,
        key: impl ToArg,
        cursor: impl ToArg,
    ) -> Command<&Session, (u64, Vec<T>), options::Sscan> {
        commands::sscan(key, cursor).on(self)
    }

    /// Lists the members that any of several sets has.
    ///
    /// `SUNION key …`
    pub fn sunion<T>(&self, keys: impl ToArgs) -> Command<&Session, T> {
        commands::sunion(keys).on(self)
    }

    /// Stores the members that any of several sets has.
    ///
    /// `SUNIONSTORE destination key …`
    pub fn sunionstore(
        &self,
        destination: impl ToArg,
        keys: impl ToArgs,
    ) -> Command<&Session, i64> {
        commands::sunionstore(destination, keys).on(self)
    }
}
