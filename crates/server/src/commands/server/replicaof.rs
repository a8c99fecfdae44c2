//! REPLICAOF: makes this server start or stop following another server.

use brisk_config::value::{PrimaryAddress, Text};
use brisk_engine::command::{Arg, Deprecated, Flags, Group, Scope, Spec};
use brisk_engine::{Args, CommandError, Outcome, Result};
use brisk_node::core::call::{Call, Command};
use brisk_node::core::client_lines;
use brisk_node::replication::failover::FailoverPhase;
use brisk_node::replication::role;

fn replicaof(call: &mut Call<'_>, args: &mut Args<'_>) -> Result<Outcome> {
    let (host, port) = (args.bytes()?, args.bytes()?);
    let core = &mut *call.core;
    if core.cluster.is_on() {
        return Err(CommandError::text("ERR REPLICAOF not allowed in cluster mode."));
    }
    let shared = core.shared;
    let client = client_lines::describe(core, call.session, args, Some(call.row));
    if shared.replication.failover.phase() != FailoverPhase::None {
        return Err(CommandError::text("ERR REPLICAOF not allowed while failing over."));
    }
    if host.eq_ignore_ascii_case(b"no") && port.eq_ignore_ascii_case(b"one") {
        if shared.conditions.is_replica() {
            role::become_primary(core);
            let upper = shared.primary_words().upper;
            shared.log.notice(format_args!("{upper} MODE enabled (user request from '{client}')"));
        }
        return Ok(call.reply.ok());
    }
    if call.session.replication.follows() {
        // As in Redis, a replica of this server cannot make this server a replica.
        let text = "ERR Command is not valid when client is a replica.";
        return Err(CommandError::text(text));
    }
    let port = std::str::from_utf8(port).ok().and_then(|port| port.parse::<i64>().ok());
    let port = port.and_then(|port| u16::try_from(port).ok());
    let port = port.ok_or_else(|| CommandError::text("ERR Invalid master port"))?;
    let primary = PrimaryAddress { host: Text::from(host), port };
    let present = shared.config().replication.replicaof.clone();
    if present.is_some_and(|present| {
        present.port == port && present.host.as_bytes().eq_ignore_ascii_case(host)
    }) {
        shared.log.notice(format_args!(
            "REPLICAOF would result into synchronization with the master we are already connected \
             with. No operation performed."
        ));
        return Ok(call.reply.simple("OK Already connected to specified master"));
    }
    let shown = String::from_utf8_lossy(host).into_owned();
    role::become_replica(core, primary);
    shared
        .log
        .notice(format_args!("REPLICAOF {shown}:{port} enabled (user request from '{client}')"));
    Ok(call.reply.ok())
}

const REPLICAOF: Command = Command {
    spec: Spec {
        name: "replicaof",
        group: Group::Server,
        summary: "Makes this server a replica of another server, or a primary.",
        since: "5.0.0",
        complexity: "O(1)",
        arity: 3,
        flags: Flags::ADMIN
            .union(Flags::NO_ASYNC_LOADING)
            .union(Flags::NOSCRIPT)
            .union(Flags::STALE),
        scope: Scope::Quiescent,
        args: &[Arg::one_of(
            "args",
            &[
                Arg::block("host-port", &[Arg::string("host"), Arg::integer("port")]),
                Arg::block("no-one", &[Arg::token("no", "NO"), Arg::token("one", "ONE")]),
            ],
        )],
        ..Spec::EMPTY
    },
    run: replicaof,
    subcommands: &[],
};

const SLAVEOF: Command = Command {
    spec: Spec {
        name: "slaveof",
        since: "1.0.0",
        deprecated: Some(Deprecated { since: "5.0.0", replaced_by: "`REPLICAOF`" }),
        ..REPLICAOF.spec
    },
    run: replicaof,
    subcommands: &[],
};

pub(super) const COMMANDS: &[Command] = &[REPLICAOF, SLAVEOF];
