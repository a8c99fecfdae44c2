//! SYNC, PSYNC and REPLCONF, with which a connection becomes a replica.
//!
//! If the replica has the beginning of this server's history and the backlog has the rest, the replica is sent the
//! rest. Otherwise it is sent the dataset. From then on, it is sent every change.

use brisk_cluster::map::MapRole;
use brisk_engine::command::{Arg, Flags, Group, InMulti, Spec};
use brisk_engine::number::parse_i64;
use brisk_engine::{Args, CommandError, Outcome, Result};
use brisk_node::clients::flag;
use brisk_node::cluster::peers::PEER_OPTION;
use brisk_node::cluster::{
    ClusterState, CoordinatorState, HandoverRequest, LOOK_VALUE, PRIMARY_OPTION, SWITCH_OPTION,
    SwitchRequest,
};
use brisk_node::core::call::{Call, Command};
use brisk_node::replication::comparison::marker::CAPABILITY;
use brisk_node::replication::comparison::report;
use brisk_node::replication::failover::FailoverPhase;
use brisk_node::replication::replica::ReplicaFilter;
use brisk_node::replication::{compare, follow, full_sync};
use brisk_node::replication::{role, upstream};
use brisk_resp::request::split_words;
use std::sync::atomic::Ordering;

/// The id that is shown if there is no history.
const NO_ID: &str = "0000000000000000000000000000000000000000";

const NO_PRIMARY: &str = "NOMASTERLINK Can't SYNC while not connected with my master";
const RESTARTED: &str = "NOMASTERLINK Can't SYNC before this restarted primary has a new term";
const FAILS_OVER: &str = "NOMASTERLINK Can't SYNC while failing over";

/// The longest address that a replica may announce.
const ADDRESS_LEN_MAX: usize = 255;

fn sync(call: &mut Call<'_>, _: &mut Args<'_>) -> Result<Outcome> {
    may_follow(call)?;
    if must_reply(call)? {
        follow(call, false);
    }
    Ok(Outcome::Replied)
}

fn psync(call: &mut Call<'_>, args: &mut Args<'_>) -> Result<Outcome> {
    let id = args.bytes()?;
    let first = args.integer();
    may_follow(call)?;
    if args.take("failover") && !call.session.in_transaction() {
        take_over(call, id)?;
    }
    if !must_reply(call)? {
        return Ok(Outcome::Replied);
    }
    let first = first.inspect_err(|_| {
        let addr = &call.session.record.addr;
        call.core.shared.log.warning(format_args!(
            "Replica {addr} asks for synchronization but with a wrong offset"
        ));
    })?;
    match resume(call, id, first) {
        Ok(()) => {
            call.core.shared.observe.metrics.partial_syncs.fetch_add(1, Ordering::Relaxed);
            if let Some(replica) = call.session.replication.replica_mut() {
                replica.set_has_reply(true);
            }
            if call.session.replication.replica().is_some_and(|replica| replica.options().wants_id)
            {
                let id = call.core.shared.replication.history.ids().id;
                return Ok(call.reply.simple(&format!("CONTINUE {id}")));
            }
            return Ok(call.reply.simple("CONTINUE"));
        }
        Err(refusal) => {
            let shared = call.core.shared;
            shared.log.notice(format_args!("{refusal}"));
            // A request for a full synchronization does not count as a rejected partial synchronization.
            if !requests_all(id) {
                shared.observe.metrics.refused_partial_syncs.fetch_add(1, Ordering::Relaxed);
            }
            follow(call, true);
        }
    }
    Ok(Outcome::Replied)
}

/// Makes this server the primary, at the request of its current primary.
fn take_over(call: &mut Call<'_>, id: &[u8]) -> Result<()> {
    let core = &mut *call.core;
    let (shared, addr) = (core.shared, &call.session.record.addr);
    let shown = String::from_utf8_lossy(id);
    shared.log.warning(format_args!("Failover request received for replid {shown}."));
    if !shared.conditions.is_replica() {
        return Err(CommandError::text("ERR PSYNC FAILOVER can't be sent to a master."));
    }
    if !shared.replication.history.ids().id.as_bytes().eq_ignore_ascii_case(id) {
        return Err(CommandError::text("ERR PSYNC FAILOVER replid must match my replid."));
    }
    let quiesced = core.quiesce_others()?;
    role::become_primary(core);
    drop(quiesced);
    let upper = shared.primary_words().upper;
    shared.log.notice(format_args!("{upper} MODE enabled (failover request from '{addr}')"));
    Ok(())
}

