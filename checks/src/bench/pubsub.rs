//! PUBLISH to many subscribers: CPU time per message, including deliveries.

use super::Setup;
use super::report::{Limit, Report, Row, median};
use super::sides::{Bare, Sides, load_from_here};
use anyhow::{Context, Result, bail};
use brisk_differential::peer::Peer;
use brisk_testkit::server::cpu_ns;
use brisk_testkit::words::{encode, encode_into};
use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Instant;

const SUBSCRIBERS: usize = 1000;
/// The length of the longest encoded message of this case.
const MESSAGE_BYTES_MAX: usize = 8 * 1024;
const CHANNEL: &str = "news";

/// The subscribers of one server, and the publisher.
struct Audience {
    pid: u32,
    subscribers: Vec<TcpStream>,
    publisher: Peer,
}

impl Audience {
    /// Connects to the server at `address`, which is the process `pid`.
    fn gather(address: &str, pid: u32) -> Result<Audience> {
        let mut subscribers = Vec::with_capacity(SUBSCRIBERS);
        for _ in 0..SUBSCRIBERS {
            let mut subscriber = TcpStream::connect(address)?;
            subscriber.write_all(&encode(&["SUBSCRIBE", CHANNEL]))?;
            let mut confirmation = [0; b"*3\r\n$9\r\nsubscribe\r\n$4\r\nnews\r\n:1\r\n".len()];
            subscriber.read_exact(&mut confirmation)?;
            subscribers.push(subscriber);
        }
        let publisher = Peer::connect(address)?;
        Ok(Audience { pid, subscribers, publisher })
    }

    /// Publishes `messages` messages, `at_once` in one request. Every subscriber has read them before the next request.
    /// Returns the server's CPU time and the elapsed time per message, in µs.
    fn hear(&mut self, messages: u64, at_once: usize, len: usize) -> Result<(f64, f64)> {
        let payload = "x".repeat(len);
        let mut request = Vec::new();
        for _ in 0..at_once {
            encode_into(&mut request, &["PUBLISH", CHANNEL, &payload]);
        }
        let message = encode(&["message", CHANNEL, &payload]);
        let mut heard = vec![0; message.len() * at_once];
        let (begun, before) = (Instant::now(), cpu_ns(self.pid));
        for _ in (0..messages).step_by(at_once) {
            self.publisher.send(&request)?;
            for _ in 0..at_once {
                let reply = self.publisher.reply().map_err(anyhow::Error::msg)?;
                if reply != format!(":{SUBSCRIBERS}\r\n").as_bytes() {
                    bail!("PUBLISH: {}", String::from_utf8_lossy(reply));
                }
            }
            for subscriber in &mut self.subscribers {
                subscriber.read_exact(&mut heard).context("a subscriber")?;
            }
        }
        let cpu = cpu_ns(self.pid) - before;
        if !heard.chunks(message.len()).all(|one| one == message) {
            bail!("what was heard is not what was published");
        }
        let per = |ns: u128| ns as f64 / 1000.0 / messages as f64;
        Ok((per(u128::from(cpu)), per(begun.elapsed().as_nanos())))
    }
}

/// One of the two results of a round: CPU time or elapsed time per message, in µs.
type MetricFn = fn(&(f64, f64)) -> f64;

/// Messages to 1,000 subscribers: small ones, both alone and pipelined, and larger ones. The bare fan-out shows the
/// cost of the writes alone, which is the minimum for a server that writes to each subscriber.
pub(crate) fn publish(setup: &Setup<'_>, report: &mut Report) -> Result<()> {
    load_from_here()?;
    let sides = Sides::start_each_backend(setup)?;
    let bare = Bare::fan_out()?;
    let mut audiences = vec![Audience::gather(&format!("127.0.0.1:{}", bare.port), bare.pid())?];
    for server in sides.all() {
        audiences.push(Audience::gather(&server.address(), server.pid())?);
    }
    for (at_once, len, messages) in [(1, 16, 2000), (16, 16, 8000), (1, MESSAGE_BYTES_MAX, 1000)] {
        let messages = ((messages as f64 * setup.scale) as u64).max(100);
        let mut times: Vec<Vec<(f64, f64)>> = audiences.iter().map(|_| Vec::new()).collect();
        for round in 0..setup.rounds {
            for i in 0..audiences.len() {
                let i = (i + round) % audiences.len();
                times[i].push(audiences[i].hear(messages, at_once, len)?);
            }
        }
        let of =
            |i: usize, metric: MetricFn| median(&times[i].iter().map(metric).collect::<Vec<_>>());
        let peer = audiences.len() - 1;
        let rows: [(&str, MetricFn, Limit); 2] = [
            ("µs of CPU time", |(cpu, _)| *cpu, Limit::Ratio(0.7)),
            ("µs", |(_, clock)| *clock, Limit::None),
        ];
        let ours = sides.ours.iter().map(|(label, _)| (label.as_str(), true));
        for (i, (label, bounded)) in
            [(", only one write per subscriber", false)].into_iter().chain(ours).enumerate()
        {
            for (unit, metric, limit) in rows {
                let limit = if bounded { limit } else { Limit::None };
                report.add(Row {
                    what: format!("PUBLISH of {len} bytes to {SUBSCRIBERS} subscribers, pipeline depth {at_once}{label}"),
                    unit,
                    ours: of(i, metric),
                    theirs: Some(of(peer, metric)),
                    limit,
                });
            }
        }
    }
    Ok(())
}
