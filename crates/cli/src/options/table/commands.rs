//! Options for sending commands, and for the output format of replies.

use super::super::parse::{Words, seconds};
use super::super::{ArgsError, Options, Protocol};
use super::{Completed, Row, Section};
use crate::format::Output;

pub(super) const SENT: Section = Section {
    title: "Input",
    rows: &[
        Row::value(
            &["-r"],
            "<count>",
            "Runs the command this many times; -1 repeats it forever.",
            |options, words| {
                options.repeat = words.number();
                Ok(())
            },
        ),
        Row::value(
            &["-i"],
            "<seconds>",
            "Waits this long between the runs, for example 0.1; also between the steps of \
             --scan, --stat, --latency and top, and after 100 steps of --bigkeys and similar modes.",
            |options, words| {
                options.interval_us = (seconds(words) * 1_000_000.0) as u64;
                Ok(())
            },
        ),
        Row::flag(&["-x"], "Reads the last argument from standard input.", |options| {
            options.last_from_stdin = true;
        }),
        Row::value(
            &["-X"],
            "<tag>",
            "Replaces the argument that equals this tag with standard input.",
            |options, words| {
                options.tag_from_stdin = Some(words.value());
                Ok(())
            },
        ),
        Row::flag(
            &["--quoted-input"],
            "Arguments are quoted strings, with escapes such as \\x00.",
            |options| options.quoted_input = true,
        ),
        Row::flag(
            &["--yes"],
            "Runs FLUSHALL, FLUSHDB and KEYS at the prompt without confirmation.",
            |options| options.yes = true,
        ),
        Row::flag(&["-e"], "Exits with 1 if the reply is an error.", |options| {
            options.fails_on_error = true;
        }),
    ],
};

pub(super) const SHOWN: Section = Section {
    title: "Output",
    rows: &[
        Row::flag(
            &["--raw"],
            "Prints raw replies (default if the output is not a terminal).",
            |options| {
                options.output = Output::Raw;
            },
        ),
        Row::flag(
            &["--no-raw"],
            "Prints replies with numbers and types (default on a terminal).",
            |options| {
                options.output = Output::Standard;
            },
        ),
        Row::flag(&["--csv"], "Prints values separated by commas.", |options| {
            options.output = Output::Csv
        }),
        Row::flag(&["--json"], "Prints JSON; uses RESP3 unless -2 is given.", |options| {
            json(options, Output::Json);
        }),
        Row::flag(&["--quoted-json"], "Prints JSON in ASCII only.", |options| {
            json(options, Output::QuotedJson);
        }),
        Row::value(
            &["-d"],
            "<text>",
            "Delimiter between the elements of a raw reply (newline).",
            |options, words| {
                options.delimiters.element = words.value();
                Ok(())
            },
        ),
        Row::value(
            &["-D"],
            "<text>",
            "Delimiter after each raw reply (newline).",
            |options, words| {
                options.delimiters.reply = words.value();
                Ok(())
            },
        ),
        Row::value(
            &["--show-pushes"],
            "<yn>",
            "Whether to print push messages of RESP3 (yes on a terminal).",
            pushes,
        )
        .completed(Completed::Word(&["yes", "no"])),
    ],
};

fn json(options: &mut Options, output: Output) {
    if options.protocol == Protocol::Unsaid {
        options.protocol = Protocol::Resp3IfKnown;
    }
    options.output = output;
}

fn pushes(options: &mut Options, words: &mut Words) -> Result<(), ArgsError> {
    let value = words.text();
    match value.bytes().next() {
        Some(b'y' | b'Y') => options.shows_pushes = true,
        Some(b'n' | b'N') => options.shows_pushes = false,
        _ => options
            .warnings
            .push(format!("Unknown --show-pushes value '{value}' (valid: '[y]es', '[n]o')\n")),
    }
    Ok(())
}
