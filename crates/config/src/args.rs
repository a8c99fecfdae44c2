//! The command line of the server: `brisk-server [file] [--name value …]… [-]`.
//!
//! Options become lines of configuration text that are appended to the file, exactly as in Redis,
//! so that their errors show the same lines. The rules, as observed:
//!  - A first argument that does not begin with `-` is the file;
//!    a first or last argument `-` is standard input.
//!  - `--name` begins a line; every other argument is a quoted argument of the current line.
//!  - Directly after `--name`, even an argument that begins with `--` is its value, except after
//!    `--save`, which then means `--save ""`.
//!
//! Brisk adds `--print-config`, and `--doctor [--json]` followed by the arguments with which a
//! server would be started.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;

use super::words;

/// The action that the command line requests.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Invocation {
    /// Run the server.
    Run(Launch),
    /// Print the version to standard output, exit 0.
    Version,
    /// Print `USAGE` to standard error, exit 1 (as Redis does).
    Help,
    /// Print `template` to standard output, exit 0.
    PrintConfig,
    /// Check the host and the configuration, and print the findings.
    Doctor {
        /// Where the configuration comes from.
        launch: Launch,
        /// Print JSON for programs.
        as_json: bool,
    },
    /// Print this to standard error, exit 1.
    Refuse(String),
}

/// The source of the configuration.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Launch {
    /// The configuration file.
    pub file: Option<PathBuf>,
    /// True if standard input is read after the file.
    pub stdin: bool,
    /// Options as configuration text, one line each.
    pub options: Vec<u8>,
}

/// The text of `--help`.
pub const USAGE: &str = "\
Usage: brisk-server [/path/to/brisk.conf] [options] [-]
       brisk-server -                 reads the configuration from standard input
       brisk-server -v or --version
       brisk-server -h or --help
       brisk-server --print-config    prints a configuration file that describes every directive
       brisk-server --doctor [--json] [/path/to/brisk.conf] [options]
                                      checks this machine and the configuration; exits
                                      with 1 if something must be fixed

Options are directives of the configuration file with two dashes in front:
       brisk-server --port 7777 --save \"\"
       brisk-server /etc/brisk.conf --loglevel verbose
       echo 'maxmemory 128mb' | brisk-server -
";

/// Parses the arguments after the program's name. O(length).
pub fn parse(arguments: &[OsString]) -> Invocation {
    let mut arguments: Vec<&[u8]> = arguments.iter().map(|a| a.as_bytes()).collect();
    match arguments.first().copied() {
        Some(b"-v" | b"--version") => return Invocation::Version,
        Some(b"-h" | b"--help") => return Invocation::Help,
        Some(b"--print-config") if arguments.len() == 1 => return Invocation::PrintConfig,
        Some(b"--print-config") => {
            let reason = "--print-config takes no other arguments: it prints the defaults and reads no \
                          file. To see the effective settings, use --doctor or CONFIG GET.";
            return Invocation::Refuse(reason.to_owned());
        }
        Some(name @ (b"--test-memory" | b"--check-system")) => {
            let name = String::from_utf8_lossy(name);
            return Invocation::Refuse(format!("{name} is not supported by Brisk."));
        }
        _ => {}
    }
    if arguments.contains(&&b"--sentinel"[..]) {
        let reason = "Sentinel mode is not part of Brisk: run Redis's Sentinel next to it.";
        return Invocation::Refuse(reason.to_owned());
    }
    if arguments.first().copied() == Some(b"--doctor") {
        arguments.remove(0);
        let as_json = arguments.first().copied() == Some(b"--json");
        if as_json {
            arguments.remove(0);
        }
        return Invocation::Doctor { launch: launch(arguments), as_json };
    }
    Invocation::Run(launch(arguments))
}

/// Parses the arguments that concern the configuration.
fn launch(mut arguments: Vec<&[u8]>) -> Launch {
    let mut launch = Launch::default();
    match arguments.first().copied() {
        Some(b"-") => {
            launch.stdin = true;
            arguments.remove(0);
        }
        Some(file) if file.first() != Some(&b'-') => {
            launch.file = (!file.is_empty()).then(|| PathBuf::from(OsStr::from_bytes(file)));
            arguments.remove(0);
        }
        _ => {}
    }
    if arguments.last().copied() == Some(b"-") {
        launch.stdin = true;
        arguments.pop();
    }
    launch.options = options(&arguments);
    launch
}

