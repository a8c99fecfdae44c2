//! The process of a node: finds its program, starts it, and checks whether it is running.

use super::{LocalLayout, LocalNode, failed};
use crate::link::plain;
use rustix::process::{Pid, Signal, kill_process};
use std::fs::{self, File};
use std::io::{Read, Seek, SeekFrom};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

/// The program of a node.
const SERVER: &str = "brisk-server";
/// The settings of a node, in its directory.
const CONFIG_FILE: &str = "brisk.conf";
const PID_FILE: &str = "brisk.pid";
const LOG_FILE: &str = "brisk.log";
/// The number of bytes at the end of a log that are searched for the last lines.
const LOG_TAIL_BYTES: u64 = 4096;
/// Number of log lines that an error shows.
const LOG_TAIL_LINES: usize = 5;

/// The named server, the one next to this program, or the first one in `PATH`.
///
/// # Errors
/// A text that lists the searched locations.
pub(super) fn find_server(named: Option<&Path>) -> Result<PathBuf, String> {
    if let Some(path) = named {
        if !path.is_file() {
            return Err(format!("There is no program {}", path.display()));
        }
        return path.canonicalize().map_err(|error| failed("find", path, &error));
    }
    let own = std::env::current_exe().ok();
    let own = own.as_deref().and_then(Path::parent);
    let path = std::env::var_os("PATH").unwrap_or_default();
    let directories = own.map(Path::to_owned).into_iter().chain(std::env::split_paths(&path));
    let mut programs = directories.map(|directory| directory.join(SERVER));
    // Make the path absolute, because relative entries of PATH depend on the working directory, which a node changes.
    let found = programs.find(|program| program.is_file()).map(|program| program.canonicalize());
    match (found, own) {
        (Some(Ok(program)), _) => Ok(program),
        (_, Some(own)) => Err(format!(
            "There is no {SERVER} in {} or in PATH: install it, or specify it with --server",
            own.display()
        )),
        (_, None) => Err(format!("There is no {SERVER} in PATH: specify it with --server")),
    }
}

impl LocalNode {
    /// The node's settings. Relative paths are relative to the node's directory, so the cluster's directory can be
    /// moved.
    fn config(&self, layout: LocalLayout, threads: usize) -> String {
        let port = self.port;
        let LocalLayout { shards, replicas, .. } = layout;
        format!(
            "# Written by brisk-cli --cluster start-local; later starts keep your changes to this file.\n\
             port {port}\n\
             bind 127.0.0.1\n\
             threads {threads}\n\
             dir .\n\
             logfile {LOG_FILE}\n\
             pidfile {PID_FILE}\n\
             appendonly yes\n\
             # Do not wait for more replicas that could share a full copy.\n\
             repl-diskless-sync-delay 0\n\
             \n\
             cluster-enabled yes\n\
             cluster-coordinator local:../coordinator\n\
             cluster-announce-ip 127.0.0.1\n\
             cluster-init-shards {shards}\n\
             cluster-init-replicas {replicas}\n"
        )
    }

    /// Creates its directory and its configuration file, unless they exist.
    ///
    /// # Errors
    /// A text that names the file.
    pub(super) fn prepare(&self, layout: LocalLayout) -> Result<(), String> {
        fs::create_dir_all(&self.dir).map_err(|error| failed("create", &self.dir, &error))?;
        let path = self.dir.join(CONFIG_FILE);
        if path.exists() {
            return Ok(());
        }
        let processors = std::thread::available_parallelism().map_or(1, usize::from);
        let threads = (processors / layout.nodes()).max(1);
        let written = fs::write(&path, self.config(layout, threads));
        written.map_err(|error| failed("write", &path, &error))
    }

    /// Starts its process in a separate process group, so that neither Ctrl-C nor closing the terminal ends it.
    ///
    /// # Errors
    /// An error text.
    pub(super) fn start(&self, server: &Path) -> Result<Child, String> {
        let path = self.dir.join(LOG_FILE);
        let log = File::options().create(true).append(true).open(&path);
        let log = log.map_err(|error| failed("open", &path, &error))?;
        let copy = log.try_clone().map_err(|error| failed("open", &path, &error))?;
        let mut command = Command::new(server);
        command.arg(CONFIG_FILE).current_dir(&self.dir).process_group(0);
        // The server logs to this file. Its output is redirected there too, so that errors before its logging starts
        // are kept.
        command.stdin(Stdio::null()).stdout(log).stderr(copy);
        let child = command
            .spawn()
            .map_err(|error| format!("Cannot start {}: {}", server.display(), plain(&error)))?;
        // The server writes the same number later. Until then, the cleanup after a failed start finds it here.
        let path = self.dir.join(PID_FILE);
        let written = fs::write(&path, format!("{}\n", child.id()));
        written.map_err(|error| failed("write", &path, &error))?;
        Ok(child)
    }

    /// Its process, if it is running. A node that is shutting down removes the PID file before its process exits.
    pub(super) fn pid(&self) -> Option<Pid> {
        let text = fs::read_to_string(self.dir.join(PID_FILE)).ok()?;
        let pid = Pid::from_raw(text.trim().parse().ok()?)?;
        self.is_running(pid).then_some(pid)
    }

    /// Reports whether the process is running. Another process may have reused the ID, but it has a different working
    /// directory.
    pub(super) fn is_running(&self, pid: Pid) -> bool {
        let directory = fs::read_link(format!("/proc/{}/cwd", pid.as_raw_nonzero()));
        directory.is_ok_and(|directory| directory == self.dir)
    }

    /// Requests shutdown by a signal, for a node that accepts no commands.
    pub(super) fn terminate(&self) {
        if let Some(pid) = self.pid() {
            // If the process has just exited, there is nothing to do.
            let _ = kill_process(pid, Signal::TERM);
        }
    }

    pub(super) fn log_path(&self) -> PathBuf {
        self.dir.join(LOG_FILE)
    }

    /// `its log /path ends with:` and the last lines of its log, each after a margin.
    pub(super) fn log_tail(&self) -> String {
        let tail = |path: &Path| -> std::io::Result<Vec<u8>> {
            let mut file = File::open(path)?;
            let length = file.metadata()?.len();
            file.seek(SeekFrom::Start(length.saturating_sub(LOG_TAIL_BYTES)))?;
            let mut bytes = Vec::new();
            Read::take(file, LOG_TAIL_BYTES).read_to_end(&mut bytes)?;
            Ok(bytes)
        };
        let bytes = tail(&self.log_path()).unwrap_or_default();
        let text = String::from_utf8_lossy(&bytes).into_owned();
        let lines: Vec<&str> = text.lines().filter(|line| !line.trim().is_empty()).collect();
        let path = self.log_path();
        let path = path.display();
        if lines.is_empty() {
            return format!("its log {path} is empty");
        }
        let shown = &lines[lines.len().saturating_sub(LOG_TAIL_LINES)..];
        let shown: Vec<String> = shown.iter().map(|line| format!("    {line}")).collect();
        format!("its log {path} ends with:\n{}", shown.join("\n"))
    }
}
