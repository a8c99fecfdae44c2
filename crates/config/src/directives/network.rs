//! Where the server listens and how it treats sockets. The settings and their directives.

use crate::choice::IoBackend;
use crate::directive::{Directive, INT_MAX, Kind, choice, field};
use crate::special;
use crate::value::Text;

/// Where the server listens and how it treats sockets.
#[derive(Clone, Default, PartialEq)]
pub struct Network {
    /// `bind`: addresses to listen on; `*` and `::*` are all,
    /// a leading `-` allows the address to be missing.
    pub bind: Vec<String>,
    /// `port`: TCP port; 0 does not listen on TCP.
    pub port: i64,
    /// `unixsocket`: path of the Unix socket; empty for none.
    pub unixsocket: Text,
    /// `unixsocketperm`: mode of the Unix socket; 0 leaves what the umask gives.
    pub unixsocketperm: u32,
    /// `unixsocketgroup`: group that the Unix socket belongs to; empty for the process's.
    pub unixsocketgroup: Text,
    /// `admin-port`: TCP port of the admin lane, on the loopback addresses only; 0 for none.
    pub admin_port: i64,
    /// `admin-unixsocket`: path of the admin lane's Unix socket; empty for none.
    pub admin_unixsocket: Text,
    /// `admin-unixsocketperm`: mode of that socket; 0 leaves what the umask gives.
    pub admin_unixsocketperm: u32,
    /// `tcp-backlog`: length of the queue of connections not accepted yet.
    pub tcp_backlog: i64,
    /// `tcp-keepalive`: seconds between keepalive probes; 0 for none.
    pub tcp_keepalive: i64,
    /// `protected-mode`: without password and address list, serve the loopback interface only.
    pub protected_mode: bool,
    /// `bind-source-addr`: local address of the connection to the primary.
    pub bind_source_addr: Text,
    /// `socket-mark-id`: mark of listening sockets (SO_MARK); 0 for none.
    pub socket_mark_id: i64,
    /// `io-backend`: what the event loops are built on.
    pub io_backend: IoBackend,
    /// `wake-coalescing-us`: microseconds for which single requests of many clients gather before a
    /// worker waits for them, so that it wakes less often; 0 switches it off.
    pub wake_coalescing_us: i64,
    /// `max-new-connections-per-cycle`: connections accepted per event-loop round and worker.
    pub max_new_connections_per_cycle: i64,
    /// `max-new-tls-connections-per-cycle`: TLS connections accepted per
    /// event-loop round and worker.
    pub max_new_tls_connections_per_cycle: i64,
}

impl Network {
    /// Whether there is an admin lane: a worker of its own for operators' connections.
    pub fn has_admin_lane(&self) -> bool {
        self.admin_port > 0 || !self.admin_unixsocket.is_empty()
    }
}

pub(super) const DIRECTIVES: &[Directive] = &[
    // Redis listens everywhere and lets protected mode refuse;
    // here the network is opened on purpose.
    Directive::new("bind", "127.0.0.1 -::1", Kind::Many(special::BIND)),
    Directive::integer("port", "6379", (0, 65535), field!(network.port)),
    Directive::text("unixsocket", "", field!(network.unixsocket)).immutable(),
    Directive::new("unixsocketperm", "0", Kind::Mode(field!(network.unixsocketperm))).immutable(),
    Directive::text("unixsocketgroup", "", field!(network.unixsocketgroup)).immutable(),
    Directive::integer("admin-port", "0", (0, 65535), field!(network.admin_port)).fixed(),
    Directive::text("admin-unixsocket", "", field!(network.admin_unixsocket)).fixed(),
    Directive::new("admin-unixsocketperm", "700", Kind::Mode(field!(network.admin_unixsocketperm)))
        .fixed(),
    Directive::integer("tcp-backlog", "511", (0, INT_MAX), field!(network.tcp_backlog)).immutable(),
    Directive::integer("tcp-keepalive", "300", (0, INT_MAX), field!(network.tcp_keepalive)),
    Directive::switch("protected-mode", "yes", field!(network.protected_mode)),
    Directive::text("bind-source-addr", "", field!(network.bind_source_addr)),
    Directive::integer("socket-mark-id", "0", (0, u32::MAX as i64), field!(network.socket_mark_id))
        .immutable()
        .ignored(),
    Directive::choice("io-backend", "auto", choice!(network.io_backend)).fixed(),
    Directive::integer("wake-coalescing-us", "50", (0, 1000), field!(network.wake_coalescing_us)),
    Directive::integer(
        "max-new-connections-per-cycle",
        "10",
        (1, 1000),
        field!(network.max_new_connections_per_cycle),
    ),
    Directive::integer(
        "max-new-tls-connections-per-cycle",
        "1",
        (1, 1000),
        field!(network.max_new_tls_connections_per_cycle),
    ),
];
