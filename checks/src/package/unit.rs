//! A replacement for `systemctl` where systemd is not running: it starts services as their units specify.
//!
//! It reads the unit file and the files in its `.d` directory, creates the directories that the unit names, and runs
//! ExecStart as User and Group, with the limit on open files and without capabilities. With `ProtectSystem=strict`, the
//! file system is read-only except for the paths that the unit names. A service of type `notify` counts as running when
//! it reports this on NOTIFY_SOCKET. System call filters are not applied, because they need systemd.

use anyhow::{Context, Result, bail};
use brisk_testkit::server::signal;
use brisk_testkit::wait::holds_within;
use std::fs;
use std::os::unix::net::UnixDatagram;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

/// The directories of units. A file in an earlier directory overrides the file with the same name in a later one.
const UNIT_DIRECTORIES: &[&str] =
    &["/etc/systemd/system", "/usr/lib/systemd/system", "/lib/systemd/system"];
/// The directory with the process IDs of running services and their standard output.
const STATE: &str = "/run/units";
/// The time within which a service must start or stop.
const LIMIT: Duration = Duration::from_secs(60);

/// Runs `systemctl [OPTION …] VERB [UNIT …]`, as far as packages and documents use it.
pub(crate) fn systemctl(words: &[String]) -> Result<bool> {
    let quiet = words.iter().any(|word| word == "--quiet" || word == "-q");
    let now = words.iter().any(|word| word == "--now");
    let mut words = words.iter().filter(|word| !word.starts_with('-')).map(String::as_str);
    let verb = words.next().context("systemctl: no verb")?;
    let mut good = true;
    for name in words {
        let name = if name.contains('.') { name.to_owned() } else { format!("{name}.service") };
        good &= act(verb, &name, quiet, now)?;
    }
    Ok(good)
}

#[expect(clippy::print_stdout, reason = "a state is the output of the command")]
fn act(verb: &str, name: &str, quiet: bool, now: bool) -> Result<bool> {
    let say = |text: &str| {
        if !quiet {
            println!("{text}");
        }
    };
    match verb {
        "start" => start(name).map(|()| true),
        "stop" => stop(name).map(|()| true),
        "restart" => stop(name).and_then(|()| start(name)).map(|()| true),
        "try-restart" if running(name).is_none() => Ok(true),
        "try-restart" => act("restart", name, quiet, now),
        "is-active" | "status" => {
            let runs = running(name);
            say(if runs.is_some() { "active" } else { "inactive" });
            Ok(runs.is_some())
        }
        "is-enabled" => {
            let enabled = link(name).exists();
            say(if enabled { "enabled" } else { "disabled" });
            Ok(enabled)
        }
        // Debian's presets enable every unit.
        "enable" | "preset" => {
            let file = file(name)?;
            if !link(name).exists() {
                fs::create_dir_all(link(name).parent().unwrap_or(Path::new("/")))?;
                std::os::unix::fs::symlink(file, link(name))?;
            }
            if now { start(name).map(|()| true) } else { Ok(true) }
        }
        "disable" => {
            let _ = fs::remove_file(link(name));
            if now { stop(name).map(|()| true) } else { Ok(true) }
        }
        "daemon-reload" => Ok(true),
        _ => bail!("systemctl: no verb {verb}"),
    }
}

fn link(name: &str) -> PathBuf {
    Path::new("/etc/systemd/system/multi-user.target.wants").join(name)
}

fn file(name: &str) -> Result<PathBuf> {
    let mut files = UNIT_DIRECTORIES.iter().map(|directory| Path::new(directory).join(name));
    files.find(|path| path.exists()).with_context(|| format!("there is no unit {name}"))
}

/// The settings of a unit for its service, in order.
#[derive(Debug)]
struct Unit {
    lines: Vec<(String, String)>,
}

