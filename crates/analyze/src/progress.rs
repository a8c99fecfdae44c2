//! The progress of the work, as a line on standard error that is overwritten. If standard error is not a terminal,
//! nothing is printed.

use std::io::{IsTerminal, Write, stderr};
use std::time::{Duration, Instant};

/// The minimum interval between two updates of the line.
const REDRAW: Duration = Duration::from_millis(100);
/// Number of steps between two readings of the clock.
const STEPS_PER_LOOK: u32 = 64;
const BAR_CHARS: u64 = 30;

/// The unit of steps.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unit {
    Bytes,
    Keys,
}

/// A progress bar on a terminal, or nothing.
#[derive(Debug)]
pub struct Progress {
    is_shown: bool,
    begun: Instant,
    drawn: Option<Instant>,
    steps: u32,
}

impl Progress {
    /// A progress bar if standard error is a terminal.
    #[must_use]
    pub fn new() -> Progress {
        Progress { is_shown: stderr().is_terminal(), ..Progress::hidden() }
    }

    /// A progress bar that is never shown.
    #[must_use]
    pub fn hidden() -> Progress {
        Progress { is_shown: false, begun: Instant::now(), drawn: None, steps: 0 }
    }

    /// Updates the bar: `done` of `whole` is complete. O(1).
    pub fn show(&mut self, done: u64, whole: u64, unit: Unit) {
        self.steps = self.steps.wrapping_add(1);
        if !self.is_shown || self.drawn.is_some() && !self.steps.is_multiple_of(STEPS_PER_LOOK) {
            return;
        }
        let now = Instant::now();
        if self.drawn.is_some_and(|drawn| now - drawn < REDRAW) {
            return;
        }
        self.drawn = Some(now);
        let line = line(done, whole, unit, now - self.begun);
        // Ignore errors: standard error has no reader.
        let _ = stderr().write_all(format!("\r\x1b[K{line}").as_bytes());
    }

    /// Clears the line.
    pub fn end(&mut self) {
        if self.drawn.take().is_some() {
            let _ = stderr().write_all(b"\r\x1b[K");
        }
    }
}

impl Default for Progress {
    fn default() -> Progress {
        Progress::new()
    }
}

/// The line: a bar, the percentage, the amount, the rate, and the estimated remaining time.
fn line(done: u64, whole: u64, unit: Unit, elapsed: Duration) -> String {
    let part = if whole == 0 { 1.0 } else { (done as f64 / whole as f64).min(1.0) };
    let full = (part * BAR_CHARS as f64) as usize;
    let empty = BAR_CHARS as usize - full;
    let seconds = elapsed.as_secs_f64().max(0.001);
    let rate = done as f64 / seconds;
    let left = if part > 0.0 { seconds * (1.0 - part) / part } else { 0.0 };
    let (amount, rate) = match unit {
        Unit::Bytes => (
            format!("{:.1} of {:.1} MiB", mebibytes(done as f64), mebibytes(whole as f64)),
            format!("{:.0} MiB/s", mebibytes(rate)),
        ),
        Unit::Keys => (format!("{done} of {whole} keys"), format!("{rate:.0} keys/s")),
    };
    let (bar, rest) = ("=".repeat(full), " ".repeat(empty));
    format!("[{bar}{rest}] {:3.0} %  {amount}  {rate}  {left:.0} s left", part * 100.0)
}

fn mebibytes(bytes: f64) -> f64 {
    bytes / (1 << 20) as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_line_says_how_far_and_how_long() {
        let found = line(5 << 20, 20 << 20, Unit::Bytes, Duration::from_secs(2));
        let bar = format!("[{}{}]", "=".repeat(7), " ".repeat(23));
        assert_eq!(found, format!("{bar}  25 %  5.0 of 20.0 MiB  2 MiB/s  6 s left"));
        // Keys may be added during the count.
        let found = line(110, 100, Unit::Keys, Duration::from_secs(11));
        assert!(found.ends_with("100 %  110 of 100 keys  10 keys/s  0 s left"), "{found}");
    }
}
