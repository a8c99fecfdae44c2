//! Limits of clients. The settings and their directives.

use crate::directive::{Directive, INT_MAX, Kind, LONG_MAX, SIZE_MAX, field};
use crate::special;
use crate::value::{MemoryShare, OutputLimit};

/// Limits of clients.
#[derive(Clone, Default, PartialEq)]
pub struct Clients {
    /// `maxclients`.
    pub maxclients: i64,
    /// `admin-maxclients`.
    pub admin_maxclients: i64,
    /// `timeout`.
    pub timeout: i64,
    /// `client-output-buffer-limit`.
    pub output_limits: [OutputLimit; 3],
    /// `output-soft-limit`.
    pub output_soft_limit: u64,
    /// `output-total-limit`.
    pub output_total_limit: u64,
    /// `input-total-limit`.
    pub input_total_limit: u64,
    /// `client-query-buffer-limit`.
    pub client_query_buffer_limit: u64,
    /// `proto-max-bulk-len`.
    pub proto_max_bulk_len: u64,
    /// `maxmemory-clients`.
    pub maxmemory_clients: MemoryShare,
    /// `tracking-table-max-keys`.
    pub tracking_table_max_keys: i64,
}

pub(super) const DIRECTIVES: &[Directive] = &[
    Directive::integer("maxclients", "10000", (1, u32::MAX as i64), field!(clients.maxclients))
        .about(
            "Clients that may be connected at once; a further one gets an error. It is \
             lowered at start if the limit of open files demands it.",
        ),
    Directive::integer("admin-maxclients", "16", (1, 1000), field!(clients.admin_maxclients))
        .about("Connections that may come by the admin lane at once, beside maxclients."),
    Directive::integer("timeout", "0", (0, INT_MAX), field!(clients.timeout))
        .about("Seconds after which an idle client is disconnected; 0 never."),
    Directive::new(
        "client-output-buffer-limit",
        "normal 0 0 0 slave 256mb 64mb 60 pubsub 32mb 8mb 60",
        Kind::Many(special::OUTPUT_LIMITS),
    )
    .about(
        "For normal clients, replicas and subscribers: bytes of unsent output at which \
             a client is closed at once, bytes which it may exceed for some time, and that \
             time in seconds. 0 is no limit.",
    ),
    Directive::memory(
        "output-soft-limit",
        "1mb",
        (1024, SIZE_MAX),
        field!(clients.output_soft_limit),
    )
    .about(
        "Bytes of unsent output at which a client's requests wait until it has read its \
             replies.",
    ),
    Directive::memory("output-total-limit", "0", (0, SIZE_MAX), field!(clients.output_total_limit))
        .about(
            "Bytes of the unsent output of all clients together, above which 16kb counts as \
             every client's output-soft-limit until there is less; no client is closed and no \
             reply is lost. 0 is a quarter of the machine's memory.",
        ),
    Directive::memory("input-total-limit", "0", (0, SIZE_MAX), field!(clients.input_total_limit))
        .about(
            "Bytes of the requests of all clients together that are not executed yet, above \
             which the largest are closed; 0 is a quarter of the machine's memory.",
        ),
    Directive::memory(
        "client-query-buffer-limit",
        "1gb",
        (1 << 20, SIZE_MAX),
        field!(clients.client_query_buffer_limit),
    )
    .about("Bytes of one unfinished request, above which its client is closed."),
    Directive::memory(
        "proto-max-bulk-len",
        "512mb",
        (1 << 20, SIZE_MAX),
        field!(clients.proto_max_bulk_len),
    )
    .about("Bytes of one argument of a request."),
    Directive::new("maxmemory-clients", "0", Kind::MemoryShare(field!(clients.maxmemory_clients)))
        .about(
            "Memory of all clients' buffers together, above which the largest clients are \
             closed; in bytes or as a share of maxmemory. 0 is no limit.",
        ),
    Directive::integer(
        "tracking-table-max-keys",
        "1000000",
        (0, LONG_MAX),
        field!(clients.tracking_table_max_keys),
    )
    .about(
        "Keys that are remembered for client-side caching; when there are more, some \
             are told as changed. 0 is no limit.",
    ),
];
