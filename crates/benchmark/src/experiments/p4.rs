//! P4: the cost for the server and other clients of a client that pipelines many requests and never reads.

use super::finding::Measurement;
use super::stage::{MIB, Measured, Stage, connect, measure, request};
use super::{Experiment, Found};
use crate::engine::plan::{Arrivals, End, Pace, Plan};
use crate::load::Material;
use brisk_dial::address::Address;
use std::io::{ErrorKind, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

pub(super) const EXPERIMENT: Experiment = Experiment {
    name: "p4",
    title: "A client that does not read its replies",
    what: "A client sends a million GETs of 1 KiB (300,000 short) and reads no replies, while ten \
           other clients send 5,000 requests per second in an open loop. The replies that the \
           server keeps take memory. The article gives no numbers, but recommends sending at most \
           10,000 commands at once.",
    run,
};

const VALUE_BYTES: usize = 1024;
const RATE: f64 = 5000.0;
const OTHERS: usize = 10;
/// Number of requests that the slow reader sends together.
const BATCH: usize = 500;
/// How often the slow reader checks whether the experiment is over.
const LOOK_EVERY: Duration = Duration::from_millis(200);

fn run(stage: &mut Stage<'_>) -> Result<Found, String> {
    let rows = stage.alone(&[], |subject, size, _| {
        let Address::Tcp { resolved, .. } = &subject.target.address else {
            return Err("the slow reader uses TCP: specify a server by host and port".to_owned());
        };
        request(&mut connect(subject)?, &["SET", "large", &"x".repeat(VALUE_BYTES)])?;
        let plan = Plan {
            clients: OTHERS,
            pace: Pace::Open { rate: RATE, arrivals: Arrivals::Even },
            end: End::After(Duration::from_secs(size.pick(3, 10))),
            ..size
                .plan(Material::default().own("GET".to_owned(), &["GET", "other"]), &subject.target)
        };
        let before = measure(&plan, subject)?;
        let over = Arc::new(AtomicBool::new(false));
        let (to, flag) = (*resolved, Arc::clone(&over));
        let requests = size.pick(300_000, 1_000_000);
        let reader = std::thread::Builder::new()
            .name("slow-reader".to_owned())
            .spawn(move || send_without_reading(to, requests, &flag))
            .map_err(|error| error.to_string())?;
        let during = measure(&plan, subject);
        over.store(true, Ordering::Relaxed);
        let taken = reader.join().map_err(|_| "the slow reader failed".to_owned())??;
        Ok(measurements(&before, &during?, taken))
    })?;
    Ok(rows.into())
}

fn measurements(before: &Measured, during: &Measured, taken: usize) -> Vec<Measurement> {
    let growth = during.rss_growth.map(|bytes| bytes / MIB);
    let (before, during) = (&before.summary.latency_ms, &during.summary.latency_ms);
    vec![
        Measurement::less("growth of the server's memory", "MiB", growth),
        Measurement::plain(
            "requests that the server read from the client",
            "requests",
            taken as f64,
        ),
        Measurement::less("latency of the others without this client, p99", "ms", before.p99),
        Measurement::less("latency of the others next to this client, p99", "ms", during.p99),
        Measurement::less("latency of the others next to this client, longest", "ms", during.max),
    ]
}

/// Sends GETs until the server has accepted all of them, then keeps the connection open until the experiment is over.
/// Returns the number of accepted GETs.
fn send_without_reading(
    to: SocketAddr,
    requests: usize,
    over: &AtomicBool,
) -> Result<usize, String> {
    let mut one = Vec::new();
    brisk_resp::request::encode(&mut one, &["GET", "large"]);
    let batch = one.repeat(BATCH);
    let describe = |error: std::io::Error| format!("the slow reader: {error}");
    let mut stream = TcpStream::connect(to).map_err(describe)?;
    stream.set_write_timeout(Some(LOOK_EVERY)).map_err(describe)?;
    let (mut sent, all) = (0, requests * one.len());
    while !over.load(Ordering::Relaxed) {
        if sent >= all {
            std::thread::park_timeout(LOOK_EVERY);
            continue;
        }
        let rest = &batch[sent % batch.len()..];
        match stream.write(&rest[..rest.len().min(all - sent)]) {
            Ok(count) => sent += count,
            // The server is not reading at the moment.
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {}
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            // The server may also disconnect the client.
            Err(_) => break,
        }
    }
    Ok(sent / one.len())
}
