//! Commands of the group `string`.
//!
//! Written by the test `client_commands` from the server's command table: do not edit.

use super::{PLAIN, READS};
use crate::arg::{ToArg, ToArgs};
use crate::command::Command;
use crate::commands::options;
use crate::request::Request;

/// Appends bytes to a string. Creates the key if it does not exist.
///
/// `APPEND key value`
///
/// O(1) amortised, for short values. Since Redis 2.0.0. Errors: those of the server.
pub fn append(key: impl ToArg, value: impl ToArg) -> Command<(), i64> {
    let mut request = Request::new("APPEND", PLAIN);
    request.key(key);
    request.arg(value);
    Command::typed(request)
}

/// Decrements an integer by one.
///
/// `DECR key`
///
/// O(1). Since Redis 1.0.0. Errors: those of the server.
pub fn decr(key: impl ToArg) -> Command<(), i64> {
    let mut request = Request::new("DECR", PLAIN);
    request.key(key);
    Command::typed(request)
}

/// Decrements an integer by a number.
///
/// `DECRBY key decrement`
///
/// O(1). Since Redis 1.0.0. Errors: those of the server.
pub fn decrby(key: impl ToArg, decrement: impl ToArg) -> Command<(), i64> {
    let mut request = Request::new("DECRBY", PLAIN);
    request.key(key);
    request.arg(decrement);
    Command::typed(request)
}

/// Returns the string value of a key.
///
/// `GET key`
///
/// O(1). Since Redis 1.0.0. Errors: those of the server; `UnexpectedReply` if the reply cannot be converted
/// to `T`.
pub fn get<T>(key: impl ToArg) -> Command<(), Option<T>> {
    let mut request = Request::new("GET", READS);
    request.key(key);
    Command::typed(request)
}

/// Returns the string value of a key and deletes the key.
///
/// `GETDEL key`
///
/// O(1). Since Redis 6.2.0. Errors: those of the server; `UnexpectedReply` if the reply cannot be converted
/// to `T`.
pub fn getdel<T>(key: impl ToArg) -> Command<(), Option<T>> {
    let mut request = Request::new("GETDEL", PLAIN);
    request.key(key);
    Command::typed(request)
}

/// Returns the string value of a key and sets or removes its TTL.
///
/// `GETEX key [EX seconds | PX milliseconds | EXAT unix-time-seconds | PXAT unix-time-milliseconds |
/// PERSIST]`
///
/// O(1). Since Redis 6.2.0. Errors: those of the server; `UnexpectedReply` if the reply cannot be converted
/// to `T`.
pub fn getex<T>(key: impl ToArg) -> Command<(), Option<T>, options::Getex> {
    let mut request = Request::new("GETEX", PLAIN);
    request.key(key);
    Command::typed(request)
}

/// Returns a part of a string.
///
/// `GETRANGE key start end`
///
/// O(N) with N the length of the reply. Since Redis 2.4.0. Errors: those of the server; `UnexpectedReply` if
/// the reply cannot be converted to `T`.
pub fn getrange<T>(key: impl ToArg, start: impl ToArg, end: impl ToArg) -> Command<(), T> {
    let mut request = Request::new("GETRANGE", READS);
    request.key(key);
    request.arg(start);
    request.arg(end);
    Command::typed(request)
}

/// Sets the string value of a key and returns the old value.
///
/// `GETSET key value`
///
/// O(1). Since Redis 1.0.0. Errors: those of the server; `UnexpectedReply` if the reply cannot be converted
/// to `T`.
#[deprecated(note = "since Redis 6.2.0: `SET` with the `GET` argument instead")]
pub fn getset<T>(key: impl ToArg, value: impl ToArg) -> Command<(), Option<T>> {
    let mut request = Request::new("GETSET", PLAIN);
    request.key(key);
    request.arg(value);
    Command::typed(request)
}

/// Increments an integer by one.
///
/// `INCR key`
///
/// O(1). Since Redis 1.0.0. Errors: those of the server.
pub fn incr(key: impl ToArg) -> Command<(), i64> {
    let mut request = Request::new("INCR", PLAIN);
    request.key(key);
    Command::typed(request)
}

/// Increments an integer by a number.
///
/// `INCRBY key increment`
///
/// O(1). Since Redis 1.0.0. Errors: those of the server.
pub fn incrby(key: impl ToArg, increment: impl ToArg) -> Command<(), i64> {
    let mut request = Request::new("INCRBY", PLAIN);
    request.key(key);
    request.arg(increment);
    Command::typed(request)
}

/// Increments a number by a floating-point number.
///
/// `INCRBYFLOAT key increment`
///
/// O(1). Since Redis 2.6.0. Errors: those of the server.
pub fn incrbyfloat(key: impl ToArg, increment: impl ToArg) -> Command<(), f64> {
    let mut request = Request::new("INCRBYFLOAT", PLAIN);
    request.key(key);
    request.arg(increment);
    Command::typed(request)
}

/// Finds the longest common subsequence of two strings.
///
/// `LCS key1 key2 [MINMATCHLEN len] [WITHMATCHLEN]`
///
/// O(N*M) with N and M the lengths of the strings. Since Redis 7.0.0. Errors: those of the server;
/// `UnexpectedReply` if the reply cannot be converted to `T`.
pub fn lcs<T>(key1: impl ToArg, key2: impl ToArg) -> Command<(), T, options::Lcs> {
    let mut request = Request::new("LCS", READS);
    request.key(key1);
    request.key(key2);
    Command::typed(request)
}

