//! The servers of a measurement: ours (with one or all I/O back ends) and the peer.

use super::Setup;
use anyhow::{Context, Result, bail};
use brisk_testkit::server::{Launch, Program, SERVER_BIN, Server, workspace_root};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use std::time::{Duration, Instant};

/// The program of the peer, unless `--peer` names others.
pub(crate) const PEER: &str = "redis-server";
/// The CPU of the servers; the load runs on the next one.
pub(crate) const SERVER_CPU: usize = 0;
pub(crate) const LOAD_CPU: usize = 1;

/// File descriptors that the largest cases need, with a margin.
const DESCRIPTORS_MIN: u64 = 12_000;

/// The running servers.
pub(crate) struct Sides {
    /// Our servers with their labels (empty if there is only one).
    pub(crate) ours: Vec<(String, Server)>,
    pub(crate) theirs: Server,
}

impl Sides {
    /// Starts our server with its default back end, and the peer.
    pub(crate) fn start(setup: &Setup<'_>) -> Result<Sides> {
        let ours = ours(setup, 1)?.try_start().map_err(anyhow::Error::msg)?;
        Ok(Sides { ours: vec![(String::new(), ours)], theirs: peer(setup)? })
    }

    /// Starts our server once for each I/O back end, and the peer.
    pub(crate) fn start_each_backend(setup: &Setup<'_>) -> Result<Sides> {
        if setup.options.text("ours").is_some_and(|ours| ours.contains("redis")) {
            return Sides::start(setup);
        }
        let mut servers = Vec::new();
        for (backend, label) in
            [("auto", ""), ("epoll", ", epoll alone"), ("io_uring", ", io_uring alone")]
        {
            match ours(setup, 1)?.set("io-backend", backend).try_start() {
                Ok(server) => servers.push((label.to_owned(), server)),
                Err(error) => eprintln!("bench: without {backend}: {error}"),
            }
        }
        if servers.is_empty() {
            bail!("our server starts with none of the back ends");
        }
        Ok(Sides { ours: servers, theirs: peer(setup)? })
    }

    /// All servers, ours first.
    pub(crate) fn all(&self) -> Vec<&Server> {
        self.ours.iter().map(|(_, server)| server).chain([&self.theirs]).collect()
    }

    /// Prints what limits the measurements on this machine, and widens limits where possible until the returned value
    /// is dropped.
    pub(crate) fn check_machine() -> Result<Option<Widened>> {
        let cpus = std::thread::available_parallelism()?.get();
        if cpus < 2 {
            eprintln!(
                "bench: only one CPU: server and load share it, so the rates are not meaningful"
            );
        }
        let limits = fs::read_to_string("/proc/self/limits")?;
        let files = limits.lines().find(|l| l.starts_with("Max open files")).unwrap_or("");
        let soft: u64 = files.split_whitespace().nth(3).and_then(|n| n.parse().ok()).unwrap_or(0);
        if soft < DESCRIPTORS_MIN {
            bail!("only {soft} open files allowed; run `ulimit -n {DESCRIPTORS_MIN}` first");
        }
        let before = fs::read_to_string(PORT_RANGE)?;
        let bounds: Vec<u32> = before.split_whitespace().filter_map(|n| n.parse().ok()).collect();
        if bounds.len() == 2 && bounds[1] - bounds[0] < 34_000 {
            // The range is above the ports of the servers themselves.
            match fs::write(PORT_RANGE, "31000 65535") {
                Ok(()) => {
                    eprintln!(
                        "bench: {PORT_RANGE} is set to 31000 65535 for this run; it was {}",
                        before.trim()
                    );
                    return Ok(Some(Widened { before }));
                }
                Err(error) => eprintln!("bench: {PORT_RANGE} stays {}: {error}", before.trim()),
            }
        }
        Ok(None)
    }
}

/// Moves the calling thread to the CPU of the load, where redis-benchmark runs. On the server's CPU it would take time
/// from the server, and more so the faster the server is.
pub(crate) fn load_from_here() -> Result<()> {
    let cpu = LOAD_CPU.to_string();
    change_thread("taskset", &["-c", "-p", &cpu])
}

/// Lowers the priority of the calling thread, so that the other threads of the load do not wait while it processes its
/// replies.
pub(crate) fn stand_back() -> Result<()> {
    change_thread("renice", &["-n", "19", "-p"])
}

/// Raises the priority of the calling thread above all others on its CPU, so that it measures the server and not the
/// scheduling delay of this machine.
pub(crate) fn step_forward() -> Result<()> {
    change_thread("chrt", &["-f", "-p", "1"])
}

fn change_thread(program: &str, words: &[&str]) -> Result<()> {
    let thread = fs::read_link("/proc/thread-self")?;
    let id = thread.file_name().context("/proc/thread-self has no thread ID")?;
    let done = Command::new(program).args(words).arg(id).output()?;
    if !done.status.success() {
        bail!("{program}: {}", String::from_utf8_lossy(&done.stderr));
    }
    Ok(())
}

