//! Servers, protocols, and ways to reach them.

use brisk::{Builder, Client};
use brisk_testkit::Kind;
use brisk_testkit::proxy::{Proxy, Split};
use brisk_testkit::sentinels::{SERVICE, Sentinels};
use brisk_testkit::server::Server;
use std::fmt;
use std::time::Duration;

/// Values that must live as long as the way is used.
type Kept = Vec<Box<dyn std::any::Any>>;

/// A server that was started, and how a client reaches it. If that way needs more processes, `_keeps` keeps them
/// running.
pub(crate) struct Reached {
    method: &'static str,
    kind: Kind,
    protocol: u8,
    url: String,
    _keeps: Kept,
}

impl fmt::Display for Reached {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} of {:?} over RESP{}", self.method, self.kind, self.protocol)
    }
}

impl Reached {
    /// A builder for a client of this server.
    pub(crate) fn builder(&self) -> Builder {
        Client::builder(&self.url).protocol(self.protocol).timeout(Duration::from_secs(30))
    }
}

/// A way to reach a server.
struct ConnectionMethod {
    name: &'static str,
    /// Returns the URL, and the values that must be kept so that the URL stays valid.
    reach: fn(&Server) -> (String, Kept),
}

const CONNECTION_METHODS: &[ConnectionMethod] = &[
    ConnectionMethod {
        name: "TCP",
        reach: |server| (format!("redis://{}", server.address()), Vec::new()),
    },
    ConnectionMethod {
        name: "a Unix socket",
        reach: |server| (format!("unix://{}", server.unix_socket().display()), Vec::new()),
    },
    ConnectionMethod {
        name: "TCP byte by byte",
        reach: |server| {
            let link = Proxy::to(&server.address());
            link.split(Some(Split { single_bytes: 2000, bytes_max: 500, seed: 5 }));
            (format!("redis://{}", link.address()), vec![Box::new(link)])
        },
    },
    ConnectionMethod {
        name: "sentinels",
        reach: |server| {
            let sentinels = Sentinels::watch(server.port(), 0);
            let url = format!("redis-sentinel://{}/{SERVICE}", sentinels.addresses().join(","));
            (url, vec![Box::new(sentinels)])
        },
    },
];

/// The kinds of server that can be started on this machine.
fn kinds() -> impl Iterator<Item = Kind> {
    [Kind::Redis, Kind::Brisk, Kind::Valkey].into_iter().filter(|kind| kind.is_there())
}

/// Calls `body` with a server of each kind, for all kinds at the same time.
pub(crate) fn each_kind(body: impl Fn(Kind, &Server) + Sync) {
    std::thread::scope(|scope| {
        for kind in kinds() {
            let body = &body;
            scope.spawn(move || body(kind, &kind.launch().start()));
        }
    });
}

/// Runs `body` for each combination.
pub(crate) fn each(body: impl Fn(&Reached) + Sync) {
    each_kind(|kind, server| {
        for protocol in [3, 2] {
            for method in CONNECTION_METHODS {
                // Each combination begins with an empty keyspace.
                server.connect().cmd("FLUSHALL");
                let (url, keeps) = (method.reach)(server);
                body(&Reached { method: method.name, kind, protocol, url, _keeps: keeps });
            }
        }
    });
}
