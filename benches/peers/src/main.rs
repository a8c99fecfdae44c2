//! Compares Brisk's client library with other Rust libraries: rates, latencies and CPU time, in paired rounds.
//!
//! ```text
//! cargo run --release -- [--server ADDRESS] [--pid PID] [--far ADDRESS] [--rounds 9] [--seconds 1]
//!                        [--only CASE] [--client NAME] [--threads 1] [--markdown]
//! ```
//!
//! All clients read the same keys of the same server from the same runtime, over one connection each. In each round,
//! every client is measured once, in rotating order. The output shows the medians of the ratios per round. Pin the
//! server and this program to different CPUs. `--pid` is the process ID of the server, to count its CPU time.
//!
//! | case | description |
//! |---|---|
//! | `rt_single` | one caller, one GET after the other |
//! | `fan_8` to `fan_1024` | this number of callers of GET, without explicit pipelining |
//! | `batch_100` | one caller, SETs in explicit pipelines of 100; the rate is that of SETs |
//! | `rtt12_200` | 200 callers of GET with a round trip of 12 ms: the fraction of the limit (16,667/s) reached |
//! | `mixed_big` | 64 callers of GET, with one in a hundred requests for 1 MiB: latency of the small ones, and their p99 if all are small |
//! | `open_20k` | 20,000 GETs per second, even if earlier ones have no reply yet: latency from the scheduled time, and CPU time |
//! | `idle` | 200 clients that have sent one request: resident memory per client |
//!
//! `rtt12_200` needs `--far`, the address of the same server through a delay proxy:
//!
//! ```text
//! brisk-benchmark delay-proxy --listen 127.0.0.1:7012 --to 127.0.0.1:6379 --delay 6
//! ```

mod cases;
mod report;
mod subjects;

use anyhow::{Context, Result, bail, ensure};
use cases::{CASES, Case, Measurements, Load};
use report::Results;
use std::collections::BTreeMap;
use std::process::Command;
use std::time::Duration;
use subjects::{Brisk, Fred, Redis, Rustis};

pub(crate) struct Options {
    server: String,
    far: Option<String>,
    pid: Option<u32>,
    rounds: usize,
    time: Duration,
    only: Option<String>,
    client: Option<String>,
    threads: usize,
    markdown: bool,
}

/// The names of the clients. Ours is last, and is compared with the preceding ones.
pub(crate) const NAMES: [&str; 4] = ["rustis", "fred", "redis-rs", "brisk"];
/// Environment variable that makes this process a child that only measures the memory of the client with this name.
const IDLE_CHILD: &str = "PEERS_IDLE_CHILD";

fn main() -> Result<()> {
    let options = options()?;
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(options.threads)
        .enable_all()
        .build()?;
    if let Ok(name) = std::env::var(IDLE_CHILD) {
        println!("{}", runtime.block_on(idle(&name, &options))?);
        return Ok(());
    }
    ensure!(
        options.only.as_ref().is_none_or(|only| CASES.iter().any(|case| case.name == only)),
        "no such case"
    );
    let mut results: Results = Vec::new();
    for case in &CASES {
        if options.only.as_ref().is_some_and(|only| only != case.name) {
            continue;
        }
        if matches!(case.load, Load::Far(_)) && options.far.is_none() {
            eprintln!("{}: left out without --far", case.name);
            continue;
        }
        let mut found: BTreeMap<&str, Vec<Measurements>> = BTreeMap::new();
        for round in 0..options.rounds {
            for at in 0..NAMES.len() {
                let name = NAMES[(at + round) % NAMES.len()];
                if options.client.as_ref().is_some_and(|client| client != name) {
                    continue;
                }
                let measurements = match case.load {
                    // Measure in a separate process, because memory that an earlier client has freed would be reused.
                    Load::Idle(_) => idle_in_child(name)?,
                    _ => runtime.block_on(turn(name, case, &options))?,
                };
                found.entry(name).or_default().push(measurements);
            }
        }
        if !options.markdown {
            print!("{}", report::table(case, &found));
        }
        results.push((case, found));
    }
    if options.markdown {
        print!("{}", report::markdown(&results));
    }
    Ok(())
}

fn options() -> Result<Options> {
    let mut options = Options {
        server: "127.0.0.1:6379".into(),
        far: None,
        pid: None,
        rounds: 9,
        time: Duration::from_secs(1),
        only: None,
        client: None,
        threads: 1,
        markdown: false,
    };
    let mut words = std::env::args().skip(1);
    while let Some(word) = words.next() {
        if word == "--markdown" {
            options.markdown = true;
            continue;
        }
        let value = words.next().with_context(|| format!("{word} wants a value"))?;
        match word.as_str() {
            "--server" => options.server = value,
            "--far" => options.far = Some(value),
            "--pid" => options.pid = Some(value.parse()?),
            "--rounds" => options.rounds = value.parse()?,
            "--seconds" => options.time = Duration::from_secs_f64(value.parse()?),
            "--only" => options.only = Some(value),
            "--client" => options.client = Some(value),
            "--threads" => options.threads = value.parse()?,
            _ => bail!("no such option: {word}"),
        }
    }
    ensure!(options.rounds > 0, "no rounds");
    Ok(options)
}

async fn turn(name: &str, case: &Case, options: &Options) -> Result<Measurements> {
    match name {
        "brisk" => case.measure::<Brisk>(options).await,
        "redis-rs" => case.measure::<Redis>(options).await,
        "fred" => case.measure::<Fred>(options).await,
        _ => case.measure::<Rustis>(options).await,
    }
}

async fn idle(name: &str, options: &Options) -> Result<f64> {
    match name {
        "brisk" => cases::idle::<Brisk>(options).await,
        "redis-rs" => cases::idle::<Redis>(options).await,
        "fred" => cases::idle::<Fred>(options).await,
        _ => cases::idle::<Rustis>(options).await,
    }
}

fn idle_in_child(name: &str) -> Result<Measurements> {
    let output = Command::new(std::env::current_exe()?)
        .args(std::env::args().skip(1))
        .env(IDLE_CHILD, name)
        .output()?;
    let output_text = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "{name}: {output_text}");
    let kib = String::from_utf8(output.stdout)?.trim().parse()?;
    Ok(Measurements { extra: Some(kib), ..Measurements::default() })
}
