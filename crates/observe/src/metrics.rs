//! Metrics that are sampled or remembered rather than summed: peaks, rates, resource usage of the
//! process.

use crate::memory::Holding;
use brisk_reactor::CpuScope;
use std::sync::atomic::{AtomicU64, Ordering};

/// All of these metrics; worker 0 keeps them up to date.
#[derive(Debug, Default)]
pub struct ServerMetrics {
    pub peak_memory: AtomicU64,
    pub startup_memory: AtomicU64,
    pub ops_per_second: AtomicU64,
    pub input_bytes_per_second: AtomicU64,
    pub output_bytes_per_second: AtomicU64,
    /// Bytes received from the primary, which are not in the counters of the event loops, and bytes queued for
    /// replicas, which are.
    pub repl_input_bytes: AtomicU64,
    pub repl_output_bytes: AtomicU64,
    pub repl_input_bytes_per_second: AtomicU64,
    pub repl_output_bytes_per_second: AtomicU64,
    /// Rounds of an event loop per second, and microseconds per round, both averaged over all
    /// workers.
    pub rounds_per_second: AtomicU64,
    pub round_us: AtomicU64,
    /// Replicas that requested a full sync, those that continued with a partial sync, and those
    /// whose partial sync was rejected.
    pub full_syncs: AtomicU64,
    pub partial_syncs: AtomicU64,
    pub refused_partial_syncs: AtomicU64,
    pub rejected_connections: AtomicU64,
    pub query_limit_disconnections: AtomicU64,
    pub output_limit_disconnections: AtomicU64,
    pub evicted_clients: AtomicU64,
    /// Clients closed by `input-total-limit`.
    pub input_total_limit_disconnections: AtomicU64,
    pub unexpected_errors: AtomicU64,
    pub denied_by_auth: AtomicU64,
    pub denied_by_command: AtomicU64,
    pub denied_by_key: AtomicU64,
    pub denied_by_channel: AtomicU64,
    /// How often a worker had too many published messages to deliver.
    pub congestions: AtomicU64,
    /// Topology documents of the coordinator that this node rejected.
    pub cluster_documents_refused: AtomicU64,
    /// Terms that this node began as the primary after a failover or a planned switch.
    pub cluster_failovers: AtomicU64,
    /// Terms that this node began after its own restart, with a dataset and without.
    pub cluster_recovered_from_disk: AtomicU64,
    pub cluster_recovered_empty: AtomicU64,
    /// Number of SAVE calls.
    pub saves: AtomicU64,
    /// Resident bytes, as last reported by the kernel.
    pub resident_memory: AtomicU64,
    /// Bytes in the allocator's pages that are in use, and in all of its pages, as last reported by
    /// the allocator.
    pub active_memory: AtomicU64,
    pub held_memory: AtomicU64,
    pub cpu_process: CpuTimes,
    pub cpu_children: CpuTimes,
    /// CPU time of the thread of worker 0.
    pub cpu_first_worker: CpuTimes,
    /// Total time in ms that memory was above `maxmemory`, up to the last time it fell below.
    pub over_limit_ms: AtomicU64,
    /// The time since which memory has been above the limit, in Unix ms; 0 if it is not.
    pub over_limit_since_ms: AtomicU64,
}

/// CPU time in microseconds.
#[derive(Debug, Default)]
pub struct CpuTimes {
    pub user_us: AtomicU64,
    pub system_us: AtomicU64,
}

impl CpuTimes {
    fn sample(&self, of: CpuScope) {
        let times = brisk_reactor::cpu_times(of);
        self.user_us.store(times.user_us, Ordering::Relaxed);
        self.system_us.store(times.system_us, Ordering::Relaxed);
    }
}

impl ServerMetrics {
    /// Samples the resource usage of the process from the kernel and the allocator. INFO should not
    /// pay for these system calls, so worker 0 makes them.
    pub fn sample_process(&self) {
        self.sample_memory();
        self.cpu_process.sample(CpuScope::Process);
        self.cpu_children.sample(CpuScope::Children);
        self.cpu_first_worker.sample(CpuScope::Thread);
    }

    /// The part of the sampling that any thread may do.
    pub fn sample_memory(&self) {
        let holding = Holding::query(crate::memory::used(), crate::memory::resident());
        self.resident_memory.store(holding.resident, Ordering::Relaxed);
        self.active_memory.store(holding.active, Ordering::Relaxed);
        self.held_memory.store(holding.held, Ordering::Relaxed);
    }

    /// Records whether memory is above its limit at `now_ms`.
    pub fn sample_limit(&self, over: bool, now_ms: u64) {
        let since = self.over_limit_since_ms.load(Ordering::Relaxed);
        if over && since == 0 {
            self.over_limit_since_ms.store(now_ms, Ordering::Relaxed);
        } else if !over && since != 0 {
            self.over_limit_since_ms.store(0, Ordering::Relaxed);
            self.over_limit_ms.fetch_add(now_ms.saturating_sub(since), Ordering::Relaxed);
        }
    }

    /// Returns the metrics that CONFIG RESETSTAT resets.
    pub fn resettable(&self) -> [&AtomicU64; 15] {
        [
            &self.repl_input_bytes,
            &self.repl_output_bytes,
            &self.full_syncs,
            &self.partial_syncs,
            &self.refused_partial_syncs,
            &self.rejected_connections,
            &self.query_limit_disconnections,
            &self.output_limit_disconnections,
            &self.evicted_clients,
            &self.input_total_limit_disconnections,
            &self.unexpected_errors,
            &self.congestions,
            &self.saves,
            &self.over_limit_ms,
            &self.over_limit_since_ms,
        ]
    }
}
