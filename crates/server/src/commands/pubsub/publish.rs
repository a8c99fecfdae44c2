//! PUBLISH and SPUBLISH, which send a message to all subscribers of a channel.

use brisk_engine::command::{Arg, Channels, Flags, Group, KeyFlags, KeySpec, Spec};
use brisk_engine::{Args, Outcome, Result};
use brisk_node::clients::flag;
use brisk_node::cluster::Audience;
use brisk_node::core::call::{Call, Command};
use brisk_node::pubsub::Space;
use brisk_node::pubsub::publish;

/// The row on which the rows of both commands are based.
const ROW: Spec = Spec {
    group: Group::PubSub,
    arity: 3,
    channels: Channels::First,
    flags: Flags::PUBSUB
        .union(Flags::MAY_REPLICATE)
        .union(Flags::LOADING)
        .union(Flags::STALE)
        .union(Flags::FAST),
    ..Spec::EMPTY
};

const PUBLISH: Command = Command {
    spec: Spec {
        name: "publish",
        summary: "Sends a message to all subscribers of a channel.",
        since: "2.0.0",
        complexity: "O(N+M) with N subscribers of the channel and M patterns in all.",
        args: &[Arg::string("channel"), Arg::string("message")],
        ..ROW
    },
    run: |call, args| publish(call, args, Space::Channel),
    subcommands: &[],
};

const SPUBLISH: Command = Command {
    spec: Spec {
        name: "spublish",
        summary: "Sends a message to all subscribers of a shard channel.",
        since: "7.0.0",
        complexity: "O(N) in the number of subscribers.",
        keys: &[KeySpec::at(1).with(KeyFlags::NOT_KEY)],
        args: &[Arg::string("shardchannel"), Arg::string("message")],
        ..ROW
    },
    run: |call, args| publish(call, args, Space::ShardChannel),
    subcommands: &[],
};

/// Replies with the number of subscriptions that the message matches.
fn publish(call: &mut Call<'_>, args: &mut Args<'_>, space: Space) -> Result<Outcome> {
    let (channel, message) = (args.bytes()?, args.bytes()?);
    if publish::has_events(call.core) {
        // Events of earlier commands of the same transaction come first.
        publish::publish_events(call.core);
    }
    let receivers = publish::publish(call.core, space, channel, message);
    let name: &[u8] = if space == Space::ShardChannel { b"SPUBLISH" } else { b"PUBLISH" };
    let core = &call.core;
    match core.shared.cluster.state() {
        // In a cluster, messages are also sent to the other nodes, including replicas.
        Some(state) => {
            if !call.session.record.has(flag::CLUSTER_PEER) {
                state.forward.push(audience(space), channel, message);
            }
        }
        None => {
            let words = [name, channel, message];
            core.shared.keyspace.propagate_without_keys(&core.env, call.session.db(), &words);
        }
    }
    Ok(call.reply.count(receivers))
}

/// The nodes of a cluster that receive a message.
fn audience(space: Space) -> Audience {
    if space == Space::ShardChannel { Audience::Shard } else { Audience::Cluster }
}

pub(super) const COMMANDS: &[Command] = &[PUBLISH, SPUBLISH];
