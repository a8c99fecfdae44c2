//! CLIENT REPLY, CAPA, NO-EVICT, NO-TOUCH, DURABILITY: modes of the caller's own commands.

use super::{ADMIN, ROW, on_or_off};
use brisk_engine::command::{Arg, Origin, Spec};
use brisk_engine::{Args, CommandError, Outcome, Result};
use brisk_node::clients::flag;
use brisk_node::core::call::{Call, Command};
use brisk_node::persistence::aof::state::{AofMode, Level};
use brisk_node::persistence::aof::wait;
use brisk_node::replication::acks::{Acknowledged, Durability, REPLICAS_MAX};
use brisk_node::replication::follow;

/// The argument of a command that switches a mode on or off.
const ON_OFF: &[Arg] =
    &[Arg::one_of("enabled", &[Arg::token("on", "ON"), Arg::token("off", "OFF")])];

pub(super) const REPLY: Command = Command {
    spec: Spec {
        name: "reply",
        summary: "Sets whether the connection receives replies.",
        since: "3.2.0",
        arity: 3,
        args: &[Arg::one_of(
            "on_off_skip",
            &[Arg::token("on", "ON"), Arg::token("off", "OFF"), Arg::token("skip", "SKIP")],
        )],
        ..ROW
    },
    run: reply,
    subcommands: &[],
};

/// CLIENT REPLY. Only ON gets a reply, because the mode already applies to the reply to this command. In a transaction,
/// each call has an element in EXEC's reply. OFF and SKIP then take effect after EXEC, and ON applies to EXEC itself.
fn reply(call: &mut Call<'_>, args: &mut Args<'_>) -> Result<Outcome> {
    let word = args.bytes()?;
    let in_exec = call.in_exec();
    if word.eq_ignore_ascii_case(b"ON") {
        call.session.turn_replies_on();
    } else if word.eq_ignore_ascii_case(b"OFF") {
        call.session.turn_replies_off(in_exec);
    } else if word.eq_ignore_ascii_case(b"SKIP") {
        call.session.skip_next_reply(in_exec);
    } else {
        return Err(CommandError::Syntax);
    }
    Ok(call.reply.ok())
}

pub(super) const CAPA: Command = Command {
    spec: Spec {
        name: "capa",
        summary: "Announces capabilities of the client.",
        since: "8.0.0",
        origin: Origin::Valkey,
        details: "\
`redirect` is the only capability that has an effect. Without cluster mode, a replica then redirects commands with keys
to its primary: it replies with the error `REDIRECT host:port`. After READONLY, it serves reads itself. Unknown
capabilities are ignored.",
        complexity: "O(1)",
        arity: -3,
        args: &[Arg::string("capability").multiple()],
        ..ROW
    },
    run: capa,
    subcommands: &[],
};

/// CLIENT CAPA. Unknown capabilities, which later versions may define, are not an error.
fn capa(call: &mut Call<'_>, args: &mut Args<'_>) -> Result<Outcome> {
    while args.remaining() > 0 {
        if args.bytes()?.eq_ignore_ascii_case(b"redirect") {
            call.session.record.set(flag::REDIRECTS, true);
            call.core.shared.note_redirected();
        }
    }
    Ok(call.reply.ok())
}

pub(super) const NO_EVICT: Command = Command {
    spec: Spec {
        name: "no-evict",
        summary: "Sets whether the connection is exempt from client eviction.",
        since: "7.0.0",
        arity: 3,
        flags: ADMIN,
        args: ON_OFF,
        ..ROW
    },
    run: no_evict,
    subcommands: &[],
};

fn no_evict(call: &mut Call<'_>, args: &mut Args<'_>) -> Result<Outcome> {
    let on = on_or_off(args.bytes()?)?;
    let record = &call.session.record;
    record.set(flag::NO_EVICT, on);
    call.core.shared.clients.weights.weigh_again(record);
    call.core.evict_clients();
    Ok(call.reply.ok())
}

const DURABILITY_DETAILS: &str = "\
A reply on this connection is sent only when all changes that it shows, including changes by other clients, have reached
the requested level. The setting applies to all later commands of the connection, until the next CLIENT DURABILITY or
RESET.

| level | a reply is sent when its changes are |
|---|---|
| `MEMORY` | in memory |
| `LOG` | written to the append-only file |
| `DISK` | synced to disk |
| `DEFAULT` | at the level that `appendfsync` sets; the same as no level |

With `REPLICAS`, a reply also waits until `numreplicas` replicas, at most 16, have acknowledged the changes. With `0`,
or without `REPLICAS`, replies do not wait for replicas. While too few replicas are connected, replies wait. If no reply
can be sent for `TIMEOUT` milliseconds, the client receives the error `UNBLOCKED` and is disconnected. If `TIMEOUT` is 0
or omitted, replies wait forever.

