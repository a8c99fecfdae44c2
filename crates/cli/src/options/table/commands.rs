//! Options about the commands that are sent, and about how their replies are shown.

use super::super::parse::{Words, seconds};
use super::super::{Options, Protocol, Refusal};
use super::{Completed, Row, Section};
use crate::format::Output;

pub(super) const SENT: Section = Section {
    title: "What is sent",
    rows: &[
        Row::value(
            &["-r"],
            "<count>",
            "Sends the command so many times; -1 for ever.",
            |options, words| {
                options.repeat = words.number();
                Ok(())
            },
        ),
        Row::value(
            &["-i"],
            "<seconds>",
            "Waits so long after each, such as 0.1; also between the steps of --scan, --stat and \
             --latency, and after 100 steps of --bigkeys and its like.",
            |options, words| {
                options.interval_us = (seconds(words) * 1_000_000.0) as u64;
                Ok(())
            },
        ),
        Row::flag(&["-x"], "Adds what standard input holds as last argument.", |options| {
            options.last_from_stdin = true;
        }),
        Row::value(
            &["-X"],
            "<tag>",
            "Puts it in the place of the argument that is this tag.",
            |options, words| {
                options.tag_from_stdin = Some(words.value());
                Ok(())
            },
        ),
        Row::flag(
            &["--quoted-input"],
            "Arguments are strings in quotes, with escapes such as \\x00.",
            |options| options.quoted_input = true,
        ),
        Row::flag(&["-e"], "Exits with 1 if the server answers with an error.", |options| {
            options.fails_on_error = true;
        }),
    ],
};

pub(super) const SHOWN: Section = Section {
    title: "How replies are shown",
    rows: &[
        Row::flag(&["--raw"], "Bytes as they are (so it is in a pipe).", |options| {
            options.output = Output::Raw;
        }),
        Row::flag(&["--no-raw"], "Numbered, with types (so it is on a terminal).", |options| {
            options.output = Output::Standard;
        }),
        Row::flag(&["--csv"], "Values separated by commas.", |options| {
            options.output = Output::Csv
        }),
        Row::flag(&["--json"], "JSON; in RESP3, unless -2 is said.", |options| {
            json(options, Output::Json);
        }),
        Row::flag(&["--quoted-json"], "The same in ASCII.", |options| {
            json(options, Output::QuotedJson);
        }),
        Row::value(
            &["-d"],
            "<text>",
            "Between the elements of a raw reply, instead of a line end.",
            |options, words| {
                options.delimiters.element = words.value();
                Ok(())
            },
        ),
        Row::value(
            &["-D"],
            "<text>",
            "Behind each raw reply, instead of a line end.",
            |options, words| {
                options.delimiters.reply = words.value();
                Ok(())
            },
        ),
        Row::value(
            &["--show-pushes"],
            "<yn>",
            "Whether to show what the server sends unasked (on a terminal: yes).",
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

fn pushes(options: &mut Options, words: &mut Words) -> Result<(), Refusal> {
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
