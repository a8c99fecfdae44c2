//! Commands of the group `hash`.
//!
//! Written by the test `client_commands` from the server's command table: do not edit.

use super::{PLAIN, READS};
use crate::arg::{ToArg, ToArgs};
use crate::command::Command;
use crate::commands::options;
use crate::request::Request;

/// Removes fields of a hash. Deletes the hash if no fields are left.
///
/// `HDEL key field …`
///
/// O(N) in the number of removed fields. Since Redis 2.0.0. Errors: those of the server.
pub fn hdel(key: impl ToArg, fields: impl ToArgs) -> Command<(), i64> {
    let mut request = Request::new("HDEL", PLAIN);
    request.key(key);
    request.args(fields);
    Command::typed(request)
}

/// Checks if a field exists in a hash.
///
/// `HEXISTS key field`
///
/// O(1). Since Redis 2.0.0. Errors: those of the server.
pub fn hexists(key: impl ToArg, field: impl ToArg) -> Command<(), bool> {
    let mut request = Request::new("HEXISTS", READS);
    request.key(key);
    request.arg(field);
    Command::typed(request)
}

/// Sets the TTL of fields in seconds.
///
/// `HEXPIRE key seconds [NX | XX | GT | LT] FIELDS numfields field …`
///
/// O(N) in the number of fields that are named. Since Redis 7.4.0. Errors: those of the server.
pub fn hexpire(
    key: impl ToArg,
    seconds: impl ToArg,
    fields: impl ToArgs,
) -> Command<(), Vec<i64>, options::Hexpire> {
    let mut request = Request::new("HEXPIRE", PLAIN);
    request.key(key);
    request.arg(seconds);
    request.end_of_options();
    request.arg("FIELDS");
    request.arg(fields.count());
    request.args(fields);
    Command::typed(request)
}

/// Sets the expiry time of fields to a Unix time in seconds.
///
/// `HEXPIREAT key unix-time-seconds [NX | XX | GT | LT] FIELDS numfields field …`
///
/// O(N) in the number of fields that are named. Since Redis 7.4.0. Errors: those of the server.
pub fn hexpireat(
    key: impl ToArg,
    unix_time_seconds: i64,
    fields: impl ToArgs,
) -> Command<(), Vec<i64>, options::Hexpireat> {
    let mut request = Request::new("HEXPIREAT", PLAIN);
    request.key(key);
    request.arg(unix_time_seconds);
    request.end_of_options();
    request.arg("FIELDS");
    request.arg(fields.count());
    request.args(fields);
    Command::typed(request)
}

/// Returns the expiry time of fields as a Unix time in seconds.
///
/// `HEXPIRETIME key FIELDS numfields field …`
///
/// O(N) in the number of fields that are named. Since Redis 7.4.0. Errors: those of the server.
pub fn hexpiretime(key: impl ToArg, fields: impl ToArgs) -> Command<(), Vec<i64>> {
    let mut request = Request::new("HEXPIRETIME", READS);
    request.key(key);
    request.arg("FIELDS");
    request.arg(fields.count());
    request.args(fields);
    Command::typed(request)
}

/// Returns the value of a field.
///
/// `HGET key field`
///
/// O(1). Since Redis 2.0.0. Errors: those of the server; `UnexpectedReply` if the reply cannot be converted
/// to `T`.
pub fn hget<T>(key: impl ToArg, field: impl ToArg) -> Command<(), Option<T>> {
    let mut request = Request::new("HGET", READS);
    request.key(key);
    request.arg(field);
    Command::typed(request)
}

/// Returns all fields and values of a hash. The reply is a map, or a list of pairs.
///
/// `HGETALL key`
///
/// O(N) in the size of the hash. Since Redis 2.0.0. Errors: those of the server; `UnexpectedReply` if the
/// reply cannot be converted to `T`.
pub fn hgetall<T>(key: impl ToArg) -> Command<(), T> {
    let mut request = Request::new("HGETALL", READS);
    request.key(key);
    Command::typed(request)
}

/// Returns the values of fields and removes the fields.
///
/// `HGETDEL key FIELDS numfields field …`
///
/// O(N) in the number of fields that are named. Since Redis 8.0.0. Errors: those of the server;
/// `UnexpectedReply` if the reply cannot be converted to `T`.
pub fn hgetdel<T>(key: impl ToArg, fields: impl ToArgs) -> Command<(), Vec<Option<T>>> {
    let mut request = Request::new("HGETDEL", PLAIN);
    request.key(key);
    request.arg("FIELDS");
    request.arg(fields.count());
    request.args(fields);
    Command::typed(request)
}

/// Returns the values of fields and sets or removes their TTL.
///
/// `HGETEX key [EX seconds | PX milliseconds | EXAT unix-time-seconds | PXAT unix-time-milliseconds |
/// PERSIST] FIELDS numfields field …`
///
/// O(N) in the number of fields that are named. Since Redis 8.0.0. Errors: those of the server;
/// `UnexpectedReply` if the reply cannot be converted to `T`.
pub fn hgetex<T>(
    key: impl ToArg,
    fields: impl ToArgs,
) -> Command<(), Vec<Option<T>>, options::Hgetex> {
    let mut request = Request::new("HGETEX", PLAIN);
    request.key(key);
    request.end_of_options();
    request.arg("FIELDS");
    request.arg(fields.count());
    request.args(fields);
    Command::typed(request)
}

