//! The destination of replies at the prompt: the screen, a pager if they are longer than the screen, or the standard
//! input of a shell command.

use super::Session;
use crate::format::{self, Output};
use crate::screen;
use brisk_resp::Value;
use rustix::stdio;
use rustix::termios::tcgetwinsize;
use std::io::{self, Write};
use std::process::{Child, Command, Stdio};

/// The destination of replies.
#[derive(Debug, Default)]
pub(crate) enum ReplySink {
    #[default]
    Screen,
    /// A shell command for replies that are longer than the screen.
    Pager(String),
    /// A running shell command.
    Command(Child),
}

impl Session {
    /// Starts a shell command that receives the following replies, until [`Session::end_pipe`]. Returns the sink that
    /// was used before.
    ///
    /// # Errors
    /// If the command cannot be started.
    pub(crate) fn begin_pipe(&mut self, command: &[u8]) -> io::Result<ReplySink> {
        let child = shell(&String::from_utf8_lossy(command)).spawn()?;
        Ok(std::mem::replace(&mut self.sink, ReplySink::Command(child)))
    }

    /// Waits until the shell command ends, and restores a sink.
    pub(crate) fn end_pipe(&mut self, before: ReplySink) {
        if let ReplySink::Command(child) = std::mem::replace(&mut self.sink, before) {
            finish(child);
        }
        // Ctrl-C was meant for the command.
        if let Some(interrupts) = &self.interrupts {
            interrupts.take();
        }
    }

    /// Prints a reply to the sink. Text that is already formatted is printed unchanged.
    pub(super) fn emit(&mut self, value: &Value, verbatim: bool) {
        let output = self.options.output;
        let delimiters = &self.options.delimiters;
        let is_stream = self.is_monitoring || self.is_subscribed || self.awaits_messages;
        let formatted = |output| match verbatim {
            true => format::verbatim(value, delimiters),
            false => format::reply(value, output, delimiters),
        };
        match &mut self.sink {
            ReplySink::Command(child) => {
                if let Some(stdin) = &mut child.stdin {
                    // A command may end without reading everything, as `head` does.
                    let _ = stdin.write_all(&formatted(Output::Raw)).and_then(|()| stdin.flush());
                }
            }
            ReplySink::Pager(pager) if !is_stream => {
                let bytes = formatted(output);
                if !is_longer_than_screen(&bytes) || !page(pager, &bytes) {
                    screen::print(bytes);
                } else if let Some(interrupts) = &self.interrupts {
                    interrupts.take();
                }
            }
            ReplySink::Pager(_) | ReplySink::Screen => screen::print(formatted(output)),
        }
    }
}

fn shell(command: &str) -> Command {
    let mut shell = Command::new("sh");
    shell.args(["-c", command]).stdin(Stdio::piped());
    shell
}

/// Closes the standard input of a command, and waits for its end.
fn finish(mut child: Child) {
    drop(child.stdin.take());
    // A command that cannot be waited for has ended.
    let _ = child.wait();
}

/// Shows bytes in a pager. Returns false if it does not start.
fn page(pager: &str, bytes: &[u8]) -> bool {
    screen::flush();
    let Ok(mut child) = shell(pager).spawn() else { return false };
    if let Some(stdin) = &mut child.stdin {
        // The user may quit before everything is read.
        let _ = stdin.write_all(bytes);
    }
    finish(child);
    true
}

fn is_longer_than_screen(bytes: &[u8]) -> bool {
    match tcgetwinsize(stdio::stdout()) {
        Ok(size) if size.ws_row > 0 && size.ws_col > 0 => {
            lines_on_screen(bytes, size.ws_col.into()) >= usize::from(size.ws_row)
        }
        _ => false,
    }
}

/// The number of lines that bytes take on a screen with this number of columns.
fn lines_on_screen(bytes: &[u8], columns: usize) -> usize {
    let text = String::from_utf8_lossy(bytes);
    text.lines().map(|line| line.chars().count().div_ceil(columns).max(1)).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_lines_take_several_lines_on_the_screen() {
        assert_eq!(lines_on_screen(b"a\n\nb\n", 10), 3);
        assert_eq!(lines_on_screen(&b"x".repeat(21), 10), 3);
    }
}
