//! `cargo xtask bench`: compares our server with a peer on one machine, in one run.
//!
//! Both servers run at the same time, pinned to CPU 0, with one worker and without persistence, except in the cases
//! `persistence`, `log`, `replication` and `start`. The load runs on CPU 1. Rounds alternate between the servers, so
//! slow drifts of the machine affect both, and medians are reported. The reliable result is the server's CPU time per
//! operation (all threads, user and system). Requests per second depend on the other load of the machine.
//!
//! - [`sides`]: the servers. [`load`]: redis-benchmark and our own load. [`report`]: the table.
//! - [`throughput`]: rates with redis-benchmark. [`resources`]: memory, stalls, slow readers.
//! - [`blocking`]: blocking clients. [`pubsub`]: messages to many subscribers.
//! - [`types`]: commands on collections, and the memory of collections. [`huge`]: values of millions of elements.
//! - [`expiry`]: keys that expire at the same time.
//! - [`clients`]: CLIENT LIST with ten thousand clients. [`consoles`]: ten open consoles.
//! - [`tracking`]: client-side caching.
//! - [`transactions`]: MULTI and EXEC. [`persistence`]: snapshots during writes.
//! - [`log`]: the append-only file. [`replication`]: primaries and replicas.
//! - [`strings`]: strings of 256 MB. [`start`]: loading a file at startup.
//! - [`every`]: all data commands. [`recorded`]: all data commands, compared with an earlier build. [`large`]: the
//!   commands whose cost may depend on the size.
//! - [`routing`]: the cost of cluster mode per command.
//! - [`generator`]: the cost of brisk-benchmark itself.

mod blocking;
mod clients;
mod consoles;
mod every;
mod expiry;
mod generator;
mod huge;
mod large;
pub(crate) mod load;
mod log;
mod persistence;
mod pubsub;
pub(crate) mod recorded;
mod replication;
mod report;
mod resources;
mod routing;
pub(crate) mod sides;
mod start;
mod strings;
mod throughput;
mod tracking;
mod transactions;
mod types;

use crate::options::Options;
use anyhow::{Result, bail};
use report::Report;
use sides::Sides;

/// The options of every case.
pub(crate) struct Setup<'a> {
    pub(crate) options: &'a Options,
    pub(crate) rounds: usize,
    /// A factor for the number of operations: below 1 for a quick run.
    pub(crate) scale: f64,
}

impl Setup<'_> {
    /// `operations` multiplied by the scale, at least 1000.
    pub(crate) fn scaled(&self, operations: u64) -> u64 {
        ((operations as f64 * self.scale) as u64).max(1000)
    }
}

