//! CLUSTER MEET, REPLICATE, FORGET, RESET, FAILOVER: the nodes of the cluster and their roles.

use super::change::{commit, leave_worker, require_writer};
use super::{CHANGES, SUBCOMMAND, node_view, require_cluster_mode};
use brisk_cluster::change::{
    self, ChangeError, MeetAddress, OwnNode, Promotion, failover_shard, forget as forget_node,
    promote,
};
use brisk_cluster::document::{Registration, TermCause};
use brisk_coordinate::error::CoordinatorError;
use brisk_engine::command::{Arg, Flags, Spec};
use brisk_engine::{Args, CommandError, Outcome, Result};
use brisk_node::cluster::{ChangeBasis, ClusterState, CoordinatorState, SwitchRequest};
use brisk_node::core::call::{Call, Command};
use brisk_node::core::shared::Shared;
use std::collections::BTreeSet;

pub(super) const MEET: Command = Command {
    spec: Spec {
        name: "meet",
        summary: "Adds another node to the cluster.",
        arity: -4,
        history: &[("4.0.0", "Accepts the port of the cluster bus.")],
        args: &[
            Arg::string("ip"),
            Arg::integer("port"),
            Arg::integer("cluster_bus_port").since("4.0.0").optional(),
        ],
        ..CHANGES
    },
    run: meet,
    subcommands: &[],
};

fn meet(call: &mut Call<'_>, args: &mut Args<'_>) -> Result<Outcome> {
    require_cluster_mode(call)?;
    refuse_more_than(call, args, 3)?;
    let mut text = || args.optional().map(|word| String::from_utf8_lossy(word).into_owned());
    let (ip, port, bus) = (text(), text(), text());
    let (ip, port) = (ip.unwrap_or_default(), port.unwrap_or_default());
    let address = MeetAddress::parse(&ip, &port, bus.as_deref());
    let address = address.map_err(|error| CommandError::text(error.to_string()))?;
    commit(call, args, move |basis| {
        let registered: Vec<Registration> = basis.registered.values().cloned().collect();
        change::meet(basis.topology, basis.change, basis.own, &address, &registered)
    })
}

pub(super) const REPLICATE: Command = Command {
    spec: Spec {
        name: "replicate",
        summary: "Makes this node a replica of a primary.",
        arity: 3,
        args: &[Arg::string("node-id")],
        ..CHANGES
    },
    run: replicate,
    subcommands: &[],
};

fn replicate(call: &mut Call<'_>, args: &mut Args<'_>) -> Result<Outcome> {
    require_cluster_mode(call)?;
    let target = node_argument(args)?;
    let shared = call.core.shared;
    commit(call, args, move |basis| {
        change::replicate(basis.topology, basis.change, own_node(shared, basis), &target)
    })
}

pub(super) const FORGET: Command = Command {
    spec: Spec {
        name: "forget",
        summary: "Removes a node from the cluster.",
        arity: 3,
        args: &[Arg::string("node-id")],
        ..CHANGES
    },
    run: forget,
    subcommands: &[],
};

fn forget(call: &mut Call<'_>, args: &mut Args<'_>) -> Result<Outcome> {
    require_cluster_mode(call)?;
    let target = node_argument(args)?;
    commit(call, args, move |basis| {
        let live: BTreeSet<_> = basis.registered.keys().copied().collect();
        let (topology, change) = (basis.topology, basis.change);
        forget_node(topology, change, basis.own.id, &target, &live, basis.now_s)
    })
}

pub(super) const RESET: Command = Command {
    spec: Spec {
        name: "reset",
        summary: "Removes this node from the cluster.",
        complexity: "O(N) in the number of known nodes, and the cost of FLUSHALL on a replica.",
        arity: -2,
        flags: Flags::ADMIN.union(Flags::NOSCRIPT).union(Flags::STALE),
        args: &[Arg::one_of(
            "hard_soft",
            &[Arg::token("hard", "HARD"), Arg::token("soft", "SOFT")],
        )
        .optional()],
        ..SUBCOMMAND
    },
    run: reset,
    subcommands: &[],
};

fn reset(call: &mut Call<'_>, args: &mut Args<'_>) -> Result<Outcome> {
    require_cluster_mode(call)?;
    refuse_more_than(call, args, 1)?;
    let is_hard = args.take("HARD");
    if !is_hard && !args.take("SOFT") {
        args.end()?;
    }
    let shared = call.core.shared;
    let leave = move |basis: &ChangeBasis<'_>| {
        change::reset(basis.topology, basis.change, own_node(shared, basis), basis.now_s)
    };
    // A transaction cannot wait until the keys are removed. They stay until the next CLUSTER RESET.
    if !is_hard && call.in_exec() {
        return commit(call, args, leave);
    }
    if call.in_exec() {
        let text = "ERR CLUSTER RESET HARD is not possible within a transaction or a script";
        return Err(CommandError::text(text));
    }
    let writer = require_writer(require_cluster_mode(call)?)?;
    leave_worker(call, args, move |reply| {
        let left = writer.commit(&leave).and_then(|()| writer.discard_copy());
        let done = if is_hard { left.and_then(|()| writer.renew_id()) } else { left };
        done.map_err(|error| CommandError::text(error.to_string()))?;
        Ok(reply.ok())
    })
}

