//! The differential runner: one stream of commands to two servers, replies compared byte for byte.
//!
//! - [`table`]: the commands to draw from, flattened out of the command table.
//! - [`generate`] and [`values`]: valid and nearly valid calls out of argument trees.
//! - [`rules`]: every legitimate difference as a row with its reason; nothing is excused elsewhere.
//! - [`settings`]: the directives a stream may change.
//! - [`access`]: what users may do, compared by ACL DRYRUN.
//! - [`audience`]: who hears of changed keys, and what.
//! - [`compare`]: two replies under a rule. [`state`]: two whole keyspaces.
//! - [`mod@reference`]: rows out of a real server's table. [`peer`]: one pipelined connection. [`shrink`]: from a failing stream to a short transcript.
//!
//! A run is cut into *episodes* of some thousand commands. Each starts from FLUSHALL on fresh
//! connections and has random numbers of its own, so that an episode can be repeated by (seed,
//! episode) without what came before, and a transcript to be shrunk is never long. At its end the
//! keyspaces are compared whole.
//!
//! **Time.** The two servers execute a command at slightly different instants. Nothing may depend on
//! that, so every deadline in a stream lies either in the past or over a day ahead (rows of
//! [`rules::GUARDS`] see to it after mutations too), and replies that tell a time may differ by the
//! tolerance of their rule. What happens *at* a deadline is the matter of tests with real waiting.
//! Blocking commands get timeouts of a millisecond: there is nobody to wake them.

pub mod access;
pub mod audience;
pub mod compare;
pub mod generate;
mod payloads;
pub mod peer;
pub mod reference;
pub mod rules;
pub mod settings;
pub mod shrink;
pub mod state;
pub mod table;
pub mod values;

use crate::random::Random;
use crate::words::{encode, encode_into, line};
use anyhow::{Context, Result};
use audience::Audience;
use generate::{Call, Generator, Unit};
use peer::Peer;
use settings::Thresholds;
use std::fmt;
use std::time::Duration;
use table::Table;

/// What to run.
#[derive(Debug, Clone)]
pub struct Options {
    pub seed: u64,
    /// How many commands in all.
    pub commands: u64,
    /// Commands sent before their replies are read.
    pub pipeline: usize,
    /// Commands per episode.
    pub episode: usize,
    /// Protocol versions, taken in turn by episodes.
    pub resp: Vec<u8>,
    /// Begin with this episode, to repeat a finding.
    pub first_episode: u64,
    /// How long shrinking may take.
    pub shrink_limit: Duration,
}

impl Default for Options {
    fn default() -> Options {
        Options {
            seed: 1,
            commands: 20_000,
            pipeline: 100,
            episode: 5_000,
            resp: vec![2, 3],
            first_episode: 0,
            shrink_limit: Duration::from_secs(30),
        }
    }
}

/// A difference that no rule explains.
#[derive(Debug)]
pub struct Finding {
    pub seed: u64,
    pub episode: u64,
    /// Position in the episode; for a difference of states, its length.
    pub index: usize,
    pub resp: u8,
    pub difference: Difference,
    /// Commands that still show it, from an empty keyspace.
    pub transcript: Vec<String>,
}

/// What differed.
#[derive(Debug, Clone)]
pub struct Difference {
    /// The command, or the question about the keyspace.
    pub what: String,
    /// Name of the row, or the kind of state; shrinking keeps to differences of the same kind.
    pub kind: String,
    pub ours: String,
    pub theirs: String,
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Finding { seed, episode, index, resp, difference, transcript } = self;
        writeln!(f, "seed {seed}, episode {episode}, command {index}, RESP{resp}")?;
        writeln!(f, "  at:     {}", difference.what)?;
        writeln!(f, "  ours:   {}", indented(&difference.ours))?;
        writeln!(f, "  theirs: {}", indented(&difference.theirs))?;
        writeln!(f, "  transcript of {} commands, from an empty keyspace:", transcript.len())?;
        for command in transcript {
            writeln!(f, "    {command}")?;
        }
        Ok(())
    }
}

fn indented(text: &str) -> String {
    let cut: String = text.chars().take(2_000).collect();
    cut.replace('\n', "\n          ")
}

/// Runs the streams; `Some` is the first finding, already shrunk. `progress` hears of each episode.
pub fn run(
    table: &Table,
    ours: &str,
    theirs: &str,
    options: &Options,
    mut progress: impl FnMut(u64),
) -> Result<Option<Finding>> {
    let mut left = options.commands;
    let mut episode = options.first_episode;
    while left > 0 {
        let resp = options.resp[episode as usize % options.resp.len()];
        let random = Random::derived(options.seed, episode);
        let mut generator = Generator::new(table, random);
        let wanted = (options.episode as u64).min(left) as usize;
        let units = generator.units(wanted);
        let (thresholds, pipeline) = (Thresholds::of_seed(options.seed), options.pipeline);
        let mut arena = Arena { table, ours, theirs, resp, thresholds, pipeline };
        if let Some((index, difference)) = arena.first_difference(&units)? {
            let finding = |difference, units: &[Unit]| {
                let shown = |call: &Call| {
                    let session = if call.by_second { "(second session) " } else { "" };
                    format!("{session}{}", line(&call.words))
                };
                let transcript = units.iter().flatten().map(shown).collect();
                let seed = options.seed;
                Ok(Some(Finding { seed, episode, index, resp, difference, transcript }))
            };
            // A server that hangs or died cannot be asked again: then the whole stream is shown.
            let Ok(shrunk) =
                shrink::shrink(&mut arena, units.clone(), &difference, options.shrink_limit)
            else {
                return finding(difference, &shrink::through(units, index + options.pipeline));
            };
            return match arena.first_difference(&shrunk) {
                Ok(Some((_, seen))) if seen.kind == difference.kind => finding(seen, &shrunk),
                _ => finding(difference, &shrunk),
            };
        }
        left -= wanted as u64;
        episode += 1;
        progress(options.commands - left);
    }
    Ok(None)
}

