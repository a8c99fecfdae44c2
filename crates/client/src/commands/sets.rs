//! Commands of the group `set`.
//!
//! Written by the test `client_commands` from the server's command table: do not edit.

use super::{PLAIN, READS};
use crate::arg::{ToArg, ToArgs};
use crate::command::Command;
use crate::commands::options;
use crate::request::Request;

/// Adds members to a set. Creates the key if it does not exist.
///
/// `SADD key member …`
///
/// O(1) for each added member. Since Redis 1.0.0. Errors: those of the server.
pub fn sadd(key: impl ToArg, members: impl ToArgs) -> Command<(), i64> {
    let mut request = Request::new("SADD", PLAIN);
    request.key(key);
    request.args(members);
    Command::typed(request)
}

/// Returns the number of members in a set.
///
/// `SCARD key`
///
/// O(1). Since Redis 1.0.0. Errors: those of the server.
pub fn scard(key: impl ToArg) -> Command<(), i64> {
    let mut request = Request::new("SCARD", READS);
    request.key(key);
    Command::typed(request)
}

/// Returns the difference of sets.
///
/// `SDIFF key …`
///
/// O(N) in the number of members of all sets together. Since Redis 1.0.0. Errors: those of the server;
/// `UnexpectedReply` if the reply cannot be converted to `T`.
pub fn sdiff<T>(keys: impl ToArgs) -> Command<(), T> {
    let mut request = Request::new("SDIFF", READS);
    request.keys(keys);
    Command::typed(request)
}

/// Stores the difference of sets.
///
/// `SDIFFSTORE destination key …`
///
/// O(N) in the number of members of all sets together. Since Redis 1.0.0. Errors: those of the server.
pub fn sdiffstore(destination: impl ToArg, keys: impl ToArgs) -> Command<(), i64> {
    let mut request = Request::new("SDIFFSTORE", PLAIN);
    request.key(destination);
    request.keys(keys);
    Command::typed(request)
}

/// Returns the intersection of sets.
///
/// `SINTER key …`
///
/// O(N*M) at worst, with N members in the smallest of M sets. Since Redis 1.0.0. Errors: those of the server;
/// `UnexpectedReply` if the reply cannot be converted to `T`.
pub fn sinter<T>(keys: impl ToArgs) -> Command<(), T> {
    let mut request = Request::new("SINTER", READS);
    request.keys(keys);
    Command::typed(request)
}

/// Returns the number of members in the intersection of sets.
///
/// `SINTERCARD numkeys key … [LIMIT limit]`
///
/// O(N*M) at worst, with N members in the smallest of M sets. Since Redis 7.0.0. Errors: those of the server.
pub fn sintercard(keys: impl ToArgs) -> Command<(), i64, options::Sintercard> {
    let mut request = Request::new("SINTERCARD", READS);
    request.arg(keys.count());
    request.keys(keys);
    Command::typed(request)
}

/// Stores the intersection of sets.
///
/// `SINTERSTORE destination key …`
///
/// O(N*M) at worst, with N members in the smallest of M sets. Since Redis 1.0.0. Errors: those of the server.
pub fn sinterstore(destination: impl ToArg, keys: impl ToArgs) -> Command<(), i64> {
    let mut request = Request::new("SINTERSTORE", PLAIN);
    request.key(destination);
    request.keys(keys);
    Command::typed(request)
}

/// Checks if a member exists in a set.
///
/// `SISMEMBER key member`
///
/// O(1). Since Redis 1.0.0. Errors: those of the server.
pub fn sismember(key: impl ToArg, member: impl ToArg) -> Command<(), bool> {
    let mut request = Request::new("SISMEMBER", READS);
    request.key(key);
    request.arg(member);
    Command::typed(request)
}

/// Returns all members of a set.
///
/// `SMEMBERS key`
///
/// O(N) in the number of members. Since Redis 1.0.0. Errors: those of the server; `UnexpectedReply` if the
/// reply cannot be converted to `T`.
pub fn smembers<T>(key: impl ToArg) -> Command<(), T> {
    let mut request = Request::new("SMEMBERS", READS);
    request.key(key);
    Command::typed(request)
}

