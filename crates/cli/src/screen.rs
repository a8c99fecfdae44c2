//! Output of the program. Standard output has one buffer, which is flushed at each line on a terminal and in large
//! pieces in a pipe; standard error is never buffered.
//!
//! The reader of standard output may exit early, as `head` does. Then the program ends by SIGPIPE, as other programs
//! do, or only stops printing while a session continues.

use rustix::stdio;
use signal_hook::consts::SIGPIPE;
use std::cell::{Cell, RefCell};
use std::fs::File;
use std::io::{self, BufWriter, Write};

/// Replies are shown as on a terminal if it is set.
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

/// Reports whether replies are laid out for people: on a terminal, or if the environment wants it so.
pub(crate) fn is_for_people() -> bool {
    is_terminal() || std::env::var_os(TERMINAL_VARIABLE).is_some()
}

/// Reports whether the terminal supports colors.
pub(crate) fn is_colourful() -> bool {
    std::env::var("TERM").is_ok_and(|term| term.contains("xterm"))
}

/// A reader that goes away does not end the program from now on.
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

/// Hands what was printed to the system.
pub(crate) fn flush() {
    check(with(Write::flush));
}

/// Prints bytes to standard error, behind all that was printed before.
pub(crate) fn warn(bytes: impl AsRef<[u8]>) {
    if is_terminal() {
        flush();
    }
    // Where standard error is closed there is nowhere to say so.
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
        // Output that cannot be printed is dropped, so that it is not tried again at exit.
        OUT.with_borrow_mut(|out| {
            if let Some(old) = out.take() {
                drop(old.into_parts());
            }
            *out = open();
        });
    }
}
