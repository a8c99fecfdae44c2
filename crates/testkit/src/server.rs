//! A server process for a test: Brisk or a real Redis. It is started in its own directory on a claimed port, watched
//! through `/proc`, and stopped when the value goes out of scope.
//!
//! The process never outlives the test. `Drop` ends it, even during a panic. If `setpriv` is installed, the kernel also
//! ends it when the starting thread dies.

use crate::conn::Conn;
use crate::hang::threads_of;
use crate::port::Port;
use crate::wait::{DEADLINE, holds_within};
use std::fs::{self, File};
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

/// Environment variable with the path of the real Redis, if it is not in `PATH`.
pub const REDIS_BIN: &str = "BRISK_REDIS_BIN";
/// Environment variable with the path of our server's binary. If it is unset, cargo builds one.
pub const SERVER_BIN: &str = "BRISK_SERVER_BIN";
/// Environment variable. If it is `redis`, the integration tests run against a real Redis instead of our server, which
/// shows that the tests themselves are correct.
pub const SUBJECT: &str = "BRISK_TEST_SUBJECT";

/// The name of a server's configuration file in its directory, if it has one.
const CONFIG_FILE: &str = "server.conf";

/// Attempts to start a server. Each uses a new port, because another process may bind a port between its claim and the
/// server's bind.
const STARTS_MAX: usize = 5;
/// The number of lines at the end of a log that matter.
const LOG_TAIL: usize = 30;
/// The line in the log of a server that has rejected a shutdown.
const REJECTED: &str = "Errors trying to shut down the server";
/// The time between two requests to a server that has rejected a shutdown.
const REJECTED_PAUSE: Duration = Duration::from_millis(500);

/// The program to run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Program {
    /// Our server.
    Brisk,
    /// The real Redis.
    Redis,
    /// Any compatible server that accepts `--directive value` arguments.
    At(PathBuf),
}

/// A server to be started.
#[derive(Debug, Clone)]
pub struct Launch {
    program: Program,
    directives: Vec<(String, String)>,
    cpu: Option<usize>,
    under: Vec<String>,
    loading: bool,
    file: Option<String>,
    words: Vec<String>,
}

impl Launch {
    /// A server of `program` with the settings that tests need: no persistence, DEBUG and protected settings allowed,
    /// no wait for replicas at shutdown, and no wait for more replicas before a synchronization.
    pub fn new(program: Program) -> Launch {
        Launch::bare(program)
            .set("save", "")
            .set("appendonly", "no")
            .set("enable-debug-command", "yes")
            .set("enable-protected-configs", "yes")
            // The servers of a test exit in any order, and links between them may be blocked.
            .set("shutdown-timeout", "0")
            // By default a primary waits five seconds for more replicas.
            .set("repl-diskless-sync-delay", "0")
    }

    /// A server of `program` that sets only where it listens and writes.
    pub const fn bare(program: Program) -> Launch {
        Launch {
            program,
            directives: Vec::new(),
            cpu: None,
            under: Vec::new(),
            loading: false,
            file: None,
            words: Vec::new(),
        }
    }

    /// The real Redis.
    pub fn redis() -> Launch {
        Launch::new(Program::Redis)
    }

    /// The server under test: ours, unless the environment variable [`SUBJECT`] says `redis`.
    pub fn subject() -> Launch {
        Launch::new(if subject_is_redis() { Program::Redis } else { Program::Brisk })
    }

    /// Adds a configuration directive, which replaces an earlier one with the same name.
    pub fn set(mut self, directive: &str, value: &str) -> Launch {
        self.directives.retain(|(name, _)| name != directive);
        self.directives.push((directive.to_owned(), value.to_owned()));
        self
    }

    /// Gives the server a configuration file with this text, which the server may rewrite. Settings of [`Launch::set`]
    /// come after it, even when the server is restarted.
    pub fn file(mut self, text: &str) -> Launch {
        self.file = Some(text.to_owned());
        self
    }

