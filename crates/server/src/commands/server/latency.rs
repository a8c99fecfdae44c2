//! LATENCY: latency spikes per event, and the latency distribution of each command.

use super::latency_report;
use brisk_engine::command::{Arg, Flags, Group, Spec};
use brisk_engine::table::Row;
use brisk_engine::{Args, CommandError, Outcome, Result};
use brisk_node::core::call::{Call, Command};
use brisk_observe::stats::CommandStats;

fn latest(call: &mut Call<'_>, _: &mut Args<'_>) -> Result<Outcome> {
    let events = call.core.shared.observe.latency.all();
    call.reply.array(events.len());
    for (event, series) in &events {
        let (second, ms) = series.samples.back().copied().unwrap_or_default();
        call.reply.array(4);
        call.reply.bulk(event.as_bytes());
        for number in [second, ms, series.worst_ms] {
            call.reply.integer(number as i64);
        }
    }
    Ok(Outcome::Replied)
}

fn history(call: &mut Call<'_>, args: &mut Args<'_>) -> Result<Outcome> {
    let event = String::from_utf8_lossy(args.bytes()?).into_owned();
    let events = call.core.shared.observe.latency.all();
    let Some(series) = events.get(event.as_str()) else { return Ok(call.reply.array(0)) };
    call.reply.array(series.samples.len());
    for (second, ms) in &series.samples {
        call.reply.array(2);
        call.reply.integer(*second as i64);
        call.reply.integer(*ms as i64);
    }
    Ok(Outcome::Replied)
}

fn reset(call: &mut Call<'_>, args: &mut Args<'_>) -> Result<Outcome> {
    let latency = &call.core.shared.observe.latency;
    let mut forgotten = 0;
    if args.remaining() == 0 {
        forgotten = latency.reset(None);
    }
    while let Some(event) = args.optional() {
        forgotten += std::str::from_utf8(event).map_or(0, |event| latency.reset(Some(event)));
    }
    Ok(call.reply.count(forgotten))
}

fn graph(call: &mut Call<'_>, args: &mut Args<'_>) -> Result<Outcome> {
    let word = args.bytes()?;
    let event = String::from_utf8_lossy(word).into_owned();
    let events = call.core.shared.observe.latency.all();
    let Some(series) = events.get(event.as_str()) else {
        let before = "ERR No samples available for event '";
        return Err(CommandError::text_around(before, word, "'"));
    };
    let text = latency_report::graph(&event, series, call.now().0 / 1000);
    Ok(call.reply.verbatim(*b"txt", text.as_bytes()))
}

fn doctor(call: &mut Call<'_>, _: &mut Args<'_>) -> Result<Outcome> {
    let events = call.core.shared.observe.latency.all();
    let text = latency_report::doctor(&events, &call.core.config, call.now().0 / 1000);
    Ok(call.reply.verbatim(*b"txt", text.as_bytes()))
}

/// Upper bounds of the buckets that HISTOGRAM shows, in ns. They are powers of two from 1024 on,
/// each raised by the same fraction as in Redis's own buckets.
const BOUNDS: usize = 21;

const fn bound_ns(bucket: usize) -> u64 {
    let power = 1024u64 << bucket;
    power + power / 128 - 1
}

/// A command's latency over all workers.
struct Distribution {
    calls: u64,
    /// For each nonempty bucket, its bound in µs and the number of calls up to it.
    cumulative: Vec<(u64, u64)>,
}

impl Distribution {
    /// Returns `None` if the command has never run.
    fn of<'s>(workers: impl Iterator<Item = &'s CommandStats>) -> Option<Distribution> {
        let mut counts = [0u64; BOUNDS];
        for stats in workers {
            stats.latency.for_each(|upper_ns, count| {
                let bucket = (0..BOUNDS).find(|at| upper_ns <= bound_ns(*at));
                counts[bucket.unwrap_or(BOUNDS - 1)] += count;
            });
        }
        let mut calls = 0;
        let mut cumulative = Vec::new();
        for (bucket, count) in counts.into_iter().enumerate().filter(|(_, count)| *count > 0) {
            calls += count;
            cumulative.push((bound_ns(bucket) / 1000, calls));
        }
        (calls > 0).then_some(Distribution { calls, cumulative })
    }
}

fn histogram(call: &mut Call<'_>, args: &mut Args<'_>) -> Result<Outcome> {
    let shared = call.core.shared;
    let mut wanted: Vec<&Row> = Vec::new();
    if args.remaining() == 0 {
        wanted.extend(shared.table.all());
    }
    while let Some(name) = args.optional() {
        // Unknown names are skipped. A container includes its subcommands.
        if let Some(row) = shared.table.find_full(name) {
            wanted.push(row);
            wanted.extend(&row.subcommands);
        }
    }
    let found: Vec<(&Row, Distribution)> = wanted
        .into_iter()
        .filter_map(|row| {
            let workers = shared.observe.stats.iter().map(|stats| &stats.commands[row.id]);
            Some((row, Distribution::of(workers)?))
        })
        .collect();
    call.reply.map(found.len());
    for (row, distribution) in found {
        call.reply.bulk(row.name.as_bytes());
        call.reply.map(2);
        call.reply.bulk(b"calls");
        call.reply.integer(distribution.calls as i64);
        call.reply.bulk(b"histogram_usec");
        call.reply.map(distribution.cumulative.len());
        for (bound_us, count) in distribution.cumulative {
            call.reply.integer(bound_us as i64);
            call.reply.integer(count as i64);
        }
    }
    Ok(Outcome::Replied)
}

