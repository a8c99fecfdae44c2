//! The servers of a measurement: ours (on one or both I/O back ends) and the peer.

use super::Setup;
use anyhow::{Context, Result, bail};
use brisk_testkit::server::{Launch, Program, SERVER_BIN, Server, workspace_root};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use std::time::{Duration, Instant};

/// CPU of the servers; the load runs on the next one.
pub(crate) const SERVER_CPU: usize = 0;
pub(crate) const LOAD_CPU: usize = 1;

/// Descriptors the largest cases need, with room to spare.
const DESCRIPTORS_MIN: u64 = 12_000;

/// Ours and theirs, running.
pub(crate) struct Sides {
    /// Our servers with the text that distinguishes them (empty if there is only one).
    pub(crate) ours: Vec<(String, Server)>,
    pub(crate) theirs: Server,
}

impl Sides {
    /// Starts our server as it starts by default, and the peer.
    pub(crate) fn start(setup: &Setup<'_>) -> Result<Sides> {
        let ours = ours(setup, 1)?.try_start().map_err(anyhow::Error::msg)?;
        Ok(Sides { ours: vec![(String::new(), ours)], theirs: peer(setup)? })
    }

    /// Starts our server once per I/O back end, and the peer.
    pub(crate) fn start_each_backend(setup: &Setup<'_>) -> Result<Sides> {
        if setup.options.text("ours").is_some_and(|ours| ours.contains("redis")) {
            return Sides::start(setup);
        }
        let mut servers = Vec::new();
        for backend in ["epoll", "io_uring"] {
            match ours(setup, 1)?.set("io-backend", backend).try_start() {
                Ok(server) => servers.push((format!(", {backend}"), server)),
                Err(error) => eprintln!("bench: without {backend}: {error}"),
            }
        }
        if servers.is_empty() {
            bail!("our server starts on no back end");
        }
        Ok(Sides { ours: servers, theirs: peer(setup)? })
    }

    /// All servers, ours first.
    pub(crate) fn all(&self) -> Vec<&Server> {
        self.ours.iter().map(|(_, server)| server).chain([&self.theirs]).collect()
    }

    /// Says what of this machine limits the measurements, and widens what may be widened until the
    /// returned value goes.
    pub(crate) fn check_machine() -> Result<Option<Widened>> {
        let cpus = std::thread::available_parallelism()?.get();
        if cpus < 2 {
            eprintln!("bench: one CPU only: server and load share it, the rates mean little");
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
            // Above the ports of the servers themselves.
            match fs::write(PORT_RANGE, "31000 65535") {
                Ok(()) => {
                    eprintln!("bench: {PORT_RANGE} is 31000 65535 for now, else {}", before.trim());
                    return Ok(Some(Widened { before }));
                }
                Err(error) => eprintln!("bench: {PORT_RANGE} stays {}: {error}", before.trim()),
            }
        }
        Ok(None)
    }
}

/// Moves the calling thread to the CPU of the load, where redis-benchmark runs, too: on the CPU of the server it would
/// take time from the server, and the more, the less the server itself needs.
pub(crate) fn load_from_here() -> Result<()> {
    let cpu = LOAD_CPU.to_string();
    change_thread("taskset", &["-c", "-p", &cpu])
}

/// Lets the other threads of the load go first: what this one does with its replies is nothing that
/// they should wait for.
pub(crate) fn stand_back() -> Result<()> {
    change_thread("renice", &["-n", "19", "-p"])
}

/// Has the calling thread go before all others of its CPU: what it measures is how long a server takes,
/// not how long this machine takes to let it look.
pub(crate) fn step_forward() -> Result<()> {
    change_thread("chrt", &["-f", "-p", "1"])
}

fn change_thread(program: &str, words: &[&str]) -> Result<()> {
    let thread = fs::read_link("/proc/thread-self")?;
    let id = thread.file_name().context("the name of this thread")?;
    let done = Command::new(program).args(words).arg(id).output()?;
    if !done.status.success() {
        bail!("{program}: {}", String::from_utf8_lossy(&done.stderr));
    }
    Ok(())
}

/// Ports of outgoing connections: one per short connection, kept for a while after its end.
const PORT_RANGE: &str = "/proc/sys/net/ipv4/ip_local_port_range";

/// The range of ports as it was; written back at the end.
pub(crate) struct Widened {
    before: String,
}

impl Drop for Widened {
    fn drop(&mut self) {
        if let Err(error) = fs::write(PORT_RANGE, &self.before) {
            eprintln!("bench: {PORT_RANGE} could not be set back: {error}");
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
    quiet(Program::At(setup.options.text("peer").unwrap_or("redis-server").into()))
}

/// Our server, built for release.
pub(crate) fn release_binary() -> Result<PathBuf> {
    match std::env::var_os(SERVER_BIN) {
        Some(path) => Ok(path.into()),
        None => release_program("brisk-server")
            .with_context(|| format!("{SERVER_BIN} could name a server that is built already")),
    }
}

/// A program of the package of the same name, built for release.
pub(crate) fn release_program(name: &str) -> Result<PathBuf> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let status = Command::new(cargo)
        .args(["build", "--release", "--quiet", "--package", name, "--bin", name])
        .current_dir(workspace_root())
        .status()?;
    if !status.success() {
        bail!("building {name} failed");
    }
    let here = std::env::current_exe()?;
    let target = here.ancestors().nth(2).unwrap_or(Path::new("target"));
    Ok(target.join("release").join(name))
}

/// Part of a server's work without the server: an example of the reactor's, pinned like a server.
pub(crate) struct Bare {
    process: Child,
    pub(crate) port: u16,
}

impl Bare {
    /// The event loop that replies to PING, on the back end of the server `beside`.
    pub(crate) fn ping_loop(beside: &Server) -> Result<Bare> {
        Bare::start("ping_loop", &["--backend", &beside.info("multiplexing_api")])
    }

    /// Messages passed on with one write per subscriber.
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
        let here = std::env::current_exe()?;
        let target = here.ancestors().nth(2).unwrap_or(Path::new("target"));
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

    /// `taskset` becomes the program it starts, so its id is the loop's.
    pub(crate) fn pid(&self) -> u32 {
        self.process.id()
    }
}

impl Drop for Bare {
    fn drop(&mut self) {
        // It may have ended by itself; then there is nothing to stop.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}
