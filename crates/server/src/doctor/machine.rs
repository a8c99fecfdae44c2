//! The kernel's settings, CPUs and memory. The checks take the text of the kernel's files.

use super::cgroup::{self, Limits};
use brisk_config::{Config, system};
use brisk_findings::{Finding, amount};
use std::path::Path;

/// The state of a host. Parts that cannot be read are empty.
#[derive(Debug, Clone, Default)]
pub(super) struct Machine {
    pub(super) limits: String,
    pub(super) huge_pages: String,
    pub(super) overcommit: String,
    pub(super) somaxconn: String,
    pub(super) meminfo: String,
    pub(super) swappiness: String,
    pub(super) clock_source: String,
    pub(super) release: String,
    pub(super) mounts: String,
    pub(super) cgroup: Limits,
    /// CPUs that this process may use.
    pub(super) processors: usize,
}

impl Machine {
    /// Reads the files below this root, if they exist.
    pub(super) fn read(root: &Path) -> Machine {
        let read = |path: &str| std::fs::read_to_string(root.join(path)).unwrap_or_default();
        Machine {
            limits: read("proc/self/limits"),
            huge_pages: read("sys/kernel/mm/transparent_hugepage/enabled"),
            overcommit: read("proc/sys/vm/overcommit_memory"),
            somaxconn: read("proc/sys/net/core/somaxconn"),
            meminfo: read("proc/meminfo"),
            swappiness: read("proc/sys/vm/swappiness"),
            clock_source: read("sys/devices/system/clocksource/clocksource0/current_clocksource"),
            release: read("proc/sys/kernel/osrelease"),
            mounts: read("proc/self/mountinfo"),
            cgroup: cgroup::limits(root, &read("proc/self/cgroup")),
            processors: std::thread::available_parallelism().map_or(1, usize::from),
        }
    }

    /// Returns a line of `/proc/meminfo` in bytes.
    fn memory(&self, name: &str) -> Option<u64> {
        let line =
            self.meminfo.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'))?;
        line.trim().strip_suffix(" kB")?.parse::<u64>().ok()?.checked_mul(1024)
    }

    /// Returns the maximum memory of this process: the memory of the host, or the limit of the process's control group
    /// if that is lower.
    pub(super) fn memory_total(&self) -> Option<u64> {
        let machine = self.memory("MemTotal");
        [machine, self.cgroup.memory].into_iter().flatten().min()
    }
}

pub(super) fn check(machine: &Machine, config: &Config, findings: &mut Vec<Finding>) {
    let checks = [
        kernel(&machine.release),
        open_files(&machine.limits, config),
        backlog(&machine.somaxconn, config.network.tcp_backlog),
        huge_pages(&machine.huge_pages),
        overcommit(&machine.overcommit),
        swap(machine),
        clock_source(&machine.clock_source),
        processors(machine, config),
        memory_limit(machine),
    ];
    findings.extend(checks.into_iter().flatten());
}

fn kernel(release: &str) -> Option<Finding> {
    let release = release.trim();
    let mut numbers = release.split(|c: char| !c.is_ascii_digit());
    let version: (u32, u32) = (numbers.next()?.parse().ok()?, numbers.next()?.parse().ok()?);
    Some(if version < (4, 5) {
        Finding::warning("kernel", format!("Linux {release}"))
            .means("The server is not tested on kernels older than 4.5.")
            .todo("update the system")
    } else {
        Finding::ok("kernel", format!("Linux {release}"))
    })
}

fn open_files(limits: &str, config: &Config) -> Option<Finding> {
    let line = limits.lines().find_map(|line| line.strip_prefix("Max open files"))?;
    let mut fields = line.split_ascii_whitespace().map(|word| match word {
        "unlimited" => Some(u64::MAX),
        number => number.parse().ok(),
    });
    let (soft, hard) = (fields.next()??, fields.next()??);
    let wanted = config.clients.maxclients.unsigned_abs() + system::reserved(config);
    Some(if hard < wanted {
        let what = format!("at most {hard}, but maxclients and the server need {wanted}");
        Finding::problem("open files", what)
            .means("maxclients is lowered at startup to what the limit allows.")
            .todo(format!(
                "ulimit -Hn {wanted} as root, or LimitNOFILE={wanted} in the systemd unit"
            ))
    } else if soft < wanted {
        let what = format!("{soft}, which the server raises to {wanted} at startup");
        Finding::ok("open files", what)
    } else {
        Finding::ok("open files", format!("{soft}, of which {wanted} are needed"))
    })
}

