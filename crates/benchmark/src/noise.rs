//! Other load during a measurement: other processes on the machine, and other virtual machines on the same host.

use crate::clock::process_cpu_ns;
use crate::resources::{TICK_NS, Usage};
use serde::{Deserialize, Serialize};
use std::fs;
use std::time::{Duration, Instant};

/// The minimum duration of a measurement that is judged. In a shorter one, a few kernel ticks would decide. In half a
/// second, the limit would be five ticks, and sampling alone can be off by half of that.
const JUDGED_FROM: Duration = Duration::from_secs(1);

/// How much CPU time went to other work during a measurement.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Noise {
    /// Fraction of all CPU time that the hypervisor gave to other virtual machines (steal time), 0 to 1.
    pub steal: f64,
    /// CPU use of processes that are not part of the measurement, in CPUs.
    pub others: f64,
}

impl Noise {
    /// Steal time of 1% is noticeable.
    const STEAL_LIMIT: f64 = 0.01;
    /// A tenth of a CPU is noticeable.
    const OTHERS_LIMIT: f64 = 0.1;

    /// Reports whether the numbers should be doubted.
    #[must_use]
    pub fn is_loud(&self) -> bool {
        self.steal > Self::STEAL_LIMIT || self.others > Self::OTHERS_LIMIT
    }

    /// A caveat for readers of the numbers; `None` if the machine is quiet enough.
    #[must_use]
    pub fn description(&self) -> Option<String> {
        self.is_loud().then(|| {
            format!(
                "the machine was noisy: other processes used {:.2} CPUs, and {:.1} % of the time was \
                 stolen; compare CPU time per request rather than rates and latencies",
                self.others,
                self.steal * 100.0
            )
        })
    }

    /// The maximum of two measurements, for each field.
    #[must_use]
    pub const fn max(self, other: Noise) -> Noise {
        Noise { steal: self.steal.max(other.steal), others: self.others.max(other.others) }
    }
}

/// The CPU time of the machine and of the measurement's processes at one moment.
#[derive(Clone, Copy, Debug)]
pub struct Moment {
    at: Instant,
    machine: Option<Machine>,
    /// CPU time so far of this process, the servers, and child processes that have ended.
    part_ns: u64,
}

impl Moment {
    /// The current moment. `servers_ns` is the CPU time that the measured servers have used.
    #[must_use]
    pub fn now(servers_ns: u64) -> Moment {
        let ended_ns = Usage::of_children().map_or(0, |usage| usage.cpu_ns);
        Moment {
            at: Instant::now(),
            machine: Machine::now(),
            part_ns: process_cpu_ns() + ended_ns + servers_ns,
        }
    }

    /// The noise since `before`; zero if the time is too short to tell.
    #[must_use]
    pub fn noise_since(&self, before: &Moment) -> Noise {
        let time = self.at - before.at;
        match self.machine.zip(before.machine) {
            Some((now, then)) if time >= JUDGED_FROM => {
                let part_ns = self.part_ns.saturating_sub(before.part_ns);
                now.noise_since(&then, part_ns, time.as_secs_f64())
            }
            _ => Noise::default(),
        }
    }
}

/// CPU time of all CPUs so far, in ticks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Machine {
    total: u64,
    idle: u64,
    steal: u64,
}

impl Machine {
    fn now() -> Option<Machine> {
        let stat = fs::read_to_string("/proc/stat").ok()?;
        let line = stat.lines().next()?.strip_prefix("cpu ")?;
        let ticks: Vec<u64> =
            line.split_whitespace().filter_map(|word| word.parse().ok()).collect();
        // user nice system idle iowait irq softirq steal; guests are part of user.
        let (idle, steal) = (ticks.get(3)? + ticks.get(4)?, *ticks.get(7)?);
        Some(Machine { total: ticks.iter().take(8).sum(), idle, steal })
    }

    /// The noise since `before`; `part_ns` of the CPU time belongs to the measurement.
    fn noise_since(&self, before: &Machine, part_ns: u64, seconds: f64) -> Noise {
        let total = self.total.saturating_sub(before.total).max(1) as f64;
        let steal = self.steal.saturating_sub(before.steal) as f64;
        let idle = self.idle.saturating_sub(before.idle) as f64;
        let worked_seconds = (total - idle - steal) * TICK_NS as f64 / 1e9;
        let others = (worked_seconds - part_ns as f64 / 1e9).max(0.0) / seconds.max(1e-9);
        Noise { steal: steal / total, others }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cpu_time_of_other_processes_is_noise() {
        let before = Machine { total: 1000, idle: 500, steal: 0 };
        let after = Machine { total: 1200, idle: 600, steal: 10 };
        // Two CPUs for one second are 200 ticks, 90 of which were work.
        let noise = after.noise_since(&before, 400_000_000, 1.0);
        assert!((noise.steal - 0.05).abs() < 1e-9 && (noise.others - 0.5).abs() < 1e-9);
        let description = noise.description().unwrap_or_default();
        assert!(
            description.contains("other processes used 0.50 CPUs, and 5.0 % of the time"),
            "{description}"
        );
        let quiet = after.noise_since(&before, 900_000_000, 1.0);
        assert!((quiet.others).abs() < 1e-9);
        assert_eq!(Noise::default().description(), None);
        assert!(Machine::now().is_some());
    }

    #[test]
    fn a_moment_is_too_short_to_be_judged() {
        let before = Moment { part_ns: 0, ..Moment::now(0) };
        assert_eq!(Moment::now(0).noise_since(&before), Noise::default());
    }

    #[test]
    fn a_second_is_long_enough_to_be_judged() {
        let machine = Machine { total: 1000, idle: 500, steal: 0 };
        let before = Moment { at: Instant::now(), machine: Some(machine), part_ns: 0 };
        let others_after = |milliseconds| {
            let machine = Machine { total: 1200, idle: 600, steal: 0 };
            let at = before.at + Duration::from_millis(milliseconds);
            Moment { at, machine: Some(machine), part_ns: 0 }.noise_since(&before).others
        };
        assert_eq!(others_after(999), 0.0);
        assert!((others_after(1000) - 1.0).abs() < 1e-9);
    }
}
