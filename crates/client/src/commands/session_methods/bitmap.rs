//! Commands of the group `bitmap` as methods of a session.
//!
//! Written by the test `client_commands` from the server's command table: do not edit.

use crate::arg::{ToArg, ToArgs};
use crate::command::Command;
use crate::commands;
use crate::commands::options;
use crate::session::Session;

/// Commands of the group `bitmap`.
impl Session {
    /// Counts the set bits in a string or in a part of it.
    ///
    /// `BITCOUNT key [start end [BYTE | BIT]]`
    pub fn bitcount(&self, key: impl ToArg) -> Command<&Session, i64, options::Bitcount> {
        commands::bitcount(key).on(self)
    }

    /// Reads and changes integers of any width in a string.
    ///
    /// `BITFIELD key [GET encoding offset | [OVERFLOW WRAP | SAT | FAIL] <SET encoding offset value | INCRBY
    /// encoding offset increment> …]`
    pub fn bitfield(
        &self,
        key: impl ToArg,
    ) -> Command<&Session, Vec<Option<i64>>, options::Bitfield> {
        commands::bitfield(key).on(self)
    }

    /// Reads integers of any width in a string.
    ///
    /// `BITFIELD_RO key [GET encoding offset …]`
    pub fn bitfield_ro(
        &self,
        key: impl ToArg,
    ) -> Command<&Session, Vec<Option<i64>>, options::BitfieldRo> {
        commands::bitfield_ro(key).on(self)
    }

    /// Performs a bitwise operation on strings and stores the result.
    ///
    /// `BITOP operation destkey key …`
    pub fn bitop(
        &self,
        operation: impl ToArg,
        destination: impl ToArg,
        keys: impl ToArgs,
    ) -> Command<&Session, i64> {
        commands::bitop(operation, destination, keys).on(self)
    }

    /// Finds the first set or clear bit in a string or in a part of it.
    ///
    /// `BITPOS key bit [start [end [BYTE | BIT]]]`
    pub fn bitpos(
        &self,
        key: impl ToArg,
        bit: impl ToArg,
    ) -> Command<&Session, i64, options::Bitpos> {
        commands::bitpos(key, bit).on(self)
    }

    /// Returns a bit of a string.
    ///
    /// `GETBIT key offset`
    pub fn getbit(&self, key: impl ToArg, offset: impl ToArg) -> Command<&Session, i64> {
        commands::getbit(key, offset).on(self)
    }

    /// Sets or clears a bit of a string. Creates the key if it does not exist.
    ///
    /// `SETBIT key offset value`
    pub fn setbit(
        &self,
        key: impl ToArg,
        offset: impl ToArg,
        value: impl ToArg,
    ) -> Command<&Session, i64> {
        commands::setbit(key, offset, value).on(self)
    }
}