fn backlog(somaxconn: &str, wanted: i64) -> Option<Finding> {
    let bound: i64 = somaxconn.trim().parse().ok()?;
    Some(if bound < wanted {
        let what = format!("net.core.somaxconn is {bound}, but tcp-backlog is {wanted}");
        Finding::warning("backlog", what)
            .means("When many clients connect at once, the kernel drops some connections.")
            .todo(format!("sysctl -w net.core.somaxconn={wanted}"))
    } else {
        Finding::ok("backlog", format!("net.core.somaxconn is {bound}"))
    })
}

fn huge_pages(enabled: &str) -> Option<Finding> {
    let chosen = enabled.split_once('[')?.1.split(']').next()?;
    Some(if chosen == "always" {
        Finding::warning("huge pages", "transparent huge pages are set to always".to_owned())
            .means(
                "The server requests huge pages itself when they help; other processes may stall \
                 while the kernel frees memory for theirs.",
            )
            .todo("echo madvise > /sys/kernel/mm/transparent_hugepage/enabled")
    } else {
        Finding::ok("huge pages", format!("transparent huge pages are set to {chosen}"))
    })
}

fn overcommit(setting: &str) -> Option<Finding> {
    Some(match setting.trim() {
        "0" => Finding::ok("overcommit", "vm.overcommit_memory is 0".to_owned()).means(
            "This is sufficient: snapshots do not fork, so the memory is not counted twice.",
        ),
        "1" => Finding::ok("overcommit", "vm.overcommit_memory is 1".to_owned()),
        "2" => Finding::warning("overcommit", "vm.overcommit_memory is 2".to_owned())
            .means(
                "Allocations beyond CommitLimit fail although memory is free; a failed allocation \
                 terminates the server.",
            )
            .todo(
                "sysctl -w vm.overcommit_memory=0, or make CommitLimit much higher than maxmemory",
            ),
        _ => return None,
    })
}

fn swap(machine: &Machine) -> Option<Finding> {
    let total = machine.memory("SwapTotal")?;
    let used = total.saturating_sub(machine.memory("SwapFree")?);
    let swappiness: u32 = machine.swappiness.trim().parse().unwrap_or(60);
    Some(if total == 0 {
        Finding::ok("swap", "none".to_owned())
            .means("When memory is short, the kernel kills a process; set maxmemory.")
    } else if used > total / 4 {
        let what = format!("{} of {} in use", amount(used), amount(total));
        Finding::warning("swap", what)
            .means("A command that accesses a swapped-out page takes milliseconds.")
            .todo("lower maxmemory, or sysctl -w vm.swappiness=1")
    } else if swappiness > 10 {
        let what = format!("{}, vm.swappiness is {swappiness}", amount(total));
        Finding::note("swap", what)
            .means("The kernel may swap out data that was not used recently.")
            .todo("sysctl -w vm.swappiness=1")
    } else {
        Finding::ok("swap", format!("{}, vm.swappiness is {swappiness}", amount(total)))
    })
}

fn clock_source(source: &str) -> Option<Finding> {
    let source = source.trim();
    Some(match source {
        "" => return None,
        "tsc" | "kvm-clock" | "arch_sys_counter" | "hyperv_clocksource_tsc_page" => {
            Finding::ok("clock", format!("clock source {source}"))
        }
        _ => Finding::warning("clock", format!("clock source {source}"))
            .means("It makes reading the time a slow system call, and the server reads it for every batch.")
            .todo(
                "echo tsc > /sys/devices/system/clocksource/clocksource0/current_clocksource, if \
                 available_clocksource in that directory lists it",
            ),
    })
}

fn processors(machine: &Machine, config: &Config) -> Option<Finding> {
    let workers = config.process.threads.count();
    let (present, allowed) = (machine.processors, machine.cgroup.processors);
    let what = format!("{workers} workers on {present} CPUs");
    Some(match allowed {
        Some(allowed) if (workers as f64) > allowed.ceil() => {
            let what = format!("{what}, but the control group allows only {allowed:.1}");
            Finding::warning("processors", what)
                .means("When the CPU time of a period is used up, all workers stall until the next one.")
                .todo(format!("set threads {}", allowed.floor().max(1.0)))
        }
        _ if workers > present => Finding::warning("processors", what)
            .means("Workers that share a CPU wait for one another.")
            .todo(format!("set threads {present}, or 0")),
        _ => Finding::ok("processors", what),
    })
}

