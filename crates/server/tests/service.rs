//! Tests of the process as a service: signals, running in the background, the pid file, service managers.

#![expect(clippy::unwrap_used, reason = "a test that cannot continue fails at that point")]

use brisk_testkit::port::Port;
use brisk_testkit::server::{Program, redis_binary, signal, subject_is_redis};
use brisk_testkit::{Conn, Launch, wait_until};
use std::net::TcpListener;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::time::Duration;

fn program() -> PathBuf {
    if subject_is_redis() { redis_binary() } else { env!("CARGO_BIN_EXE_brisk-server").into() }
}

fn launch() -> Launch {
    Launch::new(if subject_is_redis() { Program::Redis } else { Program::At(program()) })
}

/// A directory that is removed when the test ends. A background server that has written its pid
/// file there is stopped as well.
struct Dir(PathBuf);

impl Dir {
    fn new(test: &str) -> Dir {
        let path = std::env::temp_dir().join(format!("brisk-{test}-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&path);
        std::fs::create_dir_all(&path).unwrap();
        Dir(path)
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }

    fn read(&self, name: &str) -> String {
        std::fs::read_to_string(self.path(name)).unwrap_or_default()
    }

    fn pid(&self) -> Option<u32> {
        self.read("pid").trim_end().parse().ok()
    }

    /// Runs a server that moves to the background. Returns when the first process has exited.
    fn start_in_background(&self, port: u16, more: &[&str]) -> Output {
        Command::new(program())
            .args(["--port", &port.to_string(), "--save", "", "--daemonize", "yes", "--dir"])
            .arg(&self.0)
            .args(["--logfile", "log"])
            .args(more)
            .output()
            .unwrap()
    }
}

impl Drop for Dir {
    fn drop(&mut self) {
        if let Some(pid) = self.pid() {
            signal(pid, "KILL");
        }
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn link(pid: u32, name: &str) -> PathBuf {
    std::fs::read_link(format!("/proc/{pid}/{name}")).unwrap_or_default()
}

/// Returns one of the fields after the name in `/proc/PID/stat`, which are state, parent, group, session, …
fn stat(pid: u32, field: usize) -> String {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
    stat.rsplit(") ").next().unwrap().split(' ').nth(field).unwrap().to_owned()
}

#[test]
fn unrelated_signals_do_not_affect_the_server() {
    let mut server = launch().start();
    let mut conn = server.connect();
    assert_eq!(conn.cmd("SET k v").text(), "OK");
    for name in ["HUP", "PIPE", "ALRM"] {
        server.signal(name);
        assert_eq!(conn.cmd("GET k").text(), "v", "{name}");
    }
    assert!(server.is_running());
}

#[test]
fn a_second_sigint_exits_at_once() {
    if subject_is_redis() {
        return; // no other client could observe the sleep
    }
    let lane = Port::claim();
    let mut server =
        launch().set("threads", "1").set("admin-port", &lane.number().to_string()).start();
    let mut conn = server.connect();
    // Send both commands in one segment. Once the key exists, the worker is about to sleep and checks nothing else
    // before it sleeps.
    conn.send_raw(b"SET k v\r\nDEBUG SLEEP 60\r\n");
    let mut admin = Conn::tcp(&format!("127.0.0.1:{}", lane.number()));
    wait_until("the key is there", || admin.cmd("EXISTS k").integer() == 1);
    server.signal("INT");
    wait_until("it is logged", || server.log().contains("Received SIGINT scheduling shutdown..."));
    server.signal("INT");
    wait_until("it ends", || !server.is_running());
    assert!(server.log().contains("You insist... exiting now."));
    assert_eq!(server.terminate(), Some(1));
}

#[test]
fn a_daemon_has_its_own_session_and_a_pid_file() {
    let (dir, port) = (Dir::new("background"), Port::claim());
    let first = dir.start_in_background(port.number(), &["--pidfile", "pid"]);
    assert!(first.status.success(), "{first:?}");
    assert_eq!((first.stdout.as_slice(), first.stderr.as_slice()), (&b""[..], &b""[..]));
    let address = format!("127.0.0.1:{}", port.number());
    let mut conn = Conn::when_loaded(&address);
    let pid: u32 = conn.info("process_id").parse().unwrap();
    assert_eq!(dir.read("pid"), format!("{pid}\n"));
    assert_eq!(stat(pid, 3), pid.to_string(), "leads its session");
    for stream in ["fd/0", "fd/1", "fd/2"] {
        assert_eq!(link(pid, stream), Path::new("/dev/null"));
    }
    assert_eq!(conn.cmd("SET k v").text(), "OK");
    signal(pid, "TERM");
    wait_until("the pid file is gone", || !dir.path("pid").exists());
    wait_until("it has said good-bye", || dir.read("log").contains("bye bye..."));
    assert!(dir.read("log").contains("Removing the pid file."));
}

#[test]
fn errors_of_a_daemon_are_logged() {
    let dir = Dir::new("background-fails");
    let other = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = other.local_addr().unwrap().port();
    let first = dir.start_in_background(port, &["--bind", "127.0.0.1", "--pidfile", "pid"]);
    assert!(first.status.success(), "{first:?}");
    let said = format!("Failed listening on port {port} (TCP), aborting.");
    wait_until("it says so", || dir.read("log").contains(&said));
    assert!(!dir.path("pid").exists());
}

#[test]
fn an_unwritable_log_is_reported_on_the_terminal() {
    let (dir, port) = (Dir::new("background-log"), Port::claim());
    let first = dir.start_in_background(port.number(), &["--logfile", "none/log"]);
    assert_eq!(first.status.code(), Some(1));
    let said = String::from_utf8(first.stderr).unwrap();
    assert!(said.starts_with("\n*** FATAL CONFIG FILE ERROR ("), "{said}");
    assert!(said.contains(" ***\nCan't open the log file"), "{said}");
    assert!(said.ends_with(": No such file or directory\n"), "{said}");
}

#[test]
fn a_pid_file_is_written_in_the_foreground_too_and_none_is_needed() {
    let dir = Dir::new("pid-file");
    let path = dir.path("foreground");
    let server = launch().set("pidfile", path.to_str().unwrap()).start();
    assert_eq!(dir.read("foreground"), format!("{}\n", server.pid()));
    assert_eq!(server.terminate(), Some(0));
    assert!(!path.exists());
    let path = dir.path("nowhere/pid");
    let server = launch().set("pidfile", path.to_str().unwrap()).start();
    if !subject_is_redis() {
        let said = format!("PID file {}: No such file or directory", path.display());
        assert!(server.log().contains(&said), "{}", server.log());
    }
    assert_eq!(server.terminate(), Some(0));
}

/// Creates the manager's end of the socket to which NOTIFY_SOCKET refers as `name`.
fn notify_socket(name: &str) -> UnixDatagram {
    let address = match name.strip_prefix('@') {
        Some(name) => SocketAddr::from_abstract_name(name).unwrap(),
        None => SocketAddr::from_pathname(name).unwrap(),
    };
    let socket = UnixDatagram::bind_addr(&address).unwrap();
    socket.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    socket
}

#[test]
fn systemd_is_notified_when_the_server_is_ready_and_when_it_stops() {
    let dir = Dir::new("systemd");
    let path = dir.path("notify");
    let in_abstract = format!("@brisk-notify-{}", std::process::id());
    for (name, supervised) in [(path.to_str().unwrap(), "systemd"), (&in_abstract, "auto")] {
        let manager = notify_socket(name);
        let notification = || {
            let mut message = [0; 256];
            let length = manager.recv(&mut message).unwrap();
            String::from_utf8_lossy(&message[..length]).into_owned()
        };
        let variable = format!("NOTIFY_SOCKET={name}");
        // A server under a manager stays in the foreground.
        let server = launch()
            .under(&["env", &variable])
            .set("supervised", supervised)
            .set("daemonize", "yes")
            .start();
        assert!(notification().ends_with(" is loading...\n"));
        assert_eq!(notification(), "STATUS=Ready to accept connections\n");
        assert_eq!(notification(), "READY=1\n");
        assert_eq!(server.info("process_supervised"), "systemd");
        assert_eq!(
            server.connect().cmd("CONFIG GET supervised").field("supervised").unwrap().text(),
            "systemd"
        );
        assert_eq!(server.terminate(), Some(0));
        assert_eq!(notification(), "STOPPING=1\n");
    }
}

#[test]
fn a_missing_service_manager_is_only_logged() {
    for (supervised, said) in [
        ("systemd", "systemd supervision error: NOTIFY_SOCKET not found!"),
        ("upstart", "upstart supervision requested, but UPSTART_JOB not found!"),
        ("auto", ""),
    ] {
        let server = launch()
            .under(&["env", "-u", "NOTIFY_SOCKET", "-u", "UPSTART_JOB"])
            .set("supervised", supervised)
            .start();
        assert!(server.log().contains(said), "{}", server.log());
        assert_eq!(server.info("process_supervised"), "no");
    }
}

#[test]
fn upstart_sees_the_server_stop_and_continues_it() {
    let dir = Dir::new("upstart");
    let port = Port::claim();
    let mut child = Command::new(program())
        .args(["--port", &port.number().to_string(), "--save", "", "--supervised", "upstart"])
        .args(["--logfile", "log", "--dir"])
        .arg(&dir.0)
        .env("UPSTART_JOB", "brisk")
        .spawn()
        .unwrap();
    wait_until("it has stopped itself", || stat(child.id(), 0) == "T");
    signal(child.id(), "CONT");
    let address = format!("127.0.0.1:{}", port.number());
    assert_eq!(Conn::when_loaded(&address).info("process_supervised"), "upstart");
    child.kill().unwrap();
    child.wait().unwrap();
}
