//! The differential runner sends one stream of commands to two servers and compares the replies byte for byte.
//!
//! - [`table`]: the commands to draw from, taken from the command table without its nesting.
//! - [`generate`] and [`values`]: generate valid and nearly valid calls from argument trees. `scripts` generates Lua
//!   code that contains such calls.
//! - [`rules`]: every legitimate difference as a row with its reason. No other module excuses differences.
//! - [`settings`]: the directives that a stream may change.
//! - [`access`]: compares the permissions of users with ACL DRYRUN.
//! - [`audience`]: compares invalidation messages. [`listener`]: compares published messages.
//! - [`compare`]: compares two replies under a rule. [`state`]: compares two whole keyspaces.
//! - [`mod@reference`]: rows from a real server's table. [`peer`]: one pipelined connection. [`shrink`]: reduces a
//!   failing stream to a short transcript.
//!
//! A run is split into *episodes* of a few thousand commands. Each episode starts with FLUSHALL on fresh connections
//! and has its own random numbers. So (seed, episode) reproduces an episode without the preceding ones, and a
//! transcript to shrink is never long. At the end of each episode, the whole keyspaces are compared.
//!
//! **Time.** The two servers execute a command at slightly different instants. Replies must not depend on that, so
//! every expiry time in a stream is either in the past or more than a day in the future ([`rules::GUARDS`] ensures this
//! even after mutations). Replies that contain a time may differ by the tolerance of their rule. Other tests, which
//! really wait, cover the behavior *at* an expiry time. Blocking commands get timeouts of a millisecond, because no
//! other client wakes them.

#![forbid(unsafe_code)]

pub mod access;
mod arena;
pub mod audience;
pub mod compare;
mod difference;
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

pub use arena::Arena;
pub use difference::Difference;

use anyhow::Result;
use audience::Mode;
use brisk_testkit::random::Random;
use brisk_testkit::words::line;
use generate::{By, Call, Generator, Unit};
use settings::Thresholds;
use std::fmt;
use std::time::Duration;
use table::Table;

/// What to run.
#[derive(Debug, Clone)]
pub struct Options {
    pub seed: u64,
    /// Total number of commands.
    pub commands: u64,
    /// Commands sent before their replies are read.
    pub pipeline: usize,
    /// Commands per episode.
    pub episode: usize,
    /// Protocol versions, which episodes use in rotation.
    pub resp: Vec<u8>,
    /// The first episode to run, to reproduce a finding.
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
    /// Position of the command in the episode. For a difference between keyspaces, the length of the episode.
    pub index: usize,
    pub resp: u8,
    /// How the first session tracked its keys.
    pub tracking: String,
    pub difference: Difference,
    /// Commands that reproduce the difference from an empty keyspace.
    pub transcript: Vec<String>,
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

/// Runs the streams. Returns the first finding, already shrunk, if there is one. `progress` is called for each episode.
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
            // A server that hangs or has died cannot run the stream again: in this case, show the whole stream.
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
