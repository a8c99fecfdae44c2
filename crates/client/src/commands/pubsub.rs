//! Commands of the group `pubsub`.
//!
//! Written by the test `client_commands` from the server's command table: do not edit.

use super::{BINDS, PLAIN};
use crate::arg::{ToArg, ToArgs};
use crate::command::Command;
use crate::commands::options;
use crate::request::Request;

/// Subscribes to all channels that match patterns.
///
/// `PSUBSCRIBE pattern …`
///
/// O(N) in the number of patterns. Since Redis 2.0.0. Errors: those of the server; `UnexpectedReply` if the
/// reply cannot be converted to `T`.
///
/// This command changes or reports the state of its connection, so it is not a method of
/// [`Client`](crate::Client), whose connections are shared.
pub fn psubscribe<T>(patterns: impl ToArgs) -> Command<(), T> {
    let mut request = Request::new("PSUBSCRIBE", BINDS);
    request.args(patterns);
    Command::typed(request)
}

/// Sends a message to all subscribers of a channel.
///
/// `PUBLISH channel message`
///
/// O(N+M) with N subscribers of the channel and M patterns in all. Since Redis 2.0.0. Errors: those of the
/// server.
pub fn publish(channel: impl ToArg, message: impl ToArg) -> Command<(), i64> {
    let mut request = Request::new("PUBLISH", PLAIN);
    request.arg(channel);
    request.arg(message);
    Command::typed(request)
}

/// Lists the channels with subscribers.
///
/// `PUBSUB CHANNELS [pattern]`
///
/// O(N) in the number of channels that have subscribers. Since Redis 2.8.0. Errors: those of the server;
/// `UnexpectedReply` if the reply cannot be converted to `T`.
pub fn pubsub_channels<T>() -> Command<(), Vec<T>, options::PubsubChannels> {
    Command::typed(Request::new("PUBSUB CHANNELS", PLAIN))
}

/// Lists the subcommands.
///
/// `PUBSUB HELP`
///
/// O(1). Since Redis 6.2.0. Errors: those of the server.
pub fn pubsub_help() -> Command<(), Vec<String>> {
    Command::typed(Request::new("PUBSUB HELP", PLAIN))
}

/// Returns the number of distinct patterns with subscribers.
///
/// `PUBSUB NUMPAT`
///
/// O(1). Since Redis 2.8.0. Errors: those of the server.
pub fn pubsub_numpat() -> Command<(), i64> {
    Command::typed(Request::new("PUBSUB NUMPAT", PLAIN))
}

/// Returns the number of subscribers of channels.
///
/// `PUBSUB NUMSUB channel …`
///
/// O(N) in the number of requested channels. Since Redis 2.8.0. Errors: those of the server;
/// `UnexpectedReply` if the reply cannot be converted to `T`.
pub fn pubsub_numsub<T>(channels: impl ToArgs) -> Command<(), T> {
    let mut request = Request::new("PUBSUB NUMSUB", PLAIN);
    request.args(channels);
    Command::typed(request)
}

/// Lists the shard channels with subscribers.
///
/// `PUBSUB SHARDCHANNELS [pattern]`
///
/// O(N) in the number of shard channels that have subscribers. Since Redis 7.0.0. Errors: those of the
/// server; `UnexpectedReply` if the reply cannot be converted to `T`.
pub fn pubsub_shardchannels<T>() -> Command<(), Vec<T>, options::PubsubShardchannels> {
    Command::typed(Request::new("PUBSUB SHARDCHANNELS", PLAIN))
}

/// Returns the number of subscribers of shard channels.
///
/// `PUBSUB SHARDNUMSUB shardchannel …`
///
/// O(N) in the number of requested channels. Since Redis 7.0.0. Errors: those of the server;
/// `UnexpectedReply` if the reply cannot be converted to `T`.
pub fn pubsub_shardnumsub<T>(channels: impl ToArgs) -> Command<(), T> {
    let mut request = Request::new("PUBSUB SHARDNUMSUB", PLAIN);
    request.args(channels);
    Command::typed(request)
}

/// Unsubscribes from patterns, or from all patterns.
///
/// `PUNSUBSCRIBE [pattern …]`
///
/// O(N+M) with N patterns of the client and M patterns in all. Since Redis 2.0.0. Errors: those of the
/// server; `UnexpectedReply` if the reply cannot be converted to `T`.
///
/// This command changes or reports the state of its connection, so it is not a method of
/// [`Client`](crate::Client), whose connections are shared.
pub fn punsubscribe<T>() -> Command<(), T, options::Punsubscribe> {
    Command::typed(Request::new("PUNSUBSCRIBE", BINDS))
}

/// Sends a message to all subscribers of a shard channel.
///
/// `SPUBLISH shardchannel message`
///
/// O(N) in the number of subscribers. Since Redis 7.0.0. Errors: those of the server.
pub fn spublish(channel: impl ToArg, message: impl ToArg) -> Command<(), i64> {
    let mut request = Request::new("SPUBLISH", PLAIN);
    request.arg(channel);
    request.arg(message);
    Command::typed(request)
}

/// Subscribes to shard channels.
///
/// `SSUBSCRIBE shardchannel …`
///
/// O(N) in the number of channels. Since Redis 7.0.0. Errors: those of the server; `UnexpectedReply` if the
/// reply cannot be converted to `T`.
///
/// This command changes or reports the state of its connection, so it is not a method of
/// [`Client`](crate::Client), whose connections are shared.
pub fn ssubscribe<T>(channels: impl ToArgs) -> Command<(), T> {
    let mut request = Request::new("SSUBSCRIBE", BINDS);
    request.args(channels);
    Command::typed(request)
}

/// Subscribes to channels.
///
/// `SUBSCRIBE channel …`
///
/// O(N) in the number of channels. Since Redis 2.0.0. Errors: those of the server; `UnexpectedReply` if the
/// reply cannot be converted to `T`.
///
/// This command changes or reports the state of its connection, so it is not a method of
/// [`Client`](crate::Client), whose connections are shared.
pub fn subscribe<T>(channels: impl ToArgs) -> Command<(), T> {
    let mut request = Request::new("SUBSCRIBE", BINDS);
    request.args(channels);
    Command::typed(request)
}

/// Unsubscribes from shard channels, or from all shard channels.
///
/// `SUNSUBSCRIBE [shardchannel …]`
///
/// O(N) in the number of channels. Since Redis 7.0.0. Errors: those of the server; `UnexpectedReply` if the
/// reply cannot be converted to `T`.
///
/// This command changes or reports the state of its connection, so it is not a method of
/// [`Client`](crate::Client), whose connections are shared.
pub fn sunsubscribe<T>() -> Command<(), T, options::Sunsubscribe> {
    Command::typed(Request::new("SUNSUBSCRIBE", BINDS))
}

/// Unsubscribes from channels, or from all channels.
///
/// `UNSUBSCRIBE [channel …]`
///
/// O(N) in the number of channels. Since Redis 2.0.0. Errors: those of the server; `UnexpectedReply` if the
/// reply cannot be converted to `T`.
///
/// This command changes or reports the state of its connection, so it is not a method of
/// [`Client`](crate::Client), whose connections are shared.
pub fn unsubscribe<T>() -> Command<(), T, options::Unsubscribe> {
    Command::typed(Request::new("UNSUBSCRIBE", BINDS))
}
