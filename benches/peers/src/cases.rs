//! The cases: the callers, their requests, and the counted results.

use crate::Options;
use crate::subjects::Subject;
use anyhow::{Context, Result, ensure};
use hdrhistogram::Histogram;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// A 64-byte value. Keys have 16 bytes.
const VALUE: &str = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef";
const KEYS: usize = 1000;
const BIG_KEY: &str = "key:of-a-big-one";
const BIG_BYTES: usize = 1 << 20;
/// One in this number of requests reads the big value.
const BIG_ONE_IN: usize = 100;
/// The longest latency that is recorded. Longer ones are recorded as this value.
const LONGEST_NS: u64 = 60_000_000_000;
/// The round-trip time to the distant server.
const FAR_S: f64 = 0.012;
/// Requests of an open loop are sent together if they are due within this time.
const STEP: Duration = Duration::from_millis(1);

pub(crate) struct Case {
    pub(crate) name: &'static str,
    pub(crate) load: Load,
    /// The name of the additional result, if there is one.
    pub(crate) extra: Option<&'static str>,
}

#[derive(Clone, Copy)]
pub(crate) enum Load {
    /// This number of callers, each of which waits for the reply to its previous request.
    Callers(usize),
    /// This number of callers, over a distant network.
    Far(usize),
    /// One caller that sends this number of commands in each batch.
    Batches(usize),
    /// This number of callers, some of whose values are large.
    Mixed(usize),
    /// Requests per second.
    Rate(usize),
    /// This number of idle clients.
    Idle(usize),
}

const fn callers(name: &'static str, count: usize) -> Case {
    Case { name, load: Load::Callers(count), extra: None }
}

pub(crate) const CASES: [Case; 10] = [
    callers("rt_single", 1),
    callers("fan_8", 8),
    callers("fan_64", 64),
    callers("fan_256", 256),
    callers("fan_1024", 1024),
    Case { name: "batch_100", load: Load::Batches(100), extra: None },
    Case { name: "rtt12_200", load: Load::Far(200), extra: Some("of the bound") },
    Case { name: "mixed_big", load: Load::Mixed(64), extra: Some("p99 us, all small") },
    Case { name: "open_20k", load: Load::Rate(20_000), extra: None },
    Case { name: "idle", load: Load::Idle(200), extra: Some("KiB each") },
];

/// The results of one measurement.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Measurements {
    pub(crate) per_s: f64,
    pub(crate) p50_us: f64,
    pub(crate) p99_us: f64,
    pub(crate) cpu_us: f64,
    pub(crate) server_cpu_us: f64,
    pub(crate) extra: Option<f64>,
}

impl Case {
    /// Reports whether only memory is measured.
    pub(crate) fn is_memory(&self) -> bool {
        matches!(self.load, Load::Idle(_))
    }

    pub(crate) async fn measure<S: Subject>(&self, options: &Options) -> Result<Measurements> {
        let far = options.far.as_ref().filter(|_| matches!(self.load, Load::Far(_)));
        let server = far.unwrap_or(&options.server);
        let client = S::connect(server).await?;
        let keys: Arc<Vec<String>> = Arc::new((0..KEYS).map(|n| format!("key:{n:012}")).collect());
        let fill: Vec<(&str, &str)> = keys.iter().map(|key| (key.as_str(), VALUE)).collect();
        for some in fill.chunks(100) {
            client.set_many(some).await?;
        }
        match self.load {
            Load::Callers(count) => fan(&client, &keys, count, false, options).await,
            Load::Far(count) => {
                let measurements = fan(&client, &keys, count, false, options).await?;
                Ok(Measurements { extra: Some(measurements.per_s * FAR_S / count as f64), ..measurements })
            }
            Load::Mixed(count) => {
                client.set(BIG_KEY, &"x".repeat(BIG_BYTES)).await?;
                let small = fan(&client, &keys, count, false, options).await?;
                let mixed = fan(&client, &keys, count, true, options).await?;
                Ok(Measurements { extra: Some(small.p99_us), ..mixed })
            }
            Load::Batches(size) => batches(&client, &keys, size, options).await,
            Load::Rate(per_s) => open(&client, &keys, per_s, options).await,
            Load::Idle(_) => unreachable!("measured in a process of its own"),
        }
    }
}

