//! Blocking clients: how fast items are delivered to them, and the cost when all of them disconnect at once.

use super::Setup;
use super::report::{Limit, Report, Row};
use super::sides::{Sides, ours};
use anyhow::{Context, Result};
use brisk_testkit::crowd::{ConsumeCommand, Crowd};
use brisk_testkit::server::Server;
use brisk_testkit::words::encode;
use std::io::Write;
use std::net::TcpStream;

/// The clients that share the items.
const CLIENTS: usize = 1000;
/// The numbers of clients that disconnect, few and many.
const FEW: usize = 1_000;
const MANY: usize = 10_000;
const MIB: f64 = 1024.0 * 1024.0;

/// Measures the items per second, compared with the peer. Our server has two workers. The case fails unless every item
/// is delivered once and in order.
pub(crate) fn blocking(setup: &Setup<'_>, report: &mut Report) -> Result<()> {
    let items = setup.scaled(1_000_000) as usize;
    for command in [ConsumeCommand::BlPop, ConsumeCommand::BlMove, ConsumeCommand::XReadGroup] {
        let sides = Sides::start(setup)?;
        let two = ours(setup, 2)?.try_start().map_err(anyhow::Error::msg)?;
        let rate = |server: &Server| -> Result<f64> {
            Ok(Crowd::new(server, command, CLIENTS).run(items)?.per_second)
        };
        report.add(Row {
            what: format!("{items} items to {CLIENTS} clients by {command}, two workers"),
            unit: "1/s",
            ours: rate(&two).context("ours")?,
            theirs: Some(rate(&sides.theirs).context("peer")?),
            limit: Limit::RatioAtLeast(1.0),
        });
    }
    vanish(setup, report)
}

/// The server's cost per blocked client when all of them disconnect.
fn vanish(setup: &Setup<'_>, report: &mut Report) -> Result<()> {
    let sides = Sides::start(setup)?;
    for count in [FEW, MANY] {
        let costs = sides.all().into_iter().map(|server| cost_of_vanishing(server, count));
        let costs: Vec<(f64, f64)> = costs.collect::<Result<_>>()?;
        report.add(Row {
            what: format!("cost per client if {count} blocked clients disconnect at once"),
            unit: "µs of CPU time",
            ours: costs[0].0,
            theirs: costs.last().map(|cost| cost.0),
            limit: Limit::None,
        });
        report.add(Row {
            what: format!("memory that remains after {count} blocked clients disconnected"),
            unit: "MiB",
            ours: costs[0].1,
            theirs: costs.last().map(|cost| cost.1),
            limit: Limit::None,
        });
    }
    Ok(())
}

/// CPU time per client in µs, and the growth of memory since before the clients connected, in MiB.
fn cost_of_vanishing(server: &Server, count: usize) -> Result<(f64, f64)> {
    let mut control = server.connect();
    let before = server.rss();
    let mut waiting = Vec::with_capacity(count);
    for _ in 0..count {
        let mut stream = TcpStream::connect(server.address())?;
        stream.write_all(&encode(&["BLPOP", "all", "other", "0"]))?;
        waiting.push(stream);
    }
    let blocked = |control: &mut brisk_testkit::Conn| control.info("blocked_clients");
    brisk_testkit::wait_until("all wait", || blocked(&mut control) == count.to_string());
    let spent = server.cpu_ns();
    drop(waiting);
    brisk_testkit::wait_until("all are gone", || {
        blocked(&mut control) == "0" && control.info("connected_clients") == "1"
    });
    let each = (server.cpu_ns() - spent) as f64 / 1000.0 / count as f64;
    Ok((each, server.rss().saturating_sub(before) as f64 / MIB))
}
