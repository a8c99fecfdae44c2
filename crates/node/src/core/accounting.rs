//! Measures how long each command took, and determines how commands are shown in logs and to monitors.
//!
//! A command is charged for the time since the previous command ended, so that one clock reading per command is enough.
//! Work between two commands restarts the measurement.

use brisk_config::Config;
use brisk_engine::Args;
use brisk_engine::table::{Row, Run};
use brisk_reactor::Clock;

/// How long batches may use an earlier reading of the wall clock, in nanoseconds.
const WALL_CLOCK_KEPT_NS: u64 = 50_000;

/// Replaces passwords in output.
const REDACTED: &[u8] = b"(redacted)";

/// The accounting of the commands that one worker runs.
#[derive(Debug)]
pub struct CommandAccounting {
    /// When the last command ended.
    last_ticks: u64,
    /// When the wall clock was last read for a batch, in ticks.
    wall_read_at: u64,
    /// A command that takes at least this long is checked against the slow log and the latency
    /// monitor.
    slow_ns: u64,
    /// The number of commands that ran since the batch's statistics were noted, and the row id of the last command.
    ran: u64,
    last_row: u32,
    latency_tracking: bool,
    /// Indexes of arguments of the current server command that must not be shown, such as passwords.
    redacted: Vec<usize>,
}

impl CommandAccounting {
    pub(super) fn new(config: &Config, clock: &Clock) -> CommandAccounting {
        let mut accounting = CommandAccounting {
            last_ticks: clock.ticks(),
            wall_read_at: 0,
            slow_ns: u64::MAX,
            ran: 0,
            last_row: u32::MAX,
            latency_tracking: true,
            redacted: Vec::new(),
        };
        accounting.take_config(config);
        accounting
    }

    pub(super) fn take_config(&mut self, config: &Config) {
        self.latency_tracking = config.observe.latency_tracking;
        let slow_us = config.observe.slowlog_log_slower_than_us;
        let slowlog_ns = u64::try_from(slow_us).map_or(u64::MAX, |us| us.saturating_mul(1000));
        let monitor_ms = config.observe.latency_monitor_threshold_ms;
        let monitor_ns = if monitor_ms > 0 { monitor_ms as u64 * 1_000_000 } else { u64::MAX };
        self.slow_ns = slowlog_ns.min(monitor_ns);
    }

    /// When the last command ended, in ticks of the worker's clock.
    #[inline]
    pub fn last_ticks(&self) -> u64 {
        self.last_ticks
    }

    /// Charges the next command for the time from `ticks` on.
    #[inline]
    pub fn charge_from(&mut self, ticks: u64) {
        self.last_ticks = ticks;
    }

    /// Charges the next command only for the time from now on.
    #[inline]
    pub fn charge_from_now(&mut self, clock: &Clock) {
        self.last_ticks = clock.ticks();
    }

    /// Charges a command for the time since the previous command ended. Returns this time in nanoseconds. The next
    /// command is charged for the time from now on.
    #[inline]
    pub fn charge(&mut self, clock: &Clock) -> u64 {
        let ticks = clock.ticks();
        let ns = clock.ns(ticks.wrapping_sub(self.last_ticks));
        self.last_ticks = ticks;
        ns
    }

    /// Begins a batch. Returns true if the wall clock must be read for it.
    #[inline]
    pub(super) fn begin_batch(&mut self, clock: &Clock) -> bool {
        self.last_ticks = clock.ticks();
        // A busy worker begins a batch every few microseconds, so the clock is not read for each batch.
        let is_old = clock.ns(self.last_ticks.wrapping_sub(self.wall_read_at)) > WALL_CLOCK_KEPT_NS;
        if is_old {
            self.wall_read_at = self.last_ticks;
        }
        is_old
    }

    /// Counts a command that ran.
    #[inline]
    pub fn note_ran(&mut self, row: &Row) {
        self.ran += 1;
        self.last_row = row.id as u32;
    }

    /// Sets the last command. The command is counted later or not at all.
    pub fn note_last(&mut self, row: &Row) {
        self.last_row = row.id as u32;
    }

    /// The row id of the last command; `u32::MAX` before the first.
    #[inline]
    pub fn last_row(&self) -> u32 {
        self.last_row
    }

    /// The number of commands that ran since `take_ran` was last called.
    pub fn ran(&self) -> u64 {
        self.ran
    }

    /// Takes the number of commands that ran since the last call.
    #[inline]
    pub fn take_ran(&mut self) -> u64 {
        std::mem::take(&mut self.ran)
    }

    /// Reports whether the latency of each command is recorded.
    #[inline]
    pub fn tracks_latency(&self) -> bool {
        self.latency_tracking
    }

    /// Reports whether a command that took `ns` may be slow enough for the slow log or the latency monitor.
    #[inline]
    pub fn is_slow(&self, ns: u64) -> bool {
        ns >= self.slow_ns
    }

    /// Hides argument `index` of the current command wherever the command is shown.
    pub fn redact(&mut self, index: usize) {
        self.redacted.push(index);
    }

    /// Called when another command begins. None of its arguments are hidden yet.
    #[inline]
    pub fn forget_redacted(&mut self) {
        self.redacted.clear();
    }

    /// The arguments of the command that just ran, with secrets replaced.
    pub(crate) fn shown_words<'w>(&self, row: &Row, words: &Args<'w>) -> Vec<&'w [u8]> {
        let mut shown: Vec<&[u8]> = words.arguments().collect();
        if matches!(row.run, Run::Server(_)) {
            for &at in &self.redacted {
                if let Some(word) = shown.get_mut(at) {
                    *word = REDACTED;
                }
            }
        }
        if let Some(secrets) = row.spec.secrets {
            for at in secrets(words.argc(), &|at| words.argument(at)) {
                shown[at] = REDACTED;
            }
        }
        shown
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_is_slow_by_the_lower_of_two_thresholds() {
        let mut config = Config::default();
        let is_slow = |config: &Config, ns| {
            CommandAccounting::new(config, brisk_reactor::clock()).is_slow(ns)
        };
        config.observe.slowlog_log_slower_than_us = 10_000;
        config.observe.latency_monitor_threshold_ms = 0;
        assert!(!is_slow(&config, 9_999_999) && is_slow(&config, 10_000_000));
        config.observe.latency_monitor_threshold_ms = 3;
        assert!(!is_slow(&config, 2_999_999) && is_slow(&config, 3_000_000));
        config.observe.slowlog_log_slower_than_us = 0;
        assert!(is_slow(&config, 0));
        config.observe.slowlog_log_slower_than_us = -1;
        config.observe.latency_monitor_threshold_ms = 0;
        assert!(!is_slow(&config, 1 << 60));
    }
}