/// Checks if several members exist in a set.
///
/// `SMISMEMBER key member …`
///
/// O(N) in the number of members named. Since Redis 6.2.0. Errors: those of the server.
pub fn smismember(key: impl ToArg, members: impl ToArgs) -> Command<(), Vec<bool>> {
    let mut request = Request::new("SMISMEMBER", READS);
    request.key(key);
    request.args(members);
    Command::typed(request)
}

/// Moves a member from one set to another.
///
/// `SMOVE source destination member`
///
/// O(1). Since Redis 1.0.0. Errors: those of the server.
pub fn smove(source: impl ToArg, destination: impl ToArg, member: impl ToArg) -> Command<(), bool> {
    let mut request = Request::new("SMOVE", PLAIN);
    request.key(source);
    request.key(destination);
    request.arg(member);
    Command::typed(request)
}

/// Removes and returns random members of a set.
///
/// `SPOP key [count]`
///
/// O(1); with a count, O(N) in the number of members removed. Since Redis 1.0.0. Errors: those of the server;
/// `UnexpectedReply` if the reply cannot be converted to `T`.
pub fn spop<T>(key: impl ToArg) -> Command<(), Option<T>, options::Spop> {
    let mut request = Request::new("SPOP", PLAIN);
    request.key(key);
    Command::typed(request)
}

/// Returns random members of a set.
///
/// `SRANDMEMBER key [count]`
///
/// O(1); with a count, O(N) in the number of members returned. Since Redis 1.0.0. Errors: those of the
/// server; `UnexpectedReply` if the reply cannot be converted to `T`.
pub fn srandmember<T>(key: impl ToArg) -> Command<(), Option<T>, options::Srandmember> {
    let mut request = Request::new("SRANDMEMBER", READS);
    request.key(key);
    Command::typed(request)
}

/// Removes members from a set. Deletes the set if no members are left.
///
/// `SREM key member …`
///
/// O(N) in the number of members named. Since Redis 1.0.0. Errors: those of the server.
pub fn srem(key: impl ToArg, members: impl ToArgs) -> Command<(), i64> {
    let mut request = Request::new("SREM", PLAIN);
    request.key(key);
    request.args(members);
    Command::typed(request)
}

/// Iterates over the members of a set. Start with cursor 0; the iteration is complete when the reply's cursor
/// is 0. The elements are members.
///
/// `SSCAN key cursor [MATCH pattern] [COUNT count]`
///
/// O(1) for every call. A whole iteration, until the cursor is 0 again, is O(N) in the number of members.
/// Since Redis 2.8.0. Errors: those of the server; `UnexpectedReply` if the reply cannot be converted to `T`.
pub fn sscan<T>(key: impl ToArg, cursor: impl ToArg) -> Command<(), (u64, Vec<T>), options::Sscan> {
    let mut request = Request::new("SSCAN", READS);
    request.key(key);
    request.arg(cursor);
    Command::typed(request)
}

/// Returns the union of sets.
///
/// `SUNION key …`
///
/// O(N) in the number of members of all sets together. Since Redis 1.0.0. Errors: those of the server;
/// `UnexpectedReply` if the reply cannot be converted to `T`.
pub fn sunion<T>(keys: impl ToArgs) -> Command<(), T> {
    let mut request = Request::new("SUNION", READS);
    request.keys(keys);
    Command::typed(request)
}

/// Stores the union of sets.
///
/// `SUNIONSTORE destination key …`
///
/// O(N) in the number of members of all sets together. Since Redis 1.0.0. Errors: those of the server.
pub fn sunionstore(destination: impl ToArg, keys: impl ToArgs) -> Command<(), i64> {
    let mut request = Request::new("SUNIONSTORE", PLAIN);
    request.key(destination);
    request.keys(keys);
    Command::typed(request)
}
