//! The settings that the engine needs, taken from the configuration and from DEBUG's switches.

use super::shared::Shared;
use brisk_config::Config;
use brisk_engine::Settings;
use brisk_engine::env::EvictionPolicy;
use brisk_engine::keyspace::KeyHasher;
use brisk_engine::types::EncodingLimits;

/// The settings in force that commands depend on, for threads other than workers.
pub(crate) fn in_force(shared: &Shared, config: &Config) -> Settings {
    let mut settings = from_config(config, shared.keyspace.hasher());
    settings.limits.list_plain_min = shared.settings.debug.list_plain_min();
    settings.skips_checksums = shared.settings.debug.skips_checksums();
    settings
}

fn from_config(config: &Config, hasher: &KeyHasher) -> Settings {
    use brisk_config::choice::EvictionPolicy as Chosen;
    let memory = &config.memory;
    let encoding = &config.encoding;
    // The directives' ranges exclude negative numbers.
    let limits = EncodingLimits {
        hash_max_listpack_entries: encoding.hash_max_listpack_entries as usize,
        hash_max_listpack_value: encoding.hash_max_listpack_value as usize,
        list_max_listpack_size: encoding.list_max_listpack_size,
        list_compress_depth: encoding.list_compress_depth as usize,
        list_plain_min: 0,
        set_max_intset_entries: encoding.set_max_intset_entries as usize,
        set_max_listpack_entries: encoding.set_max_listpack_entries as usize,
        set_max_listpack_value: encoding.set_max_listpack_value as usize,
        zset_max_listpack_entries: encoding.zset_max_listpack_entries as usize,
        zset_max_listpack_value: encoding.zset_max_listpack_value as usize,
        hll_sparse_max_bytes: encoding.hll_sparse_max_bytes as usize,
        stream_node_max_bytes: encoding.stream_node_max_bytes as usize,
        stream_node_max_entries: encoding.stream_node_max_entries as usize,
        hash_key: hasher.secret(),
    };
    Settings {
        limits,
        string_bytes_max: config.clients.proto_max_bulk_len,
        limited: memory.maxmemory != 0,
        eviction: match memory.maxmemory_policy {
            Chosen::NoEviction => EvictionPolicy::NoEviction,
            Chosen::AllKeysLru => EvictionPolicy::AllKeysLru,
            Chosen::AllKeysLfu => EvictionPolicy::AllKeysLfu,
            Chosen::AllKeysRandom => EvictionPolicy::AllKeysRandom,
            Chosen::VolatileLru => EvictionPolicy::VolatileLru,
            Chosen::VolatileLfu => EvictionPolicy::VolatileLfu,
            Chosen::VolatileRandom => EvictionPolicy::VolatileRandom,
            Chosen::VolatileTtl => EvictionPolicy::VolatileTtl,
        },
        maxmemory_samples: memory.maxmemory_samples as u32,
        lfu_log_factor: memory.lfu_log_factor as u32,
        lfu_decay_minutes: memory.lfu_decay_time_min as u32,
        lazy_expire: memory.lazyfree_lazy_expire,
        lazy_eviction: memory.lazyfree_lazy_eviction,
        lazy_server_del: memory.lazyfree_lazy_server_del,
        lazy_user_del: memory.lazyfree_lazy_user_del,
        lazy_user_flush: memory.lazyfree_lazy_user_flush,
        skips_checksums: false,
        in_cluster: config.cluster.cluster_enabled,
        dialect: config.process.dialect,
        ..Settings::default()
    }
}