A missing reply does not tell you whether the write was lost. Replies to commands about the server, for example INFO
and CONFIG, do not wait unless an earlier reply on the connection waits.

For example, the following connection receives a reply when its change is on the disk of the primary and one replica
has acknowledged it:

```text
127.0.0.1:6379> CLIENT DURABILITY DISK REPLICAS 1 TIMEOUT 5000
OK
127.0.0.1:6379> SET order:1 paid
OK
```

The command fails in these cases:

- `LOG` or `DISK` is requested, and `appendonly` is not `yes`.
- `REPLICAS` is requested from a replica, or while a dataset is being loaded.";

/// A Brisk command: requests durability `memory`, `log`, `disk`, or `default` for the configured level. Also sets the
/// number of replicas that must have received a change.
pub(super) const DURABILITY: Command = Command {
    spec: Spec {
        name: "durability",
        summary: "Sets the durability that writes need before the connection receives their replies.",
        since: "0.1.0",
        origin: Origin::Brisk,
        details: DURABILITY_DETAILS,
        arity: -3,
        args: &[
            Arg::one_of(
                "level",
                &[
                    Arg::token("memory", "MEMORY"),
                    Arg::token("log", "LOG"),
                    Arg::token("disk", "DISK"),
                    Arg::token("default", "DEFAULT"),
                ],
            )
            .optional(),
            Arg::block(
                "acknowledged",
                &[
                    Arg::integer("numreplicas").after("REPLICAS"),
                    Arg::integer("milliseconds").after("TIMEOUT").optional(),
                ],
            )
            .optional(),
        ],
        ..ROW
    },
    run: durability,
    subcommands: &[],
};

fn durability(call: &mut Call<'_>, args: &mut Args<'_>) -> Result<Outcome> {
    let level = if args.take("MEMORY") {
        Some(Level::Memory)
    } else if args.take("LOG") {
        Some(Level::Log)
    } else if args.take("DISK") {
        Some(Level::Disk)
    } else {
        args.take("DEFAULT");
        None
    };
    let replicas = if args.take("REPLICAS") { acknowledged(call, args)? } else { None };
    if args.remaining() > 0 {
        return Err(CommandError::Syntax);
    }
    if level > Some(Level::Memory) && call.core.shared.persistence.aof.mode() != AofMode::On {
        return Err(CommandError::text(
            "ERR there is no append-only file to wait for, set appendonly to yes",
        ));
    }
    if replicas.is_some() {
        follow::begin_stream(call.core)?;
    }
    wait::request_durability(call.core, call.session, Durability { level, replicas });
    Ok(call.reply.ok())
}

/// Parses the arguments after REPLICAS. `None` if the number is 0.
fn acknowledged(call: &Call<'_>, args: &mut Args<'_>) -> Result<Option<Acknowledged>> {
    let count = usize::try_from(args.integer()?).map_err(|_| CommandError::MustBePositive)?;
    if count > REPLICAS_MAX {
        return Err(CommandError::OutOfRange);
    }
    let mut timeout_ms = None;
    if args.take("TIMEOUT") {
        let timeout = u64::try_from(args.integer()?)
            .map_err(|_| CommandError::text("ERR timeout is negative"))?;
        timeout_ms = Some(timeout).filter(|timeout| *timeout > 0);
    }
    if count == 0 {
        return Ok(None);
    }
    let shared = call.core.shared;
    if shared.conditions.is_replica() || shared.conditions.is_loading() {
        return Err(CommandError::text(
            "ERR CLIENT DURABILITY REPLICAS cannot be used with replica instances, nor during loading",
        ));
    }
    let ack_epoch = shared.replication.replicas.ack_epoch();
    Ok(Some(Acknowledged { count, timeout_ms, ack_epoch }))
}

pub(super) const NO_TOUCH: Command = Command {
    spec: Spec {
        name: "no-touch",
        summary: "With ON, commands of the connection do not update the access times of keys.",
        since: "7.2.0",
        arity: 3,
        args: ON_OFF,
        ..ROW
    },
    run: no_touch,
    subcommands: &[],
};

fn no_touch(call: &mut Call<'_>, args: &mut Args<'_>) -> Result<Outcome> {
    let on = on_or_off(args.bytes()?)?;
    call.session.set_no_touch(on);
    // The worker reads the session's mode once per batch, and this batch has already begun.
    call.core.env.touch.set(!on);
    Ok(call.reply.ok())
}