/// A named measurement.
pub(crate) struct Case {
    pub(crate) name: &'static str,
    pub(crate) about: &'static str,
    pub(crate) run: fn(&Setup<'_>, &mut Report) -> Result<()>,
}

const CASES: &[Case] = &[
    Case {
        name: "throughput",
        about: "PING GET SET MSET at P1, P16, P100, 50 clients",
        run: throughput::matrix,
    },
    Case { name: "script", about: "EVALSHA of GET and SET at P16", run: throughput::script },
    Case {
        name: "transactions",
        about: "MULTI of ten SETs, 50 clients",
        run: transactions::transactions,
    },
    Case { name: "bare", about: "PING compared with the bare event loop", run: throughput::bare },
    Case { name: "kept", about: "GET with 8,000 connected clients", run: throughput::kept },
    Case {
        name: "reconnect",
        about: "one connection per request, 50, 1,000, 8,000 clients",
        run: throughput::reconnect,
    },
    Case {
        name: "info",
        about: "INFO in a loop, alone and with 9,999 idle clients",
        run: throughput::info,
    },
    Case { name: "workers", about: "two workers compared with one", run: throughput::workers },
    Case {
        name: "keys",
        about: "10 M keys: bytes per key, longest pause during insertion",
        run: resources::keys,
    },
    Case {
        name: "slow-reader",
        about: "a million GETs of 1 KiB whose replies are read late",
        run: resources::slow_reader,
    },
    Case {
        name: "slow-readers",
        about: "10,000 clients that never read",
        run: resources::slow_readers,
    },
    Case {
        name: "commands",
        about: "commands on all types, pipelined; --only selects by name",
        run: types::commands,
    },
    Case {
        name: "blocking",
        about: "1,000 clients share 1,000,000 items; 10,000 blocked clients disconnect at once",
        run: blocking::blocking,
    },
    Case {
        name: "huge",
        about: "waits of other clients while huge values are removed, read or created; --part, --only",
        run: huge::huge,
    },
    Case {
        name: "strings",
        about: "changing and reading strings of 256 MB, waits of other clients; --only",
        run: strings::strings,
    },
    Case {
        name: "routing",
        about: "GET and SET at P1 and P100 with cluster mode on, compared with off",
        run: routing::routing,
    },
    Case {
        name: "persistence",
        about: "BGSAVE during writes of 50 clients: waits of clients, duration; --part, --scale",
        run: persistence::persistence,
    },
    Case {
        name: "log",
        about: "the append-only file: CPU compared with no file, rates with always, a busy disk",
        run: log::log,
    },
    Case {
        name: "replication",
        about: "primaries and replicas: CPU per SET, full copies, memory, promotion; --part, --scale",
        run: replication::replication,
    },
    Case {
        name: "expiry",
        about: "a million keys with one expiry time: when they are removed, waits of other clients",
        run: expiry::expiry,
    },
    Case {
        name: "start",
        about: "loading 10 M strings (snapshot, append-only file) and 100,000 hashes; --only",
        run: start::start_with_a_file,
    },
    Case {
        name: "pubsub",
        about: "PUBLISH to 1,000 subscribers, including all deliveries",
        run: pubsub::publish,
    },
    Case {
        name: "tracking",
        about: "GET and SET with client-side caching on, compared with off",
        run: tracking::tracking,
    },
    Case {
        name: "every",
        about: "every data command on small values; --only selects by name",
        run: every::every,
    },
    Case {
        name: "large",
        about: "commands on values of 10,000 elements; --only selects by text",
        run: large::large,
    },
    Case {
        name: "generator",
        about: "CPU per request of brisk-benchmark and redis-benchmark at P1, P16, P100",
        run: generator::generator,
    },
    Case { name: "elements", about: "memory per element of collections", run: types::elements },
    Case {
        name: "client-list",
        about: "CLIENT LIST of 10,000 clients in a loop while 50 work",
        run: clients::list,
    },
    Case {
        name: "consoles",
        about: "PING with 10,000 changed keys per second, next to ten consoles and to none",
        run: consoles::consoles,
    },
    Case {
        name: "churn",
        about: "10,000 connections opened and closed while 50 work",
        run: resources::churn,
    },
];

/// Runs the cases named on the command line.
#[expect(clippy::print_stdout, reason = "the tables are the output of the command")]
pub(crate) fn main(options: &Options) -> Result<bool> {
    let Some(wanted) = options.words.first() else {
        bail!("bench needs the name of a case, `all` or `list`")
    };
    if wanted == "list" {
        CASES.iter().for_each(|case| println!("{:<14}{}", case.name, case.about));
        return Ok(true);
    }
    let cases: Vec<&Case> = CASES
        .iter()
        .filter(|case| wanted == "all" || options.words.iter().any(|w| w == case.name))
        .collect();
    if cases.is_empty() {
        bail!("unknown case {wanted}; `cargo xtask bench list` lists the cases");
    }
    let setup = Setup {
        options,
        rounds: options.number("rounds", 5)?,
        scale: options.number("scale", 1.0)?,
    };
    let _widened = Sides::check_machine()?;
    for case in cases {
        eprintln!("bench: {}: {}", case.name, case.about);
        let mut report = Report::new(case.name);
        (case.run)(&setup, &mut report)?;
        println!("{}", report.table());
        println!("{}", report.json_lines());
    }
    Ok(true)
}
