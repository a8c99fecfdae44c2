//! The terminal of `top`: raw mode and the alternate screen, which are undone when the value is dropped; keys, signals,
//! and the size of the window.

use crate::link::Link;
use crate::pause::timespec;
use rustix::event::{PollFd, PollFlags, poll};
use rustix::stdio;
use rustix::termios::{OptionalActions, Termios, tcgetattr, tcgetwinsize, tcsetattr};
use signal_hook::consts::{SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGWINCH};
use std::io::{self, Read};
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

/// The signals that end the program.
const ENDING: [i32; 4] = [SIGHUP, SIGINT, SIGQUIT, SIGTERM];
/// Enters the alternate screen and hides the cursor.
const ENTER: &str = "\x1b[?1049h\x1b[?25l";
const LEAVE: &str = "\x1b[?25h\x1b[?1049l";
/// How long the rest of an escape sequence may take to arrive. Without a rest, the Escape key was pressed.
const SEQUENCE_REST: Duration = Duration::from_millis(50);
/// The size of a terminal that does not report one.
const USUAL_SIZE: Size = Size { rows: 24, columns: 80 };

/// The size of the window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Size {
    pub(super) rows: usize,
    pub(super) columns: usize,
}

/// A pressed key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Key {
    Letter(char),
    Left,
    Right,
    Escape,
}

/// The events of one wait.
#[derive(Debug, Default)]
pub(super) struct Events {
    pub(super) keys: Vec<Key>,
    /// Standard input has ended.
    pub(super) is_closed: bool,
    /// The size of the window has changed.
    pub(super) is_resized: bool,
    /// The server has sent something.
    pub(super) has_data: bool,
    /// The signal that ends the program.
    pub(super) signal: Option<i32>,
}

/// A terminal in raw mode.
pub(super) struct RawTerminal {
    before: Termios,
    wakes: UnixStream,
    ended_by: Arc<AtomicUsize>,
    resized: Arc<AtomicUsize>,
}

impl RawTerminal {
    /// Switches the terminal to raw mode and to the alternate screen.
    ///
    /// # Errors
    /// If standard input is no terminal, or a signal handler cannot be installed.
    pub(super) fn open() -> io::Result<RawTerminal> {
        let (wakes, writer) = UnixStream::pair()?;
        wakes.set_nonblocking(true)?;
        writer.set_nonblocking(true)?;
        let (ended_by, resized) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
        for signal in ENDING.into_iter().chain([SIGWINCH]) {
            let (flag, value) = match signal {
                SIGWINCH => (&resized, 1),
                signal => (&ended_by, usize::try_from(signal).unwrap_or(1)),
            };
            signal_hook::flag::register_usize(signal, Arc::clone(flag), value)?;
            // Handlers run in the order of their registration, so the flag is set before the wait ends.
            signal_hook::low_level::pipe::register(signal, writer.try_clone()?)?;
        }
        let before = tcgetattr(stdio::stdin())?;
        let mut raw = before.clone();
        raw.make_raw();
        tcsetattr(stdio::stdin(), OptionalActions::Flush, &raw)?;
        crate::screen::print(ENTER);
        Ok(RawTerminal { before, wakes, ended_by, resized })
    }

    /// The size of the window.
    pub(super) fn size() -> Size {
        match tcgetwinsize(stdio::stdout()) {
            Ok(size) if size.ws_row > 0 && size.ws_col > 0 => {
                Size { rows: size.ws_row.into(), columns: size.ws_col.into() }
            }
            _ => USUAL_SIZE,
        }
    }

    /// Waits for keys, signals, and data from the server if a reply is awaited, at most this long.
    ///
    /// # Errors
    /// If the system cannot wait.
    pub(super) fn wait(&self, link: Option<&mut Link>, time: Duration) -> io::Result<Events> {
        let mut events = Events::default();
        let stdin = stdio::stdin();
        let mut fds =
            vec![PollFd::new(&stdin, PollFlags::IN), PollFd::new(&self.wakes, PollFlags::IN)];
        if let Some(link) = link {
            fds.push(PollFd::from_borrowed_fd(
                std::os::fd::AsFd::as_fd(link.stream()),
                PollFlags::IN,
            ));
        }
        match poll(&mut fds, Some(&timespec(time))) {
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
        let has = |at: usize| fds.get(at).is_some_and(|fd| !fd.revents().is_empty());
        events.has_data = has(2);
        if has(1) {
            let _ = (&self.wakes).read(&mut [0; 64]);
        }
        events.is_resized = self.resized.swap(0, Ordering::Relaxed) > 0;
        events.signal =
            i32::try_from(self.ended_by.load(Ordering::Relaxed)).ok().filter(|it| *it > 0);
        if has(0) {
            events.is_closed = !self.read_keys(&mut events.keys)?;
        }
        Ok(events)
    }

    /// Reads the pressed keys. Returns false at the end of input.
    fn read_keys(&self, keys: &mut Vec<Key>) -> io::Result<bool> {
        let mut typed = read_input()?;
        if typed.is_empty() {
            return Ok(false);
        }
        if typed.ends_with(b"\x1b") || typed.ends_with(b"\x1b[") || typed.ends_with(b"\x1bO") {
            let stdin = stdio::stdin();
            let mut fds = [PollFd::new(&stdin, PollFlags::IN)];
            if poll(&mut fds, Some(&timespec(SEQUENCE_REST))).is_ok_and(|count| count > 0) {
                typed.extend(read_input()?);
            }
        }
        keys.extend(keys_of(&typed));
        Ok(true)
    }
}

impl Drop for RawTerminal {
    fn drop(&mut self) {
        crate::screen::print(LEAVE);
        // If the terminal is gone, there is nothing to restore.
        let _ = tcsetattr(stdio::stdin(), OptionalActions::Drain, &self.before);
    }
}

fn read_input() -> io::Result<Vec<u8>> {
    let mut buffer = [0; 256];
    loop {
        match rustix::io::read(stdio::stdin(), &mut buffer) {
            Ok(count) => return Ok(buffer[..count].to_vec()),
            Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
}

/// The keys that bytes of the terminal represent. Unknown sequences are skipped.
fn keys_of(mut typed: &[u8]) -> Vec<Key> {
    let mut keys = Vec::new();
    while let Some((first, rest)) = typed.split_first() {
        typed = rest;
        match (first, rest) {
            (0x1b, [b'[' | b'O', sequence @ ..]) => {
                let end = sequence.iter().position(|byte| matches!(byte, 0x40..=0x7e));
                let Some(end) = end else { break };
                match sequence[..=end] {
                    [b'C'] => keys.push(Key::Right),
                    [b'D'] => keys.push(Key::Left),
                    _ => {}
                }
                typed = &sequence[end + 1..];
            }
            (0x1b, _) => keys.push(Key::Escape),
            (byte, _) => keys.push(Key::Letter(char::from(*byte))),
        }
    }
    keys
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn escape_sequences_are_keys() {
        use Key::{Escape, Left, Letter, Right};
        assert_eq!(keys_of(b"c\x1b[C\x1bOD<"), [Letter('c'), Right, Left, Letter('<')]);
        assert_eq!(keys_of(b"\x1b"), [Escape]);
        assert_eq!(keys_of(b"\x1b[3~q"), [Letter('q')]);
        assert_eq!(keys_of(b"\x1b[12"), []);
    }
}
