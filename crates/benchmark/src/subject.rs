//! A measured server: one that is already running, or one that this program starts and stops by its process ID.

use crate::engine::plan::{SessionSetup, Target};
use crate::load::Material;
use crate::load::random::Random;
use crate::load::tag::Tag;
use crate::load::template::{Places, Template};
use crate::load::{suite, template};
use crate::requester::Requester;
use crate::resources::{Usage, listener_of};
use brisk_dial::address::Address;
use brisk_resp::Value;
use rustix::process::{Pid, Signal, kill_process};
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};
use std::fs::{self, File};
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

/// The time within which a server must reply after its start, and exit after SIGTERM.
const START_TIMEOUT: Duration = Duration::from_secs(30);
const STOP_TIMEOUT: Duration = Duration::from_secs(15);
/// Interval between two checks.
const LOOK_EVERY: Duration = Duration::from_millis(10);
/// Maximum number of ports to try: another process may take a port before the server binds it.
const STARTS_MAX: usize = 5;
/// Lines of a server's output that are shown if it does not start.
const LOG_LINES_SHOWN: usize = 20;
const SETPRIV: &str = "/usr/bin/setpriv";
/// Number of values that [`Subject::fill`] writes in one batch.
const FILL_BATCH: u64 = 1000;

/// A server as the command line names it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SubjectSpec {
    /// The name of the server in reports.
    pub name: String,
    /// An address, or a command.
    pub place: Place,
}

/// Where a server comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Place {
    /// The server at this address is already running.
    At(String),
    /// This command starts it; `{port}`, `{socket}` and `{dir}` are filled in.
    StartedBy(String),
}

impl SubjectSpec {
    /// Reads `[name=]address` or `[name=]command`. A text with a blank is a command.
    #[must_use]
    pub fn parse(text: &str) -> SubjectSpec {
        let named = text.split_once('=').filter(|(name, _)| {
            let is_word = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
            !name.is_empty() && !name.starts_with('-') && name.bytes().all(is_word)
        });
        let (name, rest) = match named {
            Some((name, rest)) => (Some(name), rest.trim()),
            None => (None, text.trim()),
        };
        let program = || {
            let first = rest.split_whitespace().next().unwrap_or(rest);
            first.rsplit('/').next().unwrap_or(first).to_owned()
        };
        if rest.contains(char::is_whitespace) {
            let name = name.map_or_else(program, str::to_owned);
            SubjectSpec { name, place: Place::StartedBy(rest.to_owned()) }
        } else {
            let name = name.unwrap_or(rest).to_owned();
            SubjectSpec { name, place: Place::At(rest.to_owned()) }
        }
    }
}

/// A running server.
#[derive(Debug)]
pub struct Subject {
    /// The name of the server in reports.
    pub name: String,
    /// How it is reached.
    pub target: Target,
    /// Its process ID, if it runs on this machine and access is allowed.
    pub pid: Option<u32>,
    /// The name and version that the server reports.
    pub version: Option<String>,
    started: Option<Started>,
}

/// A server that this program started. Dropping this value stops it.
#[derive(Debug)]
struct Started {
    child: Child,
    /// Dropped after the process has ended.
    _dir: Directory,
}

/// A directory created for a server. Dropping this value deletes it.
#[derive(Debug)]
struct Directory(PathBuf);

impl Subject {
    /// Connects to a server that is already running.
    ///
    /// # Errors
    /// If the server does not reply.
    pub fn at(name: &str, target: Target) -> Result<Subject, String> {
        let version = version(&target)?;
        let pid = listener_of(&target.address);
        Ok(Subject { name: name.to_owned(), target, pid, version, started: None })
    }

    /// Starts a server on these CPUs (any, if none are named), in a separate directory, and waits until it replies.
    ///
    /// # Errors
    /// If the server exits, or does not reply in time. The error contains the end of its output.
    pub fn start(
        name: &str,
        command: &str,
        cpus: &[usize],
        target_at: impl Fn(Address) -> Result<Target, String>,
    ) -> Result<Subject, String> {
        let mut last = String::new();
        for _ in 0..STARTS_MAX {
            match Subject::start_once(name, command, cpus, &target_at) {
                Ok(subject) => return Ok(subject),
                Err(error) if error.contains("in use") => last = error,
                Err(error) => return Err(error),
            }
        }
        Err(last)
    }

