//! Commands of the group `string` as methods of a session.
//!
//! Written by the test `client_commands` from the server's command table: do not edit.

use crate::arg::{ToArg, ToArgs};
use crate::command::Command;
use crate::commands;
use crate::commands::options;
use crate::session::Session;

/// Commands of the group `string`.
impl Session {
    /// Appends bytes to a string. Creates the key if it does not exist.
    ///
    /// `APPEND key value`
    pub fn append(&self, key: impl ToArg, value: impl ToArg) -> Command<&Session, i64> {
        commands::append(key, value).on(self)
    }

    /// Decrements an integer by one.
    ///
    /// `DECR key`
    pub fn decr(&self, key: impl ToArg) -> Command<&Session, i64> {
        commands::decr(key).on(self)
    }

    /// Decrements an integer by a number.
    ///
    /// `DECRBY key decrement`
    pub fn decrby(&self, key: impl ToArg, decrement: impl ToArg) -> Command<&Session, i64> {
        commands::decrby(key, decrement).on(self)
    }

    /// Returns the string value of a key.
    ///
    /// `GET key`
    pub fn get<T>(&self, key: impl ToArg) -> Command<&Session, Option<T>> {
        commands::get(key).on(self)
    }

    /// Returns the string value of a key and deletes the key.
    ///
    /// `GETDEL key`
    pub fn getdel<T>(&self, key: impl ToArg) -> Command<&Session, Option<T>> {
        commands::getdel(key).on(self)
    }

    /// Returns the string value of a key and sets or removes its TTL.
    ///
    /// `GETEX key [EX seconds | PX milliseconds | EXAT unix-time-seconds | PXAT unix-time-milliseconds |
    /// PERSIST]`
    pub fn getex<T>(&self, key: impl ToArg) -> Command<&Session, Option<T>, options::Getex> {
        commands::getex(key).on(self)
    }

    /// Returns a part of a string.
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

    /// Increments an integer by one.
    ///
    /// `INCR key`
    pub fn incr(&self, key: impl ToArg) -> Command<&Session, i64> {
        commands::incr(key).on(self)
    }

    /// Increments an integer by a number.
    ///
    /// `INCRBY key increment`
    pub fn incrby(&self, key: impl ToArg, increment: impl ToArg) -> Command<&Session, i64> {
        commands::incrby(key, increment).on(self)
    }

    /// Increments a number by a floating-point number.
    ///
    /// `INCRBYFLOAT key increment`
    pub fn incrbyfloat(&self, key: impl ToArg, increment: impl ToArg) -> Command<&Session, f64> {
        commands::incrbyfloat(key, increment).on(self)
    }

    /// Finds the longest common subsequence of two strings.
    ///
    /// `LCS key1 key2 [MINMATCHLEN len] [WITHMATCHLEN]`
    pub fn lcs<T>(&self, key1: impl ToArg, key2: impl ToArg) -> Command<&Session, T, options::Lcs> {
        commands::lcs(key1, key2).on(self)
    }

    /// Finds the longest common subsequence of two strings.
    ///
    /// `LCS key1 key2 IDX [MINMATCHLEN len] [WITHMATCHLEN]`
    pub fn lcs_idx<T>(
        &self,
        key1: impl ToArg,
        key2: impl ToArg,
    ) -> Command<&Session, T, options::LcsIdx> {
        commands::lcs_idx(key1, key2).on(self)
    }

    /// Finds the longest common subsequence of two strings.
    ///
    /// `LCS key1 key2 LEN [MINMATCHLEN len] [WITHMATCHLEN]`
    pub fn lcs_len(
        &self,
        key1: impl ToArg,
        key2: impl ToArg,
    ) -> Command<&Session, i64, options::LcsLen> {
        commands::lcs_len(key1, key2).on(self)
    }

    /// Returns the string values of several keys.
    ///
    /// `MGET key …`
    pub fn mget<T>(&self, keys: impl ToArgs) -> Command<&Session, Vec<Option<T>>> {
        commands::mget(keys).on(self)
    }

    /// Sets the string values of several keys atomically.
    ///
    /// `MSET key value …`
    pub fn mset(&self, key_values: impl ToArgs) -> Command<&Session, ()> {
        commands::mset(key_values).on(self)
    }

    /// Sets the string values of several keys only if none of the keys exists.
    ///
    /// `MSETNX key value …`
    pub fn msetnx(&self, key_values: impl ToArgs) -> Command<&Session, bool> {
        commands::msetnx(key_values).on(self)
    }

    /// Sets the string value and the TTL in milliseconds of a key.
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

    /// Sets the string value of a key and replaces a previous value of any type. The reply is true if the value
    /// was written, and false if a condition was not met.
    ///
    /// `SET key value [NX | XX] [GET] [EX seconds | PX milliseconds | EXAT unix-time-seconds | PXAT
    /// unix-time-milliseconds | KEEPTTL]`
    pub fn set(&self, key: impl ToArg, value: impl ToArg) -> Command<&Session, bool, options::Set> {
        commands::set(key, value).on(self)
    }

    /// Sets the string value and the TTL in seconds of a key.
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

    /// Sets the string value of a key only if the key does not exist.
    ///
    /// `SETNX key value`
    pub fn setnx(&self, key: impl ToArg, value: impl ToArg) -> Command<&Session, bool> {
        commands::setnx(key, value).on(self)
    }

    /// Overwrites a part of a string, starting at an offset.
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

    /// Returns the length of a string.
    ///
    /// `STRLEN key`
    pub fn strlen(&self, key: impl ToArg) -> Command<&Session, i64> {
        commands::strlen(key).on(self)
    }
}
