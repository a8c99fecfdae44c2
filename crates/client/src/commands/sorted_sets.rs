//! Commands of the group `sorted-set`.
//!
//! Written by the test `client_commands` from the server's command table: do not edit.

use super::{BLOCKS, PLAIN, READS};
use crate::arg::{ToArg, ToArgs};
use crate::command::Command;
use crate::commands::{options, types};
use crate::request::Request;

/// Removes and returns members of the first sorted set that is not empty. Blocks until there is one. The
/// reply is the key and pairs of member and score, or null after the timeout.
///
/// `BZMPOP timeout numkeys key … <MIN | MAX> [COUNT count]`
///
/// O(K) + O(M*log(N)) for K keys and N members, M of which are removed. Since Redis 7.0.0. Errors: those of
/// the server; `UnexpectedReply` if the reply cannot be converted to `K` and `T`.
///
/// This command may block later commands on its connection, so it is not a method of
/// [`Client`](crate::Client), whose connections are shared.
pub fn bzmpop<K, T>(
    timeout: impl ToArg,
    keys: impl ToArgs,
    side: types::Extreme,
) -> Command<(), Option<(K, Vec<(T, f64)>)>, options::Bzmpop> {
    let mut request = Request::new("BZMPOP", BLOCKS);
    request.arg(timeout);
    request.arg(keys.count());
    request.keys(keys);
    request.arg(side);
    Command::typed(request)
}

/// Removes and returns the member with the highest score. Blocks until there is one. The reply is the key,
/// the member and its score, or null after the timeout.
///
/// `BZPOPMAX key … timeout`
///
/// O(log(N)) with N members. Since Redis 5.0.0. Errors: those of the server; `UnexpectedReply` if the reply
/// cannot be converted to `K` and `T`.
///
/// This command may block later commands on its connection, so it is not a method of
/// [`Client`](crate::Client), whose connections are shared.
pub fn bzpopmax<K, T>(keys: impl ToArgs, timeout: impl ToArg) -> Command<(), Option<(K, T, f64)>> {
    let mut request = Request::new("BZPOPMAX", BLOCKS);
    request.keys(keys);
    request.arg(timeout);
    Command::typed(request)
}

/// Removes and returns the member with the lowest score. Blocks until there is one. The reply is the key, the
/// member and its score, or null after the timeout.
///
/// `BZPOPMIN key … timeout`
///
/// O(log(N)) with N members. Since Redis 5.0.0. Errors: those of the server; `UnexpectedReply` if the reply
/// cannot be converted to `K` and `T`.
///
/// This command may block later commands on its connection, so it is not a method of
/// [`Client`](crate::Client), whose connections are shared.
pub fn bzpopmin<K, T>(keys: impl ToArgs, timeout: impl ToArg) -> Command<(), Option<(K, T, f64)>> {
    let mut request = Request::new("BZPOPMIN", BLOCKS);
    request.keys(keys);
    request.arg(timeout);
    Command::typed(request)
}

/// Adds members to a sorted set, or updates their scores.
///
/// `ZADD key [NX | XX] [GT | LT] [CH] [INCR] score member …`
///
/// O(log(N)). Since Redis 1.2.0. Errors: those of the server.
pub fn zadd(key: impl ToArg, score_members: impl ToArgs) -> Command<(), i64, options::Zadd> {
    let mut request = Request::new("ZADD", PLAIN);
    request.key(key);
    request.end_of_options();
    request.args(score_members);
    Command::typed(request)
}

/// Returns the number of members in a sorted set.
///
/// `ZCARD key`
///
/// O(1). Since Redis 1.2.0. Errors: those of the server.
pub fn zcard(key: impl ToArg) -> Command<(), i64> {
    let mut request = Request::new("ZCARD", READS);
    request.key(key);
    Command::typed(request)
}

/// Counts the members with scores in a range.
///
/// `ZCOUNT key min max`
///
/// O(log(N)). Since Redis 2.0.0. Errors: those of the server.
pub fn zcount(key: impl ToArg, min: impl ToArg, max: impl ToArg) -> Command<(), i64> {
    let mut request = Request::new("ZCOUNT", READS);
    request.key(key);
    request.arg(min);
    request.arg(max);
    Command::typed(request)
}

