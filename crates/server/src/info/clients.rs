//! INFO clients: connections and what they hold.

use super::{Text, View};
use crate::clients::ClientRecord;
use crate::session::Session;
use std::sync::atomic::Ordering;

/// Bytes of output that Redis keeps in one element of a client's output list.
const OUTPUT_ELEMENT_BYTES: u64 = 16 * 1024;

pub(super) fn write(view: &View<'_>, text: &mut Text) {
    let seconds = view.now_ms / 1000;
    let stats = || view.shared.stats.iter();
    let input = stats().map(|stats| stats.recent_input.get(seconds)).max().unwrap_or(0);
    let output = stats().map(|stats| stats.recent_output.get(seconds)).max().unwrap_or(0);
    text.number("connected_clients", view.shared.clients.count());
    text.number("cluster_connections", 0);
    text.signed("maxclients", view.config.clients.maxclients);
    text.number("client_recent_max_input_buffer", input);
    text.number("client_recent_max_output_buffer", output);
    // The names of Redis before 5.0, which tools still read; a list has no elements here, so its
    // length is counted in Redis's.
    text.number("client_longest_output_list", output.div_ceil(OUTPUT_ELEMENT_BYTES));
    text.number("client_biggest_input_buf", input);
    text.number("blocked_clients", view.shared.clients.blocked());
    text.number("tracking_clients", 0);
    text.number("clients_in_timeout_table", 0);
}

/// Bytes that all clients take: a fixed part each, and what their buffers hold now.
pub(super) fn memory(view: &View<'_>) -> u64 {
    let each = size_of::<Session>() + size_of::<ClientRecord>();
    let buffers: i64 = view
        .shared
        .stats
        .iter()
        .map(|s| s.input_bytes.load(Ordering::Relaxed) + s.output_bytes.load(Ordering::Relaxed))
        .sum();
    view.shared.clients.count() * each as u64 + buffers.max(0) as u64
}
