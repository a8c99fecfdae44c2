//! REPLICATION, a Brisk command: compares the datasets of replicas with this primary.

use brisk_engine::command::{Arg, Flags, Group, InMulti, Spec};
use brisk_engine::{Args, CommandError, Outcome, Result};
use brisk_node::core::call::{Call, Command};
use brisk_node::replication::acks::{AckCondition, AckWait};

const HELP: &[&str] = &[
    "COMPARE [HEAL]",
    "    Compare the digests of all slots with those of all replicas that support it.",
    "    With HEAL, send the differing slots to the replicas.",
];

/// The reply is sent when the comparison has ended.
fn compare(call: &mut Call<'_>, args: &mut Args<'_>) -> Result<Outcome> {
    let heals = args.take("heal");
    if args.remaining() > 0 {
        return Err(CommandError::Syntax);
    }
    let shared = call.core.shared;
    if shared.conditions.is_replica() {
        let text = "ERR REPLICATION COMPARE is not valid when server is a replica.";
        return Err(CommandError::text(text));
    }
    let number = shared.replication.comparison.request(heals);
    shared.mailboxes.wake(0);
    let words: Vec<&[u8]> = args.arguments().collect();
    let command = (call.row.spec, call.row.parent);
    let request = (call.session.db(), &*words);
    let waiter = shared.keyspace.waiter_without_keys(call.client(), command, request, None);
    call.core.env.begin_wait(waiter);
    let shown = call.session.replication.shown().max(call.core.env.shown());
    call.session.blocked.await_acks(AckWait { shown, wanted: AckCondition::Comparison(number) });
    Ok(Outcome::Waiting)
}

fn help(call: &mut Call<'_>, _: &mut Args<'_>) -> Result<Outcome> {
    Ok(call.help(HELP))
}

const COMPARE: Command = Command {
    spec: Spec {
        name: "compare",
        group: Group::Server,
        summary: "Finds the slots in which replicas differ from this server.",
        since: "7.2.0",
        complexity: "O(N) in the size of the dataset, in the background.",
        arity: -2,
        flags: Flags::ADMIN.union(Flags::NO_MULTI).union(Flags::NOSCRIPT),
        tips: &["nondeterministic_output", "request_policy:all_shards", "response_policy:special"],
        in_multi: InMulti::Refuses,
        args: &[Arg::token("heal", "HEAL").optional()],
        ..Spec::EMPTY
    },
    run: compare,
    subcommands: &[],
};

const HELP_ROW: Command =
    Command { spec: Spec::help(Group::Server, "7.2.0"), run: help, subcommands: &[] };

const REPLICATION: Command = Command {
    spec: Spec {
        name: "replication",
        group: Group::Server,
        summary: "A container for commands about this server and its replicas.",
        since: "7.2.0",
        complexity: "Depends on subcommand.",
        // As for COMMAND, access control checks a request without a subcommand.
        arity: -1,
        flags: Spec::HELP_FLAGS,
        ..Spec::EMPTY
    },
    run: help,
    subcommands: &[COMPARE, HELP_ROW],
};

pub(super) const COMMANDS: &[Command] = &[REPLICATION];