impl Unit {
    fn load(name: &str) -> Result<Unit> {
        let mut text = fs::read_to_string(file(name)?).context(name.to_owned())?;
        let mut more: Vec<PathBuf> = match fs::read_dir(format!("/etc/systemd/system/{name}.d")) {
            Ok(directory) => directory.filter_map(|entry| Some(entry.ok()?.path())).collect(),
            Err(_) => Vec::new(),
        };
        more.sort();
        for path in more {
            text.push('\n');
            text.push_str(&fs::read_to_string(&path).with_context(|| path.display().to_string())?);
        }
        Ok(Unit::parse(&text))
    }

    fn parse(text: &str) -> Unit {
        let mut section = "";
        let mut lines = Vec::new();
        for line in text.lines().map(str::trim) {
            if line.starts_with('[') {
                section = line;
            } else if let Some((key, value)) = line.split_once('=')
                && section == "[Service]"
                && !line.starts_with(['#', ';'])
            {
                lines.push((key.trim().to_owned(), value.trim().to_owned()));
            }
        }
        Unit { lines }
    }

    /// The last value of a setting.
    fn get(&self, key: &str) -> Option<&str> {
        self.lines.iter().rev().find(|(k, _)| k == key).map(|(_, value)| value.as_str())
    }

    /// The values of all lines of a setting. An empty line removes the previous values.
    fn list(&self, key: &str) -> Vec<&str> {
        let mut words = Vec::new();
        for (_, value) in self.lines.iter().filter(|(k, _)| k == key) {
            if value.is_empty() {
                words.clear();
            }
            words.extend(value.split_whitespace());
        }
        words
    }

    /// The directories that are created for the service, with their modes.
    fn directories(&self) -> Vec<(PathBuf, String)> {
        let mut directories = Vec::new();
        for (key, above) in [
            ("RuntimeDirectory", "/run"),
            ("StateDirectory", "/var/lib"),
            ("LogsDirectory", "/var/log"),
        ] {
            let mode = self.get(&format!("{key}Mode")).unwrap_or("0755");
            directories.extend(
                self.list(key).iter().map(|name| (Path::new(above).join(name), mode.to_owned())),
            );
        }
        directories
    }
}

/// The process ID of a running service.
fn running(name: &str) -> Option<u32> {
    let pid = fs::read_to_string(format!("{STATE}/{name}.pid")).ok()?.trim().parse().ok()?;
    is_alive(pid).then_some(pid)
}

/// Reports whether a process exists and is not a zombie.
fn is_alive(pid: u32) -> bool {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.rsplit_once(") ").is_some_and(|(_, rest)| !rest.starts_with('Z'))
}

fn stop(name: &str) -> Result<()> {
    let Some(pid) = running(name) else { return Ok(()) };
    signal(pid, "TERM");
    if !holds_within(LIMIT, || !is_alive(pid)) {
        bail!("{name} does not end");
    }
    for directory in Unit::load(name)?.list("RuntimeDirectory") {
        let _ = fs::remove_dir_all(Path::new("/run").join(directory));
    }
    let _ = fs::remove_file(format!("{STATE}/{name}.pid"));
    Ok(())
}

fn start(name: &str) -> Result<()> {
    if running(name).is_some() {
        return Ok(());
    }
    let unit = Unit::load(name)?;
    let (user, group) = (unit.get("User").unwrap_or("root"), unit.get("Group").unwrap_or("root"));
    fs::create_dir_all(STATE)?;
    for (directory, mode) in unit.directories() {
        fs::create_dir_all(&directory).with_context(|| directory.display().to_string())?;
        let owner = format!("{user}:{group}");
        super::run(Command::new("chown").arg(owner).arg(&directory))?;
        super::run(Command::new("chmod").arg(mode).arg(&directory))?;
    }
    let path = format!("{STATE}/{name}.notify");
    let _ = fs::remove_file(&path);
    let socket = UnixDatagram::bind(&path).with_context(|| path.clone())?;
    super::run(Command::new("chmod").args(["0666", &path]))?;
    socket.set_read_timeout(Some(Duration::from_millis(50)))?;
    let mut child = spawn(name, &unit, user, group, &path)?;
    let ready = match unit.get("Type") {
        Some("notify") => wait_for_word(&mut child, &socket),
        _ => Ok(()),
    };
    ready.with_context(|| format!("{name} does not start; see {STATE}/{name}.out"))?;
    fs::write(format!("{STATE}/{name}.pid"), child.id().to_string())?;
    Ok(())
}

