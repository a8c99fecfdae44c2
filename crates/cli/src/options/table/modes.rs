//! Options that select a mode other than sending a command.

use super::super::parse::Words;
use super::super::{ArgsError, Debugging, Mode, Options};
use super::{Completed, Row, Section};
use crate::quote::unquote;

pub(super) const KEYS: Section = Section {
    title: "Keys and data",
    rows: &[
        Row::flag(&["--scan"], "Lists all keys.", |options| options.mode = Mode::Scan),
        Row::flag(
            &["--bigkeys"],
            "Finds the keys with the most elements of each type.",
            |options| options.mode = Mode::BigKeys,
        ),
        Row::flag(&["--memkeys"], "Finds the keys that use the most memory.", |options| {
            options.mode = Mode::MemKeys;
        }),
        Row::value(
            &["--memkeys-samples"],
            "<n>",
            "The same, with this many sampled elements per key.",
            |options, words| {
                options.mode = Mode::MemKeys;
                options.memory_samples = words.number();
                Ok(())
            },
        ),
        Row::flag(
            &["--hotkeys"],
            "Finds the most frequently used keys, by the counters of an LFU maxmemory-policy or by short samples with MONITOR.",
            |options| options.mode = Mode::HotKeys,
        ),
        Row::value(
            &["--pattern"],
            "<pattern>",
            "Only keys that match the pattern, for the four modes above.",
            |options, words| {
                options.pattern = Some(words.value());
                Ok(())
            },
        ),
        Row::value(
            &["--quoted-pattern"],
            "<pattern>",
            "The same as a quoted string.",
            quoted_pattern,
        ),
        Row::value(
            &["--count"],
            "<number>",
            "COUNT of each SCAN call of --scan (10); number of tables of top, or samples of --hotkeys.",
            |options, words| {
                options.count = words.number();
                options.rounds = u64::try_from(options.count).ok();
                Ok(())
            },
        ),
        Row::flag(
            &["--pipe"],
            "Sends requests from standard input unchanged; with -c, each to the node of its key.",
            |options| options.mode = Mode::Pipe,
        ),
        Row::value(
            &["--pipe-timeout"],
            "<seconds>",
            "Maximum wait for the last replies (30; 0 waits forever).",
            |options, words| {
                options.pipe_timeout_s = u64::try_from(words.number()).unwrap_or(0);
                Ok(())
            },
        ),
        Row::value(
            &["--rdb"],
            "<file>",
            "Downloads a snapshot; - writes it to standard output.",
            |options, words| snapshot(options, words, false),
        )
        .completed(Completed::File),
        Row::value(
            &["--functions-rdb"],
            "<file>",
            "Downloads a snapshot that contains only the functions.",
            |options, words| snapshot(options, words, true),
        )
        .completed(Completed::File),
        Row::flag(
            &["--replica"],
            "Connects as a replica and prints the replication stream.",
            |options| {
                options.mode = Mode::Replica;
            },
        )
        .also(&["--slave"]),
    ],
};

pub(super) const SCRIPTS: Section = Section {
    title: "Scripts",
    rows: &[
        Row::value(
            &["--eval"],
            "<file> [key ... [, argument ...]]",
            "Runs a Lua script; a comma separates keys and arguments.",
            |options, words| {
                options.mode = Mode::Eval;
                options.script = Some(words.path());
                Ok(())
            },
        )
        .completed(Completed::File),
        Row::flag(
            &["--ldb"],
            "Runs it in the server's Lua debugger. Brisk has no debugger.",
            |options| options.debugging = Some(Debugging::Forked),
        ),
        Row::flag(
            &["--ldb-sync-mode"],
            "The same, but the server is blocked, and changes are kept.",
            |options| options.debugging = Some(Debugging::Synchronous),
        ),
    ],
};

pub(super) const MEASURING: Section = Section {
    title: "Monitoring",
    rows: &[
        Row::flag(&["--stat"], "Prints a line of statistics every second.", |options| {
            options.mode = Mode::Stat;
        }),
        Row::flag(
            &["--latency"],
            "Measures the latency of PING until Ctrl-C; in a pipe, with --raw or --csv, for one second.",
            |options| options.mode = Mode::Latency,
        ),
        Row::flag(&["--latency-history"], "The same in intervals of 15 seconds.", |options| {
            options.mode = Mode::Latency;
            options.latency_history = true;
        }),
        Row::flag(
            &["--latency-dist"],
            "The same as a color spectrum for each second.",
            |options| options.mode = Mode::LatencyDist,
        ),
        Row::flag(&["--mono"], "Prints the spectrum in gray.", |options| options.monochrome = true),
        Row::value(
            &["--lru-test"],
            "<keys>",
            "Simulates a cache workload with a skewed key distribution. Writes keys with the prefix lru:.",
            |options, words| {
                options.mode = Mode::LruTest;
                options.lru_keys = words.number();
                Ok(())
            },
        ),
        Row::value(
            &["--intrinsic-latency"],
            "<seconds>",
            "Measures the latency that this machine adds itself.",
            |options, words| {
                options.mode = Mode::IntrinsicLatency;
                options.intrinsic_seconds = u64::try_from(words.number()).unwrap_or(0);
                Ok(())
            },
        ),
    ],
};

fn quoted_pattern(options: &mut Options, words: &mut Words) -> Result<(), ArgsError> {
    let refused = "Invalid quoted string specified for --quoted-pattern.\n".to_owned();
    options.pattern = Some(unquote(&words.value()).ok_or(ArgsError::Because(refused))?);
    Ok(())
}

fn snapshot(
    options: &mut Options,
    words: &mut Words,
    functions_only: bool,
) -> Result<(), ArgsError> {
    if options.mode == Mode::Rdb && options.functions_only != functions_only {
        let text = "Option --functions-rdb and --rdb are mutually exclusive.\n";
        return Err(ArgsError::Because(text.to_owned()));
    }
    options.mode = Mode::Rdb;
    options.functions_only = functions_only;
    options.rdb_file = words.value();
    Ok(())
}
