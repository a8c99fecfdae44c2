//! Commands of the group `sorted-set`.
//!
//! Written by the test `client_commands` from the server's command table: do not edit.

use super::{BLOCKS, PLAIN, READS};
use crate::arg::{ToArg, ToArgs};
use crate::command::Command;
use crate::commands::{options, types};
use crate::request::Request;

/// Takes members out of the first sorted set that is there, and waits for one. The key and pairs of member
/// and score; none after the timeout.
///
/// `BZMPOP timeout numkeys key … <MIN | MAX> [COUNT count]`
///
/// O(K) + O(M*log(N)) where K is the number of provided keys, N being the number of elements in the sorted
/// set, and M being the number of elements popped. Since Redis 7.0.0. Errors: the server's; `UnexpectedReply`
/// if `K` or `T` does not fit.
///
/// It may wait, and what is behind it on the connection with it: it is no method of
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

/// Takes out the member with the highest score, and waits for one if there is none. The key, the member and
/// its score; none after the timeout.
///
/// `BZPOPMAX key … timeout`
///
/// O(log(N)) with N being the number of elements in the sorted set. Since Redis 5.0.0. Errors: the server's;
/// `UnexpectedReply` if `K` or `T` does not fit.
///
/// It may wait, and what is behind it on the connection with it: it is no method of
/// [`Client`](crate::Client), whose connections are shared.
pub fn bzpopmax<K, T>(keys: impl ToArgs, timeout: impl ToArg) -> Command<(), Option<(K, T, f64)>> {
    let mut request = Request::new("BZPOPMAX", BLOCKS);
    request.keys(keys);
    request.arg(timeout);
    Command::typed(request)
}

/// Takes out the member with the lowest score, and waits for one if there is none. The key, the member and
/// its score; none after the timeout.
///
/// `BZPOPMIN key … timeout`
///
/// O(log(N)) with N being the number of elements in the sorted set. Since Redis 5.0.0. Errors: the server's;
/// `UnexpectedReply` if `K` or `T` does not fit.
///
/// It may wait, and what is behind it on the connection with it: it is no method of
/// [`Client`](crate::Client), whose connections are shared.
pub fn bzpopmin<K, T>(keys: impl ToArgs, timeout: impl ToArg) -> Command<(), Option<(K, T, f64)>> {
    let mut request = Request::new("BZPOPMIN", BLOCKS);
    request.keys(keys);
    request.arg(timeout);
    Command::typed(request)
}

/// Adds members with scores, or changes the scores of members.
///
/// `ZADD key [NX | XX] [GT | LT] [CH] [INCR] score member …`
///
/// O(log(N)). Since Redis 1.2.0. Errors: the server's.
pub fn zadd(key: impl ToArg, score_members: impl ToArgs) -> Command<(), i64, options::Zadd> {
    let mut request = Request::new("ZADD", PLAIN);
    request.key(key);
    request.end_of_options();
    request.args(score_members);
    Command::typed(request)
}

/// Counts the members.
///
/// `ZCARD key`
///
/// O(1). Since Redis 1.2.0. Errors: the server's.
pub fn zcard(key: impl ToArg) -> Command<(), i64> {
    let mut request = Request::new("ZCARD", READS);
    request.key(key);
    Command::typed(request)
}

/// Counts the members whose scores lie in a range.
///
/// `ZCOUNT key min max`
///
/// O(log(N)). Since Redis 2.0.0. Errors: the server's.
pub fn zcount(key: impl ToArg, min: impl ToArg, max: impl ToArg) -> Command<(), i64> {
    let mut request = Request::new("ZCOUNT", READS);
    request.key(key);
    request.arg(min);
    request.arg(max);
    Command::typed(request)
}

/// Subtracts sorted sets from the first.
///
/// `ZDIFF numkeys key … [WITHSCORES]`
///
/// O(L + (N-K)log(N)). Since Redis 6.2.0. Errors: the server's; `UnexpectedReply` if `T` does not fit.
pub fn zdiff<T>(keys: impl ToArgs) -> Command<(), Vec<T>, options::Zdiff> {
    let mut request = Request::new("ZDIFF", READS);
    request.arg(keys.count());
    request.keys(keys);
    Command::typed(request)
}

/// Stores what is left of a sorted set when others are subtracted.
///
/// `ZDIFFSTORE destination numkeys key …`
///
/// O(L + (N-K)log(N)). Since Redis 6.2.0. Errors: the server's.
pub fn zdiffstore(destination: impl ToArg, keys: impl ToArgs) -> Command<(), i64> {
    let mut request = Request::new("ZDIFFSTORE", PLAIN);
    request.key(destination);
    request.arg(keys.count());
    request.keys(keys);
    Command::typed(request)
}

