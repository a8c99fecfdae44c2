//! The line editor: keys as in other shells, argument hints in gray, colors, and completion of commands and key names
//! with the Tab key.

use super::highlight::highlight;
use super::hint::hint;
use super::history::History;
use super::names::KeyNames;
use crate::docs::Docs;
use crate::options::Options;
use crate::screen;
use rustyline::completion::Completer;
use rustyline::config::Configurer;
use rustyline::error::ReadlineError;
use rustyline::highlight::{CmdKind, Highlighter};
use rustyline::hint::{Hint, Hinter};
use rustyline::history::MemHistory;
use rustyline::validate::Validator;
use rustyline::{Config, Context, Helper};
use std::borrow::Cow;
use std::cell::{Cell, RefCell};

/// Number of history lines that the arrow keys reach.
const LINES_MAX: usize = 1000;

/// The result of reading a line.
pub(super) enum Line {
    Typed(String),
    /// Ctrl-C has cleared the line.
    Cleared {
        was_empty: bool,
    },
    End,
}

/// Reads lines from a terminal.
pub(super) struct Editor {
    inner: rustyline::Editor<Advice, MemHistory>,
    has_history: bool,
}

impl Editor {
    pub(super) fn new(docs: Docs) -> rustyline::Result<Editor> {
        let config = Config::builder().max_history_size(LINES_MAX)?.auto_add_history(false).build();
        let history = MemHistory::with_config(&config);
        let mut inner = rustyline::Editor::with_history(config, history)?;
        // Pasted lines are executed one after the other, as if typed.
        inner.enable_bracketed_paste(false);
        let colors = screen::is_terminal() && screen::is_colorful();
        inner.set_helper(Some(Advice {
            docs,
            hints: true,
            colors,
            is_question: false,
            is_empty: Cell::new(true),
            names: RefCell::default(),
        }));
        Ok(Editor { inner, has_history: false })
    }

    /// Turns hints about arguments on or off.
    pub(super) fn show_hints(&mut self, hints: bool) {
        if let Some(advice) = self.inner.helper_mut() {
            advice.hints = hints;
        }
    }

    /// The server's documentation of its commands.
    pub(super) fn docs(&self) -> Option<&Docs> {
        self.inner.helper().map(|advice| &advice.docs)
    }

    /// Completes the names of keys from this server and database.
    pub(super) fn complete_keys_of(&mut self, options: &Options) {
        if let Some(advice) = self.inner.helper_mut() {
            advice.names.borrow_mut().follow(options);
        }
    }

    /// Reads the answer to a question; empty if the user does not answer.
    pub(super) fn answer(&mut self, question: &str) -> String {
        self.set_question(true);
        let answer = self.inner.readline(question).unwrap_or_default();
        self.set_question(false);
        answer
    }

    fn set_question(&mut self, is_question: bool) {
        if let Some(advice) = self.inner.helper_mut() {
            advice.is_question = is_question;
        }
    }

    pub(super) fn line(&mut self, prompt: &str, history: &History) -> Line {
        if !self.has_history {
            self.has_history = true;
            for line in history.lines() {
                self.remember(line);
            }
        }
        if let Some(advice) = self.inner.helper_mut() {
            advice.is_empty.set(true);
        }
        match self.inner.readline(prompt) {
            Ok(line) => Line::Typed(line),
            Err(ReadlineError::Signal(_)) => Line::Typed(String::new()),
            Err(ReadlineError::Interrupted) => {
                let was_empty = self.inner.helper().is_some_and(|advice| advice.is_empty.get());
                Line::Cleared { was_empty }
            }
            Err(_) => Line::End,
        }
    }

    /// Adds the line to the history that the arrow keys browse.
    pub(super) fn remember(&mut self, line: &str) {
        // If the line cannot be added, the editor still works.
        let _ = self.inner.add_history_entry(line);
    }
}

