//! etcd for a test: one or more members on claimed loopback ports, each with its own data directory. Members are
//! stopped by their process ids when the value goes out of scope.

use crate::port::Port;
use crate::server::signal;
use crate::skip::skipped;
use crate::temp_dir::TempDir;
use crate::wait::{holds_within, wait_until};
use std::fs::File;
use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

/// Environment variable with the path of the etcd executable. If it is unset, `etcd` is looked up in `PATH`.
pub const ETCD_BIN: &str = "BRISK_ETCD_BIN";

/// How long a member may take to respond to a health check.
const HEALTH_TIMEOUT: Duration = Duration::from_secs(2);
/// How long members may take to become healthy on a busy machine.
const READY_MAX: Duration = Duration::from_secs(120);

/// The members to start.
#[derive(Debug, Clone)]
pub struct EtcdLaunch {
    members: usize,
    scheme: &'static str,
    args: Vec<String>,
}

/// Running members.
#[derive(Debug)]
pub struct Etcd {
    members: Vec<EtcdMember>,
    launch: EtcdLaunch,
    cluster: String,
    dir: TempDir,
}

#[derive(Debug)]
struct EtcdMember {
    child: Option<Child>,
    client: Port,
    peer: Port,
    /// Serves health checks without TLS and without authentication.
    health: Port,
}

impl EtcdLaunch {
    /// Members with etcd's default settings.
    pub const fn new(members: usize) -> EtcdLaunch {
        EtcdLaunch { members, scheme: "http", args: Vec::new() }
    }

    /// Adds a command-line argument.
    pub fn arg(mut self, arg: &str) -> EtcdLaunch {
        self.args.push(arg.to_owned());
        self
    }

    /// Requires clients to use TLS. The certificate files are passed with [`EtcdLaunch::arg`].
    pub const fn tls(mut self) -> EtcdLaunch {
        self.scheme = "https";
        self
    }

    /// Starts the members and waits until all are healthy. If this machine has no etcd, prints a line for the gate and
    /// returns `None`.
    #[track_caller]
    pub fn start(self) -> Option<Etcd> {
        if !is_installed() {
            skipped("no etcd on this machine");
            return None;
        }
        let members: Vec<EtcdMember> = (0..self.members)
            .map(|_| EtcdMember {
                child: None,
                client: Port::claim(),
                peer: Port::claim(),
                health: Port::claim(),
            })
            .collect();
        let named = members.iter().enumerate();
        let named = named.map(|(at, member)| format!("m{at}={}", url("http", &member.peer)));
        let cluster = named.collect::<Vec<_>>().join(",");
        let mut etcd = Etcd { members, launch: self, cluster, dir: TempDir::new() };
        for at in 0..etcd.members.len() {
            etcd.spawn(at);
        }
        for at in 0..etcd.members.len() {
            etcd.wait_until_healthy(at);
        }
        Some(etcd)
    }
}

impl Etcd {
    /// The addresses for clients, `host:port`.
    pub fn endpoints(&self) -> Vec<String> {
        let address = |member: &EtcdMember| format!("127.0.0.1:{}", member.client.number());
        self.members.iter().map(address).collect()
    }

    /// The process of a member.
    #[track_caller]
    pub fn pid(&self, at: usize) -> u32 {
        self.members[at].child.as_ref().map(Child::id).expect("the member runs")
    }

    /// Suspends a member with SIGSTOP: its connections stay open, but it does not respond.
    #[track_caller]
    pub fn freeze(&self, at: usize) {
        signal(self.pid(at), "STOP");
    }

    /// Resumes a frozen member.
    #[track_caller]
    pub fn thaw(&self, at: usize) {
        signal(self.pid(at), "CONT");
    }

    /// Kills a member; its data stays.
    #[track_caller]
    pub fn kill(&mut self, at: usize) {
        let mut child = self.members[at].child.take().expect("the member runs");
        let _ = child.kill();
        let _ = child.wait();
    }

    /// Restarts a killed member with its data.
    #[track_caller]
    pub fn restart(&mut self, at: usize) {
        assert!(self.members[at].child.is_none(), "the member runs");
        self.spawn(at);
    }