fn help(call: &mut Call<'_>, _: &mut Args<'_>) -> Result<Outcome> {
    Ok(call.help(&[
        "DOCTOR",
        "    Explain the spikes, with recommendations.",
        "GRAPH <event>",
        "    Draw the spikes of an event.",
        "HISTORY <event>",
        "    List the times and durations of the spikes of an event.",
        "LATEST",
        "    Show the latest and the worst spike of each event.",
        "RESET [<event> ...]",
        "    Delete the spikes of these events, or of all events.",
        "HISTOGRAM [<command> ...]",
        "    Show the cumulative latency distribution of these commands (default: of all commands",
        "    that have run): microseconds, and the number of calls that took at most that long.",
    ]))
}

/// The fields shared by the rows of the subcommands.
const SUBCOMMAND: Spec = Spec {
    group: Group::Server,
    since: "2.8.13",
    complexity: "O(1)",
    arity: 2,
    flags: Flags::ADMIN.union(Flags::LOADING).union(Flags::NOSCRIPT).union(Flags::STALE),
    tips: &["nondeterministic_output", "request_policy:all_nodes", "response_policy:special"],
    ..Spec::EMPTY
};

const DOCTOR: Command = Command {
    spec: Spec { name: "doctor", summary: "Explains latency spikes in prose.", ..SUBCOMMAND },
    run: doctor,
    subcommands: &[],
};

const GRAPH: Command = Command {
    spec: Spec {
        name: "graph",
        summary: "Draws the latency spikes of an event.",
        arity: 3,
        args: &[Arg::string("event")],
        ..SUBCOMMAND
    },
    run: graph,
    subcommands: &[],
};

const HELP: Command =
    Command { spec: Spec::help(Group::Server, "2.8.13"), run: help, subcommands: &[] };

const HISTOGRAM: Command = Command {
    spec: Spec {
        name: "histogram",
        summary: "Shows the latency histograms of commands.",
        since: "7.0.0",
        complexity: "O(N) with N commands",
        arity: -2,
        args: &[Arg::string("command").optional().multiple()],
        ..SUBCOMMAND
    },
    run: histogram,
    subcommands: &[],
};

const HISTORY: Command = Command {
    spec: Spec {
        name: "history",
        summary: "Lists the latency spikes of an event.",
        arity: 3,
        args: &[Arg::string("event")],
        ..SUBCOMMAND
    },
    run: history,
    subcommands: &[],
};

const LATEST: Command = Command {
    spec: Spec {
        name: "latest",
        summary: "Shows the latest latency spike of each event.",
        ..SUBCOMMAND
    },
    run: latest,
    subcommands: &[],
};

const RESET: Command = Command {
    spec: Spec {
        name: "reset",
        summary: "Deletes the recorded latency spikes.",
        arity: -2,
        tips: &["request_policy:all_nodes", "response_policy:all_succeeded"],
        args: &[Arg::string("event").optional().multiple()],
        ..SUBCOMMAND
    },
    run: reset,
    subcommands: &[],
};

const LATENCY: Command = Command {
    spec: Spec {
        name: "latency",
        group: Group::Server,
        summary: "Manages the latency monitor.",
        since: "2.8.13",
        complexity: "Depends on subcommand.",
        arity: -2,
        ..Spec::EMPTY
    },
    run: help,
    subcommands: &[DOCTOR, GRAPH, HELP, HISTOGRAM, HISTORY, LATEST, RESET],
};

pub(super) const COMMANDS: &[Command] = &[LATENCY];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn histogram_keys_are_those_of_the_reference() {
        let keys: Vec<u64> = (0..BOUNDS).map(|at| bound_ns(at) / 1000).collect();
        let seen = [1, 2, 4, 8, 16, 33, 66, 132];
        assert_eq!(keys[..seen.len()], seen);
        assert_eq!(keys[10], 1056);
        assert_eq!(keys[11], 2113);
        assert_eq!(keys[15], 33816);
    }

    #[test]
    fn counts_are_cumulative_and_the_longest_calls_fall_into_the_last_bucket() {
        let stats = CommandStats::default();
        assert!(Distribution::of([&stats].into_iter()).is_none());
        for ns in [500, 900, 5_000, 40_000_000_000] {
            stats.latency.record(ns);
        }
        let distribution = Distribution::of([&stats].into_iter()).expect("there are calls");
        assert_eq!(distribution.calls, 4);
        let last = bound_ns(BOUNDS - 1) / 1000;
        assert_eq!(distribution.cumulative, [(1, 2), (8, 3), (last, 4)]);
    }
}