/// Returns the difference of sorted sets.
///
/// `ZDIFF numkeys key … [WITHSCORES]`
///
/// O(L + (N-K)log(N)) with L members in all sets, N in the first set and K in the result. Since Redis 6.2.0.
/// Errors: those of the server; `UnexpectedReply` if the reply cannot be converted to `T`.
pub fn zdiff<T>(keys: impl ToArgs) -> Command<(), Vec<T>, options::Zdiff> {
    let mut request = Request::new("ZDIFF", READS);
    request.arg(keys.count());
    request.keys(keys);
    Command::typed(request)
}

/// Stores the difference of sorted sets.
///
/// `ZDIFFSTORE destination numkeys key …`
///
/// O(L + (N-K)log(N)) with L members in all sets, N in the first set and K in the result. Since Redis 6.2.0.
/// Errors: those of the server.
pub fn zdiffstore(destination: impl ToArg, keys: impl ToArgs) -> Command<(), i64> {
    let mut request = Request::new("ZDIFFSTORE", PLAIN);
    request.key(destination);
    request.arg(keys.count());
    request.keys(keys);
    Command::typed(request)
}

/// Increments the score of a member.
///
/// `ZINCRBY key increment member`
///
/// O(log(N)). Since Redis 1.2.0. Errors: those of the server.
pub fn zincrby(key: impl ToArg, increment: impl ToArg, member: impl ToArg) -> Command<(), f64> {
    let mut request = Request::new("ZINCRBY", PLAIN);
    request.key(key);
    request.arg(increment);
    request.arg(member);
    Command::typed(request)
}

/// Returns the intersection of sorted sets.
///
/// `ZINTER numkeys key … [WEIGHTS weight …] [AGGREGATE SUM | MIN | MAX] [WITHSCORES]`
///
/// O(N*K) with N members in the smallest of K sets. Since Redis 6.2.0. Errors: those of the server;
/// `UnexpectedReply` if the reply cannot be converted to `T`.
pub fn zinter<T>(keys: impl ToArgs) -> Command<(), Vec<T>, options::Zinter> {
    let mut request = Request::new("ZINTER", READS);
    request.arg(keys.count());
    request.keys(keys);
    Command::typed(request)
}

/// Returns the number of members in the intersection of sorted sets.
///
/// `ZINTERCARD numkeys key … [LIMIT limit]`
///
/// O(N*K) with N members in the smallest of K sets. Since Redis 7.0.0. Errors: those of the server.
pub fn zintercard(keys: impl ToArgs) -> Command<(), i64, options::Zintercard> {
    let mut request = Request::new("ZINTERCARD", READS);
    request.arg(keys.count());
    request.keys(keys);
    Command::typed(request)
}

/// Stores the intersection of sorted sets.
///
/// `ZINTERSTORE destination numkeys key … [WEIGHTS weight …] [AGGREGATE SUM | MIN | MAX]`
///
/// O(N*K) with N members in the smallest of K sets. Since Redis 2.0.0. Errors: those of the server.
pub fn zinterstore(
    destination: impl ToArg,
    keys: impl ToArgs,
) -> Command<(), i64, options::Zinterstore> {
    let mut request = Request::new("ZINTERSTORE", PLAIN);
    request.key(destination);
    request.arg(keys.count());
    request.keys(keys);
    Command::typed(request)
}

/// Counts the members in a lexicographic range.
///
/// `ZLEXCOUNT key min max`
///
/// O(log(N)). Since Redis 2.8.9. Errors: those of the server.
pub fn zlexcount(key: impl ToArg, min: impl ToArg, max: impl ToArg) -> Command<(), i64> {
    let mut request = Request::new("ZLEXCOUNT", READS);
    request.key(key);
    request.arg(min);
    request.arg(max);
    Command::typed(request)
}

/// Removes and returns members of the first sorted set that is not empty. The reply is the key and pairs of
/// member and score, or null if all sorted sets are empty.
///
/// `ZMPOP numkeys key … <MIN | MAX> [COUNT count]`
///
/// O(K) + O(M*log(N)) for K keys and N members, M of which are removed. Since Redis 7.0.0. Errors: those of
/// the server; `UnexpectedReply` if the reply cannot be converted to `K` and `T`.
pub fn zmpop<K, T>(
    keys: impl ToArgs,
    side: types::Extreme,
) -> Command<(), Option<(K, Vec<(T, f64)>)>, options::Zmpop> {
    let mut request = Request::new("ZMPOP", PLAIN);
    request.arg(keys.count());
    request.keys(keys);
    request.arg(side);
    Command::typed(request)
}

