//! FAILOVER: hands over from this server, a primary, to one of its replicas.

use brisk_engine::command::{Arg, Flags, Group, Scope, Spec};
use brisk_engine::{Args, CommandError, Outcome, Result};
use brisk_node::core::call::{Call, Command};
use brisk_node::replication::failover::{FailoverAttempt, FailoverPhase};
use brisk_node::replication::handover;
use brisk_node::replication::replica::ReplicaStage;

#[derive(Default)]
struct Options {
    target: Option<(String, u16)>,
    timeout_ms: Option<u64>,
    is_forced: bool,
    aborts: bool,
}

fn read(args: &mut Args<'_>) -> Result<Options> {
    let mut options = Options::default();
    while args.remaining() > 0 {
        if options.timeout_ms.is_none() && args.remaining() > 1 && args.take("timeout") {
            let timeout = args.integer()?;
            let timeout = u64::try_from(timeout).ok().filter(|timeout| *timeout > 0);
            options.timeout_ms = Some(timeout.ok_or_else(|| {
                CommandError::text("ERR FAILOVER timeout must be greater than 0")
            })?);
        } else if args.remaining() == 1 && is_first(&options) && args.take("abort") {
            options.aborts = true;
        } else if options.target.is_none() && args.remaining() > 2 && args.take("to") {
            let host = String::from_utf8_lossy(args.bytes()?).into_owned();
            let port = args.integer()?;
            // As in Redis, the target is a replica that has announced this address.
            options.target = Some((host, u16::try_from(port).unwrap_or(0)));
        } else if !options.is_forced && args.take("force") {
            options.is_forced = true;
        } else {
            return Err(CommandError::Syntax);
        }
    }
    Ok(options)
}

fn is_first(options: &Options) -> bool {
    options.target.is_none() && options.timeout_ms.is_none() && !options.is_forced
}

fn failover(call: &mut Call<'_>, args: &mut Args<'_>) -> Result<Outcome> {
    let error = |text: &'static str| Err(CommandError::text(text));
    let now_ms = call.now().0;
    let core = &mut *call.core;
    let (shared, replication) = (core.shared, &core.shared.replication);
    if core.cluster.is_on() {
        let text =
            "ERR FAILOVER not allowed in cluster mode. Use CLUSTER FAILOVER command instead.";
        return error(text);
    }
    let options = read(args)?;
    let is_going_on = replication.failover.phase() != FailoverPhase::None;
    if options.aborts {
        if !is_going_on {
            return error("ERR No failover in progress.");
        }
        handover::abort(core, "Failover manually aborted");
        return Ok(call.reply.ok());
    }
    if is_going_on {
        return error("ERR FAILOVER already in progress.");
    }
    if shared.conditions.is_replica() {
        return error("ERR FAILOVER is not valid when server is a replica.");
    }
    let members = replication.replicas.list();
    if members.is_empty() {
        return error("ERR FAILOVER requires connected replicas.");
    }
    if options.is_forced && (options.timeout_ms.is_none() || options.target.is_none()) {
        return error(
            "ERR FAILOVER with force option requires both a timeout and target HOST and IP.",
        );
    }
    if let Some((host, port)) = &options.target {
        let Some(member) = members.iter().find(|one| handover::is_at(one, host, *port)) else {
            return error("ERR FAILOVER target HOST and PORT is not a replica.");
        };
        if member.progress.stage() != ReplicaStage::Online {
            return error("ERR FAILOVER target replica is not online.");
        }
    }
    handover::begin(
        core,
        FailoverAttempt {
            phase: FailoverPhase::WaitsForSync,
            target: options.target,
            until_ms: options.timeout_ms.map(|timeout| now_ms.saturating_add(timeout)),
            is_forced: options.is_forced,
        },
    );
    Ok(call.reply.ok())
}

const FAILOVER: Command = Command {
    spec: Spec {
        name: "failover",
        group: Group::Server,
        summary: "Starts a coordinated failover to a replica.",
        since: "6.2.0",
        complexity: "O(1)",
        arity: -1,
        flags: Flags::ADMIN.union(Flags::NOSCRIPT).union(Flags::STALE),
        scope: Scope::Quiescent,
        args: &[
            Arg::block(
                "target",
                &[
                    Arg::string("host"),
                    Arg::integer("port"),
                    Arg::token("force", "FORCE").optional(),
                ],
            )
            .after("TO")
            .optional(),
            Arg::token("abort", "ABORT").optional(),
            Arg::integer("milliseconds").after("TIMEOUT").optional(),
        ],
        ..Spec::EMPTY
    },
    run: failover,
    subcommands: &[],
};

pub(super) const COMMANDS: &[Command] = &[FAILOVER];