/// The hints next to the line.
struct Advice {
    docs: Docs,
    hints: bool,
    colors: bool,
    /// The line is the answer to a question, not a command.
    is_question: bool,
    /// True if nothing has been typed.
    is_empty: Cell<bool>,
    names: RefCell<KeyNames>,
}

/// The arguments that the user has not typed yet. They are only displayed and cannot be inserted.
struct Arguments(String);

impl Hint for Arguments {
    fn display(&self) -> &str {
        &self.0
    }

    fn completion(&self) -> Option<&str> {
        None
    }
}

impl Hinter for Advice {
    type Hint = Arguments;

    fn hint(&self, line: &str, _: usize, _: &Context<'_>) -> Option<Arguments> {
        self.is_empty.set(line.is_empty());
        if !self.hints || self.is_question {
            return None;
        }
        let hint = hint(&self.docs, line)?;
        (!hint.is_empty()).then_some(Arguments(hint))
    }
}

impl Highlighter for Advice {
    fn highlight<'l>(&self, line: &'l str, _: usize) -> Cow<'l, str> {
        match self.colors && !self.is_question {
            true => Cow::Owned(highlight(&self.docs, line)),
            false => Cow::Borrowed(line),
        }
    }

    fn highlight_char(&self, _: &str, _: usize, kind: CmdKind) -> bool {
        self.colors && !self.is_question && kind != CmdKind::MoveCursor
    }

    fn highlight_hint<'h>(&self, hint: &'h str) -> Cow<'h, str> {
        Cow::Owned(format!("\x1b[0;90;49m{hint}\x1b[0m"))
    }
}

impl Completer for Advice {
    type Candidate = String;

    fn complete(
        &self,
        line: &str,
        at: usize,
        _: &Context<'_>,
    ) -> rustyline::Result<(usize, Vec<String>)> {
        if self.is_question {
            return Ok((at, Vec::new()));
        }
        let (start, names) = complete(&self.docs, line, at);
        if !names.is_empty() {
            return Ok((start, names));
        }
        let typed = line.get(..at).unwrap_or(line);
        let keys = self.names.borrow_mut().complete(typed);
        Ok(keys.unwrap_or((start, names)))
    }
}

impl Validator for Advice {}
impl Helper for Advice {}

/// The position at which the completed text begins, and the candidates.
fn complete(docs: &Docs, line: &str, at: usize) -> (usize, Vec<String>) {
    let typed = line.get(..at).unwrap_or(line);
    let help = typed.len() >= 5 && typed.as_bytes()[..5].eq_ignore_ascii_case(b"help ");
    let start = if help { typed.len() - typed[5..].trim_start().len() } else { 0 };
    let begun = &typed.as_bytes()[start..];
    let begins = |name: &str| {
        name.as_bytes().get(..begun.len()).is_some_and(|head| head.eq_ignore_ascii_case(begun))
    };
    let groups = docs.groups.iter().filter(|_| help).map(|group| format!("@{group}"));
    let names = docs.entries.iter().map(|entry| entry.name.clone());
    (start, groups.chain(names).filter(|name| begins(name)).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::docs::Entry;

    fn docs() -> Docs {
        let entry = |name: &str, arguments: &str, group: &str| Entry {
            name: name.to_owned(),
            arguments: arguments.to_owned(),
            group: group.to_owned(),
            ..Entry::default()
        };
        Docs {
            entries: vec![
                entry("ACL", "", "server"),
                entry("ACL SETUSER", "username [rule [rule ...]]", "server"),
                entry("SET", "key value [NX|XX]", "string"),
            ],
            groups: vec!["server".to_owned(), "string".to_owned()],
        }
    }

    #[test]
    fn completion_knows_subcommands_and_after_help_groups() {
        assert_eq!(complete(&docs(), "acl s", 5), (0, vec!["ACL SETUSER".to_owned()]));
        assert_eq!(complete(&docs(), "help @s", 7), (5, vec!["@server".into(), "@string".into()]));
        assert_eq!(complete(&docs(), "\u{e9}", 2), (0, vec![]));
    }
}