/// Runs ExecStart. Each program in the chain executes the next one in its place, so the process ID is the server's.
fn spawn(name: &str, unit: &Unit, user: &str, group: &str, notify: &str) -> Result<Child> {
    let line = unit.get("ExecStart").with_context(|| format!("{name} has no ExecStart"))?;
    if line.contains(['%', '"', '\'', '$']) {
        bail!("{name}: ExecStart has more in it than words: {line}");
    }
    let mut script = String::new();
    if unit.get("ProtectSystem") == Some("strict") {
        script.push_str("mount -o remount,bind,ro /\n");
        let named = unit.list("ReadWritePaths");
        let named = named.iter().map(|path| PathBuf::from(path.trim_start_matches('-')));
        for path in unit.directories().into_iter().map(|(path, _)| path).chain(named) {
            let path = path.display();
            script.push_str(&format!(
                "if [ -e {path} ]; then mount --bind {path} {path}; \
                 mount -o remount,bind,rw {path}; fi\n"
            ));
        }
        script.push_str("mount -t tmpfs -o mode=1777 tmpfs /tmp\n");
    }
    // If the machine's own limit is lower, it applies.
    let files = unit.get("LimitNOFILE").unwrap_or("1024");
    let mut change = format!("setpriv --reuid={user} --regid={group} --init-groups");
    if matches!(unit.get("NoNewPrivileges"), Some("yes" | "true")) {
        change.push_str(" --no-new-privs");
    }
    if unit.get("CapabilityBoundingSet") == Some("") {
        change.push_str(" --bounding-set=-all --inh-caps=-all");
    }
    script.push_str(&format!(
        "umask {}\nulimit -n {files} 2>/dev/null || ulimit -n \"$(ulimit -H -n)\"\nexec {change} -- \
         env -i PATH=/usr/bin:/bin NOTIFY_SOCKET={notify} \"$@\"",
        unit.get("UMask").unwrap_or("0022")
    ));
    let out = fs::File::create(format!("{STATE}/{name}.out"))?;
    let mut command = Command::new("unshare");
    command.args(["--mount", "--propagation", "private", "--", "sh", "-euc", &script, "sh"]);
    command.args(line.split_whitespace()).stdin(Stdio::null());
    command.stderr(out.try_clone()?).stdout(out).process_group(0);
    command.current_dir("/").spawn().context("cannot run unshare")
}

/// Waits until the service says that it is ready.
fn wait_for_word(child: &mut Child, socket: &UnixDatagram) -> Result<()> {
    let mut ended = None;
    let ready = holds_within(LIMIT, || {
        let mut message = [0; 4096];
        let length = socket.recv(&mut message).unwrap_or(0);
        ended = child.try_wait().ok().flatten();
        ended.is_some() || message[..length].split(|&b| b == b'\n').any(|word| word == b"READY=1")
    });
    match ended {
        Some(status) => bail!("it ended with {status}"),
        None if !ready => bail!("it did not say READY=1 within {LIMIT:?}"),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn later_lines_of_a_unit_override_earlier_ones() {
        let unit = Unit::parse(
            "[Unit]\nUser=no\n[Service]\n# User=no\nUser=a\nLogsDirectory=x y\nLogsDirectoryMode=0750\n\
             ReadWritePaths=/a\nReadWritePaths=\nReadWritePaths=/b /c\n[Install]\nUser=no\n[Service]\nUser=b\n",
        );
        assert_eq!(unit.get("User"), Some("b"));
        assert_eq!(unit.list("ReadWritePaths"), ["/b", "/c"]);
        let directory = |name: &str| (PathBuf::from(name), "0750".to_owned());
        assert_eq!(unit.directories(), [directory("/var/log/x"), directory("/var/log/y")]);
    }
}