/// Notes the acknowledgement of a replica.
fn acknowledge(call: &mut Call<'_>, args: &mut Args<'_>) -> Result<()> {
    let offset = parse_i64(args.bytes()?);
    // The offset up to which the replica's own append-only file is durable.
    let durable = if args.take("fack") { parse_i64(args.bytes()?) } else { None };
    if let Some(offset) = offset.filter(|_| is_follower(call)) {
        let now = call.now().0;
        let (shared, id) = (call.core.shared, call.core.id);
        let offset = u64::try_from(offset).unwrap_or(0);
        let durable = durable.and_then(|place| u64::try_from(place).ok());
        let client = &call.session.record;
        let place = shared.replication.history.place(offset);
        shared.replication.acknowledge(client, (offset, place), durable, now);
        // Update the condition, because the previous acknowledgement may have been too old.
        shared.update_few_replicas(&call.core.config.replication);
        shared.persistence.aof.wake_waiting(shared, Some(id));
    }
    Ok(())
}

/// Checks that this process has the run id that a replica expects.
fn expect_run(call: &Call<'_>, expected: &[u8]) -> Result<()> {
    let run = call.core.shared.cluster.state().map(|state| state.run().to_string());
    match run {
        Some(run) if run.as_bytes() == expected => Ok(()),
        run => Err(CommandError::text(format!("ERR This node is {}", run.unwrap_or_default()))),
    }
}

/// True if a replica does not have a history.
fn requests_all(id: &[u8]) -> bool {
    id.first() == Some(&b'?')
}

/// Lets a session resume at byte `first` of a history, counted from 1.
///
/// # Errors
/// The reason why the session cannot resume, as a text for the log.
fn resume(call: &mut Call<'_>, id: &[u8], first: i64) -> std::result::Result<(), String> {
    let shared = call.core.shared;
    let addr = call.session.record.addr.clone();
    let history = &shared.replication.history;
    if requests_all(id) {
        return Err(format!("Full resync requested by replica {addr}"));
    }
    let offset = first.checked_sub(1).and_then(|had| u64::try_from(had).ok());
    if !history.shares(id, offset.unwrap_or(0)) {
        let ids = history.ids();
        let (requested, former) = (String::from_utf8_lossy(id), ids.former);
        return Err(match former {
            Some(former) if former.id.as_bytes().eq_ignore_ascii_case(id) => format!(
                "Partial resynchronization not accepted: Requested offset for second ID was \
                 {first}, but I can reply up to {}",
                former.end + 1
            ),
            _ => format!(
                "Partial resynchronization not accepted: Replication ID mismatch (Replica asked \
                 for '{requested}', my replication IDs are '{}' and '{}')",
                ids.id,
                former.map_or(NO_ID.to_owned(), |former| former.id)
            ),
        });
    }
    let place = offset.and_then(|offset| history.place(offset));
    let lacking = place.and_then(|place| follow::resume_replica(call.core, call.session, place));
    let Some(lacking) = lacking else {
        return Err(format!(
            "Unable to partial resync with replica {addr} for lack of backlog (Replica request was: \
             {first})."
        ));
    };
    shared.log.notice(format_args!(
        "Partial resynchronization request from {addr} accepted. Sending {lacking} bytes of backlog \
         starting from offset {first}."
    ));
    Ok(())
}

/// Checks that the session is a connection. Sessions of the primary's stream and of files cannot become replicas.
fn may_follow(call: &Call<'_>) -> Result<()> {
    match call.session.repeats() {
        true => Err(CommandError::text("ERR only a connection can follow this server")),
        false => Ok(()),
    }
}

