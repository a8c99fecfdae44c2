//! Transactions: ten SETs between MULTI and EXEC, sent together.

use super::Setup;
use super::load::{Lines, fill};
use super::report::{Limit, Report, Row, median};
use super::sides::{Sides, load_from_here};
use anyhow::{Result, bail};
use brisk_differential::peer::Peer;
use brisk_testkit::server::{Server, cpu_ns};
use brisk_testkit::words::encode_into;

const KEYS: usize = 100_000;
const SETS: usize = 10;
const CLIENTS: usize = 50;
/// The number of encoded transactions. Together they set all keys once.
const AT_HAND: usize = KEYS / SETS;

/// Fifty clients of one server.
struct Load<'s> {
    server: &'s Server,
    peers: Vec<Peer>,
}

impl<'s> Load<'s> {
    fn new(server: &'s Server) -> Result<Load<'s>> {
        fill(server, 0, KEYS as u64, 3)?;
        let peers =
            (0..CLIENTS).map(|_| Peer::connect(&server.address())).collect::<Result<_>>()?;
        Ok(Load { server, peers })
    }

    /// Runs `transactions`; each client sends `at_once` before it reads. Returns the server's CPU time per transaction,
    /// in µs.
    fn run(&mut self, requests: &Lines, at_once: usize, transactions: usize) -> Result<f64> {
        let mut reply = b"+OK\r\n".to_vec();
        reply.extend(b"+QUEUED\r\n".repeat(SETS));
        reply.extend(format!("*{SETS}\r\n").as_bytes());
        reply.extend(b"+OK\r\n".repeat(SETS));
        let expected = reply.repeat(at_once);
        let before = cpu_ns(self.server.pid());
        let rounds = transactions.div_ceil(at_once * CLIENTS);
        let mut first = 0;
        for _ in 0..rounds {
            for peer in &mut self.peers {
                peer.send(requests.some(first, at_once))?;
                first = (first + at_once) % (AT_HAND - at_once);
            }
            for peer in &mut self.peers {
                let heard = peer.bytes(expected.len()).map_err(anyhow::Error::msg)?;
                if heard != expected {
                    bail!("EXEC: {}", String::from_utf8_lossy(heard));
                }
            }
        }
        let cpu = cpu_ns(self.server.pid()) - before;
        Ok(cpu as f64 / 1000.0 / (rounds * at_once * CLIENTS) as f64)
    }
}

/// MULTI, ten SETs and EXEC, with one transaction and with four at a time.
pub(crate) fn transactions(setup: &Setup<'_>, report: &mut Report) -> Result<()> {
    load_from_here()?;
    let requests = Lines::collect((0..AT_HAND).map(|at| {
        let mut bytes = Vec::new();
        encode_into(&mut bytes, &["MULTI"]);
        for set in at * SETS..(at + 1) * SETS {
            // The order is spread over the keys.
            let key = format!("key:{:012}", set * 7_919 % KEYS);
            encode_into(&mut bytes, &["SET", &key, "xxx"]);
        }
        encode_into(&mut bytes, &["EXEC"]);
        bytes
    }))?;
    let sides = Sides::start_each_backend(setup)?;
    let mut loads: Vec<Load<'_>> = sides.all().into_iter().map(Load::new).collect::<Result<_>>()?;
    for (at_once, transactions) in [(1, 100_000), (4, 200_000)] {
        let transactions = setup.scaled(transactions) as usize;
        let mut times: Vec<Vec<f64>> = loads.iter().map(|_| Vec::new()).collect();
        for round in 0..setup.rounds {
            for i in 0..loads.len() {
                let i = (i + round) % loads.len();
                times[i].push(loads[i].run(&requests, at_once, transactions)?);
            }
        }
        let peer = loads.len() - 1;
        for (i, (label, _)) in sides.ours.iter().enumerate() {
            report.add(Row {
                what: format!("MULTI of {SETS} SETs, transactions at a time: {at_once}{label}"),
                unit: "µs of CPU time",
                ours: median(&times[i]),
                theirs: Some(median(&times[peer])),
                limit: Limit::Ratio(0.5),
            });
        }
    }
    Ok(())
}
