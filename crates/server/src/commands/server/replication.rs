//! REPLICATION, a Brisk command: compares the datasets of replicas with the dataset of this primary.

use brisk_engine::command::{Arg, Flags, Group, InMulti, Origin, Spec};
use brisk_engine::{Args, CommandError, Outcome, Result};
use brisk_node::core::call::{Call, Command};
use brisk_node::replication::acks::{AckCondition, AckWait};

const HELP: &[&str] = &[
    "COMPARE [HEAL]",
    "    Compare the digests of all slots with those of all replicas that support it.",
    "    With HEAL, send the differing slots to the replicas.",
];

/// REPLICATION COMPARE. The reply is sent when the comparison has ended.
fn compare(call: &mut Call<'_>, args: &mut Args<'_>) -> Result<Outcome> {
    let repairs = args.take("heal");
    if args.remaining() > 0 {
        return Err(CommandError::Syntax);
    }
    let shared = call.core.shared;
    if shared.conditions.is_replica() {
        let text = "ERR REPLICATION COMPARE is not valid when server is a replica.";
        return Err(CommandError::text(text));
    }
    let number = shared.replication.comparison.request(repairs);
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

const COMPARE_DETAILS: &str = "\
A primary compares its dataset with the datasets of its replicas. It compares digests, slot by slot (16,384 slots in
each database). All servers continue to serve clients and to execute writes. Only Brisk replicas are compared, including
replicas of replicas; other replicas ignore the messages in the replication stream. The reply is sent when the
comparison has ended.

With `HEAL`, the primary also repairs slots that differ: it replaces their keys on all replicas with its own keys. While
a slot is being repaired, clients of a replica may still see keys that will be removed.

The reply has one map for each replica:

| field | value |
|---|---|
| `replica` | address of the replica |
| `state` | `equal`; `differs`; `healed`: slots differed and were repaired; `silent`: the replica did not report in time |
| `offset` | replication offset at which the comparison ended; -1 if the replica did not report |
| `compared` | number of slots that were compared |
| `skipped` | number of slots that were not compared because they have more than 65,536 keys, or fewer keys with small values that take as long to compare |
| `differing` | slots that still differ, each as database, slot, and the offset at which the difference was found |
| `unnamed` | number of additional differing slots that the replica did not list |
| `healed` | slots that differed and were repaired, in the same form |

```text
127.0.0.1:6379> REPLICATION COMPARE
1) 1# \"replica\" => \"127.0.0.1:6380\"
   2# \"state\" => \"equal\"
   3# \"offset\" => (integer) 1834
   4# \"compared\" => (integer) 16384
   5# \"skipped\" => (integer) 0
   6# \"differing\" => (empty array)
   7# \"unnamed\" => (integer) 0
   8# \"healed\" => (empty array)
```

[`replica-compare-period`](../configuration.md#replica-compare-period) starts comparisons periodically. While a
slow script is running or writes are paused, a comparison waits. On a replica, the command fails.";

const COMPARE: Command = Command {
    spec: Spec {
        name: "compare",
        group: Group::Server,
        summary: "Finds the slots in which replicas differ from this server.",
        since: "0.1.0",
        origin: Origin::Brisk,
        details: COMPARE_DETAILS,
        complexity: "O(N) in the size of the dataset, in the background.",
        arity: -2,
        flags: Flags::ADMIN.union(Flags::NO_MULTI).union(Flags::NOSCRIPT),
        tips: &["nondeterministic_output", "request_policy:all_shards", "response_policy:special"],
        in_multi: InMulti::Rejects,
        args: &[Arg::token("heal", "HEAL").optional()],
        ..Spec::EMPTY
    },
    run: compare,
    subcommands: &[],
};

const HELP_ROW: Command = Command {
    spec: Spec { origin: Origin::Brisk, ..Spec::help(Group::Server, "0.1.0") },
    run: help,
    subcommands: &[],
};

const REPLICATION: Command = Command {
    spec: Spec {
        name: "replication",
        group: Group::Server,
        summary: "A container for commands about this server and its replicas.",
        since: "0.1.0",
        origin: Origin::Brisk,
        details: "Without a subcommand, the reply is that of REPLICATION HELP.",
        complexity: "Depends on subcommand.",
        // As with COMMAND, access control also checks a request without a subcommand.
        arity: -1,
        flags: Spec::HELP_FLAGS,
        ..Spec::EMPTY
    },
    run: help,
    subcommands: &[COMPARE, HELP_ROW],
};

pub(super) const COMMANDS: &[Command] = &[REPLICATION];