/// True if the session can become a replica. As in Redis, a second request gets no reply, nor does a session that uses
/// MONITOR.
fn must_reply(call: &Call<'_>) -> Result<bool> {
    if call.session.in_transaction() {
        return Err(CommandError::text("ERR Command not allowed inside a transaction"));
    }
    if is_follower(call) || call.session.record.has(flag::MONITOR) {
        return Ok(false);
    }
    let (shared, addr) = (call.core.shared, call.session.record.addr.clone());
    if shared.replication.failover.phase() != FailoverPhase::None {
        return Err(CommandError::text(FAILS_OVER));
    }
    // The dataset of a restarted primary is empty or old, and a replica may have the complete one.
    let state = shared.cluster.state();
    if state.is_some_and(|state| state.in_force().map.role() == MapRole::RestartedPrimary) {
        return Err(CommandError::text(RESTARTED));
    }
    if shared.conditions.is_replica() && !shared.replication.upstream.is_up() {
        return Err(CommandError::text(NO_PRIMARY));
    }
    let replica = call.session.replication.replica().map(|replica| replica.options());
    if replica.is_some_and(|one| one.filter.is_some() && !one.takes_unknown_length) {
        return Err(CommandError::text("ERR Filtered replica requires EOF capability"));
    }
    shared.log.notice(format_args!("Replica {addr} asks for synchronization"));
    Ok(true)
}

/// True if the session has requested the stream.
fn is_follower(call: &Call<'_>) -> bool {
    call.session.replication.follows()
}

/// Attaches the session as a replica that waits for a snapshot. The snapshot is the reply.
fn follow(call: &mut Call<'_>, acknowledges: bool) {
    let shared = call.core.shared;
    shared.observe.metrics.full_syncs.fetch_add(1, Ordering::Relaxed);
    follow::attach_replica(call.core, call.session, acknowledges);
    if let Some(replica) = call.session.replication.replica_mut() {
        // The buffer may contain replies to earlier commands of the same batch.
        replica.set_has_reply(!call.reply.buffer().is_empty());
    }
    if shared.keyspace.is_emitting() {
        shared.log.notice(format_args!(
            "Another snapshot is being written. BGSAVE for replication delayed"
        ));
    }
    // If a snapshot cannot begin now, the timers begin it later.
    full_sync::begin_if_due(call.core);
}

fn replconf(call: &mut Call<'_>, args: &mut Args<'_>) -> Result<Outcome> {
    if !args.remaining().is_multiple_of(2) {
        return Err(CommandError::Syntax);
    }
    let mut sends_capability = false;
    while args.remaining() > 0 {
        let option = args.bytes()?;
        let is = |name: &str| option.eq_ignore_ascii_case(name.as_bytes());
        if is("listening-port") {
            let port = args.integer()?;
            // An invalid port counts as no port.
            let replica = call.session.replication.announce_replica();
            replica.options_mut().port = u16::try_from(port).unwrap_or(0);
        } else if is("ip-address") {
            let address = args.bytes()?;
            if address.len() > ADDRESS_LEN_MAX {
                return Err(CommandError::text(format!(
                    "ERR REPLCONF ip-address provided by replica instance is too long: {} bytes",
                    address.len()
                )));
            }
            let ip = std::str::from_utf8(address).ok().and_then(|text| text.parse().ok());
            call.session.replication.announce_replica().options_mut().ip = ip;
        } else if is("capa") {
            // Other capabilities of a replica are ignored.
            let capability = args.bytes()?;
            let options = call.session.replication.announce_replica().options_mut();
            options.wants_id |= capability.eq_ignore_ascii_case(b"psync2");
            options.takes_unknown_length |= capability.eq_ignore_ascii_case(b"eof");
            if capability == CAPABILITY.as_bytes() {
                options.compares = true;
                sends_capability = true;
            }
        } else if is("ack") {
            acknowledge(call, args)?;
            return Ok(Outcome::Replied);
        } else if is(report::OPTION) && is_follower(call) {
            compare::replica::receive_report(call.core, call.session, args.bytes()?);
            return Ok(Outcome::Replied);
        } else if is("getack") {
            args.bytes()?;
            if call.session.source.is_primary() {
                // The offset does not include this request.
                let shared = call.core.shared;
                upstream::acknowledge(shared, &shared.replication.upstream);
            }
            return Ok(Outcome::Replied);
        } else if is(PEER_OPTION) && call.core.cluster.is_on() {
            args.integer()?;
            call.session.record.set(flag::CLUSTER_PEER, true);
        } else if is(PRIMARY_OPTION) && call.core.cluster.is_on() {
            expect_run(call, args.bytes()?)?;
        } else if is(SWITCH_OPTION) && call.core.cluster.is_on() {
            request_switch(call, args.bytes()?)?;
        } else if is("brisk-status") {
            args.bytes()?;
            return Ok(send_report(call, ClusterState::status));
        } else if is("brisk-coordinator") {
            args.bytes()?;
            return Ok(send_report(call, ClusterState::coordinator_report));
        } else if is("rdb-only") {
            if !matches!(args.integer()?, 0 | 1) {
                return Err(CommandError::text(
                    "ERR value is out of range, must be between 0 and 1",
                ));
            }
        } else if is("rdb-filter-only") {
            filter(call, args.bytes()?)?;
        } else {
            let before = "ERR Unrecognized REPLCONF option: ";
            return Err(CommandError::text_around(before, option, ""));
        }
    }
    Ok(match sends_capability {
        // Only replicas that have announced this capability get it in the reply.
        true => call.reply.simple(&format!("OK {CAPABILITY}")),
        false => call.reply.ok(),
    })
}