    fn start_once(
        name: &str,
        command: &str,
        cpus: &[usize],
        target_at: impl Fn(Address) -> Result<Target, String>,
    ) -> Result<Subject, String> {
        let dir = Directory(fresh_dir()?);
        let socket = dir.0.join("socket");
        let (port, says_port) = match port_in(command) {
            Some(port) => (port, true),
            None => (free_port()?, command.contains("{port}")),
        };
        let address = if says_port {
            Address::tcp("127.0.0.1", port)?
        } else if command.contains("{socket}") {
            Address::Unix(socket.clone())
        } else {
            return Err(format!(
                "{name}: the command has no {{port}}; write it in place of the port"
            ));
        };
        let filled = command
            .replace("{port}", &port.to_string())
            .replace("{socket}", &socket.display().to_string())
            .replace("{dir}", &dir.0.display().to_string());
        let log = dir.0.join("log");
        let child =
            spawn(&filled, &dir.0, &log, cpus).map_err(|error| format!("{name}: {error}"))?;
        let pid = child.id();
        let mut started = Started { child, _dir: dir };
        let target = target_at(address)?;
        let begun = Instant::now();
        let version = loop {
            if let Ok(Some(status)) = started.child.try_wait() {
                return Err(format!("{name} exited with {status}:\n{}", tail(&log)));
            }
            match version(&target) {
                Ok(version) => break version,
                Err(error) if begun.elapsed() > START_TIMEOUT => {
                    return Err(format!("{name} does not reply: {error}\n{}", tail(&log)));
                }
                Err(_) => pause(LOOK_EVERY),
            }
        };
        let name = name.to_owned();
        Ok(Subject { name, target, pid: Some(pid), version, started: Some(started) })
    }

    /// The resources that its process has used so far.
    #[must_use]
    pub fn usage(&self) -> Option<Usage> {
        Usage::of(self.pid?)
    }

    /// Reports whether this program started the server, so that it may write and delete the server's data.
    #[must_use]
    pub fn is_own(&self) -> bool {
        self.started.is_some()
    }

    /// Writes the value of every key of the keyspace, as the SET test would. In cluster mode the keys have
    /// this hash tag.
    ///
    /// # Errors
    /// If the connection fails, or the server rejects a command.
    pub fn fill(&self, material: &Material, seed: u64, tag: Tag) -> Result<(), String> {
        let mut requester = Requester::connect(&self.target).map_err(|error| error.to_string())?;
        let set = suite::test_named("set").ok_or("the suite has no SET")?;
        let workload = material.test(set);
        let template: &Template = &workload.commands[0].template;
        let mut random = Random::new(seed);
        let (mut bytes, mut places) = (Vec::new(), Places::default());
        let keyspace = material.keyspace.unwrap_or(0).max(1);
        let mut at = 0;
        while at < keyspace {
            let end = (at + FILL_BATCH).min(keyspace);
            bytes.clear();
            for key in at..end {
                places.clear();
                template.append(&mut bytes, &mut places, &mut random);
                for &at in &places.tags {
                    if let Some(place) = bytes[at..].first_chunk_mut() {
                        *place = tag.0;
                    }
                }
                for place in &places.numbers {
                    let digits = bytes[place.at..].first_chunk_mut::<{ template::DIGITS }>();
                    if let Some(digits) = digits {
                        template::write_digits(digits, key, template::DIGITS / 2);
                    }
                }
            }
            requester.send(&bytes).map_err(|error| error.to_string())?;
            for _ in at..end {
                if let Value::Error(text) = requester.reply().map_err(|error| error.to_string())? {
                    return Err(String::from_utf8_lossy(&text).into_owned());
                }
            }
            at = end;
        }
        Ok(())
    }
}

impl Drop for Started {
    fn drop(&mut self) {
        stop(&mut self.child);
    }
}

