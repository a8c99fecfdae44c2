//! CLUSTER and related commands.
//!
//! | file | about |
//! |---|---|
//! | here | CLUSTER itself; the fields and checks that its subcommands share |
//! | `info` | INFO, MYID, MYSHARDID, HELP |
//! | `slots` | SLOTS, SHARDS |
//! | `nodes` | NODES, REPLICAS, SLAVES, COUNT-FAILURE-REPORTS, LINKS |
//! | `keys` | KEYSLOT, COUNTKEYSINSLOT, GETKEYSINSLOT |
//! | `change` | how a command changes the topology |
//! | `owners` | ADDSLOTS, ADDSLOTSRANGE, DELSLOTS, DELSLOTSRANGE, FLUSHSLOTS |
//! | `setslot` | SETSLOT |
//! | `membership` | MEET, REPLICATE, FORGET, RESET, FAILOVER |
//! | `epoch` | SET-CONFIG-EPOCH, BUMPEPOCH, SAVECONFIG |
//! | `routing` | ASKING, READONLY, READWRITE |
//!
//! `brisk_cluster::view` provides the contents of replies, and `brisk_cluster::change` computes changes.

mod change;
mod epoch;
mod info;
mod keys;
mod membership;
mod nodes;
mod owners;
mod routing;
mod setslot;
mod slots;

use crate::info::cluster::NodeView;
use brisk_engine::command::{Flags, Group, Spec};
use brisk_engine::{Args, CommandError, Outcome, Result};
use brisk_node::cluster::ClusterState;
use brisk_node::core::call::{Call, Command};

const DISABLED: &str = "ERR This instance has cluster support disabled";

fn refuse(_: &mut Call<'_>, _: &mut Args<'_>) -> Result<Outcome> {
    Err(CommandError::text(DISABLED))
}

/// The state of cluster mode.
///
/// # Errors
/// Cluster mode is off.
fn require_cluster_mode(call: &Call<'_>) -> Result<&'static ClusterState> {
    call.core.shared.cluster.state().ok_or(CommandError::text(DISABLED))
}

/// This node's view of the cluster, for the caller's reply.
///
/// # Errors
/// Cluster mode is off.
fn node_view(call: &Call<'_>) -> Result<NodeView<'static>> {
    let is_tls = call.session.connection.is_encrypted();
    let view = NodeView::new(call.core.shared, &call.core.config, is_tls);
    view.ok_or(CommandError::text(DISABLED))
}

/// The fields that all rows share.
const ROW: Spec = Spec { group: Group::Cluster, since: "3.0.0", ..Spec::EMPTY };

/// The fields shared by the rows of read-only subcommands.
const SUBCOMMAND: Spec = Spec { arity: 2, complexity: "O(1)", flags: Flags::STALE, ..ROW };

/// The fields shared by the rows of subcommands that clients need before their first command on a key. A node that is
/// loading its dataset also replies to these subcommands.
const BOOTSTRAP: Spec = Spec { flags: Flags::STALE.union(Flags::LOADING_OF_VALKEY), ..SUBCOMMAND };

/// The fields shared by the rows of subcommands that change the cluster.
const CHANGES: Spec =
    Spec { flags: Flags::ADMIN.union(Flags::NO_ASYNC_LOADING).union(Flags::STALE), ..SUBCOMMAND };

const CLUSTER: Command = Command {
    spec: Spec {
        name: "cluster",
        summary: "Manages the cluster.",
        complexity: "Depends on subcommand.",
        arity: -2,
        ..ROW
    },
    run: refuse,
    subcommands: &[
        owners::ADDSLOTS,
        owners::ADDSLOTSRANGE,
        epoch::BUMPEPOCH,
        nodes::COUNT_FAILURE_REPORTS,
        keys::COUNTKEYSINSLOT,
        owners::DELSLOTS,
        owners::DELSLOTSRANGE,
        membership::FAILOVER,
        owners::FLUSHSLOTS,
        membership::FORGET,
        keys::GETKEYSINSLOT,
        info::HELP,
        info::INFO,
        keys::KEYSLOT,
        nodes::LINKS,
        membership::MEET,
        info::MYID,
        info::MYSHARDID,
        nodes::NODES,
        nodes::REPLICAS,
        membership::REPLICATE,
        membership::RESET,
        epoch::SAVECONFIG,
        epoch::SET_CONFIG_EPOCH,
        setslot::SETSLOT,
        slots::SHARDS,
        nodes::SLAVES,
        slots::SLOTS,
    ],
};

pub(super) const GROUP_COMMANDS: &[&[Command]] =
    &[&[routing::ASKING, CLUSTER, routing::READONLY, routing::READWRITE]];
