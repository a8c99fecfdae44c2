//! Fields of INFO about the process and its clients.

use super::{Row, row};
use crate::http::metrics::families::Kind::{Counter, Gauge};

pub(super) const SERVER: &[Row] = &[
    row(Gauge, "uptime_in_seconds", "redis_uptime_in_seconds", "Seconds since startup."),
    row(Gauge, "process_id", "redis_process_id", "Process ID."),
    row(Gauge, "hz", "redis_hz", "Rounds of background work per second."),
    row(Gauge, "configured_hz", "redis_configured_hz", "Configured value of hz."),
    row(
        Gauge,
        "io_threads_active",
        "redis_io_threads_active",
        "0: workers do their own reads and writes.",
    ),
];

pub(super) const CLIENTS: &[Row] = &[
    row(
        Gauge,
        "connected_clients",
        "redis_connected_clients",
        "Connected clients, without replicas.",
    ),
    row(
        Gauge,
        "blocked_clients",
        "redis_blocked_clients",
        "Clients that wait in a blocking command, or because of CLIENT PAUSE.",
    ),
    row(Gauge, "maxclients", "redis_max_clients", "Maximum number of connected clients."),
    row(
        Gauge,
        "tracking_clients",
        "redis_tracking_clients",
        "Clients that use client-side caching.",
    ),
    row(
        Gauge,
        "clients_in_timeout_table",
        "redis_clients_in_timeout_table",
        "0: there is no such table.",
    ),
    row(Gauge, "pubsub_clients", "redis_pubsub_clients", "Clients with a subscription."),
    row(Gauge, "watching_clients", "redis_watching_clients", "Clients that watch keys."),
    row(Gauge, "total_watched_keys", "redis_total_watched_keys", "Keys that are watched."),
    row(
        Gauge,
        "total_blocking_keys",
        "redis_total_blocking_keys",
        "Keys on which clients are blocked.",
    ),
    row(
        Gauge,
        "total_blocking_keys_on_nokey",
        "redis_total_blocking_keys_on_nokey",
        "Keys on which clients are blocked until they are deleted.",
    ),
    row(
        Gauge,
        "client_longest_output_list",
        "redis_client_longest_output_list",
        "Largest output buffer of a client in recent seconds, in units of 16 KiB.",
    ),
    row(
        Gauge,
        "client_biggest_input_buf",
        "redis_client_biggest_input_buf",
        "Largest input buffer of a client in recent seconds, in bytes.",
    ),
    row(
        Gauge,
        "client_recent_max_output_buffer",
        "redis_client_recent_max_output_buffer_bytes",
        "Largest output buffer of a client in recent seconds.",
    ),
    row(
        Gauge,
        "client_recent_max_input_buffer",
        "redis_client_recent_max_input_buffer_bytes",
        "Largest input buffer of a client in recent seconds.",
    ),
    row(Gauge, "admin_clients", "brisk_admin_clients", "Connections to the admin lane."),
];

