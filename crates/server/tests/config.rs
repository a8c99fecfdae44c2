//! Tests CONFIG as clients use it: several settings are set together or not at all, errors match Redis, settings apply
//! immediately, and the settings of a rewritten file survive a restart.

use brisk_testkit::port::Port;
use brisk_testkit::server::Program;
use brisk_testkit::{Conn, Launch, Server, wait_until};
use std::path::Path;
use std::process::{Child, Command, Stdio};

fn brisk() -> Launch {
    Launch::new(Program::At(env!("CARGO_BIN_EXE_brisk-server").into())).set("threads", "2")
}

fn both() -> [Server; 2] {
    [brisk().start(), Launch::redis().start()]
}

fn get(conn: &mut Conn, name: &str) -> String {
    let reply = conn.cmd(&format!("CONFIG GET {name}"));
    reply.field(name).unwrap_or_else(|| panic!("no {name} in {reply}")).text()
}

#[test]
fn replies_are_those_of_the_reference() {
    let servers = both();
    let [mut ours, mut theirs] = [servers[0].connect(), servers[1].connect()];
    for line in [
        "CONFIG",
        "CONFIG NOSUCH",
        "CONFIG GET",
        "CONFIG GET maxmemory",
        "CONFIG GET nosuch",
        "CONFIG GET MaxMemory",
        "CONFIG GET lfu-log-factor lfu-log-factor",
        "CONFIG SET maxmemory",
        "CONFIG SET maxmemory 1mb foo",
        "CONFIG SET nosuch 1",
        "CONFIG SET maxmemory abc",
        "CONFIG SET maxmemory 100mb maxmemory 200mb",
        "CONFIG SET maxmemory 100mb nosuch 1",
        "CONFIG SET maxmemory 100mb lfu-log-factor x",
        "CONFIG GET maxmemory",
        "CONFIG SET maxmemory 100mb lfu-log-factor 11",
        "CONFIG GET maxmemory",
        "CONFIG GET lfu-log-factor",
        "CONFIG SET databases 5",
        "CONFIG SET maxmemory 1 databases 5",
        "CONFIG GET maxmemory",
        "CONFIG SET maxmemory-policy nosuch",
        "CONFIG SET maxclients 1000000000000",
        "CONFIG SET bind 203.0.113.7",
        "CONFIG SET maxmemory 50mb bind 203.0.113.7",
        "CONFIG GET maxmemory",
        "CONFIG GET bind",
        "CONFIG SET loglevel nosuch",
        "CONFIG SET loglevel warning",
        "CONFIG GET loglevel",
        "CONFIG SET port 80x",
        "CONFIG REWRITE",
        "CONFIG RESETSTAT x",
        "CONFIG RESETSTAT",
    ] {
        assert_eq!(ours.cmd(line), theirs.cmd(line), "{line}");
    }
}

#[test]
fn help_has_the_shape_of_the_reference() {
    for line in ["CONFIG HELP", "COMMAND HELP"] {
        let [ours, theirs] = both().map(|server| server.connect().cmd(line).elements().len());
        assert_eq!(ours, theirs, "{line}");
    }
}

#[test]
fn a_new_port_is_listened_on_and_the_old_one_is_not() {
    let server = brisk().start();
    let port = Port::claim();
    let address = format!("127.0.0.1:{}", port.number());
    let mut conn = server.connect();
    // Use several connections, so that both workers accept some.
    assert_eq!(conn.cmd(&format!("CONFIG SET port {}", port.number())).text(), "OK");
    for _ in 0..8 {
        assert_eq!(Conn::tcp(&address).cmd("PING").text(), "PONG");
    }
    assert!(Conn::try_tcp(&server.address()).is_err(), "the old port is closed");
    assert_eq!(conn.cmd("PING").text(), "PONG", "connections stay");
    assert_eq!(get(&mut conn, "port"), port.number().to_string());
}

#[test]
fn a_port_in_use_is_rejected_and_everything_stays() {
    let [ours, theirs] = both();
    for server in [&ours, &theirs] {
        let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let number = taken.local_addr().unwrap().port();
        let mut conn = server.connect();
        let reply = conn.cmd(&format!("CONFIG SET maxmemory 70mb port {number}"));
        assert_eq!(
            reply.text(),
            "ERR CONFIG SET failed (possibly related to argument 'port') - Unable to listen on \
             this port. Check server logs."
        );
        assert_eq!(get(&mut conn, "maxmemory"), "0");
        assert_eq!(server.connect().cmd("PING").text(), "PONG");
    }
}

