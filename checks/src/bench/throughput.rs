//! Rates and CPU time per operation with redis-benchmark. (P2, P3, S1, S2, I1)

use super::Setup;
use super::load::{Rate, Run, benchmark, benchmark_at, fill};
use super::report::{Limit, Report, Row, median};
use super::sides::{Bare, Sides, ours};
use anyhow::Result;
use brisk_testkit::Conn;
use brisk_testkit::server::{Launch, Server};

const KEYS: u64 = 1_000_000;
const KEY: &str = "key:__rand_int__";

/// Selects one result of a rate.
type MetricFn = fn(&Rate) -> f64;

/// Runs `run` on every server in turn, `setup.rounds` times. Adds the medians to the report.
pub(super) fn compare(
    setup: &Setup<'_>,
    sides: &Sides,
    what: &str,
    run: &Run<'_>,
    limit: Limit,
    report: &mut Report,
) -> Result<()> {
    compare_each(setup, sides, what, run, |_| limit, report)
}

/// Like [`compare`], with a limit that depends on the server's back end.
fn compare_each(
    setup: &Setup<'_>,
    sides: &Sides,
    what: &str,
    run: &Run<'_>,
    limit: impl Fn(&str) -> Limit,
    report: &mut Report,
) -> Result<()> {
    let servers = sides.all();
    let mut rates: Vec<Vec<Rate>> = servers.iter().map(|_| Vec::new()).collect();
    for round in 0..setup.rounds {
        for i in 0..servers.len() {
            // The order rotates, so that no server always runs first.
            let i = (i + round) % servers.len();
            rates[i].push(benchmark(servers[i], run)?);
        }
    }
    let of = |i: usize, metric: MetricFn| median(&rates[i].iter().map(metric).collect::<Vec<_>>());
    let peer = servers.len() - 1;
    for (i, (label, _)) in sides.ours.iter().enumerate() {
        let mut row = |unit, metric: MetricFn, limit| {
            let what = format!("{what}{label}");
            report.add(Row {
                what,
                unit,
                ours: of(i, metric),
                theirs: Some(of(peer, metric)),
                limit,
            });
        };
        row("µs of CPU time", |rate| rate.cpu_us, limit(label));
        row("requests/s", |rate| rate.per_second, Limit::None);
        row("ms (p99)", |rate| rate.p99_ms, Limit::None);
    }
    Ok(())
}

/// PING, GET, SET and MSET, one at a time and pipelined.
pub(crate) fn matrix(setup: &Setup<'_>, report: &mut Report) -> Result<()> {
    let sides = Sides::start(setup)?;
    for server in sides.all() {
        fill(server, 0, KEYS, 3)?;
    }
    let ping: &[&str] = &["PING"];
    let get: &[&str] = &["GET", KEY];
    let set: &[&str] = &["SET", KEY, "xxx"];
    for (pipeline, operations, limit) in
        [(1, 200_000, 0.88), (16, 1_600_000, 0.55), (100, 4_000_000, 0.25)]
    {
        for (name, command) in [("PING", ping), ("GET", get), ("SET", set)] {
            let operations = setup.scaled(operations);
            let run =
                Run { command, operations, clients: 50, pipeline, keep_alive: true, keys: KEYS };
            compare(
                setup,
                &sides,
                &format!("{name}, pipeline depth {pipeline}"),
                &run,
                // PING reads no data, so it is compared with the bare loop instead.
                if name == "PING" { Limit::None } else { Limit::Ratio(limit) },
                report,
            )?;
        }
    }
    let mut command = vec!["MSET"];
    (0..10).for_each(|_| command.extend([KEY, "xxx"]));
    let operations = setup.scaled(500_000);
    let run = Run {
        command: &command,
        operations,
        clients: 50,
        pipeline: 100,
        keep_alive: true,
        keys: KEYS,
    };
    compare(setup, &sides, "MSET of 10 keys, pipeline depth 100", &run, Limit::Ratio(0.3), report)
}

/// EVALSHA of a script that reads and writes the key it declares.
pub(crate) fn script(setup: &Setup<'_>, report: &mut Report) -> Result<()> {
    const SOURCE: &str = "redis.call('GET', KEYS[1]) return redis.call('SET', KEYS[1], ARGV[1])";
    let sides = Sides::start(setup)?;
    let mut digest = String::new();
    for server in sides.all() {
        fill(server, 0, KEYS, 3)?;
        digest = server.connect().call(&["SCRIPT", "LOAD", SOURCE]).text();
    }
    let command: &[&str] = &["EVALSHA", &digest, "1", KEY, "xxx"];
    let operations = setup.scaled(800_000);
    let run = Run { command, operations, clients: 50, pipeline: 16, keep_alive: true, keys: KEYS };
    compare(
        setup,
        &sides,
        "EVALSHA of GET and SET, pipeline depth 16",
        &run,
        Limit::Ratio(0.7),
        report,
    )
}