/// Latencies, and CPU time since the meter was created.
struct Meter {
    times: Histogram<u64>,
    begun: Instant,
    cpu: Duration,
    server_cpu: f64,
    pid: Option<u32>,
}

impl Meter {
    fn start(options: &Options) -> Result<Meter> {
        Ok(Meter {
            times: new_histogram()?,
            cpu: cpu()?,
            server_cpu: server_cpu(options.pid)?,
            pid: options.pid,
            begun: Instant::now(),
        })
    }

    /// The results for `done` operations. Only those in the histogram were timed.
    fn measurements(&self, done: u64) -> Result<Measurements> {
        let took = self.begun.elapsed();
        let us = |quantile: f64| self.times.value_at_quantile(quantile) as f64 / 1000.0;
        let done = done as f64;
        Ok(Measurements {
            per_s: done / took.as_secs_f64(),
            p50_us: us(0.5),
            p99_us: us(0.99),
            cpu_us: (cpu()? - self.cpu).as_secs_f64() * 1e6 / done,
            server_cpu_us: (server_cpu(self.pid)? - self.server_cpu) * 1e6 / done,
            extra: None,
        })
    }
}

fn new_histogram() -> Result<Histogram<u64>> {
    Ok(Histogram::new_with_max(LONGEST_NS, 2)?)
}

/// Each caller sends one request after another until the time is over.
async fn fan<S: Subject>(
    client: &S,
    keys: &Arc<Vec<String>>,
    callers: usize,
    has_big: bool,
    options: &Options,
) -> Result<Measurements> {
    let stop = Arc::new(AtomicBool::new(false));
    let spawn = |caller: usize| {
        let (client, keys, stop) = (client.clone(), Arc::clone(keys), Arc::clone(&stop));
        tokio::spawn(async move {
            let mut times = new_histogram()?;
            let (mut at, mut done) = (caller, 0);
            while !stop.load(Ordering::Relaxed) {
                done += 1;
                // Callers read the big value at different times.
                if has_big && (done + caller) % BIG_ONE_IN == 0 {
                    let value = client.get_large(BIG_KEY).await?;
                    ensure!(value.len() == BIG_BYTES, "a wrong value");
                    continue;
                }
                let begun = Instant::now();
                let value = client.get(&keys[at % KEYS]).await?;
                ensure!(value.len() == VALUE.len(), "a wrong value");
                times.saturating_record(begun.elapsed().as_nanos() as u64);
                at += 7;
            }
            Ok::<_, anyhow::Error>((times, done as u64))
        })
    };
    let mut meter = Meter::start(options)?;
    let tasks: Vec<_> = (0..callers).map(spawn).collect();
    tokio::time::sleep(options.time).await;
    stop.store(true, Ordering::Relaxed);
    let mut all = 0;
    for task in tasks {
        let (times, done) = task.await??;
        meter.times.add(times)?;
        all += done;
    }
    meter.measurements(all)
}

/// One caller sends a whole batch at a time. Latencies are those of batches.
async fn batches<S: Subject>(
    client: &S,
    keys: &Arc<Vec<String>>,
    size: usize,
    options: &Options,
) -> Result<Measurements> {
    let (client, keys, time) = (client.clone(), Arc::clone(keys), options.time);
    let mut meter = Meter::start(options)?;
    let task = tokio::spawn(async move {
        let mut times = new_histogram()?;
        let (begun, mut done) = (Instant::now(), 0);
        while begun.elapsed() < time {
            let first = done % (KEYS - size);
            let pairs: Vec<(&str, &str)> =
                keys[first..first + size].iter().map(|key| (key.as_str(), VALUE)).collect();
            let sent = Instant::now();
            client.set_many(&pairs).await?;
            times.saturating_record(sent.elapsed().as_nanos() as u64);
            done += size;
        }
        Ok::<_, anyhow::Error>((times, done as u64))
    });
    let (times, done) = task.await??;
    meter.times.add(times)?;
    meter.measurements(done)
}

