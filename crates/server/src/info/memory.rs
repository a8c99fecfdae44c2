//! INFO memory: memory usage by purpose.

use super::View;
use brisk_config::choice::Choice;
use brisk_observe::memory::{Holding, output_total_limit};
use brisk_observe::text::Text;
use std::sync::atomic::Ordering;

/// Bytes of one slot of a database.
const SLOT_BYTES: u64 = 64;
/// The number of slots of a database.
const SLOTS: u64 = 16_384;
/// Bytes of a slot's table per key: a 64-byte bucket has room for seven keys and is three quarters full.
const TABLE_BYTES_PER_KEY: u64 = 12;

pub(super) fn write(view: &View<'_>, text: &mut Text) {
    let metrics = &view.shared.observe.metrics;
    let used = view.used;
    let rss = metrics.resident_memory.load(Ordering::Relaxed);
    let peak = metrics.peak_memory.fetch_max(used, Ordering::Relaxed).max(used);
    let startup = metrics.startup_memory.load(Ordering::Relaxed);
    let clients = brisk_node::core::memory::of_clients(view.shared);
    let (backlog, beyond) = view.shared.replication.stream.memory();
    let overhead = startup + clients + tables(view) + backlog + beyond;
    let dataset = used.saturating_sub(overhead);
    let beyond_startup = used.saturating_sub(startup).max(1);
    text.number("used_memory", used);
    text.human("used_memory_human", used);
    text.number("used_memory_rss", rss);
    text.human("used_memory_rss_human", rss);
    text.number("used_memory_peak", peak);
    text.human("used_memory_peak_human", peak);
    text.percent("used_memory_peak_perc", used as f64 / peak.max(1) as f64 * 100.0);
    text.number("used_memory_overhead", overhead);
    text.number("used_memory_startup", startup);
    text.number("used_memory_dataset", dataset);
    text.percent("used_memory_dataset_perc", dataset as f64 / beyond_startup as f64 * 100.0);
    let holding = Holding {
        allocated: used,
        active: metrics.active_memory.load(Ordering::Relaxed),
        held: metrics.held_memory.load(Ordering::Relaxed),
        resident: rss,
    };
    text.number("allocator_allocated", holding.allocated);
    text.number("allocator_active", holding.active);
    text.number("allocator_resident", holding.held);
    let system = brisk_observe::memory::total_system();
    text.number("total_system_memory", system);
    text.human("total_system_memory_human", system);
    scripting(view, text);
    let max = view.config.memory.maxmemory;
    text.number("maxmemory", max);
    text.human("maxmemory_human", max);
    text.word("maxmemory_policy", view.config.memory.maxmemory_policy.word());
    fragmentation(&holding, text);
    let not_evicted = view.shared.replication.buffered()
        + view.shared.persistence.aof.buffered()
        + brisk_observe::memory::not_counted_for_eviction(output_total_limit(view.config));
    text.number("mem_not_counted_for_evict", not_evicted);
    text.number("mem_replication_backlog", backlog);
    text.number("mem_total_replication_buffers", backlog + beyond);
    let replicas = of_replicas(view);
    text.number("mem_clients_slaves", replicas + beyond);
    text.number("mem_clients_normal", clients.saturating_sub(replicas));
    text.number("mem_cluster_links", 0);
    text.number("mem_aof_buffer", view.shared.persistence.aof.buffered());
    text.word("mem_allocator", brisk_node::core::memory::ALLOCATOR);
    text.number("active_defrag_running", 0);
    text.number("lazyfree_pending_objects", view.shared.threads.freeing.pending());
    text.number("lazyfreed_objects", view.shared.threads.freeing.freed());
}

/// Bytes of the sessions of replicas, without the stream, which they share. O(replicas).
fn of_replicas(view: &View<'_>) -> u64 {
    let members = view.shared.replication.replicas.list();
    members.iter().map(|member| member.client.weight.bytes()).sum()
}

/// Bytes of the keyspace's own structures. Exact for slots, an estimate for tables. O(databases).
fn tables(view: &View<'_>) -> u64 {
    let keyspace = &view.shared.keyspace;
    let databases = keyspace.databases().zip(&view.totals.databases);
    databases
        .filter(|(db, _)| keyspace.database_if_used(*db).is_some())
        .map(|(_, totals)| SLOTS * SLOT_BYTES + totals.keys * TABLE_BYTES_PER_KEY)
        .sum()
}

fn scripting(view: &View<'_>, text: &mut Text) {
    let shared = view.shared;
    let (eval, functions) = shared.scripting.running.interpreter_bytes();
    let (scripts, script_bytes, _) = shared.scripting.scripts.metrics();
    let libraries = shared.scripting.libraries.now();
    let function_bytes = libraries.bytes();
    text.number("used_memory_lua", eval);
    text.number("used_memory_vm_eval", eval);
    text.human("used_memory_lua_human", eval);
    text.number("used_memory_scripts_eval", script_bytes);
    text.number("number_of_cached_scripts", scripts);
    text.number("number_of_functions", libraries.function_count() as u64);
    text.number("number_of_libraries", libraries.libraries.len() as u64);
    text.number("used_memory_vm_functions", functions);
    text.number("used_memory_vm_total", eval + functions);
    text.human("used_memory_vm_total_human", eval + functions);
    text.number("used_memory_functions", function_bytes);
    text.number("used_memory_scripts", script_bytes + function_bytes);
    text.human("used_memory_scripts_human", script_bytes + function_bytes);
}

fn fragmentation(holding: &Holding, text: &mut Text) {
    let [(frag_ratio, frag_bytes), (rss_ratio, rss_bytes), (over_ratio, over_bytes)] =
        holding.gaps();
    text.ratio("allocator_frag_ratio", frag_ratio);
    text.signed("allocator_frag_bytes", frag_bytes);
    text.ratio("allocator_rss_ratio", rss_ratio);
    text.signed("allocator_rss_bytes", rss_bytes);
    text.ratio("rss_overhead_ratio", over_ratio);
    text.signed("rss_overhead_bytes", over_bytes);
    let (ratio, bytes) = holding.gap();
    text.ratio("mem_fragmentation_ratio", ratio);
    text.signed("mem_fragmentation_bytes", bytes);
}