#[test]
fn overlapping_addresses_are_rejected_together() {
    for server in &both() {
        let mut conn = server.connect();
        for bind in ["127.0.0.1 127.0.0.1", "* 127.0.0.1", "127.0.0.1 localhost"] {
            let reply = conn.cmd(&format!("CONFIG SET bind \"{bind}\""));
            assert_eq!(
                reply.text(),
                "ERR CONFIG SET failed (possibly related to argument 'bind') - Failed to bind to \
                 specified addresses.",
                "{bind}"
            );
            assert_eq!(get(&mut conn, "bind"), "127.0.0.1");
            assert_eq!(server.connect().cmd("PING").text(), "PONG");
        }
    }
}

#[test]
fn a_new_password_applies_to_new_clients_only() {
    let [ours, theirs] = both();
    for server in [&ours, &theirs] {
        let mut old = server.connect();
        assert_eq!(old.cmd("CONFIG SET requirepass secret").text(), "OK");
        assert_eq!(old.cmd("GET a").to_string(), "(nil)");
        let mut new = Conn::tcp(&server.address());
        assert_eq!(new.cmd("GET a").text(), "NOAUTH Authentication required.");
        assert_eq!(old.cmd("CONFIG SET requirepass \"\"").text(), "OK");
        assert_eq!(new.cmd("GET a").to_string(), "(nil)");
    }
}

#[test]
fn a_lower_maxmemory_evicts_at_once() {
    let server = brisk().start();
    let mut conn = server.connect();
    for number in 0..2_000 {
        conn.call(&["SET", &format!("key:{number}"), &"x".repeat(1_000)]);
    }
    let used: u64 = conn.info("used_memory").parse().unwrap();
    let limit = used - 1_000_000;
    let reply = conn.cmd(&format!("CONFIG SET maxmemory {limit} maxmemory-policy allkeys-lru"));
    assert_eq!(reply.text(), "OK");
    wait_until("memory is below the limit", || {
        conn.info("used_memory").parse::<u64>().unwrap() <= limit + 100_000
    });
    assert!(conn.info("evicted_keys").parse::<u64>().unwrap() > 500);
    assert!(conn.cmd("DBSIZE").integer() < 1_500);
}

/// A server started from a configuration file.
struct FromFile(Child);

impl FromFile {
    fn start(file: &Path, port: &Port) -> (FromFile, Conn) {
        let child = Command::new(env!("CARGO_BIN_EXE_brisk-server"))
            .arg(file)
            .stdout(Stdio::null())
            .spawn()
            .expect("the server's program can be run");
        let address = format!("127.0.0.1:{}", port.number());
        let mut conn = None;
        wait_until("the server answers", || {
            conn = Conn::try_tcp(&address).ok();
            conn.is_some()
        });
        (FromFile(child), conn.expect("waited for"))
    }
}

impl Drop for FromFile {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn a_rewritten_file_brings_the_settings_back_and_keeps_comments() {
    let port = Port::claim();
    let dir = std::env::temp_dir().join(format!("brisk-rewrite-{}", std::process::id()));
    std::fs::create_dir_all(&dir).unwrap();
    let file = dir.join("brisk.conf");
    let text = format!("# kept\nport {}\nmaxmemory 10mb\nthreads 1\n", port.number());
    std::fs::write(&file, text).unwrap();
    {
        let (_server, mut conn) = FromFile::start(&file, &port);
        let set = "CONFIG SET maxmemory 20mb maxmemory-policy allkeys-lfu timeout 33";
        assert_eq!(conn.cmd(set).text(), "OK");
        assert_eq!(conn.cmd("CONFIG REWRITE").text(), "OK");
    }
    let written = std::fs::read_to_string(&file).unwrap();
    assert!(written.starts_with("# kept\n") && written.contains("\nmaxmemory 20mb\n"), "{written}");
    let (_server, mut conn) = FromFile::start(&file, &port);
    assert_eq!(get(&mut conn, "maxmemory"), "20971520");
    assert_eq!(get(&mut conn, "maxmemory-policy"), "allkeys-lfu");
    assert_eq!(get(&mut conn, "timeout"), "33");
    assert!(conn.info("config_file").ends_with("brisk.conf"));
    let _ = std::fs::remove_dir_all(&dir);
}
