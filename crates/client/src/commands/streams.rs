//! Commands of the group `stream`.
//!
//! Written by the test `client_commands` from the server's command table: do not edit.

use super::{BLOCKS, PLAIN, READS, READS_AND_BLOCKS};
use crate::arg::{ToArg, ToArgs};
use crate::command::Command;
use crate::commands::options;
use crate::request::Request;

/// Acknowledges messages of a consumer group.
///
/// `XACK key group id …`
///
/// O(1) for each message. Since Redis 5.0.0. Errors: those of the server.
pub fn xack(key: impl ToArg, group: impl ToArg, ids: impl ToArgs) -> Command<(), i64> {
    let mut request = Request::new("XACK", PLAIN);
    request.key(key);
    request.arg(group);
    request.args(ids);
    Command::typed(request)
}

/// Appends an entry to a stream. Creates the key if it does not exist.
///
/// `XADD key [NOMKSTREAM] [<MAXLEN | MINID> [= | ~] threshold [LIMIT count]] <* | id> field value …`
///
/// O(1) for the new entry, and O(N) for N entries that are trimmed. Since Redis 5.0.0. Errors: those of the
/// server.
pub fn xadd(
    key: impl ToArg,
    id: impl ToArg,
    field_values: impl ToArgs,
) -> Command<(), String, options::Xadd> {
    let mut request = Request::new("XADD", PLAIN);
    request.key(key);
    request.end_of_options();
    request.arg(id);
    request.args(field_values);
    Command::typed(request)
}

/// Makes a consumer the owner of messages that have been pending for a minimum time.
///
/// `XAUTOCLAIM key group consumer min-idle-time start [COUNT count] [JUSTID]`
///
/// O(1) if COUNT is small. Since Redis 6.2.0. Errors: those of the server; `UnexpectedReply` if the reply
/// cannot be converted to `T`.
pub fn xautoclaim<T>(
    key: impl ToArg,
    group: impl ToArg,
    consumer: impl ToArg,
    min_idle_time: impl ToArg,
    start: impl ToArg,
) -> Command<(), T, options::Xautoclaim> {
    let mut request = Request::new("XAUTOCLAIM", PLAIN);
    request.key(key);
    request.arg(group);
    request.arg(consumer);
    request.arg(min_idle_time);
    request.arg(start);
    Command::typed(request)
}

/// Makes a consumer the owner of pending messages.
///
/// `XCLAIM key group consumer min-idle-time id … [IDLE ms] [TIME unix-time-milliseconds] [RETRYCOUNT count]
/// [FORCE] [JUSTID] [LASTID id]`
///
/// O(log N) for each message, with N pending messages in the group. Since Redis 5.0.0. Errors: those of the
/// server; `UnexpectedReply` if the reply cannot be converted to `T`.
pub fn xclaim<T>(
    key: impl ToArg,
    group: impl ToArg,
    consumer: impl ToArg,
    min_idle_time: impl ToArg,
    ids: impl ToArgs,
) -> Command<(), Vec<T>, options::Xclaim> {
    let mut request = Request::new("XCLAIM", PLAIN);
    request.key(key);
    request.arg(group);
    request.arg(consumer);
    request.arg(min_idle_time);
    request.args(ids);
    Command::typed(request)
}

/// Deletes entries of a stream.
///
/// `XDEL key id …`
///
/// O(1) for each entry. Since Redis 5.0.0. Errors: those of the server.
pub fn xdel(key: impl ToArg, ids: impl ToArgs) -> Command<(), i64> {
    let mut request = Request::new("XDEL", PLAIN);
    request.key(key);
    request.args(ids);
    Command::typed(request)
}

/// Creates a consumer group.
///
/// `XGROUP CREATE key groupname <id | $> [MKSTREAM] [ENTRIESREAD entries_read]`
///
/// O(1). Since Redis 5.0.0. Errors: those of the server.
pub fn xgroup_create(
    key: impl ToArg,
    group: impl ToArg,
    id: impl ToArg,
) -> Command<(), (), options::XgroupCreate> {
    let mut request = Request::new("XGROUP CREATE", PLAIN);
    request.key(key);
    request.arg(group);
    request.arg(id);
    Command::typed(request)
}

