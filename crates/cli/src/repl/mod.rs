//! The interactive session: reads lines and prints replies, until `quit` or the end of input.
//!
//! | file | contents |
//! |---|---|
//! | `editor.rs` | the line editor: keys, completion |
//! | `names.rs` | completion of key names |
//! | `highlight.rs` | colors of a line |
//! | `suggest.rs` | suggestions after an unknown command |
//! | `confirm.rs` | commands that need a confirmation |
//! | `hint.rs` | hints for the rest of a line |
//! | `history.rs` | the history, and the lines that are never stored |
//! | `help.rs` | `help` |
//! | `settings.rs` | `:set`, and the file that is read at startup |

mod confirm;
mod editor;
pub(crate) mod help;
mod highlight;
mod hint;
mod history;
mod names;
mod settings;
mod suggest;

use crate::format::Output;
use crate::link::Interrupts;
use crate::options::Debugging;
use crate::quote::{leading_number, split, split_at_pipe};
use crate::screen;
use crate::session::{Debug, Loudness, ReplySink, Session};
use editor::{Editor, Line};
use history::History;
use rustix::{stdio, termios};
use settings::Settings;
use std::fs::File;
use std::io::{BufRead, BufReader, Read};
use std::time::{Duration, Instant};

/// If a command takes at least this long, its duration is printed.
const PRINTED_DURATION_MIN: Duration = Duration::from_millis(500);

/// Maximum length of a line from a pipe. It leaves room for an argument of the maximum length.
const LINE_BYTES_MAX: u64 = 1 << 30;

/// The pager, unless the environment variable names one.
const PAGER: &str = "less -R";
const PAGER_VARIABLE: &str = "PAGER";

/// The reason why a session ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum End {
    /// The user has quit.
    Quit,
    /// The debugger must be restarted.
    Restart,
}

/// The action after a line.
enum After {
    Next,
    End(End),
}

/// The source of lines.
enum Source {
    Terminal(Box<Editor>, History),
    Pipe(BufReader<File>),
    Nothing,
}

/// Runs a session until it ends. It is already connected, if the server could be reached.
pub(crate) fn run(session: &mut Session) -> End {
    session.is_interactive = true;
    let mut settings = Settings::default();
    let mut source = source(session, &mut settings);
    loop {
        if source.is_terminal() {
            session.sink = pager(&settings);
        }
        let line = match source.line(session, &settings) {
            Next::Line(line) => line,
            // Ctrl-C first ends the subscriptions.
            Next::Cleared { .. } | Next::End if session.is_subscribed() && source.is_terminal() => {
                session.leave_subscription();
                continue;
            }
            Next::Cleared { was_empty } => {
                if was_empty {
                    screen::print("(To exit, press Ctrl-D or type quit.)\n");
                }
                continue;
            }
            Next::End => return End::Quit,
        };
        match execute(session, &mut source, &mut settings, &line) {
            After::Next => {}
            After::End(end) => return end,
        }
        if session.is_subscribed() && !source.holds_more() {
            session.messages_until_input();
        }
    }
}

/// The result of reading a line.
enum Next {
    Line(Vec<u8>),
    /// Ctrl-C has cleared the line.
    Cleared {
        was_empty: bool,
    },
    End,
}

/// Shows long replies in a pager, unless the user has turned it off.
fn pager(settings: &Settings) -> ReplySink {
    let pager = std::env::var(PAGER_VARIABLE).unwrap_or_else(|_| PAGER.to_owned());
    match settings.pager && screen::is_terminal() && !pager.trim().is_empty() {
        true => ReplySink::Pager(pager),
        false => ReplySink::Screen,
    }
}

impl Source {
    fn line(&mut self, session: &Session, settings: &Settings) -> Next {
        match self {
            Source::Terminal(editor, history) => {
                editor.show_hints(settings.hints);
                editor.complete_keys_of(&session.options);
                match editor.line(&session.prompt(), history) {
                    Line::Typed(line) => Next::Line(line.into_bytes()),
                    Line::Cleared { was_empty } => Next::Cleared { was_empty },
                    Line::End => Next::End,
                }
            }
            Source::Pipe(stdin) => {
                // The program that writes the lines may be waiting for the result of the last one.
                screen::flush();
                piped_line(stdin).map_or(Next::End, Next::Line)
            }
            Source::Nothing => Next::End,
        }
    }

