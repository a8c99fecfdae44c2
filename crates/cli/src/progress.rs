//! The progress of a long operation, in one line that is drawn repeatedly. It goes to standard error, and only if that
//! is a terminal, so it never mixes with the output.

use crate::screen;
use rustix::{stdio, termios};
use std::time::{Duration, Instant};

/// Minimum interval between two updates of the line.
const DRAWN_EVERY: Duration = Duration::from_millis(100);
const BAR_COLUMNS: usize = 30;

/// The progress line of an operation.
#[derive(Debug)]
pub(crate) struct Progress {
    what: &'static str,
    unit: Unit,
    /// The total amount of work, if it is known.
    whole: Option<u64>,
    begin: Instant,
    drawn: Option<Instant>,
    is_shown: bool,
}

/// The unit of the count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Unit {
    Bytes,
    Keys,
}

impl Progress {
    pub(crate) fn new(what: &'static str, unit: Unit, whole: Option<u64>) -> Progress {
        let is_shown = termios::isatty(stdio::stderr());
        Progress { what, unit, whole, begin: Instant::now(), drawn: None, is_shown }
    }

    /// Updates the amount of completed work.
    pub(crate) fn at(&mut self, done: u64) {
        let is_due = self.drawn.is_none_or(|drawn| drawn.elapsed() >= DRAWN_EVERY);
        if !self.is_shown || !is_due {
            return;
        }
        self.drawn = Some(Instant::now());
        let line = line(self.what, self.unit, done, self.whole, self.begin.elapsed());
        screen::warn(format!("\r{line}\x1b[K"));
    }

    /// Clears the line, before other output or at the end.
    pub(crate) fn clear(&mut self) {
        if self.drawn.take().is_some() {
            screen::warn("\r\x1b[K");
        }
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.clear();
    }
}

fn line(what: &str, unit: Unit, done: u64, whole: Option<u64>, took: Duration) -> String {
    let rate = done as f64 / took.as_secs_f64().max(0.001);
    let amount = |count: f64| match unit {
        Unit::Keys => format!("{count:.0} keys"),
        Unit::Bytes if count < 1e6 => format!("{:.1} kB", count / 1e3),
        Unit::Bytes if count < 1e9 => format!("{:.1} MB", count / 1e6),
        Unit::Bytes => format!("{:.2} GB", count / 1e9),
    };
    let (done_text, rate) = (amount(done as f64), amount(rate));
    let Some(whole) = whole.filter(|whole| *whole > 0) else {
        return format!("{what} {done_text}, {rate}/s");
    };
    // The total may be exceeded, because keys can be added during the scan.
    let share = (done as f64 / whole as f64).min(1.0);
    let filled = (share * BAR_COLUMNS as f64) as usize;
    let bar = format!("{}{}", "#".repeat(filled), ".".repeat(BAR_COLUMNS - filled));
    format!("{what} [{bar}] {:3.0}% {done_text}, {rate}/s", share * 100.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_progress_line_shows_percentage_amount_and_rate() {
        let two = Duration::from_secs(2);
        assert_eq!(
            line("Fetching", Unit::Bytes, 5_000_000, Some(10_000_000), two),
            "Fetching [###############...............]  50% 5.0 MB, 2.5 MB/s"
        );
        assert_eq!(line("Looking", Unit::Keys, 30, None, two), "Looking 30 keys, 15 keys/s");
        assert_eq!(
            line("Looking", Unit::Keys, 30, Some(20), two),
            "Looking [##############################] 100% 30 keys, 15 keys/s"
        );
        assert_eq!(line("Looking", Unit::Keys, 0, Some(0), two), "Looking 0 keys, 0 keys/s");
    }
}