/// Replies with a report of this node, which another node of the cluster or a tool has requested.
fn send_report(call: &mut Call<'_>, of: fn(&ClusterState) -> Option<Vec<u8>>) -> Outcome {
    let report = call.core.shared.cluster.state().and_then(of);
    call.reply.bulk(&report.unwrap_or_default())
}

/// Handles the request of a replica of this node's shard to become the primary.
fn request_switch(call: &Call<'_>, request: &[u8]) -> Result<()> {
    let Some(state) = call.core.shared.cluster.state() else { return Ok(()) };
    if request == LOOK_VALUE.as_bytes() {
        state.switches.request(SwitchRequest::Look);
        return Ok(());
    }
    let request = std::str::from_utf8(request).ok().and_then(|text| text.parse().ok());
    let request: HandoverRequest = request.ok_or(CommandError::Syntax)?;
    let map = &state.in_force().map;
    if map.role() != MapRole::Primary || map.own_shard() != Some((request.shard, request.term)) {
        return Err(CommandError::text("ERR This node is not the master of that shard and term"));
    }
    if matches!(state.coordinator(), CoordinatorState::Frozen | CoordinatorState::Unreachable) {
        let text = "ERR The coordinator accepts no changes from this node at the moment";
        return Err(CommandError::text(text));
    }
    state.switches.request(SwitchRequest::HandOver(request));
    Ok(())
}

/// Records the parts of the dataset that a session wants. If a part is unknown, the parts before it still apply.
fn filter(call: &mut Call<'_>, parts: &[u8]) -> Result<()> {
    let parts = split_words(parts)
        .ok_or_else(|| CommandError::text("ERR Missing rdb-filter-only values"))?;
    let options = call.session.replication.announce_replica().options_mut();
    let filter = options.filter.insert(ReplicaFilter { functions: false });
    for part in parts {
        if !part.eq_ignore_ascii_case(b"functions") {
            let before = "ERR Unsupported rdb-filter-only option: ";
            return Err(CommandError::text_around(before, &part, ""));
        }
        filter.functions = true;
    }
    Ok(())
}

const FLAGS: Flags =
    Flags::ADMIN.union(Flags::NO_ASYNC_LOADING).union(Flags::NO_MULTI).union(Flags::NOSCRIPT);

const SYNC: Command = Command {
    spec: Spec {
        name: "sync",
        group: Group::Server,
        summary: "Sends the dataset, followed by every change.",
        since: "1.0.0",
        complexity: "",
        arity: 1,
        flags: FLAGS,
        in_multi: InMulti::Rejects,
        ..Spec::EMPTY
    },
    run: sync,
    subcommands: &[],
};

const PSYNC: Command = Command {
    spec: Spec {
        name: "psync",
        summary: "Sends the changes that a replica lacks, followed by every further change.",
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
        summary: "Lets a replica report its state.",
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