/// Creates a consumer in a group.
///
/// `XGROUP CREATECONSUMER key groupname consumername`
///
/// O(1). Since Redis 6.2.0. Errors: those of the server.
pub fn xgroup_createconsumer(
    key: impl ToArg,
    group: impl ToArg,
    consumer: impl ToArg,
) -> Command<(), bool> {
    let mut request = Request::new("XGROUP CREATECONSUMER", PLAIN);
    request.key(key);
    request.arg(group);
    request.arg(consumer);
    Command::typed(request)
}

/// Deletes a consumer from a group.
///
/// `XGROUP DELCONSUMER key groupname consumername`
///
/// O(1). Since Redis 5.0.0. Errors: those of the server.
pub fn xgroup_delconsumer(
    key: impl ToArg,
    group: impl ToArg,
    consumer: impl ToArg,
) -> Command<(), i64> {
    let mut request = Request::new("XGROUP DELCONSUMER", PLAIN);
    request.key(key);
    request.arg(group);
    request.arg(consumer);
    Command::typed(request)
}

/// Deletes a consumer group.
///
/// `XGROUP DESTROY key groupname`
///
/// O(N) in the number of pending messages. Since Redis 5.0.0. Errors: those of the server.
pub fn xgroup_destroy(key: impl ToArg, group: impl ToArg) -> Command<(), bool> {
    let mut request = Request::new("XGROUP DESTROY", PLAIN);
    request.key(key);
    request.arg(group);
    Command::typed(request)
}

/// Lists the subcommands.
///
/// `XGROUP HELP`
///
/// O(1). Since Redis 5.0.0. Errors: those of the server.
pub fn xgroup_help() -> Command<(), Vec<String>> {
    Command::typed(Request::new("XGROUP HELP", PLAIN))
}

/// Sets the last delivered ID of a group.
///
/// `XGROUP SETID key groupname <id | $> [ENTRIESREAD entries_read]`
///
/// O(1). Since Redis 5.0.0. Errors: those of the server.
pub fn xgroup_setid(
    key: impl ToArg,
    group: impl ToArg,
    id: impl ToArg,
) -> Command<(), (), options::XgroupSetid> {
    let mut request = Request::new("XGROUP SETID", PLAIN);
    request.key(key);
    request.arg(group);
    request.arg(id);
    Command::typed(request)
}

/// Lists the consumers of a group.
///
/// `XINFO CONSUMERS key groupname`
///
/// O(1). Since Redis 5.0.0. Errors: those of the server; `UnexpectedReply` if the reply cannot be converted
/// to `T`.
pub fn xinfo_consumers<T>(key: impl ToArg, group: impl ToArg) -> Command<(), Vec<T>> {
    let mut request = Request::new("XINFO CONSUMERS", READS);
    request.key(key);
    request.arg(group);
    Command::typed(request)
}

/// Lists the groups of a stream.
///
/// `XINFO GROUPS key`
///
/// O(1). Since Redis 5.0.0. Errors: those of the server; `UnexpectedReply` if the reply cannot be converted
/// to `T`.
pub fn xinfo_groups<T>(key: impl ToArg) -> Command<(), Vec<T>> {
    let mut request = Request::new("XINFO GROUPS", READS);
    request.key(key);
    Command::typed(request)
}

/// Lists the subcommands.
///
/// `XINFO HELP`
///
/// O(1). Since Redis 5.0.0. Errors: those of the server.
pub fn xinfo_help() -> Command<(), Vec<String>> {
    Command::typed(Request::new("XINFO HELP", PLAIN))
}

/// Returns information about a stream.
///
/// `XINFO STREAM key [FULL [COUNT count]]`
///
/// O(1). Since Redis 5.0.0. Errors: those of the server; `UnexpectedReply` if the reply cannot be converted
/// to `T`.
pub fn xinfo_stream<T>(key: impl ToArg) -> Command<(), T, options::XinfoStream> {
    let mut request = Request::new("XINFO STREAM", READS);
    request.key(key);
    Command::typed(request)
}

/// Returns the number of entries in a stream.
///
/// `XLEN key`
///
/// O(1). Since Redis 5.0.0. Errors: those of the server.
pub fn xlen(key: impl ToArg) -> Command<(), i64> {
    let mut request = Request::new("XLEN", READS);
    request.key(key);
    Command::typed(request)
}

