//! CLIENT LIST with ten thousand clients while fifty others work. (I1)

use super::Setup;
use super::load::fill;
use super::report::{Limit, Report, Row, median};
use super::sides::{Sides, load_from_here, stand_back};
use anyhow::{Context, Result};
use brisk_differential::peer::Peer;
use brisk_testkit::server::Server;
use std::net::TcpStream;
use std::sync::Barrier;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

const IDLE: u64 = 10_000;
const WORKING: usize = 50;
const KEYS: u64 = 100_000;

/// The results of the working clients.
struct Seen {
    p50_ms: f64,
    p999_ms: f64,
    max_ms: f64,
    lists_per_second: f64,
}

impl Seen {
    fn median(rounds: &[Seen]) -> Seen {
        let of = |metric: fn(&Seen) -> f64| median(&rounds.iter().map(metric).collect::<Vec<_>>());
        Seen {
            p50_ms: of(|seen| seen.p50_ms),
            p999_ms: of(|seen| seen.p999_ms),
            max_ms: of(|seen| seen.max_ms),
            lists_per_second: of(|seen| seen.lists_per_second),
        }
    }
}

/// GETs of fifty clients while ten thousand others are idle, alternately without and with CLIENT LIST in a loop.
/// Reports the medians of the rounds.
pub(crate) fn list(setup: &Setup<'_>, report: &mut Report) -> Result<()> {
    let sides = Sides::start(setup)?;
    let requests = setup.scaled(200_000) as usize / WORKING;
    let measure = |server: &Server| -> Result<[Seen; 2]> {
        fill(server, 0, KEYS, 3)?;
        let idle: Result<Vec<TcpStream>, _> =
            (0..setup.scaled(IDLE)).map(|_| TcpStream::connect(server.address())).collect();
        let _idle = idle.context("the idle clients")?;
        let mut rounds = [Vec::new(), Vec::new()];
        for _ in 0..setup.rounds {
            rounds[0].push(work(server, requests, false)?);
            rounds[1].push(work(server, requests, true)?);
        }
        Ok(rounds.map(|rounds| Seen::median(&rounds)))
    };
    let ours = measure(&sides.ours[0].1).context("ours")?;
    let theirs = measure(&sides.theirs).context("peer")?;
    for (at, when) in ["alone", "during CLIENT LIST"].into_iter().enumerate() {
        let (ours, theirs) = (&ours[at], &theirs[at]);
        let metrics = [
            ("median", ours.p50_ms, theirs.p50_ms, Limit::None),
            ("p99.9", ours.p999_ms, theirs.p999_ms, Limit::Ratio(1.0)),
            ("longest", ours.max_ms, theirs.max_ms, Limit::None),
        ];
        for (name, ours, theirs, limit) in metrics {
            report.add(Row {
                what: format!("GET of {WORKING} clients, {name}, {when}"),
                unit: "ms",
                ours,
                theirs: Some(theirs),
                limit,
            });
        }
    }
    report.add(Row {
        what: format!("CLIENT LIST of {} clients", setup.scaled(IDLE) as usize + WORKING + 1),
        unit: "1/s",
        ours: ours[1].lists_per_second,
        theirs: Some(theirs[1].lists_per_second),
        limit: Limit::None,
    });
    Ok(())
}

/// Runs fifty clients with one thread each, which send one GET after the other, and a client that calls CLIENT LIST.
fn work(server: &Server, requests: usize, with_lists: bool) -> Result<Seen> {
    let done = &AtomicBool::new(false);
    // No thread starts working until all have moved to their CPUs.
    let ready = &Barrier::new(WORKING + usize::from(with_lists));
    let (mut times, lists_per_second) = std::thread::scope(|scope| -> Result<_> {
        let listing = scope.spawn(move || -> Result<f64> {
            let (begun, mut lists) = (Instant::now(), 0);
            if with_lists {
                let connected = load_from_here().and_then(|()| {
                    stand_back()?;
                    Peer::connect(&server.address())
                });
                ready.wait();
                let mut peer = connected?;
                while !done.load(Ordering::Relaxed) {
                    peer.request(&["CLIENT", "LIST"])?;
                    lists += 1;
                }
            }
            Ok(f64::from(lists) / begun.elapsed().as_secs_f64())
        });
        let working: Vec<_> = (0..WORKING)
            .map(|at| scope.spawn(move || time_gets(server, ready, at, requests)))
            .collect();
        let mut times = Vec::with_capacity(requests * WORKING);
        let mut failed = None;
        for thread in working {
            match thread.join().map_err(|_| anyhow::anyhow!("a working thread panicked")) {
                Ok(Ok(own)) => times.extend(own),
                Ok(Err(error)) | Err(error) => failed = Some(error),
            }
        }
        done.store(true, Ordering::Relaxed);
        let lists =
            listing.join().map_err(|_| anyhow::anyhow!("the listing thread panicked"))??;
        failed.map_or(Ok((times, lists)), Err)
    })?;
    times.sort_unstable();
    let at = |share: f64| {
        let index = ((times.len() - 1) as f64 * share) as usize;
        times.get(index).map_or(f64::NAN, |time| time.as_secs_f64() * 1000.0)
    };
    Ok(Seen { p50_ms: at(0.5), p999_ms: at(0.999), max_ms: at(1.0), lists_per_second })
}

fn time_gets(
    server: &Server,
    ready: &Barrier,
    client: usize,
    requests: usize,
) -> Result<Vec<Duration>> {
    let connected = load_from_here().and_then(|()| Peer::connect(&server.address()));
    ready.wait();
    let mut peer = connected?;
    let mut times = Vec::with_capacity(requests);
    for number in 0..requests as u64 {
        let key = format!("key:{:012}", (number * 7_919 + client as u64) % KEYS);
        let sent_at = Instant::now();
        peer.request(&["GET", &key])?;
        times.push(sent_at.elapsed());
    }
    Ok(times)
}