impl Drop for Directory {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// Sends the process SIGTERM, waits, and kills it if it does not exit.
fn stop(child: &mut Child) {
    if matches!(child.try_wait(), Ok(Some(_))) {
        return;
    }
    if let Some(pid) = i32::try_from(child.id()).ok().and_then(Pid::from_raw) {
        // The process may just have exited.
        let _ = kill_process(pid, Signal::TERM);
    }
    let begun = Instant::now();
    while begun.elapsed() < STOP_TIMEOUT {
        if matches!(child.try_wait(), Ok(Some(_))) {
            return;
        }
        pause(LOOK_EVERY);
    }
    let _ = child.kill();
    let _ = child.wait();
}

/// Waits on a channel to which nothing is sent.
fn pause(time: Duration) {
    let (_sender, receiver): (_, Receiver<()>) = channel();
    let _ = receiver.recv_timeout(time);
}

fn spawn(command: &str, dir: &Path, log: &Path, cpus: &[usize]) -> Result<Child, String> {
    let open = || File::options().create(true).append(true).open(log);
    let (out, err) = match (open(), open()) {
        (Ok(out), Ok(err)) => (out, err),
        (Err(error), _) | (_, Err(error)) => return Err(format!("{}: {error}", log.display())),
    };
    // The shell parses the quotes and then replaces itself with the program, so the program has the child's process ID.
    let mut shell = Command::new("sh");
    // If `setpriv` exists, the server ends when this process ends, for whatever reason.
    let guard = if Path::new(SETPRIV).exists() { "setpriv --pdeathsig TERM " } else { "" };
    shell.arg("-c").arg(format!("exec {guard}{}", with_whole_program(command)));
    // The server writes its files to its own directory, so it cannot overwrite the user's files.
    shell.current_dir(dir).stdin(Stdio::null()).stdout(out).stderr(err);
    // A child inherits the CPU affinity of its parent, so set it before the start. Then no thread of the child ever
    // runs on another CPU.
    let before = sched_getaffinity(None).map_err(|error| error.to_string())?;
    if !cpus.is_empty() {
        let mut set = CpuSet::new();
        cpus.iter().for_each(|&cpu| set.set(cpu));
        sched_setaffinity(None, &set).map_err(|error| format!("pinning: {error}"))?;
    }
    let child = shell.spawn().map_err(|error| format!("{command}: {error}"));
    if !cpus.is_empty() {
        sched_setaffinity(None, &before).map_err(|error| format!("pinning: {error}"))?;
    }
    child
}

/// The command, with a relative path of its program made absolute.
fn with_whole_program(command: &str) -> String {
    let (program, rest) = command.split_once(char::is_whitespace).unwrap_or((command, ""));
    match fs::canonicalize(program) {
        Ok(path) if program.contains('/') => format!("{} {rest}", path.display()),
        _ => command.to_owned(),
    }
}

/// The port that a command specifies, such as `--port 7000`.
fn port_in(command: &str) -> Option<u16> {
    let mut words = command.split_whitespace();
    words.find(|word| *word == "--port")?;
    words.next()?.trim_matches(['"', '\'']).parse().ok().filter(|&port| port > 0)
}

fn free_port() -> Result<u16, String> {
    let listener = TcpListener::bind("127.0.0.1:0").map_err(|error| error.to_string())?;
    Ok(listener.local_addr().map_err(|error| error.to_string())?.port())
}

fn fresh_dir() -> Result<PathBuf, String> {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    let name = format!("brisk-benchmark-{}-{number}", std::process::id());
    let dir = std::env::temp_dir().join(name);
    fs::create_dir_all(&dir).map_err(|error| format!("{}: {error}", dir.display()))?;
    Ok(dir)
}

fn tail(log: &Path) -> String {
    let text = fs::read(log).unwrap_or_default();
    let text = String::from_utf8_lossy(&text);
    let lines: Vec<&str> = text.lines().collect();
    lines[lines.len().saturating_sub(LOG_LINES_SHOWN)..].join("\n")
}

/// The server's own name and version, if it replies to a PING; `Ok(None)` if it does not report them.
fn version(target: &Target) -> Result<Option<String>, String> {
    let mut requester = Requester::connect(target).map_err(|error| error.to_string())?;
    match requester.request(&["PING"]).map_err(|error| error.to_string())? {
        Value::Error(text) if !text.starts_with(b"NOPERM") => {
            return Err(String::from_utf8_lossy(&text).into_owned());
        }
        _ => {}
    }
    let info = requester
        .request(&["INFO", "server"])
        .ok()
        .and_then(|info| crate::requester::text_of(&info));
    let field = |name: &str| {
        let info = info.as_deref()?;
        info.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'))
    };
    let known =
        [("brisk_version", "Brisk"), ("valkey_version", "Valkey"), ("redis_version", "Redis")];
    Ok(known.iter().find_map(|&(name, shown)| Some(format!("{shown} {}", field(name)?.trim()))))
}

/// The target of a plain TCP server on this machine.
#[must_use]
pub fn local_target(port: u16) -> Target {
    let resolved = std::net::SocketAddr::from(([127, 0, 0, 1], port));
    let address = Address::Tcp { host: "127.0.0.1".to_owned(), resolved };
    Target { address, tls: None, session: SessionSetup::default() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn server_specifications_are_parsed() {
        let read = |text| {
            let SubjectSpec { name, place } = SubjectSpec::parse(text);
            match place {
                Place::At(address) => (name, address, false),
                Place::StartedBy(command) => (name, command, true),
            }
        };
        let wanted = |name: &str, place: &str, starts| (name.to_owned(), place.to_owned(), starts);
        assert_eq!(read("127.0.0.1:7000"), wanted("127.0.0.1:7000", "127.0.0.1:7000", false));
        assert_eq!(read("old=:7000"), wanted("old", ":7000", false));
        assert_eq!(
            read("/usr/bin/redis-server --port {port}"),
            wanted("redis-server", "/usr/bin/redis-server --port {port}", true)
        );
        assert_eq!(read("a=x --y=1"), wanted("a", "x --y=1", true));
        // An equals sign within a command does not separate a name.
        assert_eq!(read("./x --y=1 z"), wanted("x", "./x --y=1 z", true));
    }

    #[test]
    fn a_port_may_be_part_of_the_command() {
        assert_eq!(port_in("redis-server --port 7000 --save ''"), Some(7000));
        assert_eq!(port_in("redis-server --port {port}"), None);
        assert_eq!(port_in("redis-server"), None);
    }

    #[test]
    fn a_command_that_exits_is_reported_with_its_output() {
        let at = |address| Ok(Target { address, tls: None, session: SessionSetup::default() });
        let error = Subject::start("x", "echo broken {port}; false", &[], at).unwrap_err();
        assert!(error.contains("x exited with") && error.contains("broken"), "{error}");
        let error = Subject::start("x", "true now", &[], at).unwrap_err();
        assert!(error.contains("has no {port}"), "{error}");
    }
}