    /// Prompts for the confirmation of a dangerous command. Returns false if the user does not confirm it.
    fn confirms(&mut self, session: &mut Session, words: &[Vec<u8>]) -> bool {
        let Source::Terminal(editor, _) = self else { return true };
        if !confirm::may_apply(words) {
            return true;
        }
        let Some(question) = confirm::question(session, words) else { return true };
        let is_confirmed = confirm::is_yes(&editor.answer(&question));
        if !is_confirmed {
            screen::print("Not executed.\n");
        }
        is_confirmed
    }

    /// Prints a suggestion if the last command was unknown.
    fn suggest(&self, session: &Session, words: &[Vec<u8>]) {
        let Source::Terminal(editor, _) = self else { return };
        let error = session.last.as_ref().and_then(|value| value.as_error());
        if let (Some(error), Some(docs)) = (error, editor.docs())
            && let Some(line) = suggest::line(docs, error, words)
        {
            screen::print(line);
        }
    }

    fn is_terminal(&self) -> bool {
        matches!(self, Source::Terminal(..))
    }

    /// Reports whether more input has already been received, so that there is no need to wait.
    fn holds_more(&self) -> bool {
        matches!(self, Source::Pipe(stdin) if !stdin.buffer().is_empty())
    }
}

fn source(session: &mut Session, settings: &mut Settings) -> Source {
    if !termios::isatty(stdio::stdin()) {
        return piped();
    }
    screen::outlive_reader();
    settings.load();
    // If the handler cannot be installed, Ctrl-C ends the program.
    session.heed(Interrupts::take_over().ok());
    let docs = help::docs(session).unwrap_or_default();
    match Editor::new(docs) {
        Ok(editor) => Source::Terminal(Box::new(editor), History::load()),
        Err(_) => piped(),
    }
}

fn piped() -> Source {
    // If standard input is closed, there are no lines.
    stdio::stdin()
        .try_clone_to_owned()
        .map_or(Source::Nothing, |stdin| Source::Pipe(BufReader::new(File::from(stdin))))
}

fn piped_line(stdin: &mut impl BufRead) -> Option<Vec<u8>> {
    let mut line = Vec::new();
    let read = stdin.take(LINE_BYTES_MAX + 1).read_until(b'\n', &mut line);
    match read {
        Ok(count) if count as u64 > LINE_BYTES_MAX => {
            screen::flush();
            screen::warn(format!("A line is longer than {LINE_BYTES_MAX} bytes.\n"));
            screen::exit(1)
        }
        Ok(count) if count > 0 => {
            if line.last() == Some(&b'\n') {
                line.pop();
            }
            Some(line)
        }
        _ => None,
    }
}