    /// Adds a command-line argument after the configuration file.
    pub fn word(mut self, word: &str) -> Launch {
        self.words.push(word.to_owned());
        self
    }

    /// Pins the process to one CPU, for measurements.
    pub const fn on_cpu(mut self, cpu: usize) -> Launch {
        self.cpu = Some(cpu);
        self
    }

    /// Runs the server under another program. `words` is that program's command line, which precedes the server's.
    pub fn under(mut self, words: &[&str]) -> Launch {
        self.under = words.iter().map(|word| (*word).to_owned()).collect();
        self
    }

    /// Considers the server started as soon as it replies, even if it replies that it is loading.
    pub const fn while_loading(mut self) -> Launch {
        self.loading = true;
        self
    }

    /// Starts the server and waits until it replies.
    #[track_caller]
    pub fn start(self) -> Server {
        match self.try_start() {
            Ok(server) => server,
            Err(error) => panic!("{error}"),
        }
    }

    /// Like [`Launch::start`], but returns an error text, which includes the end of the server's log.
    pub fn try_start(self) -> Result<Server, String> {
        let mut last = String::new();
        for _ in 0..STARTS_MAX {
            match self.start_once() {
                Ok(server) => return Ok(server),
                Err(error) if error.contains("in use") => last = error,
                Err(error) => return Err(error),
            }
        }
        Err(last)
    }

    /// Restarts a killed server on its port, with the files that it left.
    #[track_caller]
    pub fn start_again(&self, server: &mut Server) {
        assert!(!server.is_running(), "the server still runs");
        let started = self.spawn(&server.port, &server.dir).and_then(|child| {
            (server.child, server.stopped) = (child, false);
            self.wait_until_up(server)
        });
        if let Err(error) = started {
            panic!("{error}");
        }
    }

    /// Like [`Launch::start_again`], but on another port.
    #[track_caller]
    pub fn start_elsewhere(&self, server: &mut Server) {
        server.port = Port::claim();
        self.start_again(server);
    }

    fn start_once(&self) -> Result<Server, String> {
        let port = Port::claim();
        let dir = fresh_dir()?;
        if let Some(text) = &self.file {
            let written = fs::write(dir.join(CONFIG_FILE), text);
            written.map_err(|e| format!("cannot write {}: {e}", dir.display()))?;
        }
        let child = self.spawn(&port, &dir)?;
        let mut server = Server { child, port, dir, stopped: false };
        self.wait_until_up(&mut server)?;
        Ok(server)
    }

    fn spawn(&self, port: &Port, dir: &Path) -> Result<Child, String> {
        let log = dir.join("log");
        let open = || File::options().create(true).append(true).open(&log);
        let (Ok(out), Ok(err)) = (open(), open()) else {
            return Err(format!("cannot write {}", log.display()));
        };
        let mut command = self.command()?;
        if self.file.is_some() {
            command.arg(dir.join(CONFIG_FILE));
        }
        command.args(&self.words);
        command.args(["--port", &port.number().to_string(), "--bind", "127.0.0.1"]);
        command.arg("--dir").arg(dir).arg("--unixsocket").arg(dir.join("socket"));
        for (name, value) in &self.directives {
            command.arg(format!("--{name}"));
            // A directive with several values becomes several arguments: `--save 3600 1`.
            let words = crate::words::split(value).unwrap_or_else(|| vec![value.clone().into()]);
            if words.is_empty() {
                command.arg("");
            }
            command.args(words.iter().map(|w| String::from_utf8_lossy(w).into_owned()));
        }
        command.current_dir(dir).stdin(Stdio::null()).stdout(out).stderr(err);
        command.spawn().map_err(|e| format!("cannot run {command:?}: {e}"))
    }