/// The port range of outgoing connections. Each short connection uses a port, even for a while after it is closed.
const PORT_RANGE: &str = "/proc/sys/net/ipv4/ip_local_port_range";

/// The original port range, which is restored on drop.
pub(crate) struct Widened {
    before: String,
}

impl Drop for Widened {
    fn drop(&mut self) {
        if let Err(error) = fs::write(PORT_RANGE, &self.before) {
            eprintln!("bench: {PORT_RANGE} could not be restored: {error}");
        }
    }
}

fn quiet(program: Program) -> Launch {
    Launch::new(program)
        .set("maxclients", "12000")
        .set("tcp-backlog", "8192")
        .set("loglevel", "warning")
}

/// Our server, pinned, with `workers` workers.
pub(crate) fn ours(setup: &Setup<'_>, workers: usize) -> Result<Launch> {
    let program = match setup.options.text("ours") {
        Some(program) => Program::At(program.into()),
        None => Program::At(release_binary()?),
    };
    let is_redis = setup.options.text("ours").is_some_and(|program| program.contains("redis"));
    let launch = quiet(program);
    let launch = if is_redis { launch } else { launch.set("threads", &workers.to_string()) };
    Ok(if workers == 1 { launch.on_cpu(SERVER_CPU) } else { launch })
}

/// The peer, pinned.
pub(crate) fn peer(setup: &Setup<'_>) -> Result<Server> {
    let launch = unpinned_peer(setup).on_cpu(SERVER_CPU);
    launch.try_start().map_err(anyhow::Error::msg).context("the peer")
}

/// The peer on all CPUs.
pub(crate) fn unpinned_peer(setup: &Setup<'_>) -> Launch {
    quiet(Program::At(setup.peer.into()))
}

/// The path of our server's release build.
pub(crate) fn release_binary() -> Result<PathBuf> {
    match std::env::var_os(SERVER_BIN) {
        Some(path) => Ok(path.into()),
        None => release_program("brisk-server")
            .with_context(|| format!("{SERVER_BIN} could name a server that is built already")),
    }
}

/// The release build of the program in the package of the same name.
pub(crate) fn release_program(name: &str) -> Result<PathBuf> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let status = Command::new(cargo)
        .args(["build", "--release", "--quiet", "--package", name, "--bin", name])
        .current_dir(workspace_root())
        .status()?;
    if !status.success() {
        bail!("building {name} failed");
    }
    let executable = std::env::current_exe()?;
    let target = executable.ancestors().nth(2).unwrap_or(Path::new("target"));
    Ok(target.join("release").join(name))
}

/// Part of a server's work without the server: an example program of the reactor, pinned like a server.
pub(crate) struct Bare {
    process: Child,
    pub(crate) port: u16,
}

impl Bare {
    /// The event loop that replies to PING, with the back end that `server` uses.
    pub(crate) fn ping_loop(server: &Server) -> Result<Bare> {
        Bare::start("ping_loop", &["--backend", &server.info("io_backend")])
    }

    /// Messages that are forwarded with one write per subscriber.
    pub(crate) fn fan_out() -> Result<Bare> {
        Bare::start("fan_out", &[])
    }

    /// Builds and starts `example`.
    fn start(example: &str, options: &[&str]) -> Result<Bare> {
        let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
        let build = ["build", "--release", "--quiet", "--package", "brisk-reactor"];
        let status = Command::new(cargo)
            .args(build)
            .args(["--example", example])
            .current_dir(workspace_root())
            .status()?;
        if !status.success() {
            bail!("building {example} failed");
        }
        let executable = std::env::current_exe()?;
        let target = executable.ancestors().nth(2).unwrap_or(Path::new("target"));
        let port = std::net::TcpListener::bind("127.0.0.1:0")?.local_addr()?.port();
        let process = Command::new("taskset")
            .args(["-c", &SERVER_CPU.to_string()])
            .arg(target.join("release/examples").join(example))
            .args(["--port", &port.to_string()])
            .args(options)
            .spawn()?;
        let bare = Bare { process, port };
        let deadline = Instant::now() + Duration::from_secs(5);
        while std::net::TcpStream::connect(("127.0.0.1", port)).is_err() {
            if Instant::now() > deadline {
                bail!("{example} does not listen");
            }
            std::thread::yield_now();
        }
        Ok(bare)
    }

    /// `taskset` executes the program in its own process, so its process ID is that of the program.
    pub(crate) fn pid(&self) -> u32 {
        self.process.id()
    }
}

impl Drop for Bare {
    fn drop(&mut self) {
        // If the process has already ended, there is nothing to stop.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}
