//! Commands of the group `sorted-set` as methods of a connection of one's own.
//!
//! Written by the test `client_commands` from the server's command table: do not edit.

use crate::arg::{ToArg, ToArgs};
use crate::command::Command;
use crate::commands;
use crate::commands::{options, types};
use crate::session::Session;

/// Commands of the group `sorted-set`.
impl Session {
    /// Takes members out of the first sorted set that is there, and waits for one. The key and pairs of member
    /// and score; none after the timeout.
    ///
    /// `BZMPOP timeout numkeys key … <MIN | MAX> [COUNT count]`
    pub fn bzmpop<K, T>(
        &self,
        timeout: impl ToArg,
        keys: impl ToArgs,
        side: types::Extreme,
    ) -> Command<&Session, Option<(K, Vec<(T, f64)>)>, options::Bzmpop> {
        commands::bzmpop(timeout, keys, side).on(self)
    }

    /// Takes out the member with the highest score, and waits for one if there is none. The key, the member and
    /// its score; none after the timeout.
    ///
    /// `BZPOPMAX key … timeout`
    pub fn bzpopmax<K, T>(
        &self,
        keys: impl ToArgs,
        timeout: impl ToArg,
    ) -> Command<&Session, Option<(K, T, f64)>> {
        commands::bzpopmax(keys, timeout).on(self)
    }

    /// Takes out the member with the lowest score, and waits for one if there is none. The key, the member and
    /// its score; none after the timeout.
    ///
    /// `BZPOPMIN key … timeout`
    pub fn bzpopmin<K, T>(
        &self,
        keys: impl ToArgs,
        timeout: impl ToArg,
    ) -> Command<&Session, Option<(K, T, f64)>> {
        commands::bzpopmin(keys, timeout).on(self)
    }

    /// Adds members with scores, or changes the scores of members.
    ///
    /// `ZADD key [NX | XX] [GT | LT] [CH] [INCR] score member …`
    pub fn zadd(
        &self,
        key: impl ToArg,
        score_members: impl ToArgs,
    ) -> Command<&Session, i64, options::Zadd> {
        commands::zadd(key, score_members).on(self)
    }

    /// Counts the members.
    ///
    /// `ZCARD key`
    pub fn zcard(&self, key: impl ToArg) -> Command<&Session, i64> {
        commands::zcard(key).on(self)
    }

    /// Counts the members whose scores lie in a range.
    ///
    /// `ZCOUNT key min max`
    pub fn zcount(
        &self,
        key: impl ToArg,
        min: impl ToArg,
        max: impl ToArg,
    ) -> Command<&Session, i64> {
        commands::zcount(key, min, max).on(self)
    }

    /// Subtracts sorted sets from the first.
    ///
    /// `ZDIFF numkeys key … [WITHSCORES]`
    pub fn zdiff<T>(&self, keys: impl ToArgs) -> Command<&Session, Vec<T>, options::Zdiff> {
        commands::zdiff(keys).on(self)
    }

    /// Stores what is left of a sorted set when others are subtracted.
    ///
    /// `ZDIFFSTORE destination numkeys key …`
    pub fn zdiffstore(&self, destination: impl ToArg, keys: impl ToArgs) -> Command<&Session, i64> {
        commands::zdiffstore(destination, keys).on(self)
    }

    /// Adds a number to the score of a member.
    ///
    /// `ZINCRBY key increment member`
    pub fn zincrby(
        &self,
        key: impl ToArg,
        increment: impl ToArg,
        member: impl ToArg,
    ) -> Command<&Session, f64> {
        commands::zincrby(key, increment, member).on(self)
    }

    /// Intersects sorted sets.
    ///
    /// `ZINTER numkeys key … [WEIGHTS weight …] [AGGREGATE SUM | MIN | MAX] [WITHSCORES]`
    pub fn zinter<T>(&self, keys: impl ToArgs) -> Command<&Session, Vec<T>, options::Zinter> {
        commands::zinter(keys).on(self)
    }

    /// Counts the members that sorted sets have in common.
    ///
    /// `ZINTERCARD numkeys key … [LIMIT limit]`
    pub fn zintercard(&self, keys: impl ToArgs) -> Command<&Session, i64, options::Zintercard> {
        commands::zintercard(keys).on(self)
    }

    /// Stores the intersection of sorted sets.
    ///
    /// `ZINTERSTORE destination numkeys key … [WEIGHTS weight …] [AGGREGATE SUM | MIN | MAX]`
    pub fn zinterstore(
        &self,
        destination: impl ToArg,
        keys: impl ToArgs,
    ) -> Command<&Session, i64, options::Zinterstore> {
        commands::zinterstore(destination, keys).on(self)
    }

    /// Counts the members that lie in a range of texts.
    ///
    /// `ZLEXCOUNT key min max`
    pub fn zlexcount(
        &self,
        key: impl ToArg,
        min: impl ToArg,
        max: impl ToArg,
    ) -> Command<&Session, i64> {
        commands::zlexcount(key, min, max).on(self)
    }

    /// Takes members out of the first of several sorted sets that has any. The key and pairs of member and score;
    /// none if all sorted sets are empty.
    ///
    /// `ZMPOP numkeys key … <MIN | MAX> [COUNT count]`
    pub fn zmpop<K, T>(
        &self,
        keys: impl ToArgs,
        side: types::Extreme,
    ) -> Command<&Session, Option<(K, Vec<(T, f64)>)>, options::Zmpop> {
        commands::zmpop(keys, side).on(self)
    }