/// Converts options to lines of configuration text.
fn options(arguments: &[&[u8]]) -> Vec<u8> {
    let mut text: Vec<u8> = Vec::new();
    let mut wants_value = false;
    for (index, argument) in arguments.iter().enumerate() {
        let name = argument.strip_prefix(b"--").filter(|_| !wants_value);
        let Some(name) = name else {
            text.extend_from_slice(words::quote(argument).as_bytes());
            text.push(b' ');
            wants_value = false;
            continue;
        };
        if !text.is_empty() {
            text.push(b'\n');
        }
        text.extend_from_slice(name);
        text.push(b' ');
        let next = arguments.get(index + 1).copied();
        let next_is_option = next.is_none_or(|next| next.starts_with(b"--"));
        if name.eq_ignore_ascii_case(b"save") && next_is_option {
            text.extend_from_slice(b"\"\"");
        } else {
            // `--name value` in one argument already has its value.
            wants_value = words::split(name).is_none_or(|words| words.len() <= 1);
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(arguments: &[&str]) -> Launch {
        let arguments: Vec<OsString> = arguments.iter().map(OsString::from).collect();
        match parse(&arguments) {
            Invocation::Run(launch) => launch,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn options_become_lines_as_redis_prints_them_in_errors() {
        for (arguments, lines) in [
            (&["--port", "abc"][..], &["port \"abc\""][..]),
            (&["--port abc"], &["port abc"]),
            (&["--port", "1", "2"], &["port \"1\" \"2\""]),
            (&["--save", "", "--port", "1"], &["save \"\"", "port \"1\""]),
            (&["--save", "--port", "1"], &["save \"\"", "port \"1\""]),
            (&["--Save", "--port", "1"], &["Save \"\"", "port \"1\""]),
            (&["--save"], &["save \"\""]),
            (&["--requirepass", "--foo", "--port", "1"], &["requirepass \"--foo\"", "port \"1\""]),
            (&["--requirepass", "--port", "5"], &["requirepass \"--port\" \"5\""]),
            (&["--timeout=5", "--port", "1"], &["timeout=5 \"--port\" \"1\""]),
            (&["-x"], &["\"-x\""]),
            (&["--bind", "a", "--", "--port", "1"], &["bind \"a\"", "\"--port\" \"1\""]),
            (&["--"], &[""]),
            (&["--", "port", "1"], &["\"port\" \"1\""]),
            (&["--port", "0", "-", "--port"], &["port \"0\" \"-\"", "port"]),
        ] {
            let launch = run(arguments);
            let text = String::from_utf8(launch.options).unwrap();
            let got: Vec<_> = text.split('\n').map(str::trim).collect();
            assert_eq!(got, lines, "{arguments:?}");
            assert_eq!((launch.file, launch.stdin), (None, false));
        }
    }

    #[test]
    fn a_first_plain_word_is_the_file_and_a_dash_is_standard_input() {
        let launch = run(&["a.conf", "port", "5", "-"]);
        assert_eq!(launch.file, Some("a.conf".into()));
        assert!(launch.stdin);
        assert_eq!(launch.options, b"\"port\" \"5\" ");
        assert!(run(&["-", "--port", "1"]).stdin);
        assert_eq!(run(&[]), Launch::default());
    }

    #[test]
    fn the_doctor_is_shown_what_a_server_would_be_started_with() {
        for (arguments, json) in [
            (&["--doctor", "a.conf", "--port", "1"][..], false),
            (&["--doctor", "--json", "a.conf", "--port", "1"], true),
        ] {
            let words: Vec<OsString> = arguments.iter().map(OsString::from).collect();
            let launch = run(&["a.conf", "--port", "1"]);
            assert_eq!(parse(&words), Invocation::Doctor { launch, as_json: json });
        }
    }

    #[test]
    fn unsupported_options_are_rejected_with_a_reason() {
        for arguments in [
            &["--check-system"][..],
            &["--test-memory", "5"],
            &["a.conf", "--sentinel"],
            &["--print-config", "a.conf"],
        ] {
            let arguments: Vec<OsString> = arguments.iter().map(OsString::from).collect();
            assert!(matches!(parse(&arguments), Invocation::Refuse(_)));
        }
        assert_eq!(parse(&["-v".into()]), Invocation::Version);
        assert_eq!(parse(&["--help".into()]), Invocation::Help);
        assert_eq!(parse(&["--print-config".into()]), Invocation::PrintConfig);
    }
}