fn memory_limit(machine: &Machine) -> Option<Finding> {
    let total = machine.memory("MemTotal")?;
    let free = machine
        .memory("MemAvailable")
        .map_or_else(String::new, |bytes| format!(", {} of it available", amount(bytes)));
    let what = format!("{}{free}", amount(total));
    Some(match machine.cgroup.memory {
        Some(limit) if limit < total => {
            let what = format!("{what}; the control group allows {}", amount(limit));
            Finding::note("memory", what)
                .means("Above this limit the kernel kills the server, even if the machine has free memory.")
        }
        _ => Finding::ok("memory", what),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use brisk_findings::Severity::{self, Note, Ok, Problem, Warning};

    /// The format of `/proc/self/limits` in Linux 6.1.
    fn limits(soft: &str, hard: &str) -> String {
        format!(
            "Limit                     Soft Limit           Hard Limit           Units     \n\
             Max processes             96186                96186                processes \n\
             Max open files            {soft:<20} {hard:<20} files     \n"
        )
    }

    fn severity(finding: Option<Finding>) -> Option<Severity> {
        if let Some(finding) = &finding {
            // Every warning states a remedy.
            assert!(finding.severity <= Note || !finding.todo.is_empty(), "{finding:?}");
        }
        finding.map(|finding| finding.severity)
    }

    #[test]
    fn open_files_are_compared_with_what_the_clients_need() {
        let config = Config::default();
        for (soft, hard, wanted) in [
            ("1024", "524288", Some(Ok)),
            ("20000", "20000", Some(Ok)),
            ("1024", "4096", Some(Problem)),
            ("unlimited", "unlimited", Some(Ok)),
            ("x", "y", None),
        ] {
            assert_eq!(severity(open_files(&limits(soft, hard), &config)), wanted, "{soft} {hard}");
        }
        assert_eq!(open_files("", &config), None);
    }

    #[test]
    fn settings_of_the_kernel_are_judged_by_their_texts() {
        assert_eq!(severity(backlog("128\n", 511)), Some(Warning));
        assert_eq!(severity(backlog("4096\n", 511)), Some(Ok));
        assert_eq!(severity(huge_pages("[always] madvise never\n")), Some(Warning));
        assert_eq!(severity(huge_pages("always [madvise] never\n")), Some(Ok));
        assert_eq!(huge_pages(""), None);
        let texts = ["0\n", "1\n", "2\n", ""];
        let severities = texts.map(|text| severity(overcommit(text)));
        assert_eq!(severities, [Some(Ok), Some(Ok), Some(Warning), None]);
        let sources = ["tsc\n", "kvm-clock\n", "hpet\n", "acpi_pm\n", ""];
        let severities = sources.map(|text| severity(clock_source(text)));
        assert_eq!(severities, [Some(Ok), Some(Ok), Some(Warning), Some(Warning), None]);
        let releases = ["6.1.0-13-amd64\n", "3.10.0-1160.el7.x86_64\n", "odd"];
        let severities = releases.map(|text| severity(kernel(text)));
        assert_eq!(severities, [Some(Ok), Some(Warning), None]);
    }

    fn with_memory(total: u64, swap: u64, swap_free: u64) -> Machine {
        let meminfo = format!(
            "MemTotal:       {total} kB\nMemFree:         5 kB\nMemAvailable:   100 kB\n\
             SwapTotal:      {swap} kB\nSwapFree:       {swap_free} kB\n"
        );
        Machine { meminfo, swappiness: "60\n".to_owned(), processors: 4, ..Machine::default() }
    }

    #[test]
    fn swap_is_a_warning_once_it_is_used() {
        assert_eq!(severity(swap(&with_memory(1000, 0, 0))), Some(Ok));
        let mut machine = with_memory(1000, 1000, 1000);
        assert_eq!(severity(swap(&machine)), Some(Note));
        machine.swappiness = "1\n".to_owned();
        assert_eq!(severity(swap(&machine)), Some(Ok));
        assert_eq!(severity(swap(&with_memory(1000, 1000, 500))), Some(Warning));
        assert_eq!(swap(&Machine::default()), None);
    }

    #[test]
    fn workers_are_compared_with_the_cpus_and_the_control_group() {
        let mut config = Config::default();
        config.process.threads.configured = 4;
        let mut machine = with_memory(1000, 0, 0);
        assert_eq!(severity(processors(&machine, &config)), Some(Ok));
        machine.cgroup.processors = Some(1.5);
        let found = processors(&machine, &config);
        assert_eq!(found.as_ref().map(|found| found.todo.as_str()), Some("set threads 1"));
        assert_eq!(severity(found), Some(Warning));
        (machine.cgroup.processors, machine.processors) = (None, 2);
        assert_eq!(severity(processors(&machine, &config)), Some(Warning));
    }

    #[test]
    fn a_control_group_may_leave_less_memory_than_the_machine_has() {
        let mut machine = with_memory(1000, 0, 0);
        assert_eq!(machine.memory_total(), Some(1_024_000));
        assert_eq!(severity(memory_limit(&machine)), Some(Ok));
        machine.cgroup.memory = Some(512_000);
        assert_eq!(machine.memory_total(), Some(512_000));
        assert_eq!(severity(memory_limit(&machine)), Some(Note));
    }
}
