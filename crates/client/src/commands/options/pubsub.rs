//! Options of the commands of the group `pubsub`.
//!
//! Written by the test `client_commands` from the server's command table: do not edit.

use crate::arg::{ToArg, ToArgs};
use crate::command::Command;

/// Options of `PUBSUB CHANNELS`, see [`pubsub_channels`](crate::commands::pubsub_channels).
#[derive(Clone, Copy, Debug)]
pub struct PubsubChannels(());

impl<C, T> Command<C, T, PubsubChannels> {
    /// `pattern`.
    pub fn pattern(self, pattern: impl ToArg) -> Self {
        self.option(|request| request.arg(pattern))
    }
}

/// Options of `PUBSUB SHARDCHANNELS`, see [`pubsub_shardchannels`](crate::commands::pubsub_shardchannels).
#[derive(Clone, Copy, Debug)]
pub struct PubsubShardchannels(());

impl<C, T> Command<C, T, PubsubShardchannels> {
    /// `pattern`.
    pub fn pattern(self, pattern: impl ToArg) -> Self {
        self.option(|request| request.arg(pattern))
    }
}

/// Options of `PUNSUBSCRIBE`, see [`punsubscribe`](crate::commands::punsubscribe).
#[derive(Clone, Copy, Debug)]
pub struct Punsubscribe(());

impl<C, T> Command<C, T, Punsubscribe> {
    /// `pattern …`.
    pub fn patterns(self, patterns: impl ToArgs) -> Self {
        self.option(|request| request.args(patterns))
    }
}

/// Options of `SUNSUBSCRIBE`, see [`sunsubscribe`](crate::commands::sunsubscribe).
#[derive(Clone, Copy, Debug)]
pub struct Sunsubscribe(());

impl<C, T> Command<C, T, Sunsubscribe> {
    /// `shardchannel …`.
    pub fn channels(self, channels: impl ToArgs) -> Self {
        self.option(|request| request.args(channels))
    }
}

/// Options of `UNSUBSCRIBE`, see [`unsubscribe`](crate::commands::unsubscribe).
#[derive(Clone, Copy, Debug)]
pub struct Unsubscribe(());

impl<C, T> Command<C, T, Unsubscribe> {
    /// `channel …`.
    pub fn channels(self, channels: impl ToArgs) -> Self {
        self.option(|request| request.args(channels))
    }
}
