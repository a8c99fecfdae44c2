//! Tests of listeners: bind addresses, a port in use, the Unix socket.

use brisk_testkit::port::Port;
use brisk_testkit::server::{Program, redis_binary, subject_is_redis};
use brisk_testkit::{Conn, Launch, Server};
use std::net::TcpListener;
use std::os::unix::fs::{FileTypeExt, PermissionsExt};
use std::os::unix::net::UnixListener;
use std::process::Command;

fn launch() -> Launch {
    Launch::new(if subject_is_redis() {
        Program::Redis
    } else {
        Program::At(env!("CARGO_BIN_EXE_brisk-server").into())
    })
}

fn has_ipv6() -> bool {
    TcpListener::bind("[::1]:0").is_ok()
}

#[test]
fn every_bind_address_is_served_and_optional_ones_may_be_missing() {
    // 192.0.2.1 is reserved for documentation, so no host has this address.
    let v6 = if has_ipv6() { "::1" } else { "-::1" };
    let server = launch().set("bind", &format!("127.0.0.1 127.0.0.2 {v6} -192.0.2.1")).start();
    let port = server.port();
    for host in ["127.0.0.1", "127.0.0.2"] {
        let mut conn = Conn::tcp(&format!("{host}:{port}"));
        assert_eq!(conn.cmd("PING").text(), "PONG");
    }
    if has_ipv6() {
        let mut conn = Conn::tcp(&format!("[::1]:{port}"));
        assert_eq!(conn.cmd("PING").text(), "PONG");
        let list = conn.cmd("CLIENT LIST").text();
        assert!(list.contains(" addr=[::1]:"), "{list}");
    }
    assert!(
        server.log().contains(&format!(
            "Warning: Could not create server TCP listening socket 192.0.2.1:{port}: bind: \
             Cannot assign requested address"
        )),
        "{}",
        server.log()
    );
}

#[test]
fn a_missing_required_address_prevents_startup() {
    let why = launch().set("bind", "127.0.0.1 192.0.2.1").try_start().err().unwrap();
    assert!(why.contains("exit status: 1"), "{why}");
    assert!(why.contains(" (TCP), aborting."), "{why}");
}

#[test]
fn an_unknown_bind_name_is_reported_with_the_text_of_the_system() {
    let why = launch().set("bind", "nowhere.invalid").try_start().err().unwrap();
    // The text depends on whether a name server is reachable.
    let said = why.split("listening socket nowhere.invalid:").nth(1).unwrap().lines().next();
    let said = said.unwrap().split_once(": ").unwrap().1;
    let words = ["Name or service not known", "Temporary failure in name resolution"];
    assert!(words.contains(&said), "{why}");
}

#[test]
fn overlapping_addresses_prevent_startup() {
    for bind in ["127.0.0.1 127.0.0.1", "* 127.0.0.1", "127.0.0.1 -127.0.0.1", "-::* -::1"] {
        if bind.contains("::") && !has_ipv6() {
            continue;
        }
        let why = launch().set("bind", bind).try_start().err().unwrap();
        assert!(why.contains("bind: Address already in use"), "{bind}: {why}");
        assert!(why.contains(" (TCP), aborting."), "{bind}: {why}");
    }
}

#[test]
fn missing_optional_addresses_alone_leave_no_listener() {
    // Disable the Unix socket, which would be a valid listener.
    let launch = launch().set("bind", "-192.0.2.1").set("unixsocket", "");
    let why = launch.try_start().err().unwrap();
    assert!(why.contains("exit status: 1"), "{why}");
    assert!(why.contains("Configured to not listen anywhere, exiting."), "{why}");
}

#[test]
fn a_port_in_use_is_named_and_prevents_startup() {
    let other = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = other.local_addr().unwrap().port().to_string();
    let why = launch().set("port", &port).try_start().err().unwrap();
    assert!(why.contains("exit status: 1"), "{why}");
    assert!(why.contains(&format!("Failed listening on port {port} (TCP), aborting.")), "{why}");
    assert!(why.contains(&format!("127.0.0.1:{port}: bind: Address already in use")), "{why}");
}

#[test]
fn a_port_used_by_another_server_is_noticed_despite_shared_ports() {
    let first = launch().start();
    let port = first.port().to_string();
    let why = launch().set("port", &port).try_start().err().unwrap();
    assert!(why.contains(&format!("Failed listening on port {port} (TCP), aborting.")), "{why}");
}

