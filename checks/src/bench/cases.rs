//! The cases of `cargo xtask bench`.

use super::report::Report;
use super::{
    Setup, blocking, clients, consoles, every, expiry, generator, huge, large, log, persistence,
    pubsub, replication, resources, routing, start, strings, tails, throughput, tracking,
    transactions, types,
};
use anyhow::Result;

/// A named measurement.
pub(crate) struct Case {
    pub(crate) name: &'static str,
    pub(crate) about: &'static str,
    pub(crate) run: Run,
    /// False if our server is compared with itself under other settings, or with a part of itself. The case is then
    /// measured once, regardless of the number of peers.
    pub(crate) has_peer: bool,
    /// The options that select a part of the case.
    pub(crate) selected_by: &'static str,
}

impl Case {
    const fn selected_by(self, options: &'static str) -> Case {
        Case { selected_by: options, ..self }
    }
}

type Run = fn(&Setup<'_>, &mut Report) -> Result<()>;

/// A case that compares our server with each peer.
const fn case(name: &'static str, about: &'static str, run: Run) -> Case {
    Case { name, about, run, has_peer: true, selected_by: "" }
}

/// A case that does not need another server's results.
const fn alone(name: &'static str, about: &'static str, run: Run) -> Case {
    Case { name, about, run, has_peer: false, selected_by: "" }
}

pub(super) const CASES: &[Case] = &[
    case(
        "throughput",
        "PING, GET, SET, MSET at pipeline depths 1, 16, 100, 50 clients",
        throughput::matrix,
    ),
    case("script", "EVALSHA of GET and SET at pipeline depth 16", throughput::script),
    case("transactions", "MULTI of ten SETs, 50 clients", transactions::transactions),
    alone("bare", "PING compared with the bare event loop", throughput::bare),
    case("kept", "GET with 8,000 connected clients", throughput::kept),
    case(
        "reconnect",
        "one connection per request, 50, 1,000, 8,000 clients",
        throughput::reconnect,
    ),
    case("info", "INFO in a loop, alone and with 9,999 idle clients", throughput::info),
    alone("workers", "two workers compared with one", throughput::workers),
    case("keys", "10 M keys: bytes per key, longest pause during insertion", resources::keys),
    case(
        "slow-reader",
        "a million GETs of 1 KiB whose replies are read late",
        resources::slow_reader,
    ),
    alone("slow-readers", "10,000 clients that never read", resources::slow_readers),
    case("commands", "commands on all types, pipelined", types::commands).selected_by("--only"),
    case(
        "blocking",
        "1,000 clients share 1,000,000 items; 10,000 blocked clients disconnect at once",
        blocking::blocking,
    ),
    case(
        "huge",
        "waits of other clients while huge values are removed, read or created",
        huge::huge,
    )
    .selected_by("--part, --only"),
    case(
        "strings",
        "changing and reading strings of 256 MB, waits of other clients",
        strings::strings,
    )
    .selected_by("--only"),
    alone(
        "routing",
        "GET and SET at pipeline depths 1 and 100 with cluster mode, compared with none",
        routing::routing,
    ),
    case(
        "persistence",
        "BGSAVE during writes of 50 clients: waits of clients, duration",
        persistence::persistence,
    )
    .selected_by("--part"),
    case(
        "tails",
        "waits at 70 % of the highest rate while keys expire and are evicted and snapshots are written",
        tails::tails,
    ),
    case(
        "log",
        "the append-only file: CPU compared with no file, rates with always, a busy disk",
        log::log,
    ),
    case(
        "replication",
        "primaries and replicas: CPU per SET, full copies, memory, promotion",
        replication::replication,
    )
    .selected_by("--part"),
    case(
        "expiry",
        "a million keys with one expiry time: when they are removed, waits of other clients",
        expiry::expiry,
    ),
    case(
        "start",
        "loading 10 M strings (snapshot, append-only file) and 100,000 hashes",
        start::start_with_a_file,
    )
    .selected_by("--only"),
    case("pubsub", "PUBLISH to 1,000 subscribers, including all deliveries", pubsub::publish),
    alone(
        "tracking",
        "GET and SET with client-side caching on, compared with off",
        tracking::tracking,
    ),
    case("every", "every data command on small values", every::every).selected_by("--only"),
    case("large", "commands on values of 10,000 elements", large::large).selected_by("--only"),
    alone(
        "generator",
        "CPU time per request of brisk-benchmark and redis-benchmark at pipeline depths 1, 16, 100",
        generator::generator,
    ),
    case("elements", "memory per element of collections", types::elements),
    case("client-list", "CLIENT LIST of 10,000 clients in a loop while 50 work", clients::list),
    alone(
        "consoles",
        "PING with 10,000 changed keys per second, next to ten consoles and to none",
        consoles::consoles,
    ),
    case(
        "churn",
        "p99 of 50 clients next to 10,000 connections per second that open and close",
        resources::churn,
    ),
];
