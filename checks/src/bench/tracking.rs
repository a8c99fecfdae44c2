//! The cost of client-side caching, compared with our own server without it.

use super::Setup;
use super::load::{Lines, fill};
use super::report::{Limit, Report, Row, median};
use super::sides::{load_from_here, ours};
use anyhow::{Result, bail};
use brisk_differential::peer::Peer;
use brisk_testkit::server::{Server, cpu_ns};
use brisk_testkit::words::encode;

const KEYS: usize = 100_000;
const VALUE_LEN: usize = 16;
/// The number of keys that only the other connection has read, in the cases where others track.
const OTHERS: u64 = 10_000;

/// A tracking mode of the connection, and the command that it sends.
struct TrackingCase {
    what: &'static str,
    /// The options of the working connection.
    options: Option<&'static str>,
    /// Another connection has read [`OTHERS`] other keys.
    others_track: bool,
    word: &'static str,
    limit: Limit,
}

const CASES: &[TrackingCase] = &[
    TrackingCase {
        what: "GET of tracked keys",
        options: Some("NOLOOP"),
        others_track: false,
        word: "GET",
        limit: Limit::Ratio(1.15),
    },
    TrackingCase {
        what: "SET of untracked keys",
        options: None,
        others_track: true,
        word: "SET",
        limit: Limit::Ratio(1.15),
    },
    TrackingCase {
        what: "SET by a client that tracks",
        options: Some("NOLOOP"),
        others_track: false,
        word: "SET",
        limit: Limit::Ratio(1.15),
    },
    TrackingCase {
        what: "SET with OPTIN, others track",
        options: Some("OPTIN"),
        others_track: true,
        word: "SET",
        limit: Limit::Ratio(1.15),
    },
];

/// GET and SET with tracking on, compared with the same server with tracking off.
pub(crate) fn tracking(setup: &Setup<'_>, report: &mut Report) -> Result<()> {
    load_from_here()?;
    for (pipeline, operations) in [(1, 100_000), (100, 2_000_000)] {
        let operations = setup.scaled(operations) as usize;
        for case in CASES {
            let with = ours(setup, 1)?.try_start().map_err(anyhow::Error::msg)?;
            let without = ours(setup, 1)?.try_start().map_err(anyhow::Error::msg)?;
            let mut track = Load::new(&with, case, true)?;
            let mut plain = Load::new(&without, case, false)?;
            let (mut ours, mut theirs) = (Vec::new(), Vec::new());
            for _ in 0..setup.rounds {
                ours.push(track.run(case, pipeline, operations)?);
                theirs.push(plain.run(case, pipeline, operations)?);
            }
            report.add(Row {
                what: format!(
                    "{}, pipeline depth {pipeline}, compared with no tracking",
                    case.what
                ),
                unit: "µs of CPU time",
                ours: median(&ours),
                theirs: Some(median(&theirs)),
                limit: case.limit,
            });
        }
    }
    Ok(())
}

/// One connection and its server, with all requests and replies in memory. The load's own cost only increases the
/// duration.
struct Load<'s> {
    server: &'s Server,
    peer: Peer,
    /// One request for each key, in an order with a long period.
    requests: Lines,
    replies: Lines,
    /// Kept open: a closed client gets no invalidations.
    _other: Option<Peer>,
}

impl<'s> Load<'s> {
    fn new(server: &'s Server, case: &TrackingCase, tracks: bool) -> Result<Load<'s>> {
        fill(server, 0, KEYS as u64, VALUE_LEN)?;
        let mut peer = Peer::connect(&server.address())?;
        let mut other = None;
        peer.request(&["HELLO", "3"])?;
        if let Some(options) = case.options.filter(|_| tracks) {
            peer.request(&["CLIENT", "TRACKING", "ON", options])?;
        }
        if case.others_track && tracks {
            let mut reader = Peer::connect(&server.address())?;
            reader.request(&["HELLO", "3"])?;
            reader.request(&["CLIENT", "TRACKING", "ON"])?;
            for key in 0..OTHERS {
                reader.request(&["GET", &format!("other:{key}")])?;
            }
            other = Some(reader);
        }
        let numbers = (0..KEYS).map(|at| at * 7_919 % KEYS);
        let requests = Lines::collect(numbers.clone().map(|number| {
            let key = format!("key:{number:012}");
            match case.word {
                "GET" => encode(&["GET", &key]),
                word => encode(&[word, &key, "0123456789abcdef"]),
            }
        }))?;
        let replies = Lines::collect(numbers.map(|number| match case.word {
            "GET" => format!("${VALUE_LEN}\r\n{number:0VALUE_LEN$}\r\n").into_bytes(),
            _ => b"+OK\r\n".to_vec(),
        }))?;
        let mut load = Load { server, peer, requests, replies, _other: other };
        // Read all keys first, so that they are tracked. This is not measured.
        load.run(case, 100, KEYS)?;
        Ok(load)
    }

    /// CPU time of the server per request, µs.
    fn run(&mut self, case: &TrackingCase, pipeline: usize, operations: usize) -> Result<f64> {
        let before = cpu_ns(self.server.pid());
        for at in (0..operations).step_by(pipeline) {
            let first = at % KEYS;
            let count = pipeline.min(KEYS - first);
            self.peer.send(self.requests.some(first, count))?;
            let expected = self.replies.some(first, count);
            let heard = self.peer.bytes(expected.len()).map_err(anyhow::Error::msg)?;
            if heard != expected {
                bail!("{}: {}", case.word, String::from_utf8_lossy(heard));
            }
        }
        Ok((cpu_ns(self.server.pid()) - before) as f64 / 1000.0 / operations as f64)
    }
}
