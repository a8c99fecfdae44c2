//! The duration of startup with files. Both servers load the same files in alternating rounds, on all CPUs.

use super::Setup;
use super::report::{Limit, Report, Row, median};
use super::sides::{ours, unpinned_peer};
use anyhow::{Result, ensure};
use brisk_differential::peer::Peer;
use brisk_testkit::wait::holds_within;
use brisk_testkit::words::encode_into;
use brisk_testkit::{Launch, TempDir};
use std::fs::{self, File};
use std::io::Write;
use std::path::PathBuf;
use std::time::{Duration, Instant};

const STRINGS: u64 = 10_000_000;
/// The number of keys that one DEBUG POPULATE creates, so that no call takes too long.
const STRINGS_AT_ONCE: u64 = 200_000;
const HASHES: u64 = 100_000;
const FIELDS: u64 = 100;
const BATCH: u64 = 100;
/// One in this many keys in the base of an append-only file is set again after the base. By default the file is
/// rewritten when its size has doubled; these changes add about half of that.
const KEYS_PER_CHANGE: u64 = 4;
/// The largest ratio of our time to the peer's, for the strings in all forms. The next constant is that for the hashes.
const STRINGS_RATIO_MAX: f64 = 0.4;
const HASHES_RATIO_MAX: f64 = 0.6;
/// The time limit of a start.
const START_MAX: Duration = Duration::from_secs(300);

/// A kind of data to load.
struct Kind {
    what: &'static str,
    keys: u64,
    /// Writes the files to the server's directory.
    write: fn(&Setup<'_>, &Home, u64) -> Result<()>,
    is_aof: bool,
    ratio: f64,
}

/// The directory of a server.
struct Home(TempDir);

impl Home {
    fn launch(&self, launch: Launch) -> Launch {
        launch.set("dir", &self.0.path("").to_string_lossy())
    }

    fn snapshot(&self) -> PathBuf {
        self.0.path("dump.rdb")
    }

