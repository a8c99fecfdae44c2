//! `cargo xtask hostile`: one server between a hostile primary, hostile replicas and ordinary clients.
//!
//! The server must survive all of them. Each round has its own settings, drawn from its seed. During a round
//! the server is alternately a replica of [`primary`] and a primary itself. [`replica`] connects to it and
//! sends requests that no replica sends, and [`clients`] run random commands. A round ends with SIGTERM and a
//! restart from the files left on the disk, which must succeed.

mod clients;
mod primary;
mod replica;

use crate::options::Options;
use anyhow::{Context, Result, bail};
use brisk_differential::peer::Peer;
use brisk_differential::table::Table;
use brisk_testkit::random::Random;
use brisk_testkit::server::{Launch, Program, Server};
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

/// Duration of a round; its start and shutdown take a second or two.
const ROUND: Duration = Duration::from_secs(20);
/// How long a PING may remain without a reply. Scripts may run for `busy-reply-threshold`.
const SILENCE_MAX: Duration = Duration::from_secs(60);
/// How often the role changes and operator commands are sent.
const STEP: Duration = Duration::from_millis(300);
/// The text with which the log reports a panic.
const PANICKED: &str = "This is a defect of Brisk";
const CLIENTS: u64 = 2;
const REPLICAS: u64 = 2;

/// State that the threads of a round share.
struct Round<'t> {
    table: &'t Table,
    address: String,
    over: AtomicBool,
    /// The numbers of connections of the hostile primary and of hostile replicas, and of client commands.
    links: AtomicU64,
    attached: AtomicU64,
    commands: AtomicU64,
}

impl Round<'_> {
    fn is_over(&self) -> bool {
        self.over.load(Ordering::Relaxed)
    }

    /// A connection to the server with a time limit for every wait.
    fn connect(&self) -> Option<TcpStream> {
        let stream = TcpStream::connect(&self.address).ok()?;
        limit(&stream).then_some(stream)
    }
}

/// Sets time limits for reads and writes of a connection.
fn limit(stream: &TcpStream) -> bool {
    let end = Some(Duration::from_millis(500));
    stream.set_read_timeout(end).is_ok() && stream.set_write_timeout(end).is_ok()
}

/// Runs rounds until the time is over. Returns `Ok(false)` if the server exited, stopped replying or did not restart.
pub(crate) fn main(options: &Options) -> Result<bool> {
    let mut seed: u64 = options.number("seed", 1)?;
    let minutes: f64 = options.number("minutes", 1.0)?;
    let mut table = crate::diff::table(options)?;
    table.retain(clients::may_run);
    let end = Instant::now() + Duration::from_secs_f64(minutes * 60.0);
    let mut sums = [0; 3];
    while Instant::now() < end {
        let backend = ["auto", "epoll", "io_uring"][(seed % 3) as usize];
        match round(seed, backend, &table) {
            Ok(counts) => {
                println!(
                    "seed {seed}, {backend}: {} links of the primary, {} of replicas, {} commands",
                    counts[0], counts[1], counts[2]
                );
                sums.iter_mut().zip(counts).for_each(|(sum, count)| *sum += count);
            }
            Err(error) => {
                println!("seed {seed}, {backend}: {error:#}");
                return Ok(false);
            }
        }
        seed += 1;
    }
    println!(
        "{} links of the primary, {} of replicas, {} commands: no exit",
        sums[0], sums[1], sums[2]
    );
    Ok(true)
}

/// The server of a round.
fn launch(random: &mut Random, backend: &str) -> Launch {
    let mut either = |one: &'static str, other: &'static str| *random.pick(&[one, other]);
    Launch::new(Program::Brisk)
        .set("io-backend", backend)
        .set("threads", either("1", "2"))
        .set("appendonly", either("yes", "no"))
        .set("appendfsync", either("everysec", "always"))
        .set("replica-read-only", either("yes", "no"))
        .set("replica-serve-stale-data", either("yes", "no"))
        .set("repl-diskless-load", either("disabled", "swapdb"))
        .set("repl-diskless-sync", either("yes", "no"))
        .set("aof-timestamp-enabled", either("yes", "no"))
        .set("repl-diskless-sync-delay", "0")
        .set("repl-timeout", "5")
        .set("busy-reply-threshold", "500")
        .set("enable-debug-command", "no")
        .set("maxmemory", "1gb")
        .set("maxmemory-policy", "allkeys-lru")
}

