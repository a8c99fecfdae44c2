//! CLUSTER and related commands, with the replies of a server that is not in cluster mode.

mod routing;

use brisk_engine::command::{Arg, Deprecated, Flags, Group, Spec};
use brisk_engine::{Args, CommandError, Outcome, Result};
use brisk_node::core::call::{Call, Command};

fn refuse(_: &mut Call<'_>, _: &mut Args<'_>) -> Result<Outcome> {
    Err(CommandError::text("ERR This instance has cluster support disabled"))
}

/// The fields that all rows share.
const ROW: Spec = Spec { group: Group::Cluster, since: "3.0.0", ..Spec::EMPTY };

/// The fields that the rows of read-only subcommands share.
const SUBCOMMAND: Spec = Spec { arity: 2, complexity: "O(1)", flags: Flags::STALE, ..ROW };

/// The fields that the rows of subcommands that change the cluster share.
const CHANGES: Spec =
    Spec { flags: Flags::ADMIN.union(Flags::NO_ASYNC_LOADING).union(Flags::STALE), ..SUBCOMMAND };

/// The fields that the rows of subcommands with slots as arguments share.
const CHANGES_SLOTS: Spec = Spec {
    complexity: "O(N) where N is the total number of hash slot arguments",
    arity: -3,
    args: &[Arg::integer("slot").multiple()],
    ..CHANGES
};

/// The fields that the rows of subcommands with slot ranges as arguments share.
const CHANGES_RANGES: Spec = Spec {
    since: "7.0.0",
    complexity: "O(N) where N is the total number of the slots between the start slot and end slot arguments.",
    arity: -4,
    args: &[Arg::block(
        "start-slot_end-slot",
        &[Arg::integer("start-slot"), Arg::integer("end-slot")],
    )
    .multiple()],
    ..CHANGES
};

/// Builds the row of a subcommand that only returns an error.
const fn refused(spec: Spec) -> Command {
    Command { spec, run: refuse, subcommands: &[] }
}

const ADDSLOTS: Command =
    refused(Spec { name: "addslots", summary: "Gives slots to this node.", ..CHANGES_SLOTS });

const ADDSLOTSRANGE: Command = refused(Spec {
    name: "addslotsrange",
    summary: "Gives ranges of slots to this node.",
    ..CHANGES_RANGES
});

const BUMPEPOCH: Command = refused(Spec {
    name: "bumpepoch",
    summary: "Raises the configuration epoch.",
    tips: &["nondeterministic_output"],
    ..CHANGES
});

const COUNT_FAILURE_REPORTS: Command = refused(Spec {
    name: "count-failure-reports",
    summary: "Counts the reports that a node has failed.",
    complexity: "O(N) where N is the number of failure reports",
    arity: 3,
    flags: Flags::ADMIN.union(Flags::STALE),
    tips: &["nondeterministic_output"],
    args: &[Arg::string("node-id")],
    ..SUBCOMMAND
});

const COUNTKEYSINSLOT: Command = refused(Spec {
    name: "countkeysinslot",
    summary: "Counts the keys of a slot.",
    arity: 3,
    args: &[Arg::integer("slot")],
    ..SUBCOMMAND
});

const DELSLOTS: Command = refused(Spec {
    name: "delslots",
    summary: "Takes slots away from this node.",
    ..CHANGES_SLOTS
});

const DELSLOTSRANGE: Command = refused(Spec {
    name: "delslotsrange",
    summary: "Takes ranges of slots away from this node.",
    ..CHANGES_RANGES
});

const FAILOVER: Command = refused(Spec {
    name: "failover",
    summary: "Makes this replica the primary.",
    arity: -2,
    args: &[Arg::one_of(
        "options",
        &[Arg::token("force", "FORCE"), Arg::token("takeover", "TAKEOVER")],
    )
    .optional()],
    ..CHANGES
});

const FLUSHSLOTS: Command = refused(Spec {
    name: "flushslots",
    summary: "Takes all slots away from this node.",
    ..CHANGES
});

const FORGET: Command = refused(Spec {
    name: "forget",
    summary: "Removes a node from those that are known.",
    arity: 3,
    args: &[Arg::string("node-id")],
    ..CHANGES
});

const GETKEYSINSLOT: Command = refused(Spec {
    name: "getkeysinslot",
    summary: "Shows keys of a slot.",
    complexity: "O(log(N)) where N is the number of requested keys",
    arity: 4,
    tips: &["nondeterministic_output"],
    args: &[Arg::integer("slot"), Arg::integer("count")],
    ..SUBCOMMAND
});

const HELP: Command = refused(Spec::help(Group::Cluster, "5.0.0"));

const INFO: Command = refused(Spec {
    name: "info",
    summary: "Shows the state of the cluster.",
    tips: &["nondeterministic_output"],
    ..SUBCOMMAND
});

const KEYSLOT: Command = refused(Spec {
    name: "keyslot",
    summary: "Computes the slot of a key.",
    complexity: "O(N) where N is the number of bytes in the key",
    arity: 3,
    args: &[Arg::string("key")],
    ..SUBCOMMAND
});

const LINKS: Command = refused(Spec {
    name: "links",
    summary: "Shows the connections to other nodes.",
    since: "7.0.0",
    complexity: "O(N) where N is the total number of Cluster nodes",
    tips: &["nondeterministic_output"],
    ..SUBCOMMAND
});

