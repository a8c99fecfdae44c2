//! Many consumers that wait for items, and producers that send items. Checks that each item arrives once and in order.
//!
//! A producer sends numbered items. A consumer waits for one item at a time. A few threads read the connections of all
//! consumers.

use crate::server::Server;
use crate::words::encode;
use anyhow::{Context, Result, ensure};
use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

/// Threads that serve the consumers' connections.
const THREADS: usize = 4;
const PRODUCERS: usize = 4;
/// Items in one send of a producer.
const SENT_AT_ONCE: usize = 50;
/// If no item is delivered for this long, something is stuck.
const TIMEOUT: Duration = Duration::from_secs(20);

/// The command with which consumers take items.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ConsumeCommand {
    BlPop,
    /// Each consumer moves items to its own list.
    BlMove,
    XReadGroup,
}

/// The result of a run.
#[derive(Debug, Clone, Copy)]
pub struct Done {
    /// Distinct items that arrived. Each arrived once, and the items of each producer arrived in order.
    pub delivered: usize,
    pub per_second: f64,
}

/// Waiting consumers, and the server that they use.
#[derive(Debug)]
pub struct Crowd<'a> {
    server: &'a Server,
    command: ConsumeCommand,
    clients: usize,
}

/// A consumer's connection.
struct Consumer {
    stream: TcpStream,
    request: Vec<u8>,
    input: Vec<u8>,
}

impl ConsumeCommand {
    fn name(self) -> &'static str {
        match self {
            ConsumeCommand::BlPop => "BLPOP",
            ConsumeCommand::BlMove => "BLMOVE",
            ConsumeCommand::XReadGroup => "XREADGROUP",
        }
    }

    fn wait_for_one(self, client: usize) -> Vec<u8> {
        let own = format!("taken:{client}");
        match self {
            ConsumeCommand::BlPop => encode(&["BLPOP", "urgent", "jobs", "0"]),
            ConsumeCommand::BlMove => encode(&["BLMOVE", "jobs", &own, "LEFT", "RIGHT", "0"]),
            ConsumeCommand::XReadGroup => encode(&[
                "XREADGROUP",
                "GROUP",
                "all",
                &own,
                "COUNT",
                "1",
                "BLOCK",
                "0",
                "NOACK",
                "STREAMS",
                "jobs",
                ">",
            ]),
        }
    }

    fn produce(self, item: &str) -> Vec<u8> {
        match self {
            ConsumeCommand::BlPop | ConsumeCommand::BlMove => encode(&["RPUSH", "jobs", item]),
            ConsumeCommand::XReadGroup => encode(&["XADD", "jobs", "*", "item", item]),
        }
    }
}

impl std::fmt::Display for ConsumeCommand {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name())
    }
}

