//! Commands of the group `string` as methods of a connection of one's own.
//!
//! Written by the test `client_commands` from the server's command table: do not edit.

use crate::arg::{ToArg, ToArgs};
use crate::command::Command;
use crate::commands;
use crate::commands::options;
use crate::session::Session;

/// Commands of the group `string`.
impl Session {
    /// Adds bytes at the end of a string; creates the key if it is missing.
    ///
    /// `APPEND key value`
    pub fn append(&self, key: impl ToArg, value: impl ToArg) -> Command<&Session, i64> {
        commands::append(key, value).on(self)
    }

    /// Subtracts one from an integer.
    ///
    /// `DECR key`
    pub fn decr(&self, key: impl ToArg) -> Command<&Session, i64> {
        commands::decr(key).on(self)
    }

    /// Subtracts a number from an integer.
    ///
    /// `DECRBY key decrement`
    pub fn decrby(&self, key: impl ToArg, decrement: impl ToArg) -> Command<&Session, i64> {
        commands::decrby(key, decrement).on(self)
    }

    /// Reads a string.
    ///
    /// `GET key`
    pub fn get<T>(&self, key: impl ToArg) -> Command<&Session, Option<T>> {
        commands::get(key).on(self)
    }

    /// Reads a string and deletes its key.
    ///
    /// `GETDEL key`
    pub fn getdel<T>(&self, key: impl ToArg) -> Command<&Session, Option<T>> {
        commands::getdel(key).on(self)
    }

    /// Reads a string and sets, changes or removes its time to live.
    ///
    /// `GETEX key [EX seconds | PX milliseconds | EXAT unix-time-seconds | PXAT unix-time-milliseconds |
    /// PERSIST]`
    pub fn getex<T>(&self, key: impl ToArg) -> Command<&Session, Option<T>, options::Getex> {
        commands::getex(key).on(self)
    }

    /// Reads a part of a string.
    ///
    /// `GETRANGE key start end`
    pub fn getrange<T>(
        &self,
        key: impl ToArg,
        start: impl ToArg,
        end: impl ToArg,
    ) -> Command<&Session, T> {
        commands::getrange(key, start, end).on(self)
    }

    /// Adds one to an integer.
    ///
    /// `INCR key`
    pub fn incr(&self, key: impl ToArg) -> Command<&Session, i64> {
        commands::incr(key).on(self)
    }

    /// Adds a number to an integer.
    ///
    /// `INCRBY key increment`
    pub fn incrby(&self, key: impl ToArg, increment: impl ToArg) -> Command<&Session, i64> {
        commands::incrby(key, increment).on(self)
    }

    /// Adds a decimal number to a number.
    ///
    /// `INCRBYFLOAT key increment`
    pub fn incrbyfloat(&self, key: impl ToArg, increment: impl ToArg) -> Command<&Session, f64> {
        commands::incrbyfloat(key, increment).on(self)
    }

    /// Finds the longest subsequence that two strings share.
    ///
    /// `LCS key1 key2 [MINMATCHLEN len] [WITHMATCHLEN]`
    pub fn lcs<T>(&self, key1: impl ToArg, key2: impl ToArg) -> Command<&Session, T, options::Lcs> {
        commands::lcs(key1, key2).on(self)
    }

    /// Finds the longest subsequence that two strings share.
    ///
    /// `LCS key1 key2 IDX [MINMATCHLEN len] [WITHMATCHLEN]`
    pub fn lcs_idx<T>(
        &self,
        key1: impl ToArg,
        key2: impl ToArg,
    ) -> Command<&Session, T, options::LcsIdx> {
        commands::lcs_idx(key1, key2).on(self)
    }

    /// Finds the longest subsequence that two strings share.
    ///
    /// `LCS key1 key2 LEN [MINMATCHLEN len] [WITHMATCHLEN]`
    pub fn lcs_len(
        &self,
        key1: impl ToArg,
        key2: impl ToArg,
    ) -> Command<&Session, i64, options::LcsLen> {
        commands::lcs_len(key1, key2).on(self)
    }

    /// Reads the strings of several keys.
    ///
    /// `MGET key …`
    pub fn mget<T>(&self, keys: impl ToArgs) -> Command<&Session, Vec<Option<T>>> {
        commands::mget(keys).on(self)
    }

    /// Stores strings under several keys in one step.
    ///
    /// `MSET key value …`
    pub fn mset(&self, key_values: impl ToArgs) -> Command<&Session, ()> {
        commands::mset(key_values).on(self)
    }

    /// Stores strings under several keys, provided that none of the keys exists.
    ///
    /// `MSETNX key value …`
    pub fn msetnx(&self, key_values: impl ToArgs) -> Command<&Session, bool> {
        commands::msetnx(key_values).on(self)
    }

    /// Stores a string that expires after so many milliseconds.
    ///
    /// `PSETEX key milliseconds value`
    pub fn psetex(
        &self,
        key: impl ToArg,
        milliseconds: impl ToArg,
        value: impl ToArg,
    ) -> Command<&Session, ()> {
        commands::psetex(key, milliseconds, value).on(self)
    }

    /// Stores a string, whatever the key held before. Whether it was written: not, if a condition was not met.
    ///
    /// `SET key value [NX | XX] [GET] [EX seconds | PX milliseconds | EXAT unix-time-seconds | PXAT
    /// unix-time-milliseconds | KEEPTTL]`
    pub fn set(&self, key: impl ToArg, value: impl ToArg) -> Command<&Session, bool, options::Set> {
        commands::set(key, value).on(self)
    }

    /// Stores a string that expires after so many seconds.
    ///
    /// `SETEX key seconds value`
    pub fn setex(
        &self,
        key: impl ToArg,
        seconds: impl ToArg,
        value: impl ToArg,
    ) -> Command<&Session, ()> {
        commands::setex(key, seconds, value).on(self)
    }

    /// Stores a string unless the key exists.
    ///
    /// `SETNX key value`
    pub fn setnx(&self, key: impl ToArg, value: impl ToArg) -> Command<&Session, bool> {
        commands::setnx(key, value).on(self)
    }

    /// Writes bytes into a string from an offset on.
    ///
    /// `SETRANGE key offset value`
    pub fn setrange(
        &self,
        key: impl ToArg,
        offset: impl ToArg,
        value: impl ToArg,
    ) -> Command<&Session, i64> {
        commands::setrange(key, offset, value).on(self)
    }

    /// Tells the length of a string.
    ///
    /// `STRLEN key`
    pub fn strlen(&self, key: impl ToArg) -> Command<&Session, i64> {
        commands::strlen(key).on(self)
    }
}
