//! Up to which size a value keeps its compact encoding. The settings and their directives.

use crate::directive::{Directive, INT_MAX, LONG_MAX, SIZE_MAX, field};

/// Up to which size a value keeps its compact encoding.
#[derive(Clone, Default, PartialEq)]
pub struct Encoding {
    /// `hash-max-listpack-entries`: fields of a compact hash.
    pub hash_max_listpack_entries: i64,
    /// `hash-max-listpack-value`: bytes of a field or value in a compact hash.
    pub hash_max_listpack_value: u64,
    /// `list-max-listpack-size`: size of a list node: entries if positive, -1 to -5 for
    /// 4 to 64 KiB.
    pub list_max_listpack_size: i64,
    /// `list-compress-depth`: list nodes at each end that stay uncompressed; 0 compresses none.
    pub list_compress_depth: i64,
    /// `set-max-intset-entries`: members of an integer set.
    pub set_max_intset_entries: i64,
    /// `set-max-listpack-entries`: members of a compact set.
    pub set_max_listpack_entries: i64,
    /// `set-max-listpack-value`: bytes of a member in a compact set.
    pub set_max_listpack_value: u64,
    /// `zset-max-listpack-entries`: members of a compact sorted set.
    pub zset_max_listpack_entries: i64,
    /// `zset-max-listpack-value`: bytes of a member in a compact sorted set.
    pub zset_max_listpack_value: u64,
    /// `hll-sparse-max-bytes`: bytes of a sparse HyperLogLog.
    pub hll_sparse_max_bytes: u64,
    /// `stream-node-max-bytes`: bytes of a stream node; 0 for no limit.
    pub stream_node_max_bytes: u64,
    /// `stream-node-max-entries`: entries of a stream node; 0 for no limit.
    pub stream_node_max_entries: i64,
}

pub(super) const DIRECTIVES: &[Directive] = &[
    Directive::integer(
        "hash-max-listpack-entries",
        "512",
        (0, LONG_MAX),
        field!(encoding.hash_max_listpack_entries),
    )
    .alias("hash-max-ziplist-entries"),
    Directive::memory(
        "hash-max-listpack-value",
        "64",
        (0, SIZE_MAX),
        field!(encoding.hash_max_listpack_value),
    )
    .alias("hash-max-ziplist-value"),
    Directive::integer(
        "list-max-listpack-size",
        "-2",
        (i32::MIN as i64, INT_MAX),
        field!(encoding.list_max_listpack_size),
    )
    .alias("list-max-ziplist-size"),
    Directive::integer(
        "list-compress-depth",
        "0",
        (0, INT_MAX),
        field!(encoding.list_compress_depth),
    ),
    Directive::integer(
        "set-max-intset-entries",
        "512",
        (0, LONG_MAX),
        field!(encoding.set_max_intset_entries),
    ),
    Directive::integer(
        "set-max-listpack-entries",
        "128",
        (0, LONG_MAX),
        field!(encoding.set_max_listpack_entries),
    ),
    Directive::memory(
        "set-max-listpack-value",
        "64",
        (0, SIZE_MAX),
        field!(encoding.set_max_listpack_value),
    ),
    Directive::integer(
        "zset-max-listpack-entries",
        "128",
        (0, LONG_MAX),
        field!(encoding.zset_max_listpack_entries),
    )
    .alias("zset-max-ziplist-entries"),
    Directive::memory(
        "zset-max-listpack-value",
        "64",
        (0, SIZE_MAX),
        field!(encoding.zset_max_listpack_value),
    )
    .alias("zset-max-ziplist-value"),
    Directive::memory(
        "hll-sparse-max-bytes",
        "3000",
        (0, SIZE_MAX),
        field!(encoding.hll_sparse_max_bytes),
    ),
    Directive::memory(
        "stream-node-max-bytes",
        "4096",
        (0, SIZE_MAX),
        field!(encoding.stream_node_max_bytes),
    ),
    Directive::integer(
        "stream-node-max-entries",
        "100",
        (0, LONG_MAX),
        field!(encoding.stream_node_max_entries),
    ),
];
