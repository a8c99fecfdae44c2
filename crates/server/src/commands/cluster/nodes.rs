//! CLUSTER NODES, REPLICAS, SLAVES, COUNT-FAILURE-REPORTS, LINKS.

use super::{BOOTSTRAP, node_view, require_cluster_mode};
use brisk_cluster::view::ViewError;
use brisk_engine::command::{Arg, Deprecated, Flags, Spec};
use brisk_engine::{Args, CommandError, Outcome, Result};
use brisk_node::core::call::{Call, Command};

pub(super) const NODES: Command = Command {
    spec: Spec {
        name: "nodes",
        summary: "Lists the nodes known to this node.",
        complexity: "O(N) in the number of nodes.",
        tips: &["nondeterministic_output"],
        ..BOOTSTRAP
    },
    run: nodes,
    subcommands: &[],
};

fn nodes(call: &mut Call<'_>, _: &mut Args<'_>) -> Result<Outcome> {
    let text = node_view(call)?.contents().nodes();
    Ok(call.reply.verbatim(*b"txt", text.as_bytes()))
}

/// The fields shared by the rows of commands that have a node as an argument.
const NAMES_NODE: Spec = Spec {
    arity: 3,
    flags: BOOTSTRAP.flags.union(Flags::ADMIN),
    tips: &["nondeterministic_output"],
    args: &[Arg::string("node-id")],
    ..BOOTSTRAP
};

pub(super) const REPLICAS: Command = Command {
    spec: Spec {
        name: "replicas",
        summary: "Shows the replicas of a primary.",
        since: "5.0.0",
        ..NAMES_NODE
    },
    run: replicas,
    subcommands: &[],
};

pub(super) const SLAVES: Command = Command {
    spec: Spec {
        name: "slaves",
        summary: "Shows the replicas of a primary.",
        deprecated: Some(Deprecated { since: "5.0.0", replaced_by: "`CLUSTER REPLICAS`" }),
        ..NAMES_NODE
    },
    run: replicas,
    subcommands: &[],
};

fn replicas(call: &mut Call<'_>, args: &mut Args<'_>) -> Result<Outcome> {
    let node = args.bytes()?;
    let found = node_view(call)?.contents().replicas(&String::from_utf8_lossy(node));
    let lines = found.map_err(|error| refusal(&error, node))?;
    call.reply.array(lines.len());
    lines.iter().for_each(|line| {
        call.reply.bulk(line.as_bytes());
    });
    Ok(Outcome::Replied)
}

pub(super) const COUNT_FAILURE_REPORTS: Command = Command {
    spec: Spec {
        name: "count-failure-reports",
        summary: "Returns 0, because nodes do not send failure reports.",
        complexity: "O(N) in the number of reports.",
        ..NAMES_NODE
    },
    run: count_failure_reports,
    subcommands: &[],
};

fn count_failure_reports(call: &mut Call<'_>, args: &mut Args<'_>) -> Result<Outcome> {
    let node = args.bytes()?;
    let count = node_view(call)?.contents().failure_reports(&String::from_utf8_lossy(node));
    let count = count.map_err(|error| refusal(&error, node))?;
    Ok(call.reply.integer(count.cast_signed()))
}

/// The error reply, with the argument as it was sent.
fn refusal(error: &ViewError, node: &[u8]) -> CommandError {
    match error {
        ViewError::UnknownNode(_) => CommandError::text_with("ERR Unknown node ", node),
        ViewError::NotPrimary => CommandError::text(error.to_string()),
    }
}

pub(super) const LINKS: Command = Command {
    spec: Spec {
        name: "links",
        summary: "Lists the links of the cluster bus; in Brisk, there are none.",
        since: "7.0.0",
        complexity: "O(N) in the number of nodes.",
        tips: &["nondeterministic_output"],
        ..BOOTSTRAP
    },
    run: links,
    subcommands: &[],
};

/// CLUSTER LINKS. The reply is empty, because there is no cluster bus.
fn links(call: &mut Call<'_>, _: &mut Args<'_>) -> Result<Outcome> {
    require_cluster_mode(call)?;
    Ok(call.reply.array(0))
}
