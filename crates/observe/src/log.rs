//! The server's log: one line per message, in Redis's format, to a file or standard output.
//!
//! ```text
//! 4711:M 21 Nov 2026 11:07:12.077 * Ready to accept connections
//! pid : role  local date and time  level message
//! ```
//!
//! The file stays open, so that lines can be written even if no descriptor is left. Before each
//! line, the path is checked: if the file was moved or removed (logrotate), a new one is opened. If
//! that fails, lines go to the old file. A line that cannot be written (full disk) is counted and
//! dropped; logging never fails or panics. Control characters in messages are escaped, so clients
//! cannot forge lines. `syslog-enabled` has no effect.
//!
//! The time zone is the system's (`TZ`, `/etc/localtime`), read once by `jiff`, which needs no libc
//! call.

use brisk_structures::poison::EvenPoisoned;
use std::fmt::{self, Write as _};
use std::fs::{File, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};

use jiff::Timestamp;
use jiff::tz::TimeZone;

pub use brisk_config::choice::LogLevel as Level;

/// Maximum length of a line in bytes; longer messages are truncated.
pub const LINE_BYTES_MAX: usize = 4_096;

/// The role of the process, and its letter in each line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// Before the configuration is loaded, and in child processes.
    Start = b'C' as isize,
    /// A primary.
    Primary = b'M' as isize,
    /// A replica.
    Replica = b'S' as isize,
}

/// A log that all threads share.
pub struct Log {
    level: AtomicU8,
    role: AtomicU8,
    lost: AtomicU64,
    zone: TimeZone,
    sink: Mutex<Sink>,
}

enum Sink {
    Stdout,
    File { path: PathBuf, file: File },
}

impl Log {
    /// Creates a log that writes to standard output, with role `Start`.
    pub fn to_stdout(level: Level) -> Self {
        Self::new(level, Sink::Stdout)
    }

    /// Creates a log that appends to the file at `path`, which is created if it does not exist.
    ///
    /// # Errors
    /// Fails if the file cannot be opened.
    pub fn to_file(level: Level, path: &Path) -> io::Result<Self> {
        Ok(Self::new(level, Sink::File { path: path.to_owned(), file: open(path)? }))
    }

    fn new(level: Level, sink: Sink) -> Self {
        Self {
            level: AtomicU8::new(level as u8),
            role: AtomicU8::new(Role::Start as u8),
            lost: AtomicU64::new(0),
            zone: TimeZone::system(),
            sink: Mutex::new(sink),
        }
    }

    /// Sets the lowest level that is written.
    pub fn set_level(&self, level: Level) {
        self.level.store(level as u8, Ordering::Relaxed);
    }

    /// Sets the role letter of later lines.
    pub fn set_role(&self, role: Role) {
        self.role.store(role as u8, Ordering::Relaxed);
    }

    /// Returns how many lines could not be written since startup.
    pub fn lost(&self) -> u64 {
        self.lost.load(Ordering::Relaxed)
    }

    /// Returns true if a line of this level would be written.
    pub fn is_on(&self, level: Level) -> bool {
        level as u8 >= self.level.load(Ordering::Relaxed)
    }

    /// Writes a line at level debug, `.`.
    pub fn debug(&self, message: fmt::Arguments<'_>) {
        self.write(Level::Debug, message);
    }

    /// Writes a line at level verbose, `-`.
    pub fn verbose(&self, message: fmt::Arguments<'_>) {
        self.write(Level::Verbose, message);
    }

    /// Writes a line at level notice, `*`.
    pub fn notice(&self, message: fmt::Arguments<'_>) {
        self.write(Level::Notice, message);
    }

    /// Writes a line at level warning, `#`.
    pub fn warning(&self, message: fmt::Arguments<'_>) {
        self.write(Level::Warning, message);
    }

    /// Writes a line, unless its level is turned off.
    pub fn write(&self, level: Level, message: fmt::Arguments<'_>) {
        if !self.is_on(level) {
            return;
        }
        let line = self.line(Timestamp::now(), level, message);
        // A thread that panicked while writing leaves at most an incomplete line.
        let mut sink = self.sink.lock().even_poisoned();
        if sink.write(line.as_bytes()).is_err() {
            self.lost.fetch_add(1, Ordering::Relaxed);
        }
    }

