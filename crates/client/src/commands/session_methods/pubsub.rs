//! Commands of the group `pubsub` as methods of a session.
//!
//! Written by the test `client_commands` from the server's command table: do not edit.

use crate::arg::{ToArg, ToArgs};
use crate::command::Command;
use crate::commands;
use crate::commands::options;
use crate::session::Session;

/// Commands of the group `pubsub`.
impl Session {
    /// Sends a message to all subscribers of a channel.
    ///
    /// `PUBLISH channel message`
    pub fn publish(&self, channel: impl ToArg, message: impl ToArg) -> Command<&Session, i64> {
        commands::publish(channel, message).on(self)
    }

    /// Lists the channels with subscribers.
    ///
    /// `PUBSUB CHANNELS [pattern]`
    pub fn pubsub_channels<T>(&self) -> Command<&Session, Vec<T>, options::PubsubChannels> {
        commands::pubsub_channels().on(self)
    }

    /// Lists the subcommands.
    ///
    /// `PUBSUB HELP`
    pub fn pubsub_help(&self) -> Command<&Session, Vec<String>> {
        commands::pubsub_help().on(self)
    }

    /// Returns the number of distinct patterns with subscribers.
    ///
    /// `PUBSUB NUMPAT`
    pub fn pubsub_numpat(&self) -> Command<&Session, i64> {
        commands::pubsub_numpat().on(self)
    }

    /// Returns the number of subscribers of channels.
    ///
    /// `PUBSUB NUMSUB channel …`
    pub fn pubsub_numsub<T>(&self, channels: impl ToArgs) -> Command<&Session, T> {
        commands::pubsub_numsub(channels).on(self)
    }

    /// Lists the shard channels with subscribers.
    ///
    /// `PUBSUB SHARDCHANNELS [pattern]`
    pub fn pubsub_shardchannels<T>(
        &self,
    ) -> Command<&Session, Vec<T>, options::PubsubShardchannels> {
        commands::pubsub_shardchannels().on(self)
    }

    /// Returns the number of subscribers of shard channels.
    ///
    /// `PUBSUB SHARDNUMSUB shardchannel …`
    pub fn pubsub_shardnumsub<T>(&self, channels: impl ToArgs) -> Command<&Session, T> {
        commands::pubsub_shardnumsub(channels).on(self)
    }

    /// Sends a message to all subscribers of a shard channel.
    ///
    /// `SPUBLISH shardchannel message`
    pub fn spublish(&self, channel: impl ToArg, message: impl ToArg) -> Command<&Session, i64> {
        commands::spublish(channel, message).on(self)
    }
}