fn execute(
    session: &mut Session,
    source: &mut Source,
    settings: &mut Settings,
    line: &[u8],
) -> After {
    if line.is_empty() {
        return After::Next;
    }
    // A shell command may have quotes of its own.
    if source.is_terminal()
        && session.debug != Debug::Running
        && let Some((before, shell)) = split_at_pipe(line)
        && let Some(words) = split(before)
    {
        remember(source, line, &words);
        if source.confirms(session, &words) {
            piped_command(session, &words, shell);
        }
        return After::Next;
    }
    let Some(words) = cut(session, line) else {
        screen::print("Invalid argument(s)\n");
        remember(source, line, &history::words_of_broken(line));
        return After::Next;
    };
    let Some(first) = words.first() else { return After::Next };
    // A number before a command repeats it.
    let (repeat, skipped) = if words.len() > 1 && is_number(first) {
        let repeat = leading_number(first);
        if repeat <= 0 || repeat == i64::MAX {
            screen::print("Invalid redis-cli repeat command option value.\n");
            return After::Next;
        }
        (repeat, 1)
    } else {
        (1, 0)
    };
    remember(source, line, &words[skipped..]);
    let is = |word: &str| first.eq_ignore_ascii_case(word.as_bytes());
    if is("quit") || is("exit") {
        return After::End(End::Quit);
    }
    if first.first() == Some(&b':') {
        if let Err(text) = settings.apply(&words) {
            screen::print(format!("{text}\n"));
        }
    } else if is("restart") {
        if session.options.script.is_some() && session.options.debugging.is_some() {
            return After::End(End::Restart);
        }
        screen::print("Use 'restart' only in Lua debugging mode.\n");
    } else if words.len() == 3 && is("connect") {
        let host = String::from_utf8_lossy(&words[1]).into_owned();
        session.move_to(host, leading_number(&words[2]));
    } else if words.len() == 1 && is("clear") {
        screen::print("\x1b[H\x1b[2J");
        screen::flush();
    } else {
        let words = &words[skipped..];
        if source.confirms(session, words) {
            session.last = None;
            command(session, words, repeat);
            source.suggest(session, words);
        }
    }
    After::Next
}

/// Runs a command, and passes its replies to a shell command.
fn piped_command(session: &mut Session, words: &[Vec<u8>], shell: &[u8]) {
    screen::flush();
    match session.begin_pipe(shell) {
        Ok(sink) => {
            command(session, words, 1);
            session.end_pipe(sink);
        }
        Err(error) => screen::print(format!("Error: {}\n", crate::link::plain(&error))),
    }
}

/// Runs a command, and prints its duration if it took long.
fn command(session: &mut Session, words: &[Vec<u8>], repeat: i64) {
    let begin = Instant::now();
    let is_help = |word: &[u8]| word.eq_ignore_ascii_case(b"help") || word == b"?";
    match words {
        [first, topic @ ..] if is_help(first) && session.debug != Debug::Running => {
            help::show(session, topic);
        }
        // The failure has been reported, and the prompt shows whether there is a connection.
        _ => drop(session.issue(words, repeat)),
    }
    if session.debug == Debug::Ended {
        session.debug = Debug::Off;
        session.options.output = Output::Standard;
        let _ = session.show_next();
        let rolled_back = match session.options.debugging {
            Some(Debugging::Synchronous) => "",
            _ => " -- dataset changes rolled back",
        };
        screen::print(format!("\n(Lua debugging session ended{rolled_back})\n\n"));
        // The server has closed the connection at the end of the debugging session, so reconnect before the next
        // command.
        let _ = session.connect(Loudness::Quiet);
    }
    let took = begin.elapsed();
    if took >= PRINTED_DURATION_MIN && session.options.output == Output::Standard {
        screen::print(format!("({:.2}s)\n", took.as_secs_f64()));
    }
    screen::flush();
}

/// The words of a line. For the debugger, an expression is one word, with its spaces and quotes.
fn cut(session: &Session, line: &[u8]) -> Option<Vec<Vec<u8>>> {
    if session.debug == Debug::Running {
        for command in [&b"eval "[..], b"e "] {
            if let Some(expression) = line.strip_prefix(command) {
                return Some(vec![command.trim_ascii().to_vec(), expression.to_vec()]);
            }
        }
    }
    split(line)
}

fn is_number(word: &[u8]) -> bool {
    let digits = word.strip_prefix(b"-").or(word.strip_prefix(b"+")).unwrap_or(word);
    digits.iter().all(u8::is_ascii_digit) && (word.is_empty() || !digits.is_empty())
}

fn remember(source: &mut Source, line: &[u8], words: &[Vec<u8>]) {
    if let Source::Terminal(editor, history) = source {
        let line = String::from_utf8_lossy(line);
        editor.remember(&line);
        if !history::holds_secret(words) {
            history.keep(&line);
        }
    }
}

/// Connects and runs a session. If the server cannot be reached, the session continues and each command retries.
pub(crate) fn begin(session: &mut Session) -> End {
    let _ = session.connect(Loudness::Loud);
    run(session)
}
