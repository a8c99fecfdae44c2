//! The memory limit, eviction, expiry and freeing. The settings and their directives.

use crate::choice::EvictionPolicy;
use crate::directive::{Directive, INT_MAX, LONG_MAX, SIZE_MAX, choice, field};

/// The memory limit, eviction, expiry and freeing.
#[derive(Clone, Default, PartialEq)]
pub struct Memory {
    /// `maxmemory`: bytes of data; 0 for no limit.
    pub maxmemory: u64,
    /// `maxmemory-policy`: what makes room.
    pub maxmemory_policy: EvictionPolicy,
    /// `maxmemory-samples`: keys looked at per eviction.
    pub maxmemory_samples: i64,
    /// `maxmemory-eviction-tenacity`: 0 evicts with the least delay, 100 without regard to it.
    pub maxmemory_eviction_tenacity: i64,
    /// `lfu-log-factor`: how slowly the access counter grows.
    pub lfu_log_factor: i64,
    /// `lfu-decay-time`: minutes after which the access counter falls by one.
    pub lfu_decay_time_min: i64,
    /// `active-expire-effort`: how much of its time the expiry cycle may take.
    pub active_expire_effort: i64,
    /// `lazyfree-lazy-eviction`: free evicted values in the background.
    pub lazyfree_lazy_eviction: bool,
    /// `lazyfree-lazy-expire`: free expired values in the background.
    pub lazyfree_lazy_expire: bool,
    /// `lazyfree-lazy-server-del`: free overwritten values in the background.
    pub lazyfree_lazy_server_del: bool,
    /// `lazyfree-lazy-user-del`: DEL acts like UNLINK.
    pub lazyfree_lazy_user_del: bool,
    /// `lazyfree-lazy-user-flush`: FLUSHALL and FLUSHDB act as with ASYNC.
    pub lazyfree_lazy_user_flush: bool,
    /// `activerehashing`: kept for old files: tables grow without it.
    pub activerehashing: bool,
    /// `activedefrag`: move values out of fragmented memory.
    pub activedefrag: bool,
    /// `active-defrag-ignore-bytes`: bytes of fragmentation below which nothing is moved.
    pub active_defrag_ignore_bytes: u64,
    /// `active-defrag-threshold-lower`: percent of fragmentation at which moving starts.
    pub active_defrag_threshold_lower: i64,
    /// `active-defrag-threshold-upper`: percent of fragmentation at which moving takes most effort.
    pub active_defrag_threshold_upper: i64,
    /// `active-defrag-cycle-min`: percent of time at the lower threshold.
    pub active_defrag_cycle_min: i64,
    /// `active-defrag-cycle-max`: percent of time at the upper threshold.
    pub active_defrag_cycle_max: i64,
    /// `active-defrag-max-scan-fields`: elements of one value moved in one go.
    pub active_defrag_max_scan_fields: i64,
}

pub(super) const DIRECTIVES: &[Directive] = &[
    Directive::memory("maxmemory", "0", (0, u64::MAX), field!(memory.maxmemory)),
    Directive::choice("maxmemory-policy", "noeviction", choice!(memory.maxmemory_policy)),
    Directive::integer("maxmemory-samples", "5", (1, INT_MAX), field!(memory.maxmemory_samples)),
    Directive::integer(
        "maxmemory-eviction-tenacity",
        "10",
        (0, 100),
        field!(memory.maxmemory_eviction_tenacity),
    ),
    Directive::integer("lfu-log-factor", "10", (0, INT_MAX), field!(memory.lfu_log_factor)),
    Directive::integer("lfu-decay-time", "1", (0, INT_MAX), field!(memory.lfu_decay_time_min)),
    Directive::integer("active-expire-effort", "1", (1, 10), field!(memory.active_expire_effort)),
    Directive::switch("lazyfree-lazy-eviction", "no", field!(memory.lazyfree_lazy_eviction)),
    Directive::switch("lazyfree-lazy-expire", "no", field!(memory.lazyfree_lazy_expire)),
    Directive::switch("lazyfree-lazy-server-del", "no", field!(memory.lazyfree_lazy_server_del)),
    Directive::switch("lazyfree-lazy-user-del", "no", field!(memory.lazyfree_lazy_user_del)),
    Directive::switch("lazyfree-lazy-user-flush", "no", field!(memory.lazyfree_lazy_user_flush)),
    Directive::switch("activerehashing", "yes", field!(memory.activerehashing)).ignored(),
    Directive::switch("activedefrag", "no", field!(memory.activedefrag)).planned(),
    Directive::memory(
        "active-defrag-ignore-bytes",
        "100mb",
        (1, SIZE_MAX),
        field!(memory.active_defrag_ignore_bytes),
    )
    .planned(),
    Directive::integer(
        "active-defrag-threshold-lower",
        "10",
        (0, 1000),
        field!(memory.active_defrag_threshold_lower),
    )
    .planned(),
    Directive::integer(
        "active-defrag-threshold-upper",
        "100",
        (0, 1000),
        field!(memory.active_defrag_threshold_upper),
    )
    .planned(),
    Directive::integer(
        "active-defrag-cycle-min",
        "1",
        (1, 99),
        field!(memory.active_defrag_cycle_min),
    )
    .planned(),
    Directive::integer(
        "active-defrag-cycle-max",
        "25",
        (1, 99),
        field!(memory.active_defrag_cycle_max),
    )
    .planned(),
    Directive::integer(
        "active-defrag-max-scan-fields",
        "1000",
        (1, LONG_MAX),
        field!(memory.active_defrag_max_scan_fields),
    )
    .planned(),
];