impl<'a> Crowd<'a> {
    pub fn new(server: &'a Server, command: ConsumeCommand, clients: usize) -> Crowd<'a> {
        Crowd { server, command, clients }
    }

    /// Produces and consumes `items` items.
    ///
    /// # Errors
    /// If an item is lost, arrives twice or out of order, or nothing is delivered for 20 seconds.
    pub fn run(&self, items: usize) -> Result<Done> {
        let mut control = self.server.connect();
        if self.command == ConsumeCommand::XReadGroup {
            control.cmd("XGROUP CREATE jobs all $ MKSTREAM");
        }
        let shares: Vec<Vec<Consumer>> = (0..THREADS)
            .map(|thread| {
                (thread..self.clients).step_by(THREADS).map(|i| self.consumer(i)).collect()
            })
            .collect::<Result<_>>()?;
        crate::wait::wait_until("all consumers wait", || {
            control.info("blocked_clients") == self.clients.to_string()
        });
        let begun = Instant::now();
        let taken = std::sync::atomic::AtomicUsize::new(0);
        let found = std::thread::scope(|scope| -> Result<Vec<Vec<(usize, usize)>>> {
            let taken = &taken;
            let consuming: Vec<_> = shares
                .into_iter()
                .map(|share| scope.spawn(move || consume(share, items, taken)))
                .collect();
            let producing: Vec<_> = (0..PRODUCERS)
                .map(|producer| scope.spawn(move || self.produce(producer, items)))
                .collect();
            for thread in producing {
                thread.join().map_err(|_| anyhow::anyhow!("a producer panicked"))??;
            }
            let mut found = Vec::new();
            for thread in consuming {
                found.extend(thread.join().map_err(|_| anyhow::anyhow!("a consumer panicked"))??);
            }
            Ok(found)
        })?;
        let per_second = items as f64 / begun.elapsed().as_secs_f64();
        Ok(Done { delivered: check(&found, items)?, per_second })
    }

    fn consumer(&self, number: usize) -> Result<Consumer> {
        let mut stream = TcpStream::connect(self.server.address())?;
        stream.set_nodelay(true)?;
        let request = self.command.wait_for_one(number);
        stream.write_all(&request)?;
        stream.set_nonblocking(true)?;
        Ok(Consumer { stream, request, input: Vec::new() })
    }

    fn produce(&self, producer: usize, items: usize) -> Result<()> {
        let mut conn = self.server.connect();
        let own = (producer..items).step_by(PRODUCERS).count();
        for start in (0..own).step_by(SENT_AT_ONCE) {
            let numbers = start..(start + SENT_AT_ONCE).min(own);
            let bytes: Vec<u8> = numbers
                .clone()
                .flat_map(|n| self.command.produce(&format!("{producer}:{n}:")))
                .collect();
            conn.send_raw(&bytes);
            for _ in numbers {
                ensure!(!conn.reply().is_error(), "an item was refused");
            }
        }
        Ok(())
    }
}

/// Reads the items that consumers get, and makes each consumer wait again. Returns the (producer, number) pairs of each
/// consumer in order of arrival.
fn consume(
    mut share: Vec<Consumer>,
    items: usize,
    taken: &std::sync::atomic::AtomicUsize,
) -> Result<Vec<Vec<(usize, usize)>>> {
    use std::sync::atomic::Ordering::Relaxed;
    let mut found = vec![Vec::new(); share.len()];
    let mut buffer = [0; 4096];
    let mut last = (Instant::now(), 0);
    while taken.load(Relaxed) < items {
        let mut idle = true;
        for (consumer, found) in share.iter_mut().zip(&mut found) {
            match consumer.stream.read(&mut buffer) {
                Ok(0) => anyhow::bail!("the server closed a consumer's connection"),
                Ok(read) => {
                    idle = false;
                    consumer.input.extend_from_slice(&buffer[..read]);
                    let whole =
                        crate::reply::frame_len(&consumer.input).map_err(anyhow::Error::msg)?;
                    if whole.is_some_and(|len| len == consumer.input.len()) {
                        found.push(item_of(&consumer.input)?);
                        consumer.input.clear();
                        consumer.stream.write_all(&consumer.request)?;
                        taken.fetch_add(1, Relaxed);
                    }
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => {}
                Err(error) => return Err(error.into()),
            }
        }
        let now = taken.load(Relaxed);
        if now != last.1 {
            last = (Instant::now(), now);
        } else if idle {
            ensure!(last.0.elapsed() < TIMEOUT, "stuck after {now} of {items} items");
            std::thread::yield_now();
        }
    }
    Ok(found)
}

/// The item in a reply: `producer:number:` somewhere in it.
fn item_of(reply: &[u8]) -> Result<(usize, usize)> {
    let text = String::from_utf8_lossy(reply);
    let line = text.lines().rev().find(|line| line.ends_with(':') && line.len() > 3);
    let mut parts = line.with_context(|| format!("no item in {text}"))?.split(':');
    let mut number = || parts.next().unwrap_or_default().parse::<usize>();
    Ok((number()?, number()?))
}

/// Checks that every item arrived once, and that each consumer got the items of each producer in order.
fn check(found: &[Vec<(usize, usize)>], items: usize) -> Result<usize> {
    let mut seen: Vec<Vec<bool>> =
        (0..PRODUCERS).map(|p| vec![false; (p..items).step_by(PRODUCERS).count()]).collect();
    let mut delivered = 0;
    for list in found {
        let mut last = [None; PRODUCERS];
        for &(producer, number) in list {
            ensure!(!seen[producer][number], "item {producer}:{number} came twice");
            ensure!(last[producer] < Some(number), "item {producer}:{number} came out of order");
            seen[producer][number] = true;
            last[producer] = Some(number);
            delivered += 1;
        }
    }
    ensure!(delivered == items, "{delivered} of {items} items arrived");
    Ok(delivered)
}
