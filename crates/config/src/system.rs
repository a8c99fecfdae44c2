//! Start-up checks: limitations of the host and how to fix them, and the limit of open files.
//!
//! Each check returns lines to log; nothing here logs or ends the process.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use super::config::Config;
use super::directive::SupportStatus;
use super::directives;
use super::special::os_reason;

/// Descriptors reserved for files, listeners and pipes, in addition to those of clients.
pub const FILES_RESERVED: u64 = 32;

/// Maximum number of simultaneous HTTP connections.
pub const HTTP_CONNECTIONS_MAX: usize = 64;

/// Maximum number of simultaneous consoles. Each has an HTTP connection and a session.
pub const CONSOLES_MAX: usize = 16;

/// Returns the number of descriptors that are not for clients, including those of the admin lane
/// and of HTTP.
pub fn reserved(config: &Config) -> u64 {
    let http = (HTTP_CONNECTIONS_MAX + CONSOLES_MAX) as u64;
    let http = if config.network.http_port > 0 { http } else { 0 };
    FILES_RESERVED + config.clients.admin_maxclients.unsigned_abs() + http
}

/// The result of reserving open files.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OpenFiles {
    /// The number of clients that can be served, at most the configured one; 0 if not even one can.
    pub maxclients: i64,
    /// Lines for the log at level warning, or notice if `raised`.
    pub notes: Vec<String>,
    /// True if the limit was raised and covers everything.
    pub raised: bool,
}

/// Raises the soft limit of open files to `maxclients` + `reserved`, or lowers `maxclients` to what
/// the limit allows. Redis does the same at startup and on CONFIG SET maxclients.
pub fn reserve_open_files(maxclients: i64, reserved: u64) -> OpenFiles {
    let limit = getrlimit(Resource::Nofile);
    let (soft, hard) = (limit.current.unwrap_or(u64::MAX), limit.maximum.unwrap_or(u64::MAX));
    let wanted = u64::try_from(maxclients).unwrap_or(0).saturating_add(reserved);
    if soft >= wanted {
        return OpenFiles { maxclients, notes: Vec::new(), raised: false };
    }
    let target = wanted.min(hard);
    let new = Rlimit { current: Some(target), maximum: limit.maximum };
    let failed = setrlimit(Resource::Nofile, new).err();
    let granted = if failed.is_some() { soft } else { target };
    if granted >= wanted {
        let note = format!(
            "Increased maximum number of open files to {wanted} (it was originally set to {soft})."
        );
        return OpenFiles { maxclients, notes: vec![note], raised: true };
    }
    let affordable = i64::try_from(granted.saturating_sub(reserved)).unwrap_or(i64::MAX);
    if affordable == 0 {
        let note = format!(
            "Your current 'ulimit -n' of {granted} is not enough for the server to start. Please increase your \
             open file limit to at least {}. Exiting.",
            reserved + 1
        );
        return OpenFiles { maxclients: 0, notes: vec![note], raised: false };
    }
    let reason = match failed {
        Some(error) => os_reason(&error.into()),
        None => format!("the hard limit is {hard}"),
    };
    let notes = vec![
        format!(
            "You requested maxclients of {maxclients} requiring at least {wanted} max file descriptors."
        ),
        format!("Server can't set maximum open files to {wanted} because of OS error: {reason}."),
        format!(
            "Current maximum open files is {granted}. maxclients has been reduced to {affordable} to compensate \
             for low ulimit. If you need higher maxclients increase 'ulimit -n'."
        ),
    ];
    OpenFiles { maxclients: affordable, notes, raised: false }
}

/// Returns all warnings for startup, in the order in which to log them.
pub fn warnings(config: &Config) -> Vec<String> {
    let read = |path: &str| std::fs::read_to_string(path).ok();
    [
        backlog(config.network.tcp_backlog, read("/proc/sys/net/core/somaxconn").as_deref()),
        overcommit(read("/proc/sys/vm/overcommit_memory").as_deref()),
        huge_pages(read("/sys/kernel/mm/transparent_hugepage/enabled").as_deref()),
        maxmemory(config.memory.maxmemory),
        warning_without_effect(config),
    ]
    .into_iter()
    .flatten()
    .collect()
}

/// Compares `tcp-backlog` with the kernel's limit; `somaxconn` is the text of its file.
fn backlog(wanted: i64, somaxconn: Option<&str>) -> Option<String> {
    let bound: i64 = somaxconn?.trim().parse().ok()?;
    (bound > 0 && bound < wanted).then(|| {
        format!(
            "WARNING: The TCP backlog setting of {wanted} cannot be enforced because \
             /proc/sys/net/core/somaxconn is set to the lower value of {bound}. Raise it with \
             'sysctl -w net.core.somaxconn={wanted}', or lower tcp-backlog."
        )
    })
}

