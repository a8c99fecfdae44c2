//! Memory per key, stalls, and clients that read late, never read, or connect and disconnect quickly. (M4, P4, S3)

use super::Setup;
use super::load::{Mix, fill, latency_ms, percentile_ms, round_trips, round_trips_on};
use super::report::{Limit, Report, Row, median};
use super::sides::{Sides, load_from_here, step_forward};
use anyhow::{Context, Result, bail, ensure};
use brisk_benchmark::{Arrivals, Pace};
use brisk_differential::peer::Peer;
use brisk_testkit::server::Server;
use brisk_testkit::words::encode;
use std::io::{BufReader, ErrorKind, Read, Write};
use std::net::TcpStream;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// Time for ten thousand clients to receive a megabyte each, on a machine that provides memory slowly.
const SLOW_READERS_MAX: Duration = Duration::from_secs(90);

/// GETs per second next to a client that connects and disconnects: less than half of the highest rate, so that the
/// waits are those that this client causes.
const CHURN_RATE: u32 = 20_000;
/// Connections that this client opens and closes per second. Without a limit, a faster server would get more of them.
const CONNECTION_RATE: u32 = 10_000;
const CHURN_KEYS: u64 = 100_000;
const CHURN_TIME: Duration = Duration::from_secs(5);

const MIB: f64 = 1024.0 * 1024.0;

/// The number of parts of an insertion whose pauses are measured separately.
const INSERTION_PARTS: u64 = 50;

