//! What a client may hold and send. The settings and their directives.

use crate::directive::{Directive, INT_MAX, Kind, LONG_MAX, SIZE_MAX, field};
use crate::special;
use crate::value::{MemoryShare, OutputLimit};

/// What a client may hold and send.
#[derive(Clone, Default, PartialEq)]
pub struct Clients {
    /// `maxclients`: connected clients at most.
    pub maxclients: i64,
    /// `admin-maxclients`: connections of the admin lane at most, beside `maxclients`.
    pub admin_maxclients: i64,
    /// `timeout`: seconds an idle client may stay; 0 for ever.
    pub timeout: i64,
    /// `client-output-buffer-limit`: limits of unsent output by `ClientClass`.
    pub output_limits: [OutputLimit; 3],
    /// `output-soft-limit`: bytes of unsent output at which a client's pipeline
    /// pauses until it drains.
    pub output_soft_limit: u64,
    /// `output-total-limit`: bytes of all clients' unsent output together; 0 for a quarter of
    /// the machine's memory.
    pub output_total_limit: u64,
    /// `input-total-limit`: bytes of memory of all clients' unexecuted requests together; 0 for a
    /// quarter of the machine's.
    pub input_total_limit: u64,
    /// `client-query-buffer-limit`: bytes of one unfinished request.
    pub client_query_buffer_limit: u64,
    /// `proto-max-bulk-len`: bytes of one argument.
    pub proto_max_bulk_len: u64,
    /// `maxmemory-clients`: memory of all clients' buffers together.
    pub maxmemory_clients: MemoryShare,
    /// `tracking-table-max-keys`: keys remembered for client-side caching; 0 for no limit.
    pub tracking_table_max_keys: i64,
}

pub(super) const DIRECTIVES: &[Directive] = &[
    Directive::integer("maxclients", "10000", (1, u32::MAX as i64), field!(clients.maxclients)),
    Directive::integer("admin-maxclients", "16", (1, 1000), field!(clients.admin_maxclients)),
    Directive::integer("timeout", "0", (0, INT_MAX), field!(clients.timeout)),
    Directive::new(
        "client-output-buffer-limit",
        "normal 0 0 0 slave 256mb 64mb 60 pubsub 32mb 8mb 60",
        Kind::Many(special::OUTPUT_LIMITS),
    ),
    Directive::memory(
        "output-soft-limit",
        "1mb",
        (1024, SIZE_MAX),
        field!(clients.output_soft_limit),
    ),
    Directive::memory("output-total-limit", "0", (0, SIZE_MAX), field!(clients.output_total_limit)),
    Directive::memory("input-total-limit", "0", (0, SIZE_MAX), field!(clients.input_total_limit)),
    Directive::memory(
        "client-query-buffer-limit",
        "1gb",
        (1 << 20, SIZE_MAX),
        field!(clients.client_query_buffer_limit),
    ),
    Directive::memory(
        "proto-max-bulk-len",
        "512mb",
        (1 << 20, SIZE_MAX),
        field!(clients.proto_max_bulk_len),
    ),
    Directive::new("maxmemory-clients", "0", Kind::MemoryShare(field!(clients.maxmemory_clients))),
    Directive::integer(
        "tracking-table-max-keys",
        "1000000",
        (0, LONG_MAX),
        field!(clients.tracking_table_max_keys),
    ),
];