    fn line(&self, at: Timestamp, level: Level, message: fmt::Arguments<'_>) -> String {
        let sign = match level {
            Level::Debug => '.',
            Level::Verbose => '-',
            Level::Notice => '*',
            Level::Warning => '#',
        };
        let role = char::from(self.role.load(Ordering::Relaxed));
        let time = at.to_zoned(self.zone.clone());
        let mut line = Line(String::with_capacity(128));
        // Writing to a String fails only if `Line` is full.
        _ = write!(line.0, "{}:{role} ", std::process::id());
        _ = write!(line.0, "{} {sign} ", time.strftime("%d %b %Y %H:%M:%S%.3f"));
        _ = line.write_fmt(message);
        line.0.push('\n');
        line.0
    }
}

/// Collects a message: escapes control characters, and stops at `LINE_BYTES_MAX`.
struct Line(String);

impl fmt::Write for Line {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        for letter in text.chars() {
            if self.0.len() + 12 > LINE_BYTES_MAX {
                return Err(fmt::Error);
            }
            if letter.is_control() && letter != '\t' {
                self.0.extend(letter.escape_default());
            } else {
                self.0.push(letter);
            }
        }
        Ok(())
    }
}

impl Sink {
    fn write(&mut self, line: &[u8]) -> io::Result<()> {
        match self {
            Self::Stdout => {
                let mut out = io::stdout().lock();
                out.write_all(line)?;
                out.flush()
            }
            Self::File { path, file } => {
                if !is_at(file, path)
                    && let Ok(new) = open(path)
                {
                    *file = new;
                }
                file.write_all(line)
            }
        }
    }
}

/// Returns true if `path` still refers to the open file.
fn is_at(file: &File, path: &Path) -> bool {
    match (file.metadata(), std::fs::metadata(path)) {
        (Ok(open), Ok(named)) => (open.dev(), open.ino()) == (named.dev(), named.ino()),
        _ => false,
    }
}

fn open(path: &Path) -> io::Result<File> {
    OpenOptions::new().append(true).create(true).open(path)
}

#[cfg(test)]
mod tests {
    use super::*;
    use brisk_testkit::TempDir;

    #[test]
    fn a_line_has_the_shape_of_redis() {
        let mut log = Log::to_stdout(Level::Notice);
        log.zone = TimeZone::UTC;
        log.set_role(Role::Primary);
        let at = Timestamp::from_millisecond(1_795_259_232_007).unwrap();
        let line = log.line(at, Level::Notice, format_args!("ready {}", 5));
        let pid = std::process::id();
        assert_eq!(line, format!("{pid}:M 21 Nov 2026 11:07:12.007 * ready 5\n"));
    }

    #[test]
    fn levels_below_the_set_one_are_not_written() {
        let dir = TempDir::new();
        let log = Log::to_file(Level::Notice, &dir.path("log")).unwrap();
        log.verbose(format_args!("no"));
        log.set_level(Level::Warning);
        log.notice(format_args!("no"));
        log.warning(format_args!("yes"));
        let text = std::fs::read_to_string(dir.path("log")).unwrap();
        assert!(text.ends_with(" # yes\n") && text.lines().count() == 1, "{text}");
    }

    #[test]
    fn a_moved_file_is_replaced_at_the_next_line() {
        let dir = TempDir::new();
        let log = Log::to_file(Level::Debug, &dir.path("log")).unwrap();
        log.notice(format_args!("one"));
        std::fs::rename(dir.path("log"), dir.path("log.1")).unwrap();
        log.notice(format_args!("two"));
        assert!(std::fs::read_to_string(dir.path("log.1")).unwrap().ends_with("one\n"));
        assert!(std::fs::read_to_string(dir.path("log")).unwrap().ends_with("two\n"));
    }

    #[test]
    fn a_full_disk_loses_lines_and_nothing_else() {
        let log = Log::to_file(Level::Debug, Path::new("/dev/full")).unwrap();
        log.notice(format_args!("x"));
        assert_eq!(log.lost(), 1);
    }

    #[test]
    fn messages_cannot_forge_lines_and_are_cut() {
        let log = Log::to_stdout(Level::Debug);
        let line = log.line(Timestamp::now(), Level::Debug, format_args!("a\r\nb\x1b[0m"));
        assert!(line.ends_with(". a\\r\\nb\\u{1b}[0m\n"), "{line}");
        let line = log.line(Timestamp::now(), Level::Debug, format_args!("{}", "x".repeat(9_999)));
        assert!(line.len() <= LINE_BYTES_MAX && line.ends_with("x\n"));
    }
}
