//! SYNC, PSYNC and REPLCONF: a connection becomes a replica.
//!
//! Each synchronisation is a full one: the dataset, and from then on every change of it.

use crate::link::{self, role};
use brisk_engine::command::{Arg, Flags, Group, InMulti, Spec};
use brisk_engine::number::parse_i64;
use brisk_engine::{Args, CommandError, Outcome, Result};
use brisk_node::clients::flag;
use brisk_node::core::call::{Call, Command};
use brisk_node::replication::{follow, synchronise};

/// Longest address a replica may name.
const ADDRESS_LEN_MAX: usize = 255;

fn sync(call: &mut Call<'_>, _: &mut Args<'_>) -> Result<Outcome> {
    follow(call, false)
}

/// No part of the stream is kept, so whatever a replica has seen, it begins anew.
fn psync(call: &mut Call<'_>, args: &mut Args<'_>) -> Result<Outcome> {
    let id = args.bytes()?;
    args.integer()?;
    if args.take("failover") {
        take_over(call, id)?;
    }
    follow(call, true)
}

/// The primary hands over to this server.
fn take_over(call: &mut Call<'_>, id: &[u8]) -> Result<()> {
    let core = &*call.core;
    let (shared, addr) = (core.shared, &call.session.record.addr);
    let shown = String::from_utf8_lossy(id);
    shared.log.warning(format_args!("Failover request received for replid {shown}."));
    if !shared.is_replica() {
        return Err(CommandError::text("ERR PSYNC FAILOVER can't be sent to a master."));
    }
    if !shared.replication.history.ids().id.as_bytes().eq_ignore_ascii_case(id) {
        return Err(CommandError::text("ERR PSYNC FAILOVER replid must match my replid."));
    }
    let still = core.stop_others()?;
    role::become_primary(core);
    drop(still);
    shared.log.notice(format_args!("MASTER MODE enabled (failover request from '{addr}')"));
    Ok(())
}

/// Nothing is answered here: the answer is the snapshot, when there is one.
fn follow(call: &mut Call<'_>, acknowledges: bool) -> Result<Outcome> {
    if call.session.in_transaction() {
        return Err(CommandError::text("ERR Command not allowed inside a transaction"));
    }
    // A second one is not even answered, nor who monitors, as in Redis.
    let follows = call.session.replica.as_ref().is_some_and(|replica| replica.follows());
    if follows || call.session.record.has(flag::MONITOR) {
        return Ok(Outcome::Replied);
    }
    let (shared, addr) = (call.core.shared, call.session.record.addr.clone());
    shared.log.notice(format_args!("Replica {addr} asks for synchronization"));
    follow::attach_replica(call.core, call.session, acknowledges);
    if shared.keyspace.is_emitting() {
        shared.log.notice(format_args!(
            "Another snapshot is being written. BGSAVE for replication delayed"
        ));
    }
    // If it is not possible now, the timers begin it.
    synchronise::begin_if_due(call.core);
    Ok(Outcome::Replied)
}

fn replconf(call: &mut Call<'_>, args: &mut Args<'_>) -> Result<Outcome> {
    if !args.remaining().is_multiple_of(2) {
        return Err(CommandError::Syntax);
    }
    while args.remaining() > 0 {
        let option = args.bytes()?;
        let is = |name: &str| option.eq_ignore_ascii_case(name.as_bytes());
        if is("listening-port") {
            let port = args.integer()?;
            call.session.replica.get_or_insert_default().port = port as u16;
        } else if is("ip-address") {
            let address = args.bytes()?;
            if address.len() > ADDRESS_LEN_MAX {
                return Err(CommandError::text(format!(
                    "ERR REPLCONF ip-address provided by replica instance is too long: {} bytes",
                    address.len()
                )));
            }
            let ip = std::str::from_utf8(address).ok().and_then(|text| text.parse().ok());
            call.session.replica.get_or_insert_default().ip = ip;
        } else if is("capa") {
            // What a replica can do beyond what is sent does not matter.
            args.bytes()?;
        } else if is("ack") {
            let offset = parse_i64(args.bytes()?);
            // The place up to which its own append-only file is on its disk.
            let durable = if args.take("fack") { parse_i64(args.bytes()?) } else { None };
            let follows = call.session.replica.as_ref().is_some_and(|replica| replica.follows());
            if let Some(offset) = offset.filter(|_| follows) {
                let now = call.now().0;
                let (shared, id) = (call.core.shared, call.core.id);
                let offset = u64::try_from(offset).unwrap_or(0);
                let durable = durable.and_then(|place| u64::try_from(place).ok());
                let client = &call.session.record;
                shared.replication.feed.acknowledge(client, offset, durable, now);
                shared.aof.wake_waiting(shared, Some(id));
            }
            return Ok(Outcome::Replied);
        } else if is("getack") {
            args.bytes()?;
            if call.session.is_primary {
                // This request itself is not counted yet.
                link::acknowledge(call.core.shared);
            }
            return Ok(Outcome::Replied);
        } else if is("rdb-only") {
            if !matches!(args.integer()?, 0 | 1) {
                return Err(CommandError::text(
                    "ERR value is out of range, must be between 0 and 1",
                ));
            }
        } else {
            let before = "ERR Unrecognized REPLCONF option: ";
            return Err(CommandError::text_around(before, option, ""));
        }
    }
    Ok(call.reply.ok())
}

const FLAGS: Flags =
    Flags::ADMIN.union(Flags::NO_ASYNC_LOADING).union(Flags::NO_MULTI).union(Flags::NOSCRIPT);

const SYNC: Command = Command {
    spec: Spec {
        name: "sync",
        group: Group::Server,
        summary: "Sends the dataset, and from then on every change of it.",
        since: "1.0.0",
        complexity: "",
        arity: 1,
        flags: FLAGS,
        in_multi: InMulti::Refuses,
        ..Spec::EMPTY
    },
    run: sync,
    subcommands: &[],
};

const PSYNC: Command = Command {
    spec: Spec {
        name: "psync",
        summary: "Sends what a replica lacks, and from then on every change.",
        since: "2.8.0",
        arity: -3,
        args: &[Arg::string("replicationid"), Arg::integer("offset")],
        ..SYNC.spec
    },
    run: psync,
    subcommands: &[],
};

const REPLCONF: Command = Command {
    spec: Spec {
        name: "replconf",
        group: Group::Server,
        summary: "Lets a replica tell of itself.",
        since: "3.0.0",
        complexity: "O(1)",
        arity: -1,
        flags: Flags::ADMIN
            .union(Flags::ALLOW_BUSY)
            .union(Flags::LOADING)
            .union(Flags::NOSCRIPT)
            .union(Flags::STALE),
        syscmd: true,
        ..Spec::EMPTY
    },
    run: replconf,
    subcommands: &[],
};

pub(super) const COMMANDS: &[Command] = &[SYNC, PSYNC, REPLCONF];