#[test]
fn the_unix_socket_has_the_configured_permissions() {
    let server = launch().set("unixsocketperm", "750").start();
    let meta = std::fs::metadata(server.unix_socket()).unwrap();
    assert!(meta.file_type().is_socket());
    assert_eq!(meta.permissions().mode() & 0o777, 0o750);
}

#[test]
fn a_client_of_the_unix_socket_is_shown_with_its_path() {
    let server = launch().start();
    let path = server.unix_socket();
    let list = server.connect_unix().cmd("CLIENT LIST").text();
    let line = list.lines().find(|line| line.contains(" flags=U ")).unwrap();
    let shown = format!(" addr={0}:0 laddr={0}:0 ", path.display());
    assert!(line.contains(&shown), "{line}");
}

#[test]
fn after_the_addresses_change_no_new_connection_is_reset() {
    let server = launch().set("io-threads", "4").start();
    let mut conn = server.connect();
    for round in 0..40 {
        // No interface has the second address, so the server listens on the same address as before.
        let bind = if round % 2 == 0 { "127.0.0.1 -192.0.2.1" } else { "127.0.0.1" };
        assert_eq!(conn.cmd(&format!("CONFIG SET bind \"{bind}\"")).text(), "OK");
        let mut clients: Vec<Conn> = (0..8).map(|_| server.connect()).collect();
        for client in &mut clients {
            assert_eq!(client.cmd("PING").text(), "PONG");
        }
    }
}

#[test]
fn a_port_can_be_changed_back_at_once() {
    let server = launch().set("io-threads", "4").start();
    let (first, second) = (server.port(), Port::claim());
    let mut conn = server.connect();
    for _ in 0..20 {
        for port in [second.number(), first] {
            assert_eq!(conn.cmd(&format!("CONFIG SET port {port}")).text(), "OK");
        }
        let mut clients: Vec<Conn> = (0..8).map(|_| server.connect()).collect();
        for client in &mut clients {
            assert_eq!(client.cmd("PING").text(), "PONG");
        }
        assert!(Conn::try_tcp(&format!("127.0.0.1:{}", second.number())).is_err());
    }
}

fn on_unix_socket(server: &Server, clients: usize) {
    let mut conns: Vec<Conn> = (0..clients).map(|_| server.connect_unix()).collect();
    for (index, conn) in conns.iter_mut().enumerate() {
        assert_eq!(conn.cmd(&format!("ECHO {index}")).text(), index.to_string());
    }
}

#[test]
fn workers_share_the_unix_socket() {
    on_unix_socket(&launch().set("io-threads", "4").start(), 100);
}

#[test]
fn a_stale_socket_is_replaced_and_the_own_one_removed_at_shutdown() {
    let dir = std::env::temp_dir().join(format!("brisk-stale-{}", std::process::id()));
    std::fs::create_dir_all(&dir).unwrap();
    let path = dir.join("stale");
    let _ = std::fs::remove_file(&path);
    drop(UnixListener::bind(&path).unwrap());
    assert!(path.exists(), "a closed listener leaves its file");
    let server = launch().set("unixsocket", path.to_str().unwrap()).start();
    assert_eq!(Conn::unix(&path).cmd("PING").text(), "PONG");
    assert_eq!(server.terminate(), Some(0));
    assert!(!path.exists());
    std::fs::remove_dir_all(&dir).unwrap();
}

#[test]
fn a_file_at_the_path_of_the_unix_socket_is_replaced_and_a_directory_is_not() {
    let dir = std::env::temp_dir().join(format!("brisk-in-the-way-{}", std::process::id()));
    std::fs::create_dir_all(&dir).unwrap();
    let path = dir.join("file");
    std::fs::write(&path, "of somebody").unwrap();
    let server = launch().set("unixsocket", path.to_str().unwrap()).start();
    assert_eq!(Conn::unix(&path).cmd("PING").text(), "PONG");
    assert_eq!(server.terminate(), Some(0));
    // Run the program directly, because the test kit would take the error to mean that the port is in use and retry
    // with another port.
    let output = Command::new(if subject_is_redis() {
        redis_binary()
    } else {
        env!("CARGO_BIN_EXE_brisk-server").into()
    })
    .args(["--port", "0", "--unixsocket"])
    .arg(&dir)
    .output()
    .unwrap();
    assert_eq!(output.status.code(), Some(1));
    let log = String::from_utf8(output.stdout).unwrap();
    assert!(log.contains("Failed opening Unix socket: bind: Address already in use"), "{log}");
    assert!(dir.is_dir());
    std::fs::remove_dir_all(&dir).unwrap();
}
