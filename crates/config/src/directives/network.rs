//! Listening addresses and socket options. The settings and their directives.

use crate::choice::IoBackend;
use crate::directive::{Directive, INT_MAX, Kind, choice, field};
use crate::special;
use crate::value::Text;

/// Listening addresses and socket options.
#[derive(Clone, Default, PartialEq)]
pub struct Network {
    /// `bind`.
    pub bind: Vec<String>,
    /// `port`.
    pub port: i64,
    /// `unixsocket`.
    pub unixsocket: Text,
    /// `unixsocketperm`.
    pub unixsocketperm: u32,
    /// `unixsocketgroup`.
    pub unixsocketgroup: Text,
    /// `admin-port`.
    pub admin_port: i64,
    /// `admin-unixsocket`.
    pub admin_unixsocket: Text,
    /// `admin-unixsocketperm`.
    pub admin_unixsocketperm: u32,
    /// `http-port`.
    pub http_port: i64,
    /// `http-bind`.
    pub http_bind: Vec<String>,
    /// `http-tls`.
    pub http_tls: bool,
    /// `http-user`.
    pub http_user: Text,
    /// `http-password`.
    pub http_password: Text,
    /// `tcp-backlog`.
    pub tcp_backlog: i64,
    /// `tcp-keepalive`.
    pub tcp_keepalive: i64,
    /// `protected-mode`.
    pub protected_mode: bool,
    /// `bind-source-addr`.
    pub bind_source_addr: Text,
    /// `socket-mark-id`.
    pub socket_mark_id: i64,
    /// `io-backend`.
    pub io_backend: IoBackend,
    /// `wake-coalescing-us`.
    pub wake_coalescing_us: i64,
    /// `max-new-connections-per-cycle`.
    pub max_new_connections_per_cycle: i64,
    /// `max-new-tls-connections-per-cycle`.
    pub max_new_tls_connections_per_cycle: i64,
}

impl Network {
    /// Returns true if there is an admin lane: a separate worker for operators' connections.
    pub fn has_admin_lane(&self) -> bool {
        self.admin_port > 0 || !self.admin_unixsocket.is_empty()
    }

    /// Returns true if HTTP requests are encrypted.
    pub fn has_encrypted_http(&self) -> bool {
        self.http_port > 0 && self.http_tls
    }
}

pub(super) const DIRECTIVES: &[Directive] = &[
    // Redis listens on all addresses, and protected mode rejects remote clients. Here, listening on
    // the network is an explicit choice.
    Directive::new("bind", "127.0.0.1 -::1", Kind::Many(special::BIND)).about(
        "Addresses to listen on, at most 16; * is every IPv4 address, ::* every IPv6 \
             one. A - before an address allows it to be missing.",
    ),
    Directive::integer("port", "6379", (0, 65535), field!(network.port))
        .about("TCP port for clients; 0 does not listen on TCP."),
    Directive::text("unixsocket", "", field!(network.unixsocket))
        .about("Path of a Unix socket for clients; empty for none.")
        .immutable(),
    Directive::new("unixsocketperm", "0", Kind::Mode(field!(network.unixsocketperm)))
        .about("File mode of the Unix socket, in octal; 0 leaves what the umask gives.")
        .immutable(),
    Directive::text("unixsocketgroup", "", field!(network.unixsocketgroup))
        .about("Group that the Unix socket belongs to; empty for the group of the process.")
        .immutable(),
    Directive::integer("admin-port", "0", (0, 65535), field!(network.admin_port))
        .about(
            "TCP port of the admin lane, which answers operators whatever holds up the \
             other clients. It listens on the loopback addresses only; 0 for none.",
        )
        .fixed(),
    Directive::text("admin-unixsocket", "", field!(network.admin_unixsocket))
        .about("Path of a Unix socket of the admin lane; empty for none.")
        .fixed(),
    Directive::new("admin-unixsocketperm", "700", Kind::Mode(field!(network.admin_unixsocketperm)))
        .about(
            "File mode of the admin lane's Unix socket, in octal; 0 leaves what the umask \
             gives.",
        )
        .fixed(),
    Directive::integer("http-port", "0", (0, 65535), field!(network.http_port))
        .about(
            "TCP port for /metrics, /health and /ready by HTTP, for monitoring; 0 does not listen \
             for it.",
        )
        .fixed(),
    Directive::new("http-bind", "127.0.0.1 -::1", Kind::Many(special::HTTP_BIND))
        .about("Addresses to listen on for HTTP, written as those of bind.")
        .fixed(),
    Directive::switch("http-tls", "no", field!(network.http_tls))
        .about("Speak TLS on http-port, with the certificates and rules of the tls directives.")
        .fixed(),
    Directive::text("http-user", "metrics", field!(network.http_user))
        .about("User name that /metrics asks for, if http-password is set."),
    Directive::text("http-password", "", field!(network.http_password))
        .about(
            "Password that /metrics asks for; empty asks for none, and then protected mode answers \
             this machine only.",
        )
        .sensitive()
        .binary(),
    Directive::integer("tcp-backlog", "511", (0, INT_MAX), field!(network.tcp_backlog))
        .about(
            "How many connections may wait to be accepted. The kernel cuts it down to \
             net.core.somaxconn.",
        )
        .immutable(),
    Directive::integer("tcp-keepalive", "300", (0, INT_MAX), field!(network.tcp_keepalive)).about(
        "Seconds between the probes that find connections whose other end is gone; 0 \
             sends none.",
    ),
    Directive::switch("protected-mode", "yes", field!(network.protected_mode))
        .about("Without a password, answer clients of this machine only."),
    Directive::text("bind-source-addr", "", field!(network.bind_source_addr)).about(
        "Local address of connections that this server opens to its primary; empty \
             leaves it to the system.",
    ),
    Directive::integer("socket-mark-id", "0", (0, u32::MAX as i64), field!(network.socket_mark_id))
        .about("Mark that the kernel would put on packets of listening sockets.")
        .immutable()
        .ignored(),
    Directive::choice("io-backend", "auto", choice!(network.io_backend))
        .about(
            "What the event loops are built on. auto takes the one that was measured to be \
             faster and that the kernel offers.",
        )
        .fixed(),
    Directive::integer("wake-coalescing-us", "50", (0, 1000), field!(network.wake_coalescing_us))
        .about(
            "Microseconds for which single requests of many clients gather before a worker \
             waits for them, so that it wakes less often; 0 switches it off.",
        ),
    Directive::integer(
        "max-new-connections-per-cycle",
        "10",
        (1, 1000),
        field!(network.max_new_connections_per_cycle),
    )
    .about(
        "Connections that a worker accepts in one round of its event loop, so that a \
             storm of them does not hold up those that are there.",
    ),
    Directive::integer(
        "max-new-tls-connections-per-cycle",
        "1",
        (1, 1000),
        field!(network.max_new_tls_connections_per_cycle),
    )
    .about("The same for TLS connections, whose handshakes cost more."),
];
