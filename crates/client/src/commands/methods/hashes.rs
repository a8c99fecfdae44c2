//! Commands of the group `hash` as methods of shared connections.
//!
//! Written by the test `client_commands` from the server's command table: do not edit.

use crate::arg::{ToArg, ToArgs};
use crate::client::Client;
use crate::command::Command;
use crate::commands;
use crate::commands::options;

/// Commands of the group `hash`.
impl Client {
    /// Removes fields of a hash. Deletes the hash if no fields are left.
    ///
    /// `HDEL key field …`
    pub fn hdel(&self, key: impl ToArg, fields: impl ToArgs) -> Command<&Client, i64> {
        commands::hdel(key, fields).on(self)
    }

    /// Checks if a field exists in a hash.
    ///
    /// `HEXISTS key field`
    pub fn hexists(&self, key: impl ToArg, field: impl ToArg) -> Command<&Client, bool> {
        commands::hexists(key, field).on(self)
    }

    /// Sets the TTL of fields in seconds.
    ///
    /// `HEXPIRE key seconds [NX | XX | GT | LT] FIELDS numfields field …`
    pub fn hexpire(
        &self,
        key: impl ToArg,
        seconds: impl ToArg,
        fields: impl ToArgs,
    ) -> Command<&Client, Vec<i64>, options::Hexpire> {
        commands::hexpire(key, seconds, fields).on(self)
    }

    /// Sets the expiry time of fields to a Unix time in seconds.
    ///
    /// `HEXPIREAT key unix-time-seconds [NX | XX | GT | LT] FIELDS numfields field …`
    pub fn hexpireat(
        &self,
        key: impl ToArg,
        unix_time_seconds: i64,
        fields: impl ToArgs,
    ) -> Command<&Client, Vec<i64>, options::Hexpireat> {
        commands::hexpireat(key, unix_time_seconds, fields).on(self)
    }

    /// Returns the expiry time of fields as a Unix time in seconds.
    ///
    /// `HEXPIRETIME key FIELDS numfields field …`
    pub fn hexpiretime(&self, key: impl ToArg, fields: impl ToArgs) -> Command<&Client, Vec<i64>> {
        commands::hexpiretime(key, fields).on(self)
    }

    /// Returns the value of a field.
    ///
    /// `HGET key field`
    pub fn hget<T>(&self, key: impl ToArg, field: impl ToArg) -> Command<&Client, Option<T>> {
        commands::hget(key, field).on(self)
    }

    /// Returns all fields and values of a hash. The reply is a map, or a list of pairs.
    ///
    /// `HGETALL key`
    pub fn hgetall<T>(&self, key: impl ToArg) -> Command<&Client, T> {
        commands::hgetall(key).on(self)
    }

    /// Returns the values of fields and removes the fields.
    ///
    /// `HGETDEL key FIELDS numfields field …`
    pub fn hgetdel<T>(
        &self,
        key: impl ToArg,
        fields: impl ToArgs,
    ) -> Command<&Client, Vec<Option<T>>> {
        commands::hgetdel(key, fields).on(self)
    }

    /// Returns the values of fields and sets or removes their TTL.
    ///
    /// `HGETEX key [EX seconds | PX milliseconds | EXAT unix-time-seconds | PXAT unix-time-milliseconds |
    /// PERSIST] FIELDS numfields field …`
    pub fn hgetex<T>(
        &self,
        key: impl ToArg,
        fields: impl ToArgs,
    ) -> Command<&Client, Vec<Option<T>>, options::Hgetex> {
        commands::hgetex(key, fields).on(self)
    }

    /// Increments the integer value of a field by a number.
    ///
    /// `HINCRBY key field increment`
    pub fn hincrby(
        &self,
        key: impl ToArg,
        field: impl ToArg,
        increment: impl ToArg,
    ) -> Command<&Client, i64> {
        commands::hincrby(key, field, increment).on(self)
    }

    /// Increments the value of a field by a floating-point number.
    ///
    /// `HINCRBYFLOAT key field increment`
    pub fn hincrbyfloat(
        &self,
        key: impl ToArg,
        field: impl ToArg,
        increment: impl ToArg,
    ) -> Command<&Client, f64> {
        commands::hincrbyfloat(key, field, increment).on(self)
    }

    /// Returns all fields of a hash.
    ///
    /// `HKEYS key`
    pub fn hkeys<T>(&self, key: impl ToArg) -> Command<&Client, Vec<T>> {
        commands::hkeys(key).on(self)
    }

    /// Returns the number of fields in a hash.
    ///
    /// `HLEN key`
    pub fn hlen(&self, key: impl ToArg) -> Command<&Client, i64> {
        commands::hlen(key).on(self)
    }

