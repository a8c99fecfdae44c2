//! Commands of the group `stream` as methods of shared connections.
//!
//! Written by the test `client_commands` from the server's command table: do not edit.

use crate::arg::{ToArg, ToArgs};
use crate::client::Client;
use crate::command::Command;
use crate::commands;
use crate::commands::options;

/// Commands of the group `stream`.
impl Client {
    /// Acknowledges messages of a consumer group.
    ///
    /// `XACK key group id …`
    pub fn xack(
        &self,
        key: impl ToArg,
        group: impl ToArg,
        ids: impl ToArgs,
    ) -> Command<&Client, i64> {
        commands::xack(key, group, ids).on(self)
    }

    /// Appends an entry to a stream. Creates the key if it does not exist.
    ///
    /// `XADD key [NOMKSTREAM] [<MAXLEN | MINID> [= | ~] threshold [LIMIT count]] <* | id> field value …`
    pub fn xadd(
        &self,
        key: impl ToArg,
        id: impl ToArg,
        field_values: impl ToArgs,
    ) -> Command<&Client, String, options::Xadd> {
        commands::xadd(key, id, field_values).on(self)
    }

    /// Makes a consumer the owner of messages that have been pending for a minimum time.
    ///
    /// `XAUTOCLAIM key group consumer min-idle-time start [COUNT count] [JUSTID]`
    pub fn xautoclaim<T>(
        &self,
        key: impl ToArg,
        group: impl ToArg,
        consumer: impl ToArg,
        min_idle_time: impl ToArg,
        start: impl ToArg,
    ) -> Command<&Client, T, options::Xautoclaim> {
        commands::xautoclaim(key, group, consumer, min_idle_time, start).on(self)
    }

    /// Makes a consumer the owner of pending messages.
    ///
    /// `XCLAIM key group consumer min-idle-time id … [IDLE ms] [TIME unix-time-milliseconds] [RETRYCOUNT count]
    /// [FORCE] [JUSTID] [LASTID id]`
    pub fn xclaim<T>(
        &self,
        key: impl ToArg,
        group: impl ToArg,
        consumer: impl ToArg,
        min_idle_time: impl ToArg,
        ids: impl ToArgs,
    ) -> Command<&Client, Vec<T>, options::Xclaim> {
        commands::xclaim(key, group, consumer, min_idle_time, ids).on(self)
    }

    /// Deletes entries of a stream.
    ///
    /// `XDEL key id …`
    pub fn xdel(&self, key: impl ToArg, ids: impl ToArgs) -> Command<&Client, i64> {
        commands::xdel(key, ids).on(self)
    }

    /// Creates a consumer group.
    ///
    /// `XGROUP CREATE key groupname <id | $> [MKSTREAM] [ENTRIESREAD entries_read]`
    pub fn xgroup_create(
        &self,
        key: impl ToArg,
        group: impl ToArg,
        id: impl ToArg,
    ) -> Command<&Client, (), options::XgroupCreate> {
        commands::xgroup_create(key, group, id).on(self)
    }

    /// Creates a consumer in a group.
    ///
    /// `XGROUP CREATECONSUMER key groupname consumername`
    pub fn xgroup_createconsumer(
        &self,
        key: impl ToArg,
        group: impl ToArg,
        consumer: impl ToArg,
    ) -> Command<&Client, bool> {
        commands::xgroup_createconsumer(key, group, consumer).on(self)
    }

    /// Deletes a consumer from a group.
    ///
    /// `XGROUP DELCONSUMER key groupname consumername`
    pub fn xgroup_delconsumer(
        &self,
        key: impl ToArg,
        group: impl ToArg,
        consumer: impl ToArg,
    ) -> Command<&Client, i64> {
        commands::xgroup_delconsumer(key, group, consumer).on(self)
    }

    /// Deletes a consumer group.
    ///
    /// `XGROUP DESTROY key groupname`
    pub fn xgroup_destroy(&self, key: impl ToArg, group: impl ToArg) -> Command<&Client, bool> {
        commands::xgroup_destroy(key, group).on(self)
    }

    /// Lists the subcommands.
    ///
    /// `XGROUP HELP`
    pub fn xgroup_help(&self) -> Command<&Client, Vec<String>> {
        commands::xgroup_help().on(self)
    }

    /// Sets the last delivered ID of a group.
    ///
    /// `XGROUP SETID key groupname <id | $> [ENTRIESREAD entries_read]`
    pub fn xgroup_setid(
        &self,
        key: impl ToArg,
        group: impl ToArg,
        id: impl ToArg,
    ) -> Command<&Client, (), options::XgroupSetid> {
        commands::xgroup_setid(key, group, id).on(self)
    }

    /// Lists the consumers of a group.
    ///
    /// `XINFO CONSUMERS key groupname`
    pub fn xinfo_consumers<T>(
        &self,
        key: impl ToArg,
        group: impl ToArg,
    ) -> Command<&Client, Vec<T>> {
        commands::xinfo_consumers(key, group).on(self)
    }