/// Returns the scores of several members.
///
/// `ZMSCORE key member …`
///
/// O(N). Since Redis 6.2.0. Errors: those of the server.
pub fn zmscore(key: impl ToArg, members: impl ToArgs) -> Command<(), Vec<Option<f64>>> {
    let mut request = Request::new("ZMSCORE", READS);
    request.key(key);
    request.args(members);
    Command::typed(request)
}

/// Removes and returns the members with the highest scores. The reply lists pairs of member and score.
///
/// `ZPOPMAX key [count]`
///
/// O(log(N)*M) with N members, M of which are removed. Since Redis 5.0.0. Errors: those of the server;
/// `UnexpectedReply` if the reply cannot be converted to `T`.
pub fn zpopmax<T>(key: impl ToArg) -> Command<(), Vec<(T, f64)>, options::Zpopmax> {
    let mut request = Request::new("ZPOPMAX", PLAIN);
    request.key(key);
    Command::typed(request)
}

/// Removes and returns the members with the lowest scores. The reply lists pairs of member and score.
///
/// `ZPOPMIN key [count]`
///
/// O(log(N)*M) with N members, M of which are removed. Since Redis 5.0.0. Errors: those of the server;
/// `UnexpectedReply` if the reply cannot be converted to `T`.
pub fn zpopmin<T>(key: impl ToArg) -> Command<(), Vec<(T, f64)>, options::Zpopmin> {
    let mut request = Request::new("ZPOPMIN", PLAIN);
    request.key(key);
    Command::typed(request)
}

/// Returns random members of a sorted set.
///
/// `ZRANDMEMBER key [count [WITHSCORES]]`
///
/// O(N). Since Redis 6.2.0. Errors: those of the server; `UnexpectedReply` if the reply cannot be converted
/// to `T`.
pub fn zrandmember<T>(key: impl ToArg) -> Command<(), Option<T>, options::Zrandmember> {
    let mut request = Request::new("ZRANDMEMBER", READS);
    request.key(key);
    Command::typed(request)
}

/// Returns a range of members by rank, score or lexicographic order, in either direction. The reply lists
/// members or, with `WITHSCORES`, pairs of member and score.
///
/// `ZRANGE key start stop [BYSCORE | BYLEX] [REV] [LIMIT offset count] [WITHSCORES]`
///
/// O(log(N)+M) with N members, M of which are returned. Since Redis 1.2.0. Errors: those of the server;
/// `UnexpectedReply` if the reply cannot be converted to `T`.
pub fn zrange<T>(
    key: impl ToArg,
    start: impl ToArg,
    stop: impl ToArg,
) -> Command<(), Vec<T>, options::Zrange> {
    let mut request = Request::new("ZRANGE", READS);
    request.key(key);
    request.arg(start);
    request.arg(stop);
    Command::typed(request)
}

/// Returns the members in a lexicographic range.
///
/// `ZRANGEBYLEX key min max [LIMIT offset count]`
///
/// O(log(N)+M) with N members, M of which are returned. Since Redis 2.8.9. Errors: those of the server;
/// `UnexpectedReply` if the reply cannot be converted to `T`.
#[deprecated(note = "since Redis 6.2.0: `ZRANGE` with the `BYLEX` argument instead")]
pub fn zrangebylex<T>(
    key: impl ToArg,
    min: impl ToArg,
    max: impl ToArg,
) -> Command<(), Vec<T>, options::Zrangebylex> {
    let mut request = Request::new("ZRANGEBYLEX", READS);
    request.key(key);
    request.arg(min);
    request.arg(max);
    Command::typed(request)
}

/// Returns the members with scores in a range.
///
/// `ZRANGEBYSCORE key min max [WITHSCORES] [LIMIT offset count]`
///
/// O(log(N)+M) with N members, M of which are returned. Since Redis 1.0.5. Errors: those of the server;
/// `UnexpectedReply` if the reply cannot be converted to `T`.
#[deprecated(note = "since Redis 6.2.0: `ZRANGE` with the `BYSCORE` argument instead")]
pub fn zrangebyscore<T>(
    key: impl ToArg,
    min: impl ToArg,
    max: impl ToArg,
) -> Command<(), Vec<T>, options::Zrangebyscore> {
    let mut request = Request::new("ZRANGEBYSCORE", READS);
    request.key(key);
    request.arg(min);
    request.arg(max);
    Command::typed(request)
}

