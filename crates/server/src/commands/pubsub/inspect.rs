//! PUBSUB: shows active channels and the numbers of their subscribers.

use brisk_engine::command::{Arg, Flags, Group, Spec};
use brisk_engine::{Args, Outcome, Result};
use brisk_node::core::call::{Call, Command};
use brisk_node::pubsub::Space;

/// The row on which the rows of subcommands are based.
const ROW: Spec = Spec {
    group: Group::PubSub,
    since: "2.8.0",
    flags: Flags::PUBSUB.union(Flags::LOADING).union(Flags::STALE),
    ..Spec::EMPTY
};

const PUBSUB: Command = Command {
    spec: Spec {
        name: "pubsub",
        group: Group::PubSub,
        summary: "A container for commands about subscriptions.",
        since: "2.8.0",
        complexity: "Depends on subcommand.",
        arity: -2,
        ..Spec::EMPTY
    },
    run: |call, _| Err(call.wrong_arity()),
    subcommands: &[CHANNELS, HELP, NUMPAT, NUMSUB, SHARDCHANNELS, SHARDNUMSUB],
};

const CHANNELS: Command = Command {
    spec: Spec {
        name: "channels",
        summary: "Lists the channels with subscribers.",
        complexity: "O(N) in the number of channels that have subscribers.",
        arity: -2,
        args: &[Arg::pattern("pattern").optional()],
        ..ROW
    },
    run: |call, args| channels(call, args, Space::Channel),
    subcommands: &[],
};

const SHARDCHANNELS: Command = Command {
    spec: Spec {
        name: "shardchannels",
        summary: "Lists the shard channels with subscribers.",
        since: "7.0.0",
        complexity: "O(N) in the number of shard channels that have subscribers.",
        arity: -2,
        args: &[Arg::pattern("pattern").optional()],
        ..ROW
    },
    run: |call, args| channels(call, args, Space::ShardChannel),
    subcommands: &[],
};

fn channels(call: &mut Call<'_>, args: &mut Args<'_>, space: Space) -> Result<Outcome> {
    let pattern = args.optional();
    if args.remaining() > 0 {
        return Err(call.subcommand_syntax(args.argument(1)));
    }
    let names = call.core.shared.pubsub.names(space, pattern);
    call.reply.array(names.len());
    for name in names {
        call.reply.bulk(&name);
    }
    Ok(Outcome::Replied)
}

const NUMSUB: Command = Command {
    spec: Spec {
        name: "numsub",
        summary: "Returns the number of subscribers of channels.",
        complexity: "O(N) in the number of requested channels.",
        arity: -2,
        args: &[Arg::string("channel").optional().multiple()],
        ..ROW
    },
    run: |call, args| count(call, args, Space::Channel),
    subcommands: &[],
};

const SHARDNUMSUB: Command = Command {
    spec: Spec {
        name: "shardnumsub",
        summary: "Returns the number of subscribers of shard channels.",
        since: "7.0.0",
        complexity: "O(N) in the number of requested channels.",
        arity: -2,
        args: &[Arg::string("shardchannel").optional().multiple()],
        ..ROW
    },
    run: |call, args| count(call, args, Space::ShardChannel),
    subcommands: &[],
};

fn count(call: &mut Call<'_>, args: &mut Args<'_>, space: Space) -> Result<Outcome> {
    call.reply.array(args.remaining() * 2);
    while let Some(channel) = args.optional() {
        call.reply.bulk(channel);
        call.reply.count(call.core.shared.pubsub.subscribers(space, channel));
    }
    Ok(Outcome::Replied)
}

const NUMPAT: Command = Command {
    spec: Spec {
        name: "numpat",
        summary: "Returns the number of distinct patterns with subscribers.",
        arity: 2,
        ..ROW
    },
    run: |call, _| {
        let patterns = call.core.shared.pubsub.size(Space::Pattern);
        Ok(call.reply.count(patterns))
    },
    subcommands: &[],
};

const HELP: Command =
    Command { spec: Spec::help(Group::PubSub, "6.2.0"), run: help, subcommands: &[] };

fn help(call: &mut Call<'_>, _: &mut Args<'_>) -> Result<Outcome> {
    Ok(call.help(&[
        "CHANNELS [<pattern>]",
        "    List the channels with subscribers that match <pattern> (default: all).",
        "NUMPAT",
        "    Return the number of distinct patterns with subscribers.",
        "NUMSUB [<channel> ...]",
        "    Return the number of subscribers of each channel, without pattern subscribers.",
        "SHARDCHANNELS [<pattern>]",
        "    List the shard channels with subscribers that match <pattern> (default: all).",
        "SHARDNUMSUB [<shardchannel> ...]",
        "    Return the number of subscribers of each shard channel.",
    ]))
}

pub(super) const COMMANDS: &[Command] = &[PUBSUB];
