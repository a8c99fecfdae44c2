//! Monitors the run of a single server: the progress line, a server that stops replying, and other load on the machine.

use brisk_benchmark::engine::Progress;
use brisk_benchmark::engine::plan::Target;
use brisk_benchmark::noise::{Moment, Noise};
use brisk_benchmark::resources::{Usage, listener_of};
use brisk_benchmark::{Watch, report};
use std::io::{IsTerminal, Write, stdout};
use std::time::{Duration, Instant};

/// The time without a reply to pending requests after which a message says that the server may have stopped. Commands
/// that wait on purpose may take longer.
const SILENCE_REPORTED_AFTER: Duration = Duration::from_secs(10);

/// Monitors one run.
pub(crate) struct RunMonitor {
    title: String,
    /// True if a progress line is shown, which is overwritten on the terminal.
    shown: bool,
    silence: Silence,
    machine: Monitored,
    before: Option<Moment>,
    noise: Noise,
}

/// Whether other load on the machine can be distinguished from the measurement.
#[derive(Clone, Debug)]
pub(crate) enum Monitored {
    /// Yes: these are the processes of the servers on this machine.
    Servers(Vec<u32>),
    /// No: a server runs on this machine, but its process is not visible, so its work would look like noise.
    Unseen,
}

impl Monitored {
    /// Finds the local processes of servers. O(open descriptors of the machine) for each local one.
    pub(crate) fn of(targets: &[&Target]) -> Monitored {
        let mut pids = Vec::new();
        for target in targets {
            match listener_of(&target.address) {
                Some(pid) if !pids.contains(&pid) => pids.push(pid),
                Some(_) => {}
                None if target.address.is_local() => return Monitored::Unseen,
                None => {}
            }
        }
        Monitored::Servers(pids)
    }

    fn moment(&self) -> Moment {
        let pids = match self {
            Monitored::Servers(pids) => pids.as_slice(),
            Monitored::Unseen => &[],
        };
        let usages = pids.iter().filter_map(|pid| Usage::of(*pid));
        Moment::now(usages.map(|usage| usage.cpu_ns).sum())
    }
}

impl RunMonitor {
    /// The monitor of a run with this title.
    pub(crate) fn new(title: &str, shown: bool, machine: Monitored) -> RunMonitor {
        RunMonitor {
            title: title.to_owned(),
            shown: shown && stdout().is_terminal(),
            silence: Silence::since(Instant::now()),
            machine,
            before: None,
            noise: Noise::default(),
        }
    }

    /// Clears the progress line before anything is written to the other stream.
    pub(crate) fn clear(&self) {
        if self.shown {
            print!("\r\x1b[K");
            let _ = stdout().flush();
        }
    }

    /// Other load on the machine.
    pub(crate) fn noise(&self) -> Option<String> {
        self.noise.description()
    }
}

impl Watch for RunMonitor {
    fn begins(&mut self) {
        self.before = Some(self.machine.moment());
    }

    fn progress(&mut self, progress: &Progress) {
        if self.silence.has_become_reportable(progress, Instant::now()) {
            self.clear();
            eprintln!(
                "  NOTE: {}: no reply for {} s; still waiting (Ctrl+C to give up).",
                self.title,
                SILENCE_REPORTED_AFTER.as_secs()
            );
        }
        if self.shown {
            print!("\r\x1b[K{}", report::progress(&self.title, progress));
            let _ = stdout().flush();
        }
    }

    fn ends(&mut self) {
        let Some(before) = &self.before else { return };
        let noise = self.machine.moment().noise_since(before);
        self.noise = match self.machine {
            Monitored::Unseen => Noise { others: 0.0, ..noise },
            Monitored::Servers(_) => noise,
        };
    }
}

/// Detects that no reply has arrived for a while, although requests are pending.
struct Silence {
    /// The numbers of connections and replies at the last check, and the time of their last change.
    seen: (u64, u64),
    since: Instant,
    is_reported: bool,
}

impl Silence {
    fn since(since: Instant) -> Silence {
        Silence { seen: (0, 0), since, is_reported: false }
    }

    /// Reports whether the silence has just become long enough for a message.
    fn has_become_reportable(&mut self, progress: &Progress, now: Instant) -> bool {
        let seen = (progress.connected, progress.operations);
        // Replies to requests sent before the measurement begins are not counted.
        let warming_up = progress.seconds <= 0.0;
        // At a low rate, no request is pending most of the time.
        let nothing_pending = progress.waiting == 0;
        if seen != self.seen || warming_up || nothing_pending {
            *self = Silence { seen, ..Silence::since(now) };
        }
        let is_new = !self.is_reported && now - self.since >= SILENCE_REPORTED_AFTER;
        self.is_reported |= is_new;
        is_new
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_silent_server_is_reported_once_until_it_replies() {
        let begun = Instant::now();
        let mut silence = Silence::since(begun);
        let mut look = |seconds: u64, operations: u64, measured: f64| {
            let progress = Progress {
                connected: 1,
                waiting: 1,
                operations,
                seconds: measured,
                ..Progress::default()
            };
            silence.has_become_reportable(&progress, begun + Duration::from_secs(seconds))
        };
        assert!(!look(20, 0, 0.0), "warming up");
        assert!(!look(29, 0, 9.0));
        assert!(look(30, 0, 10.0));
        assert!(!look(31, 0, 11.0) && !look(90, 0, 70.0), "already reported");
        assert!(!look(91, 5, 71.0) && !look(100, 5, 80.0));
        assert!(look(101, 5, 81.0));
    }

    #[test]
    fn a_server_without_pending_requests_is_not_silent() {
        let begun = Instant::now();
        let mut silence = Silence::since(begun);
        let mut look = |seconds: u64, operations: u64, waiting: u64| {
            let measured = seconds as f64 + 1.0;
            let progress = Progress {
                connected: 1,
                waiting,
                operations,
                seconds: measured,
                ..Progress::default()
            };
            silence.has_become_reportable(&progress, begun + Duration::from_secs(seconds))
        };
        // A request is sent every 20 s, and happens to be pending at a check.
        assert!(!look(0, 1, 0) && !look(19, 1, 0) && !look(20, 1, 1));
        assert!(!look(21, 2, 0) && !look(39, 2, 0) && !look(40, 2, 1));
        // This request stays pending.
        assert!(!look(48, 2, 1) && look(49, 2, 1) && !look(60, 2, 1));
    }
}