/// Lists the messages of a group that were delivered but not acknowledged.
///
/// `XPENDING key group`
///
/// O(N) in the number of messages returned, or of messages examined with IDLE. The summary is O(N) in the
/// number of consumers. Since Redis 5.0.0. Errors: those of the server; `UnexpectedReply` if the reply cannot
/// be converted to `T`.
pub fn xpending<T>(key: impl ToArg, group: impl ToArg) -> Command<(), T> {
    let mut request = Request::new("XPENDING", READS);
    request.key(key);
    request.arg(group);
    Command::typed(request)
}

/// Lists the messages of a group that were delivered but not acknowledged.
///
/// `XPENDING key group [IDLE min-idle-time] start end count [consumer]`
///
/// O(N) in the number of messages returned, or of messages examined with IDLE. The summary is O(N) in the
/// number of consumers. Since Redis 5.0.0. Errors: those of the server; `UnexpectedReply` if the reply cannot
/// be converted to `T`.
pub fn xpending_range<T>(
    key: impl ToArg,
    group: impl ToArg,
    start: impl ToArg,
    end: impl ToArg,
    count: impl ToArg,
) -> Command<(), Vec<T>, options::XpendingRange> {
    let mut request = Request::new("XPENDING", READS);
    request.key(key);
    request.arg(group);
    request.end_of_options();
    request.arg(start);
    request.arg(end);
    request.arg(count);
    Command::typed(request)
}

/// Returns the entries of a stream between two IDs.
///
/// `XRANGE key start end [COUNT count]`
///
/// O(N) in the number of entries returned. Since Redis 5.0.0. Errors: those of the server; `UnexpectedReply`
/// if the reply cannot be converted to `T`.
pub fn xrange<T>(
    key: impl ToArg,
    start: impl ToArg,
    end: impl ToArg,
) -> Command<(), Vec<T>, options::Xrange> {
    let mut request = Request::new("XRANGE", READS);
    request.key(key);
    request.arg(start);
    request.arg(end);
    Command::typed(request)
}

/// Returns the entries of streams after given IDs. May block until entries arrive. The reply lists pairs of
/// stream and entries, or null if there are no new entries. To wait for new entries, use `xread_block`.
///
/// `XREAD [COUNT count] STREAMS key … id …`
///
/// For each stream mentioned: O(N) in the number of entries returned. An XADD is O(M) in the number of
/// clients that it unblocks. Since Redis 5.0.0. Errors: those of the server; `UnexpectedReply` if the reply
/// cannot be converted to `T`.
pub fn xread<T>(keys: impl ToArgs, ids: impl ToArgs) -> Command<(), T, options::Xread> {
    let mut request = Request::new("XREAD", READS);
    request.end_of_options();
    request.arg("STREAMS");
    request.keys(keys);
    request.args(ids);
    Command::typed(request)
}

/// Returns the entries of streams after given IDs. May block until entries arrive. The reply lists pairs of
/// stream and entries, or null after the timeout.
///
/// `XREAD [COUNT count] BLOCK milliseconds STREAMS key … id …`
///
/// For each stream mentioned: O(N) in the number of entries returned. An XADD is O(M) in the number of
/// clients that it unblocks. Since Redis 5.0.0. Errors: those of the server; `UnexpectedReply` if the reply
/// cannot be converted to `T`.
///
/// This command may block later commands on its connection, so it is not a method of
/// [`Client`](crate::Client), whose connections are shared.
pub fn xread_block<T>(
    milliseconds: impl ToArg,
    keys: impl ToArgs,
    ids: impl ToArgs,
) -> Command<(), T, options::XreadBlock> {
    let mut request = Request::new("XREAD", READS_AND_BLOCKS);
    request.end_of_options();
    request.arg("BLOCK");
    request.arg(milliseconds);
    request.arg("STREAMS");
    request.keys(keys);
    request.args(ids);
    Command::typed(request)
}