/// Adds one row for each result that `measure` returns.
fn add_rows(
    sides: &Sides,
    report: &mut Report,
    rows: &[(&str, &'static str, Limit)],
    mut measure: impl FnMut(&Server) -> Result<Vec<f64>>,
) -> Result<()> {
    let ours = measure(&sides.ours[0].1).context("ours")?;
    let theirs = measure(&sides.theirs).context("peer")?;
    for (i, &(what, unit, limit)) in rows.iter().enumerate() {
        report.add(Row {
            what: what.to_owned(),
            unit,
            ours: ours[i],
            theirs: theirs[i].is_finite().then_some(theirs[i]),
            limit,
        });
    }
    Ok(())
}

/// The longest iteration of the event loop since CONFIG RESETSTAT, in ms, if the server reports it.
pub(super) fn longest_round_ms(server: &Server) -> Option<f64> {
    let debug = server.connect().cmd("INFO debug").text();
    let us = debug.split("eventloop_duration_max:").nth(1)?.lines().next()?;
    Some(us.parse::<f64>().ok()? / 1000.0)
}

/// The pause that the server itself causes while keys are inserted, in ms. For each part of the keys, the longest
/// iteration of the event loop is measured, and the best of several insertions counts. The result is that of the worst
/// part.
///
/// A pause that the server causes at some number of keys occurs each time. Other pauses do not hit the same part each
/// time: other programs, other virtual machines, and a host that provides memory on first use (2 MiB took 5 to 20 ms
/// the first time, and 0.2 ms later).
fn own_pause_ms(server: &Server, count: u64, insertions: usize) -> Result<f64> {
    let part = count.div_ceil(INSERTION_PARTS);
    let mut best = vec![f64::INFINITY; INSERTION_PARTS as usize];
    for _ in 0..insertions {
        let mut control = server.connect();
        control.cmd("FLUSHALL");
        for (number, best) in (0..).zip(&mut best) {
            control.cmd("CONFIG RESETSTAT");
            fill(server, number * part, part, 8)?;
            let round = longest_round_ms(server).context("no metric for rounds")?;
            *best = best.min(round);
        }
    }
    Ok(best.into_iter().fold(0.0, f64::max))
}

/// Many small keys: the memory per key, and how long other clients wait while the keys are inserted.
pub(crate) fn keys(setup: &Setup<'_>, report: &mut Report) -> Result<()> {
    let count = setup.scaled(10_000_000);
    let sides = Sides::start(setup)?;
    let rows = [
        ("memory per key of 16 bytes with a value of 8 bytes", "bytes", Limit::Most(50.0)),
        ("longest PING while keys are inserted", "ms", Limit::None),
        ("longest round of the event loop while keys are inserted", "ms", Limit::None),
        ("time per inserted key", "µs", Limit::None),
    ];
    add_rows(&sides, report, &rows, |server| {
        let before = server.rss();
        server.connect().cmd("CONFIG RESETSTAT");
        let begun = Instant::now();
        let times = std::thread::scope(|scope| {
            let filling = scope.spawn(|| fill(server, 0, count, 8));
            let times = round_trips(server, || filling.is_finished());
            filling.join().map_err(|_| anyhow::anyhow!("the filling thread panicked"))??;
            times
        })?;
        let took = begun.elapsed().as_secs_f64() * 1e6 / count as f64;
        let per_key = (server.rss() - before) as f64 / count as f64;
        // The peer does not report it.
        let round = longest_round_ms(server).unwrap_or(f64::NAN);
        Ok(vec![per_key, percentile_ms(&times, 100), round, took])
    })?;
    report.add(Row {
        what: format!(
            "longest round that occurs at the same point in each of {} insertions",
            setup.rounds
        ),
        unit: "ms",
        ours: own_pause_ms(&sides.ours[0].1, count, setup.rounds)?,
        theirs: None,
        limit: Limit::Most(2.0),
    });
    Ok(())
}

/// One client sends a million requests and reads the replies later. Memory must not grow, other clients must not wait,
/// and in the end every reply arrives in order.
pub(crate) fn slow_reader(setup: &Setup<'_>, report: &mut Report) -> Result<()> {
    let requested = setup.scaled(1_000_000);
    let sides = Sides::start(setup)?;
    let rows = [
        ("memory for a client that reads late", "MiB", Limit::Most(4.0)),
        ("p99 of another client's PING", "ms", Limit::Ratio(1.5)),
        ("replies read in order", "count", Limit::None),
    ];
    add_rows(&sides, report, &rows, |server| {
        fill(server, 0, 1_000, 1024)?;
        let before = server.rss();
        let socket = TcpStream::connect(server.address())?;
        let mut sender = socket.try_clone()?;
        std::thread::scope(|scope| -> Result<Vec<f64>> {
            let sending = scope.spawn(move || -> Result<()> {
                let batch: Vec<u8> =
                    (0..1_000).flat_map(|i| encode(&["GET", &format!("key:{i:012}")])).collect();
                for _ in 0..requested / 1_000 {
                    sender.write_all(&batch)?;
                }
                Ok(())
            });
            // Wait long enough for a server without back-pressure to accept everything.
            let begun = Instant::now();
            let times = round_trips(server, || {
                begun.elapsed() > Duration::from_secs(8) || sending.is_finished()
            })?;
            let grown = server.rss().saturating_sub(before) as f64 / MIB;
            let mut input = BufReader::with_capacity(1 << 18, socket);
            let mut reply = vec![0; 1024 + 9];
            for i in 0..requested / 1_000 * 1_000 {
                input.read_exact(&mut reply).with_context(|| format!("reply {i}"))?;
                let wanted = format!("$1024\r\n{:01024}\r\n", i % 1_000);
                ensure!(reply == wanted.as_bytes(), "reply {i} is not the one asked for");
            }
            sending.join().map_err(|_| anyhow::anyhow!("the sending thread panicked"))??;
            Ok(vec![grown, percentile_ms(&times, 99), requested as f64])
        })
    })
}

/// Ten thousand clients that send requests and never read. Only our server is measured, because the peer would use all
/// memory.
pub(crate) fn slow_readers(setup: &Setup<'_>, report: &mut Report) -> Result<()> {
    let clients = setup.scaled(10_000) as usize;
    let sides = Sides::start(setup)?;
    let server = &sides.ours[0].1;
    fill(server, 0, 1, 1024)?;
    let before = server.rss();
    let batch = encode(&["GET", "key:000000000000"]).repeat(2_000); // 2 MB of replies each
    // This client connects first, because a new connection would have to wait for the ten thousand others to be
    // accepted.
    let mut working = Peer::connect(&server.address())?;
    let begun = Instant::now();
    let mut deaf = Vec::with_capacity(clients);
    for _ in 0..clients {
        let mut socket = TcpStream::connect(server.address())?;
        socket.set_nonblocking(true)?;
        match socket.write(&batch) {
            Ok(_) => {}
            Err(error) if error.kind() == ErrorKind::WouldBlock => {}
            Err(error) => bail!("a slow reader was refused: {error}"),
        }
        deaf.push(socket);
    }
    // All replies have been sent when the server has stalled each of the clients.
    let mut stalled = 0;
    let mut times = Vec::new();
    while stalled < clients && begun.elapsed() < SLOW_READERS_MAX {
        let turn = Instant::now();
        times.extend(round_trips_on(&mut working, || turn.elapsed() > Duration::from_secs(1))?);
        let info = String::from_utf8_lossy(working.request(&["INFO", "brisk"])?).into_owned();
        let stalls = info.lines().find_map(|line| line.strip_prefix("output_stalls:"));
        stalled = stalls.context("no output_stalls in INFO")?.parse()?;
    }
    times.sort();
    let grown = server.rss().saturating_sub(before) as f64;
    report.ours(
        format!("memory for {clients} clients that read nothing"),
        "MiB",
        grown / MIB,
        Limit::None,
    );
    report.ours(
        "memory for each of these clients",
        "KiB",
        grown / 1024.0 / clients as f64,
        Limit::Most(1_100.0),
    );
    report.ours(
        "clients that the server no longer reads from",
        "count",
        stalled as f64,
        Limit::None,
    );
    report.ours("p99 of another client's PING", "ms", percentile_ms(&times, 99), Limit::None);
    report.ours("another client's longest PING", "ms", percentile_ms(&times, 100), Limit::None);
    Ok(())
}

/// Connections that are opened and closed at a high rate while fifty clients work.
pub(crate) fn churn(setup: &Setup<'_>, report: &mut Report) -> Result<()> {
    let sides = Sides::start(setup)?;
    let what = format!("p99 of {CHURN_RATE} GETs per second of 50 clients");
    let next_to_it = format!("{what} next to {CONNECTION_RATE} connections per second");
    let rows = [
        (&*what, "ms", Limit::None),
        (&*next_to_it, "ms", Limit::Ratio(1.0)),
        ("connections opened and closed", "1/s", Limit::None),
    ];
    add_rows(&sides, report, &rows, |server| {
        fill(server, 0, CHURN_KEYS, 3)?;
        let mut rounds: [Vec<f64>; 3] = Default::default();
        for _ in 0..setup.rounds {
            let quiet = p99_of_gets(server)?;
            let (busy, connections) = p99_next_to_connections(server)?;
            rounds.iter_mut().zip([quiet, busy, connections]).for_each(|(all, one)| all.push(one));
        }
        Ok(rounds.iter().map(|values| median(values)).collect())
    })
}

/// The p99 of GETs in ms, and how many connections were opened and closed per second at the same time.
fn p99_next_to_connections(server: &Server) -> Result<(f64, f64)> {
    let over = AtomicBool::new(false);
    std::thread::scope(|scope| -> Result<_> {
        let connecting = scope.spawn(|| -> Result<f64> {
            load_from_here()?;
            let (begun, mut connections) = (Instant::now(), 0);
            while !over.load(Ordering::SeqCst) {
                let due = begun + Duration::from_secs(1) * connections / CONNECTION_RATE;
                if let Some(left) = due.checked_duration_since(Instant::now()) {
                    std::thread::park_timeout(left);
                }
                drop(TcpStream::connect(server.address())?);
                connections += 1;
            }
            Ok(f64::from(connections) / begun.elapsed().as_secs_f64())
        });
        let p99 = p99_of_gets(server);
        over.store(true, Ordering::SeqCst);
        let connections =
            connecting.join().map_err(|_| anyhow::anyhow!("the connecting thread panicked"))??;
        Ok((p99?, connections))
    })
}

/// The p99 of GETs at a fixed rate, in ms. The generator takes precedence over all other threads on its CPU, since it
/// would otherwise measure its own waits for this CPU. Latencies count from the time at which a request is due.
fn p99_of_gets(server: &Server) -> Result<f64> {
    let requests = [("GET key:__rand_int__", 1)];
    let mix = Mix { requests: &requests, keys: CHURN_KEYS, value_bytes: 3 };
    let pace = Pace::Open { rate: f64::from(CHURN_RATE), arrivals: Arrivals::Poisson };
    let measure = || -> Result<f64> {
        load_from_here()?;
        step_forward()?; // its threads inherit this
        Ok(latency_ms(&mix.run(server, pace, CHURN_TIME)?, 0.99))
    };
    std::thread::scope(|scope| scope.spawn(measure).join())
        .map_err(|_| anyhow::anyhow!("the measuring thread panicked"))?
}