    /// Restarts a killed member with other settings.
    #[track_caller]
    pub fn restart_as(&mut self, at: usize, launch: EtcdLaunch) {
        self.launch = launch;
        self.restart(at);
    }

    /// The lines of the members' logs that contain `text`.
    pub fn log_lines(&self, text: &str) -> String {
        let mut found = String::new();
        for at in 0..self.members.len() {
            let log = std::fs::read_to_string(self.log_path(at)).unwrap_or_default();
            for line in log.lines().filter(|line| line.contains(text)) {
                found += &format!("m{at}: {line}\n");
            }
        }
        found
    }

    fn log_path(&self, at: usize) -> PathBuf {
        self.dir.path(&format!("m{at}.log"))
    }

    /// Waits until a member has a leader and takes part in a quorum.
    #[track_caller]
    pub fn wait_until_healthy(&self, at: usize) {
        let is_healthy = holds_within(READY_MAX, || self.is_healthy(at));
        let log = std::fs::read_to_string(self.log_path(at)).unwrap_or_default();
        assert!(is_healthy, "etcd's member {at} is not healthy:\n{log}");
    }

    /// The position of the member that is the leader.
    #[track_caller]
    pub fn leader(&self) -> usize {
        let mut leader = None;
        wait_until("etcd to have a leader", || {
            let is_leader = |at: &usize| {
                let metrics = self.fetch(*at, "/metrics").unwrap_or_default();
                metrics.contains("\netcd_server_is_leader 1\n")
            };
            leader = (0..self.members.len()).find(is_leader);
            leader.is_some()
        });
        leader.unwrap_or_default()
    }

    fn is_healthy(&self, at: usize) -> bool {
        self.fetch(at, "/health").is_some_and(|response| response.contains("\"health\":\"true\""))
    }

    fn fetch(&self, at: usize, path: &str) -> Option<String> {
        let address = ("127.0.0.1", self.members[at].health.number());
        let mut stream = TcpStream::connect(address).ok()?;
        stream.set_read_timeout(Some(HEALTH_TIMEOUT)).ok()?;
        let request = format!("GET {path} HTTP/1.0\r\nHost: etcd\r\n\r\n");
        stream.write_all(request.as_bytes()).ok()?;
        let mut response = String::new();
        stream.read_to_string(&mut response).ok()?;
        Some(response)
    }

    #[track_caller]
    fn spawn(&mut self, at: usize) {
        let path = self.log_path(at);
        let member = &mut self.members[at];
        let log =
            File::options().create(true).append(true).open(path).expect("the log can be written");
        let client = url(self.launch.scheme, &member.client);
        let peer = url("http", &member.peer);
        let mut command = if Path::new("/usr/bin/setpriv").exists() {
            let mut command = Command::new("setpriv");
            command.args(["--pdeathsig", "KILL"]).arg(program());
            command
        } else {
            Command::new(program())
        };
        command
            .arg(format!("--name=m{at}"))
            .arg("--data-dir")
            .arg(self.dir.path(&format!("m{at}")))
            .arg(format!("--listen-client-urls={client}"))
            .arg(format!("--advertise-client-urls={client}"))
            .arg(format!("--listen-peer-urls={peer}"))
            .arg(format!("--initial-advertise-peer-urls={peer}"))
            .arg(format!("--listen-metrics-urls={}", url("http", &member.health)))
            .arg(format!("--initial-cluster={}", self.cluster))
            .args(["--logger=zap", "--log-level=warn"])
            .args(&self.launch.args)
            .stdin(Stdio::null())
            .stdout(log.try_clone().expect("the log can be written"))
            .stderr(log);
        member.child = Some(command.spawn().expect("etcd starts"));
    }
}

impl Drop for Etcd {
    fn drop(&mut self) {
        for child in self.members.iter_mut().filter_map(|member| member.child.as_mut()) {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

fn url(scheme: &str, port: &Port) -> String {
    format!("{scheme}://127.0.0.1:{}", port.number())
}

fn program() -> std::ffi::OsString {
    std::env::var_os(ETCD_BIN).unwrap_or_else(|| "etcd".into())
}

fn is_installed() -> bool {
    let version = Command::new(program()).arg("--version").stdout(Stdio::null()).status();
    version.is_ok_and(|status| status.success())
}
