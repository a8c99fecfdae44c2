//! The waits of other clients while ten consoles are open in browsers and 10,000 keys per second change. Here "peer" is
//! the same server without consoles.

use super::Setup;
use super::load::{fill, percentile_ms, round_trips};
use super::report::{Limit, Report, Row, median};
use super::sides::{load_from_here, ours, step_forward};
use anyhow::{Context, Result, ensure};
use brisk_differential::peer::Peer;
use brisk_testkit::port::Port;
use brisk_testkit::server::{Server, cpu_ns};
use brisk_testkit::wait::holds_within;
use brisk_testkit::words::encode_into;
use std::io::{Read, Write};
use std::net::{Shutdown, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

const CONSOLES: usize = 10;
const KEYS: u64 = 1_000_000;
const WRITES_PER_SECOND: u64 = 10_000;
/// The writer sends this many requests together.
const WRITES_PER_BATCH: u64 = 50;
/// Both sides are measured for this long in each round.
const MEASURED: Duration = Duration::from_secs(10);
/// The time between two requests of a console, as in the page.
const REFRESH: Duration = Duration::from_secs(1);

/// Measures the round trips of one client, alternately without and with consoles.
pub(crate) fn consoles(setup: &Setup<'_>, report: &mut Report) -> Result<()> {
    let http = Port::claim();
    let port = http.number().to_string();
    let server = ours(setup, 1)?.set("http-port", &port).set("http-console", "yes");
    let server = server.try_start().map_err(anyhow::Error::msg)?;
    fill(&server, 0, KEYS, 100)?;
    let mut rounds = [Vec::new(), Vec::new()];
    for _ in 0..setup.rounds {
        rounds[0].push(measure(&server, &[])?);
        let open: Result<Vec<TcpStream>> = (0..CONSOLES).map(|_| open(http.number())).collect();
        rounds[1].push(measure(&server, &open?)?);
    }
    let names = ["median", "p99", "p99.9", "longest", "server CPU per second"];
    for (at, name) in names.into_iter().enumerate() {
        let [without, with] = rounds.each_ref().map(|rounds: &Vec<[f64; 5]>| {
            median(&rounds.iter().map(|round| round[at]).collect::<Vec<_>>())
        });
        report.add(Row {
            what: format!("PING while {CONSOLES} consoles are open, compared with none: {name}"),
            unit: "ms",
            ours: with,
            theirs: Some(without),
            limit: Limit::None,
        });
    }
    Ok(())
}

/// The percentiles of the round trips, and the CPU time of the server per second, in ms.
fn measure(server: &Server, consoles: &[TcpStream]) -> Result<[f64; 5]> {
    let done = &AtomicBool::new(false);
    std::thread::scope(|scope| -> Result<[f64; 5]> {
        let writer = scope.spawn(move || write(server, done));
        let readers: Vec<_> =
            consoles.iter().map(|console| scope.spawn(move || drain(console))).collect();
        let refresher = scope.spawn(move || refresh(consoles, done));
        let measured = load_from_here().and_then(|()| step_forward()).and_then(|()| {
            let (begun, cpu) = (Instant::now(), cpu_ns(server.pid()));
            let times = round_trips(server, || begun.elapsed() > MEASURED)?;
            let cpu_ms = (cpu_ns(server.pid()) - cpu) as f64 / 1e6;
            let [p50, p99, longest] = [50, 99, 100].map(|percent| percentile_ms(&times, percent));
            let p999 = percentile_ms(&times[times.len() * 9 / 10..], 99);
            Ok([p50, p99, p999, longest, cpu_ms / begun.elapsed().as_secs_f64()])
        });
        done.store(true, Ordering::Relaxed);
        let joined = |failed: std::thread::Result<Result<()>>| {
            failed.map_err(|_| anyhow::anyhow!("a thread of the load panicked"))?
        };
        joined(writer.join()).context("the writer")?;
        joined(refresher.join()).context("the requests of the consoles")?;
        for console in consoles {
            console.shutdown(Shutdown::Both)?;
        }
        for reader in readers {
            joined(reader.join()).context("a console")?;
        }
        measured
    })
}

/// Changes keys at a fixed rate.
fn write(server: &Server, done: &AtomicBool) -> Result<()> {
    load_from_here()?;
    let mut peer = Peer::connect(&server.address())?;
    let (begun, mut sent) = (Instant::now(), 0);
    while !done.load(Ordering::Relaxed) {
        let mut bytes = Vec::new();
        for number in sent..sent + WRITES_PER_BATCH {
            let key = format!("key:{:012}", number * 7_919 % KEYS);
            encode_into(&mut bytes, &["SET", &key, &format!("{number:0100}")]);
        }
        peer.send(&bytes)?;
        for _ in 0..WRITES_PER_BATCH {
            peer.reply().map_err(anyhow::Error::msg)?;
        }
        sent += WRITES_PER_BATCH;
        let due = begun + Duration::from_secs_f64(sent as f64 / WRITES_PER_SECOND as f64);
        wait_for(due, done);
    }
    Ok(())
}

/// Waits until `due`, or until the measurement is over.
fn wait_for(due: Instant, done: &AtomicBool) {
    holds_within(due.saturating_duration_since(Instant::now()), || done.load(Ordering::Relaxed));
}

/// Opens a WebSocket as the page does, and subscribes to its events.
fn open(port: u16) -> Result<TcpStream> {
    let mut stream = TcpStream::connect(("127.0.0.1", port))?;
    write!(
        stream,
        "GET /console/session HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nOrigin: http://127.0.0.1:{port}\r\n\
         Upgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13\r\n\
         Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Protocol: brisk-console\r\n\r\n"
    )?;
    let mut head = [0; 12];
    stream.read_exact(&mut head)?;
    ensure!(
        &head == b"HTTP/1.1 101",
        "the console was rejected: {}",
        String::from_utf8_lossy(&head)
    );
    send(&stream, 1, b"events on")?;
    Ok(stream)
}

/// Sends a short message with a mask of zeros.
fn send(mut stream: &TcpStream, opcode: u8, payload: &[u8]) -> Result<()> {
    let mut frame = vec![0x80 | opcode, 0x80 | payload.len() as u8, 0, 0, 0, 0];
    frame.extend_from_slice(payload);
    Ok(stream.write_all(&frame)?)
}

/// Requests in every console, once per second, what the overview of the page requests.
fn refresh(consoles: &[TcpStream], done: &AtomicBool) -> Result<()> {
    load_from_here()?;
    let mut due = Instant::now();
    while !done.load(Ordering::Relaxed) {
        for console in consoles {
            send(console, 2, b"LATENCY HISTOGRAM\r\n")?;
        }
        due += REFRESH;
        wait_for(due, done);
    }
    Ok(())
}

/// Reads the output of a console until the connection is shut down.
fn drain(mut console: &TcpStream) -> Result<()> {
    load_from_here()?;
    let mut buffer = [0; 65_536];
    while console.read(&mut buffer)? > 0 {}
    Ok(())
}