/// The two servers and how to speak to them.
#[derive(Debug)]
pub struct Arena<'a> {
    table: &'a Table,
    ours: &'a str,
    theirs: &'a str,
    resp: u8,
    thresholds: Thresholds,
    pipeline: usize,
}

/// Requests longer than this together are not sent before replies are read: both sockets hold as
/// much, so neither side can wait for the other.
const BATCH_BYTES_MAX: usize = 48 * 1024;

impl Arena<'_> {
    /// Runs `units` from an empty keyspace; the first difference with the index of its command.
    pub fn first_difference(&mut self, units: &[Unit]) -> Result<Option<(usize, Difference)>> {
        let mut ours = self.sessions(self.ours).context("our server")?;
        let mut theirs = self.sessions(self.theirs).context("their server")?;
        let mut our_audience = Audience::gather(self.ours, &mut ours[0]).context("our server")?;
        let mut their_audience = Audience::gather(self.theirs, &mut theirs[0])?;
        let calls: Vec<&Call> = units.iter().flatten().collect();
        let mut bytes = Vec::with_capacity(BATCH_BYTES_MAX);
        let mut done = 0;
        while done < calls.len() {
            bytes.clear();
            let mut end = done;
            let session = usize::from(calls[done].by_second);
            while end < calls.len()
                && usize::from(calls[end].by_second) == session
                && end - done < self.pipeline
                && bytes.len() < BATCH_BYTES_MAX
            {
                if let Some(prelude) = rules::prelude(self.name(calls[end])) {
                    encode_into(&mut bytes, prelude);
                }
                encode_into(&mut bytes, &calls[end].words);
                if let Some(resync) = calls[end].resync(self.name(calls[end])) {
                    encode_into(&mut bytes, &resync);
                }
                end += 1;
            }
            let (ours, theirs) = (&mut ours[session], &mut theirs[session]);
            ours.send(&bytes)?;
            theirs.send(&bytes)?;
            for (index, call) in calls[..end].iter().enumerate().skip(done) {
                if let Some(difference) = self.one(call, ours, theirs) {
                    // What was sent is executed before anything else is asked: a server of several
                    // threads may serve the next connection first.
                    drain(ours);
                    drain(theirs);
                    return Ok(Some((index, difference)));
                }
            }
            for call in &calls[done..end] {
                if rules::tells_otherwise(self.name(call)) {
                    call.words.iter().for_each(|word| our_audience.excuse(word));
                }
            }
            if let Some(difference) = audience::difference(&mut our_audience, &mut their_audience)?
            {
                return Ok(Some((end - 1, difference)));
            }
            done = end;
        }
        let found = state::first_difference(self.ours, self.theirs)?;
        Ok(found.map(|difference| (calls.len(), difference)))
    }

    /// The two sessions of a stream; the server is empty.
    fn sessions(&self, address: &str) -> Result<[Peer; 2]> {
        Ok([Peer::fresh(address, self.resp, self.thresholds)?, Peer::connect(address)?])
    }

    fn name(&self, call: &Call) -> &str {
        self.table.rows.get(call.row).map_or("unknown command", |row| row.name.as_str())
    }

    fn one(&self, call: &Call, ours: &mut Peer, theirs: &mut Peer) -> Option<Difference> {
        let name = self.name(call);
        let difference = |ours, theirs| {
            Some(Difference { what: line(&call.words), kind: name.to_owned(), ours, theirs })
        };
        if rules::prelude(name).is_some() {
            let (mine, other) = (ours.reply().err(), theirs.reply().err());
            if mine.is_some() || other.is_some() {
                return difference(mine.unwrap_or_default(), other.unwrap_or_default());
            }
        }
        match (ours.reply(), theirs.reply()) {
            (Ok(mine), Ok(other)) if mine == other => {}
            (Ok(mine), Ok(other)) => {
                let how = rules::comparison(name, &call.words);
                if !compare::same(how, mine, other) {
                    return difference(compare::shown(mine), compare::shown(other));
                }
            }
            (mine, other) => {
                let text = |r: Result<&[u8], String>| r.map_or_else(|e| e, compare::shown);
                return difference(text(mine), text(other));
            }
        }
        if call.resync(name).is_some() {
            // How much the DEL found does not matter.
            let (mine, other) = (ours.reply().err(), theirs.reply().err());
            if mine.is_some() || other.is_some() {
                return difference(mine.unwrap_or_default(), other.unwrap_or_default());
            }
        }
        None
    }
}

/// Waits until everything sent has been executed.
fn drain(peer: &mut Peer) {
    let mark: &[u8] = b"no more to come";
    if peer.send(&encode(&[&b"ECHO"[..], mark])).is_ok() {
        // The mark comes back, or as an error inside a transaction, or the connection ends.
        while peer.reply().is_ok_and(|reply| !reply.ends_with(b"no more to come\r\n")) {}
    }
}
