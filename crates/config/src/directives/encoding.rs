//! The maximum sizes of compact encodings. The settings and their directives.

use crate::directive::{Directive, INT_MAX, LONG_MAX, SIZE_MAX, field};

/// The maximum sizes of compact encodings.
#[derive(Clone, Default, PartialEq)]
pub struct Encoding {
    /// `hash-max-listpack-entries`.
    pub hash_max_listpack_entries: i64,
    /// `hash-max-listpack-value`.
    pub hash_max_listpack_value: u64,
    /// `list-max-listpack-size`.
    pub list_max_listpack_size: i64,
    /// `list-compress-depth`.
    pub list_compress_depth: i64,
    /// `set-max-intset-entries`.
    pub set_max_intset_entries: i64,
    /// `set-max-listpack-entries`.
    pub set_max_listpack_entries: i64,
    /// `set-max-listpack-value`.
    pub set_max_listpack_value: u64,
    /// `zset-max-listpack-entries`.
    pub zset_max_listpack_entries: i64,
    /// `zset-max-listpack-value`.
    pub zset_max_listpack_value: u64,
    /// `hll-sparse-max-bytes`.
    pub hll_sparse_max_bytes: u64,
    /// `stream-node-max-bytes`.
    pub stream_node_max_bytes: u64,
    /// `stream-node-max-entries`.
    pub stream_node_max_entries: i64,
}

pub(super) const DIRECTIVES: &[Directive] = &[
    Directive::integer(
        "hash-max-listpack-entries",
        "512",
        (0, LONG_MAX),
        field!(encoding.hash_max_listpack_entries),
    )
    .about("Maximum number of fields of a hash with the compact encoding.")
    .alias("hash-max-ziplist-entries"),
    Directive::memory(
        "hash-max-listpack-value",
        "64",
        (0, SIZE_MAX),
        field!(encoding.hash_max_listpack_value),
    )
    .about("Maximum size of a field or value of a hash with the compact encoding, in bytes.")
    .alias("hash-max-ziplist-value"),
    Directive::integer(
        "list-max-listpack-size",
        "-2",
        (i32::MIN as i64, INT_MAX),
        field!(encoding.list_max_listpack_size),
    )
    .about(
        "Maximum size of a list node: a number of entries if positive; -1 to -5 mean 4, \
             8, 16, 32 and 64 KiB.",
    )
    .alias("list-max-ziplist-size"),
    Directive::integer(
        "list-compress-depth",
        "0",
        (0, INT_MAX),
        field!(encoding.list_compress_depth),
    )
    .about(
        "Number of nodes at each end of a list that are not compressed; 0 disables \
             compression.",
    ),
    Directive::integer(
        "set-max-intset-entries",
        "512",
        (0, LONG_MAX),
        field!(encoding.set_max_intset_entries),
    )
    .about("Maximum number of members of a set of integers with the compact encoding."),
    Directive::integer(
        "set-max-listpack-entries",
        "128",
        (0, LONG_MAX),
        field!(encoding.set_max_listpack_entries),
    )
    .about("Maximum number of members of a set with the compact encoding."),
    Directive::memory(
        "set-max-listpack-value",
        "64",
        (0, SIZE_MAX),
        field!(encoding.set_max_listpack_value),
    )
    .about("Maximum size of a member of a set with the compact encoding, in bytes."),
    Directive::integer(
        "zset-max-listpack-entries",
        "128",
        (0, LONG_MAX),
        field!(encoding.zset_max_listpack_entries),
    )
    .about("Maximum number of members of a sorted set with the compact encoding.")
    .alias("zset-max-ziplist-entries"),
    Directive::memory(
        "zset-max-listpack-value",
        "64",
        (0, SIZE_MAX),
        field!(encoding.zset_max_listpack_value),
    )
    .about("Maximum size of a member of a sorted set with the compact encoding, in bytes.")
    .alias("zset-max-ziplist-value"),
    Directive::memory(
        "hll-sparse-max-bytes",
        "3000",
        (0, SIZE_MAX),
        field!(encoding.hll_sparse_max_bytes),
    )
    .about("Maximum size of a HyperLogLog with the sparse encoding, in bytes."),
    Directive::memory(
        "stream-node-max-bytes",
        "4096",
        (0, SIZE_MAX),
        field!(encoding.stream_node_max_bytes),
    )
    .about("Maximum size of a stream node, in bytes; 0 is unlimited."),
    Directive::integer(
        "stream-node-max-entries",
        "100",
        (0, LONG_MAX),
        field!(encoding.stream_node_max_entries),
    )
    .about("Maximum number of entries of a stream node; 0 is unlimited."),
];
