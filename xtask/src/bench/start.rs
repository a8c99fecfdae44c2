//! How long a start takes with a file: both servers load the same one, by turns, on all CPUs.

use super::Setup;
use super::report::{Limit, Report, Row, median};
use super::sides::{ours, unpinned_peer};
use anyhow::{Result, ensure};
use brisk_testkit::diff::peer::Peer;
use brisk_testkit::words::encode_into;
use brisk_testkit::{Launch, TempDir};
use std::time::Instant;

const STRINGS: u64 = 10_000_000;
/// Keys that DEBUG POPULATE makes at a time, which nobody waits for too long.
const STRINGS_AT_ONCE: u64 = 200_000;
const HASHES: u64 = 100_000;
const FIELDS: u64 = 100;
const BATCH: u64 = 100;
/// Our time over the peer's, at most, for the strings and for the hashes.
const STRINGS_RATIO_MAX: f64 = 0.4;
const HASHES_RATIO_MAX: f64 = 0.6;

/// Fills a server, which then saves its file.
type Fill = fn(&mut Peer, u64) -> Result<()>;

fn strings(peer: &mut Peer, count: u64) -> Result<()> {
    for first in (0..count).step_by(STRINGS_AT_ONCE as usize) {
        let keys = (count - first).min(STRINGS_AT_ONCE).to_string();
        let reply = peer.ask(&["DEBUG", "POPULATE", &keys, &format!("key:{first}")]);
        ensure!(reply.map_err(anyhow::Error::msg)? == b"+OK\r\n", "DEBUG POPULATE failed");
    }
    Ok(())
}

fn hashes(peer: &mut Peer, count: u64) -> Result<()> {
    let mut bytes = Vec::new();
    for first in (0..count).step_by(BATCH as usize) {
        bytes.clear();
        let batch = first..(first + BATCH).min(count);
        for number in batch.clone() {
            let mut words = vec!["HSET".to_owned(), format!("hash:{number}")];
            for field in 0..FIELDS {
                words.push(format!("field:{field}"));
                words.push(format!("value:{}", number * field));
            }
            let words: Vec<&str> = words.iter().map(String::as_str).collect();
            encode_into(&mut bytes, &words);
        }
        peer.send(&bytes)?;
        for _ in batch {
            let reply = peer.reply().map_err(anyhow::Error::msg)?;
            ensure!(reply.starts_with(b":"), "HSET failed");
        }
    }
    Ok(())
}

/// Seconds until the server serves keys, and of all CPUs.
fn start(launch: Launch, home: &TempDir, keys: u64) -> Result<[f64; 2]> {
    let launch = launch.set("dir", &home.path("").to_string_lossy());
    let began = Instant::now();
    let server = launch.try_start().map_err(anyhow::Error::msg)?;
    let seconds = began.elapsed().as_secs_f64();
    // Of threads that have ended too.
    let cpu = server.cpu_ticks() as f64 / 100.0;
    let mut peer = Peer::connect(&server.address())?;
    let size = peer.ask(&["DBSIZE"]).map_err(anyhow::Error::msg)?;
    ensure!(size == format!(":{keys}\r\n").as_bytes(), "not all keys were loaded");
    drop(peer);
    server.kill();
    Ok([seconds, cpu])
}

/// Starts with ten million small strings, and with a hundred thousand hashes.
pub(crate) fn start_with_a_file(setup: &Setup<'_>, report: &mut Report) -> Result<()> {
    let kinds: [(&str, u64, Fill, f64); 2] = [
        ("small strings", setup.scaled(STRINGS), strings, STRINGS_RATIO_MAX),
        ("hashes of 100 fields", setup.scaled(HASHES), hashes, HASHES_RATIO_MAX),
    ];
    let workers = std::thread::available_parallelism()?.get();
    for (what, keys, fill, ratio) in kinds {
        let home = TempDir::new();
        let writer = unpinned_peer(setup).set("dir", &home.path("").to_string_lossy());
        let writer = writer.try_start().map_err(anyhow::Error::msg)?;
        let mut peer = Peer::connect(&writer.address())?;
        fill(&mut peer, keys)?;
        drop(peer);
        // Waits longer for a reply.
        ensure!(writer.connect().cmd("SAVE").text() == "OK", "SAVE failed");
        writer.kill();
        let (mut mine, mut theirs) = ([Vec::new(), Vec::new()], [Vec::new(), Vec::new()]);
        for _ in 0..setup.rounds {
            let sides = [(ours(setup, workers)?, &mut mine), (unpinned_peer(setup), &mut theirs)];
            for (launch, figures) in sides {
                let found = start(launch, &home, keys)?;
                figures.iter_mut().zip(found).for_each(|(all, figure)| all.push(figure));
            }
        }
        let limits = [("until keys are served", Limit::Ratio(ratio)), ("of CPU time", Limit::None)];
        for (number, (figure, limit)) in limits.into_iter().enumerate() {
            report.add(Row {
                what: format!("start with {keys} {what}, {workers} workers: {figure}"),
                unit: "s",
                ours: median(&mine[number]),
                theirs: Some(median(&theirs[number])),
                limit,
            });
        }
    }
    Ok(())
}