/// Finds the longest common subsequence of two strings.
///
/// `LCS key1 key2 IDX [MINMATCHLEN len] [WITHMATCHLEN]`
///
/// O(N*M) with N and M the lengths of the strings. Since Redis 7.0.0. Errors: those of the server;
/// `UnexpectedReply` if the reply cannot be converted to `T`.
pub fn lcs_idx<T>(key1: impl ToArg, key2: impl ToArg) -> Command<(), T, options::LcsIdx> {
    let mut request = Request::new("LCS", READS);
    request.key(key1);
    request.key(key2);
    request.arg("IDX");
    Command::typed(request)
}

/// Finds the longest common subsequence of two strings.
///
/// `LCS key1 key2 LEN [MINMATCHLEN len] [WITHMATCHLEN]`
///
/// O(N*M) with N and M the lengths of the strings. Since Redis 7.0.0. Errors: those of the server.
pub fn lcs_len(key1: impl ToArg, key2: impl ToArg) -> Command<(), i64, options::LcsLen> {
    let mut request = Request::new("LCS", READS);
    request.key(key1);
    request.key(key2);
    request.arg("LEN");
    Command::typed(request)
}

/// Returns the string values of several keys.
///
/// `MGET key …`
///
/// O(N) with N the number of keys. Since Redis 1.0.0. Errors: those of the server; `UnexpectedReply` if the
/// reply cannot be converted to `T`.
pub fn mget<T>(keys: impl ToArgs) -> Command<(), Vec<Option<T>>> {
    let mut request = Request::new("MGET", READS);
    request.keys(keys);
    Command::typed(request)
}

/// Sets the string values of several keys atomically.
///
/// `MSET key value …`
///
/// O(N) with N the number of keys. Since Redis 1.0.1. Errors: those of the server.
pub fn mset(key_values: impl ToArgs) -> Command<(), ()> {
    let mut request = Request::new("MSET", PLAIN);
    request.keys(key_values);
    Command::typed(request)
}

/// Sets the string values of several keys only if none of the keys exists.
///
/// `MSETNX key value …`
///
/// O(N) with N the number of keys. Since Redis 1.0.1. Errors: those of the server.
pub fn msetnx(key_values: impl ToArgs) -> Command<(), bool> {
    let mut request = Request::new("MSETNX", PLAIN);
    request.keys(key_values);
    Command::typed(request)
}

/// Sets the string value and the TTL in milliseconds of a key.
///
/// `PSETEX key milliseconds value`
///
/// O(1). Since Redis 2.6.0. Errors: those of the server.
pub fn psetex(key: impl ToArg, milliseconds: impl ToArg, value: impl ToArg) -> Command<(), ()> {
    let mut request = Request::new("PSETEX", PLAIN);
    request.key(key);
    request.arg(milliseconds);
    request.arg(value);
    Command::typed(request)
}

/// Sets the string value of a key and replaces a previous value of any type. The reply is true if the value
/// was written, and false if a condition was not met.
///
/// `SET key value [NX | XX] [GET] [EX seconds | PX milliseconds | EXAT unix-time-seconds | PXAT
/// unix-time-milliseconds | KEEPTTL]`
///
/// O(1). Since Redis 1.0.0. Errors: those of the server.
pub fn set(key: impl ToArg, value: impl ToArg) -> Command<(), bool, options::Set> {
    let mut request = Request::new("SET", PLAIN);
    request.key(key);
    request.arg(value);
    Command::typed(request)
}

/// Sets the string value and the TTL in seconds of a key.
///
/// `SETEX key seconds value`
///
/// O(1). Since Redis 2.0.0. Errors: those of the server.
pub fn setex(key: impl ToArg, seconds: impl ToArg, value: impl ToArg) -> Command<(), ()> {
    let mut request = Request::new("SETEX", PLAIN);
    request.key(key);
    request.arg(seconds);
    request.arg(value);
    Command::typed(request)
}

/// Sets the string value of a key only if the key does not exist.
///
/// `SETNX key value`
///
/// O(1). Since Redis 1.0.0. Errors: those of the server.
pub fn setnx(key: impl ToArg, value: impl ToArg) -> Command<(), bool> {
    let mut request = Request::new("SETNX", PLAIN);
    request.key(key);
    request.arg(value);
    Command::typed(request)
}

/// Overwrites a part of a string, starting at an offset.
///
/// `SETRANGE key offset value`
///
/// O(1) for short values, else O(M) with M the length of the value. Since Redis 2.2.0. Errors: those of the
/// server.
pub fn setrange(key: impl ToArg, offset: impl ToArg, value: impl ToArg) -> Command<(), i64> {
    let mut request = Request::new("SETRANGE", PLAIN);
    request.key(key);
    request.arg(offset);
    request.arg(value);
    Command::typed(request)
}

/// Returns the length of a string.
///
/// `STRLEN key`
///
/// O(1). Since Redis 2.2.0. Errors: those of the server.
pub fn strlen(key: impl ToArg) -> Command<(), i64> {
    let mut request = Request::new("STRLEN", READS);
    request.key(key);
    Command::typed(request)
}

/// Returns a part of a string.
///
/// `SUBSTR key start end`
///
/// O(N) with N the length of the reply. Since Redis 1.0.0. Errors: those of the server; `UnexpectedReply` if
/// the reply cannot be converted to `T`.
#[deprecated(note = "since Redis 2.0.0: `GETRANGE` instead")]
pub fn substr<T>(key: impl ToArg, start: impl ToArg, end: impl ToArg) -> Command<(), T> {
    let mut request = Request::new("SUBSTR", READS);
    request.key(key);
    request.arg(start);
    request.arg(end);
    Command::typed(request)
}
