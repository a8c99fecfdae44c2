//! The process as a service: in the background, under a service manager, with a pid file.
//!
//! ```text
//!  configuration ── begin: notify manager, or fork ── open sockets ── pid file ── ready ── … ── end
//! ```
//!
//! As in Redis, a process under a manager stays in the foreground regardless of `daemonize`, because the manager
//! identifies it by its process id.

use brisk_config::choice::Supervised;
use brisk_config::value::Text;
use brisk_config::{Store, os_reason};
use brisk_observe::log::Log;
use brisk_reactor::{ForkResult, fork_single_threaded};
use brisk_structures::alloc;
use rustix::process::{Signal, getpid, kill_process, setsid};
use rustix::stdio::{dup2_stderr, dup2_stdin, dup2_stdout};
use std::ffi::OsStr;
use std::fs::File;
use std::io;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// The environment variable that contains the path of systemd's socket.
const NOTIFY_SOCKET: &str = "NOTIFY_SOCKET";
/// The environment variable in which upstart passes the job's name.
const UPSTART_JOB: &str = "UPSTART_JOB";
/// The pid file of a server in the background if `pidfile` is not set.
const PID_FILE: &str = "/var/run/redis.pid";
/// How long the server waits if the manager does not read its messages.
const NOTIFY_WAIT_MAX: Duration = Duration::from_secs(1);

/// The state that is needed to notify the manager and to remove the pid file.
#[derive(Debug)]
pub struct Service {
    systemd: Option<Systemd>,
    /// True if a service manager supervises this process.
    pub is_supervised: bool,
    pid_file: Option<PathBuf>,
}

impl Service {
    /// Notifies the manager that the server is starting. Without a manager, moves to the background if that is
    /// configured: the calling process exits, and a copy of it continues. Must be called before there are other
    /// threads. Updates settings to their effective values.
    ///
    /// # Errors
    /// The process cannot move to the background.
    pub fn begin(store: &mut Store, log: &Log) -> Result<Option<Service>, String> {
        let mut service = Service { systemd: None, is_supervised: false, pid_file: None };
        let config = store.current();
        let process = &config.process;
        let found = match process.supervised {
            Supervised::Auto if std::env::var_os(UPSTART_JOB).is_some() => Supervised::Upstart,
            Supervised::Auto if std::env::var_os(NOTIFY_SOCKET).is_some() => Supervised::Systemd,
            other => other,
        };
        match found {
            Supervised::Systemd => service.join_systemd(log),
            Supervised::Upstart => service.join_upstart(log),
            Supervised::Auto | Supervised::No => {}
        }
        if service.is_supervised {
            store.adopt(|config| config.process.supervised = found);
        }
        let background = process.daemonize && !service.is_supervised;
        if background {
            let failed = |error| format!("Can't go to the background: {}", os_reason(&error));
            if go_to_background().map_err(failed)? == ForkResult::Parent {
                return Ok(None);
            }
        }
        if background && process.pidfile.is_empty() {
            store.adopt(|config| config.process.pidfile = Text::from(PID_FILE));
        }
        let config = store.current();
        if !config.process.pidfile.is_empty() {
            service.pid_file = Some(config.path_in_dir(&config.process.pidfile));
        }
        Ok(Some(service))
    }

    /// Writes the pid file, if one is configured. If this fails, the server still runs.
    pub fn write_pid_file(&self, log: &Log) {
        let Some(path) = &self.pid_file else { return };
        if let Err(error) = std::fs::write(path, format!("{}\n", std::process::id())) {
            let reason = os_reason(&error);
            log.warning(format_args!("Failed to write PID file {}: {reason}", path.display()));
        }
    }

    /// Reports to the manager that clients are served from now on.
    pub fn ready(&self, log: &Log) {
        self.notify("STATUS=Ready to accept connections\n", log);
        self.notify("READY=1\n", log);
    }

    /// Reports to the manager that a shutdown was requested.
    pub fn stopping(&self, log: &Log) {
        self.notify("STOPPING=1\n", log);
    }

    /// Removes the pid file, if one was written.
    pub fn remove_pid_file(&self, log: &Log) {
        if let Some(path) = &self.pid_file {
            log.notice(format_args!("Removing the pid file."));
            let _ = std::fs::remove_file(path);
        }
    }

    fn join_systemd(&mut self, log: &Log) {
        let Some(name) = std::env::var_os(NOTIFY_SOCKET).filter(|name| !name.is_empty()) else {
            log.warning(format_args!("systemd supervision error: {NOTIFY_SOCKET} not found!"));
            return;
        };
        match Systemd::at(&name).and_then(|systemd| {
            systemd.notify("STATUS=Brisk is loading...\n")?;
            Ok(systemd)
        }) {
            Ok(systemd) => {
                log.notice(format_args!(
                    "Supervised by systemd. Please make sure you set appropriate values for \
                     TimeoutStartSec and TimeoutStopSec in your service unit."
                ));
                self.systemd = Some(systemd);
                self.is_supervised = true;
            }
            Err(error) => log.warning(format_args!(
                "systemd supervision error: {NOTIFY_SOCKET} '{}': {}",
                name.display(),
                os_reason(&error)
            )),
        }
    }

    /// Stops the process with SIGSTOP. Upstart considers a stopped job ready and lets it continue.
    fn join_upstart(&mut self, log: &Log) {
        if std::env::var_os(UPSTART_JOB).is_none() {
            log.warning(format_args!(
                "upstart supervision requested, but {UPSTART_JOB} not found!"
            ));
            return;
        }
        log.notice(format_args!("Supervised by upstart, will stop to signal readiness."));
        self.is_supervised = kill_process(getpid(), Signal::STOP).is_ok();
    }

    fn notify(&self, message: &str, log: &Log) {
        let Some(systemd) = &self.systemd else { return };
        if let Err(error) = systemd.notify(message) {
            log.warning(format_args!("systemd supervision error: {}", os_reason(&error)));
        }
    }
}

/// The socket to systemd. A datagram has one assignment per line.
#[derive(Debug)]
struct Systemd {
    socket: UnixDatagram,
    address: SocketAddr,
}

impl Systemd {
    /// `name` is an absolute path, or `@` and a name in the abstract namespace.
    fn at(name: &OsStr) -> io::Result<Systemd> {
        let address = match name.as_bytes() {
            [b'@', name @ ..] => SocketAddr::from_abstract_name(name)?,
            [b'/', ..] => SocketAddr::from_pathname(Path::new(name))?,
            _ => return Err(io::Error::other("neither an absolute path nor @ and a name")),
        };
        let socket = UnixDatagram::unbound()?;
        socket.set_write_timeout(Some(NOTIFY_WAIT_MAX))?;
        Ok(Systemd { socket, address })
    }

    fn notify(&self, message: &str) -> io::Result<()> {
        self.socket.send_to_addr(message.as_bytes(), &self.address).map(drop)
    }
}

/// Continues as a copy without a terminal. If a log file is configured, logging continues in it. Later output on the
/// standard streams is lost.
fn go_to_background() -> io::Result<ForkResult> {
    // Stop the allocator's thread. It is started again when the settings are applied.
    alloc::purge_in_background(false);
    if fork_single_threaded()? == ForkResult::Parent {
        return Ok(ForkResult::Parent);
    }
    setsid()?;
    let null = File::options().read(true).write(true).open("/dev/null")?;
    dup2_stdin(&null)?;
    dup2_stdout(&null)?;
    dup2_stderr(&null)?;
    Ok(ForkResult::Child)
}