    fn wait_until_up(&self, server: &mut Server) -> Result<(), String> {
        let mut ended = None;
        let up = holds_within(DEADLINE, || {
            ended = server.child.try_wait().ok().flatten();
            ended.is_some() || server.replies_to_ping(self.loading)
        });
        if let Some(status) = ended {
            server.stopped = true;
            return Err(format!("the server ended with {status}:\n{}", server.log()));
        }
        if !up {
            return Err(format!("no reply to PING within {DEADLINE:?}:\n{}", server.log()));
        }
        Ok(())
    }

    fn command(&self) -> Result<Command, String> {
        let program = match &self.program {
            Program::Brisk => brisk_binary()?.to_owned(),
            Program::Redis => redis_binary(),
            Program::At(path) => path.clone(),
        };
        let mut words: Vec<std::ffi::OsString> = Vec::new();
        if Path::new("/usr/bin/setpriv").exists() {
            words.extend(["setpriv", "--pdeathsig", "KILL"].map(Into::into));
        }
        if let Some(cpu) = self.cpu {
            words.extend(["taskset".into(), "-c".into(), cpu.to_string().into()]);
        }
        words.extend(self.under.iter().map(Into::into));
        words.push(program.into());
        let mut command = Command::new(&words[0]);
        command.args(&words[1..]);
        Ok(command)
    }
}

/// Reports whether the tests run against a real Redis; see [`SUBJECT`].
pub fn subject_is_redis() -> bool {
    std::env::var(SUBJECT).is_ok_and(|subject| subject == "redis")
}

/// The program name or path of the real Redis.
pub fn redis_binary() -> PathBuf {
    std::env::var_os(REDIS_BIN).unwrap_or_else(|| "redis-server".into()).into()
}

/// A program that comes with the real Redis, such as `redis-check-aof`.
pub fn redis_tool(name: &str) -> PathBuf {
    let server = redis_binary();
    // The tool is next to the server if the server is named by its path, otherwise in `PATH`.
    if server.components().count() > 1 { server.with_file_name(name) } else { name.into() }
}

/// Our server's binary: the one that [`SERVER_BIN`] names, or one that cargo builds in the profile of the running test.
/// The build runs once per process, and does nothing if the binary is up to date.
pub fn brisk_binary() -> Result<&'static Path, String> {
    static BUILT: OnceLock<Result<PathBuf, String>> = OnceLock::new();
    let built = BUILT.get_or_init(|| match std::env::var_os(SERVER_BIN) {
        Some(path) => Ok(path.into()),
        None => build_brisk(),
    });
    built.as_deref().map_err(Clone::clone)
}

fn build_brisk() -> Result<PathBuf, String> {
    let executable = std::env::current_exe().map_err(|e| e.to_string())?;
    // target/<profile>/deps/test-1234 for tests, target/<profile>/checks for binaries.
    let profile_dir = executable
        .ancestors()
        .skip(1)
        .find(|dir| dir.file_name().is_some_and(|name| name != "deps"))
        .ok_or("the running test lies in no target directory")?;
    let profile = match profile_dir.file_name().and_then(|name| name.to_str()) {
        Some("debug") | None => "dev",
        Some(other) => other,
    };
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    // Written past libtest's output capture, because this build takes minutes in the first run of the tests.
    let note = format!(
        "note: the tests need a server: building brisk-server; to use an existing one, set {SERVER_BIN}\n"
    );
    let _ = std::io::stderr().write_all(note.as_bytes());
    let output = Command::new(cargo)
        .args(["build", "--quiet", "--package", "brisk-server", "--bin", "brisk-server"])
        .args(["--profile", profile])
        .current_dir(workspace_root())
        .env("CARGO_TARGET_DIR", profile_dir.parent().unwrap_or(profile_dir))
        .output()
        .map_err(|e| format!("cannot run cargo: {e}"))?;
    if !output.status.success() {
        let text = String::from_utf8_lossy(&output.stderr);
        return Err(format!(
            "building brisk-server failed (to use an existing one, set {SERVER_BIN}):\n{text}"
        ));
    }
    Ok(profile_dir.join("brisk-server"))
}