    /// The files of an append-only file, named by the manifest: its base, and the increment.
    fn append_only(&self, base_ending: &str) -> Result<[PathBuf; 2]> {
        let dir = self.0.path("appendonlydir");
        fs::create_dir(&dir)?;
        let base = format!("appendonly.aof.1.base.{base_ending}");
        let changes = "appendonly.aof.1.incr.aof";
        let manifest = format!("file {base} seq 1 type b\nfile {changes} seq 1 type i\n");
        fs::write(dir.join("appendonly.aof.manifest"), manifest)?;
        Ok([dir.join(base), dir.join(changes)])
    }
}

fn snapshot_of_strings(setup: &Setup<'_>, home: &Home, count: u64) -> Result<()> {
    saved(setup, home, |peer| {
        for first in (0..count).step_by(STRINGS_AT_ONCE as usize) {
            let keys = (count - first).min(STRINGS_AT_ONCE).to_string();
            let reply = peer.request(&["DEBUG", "POPULATE", &keys, &format!("key:{first}")]);
            ensure!(reply.map_err(anyhow::Error::msg)? == b"+OK\r\n", "DEBUG POPULATE failed");
        }
        Ok(())
    })
}

fn snapshot_of_hashes(setup: &Setup<'_>, home: &Home, count: u64) -> Result<()> {
    saved(setup, home, |peer| {
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
    })
}

/// Makes the peer save the data that `fill` creates.
fn saved(setup: &Setup<'_>, home: &Home, fill: impl FnOnce(&mut Peer) -> Result<()>) -> Result<()> {
    let writer = home.launch(unpinned_peer(setup)).try_start().map_err(anyhow::Error::msg)?;
    let mut peer = Peer::connect(&writer.address())?;
    fill(&mut peer)?;
    drop(peer);
    // Use a connection with a longer timeout.
    ensure!(writer.connect().cmd("SAVE").text() == "OK", "SAVE failed");
    writer.kill();
    Ok(())
}

/// Writes an append-only file with a snapshot as the base and commands that set some of its keys again.
fn base_and_changes(setup: &Setup<'_>, home: &Home, count: u64) -> Result<()> {
    snapshot_of_strings(setup, home, count)?;
    let [base, changes] = home.append_only("rdb")?;
    fs::rename(home.snapshot(), base)?;
    let keys = (0..count).step_by(KEYS_PER_CHANGE as usize).map(|number| {
        let first = number / STRINGS_AT_ONCE * STRINGS_AT_ONCE;
        (format!("key:{first}:{}", number - first), number)
    });
    write_sets(changes, keys)
}

/// Writes an append-only file of commands only, as without `aof-use-rdb-preamble`.
fn commands(_: &Setup<'_>, home: &Home, count: u64) -> Result<()> {
    let [base, changes] = home.append_only("aof")?;
    File::create(changes)?;
    write_sets(base, (0..count).map(|number| (format!("key:{number}"), number)))
}

fn write_sets(path: PathBuf, keys: impl Iterator<Item = (String, u64)>) -> Result<()> {
    const BUFFER_BYTES: usize = 1 << 20;
    let (mut file, mut bytes) = (File::create(path)?, Vec::new());
    encode_into(&mut bytes, &["SELECT", "0"]);
    for (key, number) in keys {
        encode_into(&mut bytes, &["SET", &key, &format!("value:{number}")]);
        if bytes.len() >= BUFFER_BYTES {
            file.write_all(&bytes)?;
            bytes.clear();
        }
    }
    Ok(file.write_all(&bytes)?)
}

/// Seconds until the server serves keys, and CPU seconds of all threads.
fn start(launch: Launch, kind: &Kind) -> Result<[f64; 2]> {
    let launch = match kind.is_aof {
        true => launch.set("appendonly", "yes").set("auto-aof-rewrite-percentage", "0"),
        false => launch,
    };
    let began = Instant::now();
    let server = launch.while_loading().try_start().map_err(anyhow::Error::msg)?;
    let mut peer = Peer::connect(&server.address())?;
    let served = || peer.request(&["PING"]).is_ok_and(|reply| reply == b"+PONG\r\n");
    ensure!(holds_within(START_MAX, served), "not loaded within {START_MAX:?}");
    let seconds = began.elapsed().as_secs_f64();
    // This includes threads that have ended.
    let cpu = server.cpu_ticks() as f64 / 100.0;
    let size = peer.request(&["DBSIZE"]).map_err(anyhow::Error::msg)?;
    ensure!(size == format!(":{}\r\n", kind.keys).as_bytes(), "not all keys were loaded");
    drop(peer);
    server.kill();
    Ok([seconds, cpu])
}

/// Measures startup with ten million small strings in a snapshot and in an append-only file, and with a hundred
/// thousand hashes. `--only` selects cases by text.
pub(crate) fn start_with_a_file(setup: &Setup<'_>, report: &mut Report) -> Result<()> {
    let (strings, hashes) = (setup.scaled(STRINGS), setup.scaled(HASHES));
    let aof =
        |what, write| Kind { what, keys: strings, write, is_aof: true, ratio: STRINGS_RATIO_MAX };
    let kinds = [
        Kind {
            what: "small strings",
            keys: strings,
            write: snapshot_of_strings,
            is_aof: false,
            ratio: STRINGS_RATIO_MAX,
        },
        Kind {
            what: "hashes of 100 fields",
            keys: hashes,
            write: snapshot_of_hashes,
            is_aof: false,
            ratio: HASHES_RATIO_MAX,
        },
        aof(
            "small strings as base of an append-only file, a quarter of them set again",
            base_and_changes,
        ),
        aof("small strings as commands of an append-only file", commands),
    ];
    let workers = std::thread::available_parallelism()?.get();
    let only = setup.options.text("only").unwrap_or("");
    for kind in kinds.iter().filter(|kind| kind.what.contains(only)) {
        let home = Home(TempDir::new());
        (kind.write)(setup, &home, kind.keys)?;
        let (mut mine, mut theirs) = ([Vec::new(), Vec::new()], [Vec::new(), Vec::new()]);
        for _ in 0..setup.rounds {
            let sides = [(ours(setup, workers)?, &mut mine), (unpinned_peer(setup), &mut theirs)];
            for (launch, metrics) in sides {
                let found = start(home.launch(launch), kind)?;
                metrics.iter_mut().zip(found).for_each(|(all, metric)| all.push(metric));
            }
        }
        let limits =
            [("until keys are served", Limit::Ratio(kind.ratio)), ("CPU time", Limit::None)];
        let Kind { what, keys, .. } = kind;
        for (number, (metric, limit)) in limits.into_iter().enumerate() {
            report.add(Row {
                what: format!("start with {keys} {what}, {workers} workers: {metric}"),
                unit: "s",
                ours: median(&mine[number]),
                theirs: Some(median(&theirs[number])),
                limit,
            });
        }
    }
    Ok(())
}