/// Sends this number of requests per second, each in a separate task. Latencies are measured from the time at which a
/// request was due.
async fn open<S: Subject>(
    client: &S,
    keys: &Arc<Vec<String>>,
    per_s: usize,
    options: &Options,
) -> Result<Measurements> {
    let wanted = (options.time.as_secs_f64() * per_s as f64) as usize;
    let gap = Duration::from_secs_f64(1.0 / per_s as f64);
    let (client, keys) = (client.clone(), Arc::clone(keys));
    let mut meter = Meter::start(options)?;
    let pacer = tokio::spawn(async move {
        let mut times = new_histogram()?;
        let mut calls = tokio::task::JoinSet::new();
        let begun = Instant::now();
        let mut steps = tokio::time::interval(STEP);
        let mut sent = 0;
        while sent < wanted {
            steps.tick().await;
            while sent < wanted && begun + gap * sent as u32 <= Instant::now() {
                let due = begun + gap * sent as u32;
                let (client, keys, at) = (client.clone(), Arc::clone(&keys), sent);
                calls.spawn(async move {
                    let value = client.get(&keys[at % KEYS]).await?;
                    ensure!(value.len() == VALUE.len(), "a wrong value");
                    Ok::<_, anyhow::Error>(due.elapsed())
                });
                sent += 1;
            }
            while let Some(done) = calls.try_join_next() {
                times.saturating_record(done??.as_nanos() as u64);
            }
        }
        while let Some(done) = calls.join_next().await {
            times.saturating_record(done??.as_nanos() as u64);
        }
        Ok::<_, anyhow::Error>(times)
    });
    meter.times.add(pacer.await??)?;
    meter.measurements(wanted as u64)
}

/// Resident memory in KiB for each of many clients that have sent one request.
pub(crate) async fn idle<S: Subject>(options: &Options) -> Result<f64> {
    let count = CASES
        .iter()
        .find_map(|case| if let Load::Idle(count) = case.load { Some(count) } else { None })
        .context("no case of idle clients")?;
    // Connect a first client, because the memory for one-time setup is shared by all clients.
    let first = S::connect(&options.server).await?;
    first.set("key:idle", VALUE).await?;
    let before = resident_bytes()?;
    let mut clients = Vec::with_capacity(count);
    for _ in 0..count {
        let client = S::connect(&options.server).await?;
        ensure!(client.get("key:idle").await?.len() == VALUE.len(), "a wrong value");
        clients.push(client);
    }
    // Wait until buffers that are freed with a delay have been freed.
    tokio::time::sleep(options.time).await;
    let grown = resident_bytes()?.saturating_sub(before);
    drop(clients);
    Ok(grown as f64 / count as f64 / 1024.0)
}

/// Resident memory of this process.
fn resident_bytes() -> Result<usize> {
    let text = std::fs::read_to_string("/proc/self/statm")?;
    let pages: usize = text.split(' ').nth(1).context("statm")?.parse()?;
    Ok(pages * rustix::param::page_size())
}

/// CPU time of this process.
fn cpu() -> Result<Duration> {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    Ok(Duration::new(u64::try_from(now.tv_sec)?, u32::try_from(now.tv_nsec)?))
}

/// CPU time of the server, in seconds.
fn server_cpu(pid: Option<u32>) -> Result<f64> {
    let Some(pid) = pid else { return Ok(0.0) };
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat"))?;
    let after_name = stat.rsplit(')').next().context("stat")?;
    let ticks = |at: usize| after_name.split_whitespace().nth(at).and_then(|word| word.parse().ok());
    let ticks: Option<f64> = ticks(11).zip(ticks(12)).map(|(user, system): (f64, f64)| user + system);
    Ok(ticks.context("stat")? / 100.0)
}
