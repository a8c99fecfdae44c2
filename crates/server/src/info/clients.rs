//! INFO clients: connections and their resources.

use super::View;
use brisk_observe::text::Text;

/// Bytes of output that Redis keeps in one element of a client's output list.
const OUTPUT_ELEMENT_BYTES: u64 = 16 * 1024;

pub(super) fn write(view: &View<'_>, text: &mut Text) {
    let seconds = view.now_ms / 1000;
    let stats = || view.shared.observe.stats.iter();
    let input = stats().map(|stats| stats.recent_input.get(seconds)).max().unwrap_or(0);
    let output = stats().map(|stats| stats.recent_output.get(seconds)).max().unwrap_or(0);
    // Replicas do not count as clients here, as in Redis.
    let replicas = view.shared.replication.replicas.following() as u64;
    text.number("connected_clients", view.shared.clients.count().saturating_sub(replicas));
    text.number("cluster_connections", 0);
    text.signed("maxclients", view.config.clients.maxclients);
    text.number("admin_clients", view.shared.clients.admins());
    text.signed("admin_maxclients", view.config.clients.admin_maxclients);
    text.number("client_recent_max_input_buffer", input);
    text.number("client_recent_max_output_buffer", output);
    // These field names are from Redis before 5.0, but tools still read them. Brisk's output list has no elements, so
    // its length is converted to the number of elements in Redis.
    text.number("client_longest_output_list", output.div_ceil(OUTPUT_ELEMENT_BYTES));
    text.number("client_biggest_input_buf", input);
    text.number("blocked_clients", view.shared.clients.blocked());
    let tracking = view.shared.keyspace.tracking();
    // Fields of later Redis versions.
    text.number("pubsub_clients", view.shared.clients.subscribed());
    text.number("watching_clients", view.shared.keyspace.watching_clients() as u64);
    text.number("total_watched_keys", view.shared.keyspace.watched_keys() as u64);
    text.number("tracking_clients", tracking.client_count() as u64);
    text.number("clients_in_timeout_table", 0);
    let keyspace = &view.shared.keyspace;
    text.number("total_blocking_keys", keyspace.blocking_keys() as u64);
    text.number("total_blocking_keys_on_nokey", keyspace.blocking_keys_on_nokey() as u64);
}