/// Adds a number to the score of a member.
///
/// `ZINCRBY key increment member`
///
/// O(log(N)). Since Redis 1.2.0. Errors: the server's.
pub fn zincrby(key: impl ToArg, increment: impl ToArg, member: impl ToArg) -> Command<(), f64> {
    let mut request = Request::new("ZINCRBY", PLAIN);
    request.key(key);
    request.arg(increment);
    request.arg(member);
    Command::typed(request)
}

/// Intersects sorted sets.
///
/// `ZINTER numkeys key … [WEIGHTS weight …] [AGGREGATE SUM | MIN | MAX] [WITHSCORES]`
///
/// O(N*K). Since Redis 6.2.0. Errors: the server's; `UnexpectedReply` if `T` does not fit.
pub fn zinter<T>(keys: impl ToArgs) -> Command<(), Vec<T>, options::Zinter> {
    let mut request = Request::new("ZINTER", READS);
    request.arg(keys.count());
    request.keys(keys);
    Command::typed(request)
}

/// Counts the members that sorted sets have in common.
///
/// `ZINTERCARD numkeys key … [LIMIT limit]`
///
/// O(N*K). Since Redis 7.0.0. Errors: the server's.
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
/// O(N*K). Since Redis 2.0.0. Errors: the server's.
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

/// Counts the members that lie in a range of texts.
///
/// `ZLEXCOUNT key min max`
///
/// O(log(N)). Since Redis 2.8.9. Errors: the server's.
pub fn zlexcount(key: impl ToArg, min: impl ToArg, max: impl ToArg) -> Command<(), i64> {
    let mut request = Request::new("ZLEXCOUNT", READS);
    request.key(key);
    request.arg(min);
    request.arg(max);
    Command::typed(request)
}

/// Takes members out of the first of several sorted sets that has any. The key and pairs of member and score;
/// none if all sorted sets are empty.
///
/// `ZMPOP numkeys key … <MIN | MAX> [COUNT count]`
///
/// O(K). Since Redis 7.0.0. Errors: the server's; `UnexpectedReply` if `K` or `T` does not fit.
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

/// Reads the scores of several members.
///
/// `ZMSCORE key member …`
///
/// O(N). Since Redis 6.2.0. Errors: the server's.
pub fn zmscore(key: impl ToArg, members: impl ToArgs) -> Command<(), Vec<Option<f64>>> {
    let mut request = Request::new("ZMSCORE", READS);
    request.key(key);
    request.args(members);
    Command::typed(request)
}

/// Takes out the members with the highest scores. Pairs of member and score.
///
/// `ZPOPMAX key [count]`
///
/// O(log(N)*M). Since Redis 5.0.0. Errors: the server's; `UnexpectedReply` if `T` does not fit.
pub fn zpopmax<T>(key: impl ToArg) -> Command<(), Vec<(T, f64)>, options::Zpopmax> {
    let mut request = Request::new("ZPOPMAX", PLAIN);
    request.key(key);
    Command::typed(request)
}

/// Takes out the members with the lowest scores. Pairs of member and score.
///
/// `ZPOPMIN key [count]`
///
/// O(log(N)*M). Since Redis 5.0.0. Errors: the server's; `UnexpectedReply` if `T` does not fit.
pub fn zpopmin<T>(key: impl ToArg) -> Command<(), Vec<(T, f64)>, options::Zpopmin> {
    let mut request = Request::new("ZPOPMIN", PLAIN);
    request.key(key);
    Command::typed(request)
}

/// Draws members at random.
///
/// `ZRANDMEMBER key [count [WITHSCORES]]`
///
/// O(N). Since Redis 6.2.0. Errors: the server's; `UnexpectedReply` if `T` does not fit.
pub fn zrandmember<T>(key: impl ToArg) -> Command<(), Option<T>, options::Zrandmember> {
    let mut request = Request::new("ZRANDMEMBER", READS);
    request.key(key);
    Command::typed(request)
}

/// Lists members by rank, score or text, from either end. Members; pairs of member and score if these are
/// asked for.
///
/// `ZRANGE key start stop [BYSCORE | BYLEX] [REV] [LIMIT offset count] [WITHSCORES]`
///
/// O(log(N)+M). Since Redis 1.2.0. Errors: the server's; `UnexpectedReply` if `T` does not fit.
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

/// Lists the members that lie in a range of texts.
///
/// `ZRANGEBYLEX key min max [LIMIT offset count]`
///
/// O(log(N)+M). Since Redis 2.8.9. Errors: the server's; `UnexpectedReply` if `T` does not fit.
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

/// Lists the members whose scores lie in a range.
///
/// `ZRANGEBYSCORE key min max [WITHSCORES] [LIMIT offset count]`
///
/// O(log(N)+M). Since Redis 1.0.5. Errors: the server's; `UnexpectedReply` if `T` does not fit.
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
/// O(log(N)+M). Since Redis 6.2.0. Errors: the server's.
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

