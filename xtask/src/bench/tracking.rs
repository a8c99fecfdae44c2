//! Client-side caching: what it costs beside our own server without it.

use super::Setup;
use super::load::fill;
use super::report::{Limit, Report, Row, median};
use super::sides::{load_from_here, ours};
use anyhow::{Result, bail};
use brisk_testkit::diff::peer::Peer;
use brisk_testkit::server::{Server, cpu_ns};
use brisk_testkit::words::encode_into;

const KEYS: u64 = 100_000;
/// Keys of which the tracking client is never told, in the cases where others write.
const OTHERS: u64 = 10_000;

/// How a connection tracks, and what it sends.
struct Way {
    what: &'static str,
    /// Of the connection that works.
    options: Option<&'static str>,
    /// Another connection has read [`OTHERS`] other keys.
    others_track: bool,
    word: &'static str,
    limit: Limit,
}

const WAYS: &[Way] = &[
    Way {
        what: "GET of what is tracked",
        options: Some("NOLOOP"),
        others_track: false,
        word: "GET",
        limit: Limit::Ratio(1.15),
    },
    Way {
        what: "SET of what nobody tracks",
        options: None,
        others_track: true,
        word: "SET",
        limit: Limit::Ratio(1.15),
    },
    Way {
        what: "SET by a client that tracks",
        options: Some("NOLOOP"),
        others_track: false,
        word: "SET",
        limit: Limit::Ratio(1.15),
    },
    Way {
        what: "SET with OPTIN, others track",
        options: Some("OPTIN"),
        others_track: true,
        word: "SET",
        limit: Limit::Ratio(1.15),
    },
];

/// GET and SET with tracking on, beside the same server without.
pub(crate) fn tracking(setup: &Setup<'_>, report: &mut Report) -> Result<()> {
    load_from_here()?;
    for (pipeline, operations) in [(1, 100_000), (100, 2_000_000)] {
        let operations = setup.scaled(operations);
        for way in WAYS {
            let with = ours(setup, 1)?.try_start().map_err(anyhow::Error::msg)?;
            let without = ours(setup, 1)?.try_start().map_err(anyhow::Error::msg)?;
            let mut track = Load::new(&with, Some(way))?;
            let mut plain = Load::new(&without, None)?;
            let (mut ours, mut theirs) = (Vec::new(), Vec::new());
            for _ in 0..setup.rounds {
                ours.push(track.run(way, pipeline, operations)?);
                theirs.push(plain.run(way, pipeline, operations)?);
            }
            report.add(Row {
                what: format!("{}, P{pipeline} (peer: without tracking)", way.what),
                unit: "CPU µs/op",
                ours: median(&ours),
                theirs: Some(median(&theirs)),
                limit: way.limit,
            });
        }
    }
    Ok(())
}

/// One connection and its server.
struct Load<'s> {
    server: &'s Server,
    peer: Peer,
    /// Held open: a client that is gone is not told.
    _other: Option<Peer>,
}

impl<'s> Load<'s> {
    fn new(server: &'s Server, way: Option<&Way>) -> Result<Load<'s>> {
        fill(server, 0, KEYS, 16)?;
        let mut peer = Peer::connect(&server.address())?;
        let mut other = None;
        peer.ask(&["HELLO", "3"])?;
        if let Some(way) = way {
            if let Some(options) = way.options {
                peer.ask(&["CLIENT", "TRACKING", "ON", options])?;
            }
            if way.others_track {
                let mut reader = Peer::connect(&server.address())?;
                reader.ask(&["HELLO", "3"])?;
                reader.ask(&["CLIENT", "TRACKING", "ON"])?;
                for key in 0..OTHERS {
                    reader.ask(&["GET", &format!("other:{key}")])?;
                }
                other = Some(reader);
            }
        }
        Ok(Load { server, peer, _other: other })
    }

    /// CPU time of the server per request, µs.
    fn run(&mut self, way: &Way, pipeline: u64, operations: u64) -> Result<f64> {
        let before = cpu_ns(self.server.pid());
        let mut bytes = Vec::new();
        let mut at = 0;
        while at < operations {
            bytes.clear();
            let end = (at + pipeline).min(operations);
            for number in at..end {
                // Spread over the keys without repeating soon.
                let key = format!("key:{:012}", number * 7_919 % KEYS);
                match way.word {
                    "GET" => encode_into(&mut bytes, &["GET", &key]),
                    word => encode_into(&mut bytes, &[word, &key, "0123456789abcdef"]),
                }
            }
            self.peer.send(&bytes)?;
            for _ in at..end {
                let reply = self.peer.reply().map_err(anyhow::Error::msg)?;
                if !reply.starts_with(b"+") && !reply.starts_with(b"$16") {
                    bail!("{}: {}", way.word, String::from_utf8_lossy(reply));
                }
            }
            at = end;
        }
        Ok((cpu_ns(self.server.pid()) - before) as f64 / 1000.0 / operations as f64)
    }
}
