//! The client library beside the others for Rust: rates, latencies and processor time, in paired rounds.
//!
//! ```text
//! cargo run --release -- [--server ADDRESS] [--pid PID] [--rounds 9] [--seconds 1] [--only NAME] [--client NAME]
//! ```
//!
//! All clients ask the same server for the same keys from the same runtime; in each round each has its turn,
//! in rotating order, and what is printed is the median of the rounds' ratios. Pin the server and this program
//! to different processors. `--pid` is the server's, to count its processor time.

mod subjects;

use anyhow::{Context, Result, bail, ensure};
use hdrhistogram::Histogram;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use subjects::{Brisk, Fred, Redis, Rustis, Subject};

/// A value of 64 bytes under a key of 16.
const VALUE: &str = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef";
const KEYS: usize = 1000;
/// Longer waits count as this.
const LONGEST_NS: u64 = 60_000_000_000;

struct Options {
    server: String,
    pid: Option<u32>,
    rounds: usize,
    time: Duration,
    only: Option<String>,
    client: Option<String>,
    threads: usize,
}

/// What one turn gives.
#[derive(Clone, Copy, Debug)]
struct Figures {
    per_s: f64,
    p50_us: f64,
    p99_us: f64,
    cpu_us: f64,
    server_cpu_us: f64,
}

const NAMES: [&str; 4] = ["rustis", "fred", "redis-rs", "brisk"];
const CASES: [(&str, usize); 5] =
    [("rt_single", 1), ("fan_8", 8), ("fan_64", 64), ("fan_256", 256), ("fan_1024", 1024)];

fn main() -> Result<()> {
    let options = options()?;
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(options.threads)
        .enable_all()
        .build()?;
    for (case, callers) in CASES {
        if options.only.as_ref().is_some_and(|only| only != case) {
            continue;
        }
        let mut found: BTreeMap<&str, Vec<Figures>> = BTreeMap::new();
        for round in 0..options.rounds {
            for at in 0..NAMES.len() {
                let name = NAMES[(at + round) % NAMES.len()];
                if options.client.as_ref().is_some_and(|client| client != name) {
                    continue;
                }
                let figures = runtime.block_on(turn(name, callers, &options))?;
                found.entry(name).or_default().push(figures);
            }
        }
        print(case, &found);
    }
    Ok(())
}

fn options() -> Result<Options> {
    let mut options = Options {
        server: "127.0.0.1:6379".into(),
        pid: None,
        rounds: 9,
        time: Duration::from_secs(1),
        only: None,
        client: None,
        threads: 1,
    };
    let mut words = std::env::args().skip(1);
    while let Some(word) = words.next() {
        let value = words.next().with_context(|| format!("{word} wants a value"))?;
        match word.as_str() {
            "--server" => options.server = value,
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

async fn turn(name: &str, callers: usize, options: &Options) -> Result<Figures> {
    match name {
        "brisk" => measure::<Brisk>(callers, options).await,
        "redis-rs" => measure::<Redis>(callers, options).await,
        "fred" => measure::<Fred>(callers, options).await,
        _ => measure::<Rustis>(callers, options).await,
    }
}

/// So many callers ask one after the other for as long as it takes.
async fn measure<S: Subject>(callers: usize, options: &Options) -> Result<Figures> {
    let client = S::connect(&options.server).await?;
    let keys: Arc<Vec<String>> = Arc::new((0..KEYS).map(|n| format!("key:{n:012}")).collect());
    for key in keys.iter() {
        client.set(key, VALUE).await?;
    }
    let stop = Arc::new(AtomicBool::new(false));
    let spawn = |caller: usize| {
        let (client, keys, stop) = (client.clone(), Arc::clone(&keys), Arc::clone(&stop));
        tokio::spawn(async move {
            let mut times = Histogram::<u64>::new_with_max(LONGEST_NS, 2)?;
            let mut at = caller;
            while !stop.load(Ordering::Relaxed) {
                let begun = Instant::now();
                let value = client.get(&keys[at % KEYS]).await?;
                ensure!(value.len() == VALUE.len(), "a wrong value");
                times.saturating_record(begun.elapsed().as_nanos() as u64);
                at += 7;
            }
            Ok::<_, anyhow::Error>(times)
        })
    };
    let (cpu, server_cpu) = (cpu()?, server_cpu(options.pid)?);
    let begun = Instant::now();
    let tasks: Vec<_> = (0..callers).map(spawn).collect();
    tokio::time::sleep(options.time).await;
    stop.store(true, Ordering::Relaxed);
    let mut all = Histogram::<u64>::new_with_max(LONGEST_NS, 2)?;
    for task in tasks {
        all.add(task.await??)?;
    }
    let took = begun.elapsed();
    let ops = all.len() as f64;
    let us = |quantile: f64| all.value_at_quantile(quantile) as f64 / 1000.0;
    Ok(Figures {
        per_s: ops / took.as_secs_f64(),
        p50_us: us(0.5),
        p99_us: us(0.99),
        cpu_us: (self::cpu()? - cpu).as_secs_f64() * 1e6 / ops,
        server_cpu_us: (self::server_cpu(options.pid)? - server_cpu) * 1e6 / ops,
    })
}

/// Processor time of this process.
fn cpu() -> Result<Duration> {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    Ok(Duration::new(u64::try_from(now.tv_sec)?, u32::try_from(now.tv_nsec)?))
}

/// Seconds of processor time of the server.
fn server_cpu(pid: Option<u32>) -> Result<f64> {
    let Some(pid) = pid else { return Ok(0.0) };
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat"))?;
    let behind_name = stat.rsplit(')').next().context("stat")?;
    let ticks = |at: usize| behind_name.split_whitespace().nth(at).and_then(|word| word.parse().ok());
    let ticks: Option<f64> = ticks(11).zip(ticks(12)).map(|(user, system): (f64, f64)| user + system);
    Ok(ticks.context("stat")? / 100.0)
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

fn print(case: &str, found: &BTreeMap<&str, Vec<Figures>>) {
    println!("{case:10} {:>10} {:>9} {:>9} {:>8} {:>8}", "per s", "p50 us", "p99 us", "CPU us", "server");
    for name in NAMES {
        let Some(rounds) = found.get(name) else { continue };
        let of = |figure: fn(&Figures) -> f64| median(rounds.iter().map(figure).collect());
        let mut line = format!(
            "{name:10} {:>10.0} {:>9.1} {:>9.1} {:>8.3} {:>8.3}",
            of(|f| f.per_s), of(|f| f.p50_us), of(|f| f.p99_us), of(|f| f.cpu_us), of(|f| f.server_cpu_us)
        );
        if name == "brisk" {
            for (other, theirs) in found.iter().filter(|(other, _)| **other != "brisk") {
                let ratio = |figure: fn(&Figures) -> f64| {
                    let pairs = rounds.iter().zip(theirs);
                    median(pairs.map(|(ours, theirs)| figure(ours) / figure(theirs)).collect())
                };
                line += &format!(
                    "  {other}: rate {:.2} p50 {:.2} CPU {:.2}",
                    ratio(|f| f.per_s), ratio(|f| f.p50_us), ratio(|f| f.cpu_us)
                );
            }
        }
        println!("{line}");
    }
}
