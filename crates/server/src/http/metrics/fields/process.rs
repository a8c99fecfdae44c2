//! Fields of INFO about the process and its clients.

use super::{Row, row};
use crate::http::metrics::families::Kind::{Counter, Gauge};

pub(super) const SERVER: &[Row] = &[
    row(Gauge, "uptime_in_seconds", "redis_uptime_in_seconds", "Seconds since the start."),
    row(Gauge, "process_id", "redis_process_id", "Id of the process."),
    row(Gauge, "hz", "redis_hz", "Background rounds per second."),
    row(Gauge, "configured_hz", "redis_configured_hz", "The same as configured."),
    row(
        Gauge,
        "io_threads_active",
        "redis_io_threads_active",
        "0: workers read and write by themselves.",
    ),
];

pub(super) const CLIENTS: &[Row] = &[
    row(
        Gauge,
        "connected_clients",
        "redis_connected_clients",
        "Connections of clients, without replicas.",
    ),
    row(Gauge, "blocked_clients", "redis_blocked_clients", "Clients that wait for keys."),
    row(Gauge, "maxclients", "redis_max_clients", "Clients that may be connected at once."),
    row(
        Gauge,
        "tracking_clients",
        "redis_tracking_clients",
        "Clients that are told of changes to what they cache.",
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
    row(Gauge, "total_blocking_keys", "redis_total_blocking_keys", "Keys that clients wait for."),
    row(
        Gauge,
        "total_blocking_keys_on_nokey",
        "redis_total_blocking_keys_on_nokey",
        "Keys whose end clients wait for.",
    ),
    row(
        Gauge,
        "client_longest_output_list",
        "redis_client_longest_output_list",
        "Longest output of a client in the last seconds, in units of 16 KiB.",
    ),
    row(
        Gauge,
        "client_biggest_input_buf",
        "redis_client_biggest_input_buf",
        "Largest input of a client in the last seconds, in bytes.",
    ),
    row(
        Gauge,
        "client_recent_max_output_buffer",
        "redis_client_recent_max_output_buffer_bytes",
        "Largest output of a client in the last seconds.",
    ),
    row(
        Gauge,
        "client_recent_max_input_buffer",
        "redis_client_recent_max_input_buffer_bytes",
        "Largest input of a client in the last seconds.",
    ),
    row(Gauge, "admin_clients", "brisk_admin_clients", "Connections of the admin lane."),
];

pub(super) const MEMORY: &[Row] = &[
    row(
        Gauge,
        "used_memory",
        "redis_memory_used_bytes",
        "Memory in use, as compared with maxmemory.",
    ),
    row(
        Gauge,
        "used_memory_rss",
        "redis_memory_used_rss_bytes",
        "Memory of the process that is resident.",
    ),
    row(
        Gauge,
        "used_memory_peak",
        "redis_memory_used_peak_bytes",
        "The most memory that was in use.",
    ),
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
        "Memory that holds no data.",
    ),
    row(
        Gauge,
        "used_memory_startup",
        "redis_memory_used_startup_bytes",
        "Memory in use after the start.",
    ),
    row(Gauge, "used_memory_dataset", "redis_memory_used_dataset_bytes", "Memory that holds data."),
    row(
        Gauge,
        "number_of_cached_scripts",
        "redis_number_of_cached_scripts",
        "Scripts that are cached.",
    ),
    row(Gauge, "number_of_functions", "redis_number_of_functions", "Functions that are loaded."),
    row(
        Gauge,
        "number_of_libraries",
        "redis_number_of_libraries",
        "Libraries of functions that are loaded.",
    ),
    row(Gauge, "maxmemory", "redis_memory_max_bytes", "The limit on memory; 0 is none."),
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
        "Memory that the allocator has given out.",
    ),
    row(
        Gauge,
        "allocator_resident",
        "redis_allocator_resident_bytes",
        "Memory of the allocator that is resident.",
    ),
    row(
        Gauge,
        "allocator_frag_ratio",
        "redis_allocator_frag_ratio",
        "Active over allocated memory.",
    ),
    row(
        Gauge,
        "allocator_frag_bytes",
        "redis_allocator_frag_bytes",
        "Active without allocated memory.",
    ),
    row(Gauge, "allocator_rss_ratio", "redis_allocator_rss_ratio", "Resident over active memory."),
    row(
        Gauge,
        "allocator_rss_bytes",
        "redis_allocator_rss_bytes",
        "Resident without active memory.",
    ),
    row(
        Gauge,
        "mem_fragmentation_ratio",
        "redis_mem_fragmentation_ratio",
        "Resident over used memory.",
    ),
    row(
        Gauge,
        "mem_fragmentation_ratio",
        "redis_memory_fragmentation_ratio",
        "The same by the name that older dashboards use.",
    ),
    row(
        Gauge,
        "mem_fragmentation_bytes",
        "redis_mem_fragmentation_bytes",
        "Resident without used memory.",
    ),
    row(
        Gauge,
        "mem_clients_slaves",
        "redis_mem_clients_slaves",
        "Memory of the buffers of replicas, in bytes.",
    ),
    row(
        Gauge,
        "mem_clients_normal",
        "redis_mem_clients_normal",
        "Memory of the buffers of clients, in bytes.",
    ),
    row(
        Gauge,
        "mem_cluster_links",
        "redis_mem_cluster_links_bytes",
        "Memory of links of a cluster.",
    ),
    row(
        Gauge,
        "mem_aof_buffer",
        "redis_mem_aof_buffer_bytes",
        "Memory that waits to be written to the append-only file.",
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
        "Values that wait to be freed in the background.",
    ),
    row(
        Gauge,
        "lazyfreed_objects",
        "redis_lazyfreed_objects",
        "Values that were freed in the background.",
    ),
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
        "Bytes of replies that the kernel has not taken.",
    ),
    row(
        Gauge,
        "mem_clients_input",
        "brisk_clients_input_bytes",
        "Memory of requests that are not executed yet.",
    ),
];

pub(super) const CPU: &[Row] = &[
    row(Counter, "used_cpu_sys", "redis_cpu_sys_seconds_total", "Processor time in the kernel."),
    row(Counter, "used_cpu_user", "redis_cpu_user_seconds_total", "Processor time of the program."),
    row(
        Counter,
        "used_cpu_sys_children",
        "redis_cpu_sys_children_seconds_total",
        "Processor time of children in the kernel.",
    ),
    row(
        Counter,
        "used_cpu_user_children",
        "redis_cpu_user_children_seconds_total",
        "Processor time of children.",
    ),
    row(
        Counter,
        "used_cpu_sys_main_thread",
        "redis_cpu_sys_main_thread_seconds_total",
        "Processor time of the first worker in the kernel.",
    ),
    row(
        Counter,
        "used_cpu_user_main_thread",
        "redis_cpu_user_main_thread_seconds_total",
        "Processor time of the first worker.",
    ),
];