/// The directory of the workspace's `Cargo.toml`.
pub fn workspace_root() -> &'static Path {
    let crate_dir = Path::new(env!("CARGO_MANIFEST_DIR"));
    crate_dir.ancestors().nth(2).unwrap_or(crate_dir)
}

/// The RDB fixtures, which servers of many versions have written, sorted.
///
/// # Panics
/// If the fixtures are missing.
pub fn rdb_fixtures() -> Vec<PathBuf> {
    let root = workspace_root().join("tests/fixtures/rdb");
    let directories = [root.clone(), root.join("old")];
    let entries =
        directories.iter().flat_map(|directory| fs::read_dir(directory).expect("a directory"));
    let mut files: Vec<_> = entries.map(|entry| entry.expect("an entry").path()).collect();
    files.retain(|path| path.extension().is_some_and(|extension| extension == "rdb"));
    files.sort();
    files
}

fn fresh_dir() -> Result<PathBuf, String> {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    let dir = std::env::temp_dir().join(format!("brisk-test-{}-{number}", std::process::id()));
    // Remove the leftover of an earlier process that had our process ID.
    let _ = fs::remove_dir_all(&dir);
    fs::create_dir_all(&dir).map_err(|e| format!("cannot create {}: {e}", dir.display()))?;
    Ok(dir)
}

/// A running server.
#[derive(Debug)]
pub struct Server {
    child: Child,
    port: Port,
    dir: PathBuf,
    stopped: bool,
}

impl Server {
    /// The TCP port on 127.0.0.1.
    pub const fn port(&self) -> u16 {
        self.port.number()
    }

    /// `127.0.0.1:port`.
    pub fn address(&self) -> String {
        format!("127.0.0.1:{}", self.port())
    }

    /// Path of the Unix socket.
    pub fn unix_socket(&self) -> PathBuf {
        self.dir.join("socket")
    }

    /// The working directory.
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// Everything the process has written to standard output and standard error.
    pub fn log(&self) -> String {
        let bytes = fs::read(self.dir.join("log")).unwrap_or_default();
        String::from_utf8_lossy(&bytes).into_owned()
    }

    /// A connection that speaks RESP2.
    #[track_caller]
    pub fn connect(&self) -> Conn {
        Conn::tcp(&self.address())
    }

    /// `N` connections that speak RESP2.
    #[track_caller]
    pub fn connections<const N: usize>(&self) -> [Conn; N] {
        std::array::from_fn(|_| self.connect())
    }

    /// A connection through the Unix socket.
    #[track_caller]
    pub fn connect_unix(&self) -> Conn {
        Conn::unix(&self.unix_socket())
    }

    fn replies_to_ping(&self, while_loading: bool) -> bool {
        // A server may have no port without TLS.
        Conn::try_tcp(&self.address())
            .or_else(|_| Conn::try_unix(&self.unix_socket()))
            .and_then(|mut conn| conn.try_cmd("PING"))
            .is_ok_and(|reply| {
                let reply = reply.to_string();
                // A server that requires a password does not reveal that it is loading.
                let hides_loading =
                    reply.starts_with("(error) NOAUTH") && !self.is_ready_by_its_log();
                while_loading || !(reply.starts_with("(error) LOADING") || hides_loading)
            })
    }

    /// Reports whether the server has logged since its last start that it is ready. True if it logs elsewhere, or is a
    /// sentinel, which loads nothing.
    fn is_ready_by_its_log(&self) -> bool {
        let log = self.log();
        let since_start = log.rsplit("just started").next().unwrap_or_default();
        let ready = ["Ready to accept connections", "Running mode=sentinel"];
        !log.contains("just started") || ready.iter().any(|line| since_start.contains(line))
    }

