//! CLUSTER SET-CONFIG-EPOCH, BUMPEPOCH, SAVECONFIG. These commands have no effect, because every change increments the
//! epoch of the document and every node saves each document that it installs.

use super::{CHANGES, node_view, require_cluster_mode};
use brisk_cluster::change::check_config_epoch;
use brisk_engine::command::{Arg, Spec};
use brisk_engine::{Args, CommandError, Outcome, Result};
use brisk_node::core::call::{Call, Command};

pub(super) const SET_CONFIG_EPOCH: Command = Command {
    spec: Spec {
        name: "set-config-epoch",
        summary: "Checks its argument and has no other effect.",
        arity: 3,
        args: &[Arg::integer("config-epoch")],
        ..CHANGES
    },
    run: set_config_epoch,
    subcommands: &[],
};

fn set_config_epoch(call: &mut Call<'_>, args: &mut Args<'_>) -> Result<Outcome> {
    require_cluster_mode(call)?;
    check_config_epoch(args.integer()?).map_err(|error| CommandError::text(error.to_string()))?;
    Ok(call.reply.ok())
}

pub(super) const BUMPEPOCH: Command = Command {
    spec: Spec {
        name: "bumpepoch",
        summary: "Returns the epoch of the topology, and does not change it.",
        tips: &["nondeterministic_output"],
        ..CHANGES
    },
    run: bump_epoch,
    subcommands: &[],
};

/// Replies as Redis does if the node already has the highest epoch.
fn bump_epoch(call: &mut Call<'_>, _: &mut Args<'_>) -> Result<Outcome> {
    let epoch = node_view(call)?.contents().topology.map(|topology| topology.epoch);
    let epoch = epoch.unwrap_or_default();
    Ok(call.reply.simple(&format!("STILL {epoch}")))
}

pub(super) const SAVECONFIG: Command = Command {
    spec: Spec {
        name: "saveconfig",
        summary: "Has no effect, because the node saves every change of the topology.",
        ..CHANGES
    },
    run: save_config,
    subcommands: &[],
};

fn save_config(call: &mut Call<'_>, _: &mut Args<'_>) -> Result<Outcome> {
    require_cluster_mode(call)?;
    Ok(call.reply.ok())
}