/// Returns entries to a consumer of a group. May block until entries arrive. The reply lists pairs of stream
/// and entries, or null if there are no new entries. To wait for new entries, use `xreadgroup_block`.
///
/// `XREADGROUP GROUP group consumer [COUNT count] [NOACK] STREAMS key … id …`
///
/// For each stream mentioned: O(M) in the number of entries returned. An XADD is O(N) in the number of
/// clients that it unblocks. Since Redis 5.0.0. Errors: those of the server; `UnexpectedReply` if the reply
/// cannot be converted to `T`.
pub fn xreadgroup<T>(
    group: impl ToArg,
    consumer: impl ToArg,
    keys: impl ToArgs,
    ids: impl ToArgs,
) -> Command<(), T, options::Xreadgroup> {
    let mut request = Request::new("XREADGROUP", PLAIN);
    request.arg("GROUP");
    request.arg(group);
    request.arg(consumer);
    request.end_of_options();
    request.arg("STREAMS");
    request.keys(keys);
    request.args(ids);
    Command::typed(request)
}

/// Returns entries to a consumer of a group. May block until entries arrive. The reply lists pairs of stream
/// and entries, or null after the timeout.
///
/// `XREADGROUP GROUP group consumer [COUNT count] BLOCK milliseconds [NOACK] STREAMS key … id …`
///
/// For each stream mentioned: O(M) in the number of entries returned. An XADD is O(N) in the number of
/// clients that it unblocks. Since Redis 5.0.0. Errors: those of the server; `UnexpectedReply` if the reply
/// cannot be converted to `T`.
///
/// This command may block later commands on its connection, so it is not a method of
/// [`Client`](crate::Client), whose connections are shared.
pub fn xreadgroup_block<T>(
    group: impl ToArg,
    consumer: impl ToArg,
    milliseconds: impl ToArg,
    keys: impl ToArgs,
    ids: impl ToArgs,
) -> Command<(), T, options::XreadgroupBlock> {
    let mut request = Request::new("XREADGROUP", BLOCKS);
    request.arg("GROUP");
    request.arg(group);
    request.arg(consumer);
    request.end_of_options();
    request.arg("BLOCK");
    request.arg(milliseconds);
    request.arg("STREAMS");
    request.keys(keys);
    request.args(ids);
    Command::typed(request)
}

/// Returns the entries of a stream between two IDs, in reverse order.
///
/// `XREVRANGE key end start [COUNT count]`
///
/// O(N) in the number of entries returned. Since Redis 5.0.0. Errors: those of the server; `UnexpectedReply`
/// if the reply cannot be converted to `T`.
pub fn xrevrange<T>(
    key: impl ToArg,
    end: impl ToArg,
    start: impl ToArg,
) -> Command<(), Vec<T>, options::Xrevrange> {
    let mut request = Request::new("XREVRANGE", READS);
    request.key(key);
    request.arg(end);
    request.arg(start);
    Command::typed(request)
}

/// Sets the last ID of a stream.
///
/// `XSETID key last-id [ENTRIESADDED entries_added] [MAXDELETEDID max_deleted_entry_id]`
///
/// O(1). Since Redis 5.0.0. Errors: those of the server.
pub fn xsetid(key: impl ToArg, last_id: impl ToArg) -> Command<(), (), options::Xsetid> {
    let mut request = Request::new("XSETID", PLAIN);
    request.key(key);
    request.arg(last_id);
    Command::typed(request)
}

/// Deletes the oldest entries of a stream.
///
/// `XTRIM key <MAXLEN | MINID> [= | ~] threshold [LIMIT count]`
///
/// O(N) in the number of deleted entries. Most of them are freed in blocks. Since Redis 5.0.0. Errors: those
/// of the server.
pub fn xtrim_max_len(key: impl ToArg, threshold: impl ToArg) -> Command<(), i64, options::Xtrim> {
    let mut request = Request::new("XTRIM", PLAIN);
    request.key(key);
    request.arg("MAXLEN");
    request.end_of_options();
    request.arg(threshold);
    Command::typed(request)
}

/// Deletes the oldest entries of a stream.
///
/// `XTRIM key <MAXLEN | MINID> [= | ~] threshold [LIMIT count]`
///
/// O(N) in the number of deleted entries. Most of them are freed in blocks. Since Redis 5.0.0. Errors: those
/// of the server.
pub fn xtrim_min_id(key: impl ToArg, threshold: impl ToArg) -> Command<(), i64, options::Xtrim> {
    let mut request = Request::new("XTRIM", PLAIN);
    request.key(key);
    request.arg("MINID");
    request.end_of_options();
    request.arg(threshold);
    Command::typed(request)
}
