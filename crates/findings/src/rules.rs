//! Rules about access, memory and persistence. A rule gets facts, so it applies to a configuration file and to a
//! running server.

use crate::report::{Finding, amount};

/// Minimum length of a safe password in bytes. Shorter passwords can be guessed, because a server checks very many
/// passwords per second.
const PASSWORD_BYTES_MIN: usize = 16;
/// The fraction of the memory that data may use. The rest is for buffers, for the system, and for copies that a
/// snapshot keeps while commands change the data.
const MEMORY_PARTS: (u64, u64) = (8, 10);

/// How a directive is changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Setting {
    /// In the configuration file.
    File,
    /// In the running server.
    Running,
}

impl Setting {
    /// The instruction that sets a directive.
    #[must_use]
    pub fn set(self, directive: &str, value: &str) -> String {
        match self {
            Setting::File => format!("set {directive} {value}").trim_end().to_owned(),
            Setting::Running => format!("CONFIG SET {directive} {value}"),
        }
    }
}

/// How clients can reach a server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Access {
    /// The addresses on which the server listens.
    pub bind: Vec<String>,
    /// True if the server listens on a port.
    pub has_port: bool,
    /// True if clients need no password to be the user `default`.
    pub is_open: bool,
    /// `protected-mode`
    pub is_protected: bool,
}

/// True if an address is local to its host.
#[must_use]
pub fn is_local(address: &str) -> bool {
    let address = address.strip_prefix('-').unwrap_or(address);
    address == "localhost"
        || address.parse::<std::net::IpAddr>().is_ok_and(|address| address.is_loopback())
}

/// Checks whether clients from other machines have access without a password.
#[must_use]
pub fn access(access: &Access, setting: Setting) -> Finding {
    let bind = access.bind.join(" ");
    let is_reached = access.has_port && !access.bind.iter().all(|address| is_local(address));
    let password = match setting {
        Setting::File => "set requirepass".to_owned(),
        Setting::Running => setting.set("requirepass", "PASSWORD"),
    };
    match (is_reached, access.is_open, access.is_protected) {
        (false, ..) => Finding::ok("access", "this machine only".to_owned()),
        (true, false, _) => Finding::ok("access", format!("bind {bind}, with a password")),
        (true, true, true) => Finding::note("access", format!("bind {bind}, without a password"))
            .means("Protected mode rejects clients from other machines.")
            .todo(format!("{password}, so that they can authenticate")),
        (true, true, false) => {
            let what = format!("bind {bind}, no password, and protected-mode is off");
            let others = match setting {
                Setting::File => "protected-mode yes, or bind 127.0.0.1 -::1".to_owned(),
                Setting::Running => setting.set("protected-mode", "yes"),
            };
            Finding::problem("access", what)
                .means("Anyone who can reach the port can read and change everything.")
                .todo(format!("{password}, or {others}"))
        }
    }
}

/// Checks the length of `requirepass`.
#[must_use]
pub fn password(bytes: usize) -> Option<Finding> {
    (bytes > 0 && bytes < PASSWORD_BYTES_MIN).then(|| {
        Finding::warning("password", format!("requirepass has {bytes} bytes"))
            .means("Short passwords can be found by brute force.")
            .todo("set requirepass to the output of: openssl rand -hex 32")
    })
}

/// Compares `maxmemory` with the memory of the host.
#[must_use]
pub fn maxmemory(bytes: u64, total: Option<u64>, setting: Setting) -> Option<Finding> {
    let total = total?;
    let good = total / MEMORY_PARTS.1 * MEMORY_PARTS.0;
    let todo = setting.set("maxmemory", &format!("{}mb", (good >> 20).max(1)));
    Some(if bytes == 0 {
        Finding::warning("maxmemory", "not set".to_owned())
            .means("The dataset may grow until the kernel kills the server.")
            .todo(format!("{todo}, and maxmemory-policy if keys may be evicted"))
    } else if bytes > total {
        let what = format!("{}, more than the total memory of {}", amount(bytes), amount(total));
        Finding::problem("maxmemory", what)
            .means("The kernel kills the server before the limit is reached.")
            .todo(todo)
    } else if bytes > good {
        let what = format!("{} of {}", amount(bytes), amount(total));
        Finding::warning("maxmemory", what)
            .means("Little memory is left for snapshots, replicas and the system.")
            .todo(todo)
    } else {
        Finding::ok("maxmemory", format!("{} of {}", amount(bytes), amount(total)))
    })
}

/// Checks whether anything is written to disk.
#[must_use]
pub fn nothing_saved(has_save_points: bool, has_aof: bool) -> Option<Finding> {
    (!has_save_points && !has_aof).then(|| {
        Finding::note("persistence", "neither save points nor an append-only file".to_owned())
            .means("The data is lost when the server exits, unless SAVE is called first.")
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::Severity::{self, Note, Ok, Problem, Warning};

    #[test]
    fn open_access_is_a_problem_unless_the_server_is_local_or_protected() {
        let severity = |bind: &str, is_open, is_protected| {
            let bind = bind.split(' ').map(str::to_owned).collect();
            let facts = Access { bind, has_port: true, is_open, is_protected };
            access(&facts, Setting::Running).severity
        };
        assert_eq!(severity("127.0.0.1 -::1", true, false), Ok);
        assert_eq!(severity("10.0.0.1", true, true), Note);
        assert_eq!(severity("* -::*", true, false), Problem);
        assert_eq!(severity("* -::*", false, false), Ok);
    }

    #[test]
    fn the_remedy_is_a_directive_or_a_command() {
        let todo = |setting| maxmemory(2 << 30, Some(1000 << 20), setting).unwrap().todo;
        assert_eq!(todo(Setting::File), "set maxmemory 800mb");
        assert_eq!(todo(Setting::Running), "CONFIG SET maxmemory 800mb");
    }

    #[test]
    fn short_passwords_and_missing_persistence_are_reported() {
        let severity = |finding: Option<Finding>| finding.map(|finding| finding.severity);
        assert_eq!([password(0), password(16)].map(severity), [None::<Severity>, None]);
        assert_eq!(severity(password(15)), Some(Warning));
        assert_eq!(severity(nothing_saved(false, false)), Some(Note));
        assert_eq!(
            [nothing_saved(true, false), nothing_saved(false, true)].map(severity),
            [None, None]
        );
    }
}
