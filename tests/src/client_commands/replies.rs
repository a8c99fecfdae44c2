//! The type of each command's reply, which is the only fact about a command that its row does not state.
//!
//! A reply with an obvious type, such as a number, has that type, so that callers need not specify one. Other replies
//! are or contain a `T` of the caller's choice. If a reply also contains a key, the key is a `K`, chosen likewise.

/// Types, and the functions whose replies have them.
pub(super) const REPLIES: &[(&str, &str)] = &[
    // Success or an error.
    (
        "()",
        "acl_load acl_log_reset acl_save acl_setuser asking auth client_caching client_capa client_durability \
         client_no_evict client_no_touch client_pause client_reply client_setinfo client_setname \
         client_tracking client_unpause cluster_addslots cluster_addslotsrange cluster_delslots \
         cluster_delslotsrange cluster_failover cluster_flushslots cluster_forget cluster_meet \
         cluster_replicate cluster_reset cluster_saveconfig cluster_set_config_epoch cluster_setslot \
         config_resetstat config_rewrite config_set discard failover flushall flushdb function_delete \
         function_flush function_kill function_restore hmset lset ltrim memory_purge module_load \
         module_loadex module_unload monitor mset multi pfmerge pfselftest psetex quit readonly readwrite \
         rename replconf replicaof reset restore restore_asking save script_debug script_flush script_kill \
         select setex shutdown slaveof slowlog_reset swapdb unwatch watch xgroup_create xgroup_setid xsetid",
    ),
    // These commands reply whether something was done, or is true.
    (
        "bool",
        "client_unblock copy expire expireat hexists hsetex hsetnx move_to msetnx persist pexpire pexpireat \
         pfadd renamenx set setnx sismember smove xgroup_createconsumer xgroup_destroy",
    ),
    (
        "i64",
        "acl_deluser append bitcount bitop bitpos client_getredir client_id client_kill \
         cluster_count_failure_reports cluster_countkeysinslot cluster_keyslot command_count dbsize decr \
         decrby del exists expiretime geoadd georadius_store georadius_store_dist georadiusbymember_store \
         georadiusbymember_store_dist geosearchstore getbit hdel hincrby hlen hset hstrlen incr incrby \
         lastsave latency_reset lcs_len linsert llen lpush lpushx lrem pexpiretime pfcount pttl publish \
         pubsub_numpat rpush rpushx sadd scard sdiffstore setbit setrange sintercard sinterstore slowlog_len \
         sort_store spublish srem strlen sunionstore touch ttl unlink wait xack xdel xgroup_delconsumer xlen \
         xtrim zadd zcard zcount zdiffstore zintercard zinterstore zlexcount zrangestore zrem zremrangebylex \
         zremrangebyrank zremrangebyscore zunionstore",
    ),
    ("Option<i64>", "lpos memory_usage object_freq object_idletime object_refcount zrank zrevrank"),
    ("f64", "hincrbyfloat incrbyfloat zincrby"),
    ("Option<f64>", "geodist zscore"),
    (
        "String",
        "acl_dryrun acl_genpass acl_whoami bgrewriteaof bgsave client_info client_list cluster_bumpepoch \
         cluster_info cluster_myid cluster_myshardid cluster_nodes function_load info latency_doctor latency_graph lolwut \
         memory_doctor memory_malloc_stats migrate ping script_load type_of xadd",
    ),
    ("Option<String>", "object_encoding"),
    (
        "Vec<String>",
        "acl_help client_help cluster_help command_help config_help function_help latency_help memory_help \
         module_help object_help pubsub_help replication_help script_help slowlog_help xgroup_help xinfo_help",
    ),
    // A value of the caller's type, or null.
    (
        "Option<T>",
        "acl_getuser blmove brpoplpush client_getname dump get getdel getex getset hget hrandfield lindex \
         lmove lpop randomkey rpop rpoplpush spop srandmember zrandmember",
    ),
    // The key of a non-empty collection, and the element, or the members with their scores, that were popped from it.
    ("Option<(K, T)>", "blpop brpop"),
    ("Option<(K, Vec<T>)>", "blmpop lmpop"),
    ("Option<(K, T, f64)>", "bzpopmax bzpopmin"),
    ("Option<(K, Vec<(T, f64)>)>", "bzmpop zmpop"),
    (
        "Vec<T>",
        "acl_cat acl_list acl_log acl_users cluster_getkeysinslot cluster_links cluster_replicas \
         cluster_shards cluster_slaves cluster_slots command_getkeys command_getkeysandflags command_info \
         command_list function_list georadius georadius_ro georadiusbymember georadiusbymember_ro geosearch \
         hkeys hvals keys latency_history latency_latest lrange module_list pubsub_channels \
         pubsub_shardchannels slowlog_get sort sort_ro xclaim xinfo_consumers xinfo_groups xpending_range \
         xrange xrevrange zdiff zinter zrange zrangebylex zrangebyscore zrevrange \
         zrevrangebylex zrevrangebyscore zunion",
    ),
    ("Vec<(T, f64)>", "zpopmax zpopmin"),
    ("Vec<Option<T>>", "geohash hgetdel hgetex hmget mget"),
    ("Vec<bool>", "script_exists smismember"),
    (
        "Vec<i64>",
        "hexpire hexpireat hexpiretime hpersist hpexpire hpexpireat hpexpiretime hpttl httl",
    ),
    ("Vec<Option<i64>>", "bitfield bitfield_ro"),
    ("Vec<Option<f64>>", "zmscore"),
    ("Vec<Option<(f64, f64)>>", "geopos"),
    // Seconds and microseconds.
    ("(i64, i64)", "time"),
    // The numbers of local and of replica acknowledgements.
    ("(i64, i64)", "waitaof"),
    // The next cursor, which is 0 when the iteration is complete, and the elements found.
    ("(u64, Vec<T>)", "hscan scan sscan zscan"),
    // A set, a map, a list or a tree, as the caller chooses.
    (
        "T",
        "client_trackinginfo command_docs config_get debug echo eval eval_ro evalsha evalsha_ro exec fcall \
         fcall_ro function_dump function_stats getrange hello hgetall latency_histogram lcs lcs_idx \
         memory_stats pfdebug psubscribe psync pubsub_numsub pubsub_shardnumsub punsubscribe \
         replication_compare role script_show sdiff sinter smembers ssubscribe subscribe substr sunion \
         sunsubscribe sync unsubscribe xautoclaim xinfo_stream xpending xread xread_block xreadgroup xreadgroup_block",
    ),
];

