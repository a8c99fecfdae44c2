//! SUBSCRIBE, PSUBSCRIBE, SSUBSCRIBE and their opposites.
//!
//! Each channel is confirmed separately, with the client's number of subscriptions at that point.
//! Channels and patterns are counted together; shard channels are counted separately. Confirmations
//! are pushes in RESP3. In both protocols they are also sent to clients that suppress replies.

use brisk_engine::command::{Arg, Channels, Flags, Group, KeyFlags, KeySpec, Spec};
use brisk_engine::{Args, CommandError, Outcome, Result};
use brisk_node::core::call::{Call, Command};
use brisk_node::pubsub::Space;
use brisk_node::pubsub::subscribe;

/// The row on which the rows of all commands are based.
const ROW: Spec = Spec {
    group: Group::PubSub,
    since: "2.0.0",
    flags: Flags::PUBSUB
        .union(Flags::NOSCRIPT)
        .union(Flags::LOADING)
        .union(Flags::STALE)
        .union(Flags::WHILE_SUBSCRIBED),
    ..Spec::EMPTY
};

const SUBSCRIBE: Command = Command {
    spec: Spec {
        name: "subscribe",
        channels: Channels::Names,
        summary: "Subscribes to channels.",
        complexity: "O(N) in the number of channels.",
        arity: -2,
        args: &[Arg::string("channel").multiple()],
        ..ROW
    },
    run: |call, args| subscribe(call, args, Space::Channel),
    subcommands: &[],
};

const PSUBSCRIBE: Command = Command {
    spec: Spec {
        name: "psubscribe",
        channels: Channels::Patterns,
        summary: "Subscribes to all channels that match patterns.",
        complexity: "O(N) in the number of patterns.",
        arity: -2,
        args: &[Arg::block("pattern", &[Arg::pattern("pattern")]).multiple()],
        ..ROW
    },
    run: |call, args| subscribe(call, args, Space::Pattern),
    subcommands: &[],
};

const SSUBSCRIBE: Command = Command {
    spec: Spec {
        name: "ssubscribe",
        channels: Channels::Names,
        summary: "Subscribes to shard channels.",
        since: "7.0.0",
        complexity: "O(N) in the number of channels.",
        arity: -2,
        keys: &[KeySpec::range(1, -1, 1).with(KeyFlags::NOT_KEY)],
        args: &[Arg::string("shardchannel").multiple()],
        ..ROW
    },
    run: |call, args| {
        // In a transaction, Redis allows only SUBSCRIBE and PSUBSCRIBE, for compatibility with older versions.
        if call.in_exec() {
            let text = "ERR SSUBSCRIBE isn't allowed for a DENY BLOCKING client";
            return Err(CommandError::text(text));
        }
        subscribe(call, args, Space::ShardChannel)
    },
    subcommands: &[],
};

const UNSUBSCRIBE: Command = Command {
    spec: Spec {
        name: "unsubscribe",
        flags: ROW.flags.union(Flags::UNSUBSCRIBES),
        summary: "Unsubscribes from channels, or from all channels.",
        complexity: "O(N) in the number of channels.",
        arity: -1,
        args: &[Arg::string("channel").optional().multiple()],
        ..ROW
    },
    run: |call, args| unsubscribe(call, args, Space::Channel),
    subcommands: &[],
};

const PUNSUBSCRIBE: Command = Command {
    spec: Spec {
        name: "punsubscribe",
        flags: ROW.flags.union(Flags::UNSUBSCRIBES),
        summary: "Unsubscribes from patterns, or from all patterns.",
        complexity: "O(N+M) with N patterns of the client and M patterns in all.",
        arity: -1,
        args: &[Arg::pattern("pattern").optional().multiple()],
        ..ROW
    },
    run: |call, args| unsubscribe(call, args, Space::Pattern),
    subcommands: &[],
};

const SUNSUBSCRIBE: Command = Command {
    spec: Spec {
        name: "sunsubscribe",
        flags: ROW.flags.union(Flags::UNSUBSCRIBES),
        summary: "Unsubscribes from shard channels, or from all shard channels.",
        since: "7.0.0",
        complexity: "O(N) in the number of channels.",
        arity: -1,
        keys: &[KeySpec::range(1, -1, 1).with(KeyFlags::NOT_KEY)],
        args: &[Arg::string("shardchannel").optional().multiple()],
        ..ROW
    },
    run: |call, args| unsubscribe(call, args, Space::ShardChannel),
    subcommands: &[],
};

fn subscribe(call: &mut Call<'_>, args: &mut Args<'_>, space: Space) -> Result<Outcome> {
    let word = match space {
        Space::Channel => "subscribe",
        Space::Pattern => "psubscribe",
        Space::ShardChannel => "ssubscribe",
    };
    while let Some(name) = args.optional() {
        subscribe::subscribe(call.core, call.session, space, name);
        confirm(call, word, space, Some(name));
    }
    Ok(Outcome::Pushed)
}

fn unsubscribe(call: &mut Call<'_>, args: &mut Args<'_>, space: Space) -> Result<Outcome> {
    let word = match space {
        Space::Channel => "unsubscribe",
        Space::Pattern => "punsubscribe",
        Space::ShardChannel => "sunsubscribe",
    };
    if args.remaining() == 0 {
        let mut any = false;
        while let Some(name) = subscribe::unsubscribe_one(call.core, call.session, space) {
            confirm(call, word, space, Some(&name));
            any = true;
        }
        if !any {
            confirm(call, word, space, None);
        }
    }
    while let Some(name) = args.optional() {
        subscribe::unsubscribe(call.core, call.session, space, name);
        confirm(call, word, space, Some(name));
    }
    Ok(Outcome::Pushed)
}

fn confirm(call: &mut Call<'_>, word: &str, space: Space, name: Option<&[u8]>) {
    let own = call.session.push.subscriptions();
    let count = match space {
        Space::Channel | Space::Pattern => own.count(Space::Channel) + own.count(Space::Pattern),
        Space::ShardChannel => own.count(Space::ShardChannel),
    };
    let reply = &mut call.reply;
    reply.push(3);
    reply.bulk(word.as_bytes());
    match name {
        Some(name) => reply.bulk(name),
        None => reply.null(),
    };
    reply.count(count);
}

pub(super) const COMMANDS: &[Command] =
    &[SUBSCRIBE, PSUBSCRIBE, SSUBSCRIBE, UNSUBSCRIBE, PUNSUBSCRIBE, SUNSUBSCRIBE];