/// PING compared with an event loop that does nothing else: the cost of parsing and dispatch.
pub(crate) fn bare(setup: &Setup<'_>, report: &mut Report) -> Result<()> {
    let sides = Sides::start(setup)?;
    let server = &sides.ours[0].1;
    let bare = Bare::ping_loop(server)?;
    for (pipeline, operations, limit) in
        [(1, 300_000, Limit::Ratio(1.05)), (16, 1_600_000, Limit::None)]
    {
        let operations = setup.scaled(operations);
        let command = &["PING"];
        let run = Run { command, operations, clients: 50, pipeline, keep_alive: true, keys: 0 };
        let (mut ours, mut theirs) = (Vec::new(), Vec::new());
        for _ in 0..setup.rounds {
            ours.push(benchmark(server, &run)?.cpu_us);
            theirs.push(benchmark_at(bare.port, bare.pid(), &run)?.cpu_us);
        }
        report.add(Row {
            what: format!("PING, pipeline depth {pipeline}, compared with a bare event loop"),
            unit: "µs of CPU time",
            ours: median(&ours),
            theirs: Some(median(&theirs)),
            limit,
        });
    }
    Ok(())
}

/// Thousands of clients that stay connected.
pub(crate) fn kept(setup: &Setup<'_>, report: &mut Report) -> Result<()> {
    let sides = Sides::start_each_backend(setup)?;
    for server in sides.all() {
        fill(server, 0, KEYS, 3)?;
    }
    let operations = setup.scaled(400_000);
    let run = Run {
        command: &["GET", KEY],
        operations,
        clients: 8_000,
        pipeline: 1,
        keep_alive: true,
        keys: KEYS,
    };
    compare(setup, &sides, "GET, 8,000 clients", &run, Limit::Ratio(0.8), report)
}

/// One connection per request.
pub(crate) fn reconnect(setup: &Setup<'_>, report: &mut Report) -> Result<()> {
    let sides = Sides::start_each_backend(setup)?;
    for server in sides.all() {
        fill(server, 0, KEYS, 3)?;
    }
    for (clients, operations) in [(50, 40_000), (1_000, 40_000), (8_000, 60_000)] {
        let operations = setup.scaled(operations);
        let run = Run {
            command: &["GET", KEY],
            operations,
            clients,
            pipeline: 1,
            keep_alive: false,
            keys: KEYS,
        };
        let limit =
            |backend: &str| Limit::Ratio(if backend.contains("io_uring") { 0.75 } else { 0.85 });
        let what = format!("GET, {clients} clients, a connection per request");
        compare_each(setup, &sides, &what, &run, limit, report)?;
    }
    Ok(())
}

/// INFO in a loop, with 50 clients as in the other cases, and with one client, for which most of the cost is waking up
/// an idle server. Idle connections must not make it more expensive.
pub(crate) fn info(setup: &Setup<'_>, report: &mut Report) -> Result<()> {
    const IDLE: usize = 9_999;
    let sides = Sides::start(setup)?;
    let servers = [&sides.ours[0].1, &sides.theirs];
    let rate = |server: &Server, clients| -> Result<f64> {
        let operations = setup.scaled(100_000);
        let command = &["INFO"];
        let run = Run { command, operations, clients, pipeline: 1, keep_alive: true, keys: 0 };
        Ok(benchmark(server, &run)?.cpu_us)
    };
    for (clients, limit) in [(50, Limit::Ratio(0.6)), (1, Limit::None)] {
        let mut rounds: [[Vec<f64>; 2]; 2] = Default::default();
        for _ in 0..setup.rounds {
            for (server, rounds) in servers.iter().zip(&mut rounds) {
                rounds[0].push(rate(server, clients)?);
                // Idle clients connect to one server at a time, because together they would exceed the process's limit
                // on descriptors.
                let idle: Vec<Conn> = (0..IDLE).map(|_| server.connect()).collect();
                rounds[1].push(rate(server, clients)?);
                drop(idle);
            }
        }
        let [ours, theirs] = rounds.map(|both| both.map(|rounds| median(&rounds)));
        let (alone, with_idle) = ([ours[0], theirs[0]], [ours[1], theirs[1]]);
        let mut row = |what: &str, unit, [ours, theirs]: [f64; 2], limit| {
            let what = format!("INFO, clients: {clients}{what}");
            report.add(Row { what, unit, ours, theirs: Some(theirs), limit });
        };
        row("", "µs of CPU time", alone, limit);
        row(", next to 9,999 idle clients", "µs of CPU time", with_idle, limit);
        let increase = [ours[1] / ours[0], theirs[1] / theirs[0]];
        row(", next to 9,999 idle clients, relative to none", "ratio", increase, Limit::Most(1.05));
    }
    Ok(())
}

