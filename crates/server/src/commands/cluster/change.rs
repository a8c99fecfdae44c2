//! How a CLUSTER command changes the topology: another thread commits the change while the client waits.
//!
//! A change takes a round trip to the coordinator. It ends when this node has installed the new document, for which all
//! workers are quiesced. So no worker may wait for a change.

use super::require_cluster_mode;
use brisk_cluster::change::Edit;
use brisk_cluster::document::Topology;
use brisk_cluster::id::ChangeId;
use brisk_engine::long::LongCommand;
use brisk_engine::{Args, CommandError, Outcome, Reply, Result};
use brisk_node::cluster::{ChangeBasis, ClusterState, TopologyWriter};
use brisk_node::core::call::Call;
use std::collections::BTreeMap;
use std::sync::Arc;

/// Commits a change. The reply is OK, or an error if the change was rejected.
///
/// A transaction or a script cannot wait. In this case, the reply is based on the document in force, and the change is
/// committed later.
pub(super) fn commit(
    call: &mut Call<'_>,
    args: &Args<'_>,
    edit: impl Fn(&ChangeBasis<'_>) -> Edit + Send + Sync + 'static,
) -> Result<Outcome> {
    let state = require_cluster_mode(call)?;
    let writer = require_writer(state)?;
    if call.in_exec() {
        if compute_in_force(call, state, &edit)?.is_some() {
            let log = Arc::clone(&call.core.shared.log);
            let is_accepted = state.deferred.submit(writer, Box::new(edit), move |rejected| {
                log.warning(format_args!("Cluster: {rejected}"));
            });
            if !is_accepted {
                return Err(CommandError::text("ERR Too many changes of the cluster are waiting"));
            }
        }
        return Ok(call.reply.ok());
    }
    leave_worker(call, args, move |reply| {
        let committed = writer.commit(&edit);
        committed.map_err(|error| CommandError::text(error.to_string()))?;
        Ok(reply.ok())
    })
}

/// Runs `errand`, which may wait for the coordinator, on another thread. That thread sends the client its reply.
pub(super) fn leave_worker(
    call: &Call<'_>,
    args: &Args<'_>,
    errand: impl FnOnce(&mut Reply<'_>) -> Result<Outcome> + Send + 'static,
) -> Result<Outcome> {
    let words: Vec<&[u8]> = args.arguments().collect();
    let (row, db, client) = ((call.row.spec, call.row.parent), call.session.db(), call.client());
    let worker = std::thread::current().id();
    // If no thread is free, the worker runs the errand itself. It must not wait for an installation that it has to do
    // itself.
    let errand = move |reply: &mut Reply<'_>| {
        if std::thread::current().id() == worker {
            return Err(CommandError::text("ERR No thread is free for this change, try again"));
        }
        errand(reply)
    };
    call.core.env.leave_long(LongCommand::errand(row, db, &words, client, errand));
    Ok(Outcome::Elsewhere)
}

/// The writer of changes.
///
/// # Errors
/// The threads that follow the topology have not started.
pub(super) fn require_writer(state: &ClusterState) -> Result<Arc<dyn TopologyWriter>> {
    state.writer().ok_or(CommandError::text("ERR This node does not follow the topology"))
}

/// Computes a change from the document in force and the facts that are known to this node.
fn compute_in_force(
    call: &Call<'_>,
    state: &ClusterState,
    edit: &impl Fn(&ChangeBasis<'_>) -> Edit,
) -> Result<Option<Topology>> {
    let in_force = state.in_force();
    let own = &in_force.own;
    let change = ChangeId { writer: own.run(), number: 0 };
    let empty = Topology::empty(&call.core.config.cluster.cluster_name.to_string_lossy(), change);
    let basis = ChangeBasis {
        topology: in_force.topology.as_deref().unwrap_or(&empty),
        change,
        own,
        registered: &BTreeMap::from([(own.id, own.clone())]),
        now_s: call.now().0 / 1000,
    };
    edit(&basis).map_err(|error| CommandError::text(error.to_string()))
}
