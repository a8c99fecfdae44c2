//! The memory limit, eviction, expiry and freeing. The settings and their directives.

use crate::choice::EvictionPolicy;
use crate::directive::{Directive, INT_MAX, LONG_MAX, SIZE_MAX, choice, field};

/// The memory limit, eviction, expiry and freeing.
#[derive(Clone, Default, PartialEq)]
pub struct Memory {
    /// `maxmemory`.
    pub maxmemory: u64,
    /// `maxmemory-policy`.
    pub maxmemory_policy: EvictionPolicy,
    /// `maxmemory-samples`.
    pub maxmemory_samples: i64,
    /// `maxmemory-eviction-tenacity`.
    pub maxmemory_eviction_tenacity: i64,
    /// `lfu-log-factor`.
    pub lfu_log_factor: i64,
    /// `lfu-decay-time`.
    pub lfu_decay_time_min: i64,
    /// `active-expire-effort`.
    pub active_expire_effort: i64,
    /// `lazyfree-lazy-eviction`.
    pub lazyfree_lazy_eviction: bool,
    /// `lazyfree-lazy-expire`.
    pub lazyfree_lazy_expire: bool,
    /// `lazyfree-lazy-server-del`.
    pub lazyfree_lazy_server_del: bool,
    /// `lazyfree-lazy-user-del`.
    pub lazyfree_lazy_user_del: bool,
    /// `lazyfree-lazy-user-flush`.
    pub lazyfree_lazy_user_flush: bool,
    /// `activerehashing`.
    pub activerehashing: bool,
    /// `activedefrag`.
    pub activedefrag: bool,
    /// `active-defrag-ignore-bytes`.
    pub active_defrag_ignore_bytes: u64,
    /// `active-defrag-threshold-lower`.
    pub active_defrag_threshold_lower: i64,
    /// `active-defrag-threshold-upper`.
    pub active_defrag_threshold_upper: i64,
    /// `active-defrag-cycle-min`.
    pub active_defrag_cycle_min: i64,
    /// `active-defrag-cycle-max`.
    pub active_defrag_cycle_max: i64,
    /// `active-defrag-max-scan-fields`.
    pub active_defrag_max_scan_fields: i64,
}

pub(super) const DIRECTIVES: &[Directive] = &[
    Directive::memory("maxmemory", "0", (0, u64::MAX), field!(memory.maxmemory)).about(
        "Bytes of memory from which keys are evicted, or writes refused, by \
             maxmemory-policy; 0 is no limit. Buffers of clients count.",
    ),
    Directive::choice("maxmemory-policy", "noeviction", choice!(memory.maxmemory_policy)).about(
        "What makes room when maxmemory is reached: keys of all kinds or those with a \
             deadline (volatile), by last use (lru), by frequency (lfu), by nearest \
             deadline (ttl) or at random. noeviction refuses commands that need memory.",
    ),
    Directive::integer("maxmemory-samples", "5", (1, INT_MAX), field!(memory.maxmemory_samples))
        .about(
            "Keys that are looked at for each eviction; more come nearer to the best choice \
             and cost more time.",
        ),
    Directive::integer(
        "maxmemory-eviction-tenacity",
        "10",
        (0, 100),
        field!(memory.maxmemory_eviction_tenacity),
    )
    .about(
        "How long evicting may hold up commands: 0 is the least delay, 100 evicts \
             without regard to it.",
    ),
    Directive::integer("lfu-log-factor", "10", (0, INT_MAX), field!(memory.lfu_log_factor))
        .about("How slowly the counter of accesses grows."),
    Directive::integer("lfu-decay-time", "1", (0, INT_MAX), field!(memory.lfu_decay_time_min))
        .about("Minutes after which the counter of accesses falls by one; 0 never."),
    Directive::integer("active-expire-effort", "1", (1, 10), field!(memory.active_expire_effort))
        .about("How much of its time a worker may spend on removing expired keys."),
    Directive::switch("lazyfree-lazy-eviction", "no", field!(memory.lazyfree_lazy_eviction))
        .about("Free evicted values in the background."),
    Directive::switch("lazyfree-lazy-expire", "no", field!(memory.lazyfree_lazy_expire))
        .about("Free expired values in the background."),
    Directive::switch("lazyfree-lazy-server-del", "no", field!(memory.lazyfree_lazy_server_del))
        .about("Free values that commands overwrite in the background."),
    Directive::switch("lazyfree-lazy-user-del", "no", field!(memory.lazyfree_lazy_user_del))
        .about("DEL acts as UNLINK does."),
    Directive::switch("lazyfree-lazy-user-flush", "no", field!(memory.lazyfree_lazy_user_flush))
        .about("FLUSHALL and FLUSHDB act as with ASYNC unless they say SYNC."),
    Directive::switch("activerehashing", "yes", field!(memory.activerehashing))
        .about("Tables grow in small steps without it.")
        .ignored(),
    Directive::switch("activedefrag", "no", field!(memory.activedefrag))
        .about("Move values out of fragmented memory.")
        .planned(),
    Directive::memory(
        "active-defrag-ignore-bytes",
        "100mb",
        (1, SIZE_MAX),
        field!(memory.active_defrag_ignore_bytes),
    )
    .about("Bytes of fragmentation below which nothing would be moved.")
    .planned(),
    Directive::integer(
        "active-defrag-threshold-lower",
        "10",
        (0, 1000),
        field!(memory.active_defrag_threshold_lower),
    )
    .about("Percent of fragmentation at which moving would start.")
    .planned(),
    Directive::integer(
        "active-defrag-threshold-upper",
        "100",
        (0, 1000),
        field!(memory.active_defrag_threshold_upper),
    )
    .about("Percent of fragmentation at which moving would take most effort.")
    .planned(),
    Directive::integer(
        "active-defrag-cycle-min",
        "1",
        (1, 99),
        field!(memory.active_defrag_cycle_min),
    )
    .about("Percent of time for moving at the lower threshold.")
    .planned(),
    Directive::integer(
        "active-defrag-cycle-max",
        "25",
        (1, 99),
        field!(memory.active_defrag_cycle_max),
    )
    .about("Percent of time for moving at the upper threshold.")
    .planned(),
    Directive::integer(
        "active-defrag-max-scan-fields",
        "1000",
        (1, LONG_MAX),
        field!(memory.active_defrag_max_scan_fields),
    )
    .about("Elements of one value that would be moved in one go.")
    .planned(),
];
