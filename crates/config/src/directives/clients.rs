//! Client limits. The settings and their directives.

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
            "Maximum number of connected clients; further clients receive an error. The value is \
             lowered at startup if the limit on open files is too low.",
        ),
    Directive::integer("admin-maxclients", "16", (1, 1000), field!(clients.admin_maxclients))
        .about("Maximum number of connections to the admin lane, in addition to maxclients."),
    Directive::integer("timeout", "0", (0, INT_MAX), field!(clients.timeout))
        .about("Seconds after which an idle client is disconnected; 0 disables this."),
    Directive::new(
        "client-output-buffer-limit",
        "normal 0 0 0 slave 256mb 64mb 60 pubsub 32mb 8mb 60",
        Kind::Many(special::OUTPUT_LIMITS),
    )
    .about(
        "Limits on unsent output, for normal clients, replicas and subscribers. A client is closed \
         if it reaches the hard limit (in bytes), or stays above the soft limit (in bytes) for the \
         given number of seconds. 0 is unlimited.",
    ),
    Directive::memory(
        "output-soft-limit",
        "1mb",
        (1024, SIZE_MAX),
        field!(clients.output_soft_limit),
    )
    .about(
        "Bytes of unsent output at which a client's commands pause until it has read its \
             replies.",
    ),
    Directive::memory("output-total-limit", "0", (0, SIZE_MAX), field!(clients.output_total_limit))
        .about(
            "Limit on the unsent output of all clients together, in bytes. While it is \
             exceeded, the output-soft-limit of every client is 16kb; no client is closed and \
             no reply is lost. 0 is a quarter of the machine's memory.",
        ),
    Directive::memory("input-total-limit", "0", (0, SIZE_MAX), field!(clients.input_total_limit))
        .about(
            "Limit on the requests of all clients together that are not executed yet, in \
             bytes. If it is exceeded, the clients with the largest requests are closed. 0 is \
             a quarter of the machine's memory.",
        ),
    Directive::memory(
        "client-query-buffer-limit",
        "1gb",
        (1 << 20, SIZE_MAX),
        field!(clients.client_query_buffer_limit),
    )
    .about(
        "Maximum size of one incomplete request, in bytes; a client that exceeds it is \
             closed.",
    ),
    Directive::memory(
        "proto-max-bulk-len",
        "512mb",
        (1 << 20, SIZE_MAX),
        field!(clients.proto_max_bulk_len),
    )
    .about("Maximum size of one argument of a request, in bytes."),
    Directive::new("maxmemory-clients", "0", Kind::MemoryShare(field!(clients.maxmemory_clients)))
        .about(
            "Limit on the memory of all clients' buffers together, in bytes or as a \
             percentage of maxmemory. If it is exceeded, the largest clients are closed. 0 is \
             unlimited.",
        ),
    Directive::integer(
        "tracking-table-max-keys",
        "1000000",
        (0, LONG_MAX),
        field!(clients.tracking_table_max_keys),
    )
    .about(
        "Maximum number of keys that are tracked for client-side caching. If it is \
             exceeded, some keys are reported as changed. 0 is unlimited.",
    ),
];
