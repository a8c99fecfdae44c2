//! The differential runner: one stream of commands to two servers, replies compared byte for byte.
//!
//! - [`table`]: the commands to draw from, flattened out of the command table.
//! - [`generate`] and [`values`]: valid and nearly valid calls out of argument trees. `scripts`:
//!   text that calls them.
//! - [`rules`]: every legitimate difference as a row with its reason; nothing is excused elsewhere.
//! - [`settings`]: the directives a stream may change.
//! - [`access`]: what users may do, compared by ACL DRYRUN.
//! - [`audience`]: who hears of changed keys, and what. [`listener`]: who hears what is published.
//! - [`compare`]: two replies under a rule. [`state`]: two whole keyspaces.
//! - [`mod@reference`]: rows out of a real server's table. [`peer`]: one pipelined
//!   connection. [`shrink`]: from a failing stream to a short transcript.
//!
//! A run is cut into *episodes* of some thousand commands. Each starts from FLUSHALL on fresh
//! connections and has random numbers of its own, so that an episode can be repeated by (seed,
//! episode) without what came before, and a transcript to be shrunk is never long. At its end the
//! keyspaces are compared whole.
//!
//! **Time.** The two servers execute a command at slightly different instants. Nothing may depend
//! on that, so every deadline in a stream lies either in the past or over a day ahead (rows of
//! [`rules::GUARDS`] see to it after mutations too), and replies that tell a time may differ by the
//! tolerance of their rule. What happens *at* a deadline is the matter of tests with real waiting.
//! Blocking commands get timeouts of a millisecond: there is nobody to wake them.

#![forbid(unsafe_code)]

pub mod access;
pub mod audience;
pub mod compare;
pub mod generate;
pub mod listener;
mod payloads;
pub mod peer;
pub mod reference;
pub mod rules;
mod scripts;
pub mod settings;
pub mod shrink;
pub mod state;
pub mod table;
pub mod values;