fn round(seed: u64, backend: &str, table: &Table) -> Result<[u64; 3]> {
    let mut random = Random::new(seed);
    let launch = launch(&mut random, backend);
    let mut server = launch.clone().try_start().map_err(anyhow::Error::msg)?;
    let primary = TcpListener::bind("127.0.0.1:0").context("a port for the primary")?;
    let port = primary.local_addr()?.port();
    let round = Round {
        table,
        address: server.address(),
        over: AtomicBool::new(false),
        links: AtomicU64::new(0),
        attached: AtomicU64::new(0),
        commands: AtomicU64::new(0),
    };
    let outcome = thread::scope(|scope| {
        let round = &round;
        scope.spawn(move || primary::accept(round, &primary, &Random::derived(seed, 1)));
        for number in 0..REPLICAS {
            scope.spawn(move || replica::attach(round, Random::derived(seed, 10 + number)));
        }
        for number in 0..CLIENTS {
            scope.spawn(move || clients::run(round, Random::derived(seed, 20 + number)));
        }
        let outcome = operate(round, &mut server, &mut random, port);
        round.over.store(true, Ordering::Relaxed);
        // Connect to the primary's thread, which is waiting for connections.
        drop(TcpStream::connect(("127.0.0.1", port)));
        outcome
    });
    outcome.with_context(|| format!("the log ends with\n{}", tail(&server)))?;
    restart(&launch, server)?;
    Ok([&round.links, &round.attached, &round.commands].map(|count| count.load(Ordering::Relaxed)))
}

/// Changes the server's role and checks that it is alive, until the round ends.
fn operate(round: &Round<'_>, server: &mut Server, random: &mut Random, port: u16) -> Result<()> {
    let end = Instant::now() + ROUND;
    let mut heard = Instant::now();
    while Instant::now() < end {
        thread::park_timeout(STEP);
        if !server.is_running() {
            bail!("the server ended");
        }
        // A build with debug assertions continues without the thread that panicked.
        if server.log().contains(PANICKED) {
            bail!("a thread panicked");
        }
        let follow = format!("REPLICAOF 127.0.0.1 {port}");
        let act = match random.below(12) {
            0..4 => &follow,
            4 => "REPLICAOF NO ONE",
            5 => "REPLICATION COMPARE",
            6 => "REPLICATION COMPARE HEAL",
            7 => "BGSAVE",
            8 => "BGREWRITEAOF",
            9 => "SAVE",
            10 => "FAILOVER ABORT",
            _ => "INFO",
        };
        send(round, act);
        match Peer::connect(&round.address).and_then(|mut peer| peer.request(&["PING"]).map(|_| ()))
        {
            Ok(()) => heard = Instant::now(),
            Err(error) if heard.elapsed() > SILENCE_MAX => {
                return Err(error.context("the server is silent"));
            }
            Err(_) => {}
        }
    }
    Ok(())
}

/// Sends an operator command. The reply, for example to a comparison, may take longer than this function waits.
fn send(round: &Round<'_>, act: &str) {
    let Some(mut stream) = round.connect() else { return };
    let mut reply = [0; 4096];
    let words: Vec<&str> = act.split(' ').collect();
    if stream.write_all(&clients::encoded(&words)).is_ok() {
        let _ = stream.read(&mut reply);
    }
}

/// Shuts the server down as an operator would, and restarts it from its files.
fn restart(launch: &Launch, mut server: Server) -> Result<()> {
    server.signal("TERM");
    let end = Instant::now() + SILENCE_MAX;
    while server.is_running() {
        if Instant::now() > end {
            bail!("the server does not end after SIGTERM; its log ends with\n{}", tail(&server));
        }
        thread::park_timeout(Duration::from_millis(20));
    }
    let before = tail(&server);
    let started = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        launch.start_again(&mut server);
    }));
    if started.is_err() || !server.is_running() {
        bail!("no start from its own files; before\n{before}\nafter\n{}", tail(&server));
    }
    Ok(())
}

/// The last part of the log. If there was a panic, the part from the panic on.
fn tail(server: &Server) -> String {
    const LINES: usize = 60;
    let log = server.log();
    let lines: Vec<&str> = log.lines().collect();
    let panicked = lines.iter().position(|line| line.contains(PANICKED));
    let first = panicked.unwrap_or_else(|| lines.len().saturating_sub(LINES));
    lines[first..].iter().take(LINES).copied().collect::<Vec<_>>().join("\n")
}