    /// Lists the groups of a stream.
    ///
    /// `XINFO GROUPS key`
    pub fn xinfo_groups<T>(&self, key: impl ToArg) -> Command<&Client, Vec<T>> {
        commands::xinfo_groups(key).on(self)
    }

    /// Lists the subcommands.
    ///
    /// `XINFO HELP`
    pub fn xinfo_help(&self) -> Command<&Client, Vec<String>> {
        commands::xinfo_help().on(self)
    }

    /// Returns information about a stream.
    ///
    /// `XINFO STREAM key [FULL [COUNT count]]`
    pub fn xinfo_stream<T>(&self, key: impl ToArg) -> Command<&Client, T, options::XinfoStream> {
        commands::xinfo_stream(key).on(self)
    }

    /// Returns the number of entries in a stream.
    ///
    /// `XLEN key`
    pub fn xlen(&self, key: impl ToArg) -> Command<&Client, i64> {
        commands::xlen(key).on(self)
    }

    /// Lists the messages of a group that were delivered but not acknowledged.
    ///
    /// `XPENDING key group`
    pub fn xpending<T>(&self, key: impl ToArg, group: impl ToArg) -> Command<&Client, T> {
        commands::xpending(key, group).on(self)
    }

    /// Lists the messages of a group that were delivered but not acknowledged.
    ///
    /// `XPENDING key group [IDLE min-idle-time] start end count [consumer]`
    pub fn xpending_range<T>(
        &self,
        key: impl ToArg,
        group: impl ToArg,
        start: impl ToArg,
        end: impl ToArg,
        count: impl ToArg,
    ) -> Command<&Client, Vec<T>, options::XpendingRange> {
        commands::xpending_range(key, group, start, end, count).on(self)
    }

    /// Returns the entries of a stream between two IDs.
    ///
    /// `XRANGE key start end [COUNT count]`
    pub fn xrange<T>(
        &self,
        key: impl ToArg,
        start: impl ToArg,
        end: impl ToArg,
    ) -> Command<&Client, Vec<T>, options::Xrange> {
        commands::xrange(key, start, end).on(self)
    }

    /// Returns the entries of streams after given IDs. May block until entries arrive. The reply lists pairs of
    /// stream and entries, or null if there are no new entries. To wait for new entries, use `xread_block`.
    ///
    /// `XREAD [COUNT count] STREAMS key … id …`
    pub fn xread<T>(
        &self,
        keys: impl ToArgs,
        ids: impl ToArgs,
    ) -> Command<&Client, T, options::Xread> {
        commands::xread(keys, ids).on(self)
    }

    /// Returns entries to a consumer of a group. May block until entries arrive. The reply lists pairs of stream
    /// and entries, or null if there are no new entries. To wait for new entries, use `xreadgroup_block`.
    ///
    /// `XREADGROUP GROUP group consumer [COUNT count] [NOACK] STREAMS key … id …`
    pub fn xreadgroup<T>(
        &self,
        group: impl ToArg,
        consumer: impl ToArg,
        keys: impl ToArgs,
        ids: impl ToArgs,
    ) -> Command<&Client, T, options::Xreadgroup> {
        commands::xreadgroup(group, consumer, keys, ids).on(self)
    }

    /// Returns the entries of a stream between two IDs, in reverse order.
    ///
    /// `XREVRANGE key end start [COUNT count]`
    pub fn xrevrange<T>(
        &self,
        key: impl ToArg,
        end: impl ToArg,
        start: impl ToArg,
    ) -> Command<&Client, Vec<T>, options::Xrevrange> {
        commands::xrevrange(key, end, start).on(self)
    }

    /// Sets the last ID of a stream.
    ///
    /// `XSETID key last-id [ENTRIESADDED entries_added] [MAXDELETEDID max_deleted_entry_id]`
    pub fn xsetid(
        &self,
        key: impl ToArg,
        last_id: impl ToArg,
    ) -> Command<&Client, (), options::Xsetid> {
        commands::xsetid(key, last_id).on(self)
    }

    /// Deletes the oldest entries of a stream.
    ///
    /// `XTRIM key <MAXLEN | MINID> [= | ~] threshold [LIMIT count]`
    pub fn xtrim_max_len(
        &self,
        key: impl ToArg,
        threshold: impl ToArg,
    ) -> Command<&Client, i64, options::Xtrim> {
        commands::xtrim_max_len(key, threshold).on(self)
    }

    /// Deletes the oldest entries of a stream.
    ///
    /// `XTRIM key <MAXLEN | MINID> [= | ~] threshold [LIMIT count]`
    pub fn xtrim_min_id(
        &self,
        key: impl ToArg,
        threshold: impl ToArg,
    ) -> Command<&Client, i64, options::Xtrim> {
        commands::xtrim_min_id(key, threshold).on(self)
    }
}