use anyhow::{Context, Result};
use audience::{Audience, Mode};
use brisk_testkit::random::Random;
use brisk_testkit::reply::Reply;
use brisk_testkit::words::{encode, encode_into, line};
use generate::{By, Call, Generator, Unit};
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
    /// How the first session tracked its keys.
    pub tracking: String,
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
        let Finding { seed, episode, index, resp, tracking, difference, transcript } = self;
        writeln!(f, "seed {seed}, episode {episode}, command {index}, RESP{resp}, {tracking}")?;
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
        let mode = Mode::of(resp, &mut Random::derived(!options.seed, episode));
        let mut generator = Generator::new(table, random);
        generator.composes_scripts(mode.scripts);
        if !mode.may_run_scripts() {
            generator.leave_out_scripts();
        }
        let wanted = (options.episode as u64).min(left) as usize;
        let units = generator.units(wanted);
        let (thresholds, pipeline) = (Thresholds::of_seed(options.seed), options.pipeline);
        let mut arena = Arena { table, ours, theirs, resp, mode, thresholds, pipeline };
        if let Some((index, difference)) = arena.first_difference(&units)? {
            let finding = |difference, units: &[Unit]| {
                let shown = |call: &Call| {
                    let session = match call.by {
                        By::First => "",
                        By::Second => "(second session) ",
                        By::Listener => "(listener) ",
                    };
                    format!("{session}{}", line(&call.words))
                };
                let transcript = units.iter().flatten().map(shown).collect();
                let (seed, tracking) = (options.seed, mode.to_string());
                Ok(Some(Finding { seed, episode, index, resp, tracking, difference, transcript }))
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
    mode: Mode,
    thresholds: Thresholds,
    pipeline: usize,
}

/// All sessions at one server.
#[derive(Debug)]
struct Sessions {
    first: Peer,
    second: Peer,
    listener: Peer,
    audience: Audience,
}

impl Sessions {
    fn of(&mut self, by: By) -> &mut Peer {
        match by {
            By::First => &mut self.first,
            By::Second => &mut self.second,
            By::Listener => &mut self.listener,
        }
    }
}

/// What is heard of the last batch, if it is not the same; `said` is what the listeners send.
fn difference_heard(
    ours: &mut Sessions,
    theirs: &mut Sessions,
    said: &[u8],
) -> Result<Option<Difference>> {
    let mine = listener::heard(&mut ours.listener, said).context("our listener")?;
    let other = listener::heard(&mut theirs.listener, said).context("their listener")?;
    if mine != other {
        let shown =
            |heard: &[Reply]| heard.iter().map(Reply::to_string).collect::<Vec<_>>().join("\n");
        let what = "what was published".to_owned();
        let (ours, theirs) = (shown(&mine), shown(&other));
        return Ok(Some(Difference { kind: what.clone(), what, ours, theirs }));
    }
    ours.audience.hear(&mut ours.first).context("our audience")?;
    theirs.audience.hear(&mut theirs.first).context("their audience")?;
    Ok(audience::difference(&ours.audience, &theirs.audience))
}

/// Requests longer than this together are not sent before replies are read: both sockets hold as
/// much, so neither side can wait for the other.
const BATCH_BYTES_MAX: usize = 48 * 1024;

impl Arena<'_> {
    /// Runs `units` from an empty keyspace; the first difference with the index of its command.
    pub fn first_difference(&mut self, units: &[Unit]) -> Result<Option<(usize, Difference)>> {
        let mut ours = self.sessions(self.ours).context("our server")?;
        let mut theirs = self.sessions(self.theirs).context("their server")?;
        let calls: Vec<&Call> = units.iter().flatten().collect();
        let mut bytes = Vec::with_capacity(BATCH_BYTES_MAX);
        let mut done = 0;
        while done < calls.len() {
            let (by, batch) = (calls[done].by, self.batch(&calls[done..], &mut bytes));
            let end = done + batch.len();
            let listens = by == By::Listener;
            let mut refused = Vec::new();
            if !listens {
                let (mine, other) = (ours.of(by), theirs.of(by));
                mine.send(&bytes)?;
                other.send(&bytes)?;
                for (index, call) in batch.iter().enumerate() {
                    let mut is_refused = false;
                    if let Some(difference) = self.one(call, mine, other, &mut is_refused) {
                        // What was sent is executed before anything else is asked: a server of
                        // several threads may serve the next connection first.
                        drain(mine);
                        drain(other);
                        return Ok(Some((done + index, difference)));
                    }
                    refused.extend(is_refused.then_some(index));
                }
            }
            for (index, call) in batch.iter().enumerate() {
                if rules::ends_tracking(self.name(call)) {
                    ours.audience.end();
                    theirs.audience.end();
                }
                if rules::tells_otherwise(self.name(call)) || refused.contains(&index) {
                    call.words.iter().for_each(|word| ours.audience.excuse(word));
                }
            }
            let said = if listens { &bytes[..] } else { &[] };
            if let Some(difference) = difference_heard(&mut ours, &mut theirs, said)? {
                return Ok(Some((end - 1, difference)));
            }
            done = end;
        }
        let found = state::first_difference(self.ours, self.theirs)?;
        Ok(found.map(|difference| (calls.len(), difference)))
    }

    /// The first of `calls` that can be sent together; their requests are in `bytes`.
    fn batch<'c>(&self, calls: &'c [&'c Call], bytes: &mut Vec<u8>) -> &'c [&'c Call] {
        bytes.clear();
        let by = calls[0].by;
        let fits = |call: &Call, at: usize, bytes: &[u8]| {
            call.by == by && at < self.pipeline && bytes.len() < BATCH_BYTES_MAX
        };
        let mut end = 0;
        while end < calls.len() && fits(calls[end], end, bytes) {
            let call = calls[end];
            if let Some(prelude) = rules::prelude(self.name(call)) {
                encode_into(bytes, prelude);
            }
            encode_into(bytes, &call.words);
            if let Some(resync) = call.resync(self.name(call)) {
                encode_into(bytes, &resync);
            }
            end += 1;
        }
        &calls[..end]
    }

    /// The sessions of a stream; the server is empty.
    fn sessions(&self, address: &str) -> Result<Sessions> {
        let mut first = Peer::fresh(address, self.resp, self.thresholds)?;
        let mut listener = Peer::connect(address)?;
        if self.resp == 3 {
            listener.ask(&["HELLO", "3"])?;
        }
        let audience = Audience::gather(address, &mut first, self.mode)?;
        Ok(Sessions { first, second: Peer::connect(address)?, listener, audience })
    }

    fn name(&self, call: &Call) -> &str {
        self.table.rows.get(call.row).map_or("unknown command", |row| row.name.as_str())
    }

    /// Compares the replies to one call, and tells whether its words are refused.
    fn one(
        &self,
        call: &Call,
        ours: &mut Peer,
        theirs: &mut Peer,
        is_refused: &mut bool,
    ) -> Option<Difference> {
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
            (Ok(mine), Ok(other)) if mine == other => *is_refused = rules::refuses_words(mine),
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