/// Increments the integer value of a field by a number.
///
/// `HINCRBY key field increment`
///
/// O(1). Since Redis 2.0.0. Errors: those of the server.
pub fn hincrby(key: impl ToArg, field: impl ToArg, increment: impl ToArg) -> Command<(), i64> {
    let mut request = Request::new("HINCRBY", PLAIN);
    request.key(key);
    request.arg(field);
    request.arg(increment);
    Command::typed(request)
}

/// Increments the value of a field by a floating-point number.
///
/// `HINCRBYFLOAT key field increment`
///
/// O(1). Since Redis 2.6.0. Errors: those of the server.
pub fn hincrbyfloat(key: impl ToArg, field: impl ToArg, increment: impl ToArg) -> Command<(), f64> {
    let mut request = Request::new("HINCRBYFLOAT", PLAIN);
    request.key(key);
    request.arg(field);
    request.arg(increment);
    Command::typed(request)
}

/// Returns all fields of a hash.
///
/// `HKEYS key`
///
/// O(N) in the size of the hash. Since Redis 2.0.0. Errors: those of the server; `UnexpectedReply` if the
/// reply cannot be converted to `T`.
pub fn hkeys<T>(key: impl ToArg) -> Command<(), Vec<T>> {
    let mut request = Request::new("HKEYS", READS);
    request.key(key);
    Command::typed(request)
}

/// Returns the number of fields in a hash.
///
/// `HLEN key`
///
/// O(1). Since Redis 2.0.0. Errors: those of the server.
pub fn hlen(key: impl ToArg) -> Command<(), i64> {
    let mut request = Request::new("HLEN", READS);
    request.key(key);
    Command::typed(request)
}

/// Returns the values of several fields.
///
/// `HMGET key field …`
///
/// O(N) in the number of requested fields. Since Redis 2.0.0. Errors: those of the server; `UnexpectedReply`
/// if the reply cannot be converted to `T`.
pub fn hmget<T>(key: impl ToArg, fields: impl ToArgs) -> Command<(), Vec<Option<T>>> {
    let mut request = Request::new("HMGET", READS);
    request.key(key);
    request.args(fields);
    Command::typed(request)
}

/// Sets fields of a hash.
///
/// `HMSET key field value …`
///
/// O(N) in the number of fields that are set. Since Redis 2.0.0. Errors: those of the server.
#[deprecated(note = "since Redis 4.0.0: `HSET` with multiple field-value pairs instead")]
pub fn hmset(key: impl ToArg, field_values: impl ToArgs) -> Command<(), ()> {
    let mut request = Request::new("HMSET", PLAIN);
    request.key(key);
    request.args(field_values);
    Command::typed(request)
}

/// Removes the TTL of fields.
///
/// `HPERSIST key FIELDS numfields field …`
///
/// O(N) in the number of fields that are named. Since Redis 7.4.0. Errors: those of the server.
pub fn hpersist(key: impl ToArg, fields: impl ToArgs) -> Command<(), Vec<i64>> {
    let mut request = Request::new("HPERSIST", PLAIN);
    request.key(key);
    request.arg("FIELDS");
    request.arg(fields.count());
    request.args(fields);
    Command::typed(request)
}

/// Sets the TTL of fields in milliseconds.
///
/// `HPEXPIRE key milliseconds [NX | XX | GT | LT] FIELDS numfields field …`
///
/// O(N) in the number of fields that are named. Since Redis 7.4.0. Errors: those of the server.
pub fn hpexpire(
    key: impl ToArg,
    milliseconds: impl ToArg,
    fields: impl ToArgs,
) -> Command<(), Vec<i64>, options::Hpexpire> {
    let mut request = Request::new("HPEXPIRE", PLAIN);
    request.key(key);
    request.arg(milliseconds);
    request.end_of_options();
    request.arg("FIELDS");
    request.arg(fields.count());
    request.args(fields);
    Command::typed(request)
}

/// Sets the expiry time of fields to a Unix time in milliseconds.
///
/// `HPEXPIREAT key unix-time-milliseconds [NX | XX | GT | LT] FIELDS numfields field …`
///
/// O(N) in the number of fields that are named. Since Redis 7.4.0. Errors: those of the server.
pub fn hpexpireat(
    key: impl ToArg,
    unix_time_milliseconds: i64,
    fields: impl ToArgs,
) -> Command<(), Vec<i64>, options::Hpexpireat> {
    let mut request = Request::new("HPEXPIREAT", PLAIN);
    request.key(key);
    request.arg(unix_time_milliseconds);
    request.end_of_options();
    request.arg("FIELDS");
    request.arg(fields.count());
    request.args(fields);
    Command::typed(request)
}

