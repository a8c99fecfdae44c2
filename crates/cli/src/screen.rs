//! Output of the program. Standard output is line-buffered on a terminal. Otherwise it is fully buffered. Standard
//! error is never buffered.
//!
//! The reader of standard output may exit early, as `head` does. In this case SIGPIPE ends the program, like other
//! programs. In a session that must continue, only the printing stops.

use rustix::stdio;
use signal_hook::consts::SIGPIPE;
use std::cell::{Cell, RefCell};
use std::fs::File;
use std::io::{self, BufWriter, Write};

/// If this environment variable is set, replies are formatted as on a terminal.
const TERMINAL_VARIABLE: &str = "FAKETTY";
const BUFFER_BYTES: usize = 64 * 1024;

thread_local! {
    static OUT: RefCell<Option<BufWriter<File>>> = RefCell::new(open());
    static IS_TERMINAL: bool = rustix::termios::isatty(stdio::stdout());
    static OUTLIVES_READER: Cell<bool> = const { Cell::new(false) };
}

fn open() -> Option<BufWriter<File>> {
    let file = File::from(stdio::stdout().try_clone_to_owned().ok()?);
    Some(BufWriter::with_capacity(BUFFER_BYTES, file))
}

/// Reports whether standard output is a terminal.
pub(crate) fn is_terminal() -> bool {
    IS_TERMINAL.with(|is| *is)
}

/// Reports whether replies are formatted for people: on a terminal, or if [`TERMINAL_VARIABLE`] is set.
pub(crate) fn is_for_people() -> bool {
    is_terminal() || std::env::var_os(TERMINAL_VARIABLE).is_some()
}

/// Reports whether the terminal supports colors, and the user has not turned them off with `NO_COLOR`.
pub(crate) fn is_colorful() -> bool {
    let is_off = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
    !is_off && std::env::var("TERM").is_ok_and(|term| term.contains("xterm"))
}

/// From now on, the program continues if the reader of standard output exits.
pub(crate) fn outlive_reader() {
    OUTLIVES_READER.set(true);
}

/// Prints bytes to standard output.
pub(crate) fn print(bytes: impl AsRef<[u8]>) {
    let done = with(|out| {
        out.write_all(bytes.as_ref())?;
        if is_terminal() { out.flush() } else { Ok(()) }
    });
    check(done);
}

/// Flushes standard output.
pub(crate) fn flush() {
    check(with(Write::flush));
}

/// Prints bytes to standard error, after everything that was printed before.
pub(crate) fn warn(bytes: impl AsRef<[u8]>) {
    if is_terminal() {
        flush();
    }
    // If standard error is closed, this cannot be reported anywhere.
    let _ = io::stderr().write_all(bytes.as_ref());
}

/// Flushes all output and exits.
pub(crate) fn exit(code: i32) -> ! {
    flush();
    std::process::exit(code)
}

fn with(f: impl FnOnce(&mut BufWriter<File>) -> io::Result<()>) -> io::Result<()> {
    OUT.with_borrow_mut(|out| out.as_mut().map_or(Ok(()), f))
}

fn check(done: io::Result<()>) {
    if let Err(error) = done {
        if error.kind() == io::ErrorKind::BrokenPipe && !OUTLIVES_READER.get() {
            let _ = signal_hook::low_level::emulate_default_handler(SIGPIPE);
            std::process::exit(1);
        }
        // Discard output that cannot be printed, so that it is not retried at exit.
        OUT.with_borrow_mut(|out| {
            if let Some(old) = out.take() {
                drop(old.into_parts());
            }
            *out = open();
        });
    }
}
