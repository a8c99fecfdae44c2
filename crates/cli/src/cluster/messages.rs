//! Messages, colored by severity on a terminal, and prompts.

use super::Done;
use crate::screen;
use crate::session::AlreadyReported;
use std::io::BufRead;

/// Maximum length of an answer.
const ANSWER_BYTES_MAX: u64 = 4096;

fn colored(color: u8, text: &str) {
    if screen::is_terminal() && screen::is_colorful() {
        screen::print(format!("\x1b[{color};1m{text}\x1b[0m"));
    } else {
        screen::print(text);
    }
    screen::flush();
}

/// Prints the current step.
pub(super) fn step(text: &str) {
    colored(29, text);
}

/// Prints a success.
pub(super) fn good(text: &str) {
    colored(32, text);
}

/// Prints a warning.
pub(super) fn warning(text: &str) {
    colored(33, text);
}

/// Prints an error.
pub(super) fn error(text: &str) {
    colored(31, text);
}

/// Prints an error, and returns the failure of the command.
pub(super) fn fail<T>(text: &str) -> Result<T, AlreadyReported> {
    error(text);
    Err(AlreadyReported)
}

/// Prints plain text.
pub(super) fn say(text: &str) {
    screen::print(text);
    screen::flush();
}

/// Prompts for a line; `None` at the end of input.
pub(super) fn prompt(question: &str) -> Option<String> {
    say(question);
    let mut line = Vec::new();
    let mut stdin = std::io::Read::take(std::io::stdin().lock(), ANSWER_BYTES_MAX);
    match stdin.read_until(b'\n', &mut line) {
        Ok(count) if count > 0 => Some(String::from_utf8_lossy(&line).trim().to_owned()),
        _ => None,
    }
}

/// Prompts for a confirmation; only `yes` confirms.
pub(super) fn confirm(question: &str, is_agreed: bool) -> Done {
    if is_agreed {
        return Ok(());
    }
    match prompt(&format!("{question} (type 'yes' to accept): ")) {
        Some(answer) if answer.eq_ignore_ascii_case("yes") => Ok(()),
        _ => Err(AlreadyReported),
    }
}