/// Returns the expiry time of fields as a Unix time in milliseconds.
///
/// `HPEXPIRETIME key FIELDS numfields field …`
///
/// O(N) in the number of fields that are named. Since Redis 7.4.0. Errors: those of the server.
pub fn hpexpiretime(key: impl ToArg, fields: impl ToArgs) -> Command<(), Vec<i64>> {
    let mut request = Request::new("HPEXPIRETIME", READS);
    request.key(key);
    request.arg("FIELDS");
    request.arg(fields.count());
    request.args(fields);
    Command::typed(request)
}

/// Returns the TTL of fields in milliseconds.
///
/// `HPTTL key FIELDS numfields field …`
///
/// O(N) in the number of fields that are named. Since Redis 7.4.0. Errors: those of the server.
pub fn hpttl(key: impl ToArg, fields: impl ToArgs) -> Command<(), Vec<i64>> {
    let mut request = Request::new("HPTTL", READS);
    request.key(key);
    request.arg("FIELDS");
    request.arg(fields.count());
    request.args(fields);
    Command::typed(request)
}

/// Returns random fields of a hash.
///
/// `HRANDFIELD key [count [WITHVALUES]]`
///
/// O(N) in the number of fields that are returned. Since Redis 6.2.0. Errors: those of the server;
/// `UnexpectedReply` if the reply cannot be converted to `T`.
pub fn hrandfield<T>(key: impl ToArg) -> Command<(), Option<T>, options::Hrandfield> {
    let mut request = Request::new("HRANDFIELD", READS);
    request.key(key);
    Command::typed(request)
}

/// Iterates over the fields and values of a hash. Start with cursor 0; the iteration is complete when the
/// reply's cursor is 0. The elements are pairs of field and value.
///
/// `HSCAN key cursor [MATCH pattern] [COUNT count] [NOVALUES]`
///
/// O(1) for every call. A whole iteration, until the cursor is 0 again, is O(N) in the number of fields.
/// Since Redis 2.8.0. Errors: those of the server; `UnexpectedReply` if the reply cannot be converted to `T`.
pub fn hscan<T>(key: impl ToArg, cursor: impl ToArg) -> Command<(), (u64, Vec<T>), options::Hscan> {
    let mut request = Request::new("HSCAN", READS);
    request.key(key);
    request.arg(cursor);
    Command::typed(request)
}

/// Sets fields of a hash.
///
/// `HSET key field value …`
///
/// O(1) for each field. Since Redis 2.0.0. Errors: those of the server.
pub fn hset(key: impl ToArg, field_values: impl ToArgs) -> Command<(), i64> {
    let mut request = Request::new("HSET", PLAIN);
    request.key(key);
    request.args(field_values);
    Command::typed(request)
}

/// Sets fields of a hash and their TTL.
///
/// `HSETEX key [FNX | FXX] [EX seconds | PX milliseconds | EXAT unix-time-seconds | PXAT
/// unix-time-milliseconds | KEEPTTL] FIELDS numfields field value …`
///
/// O(N) in the number of fields that are set. Since Redis 8.0.0. Errors: those of the server.
pub fn hsetex(key: impl ToArg, field_values: impl ToArgs) -> Command<(), bool, options::Hsetex> {
    let mut request = Request::new("HSETEX", PLAIN);
    request.key(key);
    request.end_of_options();
    request.arg("FIELDS");
    request.arg(field_values.count());
    request.args(field_values);
    Command::typed(request)
}

/// Sets a field of a hash only if the field does not exist.
///
/// `HSETNX key field value`
///
/// O(1). Since Redis 2.0.0. Errors: those of the server.
pub fn hsetnx(key: impl ToArg, field: impl ToArg, value: impl ToArg) -> Command<(), bool> {
    let mut request = Request::new("HSETNX", PLAIN);
    request.key(key);
    request.arg(field);
    request.arg(value);
    Command::typed(request)
}

/// Returns the length of a field's value.
///
/// `HSTRLEN key field`
///
/// O(1). Since Redis 3.2.0. Errors: those of the server.
pub fn hstrlen(key: impl ToArg, field: impl ToArg) -> Command<(), i64> {
    let mut request = Request::new("HSTRLEN", READS);
    request.key(key);
    request.arg(field);
    Command::typed(request)
}

/// Returns the TTL of fields in seconds.
///
/// `HTTL key FIELDS numfields field …`
///
/// O(N) in the number of fields that are named. Since Redis 7.4.0. Errors: those of the server.
pub fn httl(key: impl ToArg, fields: impl ToArgs) -> Command<(), Vec<i64>> {
    let mut request = Request::new("HTTL", READS);
    request.key(key);
    request.arg("FIELDS");
    request.arg(fields.count());
    request.args(fields);
    Command::typed(request)
}

/// Returns all values of a hash.
///
/// `HVALS key`
///
/// O(N) in the size of the hash. Since Redis 2.0.0. Errors: those of the server; `UnexpectedReply` if the
/// reply cannot be converted to `T`.
pub fn hvals<T>(key: impl ToArg) -> Command<(), Vec<T>> {
    let mut request = Request::new("HVALS", READS);
    request.key(key);
    Command::typed(request)
}