/// The type of the replies of `function`.
///
/// # Panics
/// If REPLIES does not contain the function.
pub(super) fn reply(function: &str) -> &'static str {
    let of = |names: &str| names.split_whitespace().any(|name| name == function);
    let found = REPLIES.iter().find(|(_, names)| of(names));
    found.unwrap_or_else(|| panic!("`{function}` has no reply: say in REPLIES what it is")).0
}

/// Options that change the reply's type: function, option, new type. `T` is the original type.
pub(super) const SWITCHES: &[(&str, &str, &str)] = &[
    ("hrandfield", "count", "Vec<T>"),
    ("lpop", "count", "Vec<T>"),
    ("lpos", "count", "Vec<i64>"),
    ("rpop", "count", "Vec<T>"),
    // The previous value, whether or not the new value was written.
    ("set", "get", "Option<U>"),
    ("spop", "count", "Vec<T>"),
    ("srandmember", "count", "Vec<T>"),
    ("xadd", "no_mk_stream", "Option<String>"),
    ("zadd", "incr", "Option<f64>"),
    ("zrandmember", "count", "Vec<T>"),
    ("zrank", "with_score", "Option<(i64, f64)>"),
    ("zrevrank", "with_score", "Option<(i64, f64)>"),
];

/// Notes on types that need an explanation.
pub(super) const NOTES: &[(&str, &str)] = &[
    ("set", "The reply is true if the value was written, and false if a condition was not met."),
    ("hgetall", "The reply is a map, or a list of pairs."),
    ("config_get", "The reply is a map, or a list of pairs."),
    (
        "hscan",
        "Start with cursor 0; the iteration is complete when the reply's cursor is 0. The elements are pairs of field and value.",
    ),
    (
        "zscan",
        "Start with cursor 0; the iteration is complete when the reply's cursor is 0. The elements are pairs of member and score.",
    ),
    (
        "sscan",
        "Start with cursor 0; the iteration is complete when the reply's cursor is 0. The elements are members.",
    ),
    (
        "scan",
        "Start with cursor 0; the iteration is complete when the reply's cursor is 0. The elements are keys.",
    ),
    ("zrange", "The reply lists members or, with `WITHSCORES`, pairs of member and score."),
    ("zpopmin", "The reply lists pairs of member and score."),
    ("zpopmax", "The reply lists pairs of member and score."),
    ("blpop", "The reply is the key and the element, or null after the timeout."),
    ("brpop", "The reply is the key and the element, or null after the timeout."),
    ("blmpop", "The reply is the key and the elements, or null after the timeout."),
    ("lmpop", "The reply is the key and the elements, or null if all lists are empty."),
    ("bzpopmin", "The reply is the key, the member and its score, or null after the timeout."),
    ("bzpopmax", "The reply is the key, the member and its score, or null after the timeout."),
    ("bzmpop", "The reply is the key and pairs of member and score, or null after the timeout."),
    (
        "zmpop",
        "The reply is the key and pairs of member and score, or null if all sorted sets are empty.",
    ),
    ("migrate", "The reply is `OK`, or `NOKEY` if none of the keys exists."),
    (
        "xread",
        "The reply lists pairs of stream and entries, or null if there are no new entries. To wait for new entries, use `xread_block`.",
    ),
    ("xread_block", "The reply lists pairs of stream and entries, or null after the timeout."),
    (
        "xreadgroup",
        "The reply lists pairs of stream and entries, or null if there are no new entries. To wait for new entries, use `xreadgroup_block`.",
    ),
    ("xreadgroup_block", "The reply lists pairs of stream and entries, or null after the timeout."),
];