    /// Reads the scores of several members.
    ///
    /// `ZMSCORE key member …`
    pub fn zmscore(
        &self,
        key: impl ToArg,
        members: impl ToArgs,
    ) -> Command<&Session, Vec<Option<f64>>> {
        commands::zmscore(key, members).on(self)
    }

    /// Takes out the members with the highest scores. Pairs of member and score.
    ///
    /// `ZPOPMAX key [count]`
    pub fn zpopmax<T>(
        &self,
        key: impl ToArg,
    ) -> Command<&Session, Vec<(T, f64)>, options::Zpopmax> {
        commands::zpopmax(key).on(self)
    }

    /// Takes out the members with the lowest scores. Pairs of member and score.
    ///
    /// `ZPOPMIN key [count]`
    pub fn zpopmin<T>(
        &self,
        key: impl ToArg,
    ) -> Command<&Session, Vec<(T, f64)>, options::Zpopmin> {
        commands::zpopmin(key).on(self)
    }

    /// Draws members at random.
    ///
    /// `ZRANDMEMBER key [count [WITHSCORES]]`
    pub fn zrandmember<T>(
        &self,
        key: impl ToArg,
    ) -> Command<&Session, Option<T>, options::Zrandmember> {
        commands::zrandmember(key).on(self)
    }

    /// Lists members by rank, score or text, from either end. Members; pairs of member and score if these are
    /// asked for.
    ///
    /// `ZRANGE key start stop [BYSCORE | BYLEX] [REV] [LIMIT offset count] [WITHSCORES]`
    pub fn zrange<T>(
        &self,
        key: impl ToArg,
        start: impl ToArg,
        stop: impl ToArg,
    ) -> Command<&Session, Vec<T>, options::Zrange> {
        commands::zrange(key, start, stop).on(self)
    }

    /// Stores a range of a sorted set under another key.
    ///
    /// `ZRANGESTORE dst src min max [BYSCORE | BYLEX] [REV] [LIMIT offset count]`
    pub fn zrangestore(
        &self,
        destination: impl ToArg,
        source: impl ToArg,
        min: impl ToArg,
        max: impl ToArg,
    ) -> Command<&Session, i64, options::Zrangestore> {
        commands::zrangestore(destination, source, min, max).on(self)
    }

    /// Tells how many members come before a member.
    ///
    /// `ZRANK key member [WITHSCORE]`
    pub fn zrank(
        &self,
        key: impl ToArg,
        member: impl ToArg,
    ) -> Command<&Session, Option<i64>, options::Zrank> {
        commands::zrank(key, member).on(self)
    }

    /// Removes members.
    ///
    /// `ZREM key member …`
    pub fn zrem(&self, key: impl ToArg, members: impl ToArgs) -> Command<&Session, i64> {
        commands::zrem(key, members).on(self)
    }

    /// Removes the members that lie in a range of texts.
    ///
    /// `ZREMRANGEBYLEX key min max`
    pub fn zremrangebylex(
        &self,
        key: impl ToArg,
        min: impl ToArg,
        max: impl ToArg,
    ) -> Command<&Session, i64> {
        commands::zremrangebylex(key, min, max).on(self)
    }

    /// Removes the members of a range of ranks.
    ///
    /// `ZREMRANGEBYRANK key start stop`
    pub fn zremrangebyrank(
        &self,
        key: impl ToArg,
        start: impl ToArg,
        stop: impl ToArg,
    ) -> Command<&Session, i64> {
        commands::zremrangebyrank(key, start, stop).on(self)
    }

    /// Removes the members whose scores lie in a range.
    ///
    /// `ZREMRANGEBYSCORE key min max`
    pub fn zremrangebyscore(
        &self,
        key: impl ToArg,
        min: impl ToArg,
        max: impl ToArg,
    ) -> Command<&Session, i64> {
        commands::zremrangebyscore(key, min, max).on(self)
    }

    /// Tells how many members come behind a member.
    ///
    /// `ZREVRANK key member [WITHSCORE]`
    pub fn zrevrank(
        &self,
        key: impl ToArg,
        member: impl ToArg,
    ) -> Command<&Session, Option<i64>, options::Zrevrank> {
        commands::zrevrank(key, member).on(self)
    }

    /// Lists members bit by bit. Pairs of member and score, from a cursor that begins with 0 and ends with 0.
    ///
    /// `ZSCAN key cursor [MATCH pattern] [COUNT count] [NOSCORES]`
    pub fn zscan<T>(
        &self,
        key: impl ToArg,
        cursor: impl ToArg,
    ) -> Command<&Session, (u64, Vec<T>), options::Zscan> {
        commands::zscan(key, cursor).on(self)
    }

    /// Reads the score of a member.
    ///
    /// `ZSCORE key member`
    pub fn zscore(&self, key: impl ToArg, member: impl ToArg) -> Command<&Session, Option<f64>> {
        commands::zscore(key, member).on(self)
    }

    /// Unites sorted sets.
    ///
    /// `ZUNION numkeys key … [WEIGHTS weight …] [AGGREGATE SUM | MIN | MAX] [WITHSCORES]`
    pub fn zunion<T>(&self, keys: impl ToArgs) -> Command<&Session, Vec<T>, options::Zunion> {
        commands::zunion(keys).on(self)
    }

    /// Stores the union of sorted sets.
    ///
    /// `ZUNIONSTORE destination numkeys key … [WEIGHTS weight …] [AGGREGATE SUM | MIN | MAX]`
    pub fn zunionstore(
        &self,
        destination: impl ToArg,
        keys: impl ToArgs,
    ) -> Command<&Session, i64, options::Zunionstore> {
        commands::zunionstore(destination, keys).on(self)
    }
}
