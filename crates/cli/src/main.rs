//! `brisk-cli`: a command-line client that is compatible with `redis-cli`.
//!
//! | module | contents |
//! |---|---|
//! | `options` | the command line |
//! | `session` | the user's session: database, transaction, redirections; sending commands |
//! | `link` | the connection itself |
//! | `format` | output formats of replies |
//! | `repl` | the interactive session: prompt, hints, history, help |
//! | `modes` | special modes: `--scan`, `--bigkeys`, `--rdb`, `--latency` and so on |
//! | `cluster` | `--cluster` |
//! | `about` | texts about the program: `--help`, the manual page, completions |
//! | `keyspec` | the positions of keys in the arguments of a command |
//! | `docs`, `debugger` | the server's documentation of its commands; the script debugger |
//! | `screen`, `progress`, `quote`, `amount`, `info`, `pause`, `password` | helpers for the other modules |
#![forbid(unsafe_code)]

mod about;
mod amount;
mod cluster;
mod debugger;
mod docs;
mod format;
mod info;
mod keyspec;
mod link;
mod modes;
mod options;
mod password;
mod pause;
mod progress;
mod quote;
mod repl;
mod screen;
mod session;
mod slowlog;

use about::{completions, help, manual};
use options::{ArgsError, Mode, Options, Request};
use repl::End;
use session::Session;
use std::io::{Read, stdin};
use std::os::unix::ffi::{OsStrExt, OsStringExt};

/// The environment variable that contains the password, so that it does not appear in the process list.
const PASSWORD_VARIABLE: &str = "REDISCLI_AUTH";
/// Maximum length of an argument: the default of the server's `proto-max-bulk-len`.
const ARGUMENT_BYTES_MAX: u64 = 512 << 20;

fn main() {
    let words = std::env::args_os().skip(1).map(OsStringExt::into_vec).collect();
    let code = match options::parse(words, screen::is_for_people()) {
        Ok(Request::Help) => {
            screen::print(help::text());
            0
        }
        Ok(Request::Version) => {
            screen::print(format!("brisk-cli {}\n", env!("CARGO_PKG_VERSION")));
            0
        }
        Ok(Request::Manual) => {
            screen::print(manual::page());
            0
        }
        Ok(Request::Completions(shell)) => {
            screen::print(completions::of(shell));
            0
        }
        Ok(Request::Run(options)) => run(*options),
        Err(ArgsError::Because(text)) => {
            screen::warn(text);
            1
        }
        Err(ArgsError::Usage) => {
            screen::warn(help::text());
            1
        }
    };
    screen::exit(code);
}

/// Runs the mode that the options select. Returns the exit code.
fn run(mut options: Options) -> i32 {
    for warning in &options.warnings {
        screen::warn(warning);
    }
    if options.password.is_none()
        && let Some(password) = std::env::var_os(PASSWORD_VARIABLE)
    {
        options.password = Some(password.as_bytes().to_vec());
    }
    if options.asks_password {
        options.password = password::prompt("Please input password: ");
    }
    let mut session = match Session::new(options) {
        Ok(session) => session,
        Err(text) => {
            screen::warn(format!("{text}\n"));
            return 1;
        }
    };
    match session.options.mode.clone() {
        Mode::Command if session.options.words.is_empty() => {
            let _: End = repl::begin(&mut session);
            0
        }
        Mode::Command => one_command(&mut session),
        Mode::Cluster => cluster::run(&session),
        mode => modes::run(&mode, &mut session),
    }
}

/// Sends the command given on the command line.
fn one_command(session: &mut Session) -> i32 {
    let mut words = session.options.words.clone();
    if session.options.quoted_input {
        let unquoted: Option<Vec<Vec<u8>>> =
            words.iter().map(|word| quote::unquote(word)).collect();
        match unquoted {
            Some(unquoted) => words = unquoted,
            None => {
                screen::print("Invalid quoted string\n");
                return 1;
            }
        }
    }
    if session.options.last_from_stdin {
        words.push(all_of_stdin());
    } else if let Some(tag) = &session.options.tag_from_stdin {
        let Some(at) = words.iter().position(|word| word == tag) else {
            screen::warn("Using -X option but stdin tag not match.\n");
            return 1;
        };
        words[at] = all_of_stdin();
    }
    if words[0].eq_ignore_ascii_case(b"help") || words[0] == b"?" {
        repl::help::show(session, &words[1..]);
        return 0;
    }
    let repeat = session.options.repeat;
    i32::from(session.issue(&words, repeat).and_then(|()| session.messages()).is_err())
}

/// Reads standard input. If it is longer than an argument may be, the rest is not read, and the program fails.
fn all_of_stdin() -> Vec<u8> {
    let mut bytes = Vec::new();
    let reason = match stdin().take(ARGUMENT_BYTES_MAX + 1).read_to_end(&mut bytes) {
        Ok(count) if count as u64 <= ARGUMENT_BYTES_MAX => return bytes,
        Ok(_) => format!("more than {ARGUMENT_BYTES_MAX} bytes"),
        Err(error) => link::plain(&error),
    };
    screen::warn(format!("Error reading from stdin: {reason}\n"));
    screen::exit(1)
}