pub(super) const FAILOVER: Command = Command {
    spec: Spec {
        name: "failover",
        summary: "Promotes this replica to primary.",
        arity: -2,
        args: &[Arg::one_of(
            "options",
            &[Arg::token("force", "FORCE"), Arg::token("takeover", "TAKEOVER")],
        )
        .optional()],
        ..CHANGES
    },
    run: failover,
    subcommands: &[],
};

/// CLUSTER FAILOVER. Without an option, the primary hands over. As in Redis, the reply is sent immediately, and the
/// switch happens afterwards. FORCE and TAKEOVER promote this replica without the help of its primary. Both options do
/// the same, because the topology document alone decides which node is the primary. A replica without a full copy is
/// never promoted, because its former primary would follow it and copy an empty dataset.
fn failover(call: &mut Call<'_>, args: &mut Args<'_>) -> Result<Outcome> {
    let state = require_cluster_mode(call)?;
    refuse_more_than(call, args, 1)?;
    let is_forced = args.take("FORCE") || args.take("TAKEOVER");
    args.end()?;
    if !is_forced {
        return request_switch(call, args, state);
    }
    commit(call, args, move |basis| {
        let shard = failover_shard(basis.topology, basis.own.id)?;
        if !state.has_full_copy() {
            return Err(ChangeError::FailoverWithoutCopy);
        }
        let promotion = Promotion {
            shard: shard.id,
            expected_term: shard.term,
            to: basis.own.run(),
            cause: TermCause::Forced,
            why: "CLUSTER FAILOVER".to_owned(),
        };
        promote(basis.topology, basis.change, &promotion)
    })
}

/// Requests a planned switch. The coordinator must reply first: without it, the promotion cannot be committed, and OK
/// would be wrong. The switch can still fail later. Then the log of the primary has the reason.
fn request_switch(
    call: &mut Call<'_>,
    args: &Args<'_>,
    state: &'static ClusterState,
) -> Result<Outcome> {
    check_planned(call)?;
    let frozen = || CommandError::text(format!("ERR {}", CoordinatorError::NoSpace));
    // A transaction cannot wait for the coordinator, so the result of the last renewal counts.
    if call.in_exec() {
        match state.coordinator() {
            CoordinatorState::Ok | CoordinatorState::Stale => {}
            CoordinatorState::Frozen => return Err(frozen()),
            CoordinatorState::Unreachable => {
                return Err(CommandError::text("ERR the coordinator is unreachable"));
            }
        }
        state.switches.request(SwitchRequest::TakeOver);
        return Ok(call.reply.ok());
    }
    let writer = require_writer(state)?;
    leave_worker(call, args, move |reply| {
        let checked =
            writer.commit(&|basis| failover_shard(basis.topology, basis.own.id).map(|_| None));
        checked.map_err(|error| CommandError::text(error.to_string()))?;
        if state.coordinator() == CoordinatorState::Frozen {
            return Err(frozen());
        }
        state.switches.request(SwitchRequest::TakeOver);
        Ok(reply.ok())
    })
}

/// Checks that the primary of this replica can hand over.
fn check_planned(call: &Call<'_>) -> Result<()> {
    let view = node_view(call)?;
    let view = view.contents();
    let shard = view.topology.map(|topology| failover_shard(topology, view.own.id));
    let shard = shard.unwrap_or(Err(ChangeError::FailoverAtPrimary));
    let primary = shard.map_err(|error| CommandError::text(error.to_string()))?.primary;
    let is_alive = view.node_states.get(&primary).is_some_and(|node| node.is_alive);
    if is_alive {
        return Ok(());
    }
    Err(CommandError::text("ERR Master is down or failed, please use CLUSTER FAILOVER FORCE"))
}

fn own_node(shared: &Shared, basis: &ChangeBasis<'_>) -> OwnNode {
    OwnNode { id: basis.own.id, has_keys: shared.keyspace.has_keys() }
}

/// The id of a node. If the argument is not valid UTF-8, it is not an id, and the error shows replacement characters.
fn node_argument(args: &mut Args<'_>) -> Result<String> {
    Ok(String::from_utf8_lossy(args.bytes()?).into_owned())
}

/// Rejects more than `max` arguments. Redis's command table does not limit the number of arguments of these
/// subcommands, so the error is not the usual one for a wrong number of arguments.
fn refuse_more_than(call: &Call<'_>, args: &Args<'_>, max: usize) -> Result<()> {
    if args.remaining() > max { Err(call.subcommand_syntax(args.argument(1))) } else { Ok(()) }
}