/// Tells how many members come before a member.
///
/// `ZRANK key member [WITHSCORE]`
///
/// O(log(N)). Since Redis 2.0.0. Errors: the server's.
pub fn zrank(key: impl ToArg, member: impl ToArg) -> Command<(), Option<i64>, options::Zrank> {
    let mut request = Request::new("ZRANK", READS);
    request.key(key);
    request.arg(member);
    Command::typed(request)
}

/// Removes members.
///
/// `ZREM key member …`
///
/// O(M*log(N)). Since Redis 1.2.0. Errors: the server's.
pub fn zrem(key: impl ToArg, members: impl ToArgs) -> Command<(), i64> {
    let mut request = Request::new("ZREM", PLAIN);
    request.key(key);
    request.args(members);
    Command::typed(request)
}

/// Removes the members that lie in a range of texts.
///
/// `ZREMRANGEBYLEX key min max`
///
/// O(log(N)+M). Since Redis 2.8.9. Errors: the server's.
pub fn zremrangebylex(key: impl ToArg, min: impl ToArg, max: impl ToArg) -> Command<(), i64> {
    let mut request = Request::new("ZREMRANGEBYLEX", PLAIN);
    request.key(key);
    request.arg(min);
    request.arg(max);
    Command::typed(request)
}

/// Removes the members of a range of ranks.
///
/// `ZREMRANGEBYRANK key start stop`
///
/// O(log(N)+M). Since Redis 2.0.0. Errors: the server's.
pub fn zremrangebyrank(key: impl ToArg, start: impl ToArg, stop: impl ToArg) -> Command<(), i64> {
    let mut request = Request::new("ZREMRANGEBYRANK", PLAIN);
    request.key(key);
    request.arg(start);
    request.arg(stop);
    Command::typed(request)
}

/// Removes the members whose scores lie in a range.
///
/// `ZREMRANGEBYSCORE key min max`
///
/// O(log(N)+M). Since Redis 1.2.0. Errors: the server's.
pub fn zremrangebyscore(key: impl ToArg, min: impl ToArg, max: impl ToArg) -> Command<(), i64> {
    let mut request = Request::new("ZREMRANGEBYSCORE", PLAIN);
    request.key(key);
    request.arg(min);
    request.arg(max);
    Command::typed(request)
}

/// Lists members by rank from the highest score down.
///
/// `ZREVRANGE key start stop [WITHSCORES]`
///
/// O(log(N)+M). Since Redis 1.2.0. Errors: the server's; `UnexpectedReply` if `T` does not fit.
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

/// Lists the members that lie in a range of texts, last first.
///
/// `ZREVRANGEBYLEX key max min [LIMIT offset count]`
///
/// O(log(N)+M). Since Redis 2.8.9. Errors: the server's; `UnexpectedReply` if `T` does not fit.
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

/// Lists the members whose scores lie in a range, highest first.
///
/// `ZREVRANGEBYSCORE key max min [WITHSCORES] [LIMIT offset count]`
///
/// O(log(N)+M). Since Redis 2.2.0. Errors: the server's; `UnexpectedReply` if `T` does not fit.
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

/// Tells how many members come behind a member.
///
/// `ZREVRANK key member [WITHSCORE]`
///
/// O(log(N)). Since Redis 2.0.0. Errors: the server's.
pub fn zrevrank(
    key: impl ToArg,
    member: impl ToArg,
) -> Command<(), Option<i64>, options::Zrevrank> {
    let mut request = Request::new("ZREVRANK", READS);
    request.key(key);
    request.arg(member);
    Command::typed(request)
}

/// Lists members bit by bit. Pairs of member and score, from a cursor that begins with 0 and ends with 0.
///
/// `ZSCAN key cursor [MATCH pattern] [COUNT count] [NOSCORES]`
///
/// O(1). Since Redis 2.8.0. Errors: the server's; `UnexpectedReply` if `T` does not fit.
pub fn zscan<T>(key: impl ToArg, cursor: impl ToArg) -> Command<(), (u64, Vec<T>), options::Zscan> {
    let mut request = Request::new("ZSCAN", READS);
    request.key(key);
    request.arg(cursor);
    Command::typed(request)
}

/// Reads the score of a member.
///
/// `ZSCORE key member`
///
/// O(1). Since Redis 1.2.0. Errors: the server's.
pub fn zscore(key: impl ToArg, member: impl ToArg) -> Command<(), Option<f64>> {
    let mut request = Request::new("ZSCORE", READS);
    request.key(key);
    request.arg(member);
    Command::typed(request)
}

/// Unites sorted sets.
///
/// `ZUNION numkeys key … [WEIGHTS weight …] [AGGREGATE SUM | MIN | MAX] [WITHSCORES]`
///
/// O(N). Since Redis 6.2.0. Errors: the server's; `UnexpectedReply` if `T` does not fit.
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
/// O(N). Since Redis 2.0.0. Errors: the server's.
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