    /// The value of a field of INFO (all sections); panics if there is no such field.
    #[track_caller]
    pub fn info(&self, field: &str) -> String {
        self.connect().info(field)
    }

    /// Waits until the field of INFO satisfies the condition. Uses one connection throughout.
    #[track_caller]
    pub fn wait_for_info(&self, field: &str, condition: impl Fn(&str) -> bool) {
        let mut conn = self.connect();
        crate::wait::wait_until(&format!("INFO field {field}"), || condition(&conn.info(field)));
    }

    /// The process id.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Resident memory in bytes.
    pub fn rss(&self) -> u64 {
        let statm = self.proc_file("statm");
        let pages: u64 = statm.split(' ').nth(1).and_then(|n| n.parse().ok()).unwrap_or(0);
        pages * 4096
    }

    /// The names of its threads.
    pub fn thread_names(&self) -> Vec<String> {
        let tasks = fs::read_dir(format!("/proc/{}/task", self.pid())).into_iter().flatten();
        let names =
            tasks.flatten().filter_map(|task| fs::read_to_string(task.path().join("comm")).ok());
        names.map(|name| name.trim_end().to_owned()).collect()
    }

    /// Bytes of its memory that are in huge pages.
    pub fn huge_page_bytes(&self) -> u64 {
        let rollup = self.proc_file("smaps_rollup");
        let line = rollup.lines().find_map(|line| line.strip_prefix("AnonHugePages:"));
        let kib = line.and_then(|line| line.trim().strip_suffix(" kB")?.parse::<u64>().ok());
        kib.unwrap_or(0) << 10
    }

    /// CPU time used so far (user and system, all threads), in clock ticks of 10 ms.
    pub fn cpu_ticks(&self) -> u64 {
        cpu_ticks(self.pid())
    }

    /// CPU time used so far, see [`cpu_ns`].
    pub fn cpu_ns(&self) -> u64 {
        cpu_ns(self.pid())
    }

    /// Number of open file descriptors, without the files in `/proc` and `/sys`, which the server opens briefly to
    /// measure itself.
    pub fn open_fds(&self) -> usize {
        let Ok(open) = fs::read_dir(format!("/proc/{}/fd", self.pid())) else { return 0 };
        let targets = open.filter_map(|fd| fs::read_link(fd.ok()?.path()).ok());
        targets.filter(|target| !target.starts_with("/proc") && !target.starts_with("/sys")).count()
    }

    fn proc_file(&self, name: &str) -> String {
        fs::read_to_string(format!("/proc/{}/{name}", self.pid())).unwrap_or_default()
    }

    /// Reports whether the process is still running.
    pub fn is_running(&mut self) -> bool {
        matches!(self.child.try_wait(), Ok(None))
    }

    /// Sends a signal, named without `SIG`.
    pub fn signal(&self, name: &str) {
        signal(self.pid(), name);
    }

    /// Sends SIGTERM and waits until the process exits. Returns the exit code, if there is one.
    #[track_caller]
    pub fn terminate(mut self) -> Option<i32> {
        match self.stop() {
            Ok(code) => code,
            Err(error) => panic!("{error}"),
        }
    }

    /// Waits until the process exits after a shutdown request, and returns its log. The shutdown must be clean.
    #[track_caller]
    pub fn ended(mut self) -> String {
        crate::wait::wait_until("the server has ended", || !self.is_running());
        let log = self.log();
        assert_eq!(self.terminate(), Some(0), "{log}");
        log
    }

    /// Kills the process.
    pub fn kill(mut self) {
        self.kill_for_now();
    }

    /// Kills the process. Its port and its files stay for [`Launch::start_again`].
    pub fn kill_for_now(&mut self) {
        self.stopped = true;
        let _ = self.child.kill();
        let _ = self.child.wait();
    }