    /// Returns the values of several fields.
    ///
    /// `HMGET key field …`
    pub fn hmget<T>(
        &self,
        key: impl ToArg,
        fields: impl ToArgs,
    ) -> Command<&Client, Vec<Option<T>>> {
        commands::hmget(key, fields).on(self)
    }

    /// Removes the TTL of fields.
    ///
    /// `HPERSIST key FIELDS numfields field …`
    pub fn hpersist(&self, key: impl ToArg, fields: impl ToArgs) -> Command<&Client, Vec<i64>> {
        commands::hpersist(key, fields).on(self)
    }

    /// Sets the TTL of fields in milliseconds.
    ///
    /// `HPEXPIRE key milliseconds [NX | XX | GT | LT] FIELDS numfields field …`
    pub fn hpexpire(
        &self,
        key: impl ToArg,
        milliseconds: impl ToArg,
        fields: impl ToArgs,
    ) -> Command<&Client, Vec<i64>, options::Hpexpire> {
        commands::hpexpire(key, milliseconds, fields).on(self)
    }

    /// Sets the expiry time of fields to a Unix time in milliseconds.
    ///
    /// `HPEXPIREAT key unix-time-milliseconds [NX | XX | GT | LT] FIELDS numfields field …`
    pub fn hpexpireat(
        &self,
        key: impl ToArg,
        unix_time_milliseconds: i64,
        fields: impl ToArgs,
    ) -> Command<&Client, Vec<i64>, options::Hpexpireat> {
        commands::hpexpireat(key, unix_time_milliseconds, fields).on(self)
    }

    /// Returns the expiry time of fields as a Unix time in milliseconds.
    ///
    /// `HPEXPIRETIME key FIELDS numfields field …`
    pub fn hpexpiretime(&self, key: impl ToArg, fields: impl ToArgs) -> Command<&Client, Vec<i64>> {
        commands::hpexpiretime(key, fields).on(self)
    }

    /// Returns the TTL of fields in milliseconds.
    ///
    /// `HPTTL key FIELDS numfields field …`
    pub fn hpttl(&self, key: impl ToArg, fields: impl ToArgs) -> Command<&Client, Vec<i64>> {
        commands::hpttl(key, fields).on(self)
    }

    /// Returns random fields of a hash.
    ///
    /// `HRANDFIELD key [count [WITHVALUES]]`
    pub fn hrandfield<T>(
        &self,
        key: impl ToArg,
    ) -> Command<&Client, Option<T>, options::Hrandfield> {
        commands::hrandfield(key).on(self)
    }

    /// Iterates over the fields and values of a hash. Start with cursor 0; the iteration is complete when the
    /// reply's cursor is 0. The elements are pairs of field and value.
    ///
    /// `HSCAN key cursor [MATCH pattern] [COUNT count] [NOVALUES]`
    pub fn hscan<T>(
        &self,
        key: impl ToArg,
        cursor: impl ToArg,
    ) -> Command<&Client, (u64, Vec<T>), options::Hscan> {
        commands::hscan(key, cursor).on(self)
    }

    /// Sets fields of a hash.
    ///
    /// `HSET key field value …`
    pub fn hset(&self, key: impl ToArg, field_values: impl ToArgs) -> Command<&Client, i64> {
        commands::hset(key, field_values).on(self)
    }

    /// Sets fields of a hash and their TTL.
    ///
    /// `HSETEX key [FNX | FXX] [EX seconds | PX milliseconds | EXAT unix-time-seconds | PXAT
    /// unix-time-milliseconds | KEEPTTL] FIELDS numfields field value …`
    pub fn hsetex(
        &self,
        key: impl ToArg,
        field_values: impl ToArgs,
    ) -> Command<&Client, bool, options::Hsetex> {
        commands::hsetex(key, field_values).on(self)
    }

    /// Sets a field of a hash only if the field does not exist.
    ///
    /// `HSETNX key field value`
    pub fn hsetnx(
        &self,
        key: impl ToArg,
        field: impl ToArg,
        value: impl ToArg,
    ) -> Command<&Client, bool> {
        commands::hsetnx(key, field, value).on(self)
    }

    /// Returns the length of a field's value.
    ///
    /// `HSTRLEN key field`
    pub fn hstrlen(&self, key: impl ToArg, field: impl ToArg) -> Command<&Client, i64> {
        commands::hstrlen(key, field).on(self)
    }

    /// Returns the TTL of fields in seconds.
    ///
    /// `HTTL key FIELDS numfields field …`
    pub fn httl(&self, key: impl ToArg, fields: impl ToArgs) -> Command<&Client, Vec<i64>> {
        commands::httl(key, fields).on(self)
    }

    /// Returns all values of a hash.
    ///
    /// `HVALS key`
    pub fn hvals<T>(&self, key: impl ToArg) -> Command<&Client, Vec<T>> {
        commands::hvals(key).on(self)
    }
}
