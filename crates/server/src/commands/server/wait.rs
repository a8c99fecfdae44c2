//! WAIT and WAITAOF: wait until the changes that the caller has made or seen have reached other servers or disks.

use brisk_engine::command::{Arg, Categories, Flags, Group, Spec};
use brisk_engine::{Args, CommandError, Outcome, Result, UnixMs};
use brisk_node::core::call::{Call, Command};
use brisk_node::replication::acks::{AckCondition, AckWait, GETACK_REQUEST};

fn wait(call: &mut Call<'_>, args: &mut Args<'_>) -> Result<Outcome> {
    if call.core.shared.conditions.is_replica() {
        return Err(CommandError::text(
            "ERR WAIT cannot be used with replica instances. Please also note that since Redis 4.0 if a \
             replica is configured to be writable (which is not the default) writes to replicas are just \
             local and are not propagated.",
        ));
    }
    let replicas = args.integer()?;
    let timeout = timeout_ms(args, call.now())?;
    // A negative number of replicas counts as 0.
    begin(call, args, AckCondition::Replicas(u64::try_from(replicas).unwrap_or(0)), timeout)
}

fn wait_for_files(call: &mut Call<'_>, args: &mut Args<'_>) -> Result<Outcome> {
    let local = match args.integer()? {
        local @ (0 | 1) => local == 1,
        _ => {
            let text = "ERR value is out of range, value must between 0 and 1";
            return Err(CommandError::text(text));
        }
    };
    let replicas = u64::try_from(args.integer()?)
        .map_err(|_| CommandError::text("ERR value is out of range, must be positive"))?;
    let timeout = timeout_ms(args, call.now())?;
    if call.core.shared.conditions.is_replica() {
        return Err(CommandError::text(
            "ERR WAITAOF cannot be used with replica instances. Please also note that writes to replicas \
             are just local and are not propagated.",
        ));
    }
    begin(call, args, AckCondition::Disks { local, replicas }, timeout)
}

/// A timeout in milliseconds. 0 means to wait forever.
fn timeout_ms(args: &mut Args<'_>, now: UnixMs) -> Result<u64> {
    let not_a_number = |_| CommandError::text("ERR timeout is not an integer or out of range");
    let timeout = args.integer().map_err(not_a_number)?;
    let timeout =
        u64::try_from(timeout).map_err(|_| CommandError::text("ERR timeout is negative"))?;
    let until = now.0.checked_add(timeout).filter(|until| i64::try_from(*until).is_ok());
    until.map(|_| timeout).ok_or_else(|| CommandError::text("ERR timeout is out of range"))
}

fn begin(
    call: &mut Call<'_>,
    args: &Args<'_>,
    wanted: AckCondition,
    timeout_ms: u64,
) -> Result<Outcome> {
    let shared = call.core.shared;
    let shown = call.session.replication.shown().max(call.core.env.shown());
    let wait = AckWait { shown, wanted };
    if wait.is_over(&shared.replication, &shared.persistence.aof)?
        || call.in_exec()
        || call.session.repeats()
    {
        return Ok(wait.write_reply(&shared.replication, &shared.persistence.aof, &mut call.reply));
    }
    let deadline_ms = (timeout_ms > 0).then(|| call.now().0.saturating_add(timeout_ms));
    let words: Vec<&[u8]> = args.arguments().collect();
    let command = (call.row.spec, call.row.parent);
    let request = (call.session.db(), &*words);
    let waiter = shared.keyspace.waiter_without_keys(call.client(), command, request, deadline_ms);
    call.core.env.begin_wait(waiter);
    call.session.blocked.await_acks(wait);
    if wait.wants_replicas() && shared.replication.replicas.following() > 0 {
        shared.keyspace.journal().append_request(GETACK_REQUEST);
    }
    Ok(Outcome::Waiting)
}

const WAIT: Command = Command {
    spec: Spec {
        name: "wait",
        group: Group::Generic,
        summary: "Waits until replicas have received the writes of this connection.",
        since: "3.0.0",
        complexity: "O(1)",
        arity: 3,
        flags: Flags::NOSCRIPT.union(Flags::SCRIPTS_OF_VALKEY),
        categories: Categories::CONNECTION,
        tips: &["request_policy:all_shards", "response_policy:agg_min"],
        args: &[Arg::integer("numreplicas"), Arg::integer("timeout")],
        ..Spec::EMPTY
    },
    run: wait,
    subcommands: &[],
};

const WAITAOF: Command = Command {
    spec: Spec {
        name: "waitaof",
        summary: "Waits until the writes of this connection are synced to disk.",
        since: "7.2.0",
        arity: 4,
        flags: Flags::BLOCKING,
        args: &[Arg::integer("numlocal"), Arg::integer("numreplicas"), Arg::integer("timeout")],
        ..WAIT.spec
    },
    run: wait_for_files,
    subcommands: &[],
};

pub(super) const COMMANDS: &[Command] = &[WAIT, WAITAOF];