const MEET: Command = refused(Spec {
    name: "meet",
    summary: "Introduces another node.",
    arity: -4,
    history: &[("4.0.0", "Added the optional `cluster_bus_port` argument.")],
    args: &[
        Arg::string("ip"),
        Arg::integer("port"),
        Arg::integer("cluster_bus_port").since("4.0.0").optional(),
    ],
    ..CHANGES
});

const MYID: Command =
    refused(Spec { name: "myid", summary: "Shows the id of this node.", ..SUBCOMMAND });

const NODES: Command = refused(Spec {
    name: "nodes",
    summary: "Shows the nodes as this one knows them.",
    complexity: "O(N) where N is the total number of Cluster nodes",
    tips: &["nondeterministic_output"],
    ..SUBCOMMAND
});

const REPLICAS: Command = refused(Spec {
    name: "replicas",
    summary: "Shows the replicas of a primary.",
    since: "5.0.0",
    arity: 3,
    flags: Flags::ADMIN.union(Flags::STALE),
    tips: &["nondeterministic_output"],
    args: &[Arg::string("node-id")],
    ..SUBCOMMAND
});

const REPLICATE: Command = refused(Spec {
    name: "replicate",
    summary: "Makes this node a replica of a primary.",
    arity: 3,
    args: &[Arg::string("node-id")],
    ..CHANGES
});

const RESET: Command = refused(Spec {
    name: "reset",
    summary: "Makes this node forget the cluster.",
    complexity: "O(N) where N is the number of known nodes. The command may execute a FLUSHALL as a side effect.",
    arity: -2,
    flags: Flags::ADMIN.union(Flags::NOSCRIPT).union(Flags::STALE),
    args: &[Arg::one_of("hard_soft", &[Arg::token("hard", "HARD"), Arg::token("soft", "SOFT")])
        .optional()],
    ..SUBCOMMAND
});

const SAVECONFIG: Command = refused(Spec {
    name: "saveconfig",
    summary: "Writes what is known of the cluster to its file.",
    ..CHANGES
});

const SET_CONFIG_EPOCH: Command = refused(Spec {
    name: "set-config-epoch",
    summary: "Sets the configuration epoch of a new node.",
    arity: 3,
    args: &[Arg::integer("config-epoch")],
    ..CHANGES
});

const SETSLOT: Command = refused(Spec {
    name: "setslot",
    summary: "Says to which node a slot belongs or goes.",
    arity: -4,
    args: &[
        Arg::integer("slot"),
        Arg::one_of(
            "subcommand",
            &[
                Arg::string("node-id").after("IMPORTING"),
                Arg::string("node-id").after("MIGRATING"),
                Arg::string("node-id").after("NODE"),
                Arg::token("stable", "STABLE"),
            ],
        ),
    ],
    ..CHANGES
});

const SHARDS: Command = refused(Spec {
    name: "shards",
    summary: "Shows slots and nodes by shard.",
    since: "7.0.0",
    complexity: "O(N) where N is the total number of cluster nodes",
    tips: &["nondeterministic_output"],
    ..SUBCOMMAND
});

const SLAVES: Command = refused(Spec {
    name: "slaves",
    summary: "Shows the replicas of a primary.",
    arity: 3,
    flags: Flags::ADMIN.union(Flags::STALE),
    tips: &["nondeterministic_output"],
    deprecated: Some(Deprecated { since: "5.0.0", replaced_by: "`CLUSTER REPLICAS`" }),
    args: &[Arg::string("node-id")],
    ..SUBCOMMAND
});

const SLOTS: Command = refused(Spec {
    name: "slots",
    summary: "Shows which nodes have which slots.",
    complexity: "O(N) where N is the total number of Cluster nodes",
    tips: &["nondeterministic_output"],
    deprecated: Some(Deprecated { since: "7.0.0", replaced_by: "`CLUSTER SHARDS`" }),
    history: &[
        ("4.0.0", "Added node IDs."),
        ("7.0.0", "Added additional networking metadata field."),
    ],
    ..SUBCOMMAND
});

const CLUSTER: Command = Command {
    spec: Spec {
        name: "cluster",
        summary: "Works on a cluster.",
        complexity: "Depends on subcommand.",
        arity: -2,
        ..ROW
    },
    run: refuse,
    subcommands: &[
        ADDSLOTS,
        ADDSLOTSRANGE,
        BUMPEPOCH,
        COUNT_FAILURE_REPORTS,
        COUNTKEYSINSLOT,
        DELSLOTS,
        DELSLOTSRANGE,
        FAILOVER,
        FLUSHSLOTS,
        FORGET,
        GETKEYSINSLOT,
        HELP,
        INFO,
        KEYSLOT,
        LINKS,
        MEET,
        MYID,
        NODES,
        REPLICAS,
        REPLICATE,
        RESET,
        SAVECONFIG,
        SET_CONFIG_EPOCH,
        SETSLOT,
        SHARDS,
        SLAVES,
        SLOTS,
    ],
};

pub(super) const FAMILY: &[&[Command]] =
    &[&[routing::ASKING, CLUSTER, routing::READONLY, routing::READWRITE]];
