//! Races: many clients work on shared keys, and the checker verifies that some order of their operations explains every
//! reply.
//!
//! - [`linear`]: the checker. [`model`]: the sequential specification of the commands used.
//! - [`plan`]: random operations, such as transactions with and without WATCH, scripts, and blocking pops.
//! - [`wire`]: operations as requests. `group`: rounds of real connections, each with a thread.
//!
//! A run has several groups of clients at once. Only one group uses a key, so each group's history is checked
//! separately. Groups share slots and workers. The result depends on the machine's timing: a seed reproduces the
//! operations, but not their timing.

mod group;
pub mod linear;
pub mod model;
pub mod plan;
pub mod wire;

use anyhow::{Result, anyhow};
use linear::EventOf;
use model::State;
use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicU64};
use std::time::Instant;

/// What to run.
#[derive(Debug, Clone)]
pub struct Options {
    pub seed: u64,
    /// Minimum number of operations in total. A transaction or a script counts as one.
    pub operations: u64,
    /// Number of groups. Each has its own keys.
    pub groups: usize,
    /// Clients per group.
    pub clients: usize,
}

impl Default for Options {
    fn default() -> Options {
        Options { seed: 1, operations: 20_000, groups: 3, clients: 5 }
    }
}

/// Counts that show how much the clients competed.
#[derive(Debug, Clone, Copy, Default)]
pub struct Summary {
    pub operations: u64,
    pub rounds: u64,
    /// Operations that overlapped an operation of another client in their group.
    pub overlapping: u64,
    /// Transactions that ran.
    pub transactions: u64,
    /// Transactions that did not run because a watched key was changed.
    pub aborted: u64,
    pub scripts: u64,
    /// Operations that may block.
    pub waits: u64,
    /// Blocking operations that got nothing.
    pub released: u64,
}

impl fmt::Display for Summary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Summary { operations, rounds, overlapping, .. } = self;
        let Summary { transactions, aborted, scripts, waits, released, .. } = self;
        write!(
            f,
            "{operations} operations in {rounds} rounds, {overlapping} of them overlapping others: \
             {transactions} transactions run and {aborted} aborted by WATCH, {scripts} scripts, \
             {waits} waits, {released} of them for nothing"
        )
    }
}

/// A round that no order explains, or for which the search was given up.
#[derive(Debug)]
pub struct Found {
    pub group: usize,
    pub round: u64,
    /// The state at its beginning.
    pub state: State,
    pub history: Vec<EventOf<State>>,
    /// The maximum number of operations of each client that could be placed; `None` if the search was given up.
    pub placed: Option<Vec<usize>>,
}

impl fmt::Display for Found {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Found { group, round, state, history, placed } = self;
        let what = if placed.is_some() { "not linearizable" } else { "too long to judge" };
        writeln!(f, "group {group}, round {round}: {what}")?;
        for (at, text) in state.texts.iter().enumerate() {
            writeln!(f, "  t{at} is {}", text.map_or("nothing".to_owned(), |n| n.to_string()))?;
        }
        for (at, list) in state.lists.iter().enumerate() {
            writeln!(f, "  l{at} is {list:?}")?;
        }
        let begun = history.iter().map(|event| event.invoked).min().unwrap_or(0);
        let mut counts = vec![0; placed.as_ref().map_or(0, Vec::len)];
        let mut events: Vec<&EventOf<State>> = history.iter().collect();
        events.sort_by_key(|event| event.client);
        for event in events {
            let us = |ns: u64| (ns - begun) as f64 / 1000.0;
            let explained = counts.get_mut(event.client).is_none_or(|count| {
                *count += 1;
                placed.as_ref().is_none_or(|placed| *count <= placed[event.client])
            });
            let mark = if explained { ' ' } else { '?' };
            let reply = event.reply.to_string().replace('\n', ", ");
            writeln!(
                f,
                "{mark} client {} [{:9.1} {:9.1}] {}  ->  {reply}",
                event.client,
                us(event.invoked),
                us(event.returned),
                event.op
            )?;
        }
        writeln!(f, "`?`: where the longest order that was found does not reach")
    }
}

/// Runs clients against the server at `address`, which no other client may use. Returns the counts and the first
/// finding.
///
/// # Errors
/// If a connection fails, or an operation never gets a reply.
pub fn run(address: &str, options: &Options) -> Result<(Summary, Option<Found>)> {
    let run = &group::Run {
        address,
        options,
        begun: Instant::now(),
        done: AtomicU64::new(0),
        stop: AtomicBool::new(false),
    };
    let outcomes: Vec<_> = std::thread::scope(|scope| {
        let groups = 0..options.groups;
        let threads: Vec<_> = groups.map(|at| scope.spawn(move || group::run(run, at))).collect();
        threads.into_iter().map(std::thread::ScopedJoinHandle::join).collect()
    });
    let mut sum = Summary::default();
    let mut first = None;
    for outcome in outcomes {
        let (part, found) = outcome.map_err(|_| anyhow!("a group's thread panicked"))??;
        sum.add(&part);
        first = first.or(found);
    }
    Ok((sum, first))
}

impl Summary {
    fn add(&mut self, other: &Summary) {
        self.operations += other.operations;
        self.rounds += other.rounds;
        self.overlapping += other.overlapping;
        self.transactions += other.transactions;
        self.aborted += other.aborted;
        self.scripts += other.scripts;
        self.waits += other.waits;
        self.released += other.released;
    }
}
