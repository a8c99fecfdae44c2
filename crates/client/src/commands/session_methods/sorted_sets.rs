//! Commands of the group `sorted-set` as methods of a session.
//!
//! Written by the test `client_commands` from the server's command table: do not edit.

use crate::arg::{ToArg, ToArgs};
use crate::command::Command;
use crate::commands;
use crate::commands::{options, types};
use crate::session::Session;

/// Commands of the group `sorted-set`.
impl Session {
    /// Removes and returns members of the first sorted set that is not empty. Blocks until there is one. The
    /// reply is the key and pairs of member and score, or null after the timeout.
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

    /// Removes and returns the member with the highest score. Blocks until there is one. The reply is the key,
    /// the member and its score, or null after the timeout.
    ///
    /// `BZPOPMAX key … timeout`
    pub fn bzpopmax<K, T>(
        &self,
        keys: impl ToArgs,
        timeout: impl ToArg,
    ) -> Command<&Session, Option<(K, T, f64)>> {
        commands::bzpopmax(keys, timeout).on(self)
    }

    /// Removes and returns the member with the lowest score. Blocks until there is one. The reply is the key, the
    /// member and its score, or null after the timeout.
    ///
    /// `BZPOPMIN key … timeout`
    pub fn bzpopmin<K, T>(
        &self,
        keys: impl ToArgs,
        timeout: impl ToArg,
    ) -> Command<&Session, Option<(K, T, f64)>> {
        commands::bzpopmin(keys, timeout).on(self)
    }

    /// Adds members to a sorted set, or updates their scores.
    ///
    /// `ZADD key [NX | XX] [GT | LT] [CH] [INCR] score member …`
    pub fn zadd(
        &self,
        key: impl ToArg,
        score_members: impl ToArgs,
    ) -> Command<&Session, i64, options::Zadd> {
        commands::zadd(key, score_members).on(self)
    }

    /// Returns the number of members in a sorted set.
    ///
    /// `ZCARD key`
    pub fn zcard(&self, key: impl ToArg) -> Command<&Session, i64> {
        commands::zcard(key).on(self)
    }

    /// Counts the members with scores in a range.
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

    /// Returns the difference of sorted sets.
    ///
    /// `ZDIFF numkeys key … [WITHSCORES]`
    pub fn zdiff<T>(&self, keys: impl ToArgs) -> Command<&Session, Vec<T>, options::Zdiff> {
        commands::zdiff(keys).on(self)
    }

    /// Stores the difference of sorted sets.
    ///
    /// `ZDIFFSTORE destination numkeys key …`
    pub fn zdiffstore(&self, destination: impl ToArg, keys: impl ToArgs) -> Command<&Session, i64> {
        commands::zdiffstore(destination, keys).on(self)
    }

    /// Increments the score of a member.
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

    /// Returns the intersection of sorted sets.
    ///
    /// `ZINTER numkeys key … [WEIGHTS weight …] [AGGREGATE SUM | MIN | MAX] [WITHSCORES]`
    pub fn zinter<T>(&self, keys: impl ToArgs) -> Command<&Session, Vec<T>, options::Zinter> {
        commands::zinter(keys).on(self)
    }

    /// Returns the number of members in the intersection of sorted sets.
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

    /// Counts the members in a lexicographic range.
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

    /// Removes and returns members of the first sorted set that is not empty. The reply is the key and pairs of
    /// member and score, or null if all sorted sets are empty.
    ///
    /// `ZMPOP numkeys key … <MIN | MAX> [COUNT count]`
    pub fn zmpop<K, T>(
        &self,
        keys: impl ToArgs,
        side: types::Extreme,
    ) -> Command<&Session, Option<(K, Vec<(T, f64)>)>, options::Zmpop> {
        commands::zmpop(keys, side).on(self)
    }

    /// Returns the scores of several members.
    ///
    /// `ZMSCORE key member …`
    pub fn zmscore(
        &self,
        key: impl ToArg,
        members: impl ToArgs,
    ) -> Command<&Session, Vec<Option<f64>>> {
        commands::zmscore(key, members).on(self)
    }

    /// Removes and returns the members with the highest scores. The reply lists pairs of member and score.
    ///
    /// `ZPOPMAX key [count]`
    pub fn zpopmax<T>(
        &self,
        key: impl ToArg,
    ) -> Command<&Session, Vec<(T, f64)>, options::Zpopmax> {
        commands::zpopmax(key).on(self)
    }

    /// Removes and returns the members with the lowest scores. The reply lists pairs of member and score.
    ///
    /// `ZPOPMIN key [count]`
    pub fn zpopmin<T>(
        &self,
        key: impl ToArg,
    ) -> Command<&Session, Vec<(T, f64)>, options::Zpopmin> {
        commands::zpopmin(key).on(self)
    }

    /// Returns random members of a sorted set.
    ///
    /// `ZRANDMEMBER key [count [WITHSCORES]]`
    pub fn zrandmember<T>(
        &self,
        key: impl ToArg,
    ) -> Command<&Session, Option<T>, options::Zrandmember> {
        commands::zrandmember(key).on(self)
    }

    /// Returns a range of members by rank, score or lexicographic order, in either direction. The reply lists
    /// members or, with `WITHSCORES`, pairs of member and score.
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

    /// Returns the rank of a member, counted from the lowest score.
    ///
    /// `ZRANK key member [WITHSCORE]`
    pub fn zrank(
        &self,
        key: impl ToArg,
        member: impl ToArg,
    ) -> Command<&Session, Option<i64>, options::Zrank> {
        commands::zrank(key, member).on(self)
    }

    /// Removes members of a sorted set.
    ///
    /// `ZREM key member …`
    pub fn zrem(&self, key: impl ToArg, members: impl ToArgs) -> Command<&Session, i64> {
        commands::zrem(key, members).on(self)
    }

    /// Removes the members in a lexicographic range.
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

    /// Removes the members with ranks in a range.
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

    /// Removes the members with scores in a range.
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

    /// Returns the rank of a member, counted from the highest score.
    ///
    /// `ZREVRANK key member [WITHSCORE]`
    pub fn zrevrank(
        &self,
        key: impl ToArg,
        member: impl ToArg,
    ) -> Command<&Session, Option<i64>, options::Zrevrank> {
        commands::zrevrank(key, member).on(self)
    }

    /// Iterates over the members and scores of a sorted set. Start with cursor 0; the iteration is complete when
    /// the reply's cursor is 0. The elements are pairs of member and score.
    ///
    /// `ZSCAN key cursor [MATCH pattern] [COUNT count] [NOSCORES]`
    pub fn zscan<T>(
        &self,
        key: impl ToArg,
        cursor: impl ToArg,
    ) -> Command<&Session, (u64, Vec<T>), options::Zscan> {
        commands::zscan(key, cursor).on(self)
    }

    /// Returns the score of a member.
    ///
    /// `ZSCORE key member`
    pub fn zscore(&self, key: impl ToArg, member: impl ToArg) -> Command<&Session, Option<f64>> {
        commands::zscore(key, member).on(self)
    }

    /// Returns the union of sorted sets.
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
