//! The password prompt, which shows typed characters as asterisks.

use crate::screen;
use rustix::stdio;
use rustix::termios::{self, LocalModes, OptionalActions, SpecialCodeIndex, Termios};
use std::io::{self, Read};

/// Maximum length of a password.
const BYTES_MAX: usize = 4096;

/// Restores the terminal settings when it is dropped.
struct Restored(Termios);

impl Drop for Restored {
    fn drop(&mut self) {
        // If the terminal is gone, there is nothing to restore.
        let _ = termios::tcsetattr(stdio::stdin(), OptionalActions::Flush, &self.0);
    }
}

/// Prompts for a password. If standard input is a pipe, the password is its first line. `None` if there is none.
pub(crate) fn prompt(prompt: &str) -> Option<Vec<u8>> {
    let Ok(before) = termios::tcgetattr(stdio::stdin()) else { return from_pipe() };
    let mut raw = before.clone();
    raw.local_modes -= LocalModes::ECHO | LocalModes::ICANON;
    raw.special_codes[SpecialCodeIndex::VMIN] = 1;
    raw.special_codes[SpecialCodeIndex::VTIME] = 0;
    let _restored = Restored(before);
    termios::tcsetattr(stdio::stdin(), OptionalActions::Flush, &raw).ok()?;
    screen::print(prompt);
    screen::flush();
    let mut password = Vec::new();
    for byte in io::stdin().lock().bytes() {
        match byte.ok()? {
            b'\r' | b'\n' => break,
            // Ctrl-D ends the input.
            4 if password.is_empty() => break,
            8 | 127 if password.pop().is_some() => screen::print("\x08 \x08"),
            8 | 127 => {}
            byte if password.len() < BYTES_MAX => {
                password.push(byte);
                screen::print("*");
            }
            _ => {}
        }
        screen::flush();
    }
    screen::print("\n");
    screen::flush();
    Some(password)
}

/// Reads single bytes, because the data after the line is read elsewhere.
fn from_pipe() -> Option<Vec<u8>> {
    let (mut line, mut byte) = (Vec::new(), [0]);
    while line.len() < BYTES_MAX && rustix::io::read(stdio::stdin(), &mut byte).ok()? == 1 {
        line.push(byte[0]);
        if byte == *b"\n" {
            break;
        }
    }
    if line.is_empty() {
        return None;
    }
    while matches!(line.last(), Some(b'\n' | b'\r')) {
        line.pop();
    }
    Some(line)
}
