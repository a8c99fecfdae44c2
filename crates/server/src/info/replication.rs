//! INFO replication: the replicas of a primary, and the primary of a replica.

use super::View;
use brisk_config::value::PrimaryAddress;
use brisk_engine::Dialect;
use brisk_node::replication::needs_good;
use brisk_node::replication::replica::ReplicaStage;
use brisk_node::replication::replicas::ReplicaHandle;
use brisk_node::replication::upstream::state::UpstreamPhase;
use brisk_observe::text::Text;

/// The id that is shown if there is no history.
const NO_ID: &str = "0000000000000000000000000000000000000000";

pub(super) fn write(view: &View<'_>, text: &mut Text) {
    let primary = view.config.replication.replicaof.as_ref();
    text.word("role", if primary.is_some() { "slave" } else { "master" });
    if let Some(address) = primary {
        of_primary(view, address, text);
    }
    of_replicas(view, text);
    of_history(view, text);
}

/// Writes the link to the primary, and the settings of this replica.
fn of_primary(view: &View<'_>, address: &PrimaryAddress, text: &mut Text) {
    let (shared, config) = (view.shared, &view.config.replication);
    let primary = &shared.replication.upstream;
    let (phase, down_since) = (primary.phase(), primary.down_since_ms());
    let is_up = phase == UpstreamPhase::Connected;
    let seconds_since = |moment_ms: u64| view.now_ms.saturating_sub(moment_ms) / 1000;
    text.word("master_host", &address.host.to_string_lossy());
    text.number("master_port", u64::from(address.port));
    text.word("master_link_status", if is_up { "up" } else { "down" });
    let heard = is_up.then(|| seconds_since(primary.last_io_ms()).cast_signed());
    text.signed("master_last_io_seconds_ago", heard.unwrap_or(-1));
    text.number("master_sync_in_progress", u64::from(phase == UpstreamPhase::Sync));
    // If there has not been a stream so far, both values are 1 in Redis.
    let (read, applied) = match primary.has_been_up() {
        true => (primary.read_offset(), shared.replication.applied(shared.keyspace.journal())),
        false => (1, 1),
    };
    text.number("slave_read_repl_offset", read);
    text.number("slave_repl_offset", applied);
    if phase == UpstreamPhase::Sync {
        let incoming = primary.incoming();
        let total = incoming.total.unwrap_or(0);
        text.number("master_sync_total_bytes", total);
        text.number("master_sync_read_bytes", incoming.read);
        // The value is negative as long as the total is not known.
        let left = total.cast_signed().wrapping_sub(incoming.read.cast_signed());
        text.signed("master_sync_left_bytes", left);
        let part = if total == 0 { 0.0 } else { incoming.read as f64 / total as f64 };
        text.ratio("master_sync_perc", part * 100.0);
        text.number("master_sync_last_io_seconds_ago", seconds_since(incoming.last_ms));
    }
    if !is_up {
        let down = down_since.map(|since| seconds_since(since).cast_signed());
        text.signed("master_link_down_since_seconds", down.unwrap_or(-1));
    }
    text.signed("slave_priority", config.replica_priority);
    text.number("slave_read_only", u64::from(config.replica_read_only));
    text.number("replica_announced", u64::from(config.replica_announced));
}

/// Writes the replicas of this server.
fn of_replicas(view: &View<'_>, text: &mut Text) {
    let replicas = view.shared.replication.replicas.list();
    let lag = |replica: &ReplicaHandle| match replica.progress.stage() {
        ReplicaStage::Online => view.now_ms.saturating_sub(replica.acked_ms) / 1000,
        ReplicaStage::Waits | ReplicaStage::GetsSnapshot => 0,
    };
    text.number("connected_slaves", replicas.len() as u64);
    let settings = &view.config.replication;
    if needs_good(settings) {
        let good = view.shared.replication.count_good(settings, view.now_ms);
        text.number("min_slaves_good_slaves", good);
    }
    for (number, replica) in replicas.iter().enumerate() {
        let ip = replica.ip.map(|ip| ip.to_string()).unwrap_or_default();
        let state = replica.progress.stage().word();
        text.word(
            &format!("slave{number}"),
            &format!(
                "ip={ip},port={},state={state},offset={},lag={}",
                replica.port,
                replica.acked,
                lag(replica)
            ),
        );
    }
}

/// Writes the ids of the stream, its offset, and the backlog.
fn of_history(view: &View<'_>, text: &mut Text) {
    let (replication, journal) = (&view.shared.replication, view.shared.keyspace.journal());
    let ids = replication.history.ids();
    let former = ids.former.as_ref();
    if view.config.process.dialect == Dialect::Valkey {
        // The number of replicas that wait for a second connection for the dataset. Brisk does not use such
        // connections.
        text.number("replicas_waiting_psync", 0);
    }
    text.word("master_failover_state", replication.failover.word());
    text.word("master_replid", &ids.id);
    text.word("master_replid2", former.map_or(NO_ID, |former| former.id.as_str()));
    let kept = replication.stream.kept();
    // Read the offset after the backlog, so that the offset is not smaller than the end of the backlog.
    let follows = view.shared.conditions.is_replica() && replication.upstream.has_been_up();
    let end = if follows { replication.applied(journal) } else { replication.offset(journal) };
    text.number("master_repl_offset", end);
    // The offset of the first byte that is not shared, counted from 1.
    let differs = former.map_or(-1, |former| former.end.cast_signed() + 1);
    text.signed("second_repl_offset", differs);
    text.number("repl_backlog_active", u64::from(kept.is_some()));
    text.number("repl_backlog_size", view.config.replication.repl_backlog_size);
    // In Redis, the first byte has offset 1.
    let before = kept.map(|kept| replication.history.offset(kept.first));
    text.number("repl_backlog_first_byte_offset", before.map_or(0, |before| before + 1));
    text.number("repl_backlog_histlen", before.map_or(0, |before| end.saturating_sub(before)));
}