    fn stop(&mut self) -> Result<Option<i32>, String> {
        self.stopped = true;
        signal(self.pid(), "TERM");
        let mut status = None;
        let mut look_again = Instant::now() + REJECTED_PAUSE;
        let ended = holds_within(DEADLINE, || {
            // A server rejects a shutdown while it writes its first append-only file.
            if Instant::now() >= look_again {
                look_again += REJECTED_PAUSE;
                let log = self.log();
                if log.lines().rev().take(LOG_TAIL).any(|line| line.contains(REJECTED)) {
                    signal(self.pid(), "TERM");
                }
            }
            status = self.child.try_wait().ok().flatten();
            status.is_some()
        });
        if !ended {
            let threads = threads_of(self.pid());
            let _ = self.child.kill();
            let _ = self.child.wait();
            let log = self.log();
            return Err(format!("the server ignored SIGTERM for {DEADLINE:?}:\n{log}\n{threads}"));
        }
        let status = status.ok_or("no exit status")?;
        if status.code().is_none() {
            return Err(format!("the server ended by {status}:\n{}", self.log()));
        }
        Ok(status.code())
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let outcome = if self.stopped { Ok(None) } else { self.stop() };
        if std::thread::panicking() {
            let log = self.log();
            let tail: Vec<&str> = log.lines().rev().take(LOG_TAIL).collect();
            eprintln!("--- end of the server's log");
            tail.iter().rev().for_each(|line| eprintln!("{line}"));
        }
        let _ = fs::remove_dir_all(&self.dir);
        match outcome {
            Err(error) if !std::thread::panicking() => panic!("{error}"),
            _ => {}
        }
    }
}

/// Sends a process a signal, named without `SIG`. Does nothing if the process has ended. After STOP and KILL, waits
/// until no thread of the process is running: on a busy machine, threads continue until one of them has handled the
/// signal, and the port of a killed process stays in use until its last thread has ended.
#[track_caller]
pub fn signal(pid: u32, name: &str) {
    // The shell's built-in `kill` is the only safe way to send a signal without a dependency.
    let words = format!("kill -{name} {pid}");
    let _ = Command::new("sh").args(["-c", &words]).stderr(Stdio::null()).status();
    if ["STOP", "KILL"].contains(&name) {
        crate::wait::wait_until("no thread of the process to run", || is_stopped(pid));
    }
}

/// True if no thread of a process is running, or the process has ended.
fn is_stopped(pid: u32) -> bool {
    let tasks = fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten();
    let mut stats = tasks.filter_map(|task| fs::read_to_string(task.path().join("stat")).ok());
    // The thread state follows the name in parentheses.
    stats.all(|stat| stat.rsplit(") ").next().is_some_and(|rest| rest.starts_with(['T', 'Z', 'X'])))
}

/// CPU time that a process has used (user and system, all threads), in clock ticks of 10 ms.
pub fn cpu_ticks(pid: u32) -> u64 {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    // The name in parentheses may contain blanks; fields are counted after it.
    let fields: Vec<&str> = stat.rsplit(") ").next().unwrap_or("").split(' ').collect();
    let tick = |i: usize| fields.get(i).and_then(|n| n.parse().ok()).unwrap_or(0u64);
    tick(11) + tick(12)
}

/// CPU time of a process's live threads in nanoseconds, from the scheduler's statistics. Falls back to ticks if the
/// kernel has no such statistics.
pub fn cpu_ns(pid: u32) -> u64 {
    let precise = || {
        let mut total = 0u64;
        for task in fs::read_dir(format!("/proc/{pid}/task")).ok()? {
            let Ok(text) = fs::read_to_string(task.ok()?.path().join("schedstat")) else {
                continue; // the thread has just ended
            };
            total += text.split(' ').next()?.parse::<u64>().ok()?;
        }
        Some(total)
    };
    precise().filter(|&ns| ns > 0).unwrap_or_else(|| cpu_ticks(pid) * 10_000_000)
}
