//! Figures that are sampled or remembered rather than summed: peaks, rates, process usage.

use std::sync::atomic::AtomicU64;

/// Samples kept for a rate.
pub const RATE_SAMPLES: usize = 16;

/// All of them; worker 0 keeps them up to date.
#[derive(Debug, Default)]
pub struct Figures {
    pub peak_memory: AtomicU64,
    pub startup_memory: AtomicU64,
    pub ops_per_second: AtomicU64,
    pub input_bytes_per_second: AtomicU64,
    pub output_bytes_per_second: AtomicU64,
    pub longest_input: AtomicU64,
    pub longest_output: AtomicU64,
    pub rejected_connections: AtomicU64,
    pub query_limit_disconnections: AtomicU64,
    pub output_limit_disconnections: AtomicU64,
    pub evicted_clients: AtomicU64,
    pub unexpected_errors: AtomicU64,
    pub denied_by_auth: AtomicU64,
    pub config_rewrite_status: AtomicU64,
}

impl Figures {
    /// What CONFIG RESETSTAT sets to zero.
    pub fn resettable(&self) -> [&AtomicU64; 5] {
        [
            &self.rejected_connections,
            &self.query_limit_disconnections,
            &self.output_limit_disconnections,
            &self.evicted_clients,
            &self.unexpected_errors,
        ]
    }
}