/// Stores a range of a sorted set under another key.
///
/// `ZRANGESTORE dst src min max [BYSCORE | BYLEX] [REV] [LIMIT offset count]`
///
/// O(log(N)+M) with N members, M of which are stored. Since Redis 6.2.0. Errors: those of the server.
pub fn zrangestore(
    destination: impl ToArg,
    source: impl ToArg,
    min: impl ToArg,
    max: impl ToArg,
) -> Command<(), i64, options::Zrangestore> {
    let mut request = Request::new("ZRANGESTORE", PLAIN);
    request.key(destination);
    request.key(source);
    request.arg(min);
    request.arg(max);
    Command::typed(request)
}

/// Returns the rank of a member, counted from the lowest score.
///
/// `ZRANK key member [WITHSCORE]`
///
/// O(log(N)). Since Redis 2.0.0. Errors: those of the server.
pub fn zrank(key: impl ToArg, member: impl ToArg) -> Command<(), Option<i64>, options::Zrank> {
    let mut request = Request::new("ZRANK", READS);
    request.key(key);
    request.arg(member);
    Command::typed(request)
}

/// Removes members of a sorted set.
///
/// `ZREM key member …`
///
/// O(M*log(N)) with N members, M of which are removed. Since Redis 1.2.0. Errors: those of the server.
pub fn zrem(key: impl ToArg, members: impl ToArgs) -> Command<(), i64> {
    let mut request = Request::new("ZREM", PLAIN);
    request.key(key);
    request.args(members);
    Command::typed(request)
}

/// Removes the members in a lexicographic range.
///
/// `ZREMRANGEBYLEX key min max`
///
/// O(log(N)+M) with N members, M of which are removed. Since Redis 2.8.9. Errors: those of the server.
pub fn zremrangebylex(key: impl ToArg, min: impl ToArg, max: impl ToArg) -> Command<(), i64> {
    let mut request = Request::new("ZREMRANGEBYLEX", PLAIN);
    request.key(key);
    request.arg(min);
    request.arg(max);
    Command::typed(request)
}

/// Removes the members with ranks in a range.
///
/// `ZREMRANGEBYRANK key start stop`
///
/// O(log(N)+M) with N members, M of which are removed. Since Redis 2.0.0. Errors: those of the server.
pub fn zremrangebyrank(key: impl ToArg, start: impl ToArg, stop: impl ToArg) -> Command<(), i64> {
    let mut request = Request::new("ZREMRANGEBYRANK", PLAIN);
    request.key(key);
    request.arg(start);
    request.arg(stop);
    Command::typed(request)
}

/// Removes the members with scores in a range.
///
/// `ZREMRANGEBYSCORE key min max`
///
/// O(log(N)+M) with N members, M of which are removed. Since Redis 1.2.0. Errors: those of the server.
pub fn zremrangebyscore(key: impl ToArg, min: impl ToArg, max: impl ToArg) -> Command<(), i64> {
    let mut request = Request::new("ZREMRANGEBYSCORE", PLAIN);
    request.key(key);
    request.arg(min);
    request.arg(max);
    Command::typed(request)
}

/// Returns a range of members by rank, from the highest score to the lowest.
///
/// `ZREVRANGE key start stop [WITHSCORES]`
///
/// O(log(N)+M) with N members, M of which are returned. Since Redis 1.2.0. Errors: those of the server;
/// `UnexpectedReply` if the reply cannot be converted to `T`.
#[deprecated(note = "since Redis 6.2.0: `ZRANGE` with the `REV` argument instead")]
pub fn zrevrange<T>(
    key: impl ToArg,
    start: impl ToArg,
    stop: impl ToArg,
) -> Command<(), Vec<T>, options::Zrevrange> {
    let mut request = Request::new("ZREVRANGE", READS);
    request.key(key);
    request.arg(start);
    request.arg(stop);
    Command::typed(request)
}

