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
        "Limit on memory in bytes. Output that clients have not read does not count, up to \
             output-total-limit. If the limit is reached, maxmemory-policy decides whether keys \
             are evicted or writes are rejected; 0 is unlimited.",
    ),
    Directive::choice("maxmemory-policy", "noeviction", choice!(memory.maxmemory_policy)).about(
        "How to free memory when maxmemory is reached: evict any keys (allkeys) or keys \
             with a TTL (volatile), the least recently used (lru), the least frequently used \
             (lfu), those that expire first (ttl), or random ones. noeviction rejects \
             commands that need memory.",
    ),
    Directive::integer("maxmemory-samples", "5", (1, INT_MAX), field!(memory.maxmemory_samples))
        .about(
            "Number of keys sampled for each eviction. More samples lead to better choices but \
             take more time.",
        ),
    Directive::integer(
        "maxmemory-eviction-tenacity",
        "10",
        (0, 100),
        field!(memory.maxmemory_eviction_tenacity),
    )
    .about(
        "How long eviction may delay commands: 0 delays them least, 100 evicts regardless \
             of the delay.",
    ),
    Directive::integer("lfu-log-factor", "10", (0, INT_MAX), field!(memory.lfu_log_factor))
        .about("How slowly the access counter of a key grows."),
    Directive::integer("lfu-decay-time", "1", (0, INT_MAX), field!(memory.lfu_decay_time_min))
        .about(
            "Minutes after which the access counter of a key decreases by one; 0 disables this.",
        ),
    Directive::integer("active-expire-effort", "1", (1, 10), field!(memory.active_expire_effort))
        .about("How much of its time a worker may spend on removing expired keys."),
    Directive::switch("lazyfree-lazy-eviction", "no", field!(memory.lazyfree_lazy_eviction))
        .about("Free evicted values in the background."),
    Directive::switch("lazyfree-lazy-expire", "no", field!(memory.lazyfree_lazy_expire))
        .about("Free expired values in the background."),
    Directive::switch("lazyfree-lazy-server-del", "no", field!(memory.lazyfree_lazy_server_del))
        .about("Free overwritten values in the background."),
    Directive::switch("lazyfree-lazy-user-del", "no", field!(memory.lazyfree_lazy_user_del))
        .about("Make DEL behave like UNLINK."),
    Directive::switch("lazyfree-lazy-user-flush", "no", field!(memory.lazyfree_lazy_user_flush))
        .about("Make FLUSHALL and FLUSHDB asynchronous unless SYNC is given."),
    Directive::switch("activerehashing", "yes", field!(memory.activerehashing))
        .about("Rehash tables in the background.")
        .ignored("Tables grow in small steps, so there is nothing to rehash."),
    Directive::switch("activedefrag", "no", field!(memory.activedefrag))
        .about("Move values to reduce memory fragmentation.")
        .planned("Active defragmentation is not supported."),
    Directive::memory(
        "active-defrag-ignore-bytes",
        "100mb",
        (1, SIZE_MAX),
        field!(memory.active_defrag_ignore_bytes),
    )
    .about("Fragmentation in bytes below which no values are moved.")
    .planned("Active defragmentation is not supported."),
    Directive::integer(
        "active-defrag-threshold-lower",
        "10",
        (0, 1000),
        field!(memory.active_defrag_threshold_lower),
    )
    .about("Fragmentation in percent at which values start to be moved.")
    .planned("Active defragmentation is not supported."),
    Directive::integer(
        "active-defrag-threshold-upper",
        "100",
        (0, 1000),
        field!(memory.active_defrag_threshold_upper),
    )
    .about("Fragmentation in percent at which values are moved with maximum effort.")
    .planned("Active defragmentation is not supported."),
    Directive::integer(
        "active-defrag-cycle-min",
        "1",
        (1, 99),
        field!(memory.active_defrag_cycle_min),
    )
    .about("Percentage of time for moving values at the lower threshold.")
    .planned("Active defragmentation is not supported."),
    Directive::integer(
        "active-defrag-cycle-max",
        "25",
        (1, 99),
        field!(memory.active_defrag_cycle_max),
    )
    .about("Percentage of time for moving values at the upper threshold.")
    .planned("Active defragmentation is not supported."),
    Directive::integer(
        "active-defrag-max-scan-fields",
        "1000",
        (1, LONG_MAX),
        field!(memory.active_defrag_max_scan_fields),
    )
    .about("Maximum number of elements of one value that are moved in one step.")
    .planned("Active defragmentation is not supported."),
];
