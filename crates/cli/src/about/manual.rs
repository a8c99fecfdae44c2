//! The manual page.

use super::help::{EXAMPLES, OWN, USAGE, heading, own_heading};
use crate::cluster;
use crate::options::table::SECTIONS;
use crate::options::table::own::COMMANDS;
use brisk_analyze::args;
use std::fmt::Write;

const VARIABLES: &[(&str, &str)] = &[
    ("REDISCLI_AUTH", "The password, if no option gives one."),
    (
        "BRISK_CLI_HISTFILE, REDISCLI_HISTFILE",
        "The history file; the first variable that is set is used. Empty or /dev/null disables it.",
    ),
    ("BRISK_CLI_RCFILE, REDISCLI_RCFILE", "The file with preferences."),
    ("FAKETTY", "If it is set, replies are printed as on a terminal."),
    ("TERM, NO_COLOR", "Colors are used if TERM contains xterm, and NO_COLOR is empty or not set."),
    ("PAGER", "The pager for long replies in interactive sessions (less -R); empty disables it."),
];

const FILES: &[(&str, &str)] = &[
    (
        "~/.brisk_cli_history",
        "The history of interactive sessions, up to 1000 lines, without lines that contain a password.",
    ),
    (
        "~/.brisk_clirc, ~/.redisclirc",
        "Preferences, for example :set nohints; read when a session starts.",
    ),
];

/// The page in roff.
pub(crate) fn page() -> String {
    let version = env!("CARGO_PKG_VERSION");
    let mut page = format!(
        ".TH BRISK\\-CLI 1 \"\" \"brisk {version}\" \"Brisk\"\n\
         .SH NAME\nbrisk\\-cli \\- command line client for Brisk and other RESP servers\n\
         .SH SYNOPSIS\n{}\n\
         .SH DESCRIPTION\n\
         Sends a command to a server and prints the reply. Without a command, brisk\\-cli starts an interactive \
         session with history, completion and hints; help describes commands there. Options, output and exit \
         codes are those of redis\\-cli.\n{}\n",
        plain(USAGE),
        plain(OWN)
    );
    for command in COMMANDS {
        entry(&mut page, &own_heading(command), &format!("{}.", command.text));
    }
    page.push_str(".SH OPTIONS\n");
    for section in SECTIONS {
        add(&mut page, &format!(".SS {}\n", plain(section.title)));
        for row in section.rows {
            entry(&mut page, &heading(row), row.text);
        }
    }
    page.push_str(".SH OPTIONS OF analyze\nThey follow the word analyze, like the file or directory. Without a file, a server is analyzed.\n");
    for option in args::options() {
        entry(&mut page, format!("{} {}", option.name, option.value).trim_end(), &option.text);
    }
    page.push_str(".SH COMMANDS OF --cluster\n.nf\n");
    for line in cluster::HELP.lines() {
        add(&mut page, &format!("{}\n", plain(line)));
    }
    page.push_str(".fi\n.SH ENVIRONMENT\n");
    for (name, text) in VARIABLES {
        entry(&mut page, name, text);
    }
    page.push_str(".SH FILES\n");
    for (name, text) in FILES {
        entry(&mut page, name, text);
    }
    page.push_str(
        ".SH EXIT STATUS\n0 if the server replied to the command, even with an error, unless \\-e is given; \
         1 otherwise.\n.SH EXAMPLES\n.nf\n",
    );
    for example in EXAMPLES {
        add(&mut page, &format!("{}\n", plain(example)));
    }
    page.push_str(".fi\n.SH SEE ALSO\nbrisk\\-server(1), brisk\\-benchmark(1), brisk\\-check\\-rdb(1), brisk\\-check\\-aof(1)\n");
    page
}

fn entry(page: &mut String, name: &str, text: &str) {
    add(page, &format!(".TP\n\\fB{}\\fR\n{}\n", plain(name), plain(text)));
}

fn add(page: &mut String, text: &str) {
    // Writing to a string cannot fail.
    let _ = page.write_str(text);
}

/// Escapes text for roff.
fn plain(text: &str) -> String {
    let text = text.replace('\\', "\\e").replace('-', "\\-");
    if text.starts_with(['.', '\'']) { format!("\\&{text}") } else { text }
}