/// Returns the members in a lexicographic range, in reverse order.
///
/// `ZREVRANGEBYLEX key max min [LIMIT offset count]`
///
/// O(log(N)+M) with N members, M of which are returned. Since Redis 2.8.9. Errors: those of the server;
/// `UnexpectedReply` if the reply cannot be converted to `T`.
#[deprecated(note = "since Redis 6.2.0: `ZRANGE` with the `REV` and `BYLEX` arguments instead")]
pub fn zrevrangebylex<T>(
    key: impl ToArg,
    max: impl ToArg,
    min: impl ToArg,
) -> Command<(), Vec<T>, options::Zrevrangebylex> {
    let mut request = Request::new("ZREVRANGEBYLEX", READS);
    request.key(key);
    request.arg(max);
    request.arg(min);
    Command::typed(request)
}

/// Returns the members with scores in a range, from the highest to the lowest.
///
/// `ZREVRANGEBYSCORE key max min [WITHSCORES] [LIMIT offset count]`
///
/// O(log(N)+M) with N members, M of which are returned. Since Redis 2.2.0. Errors: those of the server;
/// `UnexpectedReply` if the reply cannot be converted to `T`.
#[deprecated(note = "since Redis 6.2.0: `ZRANGE` with the `REV` and `BYSCORE` arguments instead")]
pub fn zrevrangebyscore<T>(
    key: impl ToArg,
    max: impl ToArg,
    min: impl ToArg,
) -> Command<(), Vec<T>, options::Zrevrangebyscore> {
    let mut request = Request::new("ZREVRANGEBYSCORE", READS);
    request.key(key);
    request.arg(max);
    request.arg(min);
    Command::typed(request)
}

/// Returns the rank of a member, counted from the highest score.
///
/// `ZREVRANK key member [WITHSCORE]`
///
/// O(log(N)). Since Redis 2.0.0. Errors: those of the server.
pub fn zrevrank(
    key: impl ToArg,
    member: impl ToArg,
) -> Command<(), Option<i64>, options::Zrevrank> {
    let mut request = Request::new("ZREVRANK", READS);
    request.key(key);
    request.arg(member);
    Command::typed(request)
}

/// Iterates over the members and scores of a sorted set. Start with cursor 0; the iteration is complete when
/// the reply's cursor is 0. The elements are pairs of member and score.
///
/// `ZSCAN key cursor [MATCH pattern] [COUNT count] [NOSCORES]`
///
/// O(1). Since Redis 2.8.0. Errors: those of the server; `UnexpectedReply` if the reply cannot be converted
/// to `T`.
pub fn zscan<T>(key: impl ToArg, cursor: impl ToArg) -> Command<(), (u64, Vec<T>), options::Zscan> {
    let mut request = Request::new("ZSCAN", READS);
    request.key(key);
    request.arg(cursor);
    Command::typed(request)
}

/// Returns the score of a member.
///
/// `ZSCORE key member`
///
/// O(1). Since Redis 1.2.0. Errors: those of the server.
pub fn zscore(key: impl ToArg, member: impl ToArg) -> Command<(), Option<f64>> {
    let mut request = Request::new("ZSCORE", READS);
    request.key(key);
    request.arg(member);
    Command::typed(request)
}

/// Returns the union of sorted sets.
///
/// `ZUNION numkeys key … [WEIGHTS weight …] [AGGREGATE SUM | MIN | MAX] [WITHSCORES]`
///
/// O(N). Since Redis 6.2.0. Errors: those of the server; `UnexpectedReply` if the reply cannot be converted
/// to `T`.
pub fn zunion<T>(keys: impl ToArgs) -> Command<(), Vec<T>, options::Zunion> {
    let mut request = Request::new("ZUNION", READS);
    request.arg(keys.count());
    request.keys(keys);
    Command::typed(request)
}

/// Stores the union of sorted sets.
///
/// `ZUNIONSTORE destination numkeys key … [WEIGHTS weight …] [AGGREGATE SUM | MIN | MAX]`
///
/// O(N). Since Redis 2.0.0. Errors: those of the server.
pub fn zunionstore(
    destination: impl ToArg,
    keys: impl ToArgs,
) -> Command<(), i64, options::Zunionstore> {
    let mut request = Request::new("ZUNIONSTORE", PLAIN);
    request.key(destination);
    request.arg(keys.count());
    request.keys(keys);
    Command::typed(request)
}