/// Checks the kernel's overcommit mode. Only the strict mode is a problem: the server does not
/// fork, so no memory has to be reserved twice.
fn overcommit(setting: Option<&str>) -> Option<String> {
    (setting?.trim() == "2").then(|| {
        "WARNING: Memory overcommit is disabled (vm.overcommit_memory is 2): the kernel may fail an allocation \
         although memory is free, which terminates the server. Enable it with 'sysctl vm.overcommit_memory=0', \
         and add the setting to /etc/sysctl.conf."
            .to_owned()
    })
}

fn huge_pages(setting: Option<&str>) -> Option<String> {
    setting?.contains("[always]").then(|| {
        "WARNING: Transparent huge pages are set to 'always', which may increase latency and memory use. Run \
         'echo madvise > /sys/kernel/mm/transparent_hugepage/enabled' as root, and make the setting permanent."
            .to_owned()
    })
}

fn maxmemory(bytes: u64) -> Option<String> {
    match bytes {
        0 => Some(
            "WARNING: maxmemory is not set: the dataset may grow until the system runs out of memory. Set maxmemory, \
             and maxmemory-policy if keys may be evicted."
                .to_owned(),
        ),
        1..0x10_0000 => Some(format!(
            "WARNING: You specified a maxmemory value that is less than 1MB (current value is {bytes} bytes). Are \
             you sure this is what you really want?"
        )),
        _ => None,
    }
}

/// Returns the directives that request features that are not implemented yet.
pub fn without_effect(config: &Config) -> Vec<&'static str> {
    let defaults = Config::default();
    let mut names: Vec<&'static str> = directives::all()
        .filter(|row| {
            row.support_status == SupportStatus::Planned && !row.is_default(config, &defaults)
        })
        .map(|row| row.name)
        .collect();
    if !config.process.modules.is_empty() {
        names.push("loadmodule");
    }
    names
}

fn warning_without_effect(config: &Config) -> Option<String> {
    let names = without_effect(config);
    (!names.is_empty()).then(|| {
        format!(
            "WARNING: These directives are set but not implemented, so they have no effect: {}.",
            names.join(", ")
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::directive::Kind;
    use crate::directive::Write;
    use crate::fuzzing::Lenient;

    #[test]
    fn warnings_say_what_is_wrong_and_what_to_do() {
        assert!(
            backlog(511, Some("128\n")).is_some_and(|w| w.contains("128") && w.contains("sysctl"))
        );
        assert_eq!(backlog(511, Some("4096\n")), None);
        assert_eq!(backlog(511, None), None);
        assert!(overcommit(Some("2\n")).is_some());
        assert_eq!((overcommit(Some("0\n")), overcommit(Some("1\n"))), (None, None));
        assert!(huge_pages(Some("[always] madvise never")).is_some());
        assert_eq!(huge_pages(Some("always [madvise] never")), None);
        assert!(maxmemory(0).is_some() && maxmemory(5).is_some());
        assert_eq!(maxmemory(1 << 20), None);
    }

    #[test]
    fn directives_without_effect_are_named_if_not_at_their_default() {
        let with = |lines: &[(&str, &[&str])]| {
            let mut config = Config::default();
            for (name, words) in lines {
                let words: Vec<Vec<u8>> = words.iter().map(|word| word.as_bytes().into()).collect();
                let row = directives::find(name.as_bytes()).unwrap();
                match row.kind {
                    Kind::FileOnly(set) => set(&mut config, &words, &Lenient).unwrap(),
                    _ => row.set(&mut config, &words, Write::Replace).unwrap(),
                }
            }
            config
        };
        for (lines, named) in [
            (&[][..], None),
            (&[("save", &[""][..]), ("appendonly", &["no"]), ("maxmemory", &["1gb"])], None),
            (&[("daemonize", &["yes"]), ("always-show-logo", &["yes"])], None),
            (&[("save", &["60", "1"])], None),
            (&[("save", &[""]), ("appendonly", &["yes"])], None),
            (&[("cluster-enabled", &["yes"])], None),
            (&[("activedefrag", &["yes"])], Some("activedefrag")),
            (
                &[("loadmodule", &["x.so"]), ("activedefrag", &["yes"])],
                Some("activedefrag, loadmodule"),
            ),
        ] {
            let config = with(lines);
            let warning = warning_without_effect(&config);
            let end = named.map(|names| format!(" have no effect: {names}."));
            assert_eq!(warning.is_some(), end.is_some(), "{lines:?}: {warning:?}");
            assert!(
                warning.zip(end).is_none_or(|(warning, end)| warning.ends_with(&end)),
                "{lines:?}"
            );
        }
    }

    #[test]
    fn maxclients_is_lowered_to_what_the_hard_limit_allows() {
        // One test for both cases: the limit belongs to the whole process.
        let limit = getrlimit(Resource::Nofile);
        assert_eq!(reserve_open_files(1, FILES_RESERVED).maxclients, 1);
        if let Some(hard) = limit.maximum.filter(|hard| *hard < 1 << 40) {
            let requested = i64::try_from(hard).unwrap();
            let got = reserve_open_files(requested, FILES_RESERVED);
            assert!(got.maxclients < requested && got.maxclients > 0, "{got:?}");
            assert!(got.notes.last().unwrap().contains("maxclients has been reduced to"));
        }
    }
}