/// A command prefix that starts a server with a scheduling policy under which it wakes up without preempting the
/// running thread.
const GIVING_WAY: [&str; 3] = ["chrt", "--batch", "0"];

/// The directive for how long the loop collects requests before it sleeps.
const COALESCING: &str = "wake-coalescing-us";

/// Our server with two workers compared with one.
///
/// Two workers and the load share two CPUs here. A worker that wakes up preempts the generator that sends its requests,
/// and finds one request instead of ten. The second pair of rows shows the result without this preemption
/// ([`GIVING_WAY`]), which is closer to clients on another machine. In the third pair, workers do not wait for further
/// requests before they sleep. A single worker gains more from that wait than each of two workers, which serves only
/// half of the clients. So this difference is not a cost of sharing.
pub(crate) fn workers(setup: &Setup<'_>, report: &mut Report) -> Result<()> {
    let lcs: &[&str] = &["LCS", "{__rand_int__}a", "{__rand_int__}a"];
    let start = |launch: Launch| -> Result<Server> {
        let server = launch.try_start().map_err(anyhow::Error::msg)?;
        fill(&server, 0, 100_000, 3)?;
        let mut conn = server.connect();
        // Long enough that the server does ten times as much work as the generator.
        let value = "abcdefghij".repeat(400);
        for chunk in (0..1_000u32).collect::<Vec<_>>().chunks(100) {
            let lines: Vec<String> =
                chunk.iter().map(|i| format!("SET {{{i:012}}}a {value}")).collect();
            conn.pipeline(&lines.iter().map(String::as_str).collect::<Vec<_>>());
        }
        Ok(server)
    };
    let at_once = |workers| Ok::<_, anyhow::Error>(ours(setup, workers)?.set(COALESCING, "0"));
    let servers = [
        start(ours(setup, 1)?)?,
        start(ours(setup, 2)?)?,
        start(ours(setup, 2)?.under(&GIVING_WAY))?,
        start(at_once(1)?)?,
        start(at_once(2)?)?,
    ];
    let pairs = [
        (1, 0, ""),
        (2, 0, " that run without preempting the generator"),
        (4, 3, " that do not wait for further requests"),
    ];
    let cases: [(&str, &[&str], u64, u64); 3] = [
        ("LCS of 4,000 bytes", lcs, 30_000, 1_000),
        ("GET", &["GET", KEY], 200_000, 100_000),
        ("SET", &["SET", KEY, "xxx"], 200_000, 100_000),
    ];
    for (name, command, operations, keys) in cases {
        let operations = setup.scaled(operations);
        let run = Run { command, operations, clients: 50, pipeline: 1, keep_alive: true, keys };
        let mut rates = servers.each_ref().map(|_| Vec::new());
        for _ in 0..setup.rounds {
            for (server, rates) in servers.iter().zip(&mut rates) {
                rates.push(benchmark(server, &run)?);
            }
        }
        let of = |i: usize, metric: fn(&Rate) -> f64| {
            median(&rates[i].iter().map(metric).collect::<Vec<_>>())
        };
        let (rate, cost) = if command == lcs {
            (Limit::RatioAtLeast(1.7), Limit::None)
        } else {
            (Limit::None, Limit::Ratio(1.12))
        };
        let metrics: [(_, MetricFn); 2] = [
            (("requests/s", rate), |rate| rate.per_second),
            (("µs of CPU time", cost), |rate| rate.cpu_us),
        ];
        for (two, one, how) in pairs {
            for ((unit, limit), metric) in metrics {
                let what = format!("{name}, two workers{how}, compared with one");
                let (ours, theirs) = (of(two, metric), Some(of(one, metric)));
                report.add(Row { what, unit, ours, theirs, limit });
            }
        }
    }
    Ok(())
}
