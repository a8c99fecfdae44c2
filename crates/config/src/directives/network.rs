//! Listening addresses and socket options. The settings and their directives.

use crate::choice::{Console, IoBackend};
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
    /// `http-console`.
    pub http_console: Console,
    /// `http-console-hosts`.
    pub http_console_hosts: Text,
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
        "Addresses to listen on, at most 16. * means all IPv4 addresses, ::* all IPv6 \
             addresses. An address with the prefix - may be unavailable.",
    ),
    Directive::integer("port", "6379", (0, 65535), field!(network.port))
        .about("TCP port for clients; 0 disables TCP."),
    Directive::text("unixsocket", "", field!(network.unixsocket))
        .about("Path of a Unix socket for clients; empty for none.")
        .immutable(),
    Directive::new("unixsocketperm", "0", Kind::Mode(field!(network.unixsocketperm)))
        .about("File mode of the Unix socket, in octal; 0 leaves the mode to the umask.")
        .immutable(),
    Directive::text("unixsocketgroup", "", field!(network.unixsocketgroup))
        .about("Group that owns the Unix socket; empty uses the group of the process.")
        .immutable(),
    Directive::integer("admin-port", "0", (0, 65535), field!(network.admin_port))
        .about(
            "TCP port of the admin lane, which serves operators even if other clients are \
             stalled. It listens on the loopback addresses only; 0 disables it.",
        )
        .fixed(),
    Directive::text("admin-unixsocket", "", field!(network.admin_unixsocket))
        .about("Path of a Unix socket of the admin lane; empty for none.")
        .fixed(),
    Directive::new("admin-unixsocketperm", "700", Kind::Mode(field!(network.admin_unixsocketperm)))
        .about(
            "File mode of the admin lane's Unix socket, in octal; 0 leaves the mode to the \
             umask.",
        )
        .fixed(),
    Directive::integer("http-port", "0", (0, 65535), field!(network.http_port))
        .about("TCP port for monitoring over HTTP: /metrics, /health and /ready; 0 disables it.")
        .fixed(),
    Directive::new("http-bind", "127.0.0.1 -::1", Kind::Many(special::HTTP_BIND))
        .about("Addresses to listen on for HTTP, in the format of bind.")
        .fixed(),
    Directive::switch("http-tls", "no", field!(network.http_tls))
        .about("Use TLS on http-port, with the certificates and settings of the tls directives.")
        .fixed(),
    Directive::text("http-user", "metrics", field!(network.http_user))
        .about("User name that /metrics requires if http-password is set."),
    Directive::text("http-password", "", field!(network.http_password))
        .about(
            "Password that /metrics requires. If it is empty, /metrics requires no password. In \
             protected mode, only clients on this machine can then use /metrics, /health and \
             /ready.",
        )
        .sensitive()
        .binary(),
    Directive::choice("http-console", "no", choice!(network.http_console)).about(
        "Serve the console, a page for browsers, on http-port. A browser has the permissions of \
         the user that logs in. With yes, the console has no editors, and no buttons that make \
         changes; its prompt still runs every command that the user may run. write adds editors \
         and such buttons.",
    ),
    Directive::text("http-console-hosts", "", field!(network.http_console_hosts)).about(
        "Host names that the URL of the console may contain, separated by spaces. Addresses and \
         localhost are always allowed.",
    ),
    Directive::integer("tcp-backlog", "511", (0, INT_MAX), field!(network.tcp_backlog))
        .about(
            "Maximum number of connections that wait to be accepted. The kernel limits it to \
             net.core.somaxconn.",
        )
        .immutable(),
    Directive::integer("tcp-keepalive", "300", (0, INT_MAX), field!(network.tcp_keepalive)).about(
        "Seconds without traffic after which TCP sends keepalive probes to detect dead \
         connections; 0 sends none.",
    ),
    Directive::switch("protected-mode", "yes", field!(network.protected_mode))
        .about("If no password is set, accept only clients on this machine."),
    Directive::text("bind-source-addr", "", field!(network.bind_source_addr)).about(
        "Local address for connections to the primary and to other nodes of the cluster; empty \
         lets the system choose one.",
    ),
    Directive::integer("socket-mark-id", "0", (0, u32::MAX as i64), field!(network.socket_mark_id))
        .about("Packet mark of the listening sockets.")
        .immutable()
        .ignored("Packet marks are not supported."),
    Directive::choice("io-backend", "auto", choice!(network.io_backend))
        .about(
            "Kernel interface of the event loops. auto uses epoll and, if the kernel permits it, \
             io_uring to receive from or send to several clients in one system call. epoll makes \
             one system call for each receive and each send. io_uring uses io_uring for \
             everything, which usually takes more CPU time than auto.",
        )
        .fixed(),
    Directive::integer("wake-coalescing-us", "50", (0, 1000), field!(network.wake_coalescing_us))
        .about(
            "Microseconds that a busy worker waits before it checks for requests, so that it \
             handles more of them per wakeup. It applies to many clients that send one \
             request at a time; 0 disables it.",
        ),
    Directive::integer(
        "max-new-connections-per-cycle",
        "10",
        (1, 1000),
        field!(network.max_new_connections_per_cycle),
    )
    .about(
        "Maximum number of connections that a worker accepts in one iteration of its \
             event loop, so that a connection storm does not delay existing clients.",
    ),
    Directive::integer(
        "max-new-tls-connections-per-cycle",
        "1",
        (1, 1000),
        field!(network.max_new_tls_connections_per_cycle),
    )
    .about(
        "Maximum number of TLS connections that a worker accepts in one iteration of its event \
         loop; their handshakes cost more.",
    ),
];