pub(super) const MEMORY: &[Row] = &[
    row(Gauge, "used_memory", "redis_memory_used_bytes", "Memory in use, which maxmemory limits."),
    row(Gauge, "used_memory_rss", "redis_memory_used_rss_bytes", "Resident memory of the process."),
    row(Gauge, "used_memory_peak", "redis_memory_used_peak_bytes", "Peak memory in use."),
    row(Gauge, "used_memory_lua", "redis_memory_used_lua_bytes", "Memory of script interpreters."),
    row(
        Gauge,
        "used_memory_vm_eval",
        "redis_memory_used_vm_eval_bytes",
        "Memory of the interpreters of EVAL.",
    ),
    row(
        Gauge,
        "used_memory_vm_functions",
        "redis_memory_used_vm_functions_bytes",
        "Memory of the interpreters of functions.",
    ),
    row(
        Gauge,
        "used_memory_scripts_eval",
        "redis_memory_used_scripts_eval_bytes",
        "Memory of cached scripts.",
    ),
    row(
        Gauge,
        "used_memory_scripts",
        "redis_memory_used_scripts_bytes",
        "Memory of scripts and functions.",
    ),
    row(
        Gauge,
        "used_memory_functions",
        "redis_memory_used_functions_bytes",
        "Memory of functions.",
    ),
    row(
        Gauge,
        "used_memory_overhead",
        "redis_memory_used_overhead_bytes",
        "Memory that is not used for data.",
    ),
    row(
        Gauge,
        "used_memory_startup",
        "redis_memory_used_startup_bytes",
        "Memory in use after startup.",
    ),
    row(Gauge, "used_memory_dataset", "redis_memory_used_dataset_bytes", "Memory used for data."),
    row(Gauge, "number_of_cached_scripts", "redis_number_of_cached_scripts", "Cached scripts."),
    row(Gauge, "number_of_functions", "redis_number_of_functions", "Loaded functions."),
    row(Gauge, "number_of_libraries", "redis_number_of_libraries", "Loaded function libraries."),
    row(Gauge, "maxmemory", "redis_memory_max_bytes", "Memory limit; 0 is unlimited."),
    row(Gauge, "total_system_memory", "redis_total_system_memory_bytes", "Memory of the machine."),
    row(
        Gauge,
        "allocator_active",
        "redis_allocator_active_bytes",
        "Memory in the allocator's pages.",
    ),
    row(
        Gauge,
        "allocator_allocated",
        "redis_allocator_allocated_bytes",
        "Memory allocated by the allocator.",
    ),
    row(
        Gauge,
        "allocator_resident",
        "redis_allocator_resident_bytes",
        "Resident memory of the allocator.",
    ),
    row(
        Gauge,
        "allocator_frag_ratio",
        "redis_allocator_frag_ratio",
        "Active memory divided by allocated memory.",
    ),
    row(
        Gauge,
        "allocator_frag_bytes",
        "redis_allocator_frag_bytes",
        "Active memory minus allocated memory.",
    ),
    row(
        Gauge,
        "allocator_rss_ratio",
        "redis_allocator_rss_ratio",
        "Resident memory divided by active memory.",
    ),
    row(
        Gauge,
        "allocator_rss_bytes",
        "redis_allocator_rss_bytes",
        "Resident memory minus active memory.",
    ),
    row(
        Gauge,
        "mem_fragmentation_ratio",
        "redis_mem_fragmentation_ratio",
        "Resident memory divided by used memory.",
    ),
    row(
        Gauge,
        "mem_fragmentation_ratio",
        "redis_memory_fragmentation_ratio",
        "The same ratio, under the name that older dashboards use.",
    ),
    row(
        Gauge,
        "mem_fragmentation_bytes",
        "redis_mem_fragmentation_bytes",
        "Resident memory minus used memory.",
    ),
    row(
        Gauge,
        "mem_clients_slaves",
        "redis_mem_clients_slaves",
        "Memory of replica buffers, in bytes.",
    ),
    row(
        Gauge,
        "mem_clients_normal",
        "redis_mem_clients_normal",
        "Memory of client buffers, in bytes.",
    ),
    row(Gauge, "mem_cluster_links", "redis_mem_cluster_links_bytes", "Memory of cluster links."),
    row(
        Gauge,
        "mem_aof_buffer",
        "redis_mem_aof_buffer_bytes",
        "Memory waiting to be written to the append-only file.",
    ),
    row(
        Gauge,
        "mem_replication_backlog",
        "redis_mem_replication_backlog_bytes",
        "Memory of the replication backlog.",
    ),
    row(
        Gauge,
        "mem_total_replication_buffers",
        "redis_mem_total_replication_buffers_bytes",
        "Memory of all buffers for replicas.",
    ),
    row(
        Gauge,
        "mem_not_counted_for_evict",
        "redis_mem_not_counted_for_eviction_bytes",
        "Memory that maxmemory does not count.",
    ),
    row(
        Gauge,
        "lazyfree_pending_objects",
        "redis_lazyfree_pending_objects",
        "Values waiting to be freed in the background.",
    ),
    row(Gauge, "lazyfreed_objects", "redis_lazyfreed_objects", "Values freed in the background."),
    row(
        Gauge,
        "active_defrag_running",
        "redis_active_defrag_running",
        "0: memory is not defragmented.",
    ),
    row(
        Gauge,
        "clients_output_bytes",
        "brisk_clients_output_bytes",
        "Bytes of replies not yet passed to the kernel.",
    ),
    row(
        Gauge,
        "mem_clients_input",
        "brisk_clients_input_bytes",
        "Memory of requests that are not yet executed.",
    ),
];

pub(super) const CPU: &[Row] = &[
    row(Counter, "used_cpu_sys", "redis_cpu_sys_seconds_total", "CPU time in the kernel."),
    row(Counter, "used_cpu_user", "redis_cpu_user_seconds_total", "CPU time in user mode."),
    row(
        Counter,
        "used_cpu_sys_children",
        "redis_cpu_sys_children_seconds_total",
        "CPU time of children in the kernel.",
    ),
    row(
        Counter,
        "used_cpu_user_children",
        "redis_cpu_user_children_seconds_total",
        "CPU time of children in user mode.",
    ),
    row(
        Counter,
        "used_cpu_sys_main_thread",
        "redis_cpu_sys_main_thread_seconds_total",
        "CPU time of the first worker in the kernel.",
    ),
    row(
        Counter,
        "used_cpu_user_main_thread",
        "redis_cpu_user_main_thread_seconds_total",
        "CPU time of the first worker in user mode.",
    ),
];
